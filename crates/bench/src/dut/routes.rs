//! Static routes, as text for `ip -batch`.
//!
//! The first two lead to both sides. Further ones are host routes of the traffic's
//! own destinations, so that lookups really meet them; what is left fills the
//! table with /24 (IPv4) or /48 (IPv6) prefixes that no packet asks for.

use crate::lab::links::{Link, Links};
use fwdlab_packet::address::{Family, Side, flow_address, peer_address, routed_prefix};
use std::fmt::Write;

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Prefix with its length.
    pub prefix: String,
    /// Next hop.
    pub via: String,
    /// Interface that leads there.
    pub interface: String,
}

/// `count` routes (at least the two) of one family; `destinations` is the number of
/// destination addresses of the traffic.
pub fn prefixes(family: Family, count: u32, destinations: u32, links: &Links) -> Vec<Route> {
    let sides = [(Side::Sender, &links.ingress), (Side::Receiver, &links.egress)];
    let route = |prefix: String, side, link: &Link| Route {
        prefix,
        via: next_hop(family, side, link),
        interface: link.interface.clone(),
    };
    let first = sides.map(|(side, link)| route(routed_prefix(family, side).to_owned(), side, link));
    let further = (0..count.saturating_sub(2)).map(|n| {
        let prefix = match (n < destinations, family) {
            (true, Family::Inet) => format!("{}/32", flow_address(family, Side::Receiver, n)),
            (true, Family::Inet6) => format!("{}/128", flow_address(family, Side::Receiver, n)),
            (false, Family::Inet) => {
                let network = std::net::Ipv4Addr::from((10 << 24) + ((n - destinations) << 8));
                format!("{network}/24")
            }
            (false, Family::Inet6) => {
                let number = n - destinations;
                format!("fd00:{:x}:{:x}::/48", number >> 16, number & 0xffff)
            }
        };
        route(prefix, Side::Receiver, &links.egress)
    });
    first.into_iter().chain(further).collect()
}

/// The first peer of a side; the plan's address where it has none.
fn next_hop(family: Family, side: Side, link: &Link) -> String {
    let addresses = link.peers.iter().flat_map(|peer| &peer.addresses);
    let mut of_family = addresses.filter(|a| a.is_ipv4() == (family == Family::Inet));
    of_family.next().map_or_else(|| peer_address(family, side).to_owned(), ToString::to_string)
}

/// Text that adds routes, each with `more` words for ip(8).
pub fn batch(routes: &[Route], more: &str) -> String {
    let mut text = String::new();
    for Route { prefix, via, interface } in routes {
        let _ = writeln!(text, "route add {prefix} via {via} dev {interface}{more}");
    }
    text
}

/// Number of prefixes in the main table by `/proc/net/fib_triestat`, which shows
/// it without listing a million routes.
pub fn count_inet(fib_triestat: &str) -> Option<u64> {
    let main = fib_triestat.split("Main:").nth(1).unwrap_or(fib_triestat);
    let line = main.lines().find(|line| line.trim_start().starts_with("Prefixes:"))?;
    line.rsplit(char::is_whitespace).find(|w| !w.is_empty())?.parse().ok()
}

/// Number of entries by `/proc/net/rt6_stats` (fourth field, hexadecimal).
pub fn count_inet6(rt6_stats: &str) -> Option<u64> {
    u64::from_str_radix(rt6_stats.split_whitespace().nth(3)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn as_many_distinct_routes_as_asked_for() {
        let links = Links::of_namespaces();
        for family in [Family::Inet, Family::Inet6] {
            for count in [2, 50, 1000, 200_000] {
                let text = batch(&prefixes(family, count, 100, &links), "");
                let distinct: HashSet<&str> =
                    text.lines().map(|l| l.split(" via ").next().unwrap_or(l)).collect();
                assert_eq!(distinct.len(), count as usize);
            }
        }
    }

    #[test]
    fn proc_files_are_read() {
        let text = "Basic info: size of leaf:\nMain:\n\tAver depth: 1\n\tLeaves: 3\n\tPrefixes:       1002\n";
        assert_eq!(count_inet(text), Some(1002));
        assert_eq!(count_inet6("000a 0005 0123 00ff 0000 0040 0000"), Some(255));
    }
}
