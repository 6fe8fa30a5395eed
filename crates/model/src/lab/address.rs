//! Addresses of interfaces, and the ranges reserved for benchmarks.

use serde::{Serialize, Serializer};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Reason why text is not an address; a sentence that describes a valid one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressError(pub String);

impl fmt::Display for AddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for AddressError {}

/// MAC address of one interface: neither a group address nor zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mac(pub [u8; 6]);

impl FromStr for Mac {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Mac, AddressError> {
        let wrong =
            || AddressError("a MAC is six pairs of hexadecimal digits: 02:00:00:00:00:01".into());
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().ok_or_else(wrong)?;
            if pair.len() != 2 || !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                return Err(wrong());
            }
            *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
        }
        match bytes {
            _ if pairs.next().is_some() => Err(wrong()),
            [0, 0, 0, 0, 0, 0] => Err(AddressError("no interface on a cable has the MAC 0".into())),
            // The first bit on the wire (IEEE 802, clause 8.2).
            [first, ..] if first & 1 == 1 => {
                Err(AddressError("this is a group's MAC, not an interface's".into()))
            }
            _ => Ok(Mac(bytes)),
        }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl Serialize for Mac {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Address of an interface with the prefix length of its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceAddress {
    /// Address.
    pub address: IpAddr,
    /// Bits of the prefix.
    pub length: u8,
}

impl InterfaceAddress {
    /// True if it is reserved for benchmarks: 198.18.0.0/15 (RFC 2544 appendix C.2.2) or
    /// 2001:2::/48 (RFC 5180 section 8, with the erratum that corrects it), and so is its whole
    /// link.
    pub fn is_for_benchmarks(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => {
                self.length >= 15 && matches!(address.octets(), [198, 18 | 19, ..])
            }
            IpAddr::V6(address) => {
                self.length >= 48 && matches!(address.segments(), [0x2001, 2, 0, ..])
            }
        }
    }

    /// True if both are on one link: same network, same length.
    pub fn shares_link_with(&self, other: &InterfaceAddress) -> bool {
        self.address.is_ipv4() == other.address.is_ipv4()
            && self.length == other.length
            && self.network() == other.network()
    }

    fn network(&self) -> u128 {
        let (bits, width) = match self.address {
            IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
            IpAddr::V6(address) => (Ipv6Addr::to_bits(address), 128),
        };
        bits.checked_shr(width - u32::from(self.length)).unwrap_or(0)
    }
}

impl FromStr for InterfaceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<InterfaceAddress, AddressError> {
        let wrong = || AddressError(format!("`{text}` is no address"));
        let Some((address, length)) = text.split_once('/') else {
            let address: IpAddr = text.parse().map_err(|_| wrong())?;
            let length = if address.is_ipv4() { 24 } else { 64 };
            let help = format!("the prefix length is missing: {address}/{length}");
            return Err(AddressError(help));
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let digits = length.bytes().all(|digit| digit.is_ascii_digit());
        match length.parse() {
            Ok(length) if digits && length <= most => Ok(InterfaceAddress { address, length }),
            _ => Err(AddressError(format!("a prefix length is from 0 to {most}"))),
        }
    }
}

impl fmt::Display for InterfaceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl Serialize for InterfaceAddress {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mac_parsing_accepts_only_single_interfaces() {
        let mac: Mac = "00:07:43:2E:e4:70".parse().expect("a MAC");
        assert_eq!(
            (mac.0, mac.to_string().as_str()),
            ([0, 7, 0x43, 0x2e, 0xe4, 0x70], "00:07:43:2e:e4:70")
        );
        for text in [
            "",
            "00:07:43:2e:e4",
            "00:07:43:2e:e4:70:01",
            "0:7:43:2e:e4:70",
            "00:07:43:2e:e4:+7",
            "00-07-43-2e-e4-70",
            "01:00:5e:00:00:01",
            "ff:ff:ff:ff:ff:ff",
            "00:00:00:00:00:00",
        ] {
            assert!(text.parse::<Mac>().is_err(), "{text}");
        }
    }

    #[test]
    fn benchmark_addresses_are_recognised() {
        for (text, expected) in [
            ("198.18.0.2/24", true),
            ("198.19.255.255/32", true),
            ("198.18.0.2/15", true),
            ("198.18.0.2/14", false),
            ("198.17.255.255/24", false),
            ("198.20.0.1/24", false),
            ("192.168.1.1/24", false),
            ("2001:2::2/64", true),
            ("2001:2:0:8000::10/49", true),
            ("2001:2::2/47", false),
            ("2001:2:1::2/64", false),
            ("fe80::1/64", false),
        ] {
            let address: InterfaceAddress = text.parse().expect(text);
            assert_eq!(
                (address.is_for_benchmarks(), address.to_string().as_str()),
                (expected, text)
            );
        }
        for text in [
            "198.18.0.2",
            "198.18.0.2/33",
            "2001:2::/129",
            "198.18.0/24",
            "x/24",
            "198.18.0.2/+8",
            "198.18.0.2/",
        ] {
            assert!(text.parse::<InterfaceAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn link_requires_equal_network_and_length() {
        let shares = |a: &str, b: &str| {
            let [a, b] = [a, b].map(|text| text.parse::<InterfaceAddress>().expect(text));
            (a.shares_link_with(&b), b.shares_link_with(&a))
        };
        assert_eq!(shares("198.18.0.2/24", "198.18.0.10/24"), (true, true));
        assert_eq!(shares("198.18.0.2/24", "198.18.1.10/24"), (false, false));
        assert_eq!(shares("198.18.0.2/24", "198.18.0.10/25"), (false, false));
        assert_eq!(shares("2001:2::2/64", "2001:2::10/64"), (true, true));
        assert_eq!(shares("2001:2::2/128", "2001:2::3/128"), (false, false));
        assert_eq!(shares("198.18.0.2/0", "198.19.0.2/0"), (true, true));
        assert_eq!(shares("198.18.0.2/0", "2001:2::/0"), (false, false));
    }
}
