//! A neighbour as the fast path needs it, and how its MAC is told.

/// A neighbour as packets are rewritten: 16 bytes, so four to a cache line.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Link {
    /// Destination and source MAC, as they lie in the frame.
    pub(in super::super) macs: [u8; 12],
    /// Largest IP packet, in bytes; 0 when the neighbour is unknown, or it is none.
    pub(in super::super) mtu: u16,
    /// Where it is; also if only that is known.
    pub(in super::super) port: u8,
}

impl Link {
    pub(in super::super) const UNKNOWN: Link = Link { macs: [0; 12], mtu: 0, port: u8::MAX };
}

const _: () = assert!(size_of::<Link>() == 16);

/// What a message that tells a MAC may do with what is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Manner {
    /// Set it, and replace it, also of somebody of whom nothing is known: a question about an
    /// own address, from the link.
    Begins,
    /// Set it, and replace it: an answer, or any other question about an own address.
    Replaces,
    /// Set it, but not replace it: an advertisement without Override (RFC 4861 section
    /// 7.2.5).
    Confirms,
    /// Replace it, but not set it: what is told to all without a question (RFC 826, RFC 5227
    /// section 3).
    Updates,
}
