//! `fwdlab route` in a network: its host speaks OSPF and BGP, and the router follows it.

use super::frr::{Frr, ospf};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::ops::DerefMut;
use std::process::{Command, Stdio};
use std::time::Duration;

fn begin(frr: &mut Frr, host: &str, daemons: &[(&'static str, String)]) {
    let daemons: Vec<(&str, &str)> =
        daemons.iter().map(|(daemon, text)| (*daemon, text.as_str())).collect();
    frr.start(host, &daemons);
}

/// All three speak OSPF, and both ends know the other end's network.
fn meet(frr: &mut Frr) {
    begin(frr, "h", &ospf("10.0.0.1", &[("r0", 10), ("r1", 10), ("r2", 50)]));
    begin(frr, "a", &ospf("10.0.0.2", &[("a0", 10)]));
    begin(frr, "b", &ospf("10.0.0.3", &[("b0", 10), ("b1", 50)]));
    frr.until("both ends have learnt all routes", |frr| {
        let has =
            |host: &str, prefix: &str| !frr.ip(host, &["route", "show", prefix]).stdout.is_empty();
        let has6 = |host: &str, prefix: &str| {
            !frr.ip(host, &["-6", "route", "show", prefix]).stdout.is_empty()
        };
        has("a", "10.101.0.1")
            && has("b", "10.100.0.1")
            && has6("a", "2001:db8:101::/64")
            && has6("b", "2001:db8:100::/64")
    });
}

/// Number of lost pings in a summary.
fn lost(output: &str) -> u32 {
    let numbers = |word: &str| {
        let before =
            output.split(word).next().and_then(|text| text.split([' ', ',', '\n']).next_back());
        before.and_then(|text| text.parse::<u32>().ok())
    };
    let (sent, received) = (numbers(" packets transmitted"), numbers(" received"));
    sent.expect("a summary").saturating_sub(received.expect("a summary"))
}

#[test]
fn network_learns_routes_through_the_router_and_survives_a_link_failure() {
    for port in ["auto", "packet"] {
        let Some(mut frr) = Frr::new() else { return };
        let setup = frr.setup("", port);
        frr.route(&setup);
        meet(&mut frr);
        for (from, to) in [("10.100.0.1", "10.101.0.1"), ("2001:db8:100::1", "2001:db8:101::1")] {
            // The router's host, and the router after it, may learn the routes last.
            let once = ["ping", "-n", "-c", "1", "-W", "1", "-I", from, to];
            frr.until("packets pass", |frr| frr.run("a", &once).0);
            let ping = ["ping", "-n", "-c", "5", "-i", "1", "-W", "3", "-I", from, to];
            let (_, output) = frr.run("a", &ping);
            assert!(output.contains(" 5 received"), "{port}: {output}");
        }
        // The better link fails: packets on their way are lost until the routes have changed.
        let ping = [
            "ping",
            "-q",
            "-n",
            "-c",
            "800",
            "-i",
            "0.005",
            "-W",
            "1",
            "-I",
            "10.100.0.1",
            "10.101.0.1",
        ];
        let mut stream = frr.begin("a", &ping);
        std::thread::sleep(Duration::from_millis(500));
        assert!(frr.ip("b", &["link", "set", "b0", "down"]).status.success());
        let mut output = String::new();
        stream.stdout.take().expect("a pipe").read_to_string(&mut output).expect("text");
        stream.wait().expect("it ends");
        let lost = lost(&output);
        eprintln!("{port}: a link failed: {lost} of 800 packets lost, one every 5 ms");
        // Half of the dead interval would be 300.
        assert!(lost < 390, "{port}: {output}");
        let (stats, output) = frr.end();
        for reason in ["to_host", "from_host", "forwarded"] {
            assert!(stats.count(reason) > 0, "{port}: {reason}: {stats:?}");
        }
        assert_eq!(stats.count("host_limited"), 0, "{port}: {stats:?}");
        assert!(!stats.facts.iter().any(|(name, _)| name == "trouble"), "{stats:?} {output}");
    }
}

/// The announced network with this number.
fn prefix(number: u32) -> String {
    format!("{}.{}.{}.0/24", 20 + (number >> 16), number >> 8 & 255, number & 255)
}

/// A table of the size of a provider's in 2001, announced by one end with BGP. It is used for
/// forwarding, and disappears with that end.
#[test]
fn bgp_routes_are_added_and_withdrawn() {
    const ROUTES: u32 = 100_000;
    const LARGE: Duration = Duration::from_secs(90);
    let Some(mut frr) = Frr::new() else { return };
    let setup = frr.setup("", "auto");
    frr.route(&setup);
    let mut announcing = String::new();
    for number in 0..ROUTES {
        announcing += &format!("route add blackhole {}\n", prefix(number));
    }
    let bgp = |own: u32, id: &str, neighbours: &[(&str, u32)], more: &str| {
        let mut text =
            format!("router bgp {own}\n bgp router-id {id}\n no bgp ebgp-requires-policy\n");
        text += " timers bgp 3 9\n";
        for (address, number) in neighbours {
            text += &format!(" neighbor {address} remote-as {number}\n");
            text += &format!(" neighbor {address} advertisement-interval 0\n");
            text += &format!(" neighbor {address} timers connect 1\n");
        }
        format!("{text}{more}exit\n")
    };
    let of_kernel = " address-family ipv4 unicast\n  redistribute kernel\n exit-address-family\n";
    let h = bgp(65001, "10.0.0.1", &[("10.1.0.2", 65002), ("10.2.0.2", 65003)], "");
    begin(&mut frr, "h", &[("zebra", String::new()), ("bgpd", h)]);
    let a = bgp(65002, "10.0.0.2", &[("10.1.0.1", 65001)], "");
    begin(&mut frr, "a", &[("zebra", String::new()), ("bgpd", a)]);
    // FRR's own static routes take longer the more of them there are.
    let file = frr.file("announced");
    fs::write(&file, announcing).expect("a file");
    let batch = ["-batch".as_ref(), file.as_os_str()];
    assert!(frr.ip("b", &batch.map(|word| word.to_str().expect("text"))).status.success());
    let b = bgp(65003, "10.0.0.3", &[("10.2.0.1", 65001)], of_kernel);
    begin(&mut frr, "b", &[("zebra", String::new()), ("bgpd", b)]);
    let of = |frr: &Frr, host: &str| {
        let all = frr.ip(host, &["route", "show", "proto", "bgp"]).stdout;
        String::from_utf8_lossy(&all).lines().count()
    };
    let count = |frr: &Frr| of(frr, "a");
    let all = |frr: &Frr| count(frr) == ROUTES as usize;
    let elapsed = frr.within(LARGE, "the other end has all routes", all);
    eprintln!("{ROUTES} routes in {elapsed:?}");
    let last = prefix(ROUTES - 1).replace(".0/24", ".7");
    // An address within, which answers.
    assert!(frr.ip("b", &["address", "add", &format!("{last}/32"), "dev", "lo"]).status.success());
    let back = ["route", "add", "10.1.0.0/24", "via", "10.2.0.1"];
    assert!(frr.ip("b", &back).status.success());
    let ping = |frr: &Frr| frr.run("a", &["ping", "-n", "-c", "1", "-W", "3", &last]).0;
    frr.until("packets go there", ping);
    assert!(frr.ip("b", &["link", "set", "b0", "down"]).status.success());
    let none = |frr: &Frr| count(frr) == 0 && of(frr, "h") == 0;
    let elapsed = frr.within(LARGE, "the routes are gone", none);
    eprintln!("gone in {elapsed:?}");
    // The router follows the kernel's routes within a tenth of a second, including silent removals.
    std::thread::sleep(Duration::from_secs(5));
    let (stats, _) = frr.end();
    let fact = stats.facts.iter().find(|(name, _)| name == "routes of the kernel");
    let left: usize = fact.and_then(|(_, value)| value.parse().ok()).expect("a number");
    assert!(left < 100, "{stats:?}");
    assert_eq!(stats.count("host_limited"), 0, "{stats:?}");
}

/// Ten reloads under a stream, one of them with an invalid file: no packet is lost.
#[test]
fn reload_loses_no_packet() {
    let Some(mut frr) = Frr::without_daemons() else { return };
    let firewall = |port: u32| {
        format!(
            "firewall = \"\"\"\nblock in proto udp from any to any port {port}\npass in keep state\n\"\"\"\n"
        )
    };
    let routes = "routes = [\"10.100.0.0/24 via 10.1.0.2\", \"10.101.0.0/24 via 10.2.0.2\"]\n";
    let first = frr.setup(&format!("{routes}{}", firewall(1)), "auto");
    frr.route(&first);
    for (host, to, via) in [("a", "10.101.0.0/24", "10.1.0.1"), ("b", "10.100.0.0/24", "10.2.0.1")]
    {
        assert!(frr.ip(host, &["route", "add", to, "via", via]).status.success());
    }
    let ping = ["ping", "-n", "-c", "1", "-W", "3", "-I", "10.100.0.1", "10.101.0.1"];
    frr.until("packets pass", |frr| frr.run("a", &ping).0);
    // Until it is interrupted, however long ten reloads take.
    let ping = ["ping", "-n", "-i", "0.001", "-I", "10.100.0.1", "10.101.0.1"];
    let answers = frr.file("answers");
    let file = fs::File::create(&answers).expect("a file");
    let mut stream = frr.command("a", &ping).stdout(file).spawn().expect("ip starts");
    for number in 0..10 {
        std::thread::sleep(Duration::from_millis(100));
        let text = match number {
            4 => frr.setup("routes = [\"nonsense\"]\n", "auto"),
            7 => frr.setup(routes, "auto"),
            _ => frr.setup(&format!("{routes}{}", firewall(100 + number)), "auto"),
        };
        frr.reload(&text);
    }
    assert!(stream.try_wait().expect("a child").is_none(), "the stream ended by itself");
    let interrupted = Command::new("kill").args(["-INT", &stream.id().to_string()]).status();
    assert!(interrupted.expect("kill").success());
    stream.wait().expect("it ends");
    // Packets that were on their way when the stream was interrupted follow the last answer.
    let output = fs::read_to_string(&answers).expect("text");
    let number = |line: &str| -> Option<u32> {
        line.split("icmp_seq=").nth(1)?.split(' ').next()?.parse().ok()
    };
    let answered: BTreeSet<u32> = output.lines().filter_map(number).collect();
    let sent = answered.last().copied().unwrap_or(0);
    assert!(sent > 100, "{sent} answers");
    assert_eq!(answered.len(), sent as usize, "each packet has an answer");
    let (stats, output) = frr.end();
    let fact = stats.facts.iter().find(|(name, _)| name == "reloads");
    assert_eq!(fact.map(|(_, count)| count.as_str()), Some("9"), "{output}");
    assert!(output.contains("continues as before: routes: line 1"), "{output}");
}

/// The kernel sends no notification of next hops that disappear and return with a link. A host
/// without IPv6 is allowed unless the set-up contains IPv6 addresses.
#[test]
fn next_hops_follow_their_link_without_inet6() {
    let Some(mut frr) = Frr::without_daemons() else { return };
    assert!(frr.run("h", &["sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"]).0);
    let setup = frr.setup("", "auto");
    let file = frr.write(&setup);
    let program = [env!("CARGO_BIN_EXE_fwdlab"), "route", &file.to_string_lossy()];
    let (succeeded, output) = frr.run("r", &program);
    assert!(
        !succeeded && output.contains("next step: sysctl -w net.ipv6.conf.default"),
        "{output}"
    );
    let lines = setup.lines().map(|line| match line.split_once(", \"2001:") {
        Some((inet, _)) => format!("{inet}]\n"),
        None => format!("{line}\n"),
    });
    frr.deref_mut().route(&lines.collect::<String>());
    let ip = |frr: &Frr, host: &str, words: &str| {
        let output = frr.ip(host, &words.split(' ').collect::<Vec<_>>());
        assert!(output.status.success(), "{words}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    frr.until("the host's devices stand", |frr| {
        let output = frr.ip("h", &["link", "show", "dev", "r2"]).stdout;
        String::from_utf8_lossy(&output).contains("LOWER_UP")
    });
    ip(&frr, "h", "route add 10.200.0.0/24 nexthop via 10.1.0.2 nexthop via 10.2.0.2");
    ip(&frr, "b", "route add 10.200.0.0/24 via 10.3.0.1");
    ip(&frr, "a", "route add 10.3.0.0/24 via 10.1.0.1");
    ip(&frr, "a", "address add 10.200.0.0/24 dev lo");
    // Only one of the two next hops has the hosts: requests through the other one are not answered.
    let script = "for n in $(seq 1 24); do ping -n -c 1 -W 1 10.200.0.$n & done; wait";
    let answered = |frr: &Frr| frr.run("b", &["sh", "-c", script]).1.matches(" 1 received").count();
    let some = |count: usize| (4..=20).contains(&count);
    frr.until("flows are spread over both", |frr| some(answered(frr)));
    ip(&frr, "b", "link set b0 down");
    frr.until("all take the one that is left", |frr| answered(frr) == 24);
    ip(&frr, "b", "link set b0 up");
    frr.until("both are there again", |frr| some(answered(frr)));
    let (stats, output) = frr.end();
    assert!(output.contains("interface r1: giving r1 the address fe80:"), "{output}");
    assert!(!stats.facts.iter().any(|(name, _)| name == "trouble"), "{stats:?}");
}

/// Includes the thread that reads commands, which exists before the others.
#[test]
fn threads_of_a_controlled_router_drop_capabilities() {
    let Some(frr) = Frr::without_daemons() else { return };
    let mut command = frr.command("r", &[env!("CARGO_BIN_EXE_fwdlab"), "route", "--control"]);
    let mut router =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("ip starts");
    let mut orders = router.stdin.take().expect("a pipe");
    writeln!(orders, r#"{{"interface":[{{"name":"r0"}},{{"name":"r1"}}]}}"#).expect("it listens");
    let mut first = String::new();
    let mut answers = BufReader::new(router.stdout.take().expect("a pipe"));
    answers.read_line(&mut first).expect("text");
    assert!(first.contains("forwarded"), "{first}");
    let tasks = fs::read_dir(format!("/proc/{}/task", router.id())).expect("it runs");
    let statuses: Vec<String> = tasks
        .map(|task| fs::read_to_string(task.expect("a task").path().join("status")).expect("text"))
        .collect();
    drop(orders);
    router.wait().expect("it ends");
    // The first thread, the thread that reads commands, and a worker.
    assert!(statuses.len() >= 3, "{statuses:?}");
    for status in statuses {
        assert!(status.contains("CapEff:\t0000000000000000"), "{status}");
    }
}
