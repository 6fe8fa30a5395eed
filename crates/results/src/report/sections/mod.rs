//! The topics of a report. Each file or folder owns one topic: its analysis, its part of the
//! document and its plots.
//!
//! Data flow one way: the [`Core`] results are computed first, and sections read them. Only frame
//! sizes read another section, because their rates are results of the [`Method`].
//! `results.rs` computes the sections, [`super::document()`] puts them in order.

mod archive;
mod beds;
mod ceiling;
mod cells;
mod conservation;
mod counts;
mod device;
mod diagnostics;
mod method;
mod ministat;
mod profiles;
mod queues;
mod scaling;
mod sizes;
mod timing;
mod window_start;

pub use archive::{
    ArchiveResult, ArchivedVariant, Contradicted, PatchResult, PatchedVariant, Picture,
    PublishedBlock, RefusedFile, RuleComparison, RuleFigures,
};
pub(in crate::report) use archive::{copied_pictures, copy_pictures, relate_pictures};
pub(crate) use beds::beds_of_runs;
pub use beds::{BedEffect, BedResult, BedRun, Beds, beds_of};
pub use ceiling::{CalibrationResult, Ceiling};
pub use conservation::{
    ArrivalResult, ArrivalsFound, Conservation, CounterCheck, DirectionRate, MixRates,
    PacketCounts, SampledDamage,
};
pub use counts::{CountedVariant, Counts};
pub use device::{DeviceAlone, DeviceEffect, DeviceRow};
pub use diagnostics::{Diagnostics, Finding, RunSteadiness};
pub use method::{
    Bursts, DelayEffect, FloodOutcome, FloodPoint, FloodSummary, GoalFound, Interruption,
    InterruptionSummary, LatencyResult, LatencyStatistic, LossCurveOutcome, Method, MethodPoint,
    MethodRun, RunConnections, SearchOutcome, SoakOutcome, Suite, SuiteRow, TableCapacity,
    TeardownRate, TrialDirection,
};
pub use ministat::MinistatBlock;
pub use profiles::{
    CounterPerPacket, ProfileDifference, ProfileKind, ProfileLoad, ProfiledFunction,
    ProfiledVariant, Profiles,
};
pub use queues::QueueShares;
pub use scaling::{FittedLaw, ScaledSeries, Scaling, ScalingOutcome, ShownLaw};
pub use sizes::{SizePoint, SizeSeries, Sizes};
pub(in crate::report) use timing::order_plot;
pub use timing::{Overhead, Steal, Timing};
pub use window_start::WindowStart;

use super::analysis::Core;
use crate::document::{Block, Figure};
use crate::plot::Drawing;
use crate::store::Contents;

/// Separate page, in formats that can't fold, for the method and the checks of the data.
pub(super) const DETAILS: &str = "DETAILS.md";
/// Separate page for profiles.
pub(super) const PROFILES: &str = "PROFILES.md";
/// Maximum number of verdicts, variants or beds in a readable table.
pub(super) const MANY: usize = 8;

/// Name in the report and layouts of each plot.
pub(super) type Plots = Vec<(String, Drawing)>;

/// One topic of a report. A topic that an experiment may lack implements it as an `Option`, a list
/// of rows as a `Vec`.
pub(super) trait Section {
    /// Analyses the topic.
    fn analyse(input: &Input<'_>) -> Self
    where
        Self: Sized;

    /// Returns its sections of the document; empty if there is nothing to report.
    fn document(&self, context: &Context<'_>) -> Vec<Block>;

    /// Returns its part of the summary for terminals and mails.
    fn summary(&self) -> Vec<Block> {
        Vec::new()
    }

    /// Draws its plots, or hands over those that the analysis drew. They become files of the report.
    fn take_plots(&mut self) -> Plots {
        Plots::new()
    }
}

/// Data for the analysis of a section.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    /// The raw observations.
    pub(super) contents: &'a Contents,
    /// Results of runs, variants and comparisons.
    pub(super) core: &'a Core,
    /// Results of the method; `None` before its own analysis, and if a run is a single trial.
    pub(super) method: Option<&'a Method>,
}

/// Data for a section's part of the document.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// Results of runs, variants and comparisons.
    pub(super) core: &'a Core,
    /// Comparison of the beds; `None` if runs are named without their bed.
    pub(super) beds: Option<&'a Beds>,
    /// Data of an imported experiment; `None` for fwdlab's own runs.
    pub(super) archive: Option<&'a ArchiveResult>,
    /// The plots of all sections.
    pub(super) plots: &'a [(String, Drawing)],
    /// The plot of the runs in order.
    pub(super) order: &'a Drawing,
}

impl Context<'_> {
    /// Returns a run's name: its number, with its bed if there are several.
    pub(super) fn run_name(&self, run: u32) -> String {
        let result = self.core.runs.iter().find(|candidate| candidate.run == run);
        match result.and_then(|result| result.bed.as_deref()).filter(|_| self.beds.is_some()) {
            Some(bed) => format!("run {run} on bed {bed}"),
            None => format!("run {run}"),
        }
    }
}

/// Creates a figure of the document from a plot that is a file of the report.
pub(super) fn figure(title: &str, name: &str, drawing: &Drawing) -> Block {
    let (title, file, drawing) = (title.to_owned(), Some(name.to_owned()), drawing.clone());
    Block::Figure(Figure { title, file, drawing })
}
