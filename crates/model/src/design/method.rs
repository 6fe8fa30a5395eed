//! `[method]`: measurements in addition to the forwarding rate at the maximum offered load.

use crate::units::format_pps;
use fwdlab_packet::named;
use fwdlab_search::Goal;
use serde::{Deserialize, Serialize};

named! {
    /// The values of `[method] kind`.
    pub enum MethodKind {
        /// The maximum offered load: the forwarding rate (RFC 2285, 3.6.2).
        Blast = "blast",
        /// The load given by `[traffic] rate`.
        Fixed = "fixed",
        /// A search for the highest rate within the tolerated loss (RFC 9971).
        Mlrsearch = "mlrsearch",
        /// Frame loss rate against load (RFC 2544, section 26.3).
        LossCurve = "loss-curve",
        /// A long measurement at one load.
        Soak = "soak",
        /// Loss of the traffic during an increasing flood of new flows.
        Flood = "flood",
        /// The longest burst without loss (RFC 2544, section 26.4; RFC 9004).
        BackToBack = "back-to-back",
        /// Time until loss ends after an overload (RFC 2544, section 26.5).
        SystemRecovery = "system-recovery",
        /// Time without forwarding around a reset (RFC 2544, section 26.6; RFC 6201).
        Reset = "reset",
        /// Latency at shares of the found rate (RFC 2544, section 26.2; RFC 8219).
        Latency = "latency",
        /// The tests of RFC 2544, in sequence.
        Rfc2544 = "rfc2544",
        /// Connections per second that a stateful device sets up (RFC 9693, section 4.5).
        EstablishmentRate = "establishment-rate",
        /// Connections per second that it removes (RFC 9693, section 4.7).
        TearDownRate = "tear-down-rate",
        /// Connections that its table holds (RFC 9693, section 4.8).
        TableCapacity = "table-capacity",
        /// The tests of RFC 9693, in sequence.
        Rfc9693 = "rfc9693",
    }
}

named! {
    /// The tests of a suite, with its names: those of RFC 2544, section 26, then those of RFC 9693,
    /// section 4.
    pub enum SuiteTest {
        /// Section 26.1.
        Throughput = "throughput",
        /// Section 26.2.
        Latency = "latency",
        /// Section 26.3.
        FrameLossRate = "frame-loss-rate",
        /// Section 26.4, as in RFC 9004.
        BackToBack = "back-to-back",
        /// Section 26.5.
        SystemRecovery = "system-recovery",
        /// Section 26.6, as in RFC 6201.
        Reset = "reset",
        /// RFC 9693, section 4.5.
        EstablishmentRate = "establishment-rate",
        /// RFC 9693, section 4.7.
        TearDownRate = "tear-down-rate",
        /// RFC 9693, section 4.8.
        TableCapacity = "table-capacity",
    }
}

impl SuiteTest {
    /// Returns the suite that the test belongs to.
    pub fn suite(self) -> MethodKind {
        match self {
            SuiteTest::EstablishmentRate | SuiteTest::TearDownRate | SuiteTest::TableCapacity => {
                MethodKind::Rfc9693
            }
            _ => MethodKind::Rfc2544,
        }
    }
}

/// Measurements after a run's own trial, on the same start of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Method {
    /// A search for rates (RFC 9971). The run's own trial is at the maximum offered load.
    Mlrsearch(SearchMethod),
    /// Trials at falling loads until two consecutive ones lose nothing (RFC 2544, section 26.3).
    /// The run's own trial is at the maximum offered load.
    LossCurve {
        /// Step between loads, as a share of the maximum.
        step: f64,
        /// Maximum load in packets per second; `None` to derive it from the run's own trial.
        max_load: Option<u64>,
    },
    /// Consecutive trials at the load of the run's own trial.
    Soak {
        /// Their number.
        trials: u32,
    },
    /// Trials at the load of the run's own trial during a flood of packets that each belong to a
    /// new flow: none at first, then more and more.
    Flood {
        /// Step between loads of the flood, as a share of the maximum.
        step: f64,
        /// Maximum load of the flood, in packets per second.
        max_load: u64,
    },
    /// Bursts at the sender's maximum rate, to find the longest without loss.
    BackToBack {
        /// Number of searches.
        repeats: u32,
        /// Longest burst in frames; `None` for the number sent in two seconds.
        max_frames: Option<u64>,
    },
    /// An overload, then half of its load.
    SystemRecovery {
        /// Number of repetitions.
        repeats: u32,
        /// Duration of the overload in nanoseconds.
        overload_ns: u64,
    },
    /// Resets of the device while it forwards.
    Reset {
        /// Number of repetitions.
        repeats: u32,
    },
    /// Trials at shares of the rate found by a preceding search, in which the delay of every packet
    /// is measured.
    Delays {
        /// Consecutive loads, as shares of the found rate.
        shares: Vec<f64>,
        /// Number of trials at each load.
        repeats: u32,
    },
    /// A search, then [`Method::Delays`], on the same start of the device.
    Latency {
        /// The two parts.
        parts: Vec<Method>,
    },
    /// Consecutive tests on the same start of the device.
    Rfc2544 {
        /// The tests.
        parts: Vec<Method>,
    },
    /// A search for the rate at which the device sets up every connection. Each trial opens one
    /// connection per flow, beginning with an empty table (RFC 9693, section 4.5). The loads are
    /// connections per second: each packet opens one.
    Establishment(SearchMethod),
    /// Fills the table, then empties it (RFC 9693, section 4.7).
    TearDown {
        /// Number of repetitions.
        repeats: u32,
    },
    /// A search for the number of connections that the table holds, at most the number of flows
    /// (RFC 9693, section 4.8).
    Capacity {
        /// Number of searches.
        repeats: u32,
    },
    /// Consecutive tests on the same start of the device.
    Rfc9693 {
        /// The tests.
        parts: Vec<Method>,
    },
}

/// Goals and limits of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchMethod {
    /// The goals; the conditional throughput of the first one summarises a run.
    pub goals: Vec<Goal>,
    /// Minimum load in packets per second; `None` for a hundredth of the maximum, or the minimum
    /// that the goals permit.
    pub min_load: Option<u64>,
    /// Maximum load in packets per second; `None` to derive it from the run's own trial.
    pub max_load: Option<u64>,
    /// Maximum number of trials.
    pub max_trials: u32,
    /// Maximum traffic time of all trials together, in nanoseconds.
    pub max_time_ns: u64,
}

impl SearchMethod {
    /// Creates a search for these goals within limits that a sensible search never reaches.
    pub fn of(goals: Vec<Goal>) -> SearchMethod {
        let (max_trials, max_time_ns) = (TRIALS_MAX, 3_600_000_000_000);
        SearchMethod { goals, min_load: None, max_load: None, max_trials, max_time_ns }
    }
}

/// Maximum number of trials of a method in one run: the number of run ids per run.
pub const TRIALS_MAX: u32 = 1_000;

/// Returns the loads of a flood in packets per second, from zero to the maximum.
pub fn flood_loads(step: f64, max_load: u64) -> Vec<u64> {
    // The loads below the maximum: a step that divides it does not reach it.
    let steps = (1.0 / step - 1e-9).floor() as u32;
    let between = (0..=steps).map(|n| (f64::from(n) * step * max_load as f64).round() as u64);
    let mut loads: Vec<u64> = between.chain([max_load]).collect();
    loads.dedup();
    loads
}

impl Method {
    /// Returns the kind that selects it.
    pub fn kind(&self) -> MethodKind {
        match self {
            Method::Mlrsearch(_) => MethodKind::Mlrsearch,
            Method::LossCurve { .. } => MethodKind::LossCurve,
            Method::Soak { .. } => MethodKind::Soak,
            Method::Flood { .. } => MethodKind::Flood,
            Method::BackToBack { .. } => MethodKind::BackToBack,
            Method::SystemRecovery { .. } => MethodKind::SystemRecovery,
            Method::Reset { .. } => MethodKind::Reset,
            Method::Delays { .. } | Method::Latency { .. } => MethodKind::Latency,
            Method::Rfc2544 { .. } => MethodKind::Rfc2544,
            Method::Establishment(_) => MethodKind::EstablishmentRate,
            Method::TearDown { .. } => MethodKind::TearDownRate,
            Method::Capacity { .. } => MethodKind::TableCapacity,
            Method::Rfc9693 { .. } => MethodKind::Rfc9693,
        }
    }

    /// Returns the methods that it consists of; `None` for a single method.
    fn composed(&self) -> Option<&[Method]> {
        match self {
            Method::Rfc2544 { parts } | Method::Latency { parts } | Method::Rfc9693 { parts } => {
                Some(parts)
            }
            _ => None,
        }
    }

    /// True for a method that consists of others.
    pub fn is_composed(&self) -> bool {
        self.composed().is_some()
    }

    /// Returns its parts, or itself.
    pub fn parts(&self) -> &[Method] {
        self.composed().unwrap_or(std::slice::from_ref(self))
    }

    /// True if it opens connections, one per packet.
    pub fn opens_connections(&self) -> bool {
        self.parts().iter().any(|part| {
            matches!(
                part,
                Method::Establishment(_) | Method::TearDown { .. } | Method::Capacity { .. }
            )
        })
    }

    /// True if it sends a flood of new flows in addition to the traffic.
    pub fn floods(&self) -> bool {
        self.parts().iter().any(|part| matches!(part, Method::Flood { .. }))
    }

    /// The goals of a search; empty for every other method.
    pub fn goals(&self) -> &[Goal] {
        match self {
            Method::Mlrsearch(search) | Method::Establishment(search) => &search.goals,
            _ => {
                let parts = self.composed().unwrap_or(&[]).iter();
                parts.map(Method::goals).find(|goals| !goals.is_empty()).unwrap_or(&[])
            }
        }
    }

    /// Returns the maximum load of a search or a curve that a file specifies, in packets per second
    /// of each direction.
    pub fn max_load(&self) -> Option<u64> {
        match self {
            Method::Mlrsearch(search) | Method::Establishment(search) => search.max_load,
            Method::LossCurve { max_load, .. } => *max_load,
            _ => None,
        }
    }

    /// Returns a description for plans and reports.
    pub fn words(&self) -> String {
        match self {
            Method::Mlrsearch(search) => {
                let goals: Vec<&str> = search.goals.iter().map(|goal| goal.name.as_str()).collect();
                format!("then a search for {} (RFC 9971)", goals.join(" and "))
            }
            Method::LossCurve { step, .. } => {
                format!("then trials at loads that fall by {:.0} %", 100.0 * step)
            }
            Method::Soak { trials } => format!("then {trials} trials at the same load"),
            Method::Flood { step, max_load } => format!(
                "then trials at the same load beside floods of new flows, up to {} in steps of \
                 {:.0} %",
                format_pps(*max_load as f64),
                100.0 * step
            ),
            Method::BackToBack { repeats, .. } => {
                format!("then bursts, in search of the longest without loss, {repeats} times")
            }
            Method::SystemRecovery { repeats, .. } => {
                format!("then an overload and half of it, {repeats} times")
            }
            Method::Reset { repeats } => format!("then a reset under traffic, {repeats} times"),
            Method::Delays { shares, repeats } => {
                let shares: Vec<String> =
                    shares.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
                let shares = shares.join(", ");
                format!("then delays at {shares} % of what was found, {repeats} times")
            }
            Method::Establishment(search) => {
                let goals: Vec<&str> = search.goals.iter().map(|goal| goal.name.as_str()).collect();
                let goals = goals.join(" and ");
                format!("then a search for {goals} of connections a second (RFC 9693)")
            }
            Method::TearDown { repeats } => {
                format!("then a full table that is emptied, {repeats} times")
            }
            Method::Capacity { repeats } => {
                format!("then a search for the connections that the table holds, {repeats} times")
            }
            Method::Rfc2544 { parts } | Method::Latency { parts } | Method::Rfc9693 { parts } => {
                let words: Vec<String> = parts.iter().map(Method::words).collect();
                words.join(", ")
            }
        }
    }
}
