//! Changes from one configuration to another.

use super::{Configuration, Place, rules};
use serde::Serialize;
use std::collections::HashMap;
use std::fmt;

/// Maximum number of changes that [`one_line`] names before it counts the rest.
const NAMED_MAX: usize = 6;
/// Maximum number of characters of a value in [`one_line`].
const VALUE_MAX: usize = 48;

/// A setting that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingChange {
    /// File or kind of file that sets it.
    pub place: Place,
    /// Its name; empty for a whole file.
    pub name: String,
    /// Value in the base; `None` if unset.
    pub from: Option<String>,
    /// Value in the other configuration; `None` if unset.
    pub to: Option<String>,
}

/// Returns the differences of `other` from `base`: changed and new settings in `other`'s order,
/// then the removed ones.
pub fn changes(base: &Configuration, other: &Configuration) -> Vec<SettingChange> {
    let index = |configuration: &Configuration| -> HashMap<(Place, String), String> {
        let entry = |s: &super::Setting| ((s.place.clone(), s.name.clone()), s.value.clone());
        configuration.iter().map(entry).collect()
    };
    let (old, new) = (index(base), index(other));
    let missing = base.iter().filter(|s| !new.contains_key(&(s.place.clone(), s.name.clone())));
    other
        .iter()
        .chain(missing)
        .map(|setting| {
            let (place, name) = (setting.place.clone(), setting.name.clone());
            let key = (place.clone(), name.clone());
            SettingChange { place, name, from: old.get(&key).cloned(), to: new.get(&key).cloned() }
        })
        .filter(|change| change.from != change.to)
        .collect()
}

/// Formats the changes in one line: `hw.cxgbe.nrxq10g 1 -> 4, hw.cxgbe.ntxq10g 1 -> 4`. In a
/// sequence of settings that were unset before, only the first is marked. Long values are
/// truncated, further changes counted.
pub fn one_line(changes: &[SettingChange]) -> String {
    let mut items = Vec::new();
    let mut after_new = false;
    for change in changes.iter().take(NAMED_MAX) {
        let new = change.is_setting() && change.from.is_none();
        let remark = if new && !after_new { " (was unset)" } else { "" };
        items.push(format!("{change}{remark}"));
        after_new = new;
    }
    if changes.len() > NAMED_MAX {
        items.push(format!("and {} more", changes.len() - NAMED_MAX));
    }
    items.join(", ")
}

impl SettingChange {
    /// Returns false for a whole file.
    fn is_setting(&self) -> bool {
        !matches!(self.place, Place::Rules(_) | Place::File(_))
    }
}

/// Omits the remark that the setting was unset before.
impl fmt::Display for SettingChange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = &self.name;
        match (&self.place, self.from.as_deref(), self.to.as_deref()) {
            (Place::Rules(path), from, to) => write!(f, "{path}: {}", rules_difference(from, to)),
            (Place::File(path), None, _) => write!(f, "{path}: new"),
            (Place::File(path), _, None) => write!(f, "{path}: absent"),
            (Place::File(path), ..) => write!(f, "{path}: other content"),
            (_, Some(from), Some(to)) => write!(f, "{name} {} -> {}", shown(from), shown(to)),
            (_, None, Some(to)) => write!(f, "{name} {}", shown(to)),
            (_, Some(from), None) => write!(f, "{name} unset (was {})", shown(from)),
            (_, None, None) => Ok(()),
        }
    }
}

/// Describes the difference between two lists of rules, with the first differing rule.
fn rules_difference(from: Option<&str>, to: Option<&str>) -> String {
    let Some(to) = to else { return "absent".into() };
    let Some(from) = from else {
        let rules = rules::rules(to);
        return format!("{}{}", counted(rules.len(), "rule"), first(&rules));
    };
    let (old_rules, new_rules) = (rules::rules(from), rules::rules(to));
    let (added, removed) = (difference(&new_rules, &old_rules), difference(&old_rules, &new_rules));
    if !added.is_empty() || !removed.is_empty() {
        let shown = if added.is_empty() { first(&removed) } else { first(&added) };
        return format!("{} added, {} removed{shown}", counted(added.len(), "rule"), removed.len());
    }
    if old_rules != new_rules {
        return "the same rules in another order".into();
    }
    let (old, new): (Vec<&str>, Vec<&str>) = (from.lines().collect(), to.lines().collect());
    let options = difference(&new, &old);
    format!("the same rules, other options{}", first(&options))
}

/// Returns the multiset difference `lines` minus `others`.
fn difference<'a>(lines: &[&'a str], others: &[&str]) -> Vec<&'a str> {
    let mut left: HashMap<&str, usize> = HashMap::new();
    for other in others {
        *left.entry(other).or_default() += 1;
    }
    let is_surplus = |line: &&&str| match left.get_mut(**line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    };
    lines.iter().filter(is_surplus).copied().collect()
}

/// Formats the first rule, without the script command that adds it.
fn first(rules: &[&str]) -> String {
    let Some(rule) = rules.first() else { return String::new() };
    let bare = match rule.split_once(' ') {
        Some((command, rest)) if command.starts_with('$') || command.ends_with("ipfw") => rest,
        _ => rule,
    };
    format!(" ({})", shown(bare))
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Formats a value for one line.
fn shown(value: &str) -> String {
    match value.char_indices().nth(VALUE_MAX) {
        Some((at, _)) => format!("{}...", value[..at].trim_end()),
        None if value.is_empty() => "\"\"".into(),
        None => value.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    #[test]
    fn comments_and_order_make_no_change() {
        let base = tree(&[
            ("etc/sysctl.conf", "a.b=1\nc.d=2\n"),
            ("etc/pf.conf", "# nothing\nset skip on lo0\npass"),
        ]);
        let other = tree(&[
            ("etc/pf.conf", "\nset skip  on lo0\n\npass # all\n"),
            ("etc/sysctl.conf", "# other\nc.d=2\n\na.b=1"),
        ]);
        assert_eq!(changes(&base, &other), []);
        assert_eq!(one_line(&[]), "");
    }

    #[test]
    fn one_line_names_values_and_rules() {
        let base = tree(&[
            ("boot/loader.conf", "hw.cxgbe.nrxq10g=\"1\"\nhw.cxgbe.ntxq10g=\"1\"\n"),
            ("etc/rc.conf", "dumpdev=\"igb0\"\n"),
            ("etc/pf.conf", "set skip on lo0\npass\n"),
            ("etc/x", "1"),
        ]);
        let other = tree(&[
            ("boot/loader.conf", "hw.cxgbe.nrxq10g=\"4\"\nhw.cxgbe.ntxq10g=\"4\"\n"),
            ("etc/rc.conf", "pf_enable=\"YES\"\npf_rules=\"/etc/pf.conf\"\n"),
            ("etc/pf.conf", "set skip on lo0\npass no state\nblock in\n"),
            ("etc/x", "2"),
        ]);
        let changes = changes(&base, &other);
        assert_eq!(one_line(&changes[..2]), "hw.cxgbe.nrxq10g 1 -> 4, hw.cxgbe.ntxq10g 1 -> 4");
        assert_eq!(
            one_line(&changes),
            "hw.cxgbe.nrxq10g 1 -> 4, hw.cxgbe.ntxq10g 1 -> 4, pf_enable YES (was unset), \
             pf_rules /etc/pf.conf, etc/pf.conf: 2 rules added, 1 removed (pass no state), \
             etc/x: other content, and 1 more"
        );
        assert_eq!(changes[6].to_string(), "dumpdev unset (was igb0)");
    }

    #[test]
    fn one_line_reports_added_removed_and_reordered_rules() {
        let rules = |text: &str| tree(&[("etc/ipf.rules", text)]);
        let line = |base: &Configuration, other: &Configuration| one_line(&changes(base, other));
        let (none, two) = (tree(&[]), rules("pass out all\npass in all"));
        assert_eq!(line(&none, &two), "etc/ipf.rules: 2 rules (pass out all)");
        assert_eq!(line(&two, &none), "etc/ipf.rules: absent");
        let reordered = rules("pass in all\npass out all");
        assert_eq!(line(&two, &reordered), "etc/ipf.rules: the same rules in another order");
        let options = rules("set limit x\npass out all\npass in all");
        let expected = "etc/ipf.rules: the same rules, other options (set limit x)";
        assert_eq!(line(&two, &options), expected);
    }

    #[test]
    fn one_line_truncates_long_values() {
        let long = format!("a.b={}", "é".repeat(200));
        let line = one_line(&changes(&tree(&[]), &tree(&[("etc/sysctl.conf", &long)])));
        assert_eq!(line, format!("a.b {}... (was unset)", "é".repeat(VALUE_MAX)));
    }
}
