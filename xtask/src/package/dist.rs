//! Makes the files of a release in one folder: archives and Debian packages for both architectures,
//! a software bill of materials, and their sums. The release notes are next to the folder.

use super::{
    ARM, HOST, SUMS, empty_folder, ensure_tools_for_arm, packages, run, time, version, write_sums,
};
use crate::tool::Scratch;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Output folder, below the root.
const FOLDER: &str = "target/dist";
/// The changelog section of this version, below the root.
const NOTES: &str = "target/release-notes.md";
/// The architecture that builds releases: it can cross-compile for the other one.
const BUILDER: &str = "x86_64-unknown-linux-gnu";
/// Command that installs the tool for bills of materials.
const INSTALL_SBOM: &str = "cargo install cargo-cyclonedx --locked";

/// Makes the files of a release of the last commit and prints them with their sizes.
pub(crate) fn make(root: &Path) -> Result<()> {
    ensure!(
        HOST.triple == BUILDER,
        "a release must be made on x86-64, which also builds for arm64"
    );
    ensure_tools_for_arm()?;
    ensure_committed(root)?;
    let version = version(root)?;
    let notes = notes(&fs::read_to_string(root.join("CHANGELOG.md"))?, &version)
        .with_context(|| format!("CHANGELOG.md has no section [{version}]"))?;
    let folder = root.join(FOLDER);
    empty_folder(&folder)?;
    let mut files = packages(root, &folder, &HOST)?;
    files.extend(packages(root, &folder, &ARM)?);
    let sbom = bill_of_materials(root, &folder, &version)?;
    let has_sbom = sbom.is_some();
    files.extend(sbom);
    write_sums(&folder, &files)?;
    files.push(folder.join(SUMS));
    fs::write(root.join(NOTES), notes)?;
    print!("{}", table(&files)?);
    println!("release notes: {NOTES}");
    if !has_sbom {
        println!("no bill of materials: cargo-cyclonedx is missing\n  next step: {INSTALL_SBOM}");
    }
    Ok(())
}

/// Checks that the working tree is committed: packages carry the commit's version.
fn ensure_committed(root: &Path) -> Result<()> {
    let changes = run(Command::new("git")
        .args(["-c", "safe.directory=*", "status", "--porcelain"])
        .current_dir(root))?;
    ensure!(
        changes.trim().is_empty(),
        "the working tree differs from the last commit:\n{}\n  next step: commit or stash",
        changes.trim_end()
    );
    Ok(())
}

/// Writes the dependencies of the program as CycloneDX JSON; `None` if the tool is missing.
///
/// The tool writes next to every manifest, so it gets a clone.
fn bill_of_materials(root: &Path, folder: &Path, version: &str) -> Result<Option<PathBuf>> {
    let cargo = || Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let version_output = cargo().args(["cyclonedx", "--version"]).output()?;
    if !version_output.status.success() {
        return Ok(None);
    }
    let scratch = Scratch::new()?;
    let clone = scratch.0.join("clone");
    run(Command::new("git")
        .args(["-c", "safe.directory=*", "clone", "--quiet"])
        .args([root, &clone]))?;
    run(cargo()
        .args(["cyclonedx", "--format", "json", "--manifest-path", "crates/fwdlab/Cargo.toml"])
        .args(["--target", BUILDER, "--override-filename", "bom", "--spec-version", "1.5"])
        .env("SOURCE_DATE_EPOCH", time(root)?)
        .current_dir(&clone))?;
    let file = folder.join(format!("fwdlab-{version}.cdx.json"));
    let bill = fs::read_to_string(clone.join("crates/fwdlab/bom.json"))
        .context("cargo-cyclonedx wrote no bom.json")?;
    // Crates of the workspace are identified by path. As in the program, the root is replaced by a
    // name that no machine has.
    let place = fs::canonicalize(&clone)?.display().to_string();
    fs::write(&file, bill.replace(&place, "/fwdlab"))?;
    Ok(Some(file))
}

/// Returns the section of a version without its heading.
fn notes(changelog: &str, version: &str) -> Option<String> {
    let (_, section) = changelog.split_once(&format!("## [{version}]"))?;
    let (_, section) = section.split_once('\n')?;
    let section = section.split("\n## ").next().unwrap_or(section);
    Some(format!("{}\n", section.trim()))
}

/// Formats names and sizes.
fn table(files: &[PathBuf]) -> Result<String> {
    let mut text = format!("{:<40} {:>12}\n", "file", "bytes");
    for file in files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        text += &format!("{name:<40} {:>12}\n", fs::metadata(file)?.len());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_contain_the_section_of_the_version() {
        let changelog = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2027-01-31\n\n### Added\n\n\
                         - A thing.\n\n## [0.1.0] - 2026-11-27\n\n- The first.\n";
        assert_eq!(notes(changelog, "0.2.0").unwrap(), "### Added\n\n- A thing.\n");
        assert_eq!(notes(changelog, "0.1.0").unwrap(), "- The first.\n");
        assert_eq!(notes(changelog, "0.3.0"), None);
    }
}
