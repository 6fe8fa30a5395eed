//! The set-up of both forwarders: as commands for the kernel, and as a file for `fwdlab route`.
//!
//! ```text
//! near: SENDER, OTHER --- 198.18.0.1/24, 2001:2::1/64, fe80::1          MTU 1500
//! far:  RECEIVER ------- 198.19.0.1/24, 2001:2:0:8000::1/64, fe80::2   MTU 1280
//! ```
//!
//! Addresses behind SENDER are near, addresses behind RECEIVER far, as in the benchmark. OTHER is a
//! second router on the near link, and also a host there.

/// MAC of the sender of all frames.
pub(crate) const SENDER: [u8; 6] = [2, 0, 0, 0, 0, 0x10];
/// MACs of the forwarder under test.
pub(crate) const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
pub(crate) const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// Commands that create two namespaces: `E` with both ends, g0 and r0, and `D` in which the kernel
/// forwards between d0 and d1.
///
/// - Nothing is limited: neither ICMP nor ICMPv6 (`ratelimit`, `ratemask`, `msgs`).
/// - Nothing is resolved: neighbours and link-local addresses are fixed.
/// - `rp_filter` is off: the router has no such filter (RFC 3704).
/// - `shared_media` is off, so that redirects go to hosts of the same subnet only (RFC
///   1812 section 5.2.7.2).
/// - `arp_ignore` is 1, so that requests for addresses of other links are not answered.
/// - `auto_flowlabels` is off: labels are random numbers (RFC 6437).
pub(crate) const KERNEL: &str = "
ip netns add $E
ip netns add $D
ip netns exec $E sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
ip netns exec $D sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
for C in all default; do
    ip netns exec $D sysctl -qw net.ipv4.conf.$C.rp_filter=0 net.ipv4.conf.$C.send_redirects=1 \
        net.ipv4.conf.$C.shared_media=0 net.ipv4.conf.$C.arp_ignore=1 \
        net.ipv4.conf.$C.accept_source_route=0 net.ipv6.conf.$C.accept_dad=0 \
        net.ipv6.conf.$C.accept_ra=0
done
ip netns exec $D sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv4.icmp_ratemask=0 \
    net.ipv4.icmp_echo_ignore_broadcasts=1 \
    net.ipv6.icmp.ratelimit=0 net.ipv6.icmp.ratemask= net.ipv6.auto_flowlabels=0
# Of older kernels for all namespaces: then they stay as they are.
ip netns exec $D sysctl -qw net.ipv4.icmp_msgs_per_sec=1000000 2>/dev/null || true
ip netns exec $D sysctl -qw net.ipv4.icmp_msgs_burst=1000000 2>/dev/null || true
ip link add g0 address 02:00:00:00:00:10 mtu 1500 netns $E type veth \
    peer name d0 address 02:00:00:00:00:01 mtu 1500 netns $D
ip link add r0 address 02:00:00:00:00:20 mtu 1500 netns $E type veth \
    peer name d1 address 02:00:00:00:00:02 mtu 1280 netns $D
for I in g0 r0; do ip -n $E link set $I up; done
for I in d0 d1; do ip -n $D link set $I addrgenmode none up; done
A='ip -n '$D' address add'
$A 198.18.0.1/24 dev d0
$A 198.19.0.1/24 dev d1
$A 2001:2::1/64 dev d0 nodad
$A 2001:2:0:8000::1/64 dev d1 nodad
$A fe80::1/64 dev d0 nodad
$A fe80::2/64 dev d1 nodad
N='ip -n '$D' neighbour replace nud permanent'
for H in 198.18.0.2 198.18.0.7 2001:2::2 2001:2::7 fe80::7; do
    $N $H lladdr 02:00:00:00:00:10 dev d0
done
for H in 198.18.0.8 198.18.0.9 2001:2::8 fe80::9; do $N $H lladdr 02:00:00:00:00:30 dev d0; done
for H in 198.19.0.0 198.19.0.2 2001:2:0:8000::2; do $N $H lladdr 02:00:00:00:00:20 dev d1; done
R='ip -n '$D' route add'
$R 198.18.0.0/16 via 198.18.0.2
$R 198.19.0.0/16 via 198.19.0.2
$R 192.0.2.0/24 via 198.18.0.9
$R 240.0.0.0/4 via 198.19.0.2
$R 169.254.0.0/16 via 198.19.0.2
$R 2001:2::/49 via 2001:2::2
$R 2001:2:0:8000::/49 via 2001:2:0:8000::2
$R 2001:db8::/32 via fe80::9 dev d0
";

/// The same for `fwdlab route`, between files. The rate limit of errors is too high to take effect.
pub(crate) const ROUTER: &str = r#"
path = "$PATH"
firewall = """$RULES"""
icmp_redirect = true
icmp_errors_pps = 1_000_000_000
routes = [
    "198.18.0.0/16 via 198.18.0.2",
    "198.19.0.0/16 via 198.19.0.2",
    "198.18.0.7/32 via 198.18.0.7",
    "198.18.0.8/32 via 198.18.0.8",
    "192.0.2.0/24 via 198.18.0.9",
    "240.0.0.0/4 via 198.19.0.2",
    "169.254.0.0/16 via 198.19.0.2",
    "2001:2::/49 via 2001:2::2",
    "2001:2:0:8000::/49 via 2001:2:0:8000::2",
    "2001:2::7/128 via 2001:2::7",
    "2001:2::8/128 via 2001:2::8",
    "2001:db8::/32 via fe80::9",
]

[[interface]]
name = "near"
port = "pcap"
mac = "02:00:00:00:00:01"
mtu = 1500
addresses = ["198.18.0.1/24", "2001:2::1/64", "fe80::1/64"]
input = "sent.pcap"
output = "near.pcap"

[[interface]]
name = "far"
port = "pcap"
mac = "02:00:00:00:00:02"
mtu = 1280
addresses = ["198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::2/64"]
input = "sent-far.pcap"
output = "far.pcap"

[[neighbour]]
address = "198.18.0.2"
mac = "02:00:00:00:00:10"
[[neighbour]]
address = "198.18.0.7"
mac = "02:00:00:00:00:10"
[[neighbour]]
address = "2001:2::2"
mac = "02:00:00:00:00:10"
[[neighbour]]
address = "2001:2::7"
mac = "02:00:00:00:00:10"
[[neighbour]]
address = "198.18.0.8"
mac = "02:00:00:00:00:30"
[[neighbour]]
address = "198.18.0.9"
mac = "02:00:00:00:00:30"
[[neighbour]]
address = "2001:2::8"
mac = "02:00:00:00:00:30"
[[neighbour]]
address = "fe80::9"
mac = "02:00:00:00:00:30"
interface = "near"
[[neighbour]]
address = "198.19.0.2"
mac = "02:00:00:00:00:20"
[[neighbour]]
address = "2001:2:0:8000::2"
mac = "02:00:00:00:00:20"
"#;

/// The same for `fwdlab route` in the kernel's place, between d0 and d1.
pub(crate) fn routed(path: &str) -> String {
    let is_of_files = |line: &&str| line.starts_with("input") || line.starts_with("output");
    let lines = ROUTER.lines().filter(|line| !is_of_files(line));
    let text = lines.fold(String::new(), |text, line| text + line + "\n");
    text.replace("$PATH", path)
        .replace("$RULES", "")
        .replace("port = \"pcap\"", "port = \"xsk\"\nchecksums = \"trust\"")
        .replace("\"near\"", "\"d0\"")
        .replace("\"far\"", "\"d1\"")
}
