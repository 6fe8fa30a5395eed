//! Kernels installed on this machine.

use super::{Kernel, image, modules, root, root::Root};
use crate::error::VmError;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of the running kernel.
pub const RUNNING: &str = "running";

/// An installed kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Release of the kernel.
    pub release: String,
    /// Image of the kernel.
    pub image: PathBuf,
    /// True if it has modules.
    pub has_modules: bool,
    /// True if it is the running kernel.
    pub is_running: bool,
}

/// Lists the kernels installed below `root`, the oldest first.
pub fn installed(root: &Path) -> Vec<Installed> {
    let running = running();
    let found = Root::read(root);
    let mut list: Vec<Installed> = found
        .images
        .iter()
        .map(|(release, image)| Installed {
            release: release.clone(),
            image: image.clone(),
            has_modules: found.modules.contains_key(release),
            is_running: running.as_ref() == Some(release),
        })
        .collect();
    list.sort_by(|left, right| super::version::compare(&left.release, &right.release));
    list
}

/// Returns the release of the running kernel; `None` without `/proc`.
pub fn running() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    Some(text.trim().to_owned())
}

/// Finds an installed kernel below `root` by its release, or the running one.
///
/// # Errors
/// If it is not installed there, or can't be read.
pub(super) fn find(name: &str, root: &Path) -> Result<Kernel, VmError> {
    let is_running = name == RUNNING;
    let release = match running().filter(|_| is_running) {
        Some(release) => release,
        None => name.to_owned(),
    };
    let images = images(&release, root);
    let Some(image) = images.iter().find(|path| path.exists()) else {
        return Err(absent(&release, &images, is_running, root));
    };
    image::check(image)?;
    let directories = modules::PLACES.map(|place| root.join(place).join(&release));
    let modules = directories.into_iter().find(|path| path.is_dir());
    Ok(Kernel { image: image.clone(), modules, release })
}

/// Lists the paths at which systems store the image of a release.
fn images(release: &str, root: &Path) -> [PathBuf; 3] {
    let [first, second] = modules::PLACES.map(|place| root.join(place).join(release));
    [root.join(format!("boot/vmlinuz-{release}")), first.join("vmlinuz"), second.join("vmlinuz")]
}

fn absent(release: &str, images: &[PathBuf], is_running: bool, root: &Path) -> VmError {
    let others = installed(root);
    let others: Vec<&str> = others.iter().map(|one| one.release.as_str()).collect();
    let others = match others.as_slice() {
        [] => "no kernel is installed here".to_owned(),
        releases => format!("installed are {}", releases.join(", ")),
    };
    let first = images[0].display();
    let why = match is_running {
        true => format!(
            "the kernel that runs, {release}, is not installed here ({first} does not exist, as in \
             a container, which has the host's kernel but not its files); {others}\n  next step: \
             run it on the host, or give the package of this kernel; `fwdlab kernels` lists others"
        ),
        false => format!(
            "neither a file nor an installed kernel ({first} does not exist); {others}\n  next \
             step: give a package, a build tree or an image of a kernel; `fwdlab kernels` lists \
             what is installed and what can be fetched"
        ),
    };
    VmError::Kernel { path: PathBuf::from(if is_running { RUNNING } else { release }), why }
}

/// Finds the kernel of an image by its location: `/boot/vmlinuz-RELEASE` or
/// `/lib/modules/RELEASE/vmlinuz`, below any root. An image elsewhere has no modules.
///
/// # Errors
/// If QEMU could not boot it.
pub(super) fn of_image(path: &Path) -> Result<Kernel, VmError> {
    let contained = image::check(path)?;
    let path = path.to_owned();
    let place = path.canonicalize().unwrap_or_else(|_| path.clone());
    let parent = place.parent().unwrap_or(Path::new("/"));
    let name = root::name(&place);
    let release = name.strip_prefix("vmlinuz-").unwrap_or(&contained).to_owned();
    let directories: Vec<PathBuf> = match parent.parent() {
        _ if name == "vmlinuz" && modules::has_any(parent) => vec![parent.to_owned()],
        Some(root) if root::name(parent) == "boot" && !release.is_empty() => {
            modules::PLACES.map(|place| root.join(place).join(&release)).into()
        }
        _ => Vec::new(),
    };
    let modules = directories.into_iter().find(|path| path.is_dir());
    Ok(Kernel { image: path, modules, release })
}
