//! Algorithms of the forwarding table, `net.route.algo.FAMILY.algo` (FreeBSD 13 and later).
//!
//! Some are kernel modules. An algorithm set by name stays until the next boot; otherwise the
//! kernel switches when the number of routes requires another one. Observed on FreeBSD 13.2: with
//! 300 routes `bsearch4` becomes `radix4_lockless`, but not after `bsearch4` was set by name.

use super::backup::Backup;
use super::modules;
use super::plan::Plan;
use crate::findings::Findings;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::warning::Warning;
use std::collections::BTreeSet;

/// Sysctls that choose the algorithm of each family.
pub const CHOICES: [&str; 2] = ["net.route.algo.inet.algo", "net.route.algo.inet6.algo"];
/// Algorithms that are modules, with their module files.
const MODULES: [(&str, &str); 3] =
    [("dxr", "fib_dxr"), ("dpdk_lpm4", "dpdk_lpm4"), ("dpdk_lpm6", "dpdk_lpm6")];
/// Note of the choices made since the current boot; entries in `boot` are dropped at the next boot.
const NOTE: &str = "boot/chosen";

/// Prepares for setting `name`: records a choice and loads its module.
///
/// # Errors
/// Fails if the module is missing or the note cannot be written.
pub fn before_setting(
    host: &dyn Host,
    backup: &Backup,
    name: &str,
    value: &str,
) -> Result<(), BenchError> {
    if !CHOICES.contains(&name) {
        return Ok(());
    }
    let mut chosen = chosen(backup)?;
    if chosen.insert(name.to_owned()) {
        let all: Vec<&str> = chosen.iter().map(String::as_str).collect();
        backup.set_note(NOTE, &all.join(" "))?;
    }
    if let Some((_, file)) = MODULES.iter().find(|(algorithm, _)| *algorithm == value) {
        let available = host.run(&["sysctl", "-n", &format!("{name}_list")], "")?;
        if !available.split([',', ' ']).any(|word| word.trim() == value) {
            modules::load(host, backup, file)?;
        }
    }
    Ok(())
}

/// Unloads fwdlab's modules of algorithms that are not in use.
///
/// # Errors
/// The errors of [`modules::unload`].
pub fn unload(host: &dyn Host, backup: &Backup, plan: &Plan) -> Result<(), BenchError> {
    let is_used = |file: &str| {
        let mut of_file = MODULES.iter().filter(|(_, known)| *known == file);
        of_file.any(|(algorithm, _)| {
            CHOICES.iter().any(|name| plan.sysctls.get(*name).is_some_and(|v| v == algorithm))
        })
    };
    let is_ours = |file: &str| MODULES.iter().any(|(_, known)| *known == file);
    modules::unload(host, backup, |file| is_ours(file) && !is_used(file)).map(drop)
}

/// Choices that an earlier variant made since the current boot and that `plan` leaves to the
/// kernel.
///
/// # Errors
/// Fails if the note cannot be read.
pub fn pinned(backup: &Backup, plan: &Plan) -> Result<Vec<String>, BenchError> {
    let chosen = chosen(backup)?.into_iter();
    Ok(chosen.filter(|name| !plan.sysctls.contains_key(name)).collect())
}

/// Records the algorithms in use, with a warning if the kernel should choose but cannot.
///
/// # Errors
/// Fails if the DUT cannot be queried.
pub fn read_back(
    host: &dyn Host,
    backup: &Backup,
    plan: &Plan,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let pinned = pinned(backup, plan)?;
    for name in CHOICES.into_iter().filter(|name| !plan.sysctls.contains_key(*name)) {
        // A kernel without FIB_ALGO lacks these sysctls.
        let Ok(found) = host.run(&["sysctl", "-n", name], "") else { continue };
        let found = found.trim().to_owned();
        if pinned.iter().any(|pinned| pinned == name) {
            findings.warnings.push(Warning::NotVerified {
                setting: format!("sysctl {name}"),
                wanted: "the kernel's own choice".into(),
                found: format!("{found}, set by name since the last boot"),
            });
        }
        findings.facts.insert(format!("sysctl {name}"), found);
    }
    Ok(())
}

fn chosen(backup: &Backup) -> Result<BTreeSet<String>, BenchError> {
    let text = backup.note(NOTE)?.unwrap_or_default();
    Ok(text.split_whitespace().map(str::to_owned).collect())
}
