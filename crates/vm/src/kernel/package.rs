//! Packages of kernels: one file or several that belong together, unpacked into a cache.

use super::deb::Dependency;
use super::{Kernel, archive, deb, root, root::Root, rpm, version};
use crate::cache;
use crate::error::VmError;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Kinds of packages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Debian, Ubuntu, `make bindeb-pkg`.
    Deb,
    /// Fedora, openSUSE, `make binrpm-pkg`.
    Rpm,
    /// Arch Linux, `make pacman-pkg`, `make tarzst-pkg` and the like.
    Tar,
}

impl Kind {
    /// Returns the kind of a package by its file name; `None` for other files.
    pub(super) fn of(path: &Path) -> Option<Kind> {
        let name = root::name(path);
        if name.ends_with(".deb") {
            return Some(Kind::Deb);
        }
        if name.ends_with(".rpm") {
            return Some(Kind::Rpm);
        }
        let tar = [".tar", ".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2", ".tar.lz4", ".tgz"];
        tar.iter().any(|ending| name.ends_with(ending)).then_some(Kind::Tar)
    }

    /// True if a file name belongs to a package with a kernel's image, or to one that depends on
    /// it.
    fn has_kernel(self, name: &str) -> bool {
        let (begins, others): (&[&str], &[&str]) = match self {
            Kind::Deb => (&["linux-image-"], &["-dbg_", "-dbgsym_"]),
            Kind::Rpm => {
                let others =
                    &["-devel-", "-headers-", "-modules-", "-debuginfo-", "-doc-", "-tools-"];
                (&["kernel-"], others)
            }
            Kind::Tar => (&["linux-"], &["-headers-", "-docs-", "-api-"]),
        };
        begins.iter().any(|begin| name.starts_with(begin))
            && !others.iter().any(|other| name.contains(other))
    }
}

/// Lists the kernel packages in a directory, the oldest first, each by its main file.
pub(super) fn in_directory(directory: &Path) -> Vec<PathBuf> {
    let has_kernel =
        |path: &PathBuf| Kind::of(path).is_some_and(|kind| kind.has_kernel(&root::name(path)));
    let files = root::entries(directory).into_iter().filter(has_kernel).collect();
    let mut heads = without_parts(files);
    heads.sort_by(|left, right| version::compare(&root::name(left), &root::name(right)));
    heads
}

/// Drops packages that are parts of another package's kernel. Files that are not packages stay, and
/// are reported when they are opened.
pub(super) fn without_parts(paths: Vec<PathBuf>) -> Vec<PathBuf> {
    let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
    let set = |path: &PathBuf| -> Vec<PathBuf> {
        let mut files = vec![path.clone()];
        let is_read = Kind::of(path).is_some() && path.is_file() && complete(&mut files).is_ok();
        files.iter().take(if is_read { files.len() } else { 1 }).map(real).collect()
    };
    let sets: Vec<Vec<PathBuf>> = paths.iter().map(set).collect();
    let is_part = |index: usize| {
        // The same kernel given twice stays: it is compared with itself.
        let includes = |(other, set): (usize, &Vec<PathBuf>)| {
            let contains = set[0] != sets[index][0] && set.contains(&sets[index][0]);
            contains && (!sets[index].contains(&set[0]) || other < index)
        };
        sets.iter().enumerate().any(includes)
    };
    let kept = paths.iter().enumerate().filter(|(number, _)| !is_part(*number));
    kept.map(|(_, path)| path.clone()).collect()
}

/// Adds the other parts of the same kernel, and returns the missing ones.
///
/// # Errors
/// If a file is not a package.
pub(super) fn complete(files: &mut Vec<PathBuf>) -> Result<Vec<Dependency>, VmError> {
    match files.first().and_then(|file| Kind::of(file)) {
        Some(Kind::Deb) => deb::complete(files),
        Some(Kind::Rpm) => {
            rpm::complete(files);
            Ok(Vec::new())
        }
        Some(Kind::Tar) | None => Ok(Vec::new()),
    }
}

/// Finds the kernel of packages, which are unpacked below `cache`, completely or not at all.
///
/// # Errors
/// If a file is not a package, or if parts of the kernel or a program are missing.
pub(super) fn find(mut files: Vec<PathBuf>, cache: &Path) -> Result<Kernel, VmError> {
    let first = files[0].clone();
    let missing = complete(&mut files)?;
    if !missing.is_empty() {
        return Err(incomplete(&first, &missing));
    }
    let unpacked = unpack_all(&files, cache)?;
    let found = Root::read(&unpacked);
    let refused = |why: String| VmError::Kernel { path: first.clone(), why };
    let name = root::name(&first);
    if found.images.is_empty() {
        let [begin, end] = match Kind::of(&first) {
            Some(Kind::Rpm) => {
                ["", "kernel-core-VERSION (Fedora) or kernel-default-VERSION (openSUSE)"]
            }
            Some(Kind::Tar) => ["", "the package `linux`"],
            _ => ["boot/vmlinuz-* or ", "linux-image-VERSION"],
        };
        return Err(refused(format!(
            "the package contains no {begin}usr/lib/modules/*/vmlinuz\n  next step: give {end}"
        )));
    }
    if let (true, Some(package)) = (found.modules.is_empty(), rpm::modules_of(&name)) {
        return Err(refused(format!(
            "the package contains a kernel without its modules, and {package}.rpm is not next to \
             it\n  next step: dnf download {package}"
        )));
    }
    found.only(&unpacked)
}

/// Returns the error for a kernel with missing packages.
fn incomplete(path: &Path, missing: &[Dependency]) -> VmError {
    let names: Vec<&str> = missing.iter().map(|needed| needed.name.as_str()).collect();
    let arguments: Vec<String> = missing.iter().map(Dependency::for_apt).collect();
    VmError::Kernel {
        path: path.to_owned(),
        why: format!(
            "it needs {}, and no such file is next to it\n  next step: in its directory, \
             apt-get download {}",
            names.join(" and "),
            arguments.join(" ")
        ),
    }
}

/// Unpacks packages into one directory of the cache, unless it exists.
fn unpack_all(files: &[PathBuf], cache: &Path) -> Result<PathBuf, VmError> {
    let first = root::name(&files[0]);
    let stem = first.rsplit_once('.').map_or(first.as_str(), |(stem, _)| stem);
    let mut name = stem.to_owned();
    for file in files {
        let meta = fs::metadata(file).map_err(|source| VmError::file(file, source))?;
        let modified = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        name += &format!("-{}-{}", meta.len(), modified.unwrap_or_default().as_secs());
    }
    let root = cache.join(name);
    if root.exists() {
        return Ok(root);
    }
    fs::create_dir_all(cache).map_err(|source| VmError::file(cache, source))?;
    let part = cache::unfinished(cache, stem);
    let created = fs::create_dir(&part).map_err(|source| VmError::file(&part, source));
    let unpacked = created.and_then(|()| {
        files.iter().try_for_each(|file| unpack(file, &part))?;
        fs::rename(&part, &root).map_err(|source| VmError::file(&root, source))
    });
    if unpacked.is_err() {
        // There may be no such directory.
        let _ = fs::remove_dir_all(&part);
    }
    unpacked.map(|()| root)
}

fn unpack(file: &Path, directory: &Path) -> Result<(), VmError> {
    match Kind::of(file) {
        Some(Kind::Deb) => deb::unpack(file, directory),
        Some(Kind::Rpm) => rpm::unpack(file, directory),
        Some(Kind::Tar) | None => {
            let data = File::open(file).map_err(|source| VmError::file(file, source))?;
            archive::unpack_tar(file, data, directory)
        }
    }
}
