//! Routes of the kernel that are easily taken for other routes, with the kernel as the oracle.

use super::frr::Frr;

fn ip(frr: &Frr, host: &str, words: &str) -> String {
    let output = frr.ip(host, &words.split(' ').collect::<Vec<_>>());
    assert!(output.status.success(), "{host}: ip {words}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn fact(frr: &Frr, name: &str) -> String {
    let stats = frr.ctl_json("show counters");
    let facts = stats["facts"].as_array().expect("facts").iter();
    let mut of_name = facts.filter(|fact| fact[0] == name).filter_map(|fact| fact[1].as_str());
    of_name.next().unwrap_or_default().to_owned()
}

/// The next hop by which the kernel forwards a packet that comes in from `a`, and true if it
/// encapsulates the packet; `None` if it does not forward it.
fn kernel(frr: &Frr, to: &str) -> Option<(String, bool)> {
    let from = if to.contains(':') { "2001:db8:1::2" } else { "10.1.0.2" };
    let output = frr.ip("h", &["route", "get", to, "from", from, "iif", "r0"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() || text.starts_with("unreachable") {
        return None;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let via = words.iter().position(|word| *word == "via").and_then(|at| words.get(at + 1));
    Some((via.map_or(to, |via| via).to_owned(), text.contains("encap")))
}

/// The next hops of the router.
fn router(frr: &Frr, to: &str) -> Vec<String> {
    let answer = frr.ctl_json(&format!("show route {to}"));
    let rows = answer["rows"].as_array().expect("rows").iter();
    rows.filter_map(|row| row["next_hop"].as_str()).map(str::to_owned).collect()
}

const ROUTES: &str = "\
nexthop add id 5 via 10.3.0.2 dev r2
nexthop add id 6 via 10.2.0.2 dev r1
nexthop add id 7 group 5/6,3
nexthop add id 8 via 2001:db8:3::2 dev r2
nexthop add id 9 encap ip id 5 dst 10.9.9.9 via 10.3.0.2 dev r2
nexthop add id 10 blackhole
route add default via 10.2.0.2
-6 route add default via 2001:db8:2::2
route add 10.50.0.0/16 nhid 5
route add 10.51.0.0/16 nhid 7
-6 route add 2001:db8:50::/48 nhid 8
route add 10.52.0.0/16 nhid 9
route add 10.53.0.0/16 nhid 10
route add throw 10.54.0.0/16
route add 10.55.0.0/16 encap ip id 5 dst 10.9.9.9 via 10.3.0.2 dev r2
route add 10.56.0.0/16 nexthop encap ip id 5 dst 10.9.9.9 via 10.3.0.2 dev r2 nexthop via 10.2.0.2 dev r1
-6 route add 2001:db8:56::/48 encap seg6 mode encap segs 2001:db8:9::1 dev r2
-6 route add default from fd77::/64 via 2001:db8:3::2
-6 route add 2001:db8:57::/48 from fd77::/64 via 2001:db8:3::2
route add 10.58.0.0/16 tos 0x10 via 10.3.0.2
route add 10.59.0.0/16 mtu lock 1300 via 10.2.0.2
route add 10.60.0.0/16 mtu 1350 via 10.2.0.2
-6 route add 2001:db8:59::/48 mtu lock 1400 via 2001:db8:2::2
-6 route add 2001:db8:60::/48 mtu 1400 via 2001:db8:2::2
route add 10.61.0.0/16 nexthop dev r1 nexthop via 10.3.0.2";

const ADDRESSES: [&str; 18] = [
    "10.50.1.1",
    "10.51.1.1",
    "10.52.1.1",
    "10.53.1.1",
    "10.54.1.1",
    "10.55.1.1",
    "10.56.1.1",
    "10.58.1.1",
    "10.59.1.1",
    "10.60.1.1",
    "10.61.1.1",
    "10.99.1.1",
    "2001:db8:50::1",
    "2001:db8:56::1",
    "2001:db8:57::1",
    "2001:db8:59::1",
    "2001:db8:60::1",
    "2001:db8:99::1",
];

/// Every route leads to where the kernel sends packets from `a`, or ends here and is named.
#[test]
fn routes_are_the_kernels_or_are_named() {
    for compatible in ["1", "0"] {
        let Some(mut frr) = Frr::without_daemons() else { return };
        let compatible_mode = format!("net.ipv4.nexthop_compat_mode={compatible}");
        let settings = [
            compatible_mode.as_str(),
            "net.ipv4.ip_forward=1",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
            "net.ipv6.conf.all.forwarding=1",
        ];
        for setting in settings {
            assert!(frr.run("h", &["sysctl", "-qw", setting]).0, "{setting}");
        }
        let setup = frr.setup("", "auto");
        frr.route(&setup);
        let mut unsupported = Vec::new();
        for route in ROUTES.lines() {
            let output = frr.ip("h", &route.split(' ').collect::<Vec<_>>());
            if !output.status.success() {
                unsupported.push(route);
            }
        }
        if !unsupported.is_empty() {
            fwdlab_testdata::skip_part(&format!("the kernel refuses {}", unsupported.join("; ")));
        }
        let is_it = |frr: &Frr, to: &str| {
            let found = router(frr, to);
            match kernel(frr, to) {
                None => found.is_empty(),
                Some((_, true)) => found.is_empty(),
                Some((via, false)) => found.contains(&via) || to == "10.56.1.1" && found.is_empty(),
            }
        };
        for to in ADDRESSES {
            frr.until(&format!("{to} ({compatible}): {:?}", kernel(&frr, to)), |frr| {
                is_it(frr, to)
            });
        }
        let named = fact(&frr, "routes not followed");
        assert!(named.starts_with("7: ") || !unsupported.is_empty(), "{named}");
        assert!(named.contains("10.52.0.0/16 (encapsulation)"), "{named}");
        frr.until("it is reported", |frr| frr.output().contains("that are not followed: "));
        // The router has the kernel's number of hops.
        assert_eq!(router(&frr, "10.51.1.1").len(), 2);
        assert_eq!(router(&frr, "10.61.1.1"), ["10.61.1.1", "10.3.0.2"]);
        limits_apply(&frr);
        // Changes of a next hop object, which the kernel reports without its routes.
        ip(&frr, "h", "nexthop replace id 5 via 10.2.0.2 dev r1");
        frr.until("its routes lead elsewhere", |frr| router(frr, "10.50.1.1") == ["10.2.0.2"]);
        ip(&frr, "h", "nexthop del id 5");
        frr.until("its routes are gone", |frr| is_it(frr, "10.50.1.1") && is_it(frr, "10.51.1.1"));
        for route in ["10.55.0.0/16", "10.56.0.0/16", "10.58.0.0/16 tos 0x10"] {
            ip(&frr, "h", &format!("route del {route}"));
        }
        ip(&frr, "h", "route replace 10.52.0.0/16 via 10.3.0.2");
        frr.until("four are left out", |frr| {
            is_it(frr, "10.52.1.1") && !fact(frr, "routes not followed").contains("10.5")
        });
        let (stats, output) = frr.end();
        assert!(!stats.facts.iter().any(|(name, _)| name == "trouble"), "{stats:?} {output}");
    }
}

/// Packets that exceed the MTU of a route come back as the kernel would return them.
fn limits_apply(frr: &Frr) {
    ip(frr, "a", "route replace default via 10.1.0.1");
    ip(frr, "a", "-6 route replace default via 2001:db8:1::1");
    for (to, mtu) in [("10.59.1.1", 1300), ("10.60.1.1", 1350), ("2001:db8:59::1", 1400)] {
        let ping = ["ping", "-n", "-c", "2", "-W", "2", "-s", "1420", "-M", "do", to];
        let (_, output) = frr.run("a", &ping);
        let is_reported =
            output.contains(&format!("mtu={mtu}")) || output.contains(&format!("mtu = {mtu}"));
        assert!(is_reported || output.contains(&format!("mtu: {mtu}")), "{to}: {output}");
    }
    // The kernel limits IPv6 packets only to a locked MTU.
    let ping = ["ping", "-n", "-c", "1", "-W", "1", "-s", "1420", "-M", "do", "2001:db8:60::1"];
    assert!(!frr.run("a", &ping).1.contains("mtu"), "it is not reported");
}

/// One of two next hops of the set-up gets no flows while its link has no carrier.
#[test]
fn written_next_hops_without_carrier_get_no_flows() {
    let Some(mut frr) = Frr::without_daemons() else { return };
    let setup = frr.setup("routes = [\"10.200.0.0/24 via 10.2.0.2 via 10.3.0.2\"]\n", "auto");
    frr.route(&setup);
    ip(&frr, "a", "route add default via 10.1.0.1");
    ip(&frr, "b", "route add local 10.200.0.0/24 dev lo");
    ip(&frr, "b", "route add 10.1.0.0/24 via 10.2.0.1");
    for device in ["all", "b0", "b1"] {
        let setting = format!("net.ipv4.conf.{device}.rp_filter=0");
        assert!(frr.run("b", &["sysctl", "-qw", &setting]).0);
    }
    let script = "for n in $(seq 1 24); do ping -n -c 1 -W 1 10.200.0.$n & done; wait";
    let answered = |frr: &Frr| frr.run("a", &["sh", "-c", script]).1.matches(" 1 received").count();
    let sent = |frr: &Frr, name: &str| {
        let answer = frr.ctl_json("show interfaces");
        let rows = answer["rows"].as_array().expect("rows").clone();
        let row = rows.into_iter().find(|row| row["name"] == name).expect("an interface");
        (row["sent"].as_u64().expect("a count"), row["state"].clone())
    };
    frr.until("all answer", |frr| answered(frr) == 24);
    let before = [sent(&frr, "r1").0, sent(&frr, "r2").0];
    assert_eq!(answered(&frr), 24);
    let spread = [sent(&frr, "r1").0 - before[0], sent(&frr, "r2").0 - before[1]];
    assert!(spread.iter().all(|&count| count >= 4), "{spread:?}");
    ip(&frr, "b", "link set b1 down");
    frr.until("its loss is noticed", |frr| sent(frr, "r2").1 == "no carrier");
    assert_eq!(answered(&frr), 24);
    ip(&frr, "b", "link set b1 up");
    frr.until("its return is noticed", |frr| sent(frr, "r2").1 == "up");
    let before = sent(&frr, "r2").0;
    frr.until("flows are back", |frr| answered(frr) == 24 && sent(frr, "r2").0 > before + 3);
    frr.end();
}
