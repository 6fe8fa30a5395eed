//! Reads call graphs of FreeBSD's `pmcstat -G` (pmcstat(8)).
//!
//! The format is `@ EVENT [N samples]`, then entries `PP.PP%  [count]  function @ image`. An entry
//! without indentation is the interrupted function; each further blank is a caller of the entry
//! above. A count covers the samples on this path, so samples not accounted for by callers end at
//! the entry.

use super::{Notes, lines};
use crate::stacks::{Frame, Names, Stacks};

/// Returns true for an event heading or an entry.
pub(super) fn is_entry(line: &str) -> bool {
    heading(line).is_some() || entry(line).is_some()
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Stacks {
    let mut reader = Reader::default();
    let mut events: Vec<(&str, u64)> = Vec::new();
    for (number, line) in lines(text) {
        if let Some(event) = heading(line) {
            events.push(event);
        } else if let Some(entry) = entry(line) {
            // Events measure different things and are never summed.
            if events.len() <= 1 {
                notes.read += 1;
                reader.entry(entry);
            }
        } else if !line.trim().is_empty() {
            notes.unknown(number, line);
        }
    }
    reader.close(0);
    if let [(event, samples), others @ ..] = events.as_slice() {
        notes.event = Some((*event).to_owned());
        if !others.is_empty() {
            let others: Vec<&str> = others.iter().map(|(event, _)| *event).collect();
            notes.remark(format!("only {event} was read, not {}", others.join(", ")));
        }
        for (event, samples) in others {
            notes.left_out(&format!("samples of {event}"), *samples);
        }
        let read = reader.stacks.total();
        if read != *samples {
            notes.remark(format!(
                "{samples} samples of {event} are announced, {read} are in the graph"
            ));
        }
    }
    if reader.exceeded > 0 {
        notes.remark(format!(
            "{} functions have callers with more samples than they have themselves",
            reader.exceeded
        ));
    }
    reader.stacks
}

#[derive(Default)]
struct Reader {
    names: Names,
    stacks: Stacks,
    /// Entries from the interrupted function to the current one.
    path: Vec<Node>,
    /// Number of entries whose callers have too many samples.
    exceeded: usize,
}

struct Node {
    depth: usize,
    name: Frame,
    count: u64,
    /// Sum of the callers' samples so far.
    callers: u64,
}

impl Reader {
    fn entry(&mut self, Entry { depth, count, name }: Entry) {
        self.close(depth);
        if let Some(callee) = self.path.last_mut() {
            callee.callers = callee.callers.saturating_add(count);
        }
        let name = self.names.function(name);
        self.path.push(Node { depth, name, count, callers: 0 });
    }

    /// Closes entries at `depth` or deeper: their remaining samples become a stack.
    fn close(&mut self, depth: usize) {
        while let Some(node) = self.path.pop_if(|node| node.depth >= depth) {
            self.exceeded += usize::from(node.callers > node.count);
            let rest = node.count.saturating_sub(node.callers);
            if rest > 0 {
                let root_first = std::iter::once(&node).chain(self.path.iter().rev());
                let frames = root_first.map(|node| node.name.clone()).collect();
                self.stacks.add(frames, rest);
            }
        }
    }
}

struct Entry<'a> {
    depth: usize,
    count: u64,
    name: &'a str,
}

/// `@ CPU_CLK_UNHALTED_CORE [1234 samples]`.
fn heading(line: &str) -> Option<(&str, u64)> {
    let (event, rest) = line.strip_prefix("@ ")?.split_once(" [")?;
    let samples = rest.trim_end().strip_suffix(" samples]")?.parse().ok()?;
    Some((event, samples))
}

/// `  70.59%  [12]        __mtx_unlock_flags @ /boot/kernel/kernel`.
fn entry(line: &str) -> Option<Entry<'_>> {
    let text = line.trim_start_matches(' ');
    let depth = line.len() - text.len();
    let (share, rest) = text.split_once('%')?;
    if share.is_empty() || !share.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let (count, name) = rest.trim_start().strip_prefix('[')?.split_once(']')?;
    let name = name.trim();
    let name = name.split_once(" @ ").map_or(name, |(name, _)| name.trim_end());
    let count = count.trim().parse().ok()?;
    (!name.is_empty()).then_some(Entry { depth, count, name })
}

#[cfg(test)]
mod tests {
    use crate::{Format, read};

    const GRAPH: &str = "\
@ CPU_CLK_UNHALTED_CORE [20 samples]

85.00%  [17]       witness_unlock @ /boot/kernel/kernel
 70.59%  [12]        __mtx_unlock_flags
  16.67%  [2]          selfdfree
   100.0%  [2]           sys_poll
  08.33%  [1]          pmap_ts_referenced
15.00%  [3]        ip_tryforward @ /boot/kernel/kernel
 100.0%  [3]         ip_input
";

    #[test]
    fn pmcstat_callers_become_outer_frames() {
        let profile = read(GRAPH.as_bytes()).unwrap();
        assert_eq!(profile.format, Format::PmcstatGraph);
        assert_eq!(
            profile.stacks().unwrap().folded(),
            "__mtx_unlock_flags;witness_unlock 9\n\
             ip_input;ip_tryforward 3\n\
             pmap_ts_referenced;__mtx_unlock_flags;witness_unlock 1\n\
             sys_poll;selfdfree;__mtx_unlock_flags;witness_unlock 2\n\
             witness_unlock 5\n"
        );
        assert_eq!((profile.remarks, profile.unknown.count), (vec![], 0));
    }

    #[test]
    fn pmcstat_reads_only_the_first_event() {
        let text = format!("{GRAPH}\n@ LLC_MISSES [9 samples]\n\n100.0%  [9]  memcpy @ /k\nzzz\n");
        let profile = read(text.as_bytes()).unwrap();
        assert_eq!(profile.stacks().unwrap().total(), 20);
        assert!(profile.remarks[0].contains("not LLC_MISSES"), "{:?}", profile.remarks);
        assert_eq!(profile.unknown.first, [(14, "zzz".to_owned())]);
    }

    #[test]
    fn pmcstat_remarks_on_missing_samples() {
        let end = GRAPH.find("15.00%").unwrap();
        let profile = read(&GRAPH.as_bytes()[..end]).unwrap();
        assert!(profile.remarks[0].contains("20 samples"), "{:?}", profile.remarks);
        assert!(profile.remarks[0].contains("17 are in the graph"), "{:?}", profile.remarks);
    }
}
