//! The testbed `vm`: a machine of QEMU on this machine, whose kernel is under test.
//!
//! If instructions are counted, the machine is emulated: time is meaningless, and the executed code
//! is known exactly ([`fwdlab_vm`]); packets arrive in lockstep over a pair of Unix sockets,
//! without any privilege. If a rate is measured, packets arrive over taps in namespaces, from the
//! senders of the testbed `netns`, and the CPU itself executes the machine if it can. The DUT
//! inside is the same as in laboratories, reached over ssh on a separate interface. A machine stays
//! up if the next variant boots the same; the number of machines kept is the number that alternate
//! by block.
//!
//! Limits: one CPU and one queue in lockstep; taps as root only.

mod ends;
mod executed;
mod lockstep;
mod machines;
mod taps;

pub use executed::executed;

use super::{Choice, Paths, Rig, Testbed};
use crate::cpu::Placement;
use crate::dut::router::Wires;
use crate::dut::undo::Undo;
use crate::dut::{self, Dut, DutContext, Preparation};
use crate::error::BenchError;
use crate::probe::{Cable, Privilege};
use crate::testbed::netns::Netns;
use crate::testbed::{Endpoints, LoadModel, Parts, RigLocation};
use crate::trial::{Clock, SystemClock};
use crate::{Observer, Task};
use ends::VmEnds;
use fwdlab_model::plan::Plan;
use fwdlab_model::settings::{Accel, DutKind, Reboot, Settings, TestbedKind};
use fwdlab_model::warning::Warning;
use fwdlab_vm::{VmError, machine};
use machines::{Machines, NicBackends, RunningMachine};
use std::path::{Path, PathBuf};
use taps::TapEnds;

/// perf's file, which is never written here.
const PERF: &str = "/dev/null";

/// The testbed.
pub struct Vm {
    // Machines end before the lock of this machine is released.
    machines: Machines,
    /// For rates: senders and receivers, and the lock of this machine.
    netns: Option<Netns>,
    experiment: PathBuf,
    choice: Choice,
}

impl Vm {
    /// Removes remains of ended processes' machines. A missing QEMU is reported when the first
    /// machine boots; for rates, this tests whether the CPU itself executes a guest.
    ///
    /// # Errors
    /// Returns an error if the cache directory cannot be created, or a requirement for rates is
    /// missing: root, taps, KVM if requested.
    pub fn open(plan: &Plan, privilege: &Privilege, paths: &Paths) -> Result<Vm, BenchError> {
        let mut machines = Machines::open(&paths.cache, &paths.experiment)?;
        let mut reasons = vec!["a machine of QEMU, as the experiment asks".to_owned()];
        let netns = match plan.base.testbed.vm.is_timed {
            true => {
                let mut netns = over_taps(plan, privilege, paths)?;
                netns.spread(plan)?;
                reasons.extend(netns.choice().reasons.iter().cloned());
                reasons.push(choose(plan, &mut machines)?);
                Some(netns)
            }
            false => {
                let text = "emulated: instructions are counted exactly, time means nothing";
                reasons.push(text.to_owned());
                None
            }
        };
        let choice = Choice { kind: TestbedKind::Vm, simulated: false, reasons };
        Ok(Vm { machines, netns, experiment: paths.experiment.clone(), choice })
    }
}

/// Opens senders and receivers on taps.
fn over_taps(plan: &Plan, privilege: &Privilege, paths: &Paths) -> Result<Netns, BenchError> {
    if *privilege != Privilege::Root {
        return Err(BenchError::environment(
            "the rate of a machine of QEMU is measured over taps in namespaces, which need root",
            "run as root, or leave `figure` out of [compare]: instructions are counted without \
             any privilege",
        ));
    }
    Netns::open(privilege, paths, plan.base.testbed.engine, Cable::Taps)
}

/// Chooses the accelerator of machines that leave it open; returns a sentence with the choice and
/// the reason.
fn choose(plan: &Plan, machines: &mut Machines) -> Result<String, BenchError> {
    let requested = || plan.variants.iter().map(|variant| variant.settings.testbed.vm.accel);
    let emulated = "EMULATED (TCG): the time of an emulated CPU is no time of a machine";
    if requested().all(|accel| accel == Accel::Tcg) {
        return Ok(format!("{emulated}, as the experiment asks"));
    }
    let guests = plan.variants.iter().map(|variant| &variant.settings);
    match machines.try_kvm(guests.filter(|guest| guest.testbed.vm.accel != Accel::Tcg)) {
        Ok(latency) => {
            machines.auto = machine::Accel::Kvm;
            let took = latency.as_millis();
            Ok(format!("KVM executes the machine: its guest answered within {took} ms"))
        }
        // The experiment requests KVM by name.
        Err(error) if requested().any(|accel| accel == Accel::Kvm) => Err(error),
        Err(error) => {
            machines.auto = machine::Accel::Tcg;
            let text = error.to_string();
            let why = text.split_once("\n  next step: ").map_or(text.as_str(), |(why, _)| why);
            Ok(format!("{emulated}; KVM does not work here: {why}"))
        }
    }
}

impl Vm {
    /// Opens a DUT of a kind in a machine.
    fn device<'a>(&'a self, kind: DutKind, up: &'a RunningMachine) -> Box<dyn Dut + 'a> {
        let context = DutContext {
            links: &up.links,
            experiment: &self.experiment,
            program: Path::new(""),
            keeper: &Undo,
            wires: &Wires::Sockets,
        };
        dut::open(kind, context)
    }
}

impl Testbed for Vm {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self, settings: &Settings) -> Placement {
        let of_guest = || Placement::of_dut(vec![0]);
        self.netns.as_ref().map_or_else(of_guest, |netns| netns.place(settings))
    }

    /// A lost machine is not queried again: the next run boots its own.
    fn recover(&mut self, _observer: &mut dyn Observer) -> Result<Option<String>, BenchError> {
        let boots = "the machine boots anew";
        Ok(Some(match self.machines.end_lost() {
            // A broken connection does not show the cause.
            Some(why) => format!("{why}; {boots}"),
            None => boots.to_owned(),
        }))
    }

    fn stand<'a>(
        &'a mut self,
        task: Task<'a>,
        observer: &mut dyn Observer,
    ) -> Result<Box<dyn Rig + 'a>, BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        if settings.dut.remote.reboot == Reboot::Always {
            self.machines.clear();
        }
        self.machines.boot(settings, self.netns.as_ref(), observer)?;
        let up = self.machines.last()?;
        let mut prepared = self.device(settings.dut.kind, up).prepare(&up.host, settings)?;
        if let Preparation::Reboot(reasons) = &prepared
            && !settings.dut.remote.loader.is_empty()
        {
            // The disk now contains the files for the loader.
            observer.step(&format!("rebooting: {}", reasons.join("; ")));
            self.machines.reboot_last()?;
            let up = self.machines.last()?;
            prepared = self.device(settings.dut.kind, up).prepare(&up.host, settings)?;
            if let Preparation::Reboot(reasons) = &prepared {
                return Err(BenchError::environment(
                    format!("the guest has rebooted and needs it again: {}", reasons.join("; ")),
                    "see that its loader reads /boot/loader.conf.local",
                ));
            }
        }
        if let Preparation::Reboot(reasons) = prepared {
            // A machine that boots from its image has the original settings.
            observer.step(&format!("rebooting: {}", reasons.join("; ")));
            self.machines.end_last();
            self.machines.boot(settings, self.netns.as_ref(), observer)?;
        }
        let up = self.machines.last()?;
        let dut = self.device(settings.dut.kind, up);
        let placement = Placement::of_dut(up.cpus());
        Ok(match (&self.netns, &up.ways) {
            (Some(netns), NicBackends::Taps(wiring)) => {
                let ends = TapEnds::new(netns, up, wiring, netns.place(settings))?;
                Box::new(VmRig { dut, up, placement, ends })
            }
            _ => {
                let ends = VmEnds::new(up, placement.clone());
                Box::new(VmRig { dut, up, placement, ends })
            }
        })
    }

    fn has_ceiling(&self) -> bool {
        false
    }

    fn calibration_key(&self, _settings: &Settings) -> String {
        "vm".to_owned()
    }
}

/// The machine of one run.
struct VmRig<'a, E> {
    dut: Box<dyn Dut + 'a>,
    up: &'a RunningMachine,
    /// CPUs as the guest numbers them.
    placement: Placement,
    ends: E,
}

/// Properties of a machine's ends for the rig.
trait MachineEnds: Endpoints {
    /// Clock of a trial.
    fn clock(&self) -> &dyn Clock;

    /// Load model of a sender at the maximum rate.
    const PRESSURE: LoadModel;
}

impl MachineEnds for VmEnds<'_> {
    /// Waiting is sending.
    fn clock(&self) -> &dyn Clock {
        self
    }

    const PRESSURE: LoadModel = LoadModel::Backpressured;
}

impl MachineEnds for TapEnds<'_> {
    fn clock(&self) -> &dyn Clock {
        &SystemClock
    }

    const PRESSURE: LoadModel = LoadModel::OpenLoop;
}

impl<E: MachineEnds> Rig for VmRig<'_, E> {
    fn parts(&mut self) -> Result<Parts<'_>, BenchError> {
        let ends = &self.ends;
        Ok(Parts {
            host: &self.up.host,
            machine: &self.up.host,
            dut: self.dut.as_mut(),
            links: &self.up.links,
            placement: &self.placement,
            ends,
            clock: ends.clock(),
            pressure: E::PRESSURE,
            reach: RigLocation::Remote { ahead_ns: 0 },
            perf_file: Path::new(PERF),
        })
    }

    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError> {
        Ok(Vec::new())
    }
}

/// Converts the error of a machine.
fn trouble(error: VmError) -> BenchError {
    let text = error.to_string();
    let (what, next) = text.split_once("\n  next step: ").unwrap_or((&text, "try it again"));
    BenchError::environment(what, next)
}
