//! Reads pcap and pcapng.

use crate::NetioError;
use crate::frame::Frame;
use pcap_parser::pcapng::Block;
use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
use pcap_parser::{Linktype, PcapBlockOwned, PcapError, create_reader};
use std::fs::File;
use std::path::Path;

/// Bytes read in one go, and the longest record: programs capture frames of at most 256 KiB.
const BUFFER_BYTES: usize = 288 << 10;
/// Bits of a pcap file's link type that contain the type. The others describe the frames' FCS.
const LINK_TYPE: i32 = 0xffff;

/// A file of captured frames.
pub(super) struct PcapReader {
    path: String,
    reader: Box<dyn PcapReaderIterator + Send>,
    /// Link type of each interface. A pcap file has one interface.
    links: Vec<Linktype>,
}

/// The next item of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// A frame.
    Frame,
    /// A frame of which the file contains only the beginning.
    Truncated,
    /// A frame that is longer than a [`Frame`] can be.
    TooLong,
    /// A block of pcapng of this type, which is not read.
    Block(u32),
    /// End of the file.
    End,
}

/// Result of parsing a block.
enum ParsedBlock {
    Next(Next, usize),
    /// A block of this many bytes that is not a frame.
    Skip(usize),
    ReadOn,
    Wrong(String),
}

impl PcapReader {
    pub(super) fn open(path: &Path) -> Result<PcapReader, NetioError> {
        let name = path.display().to_string();
        let file =
            File::open(path).map_err(|e| NetioError::system(format!("opening {name}"), e))?;
        match create_reader(BUFFER_BYTES, file) {
            Ok(reader) => Ok(PcapReader { path: name, reader, links: Vec::new() }),
            Err(error) => Err(NetioError::Capture { path: name, offset: 0, why: words(&error) }),
        }
    }

    /// Reads the next frame as received at port `number`.
    ///
    /// # Errors
    /// [`NetioError::Capture`] if the file is malformed.
    pub(super) fn next(&mut self, number: u8, frame: &mut Frame) -> Result<Next, NetioError> {
        loop {
            let look = match self.reader.next() {
                Ok((bytes, block)) => look_at(&block, bytes, &mut self.links, number, frame),
                Err(PcapError::Eof) => ParsedBlock::Next(Next::End, 0),
                Err(PcapError::Incomplete(_)) => ParsedBlock::ReadOn,
                Err(error) => ParsedBlock::Wrong(words(&error)),
            };
            match look {
                ParsedBlock::Next(next, bytes) => {
                    self.reader.consume(bytes);
                    return Ok(next);
                }
                ParsedBlock::Skip(bytes) => self.reader.consume(bytes),
                ParsedBlock::ReadOn => self.read_on()?,
                ParsedBlock::Wrong(why) => return Err(self.wrong(why)),
            }
        }
    }

    fn read_on(&mut self) -> Result<(), NetioError> {
        let before = self.reader.data().len();
        let failed = self.reader.refill().map_err(|error| words(&error)).err();
        if let Some(why) = failed {
            return Err(self.wrong(why));
        }
        // Neither more data nor the end: a retry would loop forever.
        if self.reader.data().len() == before && !self.reader.reader_exhausted() {
            return Err(self.wrong("a record that is too long".into()));
        }
        Ok(())
    }

    fn wrong(&self, why: String) -> NetioError {
        let offset = self.reader.consumed() as u64;
        NetioError::Capture { path: self.path.clone(), offset, why }
    }
}

/// Interprets one block of a file, `bytes` long.
fn look_at(
    block: &PcapBlockOwned,
    bytes: usize,
    links: &mut Vec<Linktype>,
    number: u8,
    frame: &mut Frame,
) -> ParsedBlock {
    let (interface, captured, length) = match block {
        PcapBlockOwned::LegacyHeader(header) => {
            links.push(Linktype(header.network.0 & LINK_TYPE));
            return ParsedBlock::Skip(bytes);
        }
        PcapBlockOwned::NG(Block::SectionHeader(_)) => {
            links.clear();
            return ParsedBlock::Skip(bytes);
        }
        PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
            links.push(interface.linktype);
            return ParsedBlock::Skip(bytes);
        }
        PcapBlockOwned::Legacy(packet) => (0, packet.data, packet.origlen),
        PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
            (packet.if_id as usize, packet.packet_data(), packet.orig_len())
        }
        PcapBlockOwned::NG(Block::SimplePacket(packet)) => {
            (0, packet.packet_data(), packet.orig_len())
        }
        // Packets in an obsolete form, and blocks that other programs define.
        PcapBlockOwned::NG(block @ (Block::Custom(_) | Block::Unknown(_))) => {
            return ParsedBlock::Next(Next::Block(block.magic()), bytes);
        }
        // Names, statistics, secrets, processes, journals.
        PcapBlockOwned::NG(_) => return ParsedBlock::Skip(bytes),
    };
    match links.get(interface) {
        Some(&Linktype::ETHERNET) => {}
        Some(other) => {
            return ParsedBlock::Wrong(format!(
                "frames of link type {other}, not Ethernet\n  next step: capture at one Ethernet \
                 device"
            ));
        }
        None => return ParsedBlock::Wrong(format!("a frame of interface {interface}, unheard of")),
    }
    let next = match () {
        () if captured.len() != length as usize => Next::Truncated,
        () if frame.receive(number, captured).is_err() => Next::TooLong,
        () => Next::Frame,
    };
    ParsedBlock::Next(next, bytes)
}

/// Describes an error without the bytes that the parser's message includes.
fn words<I>(error: &PcapError<I>) -> String {
    match error {
        PcapError::Eof => "the file is empty".into(),
        PcapError::BufferTooSmall => "a record that is too long".into(),
        PcapError::UnexpectedEof | PcapError::Incomplete(_) => {
            "the file is cut within this record; the records before it were read\n  next step: \
             capture again, or remove the rest with `editcap IN OUT`"
                .into()
        }
        PcapError::ReadError => "reading failed".into(),
        PcapError::HeaderNotRecognized => "neither pcap nor pcapng".into(),
        PcapError::NomError(_, kind) | PcapError::OwnedNomError(_, kind) => {
            format!("a record that can't be understood ({})", kind.description())
        }
    }
}
