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
        let at = interfaces.iter().position(|named| named.name == name)?;
        u8::try_from(at).ok()
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
