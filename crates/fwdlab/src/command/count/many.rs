//! Three or more kernels: totals first, then for each state one table of the functions that
//! changed, by kernel, and a plot of the totals.

use super::findings::{Findings, Row};
use fwdlab_results::counts::SHOWN;
use fwdlab_results::document::measure::INSTRUCTIONS_OF_KERNELS;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Figure, Table};
use fwdlab_results::plot::{Draw, Drawing, Quantity, RevisionPoint, Revisions};
use std::collections::BTreeSet;

/// True if there are too many kernels to show each comparison function by function.
pub(super) fn are_many(findings: &Findings) -> bool {
    findings.counted() > 2
}

/// Totals, functions, plot.
pub(super) fn blocks(findings: &Findings, functions: usize) -> Vec<Block> {
    let title = format!("Instructions per packet, {}", findings.question.family);
    let plot = Figure { title, file: None, drawing: plot(findings) };
    let mut blocks = vec![totals(findings)];
    blocks.extend((0..findings.states).map(|state| table(findings, state, functions)));
    blocks.push(Block::Figure(plot));
    blocks
}

/// Totals of the kernels, in the order given.
fn totals(findings: &Findings) -> Block {
    let signed = |value: Option<f64>| {
        value.map_or(Cell::None, |value| {
            Cell::Values(format!("{value:+.1}").into(), vec![value.into()])
        })
    };
    let rows: Vec<(usize, &Row)> = findings.kernels.iter().enumerate().collect();
    let lost = findings.kernels.iter().any(|row| row.lost > 0);
    Table::of(&rows)
        .words("kernel", |(_, row): &(usize, &Row)| Cell::text(row.label.as_str()))
        .hidden("release", |(_, row)| Cell::text(row.release.as_str()))
        .hidden("file", |(_, row)| Cell::text(row.file.as_str()))
        .hidden("change", |(_, row)| row.change.as_deref().map_or(Cell::None, Cell::text))
        .numbers("instructions", |(_, row)| Cell::number(row.instructions, Digits::Decimals(1)))
        .numbers("boots", |(_, row)| Cell::interval(ends(&row.boots), Digits::Decimals(1)))
        .when(findings.question.boots > 1)
        .keys(&["least_boot", "most_boot"])
        .numbers("bursts", |(_, row)| Cell::interval((row.least, row.most), Digits::Decimals(1)))
        .keys(&["least", "most"])
        .numbers("vs first", move |(at, _)| {
            signed(findings.against_first(*at).map(|e| e.difference))
        })
        .numbers("vs previous", move |(at, _)| signed(findings.steps[*at]))
        .numbers("changed", move |(at, _)| {
            let found = findings.against_first(*at).and_then(|exact| exact.functions.as_ref());
            found.map_or(Cell::None, |found| Cell::count(found.differing.len()))
        })
        .keys(&["changed_functions"])
        .about("functions that differ from the first kernel's")
        .numbers("packets", |(_, row)| Cell::count(row.packets))
        .when(lost)
        .numbers("lost", |(_, row)| Cell::count(row.lost))
        .when(lost)
        .set(|table| {
            table.name = Some("kernels");
            table.measures = &[INSTRUCTIONS_OF_KERNELS];
            table.in_panels = true;
        })
        .block()
}

/// A function that changed, with its instructions per packet in each kernel.
struct Changed<'a> {
    name: &'a str,
    instructions: Vec<f64>,
}

impl Changed<'_> {
    /// Difference between its most and fewest instructions.
    fn range(&self) -> f64 {
        let (least, most) = ends(&self.instructions);
        most - least
    }
}

/// Functions that changed between kernels in one state, largest change first.
fn changed(findings: &Findings, state: usize) -> Vec<Changed<'_>> {
    let in_state = (state..findings.kernels.len()).step_by(findings.states);
    let found = in_state.filter_map(|at| findings.against_first(at)?.functions.as_ref());
    let names: BTreeSet<&str> =
        found.flat_map(|found| &found.differing).map(|function| function.name.as_str()).collect();
    let functions = findings.functions.iter().filter(|f| names.contains(f.name.as_str()));
    let of_kernels = functions.map(|function| {
        let of_state = function.instructions.iter().skip(state).step_by(findings.states);
        Changed { name: &function.name, instructions: of_state.copied().collect() }
    });
    let mut changed: Vec<Changed<'_>> = of_kernels.collect();
    changed.sort_by(|a, b| b.range().total_cmp(&a.range()).then_with(|| a.name.cmp(b.name)));
    changed
}

/// Minimum and maximum.
pub(super) fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(*v), m.max(*v)))
}

/// Functions that changed, by kernel. A dash marks a function that a kernel does not execute.
fn table(findings: &Findings, state: usize, functions: usize) -> Block {
    let cost = |value: f64| match value.abs() < SHOWN / 10.0 {
        true => Cell::Values("-".into(), vec![value.into()]),
        false => Cell::number(value, Digits::Decimals(1)),
    };
    let mut shown = changed(findings, state);
    let left_out = shown.len().saturating_sub(functions);
    shown.truncate(functions);
    let mut table = Table::of(&shown)
        .words("function", |function: &Changed<'_>| Cell::text(function.name))
        .numbers("range", |function| Cell::number(function.range(), Digits::Decimals(1)));
    let kernels = findings.kernels.iter().skip(state).step_by(findings.states);
    for (number, kernel) in kernels.enumerate() {
        table = table.numbers(kernel.label.clone(), move |f| cost(f.instructions[number]));
    }
    let table = table.set(|table| {
        table.name = Some("functions");
        table.in_panels = true;
    });
    let after = findings.kernels.get(state).and_then(|row| row.change.as_ref());
    let after = after.map_or(String::new(), |change| format!(", after `{change}`"));
    match (left_out, after.is_empty()) {
        (0, true) => table.block(),
        (0, false) => Block::section(format!("Functions that changed{after}"), vec![table.block()]),
        _ => Block::section(
            format!("Functions that changed most{after} ({left_out} more: --functions)"),
            vec![table.block()],
        ),
    }
}

/// The totals as a plot.
pub(super) fn plot(findings: &Findings) -> Drawing {
    let points = findings.kernels.iter().map(|row| RevisionPoint {
        label: row.label.clone(),
        median: row.instructions,
        least: row.least,
        most: row.most,
        patched: row.change.is_some(),
    });
    let figure = Revisions {
        title: format!("Instructions to forward a packet, {}", findings.question.family),
        points: points.collect(),
        levels: Vec::new(),
        changes: Vec::new(),
        quantity: Quantity::Instructions,
        footnote: Some("Instructions are not time.".into()),
    };
    figure.drawing()
}

/// The range of the totals, and the largest step.
pub(super) fn conclusion(findings: &Findings) -> String {
    let rows: Vec<(usize, &Row)> =
        findings.kernels.iter().enumerate().step_by(findings.states).collect();
    let by_total =
        |a: &&(usize, &Row), b: &&(usize, &Row)| a.1.instructions.total_cmp(&b.1.instructions);
    let ends = (rows.first(), rows.last());
    let extremes = (rows.iter().min_by(by_total), rows.iter().max_by(by_total));
    let (Some((_, first)), Some((at_last, last))) = ends else { return String::new() };
    let (Some((_, least)), Some((_, most))) = extremes else { return String::new() };
    let size = |pair: &[(usize, &Row)]| findings.steps[pair[1].0].unwrap_or(0.0);
    let step = rows.windows(2).max_by(|a, b| size(a).abs().total_cmp(&size(b).abs()));
    let step = step.map_or(String::new(), |pair| {
        let (from, to) = (&pair[0].1.label, &pair[1].1.label);
        format!(" The largest step is {:+.1} from {from} to {to}.", size(pair))
    });
    let difference = findings.against_first(*at_last).map_or(0.0, |exact| exact.difference);
    let widest = rows.iter().map(|(_, row)| (row.most - row.least) / row.instructions);
    let number = changed(findings, 0).len();
    format!(
        "{} kernels: {} executes {:.1} instructions per packet, {} {:.1} ({difference:+.1}, \
         {:+.2} %); the fewest are {:.1} ({}), the most {:.1} ({}).{step} {number} {} by half an \
         instruction or more; bursts of one kernel are within {:.2} %.",
        rows.len(),
        first.label,
        first.instructions,
        last.label,
        last.instructions,
        100.0 * difference / first.instructions,
        least.instructions,
        least.label,
        most.instructions,
        most.label,
        if number == 1 { "function changed" } else { "functions changed" },
        100.0 * widest.fold(0.0, f64::max),
    )
}

#[cfg(test)]
mod tests {
    use super::super::document::document;
    use super::super::document::tests::{question, state};
    use super::super::findings::Question;
    use super::*;
    use crate::command::counted_guest::Failed;
    use fwdlab_results::document::FORMS;

    fn findings(totals: &[f64]) -> Findings {
        let states = totals.iter().enumerate();
        let states = states.map(|(n, total)| state(&format!("6.{n}.0-amd64"), *total, true));
        let states: Vec<_> = states.collect();
        Findings::new(&states, Question { kernels: states.len(), ..question(1) })
    }

    fn rendered(findings: &Findings, form: &str, width: usize) -> String {
        let form = FORMS.into_iter().find(|known| known.name == form).expect("a form");
        (form.render)(&document(findings, 10), width).expect("a document")
    }

    #[test]
    fn conclusion_names_ends_extremes_and_largest_step() {
        let text = conclusion(&findings(&[1000.0, 1100.0, 1090.0, 1050.0]));
        assert!(text.starts_with("4 kernels: 6.0.0 executes 1000.0"), "{text}");
        assert!(text.contains("6.3.0 1050.0 (+50.0, +5.00 %)"), "{text}");
        assert!(text.contains("the most 1100.0 (6.1.0)"), "{text}");
        assert!(text.contains("+100.0 from 6.0.0 to 6.1.0"), "{text}");
        assert!(text.contains("1 function changed"), "{text}");
    }

    #[test]
    fn kernels_that_failed_are_named_with_the_reason() {
        let mut found = findings(&[1000.0, 1100.0, 1090.0]);
        let (kernel, why) =
            ("bad.deb".to_owned(), "the guest panicked\n  next step: ...".to_owned());
        found.failed.push(Failed { kernel, why });
        let text = rendered(&found, "text", 100);
        assert!(text.contains("bad.deb was not counted: the guest panicked"), "{text}");
        assert!(rendered(&found, "json", 100).contains("bad.deb"));
    }

    #[test]
    fn functions_by_kernels_show_only_what_changed() {
        let found = findings(&[1000.0, 1100.0, 1090.0]);
        for form in ["text", "markdown", "csv", "html"] {
            let text = rendered(&found, form, 100);
            assert!(text.contains("demux") && !text.contains("ip_forward"), "{form}: {text}");
        }
        let text = rendered(&found, "text", 100);
        let row = text.lines().find(|line| line.starts_with("demux")).expect("a row");
        let cells: Vec<&str> = row.split_ascii_whitespace().collect();
        assert_eq!(cells, ["demux", "100.0", "874.0", "974.0", "964.0"]);
        assert!(rendered(&found, "html", 100).contains("instructions per packet"));
    }

    #[test]
    fn functions_of_many_kernels_are_shown_in_panels() {
        let totals: Vec<f64> = (0..30).map(|n| 1000.0 + f64::from(n)).collect();
        let text = rendered(&findings(&totals), "text", 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("demux")).collect();
        let values = rows.iter().map(|row| row.split_ascii_whitespace().count() - 1);
        assert!(rows.len() > 1, "{text}");
        assert_eq!(values.sum::<usize>(), 1 + 30, "{text}");
    }
}
