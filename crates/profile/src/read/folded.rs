//! Reads folded stacks: one line `root;caller;function 12` per stack.
//!
//! Counts may have decimals (other tools scale them), which are rounded; counts above 0 that round
//! to 0 are left out. If every line has two counts, as difffolded.pl writes them (before, after),
//! the second is read.

use super::{Notes, lines};
use crate::stacks::{Names, Stacks};

/// Returns true for a line with frames and a count.
pub(super) fn is_stack(line: &str) -> bool {
    !line.starts_with(char::is_whitespace) && parse(line).is_some()
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut stacks = Stacks::default();
    let mut names = Names::default();
    let columns = Columns::of(text);
    let mut without_count = 0;
    let mut rounded = 0;
    for (number, line) in lines(text) {
        if !is_content(line) {
            continue;
        }
        let Some((frames, exact)) = divide(line).filter(|_| is_stack(line)) else {
            notes.unknown(number, line);
            continue;
        };
        let count = exact.rounded();
        if count == 0 && exact.is_fraction() {
            notes.unusable(number, "stacks whose count rounds to 0");
            continue;
        }
        rounded += usize::from(exact.is_fraction());
        let first = if columns.are_two() { parse(frames) } else { None };
        let frames = first.map_or(frames, |(frames, _)| frames);
        without_count += u64::from(count == 0);
        notes.read += 1;
        stacks.add(frames.split(';').map(|name| names.function(name)).collect(), count);
    }
    if rounded > 0 {
        notes.remark(format!("{rounded} counts have a fraction and were rounded"));
    }
    if columns.are_two() {
        notes.remark(
            "every line has two counts, as differential profiles do: only the second was read",
        );
        notes.left_out("stacks whose second count is 0", without_count);
    } else if columns.twice > 0 {
        notes.remark(format!(
            "{} of {} lines end in two numbers: the first was taken as part of the name",
            columns.twice, columns.lines
        ));
    }
    stacks
}

/// Returns true unless a line is empty or a comment.
fn is_content(line: &str) -> bool {
    !line.trim().is_empty() && !line.starts_with('#')
}

/// Columns of counts: names may end in a number, but not all of them do.
#[derive(Default)]
struct Columns {
    /// Number of stacks.
    lines: usize,
    /// Number of stacks that end in two numbers.
    twice: usize,
    /// True if one of these has several frames; a process alone may be called `worker 3`.
    has_stack: bool,
}

impl Columns {
    fn of(text: &str) -> Columns {
        let mut columns = Columns::default();
        for line in text.lines().filter(|line| is_content(line) && is_stack(line)) {
            let Some((frames, _)) = parse(line) else { continue };
            columns.lines += 1;
            if parse(frames).is_some() {
                columns.twice += 1;
                columns.has_stack |= frames.contains(';');
            }
        }
        columns
    }

    fn are_two(&self) -> bool {
        self.has_stack && self.twice == self.lines
    }
}

/// Parses frames and their count, rounded.
pub(in super::super) fn parse(line: &str) -> Option<(&str, u64)> {
    divide(line).map(|(frames, count)| (frames, count.rounded()))
}

/// A count as it is written.
#[derive(Clone, Copy)]
enum Count {
    Whole(u64),
    Decimal(f64),
}

impl Count {
    fn is_fraction(self) -> bool {
        matches!(self, Count::Decimal(count) if count.fract() != 0.0)
    }

    fn rounded(self) -> u64 {
        match self {
            Count::Whole(count) => count,
            // The cast saturates, as sums do.
            Count::Decimal(count) => count.round() as u64,
        }
    }
}

/// Divides a line into frames and their count.
fn divide(line: &str) -> Option<(&str, Count)> {
    let (frames, count) = line.trim_end().rsplit_once(char::is_whitespace)?;
    let frames = frames.trim_end();
    let number = count.starts_with(|c: char| c.is_ascii_digit())
        && count.chars().all(|c| c.is_ascii_digit() || c == '.');
    if frames.is_empty() || !number {
        return None;
    }
    let count = match count.parse::<u64>() {
        Ok(count) => Count::Whole(count),
        Err(_) => Count::Decimal(count.parse().ok()?),
    };
    Some((frames, count))
}

#[cfg(test)]
mod tests {
    use crate::stacks::{Frame, Stacks};
    use crate::{Content, Filter, FilteredProfile, Format, normal, read};
    use proptest::prelude::*;

    #[test]
    fn folded_reads_stacks_and_reports_other_lines() {
        let text =
            "# made by hand\nswapper;do_idle 3\nmy proc;f(int, char) 2.6\n\nwhat is this\na 1";
        let profile = read(text.as_bytes()).unwrap();
        let stacks = profile.stacks().unwrap();
        assert_eq!(stacks.folded(), "a 1\nmy proc;f(int, char) 3\nswapper;do_idle 3\n");
        assert_eq!(profile.unknown.first, [(5, "what is this".to_owned())]);
        assert_eq!(profile.remarks[0], "1 counts have a fraction and were rounded");
        assert!(profile.remarks[1].contains("no line feed"), "{:?}", profile.remarks);
        assert_eq!((profile.format, profile.unit.as_str()), (Format::Folded, "samples"));
    }

    #[test]
    fn folded_counts_that_round_to_zero_are_left_out() {
        let profile = read(b"a;b 3.0\na;c 0.4\na;d 0.5\na;e 0\n").unwrap();
        assert_eq!(profile.stacks().unwrap().folded(), "a;b 3\na;d 1\n");
        let notes = profile.notes();
        let rounded = "1 counts have a fraction and were rounded";
        assert_eq!(notes, [rounded, "left out: 1 stacks whose count rounds to 0"]);
        let refused = read(b"a;b 0.4\na;c 0.3\na;d 7\n").unwrap_err();
        assert_eq!(refused.line(), Some(1));
        let refused = refused.to_string();
        assert!(refused.contains("2 stacks whose count rounds to 0, with 1 read"), "{refused}");
    }

    #[test]
    fn folded_differential_lines_have_no_count_in_their_names() {
        let text = "a;read 17 16\na;write;copy 0 11\na;write;lock;spin 9 0\nidle 5 5\n";
        let profile = read(text.as_bytes()).unwrap();
        let expected = "a;read 16\na;write;copy 11\nidle 5\n";
        assert_eq!(profile.stacks().unwrap().folded(), expected);
        let notes = profile.notes().join("\n");
        assert!(notes.contains("only the second was read"), "{notes}");
        assert!(notes.contains("left out: 1 stacks whose second count is 0"), "{notes}");
    }

    #[test]
    fn folded_names_may_end_in_numbers() {
        let profile = read(b"a;item 3 4\na;c 6\n").unwrap();
        assert_eq!(profile.stacks().unwrap().folded(), "a;c 6\na;item 3 4\n");
        assert!(profile.notes()[0].contains("1 of 2 lines end in two numbers"));
        assert_eq!(read(b"worker 3 4\n").unwrap().stacks().unwrap().folded(), "worker 3 4\n");
    }

    #[test]
    fn folded_modules_of_dtrace_are_no_part_of_names() {
        let dtrace = "\n  kernel`acpi_cpu_c1+0x6d\n  kernel`cpu_idle+0x7e\n  kernel`fork_exit+0x7e\n\
                      7\n\n  ixl.ko`ixl_rx+0x12\n  kernel`fork_exit+0x7e\n  3\n";
        let folded = "kernel`fork_exit;kernel`cpu_idle;kernel`acpi_cpu_c1 7\n\
                      kernel`fork_exit;ixl.ko`ixl_rx+0x12 3\n";
        let [dtrace, folded] = [dtrace, folded].map(|text| read(text.as_bytes()).unwrap());
        assert_eq!((dtrace.format, folded.format), (Format::Dtrace, Format::Folded));
        assert_eq!(dtrace.stacks(), folded.stacks());
        let divided = FilteredProfile::of(&folded, &Filter::default(), false);
        assert_eq!(
            (divided.summary.idle_share, divided.summary.top[0].name.as_str()),
            (0.7, "ixl_rx")
        );
    }

    prop_compose! {
        fn frame()(text in "[a-z_][a-z0-9_.:+()<>, ]{0,10}[a-z]") -> String { text }
    }

    proptest! {
        #[test]
        fn folded_output_reads_back(
            lines in prop::collection::vec((prop::collection::vec(frame(), 1..5), 1..1_000_000_u64), 1..20)
        ) {
            let mut stacks = Stacks::default();
            for (frames, count) in lines {
                stacks.add(frames.iter().map(|f| Frame::from(normal(f))).collect(), count);
            }
            let profile = read(stacks.folded().as_bytes()).unwrap();
            prop_assert_eq!(profile.content, Content::Stacks(stacks));
        }
    }
}
