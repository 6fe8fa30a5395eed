//! Selects states by the addresses of their ends.

use fwdlab_router::fib::{Address, V4, V6};
use std::net::IpAddr;

/// `from PREFIX`, `to PREFIX` and `limit N`, in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    from: Option<(IpAddr, u8)>,
    to: Option<(IpAddr, u8)>,
    /// Maximum number of listed states.
    pub(super) limit: Option<usize>,
}

impl Selection {
    pub(super) fn parse(mut words: &[&str]) -> Result<Selection, String> {
        let mut selection = Selection::default();
        while let [name, value, rest @ ..] = words {
            match *name {
                "from" => selection.from = Some(prefix(value)?),
                "to" => selection.to = Some(prefix(value)?),
                "limit" => {
                    let limit = value.parse().map_err(|_| format!("`{value}` is no number"))?;
                    selection.limit = Some(limit);
                }
                _ => break,
            }
            words = rest;
        }
        match words {
            [] => Ok(selection),
            [word, ..] => {
                Err(format!("`{word}`: expected `from PREFIX`, `to PREFIX` or `limit NUMBER`"))
            }
        }
    }

    /// True if it selects all states.
    pub(super) fn is_everything(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }

    /// True for a connection from the first to the second address.
    pub(super) fn contains(&self, [from, to]: [IpAddr; 2]) -> bool {
        let fits = |prefix: Option<(IpAddr, u8)>, address| {
            prefix.is_none_or(|prefix| is_in(address, prefix))
        };
        fits(self.from, from) && fits(self.to, to)
    }
}

/// Parses an address, or a prefix.
fn prefix(text: &str) -> Result<(IpAddr, u8), String> {
    let fault = || format!("`{text}`: expected an address or a prefix, as 198.18.0.0/16");
    let (address, length) = match text.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| fault())?;
    let bits = if address.is_ipv4() { V4::BITS } else { V6::BITS };
    let length = length.map_or(Ok(bits), |length| length.parse().map_err(|_| fault()))?;
    if length > bits { Err(fault()) } else { Ok((address, length)) }
}

fn is_in(address: IpAddr, (prefix, length): (IpAddr, u8)) -> bool {
    match (V4::from_ip(address), V4::from_ip(prefix), V6::from_ip(address), V6::from_ip(prefix)) {
        (Some(a), Some(b), ..) => a.masked(length) == b.masked(length),
        (.., Some(a), Some(b)) => a.masked(length) == b.masked(length),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selection_selects_by_prefix_and_names_mistakes() {
        let parse = |text: &str| Selection::parse(&text.split(' ').collect::<Vec<_>>());
        let selection = parse("from 198.18.0.0/16 to 198.19.0.1 limit 5").expect("a selection");
        let ends = |from: &str, to: &str| [from, to].map(|end| end.parse().expect("an address"));
        assert!(selection.contains(ends("198.18.7.7", "198.19.0.1")));
        assert!(!selection.contains(ends("198.19.7.7", "198.19.0.1")));
        assert!(!selection.contains(ends("198.18.7.7", "198.19.0.2")));
        assert!(!selection.contains(ends("2001:db8::1", "198.19.0.1")));
        assert_eq!(selection.limit, Some(5));
        assert!(parse("from ::/0").expect("a selection").contains(ends("2001::1", "2001::2")));
        for wrong in ["from", "from x", "from 10.0.0.0/33", "limit -1", "via 10.0.0.1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
