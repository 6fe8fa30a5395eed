//! Tests of files of records.

use super::*;
use std::os::unix::fs::PermissionsExt;

/// A disk with room for some bytes.
#[derive(Debug, Default)]
struct SmallDisk {
    bytes: Vec<u8>,
    room: usize,
}

impl Storage for &mut SmallDisk {
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
    let mut disk = SmallDisk { bytes: Vec::new(), room: 3 };
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
    let [file, link, target] = ["file", "link", "target"].map(|name| directory.path().join(name));
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

/// A reader that stalls loses records, and those that it gets are whole.
#[test]
fn record_file_does_not_wait_for_the_reader_of_a_pipe() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    let kind = rustix::fs::FileType::Fifo;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).expect("a pipe");
    let options = OFlags::RDONLY | OFlags::NONBLOCK;
    let reader = rustix::fs::open(&pipe, options, mode).expect("a reader");
    let mut file = RecordFile::create(&pipe.to_string_lossy(), true).expect("a pipe");
    let record = |number: u16| [&number.to_be_bytes()[..], &[7; 998]].concat();
    let mut now = Instant::now();
    let mut read: Vec<u8> = Vec::new();
    let receive = |most: usize| {
        let mut bytes = vec![0; most];
        let count = rustix::io::read(&reader, &mut bytes[..]).unwrap_or(0);
        bytes.truncate(count);
        bytes
    };
    file.write_all(b"head").expect("never fails");
    for number in 0..2000 {
        file.write_all(&record(number)).expect("never fails");
        now += RETRY_PIPE;
        file.drain(now);
        if number % 300 == 299 {
            // Not a multiple of a record.
            read.extend(receive(33_333));
        }
    }
    let losses = file.losses();
    let lost = losses.lost();
    assert!(lost > 1000, "{lost}");
    assert!(losses.remark().is_some_and(|why| why.ends_with("the reader does not keep up")));
    for _ in 0..10 {
        read.extend(receive(65_536));
        now += RETRY_PIPE;
        file.write_all(&record(9999)).expect("never fails");
        file.drain(now);
        if read.ends_with(&record(9999)) {
            break;
        }
    }
    let records: Vec<&[u8]> = read[4..].chunks(1000).collect();
    assert_eq!(&read[..4], b"head");
    assert!(records.len() > 60, "{}", records.len());
    assert!(records.iter().all(|record| record.len() == 1000 && record[2..] == [7; 998]));
}
