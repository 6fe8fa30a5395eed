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
use counters::Own;
use findings::Findings;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::record::{Counter, Counts, CpuTime, DropPlace};
use fwdlab_model::settings::{Directions, DutKind, Settings};
use restore::SettingRestorer;
use router::Wires;
use std::path::Path;

/// What is needed before a variant takes effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prepared {
    /// Nothing more.
    Ready,
    /// A reboot, for these reasons.
    Reboot(Vec<String>),
}

/// Counters of a DUT at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Of its machine: interfaces, queues, IP layer.
    pub machine: counters::Reading,
    /// Of the program that forwards, if any.
    pub own: Vec<Own>,
}

/// Packets of a trial by our own count, as the DUT's counters should show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Forwarded by the DUT, including damaged and duplicate packets.
    pub passed: Counts,
    /// The same at its interfaces: including packets from other senders and packets that the
    /// receiver dropped.
    pub at_interfaces: Counts,
    /// The ways that packets went.
    pub directions: Directions,
}

/// Packets that were lost between two readings.
#[derive(Clone, Copy, Debug)]
pub struct Loss<'a> {
    /// The reading before.
    pub before: &'a Reading,
    /// The reading after.
    pub after: &'a Reading,
    /// All packets lost, by our own count.
    pub total: Counts,
    /// Packets that the receiver dropped.
    pub receiver: u64,
    /// Settings of the variant.
    pub settings: &'a Settings,
}

/// A device under test; the methods are in the order in which a run calls them. A DUT may
/// reboot, so it does not own its host: each method is passed the current connection.
pub trait Dut {
    /// Writes what the DUT reads at boot: files, images, packages. Skips what is already in
    /// place.
    ///
    /// # Errors
    /// When a setting does not exist there or is refused.
    fn prepare(&mut self, _host: &dyn Host, _settings: &Settings) -> Result<Prepared, BenchError> {
        Ok(Prepared::Ready)
    }

    /// Reboots its machine. The connection may be lost.
    ///
    /// # Errors
    /// When it refuses; a lost connection is none.
    fn reboot(&mut self, host: &dyn Host) -> Result<(), BenchError> {
        match host.run(&["reboot"], "") {
            // The connection went with the machine.
            Ok(_) | Err(BenchError::Environment { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sets what holds without a reboot (interfaces, routes, neighbours, firewall,
    /// sysctls), or starts the program that forwards, and reads everything back.
    ///
    /// # Errors
    /// When a setting does not exist there or is refused, or the program does not start.
    fn configure(
        &mut self,
        host: &dyn Host,
        settings: &Settings,
        placement: &Placement,
        findings: &mut Findings,
    ) -> Result<(), BenchError>;

    /// Switches from one variant to another while traffic flows. Only what differs is
    /// touched.
    ///
    /// # Errors
    /// As [`Dut::configure`], and where nothing can be switched.
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

    /// Reads back what [`Dut::switch`] has just changed.
    ///
    /// # Errors
    /// When something can't be read.
    fn verify(
        &mut self,
        _host: &dyn Host,
        _from: &Settings,
        _to: &Settings,
        _findings: &mut Findings,
    ) -> Result<(), BenchError> {
        Ok(())
    }

    /// Resets what forwards while traffic flows, and configures it anew (RFC 6201); what was
    /// done, in words. None where that is not known to be possible: nothing was done then.
    ///
    /// # Errors
    /// As [`Dut::configure`].
    fn reset(
        &mut self,
        _host: &dyn Host,
        _settings: &Settings,
        _placement: &Placement,
        _findings: &mut Findings,
    ) -> Result<Option<String>, BenchError> {
        Ok(None)
    }

    /// True if it forwards as soon as [`Dut::configure`] returns.
    fn tells_when_ready(&self) -> bool {
        true
    }

    /// True when a program forwards, so that CPU time of programs is the DUT's own.
    fn is_program(&self) -> bool {
        false
    }

    /// Ids of the threads that forward, where this machine's kernel knows them: kernel
    /// threads that poll for it on its CPUs, or the program's. None where softirqs forward.
    fn threads(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Its counters as they are now.
    ///
    /// # Errors
    /// When they can't be read.
    fn read(&mut self, host: &dyn Host) -> Result<Reading, BenchError>;

    /// Packets of each queue of both interfaces; empty where a driver doesn't tell.
    fn queues(&self, _host: &dyn Host) -> counters::Reading {
        counters::Reading::new()
    }

    /// States that its firewall holds; none where it has none, or doesn't tell.
    fn states(&mut self, _host: &dyn Host, _settings: &Settings) -> Option<u64> {
        None
    }

    /// The same, exactly, of connections through it, however long counting takes: not while it
    /// is loaded.
    fn connections(&mut self, host: &dyn Host, settings: &Settings) -> Option<u64> {
        self.states(host, settings)
    }

    /// Removes all states of its firewall at once, and returns when they are gone; what was done,
    /// in words. None where that is not known to be possible: nothing was done then.
    ///
    /// # Errors
    /// When it refuses, or a program for it is missing.
    fn forget_states(
        &mut self,
        _host: &dyn Host,
        _settings: &Settings,
    ) -> Result<Option<String>, BenchError> {
        Ok(None)
    }

    /// Returns when there is room again for states that were removed: a device may take its time
    /// with it.
    ///
    /// # Errors
    /// When it can't be asked.
    fn await_room(&mut self, _host: &dyn Host, _settings: &Settings) -> Result<(), BenchError> {
        Ok(())
    }

    /// CPU times of its machine since boot; none where they can't be read.
    fn cpu_times(&self, host: &dyn Host) -> Vec<CpuTime> {
        cpu::times(&host.get("/proc/stat").unwrap_or_default())
    }

    /// Script of sh(1) that prints the CPU times once, for a machine that answers too late to
    /// be asked while it is overloaded; [`Dut::cpu_times_of`] reads the words.
    fn cpu_script(&self) -> Option<&'static str> {
        None
    }

    /// CPU times in what [`Dut::cpu_script`] printed; none when it is something else.
    fn cpu_times_of(&self, _text: &str) -> Vec<CpuTime> {
        Vec::new()
    }

    /// Counter differences between two readings, each with the value that our own count expects.
    fn compare(&self, before: &Reading, after: &Reading, totals: Totals) -> Vec<Counter>;

    /// Where packets were lost; the last place is the unexplained remainder. Empty if the DUT
    /// does not report drops.
    fn drops(&self, loss: &Loss<'_>) -> Vec<DropPlace>;

    /// Stops what was started for this run; settings stay until [`Dut::undo`].
    ///
    /// # Errors
    /// When a program had ended before, or does not end well.
    fn stop(&mut self, _host: &dyn Host) -> Result<(), BenchError> {
        Ok(())
    }

    /// Puts back what [`Dut::configure`] and [`Dut::prepare`] have changed, as far as files
    /// and sysctls go; images and packages stay. Safe to repeat, and safe when nothing was
    /// changed.
    ///
    /// # Errors
    /// [`BenchError::NotPutBack`] when a setting can't be restored: the others are, and its old
    /// value stays recorded. Other errors when the DUT can't be reached.
    fn undo(&mut self, _host: &dyn Host) -> Result<(), BenchError> {
        Ok(())
    }
}

/// Environment of a DUT: links, paths, and how settings are restored.
#[derive(Clone, Copy)]
pub struct DutContext<'a> {
    /// Its links.
    pub links: &'a Links,
    /// Directory of the experiment's files on this machine.
    pub experiment: &'a Path,
    /// Path of the fwdlab program on the DUT.
    pub program: &'a Path,
    /// Restores changed settings.
    pub keeper: &'a dyn SettingRestorer,
    /// How packets reach a program.
    pub wires: &'a Wires,
}

/// The DUT of a kind.
pub fn open<'a>(kind: DutKind, ground: DutContext<'a>) -> Box<dyn Dut + 'a> {
    match kind {
        DutKind::Linux => Box::new(linux::LinuxDut::new(ground)),
        DutKind::Freebsd => Box::new(freebsd::FreebsdDut::new(
            ground.links.clone(),
            ground.experiment.to_path_buf(),
        )),
        DutKind::Router => Box::new(router::RouterDut::new(ground)),
        DutKind::Command => Box::new(command::CommandDut::new(ground)),
    }
}
