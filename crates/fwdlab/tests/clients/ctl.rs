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
