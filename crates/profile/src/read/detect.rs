//! Which format a text is in.

use super::Format;
use super::{bpftrace, dtrace, folded, gprof, perf, pmcstat, svg};

/// The format of a text: that of the first line that can be of only one.
pub(super) fn format(text: &str) -> Option<Format> {
    if svg::is_svg(text) {
        return Some(Format::FlameGraph);
    }
    let lines = || text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let sure = lines().find_map(signature);
    // A single frame and a number may stand in any text, so it is asked last.
    sure.or_else(|| lines().any(folded::is_stack).then_some(Format::Folded))
}

/// The one format that a line can be of.
pub(super) fn signature(line: &str) -> Option<Format> {
    if gprof::is_heading(line) {
        Some(Format::Gprof)
    } else if pmcstat::is_entry(line) {
        Some(Format::PmcstatGraph)
    } else if bpftrace::is_start(line) {
        Some(Format::Bpftrace)
    } else if folded::is_stack(line) && line.contains(';') {
        // Before perf, whose headers may stand within a frame's name.
        Some(Format::Folded)
    } else if perf::is_sample(line) {
        Some(Format::PerfScript)
    } else if dtrace::is_frame(line) {
        Some(Format::Dtrace)
    } else {
        None
    }
}
