//! Forwarding by the FreeBSD kernel, on a machine of a laboratory.
//!
//! [`plan`] computes the contents of files, [`memory`] writes them and keeps the originals on
//! the DUT, [`apply`], [`firewall`] and [`interrupts`] apply settings that need no reboot and
//! read them back, [`counters`] reads the kernel's counters. [`FreebsdDut::prepare`] is
//! called again after each reboot, until no further reboot is needed.
//!
//! Not supported: users other than root, virtual interfaces (VLANs, bridges, tunnels: use an
//! overlay's rc.conf), routing daemons.

pub mod apply;
#[cfg(test)]
mod archive_tests;
pub mod backup;
pub mod counters;
pub mod fib;
pub mod firewall;
pub mod interrupts;
pub mod modules;
#[cfg(test)]
mod parser_tests;
pub mod plan;
pub mod queues;
pub mod rc;
pub mod revision;
#[cfg(test)]
mod scripted;
#[cfg(test)]
mod scripted_modules;
mod states;
#[cfg(test)]
mod switch_tests;
pub mod system;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod vtnet_tests;

use super::findings::Findings;
use super::routes::keep_ways_of;
use super::{Dut, Loss, Prepared, Reading, Totals};
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

/// Note of the boot that the notes below `boot/` are of.
const BOOT: &str = "boot-second";
/// Read after [`RC`]: what it sets wins.
const RC_LOCAL: &str = "/etc/rc.conf.local";

/// A FreeBSD machine as DUT. Persistent data is kept on the machine itself.
#[derive(Clone, Debug)]
pub struct FreebsdDut {
    links: Links,
    experiment: PathBuf,
    /// As it was found when it was configured.
    system: Option<System>,
}

impl FreebsdDut {
    /// The DUT between these links. Images that an experiment names lie in the directory
    /// `experiment`.
    pub fn new(links: Links, experiment: PathBuf) -> FreebsdDut {
        FreebsdDut { links, experiment, system: None }
    }

    /// Writes all files for the settings, and returns the changes that the running system has
    /// not read yet.
    fn files(
        &self,
        memory: &Backup,
        system: &System,
        plan: &mut Plan,
    ) -> Result<Vec<String>, BenchError> {
        self.check_rc_local(memory, plan)?;
        let boot = memory.note(BOOT)?.unwrap_or_default();
        if !system.boot.is(&boot) {
            memory.forget("boot")?;
            memory.set_note(BOOT, &system.boot.0)?;
        }
        self.spare_tunables(memory, plan)?;
        let mut standing = BTreeMap::new();
        let wanted = plan.files(|path| {
            let now = memory.read(path)?;
            let original = memory.original(path, now.as_deref())?;
            standing.insert(path.to_owned(), (now, original.clone()));
            Ok(original)
        })?;
        let remembered = memory.files()?;
        let paths: BTreeSet<&String> = wanted.keys().chain(remembered.keys()).collect();
        let (mut reasons, mut changed) = (Vec::new(), false);
        for path in paths {
            let (now, original) = match standing.remove(path) {
                Some(both) => both,
                None => {
                    let now = memory.read(path)?;
                    let original = memory.original(path, now.as_deref())?;
                    (now, original)
                }
            };
            // What the running system has read is what stood there when it was first seen.
            let note = format!("boot{path}");
            let read = match memory.note(&note)? {
                Some(read) => read,
                None => {
                    let read = plan::at_boot(path, now.as_deref(), &self.links);
                    memory.set_note(&note, &read)?;
                    read
                }
            };
            let target = wanted.get(path).cloned().or(original.clone());
            if target != now || (!wanted.contains_key(path) && remembered.contains_key(path)) {
                changed = true;
                match wanted.get(path) {
                    Some(text) => memory.take(path, now.as_deref(), original.as_deref(), text)?,
                    None => memory.give_back(path)?,
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
            memory.persist()?;
            // The next boot loads what we have just written.
            if let Some(program) = plan.firewall
                && !firewall::loaded(memory.host())?.contains(&program)
            {
                modules::note(memory, program.module().0)?;
            }
        }
        Ok(reasons)
    }

    /// Leaves tunables out for interfaces that have as many queues as wanted without one: it
    /// would only cost a reboot.
    fn spare_tunables(&self, memory: &Backup, plan: &mut Plan) -> Result<(), BenchError> {
        if plan.queues.is_empty() {
            return Ok(());
        }
        let read = match memory.note(&format!("boot{LOADER}"))? {
            Some(read) => read,
            None => {
                let now = memory.read(LOADER)?;
                plan::at_boot(LOADER, now.as_deref(), &self.links)
            }
        };
        let is_said =
            |name: &String| read.lines().any(|line| line.starts_with(&format!("{name}=")));
        let host = memory.host();
        let needless: Vec<String> = plan
            .queues
            .iter()
            .filter(|(interface, (wanted, tunables))| {
                !tunables.iter().any(is_said)
                    && queues::found(host, interface).as_deref() == Some(wanted)
            })
            .flat_map(|(_, (_, tunables))| tunables.clone())
            .collect();
        // Some tunables are of both interfaces' adapter.
        let needed: BTreeSet<&String> = plan
            .queues
            .values()
            .flat_map(|(_, tunables)| tunables)
            .filter(|name| !needless.contains(name))
            .collect();
        plan.loader.retain(|name, _| !needless.contains(name) || needed.contains(name));
        Ok(())
    }

    /// Checks that no file that is read later overrides our settings silently.
    fn check_rc_local(&self, memory: &Backup, plan: &Plan) -> Result<(), BenchError> {
        if plan.governs(RC) || plan.governs(RC_LOCAL) {
            return Ok(());
        }
        let text = memory.read(RC_LOCAL)?.unwrap_or_default();
        let document = Document::parse(Format::Rc, &text);
        let ours = |name: &str| plan.rc.contains_key(name) || plan.lists.contains_key(name);
        match document.assignments().find(|(name, _)| ours(name)) {
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
            let (name, wanted) = (&link.interface, settings.dut.queues.to_string());
            let setting = format!("{name} queues");
            match queues::found(host, name) {
                Some(found) => findings.expect(&setting, &wanted, &found),
                None if plan.loader.is_empty() || settings.dut.queues == 1 => {
                    findings.facts.insert(setting, "not told by the driver".into());
                }
                None => findings.warnings.push(Warning::NotVerified {
                    setting,
                    wanted,
                    found: "not told by the driver".into(),
                }),
            }
        }
    }
}

/// What the loader has given the kernel of the experiment's `loader` (kenv(1)): a file that the
/// loader reads later, or does not read at all, shows here.
fn read_back_loader(
    host: &dyn Host,
    settings: &Settings,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    let wanted = &settings.dut.remote.loader;
    if wanted.is_empty() {
        return Ok(());
    }
    let all = host.run(&["kenv"], "")?;
    for (name, value) in wanted {
        let mut lines = all.lines().filter_map(|line| line.split_once('='));
        let found = lines.find(|(found, _)| found == name).map(|(_, found)| found.trim());
        let found = found.map(|found| found.trim_matches('"')).unwrap_or("unset");
        findings.expect(&format!("loader {name}"), value, found);
    }
    Ok(())
}

/// A firewall's rules are loaded without a reboot.
fn is_rules(path: &str) -> bool {
    firewall::Program::ALL.iter().any(|program| program.path() == path)
}

/// Difference between a file's contents at boot and now.
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
    fn prepare(&mut self, host: &dyn Host, settings: &Settings) -> Result<Prepared, BenchError> {
        let system = System::ask(host)?;
        let mut plan = Plan::new(settings, &self.links, &system)?;
        let memory = Backup::new(host, &system);
        if let Some(revision) = &settings.dut.remote.revision
            && let Some(why) =
                revision::prepare(host, &memory, &system, revision, &self.experiment)?
        {
            return Ok(Prepared::Reboot(vec![why]));
        }
        let mut reasons = self.files(&memory, &system, &mut plan)?;
        if settings.dut.remote.reboot != Reboot::Never {
            let pinned = fib::pinned(&memory, &plan)?.into_iter();
            reasons.extend(pinned.map(|name| format!("{name}: set by name, only a boot ends it")));
        }
        Ok(if reasons.is_empty() { Prepared::Ready } else { Prepared::Reboot(reasons) })
    }

    fn reboot(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        // Who can't be reached has not been told.
        host.run(&["true"], "")?;
        match host.run(&["shutdown", "-r", "now"], "") {
            // The connection went with it.
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
        let memory = Backup::new(host, &system);
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
        // An overlay's rc.conf may bring a firewall that no word of the experiment names.
        if plan.governs(RC) && settings.dut.firewall == Firewall::None {
            findings.facts.insert("firewall".into(), format!("as the overlay's {RC} says"));
        } else {
            firewall::apply(host, &memory, settings, findings)?;
        }
        apply::sysctls(host, &memory, &plan, findings)?;
        let bind = settings.dut.bind_queues || settings.dut.remote.bind_interrupts;
        interrupts::apply(host, &memory, &self.links, bind, findings)?;
        self.read_back_queues(host, &plan, settings, findings);
        read_back_loader(host, settings, findings)?;
        if plan.governs(LOADER) {
            findings.facts.insert("loader".into(), format!("the overlay's {LOADER}"));
        }
        Ok(())
    }

    /// Files stay as they are: what differs is put in force, and read back by
    /// [`Dut::verify`]. What only the other level sets goes back to what was found.
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
        let memory = Backup::new(host, &system);
        if from.dut.firewall != to.dut.firewall {
            firewall::switch(host, &memory, to)?;
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
            memory.remember_sysctl(name, found.trim())?;
            fib::before_setting(host, &memory, name, value)?;
            host.run(&["sysctl", &format!("{name}={value}")], "")?;
        }
        for name in old.keys().filter(|name| !new.contains_key(*name)) {
            // Still remembered: the other level sets it again.
            if let Some(found) = memory.sysctls()?.get(name) {
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
        let memory = Backup::new(host, &system);
        // Each is tried, whatever became of the others, unless the DUT is gone.
        let mut refusals = Vec::new();
        let mut note = |result: Result<(), BenchError>| match result {
            Err(BenchError::Program { why, command, .. }) => {
                refusals.push(format!("`{command}`: {}", why.trim()));
                Ok(())
            }
            other => other,
        };
        let files = memory.files()?;
        for path in files.keys() {
            note(memory.give_back(path))?;
        }
        if !files.is_empty() {
            note(memory.persist())?;
        }
        for program in firewall::loaded(host)? {
            if modules::is_noted(&memory, program.module().0)? {
                note(firewall::stop(host, program))?;
            }
        }
        for (name, value) in memory.sysctls()? {
            note(apply::put_back(host, &memory, &name, &value))?;
        }
        note(interrupts::apply(host, &memory, &self.links, false, &mut Findings::default()))?;
        note(modules::unload(host, &memory, |_| true).map(drop))?;
        match refusals.is_empty() {
            true => Ok(()),
            false => Err(BenchError::NotPutBack {
                host: host.name().to_owned(),
                why: refusals.join("; ").replace('\n', " "),
                instead: "",
                journal: memory.path(""),
            }),
        }
    }
}
