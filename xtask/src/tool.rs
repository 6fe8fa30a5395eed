//! Programs that chores run, and where they put what they don't keep.

use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Runs a program; a failure names it, its last words and what to install.
pub(crate) fn run(command: &mut Command, install: &str) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output =
        command.output().with_context(|| format!("{program} can't be run; try `{install}`"))?;
    ensure!(
        output.status.success(),
        "{program} failed (is anything missing? try `{install}`):\n{}",
        String::from_utf8_lossy(&output.stderr).trim_end()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A folder for what is made only to be looked at; removed with everything in it.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    /// Makes it.
    pub(crate) fn new() -> Result<Scratch> {
        let path = std::env::temp_dir().join(format!("fwdlab-xtask-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("{} can't be made", path.display()))?;
        Ok(Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What can't be removed is named by nobody later; it lies among temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_says_what_to_install() {
        let error = run(&mut Command::new("no-such-compiler"), "apt-get install it").unwrap_err();
        assert!(format!("{error:#}").contains("apt-get install it"), "{error:#}");
    }
}
