//! External programs and temporary folders.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs a program and returns its output. The error contains the program, its error output and the
/// command that installs it.
pub(crate) fn run(command: &mut Command, install: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().with_context(|| format!("cannot run {program}; try `{install}`"))?;
    ensure!(
        output.status.success(),
        "{program} failed (if something is missing, try `{install}`):\n{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A temporary folder, removed when dropped.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Creates the folder.
    pub(crate) fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("fwdlab-xtask-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A failure leaves only a temporary folder behind.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_names_the_command_that_installs_a_missing_program() {
        let error = run(&mut Command::new("no-such-compiler"), "apt-get install it").unwrap_err();
        assert!(format!("{error:#}").contains("apt-get install it"), "{error:#}");
    }
}
