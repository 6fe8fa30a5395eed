//! Header stacks of flows: Ethernet, IPv4 or IPv6, UDP.

use crate::node::{Faults, Node};
use fwdlab_model::lab::Mac;
use fwdlab_packet::address::MAX_ADDRESSES;
use fwdlab_packet::{Endpoints, Family, Flows};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Default time to live of the model.
const TTL: u8 = 64;

/// Headers of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Headers {
    /// Source MAC. `None` for the port's own.
    pub(crate) source_mac: Option<[u8; 6]>,
    /// Destination MAC.
    pub(crate) destination_mac: [u8; 6],
    /// Address family.
    pub(crate) family: Family,
    /// Addresses, ports, time to live.
    pub(crate) endpoints: Endpoints,
    /// Numbers of addresses.
    pub(crate) flows: Flows,
}

/// Reads the headers of a flow.
pub(crate) fn headers(flow: &Node<'_>, faults: &mut Faults) -> Option<Headers> {
    let headers = flow.items("packet", faults);
    let [ethernet, ip, udp] = headers.as_slice() else {
        flow.fault_at("packet", faults, "needs three headers: ethernet, ipv4 or ipv6, udp");
        return None;
    };
    let ethernet = header(ethernet, &["ethernet"], faults)?.1;
    let (version, ip) = header(ip, &["ipv4", "ipv6"], faults)?;
    let udp = header(udp, &["udp"], faults)?.1;
    let macs = ethernet.map(|ethernet| macs(&ethernet, faults));
    let Some((source_mac, destination_mac)) = macs else {
        flow.fault_at("packet[0].ethernet.dst", faults, "is required, the next hop's MAC");
        return None;
    };
    let Some(ip) = ip else {
        flow.fault_at(&format!("packet[1].{version}"), faults, "addresses are required");
        return None;
    };
    let ports = udp.map_or(Some((0, 0)), |udp| ports(&udp, faults));
    let (family, ttl) = match version {
        "ipv4" => (Family::Inet, "time_to_live"),
        _ => (Family::Inet6, "hop_limit"),
    };
    let source = ip.required("src", faults).and_then(|src| addresses(&src, family, faults));
    let destination = ip.required("dst", faults).and_then(|dst| addresses(&dst, family, faults));
    let ttl = ip.get(ttl).map_or(Some(u64::from(TTL)), |ttl| value(&ttl, 255, faults));
    let automatic = match family {
        Family::Inet => ["header_length", "total_length", "header_checksum", "version", "protocol"],
        Family::Inet6 => ["payload_length", "next_header", "version", "", ""],
    };
    computed(&ip, &automatic, &["src", "dst", "time_to_live", "hop_limit"], faults);
    let ((source, sources), (destination, destinations)) = (source?, destination?);
    let (source_port, destination_port) = ports?;
    let flows = Flows { sources, destinations };
    let endpoints =
        Endpoints { source, destination, source_port, destination_port, ttl: ttl? as u8 };
    if gcd(sources, destinations) > 1 {
        // The model advances both in lockstep, fwdlab pairs every source with every destination.
        let what = "src and dst may both count up only if their counts have no common divisor";
        ip.fault(faults, what);
    }
    if !endpoints.have_room_for(flows) {
        ip.fault(faults, "the addresses go beyond the last one");
    }
    Some(Headers { source_mac, destination_mac: destination_mac?, family, endpoints, flows })
}

/// Kind and contents of a header.
fn header<'v>(
    node: &Node<'v>,
    kinds: &[&'static str],
    faults: &mut Faults,
) -> Option<(&'static str, Option<Node<'v>>)> {
    let kind = node.choice(kinds, "ethernet", faults)?;
    if !kinds.contains(&kind) {
        node.fault(faults, format!("must be {}", kinds.join(" or ")));
        return None;
    }
    node.only(&["choice", "name", kind], faults);
    Some((kind, node.get(kind)))
}

fn macs(ethernet: &Node<'_>, faults: &mut Faults) -> (Option<[u8; 6]>, Option<[u8; 6]>) {
    computed(ethernet, &["ether_type"], &["src", "dst"], faults);
    let mut mac = |name| {
        let node = ethernet.get(name)?;
        node.only(&["choice", "value"], faults);
        node.choice(&["value"], "value", faults)?;
        let mac: Mac = node.required("value", faults)?.parsed("MAC", faults)?;
        Some(mac.0)
    };
    let (source, destination) = (mac("src"), mac("dst"));
    if ethernet.get("dst").is_none() {
        ethernet.required("dst", faults);
    }
    (source, destination)
}

fn ports(udp: &Node<'_>, faults: &mut Faults) -> Option<(u16, u16)> {
    computed(udp, &["length", "checksum"], &["src_port", "dst_port"], faults);
    let mut port = |name| {
        let Some(node) = udp.get(name) else { return Some(0) };
        value(&node, u64::from(u16::MAX), faults).map(|port| port as u16)
    };
    let (source, destination) = (port("src_port"), port("dst_port"));
    Some((source?, destination?))
}

/// A pattern of one number.
fn value(node: &Node<'_>, most: u64, faults: &mut Faults) -> Option<u64> {
    node.only(&["choice", "value"], faults);
    node.choice(&["value"], "value", faults)?;
    node.required("value", faults)?.whole(0, most, faults)
}

/// First address of a pattern and their number.
fn addresses(node: &Node<'_>, family: Family, faults: &mut Faults) -> Option<(IpAddr, u32)> {
    node.only(&["choice", "value", "increment"], faults);
    let default = if node.get("increment").is_some() { "increment" } else { "value" };
    let choice = node.choice(&["value", "increment"], default, faults)?;
    if choice == "value" {
        return Some((address(&node.required(choice, faults)?, family, faults)?, 1));
    }
    let increment = node.required(choice, faults)?;
    increment.only(&["start", "step", "count"], faults);
    let count = match increment.get("count") {
        Some(count) => count.whole(1, u64::from(MAX_ADDRESSES), faults)? as u32,
        None => 1,
    };
    if let Some(step) = increment.get("step") {
        let one = match family {
            Family::Inet => IpAddr::V4(Ipv4Addr::from(1)),
            Family::Inet6 => IpAddr::V6(Ipv6Addr::from(1)),
        };
        if step.parsed::<IpAddr>("address", faults)? != one {
            step.fault(faults, format!("is not supported, only {one}"));
        }
    }
    let start = address(&increment.required("start", faults)?, family, faults)?;
    Some((start, count))
}

fn address(node: &Node<'_>, family: Family, faults: &mut Faults) -> Option<IpAddr> {
    match family {
        Family::Inet => node.parsed("IPv4 address", faults).map(IpAddr::V4),
        Family::Inet6 => node.parsed("IPv6 address", faults).map(IpAddr::V6),
    }
}

/// Refuses members that are neither in `known` nor automatic; automatic ones must be left to the
/// generator.
fn computed(node: &Node<'_>, automatic: &[&str], known: &[&str], faults: &mut Faults) {
    let all: Vec<&str> = automatic.iter().chain(known).copied().collect();
    node.only(&all, faults);
    for field in automatic.iter().filter_map(|name| node.get(name)) {
        // Length and checksum have a right value; `generated` is `good` or `bad`.
        field.only(&["choice", "auto", "generated"], faults);
        field.choice(&["auto", "generated"], "auto", faults);
        if let Some(generated) = field.get("generated")
            && generated.text(faults).is_some_and(|text| text != "good")
        {
            generated.fault(faults, "only `good` is supported");
        }
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
