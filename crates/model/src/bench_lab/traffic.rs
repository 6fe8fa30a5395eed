//! Traffic: pkt-gen's command line as fwdlab's `[traffic]`.

use super::Source;
use super::rack::Rack;
use super::script::Variable;
use crate::lab::{Mac, Role};
use crate::log::{AddressRange, Command};
use crate::spec::keys::{ADDRESSES_MAX, FLOWS_MAX};
use crate::spec::kind::FRAME_MAX;
use fwdlab_packet::Family;

/// Bytes that pkt-gen's `-l` does not count: the frame check sequence.
const FCS: u64 = 4;
/// Smallest packet of Ethernet without FCS; pkt-gen's smaller ones are padded.
const PACKET_MIN: u64 = 60;
/// Headers of UDP over IPv6, without FCS.
const INET6_HEADERS: u64 = 62;

/// `[traffic]`.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    pub(super) is_inet6: bool,
    /// With FCS.
    pub(super) frame_size: Option<u64>,
    /// Sources and destinations.
    pub(super) flows: Option<(u64, u64)>,
    /// Packets per second of all senders; `None` for as many as possible.
    pub(super) rate_pps: Option<u64>,
    /// Options that are passed to pkt-gen unchanged.
    pub(super) options: Vec<String>,
    /// The commands in full, for a comment.
    pub(super) commands: Vec<(String, String)>,
}

/// Reads the senders' commands.
pub(super) fn of(source: &mut Source, rack: &Rack) -> Traffic {
    let is_inet6 = source.get("AF") == Some("6");
    let mut traffic = Traffic { is_inet6, ..Traffic::default() };
    let names = ["SENDER_START_CMD", "SENDER_2_START_CMD", "RECEIVER_START_CMD"];
    let written: Vec<&Variable> = names.iter().filter_map(|name| source.variable(name)).collect();
    for variable in &written {
        traffic.commands.push((variable.name.clone(), variable.value.clone()));
    }
    let command = |name: &str| {
        let variable = written.iter().find(|variable| variable.name == name)?;
        Some((variable.line, Command::new(None, variable.value.clone())))
    };
    let Some((line, first)) = command("SENDER_START_CMD") else {
        source.remark("nothing says what is sent: smallest frames, 2000 flows".to_owned());
        return traffic;
    };
    if first.program() != Some("pkt-gen") {
        source.remark(format!(
            "line {line}: the sender's command is {}, not pkt-gen: fwdlab starts pkt-gen itself \
             and does not search for an equilibrium; its options are not taken over",
            first.program().unwrap_or("empty")
        ));
        return traffic;
    }
    traffic.is_inet6 |= first.family() == Some(Family::Inet6);
    traffic.frame_size = frame_size(source, &first, line, traffic.is_inet6);
    traffic.flows = flows(source, &first, line);
    traffic.rate_pps = rate(&first);
    options(source, rack, &first, line, &mut traffic.options);
    if let Some((line, second)) = command("SENDER_2_START_CMD") {
        traffic.rate_pps = match (traffic.rate_pps, rate(&second)) {
            (Some(one), Some(other)) => one.checked_add(other),
            _ => None,
        };
        source.remark(format!(
            "line {line}: the second sender has options of its own ({}): fwdlab gives both the \
             same flows and frames; `rate` is the sum of both",
            options_as_written(&second, b"slRp")
        ));
    }
    if let Some((line, receiver)) = command("RECEIVER_START_CMD") {
        let others = options_as_written(&receiver, b"46NwWTcpUX");
        if !others.is_empty() {
            source.remark(format!(
                "line {line}: options of the receiver's pkt-gen ({others}): fwdlab starts the \
                 receiver itself"
            ));
        }
    }
    traffic
}

fn frame_size(source: &mut Source, command: &Command, line: usize, is_inet6: bool) -> Option<u64> {
    let bytes = command.packet_bytes().unwrap_or(PACKET_MIN);
    let least = if is_inet6 { INET6_HEADERS } else { PACKET_MIN };
    let size = bytes.max(least).saturating_add(FCS);
    if bytes < least {
        source.remark(format!(
            "line {line}: -l {bytes} is less than a frame has: {size} bytes with FCS are written"
        ));
    }
    if size > u64::from(FRAME_MAX) {
        source.remark(format!("line {line}: -l {bytes}: frames of {size} bytes can't be sent"));
        return None;
    }
    Some(size)
}

fn flows(source: &mut Source, command: &Command, line: usize) -> Option<(u64, u64)> {
    let ranges = [command.source(), command.destination()];
    if ranges.iter().all(Option::is_none) {
        source.remark(format!("line {line}: no -s and -d that can be read: 2000 flows"));
        return None;
    }
    let count = |range: Option<AddressRange>| range.map_or(1, |range| range.combinations());
    let [sources, destinations] = ranges.map(count);
    for range in ranges.iter().flatten().filter(|range| range.combinations() > range.addresses()) {
        source.remark(format!(
            "line {line}: {} addresses with {} ports each are written as {} addresses with one",
            range.addresses(),
            range.combinations() / range.addresses().max(1),
            range.combinations()
        ));
    }
    source.remark(format!(
        "line {line}: the addresses of -s and -d are fwdlab's own choice; their numbers are kept"
    ));
    let (most, all) = (ADDRESSES_MAX as u64, FLOWS_MAX as u64);
    let fits = sources <= most
        && destinations <= most
        && sources.checked_mul(destinations).is_some_and(|flows| flows <= all);
    if !fits {
        source.remark(format!(
            "line {line}: {sources} sources and {destinations} destinations are more than can be \
             asked for: write `flows` by hand"
        ));
    }
    fits.then_some((sources, destinations))
}

/// Returns the intended load of all threads; `-R 0` is no limit.
fn rate(command: &Command) -> Option<u64> {
    let rate = command.rate().filter(|&rate| rate > 0)?;
    let all = rate.checked_mul(command.threads().unwrap_or(1).max(1))?;
    (all <= 1_000_000_000_000_000).then_some(all)
}

/// Returns the options that are passed to pkt-gen unchanged; those that fwdlab sets itself are
/// checked.
fn options(
    source: &mut Source,
    rack: &Rack,
    command: &Command,
    line: usize,
    kept: &mut Vec<String>,
) {
    let sender = rack.ports(Role::Sender).next();
    for (letter, value) in command.options() {
        let option = format!("-{}", char::from(letter));
        match letter {
            b'p' | b'w' | b'c' | b'C' | b'P' | b'b' | b'H' | b'o' if is_word(value) => {
                kept.extend([option, value.to_owned()]);
            }
            b'U' | b'z' | b'Z' | b'B' => kept.push(option),
            b'f' | b'l' | b's' | b'd' | b'R' | b'4' | b'6' => {}
            b'i' if sender.is_some_and(|port| command.interface() == Some(&port.name)) => {}
            b'S' if is_mac(value, sender.and_then(|port| port.mac)) => {}
            b'D' if is_mac(value, rack.mac_of_dut()) => {}
            b'i' | b'S' | b'D' => source.remark(format!(
                "line {line}: {option} {value} is not what the rest of the file says: left out"
            )),
            b'n' => source.remark(format!(
                "line {line}: -n {value}: fwdlab sends for a time, `duration` in [trial]"
            )),
            b'N' | b'T' | b'W' => source.remark(format!(
                "line {line}: {}: fwdlab decides how pkt-gen reports and waits",
                format!("{option} {value}").trim_end()
            )),
            _ => source.remark(format!(
                "line {line}: {}: pkt-gen's option has no place",
                format!("{option} {value}").trim_end()
            )),
        }
    }
}

fn is_mac(text: &str, mac: Option<Mac>) -> bool {
    text.parse::<Mac>().is_ok_and(|parsed| Some(parsed) == mac)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

/// Returns these options in their original notation.
fn options_as_written(command: &Command, letters: &[u8]) -> String {
    let options = command.options().filter(|(letter, _)| letters.contains(letter));
    let options: Vec<String> = options
        .map(|(letter, value)| format!("-{} {value}", char::from(letter)).trim_end().to_owned())
        .collect();
    options.join(" ")
}
