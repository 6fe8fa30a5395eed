//! The ways by which a laboratory is administered: what no route of an experiment may
//! lead elsewhere.

use super::links::{Links, prefix};
use crate::dut::freebsd::apply::Interface;
use crate::error::BenchError;
use crate::host::Host;
use fwdlab_model::lab::System;
use std::fmt;
use std::net::IpAddr;

/// An address that the DUT must go on reaching, or a network that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The address with its whole length, or the network.
    pub network: (IpAddr, u8),
    /// Who is there.
    pub whose: String,
}

impl Way {
    /// True when a route to `prefix` takes packets from it. Of a network that the DUT is in
    /// only longer prefixes, or its own, do.
    pub fn is_lost_by(&self, prefix: (IpAddr, u8)) -> bool {
        let (address, length) = self.network;
        let is_one = length == bits(address);
        overlaps(self.network, prefix) && (is_one || prefix.1 >= length)
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, length) = self.network;
        match length == bits(address) {
            true => write!(f, "{} ({address})", self.whose),
            false => write!(f, "{} ({address}/{length})", self.whose),
        }
    }
}

/// True when one of two prefixes lies within the other.
pub fn overlaps(one: (IpAddr, u8), other: (IpAddr, u8)) -> bool {
    let shorter = u32::from(one.1.min(other.1));
    match (one.0, other.0) {
        (IpAddr::V4(a), IpAddr::V4(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(32 - shorter.min(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(b)) => {
            (a.to_bits() ^ b.to_bits()).checked_shr(128 - shorter.min(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Both ends of the connection to a host, as it sees them: whoever asks (or the machine
/// that the connection goes through), and the host's own address.
///
/// # Errors
/// When it can't be asked.
pub fn ends(host: &dyn Host, name: &str) -> Result<Vec<Way>, BenchError> {
    let said = host.run(&["/bin/sh", "-c", "echo \"$SSH_CONNECTION\""], "")?;
    Ok(connection(&said, name))
}

/// Reads `CLIENT PORT SERVER PORT` (ssh(1), `SSH_CONNECTION`).
fn connection(said: &str, name: &str) -> Vec<Way> {
    let words: Vec<&str> = said.split_whitespace().collect();
    let way = |at: usize, whose: String| {
        // A link-local address names its interface.
        let text = words.get(at)?.split('%').next()?;
        let address: IpAddr = text.parse().ok()?;
        let address = address.to_canonical();
        Some(Way { network: (address, bits(address)), whose })
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
) -> Result<Vec<Way>, BenchError> {
    let ours = links.both().map(|link| link.interface.as_str());
    let found = match system {
        System::Linux => of_linux(&host.run(&["ip", "-o", "addr", "show"], "")?, &ours),
        System::FreeBsd => of_freebsd(&host.run(&["ifconfig", "-a"], "")?, &ours),
    };
    let way = |(interface, network)| Way { network, whose: format!("{name}'s {interface}") };
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
    fn prefixes_within_each_other_overlap() {
        for (one, other, expected) in [
            ("10.0.0.0/8", "10.255.255.255/32", true),
            ("10.0.0.0/8", "11.0.0.0/32", false),
            ("0.0.0.0/0", "192.0.2.1/32", true),
            ("192.0.2.1/32", "192.0.2.1/32", true),
            ("192.0.2.1/32", "192.0.2.0/32", false),
            ("2001:2::/48", "2001:2:0:ffff::1/128", true),
            ("2001:2::/48", "2001:2:1::1/128", false),
            ("::/0", "2001:db8::1/128", true),
            ("::/0", "192.0.2.1/32", false),
        ] {
            let (a, b) = (network(one), network(other));
            assert_eq!((overlaps(a, b), overlaps(b, a)), (expected, expected), "{one} {other}");
        }
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
