//! Reads aggregations of stacks as dtrace(1) prints them: frames ``module`function+offset``,
//! innermost first, then the count on a separate line, with empty lines between stacks. A frame
//! without symbol is an address. A name before the first frame (`@[execname, stack()]`) becomes the
//! root. Distributions (`quantize()`) have no count, and are left out.

use super::{Notes, lines};
use crate::stacks::{Frame, Names, Stacks};

/// Returns true for a frame with its module.
pub(super) fn is_frame(line: &str) -> bool {
    let word = line.split_whitespace().next().unwrap_or_default();
    line.starts_with(char::is_whitespace) && word.contains('`')
}

/// Returns true for the heading of a distribution.
pub(super) fn is_distribution(line: &str) -> bool {
    line.trim_start().starts_with("value ") && line.contains("- Distribution -")
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut reader = Reader::default();
    for (number, line) in lines(text) {
        reader.line(number, line, notes);
    }
    reader.finish(notes)
}

#[derive(Default)]
struct Reader<'a> {
    stacks: Stacks,
    names: Names,
    /// Name before the first frame, with its line.
    key: Option<(usize, &'a str)>,
    /// Frames of the current stack, innermost first.
    frames: Vec<Frame>,
    is_in_distribution: bool,
    /// Number of records that dtrace itself dropped.
    dropped: u64,
}

impl<'a> Reader<'a> {
    fn line(&mut self, number: usize, line: &'a str, notes: &mut Notes) {
        let word = line.trim();
        if is_distribution(line) {
            self.is_in_distribution = true;
            (self.key, self.frames) = (None, Vec::new());
            notes.unusable(number, "stacks with a distribution instead of a count");
            return;
        }
        if word.is_empty() || (self.is_in_distribution && word.contains('|')) || is_chatter(line) {
            return;
        }
        self.is_in_distribution = false;
        if let Some(drops) = drops(line) {
            self.dropped = self.dropped.saturating_add(drops);
        } else if is_frame(line) || is_address(word) {
            self.frames.push(self.names.function(word));
        } else if let (false, Ok(count)) = (self.frames.is_empty(), word.parse::<i64>()) {
            let root = self.key.take().map(|(_, name)| self.names.frame(name));
            let stack = root.into_iter().chain(self.frames.drain(..).rev()).collect();
            match u64::try_from(count) {
                Ok(count) => {
                    notes.read += 1;
                    self.stacks.add(stack, count);
                }
                Err(_) => notes.unusable(number, "stacks with a negative sum"),
            }
        } else if let (true, Some(key)) = (self.frames.is_empty(), key(line)) {
            // The previous word was not a key: no frame followed.
            if let Some((number, line)) = self.key.replace((number, key)) {
                notes.unknown(number, line);
            }
        } else {
            notes.unknown(number, line);
        }
    }

    fn finish(self, notes: &mut Notes) -> Stacks {
        if !self.frames.is_empty() {
            notes.remark("the last stack has no count and was left out: the file may be cut off");
        } else if let Some((number, line)) = self.key {
            notes.unknown(number, line);
        }
        if self.dropped > 0 {
            notes.remark(format!("dtrace itself dropped {} records", self.dropped));
        }
        self.stacks
    }
}

/// Returns true for dtrace's own lines: heading, fired probes, messages.
fn is_chatter(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        ["CPU", "ID", "FUNCTION:NAME"] | ["^C"] => true,
        [cpu, id, probe] => {
            let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
            is_number(cpu) && is_number(id) && probe.contains(':')
        }
        ["dtrace:", "description" | "script" | "pid", ..] => true,
        _ => false,
    }
}

/// Number of dropped records in `dtrace: 2179 drops on CPU 0`.
fn drops(line: &str) -> Option<u64> {
    let (count, rest) = line.strip_prefix("dtrace: ")?.split_once(' ')?;
    let is_drop = rest.contains("drop");
    count.parse().ok().filter(|_| is_drop)
}

fn is_address(word: &str) -> bool {
    word.strip_prefix("0x").is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Name of a process, possibly followed by numbers (`@[execname, pid, stack()]`).
fn key(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let name = words.next().filter(|_| line.starts_with(char::is_whitespace))?;
    words.all(|word| word.parse::<i64>().is_ok()).then_some(name)
}

#[cfg(test)]
mod tests {
    use crate::{Filter, FilteredProfile, Format, read};

    #[test]
    fn dtrace_blocks_end_with_their_count() {
        let text = "\
CPU     ID                    FUNCTION:NAME
  0  75182                       :tick-60s


              kernel`acpi_cpu_c1+0x6d
              kernel`fork_exit+0x7e
              0xffffffff80ff1c2e
              123

  intr
              ixl.ko`ixl_rx+0x10
              kernel`ithread_loop+0x1
               45

              kernel`cut
";
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.format, Format::Dtrace);
        assert_eq!(
            profile.stacks().unwrap().folded(),
            "0xffffffff80ff1c2e;fork_exit;acpi_cpu_c1 123\nintr;ithread_loop;ixl_rx 45\n"
        );
        // The heading and the fired probe are in every output.
        assert_eq!(profile.unknown.count, 0);
        assert!(profile.remarks[0].contains("no count"), "{:?}", profile.remarks);
    }

    #[test]
    fn dtrace_address_at_the_top_of_a_stack_is_a_frame() {
        let text = "\n  0xffffffff82a31c2e\n  kernel`ip_input+0x10\n  kernel`netisr+0x1\n  6\n\n\
                    \x20 kernel`ip_input+0x12\n  kernel`netisr+0x1\n  4\n";
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(
            profile.stacks().unwrap().folded(),
            "netisr;ip_input 4\nnetisr;ip_input;0xffffffff82a31c2e 6\n"
        );
        let summary = FilteredProfile::of(&profile, &Filter::default(), false).summary;
        assert_eq!(summary.notes(), ["only 40 % of the samples have a function's name"]);
    }

    /// A stack with a distribution.
    const DISTRIBUTION: &str = "
              kernel`ip_input+0x10
              kernel`netisr+0x1

           value  ------------- Distribution ------------- count
             512 |                                         0
            1024 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 11
            2048 |                                         0
";

    #[test]
    fn dtrace_distributions_are_left_out() {
        let counted = "\n  kernel`ip_output+0x10\n  kernel`netisr+0x1\n  5\n";
        let profile = read(format!("{DISTRIBUTION}{counted}").as_bytes()).unwrap();
        assert_eq!(profile.stacks().unwrap().folded(), "netisr;ip_output 5\n");
        assert_eq!(profile.notes(), ["left out: 1 stacks with a distribution instead of a count"]);
        for text in [DISTRIBUTION.to_owned(), format!("{}{counted}", DISTRIBUTION.repeat(2))] {
            let error = read(text.as_bytes()).unwrap_err();
            assert_eq!(error.line(), Some(5));
            assert!(error.to_string().contains("distribution instead of a count"), "{error}");
        }
    }

    #[test]
    fn dtrace_reports_drops_and_unusable_lines() {
        let text = "dtrace: description 'profile-997' matched 1 probe\n\
                    dtrace: 21 drops on CPU 0\n  intr     12\n  kernel`f+0x1\n  5\n\
                    \x20 kernel`g+0x1\n  -5\n  lonely\nwhat is this\n  bash   3\n";
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.stacks().unwrap().folded(), "intr;f 5\n");
        assert_eq!(
            profile.notes(),
            [
                "dtrace itself dropped 21 records",
                "left out: 1 stacks with a negative sum",
                "lines not understood: 3, the first is line 9: what is this",
            ]
        );
    }
}
