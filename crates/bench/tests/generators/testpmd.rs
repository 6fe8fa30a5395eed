//! DPDK's testpmd: the real one on a veth pair, where it is installed and we are root,
//! and one that dies.

use crate::bench::{Scripted, ends, load, trial};
use fwdlab_bench::generator::{Edges, Generator, GeneratorHosts, Testpmd};
use fwdlab_bench::host::{Host, LocalHost, NamespaceHost};
use fwdlab_netio::NetNs;
use fwdlab_packet::Family;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);

fn eal(prefix: &str) -> Vec<String> {
    let words = ["--no-huge", "-m", "256", "--no-pci", "--file-prefix"];
    let own = ["--", "--total-num-mbufs=4096"];
    words.into_iter().chain([prefix]).chain(own).map(str::to_owned).collect()
}

/// A namespace with both ends of a veth pair; none where it can't be.
fn veth() -> Option<NamespaceHost> {
    let lacking = match LocalHost.run(&["dpdk-testpmd", "--help"], "") {
        Err(error) if error.to_string().contains("is not installed") => Some("no dpdk-testpmd"),
        _ if !fwdlab_netio::userns::is_root() => Some("not root"),
        _ => None,
    };
    if let Some(lacking) = lacking {
        fwdlab_testdata::skip(lacking);
        return None;
    }
    let name = format!("fwdlab-tpmd-{}", std::process::id());
    // A killed process of the same number may have left one.
    let _ = LocalHost.run(&["ip", "netns", "del", &name], "");
    LocalHost.run(&["ip", "netns", "add", &name], "").expect("root");
    let namespace = NetNs::open(&name).expect("a namespace");
    // It goes with the last that uses it.
    LocalHost.run(&["ip", "netns", "del", &name], "").expect("root");
    let host = NamespaceHost::new(&namespace, &[]).expect("entered");
    let ip = |words: &str| {
        let argv: Vec<&str> = ["ip"].into_iter().chain(words.split(' ')).collect();
        host.run(&argv, "").expect("ip");
    };
    ip("link add ix0 type veth peer name ix1");
    // No neighbour discovery among the packets that are counted.
    host.put("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").expect("no IPv6");
    ip("link set ix0 up");
    ip("link set ix1 up");
    Some(host)
}

#[test]
fn the_real_one_sends_and_is_counted_at_the_other_end() {
    let Some(host) = veth() else { return };
    let mut both = ends(&host, &host);
    both.options = eal("fwdlab-test");
    let load = load(Family::Inet, 4, 4, None);
    let generator = Box::new(Testpmd::new(both).patience(PATIENCE));
    let (observed, outcome) = trial(generator, &load, Duration::from_secs(1)).expect("a trial");
    let counted = outcome.counted;
    assert!(counted.sent > 1000, "{counted:?}");
    // A veth pair loses nothing: what testpmd says it sent is what arrived.
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

/// A rate is the kernel's to keep: what the interface counts has it, nothing is lost on the way,
/// and the interface is afterwards as it was.
#[test]
fn the_kernel_keeps_a_rate_for_it() {
    let Some(host) = veth() else { return };
    let shown = || host.run(&["tc", "qdisc", "show", "dev", "ix0"], "").expect("tc");
    let before = shown();
    let mut both = ends(&host, &host);
    both.options = eal("fwdlab-paced");
    let load = load(Family::Inet, 1, 1, Some(2000.0));
    let generator = Box::new(Testpmd::new(both).patience(PATIENCE));
    let (observed, outcome) = trial(generator, &load, Duration::from_secs(1)).expect("a trial");
    let counted = outcome.counted;
    assert_eq!((counted.received, counted.receiver_dropped), (counted.sent, 0), "{outcome:?}");
    assert_eq!(observed.window.lost(), 0, "{observed:?}");
    // Half of it may be lacking on a busy machine; more than it, never: a bucket's burst beside.
    let most = 2000.0 * observed.window_ns as f64 / 1e9;
    let offered = observed.window.offered as f64;
    assert!(offered > most / 2.0 && offered < 1.1 * most + 40.0, "{offered} of {most}");
    assert!(outcome.facts["testpmd paced"].contains("tc-tbf"), "{outcome:?}");
    assert!(outcome.facts["testpmd command"].contains("qdisc_bypass=0"), "{outcome:?}");
    assert_eq!(shown(), before, "the interface is as it was");
}

fn prepared(ends: GeneratorHosts<'_>, family: Family, rate: Option<f64>) -> String {
    let mut generator = Testpmd::new(ends).patience(Duration::from_millis(500));
    generator.prepare(&load(family, 1, 1, rate)).expect_err("refused").to_string()
}

#[test]
fn what_it_can_t_do_is_refused() {
    let generator = Testpmd::new(ends(&LocalHost, &LocalHost));
    let able = generator.capabilities();
    assert_eq!((able.paced, able.inet6, able.edges), (true, false, Edges::Read));
    let here = || ends(&LocalHost, &LocalHost);
    // Where no kernel is between it and the wire, none keeps its rate.
    let card = GeneratorHosts { sender_interface: "0000:05:00.0".into(), ..here() };
    assert!(!Testpmd::new(card.clone()).capabilities().paced);
    assert!(prepared(card, Family::Inet, Some(5.0)).contains("keeps no rate"));
    let named = GeneratorHosts { options: vec!["--vdev=net_null0".into()], ..here() };
    assert!(prepared(named, Family::Inet, Some(5.0)).contains("keeps no rate"));
    assert!(prepared(here(), Family::Inet6, None).contains("IPv4 only"));
    let one = GeneratorHosts { sender_cpus: vec![1], ..here() };
    assert!(prepared(one, Family::Inet, None).contains("a CPU for its prompt"));
}

/// It finds no device, says so, and ends.
#[test]
fn last_words_are_told() {
    let script = "#!/bin/sh\necho 'EAL: Error - exiting with code: 1'\nexit 1\n";
    let host = Scripted::new("dpdk-testpmd", script);
    let mut both = ends(&host, &host);
    both.receiver_interface = "lo".into();
    let text = prepared(both, Family::Inet, None);
    assert!(text.contains("ended before its time") && text.contains("EAL: Error"), "{text}");
    // One that never comes to its prompt.
    let host = Scripted::new("dpdk-testpmd", "#!/bin/sh\necho Configuring\nexec sleep 60\n");
    let mut both = ends(&host, &host);
    both.receiver_interface = "lo".into();
    let text = prepared(both, Family::Inet, None);
    assert!(text.contains("no `Done` within 0.5 s; its last lines: Configuring"), "{text}");
}

/// It dies while it sends.
#[test]
fn a_death_in_the_window_is_told() {
    let stats = "echo '# NIC statistics for port 0 #'; echo ' TX-packets: 9 TX-errors: 0'; \
                 echo ' Tx-pps: 0'";
    let text = format!(
        "#!/bin/sh\necho Done\nread clear; read show; {stats}\nread start; echo 'txonly packet \
         forwarding'\nread show; {stats}\nexit 3\n"
    );
    let host = Scripted::new("dpdk-testpmd", &text);
    let mut both = ends(&host, &host);
    both.receiver_interface = "lo".into();
    let generator = Box::new(Testpmd::new(both).patience(Duration::from_secs(2)));
    let load = load(Family::Inet, 1, 1, None);
    let error = trial(generator, &load, Duration::from_millis(500)).expect_err("it died");
    let text = error.to_string();
    assert!(text.contains("dpdk-testpmd"), "{text}");
}
