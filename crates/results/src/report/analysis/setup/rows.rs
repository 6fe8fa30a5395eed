//! Set-up lines from the rows of the settings' tables: the row contains the title, the kind of
//! value, and the owner of the setting.

use super::is_any;
use super::{enabled, varied, varied_of};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, Firewall, TestbedKind};
use fwdlab_model::spec::Setting;
use fwdlab_model::spec::keys::{self, Key, Owner};
use fwdlab_model::spec::kind::Kind;
use std::collections::BTreeSet;

/// Returns the line of the setting of this name, if any variant has it; for a table of names, one
/// line per name.
pub(super) fn lines(contents: &Contents, name: &str) -> Vec<String> {
    let Some(key) = keys::setting(name) else { return Vec::new() };
    if matches!(key.kind, Kind::Sysctls | Kind::Variables { .. }) {
        return entries(contents, key);
    }
    let has = |settings: &Settings| has(key, settings);
    // A setting of a host without a value is left as found.
    let is_shown = match key.owner {
        Owner::Host | Owner::Freebsd => {
            let default = value(&Settings::default(), key);
            is_any(contents, |settings| value(settings, key) != default)
        }
        Owner::Vm => is_any(contents, |settings| !of(settings, key).is_empty()),
        _ => is_any(contents, has),
    };
    let line = || varied_of(contents, has, &format!("{}: ", key.title), |s| value(s, key));
    is_shown.then(line).into_iter().collect()
}

/// Returns the entries of a table that any variant sets, each with all its values.
fn entries(contents: &Contents, key: &Key) -> Vec<String> {
    let variants = contents.plan.variants.iter().filter(|variant| has(key, &variant.settings));
    let names: BTreeSet<String> = variants
        .flat_map(|variant| of(&variant.settings, key))
        .map(|setting| setting.name())
        .collect();
    let line = |name: String| {
        let entry = name.strip_prefix(key.name).unwrap_or(&name);
        varied(contents, &format!("{}{entry} = ", key.title), |settings| {
            let mut all = of(settings, key).into_iter();
            all.find(|setting| setting.name() == name)
                .map_or_else(as_found, |setting| setting.value())
        })
    };
    names.into_iter().map(line).collect()
}

/// Returns the settings of a row.
fn of(settings: &Settings, key: &Key) -> Vec<Setting> {
    settings.all().into_iter().filter(|setting| setting.key() == key.name).collect()
}

fn value(settings: &Settings, key: &Key) -> String {
    match (of(settings, key).first(), key.kind) {
        (None, _) => as_found(),
        (Some(setting), Kind::Boolean) => enabled(setting.value() == "true"),
        (Some(setting), _) => setting.value(),
    }
}

pub(super) fn as_found() -> String {
    "as found".to_owned()
}

/// Returns true if a setting has an effect.
fn has(key: &Key, settings: &Settings) -> bool {
    let is_router = settings.dut.kind == DutKind::Router;
    match (key.owner, key.name) {
        (Owner::Router, "state" | "state_limit") => {
            let firewall = &settings.dut.firewall;
            is_router && matches!(firewall, Firewall::Stateful | Firewall::Ruleset { .. })
        }
        (Owner::Router, "port") => {
            let kind = settings.testbed.kind;
            is_router && matches!(kind, TestbedKind::Auto | TestbedKind::Netns)
        }
        (Owner::Router, _) => is_router,
        (Owner::Kernel | Owner::Linux, _) => !is_router,
        _ => true,
    }
}
