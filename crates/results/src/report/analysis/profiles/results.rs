//! Results of the analysis of profiles.

use crate::profile::Agreement;
use crate::profile::compare::{Change, Changes};
use fwdlab_model::record::DropPlace;
use fwdlab_model::units::format_pps;
use serde::Serialize;

/// Largest difference between rates of profiles at one stated load, as a share.
const ALIKE: f64 = 0.05;

/// The profiles of an experiment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Profiles {
    /// One per profiled variant.
    pub variants: Vec<ProfiledVariant>,
    /// Each profiled variant against its profiled baseline.
    pub differences: Vec<ProfileDifference>,
    /// Remarks on the whole, e.g. a table of subsystems that can't be read.
    pub notes: Vec<String>,
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
    /// Runs that were sampled.
    pub starts: usize,
    /// The load that it was taken at; none for published profiles.
    pub load: Option<ProfileLoad>,
    /// Rate of each profile run compared with the measured runs; empty if there are too few of
    /// these.
    pub agreements: Vec<Agreement>,
    /// True when one of them ran otherwise than any measured run.
    pub is_marked: bool,
    /// Samples in the window, and outside of it.
    pub samples: u64,
    /// Samples outside of the window; they count for nothing.
    pub outside: u64,
    /// Share of all samples that lie in the window.
    pub inside_share: f64,
    /// Shares of the samples in the window: work, idle, harness.
    pub work_share: f64,
    /// Idle CPUs.
    pub idle_share: f64,
    /// Profiler, sender, receiver and whatever else ran there.
    pub harness_share: f64,
    /// Share of the work whose innermost function has a name.
    pub resolved_share: f64,
    /// Unit of the costs: `ns`, `cycles` ...
    pub unit: String,
    /// Packets forwarded in the window; none for published profiles.
    pub forwarded: Option<u64>,
    /// Work per packet, in the unit; none without packets.
    pub per_packet: Option<f64>,
    /// The costliest functions by themselves.
    pub functions: Vec<ProfiledFunction>,
    /// The costliest functions with what they call.
    pub totals: Vec<ProfiledFunction>,
    /// Subsystems by their own functions, the costliest first.
    pub subsystems: Vec<ProfiledFunction>,
    /// Counters over the window.
    pub counters: Vec<CounterPerPacket>,
    /// Places at which packets were lost.
    pub drops: Vec<DropPlace>,
    /// Remarks and errors.
    pub remarks: Vec<String>,
    /// The flame graph, a file of the report; none when there is nothing to draw.
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

/// The load that a profile was taken at.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProfileLoad {
    /// Load that `[profile]` states; `None` if the profile ran as the measured runs.
    pub stated: Option<String>,
    /// Packets sent in the window, per second.
    pub offered_pps: f64,
    /// Packets that arrived in it, per second.
    pub forwarded_pps: f64,
}

impl ProfileLoad {
    /// Reason not to compare costs at another load with these; `None` if they are comparable.
    /// Profiles without a stated load are compared with the measured runs instead.
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

/// A function's, or a subsystem's, share.
#[derive(Clone, Debug, Serialize)]
pub struct ProfiledFunction {
    /// Name.
    pub name: String,
    /// Share of the work.
    pub share: f64,
    /// Cost per packet, in the unit; none without packets.
    pub per_packet: Option<f64>,
}

/// A counter's increase in the window.
#[derive(Clone, Debug, Serialize)]
pub struct CounterPerPacket {
    /// Name.
    pub name: String,
    /// Increase; none when it could not be counted.
    pub value: Option<u64>,
    /// Increase per forwarded packet.
    pub per_packet: Option<f64>,
    /// Reason why it could not be counted; empty if it was.
    pub why_absent: String,
}

/// A variant's profile against its baseline's.
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
    /// The functions that differ most, by what they spend in themselves.
    pub functions: Changes,
    /// The subsystems.
    pub subsystems: Changes,
    /// The differential flame graph, a file of the report.
    pub file: Option<String>,
}

impl ProfileDifference {
    /// The function that costs most more per packet than in the baseline.
    pub fn top_riser(&self) -> Option<&Change> {
        self.functions.risers().next()
    }
}
