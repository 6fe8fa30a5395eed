//! Links that are not as usual: long frames.

use super::net::Net;
use super::{STATEFUL, tcp, udp};

fn must(net: &Net, host: &str, command: &str) {
    let words: Vec<&str> = command.split_whitespace().collect();
    let (well, said) = net.run(host, &words);
    assert!(well, "{host}: {command}: {said}");
}

/// What `ping` says to some requests with these words.
fn ping(net: &Net, words: &str) -> String {
    let command = format!("ping -n -c 2 -i 0.2 -W 3 {words}");
    let words: Vec<&str> = command.split_whitespace().collect();
    net.run("a", &words).1
}

/// What a stack cuts in hardware comes whole over a veth.
fn cut_in_software(net: &Net, host: &str, device: &str) {
    must(net, host, &format!("ethtool -K {device} tso off gso off"));
}

fn set_mtu(net: &Net, links: &[(&str, &str)], mtu: u16) {
    for (host, device) in links {
        must(net, host, &format!("ip link set {device} mtu {mtu}"));
    }
}

#[test]
fn long_frames_pass_and_are_cut_or_told_of() {
    const NEAR: [(&str, &str); 2] = [("a", "a0"), ("r", "r0")];
    const FAR: [(&str, &str); 2] = [("b", "b0"), ("r", "r1")];
    const TO: [&str; 2] = ["10.2.0.2", "2001:db8:2::2"];
    let Some(mut net) = Net::new(&["ping"]) else { return };
    for (host, device) in [NEAR[0], FAR[0]] {
        cut_in_software(&net, host, device);
    }
    set_mtu(&net, &NEAR, 9000);
    set_mtu(&net, &FAR, 9000);
    net.route("auto", STATEFUL);
    for to in TO {
        let said = ping(&net, &format!("-s 8900 -M do {to}"));
        assert!(said.contains(" 2 received"), "{said}");
        assert_eq!(
            tcp(&net, &format!("[{to}]:5000").replace("[10.2.0.2]", "10.2.0.2"), 3_000_000),
            3_000_000
        );
        assert_eq!(
            udp(&net, &format!("[{to}]:5001").replace("[10.2.0.2]", "10.2.0.2"), 20_000),
            20_000
        );
    }
    // The router itself answers them as well.
    for to in ["10.1.0.1", "2001:db8:1::1"] {
        let said = ping(&net, &format!("-s 8900 -M do {to}"));
        assert!(said.contains(" 2 received"), "{said}");
    }
    let (stats, said) = net.end();
    for reason in ["firewall_stray", "firewall_unreadable", "firewall_fragment"] {
        assert_eq!(stats.count(reason), 0, "{stats:?}");
    }
    assert!(
        said.contains("r0: AF_PACKET in place of AF_XDP (AF_XDP has packets of up to"),
        "{said}"
    );
    assert!(stats.missed.iter().all(|(_, frames)| *frames == 0), "{stats:?}");

    // One link is an ordinary one now.
    set_mtu(&net, &FAR, 1500);
    for path in ["fast", "full"] {
        net.route("auto", &format!("path = \"{path}\"\n"));
        for host in ["a", "b"] {
            must(&net, host, "ip route flush cache");
            must(&net, host, "ip -6 route flush cache");
        }
        let said = ping(&net, "-s 8000 -M do 2001:db8:2::2");
        assert!(said.contains("mtu=1500") || said.contains("mtu: 1500"), "{path}: {said}");
        // Once told, the sender cuts by itself; of IPv4 the router cuts what may be cut.
        for to in ["-M dont 10.2.0.2", "-M want 2001:db8:2::2"] {
            let said = ping(&net, &format!("-s 8000 {to}"));
            assert!(said.contains(" 2 received"), "{path}: {said}");
        }
        let said = ping(&net, "-s 8000 -M do 10.2.0.2");
        assert!(said.contains("mtu = 1500") || said.contains("mtu=1500"), "{path}: {said}");
        let (stats, _) = net.end();
        assert!(stats.count("fragments_sent") >= 10, "{path}: {stats:?}");
        let told = stats.count("slow_too_big") + stats.count("waited_told");
        assert!(told >= 2, "{path}: {stats:?}");
    }
}
