//! Options of advertisements for hosts: routes, DNS and the prefix of a NAT64.

use crate::fib::V6;

/// Information for hosts in addition to the prefixes of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdvertisedOption {
    /// A route by this router (RFC 4191 section 2.3).
    Route {
        /// Destination, without host bits.
        prefix: V6,
        /// Bits of the prefix.
        length: u8,
        /// Preference over routes by other routers.
        preference: Preference,
    },
    /// Recursive DNS servers (RFC 8106 section 5.1).
    DnsServers(Vec<V6>),
    /// Domains to search, without final dots (RFC 8106 section 5.2).
    SearchDomains(Vec<String>),
    /// Prefix of a NAT64 (RFC 8781).
    Nat64 {
        /// The prefix.
        prefix: V6,
        /// Its length.
        length: Nat64Length,
    },
}

/// Preference of a route or of a default router (RFC 4191 section 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preference {
    /// Preferred.
    High,
    /// Neither preferred nor avoided.
    #[default]
    Medium,
    /// Used if there is no other one.
    Low,
}

impl Preference {
    /// Returns the two bits of the field `Prf`.
    fn bits(self) -> u8 {
        match self {
            Preference::High => 0b01,
            Preference::Medium => 0b00,
            Preference::Low => 0b11,
        }
    }

    /// Returns the field `Prf` at its place in a byte of flags, of an advertisement and of an
    /// option alike.
    pub(super) fn flags(self) -> u8 {
        self.bits() << 3
    }
}

/// Prefix length of a NAT64 (RFC 6052 section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nat64Length {
    /// `PLC` of RFC 8781 section 4.
    code: u16,
}

/// Prefix lengths in the order of their codes.
const NAT64_LENGTHS: [u8; 6] = [96, 64, 56, 48, 40, 32];

impl Nat64Length {
    /// Returns the length of `bits`; `None` if NAT64 has no prefix of this length.
    pub fn new(bits: u8) -> Option<Nat64Length> {
        let at = (0u16..).zip(NAT64_LENGTHS).find(|(_, known)| *known == bits);
        at.map(|(code, _)| Nat64Length { code })
    }
}

/// Types of options.
const ROUTE: u8 = 24;
const DNS_SERVERS: u8 = 25;
const SEARCH_DOMAINS: u8 = 31;
const NAT64: u8 = 38;
/// Units of the lifetime of a NAT64 prefix in seconds, and its highest value.
const NAT64_UNIT: u32 = 8;
const NAT64_LONGEST: u32 = 8191;

impl AdvertisedOption {
    /// Appends the option to a message; hosts forget it after `lifetime` seconds, and immediately
    /// if it is 0.
    pub(super) fn write(&self, lifetime: u32, message: &mut Vec<u8>) {
        let start = message.len();
        match self {
            AdvertisedOption::Route { prefix, length, preference } => {
                message.extend([ROUTE, 0, *length, preference.flags()]);
                message.extend(lifetime.to_be_bytes());
                let words = usize::from(length.div_ceil(64));
                message.extend(&prefix.0.to_be_bytes()[..8 * words]);
            }
            AdvertisedOption::DnsServers(servers) => {
                message.extend([DNS_SERVERS, 0, 0, 0]);
                message.extend(lifetime.to_be_bytes());
                servers.iter().for_each(|server| message.extend(server.0.to_be_bytes()));
            }
            AdvertisedOption::SearchDomains(domains) => {
                message.extend([SEARCH_DOMAINS, 0, 0, 0]);
                message.extend(lifetime.to_be_bytes());
                for label in domains.iter().flat_map(|domain| domain.split('.').chain([""])) {
                    // RFC 1035 section 3.1; the empty label ends a name.
                    message.push(u8::try_from(label.len()).unwrap_or(63));
                    message.extend(label.bytes().take(63));
                }
            }
            AdvertisedOption::Nat64 { prefix, length } => {
                message.extend([NAT64, 0]);
                // Rounded up: 0 means that the prefix is no longer used.
                let scaled = lifetime.div_ceil(NAT64_UNIT).min(NAT64_LONGEST) as u16;
                message.extend((scaled << 3 | length.code).to_be_bytes());
                message.extend(&prefix.0.to_be_bytes()[..12]);
            }
        }
        // Options consist of words of eight bytes.
        message.resize(start + (message.len() - start).next_multiple_of(8), 0);
        message[start + 1] = u8::try_from((message.len() - start) / 8).unwrap_or(u8::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fib::Address;

    fn v6(text: &str) -> V6 {
        V6::from_ip(text.parse().expect("an address")).expect("IPv6")
    }

    fn written(option: &AdvertisedOption, lifetime: u32) -> Vec<u8> {
        // Options begin anywhere in a message.
        let mut message = vec![0xee; 16];
        option.write(lifetime, &mut message);
        message.split_off(16)
    }

    #[test]
    fn routes_have_the_bytes_of_rfc_4191() {
        let route = |prefix, length, preference| {
            let prefix = v6(prefix);
            written(&AdvertisedOption::Route { prefix, length, preference }, 0x102)
        };
        assert_eq!(route("::", 0, Preference::Medium), [24, 1, 0, 0, 0, 0, 1, 2]);
        let half = route("2001:db8::", 32, Preference::High);
        assert_eq!(half, [24, 2, 32, 0x08, 0, 0, 1, 2, 0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0]);
        let whole = route("2001:db8::", 65, Preference::Low);
        assert_eq!((&whole[..4], whole.len()), (&[24, 3, 65, 0x18][..], 24));
    }

    #[test]
    fn dns_options_have_the_bytes_of_rfc_8106() {
        let servers = AdvertisedOption::DnsServers(vec![v6("2001:db8::53"), v6("fe80::1")]);
        let servers = written(&servers, 1800);
        assert_eq!(servers[..8], [25, 5, 0, 0, 0, 0, 7, 8]);
        assert_eq!((servers[23], servers[24], servers.len()), (0x53, 0xfe, 40));
        let domains = ["a.example", "b"].map(str::to_owned).into();
        let domains = written(&AdvertisedOption::SearchDomains(domains), 0);
        assert_eq!(domains[..8], [31, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(domains[8..], *b"\x01a\x07example\0\x01b\0\0\0");
    }

    #[test]
    fn nat64_prefix_has_the_bytes_of_rfc_8781() {
        let of = |bits, lifetime| {
            let length = Nat64Length::new(bits).expect("a length");
            written(&AdvertisedOption::Nat64 { prefix: v6("64:ff9b::"), length }, lifetime)
        };
        let well_known = of(96, 1800);
        assert_eq!(well_known[..8], [38, 2, 0x07, 0x08, 0, 0x64, 0xff, 0x9b]);
        assert_eq!(well_known.len(), 16);
        // Rounded up; limited to 13 bits.
        assert_eq!(of(64, 1801)[2..4], [0x07, 0x11]);
        assert_eq!(of(32, 100_000)[2..4], [0xff, 0xfd]);
        assert_eq!(Nat64Length::new(95), None);
    }
}
