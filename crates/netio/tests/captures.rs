//! Capture files as ports: all formats, and files in other formats.

use fwdlab_netio::pcap::{CaptureCounts, PcapPort};
use fwdlab_netio::port::Sent;
use fwdlab_netio::{Batch, NetioError, Port, clock};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

const NUMBER: u8 = 4;

/// Writes numbers in either byte order.
struct Bytes {
    big: bool,
    bytes: Vec<u8>,
}

impl Bytes {
    fn new(big: bool) -> Bytes {
        Bytes { big, bytes: Vec::new() }
    }
    fn u16(&mut self, number: u16) -> &mut Bytes {
        let bytes = if self.big { number.to_be_bytes() } else { number.to_le_bytes() };
        self.raw(&bytes)
    }
    fn u32(&mut self, number: u32) -> &mut Bytes {
        let bytes = if self.big { number.to_be_bytes() } else { number.to_le_bytes() };
        self.raw(&bytes)
    }
    fn raw(&mut self, bytes: &[u8]) -> &mut Bytes {
        self.bytes.extend_from_slice(bytes);
        self
    }
    /// Appends a pcapng block around `body`, padded to whole words.
    fn block(&mut self, kind: u32, body: &Bytes) -> &mut Bytes {
        let length = 12 + body.bytes.len().next_multiple_of(4);
        self.u32(kind).u32(length as u32).raw(&body.bytes);
        self.raw(&vec![0; length - 12 - body.bytes.len()]).u32(length as u32)
    }
}

fn frames() -> Vec<Vec<u8>> {
    [60, 61, 62, 63, 1514, 1596, 9014].iter().map(|&length| vec![length as u8; length]).collect()
}

/// Writes a pcap file as the draft specifies: header, then records of time, lengths and bytes.
fn pcap(big: bool, magic: u32, link: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Bytes::new(big);
    file.u32(magic).u16(2).u16(4).u32(0).u32(0).u32(65535).u32(link);
    for frame in frames {
        let length = frame.len() as u32;
        file.u32(1_700_000_000).u32(999).u32(length).u32(length).raw(frame);
    }
    file.bytes
}

/// Writes a pcapng file: section, interface, a block of an unknown type, frames as enhanced packets
/// and the last one as a simple packet.
fn pcapng(big: bool, link: u16, frames: &[Vec<u8>]) -> Vec<u8> {
    let body = || Bytes::new(big);
    let mut file = body();
    let mut section = body();
    section.u32(0x1a2b_3c4d).u16(1).u16(0).u32(u32::MAX).u32(u32::MAX);
    file.block(0x0a0d_0d0a, &section);
    file.block(1, body().u16(link).u16(0).u32(0));
    file.block(0x0bad, body().u32(1));
    for (n, frame) in frames.iter().enumerate() {
        let length = frame.len() as u32;
        match n + 1 < frames.len() {
            true => file.block(6, body().u32(0).u32(1).u32(2).u32(length).u32(length).raw(frame)),
            false => file.block(3, body().u32(length).raw(frame)),
        };
    }
    file.bytes
}

fn write(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("in.pcap");
    fs::write(&path, bytes).expect("a file");
    path
}

/// Returns all frames before the end or an error.
fn read(path: &Path) -> (Vec<Vec<u8>>, Result<PcapPort, NetioError>) {
    let (mut batch, mut frames) = (Batch::new(), Vec::new());
    let mut port = match PcapPort::open(Some(path), None, NUMBER) {
        Ok(port) => port,
        Err(error) => return (frames, Err(error)),
    };
    while !port.is_at_end() {
        match port.receive(&mut batch) {
            Ok(count) => assert_eq!(count, batch.frames().len()),
            Err(error) => return (frames, Err(error)),
        }
        for frame in batch.frames() {
            assert_eq!((frame.ingress(), frame.egress()), (NUMBER, None));
            frames.push(frame.whole().to_vec());
        }
    }
    (frames, Ok(port))
}

#[test]
fn port_reads_all_capture_formats() {
    let folder = TempDir::new().expect("a folder");
    for big in [false, true] {
        for magic in [0xa1b2_c3d4, 0xa1b2_3c4d] {
            let (read, port) = read(&write(&folder, &pcap(big, magic, 1, &frames())));
            assert_eq!(port.expect("a whole file").missed(), 0);
            assert!(read == frames(), "big endian {big}, magic {magic:x}");
        }
        let (read, port) = read(&write(&folder, &pcapng(big, 1, &frames())));
        assert_eq!(port.expect("a whole file").missed(), 0);
        assert!(read == frames(), "pcapng, big endian {big}");
    }
    // More than one batch, and more than the reader's buffer holds.
    let many: Vec<Vec<u8>> = (0..2000u32).map(|n| n.to_be_bytes().repeat(300)).collect();
    assert!(read(&write(&folder, &pcap(false, 0xa1b2_c3d4, 1, &many))).0 == many);
}

#[test]
fn truncated_and_long_frames_are_missed() {
    let folder = TempDir::new().expect("a folder");
    let mut bytes = pcap(
        false,
        0xa1b2_c3d4,
        1,
        &[vec![1; 60], vec![2; fwdlab_netio::frame::LONGEST + 1], vec![3; 60]],
    );
    // The file contains less than the stated length of the last frame.
    let at = bytes.len() - 60 - 4;
    bytes[at] = 61;
    let (read, port) = read(&write(&folder, &bytes));
    let mut port = port.expect("a whole file");
    assert_eq!((read, port.missed()), (vec![vec![1; 60]], 2));
    let counts = counts(&port);
    let remark = "2 of 3 records left out: 1 truncated when they were captured, 1 longer than frames \
                  can be";
    assert_eq!(counts.remark().as_deref(), Some(remark));
    assert!(counts.is_mostly_left_out() && counts.is_at_end);
}

#[test]
fn cut_file_yields_all_whole_frames_then_the_place() {
    let folder = TempDir::new().expect("a folder");
    let many: Vec<Vec<u8>> = (0..200u32).map(|n| n.to_be_bytes().repeat(20)).collect();
    let file = pcap(false, 0xa1b2_c3d4, 1, &many);
    // Within the bytes of the last frame, and within its header.
    for cut in [30, 90] {
        let (read, error) = read(&write(&folder, &file[..file.len() - cut]));
        assert!(read == many[..199], "{} frames", read.len());
        let error = error.err().expect("the cut").to_string();
        let place = format!("at byte {}: the file is cut within this record", 24 + 199 * 96);
        assert!(error.contains(&place) && error.contains("\n  next step: "), "{error}");
    }
    let path = write(&folder, &file[..file.len() - 30]);
    let mut port = PcapPort::open(Some(&path), None, NUMBER).expect("a port");
    while port.receive(&mut Batch::new()).is_ok() {
        assert!(!port.is_at_end(), "the fault is still to come");
    }
    let counts = counts(&port);
    assert!(port.is_at_end() && counts.is_at_end);
    assert_eq!((counts.frames, counts.left_out()), (199, 0));
    let fault = format!(
        "at byte {}: the file is cut within this record; the records before it were read",
        24 + 199 * 96
    );
    assert_eq!(counts.remark(), Some(fault));
    assert_eq!(port.receive(&mut Batch::new()).expect("nothing more"), 0);
}

#[test]
fn link_type_with_fcs_length_is_ethernet() {
    let folder = TempDir::new().expect("a folder");
    for link in [0x1400_0001, 0x2400_0001, 0xf000_0001] {
        let (read, port) = read(&write(&folder, &pcap(true, 0xa1b2_c3d4, link, &frames())));
        assert!(port.is_ok() && read == frames(), "{link:x}");
    }
}

#[test]
fn blocks_with_unknown_content_are_counted() {
    let folder = TempDir::new().expect("a folder");
    let mut file = Bytes { big: false, bytes: pcapng(false, 1, &frames()) };
    // The obsolete packet block, twice a private one, and interface statistics.
    for kind in [2, 0x8000_0777, 0x8000_0777, 5] {
        file.block(kind, Bytes::new(false).u32(0).u32(0).u32(0));
    }
    let (read, port) = read(&write(&folder, &file.bytes));
    let counts = counts(&port.expect("a whole file"));
    assert!(read == frames());
    // One more is in the file from the beginning.
    assert_eq!(
        counts.blocks.into_iter().collect::<Vec<_>>(),
        [(2, 1), (0xbad, 1), (0x8000_0777, 2)]
    );
    assert_eq!((counts.frames, counts.truncated, counts.too_long), (7, 0, 0));
}

fn counts(port: &PcapPort) -> CaptureCounts {
    port.counts().lock().expect("no panic").clone()
}

#[test]
fn open_rejects_other_files_with_offset() {
    let folder = TempDir::new().expect("a folder");
    let error_of = |bytes: &[u8]| {
        let (frames, error) = read(&write(&folder, bytes));
        assert!(frames.is_empty());
        error.err().expect("an error").to_string().replace(folder.path().to_str().unwrap(), "")
    };
    let frame = [vec![0; 60]];
    let first_line = |error: String| error.lines().next().unwrap_or_default().to_owned();
    let error_of = |bytes: &[u8]| first_line(error_of(bytes));
    let raw_ip = "/in.pcap: at byte 24: frames of link type RAW, not Ethernet";
    assert_eq!(error_of(&pcap(false, 0xa1b2_c3d4, 101, &frame)), raw_ip);
    let file = pcapng(true, 113, &[frame[0].clone(), frame[0].clone()]);
    let linux_sll = "/in.pcap: at byte 64: frames of link type LINUX_SLL, not Ethernet";
    assert_eq!(error_of(&file), linux_sll);
    assert_eq!(error_of(b""), "/in.pcap: at byte 0: the file is empty");
    assert_eq!(
        error_of(b"Frames, please: none here."),
        "/in.pcap: at byte 0: neither pcap nor pcapng"
    );
    let mut long = pcap(false, 0xa1b2_c3d4, 1, &frame);
    long[35] = 0x7f;
    assert_eq!(error_of(&long), "/in.pcap: at byte 24: a record that is too long");
    let mut stray = pcapng(false, 1, &[frame[0].clone(), frame[0].clone()]);
    stray[72] = 3;
    assert_eq!(error_of(&stray), "/in.pcap: at byte 64: a frame of interface 3, unheard of");
    assert!(PcapPort::open(Some(Path::new("/no/such/file")), None, 0).is_err());
}

#[test]
fn damaged_files_yield_whole_frames_without_panic() {
    let folder = TempDir::new().expect("a folder");
    let frames_in_file = [vec![1; 14], vec![2; 15], vec![3; 16]];
    for file in [
        pcap(false, 0xa1b2_3c4d, 1, &frames_in_file),
        pcap(true, 0xa1b2_c3d4, 1, &frames_in_file),
        pcapng(false, 1, &frames_in_file),
        pcapng(true, 1, &frames_in_file),
    ] {
        for length in 0..file.len() {
            let (read, result) = read(&write(&folder, &file[..length]));
            assert!(
                read.len() < frames_in_file.len() && frames_in_file.starts_with(&read),
                "cut at {length}"
            );
            if let Err(error) = result {
                assert!(
                    matches!(error, NetioError::Capture { offset, .. } if offset <= length as u64)
                );
            }
        }
        for at in 0..file.len() {
            for value in [0, 0x7f, 0xff, file[at] ^ 1] {
                let mut broken = file.clone();
                broken[at] = value;
                // The result is irrelevant, as long as reading ends.
                assert!(read(&write(&folder, &broken)).0.len() <= frames_in_file.len());
            }
        }
    }
}

#[test]
fn sent_frames_read_back() {
    let folder = TempDir::new().expect("a folder");
    let input = write(&folder, &pcap(true, 0xa1b2_c3d4, 1, &frames()));
    let output = folder.path().join("out.pcap");
    let mut port = PcapPort::open(Some(&input), Some(&output), NUMBER).expect("a port");
    let mut batch = Batch::new();
    assert_eq!(port.receive(&mut batch).expect("receiving"), 7);
    batch.frames_mut().iter_mut().for_each(|frame| frame.send_to(NUMBER));
    batch.frames_mut()[1].send_to(NUMBER + 1);
    batch.frames_mut()[2].send_nowhere();
    assert_eq!(port.send(&mut batch).expect("sending"), Sent { sent: 5, lost: 0 });
    port.flush().expect("writing");
    let mut expected = frames();
    expected.drain(1..3);
    let (written, result) = read(&output);
    assert!(written == expected && result.is_ok());
    assert!(PcapPort::open(Some(&input), Some(&input), 0).is_err(), "it would be overwritten");
    assert!(read(&input).0 == frames());
    // Neither file: a port that never receives, and discards everything.
    let mut empty = PcapPort::open(None, None, NUMBER).expect("a port");
    assert!(empty.is_at_end());
    assert_eq!(empty.send(&mut batch).expect("sending"), Sent { sent: 5, lost: 0 });
    assert_eq!(empty.receive(&mut batch).expect("receiving"), 0);
}

#[test]
fn wait_blocks_only_at_end_of_file() {
    let folder = TempDir::new().expect("a folder");
    let input = write(&folder, &pcap(false, 0xa1b2_c3d4, 1, &frames()));
    let mut port = PcapPort::open(Some(&input), None, NUMBER).expect("a port");
    let begin = clock::monotonic_ns();
    port.wait(Duration::from_secs(3600)).expect("no waiting");
    port.receive(&mut Batch::new()).expect("receiving");
    assert!(port.is_at_end());
    port.wait(Duration::from_millis(20)).expect("waiting");
    let waited = clock::monotonic_ns() - begin;
    assert!((20_000_000..60_000_000_000).contains(&waited), "{waited} ns");
}
