//! Updates the schema of experiment files and the reference pages of experiment and laboratory
//! files.
//!
//! All are generated from the tables of the file reader by the tests that compare them; this module
//! runs these tests in the mode that writes.

use anyhow::{Context, Result, ensure};
use std::path::Path;
use std::process::Command;

/// Writes `docs/experiment.schema.json` and the tables of `docs/EXPERIMENTS.md` and `docs/LABS.md`.
pub(crate) fn refresh(root: &Path) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["test", "--quiet", "--package", "fwdlab-model", "up_to_date"])
        .env("UPDATE", "1")
        .current_dir(root)
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the tests that write the schema failed");
    println!("docs/experiment.schema.json, docs/EXPERIMENTS.md and docs/LABS.md are up to date");
    Ok(())
}
