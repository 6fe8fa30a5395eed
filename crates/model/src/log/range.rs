//! Ranges of addresses and ports, as pkt-gen's options `-s` and `-d` take them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `198.18.10.1:2000-198.18.10.20:2200` or `[2001:2::1]-[2001:2::46]`: from the
/// first address to the last, both included; the same of the ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AddressRange {
    /// Lowest address.
    pub first: IpAddr,
    /// Highest address, of the same family.
    pub last: IpAddr,
    /// Lowest and highest port; none where the option names no port (pkt-gen
    /// then takes one, 1234 or, before 2017, 0).
    pub ports: Option<(u16, u16)>,
}

impl AddressRange {
    /// Reads an option's value. A last port that is left out is the first; ends
    /// in the wrong order are swapped: both as pkt-gen does.
    pub fn parse(text: &str) -> Option<Self> {
        let (first, last) = match text.split_once('-') {
            Some((first, last)) => (end(first)?, Some(end(last)?)),
            None => (end(text)?, None),
        };
        let (last_address, last_port) = last.unwrap_or(first);
        if first.0.is_ipv4() != last_address.is_ipv4() {
            return None;
        }
        let ports = first.1.or(last_port).map(|port| {
            let last = last_port.unwrap_or(port);
            (port.min(last), port.max(last))
        });
        let (low, high) = (first.0.min(last_address), first.0.max(last_address));
        Some(Self { first: low, last: high, ports })
    }

    /// Addresses in it. Of IPv6 addresses pkt-gen counts one group of sixteen
    /// bits up, the first that differs.
    pub fn addresses(&self) -> u64 {
        match (self.first, self.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) => {
                u64::from(u32::from(last).saturating_sub(u32::from(first))) + 1
            }
            (IpAddr::V6(first), IpAddr::V6(last)) => {
                let groups = first.segments().into_iter().zip(last.segments());
                groups
                    .into_iter()
                    .find(|(first, last)| first != last)
                    .map_or(1, |(first, last)| u64::from(last.saturating_sub(first)) + 1)
            }
            _ => 1,
        }
    }

    /// Pairs of an address and a port in it.
    pub fn combinations(&self) -> u64 {
        let ports = self.ports.map_or(1, |(first, last)| u64::from(last.saturating_sub(first)) + 1);
        self.addresses() * ports
    }

    /// True for IPv6.
    pub fn is_ipv6(&self) -> bool {
        self.first.is_ipv6()
    }
}

/// One end of a range: an address, perhaps a port.
fn end(text: &str) -> Option<(IpAddr, Option<u16>)> {
    if let Some(bracketed) = text.strip_prefix('[') {
        let (address, rest) = bracketed.split_once(']')?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port.parse().ok()?),
            None if rest.is_empty() => None,
            None => return None,
        };
        return Some((IpAddr::V6(address.parse::<Ipv6Addr>().ok()?), port));
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some((IpAddr::V6(address), None));
    }
    let (address, port) = match text.split_once(':') {
        Some((address, port)) => (address, Some(port.parse().ok()?)),
        None => (text, None),
    };
    Some((IpAddr::V4(address.parse::<Ipv4Addr>().ok()?), port))
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
            ("[2001:2:0:8010::1]:7-[2001:2:0:8011::1]:8", (2, 4)),
            ("2001:2::1", (1, 1)),
            ("0.0.0.0:0-255.255.255.255:65535", (1 << 32, 1 << 48)),
        ] {
            assert_eq!(counted(text), Some(expected), "{text}");
        }
        for wrong in ["", "-", "1.2.3", "1.2.3.4:x", "1.2.3.4-[::1]", "[::1", "[::1]7", "1.2.3.4:"]
        {
            assert_eq!(counted(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_missing_last_port_is_the_first() {
        let range = AddressRange::parse("198.18.10.1:2000-198.18.10.20").unwrap();
        assert_eq!(range.ports, Some((2000, 2000)));
        assert_eq!(AddressRange::parse("10.0.0.1").unwrap().ports, None);
    }
}
