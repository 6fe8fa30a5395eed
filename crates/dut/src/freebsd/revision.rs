//! Installs and verifies the software revision of a FreeBSD DUT.
//!
//! An image is unpacked on this machine and piped into the DUT's own upgrade program, such as
//! nanobsd's. After installing in either way the DUT reboots before anything else is written: until
//! then, files of `/boot` would be written to the old system. A revision that fwdlab does not
//! install is only read back, after all other settings: a line of loader.conf(5) may select it.

use super::backup::Backup;
use super::system::System;
use crate::revision::{is_installed_by_us, verify};
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_model::settings::Revision;
use fwdlab_model::words;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Note of the revision installed last.
const NOTE: &str = "revision";
/// Note of the boot during which it was installed.
const BOOT: &str = "revision-boot";
/// Note of the revision that was installed and then seen running: some ways of installing last for
/// one boot (nextboot(8)) and must be repeated before the next.
const SEEN: &str = "revision-seen";

/// Installs a missing revision; returns the reason for a reboot, if one is needed.
///
/// # Errors
/// Fails if installing fails, or if another revision runs after the installation and a reboot.
pub fn prepare(
    host: &dyn Host,
    backup: &Backup,
    system: &System,
    revision: &Revision,
    experiment: &Path,
) -> Result<Option<String>, BenchError> {
    let commands = install_commands(revision)?;
    if !is_installed_by_us(revision) {
        return Ok(None);
    }
    let description = describe(revision);
    let is_noted =
        |name: &str| Ok::<_, BenchError>(backup.note(name)?.as_deref() == Some(&description));
    let output = match verify(host, revision) {
        // The revision may contain the command.
        Err(BenchError::Program { why, .. }) => Err(why),
        other => Ok(other?.unwrap_or_default()),
    };
    if let Ok(output) = &output
        && !revision.expect.is_empty()
        && output.contains(&revision.expect)
    {
        if is_noted(NOTE)? {
            backup.set_note(SEEN, &description)?;
        }
        return Ok(None);
    }
    if is_noted(NOTE)? && !is_noted(SEEN)? {
        let boot = backup.note(BOOT)?.unwrap_or_default();
        if system.boot.is(&boot) {
            return Ok(Some("the revision was installed and does not run yet".into()));
        }
        if revision.expect.is_empty() {
            return Ok(None);
        }
        let output = output.unwrap_or_else(|why| why);
        return Err(BenchError::environment(
            format!(
                "{}: after the revision was installed and the DUT rebooted, `{}` says `{}`, not `{}`",
                host.name(),
                revision.verify,
                output.trim(),
                revision.expect
            ),
            format!(
                "look whether it was installed where the DUT boots from; `rm {}` there makes \
                 fwdlab install it again",
                backup.path(NOTE)
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
    backup.forget(SEEN)?;
    backup.set_note(BOOT, &system.boot.0)?;
    backup.set_note(NOTE, &description)?;
    Ok(Some("the revision was installed".into()))
}

fn install_commands(revision: &Revision) -> Result<Vec<Vec<String>>, BenchError> {
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

/// A revision as text, for comparison with the installed one.
fn describe(revision: &Revision) -> String {
    let image = revision.image.as_deref().unwrap_or_default();
    let lines = revision.install.iter().map(String::as_str);
    let all = [image, &revision.upgrade, &revision.expect].into_iter().chain(lines);
    all.map(|line| format!("{line}\n")).collect()
}

/// Program that unpacks a file, by the file's extension.
fn unpacker(image: &Path) -> Option<&'static str> {
    match image.extension()?.to_str()? {
        "xz" => Some("xz"),
        "gz" => Some("gzip"),
        "zst" => Some("zstd"),
        _ => None,
    }
}

/// Unpacks an image and pipes it into a program of the DUT.
fn feed(host: &dyn Host, upgrade: &[String], image: &Path) -> Result<(), BenchError> {
    let file_error = |path: &Path, source| BenchError::File {
        path: path.display().to_string(),
        host: "this machine".into(),
        source,
    };
    let Some(program) = unpacker(image) else {
        std::fs::File::open(image).map_err(|source| file_error(image, source))?;
        return host.feed(&refs(upgrade), image).map(drop);
    };
    // The length must be known before sending, hence a temporary file.
    let part = TemporaryFile::new();
    let output = std::fs::File::create(&part.0).map_err(|source| file_error(&part.0, source))?;
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

/// A temporary file of this machine, removed on drop.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn new() -> TemporaryFile {
        let name = format!("fwdlab-image-{}", std::process::id());
        TemporaryFile(std::env::temp_dir().join(name))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
