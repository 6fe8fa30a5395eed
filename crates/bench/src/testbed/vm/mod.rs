//! The testbed `vm`: a machine of QEMU on this machine, whose kernel is under test.
//!
//! The machine is emulated, so that time means nothing and what it executes can be counted
//! exactly ([`fwdlab_vm`]). Packets come in lockstep over a pair of Unix sockets, without any
//! privilege; the DUT inside is the same that laboratories have, reached over ssh on an
//! interface of its own. A machine stays up while the next variant boots the same; as many
//! as alternate by block are kept.
//!
//! Limits: no rates (the CPU itself executes no machine here), one CPU in lockstep.

mod ends;
mod lockstep;
mod machines;

use super::{Choice, Paths, Rig, Testbed};
use crate::cpu::Placement;
use crate::dut::router::Wires;
use crate::dut::undo::Undo;
use crate::dut::{self, Dut, Ground, Prepared};
use crate::error::BenchError;
use crate::testbed::{LoadModel, Parts, Reach};
use crate::{Observer, Task};
use ends::VmEnds;
use fwdlab_model::plan::Plan;
use fwdlab_model::settings::{DutKind, Reboot, Settings, TestbedKind};
use fwdlab_model::warning::Warning;
use fwdlab_vm::VmError;
use machines::{Machines, Up};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// perf's file, which nobody writes here.
const PERF: &str = "/dev/null";

/// The testbed.
pub struct Vm {
    machines: Machines,
    placement: Placement,
    experiment: PathBuf,
    choice: Choice,
}

impl Vm {
    /// Removes what machines of processes that are gone have left. Whether there is a QEMU
    /// shows when the first machine boots.
    ///
    /// # Errors
    /// When the directory of what is made once can't be made.
    pub fn open(_plan: &Plan, paths: &Paths) -> Result<Vm, BenchError> {
        let machines = Machines::open(&paths.cache, &paths.experiment)?;
        let reasons = vec![
            "a machine of QEMU, as the experiment asks".to_owned(),
            "emulated: instructions are counted exactly, time means nothing".to_owned(),
        ];
        let choice = Choice { kind: TestbedKind::Vm, simulated: false, reasons };
        let placement = Placement::of_dut(vec![0]);
        Ok(Vm { machines, placement, experiment: paths.experiment.clone(), choice })
    }
}

impl Vm {
    /// A DUT of a kind in a machine.
    fn device<'a>(&'a self, kind: DutKind, up: &'a Up) -> Box<dyn Dut + 'a> {
        let ground = Ground {
            links: &up.links,
            experiment: &self.experiment,
            program: Path::new(""),
            keeper: &Undo,
            wires: &Wires::Sockets,
        };
        dut::open(kind, ground)
    }
}

impl Testbed for Vm {
    fn choice(&self) -> &Choice {
        &self.choice
    }

    fn place(&self, _settings: &Settings) -> Placement {
        self.placement.clone()
    }

    /// A machine that was lost is not asked again: the next run boots its own.
    fn recover(&mut self, _observer: &mut dyn Observer) -> Result<Option<String>, BenchError> {
        let boots = "the machine boots anew";
        Ok(Some(match self.machines.end_lost() {
            // A connection that broke does not say why.
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
        self.machines.boot(settings, observer)?;
        let up = self.machines.last()?;
        let mut prepared = self.device(settings.dut.kind, up).prepare(&up.host, settings)?;
        if let Prepared::Reboot(reasons) = &prepared
            && !settings.dut.remote.loader.is_empty()
        {
            // What its loader is to read stands on its disk now.
            observer.step(&format!("rebooting: {}", reasons.join("; ")));
            self.machines.reboot_last()?;
            let up = self.machines.last()?;
            prepared = self.device(settings.dut.kind, up).prepare(&up.host, settings)?;
            if let Prepared::Reboot(reasons) = &prepared {
                return Err(BenchError::environment(
                    format!("the guest has rebooted and needs it again: {}", reasons.join("; ")),
                    "see that its loader reads /boot/loader.conf.local",
                ));
            }
        }
        if let Prepared::Reboot(reasons) = prepared {
            // What is to be as it was found is so in a machine that boots from its image.
            observer.step(&format!("booting anew: {}", reasons.join("; ")));
            self.machines.end_last();
            self.machines.boot(settings, observer)?;
        }
        let up = self.machines.last()?;
        Ok(Box::new(VmRig {
            dut: self.device(settings.dut.kind, up),
            ends: VmEnds { up, placement: &self.placement, pump: RefCell::new(None) },
        }))
    }

    fn has_ceiling(&self) -> bool {
        false
    }

    fn calibration_key(&self, _settings: &Settings) -> String {
        "vm".to_owned()
    }
}

/// The machine of one run.
struct VmRig<'a> {
    dut: Box<dyn Dut + 'a>,
    ends: VmEnds<'a>,
}

impl Rig for VmRig<'_> {
    fn parts(&mut self) -> Result<Parts<'_>, BenchError> {
        let ends = &self.ends;
        Ok(Parts {
            host: &ends.up.host,
            machine: &ends.up.host,
            dut: self.dut.as_mut(),
            links: &ends.up.links,
            placement: ends.placement,
            ends,
            clock: ends,
            pressure: LoadModel::Backpressured,
            reach: Reach::Remote { ahead_ns: 0 },
            perf_file: Path::new(PERF),
        })
    }

    fn down(self: Box<Self>) -> Result<Vec<Warning>, BenchError> {
        Ok(Vec::new())
    }
}

/// The error of a machine in the words of the laboratory.
fn trouble(error: VmError) -> BenchError {
    let text = error.to_string();
    let (what, next) = text.split_once("\n  next step: ").unwrap_or((&text, "try it again"));
    BenchError::environment(what, next)
}
