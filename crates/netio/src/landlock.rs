//! Limits the files that a process can change (landlock(7)). A user without capabilities may still
//! be the owner of most files: uid 0.

use crate::NetioError;
use std::fs::OpenOptions;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Rights (linux/landlock.h).
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_FILE: u64 = 1 << 5;
const MAKE_REGULAR: u64 = 1 << 8;
/// All other rights to change directories.
const CHANGE_DIRECTORY: u64 = 1 << 4 | 1 << 6 | 1 << 7 | 0b1111 << 9;
/// Rights of later versions of the interface.
const REFER: (i64, u64) = (2, 1 << 13);
const TRUNCATE: (i64, u64) = (3, 1 << 14);
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct Beneath {
    allowed: u64,
    directory: i32,
}

/// Allows the calling thread, and threads that it starts later, to change files in `directories`
/// only. Open files stay writable. Returns false if the kernel has no Landlock.
///
/// # Errors
/// If a directory cannot be opened, or the kernel refuses: call it after
/// [`drop_all`](crate::rights::drop_all).
pub fn write_only_in(directories: &[&Path]) -> Result<bool, NetioError> {
    let failed = |error: io::Error| NetioError::system("limiting changes of files", error);
    let (version, flags) = (std::ptr::null::<u64>(), CREATE_RULESET_VERSION);
    // SAFETY: with this flag the call reads no memory and returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, version, 0, flags) };
    if version < 1 {
        return Ok(false);
    }
    let later = |(since, right): (i64, u64)| if version >= since { right } else { 0 };
    let inside = WRITE_FILE | REMOVE_FILE | MAKE_REGULAR | later(TRUNCATE);
    let handled = inside | CHANGE_DIRECTORY | later(REFER);
    let size = size_of::<u64>();
    // SAFETY: the call reads `size` bytes, the first member of `struct landlock_ruleset_attr`, which
    // outlive it.
    let ruleset =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, &raw const handled, size, 0) };
    let ruleset = descriptor(ruleset).map_err(failed)?;
    for directory in directories {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_PATH)
            .open(directory)
            .map_err(failed)?;
        let rule = Beneath { allowed: inside, directory: opened.as_raw_fd() };
        // SAFETY: the call reads one `struct landlock_path_beneath_attr`, which outlives it; both
        // descriptors are open.
        let status = unsafe {
            let (call, kind) = (libc::SYS_landlock_add_rule, RULE_PATH_BENEATH);
            libc::syscall(call, ruleset.as_raw_fd(), kind, &raw const rule, 0)
        };
        if status != 0 {
            return Err(failed(io::Error::last_os_error()));
        }
    }
    // SAFETY: the call reads no memory; the descriptor is open.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) } {
        0 => Ok(true),
        _ => Err(failed(io::Error::last_os_error())),
    }
}

fn descriptor(result: libc::c_long) -> io::Result<OwnedFd> {
    match i32::try_from(result) {
        // SAFETY: the kernel returned a new descriptor, which nothing else owns.
        Ok(number) if number >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(number) }),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rights;
    use std::fs;

    /// Also as root, to whom the other directory belongs.
    #[test]
    fn write_only_in_protects_other_directories() {
        let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
        let [own, other] = [inside.path(), outside.path()].map(|path| path.join("file"));
        fs::write(&other, "kept").expect("a file");
        let tried = std::thread::scope(|scope| {
            let limited = scope.spawn(|| {
                rights::drop_all().expect("the kernel takes them");
                if !write_only_in(&[inside.path()]).expect("a directory") {
                    return None;
                }
                let new = inside.path().join("new");
                fs::write(&new, "1").expect("it is allowed");
                fs::rename(&new, &own).expect("it is allowed");
                fs::write(&own, "2").expect("it is allowed");
                assert_eq!(fs::read_to_string(&other).expect("reading is allowed"), "kept");
                Some([
                    fs::write(&other, "changed").is_err(),
                    fs::remove_file(&other).is_err(),
                    fs::write(outside.path().join("new"), "1").is_err(),
                    fs::create_dir(inside.path().join("directory")).is_err(),
                    fs::rename(&own, outside.path().join("own")).is_err(),
                ])
            });
            limited.join().expect("no panic")
        });
        let Some(refused) = tried else {
            return fwdlab_testdata::skip("the kernel has no Landlock");
        };
        assert_eq!(refused, [true; 5]);
        assert_eq!(fs::read_to_string(&other).expect("text"), "kept");
    }
}
