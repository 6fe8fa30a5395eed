//! Ranges of addresses and ports in pkt-gen's options `-s` and `-d`.

use std::net::IpAddr;

/// pkt-gen's default port (0 before 2017).
const DEFAULT_PORT: u16 = 1234;
/// The last group of sixteen bits of an IPv6 address, numbered from 0.
const LAST_GROUP: u8 = 7;

/// `198.18.10.1:2000-198.18.10.20:2200` or `[2001:2::1]-[2001:2::46]`: from the first address to
/// the last, inclusive; likewise for ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// First address.
    pub first: IpAddr,
    /// Last address, of the same family.
    pub last: IpAddr,
    /// Incremented group of sixteen bits of an IPv6 address, from 0 to 7: the last one, unless the
    /// option specifies another (`6@[2001:2::1]`).
    pub group: u8,
    /// First and last port; `None` if the option has no port.
    pub ports: Option<(u16, u16)>,
}

impl AddressRange {
    /// Parses an option's value as pkt-gen does: a missing last port equals the first one, and ends
    /// in the wrong order are swapped, except for IPv6 addresses.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (End::parse(first)?, Some(End::parse(last)?)),
            None => (End::parse(text)?, None),
        };
        let last = last.unwrap_or(first);
        let is_ipv4 = first.address.is_ipv4();
        (is_ipv4 == last.address.is_ipv4()).then_some(())?;
        let ports = first.port.or(last.port.map(|_| DEFAULT_PORT)).map(|port| {
            let last = last.port.unwrap_or(port);
            (port.min(last), port.max(last))
        });
        let in_order = !is_ipv4 || first.address <= last.address;
        let (low, high) = if in_order { (first, last) } else { (last, first) };
        let group = first.group.or(last.group).unwrap_or(LAST_GROUP);
        Some(Self { first: low.address, last: high.address, group, ports })
    }

    /// Returns the number of addresses. pkt-gen increments one group of IPv6 addresses and keeps
    /// the others of the first.
    pub fn addresses(&self) -> u64 {
        match (self.first, self.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                u64::from(u32::from(last).saturating_sub(u32::from(first))) + 1
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                let group = usize::from(self.group.min(LAST_GROUP));
                u64::from(last.segments()[group].saturating_sub(first.segments()[group])) + 1
            }
            _ => 1,
        }
    }

    /// Returns the number of pairs of an address and a port.
    pub fn combinations(&self) -> u64 {
        let ports = self.ports.map_or(1, |(first, last)| u64::from(last.saturating_sub(first)) + 1);
        self.addresses() * ports
    }

    /// True for IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.first.is_ipv6()
    }
}

/// One end of a range.
#[derive(Clone, Copy)]
struct End {
    address: IpAddr,
    port: Option<u16>,
    group: Option<u8>,
}

impl End {
    /// Parses `198.18.10.1:2000`, `[2001:2::1]:2000`, `2001:2::1`, `6@[2001:2::1]`; the port is
    /// optional.
    fn parse(text: &str) -> Option<Self> {
        let (group, text) = match text.split_once('@') {
            Some((group, text)) => (Some(group.parse::<u8>().ok()?.min(LAST_GROUP)), text),
            None => (None, text),
        };
        let (address, port) = if let Some(bracketed) = text.strip_prefix('[') {
            let (address, rest) = bracketed.split_once(']')?;
            let port = if rest.is_empty() { None } else { Some(rest.strip_prefix(':')?) };
            (IpAddr::V6(address.parse().ok()?), port)
        } else if let Ok(address) = text.parse() {
            (IpAddr::V6(address), None)
        } else {
            let (address, port) = match text.split_once(':') {
                Some((address, port)) => (address, Some(port)),
                None => (text, None),
            };
            (IpAddr::V4(address.parse().ok()?), port)
        };
        let port = match port {
            Some(port) => Some(port.parse().ok()?),
            None => None,
        };
        Some(Self { address, port, group })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(text: &str) -> Option<(u64, u64)> {
        AddressRange::parse(text).map(|range| (range.addresses(), range.combinations()))
    }

    #[test]
    fn ranges_of_both_families_are_counted() {
        for (text, expected) in [
            ("198.19.10.1:2000-198.19.10.100", (100, 100)),
            ("198.18.1.1:2000-198.18.1.255:2200", (255, 255 * 201)),
            ("198.19.0.11:2000", (1, 1)),
            ("198.19.0.11", (1, 1)),
            ("198.19.0.20-198.19.0.11", (10, 10)),
            ("198.18.1.1:2200-198.18.1.1:2000", (1, 201)),
            ("[2001:2:0:8010::1]-[2001:2:0:8010::46]", (0x46, 0x46)),
            ("[2001:2:0:8010::1]:7-[2001:2:0:8011::1]:8", (1, 2)),
            ("3@[2001:2:0:8010::1]:7-[2001:2:0:8011::1]:8", (2, 4)),
            ("9@[2001:2::1]-[2001:2::3]", (3, 3)),
            ("[2001:2::3]-[2001:2::1]", (1, 1)),
            ("2001:2::1", (1, 1)),
            ("0.0.0.0:0-255.255.255.255:65535", (1 << 32, 1 << 48)),
        ] {
            assert_eq!(counted(text), Some(expected), "{text}");
        }
        for wrong in [
            "",
            "-",
            "1.2.3",
            "1.2.3.4:x",
            "1.2.3.4-[::1]",
            "[::1",
            "[::1]7",
            "1.2.3.4:",
            "x@[::1]",
        ] {
            assert_eq!(counted(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn missing_last_port_equals_the_first() {
        let range = AddressRange::parse("198.18.10.1:2000-198.18.10.20").unwrap();
        assert_eq!(range.ports, Some((2000, 2000)));
        assert_eq!(AddressRange::parse("10.0.0.1").unwrap().ports, None);
        let range = AddressRange::parse("10.0.0.1-10.0.0.2:1236").unwrap();
        assert_eq!(range.ports, Some((1234, 1236)));
    }
}
