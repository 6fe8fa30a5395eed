//! Routes as text: `prefix via next-hop`, one per line, similar to ip-route(8).
//!
//! ```text
//! # Comments and empty lines are ignored.
//! 198.18.0.0/16 via 198.19.0.2
//! default via 198.19.0.1           # 0.0.0.0/0, as the next hop is IPv4
//! 2001:2:0:8000::/49 via 2001:2::2
//! 203.0.113.0/24 via 2001:2::2     # RFC 8950: the families may differ
//! 2001:db8::/32 via fe80::1%r1     # a link-local address, and its link
//! 192.0.2.0/24 dev r1              # the hosts of a link, each by its own address
//! 10.0.0.0/8 via 198.19.0.2 weight 3 via 198.19.0.3   # flows are spread over several
//! blackhole 10.1.0.0/16            # dropped; `unreachable` and `prohibit` notify the sender
//! throw 10.3.0.0/16                # as if there were no route
//! local 10.2.0.1/32                # to the router's own host
//! ```

use super::{NextHops, Routes, Via};
use crate::fib::{Address, NextHop, Prefix, V4, V6};
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;

/// Maximum number of listed errors; the others are only counted.
const LISTED_MAX: usize = 20;

/// All errors of a file of routes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The first errors, in the order of the lines.
    pub faults: Vec<Fault>,
    /// Total number of errors.
    pub count: usize,
}

/// A line that is not a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Line, from 1.
    pub line: usize,
    /// Description of the error.
    pub what: String,
}

impl std::error::Error for TextError {}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Fault { line, what }) in self.faults.iter().enumerate() {
            let separator = if number == 0 { "" } else { "\n" };
            write!(f, "{separator}line {line}: {what}")?;
        }
        match self.count - self.faults.len() {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

/// Reads routes.
///
/// # Errors
/// Every line that is not a route, and every prefix that already has a route.
pub fn read(text: &str) -> Result<Routes, TextError> {
    let mut reader = Reader::default();
    let mut error = TextError { faults: Vec::new(), count: 0 };
    for (number, line) in text.lines().enumerate() {
        let line_number = number + 1;
        if let Err(what) = reader.line(line_number, line) {
            error.count += 1;
            if error.faults.len() < LISTED_MAX {
                error.faults.push(Fault { line: line_number, what });
            }
        }
    }
    if error.count > 0 { Err(error) } else { Ok(reader.routes) }
}

/// Writes routes in the format of [`read`], IPv4 first.
pub fn write(routes: &Routes) -> String {
    fn family<A: Address>(text: &mut String, routes: &[(Prefix<A>, NextHop)], hops: &NextHops) {
        for (prefix, next_hop) in routes {
            *text += &match hops.via(*next_hop) {
                None => continue,
                Some(via) if via.leads_nowhere() => format!("{via} {prefix}\n"),
                Some(via) => format!("{prefix} {via}\n"),
            };
        }
    }
    let mut text = String::new();
    family(&mut text, &routes.inet, &routes.next_hops);
    family(&mut text, &routes.inet6, &routes.next_hops);
    text
}

#[derive(Default)]
struct Reader {
    routes: Routes,
    /// Line of each prefix.
    inet: HashMap<Prefix<V4>, usize>,
    inet6: HashMap<Prefix<V6>, usize>,
}

impl Reader {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let content = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = content.split_whitespace().collect();
        let (prefix, via) = match words[..] {
            [] => return Ok(()),
            ["blackhole", prefix] => (prefix, Via::Blackhole),
            ["unreachable", prefix] => (prefix, Via::Unreachable),
            ["prohibit", prefix] => (prefix, Via::Prohibit),
            ["throw", prefix] => (prefix, Via::NoRoute),
            ["local", prefix] => (prefix, Via::Host),
            [prefix, "dev", interface] => (prefix, Via::Link(interface.to_owned())),
            [prefix, ref hops @ ..] if hops.first() == Some(&"via") => (prefix, several(hops)?),
            _ => return Err("expected \"prefix via next-hop\"".to_owned()),
        };
        let inet6 = if prefix == "default" { is_inet6(&via) } else { prefix.contains(':') };
        let next_hop = self.routes.next_hops.number(via).ok_or("too many next hops")?;
        if inet6 {
            let prefix = parsed(prefix)?;
            once(&mut self.inet6, prefix, number)?;
            self.routes.inet6.push((prefix, next_hop));
        } else {
            let prefix = parsed(prefix)?;
            once(&mut self.inet, prefix, number)?;
            self.routes.inet.push((prefix, next_hop));
        }
        Ok(())
    }
}

/// Next hops, each preceded by `via`, and followed by `weight N` if it isn't 1.
fn several(mut words: &[&str]) -> Result<Via, String> {
    let mut several = Vec::new();
    while !words.is_empty() {
        let (via, weight, rest) = match words {
            ["via", via, "weight", weight, rest @ ..] => {
                let weight = weight.parse().ok().filter(|&weight: &u8| weight > 0);
                let what = "a weight is a number from 1 to 255";
                (via, weight.ok_or_else(|| what.to_owned())?, rest)
            }
            ["via", via, rest @ ..] => (via, 1, rest),
            _ => return Err("expected \"prefix via next-hop\"".to_owned()),
        };
        let (address, interface) = via.split_once('%').map_or((*via, None), |(a, i)| (a, Some(i)));
        let parsed: IpAddr = address.parse().map_err(|_| format!("{via:?} is no address"))?;
        several.push((
            match interface {
                Some(interface) => Via::Scoped(parsed, interface.to_owned()),
                None => Via::Address(parsed),
            },
            weight,
        ));
        words = rest;
    }
    match several.pop() {
        Some((via, _)) if several.is_empty() => Ok(via),
        last => Ok(Via::Several(several.into_iter().chain(last).collect())),
    }
}

/// True if the default route of this next hop is IPv6.
fn is_inet6(via: &Via) -> bool {
    match via {
        Via::Address(address) | Via::Scoped(address, _) => address.is_ipv6(),
        Via::Several(several) => several.first().is_some_and(|(via, _)| is_inet6(via)),
        _ => false,
    }
}

fn parsed<A: Address>(text: &str) -> Result<Prefix<A>, String> {
    match text {
        "default" => Ok(Prefix::all()),
        text => text.parse().map_err(|error: crate::fib::PrefixError| error.to_string()),
    }
}

fn once<A: Address>(
    lines: &mut HashMap<Prefix<A>, usize>,
    prefix: Prefix<A>,
    number: usize,
) -> Result<(), String> {
    match lines.insert(prefix, number) {
        None => Ok(()),
        Some(earlier) => {
            lines.insert(prefix, earlier);
            Err(format!("{prefix} has a route already, on line {earlier}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_round_trip_through_text() {
        let text = "198.18.0.0/16 via 198.19.0.2\n0.0.0.0/0 via 198.19.0.1\n\
                    203.0.113.0/24 via 2001:2::2\n2001:2:0:8000::/49 via 2001:2::2\n";
        let routes = read(text).expect("routes");
        assert_eq!((routes.inet.len(), routes.inet6.len()), (3, 1));
        assert_eq!(routes.next_hops.vias().len(), 3, "each address once");
        assert_eq!(write(&routes), text);
        let default = read("# a comment\n\n  default via 198.19.0.1 # as well\r\n").expect("one");
        assert_eq!(write(&default), "0.0.0.0/0 via 198.19.0.1\n");
        let default = read("default via 2001:2::1").expect("a route");
        assert_eq!(write(&default), "::/0 via 2001:2::1\n");
    }

    #[test]
    fn all_next_hop_kinds_round_trip_through_text() {
        let text = "192.0.2.0/24 dev r1\nblackhole 10.1.0.0/16\nprohibit 10.2.0.0/16\n\
                    10.0.0.0/8 via 198.19.0.2 weight 3 via 198.19.0.3\n\
                    2001:db8::/32 via fe80::1%r1\nunreachable 2001:db8:1::/48\n\
                    local 2001:db8::1/128\n";
        let routes = read(text).expect("routes");
        assert_eq!(write(&routes), text);
        let fault = |text: &str| read(text).expect_err("a fault").to_string();
        assert_eq!(fault("10.0.0.0/8 via a%r1"), "line 1: \"a%r1\" is no address");
        let weight = fault("10.0.0.0/8 via 198.19.0.2 weight 0");
        assert_eq!(weight, "line 1: a weight is a number from 1 to 255");
        assert!(fault("10.0.0.0/8 via 198.19.0.2 and").contains("expected"));
    }

    #[test]
    fn errors_include_every_line() {
        let text = "10.0.0.0/8 via 192.0.2.1\n10.0.0.0/8 via 192.0.2.2\n\n10.0.0.1/8 via 192.0.2.1\n\
                    10.0.0.0/8 192.0.2.1\n10.0.0.0/40 via 192.0.2.1\n2001::/16 via nowhere\n";
        let error = read(text).expect_err("five faults").to_string();
        assert_eq!(
            error,
            "line 2: 10.0.0.0/8 has a route already, on line 1\n\
             line 4: 10.0.0.1/8 has bits set after the first 8: 0.0.0.1; write 10.0.0.0/8\n\
             line 5: expected \"prefix via next-hop\"\n\
             line 6: the length \"40\" is no number from 0 to 32\n\
             line 7: \"nowhere\" is no address"
        );
    }

    #[test]
    fn long_error_lists_are_truncated() {
        let error = read(&"nonsense\n".repeat(100)).expect_err("no routes");
        assert_eq!((error.faults.len(), error.count), (LISTED_MAX, 100));
        assert!(error.to_string().ends_with("and 80 more"));
    }
}
