//! Resulting frames and their comparison, field by field.

use crate::packets::{at, sum6};
use crate::setup::{FAR, NEAR};
use fwdlab_packet::checksum;
use std::fmt;

/// The side at which a frame came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    Near,
    Far,
}

impl Side {
    /// The opposite side.
    pub(crate) fn other(self) -> Side {
        match self {
            Side::Near => Side::Far,
            Side::Far => Side::Near,
        }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Side::Near => "near",
            Side::Far => "far",
        })
    }
}

/// A frame that came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) side: Side,
    pub(crate) bytes: Vec<u8>,
}

/// A frame's fields by name, in the order of the bytes.
type Fields = Vec<(&'static str, Vec<u8>)>;

impl Seen {
    /// Side and kind in a few words.
    pub(crate) fn kind(&self) -> String {
        let Seen { side, bytes } = self;
        let is_own = self.is_own();
        match bytes[12..14] {
            [8, 6] => format!("{side} arp {}", bytes[21]),
            [8, 0] if is_own && bytes[at::PROTOCOL] == 1 => {
                let message = at::IP + usize::from(bytes[at::IP] & 15) * 4;
                format!("{side} icmp {}/{}", bytes[message], bytes[message + 1])
            }
            [8, 0] if is_own => format!("{side} own {}", bytes[at::PROTOCOL]),
            [8, 0] => match u16::from_be_bytes([bytes[at::FLAGS], bytes[at::FLAGS + 1]]) & 0x3fff {
                0 => format!("{side} inet"),
                flags => {
                    let more = if flags & 0x2000 != 0 { "+" } else { "" };
                    format!("{side} inet at {}{more}", (flags & 0x1fff) * 8)
                }
            },
            [0x86, 0xdd] if is_own && bytes[at::NEXT6] == 58 => {
                format!("{side} icmp6 {}/{}", bytes[at::AFTER6], bytes[at::AFTER6 + 1])
            }
            [0x86, 0xdd] if is_own => format!("{side} own6 {}", bytes[at::NEXT6]),
            [0x86, 0xdd] => format!("{side} inet6"),
            [high, low] => format!("{side} type {high:02x}{low:02x}"),
            _ => unreachable!("two bytes"),
        }
    }

    /// True for the forwarder's own packets, which contain its address.
    fn is_own(&self) -> bool {
        match self.bytes[12..14] {
            [8, 0] => matches!(self.bytes[at::SOURCE..at::DESTINATION], [198, 18 | 19, 0, 1]),
            _ => self.bytes.get(at::SOURCE6..at::DESTINATION6).is_some_and(|source| {
                matches!(
                    source,
                    [0x20, 1, 0, 2, 0, 0, 0 | 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1]
                        | [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 | 2]
                )
            }),
        }
    }

    /// All fields except unpredictable ones, which are checked separately: see the table in
    /// `main.rs`.
    pub(crate) fn fields(&self) -> Fields {
        let bytes = &self.bytes;
        let mac = match self.side {
            Side::Near => NEAR,
            Side::Far => FAR,
        };
        assert_eq!(bytes[6..12], mac, "sent from another interface");
        let mut fields: Fields = vec![
            ("side", vec![self.side as u8]),
            ("destination mac", bytes[..6].to_vec()),
            ("ethertype", bytes[12..14].to_vec()),
        ];
        match bytes[12..14] {
            [8, 0] => self.fields4(&mut fields),
            [0x86, 0xdd] => self.fields6(&mut fields),
            // 28 bytes, and padding.
            [8, 6] => fields.push(("arp", bytes[14..42].to_vec())),
            _ => fields.push(("rest", bytes[14..].to_vec())),
        }
        fields
    }

    fn fields4(&self, fields: &mut Fields) {
        let header = at::IP + usize::from(self.bytes[at::IP] & 15) * 4;
        let total = usize::from(u16::from_be_bytes([self.bytes[16], self.bytes[17]]));
        assert!(at::IP + total <= self.bytes.len(), "a packet beyond its frame");
        self.assert_padding(at::IP + total);
        let bytes = &self.bytes[..at::IP + total];
        let sum = checksum::finish(checksum::add(0, &bytes[at::IP..header]));
        assert_eq!(sum, [0, 0], "checksum of the header");
        let of = |from: usize, to: usize| bytes[from..to].to_vec();
        fields.push(("version and header length", of(at::IP, at::TOS)));
        fields.push(("dscp", vec![bytes[at::TOS] >> 2]));
        fields.push(("ecn", vec![bytes[at::TOS] & 3]));
        fields.push(("total length", of(at::LENGTH, at::ID)));
        let own_icmp = self.is_own() && bytes[at::PROTOCOL] == 1;
        if !own_icmp {
            fields.push(("identification", of(at::ID, at::FLAGS)));
            fields.push(("header checksum", of(at::CHECKSUM, at::SOURCE)));
        }
        // Errors may be fragmented or not; echoes are not errors.
        let is_error = own_icmp && bytes.get(header).is_some_and(|&kind| kind != 0);
        let flags = bytes[at::FLAGS] >> 5;
        fields.push(("flags", vec![if is_error { flags & !2 } else { flags }]));
        fields.push(("offset", vec![bytes[at::FLAGS] & 0x1f, bytes[at::FLAGS + 1]]));
        fields.push(("ttl", of(at::TTL, at::PROTOCOL)));
        fields.push(("protocol", of(at::PROTOCOL, at::CHECKSUM)));
        fields.push(("source", of(at::SOURCE, at::DESTINATION)));
        fields.push(("destination", of(at::DESTINATION, at::AFTER)));
        fields.push(("options", of(at::AFTER, header)));
        if own_icmp {
            let sum = checksum::finish(checksum::add(0, &bytes[header..]));
            assert_eq!(sum, [0, 0], "checksum of the message");
            fields.push(("type and code", of(header, header + 2)));
            fields.push(("second word", of(header + 4, header + 8)));
            fields.push(("quoted", bytes[header + 8..].to_vec()));
        } else {
            fields.push(("payload", bytes[header..].to_vec()));
        }
    }

    fn fields6(&self, fields: &mut Fields) {
        let payload = usize::from(u16::from_be_bytes([self.bytes[18], self.bytes[19]]));
        let end = at::AFTER6 + payload;
        assert!(end <= self.bytes.len(), "a packet beyond its frame");
        self.assert_padding(end);
        let bytes = &self.bytes[..end];
        let of = |from: usize, to: usize| bytes[from..to].to_vec();
        fields.push(("version", vec![bytes[at::IP] >> 4]));
        let class = bytes[at::IP] << 4 | bytes[at::IP + 1] >> 4;
        fields.push(("dscp", vec![class >> 2]));
        fields.push(("ecn", vec![class & 3]));
        fields.push(("flow label", vec![bytes[at::TOS] & 15, bytes[16], bytes[17]]));
        fields.push(("payload length", of(at::LENGTH6, at::NEXT6)));
        fields.push(("next header", of(at::NEXT6, at::HOPS6)));
        fields.push(("hop limit", of(at::HOPS6, at::SOURCE6)));
        fields.push(("source", of(at::SOURCE6, at::DESTINATION6)));
        fields.push(("destination", of(at::DESTINATION6, at::AFTER6)));
        if self.is_own() && bytes[at::NEXT6] == 58 {
            assert_eq!(checksum::finish(sum6(bytes, 58)), [0, 0], "checksum of the message");
            fields.push(("type and code", of(at::AFTER6, at::AFTER6 + 2)));
            fields.push(("second word", of(at::AFTER6 + 4, at::AFTER6 + 8)));
            fields.push(("quoted", bytes[at::AFTER6 + 8..].to_vec()));
        } else {
            fields.push(("payload", bytes[at::AFTER6..].to_vec()));
        }
    }

    /// Asserts that the packet is followed only by padding up to 60 bytes.
    fn assert_padding(&self, end: usize) {
        assert!(self.bytes.len() <= end.max(60), "{} bytes behind the packet", self.bytes.len());
    }
}

/// Sorts frames, so that their order does not depend on the forwarder.
pub(crate) fn in_order(mut frames: Vec<Seen>) -> Vec<Seen> {
    frames.sort_by_cached_key(|seen| (seen.kind(), seen.fields()));
    frames
}

/// Names of the fields in which two frames differ, with both values.
pub(crate) fn differences(kernel: &Seen, router: &Seen) -> Vec<(&'static str, String)> {
    let (kernel, router) = (kernel.fields(), router.fields());
    let names = |fields: &Fields| fields.iter().map(|(name, _)| *name).collect::<Vec<_>>();
    assert_eq!(names(&kernel), names(&router), "frames of the same kind have the same fields");
    let pairs = kernel.into_iter().zip(router).filter(|(kernel, router)| kernel != router);
    pairs
        .map(|((name, kernel), (_, router))| {
            (name, format!("kernel {}, router {}", hex(&kernel), hex(&router)))
        })
        .collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
