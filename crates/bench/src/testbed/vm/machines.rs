//! Machines that are up, by what they boot.

use super::trouble;
use crate::Observer;
use crate::dut::Dut;
use crate::dut::freebsd::FreebsdDut;
use crate::dut::freebsd::system::Boot;
use crate::error::BenchError;
use crate::host::{Host, SshHost, SshSettings};
use crate::links::{Link, Links, Peer, ProtectedRoute, mac, prefix};
use crate::testbed::netns::Netns;
use crate::wiring::Wiring;
use fwdlab_model::settings::{self, DutKind, Nat, Settings, VmSettings};
use fwdlab_vm::freebsd::{self, Image};
use fwdlab_vm::guest::{self, Common, CountOptions, Running, System};
use fwdlab_vm::kernel::{self, Kernel};
use fwdlab_vm::machine::{self, Accel, Backend, Model, Nic};
use fwdlab_vm::symbols::Symbols;
use fwdlab_vm::wire::Wire;
use fwdlab_vm::{VmError, linux, probe};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Machines that stay up at a time: two kernels alternate by block.
const KEPT: usize = 2;
/// Time that a command may take in a machine that is emulated.
const DEADLINE: Duration = Duration::from_secs(120);
/// Time for a reboot in emulation, beside other work.
const BOOT: Duration = Duration::from_secs(600);
/// Time after which a connection says that it lives: longer than any run.
const SILENT: Duration = Duration::from_secs(24 * 60 * 60);
/// The network for administration, which exists in QEMU only.
const ADMIN: &str = "192.0.2.0/24";

/// The machines.
pub(super) struct Machines {
    up: Vec<Up>,
    /// Where their files are while they run.
    parent: PathBuf,
    /// Where the plugin and unpacked kernels are kept.
    cache: PathBuf,
    /// Directory of the experiment's files.
    experiment: PathBuf,
    booted: u32,
    /// Whether the machine that was asked for last is up.
    is_up: bool,
    /// What executes a machine whose variant leaves that open.
    pub(super) auto: Accel,
}

impl Machines {
    /// None yet; what processes that are gone have left is removed.
    pub(super) fn open(cache: &Path, experiment: &Path) -> Result<Machines, BenchError> {
        let parent = std::env::temp_dir();
        machine::clean(&parent);
        machine::clean_cache(cache);
        let made = std::fs::create_dir_all(cache);
        made.map_err(|source| BenchError::File {
            path: cache.display().to_string(),
            host: "this machine".into(),
            source,
        })?;
        let (cache, experiment) = (cache.to_owned(), experiment.to_owned());
        Ok(Machines {
            up: Vec::new(),
            parent,
            cache,
            experiment,
            booted: 0,
            is_up: false,
            auto: Accel::Counted,
        })
    }

    /// Whether the CPU itself executes guests, found out by booting a small one, and then those
    /// that are to be measured: one that is itself executed by a KVM may know a small guest's
    /// instructions, and not those of a loader or of a kernel for several CPUs. Returns how long
    /// the last one took until it answered.
    ///
    /// # Errors
    /// Why it does not.
    pub(super) fn try_kvm<'s>(
        &mut self,
        guests: impl Iterator<Item = &'s Settings>,
    ) -> Result<Duration, BenchError> {
        let small = |_: &Machines, directory: &Path, _| {
            probe::executes(Accel::Kvm, directory).map_err(trouble)
        };
        let mut took = self.tried(small)?;
        let mut known = Vec::new();
        for settings in guests {
            // Without taps, which have as many queues as are asked for.
            let what = What { queues: 1, ..What::of(settings, Accel::Kvm) };
            if known.contains(&what) {
                continue;
            }
            known.push(what.clone());
            took = self.tried(|machines, directory, number| {
                let began = Instant::now();
                machines.up(what, number, None, directory).map(|_| began.elapsed())
            })?;
        }
        Ok(took)
    }

    /// What a guest does in a directory of its own.
    fn tried<T>(
        &mut self,
        guest: impl FnOnce(&Machines, &Path, u32) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let number = self.booted;
        let directory = machine::directory(&self.parent, number).map_err(trouble)?;
        self.booted += 1;
        let tried = guest(self, &directory, number);
        // What is left is removed by the next start.
        let _ = std::fs::remove_dir_all(&directory);
        tried
    }

    /// Ends all of them.
    pub(super) fn clear(&mut self) {
        self.up.clear();
    }

    /// Ends the last one.
    pub(super) fn end_last(&mut self) {
        self.up.pop();
    }

    /// Ends the machine of a run that failed, unless the one that was to boot did not come up;
    /// returns what became of its guest, where nobody was told.
    pub(super) fn end_lost(&mut self) -> Option<String> {
        let lost = if self.is_up { self.up.pop() } else { None };
        lost.filter(|up| !up.told.get())?.died().map(|error| error.to_string())
    }

    /// The last one.
    pub(super) fn last(&self) -> Result<&Up, BenchError> {
        self.up.last().ok_or_else(|| BenchError::Refused("no machine is up".into()))
    }

    /// Boots what a variant wants, unless it is up; it is the last one then.
    ///
    /// # Errors
    /// When a kernel or program is missing, or the machine does not come up.
    pub(super) fn boot(
        &mut self,
        settings: &Settings,
        netns: Option<&Netns>,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        let what = What::of(settings, self.auto);
        if let Some(at) = self.up.iter().position(|up| up.what == what) {
            let up = self.up.remove(at);
            self.up.push(up);
            self.is_up = true;
            return Ok(());
        }
        self.is_up = false;
        // Before the next one, which needs the memory.
        while self.up.len() >= KEPT {
            self.up.remove(0);
        }
        observer.step(&format!("booting {}", what.name()));
        let directory = machine::directory(&self.parent, self.booted).map_err(trouble)?;
        let number = self.booted;
        self.booted += 1;
        let up = self.up(what, number, netns, &directory);
        if up.is_err() {
            // A machine that has begun removes its own files.
            let _ = std::fs::remove_dir_all(&directory);
        }
        self.up.push(up?);
        self.is_up = true;
        Ok(())
    }

    fn up(
        &self,
        what: What,
        number: u32,
        netns: Option<&Netns>,
        directory: &Path,
    ) -> Result<Up, BenchError> {
        let (ways, backends, taps) = ways(&what, number, netns, directory)?;
        let macs = [mac::INGRESS, mac::EGRESS];
        let nics = macs.iter().zip(backends).map(|(&own, backend)| Nic {
            model: model(what.vm.nic),
            mac: mac::text(own),
            queues: what.queues,
            gathers: what.accel == Accel::Counted,
            backend,
        });
        let running = self.running(&what, nics.collect(), directory).map_err(trouble)?;
        // QEMU alone has them from now on: they go with it.
        drop(taps);
        if let NicBackends::Sockets(wires) = &ways {
            wires.iter().try_for_each(Wire::connect).map_err(trouble)?;
        }
        let host = SshHost::connect(guest::NAME, ssh(&running))?;
        let release = host.run(&["uname", "-rv"], "")?.trim().to_owned();
        let links = links_of(&running.interfaces);
        let (symbols, told) = (RefCell::default(), Cell::new(false));
        Ok(Up { host, running, ways, links, release, what, symbols, told })
    }

    /// Reboots the last machine, a FreeBSD, which keeps its disk.
    ///
    /// # Errors
    /// When it does not come up again, or has not gone down.
    pub(super) fn reboot_last(&mut self) -> Result<(), BenchError> {
        let up =
            self.up.last_mut().ok_or_else(|| BenchError::Refused("no machine is up".into()))?;
        let before = Boot::of(&up.host)?;
        FreebsdDut::new(up.links.clone(), self.experiment.clone()).reboot(&up.host)?;
        let console = up.running.machine.console();
        // The kernel's last words: what was said before them is not the next boot's.
        let down = console.wait_for("Uptime: ", BOOT);
        let booted = down.and_then(|_| console.wait_for("login:", BOOT)).map(drop);
        booted.map_err(|error| trouble(up.running.machine.explain(error)))?;
        up.host = SshHost::connect(guest::NAME, ssh(&up.running))?;
        // Modules are where they were loaded last.
        up.symbols.take();
        match Boot::of(&up.host)?.is(&before.0) {
            false => Ok(()),
            true => Err(BenchError::environment("the guest has not gone down", "try it again")),
        }
    }

    /// Boots the guest.
    fn running(&self, what: &What, nics: Vec<Nic>, directory: &Path) -> Result<Running, VmError> {
        let (cache, vm) = (self.cache.as_path(), &what.vm);
        let file =
            |name: &Option<String>| self.experiment.join(name.as_deref().unwrap_or_default());
        let (accel, cpus, memory) = (what.accel, vm.cpus, vm.memory);
        let also = CountOptions { calls: vm.calls, caches: vm.caches };
        let common = Common { accel, cpus, memory, nics, also, cache };
        match what.kind {
            DutKind::Freebsd => {
                let image = &Image::find(&file(&vm.disk), cache)?;
                let kernel = vm.kernel.as_ref().map(|_| file(&vm.kernel));
                let kernel = kernel.as_deref();
                freebsd::Guest { image, kernel, common }.boot(directory)
            }
            _ => {
                let name = vm.kernel.as_deref().unwrap_or_default();
                let path = kernel_path(&self.experiment, name);
                let kernel = &Kernel::find(&path, cache)?;
                linux::Guest { kernel, firewall: true, nat: what.nat, common }.boot(directory)
            }
        }
    }
}

/// Returns the kernel that an experiment names: a file relative to its own, or an installed
/// kernel where there is no such file.
fn kernel_path(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let is_installed = !path.exists() && kernel::is_name(Path::new(name));
    if is_installed { PathBuf::from(name) } else { path }
}

/// How a machine is reached.
fn ssh(running: &Running) -> SshSettings {
    SshSettings {
        config: Some(running.ssh_config.clone()),
        deadline: DEADLINE,
        connect: DEADLINE,
        // Nothing is to stir while it is counted.
        alive: SILENT,
        one_shell: true,
        directory: Some(running.machine.directory().to_owned()),
        ..SshSettings::default()
    }
}

/// What makes a machine another one.
#[derive(Clone, Debug, PartialEq)]
struct What {
    kind: DutKind,
    vm: VmSettings,
    /// What executes it, which the settings may leave open.
    accel: Accel,
    queues: u16,
    /// True if it has the modules of rulesets that translate addresses.
    nat: bool,
    /// What its kernel read when it booted.
    loader: BTreeMap<String, String>,
}

impl What {
    fn of(settings: &Settings, auto: Accel) -> What {
        let vm = &settings.testbed.vm;
        let accel = match vm.accel {
            _ if !vm.is_timed => Accel::Counted,
            settings::Accel::Auto => auto,
            settings::Accel::Kvm => Accel::Kvm,
            settings::Accel::Tcg => Accel::Tcg,
        };
        // How it is counted, and what was left open, is no part of the machine.
        let vm = VmSettings { batch: 0, accel: settings::Accel::Auto, ..vm.clone() };
        let loader = settings.dut.remote.loader.clone();
        let (queues, nat) = (settings.dut.queues, settings.dut.nat == Nat::Source);
        What { kind: settings.dut.kind, vm, accel, queues, nat, loader }
    }

    fn name(&self) -> &str {
        let file = self.vm.kernel.as_deref().or(self.vm.disk.as_deref()).unwrap_or_default();
        file.rsplit('/').next().unwrap_or(file)
    }
}

/// How packets come to a machine.
pub(super) enum NicBackends {
    /// One frame a datagram, in lockstep.
    Sockets([Wire; 2]),
    /// Taps in namespaces of sender and receiver.
    Taps(Wiring),
}

/// The ways of a machine, as QEMU is told of them, and the descriptors that it is to inherit.
type Opened = (NicBackends, [Backend; 2], Vec<OwnedFd>);

/// Makes the ways of the machine `number`, whose files lie in `directory`: taps where there are
/// namespaces for them.
fn ways(
    what: &What,
    number: u32,
    netns: Option<&Netns>,
    directory: &Path,
) -> Result<Opened, BenchError> {
    if let Some(netns) = netns {
        let (wiring, taps) = netns.taps(number, what.queues)?;
        let numbers = |queues: &Vec<OwnedFd>| queues.iter().map(AsRawFd::as_raw_fd).collect();
        let backends = [Backend::Tap(numbers(&taps[0])), Backend::Tap(numbers(&taps[1]))];
        return Ok((NicBackends::Taps(wiring), backends, taps.into_iter().flatten().collect()));
    }
    let [ingress, egress] = [0, 1].map(|number| Wire::bind(directory, number));
    let wires = [ingress.map_err(trouble)?, egress.map_err(trouble)?];
    let backends = [wires[0].backend(), wires[1].backend()];
    Ok((NicBackends::Sockets(wires), backends, Vec::new()))
}

/// A machine that is up. Its connection closes before it ends, and its taps' namespaces after.
pub(super) struct Up {
    pub(super) host: SshHost,
    pub(super) running: Running,
    pub(super) ways: NicBackends,
    pub(super) links: Links,
    /// `uname -rv`.
    pub(super) release: String,
    what: What,
    /// Its functions, with the modules that were loaded when they were read.
    symbols: RefCell<Option<(String, Rc<Symbols>)>>,
    /// Whether an error has said that the guest died.
    told: Cell<bool>,
}

impl Up {
    /// Its data interfaces at this end; none where taps are in their place.
    pub(super) fn sockets(&self) -> Option<&[Wire; 2]> {
        match &self.ways {
            NicBackends::Sockets(wires) => Some(wires),
            NicBackends::Taps(_) => None,
        }
    }

    /// What executes it, in words that reports are told by.
    pub(super) fn executed_by(&self) -> &'static str {
        match self.what.accel {
            Accel::Kvm => "the CPU itself (KVM)",
            Accel::Tcg | Accel::Counted => "QEMU's emulation (TCG)",
        }
    }

    /// Its CPUs, as it numbers them itself.
    pub(super) fn cpus(&self) -> Vec<u16> {
        (0..self.what.vm.cpus).collect()
    }

    /// Why the guest is dead; none where it is not.
    fn died(&self) -> Option<VmError> {
        let machine = &self.running.machine;
        machine.console().look().err().map(|error| machine.explain(error))
    }

    /// The error itself, or the guest's death in its place.
    pub(super) fn explain(&self, error: VmError) -> VmError {
        let died = self.died();
        self.told.set(died.is_some());
        died.unwrap_or(error)
    }

    /// Its functions as they are now: a module brings its own.
    ///
    /// # Errors
    /// When they can't be read.
    pub(super) fn symbols(&self) -> Result<Rc<Symbols>, BenchError> {
        let modules = match self.running.system {
            // A kernel that takes no modules has no list of them.
            System::Linux => self.host.run(&["sh", "-c", LOADED], "")?,
            System::FreeBsd => self.host.run(&["kldstat"], "")?,
        };
        let mut known = self.symbols.borrow_mut();
        if let Some((then, symbols)) = known.as_ref()
            && *then == modules
        {
            return Ok(symbols.clone());
        }
        let symbols = Rc::new(self.running.symbols().map_err(trouble)?);
        *known = Some((modules, symbols.clone()));
        Ok(symbols)
    }
}

/// Names of the modules that are loaded.
const LOADED: &str = "[ ! -e /proc/modules ] || cut -d ' ' -f 1 /proc/modules";

fn model(nic: settings::Nic) -> Model {
    match nic {
        settings::Nic::Virtio => Model::Virtio,
        settings::Nic::E1000 => Model::E1000,
        settings::Nic::E1000e => Model::E1000e,
        settings::Nic::Vmxnet3 => Model::Vmxnet3,
    }
}

/// The links of a machine by the address plan: its two data interfaces, and this process
/// at the other ends.
fn links_of(interfaces: &[String; 2]) -> Links {
    let namespaces = Links::of_namespaces();
    let renamed = |link: &Link, interface: &str| Link {
        interface: interface.to_owned(),
        peers: link
            .peers
            .iter()
            .map(|peer| Peer { host: "fwdlab".into(), ..peer.clone() })
            .collect(),
        ..link.clone()
    };
    let admin =
        prefix(ADMIN).map(|network| ProtectedRoute { network, whose: "its administration".into() });
    Links {
        ingress: renamed(&namespaces.ingress, &interfaces[0]),
        egress: renamed(&namespaces.egress, &interfaces[1]),
        ways: admin.into_iter().collect(),
    }
}
