//! Contents of one file of another tool, for commands that show or follow it.

use super::error::CompareError;
use super::input::Input;
use super::peers::Choice;
use super::read;
use crate::document::{Block, Document};
use crate::quantity::Quantity;
use crate::report::analysis::SummaryResult;
use crate::report::verdicts::variants_in;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Version of the JSON fields; raised when an existing field is renamed or changes its meaning.
const VERSION: u32 = 1;

/// Selection of runs in files of other tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct Selection<'a> {
    /// Name of the benchmark. `None` for all of them.
    pub only: Option<&'a str>,
    /// Name of the value. `None` for the usual one of the format.
    pub column: Option<&'a str>,
}

/// A file of another tool.
#[derive(Clone, Debug, Serialize)]
pub struct FileContents {
    /// Path given by the user.
    pub path: PathBuf,
    /// Name of the tool.
    pub tool: String,
    /// Benchmarks, at least one.
    pub benchmarks: Vec<BenchmarkResult>,
    /// Remarks, e.g. the numbers of runs that are left out.
    pub notes: Vec<String>,
}

/// Runs of one benchmark.
#[derive(Clone, Debug, Serialize)]
pub struct BenchmarkResult {
    /// Name of the benchmark, or of the file if the format has no names.
    pub label: String,
    /// Name in the file. `None` if the format has no names.
    pub name: Option<String>,
    /// Meaning of the values, e.g. `bits per second received`.
    pub title: String,
    /// Unit of the values, and direction of improvement.
    #[serde(rename = "unit")]
    pub(crate) quantity: Quantity,
    /// One value per run.
    pub values: Vec<f64>,
    /// Summary of the values. `None` if a value is not finite.
    pub summary: Option<SummaryResult>,
}

/// Reads a file of another tool. `None` if the file may be a store.
///
/// # Errors
/// Fails if the file cannot be read, is of no known tool, or contains no usable run.
pub fn contents(
    path: &Path,
    selection: Selection<'_>,
) -> Result<Option<FileContents>, CompareError> {
    let failed = |source| CompareError::Read { path: path.to_path_buf(), source };
    if !path.is_file() || read::may_be_store(path).map_err(failed)? {
        return Ok(None);
    }
    let Selection { only, column } = selection;
    let choice = Choice { only, column, has_label: false, is_single_enough: true };
    let Input { peer: Some(peer), variants, notes, .. } = read::read(path, choice)? else {
        let what = "this is neither a store nor a result of another tool";
        let next = "give it to fwdlab compare, which also reads lists and tables";
        return Err(CompareError::input(path, None, what, next));
    };
    let benchmarks = variants.into_iter().zip(peer.benchmarks).map(|(variant, identity)| {
        let values = variant.values();
        BenchmarkResult {
            label: identity.name.clone().unwrap_or(variant.label),
            name: identity.name,
            title: identity.title,
            quantity: identity.quantity,
            summary: SummaryResult::of(&values),
            values,
        }
    });
    let benchmarks = benchmarks.collect();
    Ok(Some(FileContents { path: path.to_path_buf(), tool: peer.tool, benchmarks, notes }))
}

impl FileContents {
    /// Builds a document with one table per quantity.
    pub fn document(&self) -> Document<'_> {
        let mut blocks: Vec<Block> = Block::notes(&self.notes).collect();
        let mut titles: Vec<(&str, &Quantity)> = Vec::new();
        for benchmark in &self.benchmarks {
            let title = (benchmark.title.as_str(), &benchmark.quantity);
            if !titles.contains(&title) {
                titles.push(title);
            }
        }
        for (title, quantity) in titles {
            let is_of = |b: &&BenchmarkResult| (b.title.as_str(), &b.quantity) == (title, quantity);
            let benchmarks = self.benchmarks.iter().filter(is_of);
            blocks.push(Block::text(format!("One figure per run. All in {title}.")));
            blocks.push(variants_in(benchmarks, summary, quantity).block());
        }
        Document {
            title: format!("{} ({})", self.path.display(), self.tool),
            conclusion: Vec::new(),
            blocks,
            data: self,
            version: VERSION,
        }
    }
}

fn summary(benchmark: &BenchmarkResult) -> (&str, Option<&SummaryResult>) {
    (&benchmark.label, benchmark.summary.as_ref())
}
