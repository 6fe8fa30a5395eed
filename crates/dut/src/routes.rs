//! Static routes, as text for `ip -batch`.
//!
//! The first two lead to the two sides. The next are host routes to the traffic's destinations, so
//! that lookups match them; the rest fill the table with prefixes that no test packet matches: /30
//! within 10.192.0.0/10 (IPv4), /80 within 2001:2:0:c000::/56 (IPv6). A kernel's table gets no
//! routes outside these ranges: they could divert the management traffic of the machine.
//!
//! These limits do not apply to the software router, whose table no other traffic uses.

use crate::links::overlaps;
use crate::links::{Link, Links};
use fwdlab_host::error::BenchError;
use fwdlab_packet::address::{Family, Side, flow_address, peer_address, routed_prefix};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Range of the IPv4 routes that fill the table.
pub const FILLED_INET: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 192, 0, 0), 10);
/// Range of the IPv6 routes that fill the table: the part of the benchmark's own prefix without
/// links or flows.
pub const FILLED_INET6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, 0xc000, 0, 0, 0, 0), 56);
/// Prefix length of the IPv4 routes that fill the table.
const FILLER_INET: u8 = 30;
/// Prefix length of the IPv6 routes that fill the table.
const FILLER_INET6: u8 = 80;
/// Maximum number of routes that fill the table: all /30 of the range.
pub const FILLERS_MAX: u32 = 1 << (FILLER_INET - FILLED_INET.1);

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// First address of the prefix, with its length.
    pub prefix: (IpAddr, u8),
    /// Next hop.
    pub via: String,
    /// Interface that leads to the next hop.
    pub interface: String,
}

/// Returns `count` routes (at least two) of one address family; `destinations` is the number of
/// destination addresses of the traffic. At most [`FILLERS_MAX`] fill the table.
pub fn prefixes(family: Family, count: u32, destinations: u32, links: &Links) -> Vec<Route> {
    let sides = [(Side::Sender, &links.ingress), (Side::Receiver, &links.egress)];
    let (length, full_length) = match family {
        Family::Inet => (FILLER_INET, 32),
        Family::Inet6 => (FILLER_INET6, 128),
    };
    let route = |prefix, side, link: &Link| Route {
        prefix,
        via: next_hop(family, side, link),
        interface: link.interface.clone(),
    };
    let first = sides.map(|(side, link)| {
        let prefix = crate::links::prefix(routed_prefix(family, side));
        prefix.map(|prefix| route(prefix, side, link))
    });
    let additional = count.saturating_sub(2).min(destinations.saturating_add(FILLERS_MAX));
    let additional = (0..additional).map(|n| {
        let prefix = match n.checked_sub(destinations) {
            None => (flow_address(family, Side::Receiver, n), full_length),
            Some(n) => (filler(family, n), length),
        };
        route(prefix, Side::Receiver, &links.egress)
    });
    first.into_iter().flatten().chain(additional).collect()
}

/// Address of the `n`th prefix that fills the table.
fn filler(family: Family, n: u32) -> IpAddr {
    match family {
        Family::Inet => Ipv4Addr::from(FILLED_INET.0.to_bits() + (n << (32 - FILLER_INET))).into(),
        Family::Inet6 => {
            Ipv6Addr::from(FILLED_INET6.0.to_bits() + (u128::from(n) << (128 - FILLER_INET6)))
                .into()
        }
    }
}

/// Fails if a route covers an address that the laboratory's management traffic uses.
///
/// # Errors
/// Names the route, the address that it covers, and the remedy.
pub fn keep_ways(routes: &[Route], links: &Links) -> Result<(), BenchError> {
    for way in &links.ways {
        let Some(route) = routes.iter().find(|route| way.is_lost_by(route.prefix)) else {
            continue;
        };
        let (address, length) = route.prefix;
        let is_filler = overlaps(route.prefix, (FILLED_INET.0.into(), FILLED_INET.1))
            || overlaps(route.prefix, (FILLED_INET6.0.into(), FILLED_INET6.1));
        let (more, next) = match is_filler {
            true => (
                format!(", one of the {} that fill the table,", routes.len()),
                "take fewer routes, or administer",
            ),
            false => (String::new(), "administer"),
        };
        return Err(BenchError::Refused(format!(
            "the route to {address}/{length}{more} would lead what the DUT sends to {way} into \
             the test's receiver or sender\n  next step: {next} the laboratory by a network \
             outside of 198.18.0.0/15, {}/{} and 2001:2::/48",
            FILLED_INET.0, FILLED_INET.1
        )));
    }
    Ok(())
}

/// Applies [`keep_ways`] to every route of a variant's DUT: the routes of its traffic's family, and
/// both routes of the other family.
///
/// # Errors
/// The errors of [`keep_ways`].
pub fn keep_ways_of(
    settings: &fwdlab_model::settings::Settings,
    links: &Links,
) -> Result<(), BenchError> {
    if links.ways.is_empty() {
        return Ok(());
    }
    let traffic_family = settings.traffic.family;
    [Family::Inet, Family::Inet6].into_iter().try_for_each(|family| {
        let count = if family == traffic_family { settings.dut.routes } else { 2 };
        keep_ways(&prefixes(family, count, settings.traffic.flows.destinations, links), links)
    })
}

/// The first peer of a side; the default address if it has none.
fn next_hop(family: Family, side: Side, link: &Link) -> String {
    let addresses = link.peers.iter().flat_map(|peer| &peer.addresses);
    let mut of_family = addresses.filter(|a| a.is_ipv4() == (family == Family::Inet));
    of_family.next().map_or_else(|| peer_address(family, side).to_owned(), ToString::to_string)
}

/// Text that adds routes, each with additional arguments `more` for ip(8).
pub fn batch(routes: &[Route], more: &str) -> String {
    let mut text = String::new();
    for Route { prefix: (address, length), via, interface } in routes {
        let _ = writeln!(text, "route add {address}/{length} via {via} dev {interface}{more}");
    }
    text
}

/// Number of prefixes in the main table according to `/proc/net/fib_triestat`, which avoids listing
/// a million routes.
pub fn count_inet(fib_triestat: &str) -> Option<u64> {
    let main = fib_triestat.split("Main:").nth(1).unwrap_or(fib_triestat);
    let line = main.lines().find(|line| line.trim_start().starts_with("Prefixes:"))?;
    line.rsplit(char::is_whitespace).find(|w| !w.is_empty())?.parse().ok()
}

/// Number of entries according to `/proc/net/rt6_stats` (fourth field, hexadecimal).
pub fn count_inet6(rt6_stats: &str) -> Option<u64> {
    u64::from_str_radix(rt6_stats.split_whitespace().nth(3)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::ProtectedRoute;
    use fwdlab_packet::address::MAX_ADDRESSES;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
    use std::collections::HashSet;

    /// Maximum value of the key `routes`.
    const ROUTES_MAX: u32 = FILLERS_MAX;

    /// All prefixes that a kernel's table may get routes to.
    fn allowed() -> [(IpAddr, u8); 3] {
        ["198.18.0.0/15", "10.192.0.0/10", "2001:2::/48"]
            .map(|text| crate::links::prefix(text).expect("a prefix"))
    }

    fn check(family: Family, count: u32, destinations: u32) {
        let links = Links::of_namespaces();
        let routes = prefixes(family, count, destinations, &links);
        assert_eq!(routes.len(), count as usize);
        let distinct: HashSet<(IpAddr, u8)> = routes.iter().map(|route| route.prefix).collect();
        assert_eq!(distinct.len(), routes.len(), "{family:?}, {count}");
        let allowed = allowed();
        for route in &routes {
            let (address, length) = route.prefix;
            let inside =
                allowed.iter().any(|part| overlaps(route.prefix, *part) && length >= part.1);
            assert!(inside, "{address}/{length} of {count}");
        }
        // Only its own route and its side's route match an address of the traffic.
        let fillers = &routes[(2 + destinations as usize).min(routes.len())..];
        let (first, last) = (fillers.first(), fillers.last());
        for n in [0, destinations / 2, destinations - 1] {
            for side in [Side::Sender, Side::Receiver] {
                let flow = flow_address(family, side, n);
                let full_length = if flow.is_ipv4() { 32 } else { 128 };
                let part = match family {
                    Family::Inet => (FILLED_INET.0.into(), FILLED_INET.1),
                    Family::Inet6 => (FILLED_INET6.0.into(), FILLED_INET6.1),
                };
                assert!(!overlaps((flow, full_length), part), "{flow}");
                for filler in [first, last].into_iter().flatten() {
                    assert!(overlaps(filler.prefix, part) && filler.prefix.1 >= part.1);
                    assert!(!overlaps(filler.prefix, (flow, full_length)));
                }
            }
        }
        for link in links.both() {
            for &(address, length) in &link.addresses {
                let full_length = if address.is_ipv4() { 32 } else { 128 };
                for filler in fillers.iter().take(1000) {
                    assert!(!overlaps(filler.prefix, (address, full_length)), "{address}/{length}");
                }
            }
        }
    }

    #[test]
    fn fillers_never_overlap_traffic_or_links() {
        let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
        let mut runner = TestRunner::new_with_rng(Config { cases: 8, ..Config::default() }, rng);
        let counts = prop_oneof![2_u32..5000, 2_u32..200_000];
        runner
            .run(&(counts, 1_u32..=MAX_ADDRESSES, any::<bool>()), |(count, destinations, inet)| {
                check(if inet { Family::Inet } else { Family::Inet6 }, count, destinations);
                Ok(())
            })
            .expect("harmless");
        for family in [Family::Inet, Family::Inet6] {
            check(family, ROUTES_MAX, 1);
            check(family, 100_000, 2000);
        }
    }

    /// The key's own range rejects more routes than fit.
    #[test]
    fn routes_key_is_limited_to_the_fillers() {
        let text = |count: u32| format!("version = 1\n[dut]\nroutes = {count}\n");
        let load = |count| {
            fwdlab_model::load("e.toml", &text(count), &|_| Ok(Vec::new()))
                .map_err(|f| f.to_string())
        };
        load(ROUTES_MAX).expect("a plan");
        let error = load(ROUTES_MAX + 1).expect_err("too many");
        assert!(error.contains("routes") && error.contains(&ROUTES_MAX.to_string()), "{error}");
    }

    #[test]
    fn route_over_a_management_address_is_rejected() {
        let mut links = Links::of_namespaces();
        let protected = |text: &str, whose: &str| ProtectedRoute {
            network: crate::links::prefix(text).expect("a prefix"),
            whose: whose.to_owned(),
        };
        let refused = |links: &Links, routes: u32, destinations: u32| {
            let found = prefixes(Family::Inet, routes, destinations, links);
            keep_ways(&found, links).err().map(|error| error.to_string())
        };
        links.ways = vec![protected("10.200.0.9/32", "the controller")];
        assert_eq!(refused(&links, 1000, 10), None, "so few do not reach that far");
        let error = refused(&links, 1_000_000, 10).expect("refused");
        for word in ["10.200.0.8/30", "the controller", "10.200.0.9", "fewer routes"] {
            assert!(error.contains(word), "{error}");
        }
        links.ways = vec![protected("198.19.9.9/32", "sender")];
        assert!(refused(&links, 2, 10).expect("refused").contains("198.19.0.0/16"));
        // For a network of the DUT itself, a longer prefix takes addresses away; a shorter one does
        // not, because the longest prefix wins.
        links.ways = vec![protected("10.192.1.0/24", "the DUT")];
        assert!(refused(&links, 1000, 10).expect("refused").contains("10.192.1.0/30"));
        links.ways =
            vec![protected("198.18.7.0/24", "the DUT"), protected("192.0.2.0/24", "the DUT")];
        assert_eq!(refused(&links, 1_000_000, 10), None);
    }

    #[test]
    fn route_counts_are_parsed_from_proc() {
        let text = "Basic info: size of leaf:\nMain:\n\tAver depth: 1\n\tLeaves: 3\n\tPrefixes:       1002\n";
        assert_eq!(count_inet(text), Some(1002));
        assert_eq!(count_inet6("000a 0005 0123 00ff 0000 0040 0000"), Some(255));
    }
}
