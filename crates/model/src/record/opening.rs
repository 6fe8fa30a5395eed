//! Flows and states when the window opened, and packets unaccounted for after the drain.

use serde::{Deserialize, Serialize};

/// State of the device and of the flows at the opening of the window, and after its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opening {
    /// Length of the warm-up as it was, nanoseconds: longer than planned where flows were
    /// waited for.
    pub warmup_ns: u64,
    /// Flows of the traffic; 0 in records that don't say.
    pub flows: u32,
    /// Flows of which a packet had been sent.
    pub flows_sent: Option<u32>,
    /// Flows of which a packet had been received; none when they are not counted.
    pub flows_received: Option<u32>,
    /// Connection states in the device; none if it keeps none or does not report them.
    pub states: Option<u64>,
    /// States that it held when the window closed.
    pub states_closing: Option<u64>,
    /// True when the device must hold a state for every flow.
    pub is_stateful: bool,
    /// Why the drain ended; none in older records.
    pub drained: Option<DrainEnd>,
    /// Packets of the whole trial that were neither received nor counted as dropped by
    /// the device when the drain ended; none where the device doesn't tell what it
    /// dropped.
    pub unaccounted: Option<i64>,
}

/// Why a drain ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DrainEnd {
    /// Every packet was accounted for: received, or dropped by the device's own count.
    Accounted,
    /// No more packets arrived; the device does not report drops.
    Silence,
    /// The time limit.
    Limit,
}

impl DrainEnd {
    /// In words, after "the drain ended".
    pub fn words(self) -> &'static str {
        match self {
            DrainEnd::Accounted => "when every packet was accounted for",
            DrainEnd::Silence => "when nothing arrived any more",
            DrainEnd::Limit => "at its limit",
        }
    }
}

impl Opening {
    /// What was missing: number seen, number expected, and what they are. None if nothing
    /// was missing, and in older records.
    pub fn missing(&self) -> Option<(u64, u64, &'static str)> {
        let flows = u64::from(self.flows);
        let states = self.states.filter(|_| self.is_stateful);
        let counts = [
            (self.flows_sent.map(u64::from), "flows had been sent"),
            (states, "flows had a state in the device under test"),
            (self.flows_received.map(u64::from), "flows had been received"),
        ];
        let missing = counts.into_iter().find(|(count, _)| count.is_some_and(|n| n < flows));
        missing.and_then(|(count, what)| Some((count?, flows, what)))
    }

    /// True if all flows were counted as received, not merely sent.
    pub fn is_known(&self) -> bool {
        self.flows_received.is_some() || (self.is_stateful && self.states.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_and_old_records_say_nothing() {
        assert_eq!(Opening::default().missing(), None);
        let all = Opening {
            flows: 1000,
            flows_sent: Some(1000),
            flows_received: Some(1000),
            states: Some(1002),
            is_stateful: true,
            ..Opening::default()
        };
        assert_eq!((all.missing(), all.is_known()), (None, true));
        let few = Opening { states: Some(999), ..all.clone() };
        assert_eq!(few.missing().map(|(n, of, _)| (n, of)), Some((999, 1000)));
        let stateless = Opening { is_stateful: false, ..few };
        assert_eq!(stateless.missing(), None);
        let lost = Opening { flows_received: Some(3), ..all };
        assert!(lost.missing().is_some_and(|(n, _, what)| n == 3 && what.contains("received")));
    }

    #[test]
    fn a_record_of_before_reads_as_one_that_says_nothing() {
        let old: Opening = serde_json::from_str("{}").expect("the defaults");
        assert_eq!(old, Opening::default());
    }
}
