//! The metric of a run: the number that summarises it in comparisons.

use fwdlab_packet::named;

named! {
    /// The per-run metric that is compared.
    pub enum RunMetric {
        /// Packets forwarded in the window over the time that the device had: the length of the
        /// window minus the time provably taken from it.
        Corrected = "corrected",
        /// Paced: the intended load times the share of the offered packets that were forwarded.
        /// Deviations of the sender from its schedule have no influence.
        Delivered = "delivered",
        /// Packets forwarded in the window over its length.
        Mean = "mean",
        /// Ninetieth percentile of the valid raw samples' rates.
        P90 = "p90",
        /// Alternation: median over a variant's slices of each slice's rate over the time that the
        /// device had.
        Slices = "slices",
        /// Searches: conditional throughput (RFC 9971) of the first goal.
        Throughput = "throughput",
        /// Emulated machines: instructions that the device executes to forward a packet.
        Instructions = "instructions",
        /// Imported runs: median of the rates that the netbenches archive's rule keeps of the log.
        Netbenches = "netbenches",
        /// The same with the upper of the two middle values as the median of an even number, as in
        /// ministat before 2016.
        NetbenchesUpper = "netbenches-upper",
        /// Imported runs: mean rate of the steady state, because their logs begin before the
        /// traffic and end after it.
        Steady = "steady",
    }
}

impl RunMetric {
    /// Returns a description in one phrase.
    pub fn description(self) -> &'static str {
        match self {
            RunMetric::Corrected => {
                "mean rate of the window over the time that was not taken from the device"
            }
            RunMetric::Delivered => {
                "intended load times the share of the offered packets that were forwarded"
            }
            RunMetric::Mean => "mean rate of the window (packets forwarded over its length)",
            RunMetric::P90 => "90th percentile of the window's samples",
            RunMetric::Slices => {
                "median over the slices of each slice's rate over the time that was not taken \
                 from the device"
            }
            RunMetric::Throughput => {
                "conditional throughput (RFC 9971) of the first goal that was searched for"
            }
            RunMetric::Instructions => {
                "instructions that the device executes to forward a packet, counted"
            }
            RunMetric::Netbenches => {
                "median of the log's rates by the archive's rule (15 lines dropped at the start, \
                 10 at the end)"
            }
            RunMetric::NetbenchesUpper => {
                "median of the log's rates by the archive's rule (15 lines dropped at the start, \
                 10 at the end; of two middle values the upper, as in ministat before 2016)"
            }
            RunMetric::Steady => "mean rate of the log's steady state",
        }
    }

    /// True for a rate in packets per second, for which more is better; false for a count of
    /// instructions, for which fewer are.
    pub fn is_rate(self) -> bool {
        self != RunMetric::Instructions
    }

    /// Returns its short name in tables.
    pub fn short(self) -> &'static str {
        match self {
            RunMetric::Corrected => "rate",
            RunMetric::Delivered => "delivered",
            RunMetric::Mean => "mean",
            RunMetric::P90 => "p90",
            RunMetric::Slices => "slices",
            RunMetric::Throughput => "throughput",
            RunMetric::Instructions => "instructions",
            RunMetric::Netbenches | RunMetric::NetbenchesUpper => "netbenches",
            RunMetric::Steady => "steady",
        }
    }
}

named! {
    /// Rule that computes the metric from an imported log.
    pub enum Rule {
        /// Median of the lines that the archive's scripts keep.
        Netbenches = "netbenches",
        /// Mean rate of the steady state.
        Steady = "steady",
    }
}

impl Rule {
    /// Returns the metric for this rule; `upper` if the published lists used the upper of two
    /// middle values.
    pub fn metric(self, upper: bool) -> RunMetric {
        match self {
            Rule::Steady => RunMetric::Steady,
            Rule::Netbenches if upper => RunMetric::NetbenchesUpper,
            Rule::Netbenches => RunMetric::Netbenches,
        }
    }
}

/// A metric, or `auto` for `None`.
pub(super) mod or_auto {
    use super::RunMetric;
    use serde::{Deserialize, Deserializer, Serializer};
    use std::borrow::Cow;

    const AUTO: &str = "auto";

    pub(crate) fn serialize<S: Serializer>(
        metric: &Option<RunMetric>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(metric.map_or(AUTO, RunMetric::name))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<RunMetric>, D::Error> {
        match Cow::<'de, str>::deserialize(deserializer)?.as_ref() {
            AUTO => Ok(None),
            name => name.parse().map(Some).map_err(serde::de::Error::custom),
        }
    }
}
