//! Faults of damaged packets.

use crate::named;

named! {
    /// What is wrong with a packet. A packet has one fault, the first of these that applies:
    /// checksums come last, since whatever else is wrong makes them wrong as well.
    #[repr(u8)]
    pub enum Fault {
        /// The frame is shorter or longer than it was sent.
        Length = "length",
        /// It goes to another MAC than the receiver's.
        DestinationMac = "destination-mac",
        /// It comes from another MAC than that of the device's egress interface.
        SourceMac = "source-mac",
        /// Type, IP version, header length, service, fragmentation, protocol or flow label
        /// are others than were sent.
        IpHeader = "ip-header",
        /// The IP length is not that of the packet.
        IpLength = "ip-length",
        /// Time to live or hop limit was not decreased by one for each router.
        Ttl = "ttl",
        /// The source is not that of the packet's flow.
        SourceAddress = "source-address",
        /// The destination is not that of the packet's flow.
        DestinationAddress = "destination-address",
        /// UDP's ports or length are others than were sent.
        UdpHeader = "udp-header",
        /// The stamp was changed: magic, run id, sender, phase or flow.
        Stamp = "stamp",
        /// The sequence number is none that a packet of this flow can have.
        Sequence = "sequence",
        /// The sending time can't be.
        Time = "time",
        /// Bytes after the stamp were changed.
        Payload = "payload",
        /// The checksum of the IPv4 header is wrong, and nothing else found.
        IpChecksum = "ip-checksum",
        /// UDP's checksum is wrong or missing, and nothing else found.
        UdpChecksum = "udp-checksum",
    }
}

/// Number of faults.
pub const FAULTS: usize = Fault::ALL.len();
