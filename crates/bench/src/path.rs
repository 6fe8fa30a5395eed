//! A run's packets on both sides of a device that may translate addresses.

use crate::error::BenchError;
use crate::links::Links;
use fwdlab_model::settings::Settings;
use fwdlab_packet::Stream;
use std::net::IpAddr;

/// The declared path of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// Packets as the senders send them.
    pub(crate) sent: Stream,
    /// Packets behind the device; source addresses are those before translation.
    pub(crate) arriving: Stream,
    /// Source address that the device gives every packet; `None` if packets keep theirs.
    pub(crate) translated: Option<IpAddr>,
}

impl Path {
    /// Returns the path through a device between these links.
    ///
    /// # Errors
    /// Returns an error if the device translates, but has no address of the traffic's family on the
    /// side concerned.
    pub(crate) fn new(settings: &Settings, links: &Links) -> Result<Path, BenchError> {
        let family = settings.traffic.family;
        let missing = |interface: &str, side: &str| {
            BenchError::Refused(format!(
                "nat = \"{}\" needs an {} address on {interface}, the DUT's interface to the {side}; \
                 next step: write it into the lab file",
                settings.dut.nat.name(),
                family.protocol(),
            ))
        };
        let ingress = links.ingress.address(family);
        let sent = settings.sent_stream(ingress);
        let sent = sent.ok_or_else(|| match settings.dut.nat_address {
            None => missing(&links.ingress.interface, "sender"),
            Some(address) => BenchError::Refused(format!(
                "nat_address = \"{address}\" is no {} address with room for {} destinations; next \
                 step: write another",
                family.protocol(),
                settings.traffic.flows.destinations,
            )),
        })?;
        let translated = links.egress.translated(settings.dut.nat, family);
        if settings.dut.nat.is_of_sources() && translated.is_none() {
            return Err(missing(&links.egress.interface, "receiver"));
        }
        Ok(Path { sent, arriving: settings.traffic.stream(), translated })
    }

    /// Returns the path without a device: packets arrive as sent.
    pub(crate) fn direct(self) -> Path {
        Path { arriving: self.sent, translated: None, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::settings::Nat;
    use fwdlab_packet::Family;

    fn links(egress: &[&str]) -> Links {
        let mut links = Links::of_namespaces();
        let parse = |a: &&str| (a.parse().expect("an address"), 24);
        links.egress.addresses = egress.iter().map(parse).collect();
        links
    }

    fn settings(nat: Nat) -> Settings {
        let mut settings = Settings::default();
        settings.dut.nat = nat;
        settings.traffic.flows.destinations = 1;
        settings
    }

    #[test]
    fn source_translation_needs_an_address_of_the_egress_interface() {
        let translated = |nat, egress: &[&str]| {
            Path::new(&settings(nat), &links(egress)).map(|path| path.translated)
        };
        let both = ["2001:2::1", "198.19.0.1"];
        let own = IpAddr::from([198, 19, 0, 1]);
        assert_eq!(translated(Nat::Source, &both).ok(), Some(Some(own)));
        assert_eq!(translated(Nat::Both, &both).ok(), Some(Some(own)));
        assert_eq!(translated(Nat::None, &both).ok(), Some(None));
        let refused = translated(Nat::Source, &["2001:2::1"]).expect_err("no address");
        assert!(refused.to_string().contains("IPv4 address on d1"), "{refused}");
        assert_eq!(translated(Nat::None, &[]).ok(), Some(None));
    }

    #[test]
    fn translated_destinations_are_sent_to_the_device() {
        let path = Path::new(&settings(Nat::Destination), &links(&[])).expect("a path");
        let own: IpAddr = "198.18.0.1".parse().expect("an address");
        assert_eq!(path.sent.endpoints().destination, own);
        assert_eq!(path.arriving, Stream { endpoints: None, ..path.sent });
        assert_eq!(path.direct().arriving, path.sent);
        let mut inet6 = settings(Nat::Destination);
        inet6.traffic.family = Family::Inet6;
        let mut links = links(&[]);
        links.ingress.addresses.retain(|(address, _)| address.is_ipv4());
        let refused = Path::new(&inet6, &links).expect_err("no address");
        assert!(refused.to_string().contains("IPv6 address on d0"), "{refused}");
    }
}
