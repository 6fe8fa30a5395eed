//! Kernels of Linux as they are given: a Debian package, a build tree, or an image alone.

use crate::error::VmError;
use crate::machine;
use crate::tool;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// Where a bzImage says that it is one (Documentation/arch/x86/boot.rst of Linux).
const MAGIC_AT: u64 = 0x202;

/// A kernel that boots, and its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// The image (bzImage).
    pub image: PathBuf,
    /// The directory that has `lib/modules/RELEASE`; none where all is built in.
    root: Option<PathBuf>,
    /// As `uname -r` prints it; empty where only the kernel itself knows.
    pub release: String,
}

/// A module's name, and its content ready for `insmod`.
pub type Module = (String, Vec<u8>);

impl Kernel {
    /// The kernel at `path`: a package (`linux-image-*.deb`), which is unpacked below
    /// `cache`, a build tree of Linux, or an image.
    ///
    /// # Errors
    /// When it is none of them.
    pub fn find(path: &Path, cache: &Path) -> Result<Kernel, VmError> {
        let meta = fs::metadata(path).map_err(|source| VmError::file(path, source))?;
        if meta.is_dir() {
            return Kernel::of_tree(path);
        }
        if path.extension().is_some_and(|extension| extension == "deb") {
            let made = meta.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            let made = made.unwrap_or_default().as_secs();
            return Kernel::of_package(path, &format!("{}-{made}", meta.len()), cache);
        }
        Kernel::of_image(path)
    }

    /// An image alone: what does not begin as Linux's boot protocol says would only make
    /// QEMU wait.
    fn of_image(path: &Path) -> Result<Kernel, VmError> {
        let fail = |source| VmError::file(path, source);
        let mut magic = [0; 4];
        let read = fs::File::open(path).map_err(fail)?.read_exact_at(&mut magic, MAGIC_AT);
        if read.is_err() || magic != *b"HdrS" {
            return Err(VmError::Kernel {
                path: path.to_owned(),
                why: "no kernel of Linux for x86: give a bzImage, a package (.deb), a build tree, \
                      or a disk of FreeBSD (.raw, .img, .qcow2)"
                    .into(),
            });
        }
        Ok(Kernel { image: path.to_owned(), root: None, release: String::new() })
    }

    fn of_package(path: &Path, version: &str, cache: &Path) -> Result<Kernel, VmError> {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let root = cache.join(format!("{name}-{version}"));
        if !root.exists() {
            fs::create_dir_all(cache).map_err(|source| VmError::file(cache, source))?;
            // Whole or not at all: beside its place first.
            let part = machine::unfinished(cache, &name);
            let texts = [path.to_string_lossy(), part.to_string_lossy()];
            let unpacked = tool::run("dpkg-deb", &["-x", &texts[0], &texts[1]], &[], "dpkg");
            let moved = unpacked.and_then(|_| {
                fs::rename(&part, &root).map_err(|source| VmError::file(&root, source))
            });
            if moved.is_err() {
                // There may be none.
                let _ = fs::remove_dir_all(&part);
            }
            moved?;
        }
        let image = only(&root.join("boot"), "vmlinuz").ok_or_else(|| VmError::Kernel {
            path: path.to_owned(),
            why: "the package holds no boot/vmlinuz-*: give one named linux-image-VERSION".into(),
        })?;
        Kernel::with_modules(image, root, None)
    }

    fn of_tree(path: &Path) -> Result<Kernel, VmError> {
        let image = path.join("arch/x86/boot/bzImage");
        if image.is_file() {
            // Where `make modules_install INSTALL_MOD_PATH=modules` puts them.
            let root = path.join("modules");
            let built = fs::read_to_string(path.join("include/config/kernel.release")).ok();
            let built = built.as_deref().map(str::trim);
            return match root.is_dir() {
                true => Kernel::with_modules(image, root, built),
                false => Ok(Kernel { image, root: None, release: String::new() }),
            };
        }
        match only(&path.join("boot"), "vmlinuz") {
            Some(image) => Kernel::with_modules(image, path.to_owned(), None),
            None => Err(VmError::Kernel {
                path: path.to_owned(),
                why: "neither arch/x86/boot/bzImage nor boot/vmlinuz-* is in it: build the tree \
                      with `make bzImage modules`"
                    .into(),
            }),
        }
    }

    /// With the modules of the release that was built; of the only one that is there where
    /// nothing says which that is.
    fn with_modules(image: PathBuf, root: PathBuf, built: Option<&str>) -> Result<Kernel, VmError> {
        let modules = root.join("lib/modules");
        let release = match built {
            Some(release) => Some(modules.join(release)).filter(|path| path.is_dir()),
            None => only(&modules, ""),
        };
        let release = release.ok_or_else(|| VmError::Kernel {
            path: modules.clone(),
            why: match built {
                Some(release) => format!(
                    "no modules of {release}: INSTALL_MOD_PATH=modules make modules_install"
                ),
                None => "not the modules of exactly one kernel".into(),
            },
        })?;
        let release = release.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !modules.join(&release).join("modules.dep").exists() {
            let text = root.to_string_lossy();
            tool::run("depmod", &["-b", &text, &release], &[], "kmod")?;
        }
        Ok(Kernel { image, root: Some(root), release })
    }

    /// The modules of these names with those that they need, in the order in which they
    /// are to be loaded. What is not there as a module is taken for built in.
    ///
    /// # Errors
    /// When a file can't be read or unpacked.
    pub fn modules(&self, names: &[&str]) -> Result<Vec<Module>, VmError> {
        let Some(root) = &self.root else { return Ok(Vec::new()) };
        let top = root.join("lib/modules").join(&self.release);
        let list = top.join("modules.dep");
        let text = fs::read_to_string(&list).map_err(|source| VmError::file(&list, source))?;
        order(&text, names)
            .into_iter()
            .map(|path| Ok((name(path).to_owned(), content(&top.join(path))?)))
            .collect()
    }
}

/// The one entry of a directory whose name begins so.
fn only(directory: &Path, begin: &str) -> Option<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(directory)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with(begin)))
        .collect();
    (found.len() == 1).then(|| found.remove(0))
}

/// Paths of modules, those that others need first.
fn order<'a>(dependencies: &'a str, names: &[&str]) -> Vec<&'a str> {
    let needs: BTreeMap<&str, Vec<&str>> = dependencies
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(path, needs)| (path, needs.split_ascii_whitespace().collect()))
        .collect();
    let mut ordered: Vec<&str> = Vec::new();
    for wanted in names {
        let Some((path, needed)) = needs.iter().find(|(path, _)| name(path) == *wanted) else {
            continue;
        };
        // depmod lists what is needed last first, all of it.
        for path in needed.iter().rev().chain([path]) {
            if !ordered.contains(path) {
                ordered.push(path);
            }
        }
    }
    ordered
}

/// Name of the module in a file: `kernel/net/a-b.ko.xz` is `a_b`, but names are asked for
/// as their files are called.
fn name(path: &str) -> &str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split_once(".ko").map_or(file, |(name, _)| name)
}

/// A module as the kernel takes it.
fn content(path: &Path) -> Result<Vec<u8>, VmError> {
    let bytes = fs::read(path).map_err(|source| VmError::file(path, source))?;
    let unpack = |program: &str, package: &str| tool::run(program, &["-dc"], &bytes, package);
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => unpack("xz", "xz-utils"),
        Some("zst") => unpack("zstd", "zstd"),
        Some("gz") => unpack("gzip", "gzip"),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_after_what_they_need() {
        let text = "kernel/virtio.ko:\n\
                    kernel/virtio_ring.ko: kernel/virtio.ko\n\
                    kernel/net/failover.ko.xz:\n\
                    kernel/net/virtio_net.ko: kernel/net/failover.ko.xz kernel/virtio_ring.ko kernel/virtio.ko\n\
                    kernel/virtio_pci.ko: kernel/virtio_ring.ko kernel/virtio.ko\n";
        let names: Vec<&str> =
            order(text, &["virtio_pci", "virtio_net", "built_in"]).into_iter().map(name).collect();
        assert_eq!(names, ["virtio", "virtio_ring", "virtio_pci", "failover", "virtio_net"]);
    }

    #[test]
    fn what_is_no_kernel_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let error = Kernel::find(directory.path(), directory.path()).unwrap_err().to_string();
        assert!(error.contains("make bzImage modules"), "{error}");
        let error = Kernel::find(Path::new("/nowhere"), directory.path()).unwrap_err();
        assert!(error.to_string().starts_with("/nowhere: "), "{error}");
    }

    #[test]
    fn trees_and_images_are_found() {
        let directory = tempfile::tempdir().unwrap();
        let tree = directory.path().join("linux");
        let image = tree.join("arch/x86/boot/bzImage");
        fs::create_dir_all(image.parent().unwrap()).unwrap();
        fs::write(&image, "x").unwrap();
        let error = Kernel::find(&image, directory.path()).unwrap_err().to_string();
        assert!(error.contains("no kernel of Linux"), "{error}");
        fs::write(&image, [vec![0; 0x202], b"HdrS".to_vec()].concat()).unwrap();
        let kernel = Kernel::find(&tree, directory.path()).unwrap();
        assert_eq!((&kernel.image, kernel.modules(&["virtio_net"]).unwrap()), (&image, vec![]));
        assert_eq!(Kernel::find(&image, directory.path()).unwrap(), kernel);
    }
}
