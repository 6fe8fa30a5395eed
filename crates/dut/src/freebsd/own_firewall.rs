//! The DUT's own firewall: noted before the first change, and running again after the last one.
//!
//! rc(8) starts it, with the rules and flags of the DUT's own rc.conf(5). Not restored: states of
//! connections, which a firewall loses when it stops.

use super::backup::Backup;
use super::firewall::{self, DEFAULT_TO_ACCEPT, Program};
use super::modules;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;

/// Note of the programs that ran before the first change.
const NOTE: &str = "firewalls";

/// Script that starts ipfw by rc(8). As in [`firewall::UNCUT`], a rule in set 31 keeps fwdlab's own
/// connection alive during the time between flush and rules.
pub(super) const START_IPFW: &str = "ipfw -q add 65533 set 31 allow ip from any to any || exit 1\n\
                          service ipfw onestart; status=$?\n\
                          ipfw -q delete 65533; exit $status";

/// Notes which firewall programs run, unless they are noted.
///
/// # Errors
/// Fails if a program cannot be queried, or the note cannot be written.
pub(super) fn note(host: &dyn Host, backup: &Backup) -> Result<(), BenchError> {
    if backup.note(NOTE)?.is_some() {
        return Ok(());
    }
    let mut names = Vec::new();
    for program in firewall::loaded(host)? {
        // A program whose module fwdlab has loaded is not the DUT's own.
        let is_own = !modules::is_noted(backup, program.module().0)?;
        if is_own && firewall::is_running(host, program)? {
            names.push(program.name());
        }
    }
    backup.set_note(NOTE, &names.join(" "))
}

/// Starts the programs that ran before the first change, with the DUT's own rules, and disables the
/// others. Called after files are restored and modules unloaded. `collect` receives the failures
/// that do not prevent the rest.
///
/// # Errors
/// Fails if the DUT cannot be reached.
pub(super) fn put_back(
    host: &dyn Host,
    backup: &Backup,
    mut collect: impl FnMut(Result<(), BenchError>) -> Result<bool, BenchError>,
) -> Result<(), BenchError> {
    let Some(noted) = backup.note(NOTE)? else { return Ok(()) };
    let loaded = firewall::loaded(host)?;
    let mut is_done = true;
    for program in Program::ALL {
        let is_loaded = loaded.contains(&program);
        if noted.split_whitespace().any(|name| name == program.name()) {
            is_done &= collect(start(host, program, is_loaded))?;
        } else if is_loaded {
            is_done &= collect(firewall::stop(host, program))?;
        }
    }
    if is_done { backup.forget(NOTE) } else { Ok(()) }
}

fn start(host: &dyn Host, program: Program, is_loaded: bool) -> Result<(), BenchError> {
    if !is_loaded {
        if program == Program::Ipfw {
            // Otherwise the module's default rule would cut fwdlab's own connection.
            host.run(&["kenv", &format!("{DEFAULT_TO_ACCEPT}=1")], "")?;
        }
        host.run(&["kldload", "-n", program.module().0], "")?;
    }
    match program {
        Program::Pf => {
            // `onestart` would flush the states, with them fwdlab's own connection.
            host.run(&["service", "pf", "onereload"], "")?;
            if !firewall::is_running(host, program)? {
                host.run(&["pfctl", "-e"], "")?;
            }
            Ok(())
        }
        Program::Ipfw => {
            host.run(&["/bin/sh", "-c", START_IPFW], "")?;
            let enabled = ["sysctl", "net.inet.ip.fw.enable=1", "net.inet6.ip6.fw.enable=1"];
            host.run(&enabled, "").map(drop)
        }
        Program::Ipf => host.run(&["service", "ipfilter", "onestart"], "").map(drop),
    }
}
