//! Properties by which experiments are selected: machine, interface, topic, address family,
//! firewall. Imported sets have them in their folders and labels, fwdlab's own experiments in their
//! settings.

use fwdlab_model::record::Environment;
use fwdlab_model::settings::{Firewall, FirewallProgram};
use fwdlab_model::{Plan, Variant};
use serde::Serialize;

/// Section of the environment with the origin of stores of the archive.
pub(crate) const ARCHIVE: &str = "archive";
/// Section and name of the user's revision in the environment.
const MEASURED: &str = "measured";
const REVISION: &str = "revision";
/// Firewall programs; a name that contains another comes first.
const PROGRAMS: [&str; 4] = ["ipfw", "ipf", "nft", "pf"];
/// Labels for forwarding without a firewall.
const PLAIN: [&str; 6] =
    ["none", "forwarding", "fastforwarding", "fastforward", "tryforward", "routing"];

/// Properties of some variants of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Machine under test; empty if unknown.
    pub machine: String,
    /// Network interface of the machine; empty if unknown.
    pub interface: String,
    /// The bench of an imported set, else the experiment's name.
    pub topic: String,
    /// Address families, `inet` and `inet6`.
    pub families: Vec<String>,
    /// Firewalls, such as `none`, `stateful` or `pf-stateless`; empty if the labels do not contain
    /// any.
    pub firewalls: Vec<String>,
}

/// Selection criteria; empty for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Part of the machine's name.
    pub machine: Option<String>,
    /// Part of the interface's name.
    pub interface: Option<String>,
    /// Part of the topic.
    pub topic: Option<String>,
    /// Address family: `inet`, `inet4`, `4`, `inet6`, `6`.
    pub family: Option<String>,
    /// Part of the firewall's name; `none` for forwarding without one.
    pub firewall: Option<String>,
}

impl Facts {
    /// Properties of `variants`.
    pub(crate) fn of(environment: &Environment, plan: &Plan, variants: &[&Variant]) -> Facts {
        let archived = |name| named(environment, ARCHIVE, name).unwrap_or_default().to_owned();
        let is_archive = environment.0.contains_key(ARCHIVE);
        let machine = match is_archive {
            true => archived("machine"),
            false => named(environment, "cpu", "model").unwrap_or_default().to_owned(),
        };
        let distinct = |of: &dyn Fn(&Variant) -> Option<String>| {
            let mut all: Vec<String> = variants.iter().filter_map(|variant| of(variant)).collect();
            all.sort();
            all.dedup();
            all
        };
        let family = |variant: &Variant| Some(variant.settings.traffic.family.name().to_owned());
        Facts {
            machine,
            interface: archived("interface"),
            topic: if is_archive { archived("topic") } else { plan.name.clone() },
            families: distinct(&family),
            firewalls: distinct(&|variant| firewall(plan, variant, is_archive)),
        }
    }
}

impl Filter {
    /// Returns true if everything is selected.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// Returns true if `facts` match, ignoring case.
    pub fn admits(&self, facts: &Facts) -> bool {
        let holds = |pattern: &Option<String>, value: &str| match pattern {
            Some(pattern) => value.to_lowercase().contains(&pattern.to_lowercase()),
            None => true,
        };
        let any = |pattern: &Option<String>, values: &[String]| {
            pattern.is_none() || values.iter().any(|value| holds(pattern, value))
        };
        let family = self.family.as_ref().is_none_or(|pattern| {
            let pattern = if pattern.ends_with('6') { "inet6" } else { "inet" };
            facts.families.iter().any(|family| family == pattern)
        });
        // `pf` is part of `ipfw`, but a different program.
        let firewall = self.firewall.as_ref().is_none_or(|pattern| {
            let pattern = normalise_label(pattern);
            facts.firewalls.iter().any(|firewall| {
                let mut words = firewall.split('-');
                *firewall == pattern || words.any(|word| word == pattern)
            })
        });
        holds(&self.machine, &facts.machine)
            && holds(&self.interface, &facts.interface)
            && any(&self.topic, std::slice::from_ref(&facts.topic))
            && family
            && firewall
    }
}

/// Revision of the software under test given by the user. `None` if there is none.
pub fn revision(environment: &Environment) -> Option<&str> {
    named(environment, MEASURED, REVISION)
}

/// Stores the revision of the software under test.
pub fn set_revision(environment: &mut Environment, revision: &str) {
    let section = environment.0.entry(MEASURED.to_owned()).or_default();
    section.insert(REVISION.to_owned(), revision.to_owned());
}

/// Firewall of a variant. `None` if the labels do not contain one.
pub(crate) fn firewall(plan: &Plan, variant: &Variant, is_archive: bool) -> Option<String> {
    let labels = plan.factors.iter().zip(&variant.levels);
    let labels = labels.filter_map(|(factor, &level)| Some(&factor.levels.get(level)?.label));
    if is_archive {
        return labels.filter_map(|label| firewall_named(label)).next();
    }
    let dut = &variant.settings.dut;
    let firewall = dut.firewall.to_string();
    Some(match (dut.firewall == Firewall::None, dut.remote.firewall_program) {
        (true, _) | (_, FirewallProgram::Auto) => firewall,
        (false, program) => format!("{}-{firewall}", program.name()),
    })
}

/// Firewall in a label of the archive.
fn firewall_named(label: &str) -> Option<String> {
    let label = normalise_label(label);
    if PLAIN.contains(&label.as_str()) {
        return Some("none".to_owned());
    }
    let mut words = label.split(|c: char| !c.is_ascii_alphanumeric());
    let program = words.clone().find(|word| PROGRAMS.contains(word))?;
    let mode = words.find(|word| ["stateful", "stateless"].contains(word));
    Some(mode.map_or(program.to_owned(), |mode| format!("{program}-{mode}")))
}

/// Normalises the spelling: `pf-statefull` is also published.
fn normalise_label(label: &str) -> String {
    label.trim().to_ascii_lowercase().replace("statefull", "stateful")
}

/// Value in a section of the environment. `None` if it is empty.
pub(crate) fn named<'a>(
    environment: &'a Environment,
    section: &str,
    name: &str,
) -> Option<&'a str> {
    let value = environment.0.get(section)?.get(name)?.trim();
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn firewall_named_reads_archive_labels() {
        for (label, expected) in [
            ("forwarding", Some("none")),
            ("fastforwarding", Some("none")),
            ("pf-statefull", Some("pf-stateful")),
            ("ipfw-stateless", Some("ipfw-stateless")),
            ("ipf", Some("ipf")),
            ("ipfw.stateful.dynamic", Some("ipfw-stateful")),
            ("4", None),
            ("pfil", None),
        ] {
            assert_eq!(firewall_named(label).as_deref(), expected, "{label}");
        }
    }

    #[test]
    fn filter_requires_every_criterion() {
        let facts = Facts {
            machine: "Xeon_E5-2650_8Cores".into(),
            interface: "Chelsio_T540-CR".into(),
            topic: "firewalls".into(),
            families: vec!["inet".into()],
            firewalls: vec!["ipfw-stateful".into(), "none".into()],
        };
        let filter = |change: &dyn Fn(&mut Filter)| {
            let mut filter = Filter::default();
            change(&mut filter);
            filter.admits(&facts)
        };
        assert!(Filter::default().is_empty() && Filter::default().admits(&facts));
        assert!(filter(&|f| f.machine = Some("xeon".into())));
        assert!(filter(&|f| f.family = Some("inet4".into())));
        assert!(!filter(&|f| f.family = Some("6".into())));
        assert!(filter(&|f| f.firewall = Some("statefull".into())));
        assert!(filter(&|f| f.firewall = Some("ipfw".into())));
        assert!(!filter(&|f| f.firewall = Some("pf".into())), "another program than ipfw");
        assert!(!filter(&|f| {
            f.machine = Some("xeon".into());
            f.interface = Some("intel".into());
        }));
    }
}
