//! The readers of logs of other programs never panic and account for every line.

#![no_main]

use fwdlab_model::log::{self, DuringLog, EquilibriumLog, GeneratorLog, Info, KEPT_LINES};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Err(refusal) = log::parse(bytes) {
        assert!(!refusal.to_string().is_empty());
    }
    if let Ok(log) = GeneratorLog::parse(bytes) {
        check_lines(&log);
    }
    if let Ok(log) = EquilibriumLog::parse(bytes) {
        assert!(log.unknown.len() <= KEPT_LINES && log.unknown_count <= log.lines);
    }
    if let Ok(info) = Info::parse(bytes) {
        let _ = (info.revision(), info.started_at(), info.ended_at());
    }
    let _ = DuringLog::parse(bytes);
});

/// Checks that every line is an interval, one of the unique lines, noise, an error or unknown, and
/// that the lines kept by netbenches are within its bounds.
fn check_lines(log: &GeneratorLog) {
    let once = usize::from(log.command.is_some())
        + usize::from(log.total.is_some())
        + usize::from(log.speed.is_some())
        + usize::from(log.flows_line.is_some());
    let rest = log.known_noise + log.error_count + log.unknown_count;
    assert_eq!(log.lines, log.intervals.len() + once + rest);
    assert!(log.lines == log.newlines || log.lines == log.newlines + 1);
    for interval in &log.intervals[log.kept_range()] {
        assert!(interval.line > 15 && interval.line + 10 <= log.newlines);
        let _ = interval.computed_pps();
    }
    if let Some(command) = &log.command {
        let _ = (command.program(), command.function(), command.interface(), command.family());
        let _ = (command.packet_bytes(), command.packets(), command.rate(), command.threads());
        let _ = command.flows();
    }
}
