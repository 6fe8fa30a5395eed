//! Notes that say one thing of many, said once.

use crate::format::listed;
use std::collections::{BTreeMap, BTreeSet};

/// As many of one kind are said one by one.
const FEW: usize = 2;
/// What a note names of many.
const NAMED: usize = 6;

/// The notes, those of one kind (`this: why`, `that: why`) as one where the first of them
/// stood: `why (14): this, that, ... and 8 more`. Others stay as they are.
pub(super) fn grouped(notes: &[String]) -> Vec<String> {
    let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (what, why) in notes.iter().filter_map(|note| note.split_once(": ")) {
        kinds.entry(why).or_default().push(what);
    }
    let (mut said, mut told) = (Vec::new(), BTreeSet::new());
    for note in notes {
        let kind = note.split_once(": ").and_then(|(_, why)| Some((why, kinds.get(why)?)));
        match kind {
            Some((why, all)) if all.len() > FEW => {
                if told.insert(why) {
                    said.push(together(why, all));
                }
            }
            _ => said.push(note.clone()),
        }
    }
    said
}

fn together(why: &str, all: &[&str]) -> String {
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
    fn notes_of_one_kind_are_one() {
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
