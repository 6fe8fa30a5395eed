//! QEMU: its arguments, its process, its files.
//!
//! A machine's disk is an overlay: the image that it was made from is never written. All
//! its files lie in one directory of its own. QEMU dies with the thread that started it,
//! however that ends; directories that a killed process left are removed by [`clean`].

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

/// Begins the name of every machine's directory; a process number and its start follow.
const PREFIX: &str = "fwdlab-vm-";
/// Addresses of the network for administration, which exists inside QEMU only: the host's
/// and the guest's (RFC 5737).
pub const ADMIN: (&str, &str) = ("192.0.2.2", "192.0.2.15");
/// MAC of the interface for administration.
pub const ADMIN_MAC: &str = "02:00:c6:12:00:00";
/// What executes the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accel {
    /// The CPU itself.
    Kvm,
    /// QEMU's emulation, whose time is no machine's.
    Tcg,
    /// The same while a plugin counts what it executes, exactly.
    Counted,
}

impl Accel {
    /// As QEMU and experiments call it.
    pub fn name(self) -> &'static str {
        match self {
            Accel::Kvm => "kvm",
            Accel::Tcg | Accel::Counted => "tcg",
        }
    }

    /// QEMU's words for it, and for the `cpus` that a guest sees.
    pub(crate) fn arguments(self, cpus: u16) -> [&'static str; 2] {
        // An idle loop that waits by MONITOR spins under emulation.
        let emulated = "max,-monitor";
        match self {
            Accel::Kvm => ["kvm", "host"],
            Accel::Tcg => ["tcg,thread=multi", emulated],
            // A CPU with a thread of its own tells the plugin when it idles.
            Accel::Counted if cpus == 1 => ["tcg,thread=multi", emulated],
            // Additions of the plugin are exact when one thread executes all CPUs.
            Accel::Counted => ["tcg,thread=single", emulated],
        }
    }
}

/// What is booted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Boot {
    /// A kernel of Linux.
    Linux {
        /// The image.
        image: PathBuf,
        /// The system around it.
        initrd: PathBuf,
        /// Its command line.
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

/// A machine as it is to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// What executes it.
    pub accel: Accel,
    /// CPUs.
    pub cpus: u16,
    /// Memory in MiB.
    pub memory: u32,
    /// What is booted.
    pub boot: Boot,
    /// Model of the card for administration.
    pub admin: Model,
    /// Port of 127.0.0.1 that leads to the guest's ssh.
    pub ssh_port: u16,
    /// Cards for traffic, in their order.
    pub nics: Vec<Nic>,
    /// The plugin that counts; `None` if instructions are not counted.
    pub plugin: Option<Plugin>,
    /// Where what the guest says on its serial line is kept; it outlives the machine.
    pub log: PathBuf,
}

impl Spec {
    /// Arguments of QEMU for a machine whose files lie in `directory`.
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
        // It begins when somebody listens: what is said before is lost to who waits for it.
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
                // Nothing of it would be left.
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

/// A machine that runs. Dropping it ends it and removes its files.
#[derive(Debug)]
pub struct Machine {
    process: Process,
    directory: PathBuf,
    console: Console,
    spec: Spec,
}

impl Machine {
    /// Starts it, with its files in `directory`, which it owns from now on.
    ///
    /// # Errors
    /// When QEMU is missing, or QEMU refuses the arguments.
    pub fn start(spec: &Spec, directory: &Path) -> Result<Machine, VmError> {
        let begun = match &spec.boot {
            Boot::Disk { image, format } => {
                overlay(image, format, &directory.join("overlay.qcow2"))
            }
            Boot::Linux { .. } => Ok(()),
        };
        let begun = begun.and_then(|()| begin(spec, directory));
        if begun.is_err() {
            // What is left of its files is found by `clean`.
            let _ = fs::remove_dir_all(directory);
        }
        let (process, console) = begun?;
        Ok(Machine { process, directory: directory.to_owned(), console, spec: spec.clone() })
    }

    /// Switches it off and on: what it had in memory is gone, its disk is as it was. Taps
    /// have to be open still.
    ///
    /// # Errors
    /// When QEMU does not start again.
    pub fn power_cycle(&mut self) -> Result<(), VmError> {
        self.process.switch_off();
        // Otherwise it would be taken for that of the new one.
        let _ = fs::remove_file(self.directory.join("console"));
        (self.process, self.console) = begin(&self.spec, &self.directory)?;
        Ok(())
    }

    /// The guest's serial line.
    pub fn console(&self) -> &Console {
        &self.console
    }

    /// QEMU's process.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Where its files are.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The error with QEMU's own last words, where it is QEMU that has ended.
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

    /// QEMU's threads: those that execute the guest, and those that move its frames.
    pub fn threads(&self) -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten();
        tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok()).collect()
    }

    /// True when none of QEMU's threads has anything to do.
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

/// Starts QEMU for a machine whose files lie in `directory`, and waits for its serial line.
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

/// A disk whose blocks are `image`'s until they are written.
fn overlay(image: &Path, format: &str, file: &Path) -> Result<(), VmError> {
    let image = image.canonicalize().map_err(|source| VmError::file(image, source))?;
    let texts = [image.to_string_lossy(), file.to_string_lossy()];
    let arguments = ["create", "-q", "-f", "qcow2", "-b", &texts[0], "-F", format, &texts[1]];
    crate::tool::run("qemu-img", &arguments, &[], "qemu-utils").map(drop)
}

/// A directory for a machine of this process, below `parent`.
///
/// # Errors
/// When it can't be made.
pub fn directory(parent: &Path, number: u32) -> Result<PathBuf, VmError> {
    let pid = std::process::id();
    let start = start_of(pid).unwrap_or_default();
    let directory = parent.join(format!("{PREFIX}{pid}-{start}-{number}"));
    // Nobody else's, and not one that somebody has put there: keys lie in it.
    let made = fs::DirBuilder::new().mode(0o700).create(&directory);
    made.map_err(|source| VmError::file(&directory, source))?;
    Ok(directory)
}

/// Removes the directories of machines whose process is gone; returns how many.
pub fn clean(parent: &Path) -> usize {
    remove(parent, |pid, start| start_of(pid) != start)
}

/// Removes the directories of this process's machines, which end with it.
pub fn clear(parent: &Path) -> usize {
    remove(parent, |pid, _| pid == std::process::id())
}

/// Removes directories of machines by their process and its start.
fn remove(parent: &Path, is_one: impl Fn(u32, Option<u64>) -> bool) -> usize {
    let Ok(entries) = fs::read_dir(parent) else { return 0 };
    let found = entries.filter_map(Result::ok).filter(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else { return false };
        let mut words = rest.split('-');
        let pid = words.next().and_then(|pid| pid.parse().ok());
        let start = words.next().and_then(|start| start.parse::<u64>().ok());
        pid.is_some_and(|pid| is_one(pid, start))
    });
    found.filter(|entry| fs::remove_dir_all(entry.path()).is_ok()).count()
}

/// A port of 127.0.0.1 that nobody uses.
///
/// # Errors
/// When there is none.
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
    fn cards_are_described_as_qemu_wants_them() {
        let nic = Nic {
            model: Model::Virtio,
            mac: "02:00:c6:12:00:01".into(),
            queues: 2,
            gathers: true,
            backend: Backend::Tap(vec![7, 8]),
        };
        let text = spec(nic).arguments(Path::new("/d")).join(" ");
        for part in [
            "-accel tcg,thread=multi",
            "tap,id=data0,fds=7:8",
            "virtio-net-pci,netdev=data0,mac=02:00:c6:12:00:01,mq=on,vectors=6,tx=timer",
            "hostfwd=tcp:127.0.0.1:2222-192.0.2.15:22",
            "logfile=/l/console.log",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // Several CPUs add to the same counts.
        assert_eq!(Accel::Counted.arguments(2)[0], "tcg,thread=single");
    }

    #[test]
    fn directories_of_the_dead_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let own = directory(parent.path(), 0).unwrap();
        let dead = parent.path().join(format!("{PREFIX}{}-1-0", std::process::id()));
        let other = parent.path().join("results");
        [&dead, &other].into_iter().for_each(|path| fs::create_dir(path).unwrap());
        assert_eq!(clean(parent.path()), 1);
        assert!(own.exists() && other.exists() && !dead.exists());
        assert_eq!(clear(parent.path()), 1);
        assert!(!own.exists() && other.exists());
    }
}
