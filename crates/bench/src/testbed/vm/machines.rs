//! Running machines, distinguished by the systems that they boot.

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
use fwdlab_model::settings::{self, DutKind, Settings, VmSettings};
use fwdlab_vm::freebsd::{self, Image};
use fwdlab_vm::guest::{self, Common, CountOptions, RunningGuest, SymbolCache};
use fwdlab_vm::kernel::{self, Kernel};
use fwdlab_vm::machine::{self, Accel, Backend, Model, Nic};
use fwdlab_vm::symbols::Symbols;
use fwdlab_vm::wire::Wire;
use fwdlab_vm::{VmError, linux, probe};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Number of machines that stay up: two kernels alternate by block.
const KEPT: usize = 2;
/// Time limit for a command in an emulated machine.
const DEADLINE: Duration = Duration::from_secs(120);
/// Time limit for a reboot in emulation, alongside other work.
const BOOT: Duration = Duration::from_secs(600);
/// Interval of a connection's keep-alive messages: longer than any run.
const SILENT: Duration = Duration::from_secs(24 * 60 * 60);
/// The network for administration, which exists in QEMU only.
const ADMIN: &str = "192.0.2.0/24";

/// The machines.
pub(super) struct Machines {
    up: Vec<RunningMachine>,
    /// Directory of their files while they run.
    parent: PathBuf,
    /// Directory for the plugin and unpacked kernels.
    cache: PathBuf,
    /// Directory of the experiment's files.
    experiment: PathBuf,
    booted: u32,
    /// True if the last requested machine is up.
    is_up: bool,
    /// Accelerator of machines whose variant leaves it open.
    pub(super) auto: Accel,
}

impl Machines {
    /// Returns an empty collection; removes remains of ended processes.
    pub(super) fn open(cache: &Path, experiment: &Path) -> Result<Machines, BenchError> {
        let parent = std::env::temp_dir();
        machine::clean(&parent);
        machine::clean_cache(cache);
        let created = std::fs::create_dir_all(cache);
        created.map_err(|source| BenchError::File {
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

    /// Tests whether the CPU itself executes guests, by booting a small one, and then the guests to
    /// be measured: a nested KVM may support a small guest's instructions, but not those of a
    /// loader or of a kernel for several CPUs. Returns the time until the last guest responded.
    ///
    /// # Errors
    /// Returns the reason why the CPU does not execute them.
    pub(super) fn try_kvm<'s>(
        &mut self,
        guests: impl Iterator<Item = &'s Settings>,
    ) -> Result<Duration, BenchError> {
        let small = |_: &Machines, directory: &Path, _| {
            probe::executes(Accel::Kvm, directory).map_err(trouble)
        };
        let mut took = self.with_directory(small)?;
        let mut known = Vec::new();
        for settings in guests {
            // Without taps, which have any requested number of queues.
            let what = MachineKey { queues: 1, ..MachineKey::of(settings, Accel::Kvm) };
            if known.contains(&what) {
                continue;
            }
            known.push(what.clone());
            took = self.with_directory(|machines, directory, number| {
                let began = Instant::now();
                machines.up(what, number, None, directory).map(|_| began.elapsed())
            })?;
        }
        Ok(took)
    }

    /// Runs a guest with its own directory.
    fn with_directory<T>(
        &mut self,
        guest: impl FnOnce(&Machines, &Path, u32) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        let number = self.booted;
        let directory = machine::directory(&self.parent, number).map_err(trouble)?;
        self.booted += 1;
        let result = guest(self, &directory, number);
        // The next start removes any remains.
        let _ = std::fs::remove_dir_all(&directory);
        result
    }

    /// Ends all machines.
    pub(super) fn clear(&mut self) {
        self.up.clear();
    }

    /// Ends the last machine.
    pub(super) fn end_last(&mut self) {
        self.up.pop();
    }

    /// Ends the machine of a failed run, unless a new machine failed to boot; returns the cause of
    /// its guest's death, if no error reported it.
    pub(super) fn end_lost(&mut self) -> Option<String> {
        let lost = if self.is_up { self.up.pop() } else { None };
        lost.filter(|up| !up.is_death_reported.get())?.died().map(|error| error.to_string())
    }

    /// Returns the last machine.
    pub(super) fn last(&self) -> Result<&RunningMachine, BenchError> {
        self.up.last().ok_or_else(|| BenchError::Refused("no machine is up".into()))
    }

    /// Boots the machine of a variant, unless it is up; it is then the last machine.
    ///
    /// # Errors
    /// Returns an error if a kernel or program is missing, or the machine does not come up.
    pub(super) fn boot(
        &mut self,
        settings: &Settings,
        netns: Option<&Netns>,
        observer: &mut dyn Observer,
    ) -> Result<(), BenchError> {
        let what = MachineKey::of(settings, self.auto);
        if let Some(at) = self.up.iter().position(|up| up.what == what) {
            let up = self.up.remove(at);
            self.up.push(up);
            self.is_up = true;
            return Ok(());
        }
        self.is_up = false;
        // Machines end before the next one boots, which needs the memory.
        while self.up.len() >= KEPT {
            self.up.remove(0);
        }
        observer.step(&format!("booting {}", what.name()));
        let directory = machine::directory(&self.parent, self.booted).map_err(trouble)?;
        let number = self.booted;
        self.booted += 1;
        let up = self.up(what, number, netns, &directory);
        if up.is_err() {
            // A machine that has started removes its own files.
            let _ = std::fs::remove_dir_all(&directory);
        }
        self.up.push(up?);
        self.is_up = true;
        Ok(())
    }

    fn up(
        &self,
        what: MachineKey,
        number: u32,
        netns: Option<&Netns>,
        directory: &Path,
    ) -> Result<RunningMachine, BenchError> {
        let (ways, backends, taps) = connect_nics(&what, number, netns)?;
        let macs = [mac::INGRESS, mac::EGRESS];
        let nics = macs.iter().zip(backends).map(|(&address, backend)| Nic {
            model: model(what.vm.nic),
            mac: mac::text(address),
            queues: what.queues,
            backend,
        });
        let running = self.running(&what, nics.collect(), directory).map_err(trouble)?;
        // From now on QEMU alone holds the taps: they are removed with it.
        drop(taps);
        let host = SshHost::connect(guest::NAME, ssh(&running))?;
        let release = host.run(&["uname", "-rv"], "")?.trim().to_owned();
        let links = links_of(&running.interfaces);
        let (symbols, is_death_reported) = (SymbolCache::default(), Cell::new(false));
        Ok(RunningMachine { host, running, ways, links, release, what, symbols, is_death_reported })
    }

    /// Reboots the last machine, which runs FreeBSD and keeps its disk.
    ///
    /// # Errors
    /// Returns an error if the machine does not come up again, or has not gone down.
    pub(super) fn reboot_last(&mut self) -> Result<(), BenchError> {
        let up =
            self.up.last_mut().ok_or_else(|| BenchError::Refused("no machine is up".into()))?;
        let before = Boot::of(&up.host)?;
        FreebsdDut::new(up.links.clone(), self.experiment.clone()).reboot(&up.host)?;
        let console = up.running.machine.console();
        // The kernel's last message: earlier prompts do not belong to the next boot.
        let down = console.wait_for("Uptime: ", BOOT);
        let booted = down.and_then(|_| console.wait_for("login:", BOOT)).map(drop);
        booted.map_err(|error| trouble(up.running.machine.explain(error)))?;
        up.host = SshHost::connect(guest::NAME, ssh(&up.running))?;
        // Modules stay where they were loaded last.
        up.symbols.clear();
        match Boot::of(&up.host)?.is(&before.0) {
            false => Ok(()),
            true => Err(BenchError::environment("the guest has not gone down", "try it again")),
        }
    }

    /// Boots the guest.
    fn running(
        &self,
        what: &MachineKey,
        nics: Vec<Nic>,
        directory: &Path,
    ) -> Result<RunningGuest, VmError> {
        let (cache, vm) = (self.cache.as_path(), &what.vm);
        let file =
            |name: &Option<String>| self.experiment.join(name.as_deref().unwrap_or_default());
        let (accel, cpus, memory) = (what.accel, vm.cpus, vm.memory);
        let also = CountOptions { calls: vm.calls, caches: vm.caches };
        let log = "console.log";
        let common = Common { accel, cpus, memory, nics, also, cache, log };
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
                linux::Guest { kernel, features: true, common }.boot(directory)
            }
        }
    }
}

/// Returns the kernel that an experiment names: a file relative to the experiment, otherwise an
/// installed kernel.
fn kernel_path(directory: &Path, name: &str) -> PathBuf {
    let path = directory.join(name);
    let is_installed = !path.exists() && kernel::is_name(Path::new(name));
    if is_installed { PathBuf::from(name) } else { path }
}

/// Connection settings of a machine.
fn ssh(running: &RunningGuest) -> SshSettings {
    SshSettings {
        config: Some(running.ssh_config.clone()),
        deadline: DEADLINE,
        connect: DEADLINE,
        // Keep-alive messages would disturb the count.
        alive: SILENT,
        one_shell: true,
        directory: Some(running.machine.directory().to_owned()),
        ..SshSettings::default()
    }
}

/// Properties that distinguish machines.
#[derive(Clone, Debug, PartialEq)]
struct MachineKey {
    kind: DutKind,
    vm: VmSettings,
    /// Accelerator, which the settings may leave open.
    accel: Accel,
    queues: u16,
    /// Loader settings that the kernel read at boot.
    loader: BTreeMap<String, String>,
}

impl MachineKey {
    fn of(settings: &Settings, auto: Accel) -> MachineKey {
        let vm = &settings.testbed.vm;
        let accel = match vm.accel {
            _ if !vm.is_timed => Accel::Counted,
            settings::Accel::Auto => auto,
            settings::Accel::Kvm => Accel::Kvm,
            settings::Accel::Tcg => Accel::Tcg,
        };
        // The way of counting and the open choice are no properties of the machine.
        let vm = VmSettings { batch: 0, accel: settings::Accel::Auto, ..vm.clone() };
        let loader = settings.dut.remote.loader.clone();
        MachineKey { kind: settings.dut.kind, vm, accel, queues: settings.dut.queues, loader }
    }

    fn name(&self) -> &str {
        let file = self.vm.kernel.as_deref().or(self.vm.disk.as_deref()).unwrap_or_default();
        file.rsplit('/').next().unwrap_or(file)
    }
}

/// Connection of a machine's network interfaces.
pub(super) enum NicBackends {
    /// One frame per datagram, in lockstep.
    Sockets([Wire; 2]),
    /// Taps in namespaces of sender and receiver.
    Taps(Wiring),
}

/// Connections of a machine, QEMU's view of them, and the descriptors for QEMU to inherit.
type ConnectedNics = (NicBackends, [Backend; 2], Vec<OwnedFd>);

/// Creates the connections of machine `number`, whose files are in `directory`: taps if there are
/// namespaces for them.
fn connect_nics(
    what: &MachineKey,
    number: u32,
    netns: Option<&Netns>,
) -> Result<ConnectedNics, BenchError> {
    if let Some(netns) = netns {
        let (wiring, taps) = netns.taps(number, what.queues)?;
        let numbers = |queues: &Vec<OwnedFd>| queues.iter().map(AsRawFd::as_raw_fd).collect();
        let backends = [Backend::Tap(numbers(&taps[0])), Backend::Tap(numbers(&taps[1]))];
        return Ok((NicBackends::Taps(wiring), backends, taps.into_iter().flatten().collect()));
    }
    let [ingress, egress] = [0, 1].map(Wire::new);
    let wires = [ingress.map_err(trouble)?, egress.map_err(trouble)?];
    let backends = [wires[0].backend(), wires[1].backend()];
    Ok((NicBackends::Sockets(wires), backends, Vec::new()))
}

/// A machine that is up. Its connection closes before it ends, and its taps' namespaces after.
pub(super) struct RunningMachine {
    pub(super) host: SshHost,
    pub(super) running: RunningGuest,
    pub(super) ways: NicBackends,
    pub(super) links: Links,
    /// `uname -rv`.
    pub(super) release: String,
    what: MachineKey,
    /// Functions of its kernel, with the modules that were loaded when they were read.
    symbols: SymbolCache,
    /// True if an error has reported the guest's death.
    is_death_reported: Cell<bool>,
}

impl RunningMachine {
    /// Data interfaces at this end; `None` if the machine has taps instead.
    pub(super) fn sockets(&self) -> Option<&[Wire; 2]> {
        match &self.ways {
            NicBackends::Sockets(wires) => Some(wires),
            NicBackends::Taps(_) => None,
        }
    }

    /// Describes the accelerator, in words by which reports recognise it.
    pub(super) fn executed_by(&self) -> &'static str {
        match self.what.accel {
            Accel::Kvm => "the CPU itself (KVM)",
            Accel::Tcg | Accel::Counted => "QEMU's emulation (TCG)",
        }
    }

    /// CPUs of the guest, by its own numbers.
    pub(super) fn cpus(&self) -> Vec<u16> {
        (0..self.what.vm.cpus).collect()
    }

    /// Returns the cause of the guest's death; `None` if it is alive.
    fn died(&self) -> Option<VmError> {
        let machine = &self.running.machine;
        machine.console().look().err().map(|error| machine.explain(error))
    }

    /// Returns the guest's death if it is dead, otherwise the error itself.
    pub(super) fn explain(&self, error: VmError) -> VmError {
        let died = self.died();
        self.is_death_reported.set(died.is_some());
        died.unwrap_or(error)
    }

    /// Functions of the kernel at this time: modules add their own.
    ///
    /// # Errors
    /// Returns an error if they cannot be read.
    pub(super) fn symbols(&self) -> Result<Rc<Symbols>, BenchError> {
        let modules = self.host.run(guest::list_modules(self.running.system), "")?;
        self.symbols.symbols(&self.running, modules).map_err(trouble)
    }
}

fn model(nic: settings::Nic) -> Model {
    match nic {
        settings::Nic::Virtio => Model::Virtio,
        settings::Nic::E1000 => Model::E1000,
        settings::Nic::E1000e => Model::E1000e,
        settings::Nic::Vmxnet3 => Model::Vmxnet3,
    }
}

/// Links of a machine by the address plan: its two data interfaces, and this process at the other
/// ends.
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
