//! Number of flows that a generator makes of a source and a destination range.

use fwdlab_packet::Flows;
use std::fmt;

/// Iteration of a generator over a source and a destination range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowPattern {
    /// One range advances when the other wraps: every pair occurs.
    Nested,
    /// Both ranges advance with every packet: the number of pairs is the least common multiple.
    Lockstep,
    /// One range advances, the other is random: eventually every pair occurs.
    RandomDestination,
}

impl FlowPattern {
    /// Pattern that reaches all flows, for a generator without nested ranges.
    pub fn reaching_all(flows: Flows) -> FlowPattern {
        match FlowPattern::Lockstep.flows(flows)
            == u64::from(flows.sources) * u64::from(flows.destinations)
        {
            true => FlowPattern::Lockstep,
            false => FlowPattern::RandomDestination,
        }
    }

    /// Number of distinct flows.
    pub fn flows(self, flows: Flows) -> u64 {
        let (sources, destinations) = (u64::from(flows.sources), u64::from(flows.destinations));
        match self {
            FlowPattern::Nested | FlowPattern::RandomDestination => sources * destinations,
            FlowPattern::Lockstep => sources / common(sources, destinations).max(1) * destinations,
        }
    }

    /// Pattern and number of flows as text, for the record's facts.
    pub fn describe(self, flows: Flows) -> String {
        format!("{} of {}: {self}", self.flows(flows), FlowPattern::Nested.flows(flows))
    }
}

impl fmt::Display for FlowPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FlowPattern::Nested => "one range advances when the other has come round",
            FlowPattern::Lockstep => "both ranges advance with every packet",
            FlowPattern::RandomDestination => {
                "one range advances with every packet, the other is drawn"
            }
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
        fn lockstep_flows_match_an_enumeration(sources in 1u32..40, destinations in 1u32..40) {
            let pairs: BTreeSet<(u32, u32)> =
                (0..sources * destinations).map(|n| (n % sources, n % destinations)).collect();
            let flows = Flows { sources, destinations };
            prop_assert_eq!(FlowPattern::Lockstep.flows(flows), pairs.len() as u64);
            let all = FlowPattern::reaching_all(flows).flows(flows);
            prop_assert_eq!(all, u64::from(sources * destinations));
        }
    }

    #[test]
    fn lockstep_of_20_by_100_reaches_only_100_flows() {
        let flows = Flows { sources: 20, destinations: 100 };
        assert_eq!(FlowPattern::reaching_all(flows), FlowPattern::RandomDestination);
        let description = FlowPattern::Lockstep.describe(flows);
        assert_eq!(description, "100 of 2000: both ranges advance with every packet");
    }
}
