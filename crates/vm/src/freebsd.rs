//! A FreeBSD guest: booted from a disk image, made reachable over its serial console.
//!
//! The image is never written: the guest writes to an overlay that is deleted with the machine. The
//! image must offer a `login:` on its first serial port and let root log in there without a
//! password, as images for virtual machines do. An optional second kernel is copied into the
//! overlay and booted in place of the image's own.

use crate::cache;
use crate::console::Console;
use crate::error::VmError;
use crate::guest::{self, Common, RunningGuest, System};
use crate::machine::{self, Boot, Model};
use crate::symbols::Symbols;
use crate::tool;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Time for a boot; emulated on a busy machine it takes two minutes or more.
const BOOT: Duration = Duration::from_secs(600);
/// Time for a command on the console: the first start of sshd generates keys.
const COMMAND: Duration = Duration::from_secs(180);
/// Prefix of the exit status after a command on the console. The typed command has quotation marks
/// inside, so that its echo does not match.
const STATUS_PREFIX: &str = "fwdlab: ";
const PRINT_STATUS: &str = "echo fwdlab\": \"$?";
/// File of a kernel, next to its modules.
const KERNEL: &str = "kernel";

/// A disk to boot from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The file; it is not written.
    pub file: PathBuf,
    /// `raw` or `qcow2`.
    format: &'static str,
}

impl Image {
    /// True if a file is a disk, by its name.
    pub fn is_one(path: &Path) -> bool {
        format(path).is_some()
    }

    /// Returns the disk at `path`; unpacks a compressed one (`.zst`) below `cache`, once.
    ///
    /// # Errors
    /// If it is not a disk, or there is no room for it.
    pub fn find(path: &Path, cache: &Path) -> Result<Image, VmError> {
        let format = format(path).ok_or_else(|| VmError::Kernel {
            path: path.to_owned(),
            why: "no disk image: its name ends with .raw, .img or .qcow2, and .zst after that \
                  where it is compressed"
                .into(),
        })?;
        let meta = fs::metadata(path).map_err(|source| VmError::file(path, source))?;
        if path.extension().is_none_or(|extension| extension != "zst") {
            return Ok(Image { file: path.to_owned(), format });
        }
        let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let modified = modified.unwrap_or_default().as_secs();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let file = cache.join(format!("{}-{modified}-{name}", meta.len()));
        if !file.exists() {
            fs::create_dir_all(cache).map_err(|source| VmError::file(cache, source))?;
            // Completely or not at all: under a temporary name first.
            let part = cache::unfinished(cache, &name);
            let texts = [path.to_string_lossy(), part.to_string_lossy()];
            let arguments = ["-d", "-q", "-f", "--long=27", "-o", &texts[1], &texts[0]];
            let unpacked = tool::run("zstd", &arguments, &[], "zstd").map(drop);
            let result = unpacked.and_then(|()| {
                fs::rename(&part, &file).map_err(|source| VmError::file(&file, source))
            });
            if result.is_err() {
                // There may be no such file.
                let _ = fs::remove_file(&part);
            }
            result?;
        }
        Ok(Image { file, format })
    }
}

/// Returns the format of a disk by its name; `None` for other files.
fn format(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".zst").unwrap_or(name);
    match name.rsplit_once('.')?.1 {
        "raw" | "img" => Some("raw"),
        "qcow2" => Some("qcow2"),
        _ => None,
    }
}

/// Configuration of a guest.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// Disk of the guest.
    pub image: &'a Image,
    /// A kernel in place of the image's own: a directory with the layout of one below /boot, with
    /// modules, or such a directory as `.tar.zst`.
    pub kernel: Option<&'a Path>,
    /// Properties common to all systems.
    pub common: Common<'a>,
}

impl Guest<'_> {
    /// Boots the guest with its files in `directory`, until it answers by ssh.
    ///
    /// # Errors
    /// If a program is missing, or the guest does not come up.
    pub fn boot(&self, directory: &Path) -> Result<RunningGuest, VmError> {
        let model = self.common.model();
        let interfaces = interfaces(model)?;
        guest::key(directory, "key")?;
        let port = machine::free_port()?;
        let disk =
            Boot::Disk { image: self.image.file.clone(), format: self.image.format.to_owned() };
        let boot = (System::FreeBsd, disk);
        self.common.boot(boot, directory, port, interfaces, |machine, counts| {
            let config = self.up(machine.console(), directory, port)?;
            if let Some(counts) = counts {
                counts.set_gate(gate(&guest::symbols(System::FreeBsd, &config)?, model)?)?;
            }
            Ok(config)
        })
    }

    /// Waits until the guest is up, and makes it reachable.
    fn up(&self, console: &Console, directory: &Path, port: u16) -> Result<PathBuf, VmError> {
        let public = directory.join("key.pub");
        let public =
            fs::read_to_string(&public).map_err(|source| VmError::file(&public, source))?;
        log_in(console)?;
        for command in set_up(public.trim()) {
            run_on_console(console, &command)?;
        }
        let host_key = run_on_console(console, "cat /etc/ssh/ssh_host_ed25519_key.pub")?;
        let host_key = host_key.lines().map(str::trim).find(|line| line.starts_with("ssh-"));
        let host_key = host_key
            .ok_or_else(|| VmError::Counts("the guest's ssh server has no ed25519 key".into()))?;
        let config = guest::ssh_config(directory, port, host_key)?;
        if let Some(path) = self.kernel {
            let name = install(path, &config)?;
            run_on_console(console, &format!("echo 'kernel=\"{name}\"' >> /boot/loader.conf"))?;
            console.send("reboot")?;
            log_in(console)?;
            run_on_console(console, LISTENS)?;
            let booted = run_on_console(console, "sysctl -n kern.bootfile")?;
            if !booted.contains(&format!("/boot/{name}/")) {
                return Err(VmError::Kernel {
                    path: path.to_owned(),
                    why: format!("the guest booted {} in its place", booted.trim()),
                });
            }
        }
        console.send("exit")?;
        Ok(config)
    }
}

/// Logs root in, and leaves a shell that prints no prompt and echoes nothing.
fn log_in(console: &Console) -> Result<(), VmError> {
    console.wait_for("login:", BOOT)?;
    console.send("root")?;
    // Prompt of any shell that root has.
    console.wait_for("# ", COMMAND)?;
    console.send("exec /bin/sh")?;
    console.wait_for("# ", COMMAND)?;
    console.send(&format!("PS1=; set +E +V; stty -echo; {PRINT_STATUS}"))?;
    console.wait_for(STATUS_PREFIX, COMMAND)?;
    console.wait_for("\n", COMMAND).map(drop)
}

/// Runs a command on the console; returns its output.
fn run_on_console(console: &Console, command: &str) -> Result<String, VmError> {
    console.send(&format!("{command}; {PRINT_STATUS}"))?;
    let output = console.wait_for(STATUS_PREFIX, COMMAND)?;
    let status = console.wait_for("\n", COMMAND)?;
    match status.trim() {
        "0" => Ok(output),
        status => Err(VmError::Counts(format!(
            "the guest's `{command}` ended with {status}: {}",
            output.trim()
        ))),
    }
}

/// Returns the commands that make the guest reachable, now and after a reboot. Terminals accept
/// lines of 255 bytes.
fn set_up(public: &str) -> Vec<String> {
    let (host, guest) = machine::ADMIN;
    let options = "-o UseDNS=no -o PermitRootLogin=prohibit-password -o MaxSessions=64";
    vec![
        "mkdir -p ~/.ssh".to_owned(),
        format!("echo '{public}' >> ~/.ssh/authorized_keys"),
        "chmod 700 ~/.ssh; chmod 600 ~/.ssh/authorized_keys".to_owned(),
        format!(
            "echo 'ifconfig_vtnet0=\"inet {guest}/24\" defaultrouter=\"{host}\"' >> /etc/rc.conf"
        ),
        format!("echo 'sshd_enable=YES sshd_flags=\"{options}\"' >> /etc/rc.conf"),
        "echo 'background_fsck=NO' >> /etc/rc.conf".to_owned(),
        // The clock ticks at the same rate with and without packets.
        format!("echo {CLOCK} >> /etc/sysctl.conf; sysctl {CLOCK}"),
        format!("ifconfig vtnet0 inet {guest}/24"),
        "service sshd restart".to_owned(),
        LISTENS.to_owned(),
        QUIET.to_owned(),
    ]
}

/// Waits for the ssh server, which forks before it listens.
const LISTENS: &str = "until netstat -anp tcp | grep -q '[.]22 .*LISTEN'; do sleep 0.2; done";
/// See eventtimers(4).
const CLOCK: &str = "kern.eventtimer.idletick=1";
/// Ends processes that would wake the guest a minute after its start.
const QUIET: &str = "pkill -f 'rc autoboot'; pkill -x sleep; true";

/// Copies a kernel into the guest; returns its name below /boot.
fn install(path: &Path, config: &Path) -> Result<String, VmError> {
    let wrong = |why: &str| VmError::Kernel { path: path.to_owned(), why: why.to_owned() };
    let text = path.to_string_lossy();
    let archive = match path.is_dir() {
        true => tool::run("tar", &["-C", &text, "-cf", "-", "."], &[], "tar")?,
        false => tool::run("zstd", &["-dcq", "--long=27", &text], &[], "zstd")?,
    };
    let list = tool::run("tar", &["-tf", "-"], &archive, "tar")?;
    let list = String::from_utf8_lossy(&list);
    let (top, files): (Vec<&str>, Vec<&str>) =
        list.lines().filter_map(|line| line.split_once('/')).unzip();
    if !files.contains(&KERNEL) {
        return Err(wrong(
            "no kernel: give a directory that holds a file `kernel` and its modules",
        ));
    }
    let given_name = match top.first() {
        Some(&".") | None => path.file_name().unwrap_or_default().to_str().unwrap_or_default(),
        Some(name) => *name,
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if given_name.is_empty() || !given_name.chars().all(is_plain) {
        return Err(wrong("a kernel's name has letters, digits, `.`, `_` and `-` only"));
    }
    // The image's own kernel stays unchanged.
    let name = if given_name == KERNEL { "kernel.given" } else { given_name };
    let unpack = format!("mkdir -p /boot/{name} && tar -C /boot/{name} --strip-components 1 -xf -");
    guest::ssh(config, &unpack, &archive)?;
    Ok(name.to_owned())
}

/// Returns the interfaces for traffic: they come after the administrative one if it has the same
/// driver.
fn interfaces(model: Model) -> Result<[&'static str; 2], VmError> {
    match model {
        Model::Virtio => Ok(["vtnet1", "vtnet2"]),
        Model::Vmxnet3 => Ok(["vmx0", "vmx1"]),
        Model::Igb => Ok(["igb0", "igb1"]),
        Model::E1000 => Ok(["em0", "em1"]),
        // Observed with QEMU 7.2 and FreeBSD 13.2.
        Model::E1000e => Err(VmError::Counts(
            "a guest of FreeBSD hangs when QEMU's e1000e comes up\n  next step: take virtio, \
             vmxnet3 or e1000"
                .into(),
        )),
    }
}

/// Returns the address of the function at which batches are gathered: it is called once per
/// interrupt, before the driver checks for frames.
fn gate(symbols: &Symbols, model: Model) -> Result<u64, VmError> {
    let function = match model {
        Model::Virtio => "vtnet_rx_vq_process",
        // The drivers whose rings iflib(9) processes.
        Model::E1000 | Model::E1000e | Model::Vmxnet3 | Model::Igb => "_task_fn_rx",
    };
    symbols.address(function).ok_or_else(|| {
        VmError::Counts(format!("the guest's kernel has no function {function}, its driver's"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};

    #[test]
    fn find_recognises_disks_and_unpacks_once() {
        for (name, format) in
            [("a.raw.zst", Some("raw")), ("b.qcow2", Some("qcow2")), ("c.deb", None)]
        {
            assert_eq!(super::format(Path::new(name)), format, "{name}");
        }
        let directory = tempfile::tempdir().unwrap();
        let disk = directory.path().join("x.raw");
        fs::write(&disk, vec![7; 100_000]).unwrap();
        let (packed, cache) = (directory.path().join("x.raw.zst"), directory.path().join("cache"));
        let arguments = ["-q".into(), disk.to_string_lossy()];
        let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
        if let Err(error) = tool::run("zstd", &arguments, &[], "zstd") {
            return fwdlab_testdata::skip(&format!("nothing is unpacked: {error}"));
        }
        let image = Image::find(&packed, &cache).unwrap();
        assert_eq!(fs::read(&image.file).unwrap(), fs::read(&disk).unwrap());
        fs::write(&image.file, "kept").unwrap();
        assert_eq!(Image::find(&packed, &cache).unwrap(), image);
        assert_eq!(fs::read(&image.file).unwrap(), b"kept");
        fs::write(&packed, "no archive").unwrap();
        assert!(Image::find(&packed, &cache).is_err());
        assert_eq!(fs::read_dir(&cache).unwrap().count(), 1, "nothing half done is left");
    }

    #[test]
    fn gate_is_found_by_driver() {
        let symbols = Symbols::of_kallsyms("ffffffff80414060 t vtnet_rx_vq_process\n");
        assert_eq!(gate(&symbols, Model::Virtio).unwrap(), 0xffff_ffff_8041_4060);
        assert!(gate(&symbols, Model::Vmxnet3).unwrap_err().to_string().contains("_task_fn_rx"));
        let error = interfaces(Model::E1000e).unwrap_err().to_string();
        assert!(error.contains("take virtio, vmxnet3 or e1000"), "{error}");
    }

    #[test]
    fn run_on_console_reports_failed_command() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("console");
        let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        let console = Console::connect(&socket, Path::new("log"), Duration::from_secs(5)).unwrap();
        let mut guest = listener.accept().unwrap().0;
        guest.write_all(b"key\r\nfwdlab: 0\r\nno such file\r\nfwdlab: 1\r\n").unwrap();
        assert_eq!(run_on_console(&console, "cat key").unwrap().trim(), "key");
        let error = run_on_console(&console, "cat other").unwrap_err().to_string();
        assert!(error.contains("`cat other` ended with 1: no such file"), "{error}");
        let mut typed = [0; 31];
        guest.read_exact(&mut typed).unwrap();
        assert_eq!(&typed, b"cat key; echo fwdlab\": \"$?\ncat ");
    }

    #[test]
    fn set_up_commands_fit_terminal_lines() {
        let key = "ssh-ed25519 ".to_owned() + &"A".repeat(68) + " fwdlab";
        for command in set_up(&key) {
            assert!(command.len() + PRINT_STATUS.len() < 250, "{command}");
        }
    }
}
