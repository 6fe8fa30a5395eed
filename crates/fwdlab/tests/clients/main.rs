//! `fwdlab route` between real hosts: the kernel's stack and its usual clients at both ends.

mod ctl;
mod frr;
mod links;
mod neighbours;
mod net;
mod routes;
mod routing;
mod spaces;
mod streams;
mod vlan;

use net::Net;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Only connections pass.
const STATEFUL: &str = r#"
firewall = """
pass in proto tcp all flags S/SA keep state
pass in proto udp all keep state
pass in inet proto icmp all keep state
pass in inet6 proto icmp6 all keep state
block in all
block out all
"""
"#;

const PATIENCE: Duration = Duration::from_secs(20);

/// Tries until there is a result, for [`PATIENCE`].
fn until_some<T>(attempt: impl Fn() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            None if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            result => return result,
        }
    }
}

/// Bytes that differ from the same number of bytes from another offset.
fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8 ^ (at >> 12) as u8).collect()
}

/// Sends a TCP stream; returns its length if its contents arrive unchanged.
fn tcp(net: &Net, to: &str, bytes: usize) -> usize {
    let address: SocketAddr = format!("[::]:{}", 5000).parse().expect("one");
    let server = net.on("b", move || {
        let listener = until_some(|| TcpListener::bind(address).ok()).expect("a free port");
        let (mut client, _) = listener.accept().expect("a client");
        client.set_read_timeout(Some(PATIENCE)).expect("an option");
        let mut all = Vec::new();
        let _ = client.read_to_end(&mut all);
        let _ = client.write_all(&(all.len() as u64).to_be_bytes());
        assert!(all == pattern(all.len()), "other contents");
        all.len()
    });
    let to: SocketAddr = to.parse().expect("an address");
    let client = net.on("a", move || {
        let mut stream =
            until_some(|| TcpStream::connect_timeout(&to, PATIENCE).ok()).expect("a connection");
        stream.set_write_timeout(Some(PATIENCE)).expect("an option");
        stream.set_read_timeout(Some(PATIENCE)).expect("an option");
        stream.write_all(&pattern(bytes)).expect("it takes all");
        stream.shutdown(std::net::Shutdown::Write).expect("half closed");
        let mut count = [0; 8];
        stream.read_exact(&mut count).expect("an answer");
        u64::from_be_bytes(count) as usize
    });
    let count = client.join().expect("a client");
    assert_eq!(server.join().expect("a server"), count);
    count
}

/// Sends a datagram and its echo, both in fragments; returns the size of the echo.
fn udp(net: &Net, to: &str, bytes: usize) -> usize {
    let (is_bound, bound) = std::sync::mpsc::channel();
    let server = net.on("b", move || {
        let socket = UdpSocket::bind("[::]:5001").expect("a free port");
        is_bound.send(()).expect("a client");
        socket.set_read_timeout(Some(PATIENCE)).expect("an option");
        let mut data = vec![0; 65_535];
        if let Ok((count, from)) = socket.recv_from(&mut data) {
            let _ = socket.send_to(&data[..count], from);
        }
    });
    let to: SocketAddr = to.parse().expect("an address");
    let client = net.on("a", move || {
        let local = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(local).expect("a socket");
        socket.set_read_timeout(Some(PATIENCE)).expect("an option");
        bound.recv().expect("a server");
        socket.send_to(&vec![3; bytes], to).expect("it is sent");
        socket.recv(&mut vec![0; 65_535]).unwrap_or(0)
    });
    let count = client.join().expect("a client");
    server.join().expect("a server");
    count
}

#[test]
fn hosts_communicate_through_the_firewall() {
    for port in ["auto", "packet"] {
        let Some(mut net) = Net::new(&["ping", "traceroute"]) else { return };
        net.route(port, STATEFUL);
        // The first packet waits until the host is resolved: none is lost.
        for to in ["10.2.0.2", "2001:db8:2::2"] {
            let (_, output) = net.run("a", &["ping", "-n", "-c", "3", "-i", "1", "-W", "3", to]);
            assert!(output.contains(" 3 received"), "{port}: {output}");
        }
        let (_, output) = net.run("a", &["traceroute", "-n", "-q", "1", "-w", "2", "10.2.0.2"]);
        assert!(
            output.contains("1  10.1.0.1") && output.contains("2  10.2.0.2"),
            "{port}: {output}"
        );
        for to in ["10.2.0.2", "[2001:db8:2::2]"] {
            assert_eq!(tcp(&net, &format!("{to}:5000"), 3_000_000), 3_000_000, "{port}");
            assert_eq!(udp(&net, &format!("{to}:5001"), 3000), 3000, "{port}");
        }
        let (stats, output) = net.end();
        for reason in ["firewall_stray", "firewall_unreadable", "firewall_fragment"] {
            assert_eq!(stats.count(reason), 0, "{port}: {stats:?}");
        }
        // Stacks leave checksums to the veth, which has no hardware.
        let completed = stats.facts.iter().find(|(name, _)| name == "checksums completed at r0");
        assert!(completed.is_some(), "{port}: {stats:?}");
        assert!(!output.contains("the kernel forwards"), "{output}");
    }
}

#[test]
fn changed_and_missing_hosts_are_detected() {
    let Some(mut net) = Net::new(&["ping", "arping"]) else { return };
    net.route("auto", "");
    let ping = |net: &Net, to: &str| net.run("a", &["ping", "-n", "-c", "1", "-W", "2", to]);
    for to in ["10.2.0.2", "2001:db8:2::2"] {
        assert!(ping(&net, to).0);
    }
    assert!(net.run("b", &["sysctl", "-qw", "net.ipv6.conf.b0.ndisc_notify=1"]).0);
    assert!(net.run("b", &["ip", "link", "set", "b0", "address", "02:00:00:00:07:07"]).0);
    assert!(net.run("b", &["arping", "-U", "-c", "1", "-I", "b0", "10.2.0.2"]).0);
    for to in ["10.2.0.2", "2001:db8:2::2"] {
        let (succeeded, output) = ping(&net, to);
        assert!(succeeded, "{output}");
    }
    for (to, expected) in [
        ("10.2.0.99", "Destination Host Unreachable"),
        ("2001:db8:2::99", "Destination unreachable: Address unreachable"),
    ] {
        let (_, output) = net.run("a", &["ping", "-n", "-c", "1", "-W", "8", to]);
        assert!(output.contains(expected), "{output}");
    }
}

/// A flood of echo requests by one side does not suppress answers to the other.
#[test]
fn ping_flood_does_not_suppress_arp() {
    let Some(mut net) = Net::new(&["ping", "arping"]) else { return };
    net.route("auto", "");
    let mut flood = net.start("a", &["ping", "-q", "-f", "-w", "4", "10.1.0.1"]);
    std::thread::sleep(Duration::from_millis(300));
    let (_, output) = net.run("b", &["arping", "-c", "5", "-w", "10", "-I", "b0", "10.2.0.1"]);
    assert!(output.contains("Received 5 response"), "{output}");
    let (_, output) = net.run("b", &["ping", "-n", "-c", "3", "-i", "1", "10.2.0.1"]);
    assert!(output.contains(" 3 received"), "{output}");
    let _ = flood.kill();
    let _ = flood.wait();
}

/// A table of 1000 states under 17,500 openings per second.
#[test]
fn flood_of_openings_does_not_block_new_connections() {
    let Some(mut net) = Net::new(&["hping3"]) else { return };
    net.route("auto", &format!("state_limit = 1000\n{STATEFUL}"));
    assert_eq!(tcp(&net, "10.2.0.2:5000", 1000), 1000);
    let flood = ["hping3", "-q", "-S", "--rand-source", "-p", "5000", "-i", "u57", "10.2.0.2"];
    let mut flood = net.start("a", &flood);
    std::thread::sleep(Duration::from_secs(1));
    for _ in 0..5 {
        assert_eq!(tcp(&net, "10.2.0.2:5000", 1000), 1000);
    }
    let _ = flood.kill();
    let _ = flood.wait();
    let (stats, _) = net.end();
    let fact = |name: &str| {
        let found = stats.facts.iter().find(|(other, _)| other == name);
        found.and_then(|(_, value)| value.parse::<u64>().ok()).unwrap_or(0)
    };
    assert!(fact("states evicted") > 1000, "{stats:?}");
    assert!(fact("states") <= 1000, "{stats:?}");
}
