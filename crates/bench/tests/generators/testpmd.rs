//! DPDK's testpmd: the real program on a veth pair, if it is installed and the test runs as root,
//! and scripts that die.

use crate::bench::{Scripted, ends, load, trial};
use fwdlab_bench::generator::{Edges, Generator, GeneratorHosts, Testpmd};
use fwdlab_bench::host::{Host, LocalHost, NamespaceHost};
use fwdlab_netio::NetNs;
use fwdlab_packet::Family;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn eal(prefix: &str) -> Vec<String> {
    let words = ["--no-huge", "-m", "256", "--no-pci", "--file-prefix"];
    let application = ["--", "--total-num-mbufs=4096"];
    words.into_iter().chain([prefix]).chain(application).map(str::to_owned).collect()
}

/// Returns a namespace with both ends of a veth pair; `None` if a requirement is missing.
fn veth() -> Option<NamespaceHost> {
    let reason = match LocalHost.run(&["dpdk-testpmd", "--help"], "") {
        Err(error) if error.to_string().contains("is not installed") => Some("no dpdk-testpmd"),
        _ if !fwdlab_netio::userns::is_root() => Some("not root"),
        _ => None,
    };
    if let Some(reason) = reason {
        fwdlab_testdata::skip(reason);
        return None;
    }
    let name = format!("fwdlab-tpmd-{}", std::process::id());
    // A killed process with the same id may have left one.
    let _ = LocalHost.run(&["ip", "netns", "del", &name], "");
    LocalHost.run(&["ip", "netns", "add", &name], "").expect("root");
    let namespace = NetNs::open(&name).expect("a namespace");
    // The namespace disappears with its last user.
    LocalHost.run(&["ip", "netns", "del", &name], "").expect("root");
    let host = NamespaceHost::new(&namespace, &[]).expect("entered");
    let ip = |words: &str| {
        let argv: Vec<&str> = ["ip"].into_iter().chain(words.split(' ')).collect();
        host.run(&argv, "").expect("ip");
    };
    ip("link add ix0 type veth peer name ix1");
    // Neighbour discovery would be counted as packets.
    host.put("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").expect("no IPv6");
    ip("link set ix0 up");
    ip("link set ix1 up");
    Some(host)
}

#[test]
fn testpmd_sends_and_the_peer_counts_every_packet() {
    let Some(host) = veth() else { return };
    let mut hosts = ends(&host, &host);
    hosts.options = eal("fwdlab-test");
    let load = load(Family::Inet, 4, 4, None);
    let generator = Box::new(Testpmd::new(hosts).patience(PATIENCE));
    let (observed, outcome) = trial(generator, &load, Duration::from_secs(1)).expect("a trial");
    let counted = outcome.counted;
    assert!(counted.sent > 1000, "{counted:?}");
    // A veth pair loses nothing: testpmd's count must equal the arrivals.
    assert_eq!((counted.received, counted.receiver_dropped), (counted.sent, 0), "{outcome:?}");
    assert_eq!(observed.total.offered, observed.total.forwarded);
    assert!(observed.window.offered > 0 && observed.window.lost() >= 0, "{observed:?}");
    for counter in &outcome.counters {
        let expected = counter.expected.unwrap_or_else(|| counter.delta());
        assert_eq!(counter.delta(), expected, "{counter:?}");
    }
    let command = &outcome.facts["testpmd command"];
    assert!(command.contains("--vdev=net_af_packet0,iface=ix0"), "{command}");
    assert!(command.contains("--txpkts=80 --tx-ip=198.18.1.0,198.19.1.0 --tx-udp=49184,7"));
    assert!(command.ends_with("--txonly-multi-flow --total-num-mbufs=4096"), "{command}");
    assert!(outcome.remarks.iter().any(|remark| remark.contains("can't send the 16 flows")));
}

/// The kernel paces the packets: the interface's counter shows the rate, no packet is lost, and the
/// interface's queueing discipline is restored.
#[test]
fn kernel_paces_testpmd_and_the_interface_is_restored() {
    let Some(host) = veth() else { return };
    let qdisc = || host.run(&["tc", "qdisc", "show", "dev", "ix0"], "").expect("tc");
    let before = qdisc();
    let mut hosts = ends(&host, &host);
    hosts.options = eal("fwdlab-paced");
    let load = load(Family::Inet, 1, 1, Some(2000.0));
    let generator = Box::new(Testpmd::new(hosts).patience(PATIENCE));
    let (observed, outcome) = trial(generator, &load, Duration::from_secs(1)).expect("a trial");
    let counted = outcome.counted;
    assert_eq!((counted.received, counted.receiver_dropped), (counted.sent, 0), "{outcome:?}");
    assert_eq!(observed.window.lost(), 0, "{observed:?}");
    // Half of the packets may be missing on a busy machine, but there are never more than the rate
    // and one bucket's burst.
    let most = 2000.0 * observed.window_ns as f64 / 1e9;
    let offered = observed.window.offered as f64;
    assert!(offered > most / 2.0 && offered < 1.1 * most + 40.0, "{offered} of {most}");
    assert!(outcome.facts["testpmd paced"].contains("tc-tbf"), "{outcome:?}");
    assert!(outcome.facts["testpmd command"].contains("qdisc_bypass=0"), "{outcome:?}");
    assert_eq!(qdisc(), before, "the interface is as it was");
}

fn preparation_error(ends: GeneratorHosts<'_>, family: Family, rate: Option<f64>) -> String {
    let mut generator = Testpmd::new(ends).patience(Duration::from_secs(5));
    generator.prepare(&load(family, 1, 1, rate)).expect_err("refused").to_string()
}

#[test]
fn unsupported_loads_are_refused() {
    let generator = Testpmd::new(ends(&LocalHost, &LocalHost));
    let capabilities = generator.capabilities();
    assert_eq!(
        (capabilities.paced, capabilities.inet6, capabilities.edges),
        (true, false, Edges::Read)
    );
    let here = || ends(&LocalHost, &LocalHost);
    // Without a kernel between it and the wire, the rate cannot be paced.
    let card = GeneratorHosts { sender_interface: "0000:05:00.0".into(), ..here() };
    assert!(!Testpmd::new(card.clone()).capabilities().paced);
    assert!(preparation_error(card, Family::Inet, Some(5.0)).contains("keeps no rate"));
    let named = GeneratorHosts { options: vec!["--vdev=net_null0".into()], ..here() };
    assert!(preparation_error(named, Family::Inet, Some(5.0)).contains("keeps no rate"));
    assert!(preparation_error(here(), Family::Inet6, None).contains("IPv4 only"));
    let one = GeneratorHosts { sender_cpus: vec![1], ..here() };
    assert!(preparation_error(one, Family::Inet, None).contains("a CPU for its prompt"));
}

/// The program finds no device, reports that, and ends.
#[test]
fn last_output_is_reported() {
    let script = "#!/bin/sh\necho 'EAL: Error - exiting with code: 1'\nexit 1\n";
    let host = Scripted::new("dpdk-testpmd", script);
    let mut hosts = ends(&host, &host);
    hosts.receiver_interface = "lo".into();
    let text = preparation_error(hosts, Family::Inet, None);
    assert!(text.contains("ended before its time") && text.contains("EAL: Error"), "{text}");
    // A program that never prints its prompt.
    let host = Scripted::new("dpdk-testpmd", "#!/bin/sh\necho Configuring\nexec sleep 60\n");
    let mut hosts = ends(&host, &host);
    hosts.receiver_interface = "lo".into();
    let text = preparation_error(hosts, Family::Inet, None);
    assert!(text.contains("print `Done` within 5.0 s; its last lines: Configuring"), "{text}");
}

/// The program dies while it sends.
#[test]
fn death_in_the_window_is_reported() {
    let stats = "echo '# NIC statistics for port 0 #'; echo ' TX-packets: 9 TX-errors: 0'; \
                 echo ' Tx-pps: 0'";
    let text = format!(
        "#!/bin/sh\necho Done\nread clear; read show; {stats}\nread start; echo 'txonly packet \
         forwarding'\nread show; {stats}\nexit 3\n"
    );
    let host = Scripted::new("dpdk-testpmd", &text);
    let mut hosts = ends(&host, &host);
    hosts.receiver_interface = "lo".into();
    let generator = Box::new(Testpmd::new(hosts).patience(Duration::from_secs(2)));
    let load = load(Family::Inet, 1, 1, None);
    let error = trial(generator, &load, Duration::from_millis(500)).expect_err("it died");
    let text = error.to_string();
    assert!(text.contains("dpdk-testpmd"), "{text}");
}
