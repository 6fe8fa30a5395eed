//! Set-up of fwdlab's software router: as `fwdlab route` reads it from a file, and as a
//! testbed sends it to the router that it starts.
//!
//! Addresses, rules and files are parsed and opened when the router is built.

use crate::settings::{FibAlgorithm, ForwardingPath, Locking, StateTable};
use fwdlab_packet::forwarding::Class;
use fwdlab_packet::injection::Faults;
use fwdlab_packet::named;
use serde::{Deserialize, Serialize};

/// A router. Everything with a default may be omitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterSetup {
    /// Worker threads, one for each queue of every port, 1 to 64.
    pub workers: u16,
    /// CPUs that the workers are bound to, in turn; none: unbound.
    pub cpus: Vec<u16>,
    /// Algorithm of the longest-prefix match.
    pub fib: FibAlgorithm,
    /// Locking of the forwarding table during lookups.
    pub locking: Locking,
    /// Fast path or full path.
    pub path: ForwardingPath,
    /// Rules of the firewall; empty: none.
    pub firewall: String,
    /// Where a stateful firewall keeps its states.
    pub state: StateTable,
    /// Maximum number of states.
    pub state_limit: u32,
    /// Maximum number of states that one source may have begun, of IPv6 one /64; 0: any.
    pub state_limit_per_source: u32,
    /// What happens when there are that many.
    pub state_full: FullTable,
    /// Feed every packet to a pool of entropy that all workers share.
    pub entropy_harvest: bool,
    /// Tell senders of better next hops on their own link.
    pub icmp_redirect: bool,
    /// ICMP and ICMPv6 error messages a second that each worker may send.
    pub icmp_errors_pps: u32,
    /// Spread packets over the workers by a Toeplitz hash of their flow. Needed where
    /// the ports' queues are not filled that way.
    pub rss: bool,
    /// Routes, each `prefix via next-hop`.
    pub routes: Vec<String>,
    /// A file of further routes: text as above, or an MRT `TABLE_DUMP_V2` dump.
    pub routes_file: Option<String>,
    /// Routes made up, beside those written.
    pub synthesised: Option<Synthesised>,
    /// Memory that another process filled with a wire, one path for each worker, in
    /// place of ports: interface 0 faces the generator, interface 1 the sink.
    pub circuits: Vec<String>,
    /// The kernel beside the router, if it is to have what the router doesn't answer itself.
    pub host: Option<HostSetup>,
    /// Interfaces, numbered from 0 in this order.
    #[serde(rename = "interface")]
    pub interfaces: Vec<InterfaceSetup>,
    /// Neighbours: addresses and MACs of next hops.
    #[serde(rename = "neighbour")]
    pub neighbours: Vec<NeighbourSetup>,
}

impl Default for RouterSetup {
    fn default() -> Self {
        Self {
            workers: 1,
            cpus: Vec::new(),
            fib: FibAlgorithm::Auto,
            locking: Locking::Lockless,
            path: ForwardingPath::Fast,
            firewall: String::new(),
            state: StateTable::Sharded,
            state_limit: 2_097_152,
            state_limit_per_source: 0,
            state_full: FullTable::GiveWay,
            entropy_harvest: false,
            icmp_redirect: false,
            icmp_errors_pps: 1000,
            rss: false,
            routes: Vec::new(),
            routes_file: None,
            synthesised: None,
            circuits: Vec::new(),
            host: None,
            interfaces: Vec::new(),
            neighbours: Vec::new(),
        }
    }
}

/// The router's own host: the kernel's stack, with its daemons and their routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSetup {
    /// Network namespace in which its devices are made; the router's own when it is left out.
    pub namespace: Option<String>,
    /// Follow the kernel's routes over these devices.
    pub routes: bool,
    /// Number of the kernel's table that they are in.
    pub table: u32,
    /// Frames a second that the host is told by each worker: of neighbours, to groups, and
    /// all others, at each interface.
    pub pps: u32,
}

impl Default for HostSetup {
    fn default() -> Self {
        // The kernel's table `main`.
        Self { namespace: None, routes: true, table: 254, pps: 10_000 }
    }
}

/// Routes with the prefix lengths of the Internet's table, outside the benchmark's
/// addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthesised {
    /// IPv4 routes.
    #[serde(default)]
    pub inet: u32,
    /// IPv6 routes.
    #[serde(default)]
    pub inet6: u32,
    /// Addresses of the next hops, drawn from at random.
    pub via: Vec<String>,
    /// Seed of the random numbers.
    #[serde(default)]
    pub seed: u64,
}

named! {
    /// What holds an interface's packets.
    pub enum PortKind default Auto {
        /// AF_XDP, else AF_PACKET.
        Auto = "auto",
        /// AF_XDP sockets on a device.
        Xsk = "xsk",
        /// AF_PACKET sockets on a device.
        Packet = "packet",
        /// Files of packets.
        Pcap = "pcap",
    }
}

named! {
    /// What becomes of checksums of TCP and UDP that a stack has left to a device, as on
    /// virtual links.
    pub enum ChecksumKind default Complete {
        /// They are completed, on virtual devices and with AF_PACKET.
        Complete = "complete",
        /// There are none: frames are taken as they are.
        Trust = "trust",
    }
}

named! {
    /// What happens when the table of states is full.
    pub enum FullTable default GiveWay {
        /// Timeouts shrink before, and unanswered states make room for new ones.
        GiveWay = "give_way",
        /// New connections are dropped until a state has ended.
        Drop = "drop",
    }
}

named! {
    /// Which sources may come in at an interface (RFC 3704).
    pub enum ReversePathKind default Off {
        /// Any.
        Off = "off",
        /// Those to which any route leads.
        Loose = "loose",
        /// Those to which the route leads back out at the same interface.
        Strict = "strict",
    }
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterfaceSetup {
    /// Name; that of a device for sockets.
    pub name: String,
    /// Kind of its port.
    pub port: PortKind,
    /// VLAN that it is, of the interface `parent` (IEEE 802.1Q).
    pub vlan: Option<u16>,
    /// Name of the interface at whose port its frames pass, with tags.
    pub parent: Option<String>,
    /// MAC; the device's own when it is left out.
    pub mac: Option<String>,
    /// Largest IP packet in bytes; the device's, or 1500, when it is left out.
    pub mtu: Option<u16>,
    /// Own addresses with the lengths of the link's prefixes.
    pub addresses: Vec<String>,
    /// What hosts of the link are told of the router (RFC 4861), if anything.
    pub advertise: Option<AdvertiseSetup>,
    /// Sources that packets may come from.
    pub reverse_path: ReversePathKind,
    /// Checksums that were left to a device.
    pub checksums: ChecksumKind,
    /// Name of the interface that the router's host has beside this one.
    pub host_device: Option<String>,
    /// With `pcap`: the file that is read.
    pub input: Option<String>,
    /// With `pcap`: the file that is written.
    pub output: Option<String>,
    /// Write all packets, in and out, to this file of packets.
    pub capture: Option<String>,
    /// Write a line about each packet to this file.
    pub trace: Option<String>,
    /// Fault injection into packets that come in.
    pub faults: Option<Faults>,
    /// Fault injection into packets that go out.
    pub sent_faults: Option<Faults>,
}

/// Router advertisements of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdvertiseSetup {
    /// Prefixes of the link; those of the interface's addresses when they are left out.
    pub prefixes: Option<Vec<String>>,
    /// Longest time between two advertisements, seconds.
    pub interval: u16,
    /// Seconds for which it is a default router, 0: it is none; three intervals when it is left
    /// out.
    pub lifetime: Option<u16>,
    /// Seconds for which prefixes are valid.
    pub valid: u32,
    /// Seconds for which addresses of the prefixes are preferred.
    pub preferred: u32,
    /// Tell the interface's MTU.
    pub mtu: bool,
    /// Addresses are had by DHCPv6.
    pub managed: bool,
    /// Other things are had by DHCPv6.
    pub other: bool,
}

impl Default for AdvertiseSetup {
    fn default() -> Self {
        // RFC 4861 section 6.2.1.
        Self {
            prefixes: None,
            interval: 600,
            lifetime: None,
            valid: 2_592_000,
            preferred: 604_800,
            mtu: true,
            managed: false,
            other: false,
        }
    }
}

/// Where a next hop is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourSetup {
    /// Its address.
    pub address: String,
    /// Its MAC; asked for by ARP or neighbour discovery when it is left out, as for next
    /// hops that aren't listed at all.
    #[serde(default)]
    pub mac: Option<String>,
    /// Name of the interface it is reached through; when it is left out, the one whose
    /// link's prefix has the address.
    #[serde(default)]
    pub interface: Option<String>,
}

/// Statistics of a router, once a second or on request, as a line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterStats {
    /// Time of a monotonic clock, nanoseconds.
    pub at_ns: u64,
    /// Packets that came in: `forwarded + dropped + slow`.
    pub received: u64,
    /// Packets sent on.
    pub forwarded: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets that went to the slow path.
    pub slow: u64,
    /// All non-zero counters by their stable names, in the order of the path, each with its
    /// class.
    pub counters: Vec<(String, u64, Class)>,
    /// Packets that the ports lost before they were received, by interface.
    pub missed: Vec<(String, u64)>,
    /// Frames of each interface.
    pub interfaces: Vec<InterfaceCounts>,
    /// Packets that came in to each worker; those of the slow path are among them.
    pub workers: Vec<u64>,
    /// Facts about the router as it runs: what was chosen, memory, states.
    pub facts: Vec<(String, String)>,
    /// Why an order was not carried out; the router goes on as before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Frames of an interface, of all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceCounts {
    /// Its name.
    pub name: String,
    /// Frames that came in.
    pub received: u64,
    /// Frames that went out.
    pub sent: u64,
    /// Frames that found no room to go out.
    pub lost: u64,
    /// Frames that were lost before they were received.
    pub missed: u64,
}

impl RouterStats {
    /// The counter of this name; 0 when it is not among them.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.iter().find(|(other, ..)| other == name).map_or(0, |&(_, count, _)| count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_says_what_differs_from_the_defaults() {
        let text = r#"
            workers = 2
            fib = "dir24_8"
            routes = ["198.19.0.0/16 via 198.19.0.2"]
            [[interface]]
            name = "d0"
            addresses = ["198.18.0.1/24"]
            [interface.faults]
            loss = 0.5
            [[neighbour]]
            address = "198.19.0.2"
            mac = "02:00:00:00:00:20"
        "#;
        let setup: RouterSetup = toml::from_str(text).expect("a set-up");
        assert_eq!((setup.workers, setup.fib), (2, FibAlgorithm::Dir24_8));
        assert_eq!(setup.interfaces[0].faults.as_ref().map(|f| f.loss), Some(0.5));
        assert_eq!(setup.interfaces[0].port, PortKind::Auto);
        assert_eq!(setup.locking, RouterSetup::default().locking);
        let again = serde_json::to_string(&setup).expect("JSON");
        assert_eq!(serde_json::from_str::<RouterSetup>(&again).expect("the same"), setup);
        assert!(toml::from_str::<RouterSetup>("wrokers = 2").is_err());
    }
}
