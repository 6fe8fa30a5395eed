//! Reads the text of `perf script` (perf-script(1), from Linux 3.2 on).
//!
//! A sample is a header line, the stack with the innermost frame first, and an empty line. Without
//! `-g` the only frame is in the header line. Some versions print an empty line between header and
//! stack; the oldest do not indent frames.
//!
//! Addresses of data (`-F +addr`, `perf mem`) are in the header line, before the frame or the stack,
//! and physical ones behind the stack. They are counted, and are no frames.
//!
//! A sample weighs as many events as its period, as in `perf report`: with a fixed frequency the
//! kernel adapts the period, from 1 at the start. Different events measure different things and are
//! never summed: as in stackcollapse-perf.pl, the first one is read.

use super::perf_frame::{frame, is_indented, is_source, is_unindented, without_data};
use super::perf_header::{Header, header, timed, timeless};
use super::{Notes, lines};
use crate::samples::{Samples, SamplesBuilder};
use crate::stacks::is_resolved;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Returns true for a header with a time, or a frame.
pub(super) fn is_sample(line: &str) -> bool {
    timed(line).is_some() || is_indented(line) || is_unindented(line)
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Samples {
    let mut reader = Reader::default();
    let mut lines = lines(text).peekable();
    while let Some((number, line)) = lines.next() {
        // perf indents frames by a tab or blanks, and headers by blanks only.
        let is_stack = line.starts_with('\t') || (reader.is_in_sample() && is_indented(line));
        let header = if is_stack { timed(line) } else { header(line) };
        if line.trim().is_empty() {
            reader.blank_line();
        } else if line.starts_with('#') {
        } else if let Some(header) = header {
            reader.header(header);
        } else if let Some(frame) = reader.frame(line) {
            reader.push(line, frame);
        } else if reader.is_in_sample() && is_source(line) {
            notes.left_out("source lines", 1);
        } else if !reader.is_in_sample()
            && lines.peek().is_some_and(|(_, next)| is_indented(next) || is_unindented(next))
            && !notes.is_foreign(line)
        {
            reader.header(timeless(line));
        } else {
            notes.unknown(number, line);
        }
    }
    reader.end_of_sample();
    reader.finish(notes)
}

#[derive(Default)]
struct Reader<'a> {
    samples: SamplesBuilder,
    header: Option<Header<'a>>,
    /// True if an empty line followed the header.
    is_header_closed: bool,
    /// Frame in the header line, or data if a stack follows; true if data surround the frame.
    single: Option<(Cow<'a, str>, bool)>,
    /// Frames of the current sample, innermost first.
    frames: Vec<Cow<'a, str>>,
    /// True if the first frame of the stack is indented by a tab, as perf does.
    has_tabs: bool,
    /// The event that is read: the first one. Empty until a header has an event.
    event: &'a str,
    /// Number of samples of each other event.
    others: BTreeMap<&'a str, u64>,
    /// Number of samples that were read, of these without period, and of these without header.
    read: usize,
    without_period: usize,
    without_header: usize,
    /// Number of records of lost samples, and of mappings, forks and the like.
    lost: u64,
    records: u64,
    /// Number of header lines, and of lines behind stacks, with addresses of data.
    data: u64,
}

impl<'a> Reader<'a> {
    /// Returns true between the header of a sample and the empty line that ends it.
    fn is_in_sample(&self) -> bool {
        !self.frames.is_empty() || (self.header.is_some() && !self.is_header_closed)
    }

    fn frame(&self, line: &'a str) -> Option<Cow<'a, str>> {
        let has_sample = self.header.is_some() || !self.frames.is_empty();
        let is_frame = line.starts_with(char::is_whitespace) || (has_sample && is_unindented(line));
        frame(line).filter(|_| is_frame)
    }

    /// Adds a line of the stack, unless it has data: perf prints physical addresses and page sizes
    /// behind the stack, without a tab.
    fn push(&mut self, line: &str, frame: Cow<'a, str>) {
        let has_tab = line.starts_with('\t');
        if self.frames.is_empty() {
            self.has_tabs = has_tab;
        }
        if has_tab || !self.has_tabs {
            self.frames.push(frame);
        } else {
            self.data += 1;
        }
    }

    fn header(&mut self, header: Header<'a>) {
        self.end_of_sample();
        // Records of mappings, forks and the like are not samples.
        if header.event.starts_with("PERF_RECORD_") || header.rest.starts_with("PERF_RECORD_") {
            let is_loss = header.rest.starts_with("PERF_RECORD_LOST");
            *(if is_loss { &mut self.lost } else { &mut self.records }) += 1;
            return;
        }
        let (rest, has_data) = without_data(header.rest);
        self.single = frame(rest).map(|frame| (frame, has_data));
        self.header = Some(header);
    }

    /// Ends a sample, unless its stack may still follow.
    fn blank_line(&mut self) {
        if self.frames.is_empty() {
            self.is_header_closed = true;
            // An empty line follows stacks only, also empty ones.
            self.data += u64::from(self.single.take().is_some());
        } else {
            self.end_of_sample();
        }
    }

    fn end_of_sample(&mut self) {
        self.is_header_closed = false;
        let header = self.header.take();
        let mut frames = std::mem::take(&mut self.frames);
        match self.single.take() {
            Some((single, has_data)) if frames.is_empty() => {
                frames.push(single);
                self.data += u64::from(has_data);
            }
            Some(_) => self.data += 1,
            None => {}
        }
        if header.is_none() && frames.is_empty() {
            return;
        }
        self.without_header += usize::from(header.is_none());
        let header = header.unwrap_or_default();
        if self.event.is_empty() {
            self.event = header.event;
        }
        if !header.event.is_empty() && header.event != self.event {
            *self.others.entry(header.event).or_default() += 1;
            return;
        }
        if frames.is_empty() {
            frames.push(Cow::Borrowed("[unknown]"));
        }
        self.read += 1;
        self.without_period += usize::from(header.place.period.is_none());
        let resolved = frames.first().is_some_and(|leaf| is_resolved(leaf));
        let comm = Some(header.comm).filter(|comm| !comm.is_empty());
        let frames = comm.into_iter().chain(frames.iter().rev().map(AsRef::as_ref));
        self.samples.add(frames, header.place, resolved);
    }

    fn finish(self, notes: &mut Notes) -> Samples {
        notes.read = self.read;
        let event = without_precision(self.event);
        notes.event = Some(event.clone()).filter(|event| !event.is_empty());
        if self.without_period < self.read {
            notes.unit = unit(&event);
            if self.without_period > 0 {
                notes.remark(format!(
                    "{} of {} samples have no period and count as 1 {}",
                    self.without_period, self.read, notes.unit
                ));
            }
        }
        if self.without_header > 0 && self.without_header < self.read {
            notes.remark(format!("{} stacks have no header, so no process", self.without_header));
        }
        if self.lost > 0 {
            notes.remark(format!("perf itself lost samples: {} such records", self.lost));
        }
        if !self.others.is_empty() {
            notes.remark(format!(
                "events are never summed: only {} was read ({} samples)",
                self.event, self.read
            ));
        }
        for (event, count) in self.others {
            notes.left_out(&format!("samples of {event}"), count);
        }
        notes.left_out("records that are no samples", self.records);
        notes.left_out("lines with addresses of data", self.data);
        self.samples.finish()
    }
}

/// Event without the modifiers that do not change what is counted: how precise its addresses are,
/// and that the host counts. `cycles:P` and `cycles:pppH` are `cycles`; `cycles:u` is another event.
fn without_precision(event: &str) -> String {
    match modifiers(event) {
        Some((name, modifiers)) => {
            let kept = modifiers.replace(['p', 'P', 'H'], "");
            if kept.is_empty() { name.to_owned() } else { format!("{name}:{kept}") }
        }
        None => event.to_owned(),
    }
}

/// Divides an event from its modifiers (perf-list(1)). `None` if it has none.
fn modifiers(event: &str) -> Option<(&str, &str)> {
    let (name, modifiers) = event.rsplit_once(':')?;
    let are_modifiers = modifiers.chars().all(|c| "ukhIGHpPSDWeb".contains(c));
    (!name.is_empty() && are_modifiers).then_some((name, modifiers))
}

/// Unit of periods: clocks count nanoseconds.
fn unit(event: &str) -> String {
    match modifiers(event).map_or(event, |(name, _)| name) {
        "cpu-clock" | "task-clock" => "ns".to_owned(),
        "" => "events".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::{Content, Filter, FilteredProfile, Format, Samples, Weight, read};

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
            samples.stacks(Weight::Period).folded(),
            "my proc;[unknown] 2004008\n\
             my proc;[unknown];std::map<int, (anon)>::at;[unknown my proc];ip_rcv 2004008\n\
             swapper;do_idle;mwait_idle_with_hints.constprop.0 2004008\n"
        );
        let (first, frames) = samples.iter().next().unwrap();
        assert_eq!(
            (first.cpu, first.pid, first.time_ns),
            (Some(1), Some(0), Some(25_220_000_001_000))
        );
        assert_eq!((first.period, frames.len()), (Some(2_004_008), 3));
        assert!((samples.resolved_share() - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!((profile.unknown.count, profile.remarks), (0, vec![]));
    }

    #[test]
    fn perf_missing_fields_are_tolerated() {
        let (names, _) = samples("sh \n\t            9ca3 main\n\t            9cb3 start\n\n");
        assert_eq!(names.stacks(Weight::Period).folded(), "sh;start;main 1\n");
        let (bare, _) = samples("\t            9ca3 main\n\n\t            9ca3 main\n");
        assert_eq!(bare.stacks(Weight::Period).folded(), "main 2\n");
        let (single, _) = samples("  sh 7 [000] 1.5: 9 cycles:  9ca3 main+0x1 (/bin/sh)\n");
        assert_eq!(single.stacks(Weight::Period).folded(), "sh;main 9\n");
        let (address, _) = samples("sh 7 1.5: \n\t            9ca3\n");
        assert_eq!(address.stacks(Weight::Period).folded(), "sh;[unknown] 1\n");
    }

    #[test]
    fn perf_skips_records_that_are_not_samples() {
        let text = format!(
            "sh 7 1.0: PERF_RECORD_MMAP2 7/7: [0x1(0x2) @ 0 00:00 0 0]: r-xp /bin/sh\n\
             sh 7 1.0: PERF_RECORD_LOST lost 12\n{TEXT}sh 7 1.5: 1 cache-misses: \n\t 9ca3 main\nwhat\n"
        );
        let (samples, profile) = samples(&text);
        assert_eq!(samples.len(), 3);
        let notes = profile.notes().join("\n");
        assert!(notes.contains("lost samples: 1"), "{notes}");
        assert!(notes.contains("only cycles:P was read (3 samples)"), "{notes}");
        assert!(
            notes.contains("left out: 1 samples of cache-misses, 1 records that are no samples"),
            "{notes}"
        );
        assert_eq!(profile.unknown.first, [(21, "what".to_owned())]);
    }

    #[test]
    fn perf_source_lines_are_no_processes() {
        let (samples, profile) = samples(
            "eth 5 [000] 9.000001:    500 cycles: \n\
             \tffffffff81a0 ip_rcv+0x5b ([kernel.kallsyms])\n  ip.c:54\n\
             \tffffffff81b0 net_rx+0x1f ([kernel.kallsyms])\n  dev.c:66 (discriminator 3)\n\
             \tffffffff81c0 softirq+0x1f ([kernel.kallsyms])\n  [kernel.kallsyms][ffffffff81c0]\n\n",
        );
        assert_eq!(samples.stacks(Weight::Sample).folded(), "eth;softirq;net_rx;ip_rcv 1\n");
        assert_eq!(profile.notes(), ["left out: 3 source lines"]);
    }

    #[test]
    fn perf_empty_line_after_header_ends_no_sample() {
        let (samples, profile) = samples(
            "swapper 0 [001] 9.000001:    70 cycles: \n\n\tffffffff81a0 do_idle+0x1f ([k])\n\n\
             eth 5 [001] 9.000002:    70 cycles: \n\n\
             eth 5 [001] 9.000003:    70 cycles: \n\n\tffffffff81b0 ip_rcv ([k])\n\n",
        );
        let stacks = "eth;[unknown] 1\neth;ip_rcv 1\nswapper;do_idle 1\n";
        assert_eq!(samples.stacks(Weight::Sample).folded(), stacks);
        assert!(profile.notes().is_empty(), "{:?}", profile.notes());
    }

    #[test]
    fn perf_header_without_time_has_process_and_event() {
        let text = "perf    90 cycles: \n\tffffffff8110 f ([k])\n\n\
                    rx-0   91 cycles: \n\tffffffff8120 g ([k])\n\n\
                    rx-0   92 cycles: \n\tffffffff8120 g ([k])\n\n\
                    rx-0   91 instructions: \n\tffffffff8120 g ([k])\n\n";
        let (samples, profile) = samples(text);
        assert_eq!(samples.stacks(Weight::Period).folded(), "perf;f 1\nrx-0;g 2\n");
        let divided = FilteredProfile::of(&profile, &Filter::default(), false);
        assert!((divided.summary.harness_share - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(profile.event.as_deref(), Some("cycles"));
        let notes = profile.notes().join("\n");
        assert!(notes.contains("only cycles was read (3 samples)"), "{notes}");
        assert!(notes.contains("left out: 1 samples of instructions"), "{notes}");
    }

    #[test]
    fn perf_samples_weigh_by_period() {
        let start = "boot 7 [000] 1.000000:   2 cycles:P: \n\tffffffff8100 start ([k])\n\n";
        let later = "net 8 [000] 2.000000:  996 cycles:P: \n\tffffffff8200 lookup ([k])\n\n";
        let (samples, profile) = samples(&format!("{start}{start}{later}"));
        assert_eq!(samples.len(), 3);
        let stacks = profile.stacks().unwrap();
        assert_eq!(stacks.folded(), "boot;start 4\nnet;lookup 996\n");
        assert_eq!((profile.unit.as_str(), profile.notes().len()), ("cycles", 0));
        let bare = start.replace("   2 cycles:P: ", " cycles:P: ");
        let mixed = read(format!("{bare}{later}").as_bytes()).unwrap();
        assert_eq!(mixed.stacks().unwrap().total(), 997);
        assert_eq!(mixed.notes(), ["1 of 2 samples have no period and count as 1 cycles"]);
        let clock = later.replace("cycles:P", "cpu-clock:pppH");
        assert_eq!(read(clock.as_bytes()).unwrap().unit, "ns");
    }

    #[test]
    fn perf_addresses_of_data_are_no_frames() {
        // perf 6.1: perf record -d, perf script -F +addr,+phys_addr,+data_page_size.
        let stack = "ls 12483   288.676137:          1 page-faults:     555a3e0035c0 \
                     __progname+0x0 (/usr/bin/ls)\n\
                     \tffffffff817554ea elf_load+0x28a ([kernel.kallsyms])\n\
                     \tffffffff81755b8a load_elf_binary+0x66a ([kernel.kallsyms])\n\
                     \x20              0 N/A\n\n";
        let empty = "ls 12483   288.676138:          1 page-faults:     555a3e0035c0 environ\n\n";
        let (samples, profile) = samples(&format!("{stack}{empty}{stack}"));
        let expected = "ls;[unknown] 1\nls;load_elf_binary;elf_load 2\n";
        assert_eq!(samples.stacks(Weight::Sample).folded(), expected);
        assert_eq!(profile.notes(), ["left out: 5 lines with addresses of data"]);
        let single = "ls 12396   286.868315:          1 page-faults:     55664dcf55c0 \
                      __progname+0x0 (/usr/bin/ls) ffffffff817554ea elf_load+0x28a \
                      ([kernel.kallsyms])\n";
        let profile = read(single.repeat(2).as_bytes()).unwrap();
        assert_eq!(profile.stacks().unwrap().folded(), "ls;elf_load 2\n");
        assert_eq!(profile.notes(), ["left out: 2 lines with addresses of data"]);
    }

    #[test]
    fn perf_frames_of_linux_3_2_have_no_indentation() {
        let (samples, profile) = samples(
            "java 1998 cycles:\nffffffff81000a00 wrmsr ([kernel.kallsyms])\n\
             ffffffff81000b00 pmu_enable ([kernel.kallsyms])\n\n\
             java 1998 cycles:\n    7f0a3c7b4d6d [unknown] (/tmp/perf-1.map)\n\n",
        );
        let expected = "java;[unknown perf-1.map] 1\njava;pmu_enable;wrmsr 1\n";
        assert_eq!(samples.stacks(Weight::Period).folded(), expected);
        assert_eq!((profile.unit.as_str(), profile.notes()), ("samples", vec![]));
    }

    #[test]
    fn without_precision_keeps_other_modifiers() {
        for (event, expected) in [
            ("cycles:P", "cycles"),
            ("cycles:pppH", "cycles"),
            ("cycles:upp", "cycles:u"),
            ("sched:sched_switch", "sched:sched_switch"),
            ("cpu/cycles/P", "cpu/cycles/P"),
            ("", ""),
        ] {
            assert_eq!(super::without_precision(event), expected);
        }
        assert_eq!(
            (super::unit("cycles:u"), super::unit("task-clock:u")),
            ("cycles".into(), "ns".into())
        );
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
