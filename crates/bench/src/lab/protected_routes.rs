//! Management addresses and networks of a laboratory, which no route of an experiment may
//! divert.

use crate::dut::freebsd::apply::Interface;
use crate::error::BenchError;
use crate::host::Host;
use crate::links::{Links, ProtectedRoute, bits, prefix};
use fwdlab_model::lab::System;
use std::net::IpAddr;

/// Both ends of the connection to a host, as it sees them: the controller (or a jump host),
/// and the host's own address.
///
/// # Errors
/// When it can't be asked.
pub fn ends(host: &dyn Host, name: &str) -> Result<Vec<ProtectedRoute>, BenchError> {
    let said = host.run(&["/bin/sh", "-c", "echo \"$SSH_CONNECTION\""], "")?;
    Ok(connection(&said, name))
}

/// Reads `CLIENT PORT SERVER PORT` (ssh(1), `SSH_CONNECTION`).
fn connection(said: &str, name: &str) -> Vec<ProtectedRoute> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let way = |at: usize, whose: String| {
        // A link-local address names its interface.
        let text = words.get(at)?.split('%').next()?;
        let address: IpAddr = text.parse().ok()?;
        let address = address.to_canonical();
        Some(ProtectedRoute { network: (address, bits(address)), whose })
    };
    let client = way(0, format!("the controller, as {name} sees it"));
    client.into_iter().chain(way(2, format!("{name}, as it is administered"))).collect()
}

/// The networks that the DUT is in with interfaces that are not the test's.
///
/// # Errors
/// When it can't be asked.
pub fn networks(
    host: &dyn Host,
    system: System,
    name: &str,
    links: &Links,
) -> Result<Vec<ProtectedRoute>, BenchError> {
    let ours = links.both().map(|link| link.interface.as_str());
    let found = match system {
        System::Linux => of_linux(&host.run(&["ip", "-o", "addr", "show"], "")?, &ours),
        System::FreeBsd => of_freebsd(&host.run(&["ifconfig", "-a"], "")?, &ours),
    };
    let way =
        |(interface, network)| ProtectedRoute { network, whose: format!("{name}'s {interface}") };
    // What is link-local, or loops back, leads nowhere else.
    let is_far = |(_, (address, _)): &(String, (IpAddr, u8))| !address.is_loopback();
    Ok(found.into_iter().filter(is_far).map(way).collect())
}

type Addresses = Vec<(String, (IpAddr, u8))>;

/// `2: eth0    inet 192.0.2.7/24 brd ...`.
fn of_linux(text: &str, ours: &[&str]) -> Addresses {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.get(1)?.split('@').next()?.to_owned();
        let network = prefix(words.get(3)?)?;
        (!ours.contains(&name.as_str())).then_some((name, network))
    };
    text.lines().filter_map(line).collect()
}

/// ifconfig(8): a line that is not indented begins an interface.
fn of_freebsd(text: &str, ours: &[&str]) -> Addresses {
    let mut found = Addresses::new();
    let mut name = "";
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            name = line.split(':').next().unwrap_or_default();
        }
        if !ours.contains(&name) {
            let addresses = Interface::parse(line).addresses;
            found.extend(addresses.into_iter().map(|network| (name.to_owned(), network)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> (IpAddr, u8) {
        prefix(text).expect("a prefix")
    }

    #[test]
    fn both_ends_of_a_connection_are_read() {
        let found = connection("192.0.2.1 50000 192.0.2.9 22\n", "dut");
        let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "the controller, as dut sees it (192.0.2.1)",
                "dut, as it is administered (192.0.2.9)"
            ]
        );
        let found = connection("fe80::1%eth0 1 ::ffff:192.0.2.9 22", "dut");
        assert_eq!(found[0].network, network("fe80::1/128"));
        assert_eq!(found[1].network, network("192.0.2.9/32"));
        assert!(connection("\n", "dut").is_empty(), "this machine itself");
    }

    #[test]
    fn networks_are_those_of_other_interfaces() {
        let text = "1: lo    inet 127.0.0.1/8 scope host lo\\  valid\n2: eth0    inet 192.0.2.7/24 brd 192.0.2.255 scope global eth0\n3: d0@if4    inet 198.18.0.1/24 scope global d0\n2: eth0    inet6 2001:db8::7/64 scope global\n";
        let found = of_linux(text, &["d0", "d1"]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(found[1], ("eth0".to_owned(), network("192.0.2.7/24")));
        let text = "igb0: flags=8843<UP> metric 0 mtu 1500\n\tether 00:25:90:00:00:01\n\tinet 192.0.2.7 netmask 0xffffff00 broadcast 192.0.2.255\n\tinet6 2001:db8::7 prefixlen 64\ncxl0: flags=8843<UP>\n\tinet 198.18.0.1 netmask 0xffffff00\n";
        let found = of_freebsd(text, &["cxl0", "cxl1"]);
        assert_eq!(
            found,
            [
                ("igb0".to_owned(), network("192.0.2.7/24")),
                ("igb0".to_owned(), network("2001:db8::7/64")),
            ]
        );
    }
}
