//! RPM packages: Fedora, openSUSE, and `make binrpm-pkg`.
//!
//! A package of RPM 4 is a lead, two headers and a compressed cpio archive. The headers are skipped,
//! so neither rpm nor rpm2cpio is needed. The archive of a package of RPM 6 has no names, which are
//! in the second header: `rpm2archive` reads it.

use super::{archive, deb, root};
use crate::error::VmError;
use crate::tool::Stage;
use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Beginning and length of the lead.
const LEAD: [u8; 4] = [0xed, 0xab, 0xee, 0xdb];
const LEAD_LENGTH: u64 = 96;
/// Beginning of a header, length of its introduction, and of each entry of its index.
const HEADER: [u8; 3] = [0x8e, 0xad, 0xe8];
const INTRODUCTION: u64 = 16;
const ENTRY: u64 = 16;
/// Tag of file sizes with 64 bits: with them the archive has no names (`rpmtag.h` of RPM).
const LONG_FILE_SIZES: u64 = 5008;
/// Endings of the names of packages that Fedora divides a kernel into.
const PARTS: [&str; 4] = ["", "-core", "-modules-core", "-modules"];

/// Unpacks a package's files into a directory.
///
/// # Errors
/// If it is not a package, it is damaged, or a program is missing.
pub(super) fn unpack(path: &Path, directory: &Path) -> Result<(), VmError> {
    let mut file = File::open(path).map_err(|source| VmError::file(path, source))?;
    let at = payload(&file).ok_or_else(|| VmError::Kernel {
        path: path.to_owned(),
        why: "no RPM package, or a damaged one\n  next step: download it again".into(),
    })?;
    let fault = |source| VmError::file(path, source);
    if at.has_names {
        file.seek(SeekFrom::Start(at.offset)).map_err(fault)?;
        return archive::unpack_cpio(path, file, directory);
    }
    file.rewind().map_err(fault)?;
    let arguments = &["-n", "-"];
    let archive = Stage {
        program: "rpm2archive",
        arguments,
        package: "rpm2cpio (Debian) or rpm",
        directory: None,
        // A damaged archive does not change its exit status.
        failure: Some("Error"),
    };
    archive::unpack_tar_of(file, archive, directory).map_err(|error| match error {
        VmError::Program { why, .. } if why.starts_with("Error") => VmError::Kernel {
            path: path.to_owned(),
            why: format!("a damaged RPM package: {why}\n  next step: download it again"),
        },
        error => error,
    })
}

/// The archive of a package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Payload {
    offset: u64,
    /// False if names are in the header only.
    has_names: bool,
}

/// Finds the archive; `None` if the file is not a package.
fn payload(file: &File) -> Option<Payload> {
    let mut lead = [0; LEAD.len()];
    file.read_exact_at(&mut lead, 0).ok()?;
    if lead != LEAD {
        return None;
    }
    // The signature is padded, the header is not.
    let signature = LEAD_LENGTH + header(file, LEAD_LENGTH)?;
    let begin = signature.next_multiple_of(8);
    let length = header(file, begin)?;
    Some(Payload { offset: begin + length, has_names: !has_tag(file, begin, LONG_FILE_SIZES)? })
}

/// Returns the length of the header at an offset.
fn header(file: &File, at: u64) -> Option<u64> {
    let mut bytes = [0; INTRODUCTION as usize];
    file.read_exact_at(&mut bytes, at).ok()?;
    let number = |at: usize| bytes[at..at + 4].iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    bytes.starts_with(&HEADER).then(|| INTRODUCTION + number(8) * ENTRY + number(12))
}

/// True if the header at an offset has a tag.
fn has_tag(file: &File, at: u64, tag: u64) -> Option<bool> {
    let number = |at: u64| {
        let mut bytes = [0; 4];
        file.read_exact_at(&mut bytes, at).ok()?;
        Some(u64::from(u32::from_be_bytes(bytes)))
    };
    // A header has at most this many entries (`hdrchkTags` of RPM).
    let entries = number(at + 8)?.min(0xffff);
    let mut tags = (0..entries).map(|entry| number(at + INTRODUCTION + entry * ENTRY));
    Some(tags.any(|found| found == Some(tag)))
}

/// Finds the other parts of the kernel of `files` in the same directories.
pub(super) fn complete(files: &mut Vec<PathBuf>) {
    for file in files.clone() {
        let name = root::name(&file);
        let Some((base, version)) = divide(&name) else { continue };
        for part in PARTS {
            let other = deb::directory(&file).join(format!("{base}{part}-{version}"));
            let is_known = files.iter().any(|one| root::name(one) == root::name(&other));
            if !is_known && other.is_file() {
                files.push(other);
            }
        }
    }
}

/// Divides the name of a package's file: `kernel-modules-core-6.9-1.x86_64.rpm` belongs to
/// `kernel`, and ends with `6.9-1.x86_64.rpm`.
fn divide(name: &str) -> Option<(&str, &str)> {
    let (rest, _) = name.rsplit_once('-')?;
    let (package, _) = rest.rsplit_once('-')?;
    let version = &name[package.len() + 1..];
    let endings = ["-modules-core", "-modules", "-core"];
    let base = endings.iter().find_map(|ending| package.strip_suffix(ending));
    Some((base.unwrap_or(package), version))
}

/// Returns the packages to download for a kernel without its modules; `None` unless `name` is a
/// package whose modules are in another one.
pub(super) fn modules_of(name: &str) -> Option<String> {
    let (base, version) = divide(name)?;
    let version = version.strip_suffix(".rpm")?;
    name.starts_with(&format!("{base}-core-")).then(|| format!("{base}-modules-core-{version}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn payload_follows_lead_and_headers() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("k.rpm");
        let header = |entries: u8, store: u8| {
            let mut header =
                vec![0x8e, 0xad, 0xe8, 1, 0, 0, 0, 0, 0, 0, 0, entries, 0, 0, 0, store];
            header.resize(16 + usize::from(entries) * 16 + usize::from(store), 0);
            header
        };
        let mut file = LEAD.to_vec();
        file.resize(96, 0);
        file.extend(header(1, 5));
        file.resize(file.len().next_multiple_of(8), 0);
        file.extend(header(2, 7));
        let expected = file.len() as u64;
        file.extend(b"070701");
        fs::write(&path, &file).unwrap();
        let found = || payload(&File::open(&path).unwrap());
        assert_eq!(found(), Some(Payload { offset: expected, has_names: true }));
        // The tag of the second entry of the second header.
        let entry = expected as usize - 7 - 16;
        file[entry..entry + 4].copy_from_slice(&5008u32.to_be_bytes());
        fs::write(&path, &file).unwrap();
        assert_eq!(found(), Some(Payload { offset: expected, has_names: false }));
        fs::write(&path, &file[..100]).unwrap();
        assert_eq!(found(), None);
        let error = unpack(&path, directory.path()).unwrap_err().to_string();
        assert!(error.contains("no RPM package"), "{error}");
    }

    #[test]
    fn parts_are_found_by_version() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let version = "6.14.0-63.fc42.x86_64.rpm";
        for name in ["kernel-core", "kernel-modules-core", "kernel-modules", "kernel-devel"] {
            fs::write(at(&format!("{name}-{version}")), "").unwrap();
        }
        fs::write(at("kernel-modules-core-6.14.1-1.fc42.x86_64.rpm"), "").unwrap();
        let mut files = vec![at(&format!("kernel-core-{version}"))];
        complete(&mut files);
        let names: Vec<String> = files.iter().map(|path| root::name(path)).collect();
        let expected = ["kernel-core", "kernel-modules-core", "kernel-modules"];
        assert_eq!(names, expected.map(|name| format!("{name}-{version}")));
    }

    #[test]
    fn package_with_the_modules_is_named() {
        let expected = Some("kernel-modules-core-6.14.0-63.fc42.x86_64".to_owned());
        assert_eq!(modules_of("kernel-core-6.14.0-63.fc42.x86_64.rpm"), expected);
        assert_eq!(modules_of("kernel-6.9.0-1.x86_64.rpm"), None);
    }
}
