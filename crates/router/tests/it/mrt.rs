//! Dumps as described in RFC 6396, byte by byte, intact and damaged.

use fwdlab_router::fib::NextHop;
use fwdlab_router::routes::mrt::{Dump, read};
use proptest::prelude::*;

const PEER_INDEX_TABLE: u16 = 1;
const RIB_IPV4_UNICAST: u16 = 2;
const RIB_IPV6_UNICAST: u16 = 4;

fn record(subtype: u16, body: &[u8]) -> Vec<u8> {
    let mut record = 1_700_000_000_u32.to_be_bytes().to_vec();
    record.extend(13_u16.to_be_bytes());
    record.extend(subtype.to_be_bytes());
    record.extend((body.len() as u32).to_be_bytes());
    record.extend(body);
    record
}

/// Two peers: IPv4 with an AS number of 2 bytes, IPv6 with one of 4.
fn peers() -> Vec<u8> {
    let mut body = vec![192, 0, 2, 1, 0, 4];
    body.extend(b"view");
    body.extend([0, 2]);
    body.extend([0, 1, 1, 1, 1, 192, 0, 2, 2, 0xfd, 0xe8]);
    body.extend([3, 2, 2, 2, 2]);
    body.extend([0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    body.extend([0, 1, 0, 0]);
    record(PEER_INDEX_TABLE, &body)
}

/// A prefix with an entry for each list of attributes.
fn rib(subtype: u16, length: u8, prefix: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 7, length];
    body.extend(prefix);
    body.extend((entries.len() as u16).to_be_bytes());
    for attributes in entries {
        body.extend([0, 1, 0, 0, 0, 0]);
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    record(subtype, &body)
}

/// ORIGIN, an AS_PATH with a length of two bytes, NEXT_HOP.
fn via(last: u8) -> Vec<u8> {
    vec![0x40, 1, 1, 0, 0x50, 2, 0, 6, 2, 1, 0, 0, 0xfd, 0xe8, 0x40, 3, 4, 192, 0, 2, last]
}

fn address6(last: u8) -> Vec<u8> {
    let mut address = vec![0x20, 1, 0, 2];
    address.resize(15, 0);
    address.push(last);
    address
}

/// MP_REACH_NLRI in the form of dumps: length and next hop, here with a link-local one.
fn via6(last: u8) -> Vec<u8> {
    let mut attributes = vec![0x80, 14, 33, 32];
    attributes.extend(address6(last));
    attributes.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    attributes
}

/// MP_REACH_NLRI with all fields that it has in an update.
fn via6_in_full(last: u8) -> Vec<u8> {
    let mut attributes = vec![0x90, 14, 0, 22, 0, 2, 1, 16];
    attributes.extend(address6(last));
    attributes.extend([0, 0]);
    attributes
}

fn file() -> Vec<u8> {
    [
        peers(),
        rib(RIB_IPV4_UNICAST, 0, &[], &[via(1)]),
        rib(RIB_IPV4_UNICAST, 15, &[198, 19], &[via(2), via(3)]),
        rib(RIB_IPV4_UNICAST, 15, &[198, 18], &[via(3)]),
        rib(RIB_IPV4_UNICAST, 24, &[203, 0, 113], &[]),
        rib(RIB_IPV4_UNICAST, 24, &[203, 0, 114], &[vec![0x40, 1, 1, 0]]),
        rib(RIB_IPV6_UNICAST, 48, &[0x20, 1, 0, 2, 0, 0], &[via6(1)]),
        rib(RIB_IPV6_UNICAST, 32, &[0x20, 1, 0x0d, 0xb8], &[via6_in_full(2), vec![9]]),
        record(6, &[1, 2, 3]),
    ]
    .concat()
}

fn routes(dump: &Dump) -> Vec<String> {
    let hop = |hop: &NextHop| dump.routes.next_hops.via(*hop).expect("a next hop").to_string();
    let inet = dump.routes.inet.iter().map(|(prefix, via)| format!("{prefix} {}", hop(via)));
    let inet6 = dump.routes.inet6.iter().map(|(prefix, via)| format!("{prefix} {}", hop(via)));
    inet.chain(inet6).collect()
}

#[test]
fn first_entry_of_each_prefix_is_used() {
    let dump = read(&file()).expect("a dump");
    assert_eq!(
        routes(&dump),
        [
            "0.0.0.0/0 via 192.0.2.1",
            "198.18.0.0/15 via 192.0.2.2",
            "2001:2::/48 via 2001:2::1",
            "2001:db8::/32 via 2001:2::2",
        ]
    );
    assert_eq!((dump.peers, dump.without_next_hop, dump.repeated), (2, 2, 1));
    assert_eq!(dump.skipped.into_iter().collect::<Vec<_>>(), [((13, 6), 1)]);
    assert_eq!(read(&[]).expect("nothing is a dump of nothing"), Dump::default());
}

#[test]
fn truncated_files_report_the_offset() {
    let file = file();
    let mut ends = vec![0];
    while let Some(&at) = ends.last().filter(|&&at| at < file.len()) {
        let length =
            file[at + 8..at + 12].iter().fold(0, |all, &byte| all << 8 | usize::from(byte));
        ends.push(at + 12 + length);
    }
    for end in 0..file.len() {
        match read(&file[..end]) {
            Ok(_) => assert!(ends.contains(&end), "cut off at {end}"),
            Err(error) => {
                assert!(!ends.contains(&end) && error.offset <= end, "{end}: {error}");
                assert!(error.to_string().contains("needs"), "{error}");
            }
        }
    }
}

#[test]
fn inconsistent_files_report_the_offset() {
    let error = |bytes: &[u8]| read(bytes).expect_err("damaged").to_string();
    let long = rib(RIB_IPV4_UNICAST, 33, &[1, 2, 3, 4, 5], &[via(1)]);
    assert_eq!(error(&long), "byte 16: a prefix of 33 bits, where addresses have 32");
    let odd = rib(RIB_IPV4_UNICAST, 8, &[10], &[vec![0x40, 3, 3, 192, 0, 2]]);
    assert_eq!(error(&odd), "byte 31: a next hop of 3 bytes");
    let beyond = rib(RIB_IPV4_UNICAST, 8, &[10], &[vec![0x40, 3, 200, 192]]);
    assert_eq!(error(&beyond), "byte 31: an attribute needs 200 bytes, and there are 1");
    assert!(error(&[0x1f, 0x8b, 8, 0]).contains("gunzip"));
    assert!(error(b"BZh9").contains("bunzip2"));
}

proptest! {
    #[test]
    fn damaged_bytes_never_panic(
        places in proptest::collection::vec((0..400_usize, any::<u8>()), 0..20),
    ) {
        let mut file = file();
        for (place, byte) in places {
            let place = place % file.len();
            file[place] = byte;
        }
        if let Err(error) = read(&file) {
            prop_assert!(error.offset <= file.len());
        }
    }
}
