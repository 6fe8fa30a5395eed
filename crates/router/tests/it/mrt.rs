//! Dumps as described in RFC 6396, byte by byte, intact and damaged.

use fwdlab_router::fib::NextHop;
use fwdlab_router::routes::mrt::{Dump, read};
use proptest::prelude::*;
use std::collections::BTreeSet;

const PEER_INDEX_TABLE: u16 = 1;
const RIB_IPV4_UNICAST: u16 = 2;
const RIB_IPV6_UNICAST: u16 = 4;

fn record(subtype: u16, body: &[u8]) -> Vec<u8> {
    record_of((13, subtype), body)
}

fn record_of((kind, subtype): (u16, u16), body: &[u8]) -> Vec<u8> {
    let mut record = 1_700_000_000_u32.to_be_bytes().to_vec();
    record.extend(kind.to_be_bytes());
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

/// As [`rib`], with a path identifier in each entry (RFC 8050).
fn rib_of_paths(subtype: u16, length: u8, prefix: &[u8], entries: &[Vec<u8>]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 7, length];
    body.extend(prefix);
    body.extend((entries.len() as u16).to_be_bytes());
    for (path, attributes) in (1_u32..).zip(entries) {
        body.extend([0, 1, 0, 0, 0, 0]);
        body.extend(path.to_be_bytes());
        body.extend((attributes.len() as u16).to_be_bytes());
        body.extend(attributes);
    }
    record(subtype, &body)
}

/// A record of TABLE_DUMP: the prefix in all its bytes, and one peer.
fn old(prefix: &[u8], length: u8, attributes: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 0, 0, 1];
    body.extend(prefix);
    body.extend([length, 1, 0, 0, 0, 0]);
    body.extend(vec![9; prefix.len()]);
    body.extend([0xfd, 0xe8]);
    body.extend((attributes.len() as u16).to_be_bytes());
    body.extend(attributes);
    record_of((12, if prefix.len() == 4 { 1 } else { 2 }), &body)
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
    let remark = "4 of 9 records left out: 1 x RIB_GENERIC (13/6), 2 without a next hop, 1 with a \
                  repeated prefix";
    assert_eq!(dump.remark().as_deref(), Some(remark));
    assert_eq!(dump.check(), Ok(()));
    assert_eq!(dump.skipped.into_iter().collect::<Vec<_>>(), [((13, 6), 1)]);
    assert_eq!(read(&[]).expect("nothing is a dump of nothing"), Dump::default());
}

#[test]
fn add_path_records_are_read() {
    let file = [
        peers(),
        rib_of_paths(8, 15, &[198, 19], &[via(2), via(3)]),
        rib_of_paths(8, 8, &[10], &[via(1)]),
        rib_of_paths(10, 32, &[0x20, 1, 0x0d, 0xb8], &[via6(2)]),
    ]
    .concat();
    let dump = read(&file).expect("a dump");
    let expected =
        ["198.18.0.0/15 via 192.0.2.2", "10.0.0.0/8 via 192.0.2.1", "2001:db8::/32 via 2001:2::2"];
    assert_eq!((routes(&dump), dump.remark()), (expected.map(str::to_owned).to_vec(), None));
    assert_eq!(dump.check(), Ok(()));
}

#[test]
fn old_table_dumps_are_read() {
    let address6 = address6(7);
    let file = [
        old(&[198, 19, 255, 255], 15, &via(2)),
        old(&[198, 18, 0, 0], 15, &via(3)),
        old(&[10, 0, 0, 0], 8, &[0x40, 1, 1, 0]),
        old(&[10, 0, 0, 0], 8, &via(4)),
        old(&address6, 48, &via6_in_full(2)),
    ]
    .concat();
    let dump = read(&file).expect("a dump");
    let expected =
        ["198.18.0.0/15 via 192.0.2.2", "10.0.0.0/8 via 192.0.2.4", "2001:2::/48 via 2001:2::2"];
    assert_eq!(routes(&dump), expected);
    assert_eq!((dump.alternatives, dump.without_next_hop, dump.records()), (1, 1, 5));
    let long = read(&old(&[10, 0, 0, 0], 33, &via(1))).expect_err("a fault").to_string();
    assert_eq!(long, "byte 20: a prefix of 33 bits, where addresses have 32");
}

#[test]
fn dumps_without_usable_routes_are_refused() {
    let refused =
        |file: &[u8]| read(file).expect("records").check().expect_err("no table").to_string();
    let updates = [record_of((16, 4), &[1; 30]), record_of((17, 5), &[2; 9])].concat();
    let error = refused(&updates);
    assert!(
        error.starts_with("byte 0: 2 of 2 records left out: 1 x BGP4MP message (16/4)"),
        "{error}"
    );
    assert!(error.contains("are no table\n  next step: give a dump of the table"), "{error}");
    // More records of another kind than routes.
    let route = || rib(RIB_IPV4_UNICAST, 8, &[10], &[via(1)]);
    let multicast = || record(3, &[0; 9]);
    let error = refused(&[peers(), route(), multicast(), multicast()].concat());
    let place = peers().len() + route().len();
    let expected =
        format!("byte {place}: 2 of 4 records left out: 2 x RIB_IPV4_MULTICAST (13/3)\n");
    assert!(error.starts_with(&expected), "{error}");
    assert!(refused(&peers()).contains("contains no route"));
    let dump = read(&[route(), multicast()].concat()).expect("a dump");
    assert_eq!(dump.check(), Ok(()), "half of it is usable");
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
    assert!(error(&[0x28, 0xb5, 0x2f, 0xfd, 4]).contains("unzstd"));
}

/// A kind of record, with the truth about it.
#[derive(Clone, Copy, Debug)]
enum Written {
    /// A route in one of the five forms, to one of a few prefixes.
    Route(u8, u8),
    WithoutNextHop(u8),
    Peers,
    Other(u16, u16),
}

fn written() -> impl Strategy<Value = Written> {
    prop_oneof![
        6 => (0u8..5, 0u8..12).prop_map(|(form, prefix)| Written::Route(form, prefix)),
        1 => any::<u8>().prop_map(Written::WithoutNextHop),
        1 => Just(Written::Peers),
        2 => (prop_oneof![Just(13u16), Just(16), Just(17), Just(12), any::<u16>()], 20u16..400)
            .prop_map(|(kind, subtype)| Written::Other(kind, subtype)),
    ]
}

impl Written {
    fn bytes(self) -> Vec<u8> {
        match self {
            Written::Route(0, n) => rib(RIB_IPV4_UNICAST, 16, &[10, n], &[via(n)]),
            Written::Route(1, n) => rib_of_paths(8, 16, &[10, n], &[via(n), via(0)]),
            Written::Route(2, n) => old(&[10, n, 0, 0], 16, &via(n)),
            Written::Route(3, n) => rib(RIB_IPV6_UNICAST, 16, &[0x20, n], &[via6(n)]),
            Written::Route(_, n) => rib_of_paths(10, 16, &[0x20, n], &[via6_in_full(n)]),
            Written::WithoutNextHop(n) => rib(RIB_IPV4_UNICAST, 24, &[11, 0, n], &[]),
            Written::Peers => peers(),
            Written::Other(kind, subtype) => record_of((kind, subtype), &[7; 11]),
        }
    }
}

proptest! {
    #[test]
    fn read_and_left_out_records_are_all_that_were_written(
        all in proptest::collection::vec(written(), 0..60),
    ) {
        let file: Vec<u8> = all.iter().flat_map(|written| written.bytes()).collect();
        let dump = read(&file).expect("a dump");
        prop_assert_eq!(dump.records(), all.len() as u64);
        let (mut known, mut used) = (BTreeSet::new(), 0);
        let (mut repeated, mut other, mut peers, mut without) = (0, 0, 0, 0);
        for written in &all {
            match *written {
                Written::Route(form, prefix) => {
                    let is_new = known.insert((form < 3, prefix));
                    repeated += u64::from(!is_new && form != 2);
                    used += u64::from(is_new || form == 2);
                }
                Written::WithoutNextHop(_) => without += 1,
                Written::Peers => peers += 1,
                Written::Other(..) => other += 1,
            }
        }
        let found = dump.routes.inet.len() + dump.routes.inet6.len();
        prop_assert_eq!(found, known.len());
        prop_assert_eq!(dump.skipped.values().sum::<u64>(), other);
        prop_assert_eq!((dump.repeated, dump.peer_tables), (repeated, peers));
        prop_assert_eq!((dump.without_next_hop, dump.left_out()), (without, repeated + other + without));
        prop_assert_eq!(dump.remark().is_some(), dump.left_out() > 0);
        prop_assert_eq!(dump.check().is_ok(), used > 0 && other + without <= used);
    }

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
