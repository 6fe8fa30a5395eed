//! The readers of traffic generators' output never panic. Figures equal those in the text, and
//! decoded data is not larger than the input allows.

#![no_main]

use fwdlab_bench::generator::interface::{parse_netstat, parse_sysfs};
use fwdlab_bench::generator::otg::{self, http};
use fwdlab_bench::generator::pkt_gen::tally::Tally;
use fwdlab_bench::generator::pktgen::text::Device;
use fwdlab_bench::generator::testpmd::{PortStats, read_stats};
use fwdlab_bench::generator::trex::{self, rpc, zmtp};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    frames(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (mut stats, mut tally) = (PortStats::default(), Tally::default());
    for line in text.lines() {
        let before = (stats, tally.count());
        read_stats(line, &mut stats);
        tally.read(line);
        assert!(stats.sent >= before.0.sent && stats.errors >= before.0.errors);
        assert!(stats.dropped >= before.0.dropped && tally.count() >= before.1);
    }
    let _ = (tally.time(), tally.remarks("sender"));
    assert!(tally.errors.len() <= text.lines().count());
    let device = Device::parse(text);
    assert!(device.time.is_none_or(|time| !time.is_zero()));
    if let Some((_, packets)) = device.last_run() {
        assert!(device.result.contains(&packets.to_string()) || device.result.contains(['+', '0']));
    }
    let _ = (parse_sysfs(text), parse_netstat(text));
    json(text);
});

/// Reads ZeroMQ frames and TRex's compressed payloads.
fn frames(bytes: &[u8]) {
    let mut rest = bytes;
    if zmtp::read_greeting(&mut rest).is_ok() {
        let _ = zmtp::read_ready(&mut rest);
    }
    for mut input in [bytes, rest] {
        while let Ok(answer) = zmtp::read_answer(&mut input) {
            assert!(answer.len() < bytes.len());
            let _ = rpc::unpacked(&answer);
        }
    }
    if let Ok(text) = rpc::unpacked(bytes) {
        // Deflate expands one byte to at most 1032 (zlib, "Technical Details").
        assert!(text.len() <= bytes.len() * 1032 + 1032);
    }
}

/// Reads answers of TRex and of OTG servers.
fn json(text: &str) {
    assert!(http::complaint(text).len() <= 6 * text.len() + 16);
    let Ok(value) = serde_json::from_str::<Value>(text) else { return };
    for name in ["opackets", "frames_tx"] {
        let (trex, otg) = (trex::number(&value, name), otg::number(&value, name));
        if let Some(number) = value[name].as_u64() {
            assert_eq!((trex, otg), (number, number));
        }
    }
    if let Err(error) = trex::find(&value, "0", "server") {
        assert!(error.to_string().contains("no port 0"));
    }
    if let Some(ticket) = rpc::ticket(&value) {
        assert!(ticket.is_number());
    }
}
