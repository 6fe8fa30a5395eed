//! Imported experiments: published results, their reproduction, and caveats.

mod blocks;
mod contradictions;
mod document;
mod patch;
mod pictures;
mod rules;

pub use blocks::{Contradicted, PublishedBlock};
pub use patch::{PatchResult, PatchedVariant};
pub use pictures::Picture;
pub(in crate::report) use pictures::{copies as copied_pictures, copy_pictures, relate_pictures};
pub use rules::{RuleComparison, RuleFigures};

use super::{Context, Input, Section};
use crate::document::Block;
use crate::report::analysis::{Core, RunResult};
use crate::store::{Contents, ReproducedTable, Reproductions, Status};
use serde::Serialize;

/// Data of an imported experiment other than its results.
#[derive(Clone, Debug, Serialize)]
pub struct ArchiveResult {
    /// Directory that was read.
    pub origin: String,
    /// Machine under test; empty if unknown.
    pub machine: String,
    /// Its interface; empty if unknown.
    pub interface: String,
    /// The bench.
    pub topic: String,
    /// The result.
    pub label: String,
    /// True if the published graph has an axis for the simple IMIX.
    pub imix_axis: bool,
    /// The variants with their names in the archive.
    pub groups: Vec<ArchivedVariant>,
    /// Description of each configuration relative to the plain one; empty if the variants' own
    /// changes contain it already.
    pub configurations: Vec<(String, String)>,
    /// The results by both rules.
    pub rules: RuleComparison,
    /// The comparison with the same bench without the patch of this set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<PatchResult>,
    /// The published ministat blocks, reproduced.
    pub blocks: Vec<PublishedBlock>,
    /// The published tables of medians.
    pub tables: Vec<ReproducedTable>,
    /// Flame graphs and call graphs.
    pub pictures: Vec<Picture>,
    /// Missing files, with their purpose.
    pub missing: Vec<String>,
    /// Limitations of the design of the experiment.
    pub warnings: Vec<String>,
    /// Files read.
    pub files_read: usize,
    /// Files of a kind without results.
    pub files_ignored: usize,
    /// Files of a kind with results that were refused: name and reason.
    pub files_refused: Vec<RefusedFile>,
}

/// A file that was refused.
#[derive(Clone, Debug, Serialize)]
pub struct RefusedFile {
    /// Its name.
    pub name: String,
    /// Reason.
    pub why: String,
}

/// A variant with its names in the archive.
#[derive(Clone, Debug, Serialize)]
pub struct ArchivedVariant {
    /// Label in this report.
    pub label: String,
    /// Name in the archive's files.
    pub name: String,
    /// Its change from the baseline; empty if unknown.
    pub changes: String,
    /// The published list of its values; `None` if nothing was published.
    pub published: Option<String>,
    /// True if the logs reproduce that list value by value.
    pub list_equal: Option<bool>,
    /// Start time as the harness wrote it.
    pub started: Option<String>,
}

impl Section for Option<ArchiveResult> {
    fn analyse(input: &Input<'_>) -> Option<ArchiveResult> {
        archive(input)
    }

    fn document(&self, _: &Context<'_>) -> Vec<Block> {
        self.as_ref().map_or(Vec::new(), document::sections)
    }
}

/// Returns the archive data of an imported experiment; `None` for runs that fwdlab measured itself.
fn archive(input: &Input<'_>) -> Option<ArchiveResult> {
    let contents = input.contents;
    let Core { figure, variants, runs, comparisons, .. } = input.core;
    let figure = *figure;
    let import = contents.import.as_ref()?;
    let about = &import.about;
    let rules = rules::both(contents, figure, variants);
    let unknown = Reproductions::default();
    let reproductions = about.reproductions.as_ref().unwrap_or(&unknown);
    let (pictures, mut missing) = pictures::pictures(import, variants);
    let refused = import.sources.iter().filter(|source| source.status == Status::Refused);
    let count = |status| import.sources.iter().filter(|s| s.status == status).count();
    missing.extend(reproductions.missing.iter().cloned());
    Some(ArchiveResult {
        origin: import.origin.clone(),
        machine: about.machine.clone(),
        interface: about.interface.clone(),
        topic: about.topic.clone(),
        label: about.label.clone(),
        imix_axis: reproductions.imix_axis,
        groups: variants
            .iter()
            .zip(&about.groups)
            .map(|(variant, group)| ArchivedVariant {
                label: variant.label.clone(),
                name: group.name.clone(),
                changes: group.changes.clone(),
                published: group.published.clone(),
                list_equal: reproductions.lists.get(variant.index).copied().flatten(),
                started: group.started.clone(),
            })
            .collect(),
        configurations: match is_compared(contents) {
            true => Vec::new(),
            false => about.configurations.clone(),
        },
        patch: patch::patch(contents, figure, variants, runs),
        blocks: blocks::blocks(&reproductions.blocks, comparisons),
        tables: reproductions.tables.clone(),
        warnings: warnings(contents, runs),
        rules,
        pictures,
        missing,
        files_read: count(Status::Read),
        files_ignored: count(Status::Ignored),
        files_refused: refused
            .map(|source| RefusedFile { name: source.path.clone(), why: source.message.clone() })
            .collect(),
    })
}

/// Returns true if the variants' own changes already describe the configurations.
fn is_compared(contents: &Contents) -> bool {
    let plan = &contents.plan;
    let mut compared = plan.factors.iter().zip(&plan.compare.baseline);
    compared.any(|(factor, baseline)| {
        baseline.is_some() && factor.levels.iter().any(|level| !level.changes.is_empty())
    })
}

/// Warns of limitations of the experiment's design, independent of the length of its logs.
fn warnings(contents: &Contents, runs: &[RunResult]) -> Vec<String> {
    let plan = &contents.plan;
    let mut warnings = Vec::new();
    if plan.design.sequential && plan.variants.len() > 1 {
        warnings.push(
            "sequential order: each variant's runs followed one another, so drift during the \
             session shows up as a difference between variants, and the intervals do not account \
             for it"
                .to_owned(),
        );
    }
    let revision = plan.factors.iter().find(|factor| factor.name == "revision");
    if let Some(revision) = revision {
        warnings.push(format!(
            "one build per arm: each of the {} revisions is one compiled image, and builds of the \
             same source differ too (layout of code and data), which the intervals do not account \
             for",
            revision.levels.len()
        ));
    }
    let fewest = plan
        .variants
        .iter()
        .map(|v| runs.iter().filter(|r| r.variant == v.index && r.value_pps.is_some()).count())
        .min();
    if let Some(n) = fewest.filter(|n| *n < 7 && plan.variants.len() > 1) {
        warnings.push(format!(
            "{n} runs in the smallest variant: the intervals rest on the normal distribution"
        ));
    }
    warnings
}
