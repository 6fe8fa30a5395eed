//! Neighbours in the form the fast path uses, and kinds of messages that announce a MAC.

/// Rewriting data of a neighbour: 16 bytes, so four per cache line.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Link {
    /// Destination and source MAC, in the order of the frame.
    pub(in super::super) macs: [u8; 12],
    /// Largest IP packet, in bytes; 0 if the neighbour is unknown or the next hop is not one.
    pub(in super::super) mtu: u16,
    /// Port of the neighbour, even if nothing else is known.
    pub(in super::super) port: u8,
}

impl Link {
    pub(in super::super) const UNKNOWN: Link = Link { macs: [0; 12], mtu: 0, port: u8::MAX };

    /// The link with an MTU of at most `mtu` bytes.
    pub(in super::super) fn limited_to(self, mtu: u16) -> Link {
        Link { mtu: self.mtu.min(mtu), ..self }
    }
}

const _: () = assert!(size_of::<Link>() == 16);

/// Effect of a message on the known MAC of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Manner {
    /// Sets and replaces it, even for a host not known before: a request for an own address, from
    /// the link.
    Begins,
    /// Sets and replaces it: an answer, or any other request for an own address.
    Replaces,
    /// Sets it, but does not replace it: an advertisement without Override (RFC 4861 section
    /// 7.2.5).
    Confirms,
    /// Replaces it, but does not set it: an unsolicited announcement (RFC 826, RFC 5227 section 3).
    Updates,
    /// Neither sets nor replaces it: an advertisement without a MAC, from the known one.
    Repeats,
}
