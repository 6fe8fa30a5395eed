//! The stamp: 18 bytes at the start of every packet's UDP payload.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 2 | magic |
//! | 2 | 4 | run id |
//! | 6 | 4 | tag: sender (4 bits), phase (4 bits), flow (24 bits) |
//! | 10 | 4 | sequence number of this sender, modulo 2^32 |
//! | 14 | 4 | sending time, nanoseconds of the monotonic clock modulo 2^32; 0 when off |
//!
//! All fields are big endian. 18 bytes is what the smallest IPv4 frame has room for (64 - FCS 4 -
//! Ethernet 14 - IPv4 20 - UDP 8). The smallest IPv6 frame with the same payload has 84 bytes.

/// First two bytes of a stamp.
pub const MAGIC: u16 = 0xf1ab;
/// Length of a stamp in bytes.
pub const BYTES: usize = 18;
/// Number of phases that a stamp can encode.
pub const PHASES: usize = 4;

/// Phase of the trial in which a packet was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Before the window.
    WarmUp = 0,
    /// In the measured window.
    Window = 1,
    /// After the window, until the sender is idle.
    After = 2,
}

impl Phase {
    /// Returns the phase of a number; larger numbers are [`Phase::After`].
    #[inline]
    pub fn of(number: u8) -> Phase {
        match number {
            0 => Phase::WarmUp,
            1 => Phase::Window,
            _ => Phase::After,
        }
    }
}

/// Decoded stamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    /// Identity of the run.
    pub run_id: u32,
    /// Number of the sending thread, 0 to 15.
    pub sender: u8,
    /// Phase, 0 to 3.
    pub phase: u8,
    /// Flow, 0 to 2^24 - 1: source index x destinations + destination index.
    pub flow: u32,
    /// Sequence number of the sender.
    pub sequence: u32,
    /// Sending time, nanoseconds modulo 2^32.
    pub time_ns: u32,
}

impl Stamp {
    /// Writes the stamp to the first 18 bytes of `payload`.
    ///
    /// # Panics
    /// If `payload` is shorter than [`BYTES`].
    pub fn emit(&self, payload: &mut [u8]) {
        let tag = u32::from(self.sender & 0xf) << 28
            | u32::from(self.phase & 0xf) << 24
            | (self.flow & 0x00ff_ffff);
        payload[0..2].copy_from_slice(&MAGIC.to_be_bytes());
        payload[2..6].copy_from_slice(&self.run_id.to_be_bytes());
        payload[6..10].copy_from_slice(&tag.to_be_bytes());
        payload[10..14].copy_from_slice(&self.sequence.to_be_bytes());
        payload[14..18].copy_from_slice(&self.time_ns.to_be_bytes());
    }

    /// Reads a stamp from a UDP payload; `None` if the magic is missing.
    pub fn parse(payload: &[u8]) -> Option<Stamp> {
        let field = |at: usize| -> Option<u32> {
            Some(u32::from_be_bytes(payload.get(at..at + 4)?.try_into().ok()?))
        };
        if payload.get(0..2)? != MAGIC.to_be_bytes() {
            return None;
        }
        let tag = field(6)?;
        Some(Stamp {
            run_id: field(2)?,
            sender: (tag >> 28) as u8,
            phase: (tag >> 24) as u8 & 0xf,
            flow: tag & 0x00ff_ffff,
            sequence: field(10)?,
            time_ns: field(14)?,
        })
    }

    /// Reads the stamp from an Ethernet frame of IPv4 without options or IPv6 without extension
    /// headers, as this benchmark sends them.
    pub fn parse_frame(frame: &[u8]) -> Option<Stamp> {
        match frame.get(12..14)? {
            [0x08, 0x00] if *frame.get(14)? == 0x45 && *frame.get(23)? == 17 => {
                Stamp::parse(frame.get(42..)?)
            }
            [0x86, 0xdd] if *frame.get(20)? == 17 => Stamp::parse(frame.get(62..)?),
            _ => None,
        }
    }

    /// Finds the stamp of a run behind any headers: tags, tunnels, labels.
    pub fn find(frame: &[u8], run_id: u32) -> Option<Stamp> {
        let mut start = [0; 6];
        start[..2].copy_from_slice(&MAGIC.to_be_bytes());
        start[2..].copy_from_slice(&run_id.to_be_bytes());
        let at = frame.windows(start.len()).position(|bytes| bytes == start)?;
        Stamp::parse(&frame[at..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn emit_follows_the_documented_layout() {
        let stamp = Stamp {
            run_id: 0x0102_0304,
            sender: 5,
            phase: 1,
            flow: 0x00ab_cdef,
            sequence: 0x1111_2222,
            time_ns: 0x3333_4444,
        };
        let mut payload = [0xa5; BYTES + 1];
        stamp.emit(&mut payload);
        assert_eq!(
            payload,
            [
                0xf1, 0xab, 1, 2, 3, 4, 0x51, 0xab, 0xcd, 0xef, 0x11, 0x11, 0x22, 0x22, 0x33, 0x33,
                0x44, 0x44, 0xa5
            ]
        );
    }

    proptest! {
        #[test]
        fn parse_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = Stamp::parse(&bytes);
            let _ = Stamp::parse_frame(&bytes);
        }

        #[test]
        fn emit_then_parse(run_id: u32, sender in 0u8..16, phase in 0u8..4,
                           flow in 0u32..1 << 24, sequence: u32, time_ns: u32) {
            let stamp = Stamp { run_id, sender, phase, flow, sequence, time_ns };
            let mut payload = [0xa5; BYTES];
            stamp.emit(&mut payload);
            prop_assert_eq!(Stamp::parse(&payload), Some(stamp));
        }

        #[test]
        fn find_skips_any_headers(run_id in 1u32.., sequence: u32, headers in 0usize..200) {
            let stamp = Stamp { run_id, sender: 1, phase: 2, flow: 3, sequence, time_ns: 4 };
            let mut frame = vec![0; headers + BYTES];
            stamp.emit(&mut frame[headers..]);
            prop_assert_eq!(Stamp::find(&frame, run_id), Some(stamp));
            prop_assert_eq!(Stamp::find(&frame, run_id.wrapping_add(1)), None);
            prop_assert_eq!(Stamp::find(&frame[..headers + BYTES - 1], run_id), None);
        }
    }
}
