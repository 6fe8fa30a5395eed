//! The small system that a Linux guest boots into: a cpio archive in "newc" format
//! (Documentation/driver-api/early-userspace/buffer-format.rst of Linux) with a static busybox, the
//! required modules, and selected programs of this machine with their libraries.

use crate::error::VmError;
use crate::tool;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Types of files as in `stat(2)`.
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const CHARACTER: u32 = 0o020_000;
const SYMLINK: u32 = 0o120_000;

/// The archive.
#[derive(Debug, Default)]
pub struct Initrd {
    bytes: Vec<u8>,
    directories: BTreeSet<String>,
    names: BTreeSet<String>,
    inode: u32,
}

impl Initrd {
    /// Creates an archive with only a console and the empty directories of a system.
    pub fn new() -> Initrd {
        let mut initrd = Initrd::default();
        initrd.device("dev/console", 5, 1);
        initrd.device("dev/null", 1, 3);
        ["proc", "sys", "run", "tmp", "root"].iter().for_each(|name| initrd.directory(name));
        initrd
    }

    /// Adds a file with its permissions. The first of two files of the same name wins.
    pub fn file(&mut self, name: &str, permissions: u32, content: &[u8]) {
        self.parents(name);
        if self.names.insert(name.to_owned()) {
            self.entry(name, REGULAR | permissions, (0, 0), content);
        }
    }

    /// Adds a link to `target`.
    pub fn link(&mut self, name: &str, target: &str) {
        self.parents(name);
        if self.names.insert(name.to_owned()) {
            self.entry(name, SYMLINK | 0o777, (0, 0), target.as_bytes());
        }
    }

    /// Adds a directory and its parents.
    pub fn directory(&mut self, name: &str) {
        self.parents(name);
        if !name.is_empty() && self.directories.insert(name.to_owned()) {
            self.entry(name, DIRECTORY | 0o755, (0, 0), &[]);
        }
    }

    /// Adds a program of this machine, by path or name, with its libraries.
    ///
    /// # Errors
    /// If it or one of its libraries is missing; `package` is the package that contains it.
    pub fn program(&mut self, name: &str, package: &str) -> Result<(), VmError> {
        let path = tool::find(name).ok_or_else(|| VmError::Program {
            program: name.to_owned(),
            why: "not on this machine, and the guest needs it".into(),
            next: format!("install {package}"),
        })?;
        self.copy(&path, 0o755)?;
        // A static program has no libraries; ldd reports that by its exit status.
        let listing = tool::run("ldd", &[&path.to_string_lossy()], &[], "libc-bin");
        for library in libraries(&String::from_utf8_lossy(&listing.unwrap_or_default())) {
            self.copy(Path::new(&library), 0o755)?;
        }
        Ok(())
    }

    fn copy(&mut self, path: &Path, permissions: u32) -> Result<(), VmError> {
        let content = fs::read(path).map_err(|source| VmError::file(path, source))?;
        let name = path.to_string_lossy();
        self.file(name.trim_start_matches('/'), permissions, &content);
        Ok(())
    }

    fn device(&mut self, name: &str, major: u32, minor: u32) {
        self.parents(name);
        self.entry(name, CHARACTER | 0o600, (major, minor), &[]);
    }

    fn parents(&mut self, name: &str) {
        if let Some((parent, _)) = name.rsplit_once('/') {
            self.directory(parent);
        }
    }

    fn entry(&mut self, name: &str, mode: u32, (major, minor): (u32, u32), content: &[u8]) {
        self.inode += 1;
        let fields = [
            self.inode,
            mode,
            0,
            0,
            1,
            0,
            content.len() as u32,
            0,
            0,
            major,
            minor,
            name.len() as u32 + 1,
            0,
        ];
        self.bytes.extend(b"070701");
        self.bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        self.bytes.extend(name.as_bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    /// Returns the archive.
    pub fn into_bytes(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry("TRAILER!!!", 0, (0, 0), &[]);
        self.bytes
    }
}

/// Returns the paths that `ldd` lists: `libc.so.6 => /lib/libc.so.6 (0x...)`, and the loader by
/// itself.
fn libraries(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.split_ascii_whitespace().find(|word| word.starts_with('/')))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpio_reads_the_archive() {
        let mut initrd = Initrd::new();
        initrd.file("etc/ssh/key", 0o600, b"secret");
        initrd.file("etc/ssh/key", 0o644, b"another");
        initrd.link("bin/sh", "busybox");
        let bytes = initrd.into_bytes();
        assert_eq!(bytes.len() % 4, 0);
        let listing = match tool::run("cpio", &["-itv", "--quiet"], &bytes, "cpio") {
            Ok(listing) => String::from_utf8(listing).unwrap(),
            Err(error) => {
                assert!(error.to_string().contains("No such file"), "{error}");
                return fwdlab_testdata::skip("cpio is not installed");
            }
        };
        let lines_with =
            |name: &str| listing.lines().filter(|line| line.contains(name)).collect::<Vec<_>>();
        assert_eq!(lines_with("etc/ssh/key").len(), 1, "{listing}");
        assert!(lines_with("etc/ssh/key")[0].starts_with("-rw-------"), "{listing}");
        assert!(lines_with("bin/sh -> busybox")[0].starts_with('l'), "{listing}");
        assert!(lines_with("dev/console")[0].starts_with("crw-------"), "{listing}");
        assert_eq!(lines_with(" etc").len(), 3, "{listing}");
    }

    #[test]
    fn libraries_are_read_from_ldd() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x0000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x0001)\n";
        let expected = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];
        assert_eq!(libraries(text), expected);
        assert_eq!(libraries("\tnot a dynamic executable\n"), [""; 0]);
    }
}
