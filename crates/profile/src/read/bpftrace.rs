//! Reads maps of stacks as bpftrace prints them: `@name[`, frames with the innermost first, then
//! `]: count`. Frames are `function+offset` or, for `kstack(perf)`, as perf prints them. Other keys
//! of the map (`@[comm, kstack]`) become the root; numbers among them are dropped.

use super::perf_frame::{frame, is_address};
use super::{Notes, lines};
use crate::name::normal;
use crate::stacks::{Names, Stacks};
use std::borrow::Cow;

/// Returns true for the first line of a map entry.
pub(super) fn is_start(line: &str) -> bool {
    let name = |text: &str| text.chars().all(|c| c.is_alphanumeric() || c == '_');
    line.strip_prefix('@').and_then(|rest| rest.split_once('[')).is_some_and(|(n, _)| name(n))
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut stacks = Stacks::default();
    let mut names = Names::default();
    let mut open: Option<Entry> = None;
    // Number of entries without a count.
    let mut cut = 0;
    for (number, line) in lines(text) {
        let body = match (&mut open, line.split_once('[')) {
            (_, Some((_, body))) if is_start(line) => {
                cut += usize::from(open.replace(Entry::default()).is_some());
                body
            }
            (Some(_), _) => line,
            (None, _) => {
                if !line.trim().is_empty() && !is_chatter(line) {
                    notes.unknown(number, line);
                }
                continue;
            }
        };
        let Some(entry) = &mut open else { continue };
        // Keys follow the opening bracket or a comma.
        if !is_start(line) && !line.is_empty() && !line.starts_with([' ', '\t', ',', ']']) {
            notes.unknown(number, line);
            continue;
        }
        let (body, count) = match body.rsplit_once("]: ") {
            Some((body, count)) => (body, Some(count)),
            None => (body, None),
        };
        entry.add(body);
        match count.map(|count| count.trim().parse::<u64>()) {
            None => {}
            Some(Ok(count)) => {
                let stack = entry.root_first().map(|name| names.frame(name)).collect();
                notes.read += 1;
                stacks.add(stack, count);
                open = None;
            }
            // Values of some maps are not counts.
            Some(Err(_)) => {
                notes.unknown(number, line);
                open = None;
            }
        }
    }
    if cut > 0 || open.is_some() {
        cut += usize::from(open.is_some());
        notes.remark(format!("{cut} stacks have no count and were left out: cut off?"));
    }
    stacks
}

/// Returns true for bpftrace's own messages.
fn is_chatter(line: &str) -> bool {
    line.starts_with("Attaching ") || line.starts_with("Attached ") || line.trim() == "^C"
}

/// Keys and frames of an entry.
#[derive(Default)]
struct Entry<'a> {
    keys: Vec<&'a str>,
    /// Innermost first.
    frames: Vec<Cow<'a, str>>,
}

impl<'a> Entry<'a> {
    fn add(&mut self, line: &'a str) {
        let indented = line.starts_with(char::is_whitespace);
        let text = line.trim().trim_matches(',').trim();
        if indented && !text.is_empty() && !line.trim_start().starts_with(',') {
            self.frames.push(function(text));
        } else {
            let keys = text.split(", ").map(str::trim);
            self.keys.extend(keys.filter(|key| !key.is_empty() && key.parse::<i64>().is_err()));
        }
    }

    fn root_first(&self) -> impl Iterator<Item = &str> {
        self.keys.iter().copied().chain(self.frames.iter().rev().map(AsRef::as_ref))
    }
}

/// Function of a frame. In perf's form an address and a blank precede it.
fn function(text: &str) -> Cow<'_, str> {
    let is_perf = text.split_once(' ').is_some_and(|(address, _)| is_address(address, 6));
    let of_perf = if is_perf { frame(text) } else { None };
    of_perf.unwrap_or(Cow::Borrowed(normal(text)))
}

#[cfg(test)]
mod tests {
    use crate::{Filter, FilteredProfile, Format, read};

    #[test]
    fn bpftrace_maps_of_stacks_are_read() {
        let text = "\
Attaching 1 probe...
^C

@[
    napi_poll+5
    net_rx_action+300
, ksoftirqd/0, 12]: 34
@stacks[swapper/1, 
    acpi_safe_halt+11
    do_idle+20
]: 7
@[perf]: 2
@start: 12
@[
    cut
";
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.format, Format::Bpftrace);
        assert_eq!(
            profile.stacks().unwrap().folded(),
            "ksoftirqd/0;net_rx_action;napi_poll 34\nperf 2\nswapper/1;do_idle;acpi_safe_halt 7\n"
        );
        assert_eq!(profile.unknown.first, [(13, "@start: 12".into())]);
        assert!(profile.remarks[0].contains("1 stacks have no count"), "{:?}", profile.remarks);
    }

    #[test]
    fn bpftrace_user_stack_calls_kernel_stack() {
        let text = "@[\n    tcp_sendmsg+1\n,\n    write+2\n    main+3\n]: 5\n";
        assert_eq!(
            read(text.as_bytes()).unwrap().stacks().unwrap().folded(),
            "main;write;tcp_sendmsg 5\n"
        );
    }

    #[test]
    fn bpftrace_frames_in_perfs_form_are_normalised() {
        let text = "\
@[
\tffffffff8fc2f2a0 do_idle+300 ([kernel.kallsyms])
\tffffffff8fc2f2b0 cpu_startup_entry+25 ([kernel.kallsyms])
, swapper/0]: 8
@[
\tffffffff8fc2f2a8 do_idle+308 ([kernel.kallsyms])
\tffffffff8fc2f2b0 cpu_startup_entry+25 ([kernel.kallsyms])
, swapper/0]: 1
@[
\tffffffff8fc40000 ixgbe_poll+5 ([ixgbe])
, ksoftirqd/0]: 3
";
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(
            profile.stacks().unwrap().folded(),
            "ksoftirqd/0;ixgbe_poll 3\nswapper/0;cpu_startup_entry;do_idle 9\n"
        );
        let summary = FilteredProfile::of(&profile, &Filter::default(), false).summary;
        assert_eq!((summary.idle_share, summary.notes().len()), (0.75, 0));
    }
}
