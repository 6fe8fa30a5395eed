//! Algorithms of the forwarding table, `net.route.algo.FAMILY.algo` (FreeBSD 13 and later).
//!
//! Some are modules. And one that was set by name is kept until the next boot: before, the
//! kernel goes to another one when the number of routes asks for it. Seen on FreeBSD 13.2:
//! 300 routes make `radix4_lockless` of `bsearch4`, but not after `bsearch4` was set by name.

use super::backup::Backup;
use super::modules;
use super::plan::Plan;
use crate::findings::Findings;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::warning::Warning;
use std::collections::BTreeSet;

/// The choices of both families.
pub const CHOICES: [&str; 2] = ["net.route.algo.inet.algo", "net.route.algo.inet6.algo"];
/// Algorithms that are modules, with the modules' files.
const MODULES: [(&str, &str); 3] =
    [("dxr", "fib_dxr"), ("dpdk_lpm4", "dpdk_lpm4"), ("dpdk_lpm6", "dpdk_lpm6")];
/// Note of the choices that were made in the current boot; a boot forgets what is in `boot`.
const NOTE: &str = "boot/chosen";

/// What must happen before `name` is set: a choice is noted, and its module loaded.
///
/// # Errors
/// When the module is missing, or nothing can be noted.
pub fn before_setting(
    host: &dyn Host,
    memory: &Backup,
    name: &str,
    value: &str,
) -> Result<(), BenchError> {
    if !CHOICES.contains(&name) {
        return Ok(());
    }
    let mut chosen = chosen(memory)?;
    if chosen.insert(name.to_owned()) {
        let all: Vec<&str> = chosen.iter().map(String::as_str).collect();
        memory.set_note(NOTE, &all.join(" "))?;
    }
    if let Some((_, file)) = MODULES.iter().find(|(algorithm, _)| *algorithm == value) {
        let there = host.run(&["sysctl", "-n", &format!("{name}_list")], "")?;
        if !there.split([',', ' ']).any(|word| word.trim() == value) {
            modules::load(host, memory, file)?;
        }
    }
    Ok(())
}

/// Unloads our modules of algorithms but for those in use.
///
/// # Errors
/// As [`modules::unload`].
pub fn unload(host: &dyn Host, memory: &Backup, plan: &Plan) -> Result<(), BenchError> {
    let is_used = |file: &str| {
        let mut of_file = MODULES.iter().filter(|(_, known)| *known == file);
        of_file.any(|(algorithm, _)| {
            CHOICES.iter().any(|name| plan.sysctls.get(*name).is_some_and(|v| v == algorithm))
        })
    };
    let is_ours = |file: &str| MODULES.iter().any(|(_, known)| *known == file);
    modules::unload(host, memory, |file| is_ours(file) && !is_used(file)).map(drop)
}

/// The choices that an earlier variant made in this boot, and `plan` leaves to the kernel.
///
/// # Errors
/// When the note can't be read.
pub fn pinned(memory: &Backup, plan: &Plan) -> Result<Vec<String>, BenchError> {
    let chosen = chosen(memory)?.into_iter();
    Ok(chosen.filter(|name| !plan.sysctls.contains_key(name)).collect())
}

/// The algorithms in force, and a doubt about those that the kernel should choose and can't.
///
/// # Errors
/// When the DUT can't be asked.
pub fn read_back(
    host: &dyn Host,
    memory: &Backup,
    plan: &Plan,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let pinned = pinned(memory, plan)?;
    for name in CHOICES.into_iter().filter(|name| !plan.sysctls.contains_key(*name)) {
        // A kernel without FIB_ALGO has no such names.
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

fn chosen(memory: &Backup) -> Result<BTreeSet<String>, BenchError> {
    let text = memory.note(NOTE)?.unwrap_or_default();
    Ok(text.split_whitespace().map(str::to_owned).collect())
}
