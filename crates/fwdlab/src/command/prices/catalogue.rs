//! Catalogue of features: what each sets up, and how it is removed.

use crate::error::CliError;
use anyhow::Result;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, dut_address, peer_address, routed_prefix};
use fwdlab_vm::forwarding::RECEIVER;
use fwdlab_vm::guest::System;
use serde::Deserialize;
use std::collections::BTreeSet;

/// Returns the features of a system that are built in.
pub(super) fn built_in(system: System) -> &'static str {
    match system {
        System::Linux => include_str!("../../../../../prices/linux.toml"),
        System::FreeBsd => include_str!("../../../../../prices/freebsd.toml"),
    }
}

/// A catalogue file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    feature: Vec<Declaration>,
}

/// The declaration of a feature, with all of its values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Declaration {
    name: String,
    group: String,
    question: String,
    /// Values of `N`: one feature each; without any there is one feature.
    #[serde(default)]
    values: Vec<toml::Value>,
    /// Address families; all if empty.
    #[serde(default)]
    families: Vec<Family>,
    set_up: String,
    undo: String,
    #[serde(default)]
    encrypts: bool,
    #[serde(default)]
    answers: bool,
}

/// A feature with one value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::command) struct Feature {
    /// Its name, and the value: `nft-rules 100`.
    pub(in crate::command) name: String,
    /// Its name without the value.
    pub(super) base: String,
    /// The value; empty without one.
    pub(super) value: String,
    /// Heading under which it is listed.
    pub(super) group: String,
    /// The user's question, in which `$N` is the value.
    pub(super) question: String,
    /// Command that sets it up.
    pub(super) set_up: String,
    /// Command that restores plain forwarding.
    pub(super) undo: String,
    /// Address families; all if empty.
    families: Vec<Family>,
    /// True if packets leave the guest encrypted.
    pub(super) encrypts: bool,
    /// True if each flow is answered before counting.
    pub(super) answers: bool,
}

/// Two features that are set up together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    /// The pair as a feature.
    pub(super) both: Feature,
    /// Indices of its parts among the features; the first one is set up first.
    pub(super) parts: [usize; 2],
}

impl Pair {
    /// Sets `a` up, then `b`, and removes them in reverse order.
    fn new(features: &[Feature], parts: [usize; 2]) -> Pair {
        let [a, b] = parts.map(|at| &features[at]);
        let commands = |of: [(&Feature, &str); 2]| {
            let one = |(feature, text): (&Feature, &str)| {
                format!("N='{}'\n{}\n", feature.value, text.trim())
            };
            of.map(one).concat()
        };
        let name = format!("{} + {}", a.name, b.name);
        let both = Feature {
            base: name.clone(),
            value: String::new(),
            group: "Pairs".to_owned(),
            question: format!("What do {} and {} cost together?", a.name, b.name),
            set_up: commands([(a, &a.set_up), (b, &b.set_up)]),
            undo: commands([(b, &b.undo), (a, &a.undo)]),
            families: Vec::new(),
            encrypts: a.encrypts || b.encrypts,
            answers: a.answers || b.answers,
            name,
        };
        Pair { both, parts }
    }
}

/// Pairs of different features. Two values of one feature are no pair, and encrypted packets can't
/// be answered.
pub(super) fn pairs(features: &[Feature]) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (a, first) in features.iter().enumerate() {
        for (b, second) in features.iter().enumerate().skip(a + 1) {
            if first.base != second.base {
                pairs.push(Pair::new(features, [a, b]));
            }
        }
    }
    pairs.retain(|pair| !(pair.both.encrypts && pair.both.answers));
    pairs
}

impl Feature {
    /// The user's question about this value.
    pub(super) fn question(&self) -> String {
        self.question.replace("$N", &self.value)
    }

    /// The value as a number; `None` for other values.
    pub(super) fn size(&self) -> Option<u32> {
        self.value.parse().ok()
    }

    /// Everything that determines its counts: a stored count is valid while this text is the same.
    pub(super) fn declaration(&self) -> String {
        let Feature { value, set_up, undo, encrypts, answers, .. } = self;
        let (set_up, undo) = (set_up.trim(), undo.trim());
        format!("N={value} encrypts={encrypts} answers={answers}\n{set_up}\n{undo}")
    }

    /// The command that sets the feature up; it fails with the first command in it that fails.
    pub(super) fn set_up(&self, family: Family, interfaces: [&str; 2]) -> String {
        format!("{}set -e\n{}", variables(&self.value, family, interfaces), self.set_up.trim())
    }

    /// The command that removes it; continues after failures, since only a part may be set up.
    pub(super) fn undo(&self, family: Family, interfaces: [&str; 2]) -> String {
        format!("{}{}\n:", variables(&self.value, family, interfaces), self.undo.trim())
    }
}

/// Assignments of the variables that commands use.
fn variables(value: &str, family: Family, [input, output]: [&str; 2]) -> String {
    let local = dut_address(family, Side::Receiver);
    let local = local.split('/').next().unwrap_or(local);
    let (ip, l3, other) = match family {
        Family::Inet => ("ip -4", "ip", "203.0.113."),
        Family::Inet6 => ("ip -6", "ip6", "2001:db8::"),
    };
    format!(
        "N='{value}' IN={input} OUT={output} FAMILY={family} IP='{ip}' L3={l3} LOCAL={local} PEER={} \
         STATION={RECEIVER} DESTINATIONS={} OTHER={other}\n",
        peer_address(family, Side::Receiver),
        routed_prefix(family, Side::Receiver),
    )
}

/// Reads the features of a catalogue; `file` names it in errors.
///
/// # Errors
/// If the file is not valid.
pub(super) fn read(text: &str, file: &str) -> Result<Vec<Feature>> {
    let mistake = |why: String| CliError::Mistake(format!("{file}: {why}"));
    let File { feature: declared } =
        toml::from_str(text).map_err(|error| mistake(error.to_string().trim().to_owned()))?;
    let mut names = BTreeSet::new();
    for one in &declared {
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if one.name.is_empty() || !one.name.chars().all(is_plain) {
            let why = format!(
                "`{}` is no name of a feature\n  next step: use lower-case letters, digits and `-`",
                one.name
            );
            return Err(mistake(why).into());
        }
        if one.answers && one.encrypts {
            let why = format!(
                "`{}`: encrypted packets can't be answered\n  next step: remove `answers`",
                one.name
            );
            return Err(mistake(why).into());
        }
        if !names.insert(&one.name) {
            let why = format!("two features are named `{}`\n  next step: rename one", one.name);
            return Err(mistake(why).into());
        }
    }
    Ok(declared.iter().flat_map(features).collect())
}

/// The features of a declaration, one per value.
fn features(one: &Declaration) -> Vec<Feature> {
    let values: Vec<String> = match one.values.is_empty() {
        true => vec![String::new()],
        false => one.values.iter().map(word).collect(),
    };
    let feature = |value: &String| Feature {
        name: format!("{} {value}", one.name).trim_end().to_owned(),
        base: one.name.clone(),
        value: value.clone(),
        group: one.group.clone(),
        question: one.question.clone(),
        set_up: one.set_up.clone(),
        undo: one.undo.clone(),
        families: one.families.clone(),
        encrypts: one.encrypts,
        answers: one.answers,
    };
    values.iter().map(feature).collect()
}

/// A value as a word of the shell, without quotes.
fn word(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.replace('\'', ""),
        other => other.to_string(),
    }
}

/// Selects features of a family by name, with or without a value, or by group; all without words.
///
/// # Errors
/// If a word selects nothing.
pub(super) fn select(
    features: Vec<Feature>,
    family: Family,
    words: &[String],
) -> Result<Vec<Feature>> {
    let matches = |feature: &Feature, word: &str| {
        [&feature.name, &feature.base].into_iter().any(|name| name == word)
            || feature.group.eq_ignore_ascii_case(word)
    };
    for word in words {
        if !features.iter().any(|feature| matches(feature, word)) {
            let names: BTreeSet<&str> = features.iter().map(|f| f.base.as_str()).collect();
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Err(CliError::Mistake(format!(
                "no feature or group is named `{word}`\n  next step: take one of these: {names}"
            ))
            .into());
        }
    }
    let applies =
        |feature: &Feature| feature.families.is_empty() || feature.families.contains(&family);
    for word in words {
        if !features.iter().any(|feature| applies(feature) && matches(feature, word)) {
            let why = format!("`{word}` has no features of {family}\n  next step: change --family");
            return Err(CliError::Mistake(why).into());
        }
    }
    let is_selected = |feature: &Feature| {
        applies(feature) && (words.is_empty() || words.iter().any(|word| matches(feature, word)))
    };
    let selected: Vec<Feature> = features.into_iter().filter(is_selected).collect();
    if selected.is_empty() {
        let why =
            format!("the catalogue has no features of {family}\n  next step: change --family");
        return Err(CliError::Mistake(why).into());
    }
    Ok(selected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = r#"
[[feature]]
name = "rules"
group = "Filters"
question = "What do $N rules cost?"
values = [1, 10]
set_up = "add $N"
undo = "flush"
[[feature]]
name = "vlan"
group = "Links"
question = "What does a tag cost?"
families = ["inet"]
set_up = "tag"
undo = "untag"
"#;

    #[test]
    fn shipped_catalogues_are_valid_for_both_families() {
        for (system, least) in [(System::Linux, [50, 25]), (System::FreeBsd, [25, 5])] {
            for (family, least) in [Family::Inet, Family::Inet6].into_iter().zip(least) {
                let features = read(built_in(system), "built in").unwrap();
                let features = select(features, family, &[]).unwrap();
                assert!(features.len() > least, "{system:?} {family}: {}", features.len());
                for feature in &features {
                    let has_value = !feature.value.is_empty();
                    assert!(feature.question.ends_with('?'), "{feature:?}");
                    assert_eq!(feature.question.contains("$N"), has_value, "{feature:?}");
                    assert_eq!(feature.set_up.contains("$N"), has_value, "{feature:?}");
                }
            }
        }
    }

    #[test]
    fn each_value_is_a_separate_feature() {
        let features = read(TWO, "x").unwrap();
        let names: Vec<&str> = features.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(names, ["rules 1", "rules 10", "vlan"]);
        assert_eq!((features[1].size(), features[2].size()), (Some(10), None));
        assert_eq!(features[1].question(), "What do 10 rules cost?");
        assert_ne!(features[0].declaration(), features[1].declaration());
        let command = features[1].set_up(Family::Inet, ["eth1", "eth2"]);
        assert!(command.starts_with("N='10' IN=eth1 OUT=eth2 FAMILY=inet IP"), "{command}");
        assert!(command.ends_with("OTHER=203.0.113.\nset -e\nadd $N"), "{command}");
    }

    #[test]
    fn pairs_are_of_different_features_and_undone_in_reverse() {
        let features = read(TWO, "x").unwrap();
        let pairs = pairs(&features);
        let names: Vec<&str> = pairs.iter().map(|pair| pair.both.name.as_str()).collect();
        assert_eq!(names, ["rules 1 + vlan", "rules 10 + vlan"]);
        let Pair { both, parts } = &pairs[1];
        assert_eq!(*parts, [1, 2]);
        assert!(both.set_up(Family::Inet, ["a", "b"]).ends_with("N='10'\nadd $N\nN=''\ntag"));
        assert!(both.undo(Family::Inet, ["a", "b"]).ends_with("N=''\nuntag\nN='10'\nflush\n:"));
        let encrypted =
            read(&TWO.replace("\nset_up = \"tag\"", "\nencrypts = true\nset_up = 'x'"), "x");
        let mut encrypted = encrypted.unwrap();
        encrypted[0].answers = true;
        assert_eq!(super::pairs(&encrypted).len(), 1, "the answered one is left out");
    }

    #[test]
    fn select_takes_names_values_and_groups() {
        let names_in = |family: Family, words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let found = select(read(TWO, "x").unwrap(), family, &words)?;
            anyhow::Ok(found.into_iter().map(|feature| feature.name).collect::<Vec<_>>())
        };
        let names = |words: &[&str]| names_in(Family::Inet, words);
        assert_eq!(names(&[]).unwrap().len(), 3);
        assert_eq!(names_in(Family::Inet6, &[]).unwrap(), ["rules 1", "rules 10"]);
        let error = names_in(Family::Inet6, &["vlan"]).unwrap_err().to_string();
        assert!(error.contains("`vlan` has no features of inet6"), "{error}");
        let of_inet = read(&TWO.replace("values = [1, 10]", "families = [\"inet\"]"), "x").unwrap();
        let error = select(of_inet, Family::Inet6, &[]).unwrap_err().to_string();
        assert!(error.contains("no features of inet6"), "{error}");
        assert_eq!(names(&["rules"]).unwrap(), ["rules 1", "rules 10"]);
        assert_eq!(names(&["rules 10", "links"]).unwrap(), ["rules 10", "vlan"]);
        let error = names(&["bridge"]).unwrap_err().to_string();
        assert!(error.contains("`bridge`") && error.contains("rules, vlan"), "{error}");
    }

    #[test]
    fn invalid_catalogues_are_refused_with_their_place() {
        let error = |text: &str| read(text, "my.toml").unwrap_err().to_string();
        assert!(error("[[feature]]\nname = 1").contains("my.toml"));
        let twice = TWO.replace("vlan", "rules");
        assert!(error(&twice).contains("two features are named `rules`"));
        let unknown = TWO.replace("undo", "reset");
        assert!(error(&unknown).contains("reset"), "{}", error(&unknown));
        assert!(error(&TWO.replace("\"vlan\"", "\"V LAN\"")).contains("`V LAN`"));
    }
}
