//! Hosts that are replaced by others with the same addresses: the router finds the new ones as the
//! kernel does, which forwards in the same place.

use super::links::must;
use super::net::Net;
use std::thread;
use std::time::{Duration, Instant};

const HOSTS: [&str; 2] = ["10.2.0.2", "2001:db8:2::2"];
/// Detection and resolution (RFC 4861 section 10: 30 s, 5 s, three requests, one more), and the time
/// of the last request.
const MINUTE: Duration = Duration::from_secs(60);

/// Starts the kernel's forwarding instead of the router's.
fn forward_by_kernel(net: &Net) {
    must(net, "r", "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1");
    for (port, number) in [("r0", 1), ("r1", 2)] {
        must(net, "r", &format!("sysctl -qw net.ipv6.conf.{port}.disable_ipv6=0"));
        must(net, "r", &format!("ip address add 10.{number}.0.1/24 dev {port}"));
        let address = format!("2001:db8:{number}::1/64");
        must(net, "r", &format!("ip address add {address} dev {port} nodad"));
    }
}

/// A network with one of the two forwarders, in which both hosts of `b` have answered.
fn network(by_kernel: bool) -> Option<Net> {
    let mut net = Net::new(&["ping"])?;
    match by_kernel {
        true => forward_by_kernel(&net),
        false => net.route("packet", ""),
    }
    HOSTS.iter().for_each(|to| assert_answers(&net, to, Duration::from_secs(15)));
    Some(net)
}

/// Waits until a host answers, and fails after `patience`.
fn assert_answers(net: &Net, to: &str, patience: Duration) {
    let begin = Instant::now();
    while !net.run("a", &["ping", "-n", "-c", "1", "-W", "1", to]).0 {
        assert!(begin.elapsed() < patience, "{to} does not answer within {patience:?}");
    }
    eprintln!("{to} answered after {:?}", begin.elapsed());
}

#[test]
fn host_replaced_during_a_loss_of_carrier_is_found() {
    for by_kernel in [true, false] {
        let Some(net) = network(by_kernel) else { return };
        for command in [
            "ip link set b0 down",
            "ip link set b0 address 02:00:00:00:00:77",
            "ip link set b0 up",
            "ip address add 2001:db8:2::2/64 dev b0 nodad",
            "ip route add default via 10.2.0.1",
            "ip route add default via 2001:db8:2::1",
        ] {
            must(&net, "b", command);
        }
        // Without notice of the carrier it takes half a minute or longer.
        HOSTS.iter().for_each(|to| assert_answers(&net, to, Duration::from_secs(15)));
    }
}

#[test]
fn silently_replaced_host_is_found_within_a_minute() {
    let forwarders = [true, false].map(|by_kernel| {
        thread::spawn(move || {
            let Some(net) = network(by_kernel) else { return };
            must(&net, "b", "ip link set b0 address 02:00:00:00:00:77");
            thread::scope(|scope| {
                for to in HOSTS {
                    let net = &net;
                    scope.spawn(move || assert_answers(net, to, MINUTE));
                }
            });
        })
    });
    for forwarder in forwarders {
        forwarder.join().expect("it is found");
    }
}
