//! Build trees of Linux.

use super::{Kernel, image, modules};
use crate::error::VmError;
use std::fs;
use std::path::{Path, PathBuf};

/// Image of a build tree for x86-64.
pub(super) const IMAGE: &str = "arch/x86/boot/bzImage";
/// Directory that `make modules_install INSTALL_MOD_PATH=modules` fills.
const INSTALLED: &str = "modules";

/// Finds the kernel of a build tree.
///
/// # Errors
/// If modules are installed in it, but none of the built release.
pub(super) fn find(path: &Path) -> Result<Kernel, VmError> {
    let image = path.join(IMAGE);
    let contained = image::check(&image)?;
    let built = fs::read_to_string(path.join("include/config/kernel.release")).ok();
    let release = built.map(|text| text.trim().to_owned()).unwrap_or(contained);
    let root = path.join(INSTALLED);
    if !root.is_dir() {
        return Ok(Kernel { image, modules: None, release });
    }
    let places = modules::PLACES.map(|place| root.join(place));
    let found = if release.is_empty() { only(&places) } else { of_release(&places, &release) };
    let modules = found.ok_or_else(|| VmError::Kernel {
        path: root,
        why: format!(
            "no modules of {}\n  next step: INSTALL_MOD_PATH=modules make modules_install",
            if release.is_empty() { "exactly one kernel" } else { &release }
        ),
    })?;
    let release = super::root::name(&modules);
    Ok(Kernel { image, modules: Some(modules), release })
}

fn of_release(places: &[PathBuf], release: &str) -> Option<PathBuf> {
    places.iter().map(|place| place.join(release)).find(|path| path.is_dir())
}

fn only(places: &[PathBuf]) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> =
        places.iter().flat_map(|place| super::root::entries(place)).collect();
    (found.len() == 1).then(|| found.remove(0))
}
