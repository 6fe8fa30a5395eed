//! Call stacks with counts, the common form of every profile.

use super::name::normal;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// Name of a function (or, at the root, of a process); shared between stacks.
pub type Frame = Arc<str>;

/// Call stacks, root first, each with its count (samples, or the profiler's own unit). The root is
/// the process name, if the source has it.
///
/// Stacks are sorted by their frames, so the output of a profile is deterministic and stacks with a
/// common beginning are adjacent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    counts: BTreeMap<Vec<Frame>, u64>,
}

impl Stacks {
    /// Adds `count` to a stack. Stacks without frames or count are ignored. Sums saturate.
    pub fn add(&mut self, frames: Vec<Frame>, count: u64) {
        if frames.is_empty() || count == 0 {
            return;
        }
        let sum = self.counts.entry(frames).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Adds all counts of another profile.
    pub fn merge(&mut self, other: &Stacks) {
        for (frames, count) in &other.counts {
            self.add(frames.clone(), *count);
        }
    }

    /// All stacks with their counts, in the order of the frames.
    pub fn iter(&self) -> impl Iterator<Item = (&[Frame], u64)> {
        self.counts.iter().map(|(frames, count)| (frames.as_slice(), *count))
    }

    /// Sum of the counts.
    pub fn total(&self) -> u64 {
        self.counts.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Count of exactly this stack; 0 if it did not occur.
    pub fn count(&self, frames: &[Frame]) -> u64 {
        self.counts.get(frames).copied().unwrap_or_default()
    }

    /// Number of different stacks.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Share of the total whose innermost frame has a name (0 to 1); 0 if there are no samples.
    pub fn resolved_share(&self) -> f64 {
        let named = self.iter().filter(|(frames, _)| frames.last().is_some_and(|f| is_resolved(f)));
        share(named.map(|(_, count)| count).fold(0, u64::saturating_add), self.total())
    }

    /// The profile in folded form: one line `root;caller;function 12` per stack. Characters that
    /// would break a line (semicolons, line feeds) are replaced.
    pub fn folded(&self) -> String {
        let mut text = String::new();
        for (frames, count) in self.iter() {
            let frames: Vec<String> = frames.iter().map(|frame| foldable(frame)).collect();
            text.push_str(&format!("{} {count}\n", frames.join(";")));
        }
        text
    }
}

/// Part of a whole; 0 if the whole is 0.
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A frame with characters that may not occur in a folded line replaced.
pub(super) fn foldable(frame: &str) -> String {
    let mut text: String = frame
        .chars()
        .map(|c| match c {
            ';' => ':',
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => ' ',
            c => c,
        })
        .collect();
    text.truncate(text.trim_end().len());
    let text = text.trim_start();
    if text.is_empty() { "[empty]".to_owned() } else { text.to_owned() }
}

/// Returns true for a name, false for the placeholders of profilers: `[unknown]` and bare
/// addresses.
pub fn is_resolved(frame: &str) -> bool {
    let hex = |digits: &str| !digits.is_empty() && digits.chars().all(|c| c.is_ascii_hexdigit());
    let address = match frame.strip_prefix("0x") {
        Some(digits) => hex(digits),
        // Shorter ones can be names: `dead`, `add`.
        None => frame.len() >= 8 && hex(frame),
    };
    !(address || frame.is_empty() || frame.starts_with("[unknown") || frame == "unknown")
}

/// Interned names: each is stored once.
#[derive(Debug, Default)]
pub(super) struct Names(HashSet<Frame>);

impl Names {
    /// Shared copy of the normal form of a frame.
    pub(super) fn function(&mut self, frame: &str) -> Frame {
        self.frame(normal(frame))
    }

    /// Shared copy of `name`.
    pub(super) fn frame(&mut self, name: &str) -> Frame {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Frame = Arc::from(name);
        self.0.insert(Arc::clone(&new));
        new
    }
}

#[cfg(test)]
pub(super) fn stacks(lines: &[(&str, u64)]) -> Stacks {
    let mut stacks = Stacks::default();
    for (frames, count) in lines {
        stacks.add(frames.split(';').map(Frame::from).collect(), *count);
    }
    stacks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn add_and_merge_sum_counts_per_stack() {
        let mut all = stacks(&[("b;c", 2), ("a", 1), ("b;c", 3)]);
        all.merge(&stacks(&[("a", 4), ("d", 0)]));
        assert_eq!(all.folded(), "a 5\nb;c 5\n");
        assert_eq!((all.total(), all.len()), (10, 2));
        all.add(vec!["a".into()], u64::MAX);
        assert_eq!(all.total(), u64::MAX);
    }

    #[test]
    fn folded_stacks_sort_by_frame() {
        // As text, `foo.part` sorts between `foo` and `foo;bar`.
        let folded = stacks(&[("foo;bar", 1), ("foo.part", 1), ("foo", 1)]).folded();
        assert_eq!(folded, "foo 1\nfoo;bar 1\nfoo.part 1\n");
    }

    #[test]
    fn folded_frames_are_escaped() {
        let mut all = Stacks::default();
        all.add(vec!["a;b".into(), " \n".into(), "c d".into()], 1);
        assert_eq!(all.folded(), "a:b;[empty];c d 1\n");
    }

    #[test]
    fn is_resolved_rejects_addresses_and_placeholders() {
        for named in ["ip_rcv", "add", "0x", "[kernel]", "__napi_poll", "_rw_runlock"] {
            assert!(is_resolved(named), "{named}");
        }
        for unnamed in ["[unknown]", "[unknown libc.so.6]", "0x0", "ffffffff81000000", ""] {
            assert!(!is_resolved(unnamed), "{unnamed}");
        }
        let some = stacks(&[("[unknown];a", 3), ("a;[unknown]", 1)]);
        assert_eq!(some.resolved_share(), 0.75);
        assert_eq!(Stacks::default().resolved_share(), 0.0);
    }
}
