//! Forwarding by the FreeBSD kernel, on a machine of a laboratory.
//!
//! [`plan`] computes the contents of files, [`backup`] writes them and keeps the originals on the
//! DUT, [`apply`], [`firewall`] and [`interrupts`] apply settings that need no reboot and read them
//! back, [`counters`] reads the kernel's counters. [`FreebsdDut::prepare`] is called again after
//! each reboot until no further reboot is needed.
//!
//! Not supported: users other than root, virtual interfaces (VLANs, bridges, tunnels: use an
//! overlay's rc.conf), routing daemons.

pub mod apply;
pub mod backup;
pub mod counters;
pub mod fib;
pub mod firewall;
pub mod interrupts;
pub mod modules;
mod own_firewall;
pub mod plan;
pub mod queues;
pub mod rc;
pub mod revision;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod scripted_modules;
mod states;
pub mod system;
#[cfg(test)]
mod tests;

use super::findings::Findings;
use super::routes::keep_ways_of;
use super::{Dut, Loss, Preparation, Reading, Totals};
use crate::cpu::Placement;
use crate::links::Links;
use backup::Backup;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{Counter, CpuTime, DropPlace};
use fwdlab_model::settings::{Firewall, Reboot, Settings};
use fwdlab_model::warning::Warning;
use plan::{LOADER, Plan, RC};
use rc::{Document, Format};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use system::System;

pub use counters::{CpuTicks, cpu_times};

/// Note that identifies the boot of the notes below `boot/`.
const BOOT: &str = "boot-second";
/// Read after [`RC`]; its assignments take precedence.
const RC_LOCAL: &str = "/etc/rc.conf.local";

/// A FreeBSD machine as DUT. Persistent data is stored on the machine itself.
#[derive(Clone, Debug)]
pub struct FreebsdDut {
    links: Links,
    experiment: PathBuf,
    /// System found during configuration.
    system: Option<System>,
}

impl FreebsdDut {
    /// A DUT between these links. The directory `experiment` contains the images that an experiment
    /// names.
    pub fn new(links: Links, experiment: PathBuf) -> FreebsdDut {
        FreebsdDut { links, experiment, system: None }
    }

    /// Writes all files for the settings; returns the changes that the running system has not read
    /// yet.
    fn files(
        &self,
        backup: &Backup,
        system: &System,
        plan: &mut Plan,
    ) -> Result<Vec<String>, BenchError> {
        self.check_rc_local(backup, plan)?;
        let boot = backup.note(BOOT)?.unwrap_or_default();
        if !system.boot.is(&boot) {
            backup.forget("boot")?;
            backup.set_note(BOOT, &system.boot.0)?;
        }
        self.drop_needless_tunables(backup, plan)?;
        let mut contents = BTreeMap::new();
        let expected = plan.files(|path| {
            let now = backup.read(path)?;
            let original = backup.original(path, now.as_deref())?;
            contents.insert(path.to_owned(), (now, original.clone()));
            Ok(original)
        })?;
        let owned = backup.files()?;
        let paths: BTreeSet<&String> = expected.keys().chain(owned.keys()).collect();
        let (mut reasons, mut changed) = (Vec::new(), false);
        for path in paths {
            let (now, original) = match contents.remove(path) {
                Some(found) => found,
                None => {
                    let now = backup.read(path)?;
                    let original = backup.original(path, now.as_deref())?;
                    (now, original)
                }
            };
            // The running system has read the content that was there at its first inspection.
            let note = format!("boot{path}");
            let read = match backup.note(&note)? {
                Some(read) => read,
                None => {
                    let read = plan::at_boot(path, now.as_deref(), &self.links);
                    backup.set_note(&note, &read)?;
                    read
                }
            };
            let target = expected.get(path).cloned().or(original.clone());
            if target != now || (!expected.contains_key(path) && owned.contains_key(path)) {
                changed = true;
                match expected.get(path) {
                    Some(text) => backup.take(path, now.as_deref(), original.as_deref(), text)?,
                    None => backup.give_back(path)?,
                }
            }
            let loaded_later = plan.rules.as_ref().is_some_and(|(rules, _)| rules == path)
                || is_rules(path) && !plan.governs(path);
            let after = plan::at_boot(path, target.as_deref(), &self.links);
            if after != read && !loaded_later {
                reasons.push(reason(path, &read, &after));
            }
        }
        if changed {
            backup.persist()?;
            // The next boot loads the module because of the files just written.
            if let Some(program) = plan.firewall
                && !firewall::loaded(backup.host())?.contains(&program)
            {
                modules::note(backup, program.module().0)?;
            }
        }
        Ok(reasons)
    }

    /// Removes tunables of interfaces that already have the required number of queues without them:
    /// they would only cost a reboot.
    fn drop_needless_tunables(&self, backup: &Backup, plan: &mut Plan) -> Result<(), BenchError> {
        if plan.queues.is_empty() {
            return Ok(());
        }
        let read = match backup.note(&format!("boot{LOADER}"))? {
            Some(read) => read,
            None => {
                let now = backup.read(LOADER)?;
                plan::at_boot(LOADER, now.as_deref(), &self.links)
            }
        };
        let is_set = |name: &String| read.lines().any(|line| line.starts_with(&format!("{name}=")));
        let host = backup.host();
        let needless: Vec<String> = plan
            .queues
            .iter()
            .filter(|(interface, (expected, tunables))| {
                !tunables.iter().any(is_set)
                    && queues::found(host, interface).as_deref() == Some(expected)
            })
            .flat_map(|(_, (_, tunables))| tunables.clone())
            .collect();
        // Both interfaces may share an adapter and its tunables.
        let needed: BTreeSet<&String> = plan
            .queues
            .values()
            .flat_map(|(_, tunables)| tunables)
            .filter(|name| !needless.contains(name))
            .collect();
        plan.loader.retain(|name, _| !needless.contains(name) || needed.contains(name));
        Ok(())
    }

    /// Checks that no file read later silently overrides fwdlab's settings.
    fn check_rc_local(&self, backup: &Backup, plan: &Plan) -> Result<(), BenchError> {
        if plan.governs(RC) || plan.governs(RC_LOCAL) {
            return Ok(());
        }
        let text = backup.read(RC_LOCAL)?.unwrap_or_default();
        let document = Document::parse(Format::Rc, &text);
        let is_set_by_plan =
            |name: &str| plan.rc.contains_key(name) || plan.lists.contains_key(name);
        match document.assignments().find(|(name, _)| is_set_by_plan(name)) {
            Some((name, _)) => Err(BenchError::Refused(format!(
                "{RC_LOCAL} on the DUT sets {name}, which fwdlab sets in {RC}; the later file \
                 would win\n  next step: remove the line there"
            ))),
            None => Ok(()),
        }
    }

    fn read_back_queues(
        &self,
        host: &dyn Host,
        plan: &Plan,
        settings: &Settings,
        findings: &mut Findings,
    ) {
        for link in self.links.both() {
            let (name, expected) = (&link.interface, settings.dut.queues.to_string());
            let setting = format!("{name} queues");
            match queues::found(host, name) {
                Some(found) => findings.expect(&setting, &expected, &found),
                None if plan.loader.is_empty() || settings.dut.queues == 1 => {
                    findings.facts.insert(setting, "not told by the driver".into());
                }
                None => findings.warnings.push(Warning::NotVerified {
                    setting,
                    wanted: expected,
                    found: "not told by the driver".into(),
                }),
            }
        }
    }
}

/// Reads back the experiment's `loader` settings from the kernel environment (kenv(1)); this
/// reveals a file that the loader reads later or does not read at all.
fn read_back_loader(
    host: &dyn Host,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let expected = &settings.dut.remote.loader;
    if expected.is_empty() {
        return Ok(());
    }
    let all = host.run(&["kenv"], "")?;
    for (name, value) in expected {
        let mut lines = all.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(found, _)| found == name).map(|(_, found)| found.trim());
        let found = found.map(|found| found.trim_matches('"')).unwrap_or("unset");
        findings.expect(&format!("loader {name}"), value, found);
    }
    Ok(())
}

/// True for a file of firewall rules, which are loaded without a reboot.
fn is_rules(path: &str) -> bool {
    firewall::Program::ALL.iter().any(|program| program.path() == path)
}

/// Describes the difference between a file's contents at boot and now.
fn reason(path: &str, read: &str, now: &str) -> String {
    let lines = |text: &str| -> BTreeMap<String, String> {
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    if Format::of(path).is_none() {
        return format!("{path} is another");
    }
    let (old, new) = (lines(read), lines(now));
    let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
    let differing = names.into_iter().filter(|name| old.get(*name) != new.get(*name));
    let text = |value: Option<&String>| value.map_or("unset", String::as_str).to_owned();
    let changes: Vec<String> = differing
        .map(|name| format!("{name} {} -> {}", text(old.get(name)), text(new.get(name))))
        .collect();
    match changes.is_empty() {
        true => format!("{path} is another"),
        false => format!("{path}: {}", changes.join(", ")),
    }
}

impl Dut for FreebsdDut {
    fn prepare(&mut self, host: &dyn Host, settings: &Settings) -> Result<Preparation, BenchError> {
        let system = System::ask(host)?;
        let mut plan = Plan::new(settings, &self.links, &system)?;
        let backup = Backup::new(host, &system);
        own_firewall::note(host, &backup)?;
        if let Some(revision) = &settings.dut.remote.revision
            && let Some(why) =
                revision::prepare(host, &backup, &system, revision, &self.experiment)?
        {
            return Ok(Preparation::Reboot(vec![why]));
        }
        let mut reasons = self.files(&backup, &system, &mut plan)?;
        if settings.dut.remote.reboot != Reboot::Never {
            let pinned = fib::pinned(&backup, &plan)?.into_iter();
            reasons.extend(pinned.map(|name| format!("{name}: set by name, only a boot ends it")));
        }
        Ok(if reasons.is_empty() { Preparation::Ready } else { Preparation::Reboot(reasons) })
    }

    fn reboot(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        // Fails early if the DUT is unreachable.
        host.run(&["true"], "")?;
        match host.run(&["shutdown", "-r", "now"], "") {
            // The reboot closed the connection.
            Err(BenchError::Environment { .. }) => Ok(()),
            other => other.map(drop),
        }
    }

    fn connections(&mut self, host: &dyn Host, settings: &Settings) -> Option<u64> {
        states::count(host, settings)
    }

    fn forget_states(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
    ) -> Result<Option<String>, BenchError> {
        states::forget(host, settings)
    }

    fn await_room(&mut self, host: &dyn Host, settings: &Settings) -> Result<(), BenchError> {
        states::await_room(host, settings)
    }

    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        _placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        let system = System::ask(host)?;
        let plan = Plan::new(settings, &self.links, &system)?;
        let backup = Backup::new(host, &system);
        own_firewall::note(host, &backup)?;
        self.system = Some(system.clone());
        keep_ways_of(settings, &self.links)?;
        let kernel = host.run(&["uname", "-v"], "")?;
        findings.facts.insert("kernel".into(), kernel.trim().to_owned());
        findings.facts.extend(system::kernel_facts(host));
        if let Some(revision) = settings.dut.configured_revision() {
            super::revision::read_back(host, revision, findings)?;
        }
        apply::interfaces(host, &plan, &self.links, settings, findings)?;
        apply::routes(host, &plan, &self.links, settings, findings)?;
        apply::neighbours(host, &plan, &self.links, findings)?;
        // An overlay's rc.conf may enable a firewall that the experiment does not name.
        if plan.governs(RC) && settings.dut.firewall == Firewall::None {
            findings.facts.insert("firewall".into(), format!("as the overlay's {RC} says"));
        } else {
            firewall::apply(host, &backup, settings, findings)?;
        }
        apply::sysctls(host, &backup, &plan, findings)?;
        let bind = settings.dut.bind_queues || settings.dut.remote.bind_interrupts;
        interrupts::apply(host, &backup, &self.links, bind, findings)?;
        self.read_back_queues(host, &plan, settings, findings);
        read_back_loader(host, settings, findings)?;
        if plan.governs(LOADER) {
            findings.facts.insert("loader".into(), format!("the overlay's {LOADER}"));
        }
        Ok(())
    }

    /// Leaves files unchanged. Applies the differences, to be read back by [`Dut::verify`].
    /// Settings that only the other level sets return to their original values.
    fn switch(
        &mut self,
        host: &dyn Host,
        from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        let system = match &self.system {
            Some(system) => system.clone(),
            None => System::ask(host)?,
        };
        let backup = Backup::new(host, &system);
        if from.dut.firewall != to.dut.firewall {
            firewall::switch(host, &backup, to)?;
        }
        let [old, new] = [from, to].map(|settings| {
            let plan = Plan::new(settings, &self.links, &system)?;
            let mut all = plan.implied;
            all.extend(plan.sysctls);
            Ok::<_, BenchError>(all)
        });
        let (old, new) = (old?, new?);
        for (name, value) in new.iter().filter(|(name, value)| old.get(*name) != Some(value)) {
            let found = host.run(&["sysctl", "-n", name], "")?;
            backup.remember_sysctl(name, found.trim())?;
            fib::before_setting(host, &backup, name, value)?;
            host.run(&["sysctl", &format!("{name}={value}")], "")?;
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            // The record is kept: the other level sets the sysctl again.
            if let Some(found) = backup.sysctls()?.get(name) {
                host.run(&["sysctl", &format!("{name}={found}")], "")?;
            }
        }
        self.system = Some(system);
        Ok(())
    }

    fn verify(
        &mut self,
        host: &dyn Host,
        _from: &Settings,
        to: &Settings,
        findings: &mut Findings,
    ) -> Result<(), BenchError> {
        firewall::verify(host, to, findings)?;
        for (name, value) in &to.dut.sysctl {
            findings.expect_sysctl(name, value, &host.run(&["sysctl", "-n", name], "")?);
        }
        Ok(())
    }

    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError> {
        let machine = counters::read(host, &self.links)?;
        Ok(Reading { machine, ..Reading::default() })
    }

    fn queues(&self, host: &dyn Host) -> super::counters::Reading {
        let links = self.links.both().into_iter();
        links.flat_map(|link| queues::packets(host, &link.interface)).collect()
    }

    fn cpu_times(&self, host: &dyn Host) -> Vec<CpuTime> {
        let text = host.run(&["sysctl", "-n", "kern.cp_times", "kern.clockrate"], "");
        text.ok().and_then(|text| counters::times(&text)).unwrap_or_default()
    }

    fn cpu_script(&self) -> Option<&'static str> {
        Some("sysctl -n kern.cp_times kern.clockrate")
    }

    fn cpu_times_of(&self, text: &str) -> Vec<CpuTime> {
        counters::times(text).unwrap_or_default()
    }

    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter> {
        counters::compare(before, after, totals, &self.links)
    }

    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace> {
        let dut = &loss.settings.dut;
        let has_firewall = dut.firewall != Firewall::None || dut.remote.overlay.is_some();
        counters::drops(loss, has_firewall, &self.links)
    }

    fn undo(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        let system = System::ask(host)?;
        let backup = Backup::new(host, &system);
        // Each step is tried even if others fail, unless the DUT is unreachable.
        let mut failures = Vec::new();
        let mut collect = |result: Result<(), BenchError>| match result {
            Err(BenchError::Program { why, command, .. }) => {
                failures.push(format!("`{command}`: {}", why.trim()));
                Ok(false)
            }
            other => other.map(|()| true),
        };
        let files = backup.files()?;
        for path in files.keys() {
            collect(backup.give_back(path))?;
        }
        if !files.is_empty() {
            collect(backup.persist())?;
        }
        for program in firewall::loaded(host)? {
            if modules::is_noted(&backup, program.module().0)? {
                collect(firewall::stop(host, program))?;
            }
        }
        for (name, value) in backup.sysctls()? {
            collect(apply::put_back(host, &backup, &name, &value))?;
        }
        collect(interrupts::apply(host, &backup, &self.links, false, &mut Findings::default()))?;
        collect(modules::unload(host, &backup, |_| true).map(drop))?;
        // Last: it may cut this connection, and the next undo then finds the rest done.
        own_firewall::put_back(host, &backup, &mut collect)?;
        match failures.is_empty() {
            true => Ok(()),
            false => Err(BenchError::NotPutBack {
                host: host.name().to_owned(),
                why: failures.join("; ").replace('\n', " "),
                instead: "",
                journal: backup.path(""),
            }),
        }
    }
}
