//! `fwdlab count`: what a packet costs in a kernel, in instructions.
//!
//! Each kernel boots as a guest of QEMU, without privileges, and forwards batches in
//! lockstep while a plugin counts what it executes. Two kernels, or one before and after a
//! change, are set side by side function by function.

mod document;

use crate::error::CliError;
use crate::exit::Exit;
use crate::form::FormArguments;
use crate::names;
use crate::terminal;
use anyhow::Result;
use document::{Counted, Findings};
use fwdlab_bench::host::{Host, SshHost, SshSettings};
use fwdlab_packet::{Family, Flows};
use fwdlab_vm::forwarding::{self, GUEST_MACS, Question};
use fwdlab_vm::kernel::Kernel;
use fwdlab_vm::linux::{self, Guest, Running};
use fwdlab_vm::machine::{self, Accel, Model, Nic};
use fwdlab_vm::symbols::Symbols;
use fwdlab_vm::wire::Wire;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The guest's interfaces for traffic: the first is for administration.
const INTERFACES: [&str; 2] = ["eth1", "eth2"];
/// Memory of a guest in MiB.
const MEMORY: u32 = 384;
/// Time that a command in the guest may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// Count what forwarding a packet costs in a Linux kernel: instructions, by function.
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
  fwdlab count ~/linux --change 'sysctl -w net.ipv4.ip_early_demux=0'
  fwdlab count kernel.deb --change 'nft -f -' --input rules.nft --format markdown

Kernels come by `apt-get download linux-image-...`; a build tree has been built with
`make bzImage modules`, and its modules are looked for where
`make modules_install INSTALL_MOD_PATH=modules` puts them.")]
pub(crate) struct Arguments {
    /// A Debian package (linux-image-*.deb), a build tree, or an image; the first is what
    /// the others are held against
    #[arg(required = true, value_name = "KERNEL")]
    kernels: Vec<PathBuf>,
    /// Count again after this command of the guest's shell, in the same boot
    #[arg(long, value_name = "COMMAND")]
    change: Option<String>,
    /// A file that the command reads
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
    /// Functions to show
    #[arg(long, default_value_t = 25, value_name = "N")]
    functions: usize,
    #[command(flatten)]
    form: FormArguments,
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
    let cache = cache()?;
    let mut counted = Vec::new();
    for (number, path) in (0..).zip(&arguments.kernels) {
        let kernel = Kernel::find(path, &cache)?;
        let directory = machine::directory(&machines, number)?;
        let found = of_kernel(arguments, path, &kernel, &directory, &cache, &input);
        if found.is_err() {
            // A machine that has begun removes its own files.
            let _ = std::fs::remove_dir_all(&directory);
        }
        counted.extend(found?);
    }
    let findings = Findings::of(counted, arguments.family, arguments.batch);
    arguments.form.print(&document::document(&findings, arguments.functions))?;
    Ok(Exit::Done)
}

/// Boots a kernel and counts, once more after the change that is asked for.
fn of_kernel(
    arguments: &Arguments,
    path: &Path,
    kernel: &Kernel,
    directory: &Path,
    cache: &Path,
    input: &str,
) -> Result<Vec<Counted>> {
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let began = Instant::now();
    let wires = [Wire::bind(directory, 0)?, Wire::bind(directory, 1)?];
    let nics = GUEST_MACS.iter().zip(&wires).map(|(mac, wire)| Nic {
        model: Model::Virtio,
        mac: (*mac).to_owned(),
        queues: 1,
        gathers: true,
        backend: wire.backend(),
    });
    let guest = Guest {
        kernel,
        accel: Accel::Tcg,
        cpus: 1,
        memory: MEMORY,
        nics: nics.collect(),
        firewall: arguments.change.is_some(),
        append: "",
        cache,
    };
    terminal::note(&format!("booting {name}"));
    let running = guest.boot(directory)?;
    wires.iter().try_for_each(Wire::connect)?;
    let host = connect(&running)?;
    // What a change loads has symbols of its own.
    let symbols = || -> Result<Symbols> {
        Ok(Symbols::of_kallsyms(&host.run(&["cat", "/proc/kallsyms"], "")?))
    };
    let release = host.run(&["uname", "-r"], "")?.trim().to_owned();
    for words in forwarding::set_up(INTERFACES, arguments.family) {
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
    let count = |change: Option<&String>, symbols: &Symbols| -> Result<Counted> {
        // A connection that is open says now and then that it lives.
        host.close();
        match change {
            None => terminal::note(&format!("counting {release}")),
            Some(change) => terminal::note(&format!("counting {release} after `{change}`")),
        }
        let began = Instant::now();
        let ends = [&wires[0], &wires[1]];
        let answer = forwarding::measure(&running, ends, symbols, &question)?;
        Ok(Counted {
            file: name.clone(),
            change: change.cloned(),
            release: release.clone(),
            answer,
            ready,
            took: began.elapsed(),
        })
    };
    let mut counted = vec![count(None, &symbols()?)?];
    if let Some(change) = &arguments.change {
        host.run(&["sh", "-c", change], input)?;
        counted.push(count(Some(change), &symbols()?)?);
    }
    Ok(counted)
}

fn connect(running: &Running) -> Result<SshHost> {
    let settings = SshSettings {
        config: Some(running.ssh_config.clone()),
        deadline: DEADLINE,
        connect: Duration::from_secs(60),
        ..SshSettings::default()
    };
    Ok(SshHost::connect(linux::NAME, settings)?)
}

/// Where what is made once is kept: unpacked packages and the compiled plugin.
///
/// # Errors
/// When the user has no such place: it must be nobody else's, since QEMU loads the plugin.
pub(crate) fn cache() -> Result<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|path| !path.is_empty());
    let base = named("XDG_CACHE_HOME").map(PathBuf::from);
    let base = base.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")));
    let base = base.ok_or_else(|| {
        CliError::Environment(
            "neither HOME nor XDG_CACHE_HOME names a directory\n  next step: set one of them"
                .into(),
        )
    })?;
    let cache = base.join("fwdlab");
    std::fs::create_dir_all(&cache)
        .map_err(|error| CliError::Environment(format!("{}: {error}", cache.display())))?;
    Ok(cache)
}
