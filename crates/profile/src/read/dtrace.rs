//! Reads aggregations of stacks as dtrace(1) prints them: frames ``module`function+offset``,
//! innermost first, then the count on a separate line, with empty lines between stacks. A name
//! before the first frame (`@[execname, stack()]`) becomes the root.

use super::{Notes, lines, without_offset};
use crate::stacks::{Frame, Names, Stacks};

/// Returns true for a frame with its module.
pub(super) fn is_frame(line: &str) -> bool {
    line.starts_with(char::is_whitespace) && !line.trim().contains(' ') && line.contains('`')
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut stacks = Stacks::default();
    let mut names = Names::default();
    let mut key: Option<(usize, &str)> = None;
    // Innermost first.
    let mut frames: Vec<Frame> = Vec::new();
    for (number, line) in lines(text) {
        let word = line.trim();
        if word.is_empty() {
            continue;
        }
        if is_frame(line) || (!frames.is_empty() && word.starts_with("0x")) {
            frames.push(names.frame(function(word)));
        } else if let (false, Ok(count)) = (frames.is_empty(), word.parse::<u64>()) {
            let root = key.take().map(|(_, name)| names.frame(name));
            let stack = root.into_iter().chain(frames.drain(..).rev()).collect();
            stacks.add(stack, count);
        } else if frames.is_empty() && line.starts_with(char::is_whitespace) && !word.contains(' ')
        {
            // The previous word was not a key: no frame followed.
            if let Some((number, line)) = key.replace((number, word)) {
                notes.unknown(number, line);
            }
        } else {
            notes.unknown(number, line);
        }
    }
    if !frames.is_empty() {
        notes.remark("the last stack has no count and was left out: the file may be cut off");
    }
    stacks
}

/// Function name in ``kernel`ip_input+0x4f``; other profilers do not print modules.
fn function(frame: &str) -> &str {
    let name = frame.rsplit_once('`').map_or(frame, |(_, name)| name);
    let name = without_offset(name);
    if name.is_empty() { frame } else { name }
}

#[cfg(test)]
mod tests {
    use crate::{Format, read};

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
        assert_eq!(profile.unknown.count, 2);
        assert!(profile.remarks[0].contains("no count"), "{:?}", profile.remarks);
    }
}
