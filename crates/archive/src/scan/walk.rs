//! Reads a tree's directories: names, sizes, times. No file is opened.

use crate::found::FoundFile;
use std::collections::{HashMap, HashSet};
use std::fs::{self, DirEntry, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Device and inode, which identify a file or directory.
type Identity = (u64, u64);

/// The directories read so far, parents before their children.
#[derive(Debug, Default)]
pub(super) struct Walk {
    /// The directories.
    pub(super) folders: Vec<Folder>,
    /// Paths that were unreadable or left out, with the reason.
    pub(super) problems: Vec<(PathBuf, String)>,
    by_path: HashMap<PathBuf, usize>,
    visited: HashSet<Identity>,
    files: HashSet<Identity>,
    links: Vec<(usize, PathBuf)>,
}

/// One directory.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Its own name; invalid UTF-8 is replaced.
    pub(super) name: String,
    /// Its files, in the order of `ls` in the C locale.
    pub(super) files: Vec<Entry>,
    /// Indices of its subdirectories, in the same order.
    pub(super) folders: Vec<usize>,
}

/// One file.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) name: String,
    pub(super) size: u64,
    pub(super) modified_ns: i64,
}

impl Entry {
    /// Returns the same file under `name`, relative to its bench.
    pub(super) fn found(&self, name: String) -> FoundFile {
        let (size, modified_ns) = (self.size, self.modified_ns);
        FoundFile { path: self.path.clone(), name, size, modified_ns }
    }
}

impl Walk {
    /// Reads `root` and everything below it.
    ///
    /// # Errors
    /// Fails if `root` itself cannot be read.
    pub(super) fn of(root: &Path) -> io::Result<Walk> {
        let mut walk = Walk::default();
        walk.add(root)?;
        Ok(walk)
    }

    /// Reads another tree.
    ///
    /// # Errors
    /// Fails if `root` itself cannot be read.
    pub(super) fn add(&mut self, root: &Path) -> io::Result<()> {
        fs::read_dir(root)?;
        let about = fs::metadata(root)?;
        self.descend(root.to_path_buf(), &about, None);
        self.follow(root);
        for i in 0..self.folders.len() {
            self.folders[i].files.sort_by(|a, b| a.name.cmp(&b.name));
            let mut folders = std::mem::take(&mut self.folders[i].folders);
            folders.sort_by(|&a, &b| self.folders[a].name.cmp(&self.folders[b].name));
            self.folders[i].folders = folders;
        }
        Ok(())
    }

    /// Returns the directory at `path`; `None` if it was not read.
    pub(super) fn at(&self, path: &Path) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    /// Returns `start` and the directories below it, without the subtrees that `skip` selects.
    pub(super) fn below(&self, start: usize, skip: impl Fn(usize) -> bool) -> Vec<usize> {
        let (mut found, mut todo) = (Vec::new(), vec![start]);
        while let Some(folder) = todo.pop() {
            found.push(folder);
            todo.extend(self.folders[folder].folders.iter().rev().filter(|&&child| !skip(child)));
        }
        found
    }

    /// Reads a directory and those below it; collects links for later.
    fn descend(&mut self, path: PathBuf, about: &Metadata, parent: Option<usize>) {
        let mut todo = vec![(path, identity(about), parent)];
        while let Some((path, identity, parent)) = todo.pop() {
            if !self.visited.insert(identity) {
                self.problem(&path, "this directory was read already under another name");
                continue;
            }
            let entries = match fs::read_dir(&path) {
                Ok(entries) => entries,
                Err(error) => {
                    self.problem(&path, format!("the directory can't be read: {error}"));
                    continue;
                }
            };
            let index = self.enter(path, parent);
            for entry in entries {
                match entry.and_then(|entry| entry.metadata().map(|about| (entry, about))) {
                    Ok((entry, about)) => todo.extend(self.take(&entry, &about, index)),
                    Err(error) => {
                        let path = self.folders[index].path.clone();
                        self.problem(&path, format!("an entry can't be read: {error}"));
                    }
                }
            }
        }
    }

    /// Adds a directory.
    fn enter(&mut self, path: PathBuf, parent: Option<usize>) -> usize {
        let index = self.folders.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if let Some(parent) = parent {
            self.folders[parent].folders.push(index);
        }
        self.by_path.insert(path.clone(), index);
        self.folders.push(Folder { path, name, files: Vec::new(), folders: Vec::new() });
        index
    }

    /// Records a file or link; returns a directory that remains to be read.
    fn take(
        &mut self,
        entry: &DirEntry,
        about: &Metadata,
        parent: usize,
    ) -> Option<(PathBuf, Identity, Option<usize>)> {
        let path = entry.path();
        if about.is_symlink() {
            self.links.push((parent, path));
        } else if about.is_dir() {
            let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            return (!hidden).then(|| (path, identity(about), Some(parent)));
        } else {
            self.take_file(path, about, parent);
        }
        None
    }

    fn take_file(&mut self, path: PathBuf, about: &Metadata, parent: usize) {
        if !about.is_file() {
            self.problem(&path, "neither file nor directory: it was not opened");
            return;
        }
        let name = path.file_name().unwrap_or_default();
        if name.to_str().is_none() {
            self.problem(&path, "the name is not UTF-8; what is not is replaced by \u{fffd}");
        }
        let name = name.to_string_lossy().into_owned();
        self.files.insert(identity(about));
        let modified_ns = modified_ns(about);
        let entry = Entry { path, name, size: about.len(), modified_ns };
        self.folders[parent].files.push(entry);
    }

    /// Follows the links after everything else, so that files of the tree keep their own names.
    fn follow(&mut self, root: &Path) {
        while !self.links.is_empty() {
            let mut links = std::mem::take(&mut self.links);
            links.sort();
            for (parent, path) in links {
                if let Err(why) = self.follow_one(root, parent, &path) {
                    self.problem(&path, format!("this link was not followed: {why}"));
                }
            }
        }
    }

    fn follow_one(&mut self, root: &Path, parent: usize, path: &Path) -> Result<(), String> {
        let about = fs::metadata(path).map_err(|error| error.to_string())?;
        if about.is_dir() {
            if self.visited.contains(&identity(&about)) {
                return Err("it leads to a directory that was read already".into());
            }
            let target = fs::canonicalize(path).map_err(|error| error.to_string())?;
            if root.starts_with(&target) {
                return Err("it leads to a directory that holds this one".into());
            }
            self.descend(path.to_path_buf(), &about, Some(parent));
        } else if about.is_file() && self.files.contains(&identity(&about)) {
            return Err("it leads to a file that was met already".into());
        } else {
            self.take_file(path.to_path_buf(), &about, parent);
        }
        Ok(())
    }

    fn problem(&mut self, path: &Path, why: impl Into<String>) {
        self.problems.push((path.to_path_buf(), why.into()));
    }
}

fn identity(about: &Metadata) -> Identity {
    (about.dev(), about.ino())
}

fn modified_ns(about: &Metadata) -> i64 {
    about.mtime().saturating_mul(1_000_000_000).saturating_add(about.mtime_nsec())
}

/// Returns the files of one directory whose names `select` accepts, sorted; empty if it cannot be
/// read.
pub(super) fn files_of(folder: &Path, select: impl Fn(&str) -> bool) -> Vec<Entry> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<Entry> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_str().filter(|name| select(name))?.to_owned();
            let path = entry.path();
            let about = fs::metadata(&path).ok().filter(Metadata::is_file)?;
            let modified_ns = modified_ns(&about);
            Some(Entry { path, name, size: about.len(), modified_ns })
        })
        .collect();
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files
}
