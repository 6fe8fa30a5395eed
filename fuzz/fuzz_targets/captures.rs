//! The reader of captured frames never panics, and neither does the hash of its frames. Frames that
//! were written read back unchanged.
#![no_main]

use fwdlab_netio::frame::LONGEST;
use fwdlab_netio::pcap::{PcapPort, PcapWriter};
use fwdlab_netio::{Batch, Port};
use fwdlab_packet::rss::{MICROSOFT_KEY, SYMMETRIC_KEY, Toeplitz, queue_of};
use fwdlab_packet::{Stamp, rss};
use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::{env, fs, process};

static KEYS: LazyLock<[Toeplitz; 2]> =
    LazyLock::new(|| [&MICROSOFT_KEY, &SYMMETRIC_KEY].map(Toeplitz::new));
static FILE: LazyLock<PathBuf> =
    LazyLock::new(|| env::temp_dir().join(format!("fwdlab-fuzz-{}.pcap", process::id())));

fuzz_target!(|bytes: &[u8]| {
    hash(bytes);
    let (frames, missed) = read(bytes);
    frames.iter().for_each(|frame| hash(frame));
    let mut writer = PcapWriter::new(Vec::new()).expect("memory");
    for frame in &frames {
        writer.write(1, frame).expect("memory");
    }
    if !frames.is_empty() {
        assert_eq!(read(&writer.into_inner()), (frames, 0));
    }
    // Each frame takes at least a record header.
    assert!(missed <= bytes.len() as u64 / 12);
});

/// Returns all frames up to the end or the first fault, and the number of missed frames.
fn read(bytes: &[u8]) -> (Vec<Vec<u8>>, u64) {
    fs::write(&*FILE, bytes).expect("a file");
    let (mut frames, mut batch) = (Vec::new(), Batch::new());
    let Ok(mut port) = PcapPort::open(Some(&*FILE), None, 3) else { return (frames, 0) };
    loop {
        // After a fault there are no more frames.
        if let Err(error) = port.receive(&mut batch) {
            assert!(!error.to_string().is_empty() && port.is_at_end());
            batch.clear();
        }
        for frame in batch.frames() {
            assert!(frame.len() <= LONGEST && frame.ingress() == 3);
            frames.push(frame.whole().to_vec());
        }
        if port.is_at_end() {
            break;
        }
    }
    let missed = port.missed();
    let counts = port.counts().lock().expect("no panic").clone();
    assert_eq!((counts.frames, counts.missed()), (frames.len() as u64, missed));
    assert!(counts.is_at_end && counts.left_out() >= missed);
    (frames, missed)
}

/// Hashes a frame, if it is one.
fn hash(frame: &[u8]) {
    let _ = Stamp::parse_frame(frame);
    let [one, other] = &*KEYS;
    let (hash, symmetric) = (one.hash_frame(frame), other.hash_frame(frame));
    assert_eq!(hash.is_some(), symmetric.is_some());
    let (Some(hash), Some(symmetric)) = (hash, symmetric) else { return };
    assert!((1..=64).all(|queues| queue_of(hash, queues) < queues.min(rss::ENTRIES)));
    if let Some(reversed) = reversed(frame) {
        assert_eq!(other.hash_frame(&reversed), Some(symmetric), "both directions hash alike");
    }
}

/// Swaps source and destination, and ports if present. `None` if the header is too short: then
/// ports and addresses overlap.
fn reversed(frame: &[u8]) -> Option<Vec<u8>> {
    let mut frame = frame.to_vec();
    let (addresses, length, header) = match frame[12] {
        8 => (26, 4, usize::from(frame[14] & 15) * 4),
        _ => (22, 16, 40),
    };
    let swap = |frame: &mut Vec<u8>, at: usize, length: usize| {
        if let Some(pair) = frame.get_mut(at..at + 2 * length) {
            pair.rotate_left(length);
        }
    };
    swap(&mut frame, addresses, length);
    swap(&mut frame, 14 + header, 2);
    (header >= 20).then_some(frame)
}
