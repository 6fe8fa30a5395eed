//! Management addresses and networks of a laboratory, which no route of an experiment may divert.

use crate::dut::freebsd::apply::Interface;
use crate::error::BenchError;
use crate::host::Host;
use crate::links::{Links, ProtectedRoute, bits, prefix};
use fwdlab_model::lab::System;
use std::net::IpAddr;

/// Both ends of the connection to a host, as seen by the host: the controller (or a jump host), and
/// the host's own address.
///
/// # Errors
/// Fails if the host cannot be queried.
pub fn ends(host: &dyn Host, name: &str) -> Result<Vec<ProtectedRoute>, BenchError> {
    let output = host.run(&["/bin/sh", "-c", "echo \"$SSH_CONNECTION\""], "")?;
    Ok(connection(&output, name))
}

/// Parses `CLIENT PORT SERVER PORT` (ssh(1), `SSH_CONNECTION`).
fn connection(output: &str, name: &str) -> Vec<ProtectedRoute> {
    let words: Vec<&str> = output.split_whitespace().collect();
    let protected = |at: usize, whose: String| {
        // A link-local address contains its interface.
        let text = words.get(at)?.split('%').next()?;
        let address: IpAddr = text.parse().ok()?;
        let address = address.to_canonical();
        Some(ProtectedRoute { network: (address, bits(address)), whose })
    };
    let client = protected(0, format!("the controller, as {name} sees it"));
    client.into_iter().chain(protected(2, format!("{name}, as it is administered"))).collect()
}

/// Networks of the DUT's interfaces that do not belong to the test.
///
/// # Errors
/// Fails if the DUT cannot be queried.
pub fn networks(
    host: &dyn Host,
    system: System,
    name: &str,
    links: &Links,
) -> Result<Vec<ProtectedRoute>, BenchError> {
    let test_interfaces = links.both().map(|link| link.interface.as_str());
    let found = match system {
        System::Linux => of_linux(&host.run(&["ip", "-o", "addr", "show"], "")?, &test_interfaces),
        System::FreeBsd => of_freebsd(&host.run(&["ifconfig", "-a"], "")?, &test_interfaces),
    };
    let protected =
        |(interface, network)| ProtectedRoute { network, whose: format!("{name}'s {interface}") };
    // Loopback networks need no protection.
    let is_far = |(_, (address, _)): &(String, (IpAddr, u8))| !address.is_loopback();
    Ok(found.into_iter().filter(is_far).map(protected).collect())
}

type Addresses = Vec<(String, (IpAddr, u8))>;

/// Parses lines such as `2: eth0 inet 192.0.2.7/24 brd ...`.
fn of_linux(text: &str, test_interfaces: &[&str]) -> Addresses {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let name = words.get(1)?.split('@').next()?.to_owned();
        let network = prefix(words.get(3)?)?;
        (!test_interfaces.contains(&name.as_str())).then_some((name, network))
    };
    text.lines().filter_map(line).collect()
}

/// Parses ifconfig(8): an unindented line starts an interface.
fn of_freebsd(text: &str, test_interfaces: &[&str]) -> Addresses {
    let mut found = Addresses::new();
    let mut name = "";
    for line in text.lines() {
        if !line.starts_with(char::is_whitespace) {
            name = line.split(':').next().unwrap_or_default();
        }
        if !test_interfaces.contains(&name) {
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
    fn both_ends_of_the_connection_are_parsed() {
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
    fn networks_of_other_interfaces_are_found() {
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
