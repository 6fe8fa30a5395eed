//! Checks that a laboratory and its settings are consistent.

use crate::diagnostic::Diagnostic;
use crate::settings::{Arrangement, Settings, TestbedKind};
use crate::spec::{Setting, Spec};
use toml::Spanned;

/// Checks that hosts, and only hosts, have a file that describes them, and that their sender has
/// separate CPUs.
pub(super) fn judge(spec: &Spec, faults: &mut Vec<Diagnostic>) {
    let kind = spec.kind.as_ref();
    let ssh = kind.filter(|kind| *kind.get_ref() == TestbedKind::Ssh);
    match (ssh, &spec.lab) {
        (Some(kind), None) if !spec.device_faulty => faults.push(
            Diagnostic::new(kind.span(), "a testbed of hosts without the file of its laboratory")
                .help(
                    "write lab = \"lab.toml\" in [testbed]; `fwdlab lab --help` says what is in it",
                ),
        ),
        (None, Some(lab)) if !spec.device_faulty => {
            let fault = Diagnostic::new(lab.span(), "`lab` has no effect: no host is part of this")
                .help("write kind = \"ssh\" in [testbed], or leave `lab` out");
            faults.push(match kind {
                Some(kind) => fault.context(kind.span(), "the testbed"),
                None => fault,
            });
        }
        _ => {}
    }
    let Some(ssh) = ssh else { return };
    let levels = spec.factors.iter().flat_map(|factor| &factor.levels);
    let settings = levels.flat_map(|level| &level.settings).chain(&spec.settings);
    for setting in settings.filter(|setting| is_closed(setting)) {
        faults.push(
            Diagnostic::new(setting.span(), "the hosts of a laboratory share no CPUs")
                .label("closed: sender and DUT on the same CPUs")
                .context(ssh.span(), "the testbed")
                .help("leave `arrangement` out"),
        );
    }
}

fn is_closed(setting: &Spanned<Setting>) -> bool {
    let mut settings = Settings::default();
    setting.get_ref().apply(&mut settings);
    settings.testbed.arrangement == Arrangement::Closed
}
