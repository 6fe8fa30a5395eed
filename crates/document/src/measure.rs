//! Metrics that dashboards plot over time.

/// A quantity that each row of a table contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Name in lower case, with hyphens.
    pub name: &'static str,
    /// Unit of the value and of its bounds.
    pub unit: &'static str,
    /// True if a smaller value is a better one.
    pub is_smaller_better: bool,
    /// Key of the value among the columns of the table.
    pub value: &'static str,
    /// Keys of the lower and the upper bound. `None` if the table has no bounds.
    pub bounds: Option<[&'static str; 2]>,
}

/// Forwarding rates of variants: the median of the runs, between the slowest and the fastest.
pub const FORWARDING_RATE: Measure = Measure {
    name: "forwarding-rate",
    unit: "packets/s",
    is_smaller_better: false,
    value: "median",
    bounds: Some(["minimum", "maximum"]),
};

/// Rates of candidates over those of their baselines, with the confidence interval.
pub const RATE_RATIO: Measure = Measure {
    name: "rate-ratio",
    unit: "ratio",
    is_smaller_better: false,
    value: "ratio",
    bounds: Some(["low", "high"]),
};

/// Instructions of variants: the median of the runs, between the minimum and the maximum.
pub const INSTRUCTIONS: Measure = Measure {
    name: "instructions",
    unit: "instructions/packet",
    is_smaller_better: true,
    value: "median",
    bounds: Some(["minimum", "maximum"]),
};

/// Instructions of kernels: the median of the bursts, between the minimum and the maximum.
pub const INSTRUCTIONS_OF_KERNELS: Measure =
    Measure { value: "instructions", bounds: Some(["least", "most"]), ..INSTRUCTIONS };

/// Throughput of variants at a goal of a search (RFC 9971).
pub const THROUGHPUT: Measure =
    Measure { name: "throughput", value: "throughput", ..FORWARDING_RATE };

/// Median delay of packets.
pub const LATENCY: Measure =
    Measure { name: "latency-p50", unit: "s", is_smaller_better: true, value: "p50", bounds: None };

/// The 99th percentile of the delay of packets.
pub const LATENCY_P99: Measure = Measure { name: "latency-p99", value: "p99", ..LATENCY };
