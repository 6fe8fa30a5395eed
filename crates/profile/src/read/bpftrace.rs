//! Reads maps of stacks as bpftrace prints them: `@name[`, frames with the innermost first, then
//! `]: count`. Frames are `function+offset` or, for `kstack(perf)`, as perf prints them. Other keys
//! of the map (`@[comm, kstack]`) become the root; numbers among them are dropped.
//!
//! Different maps count different things and are never summed: the first map with stacks is read.

use super::perf_frame::{frame, is_address};
use super::{Notes, lines};
use crate::name::normal;
use crate::stacks::{Names, Stacks};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Returns true for the first line of a map entry.
pub(super) fn is_start(line: &str) -> bool {
    start(line).is_some()
}

/// Name of the map (empty for `@`) and text behind the bracket, in the first line of an entry.
fn start(line: &str) -> Option<(&str, &str)> {
    let (name, body) = line.strip_prefix('@')?.split_once('[')?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some((name, body))
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut stacks = Stacks::default();
    let mut names = Names::default();
    let map = first_map_with_stacks(text);
    // Number of entries of each other map.
    let mut others: BTreeMap<&str, u64> = BTreeMap::new();
    let mut open: Option<Entry> = None;
    // Number of entries without a count.
    let mut cut = 0;
    for (number, line) in lines(text) {
        let body = match (&mut open, start(line)) {
            (_, Some((map, body))) => {
                let entry = Entry { map, line: number, ..Entry::default() };
                cut += usize::from(open.replace(entry).is_some());
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
            Some(Ok(_)) if map.is_none() => {
                let kind = format!("entries of the map @{} without stacks", entry.map);
                notes.unusable(entry.line, &kind);
                open = None;
            }
            Some(Ok(_)) if map != Some(entry.map) => {
                *others.entry(entry.map).or_default() += 1;
                open = None;
            }
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
    if let (Some(map), false) = (map, others.is_empty()) {
        notes.remark(format!("maps are never summed: only @{map} was read"));
    }
    for (other, entries) in others {
        notes.left_out(&format!("entries of the map @{other}"), entries);
    }
    stacks
}

/// Name of the first map whose keys have a stack, which begins on a new line.
fn first_map_with_stacks(text: &str) -> Option<&str> {
    let is_open = |body: &str| !body.contains("]: ") && !body.trim_end().ends_with("]:");
    text.lines().filter_map(start).find(|(_, body)| is_open(body)).map(|(map, _)| map)
}

/// Returns true for bpftrace's own messages.
fn is_chatter(line: &str) -> bool {
    line.starts_with("Attaching ") || line.starts_with("Attached ") || line.trim() == "^C"
}

/// Keys and frames of an entry.
#[derive(Default)]
struct Entry<'a> {
    map: &'a str,
    /// Number of its first line, from 1.
    line: usize,
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
@[swapper/1, 
    acpi_safe_halt+11
    do_idle+20
]: 7
@start: 12
@[
    cut
";
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.format, Format::Bpftrace);
        assert_eq!(
            profile.stacks().unwrap().folded(),
            "ksoftirqd/0;net_rx_action;napi_poll 34\nswapper/1;do_idle;acpi_safe_halt 7\n"
        );
        assert_eq!(profile.unknown.first, [(12, "@start: 12".into())]);
        assert!(profile.remarks[0].contains("1 stacks have no count"), "{:?}", profile.remarks);
    }

    #[test]
    fn bpftrace_reads_the_first_map_with_stacks() {
        let comms = "@comms[perf]: 2\n@comms[swapper/1]: 3\n";
        let kernel = "@kernel[\n    ip_rcv+1\n]: 5\n@kernel[\n    ip_forward+1\n]: 6\n";
        let user = "@user[\n    write+1\n]: 11\n";
        let profile = read(format!("{comms}{kernel}{user}").as_bytes()).unwrap();
        assert_eq!(profile.stacks().unwrap().folded(), "ip_forward 6\nip_rcv 5\n");
        assert_eq!(
            profile.notes(),
            [
                "maps are never summed: only @kernel was read",
                "left out: 2 entries of the map @comms, 1 entries of the map @user",
            ]
        );
        let refused = read(comms.as_bytes()).unwrap_err();
        assert_eq!(refused.line(), Some(1));
        let refused = refused.to_string();
        assert!(refused.contains("2 entries of the map @comms without stacks"), "{refused}");
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
