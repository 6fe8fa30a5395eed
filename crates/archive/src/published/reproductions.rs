//! Comparison of a set's published texts with its runs, as kept in the store.

use super::lists::List;
use super::plot::Plot;
use super::tables::{Row, Table, check_rows};
use super::{Block, Outcome, Readme, claims, reproduce};
use fwdlab_model::Plan;
use fwdlab_model::plan::RunMetric;
use fwdlab_model::record::RunRecord;
use fwdlab_results::plot::RightAxis;
use fwdlab_results::stats::log_rule;
use fwdlab_results::stats::ministat::Generation;
use fwdlab_results::stats::summary::median;
use fwdlab_results::store::{
    Contents, Document, DocumentKind, Likeness, ReproducedBlock, ReproducedTable, Reproductions,
    UnpatchedSet,
};

/// Medians within this relative distance are assumed to be of the same runs.
const NEAR: f64 = 0.005;

/// Compares the published results of an imported store with its runs, if the import that made the
/// store did not.
pub fn complete(contents: &mut Contents) {
    let Some(import) = &contents.import else { return };
    if import.about.reproductions.is_some() {
        return;
    }
    let values = published_values(&contents.plan, import.about.upper_median, &contents.runs);
    let groups = &import.about.groups;
    let variants: Vec<(&str, &[f64])> =
        groups.iter().zip(&values).map(|(g, v)| (g.name.as_str(), v.as_slice())).collect();
    let found = reproductions(&import.documents, &variants, import.about.unpatched.as_ref());
    if let Some(import) = &mut contents.import {
        import.about.reproductions = Some(found);
    }
}

/// Returns, for each variant, the values of its runs by the archive's rule, in the order of the
/// published lists.
fn published_values(plan: &Plan, upper: bool, runs: &[RunRecord]) -> Vec<Vec<f64>> {
    let is_search = plan.compare.figure == Some(RunMetric::Mean);
    let value = |run: &&RunRecord| match is_search {
        // Published in Mbit/s.
        true => run.facts.get("equilibrium")?.strip_suffix(" Mbit/s")?.parse().ok(),
        false => log_rule::netbenches_pps(&run.trial.samples, upper),
    };
    plan.variants
        .iter()
        .map(|variant| {
            let own_runs = runs.iter().filter(|run| run.variants == [variant.index]);
            let iteration = |run: &&RunRecord| run.facts.get("iteration").cloned();
            in_published_order(own_runs, iteration).iter().filter_map(value).collect()
        })
        .collect()
}

/// Sorts runs like the published lists, which are in the order of `ls`: by the text of their
/// iteration, 1, 10, 2.
pub(crate) fn in_published_order<R, K: Ord>(
    runs: impl Iterator<Item = R>,
    iteration: impl Fn(&R) -> K,
) -> Vec<R> {
    let mut runs: Vec<R> = runs.collect();
    runs.sort_by_cached_key(|run| iteration(run));
    runs
}

/// Compares lists, blocks and tables among `documents` with the variants (name, values in the order
/// of the published lists). Blocks and tables may also contain figures of the set without the
/// patch.
pub(crate) fn reproductions(
    documents: &[Document],
    variants: &[(&str, &[f64])],
    unpatched: Option<&UnpatchedSet>,
) -> Reproductions {
    let others = unpatched.map_or(&[][..], |unpatched| &unpatched.groups);
    let others = others.iter().map(|group| (group.name.as_str(), group.values.as_slice()));
    let all: Vec<(&str, &[f64])> = variants.iter().copied().chain(others).collect();
    let figures = Figures { all: &all, own_count: variants.len(), unpatched };
    let of = |kind| documents.iter().filter(move |document| document.kind == kind);
    let text = |document: &Document| String::from_utf8_lossy(&document.content).into_owned();
    let plots: Vec<Plot> = of(DocumentKind::Plot).map(|d| Plot::parse(&text(d))).collect();
    let list = |(variant, (_, values)): (usize, &(&str, &[f64]))| {
        let document = of(DocumentKind::List).find(|d| d.variant == Some(variant))?;
        List::read(&document.content).map(|list| list.numbers() == *values)
    };
    let blocks = of(DocumentKind::Readme).flat_map(|document| {
        let blocks = Readme::parse(&text(document)).blocks;
        blocks.into_iter().map(|block| reproduced(&document.path, &block, figures))
    });
    Reproductions {
        lists: variants.iter().enumerate().map(list).collect(),
        blocks: blocks.collect(),
        tables: of(DocumentKind::Table).filter_map(|d| table(&d.path, &text(d), &all)).collect(),
        imix_axis: plots.iter().any(|plot| plot.y2_factor.is_some_and(is_imix)),
        missing: missing_data(documents, &plots),
    }
}

/// Figures that a block may show: name, and values in the order of the published lists.
#[derive(Clone, Copy)]
struct Figures<'a> {
    all: &'a [(&'a str, &'a [f64])],
    /// Number of leading entries that are the set's own variants.
    own_count: usize,
    /// The set that the remaining entries belong to.
    unpatched: Option<&'a UnpatchedSet>,
}

/// Prints a block from the variants' values.
fn reproduced(document: &str, block: &Block, figures: Figures<'_>) -> ReproducedBlock {
    let mut found = reproduce(block, figures.all);
    let is_unpatched =
        |member: &Option<usize>| member.is_some_and(|member| member >= figures.own_count);
    let with = match figures.unpatched.filter(|_| found.members.iter().any(is_unpatched)) {
        Some(unpatched) => format!(" with runs of {}", unpatched.label),
        None => String::new(),
    };
    for member in &mut found.members {
        *member = member.filter(|&member| member < figures.own_count);
    }
    let (likeness, text, sentence) = match found.outcome {
        Outcome::Exact { generations, text } => {
            let sentence = format!(
                "Equal to the published block to the byte{with}, as ministat of {} prints it.",
                names(&generations)
            );
            (Likeness::Equal, text, sentence)
        }
        Outcome::Cut { generations, text, left_out } => {
            let lines = if left_out == 1 { "line" } else { "lines" };
            let sentence = format!(
                "Every published line is equal to the byte{with}, as ministat of {} prints it; \
                 {left_out} {lines} that it prints below were not published.",
                names(&generations)
            );
            (Likeness::Equal, text, sentence)
        }
        Outcome::Differs { generation, text, first_difference, same_lines, lines } => {
            let shown = |line: Option<String>| line.unwrap_or_else(|| "(nothing)".to_owned());
            let sentence = format!(
                "Not equal: {same_lines} of {lines} published lines come out; closest is ministat \
                 of {}; in line {} there is \"{}\" where \"{}\" was published.",
                generation.name(),
                first_difference.line,
                shown(first_difference.computed).trim(),
                shown(first_difference.published).trim()
            );
            (Likeness::Different, text, sentence)
        }
        Outcome::Unmatched { sets } => {
            let legends: Vec<&str> =
                sets.iter().filter_map(|set| Some(block.legends.get(*set)?.as_str())).collect();
            let sentence = format!(
                "As published: no variant of this import has the figures of {}; if they are of \
                 another result of the bench, import both together.",
                legends.join(", ")
            );
            (Likeness::Unmatched, block.text.clone() + "\n", sentence)
        }
        Outcome::Unprintable(error) => {
            let sentence = format!("As published: {error}.");
            (Likeness::Unmatched, block.text.clone() + "\n", sentence)
        }
    };
    ReproducedBlock {
        document: document.to_owned(),
        heading: block.heading.clone(),
        line: block.line,
        text,
        likeness,
        sentence,
        members: found.members,
        claims: claims(block),
    }
}

fn names(generations: &[Generation]) -> String {
    let names: Vec<&str> = generations.iter().map(|generation| generation.name()).collect();
    names.join(", ")
}

/// Compares a table of medians; `None` if it has no rows.
fn table(name: &str, text: &str, variants: &[(&str, &[f64])]) -> Option<ReproducedTable> {
    let Table { rows, .. } = Table::parse(text);
    if rows.is_empty() {
        return None;
    }
    let found = check_rows(&rows, variants);
    let equal = found.iter().flatten().count();
    let others = rows.iter().zip(&found).filter(|(_, source)| source.is_none());
    let others: Vec<String> = others.map(|(row, _)| why_not(row, variants)).collect();
    let rows = rows.len();
    let sentence = match equal == rows {
        true => format!("all {rows} rows come out again"),
        false => format!("{equal} of {rows} rows come out again"),
    };
    Some(ReproducedTable { name: name.to_owned(), rows, equal, sentence, others })
}

/// Explains why a row is not reproduced: the figures of the closest variant.
fn why_not(row: &Row, variants: &[(&str, &[f64])]) -> String {
    let Row { line, median: published, min, max, .. } = row;
    let place = match row.label.replace('\n', " ") {
        label if label.is_empty() => format!("line {line}"),
        label => format!("line {line} ({label})"),
    };
    let distance =
        |pps: f64| published.parse().map_or(f64::INFINITY, |p: f64| (pps / p).ln().abs());
    let medians =
        variants.iter().filter_map(|(name, values)| Some((name, values, median(values)?)));
    let closest = medians.min_by(|a, b| distance(a.2).total_cmp(&distance(b.2)));
    match closest {
        Some((name, values, median)) if distance(median) < NEAR => {
            let least = values.iter().copied().fold(f64::INFINITY, f64::min);
            let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            format!(
                "{place}: published {published} ({min} to {max}), where the logs of {name} give \
                 {median} ({least} to {most})"
            )
        }
        Some((name, _, median)) => format!(
            "{place}: no variant has its median of {published}; the closest is {name} with {median}"
        ),
        None => format!("{place}: no variant has figures"),
    }
}

/// Returns true for the size in bits of the simple IMIX's mean packet, as rounded by scripts.
fn is_imix(factor: f64) -> bool {
    (factor / RightAxis::IMIX_BITS - 1.0).abs() < 1e-3
}

/// Returns data that the published graph shows but another result's folder contains.
fn missing_data(documents: &[Document], plots: &[Plot]) -> Vec<String> {
    let has = |name: &str| {
        let base = name.rsplit('/').next().unwrap_or(name);
        !name.contains('/') && documents.iter().any(|d| d.path.ends_with(base))
    };
    let mut missing = Vec::new();
    for series in plots.iter().flat_map(|plot| &plot.series).filter(|s| !has(&s.file)) {
        let title = series.title.as_deref().unwrap_or("a series without a title");
        let text = format!(
            "{}: the published graph also shows \"{title}\" from there; import that set to compare",
            series.file
        );
        if !missing.iter().any(|known: &String| known.starts_with(&format!("{}:", series.file))) {
            missing.push(text);
        }
    }
    missing
}
