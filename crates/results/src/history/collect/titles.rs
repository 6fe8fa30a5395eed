//! Titles of series.

use super::Key;
use std::collections::{BTreeMap, BTreeSet};

/// One title per series, all different: series with equal names are distinguished by the settings
/// in which they differ.
pub(super) fn titles<'a>(keys: impl Iterator<Item = &'a Key>) -> Vec<String> {
    let keys: Vec<&Key> = keys.collect();
    let short = |key: &Key| {
        let levels = key.levels.iter().map(|(name, level)| format!("{name} = {level}"));
        key.name.iter().cloned().chain(levels).collect::<Vec<_>>().join(", ")
    };
    let mut groups: BTreeMap<String, Vec<&Key>> = BTreeMap::new();
    for key in &keys {
        groups.entry(short(key)).or_default().push(key);
    }
    let full = |key: &&Key| {
        let mut title = short(key);
        let namesakes = &groups[&title];
        if namesakes.iter().any(|other| other.testbed != key.testbed) {
            title += &format!(", testbed = {}", key.testbed);
        }
        if namesakes.iter().any(|other| other.figure != key.figure) {
            title += &format!(", figure = {}", key.figure);
        }
        let names: BTreeSet<&String> =
            namesakes.iter().flat_map(|other| other.settings.keys()).collect();
        for name in names {
            let value = key.settings.get(name);
            if namesakes.iter().any(|other| other.settings.get(name) != value) {
                title += &format!(", {name} = {}", value.map_or("-", String::as_str));
            }
        }
        title
    };
    keys.iter().map(full).collect()
}
