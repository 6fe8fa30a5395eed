//! Atomic creation of a store: a temporary file next to the destination, renamed when it is
//! complete. After a crash the previous store is still there.

use super::lock::{WriterLock, with_suffix};
use super::{Failure, Store, StoreError, move_aside, schema};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// A store under construction. Dropping it unfinished removes the temporary file.
#[derive(Debug)]
pub(super) struct StoreBuilder {
    store: Option<Store>,
    path: PathBuf,
    part: PathBuf,
    _lock: WriterLock,
}

impl StoreBuilder {
    /// Begins a store for `path`, and creates its directory. Removes the temporary file of a
    /// crashed process.
    ///
    /// # Errors
    /// [`StoreError::Locked`] and [`StoreError::NotWritable`], as for [`Store::open`].
    pub(super) fn begin(path: &Path) -> Result<StoreBuilder, StoreError> {
        let lock = WriterLock::acquire_with_directory(path)?;
        let part = with_suffix(path, ".part");
        remove(&part)?;
        let connection = open_part(&part).map_err(|failure| failure.at(&part))?;
        let store =
            Store { connection, path: part.clone(), invocation: None, planned: None, lock: None };
        Ok(StoreBuilder { store: Some(store), path: path.to_path_buf(), part, _lock: lock })
    }

    /// The store under construction.
    pub(super) fn store(&mut self) -> &mut Store {
        self.store.as_mut().expect("it is there until it is finished")
    }

    /// Moves the store into place. Renames an existing store first, and returns its new name.
    ///
    /// # Errors
    /// As for [`StoreBuilder::finish`].
    pub(super) fn finish_beside(self) -> Result<Option<PathBuf>, StoreError> {
        let path = self.path.clone();
        let aside = if path.exists() { Some(move_aside(&path)?) } else { None };
        let finished = self.finish();
        if let (Err(_), Some(aside)) = (&finished, &aside) {
            // Restore the old store, so that one of the two is in place.
            let _ = std::fs::rename(aside, &path);
        }
        finished.map(|()| aside)
    }

    /// Moves the store into place, replacing an existing one.
    ///
    /// # Errors
    /// If the disk is full or can't be written.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        if let Some(Store { connection, .. }) = self.store.take() {
            let closed = connection.close();
            closed.map_err(|(_, source)| StoreError::of(&self.part, source))?;
        }
        let failed = |action, source| StoreError::Io { path: self.part.clone(), action, source };
        let flushed = std::fs::File::open(&self.part).and_then(|file| file.sync_all());
        flushed.map_err(|source| failed("flush", source))?;
        // SQLite would apply the log of an older store of this name to the new one.
        for suffix in ["-wal", "-shm"] {
            remove(&with_suffix(&self.path, suffix))?;
        }
        std::fs::rename(&self.part, &self.path).map_err(|source| failed("put in place", source))
    }
}

impl Drop for StoreBuilder {
    fn drop(&mut self) {
        // After `finish` the file no longer exists.
        let _ = remove(&self.part);
    }
}

/// Opens a store that no other process sees until it is complete: it needs no rollback journal, and
/// one flush at the end is enough.
fn open_part(path: &Path) -> Result<Connection, Failure> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "journal_mode", "OFF")?;
    connection.pragma_update(None, "synchronous", "OFF")?;
    schema::create(&mut connection)?;
    Ok(connection)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Io { path: path.to_path_buf(), action: "remove", source })
        }
        _ => Ok(()),
    }
}
