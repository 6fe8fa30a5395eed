//! A guest that answers, whatever system it is, and how it is reached.

use crate::caches::{CacheFile, Model};
use crate::calls::CallFile;
use crate::counts::CountFile;
use crate::error::VmError;
use crate::machine::{Accel, Boot, Machine, Model as Card, Nic, Spec};
use crate::plugin::Plugin;
use crate::symbols::Symbols;
use crate::tool;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the guest in its configuration of ssh.
pub const NAME: &str = "dut";

/// What runs in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// FreeBSD.
    FreeBsd,
}

/// What is looked at beside instructions, where they are counted: each makes it slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountOptions {
    /// Who calls whom.
    pub calls: bool,
    /// What a model of caches misses.
    pub caches: bool,
}

/// What a guest is to be, whatever runs in it.
#[derive(Clone, Debug)]
pub struct Common<'a> {
    /// What executes it.
    pub accel: Accel,
    /// CPUs.
    pub cpus: u16,
    /// Memory in MiB.
    pub memory: u32,
    /// Cards for traffic, all of one model.
    pub nics: Vec<Nic>,
    /// What is looked at beside instructions, where they are counted.
    pub also: CountOptions,
    /// A directory that survives this process: for the plugin, and the console's log.
    pub cache: &'a Path,
}

impl Common<'_> {
    /// Model of the cards for traffic.
    pub(crate) fn model(&self) -> Card {
        self.nics.first().map_or(Card::Virtio, |nic| nic.model)
    }

    /// Boots it with its files in `directory`; `up` waits until it answers at `ssh_port`, tells
    /// the gate of its counts, and returns the configuration of ssh that reaches it.
    ///
    /// # Errors
    /// When QEMU does not start, or the guest does not come up: with QEMU's last words then.
    pub(crate) fn boot(
        &self,
        (system, boot): (System, Boot),
        directory: &Path,
        ssh_port: u16,
        interfaces: [&str; 2],
        up: impl FnOnce(&Machine, Option<&CountFile>) -> Result<PathBuf, VmError>,
    ) -> Result<Running, VmError> {
        let Counting { counts, calls, caches, plugin } = counting(self, directory)?;
        let spec = Spec {
            accel: self.accel,
            cpus: self.cpus,
            memory: self.memory,
            boot,
            admin: Card::Virtio,
            ssh_port,
            nics: self.nics.clone(),
            plugin,
            log: self.cache.join("console.log"),
        };
        let machine = Machine::start(&spec, directory)?;
        let ssh_config = up(&machine, counts.as_ref()).map_err(|error| machine.explain(error))?;
        let interfaces = interfaces.map(str::to_owned);
        Ok(Running { machine, counts, calls, caches, ssh_config, system, interfaces })
    }
}

/// A guest that answers.
#[derive(Debug)]
pub struct Running {
    /// The machine.
    pub machine: Machine,
    /// What it executes; none where nobody counts.
    pub counts: Option<CountFile>,
    /// Who calls whom there; none where nobody asks.
    pub calls: Option<CallFile>,
    /// What a model of caches misses; none where nobody asks.
    pub caches: Option<CacheFile>,
    /// Configuration of ssh that reaches it as `dut` (`ssh -F`).
    pub ssh_config: PathBuf,
    /// What runs in it.
    pub system: System,
    /// Its interfaces for traffic: where frames go in, and where they come out.
    pub interfaces: [String; 2],
}

impl Running {
    /// The functions of its kernel, with those of what is loaded now.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn symbols(&self) -> Result<Symbols, VmError> {
        symbols(self.system, &self.ssh_config)
    }
}

/// Prints what a FreeBSD has loaded, with its functions, as [`Symbols::of_modules`] reads it.
pub const FREEBSD_SYMBOLS: &str = "kldstat -v | sed -n 's/.* 0x\\([0-9a-f]*\\) .*(\\(\\/.*\\))$/\\1 \\2/p' | \
                       while read at file; do echo module $at $file; nm $file; done";

/// The functions of a guest's kernel, and of its modules where they are loaded.
///
/// # Errors
/// When the guest does not answer.
pub(crate) fn symbols(system: System, ssh_config: &Path) -> Result<Symbols, VmError> {
    let symbols = match system {
        System::Linux => Symbols::of_kallsyms(&ssh(ssh_config, "cat /proc/kallsyms", &[])?),
        System::FreeBsd => {
            Symbols::of_modules(&ssh(ssh_config, "/bin/sh -s", FREEBSD_SYMBOLS.as_bytes())?)
        }
    };
    match symbols.is_empty() {
        true => Err(VmError::Counts("the guest tells no function of its kernel".into())),
        false => Ok(symbols),
    }
}

/// Runs a command in the guest; returns what it printed.
///
/// # Errors
/// When the guest can't be reached, or the command fails.
pub(crate) fn ssh(config: &Path, command: &str, input: &[u8]) -> Result<String, VmError> {
    let config = config.to_string_lossy();
    let arguments = ["-F", &config, "-o", "BatchMode=yes", NAME, command];
    let output = tool::run("ssh", &arguments, input, "openssh-client")?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// The files that a guest is counted in, and the plugin as QEMU is told of it.
#[derive(Debug, Default)]
struct Counting {
    counts: Option<CountFile>,
    calls: Option<CallFile>,
    caches: Option<CacheFile>,
    plugin: Option<Plugin>,
}

/// The files that a guest is counted in, and what QEMU is told of them. Nothing where nobody
/// counts.
///
/// # Errors
/// When the plugin can't be compiled, or there is no room for the counts.
fn counting(guest: &Common<'_>, directory: &Path) -> Result<Counting, VmError> {
    if guest.accel != Accel::Counted {
        return Ok(Counting::default());
    }
    let also = guest.also;
    let counts = CountFile::create(&directory.join("counts"), guest.cpus)?;
    let calls = also.calls.then(|| CallFile::create(&directory.join("calls")));
    let calls = calls.transpose()?;
    let model = || CacheFile::create(&directory.join("caches"), Model::default());
    let caches = also.caches.then(model).transpose()?;
    let mut plugin = Plugin::new(guest.cache)?.with(&format!("counts={}", counts.path().display()));
    match &calls {
        // Stacks are followed from where threads begin.
        Some(calls) => plugin = plugin.with(&format!("calls={}", calls.path().display())),
        None if guest.cpus == 1 => plugin = plugin.with("from=gate"),
        None => {}
    }
    if let Some(caches) = &caches {
        plugin = plugin.with(&format!("caches={}", caches.path().display()));
    }
    Ok(Counting { counts: Some(counts), calls, caches, plugin: Some(plugin) })
}

/// Makes a pair of keys below `directory`.
///
/// # Errors
/// When it can't.
pub(crate) fn key(directory: &Path, name: &str) -> Result<(), VmError> {
    let file = directory.join(name);
    let text = file.to_string_lossy();
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", "fwdlab", "-f", &text];
    tool::run("ssh-keygen", &arguments, &[], "openssh-client").map(drop)
}

/// Writes a configuration of ssh that reaches the guest, which shows the key `host_key`, with
/// the key below `directory`.
///
/// # Errors
/// When a file can't be written.
pub(crate) fn ssh_config(directory: &Path, port: u16, host_key: &str) -> Result<PathBuf, VmError> {
    let write = |name: &str, text: String| {
        let file = directory.join(name);
        fs::write(&file, text).map_err(|source| VmError::file(&file, source))?;
        Ok::<PathBuf, VmError>(file)
    };
    let known = write("known_hosts", format!("{NAME} {host_key}\n"))?;
    write(
        "ssh_config",
        format!(
            "Host {NAME}\n  HostName 127.0.0.1\n  Port {port}\n  User root\n  HostKeyAlias \
             {NAME}\n  IdentityFile {}\n  IdentitiesOnly yes\n  UserKnownHostsFile {}\n  \
             StrictHostKeyChecking yes\n  Compression no\n",
            directory.join("key").display(),
            known.display()
        ),
    )
}
