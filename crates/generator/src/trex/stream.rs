//! Stream that sends a load: packet, rate, and the field engine's program.
//!
//! Source: TRex stateless RPC, `add_stream`, according to the server's `trex_stl_rpc_cmds.cpp`.

use crate::Load;
use crate::flow_pattern::FlowPattern;
use fwdlab_packet::address::Side;
use fwdlab_packet::{Family, Phase, Stamp, checksum};
use serde_json::{Value, json};

/// Flag: both MACs are taken from the packet, not from the port.
const MACS_OF_PACKET: u8 = 0b11;
/// Bytes of the frame check sequence.
const FCS: usize = 4;
/// Code for UDP in the instruction that offloads a checksum to the card.
const L4_UDP: u8 = 11;

/// The stream and its flow pattern.
pub(super) fn stream(load: &Load) -> (Value, FlowPattern) {
    let pattern = FlowPattern::reaching_all(load.stream.flows);
    let mut frame = frame(load);
    let instructions = program(load, pattern);
    if load.stream.family == Family::Inet && !instructions.is_empty() {
        // The addresses vary but the checksum would not; IPv4 does not require one (RFC 768).
        let at = load.template.udp_offset() + 6;
        frame[at..at + 2].fill(0);
    }
    let rate = match load.rate_pps {
        Some(rate) => json!({ "type": "pps", "value": rate }),
        None => json!({ "type": "percentage", "value": 100.0 }),
    };
    let stream = json!({
        "enabled": true,
        "self_start": true,
        "isg": 0.0,
        "flags": MACS_OF_PACKET,
        "action_count": 0,
        "next_stream_id": -1,
        "random_seed": 0,
        "core_id": -1,
        "packet": { "binary": base64(&frame), "meta": "" },
        "mode": { "type": "continuous", "rate": rate },
        "vm": { "instructions": instructions, "split_by_var": "" },
        "flow_stats": { "enabled": false },
    });
    (stream, pattern)
}

/// The first packet, without FCS. IPv6 frames may be shorter than fwdlab's own, which have a stamp.
fn frame(load: &Load) -> Vec<u8> {
    let mut frame = load.template.frame(0, 0, &stamp(load));
    let size = usize::from(load.stream.frame_size.most()) - FCS;
    if load.stream.family == Family::Inet6 && size < frame.len() {
        let udp = load.template.udp_offset();
        frame.truncate(size.max(udp + 8));
        let length = ((frame.len() - udp) as u16).to_be_bytes();
        let payload_length = udp - 40 + 4;
        frame[payload_length..payload_length + 2].copy_from_slice(&length);
        frame[udp + 4..udp + 6].copy_from_slice(&length);
        checksum::complete(&mut frame, true);
    }
    frame
}

fn stamp(load: &Load) -> Stamp {
    let run_id = load.template.run_id();
    Stamp { run_id, sender: 0, phase: Phase::WarmUp as u8, flow: 0, sequence: 0, time_ns: 0 }
}

/// Instructions that vary the last 32 bits of each address, then the checksum.
fn program(load: &Load, pattern: FlowPattern) -> Vec<Value> {
    let (source, destination) = load.template.bases();
    let addresses = match load.stream.family {
        Family::Inet => 26,
        Family::Inet6 => 22,
    };
    let width = if load.stream.family == Family::Inet { 4 } else { 16 };
    let sides = [
        ("source", Side::Sender, source, load.stream.flows.sources),
        ("destination", Side::Receiver, destination, load.stream.flows.destinations),
    ];
    let mut program = Vec::new();
    for (name, side, base, count) in sides.into_iter().filter(|(.., count)| *count > 1) {
        let is_random = pattern == FlowPattern::RandomDestination && side == Side::Receiver;
        program.push(json!({
            "type": "flow_var",
            "name": name,
            "size": 4,
            "op": if is_random { "random" } else { "inc" },
            "init_value": base,
            "min_value": base,
            "max_value": base + (count - 1),
            "step": 1,
            "split_to_cores": true,
        }));
        let end = addresses + if side == Side::Sender { width } else { 2 * width };
        program.push(json!({
            "type": "write_flow_var",
            "name": name,
            "pkt_offset": end - 4,
            "add_value": 0,
            "is_big_endian": true,
        }));
    }
    match load.stream.family {
        _ if program.is_empty() => {}
        Family::Inet => program.push(json!({ "type": "fix_checksum_ipv4", "pkt_offset": 14 })),
        Family::Inet6 => program.push(json!({
            "type": "fix_checksum_hw",
            "l2_len": 14,
            "l3_len": 40,
            "l4_type": L4_UDP,
        })),
    }
    program
}

/// Base64 encoding of RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_packet::Flows;
    use fwdlab_packet::{Stream, Template};
    use std::time::Duration;

    fn load(family: Family, sources: u32, destinations: u32) -> Load {
        let stream = Stream::new(family, 84, Flows { sources, destinations });
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        Load {
            template: Template::new(&stream, 1, macs[0], macs[1]),
            stream,
            source_mac: macs[0],
            next_hop_mac: macs[1],
            rate_pps: Some(1e6),
            at_most: Duration::from_secs(10),
        }
    }

    /// Examples of RFC 4648, section 10.
    #[test]
    fn base64_matches_the_rfc_examples() {
        let pairs = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (text, code) in pairs {
            assert_eq!(base64(text.as_bytes()), code);
        }
    }

    #[test]
    fn short_ipv6_frames_are_valid() {
        for (size, payload) in [(66, 0), (70, 4), (84, 18)] {
            let mut load = load(Family::Inet6, 1, 1);
            load.stream = Stream { frame_size: size.into(), ..load.stream };
            let mut frame = frame(&load);
            assert_eq!(frame.len(), usize::from(size) - 4);
            let length = [0, 8 + payload];
            assert_eq!((&frame[18..20], &frame[58..60]), (&length[..], &length[..]), "{size}");
            let whole = frame.clone();
            checksum::complete(&mut frame, true);
            assert_eq!(frame, whole, "the checksum of {size} bytes");
        }
    }

    #[test]
    fn flow_variables_are_written_at_the_address_offsets() {
        let (stream, pattern) = stream(&load(Family::Inet, 20, 100));
        let program = stream["vm"]["instructions"].as_array().expect("a program");
        assert_eq!((program.len(), pattern), (5, FlowPattern::RandomDestination));
        assert_eq!(program[0]["max_value"], 0xc612_0100_u32 + 19);
        assert_eq!((&program[0]["op"], &program[2]["op"]), (&json!("inc"), &json!("random")));
        assert_eq!(
            (&program[1]["pkt_offset"], &program[3]["pkt_offset"]),
            (&json!(26), &json!(30))
        );
        assert_eq!(program[4]["type"], "fix_checksum_ipv4");
        let (stream, _) = super::stream(&load(Family::Inet6, 1, 7));
        let program = stream["vm"]["instructions"].as_array().expect("a program");
        assert_eq!((program.len(), &program[1]["pkt_offset"]), (3, &json!(50)));
        assert_eq!(program[2]["type"], "fix_checksum_hw");
        let (stream, _) = super::stream(&load(Family::Inet6, 1, 1));
        assert_eq!(stream["vm"]["instructions"], json!([]));
        // 80 bytes without FCS.
        assert_eq!(stream["packet"]["binary"].as_str().map(str::len), Some(108));
    }
}
