//! Writing pcap.

use std::io::{self, Write};

/// The format with nanoseconds, in whatever byte order the file is in.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
/// Longest frame that readers must expect, as other programs say too.
const SNAP_BYTES: u32 = 262_144;
const LINKTYPE_ETHERNET: u32 = 1;

/// Writes frames with their times, in little endian.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    to: W,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file: writes its header.
    ///
    /// # Errors
    /// What writing gives.
    pub fn new(mut to: W) -> io::Result<PcapWriter<W>> {
        to.write_all(&MAGIC.to_le_bytes())?;
        for number in VERSION {
            to.write_all(&number.to_le_bytes())?;
        }
        // Time zone and accuracy are always 0.
        for number in [0, 0, SNAP_BYTES, LINKTYPE_ETHERNET] {
            to.write_all(&number.to_le_bytes())?;
        }
        Ok(PcapWriter { to })
    }

    /// Writes a frame that passed `time_ns` nanoseconds after 1970.
    ///
    /// # Errors
    /// What writing gives.
    pub fn write(&mut self, time_ns: i64, bytes: &[u8]) -> io::Result<()> {
        let time_ns = time_ns.max(0) as u64;
        let length = bytes.len() as u32;
        let mut header = [0; 16];
        let numbers =
            [(time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32, length, length];
        for (place, number) in header.chunks_exact_mut(4).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.to.write_all(&header)?;
        self.to.write_all(bytes)
    }

    /// Hands everything on that waits in buffers.
    ///
    /// # Errors
    /// What writing gives.
    pub fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }

    /// What was written to.
    pub fn into_inner(self) -> W {
        self.to
    }
}
