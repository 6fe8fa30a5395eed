//! `[method]`: what is asked of a device that stands beyond its forwarding rate at the maximum
//! offered load.

use crate::units::format_pps;
use fwdlab_packet::named;
use fwdlab_search::Goal;
use serde::{Deserialize, Serialize};

named! {
    /// The words of `[method] kind`.
    pub enum MethodKind {
        /// The maximum offered load: the forwarding rate (RFC 2285, 3.6.2).
        Blast = "blast",
        /// The load that `[traffic] rate` names.
        Fixed = "fixed",
        /// A search for the rate that loses no more than is tolerated (RFC 9971).
        Mlrsearch = "mlrsearch",
        /// Frame loss rate against load (RFC 2544, section 26.3).
        LossCurve = "loss-curve",
        /// One load for long.
        Soak = "soak",
        /// What becomes of the traffic while more and more new flows come beside it.
        Flood = "flood",
        /// The longest burst that loses nothing (RFC 2544, section 26.4; RFC 9004).
        BackToBack = "back-to-back",
        /// Time until nothing is lost any more after an overload (RFC 2544, section 26.5).
        SystemRecovery = "system-recovery",
        /// Time without forwarding around a reset (RFC 2544, section 26.6; RFC 6201).
        Reset = "reset",
        /// How long packets take at shares of the rate found (RFC 2544, section 26.2; RFC 8219).
        Latency = "latency",
        /// The tests of RFC 2544, one after the other.
        Rfc2544 = "rfc2544",
        /// Connections a second that a stateful device sets up (RFC 9693, section 4.5).
        EstablishmentRate = "establishment-rate",
        /// Connections a second that it removes (RFC 9693, section 4.7).
        TearDownRate = "tear-down-rate",
        /// Connections that its table holds (RFC 9693, section 4.8).
        TableCapacity = "table-capacity",
        /// The tests of RFC 9693, one after the other.
        Rfc9693 = "rfc9693",
    }
}

named! {
    /// The tests of a suite, in its words: those of RFC 2544, section 26, then those of
    /// RFC 9693, section 4.
    pub enum SuiteTest {
        /// Section 26.1.
        Throughput = "throughput",
        /// Section 26.2.
        Latency = "latency",
        /// Section 26.3.
        FrameLossRate = "frame-loss-rate",
        /// Section 26.4, as RFC 9004 has it.
        BackToBack = "back-to-back",
        /// Section 26.5.
        SystemRecovery = "system-recovery",
        /// Section 26.6, as RFC 6201 has it.
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
    /// The suite that it belongs to.
    pub fn suite(self) -> MethodKind {
        match self {
            SuiteTest::EstablishmentRate | SuiteTest::TearDownRate | SuiteTest::TableCapacity => {
                MethodKind::Rfc9693
            }
            _ => MethodKind::Rfc2544,
        }
    }
}

/// What is done after a run's own trial, on the same start of the device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Method {
    /// A search for rates (RFC 9971). The run's own trial is at the maximum offered load.
    Mlrsearch(SearchMethod),
    /// Trials at falling loads until two in a row lose nothing (RFC 2544, section 26.3). The
    /// run's own trial is at the maximum offered load.
    LossCurve {
        /// From load to load, in shares of the greatest one.
        step: f64,
        /// The greatest load in packets per second; none: derived from the run's own trial.
        max_load: Option<u64>,
    },
    /// Trials at one load, that of the run's own trial, one after the other.
    Soak {
        /// Their number.
        trials: u32,
    },
    /// Trials at one load, that of the run's own trial, beside which packets come that are of a
    /// new flow each: none at first, then more and more.
    Flood {
        /// From load to load of these, in shares of the greatest one.
        step: f64,
        /// The greatest load of these, packets per second.
        max_load: u64,
    },
    /// Bursts as fast as the sender can, in search of the longest that loses nothing.
    BackToBack {
        /// How often it is searched for.
        repeats: u32,
        /// The longest burst in frames; none: as many as are sent in two seconds.
        max_frames: Option<u64>,
    },
    /// An overload, then half of it.
    SystemRecovery {
        /// How often.
        repeats: u32,
        /// How long the overload lasts, nanoseconds.
        overload_ns: u64,
    },
    /// The device is reset while it forwards.
    Reset {
        /// How often.
        repeats: u32,
    },
    /// Trials at shares of the rate that a search before them has found, in which every packet
    /// tells how long it took.
    Delays {
        /// Loads over the rate found, one after the other.
        shares: Vec<f64>,
        /// Trials at each.
        repeats: u32,
    },
    /// A search, then [`Method::Delays`], on the same start of the device.
    Latency {
        /// These two.
        parts: Vec<Method>,
    },
    /// One after the other, on the same start of the device.
    Rfc2544 {
        /// The tests.
        parts: Vec<Method>,
    },
    /// A search for the rate at which the device sets up every connection, as many in each trial
    /// as there are flows, beginning with an empty table (RFC 9693, section 4.5). The loads are
    /// connections a second: each packet opens one.
    Establishment(SearchMethod),
    /// The table is filled, then emptied (RFC 9693, section 4.7).
    TearDown {
        /// How often.
        repeats: u32,
    },
    /// A search for the number of connections that the table holds, at most as many as there
    /// are flows (RFC 9693, section 4.8).
    Capacity {
        /// How often it is searched for.
        repeats: u32,
    },
    /// One after the other, on the same start of the device.
    Rfc9693 {
        /// The tests.
        parts: Vec<Method>,
    },
}

/// What is searched for, and within which limits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchMethod {
    /// The goals; the first one's conditional throughput stands for a run.
    pub goals: Vec<Goal>,
    /// The least load in packets per second; none: a hundredth of the greatest, or the least
    /// that the goals allow.
    pub min_load: Option<u64>,
    /// The greatest load in packets per second; none: derived from the run's own trial.
    pub max_load: Option<u64>,
    /// Trials at most.
    pub max_trials: u32,
    /// Traffic of all trials together at most, nanoseconds.
    pub max_time_ns: u64,
}

impl SearchMethod {
    /// A search for these goals within limits that a sensible one never meets.
    pub fn of(goals: Vec<Goal>) -> SearchMethod {
        let (max_trials, max_time_ns) = (TRIALS_MAX, 3_600_000_000_000);
        SearchMethod { goals, min_load: None, max_load: None, max_trials, max_time_ns }
    }
}

/// Most trials of a method in one run: so many run ids are a run's own.
pub const TRIALS_MAX: u32 = 1_000;

/// The loads of a flood, packets per second: none at first, the greatest one at last.
pub fn flood_loads(step: f64, max_load: u64) -> Vec<u64> {
    // Those below the greatest one: a step that divides it does not reach it.
    let steps = (1.0 / step - 1e-9).floor() as u32;
    let between = (0..=steps).map(|n| (f64::from(n) * step * max_load as f64).round() as u64);
    let mut loads: Vec<u64> = between.chain([max_load]).collect();
    loads.dedup();
    loads
}

impl Method {
    /// The word that chooses it.
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

    /// The methods that it consists of; none if it stands alone.
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

    /// What it consists of: its parts, or itself.
    pub fn parts(&self) -> &[Method] {
        self.composed().unwrap_or(std::slice::from_ref(self))
    }

    /// True if it opens connections, one with each packet.
    pub fn opens_connections(&self) -> bool {
        self.parts().iter().any(|part| {
            matches!(
                part,
                Method::Establishment(_) | Method::TearDown { .. } | Method::Capacity { .. }
            )
        })
    }

    /// True if it sends a flood of new flows beside the traffic.
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

    /// The greatest load of a search or a curve that a file names, packets per second of each
    /// direction.
    pub fn max_load(&self) -> Option<u64> {
        match self {
            Method::Mlrsearch(search) | Method::Establishment(search) => search.max_load,
            Method::LossCurve { max_load, .. } => *max_load,
            _ => None,
        }
    }

    /// What it does, in words for plans and reports.
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
