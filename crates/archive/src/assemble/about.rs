//! Description of a set for the start of a report: origin of the runs, set-up, and the changes of
//! each variant.

use super::factors::GroupFactors;
use super::published::Published;
use super::settings;
use super::{Group, Options, ReadTree, tree_of};
use crate::config;
use crate::found::ResultSet;
use fwdlab_model::Plan;
use fwdlab_model::record::Environment;
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::units::format_pps;
use fwdlab_results::stats::summary::median;
use fwdlab_results::store::{Group as StoredGroup, ImportMetadata, Invocation};
use std::collections::BTreeMap;

/// Relative difference above which two loads contradict each other.
const SAME_LOAD: f64 = 0.05;

/// Returns the invocation of an import, with the environment of its runs.
pub(super) fn invocation(options: &Options, about: &ImportMetadata) -> Invocation {
    let names = [
        ("machine", &about.machine),
        ("interface", &about.interface),
        ("topic", &about.topic),
        ("label", &about.label),
    ];
    let mut section: BTreeMap<String, String> = names
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .map(|(name, value)| (name.to_owned(), value.clone()))
        .collect();
    let unames: Vec<&String> = about.groups.iter().filter_map(|g| g.uname.as_ref()).collect();
    if let Some(first) = unames.first().filter(|first| unames.iter().all(|u| u == *first)) {
        section.insert("uname".to_owned(), (*first).clone());
    }
    if let Some(started) = about.groups.iter().find_map(|group| group.started.as_ref()) {
        section.insert("started".to_owned(), started.clone());
    }
    Invocation {
        started_at: options.imported_at.clone(),
        fwdlab_version: options.fwdlab_version.clone(),
        testbed: TestbedKind::Archive,
        testbed_reason: format!("imported from {}", options.named),
        simulated: false,
        bed: None,
        environment: Environment(BTreeMap::from([("archive".to_owned(), section)])),
    }
}

/// Returns the full description of the set.
pub(super) fn about(
    set: &ResultSet,
    groups: &[Group],
    plan: &Plan,
    varied: &GroupFactors,
    trees: &[ReadTree],
    published: &Published,
) -> ImportMetadata {
    let place = set.place.clone();
    let mut notes = varied.notes.clone();
    notes.extend(contradictions(groups, published));
    ImportMetadata {
        machine: place.machine,
        interface: place.interface,
        topic: place.topic,
        label: place.label,
        groups: groups
            .iter()
            .enumerate()
            .map(|(variant, group)| stored_group(group, variant, groups, plan, trees))
            .collect(),
        configurations: configurations(plan, varied, trees),
        upper_median: published.upper,
        setup: setup(groups, trees, published),
        notes,
        reproductions: None,
        unpatched: None,
    }
}

fn stored_group(
    group: &Group,
    variant: usize,
    groups: &[Group],
    plan: &Plan,
    trees: &[ReadTree],
) -> StoredGroup {
    let of = |part: fn(&fwdlab_model::log::Info) -> Option<&String>| {
        group.info.as_ref().and_then(part).cloned()
    };
    let changes = plan.baseline_of(variant).map(|baseline| {
        let base = &groups[baseline];
        changes(plan, (variant, group), (baseline, base), trees)
    });
    StoredGroup {
        name: group.identity.name.clone(),
        published: group.list.as_ref().map(|list| list.base.clone()),
        image: group.identity.image.clone(),
        configuration: group.identity.configuration.clone(),
        traffic: group.identity.traffic.clone(),
        uname: of(|info| info.uname.as_ref()),
        started: of(|info| info.started.as_ref()),
        ended: of(|info| info.ended.as_ref()),
        changes: changes.unwrap_or_default(),
    }
}

/// Describes a variant's changes from its baseline in one line: levels, settings, and the kernel
/// reported by `uname`.
fn changes(
    plan: &Plan,
    (variant, group): (usize, &Group),
    (baseline, base): (usize, &Group),
    trees: &[ReadTree],
) -> String {
    let mut changes = Vec::new();
    let tree = |group: &Group| {
        group.identity.configuration.as_deref().and_then(|name| tree_of(trees, name))
    };
    if let (Some(base), Some(other)) = (tree(base), tree(group)) {
        changes.push(config::one_line(&config::changes(base, other)));
    }
    for (at, factor) in plan.factors.iter().enumerate() {
        let level = |variant: usize| plan.variants[variant].levels[at];
        let (from, to) = (level(baseline), level(variant));
        if from != to && changes.iter().all(String::is_empty) {
            let (from, to) = (&factor.levels[from].label, &factor.levels[to].label);
            changes.push(format!("{} {from} -> {to}", factor.name));
        }
    }
    let kernel = |group: &Group| group.info.as_ref()?.uname.as_deref().and_then(kernel);
    if let (Some(from), Some(to)) = (kernel(base), kernel(group))
        && from != to
    {
        changes.push(format!("kernel {from} -> {to}"));
    }
    changes.retain(|change| !change.is_empty());
    changes.join("; ")
}

/// Returns the kernel's revision and build time from a FreeBSD `uname -a`: `r295802M: Fri Feb 19
/// 11:52:06 CET 2016`.
fn kernel(uname: &str) -> Option<String> {
    let words: Vec<&str> = uname.split_whitespace().collect();
    let at = words.iter().position(|word| {
        let name = word.strip_prefix('r').unwrap_or_default().trim_end_matches([':', 'M']);
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    })?;
    let has_time = words[at].ends_with(':');
    let until = if has_time { (at + 7).min(words.len()) } else { at + 1 };
    Some(words[at..until].join(" "))
}

/// Returns a `uname -a` without the kernel's build path.
fn system(uname: &str) -> String {
    let words = uname.split_whitespace();
    words
        .take_while(|word| !word.contains("@") && !word.contains(":/"))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Describes the settings of each configuration compared with the plain one, if the trees are
/// available: name and one line.
fn configurations(plan: &Plan, varied: &GroupFactors, trees: &[ReadTree]) -> Vec<(String, String)> {
    let Some(factor) = varied.configuration.and_then(|at| plan.factors.get(at)) else {
        return Vec::new();
    };
    let labels: Vec<&str> = factor.levels.iter().map(|level| level.label.as_str()).collect();
    let Some((base, rest)) = labels.split_first() else { return Vec::new() };
    let Some(plain) = tree_of(trees, base) else { return Vec::new() };
    rest.iter()
        .filter_map(|label| {
            let changes = config::changes(plain, tree_of(trees, label)?);
            Some((format!("{label} against {base}"), config::one_line(&changes)))
        })
        .collect()
}

/// Describes the set-up: the published list, then facts from logs and configurations.
fn setup(groups: &[Group], trees: &[ReadTree], published: &Published) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in published.readme.iter().flat_map(|readme| &readme.setup) {
        lines.push(format!("as published: {line}"));
    }
    let systems = groups.iter().filter_map(|group| group.info.as_ref()?.uname.as_deref());
    let systems = distinct(systems.map(system));
    lines.extend(systems.into_iter().map(|system| format!("Device under test: {system}")));
    for (name, what) in [("sender command", "Sender"), ("receiver command", "Receiver")] {
        let runs = groups.iter().flat_map(|group| &group.runs);
        let commands = distinct(runs.filter_map(|run| {
            let text = run.record.facts.get(name)?;
            Some(text.split_whitespace().collect::<Vec<&str>>().join(" "))
        }));
        lines.extend(commands.into_iter().map(|command| format!("{what}: {command}")));
    }
    if let Some(load) = offered(groups) {
        lines.push(format!("Offered: {} (median of the senders' logs)", format_pps(load)));
    }
    // Settings that all used configurations share describe the device.
    let configurations_in_use =
        distinct(groups.iter().filter_map(|group| group.identity.configuration.clone()));
    let mut facts =
        configurations_in_use.iter().filter_map(|name| tree_of(trees, name)).map(config::facts);
    if let Some(first) = facts.next() {
        let rest: Vec<Vec<String>> = facts.collect();
        let common = first.into_iter().filter(|fact| rest.iter().all(|of| of.contains(fact)));
        lines.extend(common.map(|fact| format!("Configuration: {fact}")));
    }
    lines
}

/// Returns disagreements between the published text and the logs about the measurement.
fn contradictions(groups: &[Group], published: &Published) -> Vec<String> {
    let mut notes = kernel_mismatches(groups);
    let Some(readme) = &published.readme else { return notes };
    let flows = distinct(
        groups
            .iter()
            .flat_map(|group| &group.runs)
            .filter_map(|run| Some(settings::flows(run.sender.as_ref()?)?.to_string())),
    );
    let counts = distinct(
        groups
            .iter()
            .flat_map(|group| &group.runs)
            .filter_map(|run| Some(settings::flows(run.sender.as_ref()?)?.count())),
    );
    for line in &readme.setup {
        if let Some(stated) = number_before(line, "flows").filter(|n| *n >= 1.0)
            && !counts.is_empty()
            && counts.iter().all(|count| f64::from(*count) != stated)
        {
            notes.push(format!(
                "the published text states {stated} flows, the senders' commands use {}",
                flows.join(" and ")
            ));
        }
        if let Some(stated) = number_before(line, "Mpps").map(|mpps| mpps * 1e6)
            && let Some(found) = offered(groups)
            && (found / stated - 1.0).abs() > SAME_LOAD
        {
            notes.push(format!(
                "the published text states a load of {}, the senders' logs show {}",
                format_pps(stated),
                format_pps(found)
            ));
        }
    }
    notes
}

/// Reports images whose name contains another revision than their kernel's `uname`.
fn kernel_mismatches(groups: &[Group]) -> Vec<String> {
    let found = groups.iter().filter_map(|group| {
        let image = group.identity.image.as_deref()?;
        let named = leading_revision(image.trim_start_matches('r'))?;
        let stated = kernel(group.info.as_ref()?.uname.as_deref()?)?;
        let runs = leading_revision(stated.trim_start_matches('r'))?;
        (named != runs).then(|| format!("the image is called {image}, its kernel reports {stated}"))
    });
    distinct(found)
}

/// Returns a revision at the start of a text: at least five digits.
fn leading_revision(text: &str) -> Option<&str> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    (digits >= 5).then(|| &text[..digits])
}

/// Returns the number before a word, with or without blanks between them.
fn number_before(line: &str, word: &str) -> Option<f64> {
    let before = line[..line.find(word)?].trim_end();
    let from = before.rfind(|c: char| !c.is_ascii_digit() && c != '.').map_or(0, |at| at + 1);
    before.get(from..)?.parse().ok()
}

/// Returns the median over the runs of the senders' rates.
fn offered(groups: &[Group]) -> Option<f64> {
    let rates: Vec<f64> = groups
        .iter()
        .flat_map(|group| &group.runs)
        .filter_map(|run| {
            let text = run.record.facts.get("sender rate")?;
            text.strip_suffix(" pps")?.parse().ok()
        })
        .collect();
    median(&rates)
}

fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = Vec::new();
    for item in items {
        if !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen
}
