//! Names that users write for features that fwdlab expresses differently, or cannot measure.

/// Names, and the help for them.
const ELSEWHERE: &[(&[&str], &str)] = &[
    (
        &["masquerade", "snat", "source_nat", "napt", "pat", "nat44", "nat66"],
        "write nat = \"source\" in [dut] or in the level, beside the `firewall` or `setup` that \
         translates; `fwdlab new nat` writes an example",
    ),
    (
        &["dnat", "destination_nat", "port_forward", "port_forwarding", "rdr", "virtual_server"],
        "write nat = \"destination\" in [dut] or in the level, next to the `firewall` or `setup` \
         that translates; `fwdlab new dnat` writes an example",
    ),
    (
        &["nat64", "nat46", "nptv6", "npt"],
        "fwdlab can't measure this translation; it measures devices that replace sources by their \
         own address, or destinations: nat = \"source\", \"destination\" or \"both\" in [dut]",
    ),
    (
        &["conntrack", "stateful", "states", "connection_tracking"],
        "write firewall = \"stateful\"; connections per second are kind = \"establishment-rate\" \
         in [method]",
    ),
    (
        &["vlan", "vlans", "vlan_id", "vlan_tag", "tag", "dot1q", "qinq"],
        "fwdlab sends and expects untagged frames, so it can't measure a trunk; VLANs within the \
         device are made by `setup`: `fwdlab new vlan` writes an example",
    ),
    (
        &["rules", "ruleset", "rules_file", "nft", "nftables", "iptables", "pf", "ipfw"],
        "write firewall = \"FILE\" for a ruleset of your own, or \"rules:100\" for a hundred rules; \
         `fwdlab new rules` writes an example",
    ),
    (
        &["tcp", "quic", "tunnel", "gre", "vxlan", "wireguard", "ipsec", "mpls", "jumbo", "mtu"],
        "fwdlab can't measure this: its packets are UDP in plain Ethernet frames of 64 to 1518 \
         bytes, and must arrive unchanged",
    ),
    (
        &["bridge", "switch", "forwarder", "program"],
        "write kind = \"command\" in [dut] and `start`, which starts it, with rewrites = \"none\" \
         for a bridge; `fwdlab new forwarder` writes an example",
    ),
    (
        &["throughput", "ndr", "pdr", "search", "mlrsearch"],
        "write kind = \"mlrsearch\" in [method]; `fwdlab new throughput` writes an example",
    ),
    (
        &["latency", "delay"],
        "write kind = \"latency\" in [method]; `fwdlab new latency` writes an example",
    ),
    (
        &["command", "commands", "cmd", "script", "exec"],
        "write setup = [\"COMMAND\"] in [dut] or in the level; `fwdlab new commands` writes an \
         example",
    ),
    (&["packet_size", "pkt_size", "size"], "write frame_size in [traffic]"),
    (
        &["pps", "bandwidth", "bitrate", "load"],
        "write rate = \"1Mpps\" or \"1Gbit/s\" in [traffic]",
    ),
    (&["runs", "repeat", "repetitions", "iterations"], "write blocks in [design]"),
];

/// Returns the help for a name that is not a key of an experiment file.
pub(super) fn help(name: &str) -> Option<&'static str> {
    let name = name.to_lowercase().replace('-', "_");
    let found = ELSEWHERE.iter().find(|(names, _)| names.contains(&name.as_str()));
    found.map(|(_, help)| *help)
}
