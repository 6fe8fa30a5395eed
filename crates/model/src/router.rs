//! Set-up of fwdlab's software router: read from a file by `fwdlab route`, or sent by a testbed to
//! the router that it starts.
//!
//! Addresses, rules and files are parsed and opened when the router is built.

use crate::settings::{FibAlgorithm, ForwardingPath, Locking, StateTable};
use fwdlab_packet::forwarding::Class;
use fwdlab_packet::injection::Faults;
use fwdlab_packet::named;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Set-up of a router. All values with a default may be omitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RouterSetup {
    /// Worker threads, one per queue of every port, 1 to 64.
    pub workers: u16,
    /// CPUs that the workers are bound to, in turn; empty for no binding.
    pub cpus: Vec<u16>,
    /// Algorithm of the longest-prefix match.
    pub fib: FibAlgorithm,
    /// Locking of the forwarding table during lookups.
    pub locking: Locking,
    /// Fast path or full path.
    pub path: ForwardingPath,
    /// Rules of the firewall; empty for none.
    pub firewall: String,
    /// Storage of a stateful firewall's states.
    pub state: StateTable,
    /// Maximum number of states.
    pub state_limit: u32,
    /// Maximum number of states begun by one source (for IPv6, one /64); 0 for no limit.
    pub state_limit_per_source: u32,
    /// Behaviour when the table is full.
    pub state_full: FullTable,
    /// Feed every packet to an entropy pool that all workers share.
    pub entropy_harvest: bool,
    /// Send ICMP redirects to senders with a better next hop on their own link.
    pub icmp_redirect: bool,
    /// Maximum number of ICMP and ICMPv6 error messages per second and worker.
    pub icmp_errors_pps: u32,
    /// Spread packets over the workers by a Toeplitz hash of their flow. Needed if the ports'
    /// queues are not filled that way.
    pub rss: bool,
    /// Routes, each `prefix via next-hop`.
    pub routes: Vec<String>,
    /// File of further routes: text as above, or an MRT dump of a table.
    pub routes_file: Option<String>,
    /// Synthetic routes in addition to the listed ones.
    pub synthesised: Option<Synthesised>,
    /// Shared memory with packet rings from another process, one path per worker, in place of
    /// ports: interface 0 faces the generator, interface 1 the sink.
    pub circuits: Vec<String>,
    /// Host kernel that receives the packets that the router does not answer itself; `None` for
    /// none.
    pub host: Option<HostSetup>,
    /// Log of dropped packets; `None` for none.
    pub drop_log: Option<DropLogSetup>,
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
            drop_log: None,
            interfaces: Vec::new(),
            neighbours: Vec::new(),
        }
    }
}

/// The router's own host: the kernel's network stack, with its daemons and their routes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HostSetup {
    /// Network namespace of its devices; `None` for the router's own.
    pub namespace: Option<String>,
    /// Follow the kernel's routes over these devices.
    pub routes: bool,
    /// Number of the kernel's routing table that contains them.
    pub table: u32,
    /// Frames per second that each worker passes to the host: separately for neighbour discovery,
    /// for multicast, and for all others, at each interface.
    pub pps: u32,
}

impl Default for HostSetup {
    fn default() -> Self {
        // The kernel's table `main`.
        Self { namespace: None, routes: true, table: 254, pps: 10_000 }
    }
}

/// Log of dropped packets, as pcapng.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DropLogSetup {
    /// The file.
    pub file: String,
    /// Maximum number of logged packets per second.
    #[serde(default = "DropLogSetup::default_pps")]
    pub pps: u32,
    /// Names of counters whose packets are logged; empty for decisions of the configuration.
    #[serde(default)]
    pub reasons: Vec<String>,
}

impl DropLogSetup {
    fn default_pps() -> u32 {
        100
    }
}

/// Routes with the prefix lengths of the Internet's table, outside the benchmark's addresses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synthesised {
    /// IPv4 routes.
    #[serde(default)]
    pub inet: u32,
    /// IPv6 routes.
    #[serde(default)]
    pub inet6: u32,
    /// Addresses of the next hops, selected at random.
    pub via: Vec<String>,
    /// Seed of the random numbers.
    #[serde(default)]
    pub seed: u64,
}

named! {
    /// Kind of an interface's port.
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
    /// Handling of TCP and UDP checksums that a stack has left to a device, as on virtual links.
    pub enum ChecksumKind default Complete {
        /// They are completed, on virtual devices and with AF_PACKET.
        Complete = "complete",
        /// No handling: frames are taken unchanged.
        Trust = "trust",
    }
}

named! {
    /// Behaviour when the table of states is full.
    pub enum FullTable default GiveWay {
        /// Timeouts shrink beforehand, and states without two packets from each side make room for
        /// new ones.
        GiveWay = "give_way",
        /// New connections are dropped until a state ends.
        Drop = "drop",
    }
}

named! {
    /// Accepted sources of packets at an interface (RFC 3704).
    pub enum ReversePathKind default Off {
        /// Any.
        Off = "off",
        /// Sources with any route.
        Loose = "loose",
        /// Sources whose route leads back through the same interface.
        Strict = "strict",
    }
}

/// One interface.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct InterfaceSetup {
    /// Name; for sockets, of a device.
    pub name: String,
    /// Kind of its port.
    pub port: PortKind,
    /// VLAN number of this interface on `parent` (IEEE 802.1Q).
    pub vlan: Option<u16>,
    /// Name of the interface whose port carries its frames, with tags.
    pub parent: Option<String>,
    /// MAC; `None` for the device's own.
    pub mac: Option<String>,
    /// Largest IP packet in bytes; `None` for the device's value, or 1500.
    pub mtu: Option<u16>,
    /// Own addresses with prefix lengths.
    pub addresses: Vec<String>,
    /// Router advertisements on the link (RFC 4861), if any.
    pub advertise: Option<AdvertiseSetup>,
    /// Accepted sources of packets.
    pub reverse_path: ReversePathKind,
    /// Handling of checksums that were left to a device.
    pub checksums: ChecksumKind,
    /// Name of the corresponding interface of the router's host.
    pub host_device: Option<String>,
    /// With `pcap`: the input file.
    pub input: Option<String>,
    /// With `pcap`: the output file.
    pub output: Option<String>,
    /// Packet capture file for all packets, in and out.
    pub capture: Option<String>,
    /// File for a line of text about each packet.
    pub trace: Option<String>,
    /// Fault injection into received packets.
    pub faults: Option<Faults>,
    /// Fault injection into sent packets.
    pub sent_faults: Option<Faults>,
}

/// Router advertisements of an interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdvertiseSetup {
    /// Prefixes of the link; `None` for those of the interface's addresses.
    pub prefixes: Option<Vec<String>>,
    /// Maximum time between two advertisements in seconds.
    pub interval: u16,
    /// Seconds for which it is a default router; 0 if it is none. `None` for three intervals.
    pub lifetime: Option<u16>,
    /// Seconds for which prefixes are valid.
    pub valid: u32,
    /// Seconds for which addresses of the prefixes are preferred.
    pub preferred: u32,
    /// Include the interface's MTU.
    pub mtu: bool,
    /// Addresses are available by DHCPv6.
    pub managed: bool,
    /// Other configuration is available by DHCPv6.
    pub other: bool,
    /// Preference over other default routers.
    pub preference: PreferenceKind,
    /// Routes by this router: `PREFIX [high|medium|low]` (RFC 4191).
    pub routes: Vec<String>,
    /// IPv6 addresses of recursive DNS servers (RFC 8106).
    pub dns: Vec<String>,
    /// Domains to search (RFC 8106).
    pub search: Vec<String>,
    /// Prefix of a NAT64 (RFC 8781).
    pub nat64: Option<String>,
}

/// Preference of a default router among others (RFC 4191).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PreferenceKind {
    /// Preferred.
    High,
    /// Neither preferred nor avoided.
    #[default]
    Medium,
    /// Used if there is no other router.
    Low,
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
            preference: PreferenceKind::Medium,
            routes: Vec::new(),
            dns: Vec::new(),
            search: Vec::new(),
            nat64: None,
        }
    }
}

/// Link-layer address of a next hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NeighbourSetup {
    /// Address of the next hop.
    pub address: String,
    /// MAC address; `None` to resolve it by ARP or neighbour discovery, as for next hops that are
    /// not listed.
    #[serde(default)]
    pub mac: Option<String>,
    /// Name of its interface; `None` for the interface whose link prefix contains the address.
    #[serde(default)]
    pub interface: Option<String>,
}

/// Statistics of a router, once per second or on request, as a line of JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouterStats {
    /// Time of a monotonic clock in nanoseconds.
    pub at_ns: u64,
    /// Received packets: `forwarded + dropped + slow`.
    pub received: u64,
    /// Forwarded packets.
    pub forwarded: u64,
    /// Packets dropped.
    pub dropped: u64,
    /// Packets handed to the slow path.
    pub slow: u64,
    /// All non-zero counters by their stable names, in the order of the path, each with its class.
    pub counters: Vec<(String, u64, Class)>,
    /// Packets that the ports lost before receiving them, by interface.
    pub missed: Vec<(String, u64)>,
    /// Frames of each interface.
    pub interfaces: Vec<InterfaceCounts>,
    /// Packets received by each worker, including those of the slow path.
    pub workers: Vec<u64>,
    /// Facts about the running router: selections, memory, states.
    pub facts: Vec<(String, String)>,
    /// Parts of its files that the router leaves out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FileWarning>,
    /// Reason why a command failed; the router continues unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A part of a file that the router leaves out or cannot use.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FileWarning {
    /// The file, or the key of the configuration.
    pub file: String,
    /// Line, from 1; `None` for the file as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Counts of the parts, by kind.
    pub what: String,
}

impl fmt::Display for FileWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.what),
            None => write!(f, "{}: {}", self.file, self.what),
        }
    }
}

/// Frames of an interface, summed over all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterfaceCounts {
    /// Its name.
    pub name: String,
    /// Received frames.
    pub received: u64,
    /// Sent frames.
    pub sent: u64,
    /// Frames that could not be sent for lack of room.
    pub lost: u64,
    /// Frames lost before they were received.
    pub missed: u64,
}

impl RouterStats {
    /// Returns the counter of this name; 0 if there is none.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.iter().find(|(other, ..)| other == name).map_or(0, |&(_, count, _)| count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_overrides_only_its_own_values() {
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
