//! Installs and verifies the software revision of a FreeBSD DUT.
//!
//! An image is unpacked on this machine and fed to the DUT's own upgrade program, as
//! nanobsd's are. After either way of installing the DUT boots before anything else is
//! written: files of `/boot` would go to the system that is being left. A revision that nothing
//! installs is only read back, once everything else is in place: a line of loader.conf(5) may
//! be what chooses it.

use super::backup::Backup;
use super::system::System;
use crate::revision::{is_installed_by_us, verify};
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::Revision;
use fwdlab_model::words;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Note of what was installed last.
const NOTE: &str = "revision";
/// Note of the boot that it was installed in.
const BOOT: &str = "revision-boot";
/// Note of what was installed and then seen running: some ways of installing last for one boot
/// (nextboot(8)), and another boot needs them again.
const SEEN: &str = "revision-seen";

/// Installs a missing revision; returns the reason for a reboot, if one is needed.
///
/// # Errors
/// When installing fails, or what runs after it and a reboot is not what was expected.
pub fn prepare(
    host: &dyn Host,
    memory: &Backup,
    system: &System,
    revision: &Revision,
    experiment: &Path,
) -> Result<Option<String>, BenchError> {
    let commands = commands(revision)?;
    if !is_installed_by_us(revision) {
        return Ok(None);
    }
    let wanted = describe(revision);
    let is_noted = |name: &str| Ok::<_, BenchError>(memory.note(name)?.as_deref() == Some(&wanted));
    let said = match verify(host, revision) {
        // The revision may be what brings the command.
        Err(BenchError::Program { why, .. }) => Err(why),
        other => Ok(other?.unwrap_or_default()),
    };
    if let Ok(said) = &said
        && !revision.expect.is_empty()
        && said.contains(&revision.expect)
    {
        if is_noted(NOTE)? {
            memory.set_note(SEEN, &wanted)?;
        }
        return Ok(None);
    }
    if is_noted(NOTE)? && !is_noted(SEEN)? {
        let boot = memory.note(BOOT)?.unwrap_or_default();
        if system.boot.is(&boot) {
            return Ok(Some("the revision was installed and does not run yet".into()));
        }
        if revision.expect.is_empty() {
            return Ok(None);
        }
        let said = said.unwrap_or_else(|why| why);
        return Err(BenchError::environment(
            format!(
                "{}: after the revision was installed and the DUT rebooted, `{}` says `{}`, not `{}`",
                host.name(),
                revision.verify,
                said.trim(),
                revision.expect
            ),
            format!(
                "look whether it was installed where the DUT boots from; `rm {}` there makes \
                 fwdlab install it again",
                memory.path(NOTE)
            ),
        ));
    }
    if let Some(image) = &revision.image {
        let upgrade = split(&revision.upgrade, "upgrade")?;
        feed(host, &upgrade, &experiment.join(image))?;
    }
    for command in &commands {
        host.run(&refs(command), "")?;
    }
    memory.forget(SEEN)?;
    memory.set_note(BOOT, &system.boot.0)?;
    memory.set_note(NOTE, &wanted)?;
    Ok(Some("the revision was installed".into()))
}

fn commands(revision: &Revision) -> Result<Vec<Vec<String>>, BenchError> {
    if revision.image.is_some() && revision.upgrade.trim().is_empty() {
        return Err(BenchError::Refused(
            "revision.image: no `upgrade` says what reads it on the DUT (nanobsd's is \
             `upgrade`)"
                .into(),
        ));
    }
    revision.install.iter().map(|command| split(command, "install")).collect()
}

fn split(command: &str, key: &str) -> Result<Vec<String>, BenchError> {
    words::split(command).map_err(|why| BenchError::Refused(format!("revision.{key}: {why}")))
}

fn refs(command: &[String]) -> Vec<&str> {
    command.iter().map(String::as_str).collect()
}

/// A revision as text, to compare with the one that was installed.
fn describe(revision: &Revision) -> String {
    let image = revision.image.as_deref().unwrap_or_default();
    let lines = revision.install.iter().map(String::as_str);
    let all = [image, &revision.upgrade, &revision.expect].into_iter().chain(lines);
    all.map(|line| format!("{line}\n")).collect()
}

/// The program that unpacks a file, by its name.
fn unpacker(image: &Path) -> Option<&'static str> {
    match image.extension()?.to_str()? {
        "xz" => Some("xz"),
        "gz" => Some("gzip"),
        "zst" => Some("zstd"),
        _ => None,
    }
}

/// Feeds an image to a program of the DUT, unpacked.
fn feed(host: &dyn Host, upgrade: &[String], image: &Path) -> Result<(), BenchError> {
    let here = |path: &Path, source| BenchError::File {
        path: path.display().to_string(),
        host: "this machine".into(),
        source,
    };
    let Some(program) = unpacker(image) else {
        std::fs::File::open(image).map_err(|source| here(image, source))?;
        return host.feed(&refs(upgrade), image).map(drop);
    };
    // Its length must be known before it is sent, hence a file.
    let part = Unpacked::new();
    let output = std::fs::File::create(&part.0).map_err(|source| here(&part.0, source))?;
    let failed = |why: String| BenchError::Program {
        command: format!("{program} -dc {}", image.display()),
        host: "this machine".into(),
        why,
    };
    let done = Command::new(program)
        .arg("-dc")
        .arg("--")
        .arg(image)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(Stdio::piped())
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => failed(format!("{program} is not installed")),
            _ => failed(error.to_string()),
        })?;
    if !done.status.success() {
        return Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned()));
    }
    host.feed(&refs(upgrade), &part.0).map(drop)
}

/// A file of this machine that is removed with its owner.
struct Unpacked(PathBuf);

impl Unpacked {
    fn new() -> Unpacked {
        let name = format!("fwdlab-image-{}", std::process::id());
        Unpacked(std::env::temp_dir().join(name))
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
