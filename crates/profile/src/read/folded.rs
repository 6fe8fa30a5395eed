//! Reads folded stacks: one line `root;caller;function 12` per stack.
//!
//! Counts may have decimals (other tools scale them), which are rounded. A second count, as in
//! differential profiles, is not read.

use super::{Notes, lines};
use crate::stacks::{Names, Stacks};

/// Returns true for a line with frames and a count.
pub(super) fn is_stack(line: &str) -> bool {
    !line.starts_with(char::is_whitespace) && parse(line).is_some()
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut stacks = Stacks::default();
    let mut names = Names::default();
    let mut twice = 0;
    for (number, line) in lines(text) {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match parse(line) {
            Some((frames, count)) if is_stack(line) => {
                twice += usize::from(frames.contains(';') && parse(frames).is_some());
                stacks.add(frames.split(';').map(|name| names.frame(name.trim())).collect(), count);
            }
            _ => notes.unknown(number, line),
        }
    }
    if twice > 0 && twice == stacks.len() {
        notes.remark(
            "every line has two counts, as differential profiles do: only the second was read",
        );
    }
    stacks
}

/// Parses frames and their count.
fn parse(line: &str) -> Option<(&str, u64)> {
    let (frames, count) = line.trim_end().rsplit_once(char::is_whitespace)?;
    let frames = frames.trim_end();
    let number = count.starts_with(|c: char| c.is_ascii_digit())
        && count.chars().all(|c| c.is_ascii_digit() || c == '.');
    if frames.is_empty() || !number {
        return None;
    }
    let count = match count.parse::<u64>() {
        Ok(count) => count,
        // The cast saturates, as sums do.
        Err(_) => count.parse::<f64>().ok()?.round() as u64,
    };
    Some((frames, count))
}

#[cfg(test)]
mod tests {
    use crate::stacks::{Frame, Stacks};
    use crate::{Content, Format, read};
    use proptest::prelude::*;

    #[test]
    fn folded_reads_stacks_and_reports_other_lines() {
        let text =
            "# made by hand\nswapper;do_idle 3\nmy proc;f(int, char) 2.6\n\nwhat is this\na 1";
        let profile = read(text.as_bytes()).unwrap();
        let stacks = profile.stacks().unwrap();
        assert_eq!(stacks.folded(), "a 1\nmy proc;f(int, char) 3\nswapper;do_idle 3\n");
        assert_eq!(profile.unknown.first, [(5, "what is this".to_owned())]);
        assert!(profile.remarks[0].contains("no line feed"), "{:?}", profile.remarks);
        assert_eq!((profile.format, profile.unit.as_str()), (Format::Folded, "samples"));
    }

    #[test]
    fn folded_remarks_on_differential_lines() {
        let profile = read(b"a;b 3 4\na;c 5 6\n").unwrap();
        assert!(profile.remarks[0].contains("only the second"), "{:?}", profile.remarks);
        assert_eq!(profile.stacks().unwrap().total(), 10);
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
                stacks.add(frames.iter().map(|f| Frame::from(f.as_str())).collect(), count);
            }
            let profile = read(stacks.folded().as_bytes()).unwrap();
            prop_assert_eq!(profile.content, Content::Stacks(stacks));
        }
    }
}
