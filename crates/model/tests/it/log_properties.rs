//! Properties of the parser of generator logs: it never panics, rendered logs round-trip, no line
//! is lost, and the kept intervals match netbenches' shell pipeline. The inputs collected by
//! fuzzing (`fuzz/corpus/generator_log`) are also read, on a stable compiler.

use fwdlab_model::log::{
    self, DuringLog, EquilibriumLog, GeneratorLog, Info, Interval, KEPT_LINES, Layout,
};
use proptest::prelude::*;
use std::fs;
use std::path::Path;

/// Returns the result of `head -n (L - 10) | tail -n (L - 25)` on `text`, `L` being the count of
/// `wc -l`, and of that the lines that match
/// `main_thread[[:space:]]\[[[:digit:]]+\][[:space:]][1-9].*pps`, each cut to the fourth field
/// between single blanks. Slow and literal.
fn netbenches(text: &str) -> Vec<String> {
    let wc = text.matches('\n').count();
    if wc <= 25 {
        return Vec::new();
    }
    let mut pieces: Vec<&str> = text.split_inclusive('\n').collect();
    pieces.truncate(wc - 10);
    let tail = pieces.split_off(pieces.len() - (wc - 25));
    let lines = tail.iter().map(|line| line.trim_end_matches('\n'));
    let matching = lines.filter(|line| matches(line));
    matching.map(|line| line.split(' ').nth(3).unwrap_or("").to_owned()).collect()
}

fn matches(line: &str) -> bool {
    line.match_indices("main_thread").any(|(place, word)| {
        let rest = line[place + word.len()..].strip_prefix([' ', '\t']);
        let digits = rest.and_then(|rest| rest.strip_prefix('['));
        let after = digits.map(|digits| digits.trim_start_matches(|c: char| c.is_ascii_digit()));
        let some = digits.zip(after).is_some_and(|(digits, after)| digits.len() > after.len());
        let rate = after.and_then(|after| after.strip_prefix(']')?.strip_prefix([' ', '\t']));
        some && rate.is_some_and(|rate| {
            rate.starts_with(|c| ('1'..='9').contains(&c)) && rate[1..].contains("pps")
        })
    })
}

/// Formats a line as pkt-gen prints it with `-N`.
fn render(interval: &Interval) -> String {
    let Interval { clock_us, version, pps, packets, duration_us, .. } = interval;
    let (seconds, microseconds) = (clock_us / 1_000_000, clock_us % 1_000_000);
    let mut line = format!("{seconds:03}.{microseconds:06} main_thread [{version}] {pps} pps ");
    if let Some((mean, deviation)) = interval.averaged {
        line += &format!("[avg/std {mean:.0} /{deviation:.0}  pps]");
    }
    line += &format!("({packets} pkts ");
    line += &interval.bits.map(|bits| format!("{bits} bps ")).unwrap_or_default();
    line += &format!("in {duration_us} usec)");
    line +=
        &interval.average_batch.map(|batch| format!(" {batch:.2} avg_batch")).unwrap_or_default();
    line += &interval.min_space.map(|space| format!(" {space} min_space")).unwrap_or_default();
    line
}

fn interval() -> impl Strategy<Value = Interval> {
    let layout = prop::sample::select(vec![
        Layout::F1,
        Layout::F2,
        Layout::WithoutSpace,
        Layout::WithoutBatch,
    ]);
    let averaged = prop::option::of((0u32..1_000_000, 0u32..1_000_000));
    let rate = prop_oneof![Just(0u64), 1..10_000_000_000u64];
    (layout, averaged, rate, 0..1_000_000_000u64, any::<u32>(), any::<[u32; 4]>()).prop_map(
        |(layout, averaged, pps, clock_us, version, figures)| {
            let [packets, bits, duration, batch] = figures.map(u64::from);
            let (has_bits, has_batch, has_space) = match layout {
                Layout::F1 => (false, false, false),
                Layout::WithoutBatch => (true, false, false),
                Layout::WithoutSpace => (true, true, false),
                Layout::F2 => (true, true, true),
            };
            Interval {
                line: 0,
                clock_us,
                version,
                pps,
                packets,
                bits: has_bits.then_some(bits),
                duration_us: duration,
                average_batch: has_batch.then_some(batch as f64 / 100.0),
                min_space: has_space.then_some(batch),
                exact: true,
                averaged: averaged.map(|(mean, deviation)| (mean.into(), deviation.into())),
            }
        },
    )
}

/// Generates one line of a log: an interval, or other text.
fn line() -> impl Strategy<Value = Result<Interval, String>> {
    let other = prop::sample::select(vec![
        "",
        "Terminated",
        "+ return 1",
        "CMD: pkt-gen -f rx -i em0",
        "10.000001 main [1753] interface is em0",
        "10.000001 main_thread [1753] ouch, thread 0 exited with error",
        "Sent nothing.",
        "something else, 5 pps",
        "main_thread",
    ]);
    prop_oneof![4 => interval().prop_map(Ok), 1 => other.prop_map(|text| Err(text.to_owned()))]
}

fn accounted(log: &GeneratorLog) -> usize {
    let once = usize::from(log.command.is_some())
        + usize::from(log.total.is_some())
        + usize::from(log.speed.is_some())
        + usize::from(log.flows_line.is_some());
    log.intervals.len() + once + log.known_noise + log.error_count + log.unknown_count
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_all(&bytes);
    }

    #[test]
    fn damaged_logs_do_not_panic(
        lines in prop::collection::vec(line(), 1..40),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let lines = lines.into_iter().map(|line| line.map_or_else(|text| text, |i| render(&i)));
        let mut bytes = lines.collect::<Vec<_>>().join("\n").into_bytes();
        bytes.push(b'\n');
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        read_all(&bytes);
    }

    #[test]
    fn rendered_logs_survive_a_round_trip(
        lines in prop::collection::vec(line(), 1..80),
        ends in prop::sample::select(vec!["\n", "\r\n"]),
        is_terminated in any::<bool>(),
    ) {
        let mut text = "CMD: pkt-gen\n".to_owned();
        let mut expected = Vec::new();
        for (number, line) in (2..).zip(&lines) {
            match line {
                Ok(interval) => {
                    text += &render(interval);
                    expected.push(Interval { line: number, ..interval.clone() });
                }
                Err(other) => text += other,
            }
            text += ends;
        }
        if !is_terminated {
            text.truncate(text.len() - ends.len());
        }
        let log = GeneratorLog::parse(text.as_bytes()).unwrap();
        prop_assert_eq!(&log.intervals, &expected);
        prop_assert_eq!(log.newlines, text.matches('\n').count());
        prop_assert_eq!(log.lines, text.lines().count());
        prop_assert_eq!(accounted(&log), log.lines);
        prop_assert!(log.unknown.len() <= KEPT_LINES && log.unknown.len() <= log.unknown_count);
        prop_assert_eq!(log.version, expected.first().map(|interval| interval.version));
    }

    /// The rates of the rendered lines have no unit, so the field that the pipeline cuts out is the
    /// rate.
    #[test]
    fn kept_intervals_match_the_netbenches_pipeline(
        lines in prop::collection::vec(line(), 0..60),
        missing_end in any::<bool>(),
    ) {
        let mut text = "CMD: pkt-gen\n".to_owned();
        for line in &lines {
            text += &line.as_ref().map_or_else(Clone::clone, render);
            text.push('\n');
        }
        if missing_end {
            text.pop();
        }
        let log = GeneratorLog::parse(text.as_bytes()).unwrap();
        let kept: Vec<String> =
            log.kept_by_netbenches_rule().map(|interval| interval.pps.to_string()).collect();
        prop_assert_eq!(kept, netbenches(&text));
    }
}

/// Parses bytes as every supported format, and calls every accessor.
fn read_all(bytes: &[u8]) {
    if let Err(refusal) = log::parse(bytes) {
        assert!(!refusal.to_string().is_empty());
    }
    if let Ok(log) = GeneratorLog::parse(bytes) {
        assert_eq!(accounted(&log), log.lines);
        assert!(log.kept_by_netbenches_rule().count() <= log.kept_range().len());
        if let Some(command) = &log.command {
            let _ = (command.program(), command.function(), command.family(), command.flows());
        }
    }
    let _ = (EquilibriumLog::parse(bytes), DuringLog::parse(bytes));
    if let Ok(info) = Info::parse(bytes) {
        let _ = (info.revision(), info.started_at(), info.ended_at());
    }
}

#[test]
fn fuzzing_corpus_does_not_panic() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    for (kind, fewest) in [("seeds", 10), ("corpus", 50)] {
        let folder = fuzz.join(kind).join("generator_log");
        let files: Vec<_> = fs::read_dir(&folder).expect(kind).collect();
        assert!(files.len() >= fewest, "only {} files in {}", files.len(), folder.display());
        for file in files {
            read_all(&fs::read(file.unwrap().path()).unwrap());
        }
    }
}

/// The lengths around which the rule begins to keep lines, each with and without a last line feed.
#[test]
fn netbenches_rule_handles_boundary_lengths() {
    for lines in 0..60 {
        for is_terminated in [true, false] {
            let interval =
                |n| format!("1.000000 main_thread [2277] {n} pps ({n} pkts in 1000000 usec)\n");
            let mut text: String = (1..=lines).map(interval).collect();
            text.insert_str(0, "CMD: pkt-gen\n");
            if !is_terminated {
                text.pop();
            }
            let log = GeneratorLog::parse(text.as_bytes()).unwrap();
            let kept: Vec<String> =
                log.kept_by_netbenches_rule().map(|interval| interval.pps.to_string()).collect();
            assert_eq!(kept, netbenches(&text), "{lines} {is_terminated}");
            let expected = log.newlines.saturating_sub(25);
            assert_eq!(kept.len(), expected, "{lines} {is_terminated}");
        }
    }
}
