//! A store that appears as a whole or not at all: it is written beside its place, and moved
//! there when it is complete. A crash leaves what was there before.

use super::lock::{WriterLock, with_suffix};
use super::{Failure, Store, StoreError, move_aside, schema};
use rusqlite::Connection;
use std::path::{Path, PathBuf};

/// A store in the making. Dropped unfinished, it is removed.
#[derive(Debug)]
pub(super) struct StoreBuilder {
    store: Option<Store>,
    path: PathBuf,
    part: PathBuf,
    _lock: WriterLock,
}

impl StoreBuilder {
    /// Begins the store that is to stand at `path`, with its directory. What a crash left of an
    /// earlier one goes.
    ///
    /// # Errors
    /// [`StoreError::Locked`] and [`StoreError::NotWritable`] as [`Store::open`].
    pub(super) fn begin(path: &Path) -> Result<StoreBuilder, StoreError> {
        let lock = WriterLock::acquire_with_directory(path)?;
        let part = with_suffix(path, ".part");
        remove(&part)?;
        let connection = open_part(&part).map_err(|failure| failure.at(&part))?;
        let store =
            Store { connection, path: part.clone(), invocation: None, planned: None, lock: None };
        Ok(StoreBuilder { store: Some(store), path: path.to_path_buf(), part, _lock: lock })
    }

    /// What is being written.
    pub(super) fn store(&mut self) -> &mut Store {
        self.store.as_mut().expect("it is there until it is finished")
    }

    /// Moves it to its place; what is there is kept under the name that is returned.
    ///
    /// # Errors
    /// As [`StoreBuilder::finish`].
    pub(super) fn finish_beside(self) -> Result<Option<PathBuf>, StoreError> {
        let path = self.path.clone();
        let aside = if path.exists() { Some(move_aside(&path)?) } else { None };
        let finished = self.finish();
        if let (Err(_), Some(aside)) = (&finished, &aside) {
            // Else neither would be in its place.
            let _ = std::fs::rename(aside, &path);
        }
        finished.map(|()| aside)
    }

    /// Moves it to its place, over what is there.
    ///
    /// # Errors
    /// When the disk is full or can't be written.
    pub(super) fn finish(mut self) -> Result<(), StoreError> {
        if let Some(Store { connection, .. }) = self.store.take() {
            let closed = connection.close();
            closed.map_err(|(_, source)| StoreError::of(&self.part, source))?;
        }
        let failed = |action, source| StoreError::Io { path: self.part.clone(), action, source };
        let flushed = std::fs::File::open(&self.part).and_then(|file| file.sync_all());
        flushed.map_err(|source| failed("flush", source))?;
        // What SQLite kept beside an older store of this name is of no use to
        // the new one, and would be taken for its own.
        for suffix in ["-wal", "-shm"] {
            remove(&with_suffix(&self.path, suffix))?;
        }
        std::fs::rename(&self.part, &self.path).map_err(|source| failed("put in place", source))
    }
}

impl Drop for StoreBuilder {
    fn drop(&mut self) {
        // After `finish` there is none.
        let _ = remove(&self.part);
    }
}

/// A store that nobody else sees until it is complete: nothing has to be undone
/// in it, and one flush at the end is enough.
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
