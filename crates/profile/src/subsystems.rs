//! Groups functions by kernel subsystem.
//!
//! A stack belongs to its innermost frame that any pattern matches: a lock taken by connection
//! tracking counts as `locks`, `memcpy` called by a driver as `memory`. This is the work of the
//! CPU. To attribute the work to its callers, a subsystem also has a total: every stack with one of
//! its frames anywhere, so that connection tracking with its locks is `firewall`. Own costs add up
//! to the whole, totals do not.

use super::pattern::{Pattern, any};
use super::stacks::{Frame, Stacks};
use serde::Serialize;
use std::collections::BTreeMap;
use toml::de::{DeTable, DeValue};

/// Subsystem of functions without a matching pattern.
pub const OTHER: &str = "other";
/// The built-in table.
const BUILT_IN: &str = include_str!("subsystems.toml");

/// A table of subsystems and the patterns of their functions.
#[derive(Clone, Debug, PartialEq)]
pub struct Subsystems(Vec<(String, Vec<Pattern>)>);

/// Error in a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; write subsystem = [\"function\", \"prefix_*\"]")]
pub struct SubsystemError {
    /// Line number, from 1.
    pub line: usize,
    /// Description of the error.
    pub what: String,
}

/// Cost of a subsystem, in the profile's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subsystem {
    /// Name of the subsystem.
    pub name: String,
    /// Samples whose innermost known frame is a function of the subsystem.
    pub own: u64,
    /// Samples with a function of the subsystem anywhere on the stack.
    pub total: u64,
}

impl Default for Subsystems {
    /// Linux and FreeBSD: driver, ip_input, lookup, firewall, output, locks,
    /// memory, interrupts, idle.
    fn default() -> Subsystems {
        // A test parses the table; if it were broken, everything would be `other`.
        Subsystems(parse(BUILT_IN).unwrap_or_default())
    }
}

impl Subsystems {
    /// Parses a user's table, `subsystem = ["pattern*", ...]` in TOML, and appends the built-in
    /// one; the first matching line applies. A built-in name gets more patterns, any other name is
    /// a new subsystem.
    ///
    /// # Errors
    /// Fails for any other text.
    pub fn extended(text: &str) -> Result<Subsystems, SubsystemError> {
        let mut all = parse(text)?;
        all.extend(Subsystems::default().0);
        Ok(Subsystems(all))
    }

    /// Subsystem of a function, whose name is in its normal form. `None` if no pattern matches.
    pub fn of_function(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(_, patterns)| any(patterns, name)).map(|(name, _)| name.as_str())
    }

    /// Subsystem of a stack: of its innermost frame that has one.
    pub fn of_stack(&self, frames: &[Frame]) -> &str {
        frames.iter().rev().find_map(|frame| self.of_function(frame)).unwrap_or(OTHER)
    }

    /// Subsystems of a profile, the costliest first.
    pub fn of_stacks(&self, stacks: &Stacks) -> Vec<Subsystem> {
        // Caches results, because a function is on many stacks.
        let mut known: BTreeMap<&Frame, Option<&str>> = BTreeMap::new();
        let mut counts: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for (frames, count) in stacks.iter() {
            let found: Vec<&str> = frames
                .iter()
                .filter_map(|frame| *known.entry(frame).or_insert_with(|| self.of_function(frame)))
                .collect();
            let innermost = found.last().copied().unwrap_or(OTHER);
            let own = &mut counts.entry(innermost).or_default().0;
            *own = own.saturating_add(count);
            let mut all = found;
            all.push(innermost);
            all.sort_unstable();
            all.dedup();
            for name in all {
                let total = &mut counts.entry(name).or_default().1;
                *total = total.saturating_add(count);
            }
        }
        let mut list: Vec<Subsystem> = counts
            .into_iter()
            .map(|(name, (own, total))| Subsystem { name: name.to_owned(), own, total })
            .collect();
        list.sort_by(|a, b| b.own.cmp(&a.own).then_with(|| a.name.cmp(&b.name)));
        list
    }
}

/// Parses a table, in the order of its lines.
fn parse(text: &str) -> Result<Vec<(String, Vec<Pattern>)>, SubsystemError> {
    let line = |at: usize| 1 + text.get(..at).unwrap_or(text).matches('\n').count();
    let table = DeTable::parse(text).map_err(|error| SubsystemError {
        line: line(error.span().map_or(0, |span| span.start)),
        what: error.message().to_owned(),
    })?;
    let mut entries: Vec<_> = table.into_inner().into_iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    let mut list = Vec::new();
    for (name, value) in entries {
        let wrong = |at: usize, what: &str| {
            Err(SubsystemError { line: line(at), what: format!("`{}` {what}", name.get_ref()) })
        };
        let at = value.span().start;
        let DeValue::Array(items) = value.into_inner() else {
            return wrong(at, "is no list of patterns");
        };
        let mut patterns = Vec::new();
        for item in items {
            let at = item.span().start;
            match item.into_inner() {
                DeValue::String(text) if !text.trim().is_empty() => {
                    patterns.push(Pattern::new(&text));
                }
                _ => return wrong(at, "has a pattern that is no text"),
            }
        }
        list.push((name.get_ref().to_string(), patterns));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::super::stacks::stacks;
    use super::*;

    #[test]
    fn built_in_subsystems_match_known_functions() {
        let table = parse(BUILT_IN).unwrap();
        assert_eq!((table.len(), table[0].0.as_str()), (9, "idle"));
        let built_in = Subsystems::default();
        for (function, expected) in [
            ("_raw_spin_lock_bh", Some("locks")),
            ("nf_conntrack_in", Some("firewall")),
            ("fib_table_lookup", Some("lookup")),
            ("ip_rcv_core", Some("ip_input")),
            ("veth_poll", Some("driver")),
            ("cpu_idle_acpi", Some("idle")),
            ("ip_tryforward", Some("ip_input")),
            ("lradix4_lookup", Some("lookup")),
            ("uma_zalloc_arg", Some("memory")),
            ("__mtx_lock_sleep", Some("locks")),
            ("main", None),
        ] {
            assert_eq!(built_in.of_function(function), expected, "{function}");
        }
    }

    #[test]
    fn of_stacks_uses_innermost_known_frame_and_counts_totals() {
        let some = stacks(&[
            ("s;ip_rcv;nf_conntrack_in;_raw_spin_lock;strange", 3),
            ("s;ip_rcv;nf_conntrack_in", 2),
            ("s;main", 1),
        ]);
        let list: Vec<_> = Subsystems::default()
            .of_stacks(&some)
            .into_iter()
            .map(|s| (s.name, s.own, s.total))
            .collect();
        let expected = [("locks", 3, 3), ("firewall", 2, 5), ("other", 1, 1), ("ip_input", 0, 5)];
        assert_eq!(list, expected.map(|(name, own, total)| (name.to_owned(), own, total)));
        let frames: Vec<Frame> = vec!["ip_rcv".into(), "strange".into()];
        assert_eq!(Subsystems::default().of_stack(&frames), "ip_input");
    }

    #[test]
    fn extended_prefers_user_patterns_in_order() {
        let text = "# mine\nzebra = [\"nf_ct_*\"]\nacl = [\"nf_*\", \"my_acl\"]\n";
        let mine = Subsystems::extended(text).unwrap();
        assert_eq!(mine.of_function("nf_ct_get"), Some("zebra"));
        assert_eq!(mine.of_function("nf_hook_slow"), Some("acl"));
        assert_eq!(mine.of_function("nft_do_chain"), Some("firewall"));
        for (text, line, what) in [
            ("a = [\"b\"]\nc = 7\n", 2, "`c` is no list"),
            ("a = [\n\"b\",\n3]\n", 3, "`a` has a pattern"),
            ("\na = [\n", 2, "unclosed"),
        ] {
            let error = Subsystems::extended(text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.what.contains(what), "{error}");
        }
    }
}
