//! Modules of a kernel: their files, dependencies and contents.
//!
//! Dependencies come from the modules themselves (`depends=` in the section `.modinfo`,
//! scripts/mod/modpost.c of Linux), so neither depmod(8) nor write access is needed.

use super::archive;
use crate::error::VmError;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Name of a module, and its content ready for `insmod`.
pub type Module = (String, Vec<u8>);

/// Beginning of the list of dependencies, after the end of the previous string.
const DEPENDS: &[u8] = b"\0depends=";
/// Beginning of an alias, often the first string of its section.
const ALIAS: &[u8] = b"alias=";
/// Directories below `/`, and in packages, that contain modules by release.
pub(super) const PLACES: [&str; 2] = ["usr/lib/modules", "lib/modules"];

/// Files of modules by the names that `lsmod` prints.
pub(super) type Index = BTreeMap<String, PathBuf>;

/// Lists the files of modules below `directory`, without following links.
///
/// # Errors
/// If a directory can't be read.
pub(super) fn index(directory: &Path) -> Result<Index, VmError> {
    let mut found = Index::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        let fault = |source| VmError::file(&directory, source);
        for entry in fs::read_dir(&directory).map_err(fault)? {
            let entry = entry.map_err(fault)?;
            let kind = entry.file_type().map_err(fault)?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if let Some(name) = name(&entry.path()) {
                found.insert(normalised(&name), entry.path());
            }
        }
    }
    Ok(found)
}

/// True if there is a module below `directory`.
pub(super) fn has_any(directory: &Path) -> bool {
    index(directory).is_ok_and(|found| !found.is_empty())
}

/// Reads the modules of these names and their dependencies, in the order in which they have to be
/// loaded. Treats modules that do not exist as built in.
///
/// # Errors
/// If a file can't be read or decompressed.
pub(super) fn load(index: &Index, names: &[&str]) -> Result<Vec<Module>, VmError> {
    let mut loaded = Vec::new();
    names.iter().try_for_each(|name| add(index, name, &mut Vec::new(), &mut loaded))?;
    Ok(loaded)
}

/// Adds a module after its dependencies. `pending` contains the modules that wait for it.
fn add(
    index: &Index,
    name: &str,
    pending: &mut Vec<String>,
    loaded: &mut Vec<Module>,
) -> Result<(), VmError> {
    let key = normalised(name);
    let is_known = pending.contains(&key) || loaded.iter().any(|(one, _)| normalised(one) == key);
    let Some(path) = index.get(&key).filter(|_| !is_known) else { return Ok(()) };
    let content = fs::read(path).map_err(|source| VmError::file(path, source))?;
    let content = archive::decompressed(content)?;
    pending.push(key);
    for needed in dependencies(&content) {
        add(index, &needed, pending, loaded)?;
    }
    pending.pop();
    loaded.push((self::name(path).unwrap_or_default(), content));
    Ok(())
}

/// Reads the names by which the kernel requests a module, without those that contain wildcards:
/// the aliases of devices.
pub(crate) fn aliases(content: &[u8]) -> Vec<String> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let starts = content.windows(ALIAS.len()).enumerate().filter(|(_, bytes)| *bytes == ALIAS);
    let name = |(at, _): (usize, &[u8])| {
        let name = content[at + ALIAS.len()..].split(|byte| *byte == 0).next()?;
        let is_name = !name.is_empty() && name.iter().all(is_part);
        is_name.then(|| String::from_utf8_lossy(name).into_owned())
    };
    starts.filter_map(name).collect()
}

/// Reads the names of the modules that a module depends on.
pub(crate) fn dependencies(content: &[u8]) -> Vec<String> {
    let Some(at) = content.windows(DEPENDS.len()).position(|bytes| bytes == DEPENDS) else {
        return Vec::new();
    };
    let list = content[at + DEPENDS.len()..].split(|byte| *byte == 0).next().unwrap_or_default();
    let list = String::from_utf8_lossy(list);
    list.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the name of a module from its file: `kernel/net/a-b.ko.xz` is `a-b`.
fn name(path: &Path) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    let (name, compression) = file.split_once(".ko")?;
    matches!(compression, "" | ".xz" | ".zst" | ".gz").then(|| name.to_owned())
}

/// Returns the kernel's form of a name: files may have hyphens instead.
pub(crate) fn normalised(name: &str) -> String {
    name.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes a module that depends on others.
    fn module(directory: &Path, file: &str, depends: &str) {
        let path = directory.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("\x7fELF...\0license=GPL\0depends={depends}\0name=x\0")).unwrap();
    }

    #[test]
    fn modules_follow_their_dependencies() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        module(at, "kernel/drivers/virtio.ko", "");
        module(at, "kernel/drivers/virtio_ring.ko", "virtio");
        module(at, "kernel/net/core/failover.ko", "");
        module(at, "kernel/net/net-failover.ko", "failover");
        module(at, "kernel/net/virtio_net.ko", "virtio_ring,virtio,net_failover,built_in");
        module(at, "kernel/drivers/virtio_pci.ko", "virtio,virtio_ring");
        fs::write(at.join("modules.dep"), "").unwrap();
        std::os::unix::fs::symlink(at, at.join("build")).unwrap();
        let index = index(at).unwrap();
        assert_eq!(index.len(), 6);
        let loaded = load(&index, &["virtio_pci", "virtio_net", "absent", "virtio-net"]).unwrap();
        let names: Vec<&str> = loaded.iter().map(|(name, _)| name.as_str()).collect();
        let expected =
            ["virtio", "virtio_ring", "virtio_pci", "failover", "net-failover", "virtio_net"];
        assert_eq!(names, expected);
    }

    #[test]
    fn circular_dependencies_end() {
        let directory = tempfile::tempdir().unwrap();
        module(directory.path(), "a.ko", "b");
        module(directory.path(), "b.ko", "a");
        let loaded = load(&index(directory.path()).unwrap(), &["a"]).unwrap();
        assert_eq!(loaded.len(), 2);
    }

    #[test]
    fn file_names_of_modules_are_recognised() {
        let named = |file: &str| name(Path::new(file));
        assert_eq!(named("kernel/a-b.ko.xz").as_deref(), Some("a-b"));
        assert_eq!(named("a.ko.zst").as_deref(), Some("a"));
        assert_eq!(named("a.ko").as_deref(), Some("a"));
        assert_eq!((named("a.ko.debug"), named("modules.dep")), (None, None));
    }
}
