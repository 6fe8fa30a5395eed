//! Unusual links: long frames, VLANs, router advertisements, links that go and come back.

use super::net::Net;
use super::vlan::Vlan;
use super::{STATEFUL, tcp, udp};
use fwdlab_netio::xsk::XskProgram;
use std::time::{Duration, Instant};

pub(crate) fn must(net: &Net, host: &str, command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (succeeded, output) = net.run(host, &words);
    assert!(succeeded, "{host}: {command}: {output}");
}

/// Output of `ping` with these arguments and a few requests.
fn ping(net: &Net, words: &str) -> String {
    let command = format!("ping -n -c 2 -i 1 -W 3 {words}");
    let words: Vec<&str> = command.split_whitespace().collect();
    net.run("a", &words).1
}

fn set_mtu(net: &Net, links: &[(&str, &str)], mtu: u16) {
    for (host, device) in links {
        must(net, host, &format!("ip link set {device} mtu {mtu}"));
    }
}

#[test]
fn long_frames_pass_or_are_fragmented_or_reported() {
    const NEAR: [(&str, &str); 2] = [("a", "a0"), ("r", "r0")];
    const FAR: [(&str, &str); 2] = [("b", "b0"), ("r", "r1")];
    const TO: [&str; 2] = ["10.2.0.2", "2001:db8:2::2"];
    let Some(mut net) = Net::new(&["ping"]) else { return };
    set_mtu(&net, &NEAR, 9000);
    set_mtu(&net, &FAR, 9000);
    net.route("auto", STATEFUL);
    for to in TO {
        let output = ping(&net, &format!("-s 8900 -M do {to}"));
        assert!(output.contains(" 2 received"), "{output}");
        assert_eq!(
            tcp(&net, &format!("[{to}]:5000").replace("[10.2.0.2]", "10.2.0.2"), 3_000_000),
            3_000_000
        );
        assert_eq!(
            udp(&net, &format!("[{to}]:5001").replace("[10.2.0.2]", "10.2.0.2"), 20_000),
            20_000
        );
    }
    // The router itself also answers them.
    for to in ["10.1.0.1", "2001:db8:1::1"] {
        let output = ping(&net, &format!("-s 8900 -M do {to}"));
        assert!(output.contains(" 2 received"), "{output}");
    }
    let (stats, output) = net.end();
    for reason in ["firewall_stray", "firewall_unreadable", "firewall_fragment"] {
        assert_eq!(stats.count(reason), 0, "{stats:?}");
    }
    assert!(
        output.contains("r0: AF_PACKET in place of AF_XDP (AF_XDP has packets of up to"),
        "{output}"
    );
    assert!(stats.missed.iter().all(|(_, frames)| *frames == 0), "{stats:?}");

    // One link now has the usual MTU.
    set_mtu(&net, &FAR, 1500);
    for path in ["fast", "full"] {
        net.route("auto", &format!("path = \"{path}\"\n"));
        for host in ["a", "b"] {
            must(&net, host, "ip route flush cache");
            must(&net, host, "ip -6 route flush cache");
        }
        let output = ping(&net, "-s 8000 -M do 2001:db8:2::2");
        assert!(output.contains("mtu=1500") || output.contains("mtu: 1500"), "{path}: {output}");
        // After a notification the sender fragments by itself; the router fragments IPv4 packets
        // that allow it.
        for to in ["-M dont 10.2.0.2", "-M want 2001:db8:2::2"] {
            let output = ping(&net, &format!("-s 8000 {to}"));
            assert!(output.contains(" 2 received"), "{path}: {output}");
        }
        let output = ping(&net, "-s 8000 -M do 10.2.0.2");
        assert!(output.contains("mtu = 1500") || output.contains("mtu=1500"), "{path}: {output}");
        let (stats, _) = net.end();
        assert!(stats.count("fragments_sent") >= 10, "{path}: {stats:?}");
        let notified = stats.count("slow_too_big") + stats.count("waited_told");
        assert!(notified >= 2, "{path}: {stats:?}");
    }
}

/// Both hosts have VLANs of their kernels on their links.
#[test]
fn vlans_are_separate_links() {
    let Some(mut net) = Net::new(&["ping"]) else { return };
    // One kernel leaves tags to the device, as it does over a veth; the other one writes them.
    must(&net, "b", "ethtool -K b0 txvlan off");
    let mut vlans = Vec::new();
    for (host, vlan) in [("a", 100), ("b", 200), ("a", 999)] {
        let network = vlan % 250;
        vlans.push(Vlan::make(&net, host, &format!("{host}0"), vlan));
        must(&net, host, &format!("ip addr add 10.{network}.0.2/24 dev v{vlan}"));
        must(&net, host, &format!("ip addr add 2001:db8:{vlan}::2/64 dev v{vlan} nodad"));
    }
    // From one host's VLAN to the other host's VLAN, and from there to the plain link.
    for (host, own, other) in [("a", 100, "200"), ("b", 200, "100")] {
        must(&net, host, &format!("ip route add 10.{other}.0.0/24 via 10.{own}.0.1"));
        let route = format!("ip route add 2001:db8:{other}::/64 via 2001:db8:{own}::1");
        must(&net, host, &route);
    }
    must(&net, "a", "ip route add 10.2.0.0/24 via 10.100.0.1");
    must(&net, "a", "ip route add 2001:db8:2::/64 via 2001:db8:100::1");
    let vlan = |number: u16, parent: &str| {
        format!(
            "[[interface]]\nname = \"{parent}.{number}\"\nvlan = {number}\nparent = \"{parent}\"\n\
             addresses = [\"10.{number}.0.1/24\", \"2001:db8:{number}::1/64\", \"fe80::1/64\"]\n"
        )
    };
    net.route("auto", &[STATEFUL, &vlan(100, "r0"), &vlan(200, "r1")].concat());
    for to in ["10.200.0.2", "2001:db8:200::2", "10.2.0.2", "2001:db8:2::2", "10.100.0.1"] {
        let output = ping(&net, to);
        assert!(output.contains(" 2 received"), "{output}");
        // The maximum size of the link, with a tag.
        let header = if to.contains(':') { 48 } else { 28 };
        let output = ping(&net, &format!("-s {} -M do {to}", 1500 - header));
        assert!(output.contains(" 2 received"), "{output}");
    }
    for to in ["10.200.0.2:5000", "[2001:db8:200::2]:5000"] {
        assert_eq!(tcp(&net, to, 1_000_000), 1_000_000);
    }
    assert!(!ping(&net, "-c 1 -W 1 10.249.0.1").contains(" 1 received"));
    let (stats, output) = net.end();
    assert!(stats.count("vlan_unknown") > 0, "{stats:?}");
    for reason in ["firewall_stray", "ipv4_source", "ether_type"] {
        assert_eq!(stats.count(reason), 0, "{stats:?}");
    }
    // Each VLAN has its own counters.
    let count = |name: &str| {
        let of = stats.interfaces.iter().find(|of| of.name == name).expect("its counters");
        (of.received, of.sent)
    };
    for name in ["r0.100", "r1.200"] {
        let (received, sent) = count(name);
        assert!(received > 10 && sent > 10, "{name}: {received} {sent}");
    }
    let total: u64 = stats.interfaces.iter().map(|of| of.received).sum();
    assert_eq!(total, stats.received, "{stats:?}");
    assert!(output.contains("r0: AF_PACKET in place of AF_XDP (VLANs are on it"), "{output}");
}

/// Waits some seconds until the output fulfils `until`; fails with the output.
fn wait(net: &Net, host: &str, command: &str, until: impl Fn(&str) -> bool) -> Duration {
    let words: Vec<&str> = command.split_whitespace().collect();
    let begin = Instant::now();
    loop {
        let (_, output) = net.run(host, &words);
        if until(&output) {
            return begin.elapsed();
        }
        assert!(begin.elapsed() < Duration::from_secs(15), "{command}: {output}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A kernel whose only configuration is advertised.
#[test]
fn host_is_configured_by_advertisements_alone() {
    let Some(mut net) = Net::new(&["ping"]) else { return };
    let forget = "ip -6 addr flush dev a0 scope global; ip -6 route del default; \
                  sysctl -qw net.ipv6.conf.a0.accept_ra=1 net.ipv6.conf.a0.autoconf=1 \
                  net.ipv6.conf.a0.forwarding=0";
    let (succeeded, output) = net.run("a", &["sh", "-c", forget]);
    assert!(succeeded, "{output}");
    let settings = "mtu = 1400\nadvertise = { interval = 600, valid = 5000, preferred = 3000 }";
    net.route_with("auto", "", settings);
    // The kernel solicits when its link comes up.
    must(&net, "a", "ip link set a0 down");
    must(&net, "a", "ip link set a0 up");
    must(&net, "a", "ip route replace default via 10.1.0.1");
    wait(&net, "a", "ip -6 addr show dev a0 scope global", |output| {
        output.contains("2001:db8:1:0:")
            && output.contains("dynamic")
            && !output.contains("tentative")
    });
    let (_, addresses) =
        net.run("a", &["ip", "-6", "addr", "show", "dev", "a0", "scope", "global"]);
    let of = |word: &str| {
        let after = addresses.split(word).nth(1).and_then(|rest| rest.split("sec").next());
        after.and_then(|text| text.trim().parse::<u32>().ok()).expect("a lifetime")
    };
    assert!((4980..=5000).contains(&of("valid_lft")), "{addresses}");
    assert!((2980..=3000).contains(&of("preferred_lft")), "{addresses}");
    let (_, route) = net.run("a", &["ip", "-6", "route", "show", "default"]);
    assert!(route.contains("via fe80::1 dev a0 proto ra"), "{route}");
    let (_, mtu) = net.run("a", &["cat", "/proc/sys/net/ipv6/conf/a0/mtu"]);
    assert_eq!(mtu.trim(), "1400");
    let output = ping(&net, "2001:db8:2::2");
    assert!(output.contains(" 2 received"), "{output}");
    // Repeated solicitations get no more than one advertisement in three seconds.
    for _ in 0..5 {
        must(&net, "a", "ip link set a0 down");
        must(&net, "a", "ip link set a0 up");
        std::thread::sleep(Duration::from_millis(200));
    }
    let (stats, _) = net.end();
    let (solicited, sent) = (stats.count("solicited"), stats.count("advertisements_sent"));
    assert!(solicited >= 1 && (3..=8).contains(&sent), "{solicited} {sent} {stats:?}");
    // A router that ends sends a final advertisement.
    wait(&net, "a", "ip -6 route show default", |output| !output.contains("fe80::1"));
}

/// The kernel takes the route, tcpdump reads the options that the kernel leaves to programs.
#[test]
fn options_of_advertisements_reach_kernel_and_tcpdump() {
    let Some(mut net) = Net::new(&["tcpdump"]) else { return };
    let accept = "sysctl -qw net.ipv6.conf.a0.accept_ra=1 net.ipv6.conf.a0.forwarding=0 \
                  net.ipv6.conf.a0.accept_ra_rtr_pref=1 \
                  net.ipv6.conf.a0.accept_ra_rt_info_max_plen=64";
    must(&net, "a", accept);
    let settings = "advertise = { preference = \"high\", routes = [\"2001:db8:77::/48 low\"], \
                    dns = [\"2001:db8:1::53\", \"fe80::1\"], search = [\"lab.example\", \"example\"], \
                    nat64 = \"64:ff9b::/96\" }";
    net.route_with("auto", "", settings);
    let capture = "ip link set a0 down; ip link set a0 up; \
                   timeout 60 tcpdump -nvvxi a0 -c 1 'icmp6 and ip6[40] == 134' 2>&1";
    let (_, seen) = net.run("a", &["sh", "-c", capture]);
    for option in [
        "pref high",
        "route info option (24), length 16 (2):  2001:db8:77::/48, pref=low, lifetime=1800s",
        "rdnss option (25), length 40 (5):  lifetime 1800s, addr: 2001:db8:1::53 addr: fe80::1",
        "dnssl option (31), length 32 (4):  lifetime 1800s, domain(s): lab.example. example.",
    ] {
        assert!(seen.contains(option), "no {option} in {seen}");
    }
    // tcpdump 4.99 does not know the option: type 38, 16 bytes, 225 units of 8 s, 96 bits.
    let bytes: String =
        seen.lines().filter_map(|line| line.split_once(":  ")).map(|it| it.1).collect();
    let bytes: String = bytes.split_whitespace().collect();
    assert!(bytes.contains("260207080064ff9b0000000000000000"), "{seen}");
    let route = |output: &str| {
        output.contains("via fe80::1 dev a0 proto ra") && output.contains("pref low")
    };
    wait(&net, "a", "ip -6 route show 2001:db8:77::/48", route);
    let (_, default) = net.run("a", &["ip", "-6", "route", "show", "default", "proto", "ra"]);
    assert!(default.contains("pref high"), "{default}");
    // A router that ends takes its routes back.
    net.end();
    wait(&net, "a", "ip -6 route show 2001:db8:77::/48", |output| output.trim().is_empty());
}

/// The link between the router and a host is deleted and made again, and goes down and up. Once
/// another program is on the new interface, which the router needs for AF_XDP.
#[test]
fn lost_links_are_used_again_after_their_return() {
    const FAST: [&str; 2] = ["auto", ""];
    for [port, setup] in [FAST, ["auto", "path = \"xdp\"\n"], ["packet", "workers = 2\n"]] {
        let Some(mut net) = Net::new(&["ping"]) else { return };
        net.route(port, setup);
        let context = format!("{port} {setup}");
        let ping_both = |net: &Net| {
            for to in ["10.2.0.2", "2001:db8:2::2"] {
                let output = ping(net, to);
                assert!(
                    output.contains(" 2 received") && !output.contains("DUP"),
                    "{context}: {output}"
                );
            }
        };
        ping_both(&net);
        must(&net, "r", "ip link set r1 down");
        assert!(ping(&net, "10.1.0.1").contains(" 2 received"), "{context}");
        must(&net, "r", "ip link set r1 up");
        wait(&net, "a", "ping -n -c 1 -W 1 10.2.0.2", |output| output.contains(" 1 received"));
        ping_both(&net);
        for has_program in [false, true, false] {
            must(&net, "b", "ip link del b0");
            // While packets are sent there.
            let output = ping(&net, "10.2.0.2");
            assert!(output.contains(" 0 received"), "{context}: {output}");
            assert!(ping(&net, "10.1.0.1").contains(" 2 received"), "{context}");
            let run = |script: &str| {
                let (succeeded, output) = net.run("b", &["sh", "-ec", script]);
                assert!(succeeded, "{output}");
            };
            run(&second_link(&net));
            let program = has_program.then(|| {
                let attach = || XskProgram::attach("new", 1, None).expect("a program");
                net.on("r", attach).join().expect("root")
            });
            run(&complete_link(&net));
            if let Some(program) = program {
                std::thread::sleep(Duration::from_millis(500));
                drop(program);
            }
            let outage = wait(&net, "a", "ping -n -c 1 -W 1 10.2.0.2", |output| {
                output.contains(" 1 received")
            });
            eprintln!("{context}: packets pass {outage:?} after the link was made");
            ping_both(&net);
            for to in ["10.2.0.2:5000", "[2001:db8:2::2]:5000"] {
                assert_eq!(tcp(&net, to, 1_000_000), 1_000_000, "{context}");
            }
        }
        let (stats, output) = net.end();
        assert_eq!(output.matches("interface r1 is gone").count(), 3, "{context}: {output}");
        let count = |sockets: &str| {
            output.matches(&format!("interface r1 is there again, through {sockets}")).count()
        };
        let instead = "AF_PACKET in place of AF_XDP (attaching a BPF program: ";
        let counts = [count("AF_XDP\n"), count(instead), count("AF_PACKET\n")];
        let expected = if port == "auto" { [2, 1, 0] } else { [0, 0, 3] };
        assert_eq!(counts, expected, "{context}: {output}");
        assert!(!stats.facts.iter().any(|(name, _)| name == "gone"), "{context}: {stats:?}");
    }
}

/// Each of two routers would forward every packet.
#[test]
fn second_router_on_an_interface_is_refused() {
    let Some(mut net) = Net::new(&["ping"]) else { return };
    net.route("packet", "");
    let setup = net.file("router.toml");
    let program = [env!("CARGO_BIN_EXE_fwdlab"), "route", &setup.to_string_lossy()];
    let (succeeded, output) = net.run("r", &program);
    assert!(!succeeded && output.contains("r0: another router uses it"), "{output}");
    let output = ping(&net, "10.2.0.2");
    assert!(output.contains(" 2 received") && !output.contains("DUP"), "{output}");
    // The lock ends with its holder.
    net.end();
    net.route("packet", "");
    net.end();
}

/// A shell script that makes the link of `b` within its namespace, where the router's end is still
/// called `new`; the MACs differ.
fn second_link(net: &Net) -> String {
    let router = net.space("r");
    format!(
        "ip link add b0 type veth peer name new netns {router}
         ip netns exec {router} sysctl -qw net.ipv6.conf.new.disable_ipv6=1
         ip address add 10.2.0.2/24 dev b0
         ip address add 2001:db8:2::2/64 dev b0 nodad
         ip link set b0 up"
    )
}

/// A shell script that completes it: the router's end gets its name.
fn complete_link(net: &Net) -> String {
    let router = net.space("r");
    format!(
        "ip -n {router} link set new name r1
         ip -n {router} link set r1 up
         ip route add default via 10.2.0.1
         ip route add default via 2001:db8:2::1"
    )
}
