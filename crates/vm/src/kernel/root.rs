//! Directories with the layout of a system's root: `/boot` and `/lib/modules`, as in unpacked
//! packages and in systems.

use super::{Kernel, image, modules};
use crate::error::VmError;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Beginning of the names of images in `/boot`.
const IMAGE: &str = "vmlinuz";

/// Contents of a root: images and directories of modules by release.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Root {
    /// Images.
    pub(super) images: BTreeMap<String, PathBuf>,
    /// Directories of modules.
    pub(super) modules: BTreeMap<String, PathBuf>,
}

impl Root {
    /// Lists the kernels below `path`.
    pub(super) fn read(path: &Path) -> Root {
        let mut root = Root::default();
        let mut nameless = None;
        for image in entries(&path.join("boot")) {
            let name = name(&image);
            match name.strip_prefix(IMAGE).map(|rest| rest.strip_prefix('-').unwrap_or(rest)) {
                None => {}
                Some(release) if release.ends_with(".old") => {}
                Some("") => nameless = Some(image),
                Some(release) => drop(root.images.insert(release.to_owned(), image)),
            }
        }
        for directory in modules::PLACES.iter().flat_map(|place| entries(&path.join(place))) {
            let release = name(&directory);
            let image = directory.join(IMAGE);
            if image.is_file() {
                root.images.entry(release.clone()).or_insert(image);
            }
            if directory.is_dir() && modules::has_any(&directory) {
                root.modules.entry(release).or_insert(directory);
            }
        }
        // `/boot/vmlinuz` is often a link to another one.
        if let Some(image) = nameless.filter(|_| root.images.is_empty()) {
            let release = image::check(&image).unwrap_or_default();
            let only = root.modules.keys().next().filter(|_| root.modules.len() == 1);
            let release = only.filter(|_| release.is_empty()).cloned().unwrap_or(release);
            root.images.insert(release, image);
        }
        root
    }

    /// Returns the only kernel of the root at `path`.
    ///
    /// # Errors
    /// If there is none, or more than one.
    pub(super) fn only(&self, path: &Path) -> Result<Kernel, VmError> {
        let refused = |why| VmError::Kernel { path: path.to_owned(), why };
        let mut images = self.images.iter();
        let Some((release, image)) = images.next() else {
            return Err(refused(
                "no boot/vmlinuz-* and no usr/lib/modules/*/vmlinuz is in it\n  next step: give a \
                 package of a kernel, a root with /boot and /lib/modules, or a tree that was built \
                 with `make bzImage modules`"
                    .into(),
            ));
        };
        if images.next().is_some() {
            let list: Vec<&str> = self.images.keys().map(String::as_str).collect();
            return Err(refused(format!(
                "several kernels are in it: {}\n  next step: give one of them by its image, such \
                 as {}",
                list.join(", "),
                image.display()
            )));
        }
        self.kernel(release, image)
    }

    /// Returns the kernel of a release, with its modules if it has any.
    ///
    /// # Errors
    /// If QEMU could not boot the image, or all modules belong to other releases.
    pub(super) fn kernel(&self, release: &str, image: &Path) -> Result<Kernel, VmError> {
        image::check(image)?;
        let modules = self.modules.get(release).cloned();
        if modules.is_none() && !self.modules.is_empty() {
            let others: Vec<&str> = self.modules.keys().map(String::as_str).collect();
            return Err(VmError::Kernel {
                path: image.to_owned(),
                why: format!(
                    "modules of {} are there, but none of {release}\n  next step: give kernel and \
                     modules of one release",
                    others.join(", ")
                ),
            });
        }
        Ok(Kernel { image: image.to_owned(), modules, release: release.to_owned() })
    }
}

/// Lists the entries of a directory in the order of their names; empty if it can't be read.
pub(super) fn entries(directory: &Path) -> Vec<PathBuf> {
    let items = fs::read_dir(directory).into_iter().flatten();
    let mut entries: Vec<PathBuf> = items.filter_map(|entry| Some(entry.ok()?.path())).collect();
    entries.sort();
    entries
}

/// Returns the last component of a path.
pub(super) fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
