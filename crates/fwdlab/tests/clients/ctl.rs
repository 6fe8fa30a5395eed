//! `fwdlab route ctl` on a running router.

use super::net::Net;
use super::{STATEFUL, tcp, until_some};
use std::os::unix::fs::PermissionsExt;

/// Rows of an answer in which a field has this value.
fn rows(net: &Net, command: &str, field: &str, value: &str) -> Vec<serde_json::Value> {
    let answer = net.ctl_json(command);
    let rows = answer["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row[field] == value).cloned().collect()
}

#[test]
fn ctl_shows_and_changes_a_running_router() {
    let Some(mut net) = Net::new(&["ping"]) else { return };
    net.route("auto", STATEFUL);
    assert_eq!(tcp(&net, "10.2.0.2:5000", 10_000), 10_000);
    let mode = std::fs::metadata(net.file("socket")).expect("a socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Neighbours, with the MAC that the kernel of the host has.
    let link = net.run("b", &["cat", "/sys/class/net/b0/address"]).1;
    let neighbours = rows(&net, "show neighbours", "address", "10.2.0.2");
    assert_eq!(neighbours.len(), 1, "{neighbours:?}");
    assert_eq!(neighbours[0]["mac"], link.trim());
    assert_eq!(neighbours[0]["state"], "reachable");
    assert_eq!(neighbours[0]["interface"], "r1");
    assert!(rows(&net, "show neighbours r0", "interface", "r1").is_empty());
    // States and rules.
    let of_tcp =
        |words: &str| rows(&net, &format!("show states {words}"), "destination", "10.2.0.2");
    let state = of_tcp("from 10.1.0.0/24");
    assert_eq!(state.first().map(|state| &state["protocol"]), Some(&6.into()), "{state:?}");
    assert!(of_tcp("from 10.2.0.0/24").is_empty());
    let rules = net.ctl_json("show rules");
    let first = &rules["rows"][0];
    assert_eq!(first["rule"], "pass in proto tcp all flags S/SA keep state");
    // The first packet of the connection, and of attempts before the server listened.
    let packets = first["packets"].as_u64().expect("a count");
    assert!((1..100).contains(&packets), "{rules}");
    // Routes and interfaces.
    let routes = net.ctl_json("show route 10.2.0.2");
    assert_eq!(routes["rows"][0]["mac"], link.trim(), "{routes}");
    assert_eq!(net.ctl_json("show route 203.0.113.7")["via"], serde_json::Value::Null);
    let (_, text) = net.ctl("show interfaces");
    assert!(text.starts_with("interface  state  MAC") && text.contains("10.1.0.1/24"), "{text}");
    // Changes.
    let killed = net.ctl_json("kill states from 10.1.0.2 to 10.2.0.0/24");
    assert!(killed["killed"].as_u64().is_some_and(|count| count > 0), "{killed}");
    assert!(of_tcp("").is_empty());
    assert!(net.ctl("route add 203.0.113.0/24 via 10.2.0.2").0);
    assert_eq!(net.ctl_json("show route 203.0.113.7")["rows"][0]["next_hop"], "10.2.0.2");
    assert!(net.ctl("flush neighbours r1").0);
    assert!(rows(&net, "show neighbours r1", "state", "reachable").is_empty());
    // A further address of the router, which then answers.
    assert!(net.ctl("set r0 addresses 10.1.0.1/24 10.1.0.77/24 2001:db8:1::1/64 fe80::1/64").0);
    let ping = ["ping", "-c", "1", "-W", "1", "10.1.0.77"];
    until_some(|| net.run("a", &ping).0.then_some(())).expect("an answer");
    for (wrong, why) in [
        ("show neighbours r9", "there is no interface `r9`"),
        ("show states from x", "expected an address or a prefix"),
        ("kill states limit 3", "expected `kill states from PREFIX`"),
        ("flush neighbours 10.9.9.9", "no MAC of 10.9.9.9 is known"),
        ("set r0 addresses 10.1.0.1", "write it with its link's length"),
        ("route add 10.0.0.0/8 via 192.0.2.1", "no interface's link has the next hop"),
    ] {
        let (succeeded, text) = net.ctl(wrong);
        assert!(
            !succeeded && text.contains(why) && text.contains("next step: "),
            "{wrong}: {text}"
        );
    }
    net.end();
    let (succeeded, text) = net.ctl("show rules");
    assert!(!succeeded && text.contains("next step: fwdlab route FILE --socket"), "{text}");
}

/// The log of dropped packets, as tcpdump reads it.
#[test]
fn drop_log_names_reason_and_rule_of_blocked_packets() {
    const PACKETS: usize = 50;
    for path in ["fast", "full"] {
        let Some(mut net) = Net::new(&["tcpdump"]) else { return };
        let file = net.file("dropped.pcapng").display().to_string();
        let setup = format!(
            "path = \"{path}\"\nfirewall = \"\"\"\npass in inet6 all\n\
             block in proto udp to port 7 # echo\npass all\n\"\"\"\n\
             drop_log = {{ file = \"{file}\", pps = 20, reasons = [\"firewall\", \"reverse_path\"] }}\n"
        );
        net.route_with("auto", &setup, "reverse_path = \"strict\"");
        let send = move || {
            let socket = std::net::UdpSocket::bind("10.1.0.2:0").expect("a socket");
            for port in [8, 7] {
                (0..PACKETS).for_each(|_| drop(socket.send_to(&[9; 300], ("10.2.0.2", port))));
            }
        };
        net.on("a", send).join().expect("packets");
        let (stats, _) = net.end();
        assert_eq!(stats.count("firewall"), PACKETS as u64, "{path}: {stats:?}");
        let fact = |name: &str| {
            let found = stats.facts.iter().find(|(known, _)| known == name);
            found.and_then(|(_, value)| value.parse::<usize>().ok()).expect("a number")
        };
        let logged = fact("dropped packets logged");
        assert_eq!(logged + fact("dropped packets not logged"), PACKETS);
        assert!((20..PACKETS).contains(&logged), "{path}: {logged}");
        // Whole headers of each logged packet, and its original length.
        let (_, read) = net.run("a", &["tcpdump", "-nr", &file]);
        let is_packet = |line: &&str| line.contains("> 10.2.0.2.7: UDP, length 300");
        assert_eq!(read.lines().filter(is_packet).count(), logged, "{path}: {read}");
        let bytes = std::fs::read(&file).expect("a log");
        assert!(bytes.len() < logged * 250 + 300, "{path}: {}", bytes.len());
        let text = String::from_utf8_lossy(&bytes);
        let comment = "firewall: rule 2: block in proto udp to port 7";
        assert_eq!(text.matches(comment).count(), logged, "{path}");
        assert!(text.contains("r0") && text.contains("r1"));
        let mode = std::fs::metadata(&file).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
