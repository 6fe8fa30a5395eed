//! Reads the text of `perf script` (perf-script(1), Linux 6.1 and newer).
//!
//! A sample is a header line, the stack with the innermost frame first, and an empty line. Without
//! `-g` the only frame is in the header line. Frames have the form `address symbol+offset
//! (object)`, where offset and object may be missing.

use super::perf_header::{Header, timed, timeless};
use super::{Notes, lines, without_offset};
use crate::samples::{Samples, SamplesBuilder};
use crate::stacks::is_resolved;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Returns true for a header with a time, or a frame indented as perf prints it.
pub(super) fn is_sample(line: &str) -> bool {
    let indented = line.starts_with('\t') || line.starts_with("        ");
    // Excludes DTrace's CPU and probe columns: addresses are longer.
    let long = |line: &str| line.split_whitespace().next().is_some_and(|a| a.len() >= 4);
    timed(line).is_some() || (indented && long(line) && frame(line).is_some())
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Samples {
    let mut reader = Reader::default();
    let mut lines = lines(text).peekable();
    while let Some((number, line)) = lines.next() {
        if line.trim().is_empty() {
            reader.end_of_sample();
        } else if line.starts_with('#') {
        } else if let Some(header) = timed(line) {
            reader.header(header);
        } else if line.starts_with(char::is_whitespace) && frame(line).is_some() {
            reader.frames.extend(frame(line));
        } else if lines.peek().is_some_and(|(_, next)| is_sample(next) && timed(next).is_none()) {
            reader.header(timeless(line));
        } else {
            notes.unknown(number, line);
        }
    }
    reader.end_of_sample();
    if reader.lost > 0 {
        notes.remark(format!("perf itself lost samples: {} such records", reader.lost));
    }
    if reader.events.len() > 1 {
        let events: Vec<String> =
            reader.events.iter().map(|(event, count)| format!("{event} ({count})")).collect();
        notes.remark(format!(
            "samples of several events are counted together: {}",
            events.join(", ")
        ));
    }
    reader.samples.finish()
}

#[derive(Default)]
struct Reader<'a> {
    samples: SamplesBuilder,
    header: Option<Header<'a>>,
    /// Frames of the current sample, innermost first.
    frames: Vec<Cow<'a, str>>,
    /// Number of samples by event.
    events: BTreeMap<&'a str, usize>,
    /// Number of records of lost samples.
    lost: usize,
}

impl<'a> Reader<'a> {
    fn header(&mut self, header: Header<'a>) {
        self.end_of_sample();
        // Records of mappings, forks and the like are not samples.
        if header.event.starts_with("PERF_RECORD_") || header.rest.starts_with("PERF_RECORD_") {
            self.lost += usize::from(header.rest.starts_with("PERF_RECORD_LOST"));
            return;
        }
        *self.events.entry(header.event).or_default() += 1;
        let single = frame(header.rest);
        self.header = Some(header);
        self.frames.extend(single);
    }

    fn end_of_sample(&mut self) {
        let header = self.header.take();
        if header.is_none() && self.frames.is_empty() {
            return;
        }
        let header = header.unwrap_or_default();
        if self.frames.is_empty() {
            self.frames.push(Cow::Borrowed("[unknown]"));
        }
        let resolved = self.frames.first().is_some_and(|leaf| is_resolved(leaf));
        let comm = Some(header.comm).filter(|comm| !comm.is_empty());
        let frames = comm.into_iter().chain(self.frames.iter().rev().map(AsRef::as_ref));
        self.samples.add(frames, header.place, resolved);
        self.frames.clear();
    }
}

/// Symbol of `address symbol+offset (object)`; if unknown, a placeholder with the object's name.
fn frame(line: &str) -> Option<Cow<'_, str>> {
    let line = line.trim();
    let (address, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    if address.is_empty() || !address.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let rest = rest.trim_start();
    let (symbol, object) = match rest.rfind(" (") {
        Some(at) if rest.ends_with(')') => (rest[..at].trim_end(), &rest[at + 2..rest.len() - 1]),
        _ => (rest, ""),
    };
    // An inlined function has its own symbol, not an object.
    let symbol = without_offset(symbol);
    if !symbol.is_empty() && symbol != "[unknown]" {
        return Some(Cow::Borrowed(symbol));
    }
    match object.rsplit('/').next() {
        None | Some("" | "[unknown]") => Some(Cow::Borrowed("[unknown]")),
        Some(name) => Some(Cow::Owned(format!("[unknown {}]", name.trim_matches(['[', ']'])))),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Content, Format, Samples, Weight, read};

    fn samples(text: &str) -> (Samples, crate::Profile) {
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.format, Format::PerfScript);
        match profile.content.clone() {
            Content::Samples(samples) => (samples, profile),
            other => panic!("{other:?}"),
        }
    }

    const TEXT: &str = "\
# ========
# perf version : 6.1.192
# ========
#
swapper     0 [001] 25220.000001:    2004008 cycles:P: 
	ffffffff81a0 mwait_idle_with_hints.constprop.0+0x5b ([kernel.kallsyms])
	ffffffff81b0 do_idle+0x1f ([kernel.kallsyms])

my proc 12/13 [000] 25220.000002:    2004008 cycles:P: 
	ffffffff81c0 ip_rcv+0x5b ([kernel.kallsyms])
	    7ffc0001 [unknown] (/usr/bin/my proc)
	    7ffc0002 std::map<int, (anon)>::at (inlined)
	       1001a [unknown] ([unknown])

my proc 12/13 [000] 25220.000003:    2004008 cycles:P: 

";

    #[test]
    fn perf_default_output_is_read() {
        let (samples, profile) = samples(TEXT);
        assert_eq!(
            samples.stacks(Weight::Sample).folded(),
            "my proc;[unknown] 1\n\
             my proc;[unknown];std::map<int, (anon)>::at;[unknown my proc];ip_rcv 1\n\
             swapper;do_idle;mwait_idle_with_hints.constprop.0 1\n"
        );
        let (first, frames) = samples.iter().next().unwrap();
        assert_eq!(
            (first.cpu, first.pid, first.time_ns),
            (Some(1), Some(0), Some(25_220_000_001_000))
        );
        assert_eq!((first.period, frames.len()), (2_004_008, 3));
        assert!((samples.resolved_share() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((profile.unknown.count, profile.remarks), (0, vec![]));
    }

    #[test]
    fn perf_missing_fields_are_tolerated() {
        let (names, _) = samples("sh \n\t            9ca3 main\n\t            9cb3 start\n\n");
        assert_eq!(names.stacks(Weight::Sample).folded(), "sh;start;main 1\n");
        let (bare, _) = samples("\t            9ca3 main\n\n\t            9ca3 main\n");
        assert_eq!(bare.stacks(Weight::Sample).folded(), "main 2\n");
        let (single, _) = samples("  sh 7 [000] 1.5: 9 cycles:  9ca3 main+0x1 (/bin/sh)\n");
        assert_eq!(single.stacks(Weight::Period).folded(), "sh;main 9\n");
        let (address, _) = samples("sh 7 1.5: \n\t            9ca3\n");
        assert_eq!(address.stacks(Weight::Sample).folded(), "sh;[unknown] 1\n");
    }

    #[test]
    fn perf_skips_records_that_are_not_samples() {
        let text = format!(
            "sh 7 1.0: PERF_RECORD_MMAP2 7/7: [0x1(0x2) @ 0 00:00 0 0]: r-xp /bin/sh\n\
             sh 7 1.0: PERF_RECORD_LOST lost 12\n{TEXT}sh 7 1.5: 1 cache-misses: \n\t 9ca3 main\nwhat\n"
        );
        let (samples, profile) = samples(&text);
        assert_eq!(samples.len(), 4);
        assert!(profile.remarks[0].contains("lost samples: 1"), "{:?}", profile.remarks);
        assert!(
            profile.remarks[1].contains("cache-misses (1), cycles:P (3)"),
            "{:?}",
            profile.remarks
        );
        assert_eq!(profile.unknown.first, [(21, "what".to_owned())]);
    }

    #[test]
    fn perf_reads_truncated_files_with_a_remark() {
        for end in 0..TEXT.len() {
            if let Ok(profile) = read(&TEXT.as_bytes()[..end]) {
                let cut = !TEXT.as_bytes()[..end].ends_with(b"\n");
                assert_eq!(profile.remarks.iter().any(|r| r.contains("cut off")), cut, "{end}");
            }
        }
    }
}
