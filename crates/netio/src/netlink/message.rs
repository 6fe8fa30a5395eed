//! Netlink messages and attributes as bytes.

/// A message about a removed route (linux/rtnetlink.h).
pub(super) const RTM_DELROUTE: u16 = 25;
/// Flags of a message about a new object (linux/netlink.h): it replaces one, or follows others.
pub(super) const NLM_F_REPLACE: u16 = 0x100;
pub(super) const NLM_F_APPEND: u16 = 0x800;
/// Bytes of a message's header (`struct nlmsghdr`).
const HEADER: usize = 16;
/// Bytes of an attribute's header (`struct rtattr`).
const ATTRIBUTE: usize = 4;
/// Flags in an attribute's kind: nested attributes, or numbers in network byte order.
const KIND_FLAGS: u16 = 0xc000;

/// Bytes that are not a valid message or attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("netlink: what begins at byte {at} ends beyond its message")]
pub struct Malformed {
    /// Offset of the faulty message or attribute.
    pub at: usize,
}

/// A message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Type (`RTM_...`).
    pub kind: u16,
    /// `NLM_F_...`.
    pub flags: u16,
    /// Number of the request that the message answers; 0 if unsolicited.
    pub sequence: u32,
    /// Bytes after the header.
    pub payload: &'a [u8],
}

/// Returns the messages of a datagram; ends after the first malformed one.
pub fn messages(bytes: &[u8]) -> impl Iterator<Item = Result<Message<'_>, Malformed>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let begin = at;
        at = bytes.len();
        let Some(length) = word(rest, 0).filter(|_| rest.len() >= HEADER) else {
            return Some(Err(Malformed { at: begin }));
        };
        let length = length as usize;
        let (true, Some(payload)) = (length >= HEADER, rest.get(HEADER..length)) else {
            return Some(Err(Malformed { at: begin }));
        };
        at = begin + aligned(length);
        Some(Ok(Message {
            kind: half(rest, 4)?,
            flags: half(rest, 6)?,
            sequence: word(rest, 8)?,
            payload,
        }))
    })
}

/// Returns kind and value of each attribute; ends after the first malformed one.
pub fn attributes(bytes: &[u8]) -> impl Iterator<Item = Result<(u16, &[u8]), Malformed>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let begin = at;
        at = bytes.len();
        let length = half(rest, 0).map(usize::from).filter(|&length| length >= ATTRIBUTE);
        let value = length.and_then(|length| rest.get(ATTRIBUTE..length));
        let (Some(length), Some(value), Some(kind)) = (length, value, half(rest, 2)) else {
            return Some(Err(Malformed { at: begin }));
        };
        at = begin + aligned(length);
        Some(Ok((kind & !KIND_FLAGS, value)))
    })
}

/// Rounds up to a multiple of four bytes, where the next item begins.
fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// Returns the 32-bit number at `at`, in machine byte order.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|&bytes| u32::from_ne_bytes(bytes))
}

/// Returns the 16-bit number at `at`, in machine byte order.
pub(super) fn half(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|&bytes| u16::from_ne_bytes(bytes))
}

/// A message under construction.
#[derive(Debug)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Writes the header; `finish` fills in the length.
    pub(super) fn new(kind: u16, flags: u16, sequence: u32) -> Writer {
        let mut writer = Writer(vec![0; 4]);
        writer.put(&kind.to_ne_bytes());
        writer.put(&flags.to_ne_bytes());
        writer.put(&sequence.to_ne_bytes());
        // Port id: the kernel knows the sender.
        writer.put(&[0; 4]);
        writer
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// Adds an attribute of at most 65,531 bytes.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nested(kind, |inner| inner.put(value));
    }

    /// Adds an attribute that contains the output of `write`.
    pub(super) fn nested(&mut self, kind: u16, write: impl FnOnce(&mut Writer)) {
        let begin = self.0.len();
        self.put(&[0; 2]);
        self.put(&kind.to_ne_bytes());
        write(self);
        let length = (self.0.len() - begin) as u16;
        self.0[begin..begin + 2].copy_from_slice(&length.to_ne_bytes());
        self.0.resize(aligned(self.0.len()), 0);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let length = self.0.len() as u32;
        self.0[..4].copy_from_slice(&length.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_message_reads_back() {
        let mut writer = Writer::new(24, 0x301, 7);
        writer.put(&[1; 12]);
        writer.attribute(1, &[9, 8, 7]);
        writer.nested(26, |inner| inner.attribute(10, &[5]));
        let one = writer.finish();
        let bytes = [&one[..], &one].concat();
        let read: Vec<_> = messages(&bytes).map(|message| message.expect("one")).collect();
        assert_eq!(read.len(), 2);
        let Message { kind, flags, sequence, payload } = read[1];
        assert_eq!((kind, flags, sequence), (24, 0x301, 7));
        let found: Vec<_> = attributes(&payload[12..]).collect();
        assert_eq!(found, [Ok((1, &[9, 8, 7][..])), Ok((26, &[5, 0, 10, 0, 5, 0, 0, 0][..]))]);
    }

    #[test]
    fn truncated_message_is_malformed() {
        let whole = Writer::new(24, 0, 0).finish();
        for length in 1..whole.len() {
            let read: Vec<_> = messages(&whole[..length]).collect();
            assert_eq!(read, [Err(Malformed { at: 0 })], "{length}");
        }
        assert_eq!(messages(&[]).count(), 0);
        let mut short = whole.clone();
        short[0] = 15;
        assert!(messages(&short).next().expect("one").is_err());
        let cases: [&[u8]; 5] = [&[4], &[3, 0, 1, 0], &[0; 4], &[9, 0, 1, 0], &[255, 255, 1, 0, 0]];
        for bytes in cases {
            let read: Vec<_> = attributes(bytes).collect();
            assert_eq!(read, [Err(Malformed { at: 0 })], "{bytes:?}");
        }
    }
}
