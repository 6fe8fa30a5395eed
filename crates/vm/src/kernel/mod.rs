//! Linux kernels in all common forms: packages of distributions, installed kernels, roots of
//! systems, build trees, and images.
//!
//! One file per form: `package` (`deb`, `rpm`, tar archives), `installed`, `root`, `tree`, `image`.
//! `modules` reads modules and their dependencies.

mod archive;
pub mod deb;
mod image;
mod installed;
mod modules;
mod package;
mod root;
mod rpm;
mod tree;
pub mod version;

#[cfg(test)]
mod tests;

use crate::error::VmError;
pub use installed::{Installed, RUNNING, installed, running};
pub use modules::Module;
pub(crate) use modules::{aliases, dependencies, normalised};
use root::Root;
use std::fs;
use std::path::{Path, PathBuf};

/// Separates the files of one kernel.
const SEPARATOR: char = ',';

/// A kernel that boots, and its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The image: a bzImage, or a vmlinux with an entry point for PVH.
    pub image: PathBuf,
    /// Directory of its modules (`/lib/modules/RELEASE`); `None` if all are built in.
    modules: Option<PathBuf>,
    /// Release, as `uname -r` prints it; empty if only the kernel itself knows.
    pub release: String,
}

impl Kernel {
    /// Finds the kernel that `path` names:
    ///
    /// - a package (`.deb`, `.rpm`, `.pkg.tar.zst`) with its other parts next to it, or several
    ///   packages separated by commas;
    /// - a directory with the packages of one kernel, with `/boot` and `/lib/modules`, or with a
    ///   build of Linux;
    /// - an image;
    /// - the release of an installed kernel, or `running`.
    ///
    /// Unpacks packages below `cache`.
    ///
    /// # Errors
    /// If it is none of them, or a part is missing.
    pub fn find(path: &Path, cache: &Path) -> Result<Kernel, VmError> {
        if let Some(files) = listed(path) {
            return package::find(files, cache);
        }
        let meta = match fs::metadata(path) {
            Err(_) if is_name(path) => {
                return installed::find(&path.to_string_lossy(), Path::new("/"));
            }
            meta => meta.map_err(|source| VmError::file(path, source))?,
        };
        if meta.is_dir() {
            return Kernel::of_directory(path, cache);
        }
        if package::Kind::of(path).is_some() {
            return package::find(vec![path.to_owned()], cache);
        }
        match path.ancestors().nth(4).filter(|_| path.ends_with(tree::IMAGE)) {
            Some(tree) => tree::find(tree),
            None => installed::of_image(path),
        }
    }

    fn of_directory(path: &Path, cache: &Path) -> Result<Kernel, VmError> {
        if path.join(tree::IMAGE).is_file() {
            return tree::find(path);
        }
        let root = Root::read(path);
        let packages = match root.images.is_empty() {
            true => package::in_directory(path),
            false => Vec::new(),
        };
        match packages.as_slice() {
            [] => root.only(path),
            [one] => package::find(vec![one.clone()], cache),
            several => {
                let names: Vec<String> = several.iter().map(|file| root::name(file)).collect();
                Err(VmError::Kernel {
                    path: path.to_owned(),
                    why: format!(
                        "packages of several kernels are in it: {}\n  next step: give one of them",
                        names.join(", ")
                    ),
                })
            }
        }
    }

    /// Returns the decompressed kernel: `vmlinux` without its symbol table, followed by the list of
    /// its relocations.
    ///
    /// # Errors
    /// If the image is no bzImage, or can't be decompressed.
    pub fn content(&self) -> Result<Vec<u8>, VmError> {
        image::content(&self.image)
    }

    /// Lists its image and the files of its modules.
    ///
    /// # Errors
    /// If the directory of its modules can't be read.
    pub fn files(&self) -> Result<Vec<PathBuf>, VmError> {
        let mut files = vec![self.image.clone()];
        if let Some(directory) = &self.modules {
            files.extend(modules::index(directory)?.into_values());
        }
        Ok(files)
    }

    /// Reads the modules of these names and their dependencies, in the order in which they have to
    /// be loaded. Treats modules that do not exist as built in.
    ///
    /// # Errors
    /// If a file can't be read or decompressed.
    pub fn modules(&self, names: &[&str]) -> Result<Vec<Module>, VmError> {
        match &self.modules {
            Some(directory) => modules::load(&modules::index(directory)?, names),
            None => Ok(Vec::new()),
        }
    }

    /// Reads the modules whose names, as `lsmod` prints them, begin with one of `beginnings`, and
    /// their dependencies, as [`Kernel::modules`] does.
    ///
    /// # Errors
    /// If a file can't be read or decompressed.
    pub(crate) fn modules_named(&self, beginnings: &[&str]) -> Result<Vec<Module>, VmError> {
        let Some(directory) = &self.modules else { return Ok(Vec::new()) };
        let index = modules::index(directory)?;
        let begins = |name: &&str| beginnings.iter().any(|begin| name.starts_with(begin));
        let names: Vec<&str> = index.keys().map(String::as_str).filter(begins).collect();
        modules::load(&index, &names)
    }
}

/// Replaces each directory of packages with the packages of its kernels, the oldest first, and
/// drops packages that are parts of another one's kernel: `DIRECTORY` and `DIRECTORY/*.deb` name
/// the same kernels.
pub fn expand(paths: &[PathBuf]) -> Vec<PathBuf> {
    let mut expanded = Vec::new();
    for path in paths {
        let is_other = !path.is_dir()
            || path.join(tree::IMAGE).is_file()
            || !Root::read(path).images.is_empty();
        let packages = if is_other { Vec::new() } else { package::in_directory(path) };
        match packages.is_empty() {
            true => expanded.push(path.clone()),
            false => expanded.extend(packages),
        }
    }
    package::without_parts(expanded)
}

/// Lists the kernel packages in a directory, the oldest first, each by its main file.
pub fn packages(directory: &Path) -> Vec<PathBuf> {
    package::in_directory(directory)
}

/// Lists the packages that the kernel of a package needs and that are not next to it.
///
/// # Errors
/// If it is not a package.
pub fn missing(path: &Path) -> Result<Vec<String>, VmError> {
    let missing = package::complete(&mut vec![path.to_owned()])?;
    Ok(missing.iter().map(deb::Dependency::for_apt).collect())
}

/// True if `path` can name an installed kernel: a single word that is not the name of a package.
pub fn is_name(path: &Path) -> bool {
    path.components().count() == 1
        && !path.to_string_lossy().contains('/')
        && package::Kind::of(path).is_none()
        && path.extension().is_none_or(|ending| ending != "raw" && ending != "qcow2")
}

/// Returns the files of a kernel given as several files; `None` if `path` is a single one. Searches
/// for further files next to the first one if they do not exist as given.
fn listed(path: &Path) -> Option<Vec<PathBuf>> {
    let text = path.to_str().filter(|text| text.contains(SEPARATOR) && !path.exists())?;
    let mut files = text.split(SEPARATOR).filter(|part| !part.is_empty()).map(PathBuf::from);
    let first = files.next()?;
    let next_to = |file: PathBuf| match file.exists() {
        true => file,
        false => first.with_file_name(file),
    };
    let others: Vec<PathBuf> = files.map(next_to).collect();
    Some([vec![first], others].concat())
}
