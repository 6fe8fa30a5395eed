//! Files that a router writes and reads while it forwards: no full disk, closed pipe or prepared
//! link may end or divert it.

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are written together.
const BUFFER: usize = 1 << 16;
/// Minimum time between attempts while writing fails, and while the reader of a pipe is behind.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_PIPE: Duration = Duration::from_millis(10);

/// Creates an empty file, or empties an existing one; a symbolic link is refused.
///
/// # Errors
/// Errors of the file system.
pub fn create(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(mode);
    options.custom_flags(libc::O_NOFOLLOW).open(path)
}

/// Reads the text of a regular file. Pipes and devices are refused: they may never end.
///
/// # Errors
/// Errors of the file system, other kinds of files, and text that is not UTF-8.
pub fn read_regular(path: &Path) -> io::Result<String> {
    // Opening a pipe without a writer would wait for one.
    let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Records that a file did not take.
#[derive(Debug, Default)]
pub struct WriteLosses {
    path: String,
    lost: AtomicU64,
    reason: Mutex<Option<String>>,
    is_reported: AtomicBool,
}

impl WriteLosses {
    /// Path of the file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Number of records lost so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The number and the latest reason, if records were lost.
    pub fn remark(&self) -> Option<String> {
        let lost = self.lost();
        let records = if lost == 1 { "record" } else { "records" };
        (lost > 0).then(|| format!("{lost} {records} not written: {}", self.reason()))
    }

    /// The reason of the first failure, once.
    pub fn take_news(&self) -> Option<String> {
        let has_failed = self.reason.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        (has_failed && !self.is_reported.swap(true, Relaxed)).then(|| self.reason())
    }

    fn reason(&self) -> String {
        let reason = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        reason.clone().unwrap_or_default()
    }

    fn note(&self, error: &io::Error) {
        *self.reason.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }
}

/// A file of records, such as captured frames. Writing to it never fails.
///
/// Each call of `write` is a record; many are written together. Records that the file does not take
/// are dropped and counted, except for a header, and later ones are tried again. A regular file
/// always ends with a whole record. Writing does not wait for the reader of a pipe.
#[derive(Debug)]
pub struct RecordFile<S: Storage = Disk> {
    storage: S,
    buffer: Vec<u8>,
    /// Records in the buffer.
    records: u64,
    /// True if the first record is a header, without which no other one can be read.
    has_header: bool,
    /// Bytes of the header.
    header: usize,
    /// Bytes of the file: whole records.
    end: u64,
    /// Next attempt, while writing fails.
    retry: Option<Instant>,
    losses: Arc<WriteLosses>,
}

/// Content of a [`RecordFile`].
pub trait Storage {
    /// Appends bytes; on error possibly only some of them.
    ///
    /// # Errors
    /// Errors of the file system.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Removes everything beyond this length, as far as this is possible.
    fn cut(&mut self, length: u64);
}

/// A file, or a pipe whose reader may be behind: writing never waits for it.
#[derive(Debug)]
pub struct Disk {
    file: File,
    is_pipe: bool,
    /// The end of bytes that the pipe took in part.
    rest: Vec<u8>,
}

impl Disk {
    /// Writes to an open file.
    ///
    /// # Errors
    /// Errors of the file system.
    fn new(file: File) -> io::Result<Disk> {
        let is_pipe = file.metadata()?.file_type().is_fifo();
        if is_pipe {
            let flags = fcntl_getfl(&file)?;
            fcntl_setfl(&file, flags | OFlags::NONBLOCK)?;
        }
        Ok(Disk { file, is_pipe, rest: Vec::new() })
    }

    /// Writes as much as the pipe takes; returns the number of bytes.
    fn fill(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut written = 0;
        while written < bytes.len() {
            match self.file.write(&bytes[written..]) {
                Ok(0) => break,
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }
}

impl Storage for Disk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if !self.is_pipe {
            return self.file.write_all(bytes);
        }
        let rest = std::mem::take(&mut self.rest);
        let written = self.fill(&rest)?;
        self.rest = rest[written..].to_vec();
        let is_behind = || io::Error::new(io::ErrorKind::WouldBlock, "the reader does not keep up");
        if !self.rest.is_empty() {
            return Err(is_behind());
        }
        match self.fill(bytes)? {
            0 => Err(is_behind()),
            written => {
                self.rest = bytes[written..].to_vec();
                Ok(())
            }
        }
    }

    fn cut(&mut self, length: u64) {
        // Pipes and devices cannot be cut.
        let _ = self.file.set_len(length).and_then(|()| self.file.seek(SeekFrom::Start(length)));
    }
}

impl RecordFile {
    /// Creates a file that only its owner can read: records may contain anything. With `has_header`,
    /// the first record is written before any other one.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(path: &str, has_header: bool) -> io::Result<RecordFile> {
        let disk = Disk::new(create(Path::new(path), 0o600)?)?;
        Ok(RecordFile::new(disk, path, has_header))
    }
}

impl<S: Storage> RecordFile<S> {
    fn new(storage: S, path: &str, has_header: bool) -> RecordFile<S> {
        let losses = Arc::new(WriteLosses { path: path.to_owned(), ..WriteLosses::default() });
        let (buffer, retry) = (Vec::new(), None);
        RecordFile { storage, buffer, records: 0, has_header, header: 0, end: 0, retry, losses }
    }

    /// Records lost so far, which last longer than the file.
    pub fn losses(&self) -> Arc<WriteLosses> {
        Arc::clone(&self.losses)
    }

    fn drain(&mut self, now: Instant) {
        if self.records == 0 {
            return;
        }
        let mut kept = 0;
        let waits = self.retry.is_some_and(|retry| now < retry);
        let result = if waits { None } else { Some(self.storage.append(&self.buffer)) };
        if let Some(Ok(())) = result {
            self.end += self.buffer.len() as u64;
            self.retry = None;
        } else {
            if let Some(Err(error)) = result {
                self.storage.cut(self.end);
                self.losses.note(&error);
                let is_behind = error.kind() == io::ErrorKind::WouldBlock;
                self.retry = Some(now + if is_behind { RETRY_PIPE } else { RETRY });
            }
            kept = u64::from(self.has_header && self.end == 0);
            self.losses.lost.fetch_add(self.records - kept, Relaxed);
        }
        self.records = kept;
        self.buffer.truncate(if kept == 0 { 0 } else { self.header });
    }
}

impl<S: Storage> Write for RecordFile<S> {
    fn write(&mut self, record: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + record.len() > BUFFER {
            self.drain(Instant::now());
        }
        if self.end == 0 && self.records == 0 {
            self.header = record.len();
        }
        self.buffer.extend_from_slice(record);
        self.records += 1;
        Ok(record.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.drain(Instant::now());
        Ok(())
    }
}

impl<S: Storage> Drop for RecordFile<S> {
    fn drop(&mut self) {
        // The last chance for these records.
        self.retry = None;
        self.drain(Instant::now());
    }
}

#[cfg(test)]
mod tests;
