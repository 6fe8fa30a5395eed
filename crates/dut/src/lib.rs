//! Devices under test. A DUT touches its machine only through a [`Host`].
//!
//! A kind of DUT is a folder or file here that implements [`Dut`], and a line in [`open`].

pub mod command;
pub mod counters;
pub mod cpu;
pub mod drop_accounting;
pub mod findings;
pub mod freebsd;
pub mod journal;
pub mod links;
pub mod linux;
pub mod program;
pub mod queues;
pub mod restore;
mod revision;
pub mod router;
pub mod routes;
pub mod undo;

use crate::cpu::Placement;
use crate::links::Links;
use counters::ProgramCounter;
use findings::Findings;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{Counter, Counts, CpuTime, DropPlace};
use fwdlab_model::settings::{Directions, DutKind, Settings};
use restore::SettingRestorer;
use router::Wires;
use std::path::Path;

/// Remaining steps before a variant takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// No further step.
    Ready,
    /// A reboot, for these reasons.
    Reboot(Vec<String>),
}

/// Counters of a DUT at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Counters of its machine: interfaces, queues, IP layer.
    pub machine: counters::Reading,
    /// Counters of the forwarding program, if any.
    pub own: Vec<ProgramCounter>,
}

/// Packets of a trial by fwdlab's own count, as the DUT's counters should report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Forwarded by the DUT, including damaged and duplicate packets.
    pub passed: Counts,
    /// The same at the DUT's interfaces, including packets from other senders and packets that the
    /// receiver dropped.
    pub at_interfaces: Counts,
    /// Directions of the traffic.
    pub directions: Directions,
}

/// Packets lost between two readings.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// Reading before the loss.
    pub before: &'a Reading,
    /// Reading after the loss.
    pub after: &'a Reading,
    /// All packets lost, by fwdlab's own count.
    pub total: Counts,
    /// Packets that the receiver dropped.
    pub receiver: u64,
    /// Settings of the variant.
    pub settings: &'a Settings,
}

/// A device under test; the methods are in the order in which a run calls them. A DUT may reboot,
/// so it does not own its host: each method receives the current connection.
pub trait Dut {
    /// Writes everything that the DUT reads at boot: files, images, packages. Skips items already
    /// in place.
    ///
    /// # Errors
    /// Fails if a setting does not exist on the DUT or is rejected.
    fn prepare(
        &mut self,
        _host: &dyn Host,
        _settings: &Settings,
    ) -> Result<Preparation, BenchError> {
        Ok(Preparation::Ready)
    }

    /// Reboots the DUT's machine. The connection may be lost.
    ///
    /// # Errors
    /// Fails if the machine rejects the command; a lost connection is not an error.
    fn reboot(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        match host.run(&["reboot"], "") {
            // The reboot closed the connection.
            Ok(_) | Err(BenchError::Environment { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Applies settings that need no reboot (interfaces, routes, neighbours, firewall, sysctls), or
    /// starts the forwarding program, and reads everything back.
    ///
    /// # Errors
    /// Fails if a setting does not exist on the DUT or is rejected, or if the program does not
    /// start.
    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError>;

    /// Switches from one variant to another while traffic flows. Changes only the differences.
    ///
    /// # Errors
    /// The errors of [`Dut::configure`]; fails if the DUT cannot be switched.
    fn switch(
        &mut self,
        host: &dyn Host,
        _from: &Settings,
        to: &Settings,
    ) -> Result<(), BenchError> {
        Err(BenchError::Refused(format!(
            "{}: a DUT of kind = \"{}\" can't be switched while traffic flows\n  next step: \
             remove `alternate` from [design]",
            host.name(),
            to.dut.kind.name()
        )))
    }

    /// Reads back the changes of [`Dut::switch`].
    ///
    /// # Errors
    /// Fails if a setting cannot be read.
    fn verify(
        &mut self,
        _host: &dyn Host,
        _from: &Settings,
        _to: &Settings,
        _findings: &mut Findings,
    ) -> Result<(), BenchError> {
        Ok(())
    }

    /// Resets the forwarding component while traffic flows and configures it again (RFC 6201);
    /// returns a description of the reset, or `None`, without doing anything, if the DUT does not
    /// support it.
    ///
    /// # Errors
    /// The errors of [`Dut::configure`].
    fn reset(
        &mut self,
        _host: &dyn Host,
        _settings: &Settings,
        _placement: &Placement,
        _findings: &mut Findings,
    ) -> Result<Option<String>, BenchError> {
        Ok(None)
    }

    /// True if the DUT forwards as soon as [`Dut::configure`] returns.
    fn tells_when_ready(&self) -> bool {
        true
    }

    /// True if a program forwards, so that CPU time of programs is the DUT's own.
    fn is_program(&self) -> bool {
        false
    }

    /// Ids of the forwarding threads, if this machine's kernel knows them: kernel threads that poll
    /// for the DUT on its CPUs, or the program's threads. Empty if softirqs forward.
    fn threads(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Reads the DUT's counters.
    ///
    /// # Errors
    /// Fails if the counters cannot be read.
    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError>;

    /// Packets of each queue of both interfaces; empty if a driver does not report them.
    fn queues(&self, _host: &dyn Host) -> counters::Reading {
        counters::Reading::new()
    }

    /// Number of states in the DUT's firewall; `None` without a firewall, or if it does not report
    /// the number.
    fn states(&mut self, _host: &dyn Host, _settings: &Settings) -> Option<u64> {
        None
    }

    /// Exact number of states of connections through the DUT, however long counting takes; not for
    /// use under load.
    fn connections(&mut self, host: &dyn Host, settings: &Settings) -> Option<u64> {
        self.states(host, settings)
    }

    /// Removes all states of the DUT's firewall and returns after they are gone, with a description
    /// of the action; returns `None`, without doing anything, if the DUT does not support it.
    ///
    /// # Errors
    /// Fails if the command is rejected or its program is missing.
    fn forget_states(
        &mut self,
        _host: &dyn Host,
        _settings: &Settings,
    ) -> Result<Option<String>, BenchError> {
        Ok(None)
    }

    /// Waits until there is room again for states that were removed: a device may take some time
    /// for it.
    ///
    /// # Errors
    /// Fails if the device cannot be queried.
    fn await_room(&mut self, _host: &dyn Host, _settings: &Settings) -> Result<(), BenchError> {
        Ok(())
    }

    /// CPU times of the DUT's machine since boot; empty if they cannot be read.
    fn cpu_times(&self, host: &dyn Host) -> Vec<CpuTime> {
        cpu::times(&host.get("/proc/stat").unwrap_or_default())
    }

    /// Script of sh(1) that prints the CPU times once, for a machine that answers too slowly under
    /// overload to be queried; [`Dut::cpu_times_of`] parses the output.
    fn cpu_script(&self) -> Option<&'static str> {
        None
    }

    /// CPU times from the output of [`Dut::cpu_script`]; empty for other text.
    fn cpu_times_of(&self, _text: &str) -> Vec<CpuTime> {
        Vec::new()
    }

    /// Counter differences between two readings, each with the value expected from fwdlab's own
    /// counts.
    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter>;

    /// Places where packets were lost; the last one is the unexplained remainder. Empty if the DUT
    /// does not report drops.
    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace>;

    /// Stops programs that were started for this run; settings stay until [`Dut::undo`].
    ///
    /// # Errors
    /// Fails if a program had exited before, or exits with an error.
    fn stop(&mut self, _host: &dyn Host) -> Result<(), BenchError> {
        Ok(())
    }

    /// Restores the files and sysctls that [`Dut::configure`] and [`Dut::prepare`] have changed;
    /// images and packages stay. Idempotent, and safe if nothing was changed.
    ///
    /// # Errors
    /// [`BenchError::NotPutBack`] if a setting cannot be restored: the others are, and its old
    /// value stays recorded. Other errors if the DUT cannot be reached.
    fn undo(&mut self, _host: &dyn Host) -> Result<(), BenchError> {
        Ok(())
    }
}

/// Environment of a DUT: links, paths, and the restorer of settings.
#[derive(Clone, Copy)]
pub struct DutContext<'a> {
    /// Links of the DUT.
    pub links: &'a Links,
    /// Directory of the experiment's files on this machine.
    pub experiment: &'a Path,
    /// Path of the fwdlab program on the DUT.
    pub program: &'a Path,
    /// Restores changed settings.
    pub keeper: &'a dyn SettingRestorer,
    /// Connection that carries packets to a program.
    pub wires: &'a Wires,
}

/// Opens a DUT of this kind.
pub fn open<'a>(kind: DutKind, context: DutContext<'a>) -> Box<dyn Dut + 'a> {
    match kind {
        DutKind::Linux => Box::new(linux::LinuxDut::new(context)),
        DutKind::Freebsd => Box::new(freebsd::FreebsdDut::new(
            context.links.clone(),
            context.experiment.to_path_buf(),
        )),
        DutKind::Router => Box::new(router::RouterDut::new(context)),
        DutKind::Command => Box::new(command::CommandDut::new(context)),
    }
}
