//! Addresses and prefixes of both families, as numbers.

use std::fmt;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address as a number whose highest bit is the first one in the packet.
pub trait Address:
    Copy + Ord + Hash + fmt::Debug + fmt::Display + Default + Send + Sync + 'static
{
    /// Bits of an address: 32 or 128.
    const BITS: u8;

    /// The lowest [`Self::BITS`] bits of `bits`.
    fn from_bits(bits: u128) -> Self;

    /// The address as a number.
    fn to_bits(self) -> u128;

    /// Converts `address` if it is of this family.
    fn from_ip(address: IpAddr) -> Option<Self>;

    /// Converts the address to the standard library's type.
    fn to_ip(self) -> IpAddr;

    /// `count` bits (1 to 32) from bit `at` on, counted from the first bit in the packet. Bits
    /// beyond the end of the address are 0.
    fn slice(self, at: u8, count: u8) -> usize;

    /// The first `length` bits; the others are 0.
    fn masked(self, length: u8) -> Self;

    /// True if the first `length` bits are equal to those of `other`.
    fn shares(self, other: Self, length: u8) -> bool;

    /// Number of leading bits in common with `other`.
    fn common(self, other: Self) -> u8;

    /// The address with all bits after the first `length` set: the last of a prefix.
    fn last(self, length: u8) -> Self;

    /// The next address; `None` for the last one.
    fn next(self) -> Option<Self>;

    /// `self <= other`, written so that it compiles without a branch: with random addresses, half
    /// of these branches are mispredicted.
    #[inline(always)]
    fn at_most(self, other: Self) -> bool {
        let halves = |address: Self| (address.to_bits() >> 64, address.to_bits() as u64);
        let ((high, low), (other_high, other_low)) = (halves(self), halves(other));
        let (high, other_high) = (high as u64, other_high as u64);
        (high < other_high) | ((high == other_high) & (low <= other_low))
    }
}

/// An IPv4 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct V4(pub u32);

/// An IPv6 address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct V6(pub u128);

impl V6 {
    /// True for fe80::/10 (RFC 4291, section 2.5.6).
    #[inline(always)]
    pub fn is_link_local(self) -> bool {
        self.0 >> 118 == 0xfe80 >> 6
    }
}

macro_rules! address {
    ($name:ident, $number:ty, $ip:ident, $std:ty) => {
        impl Address for $name {
            const BITS: u8 = <$number>::BITS as u8;

            #[inline(always)]
            fn from_bits(bits: u128) -> Self {
                $name(bits as $number)
            }

            #[inline(always)]
            fn to_bits(self) -> u128 {
                self.0.into()
            }

            fn from_ip(address: IpAddr) -> Option<Self> {
                match address {
                    IpAddr::$ip(address) => Some($name(address.into())),
                    _ => None,
                }
            }

            fn to_ip(self) -> IpAddr {
                IpAddr::$ip(self.0.into())
            }

            #[inline(always)]
            fn slice(self, at: u8, count: u8) -> usize {
                // Nearly all lookups need only the first half of an IPv6 address, and shifting 128
                // bits by a variable takes many instructions.
                if Self::BITS > 64 && at + count <= 64 {
                    let half = (self.to_bits() >> 64) as u64;
                    return (half << at >> (64 - count)) as usize;
                }
                // Bits beyond the end of an address are zeros.
                let rest = self.0.checked_shl(at.into()).unwrap_or(0);
                (rest >> (Self::BITS - count)) as usize
            }

            #[inline(always)]
            fn masked(self, length: u8) -> Self {
                $name(self.0 & !Self::host(length))
            }

            #[inline(always)]
            fn shares(self, other: Self, length: u8) -> bool {
                (self.0 ^ other.0).leading_zeros() >= length.into()
            }

            #[inline(always)]
            fn common(self, other: Self) -> u8 {
                (self.0 ^ other.0).leading_zeros() as u8
            }

            #[inline(always)]
            fn last(self, length: u8) -> Self {
                $name(self.0 | Self::host(length))
            }

            fn next(self) -> Option<Self> {
                self.0.checked_add(1).map($name)
            }
        }

        impl $name {
            /// The bits after the first `length`.
            #[inline(always)]
            fn host(length: u8) -> $number {
                <$number>::MAX.checked_shr(length.into()).unwrap_or(0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                <$std>::from(self.0).fmt(f)
            }
        }

        impl From<$std> for $name {
            fn from(address: $std) -> Self {
                $name(address.into())
            }
        }
    };
}

address!(V4, u32, V4, Ipv4Addr);
address!(V6, u128, V6, Ipv6Addr);

/// Addresses that begin with the same bits. The bits after the prefix are 0 in [`Prefix::address`]:
/// each prefix has one representation.
///
/// Prefixes are ordered by address, and at the same address the shorter, so wider, prefix comes
/// first: a prefix comes before all prefixes it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix<A> {
    address: A,
    length: u8,
}

/// Reason why a text or number is not a prefix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrefixError {
    /// The address is invalid, or of the other family.
    #[error("{0:?} is no {1} address")]
    Address(String, &'static str),
    /// The length is not a number, or exceeds the bits of the family's addresses.
    #[error("the length {0:?} is no number from 0 to {1}")]
    Length(String, u8),
    /// Bits after the prefix are set.
    #[error("{address}/{length} has bits set after the first {length}: {hosts}; write {canonical}")]
    HostBits {
        /// The address as written.
        address: String,
        /// The length as written.
        length: u8,
        /// The superfluous bits, as an address.
        hosts: String,
        /// The prefix that was probably meant.
        canonical: String,
    },
}

impl<A: Address> Prefix<A> {
    /// All addresses: the destination of a default route.
    pub fn all() -> Prefix<A> {
        Prefix { address: A::default(), length: 0 }
    }

    /// The prefix of `length` bits at `address`.
    ///
    /// # Errors
    /// If the length is too long, or bits after the prefix are set.
    pub fn new(address: A, length: u8) -> Result<Prefix<A>, PrefixError> {
        if length > A::BITS {
            return Err(PrefixError::Length(length.to_string(), A::BITS));
        }
        let prefix = Prefix::containing(address, length);
        if prefix.address == address {
            return Ok(prefix);
        }
        let hosts = A::from_bits(address.to_bits() ^ prefix.address.to_bits());
        Err(PrefixError::HostBits {
            address: address.to_string(),
            length,
            hosts: hosts.to_string(),
            canonical: prefix.to_string(),
        })
    }

    /// The prefix of `length` bits that contains `address`; a length greater than the address
    /// length means the whole address.
    pub fn containing(address: A, length: u8) -> Prefix<A> {
        let length = length.min(A::BITS);
        Prefix { address: address.masked(length), length }
    }

    /// The first address.
    #[inline]
    pub fn address(self) -> A {
        self.address
    }

    /// Number of bits that all addresses share.
    #[inline]
    pub fn length(self) -> u8 {
        self.length
    }

    /// The last address.
    #[inline]
    pub fn last(self) -> A {
        self.address.last(self.length)
    }

    /// True if `address` belongs to the prefix.
    #[inline]
    pub fn contains(self, address: A) -> bool {
        self.address.shares(address, self.length)
    }

    /// True if all addresses of `other` belong to this prefix.
    #[inline]
    pub fn covers(self, other: Prefix<A>) -> bool {
        self.length <= other.length && self.contains(other.address)
    }
}

impl<A: Address> fmt::Display for Prefix<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

impl<A: Address> FromStr for Prefix<A> {
    type Err = PrefixError;

    /// Parses `address/length`; an address alone is a prefix of all its bits.
    fn from_str(text: &str) -> Result<Prefix<A>, PrefixError> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let family = if A::BITS == V4::BITS { "IPv4" } else { "IPv6" };
        let parsed = address.parse().ok().and_then(A::from_ip);
        let Some(parsed) = parsed else {
            return Err(PrefixError::Address(address.to_owned(), family));
        };
        let length = match length {
            None => A::BITS,
            // Rust's integer parser accepts a sign, but a length has none.
            Some(digits) => match digits.parse() {
                Ok(length) if !digits.starts_with('+') => length,
                _ => return Err(PrefixError::Length(digits.to_owned(), A::BITS)),
            },
        };
        Prefix::new(parsed, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(text: &str) -> Prefix<V4> {
        text.parse().expect("a prefix")
    }

    #[test]
    fn prefixes_round_trip_through_text() {
        for text in ["0.0.0.0/0", "10.0.0.0/8", "192.0.2.1/32", "198.18.0.0/15"] {
            assert_eq!(v4(text).to_string(), text);
        }
        for text in ["::/0", "2001:2::/48", "2001:db8::1/128"] {
            assert_eq!(text.parse::<Prefix<V6>>().expect("a prefix").to_string(), text);
        }
        assert_eq!(v4("192.0.2.1"), v4("192.0.2.1/32"));
    }

    #[test]
    fn invalid_prefixes_are_errors() {
        let error = |text: &str| text.parse::<Prefix<V4>>().expect_err("no prefix").to_string();
        assert_eq!(error("10.0.0/8"), "\"10.0.0\" is no IPv4 address");
        assert_eq!(error("2001:db8::/32"), "\"2001:db8::\" is no IPv4 address");
        assert_eq!(error("10.0.0.0/33"), "the length \"33\" is no number from 0 to 32");
        assert_eq!(error("10.0.0.0/+8"), "the length \"+8\" is no number from 0 to 32");
        assert_eq!(
            error("10.1.2.0/8"),
            "10.1.2.0/8 has bits set after the first 8: 0.1.2.0; write 10.0.0.0/8"
        );
        let error = "2001:db8::1/64".parse::<Prefix<V6>>().expect_err("no prefix").to_string();
        assert!(error.ends_with("the first 64: ::1; write 2001:db8::/64"), "{error}");
    }

    #[test]
    fn bits_count_from_the_first_in_the_packet() {
        let address = V4(0x1234_5678);
        assert_eq!(address.slice(0, 4), 1);
        assert_eq!(address.slice(8, 16), 0x3456);
        assert_eq!(address.slice(30, 6), 0, "beyond the end: zeros");
        assert_eq!(address.slice(32, 6), 0);
        assert_eq!(V4(3).slice(30, 6), 0b11_0000);
        assert_eq!(V6(1 << 127 | 0xff).slice(120, 8), 0xff);
        assert_eq!(V6(1 << 127).slice(0, 24), 1 << 23);
        assert_eq!(V4(0xffff_ffff).masked(0), V4(0));
        assert_eq!(V4(0xffff_ffff).masked(32), V4(0xffff_ffff));
        assert_eq!(V4(0).last(0), V4(u32::MAX));
        assert_eq!(V4(8).common(V4(9)), 31);
        assert_eq!(V4(8).common(V4(8)), 32);
    }

    #[test]
    fn containing_prefixes_sort_first() {
        let mut prefixes = [v4("10.0.0.0/24"), v4("10.0.0.0/8"), v4("9.0.0.0/8"), v4("0.0.0.0/0")];
        prefixes.sort();
        assert_eq!(
            prefixes.map(|prefix| prefix.to_string()),
            ["0.0.0.0/0", "9.0.0.0/8", "10.0.0.0/8", "10.0.0.0/24"]
        );
        assert!(v4("10.0.0.0/8").covers(v4("10.0.0.0/24")));
        assert!(!v4("10.0.0.0/24").covers(v4("10.0.0.0/8")));
        assert!(!v4("10.0.0.0/8").covers(v4("11.0.0.0/24")));
    }
}
