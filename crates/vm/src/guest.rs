//! A running guest of any system, and the ways to reach it.

use crate::caches::{CacheFile, Model};
use crate::calls::CallFile;
use crate::counts::CountFile;
use crate::error::VmError;
use crate::machine::{Accel, Boot, Machine, Model as Card, Nic, Spec};
use crate::plugin::Plugin;
use crate::symbols::Symbols;
use crate::tool;
use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Host name of the guest in its ssh configuration.
pub const NAME: &str = "dut";

/// Operating system of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux.
    Linux,
    /// FreeBSD.
    FreeBsd,
}

impl System {
    /// Name of the system.
    pub fn name(self) -> &'static str {
        match self {
            System::Linux => "Linux",
            System::FreeBsd => "FreeBSD",
        }
    }
}

/// Optional counts in addition to instructions; each makes the guest slower.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountOptions {
    /// Count by caller.
    pub calls: bool,
    /// Model cache misses.
    pub caches: bool,
}

/// Properties of a guest that do not depend on its system.
#[derive(Clone, Debug)]
pub struct Common<'a> {
    /// Accelerator.
    pub accel: Accel,
    /// CPUs.
    pub cpus: u16,
    /// Memory in MiB.
    pub memory: u32,
    /// Network cards for traffic, all of one model.
    pub nics: Vec<Nic>,
    /// Optional counts in addition to instructions.
    pub also: CountOptions,
    /// A directory that survives this process: for the plugin, and the console's log.
    pub cache: &'a Path,
    /// Name of the log in it: guests that run at the same time need different ones.
    pub log: &'a str,
}

impl Common<'_> {
    /// Model of the cards for traffic.
    pub(crate) fn model(&self) -> Card {
        self.nics.first().map_or(Card::Virtio, |nic| nic.model)
    }

    /// Boots the guest with its files in `directory`. `up` waits until the guest answers at
    /// `ssh_port`, sets the gate of its counts, and returns the ssh configuration that reaches it.
    ///
    /// # Errors
    /// If QEMU does not start, or the guest does not come up: then with QEMU's last words.
    pub(crate) fn boot(
        &self,
        (system, boot): (System, Boot),
        directory: &Path,
        ssh_port: u16,
        interfaces: [&str; 2],
        up: impl FnOnce(&Machine, Option<&CountFile>) -> Result<PathBuf, VmError>,
    ) -> Result<RunningGuest, VmError> {
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
            log: self.cache.join(self.log),
        };
        let machine = Machine::start(&spec, directory)?;
        let ssh_config = up(&machine, counts.as_ref()).map_err(|error| machine.explain(error))?;
        let interfaces = interfaces.map(str::to_owned);
        Ok(RunningGuest { machine, counts, calls, caches, ssh_config, system, interfaces })
    }
}

/// A guest that answers.
#[derive(Debug)]
pub struct RunningGuest {
    /// The machine.
    pub machine: Machine,
    /// File with its instruction counts; `None` if nothing counts.
    pub counts: Option<CountFile>,
    /// File with its call tree; `None` if calls are not followed.
    pub calls: Option<CallFile>,
    /// File of the cache model; `None` without a model.
    pub caches: Option<CacheFile>,
    /// The ssh configuration that reaches the guest as `dut` (`ssh -F`).
    pub ssh_config: PathBuf,
    /// Operating system.
    pub system: System,
    /// Interfaces for traffic: input and output.
    pub interfaces: [String; 2],
}

impl RunningGuest {
    /// Returns the functions of its kernel and of the loaded modules.
    ///
    /// # Errors
    /// If the guest does not answer.
    pub fn symbols(&self) -> Result<Symbols, VmError> {
        symbols(self.system, &self.ssh_config)
    }
}

/// Functions of a guest. An emulated guest takes seconds to send them, so they are read again only
/// if its modules have changed, and of Linux then only the functions of modules.
#[derive(Debug, Default)]
pub struct SymbolCache(RefCell<Option<Known>>);

/// Functions that were read.
#[derive(Debug)]
struct Known {
    /// List of the modules at that time.
    modules: String,
    /// The part of the guest's answer that does not depend on modules.
    kernel: String,
    symbols: Rc<Symbols>,
}

impl SymbolCache {
    /// Returns the functions while the guest has `modules`, the output of [`list_modules`].
    ///
    /// # Errors
    /// If the guest does not answer.
    pub fn symbols(&self, guest: &RunningGuest, modules: String) -> Result<Rc<Symbols>, VmError> {
        let mut known = self.0.borrow_mut();
        if let Some(known) = known.as_ref().filter(|known| known.modules == modules) {
            return Ok(known.symbols.clone());
        }
        let kernel = known.take().map(|known| known.kernel).unwrap_or_default();
        let (kernel, symbols) = symbols_after(guest.system, &guest.ssh_config, kernel)?;
        let symbols = Rc::new(symbols);
        *known = Some(Known { modules, kernel, symbols: symbols.clone() });
        Ok(symbols)
    }

    /// Forgets the functions, as after a boot.
    pub fn clear(&self) {
        self.0.take();
    }
}

/// Returns the command that lists the loaded modules of a guest.
pub fn list_modules(system: System) -> &'static [&'static str] {
    match system {
        // A kernel without module support has no list of modules.
        System::Linux => &["sh", "-c", "[ ! -e /proc/modules ] || cut -d ' ' -f 1 /proc/modules"],
        System::FreeBsd => &["kldstat"],
    }
}

/// Returns a script that prints the loaded modules of a FreeBSD with their functions, in the format
/// of [`Symbols::of_modules`]: all from number `first` on, of which 1 is the kernel.
pub fn freebsd_symbols(first: usize) -> String {
    format!(
        "kldstat -v | sed -n 's/.* 0x\\([0-9a-f]*\\) .*(\\(\\/.*\\))$/\\1 \\2/p' | \
         tail -n +{first} | while read at file; do echo module $at $file; nm $file; done"
    )
}

/// Returns the functions of a guest's kernel and of its modules, at their load addresses.
///
/// # Errors
/// If the guest does not answer.
pub(crate) fn symbols(system: System, ssh_config: &Path) -> Result<Symbols, VmError> {
    symbols_after(system, ssh_config, String::new()).map(|(_, symbols)| symbols)
}

/// Returns the functions of a guest, and the part of its answer that does not depend on modules.
/// `kernel` is that part of an earlier answer, which is not read again; empty the first time.
fn symbols_after(
    system: System,
    ssh_config: &Path,
    mut kernel: String,
) -> Result<(String, Symbols), VmError> {
    let rest = match system {
        System::Linux => {
            ssh(ssh_config, &format!("tail -c +{} /proc/kallsyms", kernel.len() + 1), &[])
        }
        System::FreeBsd => {
            let script = freebsd_symbols(if kernel.is_empty() { 1 } else { 2 });
            ssh(ssh_config, "/bin/sh -s", script.as_bytes())
        }
    };
    kernel += &rest?;
    let (symbols, end) = match system {
        System::Linux => (Symbols::of_kallsyms(&kernel), end_of_kallsyms(&kernel)),
        System::FreeBsd => (Symbols::of_modules(&kernel), end_of_kernel(&kernel)),
    };
    kernel.truncate(end);
    match symbols.is_empty() {
        true => Err(VmError::Counts("the guest lists no functions of its kernel".into())),
        false => Ok((kernel, symbols)),
    }
}

/// Returns the length of the kernel's own lines in `/proc/kallsyms`; modules follow them.
fn end_of_kallsyms(text: &str) -> usize {
    let module = text.find('[').unwrap_or(text.len());
    text[..module].rfind('\n').map_or(0, |end| end + 1)
}

/// Returns the length of the kernel's own lines in the output of [`freebsd_symbols`].
fn end_of_kernel(text: &str) -> usize {
    text.match_indices("\nmodule ").next().map_or(text.len(), |(at, _)| at + 1)
}

/// Runs a command in the guest; returns its output.
///
/// # Errors
/// If the guest can't be reached, or the command fails.
pub(crate) fn ssh(config: &Path, command: &str, input: &[u8]) -> Result<String, VmError> {
    let config = config.to_string_lossy();
    let arguments = ["-F", &config, "-o", "BatchMode=yes", NAME, command];
    let output = tool::run("ssh", &arguments, input, "openssh-client")?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// Counting files of a guest, and the plugin as passed to QEMU.
#[derive(Debug, Default)]
struct Counting {
    counts: Option<CountFile>,
    calls: Option<CallFile>,
    caches: Option<CacheFile>,
    plugin: Option<Plugin>,
}

/// Creates the counting files of a guest, and the plugin as passed to QEMU. Empty if nothing
/// counts.
///
/// # Errors
/// If the plugin can't be compiled, or there is no room for the counts.
fn counting(guest: &Common<'_>, directory: &Path) -> Result<Counting, VmError> {
    if guest.accel != Accel::Counted {
        return Ok(Counting::default());
    }
    let options = guest.also;
    let counts = CountFile::create(&directory.join("counts"), guest.cpus)?;
    let calls = options.calls.then(|| CallFile::create(&directory.join("calls")));
    let calls = calls.transpose()?;
    let model = || CacheFile::create(&directory.join("caches"), Model::default());
    let caches = options.caches.then(model).transpose()?;
    let mut plugin = Plugin::new(guest.cache)?.with(&format!("counts={}", counts.path().display()));
    match &calls {
        // Stacks have to be followed from the start of threads.
        Some(calls) => plugin = plugin.with(&format!("calls={}", calls.path().display())),
        None if guest.cpus == 1 => plugin = plugin.with("from=gate"),
        None => {}
    }
    if let Some(caches) = &caches {
        plugin = plugin.with(&format!("caches={}", caches.path().display()));
    }
    Ok(Counting { counts: Some(counts), calls, caches, plugin: Some(plugin) })
}

/// Generates a key pair below `directory`.
///
/// # Errors
/// If ssh-keygen fails.
pub(crate) fn key(directory: &Path, name: &str) -> Result<(), VmError> {
    let file = directory.join(name);
    let text = file.to_string_lossy();
    let arguments = ["-q", "-t", "ed25519", "-N", "", "-C", "fwdlab", "-f", &text];
    tool::run("ssh-keygen", &arguments, &[], "openssh-client").map(drop)
}

/// Writes an ssh configuration that reaches the guest with the key below `directory`; the guest
/// presents the key `host_key`.
///
/// # Errors
/// If a file can't be written.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_part_ends_before_the_first_module() {
        let kernel = "ffffffff81000000 T startup\nffffffff81000010 t f\n";
        let modules = "ffffffffc0000000 t poll\t[virtio_net]\n";
        assert_eq!(end_of_kallsyms(&format!("{kernel}{modules}")), kernel.len());
        assert_eq!(end_of_kallsyms(kernel), kernel.len());
        let kernel = "module ffffffff80200000 /boot/kernel/kernel\nffffffff80200000 T btext\n";
        let modules = "module ffffffff82000000 /boot/kernel/pf.ko\n0000000000000010 T pf_test\n";
        assert_eq!(end_of_kernel(&format!("{kernel}{modules}")), kernel.len());
        assert_eq!(end_of_kernel(kernel), kernel.len());
    }
}
