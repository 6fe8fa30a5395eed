//! Guests of QEMU for tests: the kernels and disks that they boot, the program that boots them, and
//! what it leaves.

use crate::skip::{skip, skip_without_data};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a kernel to boot, from the directory `FWDLAB_KERNELS`; `None`, with a recorded skip and
/// a failure in CI, without one.
#[must_use]
pub fn kernel() -> Option<PathBuf> {
    let found = find();
    if let Err(why) = &found {
        skip(&format!("no guest is booted: {why}"));
    }
    found.ok()
}

fn find() -> Result<PathBuf, String> {
    let qemu = Command::new("qemu-system-x86_64").arg("--version").output();
    qemu.map_err(|error| format!("qemu-system-x86_64: {error}; install qemu-system-x86"))?;
    let named = std::env::var_os("FWDLAB_KERNELS");
    let named = named.ok_or("FWDLAB_KERNELS names no directory; `make kernels` fills one")?;
    // Relative to the workspace's root.
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let directory = root.join(named);
    let entries = std::fs::read_dir(&directory)
        .map_err(|error| format!("{}: {error}", directory.display()))?;
    let mut packages: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .collect();
    packages.sort();
    packages.into_iter().next().ok_or_else(|| format!("{}: no package", directory.display()))
}

/// Returns the FreeBSD disk, from the directory `FWDLAB_FREEBSD` or `../shared/freebsd` next to the
/// workspace; `None` without one, as in a bare clone.
#[must_use]
pub fn freebsd_image() -> Option<PathBuf> {
    // Relative to the workspace's root.
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let named = std::env::var_os("FWDLAB_FREEBSD").unwrap_or("../shared/freebsd".into());
    let directory = root.join(named);
    if !directory.is_dir() {
        skip_without_data("no image of FreeBSD (FWDLAB_FREEBSD)");
        return None;
    }
    let image = directory.join("freebsd-13.2-fwdlab.raw.zst");
    let programs = ["qemu-system-x86_64", "qemu-img", "zstd"];
    let missing = programs
        .into_iter()
        .find(|program| Command::new(program).arg("--version").output().is_err())
        .map(|program| format!("{program} is missing"))
        .or_else(|| (!image.is_file()).then(|| format!("{} is missing", image.display())));
    if let Some(why) = &missing {
        skip(&format!("no FreeBSD is booted: {why}"));
    }
    missing.is_none().then_some(image)
}

/// Returns a command that runs the experiment `text` with `program`, the fwdlab under test. All its
/// files are in `directory`.
///
/// # Panics
/// If the file of the experiment cannot be written.
#[must_use]
pub fn command(program: &str, directory: &Path, text: &str) -> Command {
    let file = directory.join("guest.toml");
    std::fs::write(&file, text).expect("a file");
    let mut command = Command::new(program);
    command
        .arg("run")
        .arg(&file)
        .arg("--out")
        .arg(directory.join("out"))
        .env("XDG_CACHE_HOME", directory.join("cache"))
        .env("TMPDIR", directory);
    command
}

/// Returns the files that machines left in `directory`.
///
/// # Panics
/// If the directory cannot be read.
#[must_use]
pub fn left(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).expect("the directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("fwdlab-")).collect()
}

/// A running machine.
#[derive(Debug)]
pub struct Machine {
    /// Process ID of QEMU.
    pub pid: u32,
    /// Memory in MiB.
    pub memory: u32,
    /// Directory of the machine's files.
    pub directory: PathBuf,
}

/// Returns the machines with a Linux kernel whose files are in `directory`.
///
/// # Panics
/// If `/proc` cannot be read.
#[must_use]
pub fn machines(directory: &Path) -> Vec<Machine> {
    let processes = std::fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    let machine = |entry: std::fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let words: Vec<&str> = line.split('\0').collect();
        if !words.first()?.starts_with("qemu") {
            return None;
        }
        let after = |option| words.iter().skip_while(move |word| **word != option).nth(1);
        let initrd = Path::new(after("-initrd")?);
        let parent = initrd.parent().filter(|parent| parent.starts_with(directory))?.to_owned();
        Some(Machine { pid, memory: after("-m")?.parse().ok()?, directory: parent })
    };
    processes.filter_map(machine).collect()
}
