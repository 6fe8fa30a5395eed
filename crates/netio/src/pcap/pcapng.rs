//! Writes pcapng with a comment for each frame (draft-ietf-opsawg-pcapng).

use std::io::{self, Write};

/// Types of blocks.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
/// Byte order magic of a section.
const MAGIC: u32 = 0x1a2b_3c4d;
const VERSION: [u16; 2] = [1, 0];
const LINKTYPE_ETHERNET: u16 = 1;
/// Options: a comment; of an interface its name and the resolution of times.
const COMMENT: u16 = 1;
const NAME: u16 = 2;
const RESOLUTION: u16 = 9;
/// Times in nanoseconds: ten to the power of minus nine.
const NANOSECONDS: u8 = 9;

/// Writes frames with their times, interfaces and comments, in little endian.
#[derive(Debug)]
pub struct PcapngWriter<W: Write> {
    output: W,
    /// The record being written: the output gets each in one call.
    record: Vec<u8>,
    snap: usize,
}

impl<W: Write> PcapngWriter<W> {
    /// Begins a file by writing its header with the interfaces, whose numbers follow their order.
    /// Each frame is written up to `snap` bytes.
    ///
    /// # Errors
    /// If writing fails.
    pub fn new(mut output: W, interfaces: &[String], snap: u32) -> io::Result<PcapngWriter<W>> {
        let mut header = Vec::new();
        append(&mut header, SECTION, |body| {
            body.extend(MAGIC.to_le_bytes());
            body.extend(VERSION.into_iter().flat_map(u16::to_le_bytes));
            // The length of the section is unknown.
            body.extend(u64::MAX.to_le_bytes());
        });
        for name in interfaces {
            append(&mut header, INTERFACE, |body| {
                body.extend([LINKTYPE_ETHERNET, 0].into_iter().flat_map(u16::to_le_bytes));
                body.extend(snap.to_le_bytes());
                option(body, NAME, name.as_bytes());
                option(body, RESOLUTION, &[NANOSECONDS]);
                end_of_options(body);
            });
        }
        output.write_all(&header)?;
        Ok(PcapngWriter { output, record: Vec::new(), snap: snap as usize })
    }

    /// Writes a frame of an interface, seen `time_ns` nanoseconds after 1970.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write(
        &mut self,
        interface: u8,
        time_ns: i64,
        bytes: &[u8],
        comment: &str,
    ) -> io::Result<()> {
        let time_ns = time_ns.max(0) as u64;
        let captured = &bytes[..bytes.len().min(self.snap)];
        self.record.clear();
        append(&mut self.record, PACKET, |body| {
            let numbers = [
                u32::from(interface),
                (time_ns >> 32) as u32,
                time_ns as u32,
                captured.len() as u32,
                bytes.len() as u32,
            ];
            body.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
            body.extend(captured);
            pad(body);
            option(body, COMMENT, comment.as_bytes());
            end_of_options(body);
        });
        self.output.write_all(&self.record)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// If writing fails.
    pub fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

/// Appends a block; its length is at both of its ends.
fn append(record: &mut Vec<u8>, kind: u32, write: impl FnOnce(&mut Vec<u8>)) {
    let start = record.len();
    record.extend(kind.to_le_bytes());
    record.extend([0; 4]);
    write(record);
    let length = ((record.len() - start + 4) as u32).to_le_bytes();
    record[start + 4..start + 8].copy_from_slice(&length);
    record.extend(length);
}

/// Appends an option, cut to the length that its field can have.
fn option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    body.extend([code, length].into_iter().flat_map(u16::to_le_bytes));
    body.extend(&value[..length.into()]);
    pad(body);
}

fn end_of_options(body: &mut Vec<u8>) {
    body.extend([0; 4]);
}

/// Fills up to a multiple of four bytes; all blocks begin at one.
fn pad(body: &mut Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::super::PcapPort;
    use super::*;
    use crate::frame::Batch;
    use crate::port::Port;

    #[test]
    fn written_frames_are_read_back_up_to_the_snap_length() {
        let names = ["eth1".to_owned(), "a longer name".to_owned()];
        let mut writer = PcapngWriter::new(Vec::new(), &names, 64).expect("memory");
        for length in [60u8, 61, 90] {
            let bytes: Vec<u8> = (0..length).collect();
            writer.write(1, 5, &bytes, &"x".repeat(length.into())).expect("memory");
        }
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.pcapng");
        std::fs::write(&path, &writer.output).expect("a file");
        let mut port = PcapPort::open(Some(&path), None, 0).expect("a capture");
        let (mut batch, mut found) = (Batch::new(), Vec::new());
        while !port.is_at_end() {
            port.receive(&mut batch).expect("frames");
            found.extend(batch.frames().iter().map(|frame| frame.whole().into_owned()));
        }
        // A frame that is not whole is left out.
        let expected: Vec<Vec<u8>> = [60, 61].map(|length| (0..length).collect()).into();
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_have_the_bytes_of_the_draft() {
        let mut writer = PcapngWriter::new(Vec::new(), &["e".to_owned()], 2).expect("memory");
        let header = writer.output.len();
        writer.write(0, 0x1_0000_0002, &[9, 8, 7], "no").expect("memory");
        let block = &writer.output[header..];
        let expected = [
            6, 0, 0, 0, 48, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 9,
            8, 0, 0, 1, 0, 2, 0, b'n', b'o', 0, 0, 0, 0, 0, 0, 48, 0, 0, 0,
        ];
        assert_eq!(block, expected);
        assert_eq!(
            writer.output[..12],
            [0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a]
        );
    }
}
