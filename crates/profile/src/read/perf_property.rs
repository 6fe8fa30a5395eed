//! Texts of `perf script` in all combinations of fields, compared with the samples that they were
//! printed from.

use super::perf_header::header;
use crate::stacks::{Frame, Stacks};
use crate::{ProfileError, read};
use proptest::prelude::*;
use std::fmt::Write;

/// Fields of a text, as `-F` and versions of perf select them.
#[derive(Clone, Copy, Debug)]
struct Fields {
    comm: bool,
    pid: bool,
    tid: bool,
    cpu: bool,
    time: bool,
    period: bool,
    event: bool,
    offset: bool,
    object: bool,
    source: bool,
    /// True to print an empty line behind the header.
    is_open: bool,
    /// True to print frames without indentation (Linux 3.2).
    is_flush: bool,
}

/// A sample; its frames have the innermost first.
#[derive(Clone, Debug)]
struct PrintedSample {
    comm: &'static str,
    pid: u32,
    cpu: u32,
    time_us: u64,
    period: u64,
    event: &'static str,
    frames: Vec<&'static str>,
    /// True if a line of no known form follows.
    has_junk: bool,
}

impl Fields {
    /// Returns true if the line alone identifies a header.
    fn has_sure_header(self) -> bool {
        let has_number = self.pid || self.tid || self.cpu || self.period;
        self.time || (self.event && has_number)
    }

    fn header(self, sample: &PrintedSample) -> String {
        let mut line = String::new();
        let PrintedSample { comm, pid, cpu, time_us, period, event, .. } = sample;
        if self.comm {
            write!(line, "{comm} ").unwrap();
        }
        match (self.pid, self.tid) {
            (true, true) => write!(line, "{pid:7}/{pid:<7} ").unwrap(),
            (false, false) => {}
            _ => write!(line, "{pid:7} ").unwrap(),
        }
        if self.cpu {
            write!(line, "[{cpu:03}] ").unwrap();
        }
        if self.time {
            write!(line, "{:5}.{:06}: ", time_us / 1_000_000, time_us % 1_000_000).unwrap();
        }
        if self.period {
            write!(line, "{period:10} ").unwrap();
        }
        if self.event {
            write!(line, "{event:>10}: ").unwrap();
        }
        line
    }

    fn print(self, samples: &[PrintedSample]) -> String {
        let mut text = String::from("# a comment\n");
        for sample in samples {
            writeln!(text, "{}", self.header(sample)).unwrap();
            if self.is_open {
                text.push('\n');
            }
            for (at, function) in sample.frames.iter().enumerate() {
                let address = 0xffff_ffff_8100_0000_u64 + at as u64;
                let tab = if self.is_flush { "" } else { "\t" };
                write!(text, "{tab}{address:16x} {function}").unwrap();
                if self.offset && *function != "[unknown]" {
                    write!(text, "+0x{at:x}").unwrap();
                }
                if self.object || self.is_flush {
                    text.push_str(" ([unknown])");
                }
                text.push('\n');
                if self.source {
                    writeln!(text, "  file.c:{}", 10 + at).unwrap();
                }
            }
            if !(self.is_open && sample.frames.is_empty()) {
                text.push('\n');
            }
            if sample.has_junk {
                text.push_str("lines of another program\n");
            }
        }
        text
    }
}

fn fields() -> impl Strategy<Value = Fields> {
    any::<[bool; 12]>().prop_map(|[comm, pid, tid, cpu, time, period, event, a, b, c, d, e]| {
        let (offset, object, source, is_open, is_flush) = (a, b, c, d, e);
        let mut fields = Fields {
            comm,
            pid,
            tid,
            cpu,
            time,
            period,
            event,
            offset,
            object,
            source,
            is_open,
            is_flush,
        };
        // perf prints no header without fields, and a name alone is recognised by its stack.
        fields.comm |= !fields.has_sure_header();
        fields.is_open &= fields.has_sure_header();
        fields
    })
}

fn samples() -> impl Strategy<Value = Vec<PrintedSample>> {
    const COMMS: &[&str] =
        &["swapper", "V8 Worker", "ksoftirqd/0", "perf", "kworker/u8:2+ev", "[kthread]"];
    const EVENTS: &[&str] =
        &["cycles:P", "cycles:P", "cycles:P", "instructions", "sched:sched_switch"];
    const FUNCTIONS: &[&str] = &["ip_rcv", "do_idle", "f(int, char)", "[unknown]", "net_rx_action"];
    let sample = (
        prop::sample::select(COMMS),
        0..5_000_000_u32,
        0..300_u32,
        0..9_000_000_000_u64,
        1..9_000_000_000_u64,
        prop::sample::select(EVENTS),
        prop::collection::vec(prop::sample::select(FUNCTIONS), 0..5),
        prop::bool::weighted(0.2),
    );
    let sample = sample.prop_map(|(comm, pid, cpu, time_us, period, event, frames, has_junk)| {
        PrintedSample { comm, pid, cpu, time_us, period, event, frames, has_junk }
    });
    prop::collection::vec(sample, 1..12)
}

proptest! {
    #[test]
    fn printed_samples_are_read_or_counted(fields in fields(), mut samples in samples()) {
        for sample in &mut samples {
            // Without a sure header, only the stack identifies a sample.
            if sample.frames.is_empty() && !fields.has_sure_header() {
                sample.frames.push("ip_rcv");
            }
        }
        // The format of a text without any stack or time is unknown.
        if samples.iter().all(|sample| sample.frames.is_empty()) {
            samples[0].frames.push("ip_rcv");
        }
        let text = fields.print(&samples);
        let junk = samples.iter().filter(|sample| sample.has_junk).count();
        let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
        let profile = match read(text.as_bytes()) {
            Err(ProfileError::NotUnderstood { count, all, .. }) if 2 * junk > lines => {
                prop_assert_eq!((count, all), (junk, lines));
                return Ok(());
            }
            other => other.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?,
        };
        let first = samples[0].event;
        let is_read = |sample: &&PrintedSample| !fields.event || sample.event == first;
        let mut expected = Stacks::default();
        for sample in samples.iter().filter(is_read) {
            let mut frames: Vec<Frame> = sample.frames.iter().rev().map(|f| (*f).into()).collect();
            if frames.is_empty() {
                frames.push("[unknown]".into());
            }
            if fields.comm {
                frames.insert(0, sample.comm.into());
            }
            expected.add(frames, if fields.period { sample.period } else { 1 });
        }
        let stacks = profile.stacks().unwrap();
        prop_assert_eq!(stacks.folded(), expected.folded(), "{}", text);
        prop_assert_eq!(profile.samples(), Some(samples.iter().filter(is_read).count()));
        prop_assert_eq!(profile.unknown.count, junk, "{}", text);
        let left_out = |is_it: fn(&str) -> bool| -> u64 {
            profile.left_out.iter().filter(|part| is_it(&part.kind)).map(|part| part.count).sum()
        };
        let others = samples.iter().filter(|sample| !is_read(sample)).count() as u64;
        prop_assert_eq!(left_out(|kind| kind.starts_with("samples of ")), others);
        let places: usize = samples.iter().map(|sample| sample.frames.len()).sum();
        let places = if fields.source { places as u64 } else { 0 };
        prop_assert_eq!(left_out(|kind| kind == "source lines"), places);
    }

    #[test]
    fn printed_headers_are_read_field_by_field(fields in fields(), samples in samples()) {
        for sample in samples.iter().filter(|_| fields.has_sure_header()) {
            let line = fields.header(sample);
            let header = header(&line).ok_or_else(|| TestCaseError::fail(line.clone()))?;
            let given = |is_given: bool, value: u64| is_given.then_some(value);
            prop_assert_eq!(header.comm, if fields.comm { sample.comm } else { "" }, "{}", line);
            prop_assert_eq!(header.event, if fields.event { sample.event } else { "" });
            let place = header.place;
            let pid = given(fields.pid || fields.tid, sample.pid.into());
            prop_assert_eq!(place.pid.map(|pid| pid as u64), pid, "{}", line);
            prop_assert_eq!(place.cpu.map(u64::from), given(fields.cpu, sample.cpu.into()));
            prop_assert_eq!(place.time_ns, given(fields.time, 1000 * sample.time_us));
            prop_assert_eq!(place.period, given(fields.period, sample.period), "{}", line);
        }
    }
}
