//! Segments compared with packets that etherparse builds one by one.

use super::*;
use etherparse::{
    IpFragOffset, IpHeaders, IpNumber, Ipv4Extensions, Ipv4Header, Ipv4Options, Ipv6Extensions,
    Ipv6Header, Ipv6RawExtHeader, PacketBuilder, TcpHeader, VlanId,
};
use proptest::prelude::*;

/// A packet before it is built.
#[derive(Clone, Debug)]
struct Plan {
    tags: u8,
    is_inet: bool,
    /// Words of four bytes.
    ip_options: u8,
    id: u16,
    /// `None` for UDP.
    tcp: Option<(u8, u8)>,
    sequence: u32,
    clears_cwr: bool,
}

impl Plan {
    fn ip(&self, number: u32) -> IpHeaders {
        let protocol = if self.tcp.is_some() { IpNumber::TCP } else { IpNumber::UDP };
        if self.is_inet {
            let mut ip = Ipv4Header::new(0, 61, protocol, [10, 1, 0, 2], [10, 2, 0, 2]).expect("");
            ip.identification = self.id.wrapping_add(number as u16);
            (ip.dont_fragment, ip.fragment_offset) = (self.id & 1 == 0, IpFragOffset::ZERO);
            let options = vec![1; usize::from(self.ip_options) * 4];
            ip.options = Ipv4Options::try_from(&options[..]).expect("up to 40 bytes");
            return IpHeaders::Ipv4(ip, Ipv4Extensions::default());
        }
        let mut extensions = Ipv6Extensions::default();
        let raw = Ipv6RawExtHeader::new_raw(protocol, &[1, 4, 0, 0, 0, 0]).expect("six bytes");
        if self.ip_options > 3 {
            extensions.hop_by_hop_options = Some(raw.clone());
        }
        if self.ip_options > 6 {
            extensions.destination_options = Some(raw);
        }
        let ip = Ipv6Header {
            traffic_class: 3,
            source: [0x20; 16],
            destination: [0x31; 16],
            hop_limit: 61,
            ..Ipv6Header::default()
        };
        IpHeaders::Ipv6(ip, extensions)
    }

    /// Builds the packet that carries `payload` from `offset` on.
    fn build(&self, (number, is_last): (u32, bool), offset: usize, payload: &[u8]) -> Vec<u8> {
        let ethernet = PacketBuilder::ethernet2([2; 6], [4; 6]);
        let (ip, vlan) = (self.ip(number), VlanId::try_new(100).expect("a number"));
        let ip = match self.tags {
            0 => ethernet.ip(ip),
            1 => ethernet.single_vlan(vlan).ip(ip),
            _ => ethernet.double_vlan(vlan, VlanId::try_new(7).expect("a number")).ip(ip),
        };
        let mut bytes = Vec::new();
        let Some((flags, options)) = self.tcp else {
            ip.udp(5000, 53).write(&mut bytes, payload).expect("a vector");
            return bytes;
        };
        let sequence = self.sequence.wrapping_add(offset as u32);
        let mut tcp = TcpHeader::new(5000, 80, sequence, 512);
        (tcp.ack, tcp.acknowledgment_number, tcp.ece) = (true, 77, flags & 64 != 0);
        tcp.fin = flags & 1 != 0 && is_last;
        tcp.psh = flags & 8 != 0 && is_last;
        tcp.cwr = flags & 128 != 0 && (number == 0 || !self.clears_cwr);
        tcp.set_options_raw(&vec![1; usize::from(options) * 4]).expect("up to 40 bytes");
        ip.tcp_header(tcp).write(&mut bytes, payload).expect("a vector");
        bytes
    }

    fn header(&self, size: u16) -> Merged {
        let kind = match (&self.tcp, self.is_inet) {
            (Some(_), true) => MergedKind::Tcp4,
            (Some(_), false) => MergedKind::Tcp6,
            (None, _) => MergedKind::Udp,
        };
        Merged { kind, size, transport: None, clears_cwr: self.clears_cwr }
    }

    /// The merged packet: its first segment is also its last one.
    fn merged(&self, payload: &[u8]) -> Vec<u8> {
        self.build((0, true), 0, payload)
    }
}

fn plan() -> impl Strategy<Value = Plan> {
    let tcp = prop::option::weighted(0.7, (any::<u8>(), 0..=10u8));
    let any = (0..=2u8, any::<bool>(), 0..=10u8, any::<u16>(), tcp, any::<u32>(), any::<bool>());
    any.prop_map(|(tags, is_inet, ip_options, id, tcp, sequence, clears_cwr)| Plan {
        tags,
        is_inet,
        ip_options,
        id,
        tcp,
        sequence,
        clears_cwr,
    })
}

/// Returns all segments; the packet begins at `place` of the buffer.
fn cut(
    segmenter: &mut Segmenter,
    place: usize,
    merged: &[u8],
    header: Merged,
) -> Option<Vec<Vec<u8>>> {
    let range = place..place + merged.len();
    segmenter.buffer_mut()[range.clone()].copy_from_slice(merged);
    let all = |segmenter: &mut Segmenter| {
        std::iter::from_fn(|| segmenter.next_segment().map(<[u8]>::to_vec)).collect()
    };
    segmenter.begin(range, header).then(|| all(segmenter))
}

proptest! {
    #[test]
    fn segments_equal_packets_built_one_by_one(
        plan in plan(),
        length in 0..6000usize,
        size in 1..2000u16,
        place in 0..=4usize,
        seed: u8,
    ) {
        let payload: Vec<u8> = (0..length).map(|at| (at * 31 / 7) as u8 ^ seed).collect();
        let mut merged = plan.merged(&payload);
        let headers = merged.len() - length;
        // Stacks leave any checksum of the transport layer there.
        let transport = headers - plan.tcp.map_or(8, |(_, options)| 20 + usize::from(options) * 4);
        let field = transport + if plan.tcp.is_some() { 16 } else { 6 };
        merged[field] ^= seed;
        let mut segmenter = Segmenter::new();
        let header = Merged {
            transport: (seed & 1 == 0).then_some(transport),
            ..plan.header(size)
        };
        let segments = cut(&mut segmenter, place, &merged, header).expect("supported");
        prop_assert!(segmenter.is_empty() && segmenter.next_segment().is_none());
        let count = length.div_ceil(size.into()).max(1);
        prop_assert_eq!(segments.len(), count);
        let mut chunks = payload.chunks(size.into());
        for (number, segment) in segments.iter().enumerate() {
            let chunk = chunks.next().unwrap_or_default();
            let order = (number as u32, number + 1 == count);
            let expected = plan.build(order, number * usize::from(size), chunk);
            prop_assert_eq!(segment, &expected);
            prop_assert!(segment.len() <= headers + usize::from(size));
        }
        let joined: Vec<u8> = segments.iter().flat_map(|s| s[headers..].to_vec()).collect();
        prop_assert_eq!(joined, payload);
    }

    #[test]
    fn damaged_packets_never_panic(
        plan in plan(),
        length in 0..300usize,
        size: u16,
        damage in prop::collection::vec((0..400usize, any::<u8>()), 0..6),
        cut_at in 0..400usize,
    ) {
        let mut merged = plan.merged(&vec![7; length]);
        for (at, value) in damage {
            let at = at % merged.len();
            merged[at] = value;
        }
        merged.truncate(cut_at);
        let bytes = merged.len();
        let header = plan.header(size);
        for segment in cut(&mut Segmenter::new(), 0, &merged, header).unwrap_or_default() {
            prop_assert!(segment.len() <= bytes);
        }
    }
}

#[test]
fn longest_packet_fits_and_buffer_is_reused() {
    let plan = Plan {
        tags: 2,
        is_inet: true,
        ip_options: 0,
        id: 9,
        tcp: Some((0x89, 3)),
        sequence: 1,
        clears_cwr: true,
    };
    let mut segmenter = Segmenter::default();
    for length in [65_535 - 20 - 32, 100usize] {
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        let header = plan.header(1448);
        let segments = cut(&mut segmenter, 0, &plan.merged(&payload), header).expect("supported");
        assert_eq!(segments.len(), length.div_ceil(1448));
        let joined: Vec<u8> = segments.iter().flat_map(|s| s[74..].to_vec()).collect();
        assert_eq!(joined, payload);
    }
}

#[test]
fn packets_that_cannot_be_cut_are_refused() {
    let plan = Plan {
        tags: 0,
        is_inet: true,
        ip_options: 0,
        id: 9,
        tcp: Some((0, 0)),
        sequence: 1,
        clears_cwr: true,
    };
    let whole = plan.merged(&[5; 100]);
    let refused = |change: &dyn Fn(&mut Vec<u8>), size: u16| {
        let mut bytes = whole.clone();
        change(&mut bytes);
        cut(&mut Segmenter::new(), 0, &bytes, plan.header(size)).is_none()
    };
    assert!(!refused(&|_| {}, 10));
    assert!(refused(&|_| {}, 0));
    // More fragments, an encapsulated packet, a length beyond the end, another version.
    assert!(refused(&|bytes| bytes[20] |= 0x20, 10));
    assert!(refused(&|bytes| bytes[23] = 4, 10));
    assert!(refused(&|bytes| bytes.truncate(150), 10));
    assert!(refused(&|bytes| bytes[14] = 0x65, 10));
    assert!(refused(&|bytes| bytes[46] = 0x40, 10));
}

/// A tunnel's frame has the offload header of the inner packet.
#[test]
fn packets_that_differ_from_their_offload_header_are_refused() {
    for is_inet in [true, false] {
        for tcp in [Some((0, 0)), None] {
            let plan =
                Plan { tags: 0, is_inet, ip_options: 0, id: 9, tcp, sequence: 1, clears_cwr: true };
            let (merged, own) = (plan.merged(&[5; 100]), plan.header(10));
            let is_cut = |header| cut(&mut Segmenter::new(), 0, &merged, header).is_some();
            for kind in [MergedKind::Tcp4, MergedKind::Tcp6, MergedKind::Udp] {
                assert_eq!(is_cut(Merged { kind, ..own }), kind == own.kind, "{kind:?} {own:?}");
            }
            let transport = if is_inet { 34 } else { 54 };
            // Behind it: Ethernet, IPv4 and UDP or VXLAN headers.
            for at in [transport, 0, transport - 1, transport + 50] {
                let header = Merged { transport: Some(at), ..own };
                assert_eq!(is_cut(header), at == transport, "{at} {own:?}");
            }
        }
    }
}
