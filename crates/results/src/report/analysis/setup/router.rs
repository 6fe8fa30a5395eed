//! Lines of the set-up that speak of fwdlab's own router. There are none where no
//! variant's device is one.

use super::{enabled, varied, varied_of};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, Firewall, TestbedKind};
use fwdlab_model::spec::keys::{self, Key, Owner};
use fwdlab_model::spec::kind::Kind;

/// What forwards, when it is not the kernel alone.
pub(super) fn device(contents: &Contents) -> Option<String> {
    let is_named =
        |s: &Settings| s.dut.kind != DutKind::Linux || s.testbed.kind == TestbedKind::Ssh;
    is_any(contents, is_named).then(|| {
        varied(contents, "Device under test: ", |s| match s.dut.kind {
            DutKind::Router => "fwdlab's own software router".to_owned(),
            DutKind::Linux => "the Linux kernel".to_owned(),
            DutKind::Freebsd => "the FreeBSD kernel".to_owned(),
            DutKind::Command => {
                let start = &s.dut.command.start;
                format!("`{}`", start.first().map_or("a program", String::as_str))
            }
        })
    })
}

/// How it was set, as far as it matters.
pub(super) fn lines(contents: &Contents) -> Vec<String> {
    let rows = keys::settings().filter(|key| key.owner == Owner::Router && !key.title.is_empty());
    let has = |key: &Key| -> fn(&Settings) -> bool {
        match key.name {
            "state" | "state_limit" => keeps_states,
            "port" => has_sockets,
            _ => is_router,
        }
    };
    rows.filter(|key| is_any(contents, has(key)))
        .map(|key| {
            let title = format!("{}: ", key.title);
            varied_of(contents, has(key), &title, |settings| value(settings, key))
        })
        .collect()
}

fn value(settings: &Settings, key: &Key) -> String {
    let setting = settings.all().into_iter().find(|setting| setting.key() == key.name);
    let value = setting.map(|setting| setting.value()).unwrap_or_default();
    match key.kind {
        Kind::Boolean => enabled(value == "true"),
        _ => value,
    }
}

pub(super) fn is_any(contents: &Contents, has: impl Fn(&Settings) -> bool) -> bool {
    contents.plan.variants.iter().any(|variant| has(&variant.settings))
}

fn is_router(settings: &Settings) -> bool {
    settings.dut.kind == DutKind::Router
}

fn keeps_states(settings: &Settings) -> bool {
    is_router(settings)
        && matches!(settings.dut.firewall, Firewall::Stateful | Firewall::Ruleset { .. })
}

fn has_sockets(settings: &Settings) -> bool {
    is_router(settings) && matches!(settings.testbed.kind, TestbedKind::Auto | TestbedKind::Netns)
}
