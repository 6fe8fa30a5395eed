//! Guests whose instructions are counted: kernels by their names, boots, commands, counts.

use super::compare::margin;
use crate::error::CliError;
use crate::verdict::FailOn;
use crate::{signal, state_dir, value_enum};
use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, FromArgMatches};
use fwdlab_bench::host::{Host, SshHost, SshSettings};
use fwdlab_bench::testbed::vm::executed;
use fwdlab_codediff::Build;
use fwdlab_model::record::Executed;
use fwdlab_packet::{Family, Flows};
use fwdlab_results::counts::Exact;
use fwdlab_results::report::analysis::{Compared, Outcome};
use fwdlab_vm::caches::CacheCosts;
use fwdlab_vm::calls::Calls;
use fwdlab_vm::forwarding::{self, GUEST_MACS, Question};
use fwdlab_vm::freebsd::{self, Image};
use fwdlab_vm::guest::{self, Common, CountOptions, RunningGuest, SymbolCache, System};
use fwdlab_vm::kernel::{self, Kernel};
use fwdlab_vm::linux;
use fwdlab_vm::machine::{self, Accel, Model, Nic};
use fwdlab_vm::wire::Wire;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Memory of a guest in MiB: Linux, then FreeBSD.
const MEMORY: [u32; 2] = [384, 512];
/// Timeout of a command in the guest.
const DEADLINE: Duration = Duration::from_secs(120);

/// Traffic that guests forward while they are counted.
#[derive(Debug, clap::Args)]
pub(crate) struct TrafficArguments {
    /// Address family
    #[arg(long, default_value = "inet", value_parser = value_enum::any::<Family>())]
    pub(crate) family: Family,
    /// Frame size in bytes, with FCS; raised to the smallest of the family (84 for inet6)
    #[arg(long, default_value_t = 64, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(64..=1518))]
    pub(crate) frame_size: u16,
    /// Number of flows, each with its own destination
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60_000))]
    pub(crate) flows: u32,
    /// Packets that the guest finds at the same time
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) batch: u16,
    /// Packets per burst
    #[arg(long, default_value_t = 1600, value_name = "N", value_parser = clap::value_parser!(u32).range(64..=1_000_000))]
    pub(crate) packets: u32,
    /// Number of bursts; results are medians over them
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) bursts: u32,
    /// Model of the guest's traffic NICs, if QEMU and the guest support it
    #[arg(long, default_value = "virtio", value_parser = card())]
    pub(crate) nic: Model,
}

impl TrafficArguments {
    /// The default traffic of a family.
    pub(crate) fn of(family: Family) -> TrafficArguments {
        let command = Self::augment_args(clap::Command::new("traffic"));
        let defaults = Self::from_arg_matches(&command.get_matches_from(["traffic"]));
        TrafficArguments { family, ..defaults.unwrap_or_else(|error| error.exit()) }
    }

    /// The options in words, by which stored counts are recognised.
    pub(crate) fn text(&self) -> String {
        let TrafficArguments { family, frame_size, flows, batch, packets, bursts, nic } = self;
        format!(
            "--family {family} --frame-size {frame_size} --flows {flows} --batch {batch} --packets \
             {packets} --bursts {bursts} --nic {}",
            nic.name()
        )
    }

    /// The traffic and the number of bursts.
    pub(crate) fn question(&self) -> Question {
        Question {
            family: self.family,
            frame_size: self.frame_size,
            flows: Flows { sources: 1, destinations: self.flows },
            batch: self.batch,
            batches: self.packets.div_ceil(u32::from(self.batch)),
            bursts: self.bursts,
            is_encrypted: false,
            has_answers: false,
            port_offset: 0,
        }
    }
}

/// Judgement of kernels that were counted.
#[derive(Debug, clap::Args)]
pub(crate) struct JudgementArguments {
    /// Difference that counts as equivalent, in per cent of the baseline's instructions [default:
    /// 2%]
    #[arg(long, value_name = "PERCENT", value_parser = margin)]
    margin: Option<f64>,
    /// Exit with code 1 if a comparison with the baseline is worse, that is, the kernel executes
    /// more instructions per packet than the margin allows
    #[arg(long, value_name = "WHAT")]
    pub(crate) fail_on: Option<FailOn>,
}

/// Margin of equivalence without `--margin`, as a ratio.
const MARGIN: f64 = 0.02;

impl JudgementArguments {
    /// Margin of equivalence as a ratio.
    pub(crate) fn margin(&self) -> f64 {
        self.margin.unwrap_or(MARGIN)
    }
}

/// Parses a NIC model by its name in QEMU and experiments.
fn card() -> impl TypedValueParser<Value = Model> {
    PossibleValuesParser::new(Model::ALL.map(Model::name)).try_map(|name| {
        Model::ALL.into_iter().find(|model| model.name() == name).ok_or("no such card")
    })
}

/// Removes remains of earlier guests, ends the guests of this process with it, and returns fwdlab's
/// cache directory.
///
/// # Errors
/// If there is no cache directory, or signals can't be handled.
pub(crate) fn prepare() -> Result<PathBuf> {
    let machines = std::env::temp_dir();
    machine::clean(&machines);
    let clear = move || {
        machine::clear(&machines);
    };
    signal::end_after(clear).context("listening to signals")?;
    let cache = state_dir::cache()?;
    machine::clean_cache(&cache);
    Ok(cache)
}

/// A kernel to boot.
pub(crate) struct Subject {
    /// Name of its file.
    pub(crate) name: String,
    kernel: Bootable,
}

enum Bootable {
    Linux(Kernel),
    /// A disk, and a kernel that replaces its own.
    FreeBsd(Image, Option<PathBuf>),
}

/// Finds all kernels to boot, in the order given; each disk of FreeBSD boots its own kernel and then
/// each of `freebsd_kernels`.
///
/// # Errors
/// If one of the paths is not a kernel.
pub(crate) fn subjects(
    kernels: &[PathBuf],
    freebsd_kernels: &[PathBuf],
    cache: &Path,
) -> Result<Vec<Subject>> {
    let subject = |path: &Path, kernel: Bootable| {
        let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        Subject { name, kernel }
    };
    let mut subjects = Vec::new();
    for path in &kernel::expand(kernels) {
        if !Image::is_one(path) {
            subjects.push(subject(path, Bootable::Linux(Kernel::find(path, cache)?)));
            continue;
        }
        let image = Image::find(path, cache)?;
        subjects.push(subject(path, Bootable::FreeBsd(image.clone(), None)));
        for kernel in freebsd_kernels {
            let other = Bootable::FreeBsd(image.clone(), Some(kernel.clone()));
            subjects.push(subject(kernel, other));
        }
    }
    let has_disk = subjects.iter().any(|one| one.system() == System::FreeBsd);
    if !freebsd_kernels.is_empty() && !has_disk {
        return Err(CliError::Mistake(
            "--kernel is for disks of FreeBSD, and none is given\n  next step: give kernels of \
             Linux by their names alone"
                .into(),
        )
        .into());
    }
    Ok(subjects)
}

/// Configuration of guests.
#[derive(Clone, Copy)]
pub(crate) struct GuestOptions<'a> {
    /// Model of the traffic NICs.
    pub(crate) nic: Model,
    /// Optional counts in addition to instructions.
    pub(crate) also: CountOptions,
    /// True if Linux guests may need more than plain forwarding.
    pub(crate) features: bool,
    /// fwdlab's cache directory.
    pub(crate) cache: &'a Path,
}

impl Subject {
    /// Operating system of the kernel.
    pub(crate) fn system(&self) -> System {
        match self.kernel {
            Bootable::Linux(_) => System::Linux,
            Bootable::FreeBsd(..) => System::FreeBsd,
        }
    }

    /// A kernel of Linux by its image, without modules.
    ///
    /// # Errors
    /// If it is no kernel.
    pub(crate) fn of_image(image: &Path, cache: &Path) -> Result<Subject> {
        let name = image.file_name().unwrap_or(image.as_os_str()).to_string_lossy().into_owned();
        Ok(Subject { name, kernel: Bootable::Linux(Kernel::find(image, cache)?) })
    }

    /// Loads the machine code of a kernel of Linux with the modules that its guests have; with
    /// `features`, also those that features need.
    ///
    /// # Errors
    /// If a file can't be read, or is not for x86-64.
    pub(crate) fn code(&self, features: bool) -> Result<Build> {
        let Bootable::Linux(kernel) = &self.kernel else {
            anyhow::bail!("{}: the machine code of FreeBSD can't be compared", self.name);
        };
        let mut build = Build::new(&self.name, &kernel.content()?)?;
        let [loaded, requested] = linux::modules(kernel, features, Model::Virtio)?;
        let mut known = BTreeSet::new();
        for (name, content) in loaded.iter().chain(&requested) {
            if known.insert(name) {
                build.add_module(name, content)?;
            }
        }
        Ok(build)
    }

    /// The files that it consists of.
    ///
    /// # Errors
    /// If they can't be listed.
    pub(crate) fn files(&self) -> Result<Vec<PathBuf>> {
        Ok(match &self.kernel {
            Bootable::Linux(kernel) => kernel.files()?,
            Bootable::FreeBsd(image, None) => vec![image.file.clone()],
            Bootable::FreeBsd(image, Some(kernel)) => match std::fs::read_dir(kernel) {
                // With its modules.
                Ok(entries) => {
                    let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
                    let mut files: Vec<PathBuf> = files.collect();
                    files.sort();
                    [vec![image.file.clone()], files].concat()
                }
                Err(_) => vec![image.file.clone(), kernel.clone()],
            },
        })
    }

    fn start(&self, options: GuestOptions<'_>, nics: Vec<Nic>) -> Result<RunningGuest> {
        /// Number of the next machine of this process.
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = machine::directory(&std::env::temp_dir(), number)?;
        let memory = match self.system() {
            System::Linux => MEMORY[0],
            System::FreeBsd => MEMORY[1],
        };
        let GuestOptions { also, features, cache, .. } = options;
        let log = format!("console-{number}.log");
        let (accel, cpus, log) = (Accel::Counted, 1, log.as_str());
        let common = Common { accel, cpus, memory, nics, also, cache, log };
        let running = match &self.kernel {
            Bootable::Linux(kernel) => linux::Guest { kernel, features, common }.boot(&directory),
            Bootable::FreeBsd(image, kernel) => {
                let kernel = kernel.as_deref();
                freebsd::Guest { image, kernel, common }.boot(&directory)
            }
        };
        if running.is_err() {
            // A guest that has started removes its own files.
            let _ = std::fs::remove_dir_all(&directory);
        }
        Ok(running?)
    }
}

/// A guest that forwards, ready to be counted.
pub(crate) struct CountedGuest {
    running: RunningGuest,
    wires: [Wire; 2],
    host: SshHost,
    symbols: SymbolCache,
    /// `uname -r`; of FreeBSD with the name of the configuration.
    pub(crate) release: String,
    /// `uname -v`.
    pub(crate) build: String,
    /// Time from the start to a guest that forwards.
    pub(crate) ready: Duration,
}

/// A kernel that could not be counted.
#[derive(serde::Serialize)]
pub(crate) struct Failed {
    pub(crate) kernel: String,
    pub(crate) why: String,
}

/// The numbers of a comparison by counts; `None` if it has no answer.
pub(crate) fn exact(compared: &Compared) -> Option<&Exact> {
    match &compared.outcome {
        Outcome::Counted(exact) => Some(exact),
        _ => None,
    }
}

/// Counts of one boot.
pub(crate) struct Boot {
    pub(crate) executed: Executed,
    /// Packets sent while counting, and the number lost of them.
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// `None` if calls were not followed.
    pub(crate) calls: Option<Calls>,
    /// `None` if caches were not modelled.
    pub(crate) caches: Option<CacheCosts>,
    /// Time from the start to a guest that forwards.
    pub(crate) ready: Duration,
    /// Time of the counting.
    pub(crate) took: Duration,
}

impl CountedGuest {
    /// Boots a kernel and makes it forward packets of `family`.
    ///
    /// # Errors
    /// If the guest doesn't boot or can't be set up.
    pub(crate) fn boot(
        subject: &Subject,
        options: GuestOptions<'_>,
        family: Family,
    ) -> Result<CountedGuest> {
        let began = Instant::now();
        let wires = [Wire::new(0)?, Wire::new(1)?];
        let nics = GUEST_MACS.iter().zip(&wires).map(|(mac, wire)| Nic {
            model: options.nic,
            mac: (*mac).to_owned(),
            queues: 1,
            backend: wire.backend(),
        });
        let running = subject.start(options, nics.collect())?;
        let host = connect(&running)?;
        let uname = match running.system {
            System::Linux => "-r",
            // With the name of its configuration.
            System::FreeBsd => "-ri",
        };
        let release = host.run(&["uname", uname], "")?.trim().to_owned();
        let build = host.run(&["uname", "-v"], "")?.trim().to_owned();
        let interfaces = running.interfaces.each_ref().map(String::as_str);
        for words in forwarding::set_up(running.system, interfaces, family) {
            host.run(&words.iter().map(String::as_str).collect::<Vec<_>>(), "")?;
        }
        let ready = began.elapsed();
        let symbols = SymbolCache::default();
        Ok(CountedGuest { running, wires, host, symbols, release, build, ready })
    }

    /// Interfaces for traffic: input and output.
    pub(crate) fn interfaces(&self) -> [&str; 2] {
        self.running.interfaces.each_ref().map(String::as_str)
    }

    /// Runs a command of the guest's shell; returns its output.
    ///
    /// # Errors
    /// If it fails.
    pub(crate) fn run(&self, command: &str, input: &str) -> Result<String> {
        Ok(self.host.run(&["sh", "-c", command], input)?)
    }

    /// Sends packets and counts. Calls `report` as [`forwarding::measure`] does.
    ///
    /// # Errors
    /// If the guest does not forward, or is gone.
    pub(crate) fn count(
        &self,
        question: &Question,
        report: &mut dyn FnMut(Option<u32>),
    ) -> Result<Boot> {
        let began = Instant::now();
        // A command may have loaded modules, which have their own symbols.
        let modules = self.host.run(guest::list_modules(self.running.system), "")?;
        let symbols = self.symbols.symbols(&self.running, modules)?;
        let ends = [&self.wires[0], &self.wires[1]];
        let answer = forwarding::measure(&self.running, ends, &symbols, question, report)?;
        let (calls, caches) = (answer.found.calls.clone(), answer.found.caches.clone());
        let batches = u64::from(question.batches) * u64::from(question.bursts);
        Ok(Boot {
            executed: executed(answer.found, question.batch, (answer.scattered, batches)),
            sent: answer.sent,
            lost: answer.lost,
            calls,
            caches,
            ready: self.ready,
            took: began.elapsed(),
        })
    }
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
