//! `fwdlab count`: what a packet costs in a kernel, in instructions.
//!
//! Each kernel boots as a guest of QEMU, without privileges, and forwards batches in
//! lockstep while a plugin counts what it executes. Two kernels, or one before and after a
//! change, are set side by side function by function.

mod counted;
mod document;
mod findings;
mod graphs;
mod labels;
mod many;
mod misses;

use crate::error::CliError;
use crate::exit::Exit;
use crate::form::FormArguments;
use crate::names;
use crate::progress::Stage;
use crate::signal;
use crate::state;
use anyhow::{Context, Result, anyhow};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use counted::Counted;
use findings::{Failed, Findings};
use fwdlab_bench::host::{Host, SshHost, SshSettings};
use fwdlab_packet::{Family, Flows};
use fwdlab_vm::forwarding::{self, GUEST_MACS, Question};
use fwdlab_vm::freebsd::{self, Image};
use fwdlab_vm::guest::{self, Also, Common, Running, System};
use fwdlab_vm::kernel::{self, Kernel};
use fwdlab_vm::linux;
use fwdlab_vm::machine::{self, Accel, Model, Nic};
use fwdlab_vm::symbols::Symbols;
use fwdlab_vm::wire::Wire;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Memory of a guest in MiB: of Linux, and of FreeBSD.
const MEMORY: [u32; 2] = [384, 512];
/// Time that a command in the guest may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// Count what forwarding a packet costs in a kernel of Linux or FreeBSD: instructions, by
/// function.
///
/// The kernel boots in QEMU, emulated, and forwards packets in lockstep; a plugin counts
/// what it executes. That needs no privileges, does not depend on what else this machine
/// does, and totals repeat within 0.5 %, most functions to the instruction. Instructions are not time: caches, branches and
/// contention between CPUs are not in them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab count linux-image-6.1.0-50-cloud-amd64_6.1.176-1_amd64.deb
  fwdlab count old.deb new.deb
  fwdlab count kernels                             packages in a directory, the oldest first
  fwdlab count running 6.12.43+deb12-cloud-amd64   installed kernels
  fwdlab count ~/linux --change 'sysctl -w net.ipv4.ip_early_demux=0'
  fwdlab count kernel.deb --change 'nft -f -' --input rules.nft --format markdown
  fwdlab count kernel.deb --calls graphs
  fwdlab count kernel.deb --caches --change 'sh routes' --input routes.sh
  fwdlab count freebsd.qcow2 --change 'sysctl net.route.algo.inet.algo=radix4_lockless'
  fwdlab count freebsd.qcow2 --kernel /usr/obj/boot/kernel.mine
  fwdlab count kernel.deb --boots 3 --bursts 3 --functions 10
  fwdlab count kernels/*.deb --plot totals.svg --csv > totals.csv

A disk of FreeBSD (.raw, .img, .qcow2; also .zst) is never written; root must be let in on
its serial console without a password.

A kernel of Linux is a package (.deb of Debian and Ubuntu, .rpm of Fedora and openSUSE,
.pkg.tar.zst of Arch Linux, or what `make bindeb-pkg` and the like build), an installed kernel by
its release or `running`, a directory with /boot and /lib/modules, a build tree, or an image.
Packages that a kernel is divided into are found next to the one that is given; files that lie
elsewhere are given with commas between them (image.deb,modules.deb). `fwdlab kernels` lists and
fetches Debian's. A build tree has been built with `make bzImage modules`, and its modules are
looked for where `make modules_install INSTALL_MOD_PATH=modules` puts them.")]
pub(crate) struct Arguments {
    /// Kernels of Linux (packages, directories, releases of installed ones, `running`, build
    /// trees, images), or disks of FreeBSD; the first one is the baseline
    #[arg(required = true, value_name = "KERNEL")]
    kernels: Vec<PathBuf>,
    /// A kernel to boot the disks of FreeBSD with as well: a directory as below /boot, or
    /// one as .tar.zst; may be given several times
    #[arg(long, value_name = "PATH")]
    kernel: Vec<PathBuf>,
    /// Count again after this command of the guest's shell, in the same boot; may be given
    /// several times, one change after the other
    #[arg(long, value_name = "COMMAND")]
    change: Vec<String>,
    /// A file that the commands read
    #[arg(long, value_name = "FILE", requires = "change")]
    input: Option<PathBuf>,
    /// Address family
    #[arg(long, default_value = "inet", value_parser = names::any::<Family>())]
    family: Family,
    /// Frame size in bytes, with FCS; raised to the smallest of the family (84 for inet6)
    #[arg(long, default_value_t = 64, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(64..=1518))]
    frame_size: u16,
    /// Flows: as many destinations
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    flows: u32,
    /// Packets that the guest finds at once
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    batch: u16,
    /// Packets of a burst
    #[arg(long, default_value_t = 1600, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    packets: u32,
    /// Bursts, whose medians count
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    bursts: u32,
    /// Boot each kernel so many times, and show how well what is counted repeats
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    boots: u32,
    /// The guest's cards for traffic, as far as QEMU and the guest have them
    #[arg(long, default_value = "virtio", value_parser = card())]
    nic: Model,
    /// Follow who calls whom, and draw flame graphs into this directory; their stacks stand
    /// beside them in folded form
    #[arg(long, value_name = "DIRECTORY")]
    calls: Option<PathBuf>,
    /// Model caches, and count what they miss: how often code and data would not have been
    /// there. They are a model's, of no machine
    #[arg(long)]
    caches: bool,
    /// Draw the totals of the kernels into this file (SVG)
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Functions to show
    #[arg(long, default_value_t = 25, value_name = "N")]
    functions: usize,
    #[command(flatten)]
    form: FormArguments,
}

impl Arguments {
    fn also(&self) -> Also {
        Also { calls: self.calls.is_some(), caches: self.caches }
    }
}

/// Boots, counts, compares.
///
/// # Errors
/// When something is no kernel, a program is missing, or a guest does not forward.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let input = arguments.input.as_ref().map(|path| {
        std::fs::read_to_string(path)
            .map_err(|error| CliError::Mistake(format!("{}: {error}", path.display())))
    });
    let input = input.transpose()?.unwrap_or_default();
    let machines = std::env::temp_dir();
    machine::clean(&machines);
    let own = machines.clone();
    // Machines end with this process.
    let clear = move || {
        machine::clear(&own);
    };
    signal::end_after(clear).context("listening to signals")?;
    let cache = state::cache()?;
    machine::clean_cache(&cache);
    let (mut counted, mut failed) = (Vec::new(), Vec::new());
    let subjects = subjects(arguments, &cache)?;
    let boots = subjects.iter().flat_map(|one| (1..=arguments.boots).map(move |boot| (one, boot)));
    for (number, (subject, boot)) in (0..).zip(boots) {
        let directory = machine::directory(&machines, number)?;
        let found = of_kernel(arguments, (subject, boot), &directory, &cache, &input);
        if found.is_err() {
            // A machine that has begun removes its own files.
            let _ = std::fs::remove_dir_all(&directory);
        }
        match found {
            Ok(found) => counted.extend(found),
            // Of many kernels the others are counted all the same.
            Err(error) if subjects.len() > 2 => {
                failed.push(Failed { kernel: subject.0.clone(), why: format!("{error:#}") });
            }
            Err(error) => return Err(error),
        }
    }
    if let (true, Some(first)) = (counted.is_empty(), failed.first()) {
        return Err(anyhow!("{}: {}", first.kernel, first.why));
    }
    let drawn = match &arguments.calls {
        Some(directory) => graphs::write(counted.iter().filter_map(Counted::stacks), directory)?,
        None => Vec::new(),
    };
    let how = (arguments.family, arguments.batch, arguments.boots);
    let exit = if failed.is_empty() { Exit::Done } else { Exit::Environment };
    let findings = Findings { failed, ..Findings::of(counted, drawn, how) };
    if let Some(file) = &arguments.plot {
        let fail = || format!("{}: the plot can't be written there", file.display());
        std::fs::write(file, many::plot(&findings).wide).with_context(fail)?;
    }
    arguments.form.print(&document::document(&findings, arguments.functions))?;
    Ok(exit)
}

/// What is booted.
enum Subject {
    Linux(Kernel),
    /// A disk, and the kernel in place of its own.
    FreeBsd(Image, Option<PathBuf>),
}

/// Everything that is to be booted, with its name.
fn subjects(arguments: &Arguments, cache: &Path) -> Result<Vec<(String, Subject)>> {
    let name =
        |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let mut subjects = Vec::new();
    for path in &kernel::expand(&arguments.kernels) {
        if !Image::is_one(path) {
            subjects.push((name(path), Subject::Linux(Kernel::find(path, cache)?)));
            continue;
        }
        let image = Image::find(path, cache)?;
        subjects.push((name(path), Subject::FreeBsd(image.clone(), None)));
        for kernel in &arguments.kernel {
            let subject = Subject::FreeBsd(image.clone(), Some(kernel.clone()));
            subjects.push((name(kernel), subject));
        }
    }
    let has_disk = subjects.iter().any(|(_, subject)| matches!(subject, Subject::FreeBsd(..)));
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
    /// Boots it.
    fn boot(
        &self,
        arguments: &Arguments,
        nics: Vec<Nic>,
        directory: &Path,
        cache: &Path,
    ) -> Result<Running> {
        let memory = match self {
            Subject::Linux(_) => MEMORY[0],
            Subject::FreeBsd(..) => MEMORY[1],
        };
        let also = arguments.also();
        let common = Common { accel: Accel::Counted, cpus: 1, memory, nics, also, cache };
        let running = match self {
            Subject::Linux(kernel) => {
                let firewall = !arguments.change.is_empty();
                linux::Guest { kernel, firewall, common }.boot(directory)
            }
            Subject::FreeBsd(image, kernel) => {
                let kernel = kernel.as_deref();
                freebsd::Guest { image, kernel, common }.boot(directory)
            }
        };
        Ok(running?)
    }
}

/// Boots a kernel and counts, once more after each change that is asked for.
fn of_kernel(
    arguments: &Arguments,
    ((name, subject), boot): (&(String, Subject), u32),
    directory: &Path,
    cache: &Path,
    input: &str,
) -> Result<Vec<Counted>> {
    let began = Instant::now();
    let wires = [Wire::bind(directory, 0)?, Wire::bind(directory, 1)?];
    let nics = GUEST_MACS.iter().zip(&wires).map(|(mac, wire)| Nic {
        model: arguments.nic,
        mac: (*mac).to_owned(),
        queues: 1,
        gathers: true,
        backend: wire.backend(),
    });
    let mut stage = Stage::new();
    stage.begin(&format!("booting {name}"));
    let running = subject.boot(arguments, nics.collect(), directory, cache)?;
    wires.iter().try_for_each(Wire::connect)?;
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
    let ready = began.elapsed();
    let question = Question {
        family: arguments.family,
        frame_size: arguments.frame_size,
        flows: Flows { sources: 1, destinations: arguments.flows },
        batch: arguments.batch,
        batches: arguments.packets.div_ceil(u32::from(arguments.batch)),
        bursts: arguments.bursts,
    };
    let mut count = |change: Option<&String>, symbols: &Symbols| -> Result<Counted> {
        let after = change.map_or(String::new(), |change| format!(" after `{change}`"));
        stage.begin(&format!("counting {release}{after}"));
        let mut tell = |burst: Option<u32>| match burst {
            None => stage.detail("warming up"),
            Some(burst) => stage.detail(&format!("burst {burst} of {}", question.bursts)),
        };
        let began = Instant::now();
        let ends = [&wires[0], &wires[1]];
        let answer = forwarding::measure(&running, ends, symbols, &question, &mut tell)?;
        Ok(Counted {
            file: name.clone(),
            boot,
            change: change.cloned(),
            release: release.clone(),
            build: build.clone(),
            answer,
            ready,
            took: began.elapsed(),
        })
    };
    // What a change loads has symbols of its own.
    let mut counted = vec![count(None, &running.symbols()?)?];
    for change in &arguments.change {
        host.run(&["sh", "-c", change], input)?;
        counted.push(count(Some(change), &running.symbols()?)?);
    }
    Ok(counted)
}

/// Cards by the names that QEMU and experiments have for them.
fn card() -> impl TypedValueParser<Value = Model> {
    PossibleValuesParser::new(Model::ALL.map(Model::name)).try_map(|name| {
        Model::ALL.into_iter().find(|model| model.name() == name).ok_or("no such card")
    })
}

fn connect(running: &Running) -> Result<SshHost> {
    let settings = SshSettings {
        config: Some(running.ssh_config.clone()),
        deadline: DEADLINE,
        connect: Duration::from_secs(60),
        // Nothing is to stir while it is counted.
        alive: Duration::from_secs(24 * 60 * 60),
        one_shell: true,
        directory: Some(running.machine.directory().to_owned()),
        ..SshSettings::default()
    };
    Ok(SshHost::connect(guest::NAME, settings)?)
}
