//! Debian packages: their members (deb(5), ar(5)), and the packages that they depend on.

use super::{archive, root};
use crate::error::VmError;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Take};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Beginning of an ar archive, and length of the header of a member.
const MAGIC: &[u8; 8] = b"!<arch>\n";
const HEADER: u64 = 60;
/// Length of a block of a tar archive.
const BLOCK: usize = 512;
/// Beginnings of the names of packages that a kernel is divided into.
const PARTS: [&str; 3] = ["linux-image-", "linux-binary-", "linux-modules-"];
/// Beginnings of package names that no guest needs.
const NOT_NEEDED: [&str; 2] = ["linux-modules-extra-", "linux-modules-nvidia-"];

/// A package that another one depends on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Dependency {
    /// Name of the package.
    pub name: String,
    /// Its exact version; `None` if any will do.
    pub version: Option<String>,
}

impl Dependency {
    /// Returns the package as an argument of `apt-get download`.
    pub fn for_apt(&self) -> String {
        match &self.version {
            Some(version) => format!("{}={version}", self.name),
            None => self.name.clone(),
        }
    }

    /// Finds the package in a directory by the name of its file.
    fn find(&self, directory: &Path) -> Option<PathBuf> {
        let matches = |path: &PathBuf| {
            // Epochs have escaped colons in file names.
            let file = root::name(path).replace("%3a", ":");
            let Some(stem) = file.strip_suffix(".deb") else { return false };
            let mut words = stem.split('_');
            let (name, version) = (words.next(), words.next());
            let without_epoch = |version: &str| {
                version.rsplit_once(':').map_or(version, |(_, rest)| rest).to_owned()
            };
            let expected_version = self.version.as_deref().map(without_epoch);
            name == Some(&self.name)
                && (expected_version.is_none() || version.map(without_epoch) == expected_version)
        };
        root::entries(directory).into_iter().rfind(matches)
    }
}

/// Fields of a package's control file that identify it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Control {
    /// Name of the package.
    pub name: String,
    /// Version of the package.
    pub version: String,
    /// Further parts of the same kernel that the package depends on.
    pub needed: Vec<Dependency>,
}

impl Control {
    /// Parses a control file, or a paragraph of `apt-cache show`.
    pub fn parse(text: &str) -> Control {
        let field = |name: &str| {
            let lines = text.lines().filter_map(|line| line.split_once(": "));
            lines.into_iter().find(|(key, _)| *key == name).map_or("", |(_, value)| value.trim())
        };
        let clauses = field("Depends").split(", ").flat_map(|clause| clause.split(" | "));
        let (name, version) = (field("Package").to_owned(), field("Version").to_owned());
        let mut needed: Vec<Dependency> = clauses.filter_map(part).collect();
        // An image alone does not depend on its modules, and is useless without them.
        if let Some(release) = name.strip_prefix(PARTS[1]) {
            let release = release.strip_prefix("unsigned-").unwrap_or(release);
            needed.push(Dependency {
                name: format!("{}{release}", PARTS[2]),
                version: Some(version.clone()),
            });
        }
        Control { name, version, needed }
    }

    /// True for a package that only depends on the newest kernel of a kind.
    pub fn is_meta(&self) -> bool {
        self.needed.iter().any(|needed| needed.name.starts_with(PARTS[0]))
    }
}

/// Parses a dependency on a part of a kernel: `linux-modules-6.19 (= 6.19-1)`. `None` for other
/// dependencies.
fn part(text: &str) -> Option<Dependency> {
    let (name, restriction) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
    let starts_with_any =
        |beginnings: &[&str]| beginnings.iter().any(|begin| name.starts_with(begin));
    if !starts_with_any(&PARTS) || starts_with_any(&NOT_NEEDED) {
        return None;
    }
    let version = restriction.strip_prefix("(= ").and_then(|rest| rest.strip_suffix(')'));
    Some(Dependency { name: name.to_owned(), version: version.map(str::to_owned) })
}

/// Finds the other parts of the kernel of `files` in the same directories. Returns the missing
/// packages.
///
/// # Errors
/// If a file is not a package.
pub(super) fn complete(files: &mut Vec<PathBuf>) -> Result<Vec<Dependency>, VmError> {
    let mut controls = Vec::new();
    let mut missing = Vec::new();
    let mut at = 0;
    for file in files.iter() {
        controls.push(control(file)?);
    }
    while at < files.len() {
        let directory = directory(&files[at]);
        for needed in controls[at].needed.clone() {
            let matches = |one: &Control| {
                let same_version = needed.version.as_ref().is_none_or(|v| *v == one.version);
                one.name == needed.name && same_version
            };
            if controls.iter().any(matches) {
                continue;
            }
            match needed.find(&directory) {
                Some(file) => {
                    controls.push(control(&file)?);
                    files.push(file);
                }
                None => missing.push(needed),
            }
        }
        at += 1;
    }
    missing.sort();
    missing.dedup();
    Ok(missing)
}

/// Returns the directory of a file; of the target if `path` is a link.
pub(super) fn directory(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.parent().unwrap_or(Path::new(".")).to_owned()
}

/// Reads the control file of a package.
fn control(path: &Path) -> Result<Control, VmError> {
    let fault = |source| VmError::file(path, source);
    let mut tar = Vec::new();
    member(path, "control.tar")?.read_to_end(&mut tar).map_err(fault)?;
    let tar = archive::decompressed(tar)?;
    let text = file_of_tar(&tar, "control").ok_or_else(|| no_package(path))?;
    Ok(Control::parse(&String::from_utf8_lossy(text)))
}

/// Unpacks a package's files into a directory.
///
/// # Errors
/// If it is not a package, it is damaged, or a program is missing.
pub(super) fn unpack(path: &Path, directory: &Path) -> Result<(), VmError> {
    archive::unpack_tar(path, member(path, "data.tar")?, directory)
}

/// Opens the member of a package whose name starts with `name`; compressed members have suffixes.
fn member(path: &Path, name: &str) -> Result<Take<File>, VmError> {
    let fault = |source| VmError::file(path, source);
    let mut file = File::open(path).map_err(fault)?;
    let mut magic = [0; MAGIC.len()];
    if file.read_exact(&mut magic).is_err() || magic != *MAGIC {
        return Err(no_package(path));
    }
    let mut at = MAGIC.len() as u64;
    let mut header = [0; HEADER as usize];
    while file.read_exact_at(&mut header, at).is_ok() {
        let text = String::from_utf8_lossy(&header);
        let size = text.get(48..58).and_then(|size| size.trim().parse::<u64>().ok());
        let size = size.ok_or_else(|| no_package(path))?;
        if text.starts_with(name) {
            let length = file.metadata().map_err(fault)?.len();
            if at + HEADER + size > length {
                return Err(no_package(path));
            }
            file.seek(SeekFrom::Start(at + HEADER)).map_err(fault)?;
            return Ok(file.take(size));
        }
        at += HEADER + size.next_multiple_of(2);
    }
    Err(no_package(path))
}

fn no_package(path: &Path) -> VmError {
    VmError::Kernel {
        path: path.to_owned(),
        why: "no Debian package, or a damaged one\n  next step: download it again".into(),
    }
}

/// Returns the content of a file in an uncompressed tar archive (tar(5)).
fn file_of_tar<'a>(tar: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let mut at = 0;
    while let Some(header) = tar.get(at..at + BLOCK) {
        let text = |field: &[u8]| {
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            String::from_utf8_lossy(&field[..end]).trim().to_owned()
        };
        let size = usize::from_str_radix(&text(&header[124..136]), 8).ok()?;
        at += BLOCK;
        if text(&header[..100]).trim_start_matches("./") == name {
            return tar.get(at..at + size);
        }
        at += size.next_multiple_of(BLOCK);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_of_a_split_kernel_names_its_parts() {
        let control = Control::parse(
            "Package: linux-image-7.3.4+deb13-cloud-amd64\n\
             Source: linux-signed-amd64 (7.3.4+1~bpo13+1)\n\
             Version: 7.3.4-1~bpo13+1\n\
             Depends: dracut | initramfs-tools (>= 0.120+deb8u2) | linux-initramfs-tool, \
             linux-base-7.3.4+deb13-cloud-amd64 (= 7.3.4-1~bpo13+1), \
             linux-binary-7.3.4+deb13-cloud-amd64 (= 7.3.4-1~bpo13+1), \
             linux-modules-7.3.4+deb13-cloud-amd64 (= 7.3.4-1~bpo13+1)\n\
             Description: Linux 7.3 for x86-64 cloud\n",
        );
        assert_eq!(control.version, "7.3.4-1~bpo13+1");
        let needed: Vec<String> = control.needed.iter().map(Dependency::for_apt).collect();
        let expected = [
            "linux-binary-7.3.4+deb13-cloud-amd64=7.3.4-1~bpo13+1",
            "linux-modules-7.3.4+deb13-cloud-amd64=7.3.4-1~bpo13+1",
        ];
        assert_eq!(needed, expected);
        assert!(!control.is_meta());
    }

    #[test]
    fn control_of_other_kernels_is_read() {
        let ubuntu = Control::parse(
            "Package: linux-image-unsigned-6.8.0-31-generic\nVersion: 6.8.0-31.31\n\
             Depends: kmod, linux-base (>= 4.5ubuntu1~16.04.1), linux-modules-6.8.0-31-generic\n",
        );
        let modules = Dependency { name: "linux-modules-6.8.0-31-generic".into(), version: None };
        assert_eq!(ubuntu.needed, [modules]);
        let meta = Control::parse(
            "Package: linux-image-6.12-cloud-amd64\nVersion: 6.12.117-1~deb12u1\n\
             Depends: linux-image-6.12.117+deb12-cloud-amd64 (= 6.12.117-1~deb12u1)\n",
        );
        assert!(meta.is_meta());
        assert!(
            Control::parse("Package: x\nDepends: kmod, linux-modules-extra-6.8\n")
                .needed
                .is_empty()
        );
    }

    #[test]
    fn parts_are_found_by_name_and_version() {
        let directory = tempfile::tempdir().unwrap();
        for file in ["linux-modules-7_7.3-1_amd64.deb", "linux-modules-7_1%3a7.3-2_amd64.deb"] {
            std::fs::write(directory.path().join(file), "").unwrap();
        }
        let find_version = |version: Option<&str>| {
            let version = version.map(str::to_owned);
            let needed = Dependency { name: "linux-modules-7".into(), version };
            needed.find(directory.path()).map(|path| root::name(&path))
        };
        assert_eq!(find_version(Some("1:7.3-2")).unwrap(), "linux-modules-7_1%3a7.3-2_amd64.deb");
        assert_eq!(find_version(Some("7.3-1")).unwrap(), "linux-modules-7_7.3-1_amd64.deb");
        assert_eq!(find_version(Some("7.3-3")), None);
        assert!(find_version(None).is_some());
    }
}
