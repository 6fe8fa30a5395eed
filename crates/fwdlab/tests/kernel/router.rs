//! `fwdlab route` as a forwarder: a file of frames in, two files out.

use crate::packets::{filler, mark_of, marks};
use crate::seen::{Seen, Side};
use crate::setup::ROUTER;
use fwdlab_model::router::RouterStats;
use fwdlab_netio::frame::BATCH;
use fwdlab_netio::pcap::{PcapPort, PcapWriter};
use fwdlab_netio::{Batch, Port};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Forwards frames, each received at a side, along a path with rules of the firewall; returns the
/// results of each.
pub(crate) fn forward(path: &str, rules: &str, frames: &[(Side, &[u8])]) -> Vec<Vec<Seen>> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let directory = directory.path();
    write(directory, frames);
    let setup = ROUTER.replace("$PATH", path).replace("$RULES", rules);
    fs::write(directory.join("router.toml"), setup).expect("a file");
    let output = Command::new(env!("CARGO_BIN_EXE_fwdlab"))
        .args(["route", "router.toml", "--json"])
        .current_dir(directory)
        .output()
        .expect("the program starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let stats: RouterStats = serde_json::from_slice(&output.stdout).expect("a line of JSON");
    assert_eq!(stats.received, (2 * frames.len() * BATCH) as u64, "{stats:?}");
    assert_eq!(stats.received, stats.forwarded + stats.dropped + stats.slow, "{stats:?}");
    assert!(stats.missed.iter().all(|(_, frames)| *frames == 0), "{stats:?}");
    let limited = |name: &str| name.contains("limited") || name == "extra_lost";
    assert!(!stats.counters.iter().any(|(name, ..)| limited(name)), "{stats:?}");

    let mut seen = vec![Vec::new(); frames.len()];
    for (side, file) in [(Side::Near, "near.pcap"), (Side::Far, "far.pcap")] {
        sort(read(&directory.join(file)), side, &mut seen);
    }
    seen
}

/// Writes the files that the router reads batch by batch in turn. Each frame has its own batch at
/// both sides, as frames sent in addition to a batch come after all of it. A mark to each side
/// comes first and identifies the frames that follow.
fn write(directory: &Path, frames: &[(Side, &[u8])]) {
    for (side, file) in [(Side::Near, "sent.pcap"), (Side::Far, "sent-far.pcap")] {
        let mut writer = PcapWriter::new(Vec::new()).expect("memory");
        let mut time_ns = 0;
        for (number, (from, frame)) in frames.iter().enumerate() {
            let mut batch = Vec::new();
            if side == Side::Near {
                batch.extend(marks(number as u32));
            }
            if *from == side {
                batch.push(frame.to_vec());
            }
            batch.resize(BATCH, filler());
            for bytes in batch {
                time_ns += 1000;
                writer.write(time_ns, &bytes).expect("memory");
            }
        }
        fs::write(directory.join(file), writer.into_inner()).expect("a file");
    }
}

fn read(path: &Path) -> Vec<Vec<u8>> {
    let mut port = PcapPort::open(Some(path), None, 0).expect("a file of frames");
    let (mut batch, mut frames) = (Batch::new(), Vec::new());
    while port.receive(&mut batch).expect("frames") > 0 {
        frames.extend(batch.frames().iter().map(|frame| frame.bytes().to_vec()));
    }
    frames
}

/// Assigns the frames that came out at a side to the frames that caused them.
fn sort(frames: Vec<Vec<u8>>, side: Side, seen: &mut [Vec<Seen>]) {
    let mut due = 0;
    for bytes in frames {
        match mark_of(&bytes) {
            Some(mark) => {
                assert_eq!(mark.0, due, "marks are forwarded in their order");
                due += 1;
            }
            None => {
                assert!(due > 0, "a frame before the first mark");
                seen[due as usize - 1].push(Seen { side, bytes });
            }
        }
    }
    assert_eq!(due as usize, seen.len(), "marks at the {side} side");
}
