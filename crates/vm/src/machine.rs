//! QEMU: its arguments, its process, its files.
//!
//! A machine's disk is an overlay: the image below it is never written. All files of a machine are
//! in one directory of its own. QEMU dies with the thread that started it, however the thread ends;
//! [`clean`] removes directories left by killed processes.

pub use crate::cache::clean_cache;
use crate::cache::start_of;
pub use crate::card::{Backend, Model, Nic};
use crate::console::Console;
use crate::error::VmError;
use crate::plugin::Plugin;
use crate::qemu::{self, Process, QEMU};
use fwdlab_netio::process;
use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Prefix of the names of machines' directories; process id and start time follow.
const PREFIX: &str = "fwdlab-vm-";
/// Host and guest addresses of the administrative network, which exists only inside QEMU (RFC
/// 5737).
pub const ADMIN: (&str, &str) = ("192.0.2.2", "192.0.2.15");
/// MAC of the administrative interface.
pub const ADMIN_MAC: &str = "02:00:c6:12:00:00";
/// Accelerator of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// The host CPU.
    Kvm,
    /// QEMU's emulation, whose timing matches no real machine.
    Tcg,
    /// Emulation with a plugin that counts executed instructions exactly.
    Counted,
}

impl Accel {
    /// Name in QEMU and in experiments.
    pub fn name(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg | Accel::Counted => "tcg",
        }
    }

    /// Returns QEMU's arguments for the accelerator, and for the CPU model of a guest with `cpus`
    /// CPUs.
    pub(crate) fn arguments(self, cpus: u16) -> [&'static str; 2] {
        // An idle loop that waits by MONITOR spins under emulation.
        let emulated = "max,-monitor";
        match self {
            Accel::Kvm => ["kvm", "host"],
            Accel::Tcg => ["tcg,thread=multi", emulated],
            // A CPU with its own thread notifies the plugin when it idles.
            Accel::Counted if cpus == 1 => ["tcg,thread=multi", emulated],
            // The plugin's additions are exact if one thread executes all CPUs.
            Accel::Counted => ["tcg,thread=single", emulated],
        }
    }
}

/// The system to boot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A Linux kernel.
    Linux {
        /// The image.
        image: PathBuf,
        /// The initial system.
        initrd: PathBuf,
        /// The kernel command line.
        append: String,
    },
    /// A disk.
    Disk {
        /// The image; it is not written.
        image: PathBuf,
        /// `raw` or `qcow2`.
        format: String,
    },
}

/// Configuration of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// Accelerator.
    pub accel: Accel,
    /// CPUs.
    pub cpus: u16,
    /// Memory in MiB.
    pub memory: u32,
    /// The system to boot.
    pub boot: Boot,
    /// Model of the administrative card.
    pub admin: Model,
    /// Port of 127.0.0.1 that leads to the guest's ssh.
    pub ssh_port: u16,
    /// Cards for traffic, in order.
    pub nics: Vec<Nic>,
    /// The plugin that counts; `None` if instructions are not counted.
    pub plugin: Option<Plugin>,
    /// Log of the serial line; it outlives the machine.
    pub log: PathBuf,
}

impl Spec {
    /// Returns QEMU's arguments for a machine with its files in `directory`.
    fn arguments(&self, directory: &Path) -> Vec<String> {
        let file = |name: &str| directory.join(name).display().to_string();
        let [accel, cpu] = self.accel.arguments(self.cpus);
        let (cpus, memory) = (self.cpus.to_string(), self.memory.to_string());
        let mut arguments: Vec<String> = [
            "-accel",
            accel,
            "-machine",
            "q35",
            "-cpu",
            cpu,
            "-smp",
            &cpus,
            "-m",
            &memory,
            "-display",
            "none",
            "-nodefaults",
            "-no-user-config",
            "-monitor",
            "none",
        ]
        .map(str::to_owned)
        .into();
        let mut add = |words: [String; 2]| arguments.extend(words);
        // QEMU waits for a listener: otherwise early output would be lost.
        add([
            "-chardev".into(),
            format!(
                "socket,id=console,path={},server=on,wait=on,logfile={}",
                file("console"),
                self.log.display()
            ),
        ]);
        add(["-serial".into(), "chardev:console".into()]);
        match &self.boot {
            Boot::Linux { image, initrd, append } => {
                add(["-kernel".into(), image.display().to_string()]);
                add(["-initrd".into(), initrd.display().to_string()]);
                add(["-append".into(), append.clone()]);
                // The machine would not survive a reboot.
                add(["-action".into(), "reboot=shutdown".into()]);
            }
            Boot::Disk { .. } => add([
                "-drive".into(),
                format!("file={},format=qcow2,if=virtio,cache=unsafe", file("overlay.qcow2")),
            ]),
        }
        let (host, guest) = ADMIN;
        add([
            "-netdev".into(),
            format!(
                "user,id=admin,restrict=on,net=192.0.2.0/24,dhcpstart={guest},host={host},\
                 dns=192.0.2.3,hostfwd=tcp:127.0.0.1:{}-{guest}:22",
                self.ssh_port
            ),
        ]);
        add(["-device".into(), format!("{},netdev=admin,mac={ADMIN_MAC}", self.admin.device())]);
        add(["-object".into(), "rng-random,id=rng,filename=/dev/urandom".into()]);
        add(["-device".into(), "virtio-rng-pci,rng=rng".into()]);
        for (number, nic) in self.nics.iter().enumerate() {
            add(["-netdev".into(), nic.netdev(number)]);
            add(["-device".into(), nic.device(number)]);
        }
        arguments
    }
}

/// A running machine. Dropping it ends QEMU and removes its files.
#[derive(Debug)]
pub struct Machine {
    process: Process,
    directory: PathBuf,
    console: Console,
    spec: Spec,
}

impl Machine {
    /// Starts the machine with its files in `directory`, which it owns from now on.
    ///
    /// # Errors
    /// If QEMU is missing, or refuses the arguments.
    pub fn start(spec: &Spec, directory: &Path) -> Result<Machine, VmError> {
        let result = match &spec.boot {
            Boot::Disk { image, format } => {
                overlay(image, format, &directory.join("overlay.qcow2"))
            }
            Boot::Linux { .. } => Ok(()),
        };
        let result = result.and_then(|()| begin(spec, directory));
        if result.is_err() {
            // `clean` finds remaining files.
            let _ = fs::remove_dir_all(directory);
        }
        let (process, console) = result?;
        Ok(Machine { process, directory: directory.to_owned(), console, spec: spec.clone() })
    }

    /// Switches the machine off and on: its memory is lost, its disk stays. Taps and
    /// sockets must still be open.
    ///
    /// # Errors
    /// If QEMU does not start again.
    pub fn power_cycle(&mut self) -> Result<(), VmError> {
        self.process.switch_off();
        // Removes the old socket, which would be mistaken for the new one.
        let _ = fs::remove_file(self.directory.join("console"));
        (self.process, self.console) = begin(&self.spec, &self.directory)?;
        Ok(())
    }

    /// Serial line of the guest.
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// Process id of QEMU.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Directory of the machine's files.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds QEMU's last words to the error if QEMU itself has ended.
    pub fn explain(&self, error: VmError) -> VmError {
        let VmError::Ended { status, text } = error else { return error };
        let log = self.directory.join("qemu.log");
        if self.process.was_given_up() {
            return VmError::GivenUp { text: qemu::given_up(&log).unwrap_or_default() };
        }
        let words = fs::read_to_string(log).unwrap_or_default();
        let words = words.lines().filter(|line| !line.contains("waiting for connection"));
        let words = words.collect::<Vec<_>>().join(" | ");
        let words = match self.process.was_stopped() {
            true => format!(
                "it was stopped, as by SIGSTOP, for {} s, and killed then",
                qemu::STOPPED.as_secs()
            ),
            false => words,
        };
        VmError::Ended { status, text: format!("{words}; the guest's last words: {text}") }
    }

    /// Returns QEMU's threads, which execute the guest and move its frames.
    pub fn threads(&self) -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten();
        tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// True if all of QEMU's threads are idle.
    pub fn rests(&self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid())) else { return true };
        threads.filter_map(Result::ok).all(|thread| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            let state = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
            !state.starts_with('R') && !state.starts_with('D')
        })
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.process.end();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// Starts QEMU for a machine with its files in `directory`, and waits for its serial line.
fn begin(spec: &Spec, directory: &Path) -> Result<(Process, Console), VmError> {
    let errors = directory.join("qemu.log");
    let log = fs::File::create(&errors).map_err(|source| VmError::file(&errors, source))?;
    let mut command = Command::new(QEMU);
    let inherited = spec.nics.iter().flat_map(Nic::descriptors).copied().collect();
    process::keep_open(&mut command, inherited);
    command.args(spec.arguments(directory)).stderr(log);
    if let Some(plugin) = &spec.plugin {
        plugin.load(&mut command);
    }
    let child = qemu::spawn(&mut command)?;
    let process = Process::watched(child, qemu::STOPPED, errors.clone());
    let socket = directory.join("console");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !socket.exists() {
        let (why, next) = if let Some(status) = process.ended() {
            let words = fs::read_to_string(&errors).unwrap_or_default();
            let words = words.trim().replace('\n', " | ");
            (format!("{words} ({status})"), "see whether this QEMU has the device")
        } else if Instant::now() > deadline {
            let why = "it has not begun within 20 s".to_owned();
            (why, "see whether the machine is overloaded")
        } else {
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        return Err(VmError::Program { program: QEMU.into(), why, next: next.into() });
    }
    let console = Console::connect(&socket, &spec.log, Duration::from_secs(5))?;
    Ok((process, console))
}

/// Creates a disk whose blocks are `image`'s until they are written.
fn overlay(image: &Path, format: &str, file: &Path) -> Result<(), VmError> {
    let image = image.canonicalize().map_err(|source| VmError::file(image, source))?;
    let texts = [image.to_string_lossy(), file.to_string_lossy()];
    let arguments = ["create", "-q", "-f", "qcow2", "-b", &texts[0], "-F", format, &texts[1]];
    crate::tool::run("qemu-img", &arguments, &[], "qemu-utils").map(drop)
}

/// Creates a directory for a machine of this process, below `parent`.
///
/// # Errors
/// If it can't be created.
pub fn directory(parent: &Path, number: u32) -> Result<PathBuf, VmError> {
    let pid = std::process::id();
    let start = start_of(pid).unwrap_or_default();
    let directory = parent.join(format!("{PREFIX}{pid}-{start}-{number}"));
    // Private, and not an existing one planted by another user: it holds keys.
    let result = fs::DirBuilder::new().mode(0o700).create(&directory);
    result.map_err(|source| VmError::file(&directory, source))?;
    Ok(directory)
}

/// Removes the directories of machines whose process is gone; returns their number.
pub fn clean(parent: &Path) -> usize {
    remove(parent, |pid, start| start_of(pid) != start)
}

/// Removes the directories of this process's machines, which end with it.
pub fn clear(parent: &Path) -> usize {
    remove(parent, |pid, _| pid == std::process::id())
}

/// Removes directories of machines selected by process id and start time.
fn remove(parent: &Path, matches: impl Fn(u32, Option<u64>) -> bool) -> usize {
    let Ok(entries) = fs::read_dir(parent) else { return 0 };
    let matching = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else { return false };
        let mut words = rest.split('-');
        let pid = words.next().and_then(|pid| pid.parse().ok());
        let start = words.next().and_then(|start| start.parse::<u64>().ok());
        pid.is_some_and(|pid| matches(pid, start))
    });
    matching.filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count()
}

/// Returns an unused port of 127.0.0.1.
///
/// # Errors
/// If there is none.
pub fn free_port() -> Result<u16, VmError> {
    let listener = TcpListener::bind(("127.0.0.1", 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.map(|address| address.port()).map_err(|source| VmError::file("127.0.0.1", source))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(nic: Nic) -> Spec {
        Spec {
            accel: Accel::Counted,
            cpus: 1,
            memory: 256,
            boot: Boot::Linux { image: "k".into(), initrd: "i".into(), append: "quiet".into() },
            admin: Model::Virtio,
            ssh_port: 2222,
            nics: vec![nic],
            plugin: None,
            log: "/l/console.log".into(),
        }
    }

    #[test]
    fn arguments_describe_cards_for_qemu() {
        let nic = Nic {
            model: Model::Virtio,
            mac: "02:00:c6:12:00:01".into(),
            queues: 2,
            backend: Backend::Tap(vec![7, 8]),
        };
        let text = spec(nic).arguments(Path::new("/d")).join(" ");
        for part in [
            "-accel tcg,thread=multi",
            "tap,id=data0,fds=7:8",
            "virtio-net-pci,netdev=data0,mac=02:00:c6:12:00:01,mq=on,vectors=6",
            "hostfwd=tcp:127.0.0.1:2222-192.0.2.15:22",
            "logfile=/l/console.log",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // Several CPUs add to the same counts.
        assert_eq!(Accel::Counted.arguments(2)[0], "tcg,thread=single");
    }

    #[test]
    fn clean_removes_directories_of_dead_processes() {
        let parent = tempfile::tempdir().unwrap();
        let current = directory(parent.path(), 0).unwrap();
        let dead = parent.path().join(format!("{PREFIX}{}-1-0", std::process::id()));
        let other = parent.path().join("results");
        [&dead, &other].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        assert_eq!(clean(parent.path()), 1);
        assert!(current.exists() && other.exists() && !dead.exists());
        assert_eq!(clear(parent.path()), 1);
        assert!(!current.exists() && other.exists());
    }
}
