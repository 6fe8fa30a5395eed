//! Header line of each sample of `perf script`.
//!
//! The default form is `comm pid [cpu] seconds: period event:`, where CPU and period may be
//! missing, `pid` may be `pid/tid`, and the name may contain blanks; `-F` can omit more. See
//! perf-script(1) of Linux 6.1 and `process_event()` in tools/perf/builtin-script.c.

use crate::samples::Place;

/// Parsed header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// Name of the thread; empty if it is not printed.
    pub(super) comm: &'a str,
    pub(super) place: Place,
    /// Name of the event, e.g. `cycles:P`; empty if it is not printed.
    pub(super) event: &'a str,
    /// Remaining text: the frame of a sample without stack.
    pub(super) rest: &'a str,
}

/// Parses a header with a time. Any text may precede it: the time is recognised by its form and by
/// the process or CPU before it.
pub(super) fn timed(line: &str) -> Option<Header<'_>> {
    let tokens: Vec<(usize, &str)> = tokens(line).collect();
    let at = (1..tokens.len()).find(|&at| {
        let before = tokens[at - 1].1;
        time_ns(tokens[at].1).is_some() && (cpu(before).is_some() || pid(before).is_some())
    })?;
    let (start, time) = tokens[at];
    let (comm, mut place) = before_time(&line[..start]);
    place.time_ns = time_ns(time);
    let (period, event, rest) = after_time(&line[start + time.len()..]);
    place.period = period;
    Some(Header { comm, place, event, rest })
}

/// Parses a header without a time: the name, possibly followed by process and CPU.
pub(super) fn timeless(line: &str) -> Header<'_> {
    let (comm, place) = before_time(line);
    Header { comm, place, ..Header::default() }
}

/// Parses `comm pid [cpu]`, where everything but the name may be missing.
fn before_time(text: &str) -> (&str, Place) {
    let mut place = Place::default();
    let mut rest = text.trim();
    if let Some((before, last)) = split_last(rest)
        && let Some(number) = cpu(last)
    {
        (place.cpu, rest) = (Some(number), before);
    }
    if let Some((before, last)) = split_last(rest)
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
    fn check(line: &str, comm: &str, place: Place, event: &str, rest: &str) {
        assert_eq!(timed(line), Some(Header { comm, place, event, rest }), "{line}");
    }

    #[test]
    fn timed_reads_headers_of_linux_6_1() {
        let full = Place {
            cpu: Some(1),
            pid: Some(12342),
            time_ns: Some(25_220_003_658_000),
            period: Some(2_004_008),
        };
        let line = "rustc 12342 [001] 25220.003658:    2004008 cpu-clock: ";
        check(line, "rustc", full, "cpu-clock", "");
        let line = "rustc 12342/12358 [001] 25220.003658000:    2004008 cpu-clock:pppH: ";
        check(line, "rustc", full, "cpu-clock:pppH", "");
        let thread = Place { cpu: None, period: None, ..full };
        check("my proc 2 12342 25220.003658: cycles: ", "my proc 2", thread, "cycles", "");
        check("sh 12342 25220.003658: ", "sh", thread, "", "");
        let single = "   rustc 12342 [001] 25220.003658:    2004008 cpu-clock:      7fbb f+0x1 (x)";
        check(single, "rustc", full, "cpu-clock", "7fbb f+0x1 (x)");
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
