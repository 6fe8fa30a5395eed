//! Kernel images: files that QEMU boots with `-kernel`.
//!
//! A bzImage decompresses itself, whatever its compression (gzip, xz, zstd, lz4 and others): only
//! its header is checked here. An uncompressed `vmlinux` boots if it has an entry point for PVH.

use super::archive;
use crate::error::VmError;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Offsets in a bzImage (Documentation/arch/x86/boot.rst of Linux): the magic number, the
/// protocol's version, the pointer to the kernel's version, and flags about the loaded kernel.
const MAGIC_AT: u64 = 0x202;
const PROTOCOL_AT: u64 = 0x206;
const RELEASE_AT: u64 = 0x20e;
const XLOADFLAGS_AT: u64 = 0x236;
/// Number of sectors of 512 bytes before the protected-mode code, which follows a boot sector; offset
/// of the compressed kernel in that code, and its length.
const SETUP_SECTORS_AT: usize = 0x1f1;
const PAYLOAD_AT: usize = 0x248;
const PAYLOAD_LENGTH_AT: usize = 0x24c;
/// The compressed kernel ends with its length after decompression.
const LENGTH: usize = 4;
/// Base of the pointer.
const SETUP: u64 = 0x200;
/// First version of the protocol that has flags of a 64-bit kernel.
const PROTOCOL_WITH_XLOADFLAGS: u16 = 0x020c;
/// Maximum length of a release name (`__NEW_UTS_LEN` of Linux).
const RELEASE_MAX: usize = 64;
/// Note of an entry point for PVH (include/xen/interface/elfnote.h of Linux).
const PVH: (&[u8], u32) = (b"Xen\0", 18);

/// Checks an image, and returns the release that it contains; empty if it contains none.
///
/// # Errors
/// If QEMU could not boot it.
pub(super) fn check(path: &Path) -> Result<String, VmError> {
    let file = File::open(path).map_err(|error| unreadable(path, error))?;
    let refused = |why: &str| VmError::Kernel { path: path.to_owned(), why: why.to_owned() };
    match format(&file) {
        Format::BzImage { is_64_bit: true } => Ok(release(&file)),
        Format::BzImage { is_64_bit: false } => Err(refused(
            "a kernel for 32-bit x86\n  next step: give one for x86-64 (Debian's *-amd64)",
        )),
        Format::Vmlinux { has_pvh: true } => Ok(String::new()),
        Format::Vmlinux { has_pvh: false } => Err(refused(
            "an uncompressed kernel without an entry point for PVH, which QEMU does not boot\n  \
             next step: give arch/x86/boot/bzImage of its build tree, or build with CONFIG_PVH=y",
        )),
        Format::Other => Err(refused(
            "no kernel of Linux for x86\n  next step: give a bzImage, a package (.deb, .rpm, \
             .pkg.tar.zst), a build tree, or a disk of FreeBSD (.raw, .img, .qcow2)",
        )),
    }
}

/// Returns the decompressed content of a bzImage: `vmlinux`, followed by its relocations.
///
/// # Errors
/// If it is no bzImage, or can't be decompressed.
pub(super) fn content(path: &Path) -> Result<Vec<u8>, VmError> {
    let image = fs::read(path).map_err(|error| unreadable(path, error))?;
    let payload = payload(&image).ok_or_else(|| VmError::Kernel {
        path: path.to_owned(),
        why: "no bzImage, so that its code can't be read\n  next step: give arch/x86/boot/bzImage of \
              its build tree, or a package"
            .to_owned(),
    })?;
    archive::decompressed(payload.to_vec())
}

fn payload(image: &[u8]) -> Option<&[u8]> {
    let word = |at: usize| {
        let word = image.get(at..at + 4)?.try_into().ok()?;
        usize::try_from(u32::from_le_bytes(word)).ok()
    };
    let is_one = image.get(MAGIC_AT as usize..)?.starts_with(b"HdrS");
    let sectors = usize::from(*image.get(SETUP_SECTORS_AT)?) + 1;
    let begin = sectors * 512 + word(PAYLOAD_AT)?;
    let end = begin.checked_add(word(PAYLOAD_LENGTH_AT)?)?.checked_sub(LENGTH)?;
    image.get(begin..end).filter(|_| is_one)
}

/// Formats of images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    BzImage { is_64_bit: bool },
    Vmlinux { has_pvh: bool },
    Other,
}

/// Returns the error for an image that can't be opened. On Ubuntu only root may read `/boot`.
fn unreadable(path: &Path, error: io::Error) -> VmError {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return VmError::file(path, error);
    }
    VmError::Kernel {
        path: path.to_owned(),
        why: format!("{error}\n  next step: sudo chmod a+r {}", path.display()),
    }
}

fn format(file: &File) -> Format {
    if bytes(file, MAGIC_AT) == Some(*b"HdrS") {
        let protocol = bytes(file, PROTOCOL_AT).map_or(0, u16::from_le_bytes);
        let flags = bytes(file, XLOADFLAGS_AT).map_or(0, u16::from_le_bytes);
        return Format::BzImage {
            is_64_bit: protocol < PROTOCOL_WITH_XLOADFLAGS || flags & 1 == 1,
        };
    }
    // ELF of 64 bits, little-endian, for x86-64.
    let machine = bytes(file, 0x12).map_or(0, u16::from_le_bytes);
    match bytes(file, 0) == Some(*b"\x7fELF\x02\x01") && machine == 62 {
        true => Format::Vmlinux { has_pvh: has_pvh(file) },
        false => Format::Other,
    }
}

/// Reads the release from a bzImage: `6.1.0-56-cloud-amd64 (debian-kernel@...) #1 SMP ...`.
fn release(file: &File) -> String {
    let at = bytes(file, RELEASE_AT).map_or(0, u16::from_le_bytes);
    if at == 0 {
        return String::new();
    }
    let mut text = [0; RELEASE_MAX];
    let read = file.read_at(&mut text, SETUP + u64::from(at)).unwrap_or_default();
    let end = text[..read].iter().position(|byte| !byte.is_ascii_graphic()).unwrap_or(read);
    String::from_utf8_lossy(&text[..end]).into_owned()
}

/// Reads the program headers of an ELF file (elf(5)), and looks for the note of PVH.
fn has_pvh(file: &File) -> bool {
    let [size, count] = [0x36, 0x38].map(|at| bytes(file, at).map_or(0, u16::from_le_bytes));
    let begin = bytes(file, 0x20).map_or(0, u64::from_le_bytes);
    (0..u64::from(count)).any(|number| {
        let header = begin.saturating_add(number * u64::from(size));
        let is_note = bytes(file, header).map(u32::from_le_bytes) == Some(4);
        let [at, length] =
            [8, 32].map(|field| bytes(file, header + field).map_or(0, u64::from_le_bytes));
        is_note && notes_have_pvh(file, at, at.saturating_add(length))
    })
}

fn notes_have_pvh(file: &File, mut at: u64, end: u64) -> bool {
    while at < end {
        let word = |field| bytes(file, at + field).map(u32::from_le_bytes);
        let (Some(name), Some(content), Some(kind)) = (word(0), word(4), word(8)) else {
            return false;
        };
        if kind == PVH.1 && bytes::<4>(file, at + 12).is_some_and(|name| name == PVH.0) {
            return true;
        }
        let padded = |length: u32| u64::from(length).next_multiple_of(4);
        at += 12 + padded(name) + padded(content);
    }
    false
}

/// Reads bytes at an offset; `None` if the file ends before them.
fn bytes<const N: usize>(file: &File, at: u64) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::fs;

    /// Returns a file that looks like the kernel of this release.
    pub(in crate::kernel) fn bz_image(release: &str) -> Vec<u8> {
        let mut image = vec![0; 0x300];
        image[0x202..0x206].copy_from_slice(b"HdrS");
        image[0x206..0x208].copy_from_slice(&0x020f_u16.to_le_bytes());
        image[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        image[0x236] = 1;
        image.extend(format!("{release} (builder@host) #1 SMP\0").into_bytes());
        image
    }

    /// Returns an ELF file for x86-64 whose relevant note is of this type.
    fn vmlinux(note: u32) -> Vec<u8> {
        let mut image = vec![0; 0x100];
        image[..6].copy_from_slice(b"\x7fELF\x02\x01");
        image[0x12] = 62;
        image[0x20] = 0x40; // program headers, 2 of 56 bytes
        image[0x36] = 56;
        image[0x38] = 2;
        let header = 0x40 + 56;
        image[header] = 4; // PT_NOTE
        image[header + 8] = 0xc0;
        image[header + 32] = 20 + 20;
        for (at, kind) in [(0xc0, 1), (0xc0 + 20, note)] {
            image[at] = 4;
            image[at + 4] = 4;
            image[at + 8..at + 12].copy_from_slice(&u32::to_le_bytes(kind));
            image[at + 12..at + 16].copy_from_slice(b"Xen\0");
        }
        image
    }

    fn check_content(content: &[u8]) -> Result<String, String> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        fs::write(&path, content).unwrap();
        check(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn bz_image_names_its_release() {
        assert_eq!(
            check_content(&bz_image("6.1.0-56-cloud-amd64")).unwrap(),
            "6.1.0-56-cloud-amd64"
        );
    }

    #[test]
    fn kernel_for_32_bits_is_refused() {
        let mut image = bz_image("6.1.0-56-686");
        image[0x236] = 0;
        assert!(check_content(&image).unwrap_err().contains("32-bit"));
    }

    #[test]
    fn vmlinux_needs_an_entry_for_pvh() {
        assert_eq!(check_content(&vmlinux(18)).unwrap(), "");
        assert!(check_content(&vmlinux(17)).unwrap_err().contains("CONFIG_PVH=y"));
    }

    #[test]
    fn other_files_are_refused() {
        for content in [&b""[..], b"x", &[0; 0x400], b"\x7fELF\x01\x01"] {
            assert!(check_content(content).unwrap_err().contains("no kernel of Linux"));
        }
    }
}
