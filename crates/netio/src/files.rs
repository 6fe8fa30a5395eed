//! Files that a router writes and reads while it forwards: no full disk, closed pipe or prepared
//! link may end or divert it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that are written together.
const BUFFER: usize = 1 << 16;
/// Minimum time between attempts while writing fails.
const RETRY: Duration = Duration::from_secs(1);

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
/// are dropped and counted, except for a header, and later ones are tried again. A regular file always ends with a whole record.
#[derive(Debug)]
pub struct RecordFile<S: Storage = File> {
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

impl Storage for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, length: u64) {
        // Pipes and devices cannot be cut.
        let _ = self.set_len(length).and_then(|()| self.seek(SeekFrom::Start(length)));
    }
}

impl RecordFile {
    /// Creates a file that only its owner can read: records may contain anything. With `has_header`,
    /// the first record is written before any other one.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn create(path: &str, has_header: bool) -> io::Result<RecordFile> {
        Ok(RecordFile::new(create(Path::new(path), 0o600)?, path, has_header))
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
                self.retry = Some(now + RETRY);
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
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A disk with room for some bytes.
    #[derive(Debug, Default)]
    struct Disk {
        bytes: Vec<u8>,
        room: usize,
    }

    impl Storage for &mut Disk {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            let fits = bytes.len().min(self.room - self.bytes.len());
            self.bytes.extend_from_slice(&bytes[..fits]);
            if fits == bytes.len() { Ok(()) } else { Err(io::ErrorKind::StorageFull.into()) }
        }

        fn cut(&mut self, length: u64) {
            self.bytes.truncate(length as usize);
        }
    }

    #[test]
    fn record_file_keeps_whole_records_when_the_disk_is_full() {
        let mut disk = Disk { bytes: Vec::new(), room: 3 };
        let mut file = RecordFile::new(&mut disk, "x", true);
        let begin = Instant::now();
        // Not even the header fits: it is kept.
        file.write_all(b"head").expect("never fails");
        file.drain(begin);
        file.write_all(b"one").expect("never fails");
        file.drain(begin + RETRY / 2);
        assert_eq!((file.storage.bytes.len(), file.losses.lost()), (0, 1));
        file.storage.room = 12;
        file.write_all(b"two").expect("never fails");
        file.drain(begin + RETRY);
        for record in [b"thr", b"fou"] {
            file.write_all(record).expect("never fails");
        }
        file.drain(begin + RETRY);
        assert_eq!((&file.storage.bytes[..], file.losses.lost()), (&b"headtwo"[..], 3));
        file.storage.room = 20;
        file.write_all(b"fiv").expect("never fails");
        file.drain(begin + 3 * RETRY);
        let losses = file.losses();
        drop(file);
        assert_eq!(disk.bytes, b"headtwofiv");
        let reason = losses.take_news().expect("a failure");
        assert_eq!(losses.take_news(), None, "once");
        assert_eq!(losses.remark(), Some(format!("3 records not written: {reason}")));
    }

    #[test]
    fn record_file_counts_what_a_device_refuses() {
        let mut file = RecordFile::create("/dev/full", false).expect("the device");
        for _ in 0..10 {
            file.write_all(&[7; 1000]).expect("never fails");
            file.flush().expect("never fails");
        }
        let losses = file.losses();
        drop(file);
        assert_eq!(losses.lost(), 10);
    }

    #[test]
    fn create_refuses_links_and_keeps_captures_private() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, link, target] =
            ["file", "link", "target"].map(|name| directory.path().join(name));
        std::fs::write(&target, "kept").expect("a file");
        std::os::unix::fs::symlink(&target, &link).expect("a link");
        assert!(create(&link, 0o644).is_err());
        assert_eq!(std::fs::read_to_string(&target).expect("text"), "kept");
        drop(RecordFile::create(&file.to_string_lossy(), true).expect("a file"));
        let mode = file.metadata().expect("it exists").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn read_regular_refuses_pipes_without_waiting() {
        let directory = tempfile::tempdir().expect("a directory");
        let [file, pipe] = ["file", "pipe"].map(|name| directory.path().join(name));
        let kind = rustix::fs::FileType::Fifo;
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).expect("a pipe");
        assert!(read_regular(&pipe).is_err());
        assert!(read_regular(directory.path()).is_err());
        std::fs::write(&file, "text").expect("a file");
        assert_eq!(read_regular(&file).expect("text"), "text");
    }
}
