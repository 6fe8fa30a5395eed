//! Merges notes with the same reason.

use crate::format::listed;
use std::collections::{BTreeMap, BTreeSet};

/// Notes with the same reason up to this number are not merged.
const FEW: usize = 2;
/// Maximum number of subjects that a merged note lists.
const NAMED: usize = 6;

/// Merges notes with the same reason (`this: why`, `that: why`) at the position of the first: `why
/// (14): this, that, ... and 8 more`. Other notes are unchanged.
pub(super) fn grouped(notes: &[String]) -> Vec<String> {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (what, why) in notes.iter().filter_map(|note| note.split_once(": ")) {
        kinds.entry(why).or_default().push(what);
    }
    let (mut merged, mut seen) = (Vec::new(), BTreeSet::new());
    for note in notes {
        let kind = note.split_once(": ").and_then(|(_, why)| Some((why, kinds.get(why)?)));
        match kind {
            Some((why, all)) if all.len() > FEW => {
                if seen.insert(why) {
                    merged.push(merged_note(why, all));
                }
            }
            _ => merged.push(note.clone()),
        }
    }
    merged
}

fn merged_note(why: &str, all: &[&str]) -> String {
    let mut named: Vec<String> = all.iter().take(NAMED).map(|what| (*what).to_owned()).collect();
    if all.len() > NAMED {
        named.push(format!("{} more", all.len() - NAMED));
    }
    format!("{why} ({}): {}", all.len(), listed(&named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouped_merges_notes_with_the_same_reason() {
        let note = |n: usize| format!("pps.{n}: a list without logs");
        let mut notes: Vec<String> = (1..=9).map(note).collect();
        notes.insert(1, "alone: for another reason".to_owned());
        notes.push("without a reason".to_owned());
        assert_eq!(
            grouped(&notes),
            [
                "a list without logs (9): pps.1, pps.2, pps.3, pps.4, pps.5, pps.6 and 3 more",
                "alone: for another reason",
                "without a reason",
            ]
        );
        let two = [note(1), note(2)];
        assert_eq!(grouped(&two), two);
        assert_eq!(grouped(&vec![note(1); 3]), ["a list without logs (3): pps.1, pps.1 and pps.1"]);
    }
}
