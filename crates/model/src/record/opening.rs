//! Flows and states when the window opened, and packets unaccounted for after the drain.

use serde::{Deserialize, Serialize};

/// State of the device and of the flows when the window opens, and after its end.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Opening {
    /// Actual length of the warm-up in nanoseconds: longer than planned if it waited for flows.
    pub warmup_ns: u64,
    /// Flows of the traffic; 0 in records without this value.
    pub flows: u32,
    /// Flows with at least one sent packet.
    pub flows_sent: Option<u32>,
    /// Flows with at least one received packet; `None` if not counted.
    pub flows_received: Option<u32>,
    /// Connection states in the device; `None` if it keeps none or does not report them.
    pub states: Option<u64>,
    /// States when the window closed.
    pub states_closing: Option<u64>,
    /// True if the device must hold a state for every flow.
    pub is_stateful: bool,
    /// Reason for the end of the drain; `None` in older records.
    pub drained: Option<DrainEnd>,
    /// Packets of the whole trial that were neither received nor counted as dropped by the device
    /// at the end of the drain; `None` if the device does not report drops.
    pub unaccounted: Option<i64>,
}

/// Reason for the end of a drain.
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
    /// Returns the reason in words, after "the drain ended".
    pub fn words(self) -> &'static str {
        match self {
            DrainEnd::Accounted => "when every packet was accounted for",
            DrainEnd::Silence => "when nothing arrived any more",
            DrainEnd::Limit => "at its limit",
        }
    }
}

impl Opening {
    /// Returns what was missing: number seen, number expected, and a description. `None` if nothing
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

    /// True if all flows were counted as received, not merely as sent.
    pub fn is_known(&self) -> bool {
        self.flows_received.is_some() || (self.is_stateful && self.states.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_items_are_reported_except_in_old_records() {
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
    fn older_record_reads_as_defaults() {
        let old: Opening = serde_json::from_str("{}").expect("the defaults");
        assert_eq!(old, Opening::default());
    }
}
