//! Where an experiment ran and what of it one selects by: machine, interface, topic, address
//! family, firewall. Imported sets say it in their folders and labels, fwdlab's own in their
//! settings.

use fwdlab_model::record::Environment;
use fwdlab_model::settings::{Firewall, FirewallProgram};
use fwdlab_model::{Plan, Variant};
use serde::Serialize;

/// Section of the environment in which stores of the archive say where they come from.
pub(crate) const ARCHIVE: &str = "archive";
/// Section of the environment, and name in it, of the revision that the user gave.
const MEASURED: &str = "measured";
const REVISION: &str = "revision";
/// Programs of firewalls, those whose name holds another's first.
const PROGRAMS: [&str; 4] = ["ipfw", "ipf", "nft", "pf"];
/// Labels of forwarding without a firewall.
const PLAIN: [&str; 6] =
    ["none", "forwarding", "fastforwarding", "fastforward", "tryforward", "routing"];

/// What is known of some variants of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    /// Machine under test; empty when unknown.
    pub machine: String,
    /// Its network interface; empty when unknown.
    pub interface: String,
    /// The bench of an imported set, else the experiment's name.
    pub topic: String,
    /// Address families, `inet` and `inet6`.
    pub families: Vec<String>,
    /// Firewalls, such as `none`, `stateful` or `pf-stateless`; none where labels don't say.
    pub firewalls: Vec<String>,
}

/// What is selected; empty for everything.
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
    /// Those of these variants.
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
    /// True when everything is selected.
    pub fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// True for what is selected: upper and lower case are one.
    pub fn admits(&self, facts: &Facts) -> bool {
        let holds = |wanted: &Option<String>, value: &str| match wanted {
            Some(wanted) => value.to_lowercase().contains(&wanted.to_lowercase()),
            None => true,
        };
        let any = |wanted: &Option<String>, values: &[String]| {
            wanted.is_none() || values.iter().any(|value| holds(wanted, value))
        };
        let family = self.family.as_ref().is_none_or(|wanted| {
            let wanted = if wanted.ends_with('6') { "inet6" } else { "inet" };
            facts.families.iter().any(|family| family == wanted)
        });
        // `pf` is part of `ipfw`, and another program.
        let firewall = self.firewall.as_ref().is_none_or(|wanted| {
            let wanted = spelled(wanted);
            facts.firewalls.iter().any(|firewall| {
                let mut words = firewall.split('-');
                *firewall == wanted || words.any(|word| word == wanted)
            })
        });
        holds(&self.machine, &facts.machine)
            && holds(&self.interface, &facts.interface)
            && any(&self.topic, std::slice::from_ref(&facts.topic))
            && family
            && firewall
    }
}

/// The revision of the software under test that the user gave. `None` if there was none.
pub fn revision(environment: &Environment) -> Option<&str> {
    named(environment, MEASURED, REVISION)
}

/// Keeps the revision of the software under test.
pub fn set_revision(environment: &mut Environment, revision: &str) {
    let section = environment.0.entry(MEASURED.to_owned()).or_default();
    section.insert(REVISION.to_owned(), revision.to_owned());
}

/// The firewall of a variant; none where labels don't say.
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

/// The firewall that a label of the archive names.
fn firewall_named(label: &str) -> Option<String> {
    let label = spelled(label);
    if PLAIN.contains(&label.as_str()) {
        return Some("none".to_owned());
    }
    let mut words = label.split(|c: char| !c.is_ascii_alphanumeric());
    let program = words.clone().find(|word| PROGRAMS.contains(word))?;
    let way = words.find(|word| ["stateful", "stateless"].contains(word));
    Some(way.map_or(program.to_owned(), |way| format!("{program}-{way}")))
}

/// One spelling for several: `pf-statefull` is published as well.
fn spelled(label: &str) -> String {
    label.trim().to_ascii_lowercase().replace("statefull", "stateful")
}

/// The name of something in a section of the environment; none when empty.
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
    fn labels_name_firewalls() {
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
    fn a_filter_selects_by_everything_it_names() {
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
