//! Routes from a dump of a BGP table in MRT format (RFC 6396), in the uncompressed form of the files
//! in the archives of RouteViews and RIPE RIS: TABLE_DUMP_V2, also with several paths from one peer
//! (ADD-PATH, RFC 8050), and the older TABLE_DUMP.
//!
//! Of several routes to a prefix the first one is used: a dump does not record which one its router
//! used. Not supported: multicast, and RIB_GENERIC, whose ADD-PATH form writers encode differently.
//! Such records are counted by type, as are prefixes without a next hop; [`Dump::check`] refuses a
//! file that consists mainly of them.

mod kind;

use super::Routes;
use crate::fib::{Address, NextHop, Prefix, V4, V6};
pub use kind::Kind;
use kind::{TABLE_DUMP, TABLE_DUMP_V2};
use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Time, type, subtype and length.
const HEADER_BYTES: usize = 12;
/// Subtypes of TABLE_DUMP: address families.
const AFI_IPV4: u16 = 1;
const AFI_IPV6: u16 = 2;
/// Subtypes of TABLE_DUMP_V2.
const PEER_INDEX_TABLE: u16 = 1;
const RIB_IPV4_UNICAST: u16 = 2;
const RIB_IPV6_UNICAST: u16 = 4;
const RIB_IPV4_UNICAST_ADDPATH: u16 = 8;
const RIB_IPV6_UNICAST_ADDPATH: u16 = 10;

/// Attributes of a route (RFC 4271, RFC 4760).
const EXTENDED_LENGTH: u8 = 0x10;
const NEXT_HOP: u8 = 3;
const MP_REACH_NLRI: u8 = 14;

/// Contents of a dump. Every record of the file is counted once: as a route, an alternative, a table
/// of peers, or by the reason for leaving it out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// One route for each prefix.
    pub routes: Routes,
    /// Peers of the dumped router.
    pub peers: usize,
    /// Tables of peers.
    pub peer_tables: u64,
    /// Further routes to a prefix in TABLE_DUMP, which has a record for each peer.
    pub alternatives: u64,
    /// Prefixes whose first entry has no next hop; they are omitted.
    pub without_next_hop: u64,
    /// Prefixes that are repeated; the first occurrence is used.
    pub repeated: u64,
    /// Records of other kinds, by type and subtype.
    pub skipped: BTreeMap<Kind, u64>,
    /// Offset of the first record that was left out.
    first_left_out: Option<usize>,
}

impl Dump {
    /// Number of records in the file.
    pub fn records(&self) -> u64 {
        self.used() + self.peer_tables + self.left_out()
    }

    /// Number of records that provided a route, or one more for a known prefix.
    fn used(&self) -> u64 {
        (self.routes.inet.len() + self.routes.inet6.len()) as u64 + self.alternatives
    }

    /// Number of records that were left out.
    pub fn left_out(&self) -> u64 {
        self.unusable() + self.repeated
    }

    fn unusable(&self) -> u64 {
        self.without_next_hop + self.skipped.values().sum::<u64>()
    }

    /// Counts of the records that were left out, by kind; `None` without any.
    pub fn remark(&self) -> Option<String> {
        let skipped = self.skipped.iter().map(|(&kind, n)| format!("{n} x {}", kind::name(kind)));
        let mut kinds: Vec<String> = skipped.collect();
        for (count, what) in [
            (self.without_next_hop, "without a next hop"),
            (self.repeated, "with a repeated prefix"),
        ] {
            if count > 0 {
                kinds.push(format!("{count} {what}"));
            }
        }
        let (left_out, all) = (self.left_out(), self.records());
        (left_out > 0)
            .then(|| format!("{left_out} of {all} records left out: {}", kinds.join(", ")))
    }

    /// Refuses a dump without a route, or with more unusable records than usable ones.
    ///
    /// # Errors
    /// The counts of both, at the first record that was left out.
    pub fn check(&self) -> Result<(), MrtError> {
        let (used, unusable) = (self.used(), self.unusable());
        if used > 0 && unusable <= used {
            return Ok(());
        }
        let what = match self.remark() {
            Some(remark) if self.skipped.keys().any(|&kind| kind::is_update(kind)) => format!(
                "{remark}; BGP4MP messages report changes and are no table\n  next step: give a \
                 dump of the table, e.g. `rib.*` of RouteViews or `bview.*` of RIPE RIS"
            ),
            Some(remark) => format!(
                "{remark}\n  next step: give a dump with unicast routes and their next hops \
                 (TABLE_DUMP or TABLE_DUMP_V2)"
            ),
            None => {
                "the dump contains no route\n  next step: give a dump with unicast routes".into()
            }
        };
        Err(MrtError { offset: self.first_left_out.unwrap_or(0), what })
    }
}

/// Reason why a file is not a valid dump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {what}")]
pub struct MrtError {
    /// Offset in the file, from 0.
    pub offset: usize,
    /// Description of the error, and a possible remedy.
    pub what: String,
}

/// Reads a dump.
///
/// # Errors
/// If the file is compressed, truncated, or contradicts itself.
pub fn read(file: &[u8]) -> Result<Dump, MrtError> {
    if let Some(program) = packed_by(file) {
        let what = format!("the file is packed; unpack it with `{program}` first");
        return Err(MrtError { offset: 0, what });
    }
    let mut reader = Reader::default();
    let mut rest = Bytes { file, at: 0, end: file.len() };
    while rest.at < rest.end {
        reader.record(&mut rest)?;
    }
    Ok(reader.dump)
}

/// Returns the program that unpacks a file with this beginning; `None` if it is not packed.
pub fn packed_by(file: &[u8]) -> Option<&'static str> {
    match file {
        [0x1f, 0x8b, ..] => Some("gunzip"),
        [0x1f, 0x9d, ..] => Some("uncompress"),
        [b'B', b'Z', b'h', ..] => Some("bunzip2"),
        [0xfd, b'7', b'z', b'X', b'Z', ..] => Some("unxz"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("unzstd"),
        [0x04, 0x22, 0x4d, 0x18, ..] => Some("unlz4"),
        [b'P', b'K', 3, 4, ..] => Some("unzip"),
        _ => None,
    }
}

#[derive(Default)]
struct Reader {
    dump: Dump,
    inet: HashSet<Prefix<V4>>,
    inet6: HashSet<Prefix<V6>>,
}

impl Reader {
    fn record(&mut self, rest: &mut Bytes) -> Result<(), MrtError> {
        let (begin, before) = (rest.at, self.dump.left_out());
        let mut header = rest.part(HEADER_BYTES, "the header of a record")?;
        let _seconds = header.u32()?;
        let (kind, subtype) = (header.u16()?, header.u16()?);
        let length = header.u32()? as usize;
        let mut body = rest.part(length, "a record")?;
        match (kind, subtype) {
            (TABLE_DUMP_V2, PEER_INDEX_TABLE) => {
                self.dump.peers = peers(&mut body)?;
                self.dump.peer_tables += 1;
            }
            (TABLE_DUMP_V2, RIB_IPV4_UNICAST | RIB_IPV4_UNICAST_ADDPATH) => {
                let route = self.route(&mut body, subtype == RIB_IPV4_UNICAST_ADDPATH)?;
                if let Some(route) = route
                    && first(&mut self.inet, route.0, &mut self.dump.repeated)
                {
                    self.dump.routes.inet.push(route);
                }
            }
            (TABLE_DUMP_V2, RIB_IPV6_UNICAST | RIB_IPV6_UNICAST_ADDPATH) => {
                let route = self.route(&mut body, subtype == RIB_IPV6_UNICAST_ADDPATH)?;
                if let Some(route) = route
                    && first(&mut self.inet6, route.0, &mut self.dump.repeated)
                {
                    self.dump.routes.inet6.push(route);
                }
            }
            (TABLE_DUMP, AFI_IPV4) => {
                if let Some(route) = self.route_of_peer(&mut body)?
                    && first(&mut self.inet, route.0, &mut self.dump.alternatives)
                {
                    self.dump.routes.inet.push(route);
                }
            }
            (TABLE_DUMP, AFI_IPV6) => {
                if let Some(route) = self.route_of_peer(&mut body)?
                    && first(&mut self.inet6, route.0, &mut self.dump.alternatives)
                {
                    self.dump.routes.inet6.push(route);
                }
            }
            other => *self.dump.skipped.entry(other).or_default() += 1,
        }
        if self.dump.left_out() > before {
            self.dump.first_left_out.get_or_insert(begin);
        }
        Ok(())
    }

    /// Reads a prefix with its first entry (RFC 6396, 4.3.2), which with `has_path_id` contains a
    /// path identifier (RFC 8050, 4.1). The other entries are ignored.
    fn route<A: Address>(
        &mut self,
        body: &mut Bytes,
        has_path_id: bool,
    ) -> Result<Option<(Prefix<A>, NextHop)>, MrtError> {
        let _sequence = body.u32()?;
        let prefix = prefix(body)?;
        if body.u16()? == 0 {
            self.dump.without_next_hop += 1;
            return Ok(None);
        }
        let (_peer, _originated) = (body.u16()?, body.u32()?);
        if has_path_id {
            let _path = body.u32()?;
        }
        self.with_next_hop(body, prefix)
    }

    /// Reads the route of one peer (RFC 6396, 4.2).
    fn route_of_peer<A: Address>(
        &mut self,
        body: &mut Bytes,
    ) -> Result<Option<(Prefix<A>, NextHop)>, MrtError> {
        let (_view, _sequence) = (body.u16()?, body.u16()?);
        let width = usize::from(A::BITS / 8);
        let bytes = body.bytes(width, "a prefix")?;
        let place = body.at;
        let prefix = containing(bytes, body.u8()?, place)?;
        let (_status, _originated) = (body.u8()?, body.u32()?);
        body.part(width, "the address of a peer")?;
        let _system = body.u16()?;
        self.with_next_hop(body, prefix)
    }

    /// Reads attributes and combines the next hop in them with `prefix`.
    fn with_next_hop<A: Address>(
        &mut self,
        body: &mut Bytes,
        prefix: Prefix<A>,
    ) -> Result<Option<(Prefix<A>, NextHop)>, MrtError> {
        let length = body.u16()?.into();
        let mut attributes = body.part(length, "the attributes of a route")?;
        let place = attributes.at;
        let Some(address) = next_hop(&mut attributes)? else {
            self.dump.without_next_hop += 1;
            return Ok(None);
        };
        let number = self.dump.routes.next_hops.number(address);
        let what = || MrtError { offset: place, what: "too many next hops".to_owned() };
        Ok(Some((prefix, number.ok_or_else(what)?)))
    }
}

/// True for a prefix that is new.
fn first<A: Address>(known: &mut HashSet<Prefix<A>>, prefix: Prefix<A>, again: &mut u64) -> bool {
    let new = known.insert(prefix);
    *again += u64::from(!new);
    new
}

/// Reads the number of peers (RFC 6396, 4.3.1).
fn peers(body: &mut Bytes) -> Result<usize, MrtError> {
    let _collector = body.u32()?;
    let name = body.u16()?.into();
    body.part(name, "the name of a view")?;
    let count = body.u16()?.into();
    for _ in 0..count {
        let kind = body.u8()?;
        let address = if kind & 1 == 0 { 4 } else { 16 };
        let system = if kind & 2 == 0 { 2 } else { 4 };
        body.part(4 + address + system, "a peer")?;
    }
    Ok(count)
}

/// Reads a length and the bytes it needs.
fn prefix<A: Address>(body: &mut Bytes) -> Result<Prefix<A>, MrtError> {
    let place = body.at;
    let length = body.u8()?;
    // `containing` refuses a length beyond the address.
    let bytes = usize::from(length.min(A::BITS)).div_ceil(8);
    let bytes = body.bytes(bytes, "a prefix")?;
    containing(bytes, length, place)
}

/// The prefix of this length, which is in the file at `place`. Bits after the prefix "may be
/// anything" (RFC 4271, 4.3), and are set to 0.
fn containing<A: Address>(bytes: &[u8], length: u8, place: usize) -> Result<Prefix<A>, MrtError> {
    if length > A::BITS {
        let what = format!("a prefix of {length} bits, where addresses have {}", A::BITS);
        return Err(MrtError { offset: place, what });
    }
    let mut bits = 0;
    for (&byte, from_first) in bytes.iter().zip(1..) {
        bits |= u128::from(byte) << (u32::from(A::BITS) - 8 * from_first);
    }
    Ok(Prefix::containing(A::from_bits(bits), length))
}

/// Finds the next hop among a route's attributes.
fn next_hop(attributes: &mut Bytes) -> Result<Option<IpAddr>, MrtError> {
    let mut found = None;
    while attributes.at < attributes.end {
        let (flags, kind) = (attributes.u8()?, attributes.u8()?);
        let length = match flags & EXTENDED_LENGTH {
            0 => attributes.u8()?.into(),
            _ => attributes.u16()?.into(),
        };
        let mut value = attributes.part(length, "an attribute")?;
        match kind {
            NEXT_HOP => found = found.or(Some(address(&mut value, length)?)),
            // MP_REACH_NLRI takes precedence over an IPv4 next hop.
            MP_REACH_NLRI => found = Some(reach(&mut value)?),
            _ => {}
        }
    }
    Ok(found)
}

/// Next hop of MP_REACH_NLRI: in dumps only its length and the address itself (RFC 6396, 4.3.4).
/// Some programs write the whole attribute, which begins with the number of a family, and thus with
/// a 0, which is not a valid length.
fn reach(value: &mut Bytes) -> Result<IpAddr, MrtError> {
    let length = match value.u8()? {
        0 => {
            let (_family, _subsequent) = (value.u8()?, value.u8()?);
            value.u8()?
        }
        length => length,
    };
    address(value, length.into())
}

/// Reads an address; of two IPv6 addresses, the second of which is link-local, the first.
fn address(value: &mut Bytes, length: usize) -> Result<IpAddr, MrtError> {
    let place = value.at;
    let bytes = value.bytes(length, "a next hop")?;
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ok(IpAddr::V4(Ipv4Addr::from(four)));
    }
    match bytes.first_chunk::<16>() {
        Some(first) if length == 16 || length == 32 => Ok(IpAddr::V6(Ipv6Addr::from(*first))),
        _ => Err(MrtError { offset: place, what: format!("a next hop of {length} bytes") }),
    }
}

/// A part of the file.
struct Bytes<'a> {
    file: &'a [u8],
    /// Offset of the next byte.
    at: usize,
    /// Offset after the last byte.
    end: usize,
}

impl<'a> Bytes<'a> {
    fn bytes(&mut self, count: usize, what: &str) -> Result<&'a [u8], MrtError> {
        let left = self.end - self.at;
        if count > left {
            let what = format!("{what} needs {count} bytes, and there are {left}");
            return Err(MrtError { offset: self.at, what });
        }
        let bytes = &self.file[self.at..self.at + count];
        self.at += count;
        Ok(bytes)
    }

    /// The next `count` bytes as a separate part.
    fn part(&mut self, count: usize, what: &str) -> Result<Bytes<'a>, MrtError> {
        let at = self.at;
        self.bytes(count, what)?;
        Ok(Bytes { file: self.file, at, end: self.at })
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], MrtError> {
        let bytes = self.bytes(N, "a number")?;
        let mut number = [0; N];
        number.copy_from_slice(bytes);
        Ok(number)
    }

    fn u8(&mut self) -> Result<u8, MrtError> {
        Ok(u8::from_be_bytes(self.number()?))
    }

    fn u16(&mut self) -> Result<u16, MrtError> {
        Ok(u16::from_be_bytes(self.number()?))
    }

    fn u32(&mut self) -> Result<u32, MrtError> {
        Ok(u32::from_be_bytes(self.number()?))
    }
}
