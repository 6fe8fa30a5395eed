//! Detects the format of a text.

use super::Format;
use super::{bpftrace, dtrace, folded, gprof, perf, pmcstat, svg};

/// Format of the first line that is unambiguous.
pub(super) fn format(text: &str) -> Option<Format> {
    if svg::is_svg(text) {
        return Some(Format::FlameGraph);
    }
    let lines = || text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let sure = lines().find_map(signature);
    // Any text may contain a word and a number, so folded stacks are tried last.
    sure.or_else(|| lines().any(folded::is_stack).then_some(Format::Folded))
}

/// Format of an unambiguous line.
pub(super) fn signature(line: &str) -> Option<Format> {
    if gprof::is_heading(line) {
        Some(Format::Gprof)
    } else if pmcstat::is_entry(line) {
        Some(Format::PmcstatGraph)
    } else if bpftrace::is_start(line) {
        Some(Format::Bpftrace)
    } else if folded::is_stack(line) && line.contains(';') {
        // Before perf, because a frame's name may contain text like perf's headers.
        Some(Format::Folded)
    } else if perf::is_sample(line) {
        Some(Format::PerfScript)
    } else if dtrace::is_frame(line) {
        Some(Format::Dtrace)
    } else {
        None
    }
}
