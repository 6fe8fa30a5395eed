//! Router advertisements of interfaces, from the set-up.

use super::interfaces::{NamedInterface, address};
use super::mistake;
use fwdlab_model::router::{AdvertiseSetup, RouterSetup};
use fwdlab_router::fib::{Address, V6};
use fwdlab_router::path::{Advertisement, Advertiser, Interface};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// `MaxRtrAdvInterval`, RFC 4861 section 6.2.1.
const INTERVALS: RangeInclusive<u16> = 4..=1800;
const LIFETIME_MAX: u16 = 9000;
/// Number of prefixes that fit into a packet of the smallest MTU.
const PREFIXES_MAX: usize = 32;

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
    if prefixes.len() > PREFIXES_MAX {
        return Err(format!("{} prefixes: up to {PREFIXES_MAX} fit", prefixes.len()));
    }
    let flags = (setup.managed, setup.other);
    let tells_mtu = setup.mtu;
    Ok(Advertisement { prefixes, interval, lifetime, valid, preferred, tells_mtu, flags })
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
}
