//! Agents over ssh: both run on this machine, each in its namespace, reached through an OpenSSH
//! server of the test.

use crate::send::{FAR, MS, NEAR, PROGRAM, Wired, end, load, trial};
use crate::support::Lab;
use fwdlab_bench::agent::{AgentTraffic, End};
use fwdlab_bench::host::{Host, LocalHost, SshHost};
use fwdlab_bench::trial::{self, Moment, SystemClock};
use fwdlab_bench::{BenchError, NoopObserver};
use fwdlab_model::settings::Engine;
use fwdlab_packet::Family;
use server::{Server, until};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

#[path = "../../../bench/tests/ssh/server.rs"]
#[allow(dead_code, reason = "the tests of ssh itself use more of it")]
mod server;

/// A script that runs the program in a namespace.
fn within(lab: &Lab, namespace: &str) -> String {
    let name = format!("fwdlab-in-{namespace}");
    lab.write(&name, &format!("#!/bin/sh\nexec ip netns exec {namespace} {PROGRAM} \"$@\"\n"));
    let path = lab.path(&name);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, executable).expect("a script");
    path.to_string_lossy().into_owned()
}

/// Runs a trial over two connections; `at` is called at its moments with the receiver's connection.
fn observe(
    lab: &Lab,
    wired: &Wired,
    server: &Server,
    at: impl Fn(Moment, &SshHost),
) -> Result<trial::Observed, BenchError> {
    let (near, far) = (server.host(), server.host());
    let over = |host, namespace, interface, mac| End {
        program: within(lab, namespace),
        ..end(host, interface, mac)
    };
    let senders = [(over(&near as &dyn Host, &wired.near, "g0", NEAR), FAR)];
    let receiver = over(&far, &wired.far, "r0", FAR);
    let load = load(Family::Inet6, Engine::Packet);
    let mut traffic = AgentTraffic::arm(&senders, &receiver, &load)?;
    let trial = trial(500 * MS);
    let at_window: &mut dyn FnMut(Moment) = &mut |moment| at(moment, &far);
    let order = trial::TrialSpec {
        trial: &trial,
        rate_pps: None,
        variant: 0,
        alternation: None,
        at_window,
        awaited: trial::OpeningConditions::default(),
        account: &mut trial::NoCounters,
    };
    trial::run(&mut traffic, &SystemClock, order, &mut NoopObserver)
}

#[test]
fn ssh_agents_count_exactly_and_end_with_their_connection() {
    let Some(wired) = Wired::new() else { return };
    let Some(server) = Server::start("") else { return };
    let lab = Lab::new("");
    let seen = observe(&lab, &wired, &server, |_, _| {}).expect("a trial");
    assert_eq!(seen.window.offered, seen.window.forwarded, "{seen:?}");
    assert!(seen.window.offered >= 16 && seen.flows_seen == Some(16), "{seen:?}");
    assert!((490 * MS..60_000 * MS).contains(&seen.window_ns), "{} ns", seen.window_ns);

    let begin = Instant::now();
    let lost = observe(&lab, &wired, &server, |moment, receiver| {
        if matches!(moment, Moment::Open(_)) {
            receiver.close();
        }
    });
    let error = lost.expect_err("no connection").to_string();
    assert!(error.contains("receive --control on dut failed"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(30), "{:?}", begin.elapsed());
    let gone = || {
        [&wired.near, &wired.far].iter().all(|namespace| {
            let pids = LocalHost.run(&["ip", "netns", "pids", namespace], "");
            pids.expect("pids").trim().is_empty()
        })
    };
    assert!(until(server::PATIENCE, gone), "agents outlive their connections");
    assert!(!wired.receiver().contains("xdp"), "{}", wired.receiver());
}
