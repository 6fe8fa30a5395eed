//! Compressed archives of packages, unpacked by programs of this machine.

use crate::error::VmError;
use crate::tool::{self, Stage};
use std::io::Read;
use std::path::Path;

/// Compression formats: their first bytes, the program that decompresses them, and the
/// package that contains it.
const COMPRESSIONS: [(&[u8], &str, &str); 7] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz", "xz-utils (xz)"),
    (&[0x28, 0xb5, 0x2f, 0xfd], "zstd", "zstd"),
    (&[0x1f, 0x8b], "gzip", "gzip"),
    (b"BZh", "bzip2", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4", "lz4"),
    // Its older format, which kernel images have.
    (&[0x02, 0x21, 0x4c, 0x18], "lz4", "lz4"),
    (&[0x5d, 0, 0], "xz", "xz-utils (xz)"),
];
/// Bytes that distinguish the compression formats.
const MAGIC: usize = 6;

/// Returns the program that decompresses data beginning with `magic`; `None` if the data is
/// not compressed.
fn decompressor(magic: &[u8]) -> Option<Stage<'static>> {
    let found = COMPRESSIONS.iter().find(|(begin, ..)| magic.starts_with(begin))?;
    let arguments = &["-dc"];
    Some(Stage { program: found.1, arguments, package: found.2, directory: None, failure: None })
}

/// Reads the first bytes of `data`, and returns them with a reader of the whole.
fn peek(mut data: impl Read + Send) -> std::io::Result<(Vec<u8>, impl Read + Send)> {
    let mut magic = Vec::new();
    data.by_ref().take(MAGIC as u64).read_to_end(&mut magic)?;
    Ok((magic.clone(), std::io::Cursor::new(magic).chain(data)))
}

/// Returns `data` decompressed.
///
/// # Errors
/// If the program that decompresses it is missing or fails.
pub(super) fn decompressed(data: Vec<u8>) -> Result<Vec<u8>, VmError> {
    match decompressor(&data) {
        Some(stage) => tool::run(stage.program, stage.arguments, &data, stage.package),
        None => Ok(data),
    }
}

/// Unpacks a tar archive from `path`, compressed or not, into a directory.
///
/// # Errors
/// If a program is missing, or the archive is damaged.
pub(super) fn unpack_tar(
    path: &Path,
    data: impl Read + Send,
    directory: &Path,
) -> Result<(), VmError> {
    let (magic, data) = peek(data).map_err(|source| VmError::file(path, source))?;
    let stages: Vec<Stage<'_>> = decompressor(&magic).into_iter().chain([tar(directory)]).collect();
    tool::pipe(data, &stages, None)
}

/// Unpacks the tar archive that a program makes of `data` into a directory.
///
/// # Errors
/// If a program is missing, or the archive is damaged.
pub(super) fn unpack_tar_of(
    data: impl Read + Send,
    program: Stage<'_>,
    directory: &Path,
) -> Result<(), VmError> {
    tool::pipe(data, &[program, tar(directory)], None)
}

/// Reads a tar archive into a directory. With `-o`, files belong to the caller, also when that is
/// root.
fn tar(directory: &Path) -> Stage<'_> {
    let arguments = &["-xof", "-"];
    Stage { program: "tar", arguments, package: "tar", directory: Some(directory), failure: None }
}

/// Unpacks a cpio archive from an RPM package at `path`, compressed or not, into a directory.
///
/// # Errors
/// If a program is missing, or the archive is damaged.
pub(super) fn unpack_cpio(
    path: &Path,
    data: impl Read + Send,
    directory: &Path,
) -> Result<(), VmError> {
    let (magic, data) = peek(data).map_err(|source| VmError::file(path, source))?;
    let arguments = &["-idm", "--quiet", "--no-absolute-filenames"];
    let directory = Some(directory);
    let cpio = Stage { program: "cpio", arguments, package: "cpio", directory, failure: None };
    let stages: Vec<Stage<'_>> = decompressor(&magic).into_iter().chain([cpio]).collect();
    tool::pipe(data, &stages, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decompressor_is_chosen_by_the_first_bytes() {
        let program = |magic: &[u8]| decompressor(magic).map(|stage| stage.program);
        assert_eq!(program(b"\xfd7zXZ\0..."), Some("xz"));
        assert_eq!(program(b"\x28\xb5\x2f\xfd..."), Some("zstd"));
        assert_eq!(program(b"\x1f\x8b\x08"), Some("gzip"));
        assert_eq!(program(b"\x7fELF\x02\x01"), None);
        assert_eq!(program(b""), None);
    }
}
