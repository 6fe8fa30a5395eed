//! Writes pcap.

use std::io::{self, Write};

/// Magic number of the format with nanoseconds, in the byte order of the file.
const MAGIC: u32 = 0xa1b2_3c4d;
const VERSION: [u16; 2] = [2, 4];
/// Maximum frame length that readers must expect, as in other programs.
const SNAP_BYTES: u32 = 262_144;
const LINKTYPE_ETHERNET: u32 = 1;

/// Writes frames with their times, in little endian.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    output: W,
    /// The record being written: the output gets each in one call.
    record: Vec<u8>,
}

impl<W: Write> PcapWriter<W> {
    /// Begins a file by writing its header.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(mut output: W) -> io::Result<PcapWriter<W>> {
        let mut header = MAGIC.to_le_bytes().to_vec();
        header.extend(VERSION.into_iter().flat_map(u16::to_le_bytes));
        // Time zone and accuracy are always 0.
        header.extend([0, 0, SNAP_BYTES, LINKTYPE_ETHERNET].into_iter().flat_map(u32::to_le_bytes));
        output.write_all(&header)?;
        Ok(PcapWriter { output, record: Vec::new() })
    }

    /// Writes a frame seen `time_ns` nanoseconds after 1970.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(&mut self, time_ns: i64, bytes: &[u8]) -> io::Result<()> {
        let time_ns = time_ns.max(0) as u64;
        let length = bytes.len() as u32;
        let mut header = [0; 16];
        let numbers =
            [(time_ns / 1_000_000_000) as u32, (time_ns % 1_000_000_000) as u32, length, length];
        for (field, number) in header.chunks_exact_mut(4).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
        self.record.clear();
        self.record.extend_from_slice(&header);
        self.record.extend_from_slice(bytes);
        self.output.write_all(&self.record)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.output
    }
}
