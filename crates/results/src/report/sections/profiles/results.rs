//! Results of the analysis of profiles.

use crate::profile::Agreement;
use crate::profile::compare::{Change, Changes};
use crate::report::sections::Plots;
use fwdlab_model::record::DropPlace;
use fwdlab_model::units::format_pps;
use serde::Serialize;

/// Maximum relative difference between rates of profiles at one stated load.
const ALIKE: f64 = 0.05;

/// The profiles of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Profiles {
    /// One per profiled variant.
    pub variants: Vec<ProfiledVariant>,
    /// Comparison of each profiled variant with its profiled baseline.
    pub differences: Vec<ProfileDifference>,
    /// General remarks, e.g. about a table of subsystems that can't be read.
    pub notes: Vec<String>,
    /// The flame graphs.
    #[serde(skip)]
    pub(super) plots: Plots,
}

/// One variant's profile.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledVariant {
    /// Index of the variant.
    pub variant: usize,
    /// Its label.
    pub label: String,
    /// Profiler and options, in words.
    pub source: String,
    /// Source of the samples.
    pub kind: ProfileKind,
    /// Number of sampled runs.
    pub starts: usize,
    /// The load of the profile; `None` for published profiles.
    pub load: Option<ProfileLoad>,
    /// Rate of each profile run compared with the measured runs; empty if there are too few of
    /// them.
    pub agreements: Vec<Agreement>,
    /// True if a profile run's rate was outside the range of the measured runs.
    pub is_marked: bool,
    /// Number of samples in the window.
    pub samples: u64,
    /// Number of samples outside the window, which are ignored.
    pub outside: u64,
    /// Share of all samples that are in the window.
    pub inside_share: f64,
    /// Share of work among the samples in the window.
    pub work_share: f64,
    /// Share of idle CPUs.
    pub idle_share: f64,
    /// Share of profiler, sender, receiver and other programs.
    pub harness_share: f64,
    /// Share of the work whose innermost function has a name.
    pub resolved_share: f64,
    /// Unit of the costs: `ns`, `cycles` ...
    pub unit: String,
    /// Packets forwarded in the window; `None` for published profiles.
    pub forwarded: Option<u64>,
    /// Work per packet, in the unit; `None` without packets.
    pub per_packet: Option<f64>,
    /// The most expensive functions by their own cost.
    pub functions: Vec<ProfiledFunction>,
    /// The most expensive functions, including their callees.
    pub totals: Vec<ProfiledFunction>,
    /// Subsystems by their functions' own cost, most expensive first.
    pub subsystems: Vec<ProfiledFunction>,
    /// Counters over the window.
    pub counters: Vec<CounterPerPacket>,
    /// Places at which packets were lost.
    pub drops: Vec<DropPlace>,
    /// Remarks and errors.
    pub remarks: Vec<String>,
    /// The flame graph, a file of the report; `None` if there is nothing to draw.
    pub file: Option<String>,
}

/// Source of a variant's samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProfileKind {
    /// The windows of its measured runs.
    Runs,
    /// Extra runs.
    Starts,
    /// A published profile.
    Published,
}

/// The load during a profile.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileLoad {
    /// Load that `[profile]` states; `None` if it was the load of the measured runs.
    pub stated: Option<String>,
    /// Packets sent in the window, per second.
    pub offered_pps: f64,
    /// Packets that arrived in the window, per second.
    pub forwarded_pps: f64,
}

impl ProfileLoad {
    /// Returns the reason not to compare costs at another load with these; `None` if they are
    /// comparable. Profiles without a stated load are compared with the measured runs instead.
    pub(super) fn differs_from(&self, other: &ProfileLoad) -> Option<String> {
        let differs = |a: f64, b: f64| (a / b - 1.0).abs() > ALIKE;
        let is_alike = match (&self.stated, &other.stated) {
            (None, None) => true,
            (Some(_), Some(_)) => {
                !differs(self.offered_pps, other.offered_pps)
                    && !differs(self.forwarded_pps, other.forwarded_pps)
            }
            _ => false,
        };
        let words = |load: &ProfileLoad| {
            let (offered, forwarded) = (load.offered_pps, load.forwarded_pps);
            format!("{} offered, {} forwarded", format_pps(offered), format_pps(forwarded))
        };
        (!is_alike).then(|| format!("{} against {}", words(self), words(other)))
    }
}

/// Share of a function or subsystem.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledFunction {
    /// Name.
    pub name: String,
    /// Share of the work.
    pub share: f64,
    /// Cost per packet, in the unit; `None` without packets.
    pub per_packet: Option<f64>,
}

/// A counter's increase in the window.
#[derive(Clone, Debug, Serialize)]
pub struct CounterPerPacket {
    /// Name.
    pub name: String,
    /// Increase; `None` if it could not be counted.
    pub value: Option<u64>,
    /// Increase per forwarded packet.
    pub per_packet: Option<f64>,
    /// Reason why it could not be counted; empty if it was.
    pub why_absent: String,
}

/// Comparison of a variant's profile with its baseline's.
#[derive(Clone, Debug, Serialize)]
pub struct ProfileDifference {
    /// Label of the variant.
    pub label: String,
    /// Label of its baseline.
    pub baseline_label: String,
    /// Source of the samples of both.
    pub kind: ProfileKind,
    /// Unit of the costs.
    pub unit: String,
    /// Scope of the intervals.
    pub scope: String,
    /// The functions with the largest differences in own cost.
    pub functions: Changes,
    /// The subsystems.
    pub subsystems: Changes,
    /// The differential flame graph, a file of the report.
    pub file: Option<String>,
}

impl ProfileDifference {
    /// Returns the function with the largest increase in cost per packet.
    pub fn top_riser(&self) -> Option<&Change> {
        self.functions.risers().next()
    }
}
