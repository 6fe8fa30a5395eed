//! Results of a report: the core results and the sections.
//!
//! README, HTML, JSON and terminal output show the same [`Analysis`], a pure function of the
//! store's contents.

use super::analysis::{Compared, Core, VariantResult};
use super::sections::{
    ArchiveResult, Beds, Ceiling, Context, Counts, DeviceAlone, Diagnostics, Input, Method,
    MinistatBlock, PacketCounts, Plots, Profiles, QueueShares, Scaling, Section, Sizes, Timing,
    WindowStart, copy_pictures, relate_pictures,
};
use crate::plot::Drawing;
use crate::stats::summary;
use crate::store::{Contents, Store, StoreError};
use serde::Serialize;
use std::path::Path;

/// Contents of a report, independent of the output format.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Results of runs, variants and comparisons.
    #[serde(flatten)]
    pub core: Core,
    /// Data of an imported experiment; `None` for fwdlab's own runs.
    pub archive: Option<ArchiveResult>,
    /// CPU time of the device alone per packet; `None` if no run has the data.
    pub device: Option<DeviceAlone>,
    /// Comparison of the beds; `None` for a single bed or beds without names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beds: Option<Beds>,
    /// Counts of executed instructions; `None` if the experiment compares rates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
    /// Results of the method; `None` if a run is a single trial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    /// CPU time by function; `None` without profiles.
    pub profiles: Option<Profiles>,
    /// Scaling of the rate over queues, cores, senders or workers.
    pub scaling: Vec<Scaling>,
    /// ministat's output per comparison.
    pub ministat: Vec<MinistatBlock>,
    /// Rates that sender and receiver reach without a DUT.
    #[serde(flatten)]
    pub ceiling: Ceiling,
    /// Packets offered, forwarded, lost, with the receiver's checks and the DUT's counters.
    #[serde(flatten)]
    pub packets: PacketCounts,
    /// Rates by frame size; `None` if the size is not varied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes: Option<Sizes>,
    /// Packets by queue of the DUT; empty if no variant had several queues.
    pub queues: Vec<QueueShares>,
    /// Flows and states at the start of the windows, and reasons for the ends of drains.
    pub openings: Vec<WindowStart>,
    /// Stolen time, and time outside the traffic.
    #[serde(flatten)]
    pub timing: Timing,
    /// Findings that qualify the runs' means, and the steady state of each run.
    #[serde(flatten)]
    pub diagnostics: Diagnostics,
    /// The plots of all sections.
    #[serde(skip)]
    pub(super) plots: Plots,
}

impl Analysis {
    /// Analyses everything in `store`.
    ///
    /// # Errors
    /// If the store holds no plan or can't be read.
    pub fn of_store(store: &Store) -> Result<Analysis, StoreError> {
        Ok(Analysis::of(&store.contents()?))
    }

    /// Analyses the contents of a store. Without runs, all results are empty.
    pub fn of(contents: &Contents) -> Analysis {
        let mut core = Core::of(contents);
        let counts: Option<Counts> =
            Section::analyse(&Input { contents, core: &core, method: None });
        if let Some(counts) = &counts {
            counts.name_plots(&mut core.comparisons);
        }
        let method: Option<Method> =
            Section::analyse(&Input { contents, core: &core, method: None });
        let input = Input { contents, core: &core, method: method.as_ref() };
        let mut analysis = Analysis {
            archive: Section::analyse(&input),
            device: Section::analyse(&input),
            beds: Section::analyse(&input),
            profiles: Section::analyse(&input),
            scaling: Section::analyse(&input),
            ministat: Section::analyse(&input),
            ceiling: Section::analyse(&input),
            packets: Section::analyse(&input),
            sizes: Section::analyse(&input),
            queues: Section::analyse(&input),
            openings: Section::analyse(&input),
            timing: Section::analyse(&input),
            diagnostics: Section::analyse(&input),
            plots: Plots::new(),
            core,
            counts,
            method,
        };
        analysis.plots = [
            analysis.profiles.take_plots(),
            analysis.counts.take_plots(),
            analysis.method.take_plots(),
            analysis.sizes.take_plots(),
        ]
        .into_iter()
        .flatten()
        .collect();
        analysis
    }

    /// Returns the data for the documents of its sections; `order` is the plot of the runs in order.
    pub(super) fn context<'a>(&'a self, order: &'a Drawing) -> Context<'a> {
        Context {
            core: &self.core,
            beds: self.beds.as_ref(),
            archive: self.archive.as_ref(),
            plots: &self.plots,
            order,
        }
    }

    /// Returns the labels of the variants with runs but without a result, with the reason of the
    /// first run; empty for imported runs.
    pub fn without_result(&self) -> Vec<(&str, &str)> {
        let Core { runs, variants, figure, .. } = &self.core;
        let reason = |variant: &VariantResult| {
            let runs = runs.iter().filter(|run| run.variant == variant.index);
            let absences: Option<Vec<&str>> = runs.map(|run| run.absence(*figure)).collect();
            absences?.first().copied()
        };
        let variants = variants.iter().filter(|_| self.archive.is_none());
        variants.filter_map(|variant| Some((variant.label.as_str(), reason(variant)?))).collect()
    }

    /// Returns true if a number of the analysis can't be trusted.
    pub fn has_fatal_warning(&self) -> bool {
        self.core.warnings.iter().any(|group| group.fatal)
    }

    /// Returns the median rate of a variant in a comparison: the search result for its goal, or by
    /// default the runs' metric.
    pub(super) fn median(&self, compared: &Compared, variant: usize) -> Option<f64> {
        let Some(goal) = &compared.goal else {
            let side = compared.sides.iter().find(|side| side.contains(&variant))?;
            let of =
                |variant: &usize| Some(self.core.variants.get(*variant)?.values.iter().copied());
            return summary::median(&side.iter().filter_map(of).flatten().collect::<Vec<f64>>());
        };
        let method = self.method.as_ref()?;
        let mut searched = method.search().unwrap_or(method).searched.iter();
        let found = searched.find(|row| row.variant == variant && row.goal == *goal)?;
        Some(found.throughput?.median)
    }

    /// Replaces references to the original files by copies in the report, which makes it
    /// self-contained.
    pub fn copy_pictures(&mut self) {
        if let Some(archive) = &mut self.archive {
            copy_pictures(&mut archive.pictures);
        }
    }

    /// Makes references to the original files relative to `directory`, the report's directory, so
    /// that a report contains no absolute path of the machine that wrote it.
    pub fn relate_pictures(&mut self, directory: &Path) {
        if let Some(archive) = &mut self.archive {
            relate_pictures(&mut archive.pictures, directory);
        }
    }
}
