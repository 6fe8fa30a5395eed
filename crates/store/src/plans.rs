//! Differences between two plans. Apart from seed, names and number of blocks, any difference means
//! that equal labels denote different variants.
//!
//! The parameters of a simulated device are not compared: the device is the subject of the
//! comparison.

use fwdlab_model::labels::some_of;
use fwdlab_model::settings::{Firewall, TestbedKind};
use fwdlab_model::{Plan, Settings};
use std::collections::BTreeMap;

/// Maximum number of differences in an error.
const SHOWN: usize = 8;

/// Differences between two plans, one phrase each.
pub fn differences(a: &Plan, b: &Plan) -> Vec<String> {
    if a.hash == b.hash {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut differ = |name: &str, a: String, b: String| {
        if a != b {
            found.push(format!("{name}: {a} and {b}"));
        }
    };
    let seconds = |ns: u64| format!("{} s", ns as f64 / 1e9);
    // For imported runs the window is a result, not a setting.
    if !(a.base.testbed.kind == TestbedKind::Archive && b.base.testbed.kind == a.base.testbed.kind)
    {
        differ("warm-up", seconds(a.trial.warmup_ns), seconds(b.trial.warmup_ns));
        differ("window", seconds(a.trial.duration_ns), seconds(b.trial.duration_ns));
    }
    let slices = |plan: &Plan| plan.design.alternate_ns.map_or("none".to_owned(), seconds);
    differ("alternation", slices(a), slices(b));
    let only_in = |a: &Plan, b: &Plan| {
        let missing: Vec<&str> = a
            .variants
            .iter()
            .map(|variant| variant.label.as_str())
            .filter(|label| b.variants.iter().all(|other| other.label != *label))
            .collect();
        if missing.is_empty() { "none".to_owned() } else { some_of(missing.into_iter()) }
    };
    differ("variants of one only", only_in(a, b), only_in(b, a));
    // A setting that differs in every variant is reported once.
    let mut settings: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for variant in &a.variants {
        let other = b.variants.iter().find(|other| other.label == variant.label);
        for difference in
            other.into_iter().flat_map(|o| of_settings(&variant.settings, &o.settings))
        {
            settings.entry(difference).or_default().push(&variant.label);
        }
    }
    for (difference, labels) in settings {
        found.push(match labels.len() == a.variants.len() {
            true => difference,
            false => format!("{difference} (in {})", some_of(labels.into_iter())),
        });
    }
    found
}

/// Differences that make `requested` another experiment than `stored`, with advice if only more
/// blocks are requested. Empty if there is no visible difference.
pub fn changes(stored: &Plan, requested: &Plan) -> String {
    let mut found = differences(stored, requested);
    let more_blocks = found.is_empty() && requested.design.blocks > stored.design.blocks;
    let mut differ = |name: &str, a: String, b: String| {
        if a != b {
            found.push(format!("{name}: {a} and {b}"));
        }
    };
    let parts = |plan: &Plan| {
        let (design, compare) = (&plan.design, &plan.compare);
        [
            ("blocks", design.blocks.to_string()),
            ("seed", design.seed.to_string()),
            ("stop", format!("{:?}", design.stop).to_lowercase()),
            ("confidence", format!("{} %", compare.confidence)),
            ("margin", format!("{} %", 100.0 * compare.margin)),
        ]
    };
    for ((name, a), (_, b)) in parts(stored).into_iter().zip(parts(requested)) {
        differ(name, a, b);
    }
    let mut text = listed(&found);
    if more_blocks {
        text += ". Blocks added after a look at the results find differences that aren't there: \
                 an experiment whose blocks may be raised later has `stop = \"open\"` in [design], one that \
                 ends itself when it is decided also `stop = \"planned\"`";
    }
    text
}

/// The differences as a list that names the first few.
pub fn listed(differences: &[String]) -> String {
    let shown = differences.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("; ");
    match differences.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}

fn of_settings(a: &Settings, b: &Settings) -> Vec<String> {
    let values = |settings: &Settings| -> BTreeMap<String, String> {
        settings.all().iter().map(|setting| (setting.name(), setting.value())).collect()
    };
    let (in_a, in_b) = (values(a), values(b));
    let value_or_found =
        |value: Option<&String>| value.cloned().unwrap_or_else(|| "as found".to_owned());
    let names = in_a.keys().chain(in_b.keys().filter(|name| !in_a.contains_key(*name)));
    let mut found: Vec<String> = names
        .filter(|name| in_a.get(*name) != in_b.get(*name))
        .map(|name| {
            format!(
                "{name}: {} and {}",
                value_or_found(in_a.get(name)),
                value_or_found(in_b.get(name))
            )
        })
        .collect();
    if let (Firewall::Ruleset { file, .. }, Firewall::Ruleset { file: other, .. }) =
        (&a.dut.firewall, &b.dut.firewall)
        && file == other
        && a.dut.firewall != b.dut.firewall
    {
        found.push(format!("contents of {file}"));
    }
    if let (Some(one), Some(other)) = (&a.dut.router.routes_file, &b.dut.router.routes_file)
        && one.file == other.file
        && one.digest != other.digest
    {
        found.push(format!("contents of {}", one.file));
    }
    found
}
