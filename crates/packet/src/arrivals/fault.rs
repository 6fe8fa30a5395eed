//! What can be wrong with a packet of a run.

/// What is wrong with a packet. A packet has one fault, the first of these that applies:
/// checksums come last, since whatever else is wrong makes them wrong as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Fault {
    /// The frame is shorter or longer than it was sent.
    Length = 0,
    /// It goes to another MAC than the receiver's.
    DestinationMac,
    /// It comes from another MAC than that of the device's egress interface.
    SourceMac,
    /// Type, IP version, header length, service, fragmentation, protocol or flow label
    /// are others than were sent.
    IpHeader,
    /// The IP length is not that of the packet.
    IpLength,
    /// Time to live or hop limit was not decreased by one for each router.
    Ttl,
    /// The source is not that of the packet's flow.
    SourceAddress,
    /// The destination is not that of the packet's flow.
    DestinationAddress,
    /// UDP's ports or length are others than were sent.
    UdpHeader,
    /// The stamp was changed: magic, run id, sender, phase or flow.
    Stamp,
    /// The sequence number is none that a packet of this flow can have.
    Sequence,
    /// The sending time can't be.
    Time,
    /// Bytes after the stamp were changed.
    Payload,
    /// The checksum of the IPv4 header is wrong, and nothing else found.
    IpChecksum,
    /// UDP's checksum is wrong or missing, and nothing else found.
    UdpChecksum,
}

/// Number of faults.
pub const FAULTS: usize = 15;

impl Fault {
    /// All of them, by number.
    pub const ALL: [Fault; FAULTS] = [
        Fault::Length,
        Fault::DestinationMac,
        Fault::SourceMac,
        Fault::IpHeader,
        Fault::IpLength,
        Fault::Ttl,
        Fault::SourceAddress,
        Fault::DestinationAddress,
        Fault::UdpHeader,
        Fault::Stamp,
        Fault::Sequence,
        Fault::Time,
        Fault::Payload,
        Fault::IpChecksum,
        Fault::UdpChecksum,
    ];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Length => "length",
            Fault::DestinationMac => "destination-mac",
            Fault::SourceMac => "source-mac",
            Fault::IpHeader => "ip-header",
            Fault::IpLength => "ip-length",
            Fault::Ttl => "ttl",
            Fault::SourceAddress => "source-address",
            Fault::DestinationAddress => "destination-address",
            Fault::UdpHeader => "udp-header",
            Fault::Stamp => "stamp",
            Fault::Sequence => "sequence",
            Fault::Time => "time",
            Fault::Payload => "payload",
            Fault::IpChecksum => "ip-checksum",
            Fault::UdpChecksum => "udp-checksum",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_places() {
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place);
        }
        let names: std::collections::HashSet<_> = Fault::ALL.map(Fault::name).into();
        assert_eq!(names.len(), FAULTS);
    }
}
