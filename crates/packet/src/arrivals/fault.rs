//! Faults of damaged packets.

use crate::named;

named! {
    /// Fault of a packet. A packet has one fault, the first of these that applies. Checksums come
    /// after the fields that they cover, because another fault makes them wrong as well.
    #[repr(u8)]
    pub enum Fault {
        /// The frame is shorter or longer than sent.
        Length = "length",
        /// The destination MAC is not the receiver's.
        DestinationMac = "destination-mac",
        /// The source MAC is not the device's egress interface.
        SourceMac = "source-mac",
        /// Type, IP version, header length, service, fragmentation, protocol or flow label differ
        /// from the sent ones.
        IpHeader = "ip-header",
        /// The IP length does not match the packet.
        IpLength = "ip-length",
        /// Time to live or hop limit was not decremented by one per router.
        Ttl = "ttl",
        /// The source address does not belong to the packet's flow.
        SourceAddress = "source-address",
        /// The destination address does not belong to the packet's flow.
        DestinationAddress = "destination-address",
        /// UDP's ports or length differ from the sent ones.
        UdpHeader = "udp-header",
        /// The stamp was changed: magic, run id, sender, phase or flow.
        Stamp = "stamp",
        /// No packet of this flow can have the sequence number.
        Sequence = "sequence",
        /// The sending time is impossible.
        Time = "time",
        /// Bytes after the stamp were changed.
        Payload = "payload",
        /// The checksum of the IPv4 header is wrong, without another fault.
        IpChecksum = "ip-checksum",
        /// UDP's checksum is wrong or missing, without another fault.
        UdpChecksum = "udp-checksum",
        /// The device translated the source port differently from the flow's previous packet,
        /// without another fault.
        Mapping = "mapping",
    }
}

/// Number of faults.
pub const FAULTS: usize = Fault::ALL.len();
