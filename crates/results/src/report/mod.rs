//! Reports, rebuilt from a store alone.
//!
//! [`write()`] creates a directory for reviewers: `README.md`, `index.html`, the graph, and the
//! values as files for other programs. The same store gives the same bytes: all times in a report
//! are stored ones, and it depends on nothing else on the machine. [`analysis`] computes the
//! results of runs, variants and comparisons, each of [`sections`] one further topic, [`document()`]
//! arranges them. This module deliberately leaves out measuring, and any
//! judgement that isn't already in [`crate::stats`].

pub mod analysis;
mod chart;
pub mod counted;
mod document;
pub(crate) mod effects;
mod error;
mod files;
mod json;
mod names;
mod results;
mod rows;
pub mod sections;
pub(crate) mod verdicts;

pub use document::{Pictures, document, searches, summary, summary_text};
pub use names::safe as safe_name;

pub use error::ReportError;
pub(crate) use files::LEFT_OUT;
pub use json::{results_json, show_json, shown};
pub use results::Analysis;

use crate::document::form::{html, json as as_json, markdown};
use crate::store::{Contents, Store};
use fwdlab_model::plan::RunMetric;
use serde_json::Value;
use std::path::Path;

/// One file of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportFile {
    /// Name within the report's directory.
    pub name: String,
    /// Content.
    pub bytes: Vec<u8>,
}

/// Writes the report of `store` into `directory`, creating it if necessary, and returns its
/// analysis. Replaces each file atomically.
///
/// # Errors
/// If the store can't be read or the directory can't be written.
pub fn write(store: &Store, directory: &Path) -> Result<Analysis, ReportError> {
    write_contents(&store.contents()?, directory)
}

/// Writes the report of a store's contents, like [`write()`].
///
/// # Errors
/// If the directory can't be written.
pub fn write_contents(contents: &Contents, directory: &Path) -> Result<Analysis, ReportError> {
    let mut analysis = Analysis::of(contents);
    analysis.relate_pictures(directory);
    write_analysed(contents, &analysis, directory)?;
    Ok(analysis)
}

/// Writes the report of an analysis of `contents`, like [`write()`].
///
/// # Errors
/// If the directory can't be written.
pub fn write_analysed(
    contents: &Contents,
    analysis: &Analysis,
    directory: &Path,
) -> Result<(), ReportError> {
    let files = files(contents, analysis)?;
    remove_stale(directory, &files);
    write_files(directory, files)
}

/// Writes files into `directory`, creating it if necessary, each atomically.
///
/// # Errors
/// If the directory can't be written.
pub fn write_files(
    directory: &Path,
    files: impl IntoIterator<Item = ReportFile>,
) -> Result<(), ReportError> {
    std::fs::create_dir_all(directory)
        .map_err(|source| ReportError::Write { path: directory.to_path_buf(), source })?;
    for file in files {
        let path = directory.join(&file.name);
        // Plots have their own folder.
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| ReportError::Write { path: folder.to_path_buf(), source })?;
        }
        files::write_atomically(&path, &file.bytes)
            .map_err(|source| ReportError::Write { path, source })?;
    }
    Ok(())
}

/// Removes files of an earlier report with other variants: only lists of values that its own
/// results.json names and this report does not write. Ignores errors, since a remaining file is
/// harmless.
fn remove_stale(directory: &Path, files: &[ReportFile]) {
    let old = std::fs::read(directory.join("results.json")).unwrap_or_default();
    let old: Value = serde_json::from_slice(&old).unwrap_or_default();
    let variants = old.get("variants").and_then(Value::as_array).into_iter().flatten();
    for name in variants.filter_map(|variant| variant.get("file")?.as_str()) {
        let is_list = name.ends_with(".pps") || name.ends_with(".instructions");
        let plain = is_list && Path::new(name).file_name() == Some(name.as_ref());
        if plain && files.iter().all(|file| file.name != name) {
            let _ = std::fs::remove_file(directory.join(name));
        }
    }
}

/// Returns all files of the report of `contents`, sorted by name.
///
/// # Errors
/// Never for contents of a store.
pub fn files(contents: &Contents, analysis: &Analysis) -> Result<Vec<ReportFile>, ReportError> {
    let pictures = Pictures {
        graph: chart::graph(analysis),
        order: sections::order_plot(&analysis.core),
        effects: effects::of_report(analysis),
    };
    let document = document(analysis, &pictures);
    let pages = markdown::pages(&document, "README.md").into_iter();
    let mut files: Vec<ReportFile> = pages.map(|(name, page)| text(&name, page)).collect();
    files.extend([
        text("index.html", html::render(&document)),
        ReportFile { name: "graph.png".to_owned(), bytes: chart::png(&pictures.graph.wide)? },
        text("gnuplot.data", files::gnuplot(analysis)),
        text("runs.csv", files::runs_csv(analysis)),
        text("results.json", as_json::render(&document)?),
        text("environment.json", pretty(&files::environment(contents))?),
    ]);
    files.push(text("graph.svg", pictures.graph.wide));
    files.extend(pictures.effects.map(|effects| text("effects.svg", effects.wide)));
    let label = analysis.core.label();
    for variant in analysis.core.variants.iter().filter(|variant| !variant.values.is_empty()) {
        let list = match analysis.core.figure {
            RunMetric::Netbenches | RunMetric::NetbenchesUpper => {
                files::archived(&label, &variant.values)
            }
            RunMetric::Instructions => files::instructions(&label, &variant.values),
            _ => files::pps(&label, &variant.values),
        };
        files.push(text(&variant.file, list));
    }
    if let (Some(import), Some(archive)) = (&contents.import, &analysis.archive) {
        let copies = sections::copied_pictures(import, &archive.pictures);
        let file = |(name, bytes): (&str, &[u8])| ReportFile {
            name: name.to_owned(),
            bytes: bytes.to_vec(),
        };
        files.extend(copies.map(file));
    }
    let pictures = analysis.plots.iter();
    files.extend(pictures.map(|(name, drawing)| text(name, drawing.wide.clone())));
    files.sort_by(|a, b| a.name.cmp(&b.name));
    files.dedup_by(|a, b| a.name == b.name);
    Ok(files)
}

fn text(name: &str, text: String) -> ReportFile {
    ReportFile { name: name.to_owned(), bytes: text.into_bytes() }
}

fn pretty(value: &Value) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(value).map(|text| text + "\n")
}
