//! Files as candidates: kernels, images, programs or directories of builds.

use crate::error::CliError;
use anyhow::Result;
use fwdlab_model::candidates::Candidate;
use fwdlab_model::natural::natural;
use fwdlab_vm::kernel;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a candidate for each path, in order; for a single directory, one for each entry that is
/// not hidden, in natural order (`r9` before `r10`). Packages that are parts of another package's
/// kernel are not candidates.
///
/// # Errors
/// If a path is missing, or two have the same name.
pub(super) fn candidates(paths: &[PathBuf]) -> Result<Vec<Candidate>> {
    let listed;
    let paths = match paths {
        [directory] => {
            listed = kernel::expand(&entries(directory)?);
            &listed[..]
        }
        paths => paths,
    };
    let mut found: Vec<Candidate> = Vec::new();
    for path in paths {
        let at = |error| CliError::Mistake(format!("--candidates {}: {error}", path.display()));
        let build = path.canonicalize().map_err(at)?;
        let name = path.file_name().unwrap_or(build.as_os_str()).to_string_lossy().into_owned();
        if found.iter().any(|other| other.name == name) {
            let why = format!("--candidates: two are called {name}\n  next step: rename one");
            return Err(CliError::Mistake(why).into());
        }
        found.push(Candidate {
            name,
            build: build.to_string_lossy().into_owned(),
            commit: String::new(),
        });
    }
    Ok(found)
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let at = |error: std::io::Error| {
        let why = format!(
            "--candidates {}: {error}\n  next step: name the directory that holds the \
             candidates, or each of them",
            directory.display()
        );
        CliError::Mistake(why)
    };
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(directory).map_err(at)? {
        names.push(entry.map_err(at)?.file_name().to_string_lossy().into_owned());
    }
    names.retain(|name| !name.starts_with('.'));
    names.sort_by(|a, b| natural(a, b));
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}
