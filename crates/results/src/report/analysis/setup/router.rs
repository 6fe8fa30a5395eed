//! Lines of the set-up that speak of fwdlab's own router. There are none where no
//! variant's device is one.

use super::{enabled, varied, varied_of};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, Firewall, TestbedKind};

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
    let mut lines = Vec::new();
    let mut line = |has: fn(&Settings) -> bool, name: &str, of: fn(&Settings) -> String| {
        if is_any(contents, has) {
            lines.push(varied_of(contents, has, name, of));
        }
    };
    line(is_router, "Router, forwarding table: ", |s| s.dut.router.fib.name().to_owned());
    line(is_router, "Router, locking of lookups: ", |s| s.dut.router.locking.name().to_owned());
    line(is_router, "Router, path of packets: ", |s| s.dut.router.path.name().to_owned());
    line(keeps_states, "Router, table of states: ", |s| s.dut.router.state.name().to_owned());
    line(keeps_states, "Router, most states: ", |s| s.dut.router.state_limit.to_string());
    line(is_router, "Router, harvesting of entropy: ", |s| enabled(s.dut.router.entropy_harvest));
    line(has_sockets, "Router, ports: ", |s| s.dut.router.port.name().to_owned());
    lines
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
