//! One writer per store: an operating-system lock on a file next to the store.
//!
//! The kernel releases the lock when the process ends for any reason, so stale locks never need
//! manual removal. The file contains the writer's process ID for the error message only.

use super::StoreError;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The lock of a store that is open for writing.
#[derive(Debug)]
pub struct WriterLock {
    file: File,
    path: PathBuf,
}

impl WriterLock {
    /// Locks the store, and creates its directory if it does not exist. The error names the process
    /// that writes to it.
    ///
    /// # Errors
    /// If another process has the lock, or the lock file can't be written.
    pub fn acquire_with_directory(store: &Path) -> Result<WriterLock, StoreError> {
        if let Some(directory) = store.parent() {
            std::fs::create_dir_all(directory).map_err(|source| not_writable(store, &source))?;
        }
        WriterLock::acquire(store)
    }

    /// Locks the store at `store`. The error names the process that writes to it.
    pub(super) fn acquire(store: &Path) -> Result<WriterLock, StoreError> {
        let path = with_suffix(store, ".lock");
        loop {
            let mut file = OpenOptions::new()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .open(&path)
                .map_err(|source| not_writable(store, &source))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let pid = read_pid(&mut file);
                    return Err(StoreError::Locked { path: store.to_path_buf(), pid });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(StoreError::Io { path, action: "lock", source });
                }
            }
            // The last writer removes its lock file before it releases the lock. A process that
            // opened the file just before has locked a file without a name, and must retry.
            if is_still_named(&file, &path) {
                write_pid(&mut file).map_err(|source| not_writable(store, &source))?;
                return Ok(WriterLock { file, path });
            }
        }
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // If this fails, an unlocked file remains, which is harmless.
        let _ = std::fs::remove_file(&self.path);
        let _ = self.file.unlock();
    }
}

/// `run.sqlite` -> `run.sqlite.lock`.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn is_still_named(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(held), Ok(named)) => (held.dev(), held.ino()) == (named.dev(), named.ino()),
        _ => false,
    }
}

fn write_pid(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn read_pid(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn not_writable(store: &Path, source: &std::io::Error) -> StoreError {
    if source.kind() == std::io::ErrorKind::StorageFull {
        return StoreError::Full { path: store.to_path_buf() };
    }
    StoreError::NotWritable { path: store.to_path_buf(), reason: source.to_string() }
}
