//! The firewall of a set-up.

use super::interfaces::NamedInterface;
use super::mistake;
use fwdlab_model::router::{FileWarning, FullTable, RouterSetup};
use fwdlab_router::firewall::{Ruleset, SharedFirewall, StateConfig, text};
use std::sync::Arc;

/// The firewall that all workers share, if there are rules.
pub(super) fn shared(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
) -> anyhow::Result<Option<Arc<SharedFirewall>>> {
    let Some((rules, config)) = rules(setup, interfaces)? else { return Ok(None) };
    let wall = SharedFirewall::new(&rules, &config);
    Ok(Some(wall.map_err(|error| mistake(format!("firewall: {error}")))?))
}

/// The rules, if any, and the settings of states.
pub(super) fn rules(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
) -> anyhow::Result<Option<(Ruleset, StateConfig)>> {
    if setup.firewall.trim().is_empty() {
        return Ok(None);
    }
    let port = |name: &str| {
        let named = interfaces.iter().position(|named| named.name == name);
        let numbered = || name.parse().ok().filter(|at| *at < interfaces.len());
        u8::try_from(named.or_else(numbered)?).ok()
    };
    let rules = text::read_with(&setup.firewall, &port);
    let rules = rules.map_err(|error| mistake(format!("firewall: {error}")))?;
    let config = StateConfig {
        kind: setup.state,
        limit: setup.state_limit as usize,
        source_limit: setup.state_limit_per_source,
        gives_way: setup.state_full == FullTable::GiveWay,
        ..StateConfig::default()
    };
    Ok(Some((rules, config)))
}

/// Returns line and text of each rule, without comments.
pub(super) fn written_rules(setup: &RouterSetup) -> impl Iterator<Item = (usize, &str)> {
    let lines: Vec<&str> = setup.firewall.lines().collect();
    let text = move |line: usize| {
        let written = lines.get(line.checked_sub(1)?)?;
        Some((line, written.split('#').next().unwrap_or_default().trim()))
    };
    text::rule_lines(&setup.firewall).into_iter().filter_map(text)
}

/// Rules that can never match, because an earlier rule matches all their packets.
pub(super) fn shadowed(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
) -> anyhow::Result<Vec<FileWarning>> {
    let Some((ruleset, _)) = rules(setup, interfaces)? else { return Ok(Vec::new()) };
    let lines = text::rule_lines(&setup.firewall);
    let line = |rule: usize| lines.get(rule).copied().unwrap_or_default();
    let warning = |(rule, earlier): (usize, usize)| FileWarning {
        file: "firewall".into(),
        line: Some(line(rule) as u64),
        what: format!(
            "this rule never matches: the rule in line {} matches all its packets, and the first \
             match decides; move the exception before the general rule",
            line(earlier)
        ),
    };
    Ok(ruleset.shadowed().into_iter().map(warning).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::router::InterfaceSetup;

    fn setup(rule: &str) -> (RouterSetup, Vec<NamedInterface>) {
        let interface = |(name, last): (&str, u8)| InterfaceSetup {
            name: name.into(),
            mac: Some(format!("02:00:00:00:00:0{last}")),
            ..InterfaceSetup::default()
        };
        let setup = RouterSetup {
            firewall: rule.into(),
            interfaces: [("r0", 1), ("0", 2)].map(interface).into(),
            circuits: vec!["x".into()],
            ..RouterSetup::default()
        };
        let interfaces = super::super::interfaces::read(&setup, &[]).expect("interfaces");
        (setup, interfaces)
    }

    #[test]
    fn interface_of_a_rule_is_its_name_then_its_number() {
        let read = |rule: &str| {
            let (setup, interfaces) = setup(rule);
            rules(&setup, &interfaces).map(|rules| format!("{:?}", rules.map(|(rules, _)| rules)))
        };
        let by = |name: &str| read(&format!("block in on {name} from any to any"));
        assert_eq!(by("0").expect("a name"), by("1").expect("a number"));
        assert_ne!(by("0").expect("a name"), by("r0").expect("a name"));
        for unknown in ["2", "r1"] {
            assert!(by(unknown).is_err(), "{unknown}");
        }
    }
}
