//! Downloads of packages into a directory.

use super::apt::Apt;
use super::catalogue::Offer;
use crate::progress::Stage;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Kernel that could not be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Failure {
    /// Its release.
    pub(super) release: String,
    /// The reason.
    pub(super) why: String,
}

/// Fetches those of the kernels that are complete and not there yet, and returns those that could
/// not be fetched.
///
/// A package appears in the directory only when it is complete, and a kernel's main package appears
/// after its other parts.
///
/// # Errors
/// If the directory can't be written.
pub(super) fn fetch(
    apt: &Apt,
    offers: &[&Offer],
    directory: &Path,
    stage: &mut Stage,
) -> Result<Vec<Failure>> {
    fs::create_dir_all(directory).with_context(|| directory.display().to_string())?;
    let whole: Vec<&&Offer> = offers.iter().filter(|offer| offer.missing.is_empty()).collect();
    let mut failures = Vec::new();
    for (number, offer) in whole.iter().enumerate() {
        let absent: Vec<&String> = offer
            .packages
            .iter()
            .filter(|package| !directory.join(file(package)).is_file())
            .collect();
        if absent.is_empty() {
            continue;
        }
        stage.begin(&format!(
            "fetching {} ({} of {}, {})",
            offer.release,
            number + 1,
            whole.len(),
            offer.size()
        ));
        if let Err(error) = fetch_one(apt, &absent, directory) {
            failures.push(Failure { release: offer.release.clone(), why: format!("{error:#}") });
        }
    }
    Ok(failures)
}

fn fetch_one(apt: &Apt, packages: &[&String], directory: &Path) -> Result<()> {
    let part = directory.join(format!(".fetching-{}", std::process::id()));
    fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
    let packages: Vec<String> = packages.iter().map(|package| (*package).clone()).collect();
    let moved = apt.download(&packages, &part).and_then(|()| {
        packages.iter().try_for_each(|package| {
            let (from, to) = (part.join(file(package)), directory.join(file(package)));
            fs::rename(&from, &to).with_context(|| to.display().to_string())
        })
    });
    // It may be gone already.
    let _ = fs::remove_dir_all(&part);
    moved
}

/// Returns the name that apt gives the file of a package: `linux-image-6.1=1:6.1-1` is in
/// `linux-image-6.1_1%3a6.1-1_amd64.deb`.
pub(super) fn file(package: &str) -> PathBuf {
    let name = package.replacen('=', "_", 1).replace(':', "%3a");
    PathBuf::from(format!("{name}_amd64.deb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_follows_the_naming_of_apt() {
        let expected = "linux-image-6.12.43+deb12-cloud-amd64_6.12.43-1~bpo12+1_amd64.deb";
        let package = "linux-image-6.12.43+deb12-cloud-amd64=6.12.43-1~bpo12+1";
        assert_eq!(file(package), Path::new(expected));
        assert_eq!(file("a=1:2"), Path::new("a_1%3a2_amd64.deb"));
    }
}
