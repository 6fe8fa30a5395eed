//! Fault injection: probabilities and kinds of faults that a port of fwdlab's router causes in
//! frames. The ports are in the crate `port`.

use crate::arrivals::Fault;
use crate::named::UnknownName;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Faults to inject, each with its probability per frame, from 0 to 1 and independent of the
/// others; a lost frame has no other fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// The frame is lost.
    pub loss: f64,
    /// The frame is sent twice.
    pub duplication: f64,
    /// One byte is changed.
    pub corruption: f64,
    /// The frame is sent after the one that follows it.
    pub reordering: f64,
    /// Damage that `damaging` causes; `None` for no damage.
    pub damage: Option<Damage>,
    /// The frame gets this damage and is otherwise intact.
    pub damaging: f64,
    /// Seed of the random numbers.
    pub seed: u64,
}

impl Faults {
    /// True if each probability is between 0 and 1.
    pub fn is_valid(&self) -> bool {
        let Faults { loss, duplication, corruption, reordering, damaging, .. } = *self;
        [loss, duplication, corruption, reordering, damaging]
            .iter()
            .all(|probability| (0.0..=1.0).contains(probability))
    }
}

/// One way to damage a benchmark packet: `ttl`, `udp-checksum`, ... or `flip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// Damage that the receiver reports as this fault.
    Fault(Fault),
    /// Any one bit of the IP packet is flipped; no checksum is corrected.
    Flip,
}

/// Name of [`Damage::Flip`].
const FLIP: &str = "flip";
/// Names of all kinds of damage.
const NAMES: [&str; Fault::ALL.len() + 1] = {
    let mut names = [FLIP; Fault::ALL.len() + 1];
    let mut at = 0;
    while at < Fault::ALL.len() {
        names[at + 1] = Fault::ALL[at].name();
        at += 1;
    }
    names
};

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Fault(fault) => fault.fmt(f),
            Damage::Flip => f.pad(FLIP),
        }
    }
}

impl FromStr for Damage {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Damage, UnknownName> {
        match name {
            FLIP => Ok(Damage::Flip),
            name => name
                .parse()
                .map(Damage::Fault)
                .map_err(|error: UnknownName| UnknownName { known: &NAMES, ..error }),
        }
    }
}

impl Serialize for Damage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Damage {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        name.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_parsed_by_fault_name() {
        assert_eq!("udp-checksum".parse(), Ok(Damage::Fault(Fault::UdpChecksum)));
        let faults: Faults = serde_json::from_str(r#"{"damage": "flip"}"#).expect("faults");
        assert_eq!(faults.damage, Some(Damage::Flip));
        let again = serde_json::to_string(&faults).expect("JSON");
        assert_eq!(serde_json::from_str::<Faults>(&again).expect("the same"), faults);
        let error = "TTL".parse::<Damage>().expect_err("names are exact").to_string();
        assert!(error.starts_with("\"TTL\" is none of flip, length, "), "{error}");
        assert!(!Faults { loss: 1.5, ..faults }.is_valid() && faults.is_valid());
    }
}
