//! Finds the result sets of a tree.
//!
//! A set is a folder that directly contains logs (`bench.*.receiver`, `bench.*.sender`), with the
//! published files of its result folder (`results/LABEL/`) and the configurations of its bench. The
//! scan reads every directory once. It reads only names, sizes and times of files, and opens none
//! but a note on the origin of a copy (`SOURCE.json`). [`assemble`](super::assemble) interprets the
//! contents.

mod place;
mod walk;

use super::found::{FoundFile, Place, ResultSet, Tree};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use walk::{Entry, Walk};

/// Folders in which users of the harness keep results.
const RESULTS: [&str; 2] = ["results", "result"];
/// Folders of a bench that contain no results.
const NO_RESULTS: [&str; 5] = ["results", "result", "configs", "machine", "lab"];
/// Maximum depth of raw logs below the result, in folders (`PMC/on`).
const DEEPEST: usize = 2;
/// Maximum distance of a machine's configurations above its benches.
const MACHINE_ABOVE: usize = 2;
/// Suffixes of log names.
const LOGS: [&str; 5] = ["receiver", "sender", "sender_2", "sender_gen2", "sender_gen2_2"];

/// Result of a scan.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The result sets, sorted by path below the directory.
    pub sets: Vec<ScannedSet>,
    /// Files outside all sets.
    pub other: OtherFiles,
    /// Paths that were unreadable or left out, with the reason; sorted by path.
    pub problems: Vec<(PathBuf, String)>,
}

/// A result set and its path below the scanned directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedSet {
    /// The set.
    pub set: ResultSet,
    /// Its path without the folder `results`, or its label if the directory is the set itself.
    pub below: PathBuf,
}

/// Files outside all sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OtherFiles {
    /// Number of files.
    pub files: usize,
    /// Their size in bytes.
    pub bytes: u64,
}

/// Finds the result sets in and below `directory`. It may also be a single result or its folder of
/// raw logs; the scan then looks for the bench's configurations above it. Links are followed once,
/// hidden directories skipped.
///
/// # Errors
/// Fails if `directory` itself cannot be read.
pub fn scan(directory: &Path) -> io::Result<Scan> {
    let root = directory.canonicalize()?;
    let mut walk = Walk::of(&root)?;
    let above = raw_folders(&walk, &root).into_iter().map(|raw| home(&walk, raw).label);
    // Below a result, the name of this set depends on its sibling folders.
    if let Some(label) = above.into_iter().find(|label| *label != root && root.starts_with(label)) {
        walk = Walk::of(&label)?;
    }
    Ok(Scanner { root, walk, places: BTreeMap::new() }.scan())
}

/// The result that a folder of logs belongs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ResultFolder {
    /// The bench's folder.
    origin: PathBuf,
    /// The result's folder; equals the origin if the logs are outside any bench.
    label: PathBuf,
}

struct Scanner {
    root: PathBuf,
    walk: Walk,
    places: BTreeMap<PathBuf, Place>,
}

impl Scanner {
    fn scan(mut self) -> Scan {
        let raw = raw_folders(&self.walk, &self.root);
        let mut by_home: BTreeMap<ResultFolder, Vec<usize>> = BTreeMap::new();
        for folder in raw_folders(&self.walk, Path::new("/")) {
            by_home.entry(home(&self.walk, folder)).or_default().push(folder);
        }
        let mut scan = Scan::default();
        for (home, folders) in &by_home {
            if folders.iter().any(|folder| raw.contains(folder)) {
                self.read_bench(&home.origin);
            }
            let main = main_of(&self.walk, home, folders);
            for &folder in folders.iter().filter(|folder| raw.contains(folder)) {
                scan.sets.push(self.set(home, folders, main, folder));
            }
            scan.problems.extend(self.duplicates(home, folders));
        }
        scan.sets.sort_by(|a, b| a.below.cmp(&b.below));
        scan.other = self.other(&scan.sets);
        scan.problems.append(&mut self.walk.problems);
        scan.problems.sort();
        scan
    }

    /// Reads the configurations of a bench above the scanned directory.
    fn read_bench(&mut self, origin: &Path) {
        for folder in ["configs", "machine"] {
            let folder = origin.join(folder);
            if self.walk.at(&folder).is_none() && folder.is_dir() {
                // An unreadable folder counts as missing.
                let _ = self.walk.add(&folder);
            }
        }
    }

    fn set(
        &mut self,
        home: &ResultFolder,
        all: &[usize],
        main: Option<usize>,
        raw: usize,
    ) -> ScannedSet {
        let is_main = main == Some(raw);
        let mut files = self.files(&home.origin, raw);
        let published = is_main || main.is_none();
        if let Some(label) = self.walk.at(&home.label).filter(|&label| published && label != raw) {
            files.extend(self.files(&home.origin, label));
        }
        files.sort_by(|a, b| a.name.cmp(&b.name));
        files.dedup_by(|a, b| a.name == b.name);
        let root = &self.root;
        let place = self.places.entry(home.origin.clone()).or_insert_with(|| {
            let known = place::of_bench(&home.origin, root);
            let alone = home.origin == home.label;
            if alone { Place { topic: String::new(), ..known } } else { known }
        });
        let path = &self.walk.folders[raw].path;
        let own_name = match path.strip_prefix(&home.label) {
            Ok(below) if !is_main && all.len() > 1 => below.to_path_buf(),
            _ => PathBuf::new(),
        };
        let name = with(PathBuf::from(home.label.file_name().unwrap_or_default()), &own_name);
        let place = Place { label: slashed(&name), ..place.clone() };
        let below = match home.label.strip_prefix(&self.root) {
            Ok(below) if below != Path::new("") => with(without_results(below, home), &own_name),
            _ => name,
        };
        let configurations = self.configurations(&home.origin);
        let lab = self.lab(&home.origin, &place);
        let origin = home.origin.clone();
        ScannedSet { set: ResultSet { origin, place, files, configurations, lab }, below }
    }

    /// Returns the files of a folder and its subfolders, except subfolders that are sets
    /// themselves.
    fn files(&self, origin: &Path, start: usize) -> Vec<FoundFile> {
        let walk = &self.walk;
        let skip = |folder: usize| {
            is_raw(walk, folder) || NO_RESULTS.contains(&walk.folders[folder].name.as_str())
        };
        let folders = walk.below(start, skip).into_iter();
        folders
            .flat_map(|folder| {
                let folder = &walk.folders[folder];
                let below = below(&folder.path, origin);
                folder.files.iter().map(move |file| file.found(joined(&below, &file.name)))
            })
            .collect()
    }

    fn configurations(&self, origin: &Path) -> Vec<Tree> {
        let Some(configs) = self.walk.at(&origin.join("configs")) else { return Vec::new() };
        let trees = self.walk.folders[configs].folders.iter();
        trees
            .map(|&tree| {
                let name = self.walk.folders[tree].name.clone();
                let mut files = Vec::new();
                for folder in self.walk.below(tree, |_| false) {
                    let folder = &self.walk.folders[folder];
                    let below = below(&folder.path, origin);
                    files.extend(folder.files.iter().map(|f| f.found(joined(&below, &f.name))));
                }
                files.sort_by(|a, b| a.name.cmp(&b.name));
                Tree { name, files }
            })
            .collect()
    }

    /// Returns the configurations of the harness: the bench's, and the machine's above it if the
    /// path identifies the machine.
    fn lab(&self, origin: &Path, place: &Place) -> Vec<FoundFile> {
        let mut found = self.lab_in(origin, "");
        found.extend(self.lab_in(&origin.join("machine"), "machine"));
        let known = if place.machine.is_empty() { 0 } else { MACHINE_ABOVE };
        let mut up = String::new();
        for above in origin.ancestors().skip(1).take(known) {
            up = joined(&up, "..");
            found.extend(self.lab_in(above, &up));
        }
        found
    }

    fn lab_in(&self, folder: &Path, name: &str) -> Vec<FoundFile> {
        let named = |files: &[Entry]| {
            let files = files.iter().filter(|file| is_lab(&file.name));
            files.map(|file| file.found(joined(name, &file.name))).collect()
        };
        match self.walk.at(folder) {
            Some(folder) => named(&self.walk.folders[folder].files),
            None if self.root.starts_with(folder) => named(&walk::files_of(folder, is_lab)),
            None => Vec::new(),
        }
    }

    /// Reports logs with the same name both in the result folder and below it: it is unclear which
    /// are the results.
    fn duplicates(&self, home: &ResultFolder, folders: &[usize]) -> Vec<(PathBuf, String)> {
        let Some(label) = self.walk.at(&home.label).filter(|label| folders.contains(label)) else {
            return Vec::new();
        };
        let logs = |folder: usize| {
            let files = self.walk.folders[folder].files.iter();
            files.filter(|file| is_log(&file.name)).map(|file| &file.name).collect::<HashSet<_>>()
        };
        let own_logs = logs(label);
        let others = folders.iter().filter(|&&folder| is_named_raw(&self.walk, folder));
        others
            .filter_map(|&other| {
                let Walk { folders, .. } = &self.walk;
                let duplicate = own_logs.intersection(&logs(other)).min().copied()?.clone();
                let why = format!(
                    "there is {} too: the two folders are read as two sets; remove one of them \
                     where they hold the same runs",
                    folders[other].path.join(&duplicate).display()
                );
                Some((folders[label].path.join(duplicate), why))
            })
            .collect()
    }

    fn other(&self, sets: &[ScannedSet]) -> OtherFiles {
        let in_sets: BTreeSet<&Path> = sets
            .iter()
            .flat_map(|scanned| {
                let set = &scanned.set;
                let trees = set.configurations.iter().flat_map(|tree| &tree.files);
                set.files.iter().chain(trees).chain(&set.lab).map(|file| file.path.as_path())
            })
            .collect();
        let folders = self.walk.folders.iter().filter(|f| f.path.starts_with(&self.root));
        let files = folders.flat_map(|folder| &folder.files);
        files.filter(|file| !in_sets.contains(file.path.as_path())).fold(
            OtherFiles::default(),
            |sum, file| OtherFiles { files: sum.files + 1, bytes: sum.bytes + file.size },
        )
    }
}

/// Returns the folders at and below `root` that contain logs.
fn raw_folders(walk: &Walk, root: &Path) -> Vec<usize> {
    let below = |&folder: &usize| walk.folders[folder].path.starts_with(root);
    (0..walk.folders.len()).filter(|&folder| is_raw(walk, folder)).filter(below).collect()
}

fn is_raw(walk: &Walk, folder: usize) -> bool {
    walk.folders[folder].files.iter().any(|file| is_log(&file.name))
}

fn is_log(name: &str) -> bool {
    let end = name.rsplit('.').next().unwrap_or_default();
    name.starts_with("bench.") && LOGS.contains(&end)
}

fn is_lab(name: &str) -> bool {
    (name.starts_with("bench-lab-") || name.starts_with("ddos-lab")) && name.ends_with(".config")
}

fn is_results(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| RESULTS.contains(&name))
}

fn is_named_raw(walk: &Walk, folder: usize) -> bool {
    walk.folders[folder].name.eq_ignore_ascii_case("raw")
}

/// Returns the result that a folder of logs belongs to: the one below `results/`; otherwise the
/// parent of a folder named `RAW`, `RAW.1rx` or `PMC`; otherwise the folder itself.
fn home(walk: &Walk, raw: usize) -> ResultFolder {
    let folder = &walk.folders[raw];
    for label in folder.path.ancestors().take(DEEPEST + 1) {
        let bench = label.parent().filter(|parent| is_results(parent)).and_then(Path::parent);
        if let Some(origin) = bench {
            return ResultFolder { origin: origin.to_path_buf(), label: label.to_path_buf() };
        }
    }
    let kind = folder.name.split('.').next().unwrap_or_default();
    let is_part = kind.eq_ignore_ascii_case("raw") || kind.eq_ignore_ascii_case("pmc");
    let label = folder.path.parent().filter(|_| is_part).unwrap_or(&folder.path).to_path_buf();
    ResultFolder { origin: label.clone(), label }
}

/// Returns the folder that the published figures of a result belong to.
fn main_of(walk: &Walk, home: &ResultFolder, folders: &[usize]) -> Option<usize> {
    if let [only] = folders {
        return Some(*only);
    }
    let itself = folders.iter().find(|&&folder| walk.folders[folder].path == home.label);
    itself.or_else(|| folders.iter().find(|&&folder| is_named_raw(walk, folder))).copied()
}

/// Returns the path of `folder` below `origin`, with `/` between the parts.
fn below(folder: &Path, origin: &Path) -> String {
    folder.strip_prefix(origin).map(slashed).unwrap_or_default()
}

fn slashed(path: &Path) -> String {
    let parts = path.components().map(|part| part.as_os_str().to_string_lossy());
    parts.fold(String::new(), |path, part| joined(&path, &part))
}

fn joined(folder: &str, name: &str) -> String {
    if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
}

/// Appends `rest` unless it is empty.
fn with(path: PathBuf, rest: &Path) -> PathBuf {
    if rest == Path::new("") { path } else { path.join(rest) }
}

/// Returns a result's path without the folder `results` above it.
fn without_results(below: &Path, home: &ResultFolder) -> PathBuf {
    match (below.parent(), below.file_name()) {
        (Some(above), Some(label)) if home.origin != home.label && is_results(above) => {
            above.parent().unwrap_or(Path::new("")).join(label)
        }
        _ => below.to_path_buf(),
    }
}
