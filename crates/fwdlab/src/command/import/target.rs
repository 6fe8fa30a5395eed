//! Selection of the sets to import, and the paths of their stores.

use super::scan::{self, Scan};
use crate::error::CliError;
use crate::experiment::STORE;
use anyhow::Result;
use fwdlab_archive::import::Job;
use std::path::{Path, PathBuf};

/// Default directory of stores.
const RESULTS: &str = "results";
/// Directory of several stores below [`RESULTS`].
const ARCHIVE: &str = "archive";
/// Maximum number of sets named in a message.
const SHOWN: usize = 5;

/// Contents of the directories.
pub(super) struct Found {
    /// All sets, as if they were in one directory.
    pub(super) scan: Scan,
    /// For each set the directory that contains it: its real path, and the path on the command
    /// line.
    directories: Vec<(PathBuf, String)>,
}

/// Scans the directories.
///
/// # Errors
/// If one can't be read, or none contains a set.
pub(super) fn find(directories: &[PathBuf]) -> Result<Found> {
    let mut found = Found { scan: Scan::default(), directories: Vec::new() };
    let mut seen = Vec::new();
    for directory in directories {
        let named = directory.display().to_string();
        let real = directory.canonicalize().map_err(|error| unreadable(&named, &error))?;
        if seen.contains(&real) {
            continue;
        }
        let scan = scan::scan(directory).map_err(|error| unreadable(&named, &error))?;
        found.directories.extend(scan.sets.iter().map(|_| (real.clone(), named.clone())));
        found.scan.sets.extend(scan.sets);
        found.scan.problems.extend(scan.problems);
        found.scan.other.files += scan.other.files;
        found.scan.other.bytes += scan.other.bytes;
        seen.push(real);
    }
    if found.scan.sets.is_empty() {
        let problems = found.scan.problems.iter();
        let problems: Vec<String> =
            problems.map(|(path, why)| format!("\n  {}: {why}", path.display())).collect();
        let what = format!(
            "no result set among {} files{}",
            found.scan.other.files,
            problems.into_iter().take(SHOWN).collect::<String>()
        );
        return Err(nothing(directories, &what));
    }
    Ok(found)
}

/// The sets with the paths of their stores.
///
/// # Errors
/// If the stores can't be at the requested path.
pub(super) fn jobs(found: &Found, store: Option<&Path>) -> Result<Vec<Job>> {
    let sets = &found.scan.sets;
    if let (true, Some(file)) = (sets.len() > 1, store.filter(|store| store.is_file())) {
        let names: Vec<String> =
            sets.iter().take(SHOWN).map(|set| set.below.display().to_string()).collect();
        let more = if sets.len() > SHOWN { ", ..." } else { "" };
        let why = format!(
            "{} is a file, and there are {} sets ({}{more}); name a directory with --out, or one \
             of the sets",
            file.display(),
            sets.len(),
            names.join(", ")
        );
        return Err(CliError::Mistake(why).into());
    }
    let place = |below: &Path| match (store, sets.len()) {
        (Some(store), 1) if store.is_dir() => store.join(STORE),
        (Some(store), 1) => store.to_path_buf(),
        (None, 1) => Path::new(RESULTS).join(&sets[0].set.place.label).join(STORE),
        (Some(directory), _) => directory.join(below).join(STORE),
        (None, _) => Path::new(RESULTS).join(ARCHIVE).join(below).join(STORE),
    };
    let mut jobs = Vec::new();
    for (scanned, (directory, named)) in sets.iter().zip(&found.directories) {
        let store = place(&scanned.below);
        let real = real(&store);
        let mut folders = scanned.set.files.iter().filter_map(|file| file.path.parent());
        if real.starts_with(directory) || folders.any(|folder| real.starts_with(folder)) {
            let why = format!(
                "the store {} would be inside {named}, where nothing is written; name a place \
                 outside with --out",
                store.display()
            );
            return Err(CliError::Mistake(why).into());
        }
        jobs.push(Job { set: scanned.set.clone(), store, named: named.clone() });
    }
    Ok(jobs)
}

/// The error for an import without sets: the directories, and the kind of files searched for.
pub(super) fn nothing(directories: &[PathBuf], what: &str) -> anyhow::Error {
    let named: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
    let why = format!(
        "{}: {what}\n  looked for: folders with logs of the netbenches harness \
         (bench.*.receiver, bench.*.sender)\n  next step: name the archive, one of its benches, \
         or a result (MACHINE/INTERFACE/BENCH/results/LABEL)",
        named.join(", ")
    );
    CliError::Mistake(why).into()
}

fn unreadable(named: &str, error: &std::io::Error) -> anyhow::Error {
    CliError::Mistake(format!("{named} can't be read: {error}; name a directory")).into()
}

/// Resolves links in the existing part of a path.
fn real(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match known {
        Some((above, real)) => match path.strip_prefix(above) {
            Ok(rest) if rest != Path::new("") => real.join(rest),
            _ => real,
        },
        None => path,
    }
}
