//! How many flows a generator really makes of two address ranges.

use fwdlab_packet::Flows;
use std::fmt;

/// How a generator walks through a source and a destination range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variety {
    /// One advances when the other has come round: every pair occurs.
    Product,
    /// Both advance with every packet: as many pairs as the least common multiple.
    Together,
    /// One advances, the other is drawn: every pair occurs in the long run.
    Drawn,
}

impl Variety {
    /// The one that reaches all flows for a generator that knows no product.
    pub(crate) fn reaching_all(flows: Flows) -> Variety {
        match Variety::Together.flows(flows)
            == u64::from(flows.sources) * u64::from(flows.destinations)
        {
            true => Variety::Together,
            false => Variety::Drawn,
        }
    }

    /// Number of distinct flows.
    pub fn flows(self, flows: Flows) -> u64 {
        let (sources, destinations) = (u64::from(flows.sources), u64::from(flows.destinations));
        match self {
            Variety::Product | Variety::Drawn => sources * destinations,
            Variety::Together => sources / common(sources, destinations).max(1) * destinations,
        }
    }

    /// Both in words, for facts.
    pub(crate) fn told(self, flows: Flows) -> String {
        format!("{} of {}: {self}", self.flows(flows), Variety::Product.flows(flows))
    }
}

impl fmt::Display for Variety {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Variety::Product => "one range advances when the other has come round",
            Variety::Together => "both ranges advance with every packet",
            Variety::Drawn => "one range advances with every packet, the other is drawn",
        })
    }
}

/// Greatest common divisor.
fn common(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { common(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn together_is_what_counting_finds(sources in 1u32..40, destinations in 1u32..40) {
            let pairs: BTreeSet<(u32, u32)> =
                (0..sources * destinations).map(|n| (n % sources, n % destinations)).collect();
            let flows = Flows { sources, destinations };
            prop_assert_eq!(Variety::Together.flows(flows), pairs.len() as u64);
            let all = Variety::reaching_all(flows).flows(flows);
            prop_assert_eq!(all, u64::from(sources * destinations));
        }
    }

    #[test]
    fn twenty_by_a_hundred_is_a_hundred_for_some() {
        let flows = Flows { sources: 20, destinations: 100 };
        assert_eq!(Variety::reaching_all(flows), Variety::Drawn);
        let told = Variety::Together.told(flows);
        assert_eq!(told, "100 of 2000: both ranges advance with every packet");
    }
}
