//! Header line of each sample of `perf script`.
//!
//! The default form is `comm pid [cpu] seconds: period event:`, where CPU and period may be
//! missing, `pid` may be `pid/tid`, and the name may contain blanks; `-F` can omit every part, and
//! older versions print no time. See perf-script(1) of Linux 6.1 and `process_event()` in
//! tools/perf/builtin-script.c.

use crate::samples::SampleSite;

/// Parsed header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// Name of the thread; empty if it is not printed.
    pub(super) comm: &'a str,
    pub(super) place: SampleSite,
    /// Name of the event, e.g. `cycles:P`; empty if it is not printed.
    pub(super) event: &'a str,
    /// Remaining text: the frame of a sample without stack.
    pub(super) rest: &'a str,
}

/// Parses a header with a time that follows a process or CPU. Any text may precede these.
pub(super) fn timed(line: &str) -> Option<Header<'_>> {
    let tokens: Vec<(usize, &str)> = tokens(line).collect();
    let at = (1..tokens.len()).find(|&at| {
        let before = tokens[at - 1].1;
        time_ns(tokens[at].1).is_some() && (cpu(before).is_some() || pid(before).is_some())
    })?;
    Some(with_time(line, tokens[at]))
}

/// Parses a header: with a time, or with an event after a process, CPU or period. Lines of other
/// programs can have these forms, so they identify no file.
pub(super) fn header(line: &str) -> Option<Header<'_>> {
    timed(line).or_else(|| timed_alone(line)).or_else(|| untimed(line))
}

/// Parses a header with a time but without process and CPU: `comm 25136.619758: 1000 cycles:`.
fn timed_alone(line: &str) -> Option<Header<'_>> {
    // perf prints micro- or nanoseconds.
    let is_exact = |token: &str| {
        token.split_once('.').is_some_and(|(_, fraction)| matches!(fraction.len(), 7 | 10))
    };
    let time = tokens(line).find(|(_, token)| time_ns(token).is_some() && is_exact(token))?;
    let header = with_time(line, time);
    (!header.event.is_empty() || header.rest.is_empty()).then_some(header)
}

fn with_time<'a>(line: &'a str, (start, time): (usize, &str)) -> Header<'a> {
    let (comm, mut place) = before_time(&line[..start], true);
    place.time_ns = time_ns(time);
    let (period, event, rest) = after_time(&line[start + time.len()..]);
    place.period = period.filter(|&period| period > 0);
    Header { comm, place, event, rest }
}

/// Parses a header without a time: `comm pid [cpu] period event: rest`. The event follows a number
/// or a CPU.
fn untimed(line: &str) -> Option<Header<'_>> {
    let tokens: Vec<(usize, &str)> = tokens(line).collect();
    let at = (1..tokens.len()).find(|&at| {
        let before = tokens[at - 1].1;
        let is_number = before.parse::<u64>().is_ok() || pid(before).is_some();
        is_event(tokens[at].1) && (is_number || cpu(before).is_some())
    })?;
    let (start, event) = tokens[at];
    let (comm, place) = before_event(&line[..start], true);
    let rest = line[start + event.len()..].trim();
    Some(Header { comm, place, event: event.trim_end_matches(':'), rest })
}

/// Parses `comm pid [cpu] period`. The last number is a period, not the process, if a process or
/// CPU precedes it, or if it has the width of perf's column of periods.
fn before_event(text: &str, has_more: bool) -> (&str, SampleSite) {
    const WIDTH: usize = 10;
    let mut tokens: Vec<(usize, &str)> = tokens(text).collect();
    let Some((start, last)) = tokens.pop() else {
        return ("", SampleSite::default());
    };
    let end = start + last.len();
    let is_period = match tokens.last() {
        None => end >= WIDTH,
        Some((before, word)) => {
            cpu(word).is_some() || pid(word).is_some() || end - (before + word.len() + 1) >= WIDTH
        }
    };
    match last.parse::<u64>() {
        Ok(period) if is_period => {
            let (comm, place) = before_time(&text[..start], has_more);
            (comm, SampleSite { period: Some(period).filter(|&period| period > 0), ..place })
        }
        _ => before_time(text, has_more),
    }
}

/// Parses a header that is recognised only by the stack below it: the name, possibly followed by
/// process, CPU and period, or by the event.
pub(super) fn timeless(line: &str) -> Header<'_> {
    let text = line.trim_end();
    let (name, last) = text.rsplit_once(char::is_whitespace).unwrap_or(("", text));
    let (name, event) =
        if is_event(last) { (name, last.trim_end_matches(':')) } else { (text, "") };
    let (comm, place) = before_event(name, false);
    Header { comm, place, event, rest: "" }
}

/// Parses `comm pid [cpu]`, where everything may be missing. A single number is the process if
/// `has_more` is true (the line continues), otherwise a name.
fn before_time(text: &str, has_more: bool) -> (&str, SampleSite) {
    let mut place = SampleSite::default();
    let mut rest = text.trim();
    let divide = |text| match split_last(text) {
        None if has_more => ("", text),
        divided => divided.unwrap_or((text, "")),
    };
    if let (before, last) = divide(rest)
        && let Some(number) = cpu(last)
    {
        (place.cpu, rest) = (Some(number), before);
    }
    if let (before, last) = divide(rest)
        && let Some(number) = pid(last)
    {
        (place.pid, rest) = (Some(number), before);
    }
    (rest, place)
}

/// Parses `period event: rest`, where everything may be missing.
fn after_time(text: &str) -> (Option<u64>, &str, &str) {
    let mut rest = text.trim();
    let mut period = None;
    // perf prints a blank after a period, but not after an address.
    if text.ends_with(' ') && rest.bytes().all(|byte| byte.is_ascii_digit()) {
        return (rest.parse().ok(), "", "");
    }
    if let Some((first, after)) = split_first(rest)
        && let Ok(number) = first.parse::<u64>()
        // A bare address may consist of digits only.
        && split_first(after).is_some_and(|(event, _)| event.ends_with(':'))
    {
        (period, rest) = (Some(number), after);
    }
    match split_first(rest) {
        Some((event, after)) if event.ends_with(':') => {
            (period, event.trim_end_matches(':'), after)
        }
        _ => (period, "", rest),
    }
}

/// Returns true for the name of an event with its colon: `cycles:P:`, `sched:sched_switch:`.
fn is_event(token: &str) -> bool {
    let name = token.strip_suffix(':').unwrap_or_default().trim_end_matches(':');
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Parses seconds followed by a colon, `25136.619758:`, as nanoseconds.
fn time_ns(token: &str) -> Option<u64> {
    let (seconds, fraction) = token.strip_suffix(':')?.split_once('.')?;
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(seconds) || !digits(fraction) || fraction.len() > 9 {
        return None;
    }
    let scale = 10_u64.pow(9 - fraction.len() as u32);
    let fraction = fraction.parse::<u64>().ok()?.checked_mul(scale)?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?.checked_add(fraction)
}

/// Parses `[003]`.
fn cpu(token: &str) -> Option<u32> {
    token.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

/// Parses `1234`, `1234/1235` (process and thread), or `-1` for an unknown process.
fn pid(token: &str) -> Option<i32> {
    match token.split_once('/') {
        Some((process, thread)) => {
            thread.parse::<i32>().ok()?;
            process.parse().ok()
        }
        None => token.parse().ok(),
    }
}

fn tokens(line: &str) -> impl Iterator<Item = (usize, &str)> {
    // Each token is a slice of the line, so the pointer difference is its offset.
    line.split_whitespace().map(move |token| (token.as_ptr().addr() - line.as_ptr().addr(), token))
}

fn split_first(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if text.is_empty() {
        return None;
    }
    Some(text.split_once(char::is_whitespace).map_or((text, ""), |(a, b)| (a, b.trim_start())))
}

/// Splits off the last word. `None` for a single word, because a name always comes first.
fn split_last(text: &str) -> Option<(&str, &str)> {
    text.rsplit_once(char::is_whitespace).map(|(a, b)| (a.trim_end(), b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, comm: &str, place: SampleSite, event: &str, rest: &str) {
        assert_eq!(timed(line), Some(Header { comm, place, event, rest }), "{line}");
    }

    #[test]
    fn timed_reads_headers_of_linux_6_1() {
        let full = SampleSite {
            cpu: Some(1),
            pid: Some(12342),
            time_ns: Some(25_220_003_658_000),
            period: Some(2_004_008),
        };
        let line = "rustc 12342 [001] 25220.003658:    2004008 cpu-clock: ";
        check(line, "rustc", full, "cpu-clock", "");
        let line = "rustc 12342/12358 [001] 25220.003658000:    2004008 cpu-clock:pppH: ";
        check(line, "rustc", full, "cpu-clock:pppH", "");
        let thread = SampleSite { cpu: None, period: None, ..full };
        check("my proc 2 12342 25220.003658: cycles: ", "my proc 2", thread, "cycles", "");
        check("sh 12342 25220.003658: ", "sh", thread, "", "");
        let single = "   rustc 12342 [001] 25220.003658:    2004008 cpu-clock:      7fbb f+0x1 (x)";
        check(single, "rustc", full, "cpu-clock", "7fbb f+0x1 (x)");
    }

    #[test]
    fn header_reads_lines_without_time() {
        let of = |line| header(line).map(|h| (h.comm, h.place.pid, h.place.period, h.event));
        for (line, expected) in [
            ("perf   100 cycles: ", ("perf", Some(100), None, "cycles")),
            ("java  3278/3279 [001] cpu-clock: ", ("java", Some(3278), None, "cpu-clock")),
            (
                "V8 Worker 25 [001]       1000 cycles:P: ",
                ("V8 Worker", Some(25), Some(1000), "cycles:P"),
            ),
            ("sh    12       1000 cycles:u: ", ("sh", Some(12), Some(1000), "cycles:u")),
            ("eth-worker       1000 cycles: ", ("eth-worker", None, Some(1000), "cycles")),
            ("    200 cycles: ", ("", Some(200), None, "cycles")),
            ("      1000 cycles: ", ("", None, Some(1000), "cycles")),
            ("sh 10.000001:       1000 cycles: ", ("sh", None, Some(1000), "cycles")),
            ("10.000001: sched:sched_switch: ", ("", None, None, "sched:sched_switch")),
            ("    200 [001] 10.000001: cycles: ", ("", Some(200), None, "cycles")),
            ("sh 7 1.5:          0 cycles: ", ("sh", Some(7), None, "cycles")),
        ] {
            assert_eq!(of(line), Some(expected), "{line}");
        }
        for line in ["note: this", "a;b 12", "  ip_input.c:540", "sh", "at 12:30: done", "x 5 3:"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn timeless_reads_the_name() {
        let header = timeless("napi/eth0-3 77 [002]");
        assert_eq!(
            (header.comm, header.place.pid, header.place.cpu),
            ("napi/eth0-3", Some(77), Some(2))
        );
        assert_eq!(timeless("rustc ").comm, "rustc");
        assert_eq!(timeless("12").comm, "12");
        assert_eq!(
            (timeless("my java cycles: ").comm, timeless("cycles:").event),
            ("my java", "cycles")
        );
    }

    #[test]
    fn timed_rejects_other_lines() {
        for line in ["", "a;b 12", "at 12:30: done", "\t 9ca3 [unknown] (x)", "x 1.5", "x y 1.5: z"]
        {
            assert_eq!(timed(line), None, "{line}");
        }
        assert_eq!(time_ns("99999999999999.5:"), None);
    }
}
