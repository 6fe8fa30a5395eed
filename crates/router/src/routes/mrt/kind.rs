//! Names of MRT record types and subtypes (RFC 6396, RFC 6397, RFC 8050), for messages about
//! records that are left out.

/// Type and subtype of a record.
pub type Kind = (u16, u16);

pub(super) const TABLE_DUMP: u16 = 12;
pub(super) const TABLE_DUMP_V2: u16 = 13;
const BGP4MP: u16 = 16;
const BGP4MP_ET: u16 = 17;

/// True for messages and state changes of BGP sessions, of which a table does not consist.
pub(super) fn is_update(kind: Kind) -> bool {
    // Subtypes 2 and 3 are obsolete forms of a table.
    matches!(kind.0, BGP4MP | BGP4MP_ET) && !matches!(kind.1, 2 | 3)
}

/// Name with both numbers, e.g. `RIB_IPV4_MULTICAST (13/3)`.
pub(super) fn name((kind, subtype): Kind) -> String {
    let known = match (kind, subtype) {
        (TABLE_DUMP, _) => "TABLE_DUMP of an unknown family",
        (TABLE_DUMP_V2, 3) => "RIB_IPV4_MULTICAST",
        (TABLE_DUMP_V2, 5) => "RIB_IPV6_MULTICAST",
        (TABLE_DUMP_V2, 6) => "RIB_GENERIC",
        (TABLE_DUMP_V2, 7) => "GEO_PEER_TABLE",
        (TABLE_DUMP_V2, 9) => "RIB_IPV4_MULTICAST_ADDPATH",
        (TABLE_DUMP_V2, 11) => "RIB_IPV6_MULTICAST_ADDPATH",
        (TABLE_DUMP_V2, 12) => "RIB_GENERIC_ADDPATH",
        (TABLE_DUMP_V2, _) => "TABLE_DUMP_V2 of an unknown subtype",
        (BGP4MP | BGP4MP_ET, 0 | 5) => "BGP4MP state change",
        (BGP4MP | BGP4MP_ET, 2 | 3) => "BGP4MP table entry",
        (BGP4MP | BGP4MP_ET, _) => "BGP4MP message",
        (11 | 48 | 49, _) => "OSPF message",
        (32 | 33, _) => "IS-IS message",
        _ => "record of an unknown type",
    };
    format!("{known} ({kind}/{subtype})")
}
