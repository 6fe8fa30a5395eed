//! Whether guests can be counted here, found out by trying.

use crate::counts::CountFile;
use crate::error::VmError;
use crate::machine::QEMU;
use crate::{plugin, tool};
use fwdlab_port::process;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// For how long QEMU may take to load the plugin.
const PATIENCE: Duration = Duration::from_secs(20);

/// Loads the plugin, kept in `cache`, into a QEMU without a machine; `directory` takes the
/// file that it counts in. Returns QEMU's version.
///
/// # Errors
/// When QEMU or the compiler is missing, or QEMU does not take the plugin.
pub fn counting(cache: &Path, directory: &Path) -> Result<String, VmError> {
    let version = tool::run(QEMU, &["--version"], &[], "qemu-system-x86")?;
    let version = String::from_utf8_lossy(&version);
    let version = version.lines().next().unwrap_or_default().to_owned();
    let counts = CountFile::create(&directory.join("probe"))?;
    let plugin = plugin::compiled(cache)?;
    let plugin = format!("{},counts={}", plugin.display(), counts.path().display());
    let arguments = ["-accel", "tcg", "-machine", "none", "-display", "none", "-monitor", "none"];
    let mut child = process::die_with_us(&mut Command::new(QEMU))
        .args(arguments)
        .args(["-plugin", &plugin])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| VmError::Program {
            program: QEMU.into(),
            why: error.to_string(),
            next: "install qemu-system-x86".into(),
        })?;
    let deadline = Instant::now() + PATIENCE;
    let counts = loop {
        std::thread::sleep(Duration::from_millis(20));
        let found = counts.counts();
        let ended = child.try_wait().ok().flatten().is_some();
        if found.is_ok() || ended || Instant::now() > deadline {
            break found;
        }
    };
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
    match counts {
        Ok(_) => Ok(version),
        Err(_) => Err(VmError::Program {
            program: version,
            why: "it does not take fwdlab's plugin".into(),
            next: "use QEMU 7 or 8 that was built with plugins, as Debian 12's is".into(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn qemu_takes_the_plugin() {
        let directory = tempfile::tempdir().unwrap();
        match counting(directory.path(), directory.path()) {
            Ok(version) => assert!(version.starts_with("QEMU"), "{version}"),
            Err(error) => {
                assert_ne!(std::env::var("FWDLAB_CI").as_deref(), Ok("1"), "{error}");
                eprintln!("SKIPPED: guests can't be counted here: {error}");
            }
        }
    }
}
