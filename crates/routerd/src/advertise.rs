//! Router advertisements of interfaces, from the set-up.

use super::interfaces::{NamedInterface, address};
use super::mistake;
use fwdlab_model::router::{AdvertiseSetup, PreferenceKind, RouterSetup};
use fwdlab_router::fib::{Address, V6};
use fwdlab_router::path::{
    AdvertisedOption, Advertisement, Advertiser, Interface, Nat64Length, Preference,
};
use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// `MaxRtrAdvInterval`, RFC 4861 section 6.2.1.
const INTERVALS: RangeInclusive<u16> = 4..=1800;
const LIFETIME_MAX: u16 = 9000;
/// Lifetime of options in intervals (RFC 8106 section 5.1, RFC 8781 section 4.1).
const OPTION_INTERVALS: u32 = 3;
/// The smallest MTU of IPv6 (RFC 8200 section 5): advertisements are not fragmented (RFC 6980).
const SMALLEST_MTU: usize = 1280;
/// Maximum number of routes (RFC 4191 section 4).
const ROUTES_MAX: usize = 17;
/// Longest domain, and longest label of one (RFC 1035 section 2.3.4).
const DOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;

/// Reads the advertisements of all interfaces; `None` if no interface advertises.
///
/// # Errors
/// User errors.
pub(super) fn read(
    setup: &RouterSetup,
    interfaces: &[NamedInterface],
) -> anyhow::Result<Option<Arc<Advertiser>>> {
    let one = |(entry, named): (&fwdlab_model::router::InterfaceSetup, &NamedInterface)| {
        let Some(advertise) = &entry.advertise else { return Ok(None) };
        if !setup.circuits.is_empty() {
            return Err(mistake("advertise: circuits have no hosts; leave it out".into()));
        }
        let advertisement = of(advertise, &named.interface);
        let fault = |what| mistake(format!("interface {}: advertise: {what}", entry.name));
        advertisement.map(Some).map_err(fault)
    };
    let all = setup.interfaces.iter().zip(interfaces).map(one);
    let all = all.collect::<anyhow::Result<Vec<_>>>()?;
    let any = all.iter().any(Option::is_some);
    Ok(any.then(|| Arc::new(Advertiser::new(all))))
}

fn of(setup: &AdvertiseSetup, interface: &Interface) -> Result<Advertisement, String> {
    let AdvertiseSetup { interval, valid, preferred, .. } = *setup;
    if !INTERVALS.contains(&interval) {
        return Err(format!("interval = {interval}: it is 4 to 1800 seconds"));
    }
    let lifetime = setup.lifetime.unwrap_or(3 * interval);
    if lifetime != 0 && !(interval..=LIFETIME_MAX).contains(&lifetime) {
        return Err(format!(
            "lifetime = {lifetime}: it is 0, or {interval} (the interval) to {LIFETIME_MAX} seconds"
        ));
    }
    if preferred > valid {
        return Err(format!("preferred = {preferred} is longer than valid = {valid}"));
    }
    let prefixes = match &setup.prefixes {
        None => own_prefixes(interface),
        Some(texts) => texts.iter().map(|text| prefix(text)).collect::<Result<_, _>>()?,
    };
    let advertisement = Advertisement {
        prefixes,
        interval,
        lifetime,
        valid,
        preferred,
        tells_mtu: setup.mtu,
        flags: (setup.managed, setup.other),
        preference: preference(setup.preference),
        options: options(setup)?,
        options_lifetime: OPTION_INTERVALS * u32::from(interval),
    };
    match advertisement.packet_len() {
        0..=SMALLEST_MTU => Ok(advertisement),
        bytes => Err(format!(
            "it takes {bytes} bytes, and links may carry no more than {SMALLEST_MTU}: leave some \
             prefixes, routes, servers or domains out"
        )),
    }
}

/// Returns the options for hosts.
fn options(setup: &AdvertiseSetup) -> Result<Vec<AdvertisedOption>, String> {
    if setup.routes.len() > ROUTES_MAX {
        return Err(format!("{} routes: there are at most {ROUTES_MAX}", setup.routes.len()));
    }
    let mut options = Vec::new();
    for text in &setup.routes {
        let route = route(text)?;
        if options.iter().any(|other| is_same_prefix(other, &route)) {
            return Err(format!("routes: the prefix of `{text}` is there already"));
        }
        options.push(route);
    }
    if !setup.dns.is_empty() {
        let servers = setup.dns.iter().map(|text| server(text)).collect::<Result<_, _>>()?;
        options.push(AdvertisedOption::DnsServers(servers));
    }
    if !setup.search.is_empty() {
        let domains = setup.search.iter().map(|text| domain(text)).collect::<Result<_, _>>()?;
        options.push(AdvertisedOption::SearchDomains(domains));
    }
    options.extend(setup.nat64.as_deref().map(nat64).transpose()?);
    Ok(options)
}

fn is_same_prefix(one: &AdvertisedOption, other: &AdvertisedOption) -> bool {
    let of = |option: &AdvertisedOption| match option {
        AdvertisedOption::Route { prefix, length, .. } => Some((*prefix, *length)),
        _ => None,
    };
    of(one) == of(other)
}

fn preference(kind: PreferenceKind) -> Preference {
    match kind {
        PreferenceKind::High => Preference::High,
        PreferenceKind::Medium => Preference::Medium,
        PreferenceKind::Low => Preference::Low,
    }
}

/// Reads `2001:db8::/32` or `2001:db8::/32 high`.
fn route(text: &str) -> Result<AdvertisedOption, String> {
    let (prefix, preference) = match text.split_once(' ') {
        None => (text, Preference::Medium),
        Some((prefix, "high")) => (prefix, Preference::High),
        Some((prefix, "medium")) => (prefix, Preference::Medium),
        Some((prefix, "low")) => (prefix, Preference::Low),
        Some((_, word)) => {
            return Err(format!("routes: `{word}` is no preference: high, medium or low"));
        }
    };
    let (prefix, length) = self::prefix(prefix)?;
    Ok(AdvertisedOption::Route { prefix, length, preference })
}

fn server(text: &str) -> Result<V6, String> {
    let address = text
        .parse()
        .ok()
        .filter(|ip: &IpAddr| !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast());
    address.and_then(V6::from_ip).ok_or_else(|| {
        format!("dns: `{text}` is no IPv6 address of a server: write it as 2001:2::53")
    })
}

fn domain(text: &str) -> Result<String, String> {
    let name = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        (1..=LABEL_MAX).contains(&label.len()) && label.chars().all(plain)
    };
    match name.len() <= DOMAIN_MAX && name.split('.').all(is_label) {
        true => Ok(name.to_owned()),
        false => Err(format!("search: `{text}` is no domain: write it as lab.example")),
    }
}

fn nat64(text: &str) -> Result<AdvertisedOption, String> {
    let wrong = || {
        format!(
            "nat64: `{text}` is no prefix of a NAT64: write it as 64:ff9b::/96, with a length of \
             32, 40, 48, 56, 64 or 96"
        )
    };
    let (prefix, bits) = prefix(text).map_err(|_| wrong())?;
    // RFC 6052 section 2.2: bits 64 to 71 are zero.
    let length = Nat64Length::new(bits).filter(|_| (prefix.0 >> 56) as u8 == 0);
    let length = length.ok_or_else(wrong)?;
    Ok(AdvertisedOption::Nat64 { prefix, length })
}

/// The prefixes of the interface's addresses.
fn own_prefixes(interface: &Interface) -> Vec<(V6, u8)> {
    let mut all: Vec<(V6, u8)> = Vec::new();
    for &(address, length) in &interface.addresses {
        let Some(address) = V6::from_ip(address).filter(|own| !own.is_link_local()) else {
            continue;
        };
        let prefix = (address.masked(length), length);
        if !all.contains(&prefix) {
            all.push(prefix);
        }
    }
    all
}

fn prefix(text: &str) -> Result<(V6, u8), String> {
    let (ip, length) = address(text).map_err(|_| wrong(text))?;
    let prefix = V6::from_ip(ip).filter(|_| length <= V6::BITS).ok_or_else(|| wrong(text))?;
    let is_right = prefix == prefix.masked(length) && !prefix.is_link_local();
    if is_right { Ok((prefix, length)) } else { Err(wrong(text)) }
}

fn wrong(text: &str) -> String {
    format!("`{text}` is no IPv6 prefix of a link: write it as 2001:2::/64")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn advertisement_defaults_to_the_interface_and_mistakes_are_reported() {
        let addresses = ["2001:2::1", "198.18.0.1", "fe80::1", "2001:2::9", "2001:3::1"]
            .map(|text| text.parse().expect("an address"));
        let addresses = addresses.into_iter().zip([64, 24, 64, 64, 80]).collect();
        let interface = Interface { mac: [2; 6], mtu: 1500, addresses };
        let read = |change: &dyn Fn(&mut AdvertiseSetup)| {
            let mut setup = AdvertiseSetup::default();
            change(&mut setup);
            of(&setup, &interface)
        };
        let plain = read(&|_| ()).expect("sound");
        let v6 = |text: &str| V6::from_ip(text.parse().expect("one")).expect("IPv6");
        assert_eq!(plain.prefixes, [(v6("2001:2::"), 64), (v6("2001:3::"), 80)]);
        assert_eq!((plain.interval, plain.lifetime), (600, 1800));
        let expect_error = |change: &dyn Fn(&mut AdvertiseSetup), words: &str| {
            let error = read(change).expect_err("a mistake");
            assert!(error.contains(words), "{error}");
        };
        expect_error(&|t| t.interval = 3, "4 to 1800");
        expect_error(&|t| t.lifetime = Some(599), "600 (the interval) to 9000");
        assert_eq!(read(&|t| t.lifetime = Some(0)).map(|setup| setup.lifetime), Ok(0));
        expect_error(&|t| t.preferred = 2_592_001, "longer than valid");
        for wrong in ["2001:2::1/64", "10.0.0.0/8", "fe80::/64", "2001:2::/129", "x"] {
            expect_error(&|t| t.prefixes = Some(vec![wrong.into()]), "no IPv6 prefix");
        }
    }
    #[test]
    fn options_for_hosts_are_read_and_mistakes_are_reported() {
        let read = |keys: serde_json::Value| {
            let setup: AdvertiseSetup = serde_json::from_value(keys).expect("known keys");
            of(&setup, &Interface { mac: [2; 6], mtu: 1500, addresses: Vec::new() })
        };
        let found = read(json!({
            "interval": 400,
            "preference": "low",
            "routes": ["2001:db8::/32 high", "::/0"],
            "dns": ["2001:2::53", "fe80::1"],
            "search": ["lab.example.", "a_b.example"],
            "nat64": "64:ff9b::/96",
        }))
        .expect("sound");
        assert_eq!((found.preference, found.options_lifetime), (Preference::Low, 1200));
        assert_eq!(found.options.len(), 5, "{:?}", found.options);
        let domains = ["lab.example", "a_b.example"].map(str::to_owned).into();
        assert_eq!(found.options[3], AdvertisedOption::SearchDomains(domains));
        let (long, many) = (["a"; 128].join("."), vec!["2001:2::53"; 76]);
        for (keys, words) in [
            (json!({ "routes": ["2001:db8::1/32"] }), "no IPv6 prefix"),
            (json!({ "routes": ["2001:db8::/32 higher"] }), "`higher` is no preference"),
            (json!({ "routes": ["2001:db8::/32", "2001:db8::/32 low"] }), "there already"),
            (json!({ "routes": vec!["::/0"; 18] }), "at most 17"),
            (json!({ "dns": ["192.0.2.1"] }), "`192.0.2.1` is no IPv6 address"),
            (json!({ "dns": ["ff02::1"] }), "`ff02::1` is no IPv6 address of a server"),
            (json!({ "search": ["a..b"] }), "`a..b` is no domain"),
            (json!({ "search": ["a b"] }), "no domain"),
            (json!({ "search": [long] }), "no domain"),
            (json!({ "nat64": "64:ff9b::/95" }), "32, 40, 48, 56, 64 or 96"),
            (json!({ "nat64": "64:ff9b::1/96" }), "no prefix of a NAT64"),
            (json!({ "nat64": "2001:db8:0:0:ff00::/96" }), "no prefix of a NAT64"),
            (json!({ "dns": many }), "it takes 1296 bytes, and links may carry no more than 1280"),
        ] {
            let error = read(keys).expect_err("a mistake");
            assert!(error.contains(words), "{error}");
        }
    }
}
