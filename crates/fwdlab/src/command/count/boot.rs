//! Kernels as guests: boots them, sets up forwarding and counts instructions.

use super::Arguments;
use super::state::{Boot, State};
use crate::error::CliError;
use crate::progress::Stage;
use anyhow::Result;
use fwdlab_bench::host::{Host, SshHost, SshSettings};
use fwdlab_bench::testbed::vm::executed;
use fwdlab_packet::Flows;
use fwdlab_vm::forwarding::{self, GUEST_MACS, Question};
use fwdlab_vm::freebsd::{self, Image};
use fwdlab_vm::guest::{self, Common, CountOptions, RunningGuest, System};
use fwdlab_vm::kernel::{self, Kernel};
use fwdlab_vm::linux;
use fwdlab_vm::machine::{Accel, Nic};
use fwdlab_vm::wire::Wire;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Memory of a guest in MiB: Linux, then FreeBSD.
const MEMORY: [u32; 2] = [384, 512];
/// Timeout of a command in the guest.
const DEADLINE: Duration = Duration::from_secs(120);

/// A kernel to boot.
pub(super) struct Subject {
    /// Name of its file.
    pub(super) name: String,
    kernel: Bootable,
}

enum Bootable {
    Linux(Kernel),
    /// A disk, and a kernel that replaces its own.
    FreeBsd(Image, Option<PathBuf>),
}

/// All kernels to boot, in the order given.
///
/// # Errors
/// If one of the paths is not a kernel.
pub(super) fn subjects(arguments: &Arguments, cache: &Path) -> Result<Vec<Subject>> {
    let subject = |path: &Path, kernel: Bootable| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Subject { name, kernel }
    };
    let mut subjects = Vec::new();
    for path in &kernel::expand(&arguments.kernels) {
        if !Image::is_one(path) {
            subjects.push(subject(path, Bootable::Linux(Kernel::find(path, cache)?)));
            continue;
        }
        let image = Image::find(path, cache)?;
        subjects.push(subject(path, Bootable::FreeBsd(image.clone(), None)));
        for kernel in &arguments.kernel {
            let other = Bootable::FreeBsd(image.clone(), Some(kernel.clone()));
            subjects.push(subject(kernel, other));
        }
    }
    let has_disk = subjects.iter().any(|one| matches!(one.kernel, Bootable::FreeBsd(..)));
    if !arguments.kernel.is_empty() && !has_disk {
        return Err(CliError::Mistake(
            "--kernel is for disks of FreeBSD, and none is given\n  next step: give kernels of \
             Linux by their names alone"
                .into(),
        )
        .into());
    }
    Ok(subjects)
}

impl Subject {
    fn boot(
        &self,
        arguments: &Arguments,
        nics: Vec<Nic>,
        directory: &Path,
        cache: &Path,
    ) -> Result<RunningGuest> {
        let memory = match self.kernel {
            Bootable::Linux(_) => MEMORY[0],
            Bootable::FreeBsd(..) => MEMORY[1],
        };
        let also = CountOptions { calls: arguments.calls.is_some(), caches: arguments.caches };
        let common = Common { accel: Accel::Counted, cpus: 1, memory, nics, also, cache };
        let running = match &self.kernel {
            Bootable::Linux(kernel) => {
                let firewall = !arguments.change.is_empty() || !arguments.under.is_empty();
                linux::Guest { kernel, firewall, common }.boot(directory)
            }
            Bootable::FreeBsd(image, kernel) => {
                let kernel = kernel.as_deref();
                freebsd::Guest { image, kernel, common }.boot(directory)
            }
        };
        Ok(running?)
    }
}

/// Boots a kernel once and counts: under the commands of `--under`, and again after each change.
///
/// # Errors
/// If the guest doesn't boot, a command fails, or nothing is forwarded.
pub(super) fn count(
    arguments: &Arguments,
    subject: &Subject,
    directory: &Path,
    cache: &Path,
    input: &str,
) -> Result<Vec<State>> {
    let began = Instant::now();
    let wires = [Wire::new(0)?, Wire::new(1)?];
    let nics = GUEST_MACS.iter().zip(&wires).map(|(mac, wire)| Nic {
        model: arguments.nic,
        mac: (*mac).to_owned(),
        queues: 1,
        backend: wire.backend(),
    });
    let mut stage = Stage::new();
    stage.begin(&format!("booting {}", subject.name));
    let running = subject.boot(arguments, nics.collect(), directory, cache)?;
    let host = connect(&running)?;
    let uname = match running.system {
        System::Linux => "-r",
        // With the name of its configuration.
        System::FreeBsd => "-ri",
    };
    let release = host.run(&["uname", uname], "")?.trim().to_owned();
    let build = host.run(&["uname", "-v"], "")?.trim().to_owned();
    let interfaces = running.interfaces.each_ref().map(String::as_str);
    for words in forwarding::set_up(running.system, interfaces, arguments.family) {
        host.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
    }
    let question = Question {
        family: arguments.family,
        frame_size: arguments.frame_size,
        flows: Flows { sources: 1, destinations: arguments.flows },
        batch: arguments.batch,
        batches: arguments.packets.div_ceil(u32::from(arguments.batch)),
        bursts: arguments.bursts,
    };
    for command in &arguments.under {
        host.run(&["sh", "-c", command], input)?;
    }
    let ready = began.elapsed();
    let changes = arguments.change.iter().map(Some);
    let mut states = Vec::new();
    for change in std::iter::once(None).chain(changes) {
        if let Some(command) = change {
            host.run(&["sh", "-c", command], input)?;
        }
        let after = change.map_or(String::new(), |change| format!(" after `{change}`"));
        stage.begin(&format!("counting {release}{after}"));
        let mut observe = |burst: Option<u32>| match burst {
            None => stage.detail("warming up"),
            Some(burst) => stage.detail(&format!("burst {burst} of {}", question.bursts)),
        };
        let began = Instant::now();
        // A command may load modules, which have their own symbols.
        let symbols = running.symbols()?;
        let ends = [&wires[0], &wires[1]];
        let answer = forwarding::measure(&running, ends, &symbols, &question, &mut observe)?;
        let (calls, caches) = (answer.found.calls.clone(), answer.found.caches.clone());
        let batches = u64::from(question.batches) * u64::from(question.bursts);
        let boot = Boot {
            executed: executed(answer.found, question.batch, (answer.scattered, batches)),
            sent: answer.sent,
            lost: answer.lost,
            calls,
            caches,
            ready,
            took: began.elapsed(),
        };
        states.push(State {
            file: subject.name.clone(),
            change: change.cloned(),
            release: release.clone(),
            build: build.clone(),
            boots: vec![boot],
        });
    }
    Ok(states)
}

fn connect(running: &RunningGuest) -> Result<SshHost> {
    let settings = SshSettings {
        config: Some(running.ssh_config.clone()),
        deadline: DEADLINE,
        connect: Duration::from_secs(60),
        // Nothing may run in the guest while it is counted.
        alive: Duration::from_secs(24 * 60 * 60),
        one_shell: true,
        directory: Some(running.machine.directory().to_owned()),
        ..SshSettings::default()
    };
    Ok(SshHost::connect(guest::NAME, settings)?)
}
