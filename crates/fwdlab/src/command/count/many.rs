//! Three and more kernels: totals first, then one table of functions by kernels with those that
//! changed, and a plot of the totals.

use super::findings::{Findings, Function, Row, SHOWN};
use fwdlab_results::document::measure::INSTRUCTIONS_OF_KERNELS;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Figure, Table};
use fwdlab_results::figure::{Draw, Drawing, Quantity, RevisionPoint, Revisions};

/// A total and the one before it.
struct Step<'a> {
    row: &'a Row,
    /// Instructions per packet more than before; `None` for the first kernel.
    from_before: Option<f64>,
    from_first: Option<f64>,
}

/// True if there are too many kernels to show a difference next to each: three and more, that
/// are not boots of the same.
pub(super) fn are_many(findings: &Findings) -> bool {
    findings.kernels.len() > 2 && findings.boots == 1
}

/// Totals, functions, plot.
pub(super) fn blocks(findings: &Findings, functions: usize) -> Vec<Block> {
    let title = format!("Instructions per packet, {}", findings.family);
    let plot = Figure { title, file: None, drawing: plot(findings) };
    let mut blocks = vec![totals(findings), table(findings, functions)];
    blocks.extend(findings.kernels.iter().filter_map(|row| {
        let change = row.change.as_ref()?;
        Some(Block::text(format!("{}: after `{change}`", row.label)))
    }));
    blocks.push(Block::Figure(plot));
    blocks
}

fn steps<'a>(findings: &'a Findings) -> Vec<Step<'a>> {
    let totals: Vec<f64> = findings.kernels.iter().map(|row| row.instructions).collect();
    let step = |(at, row): (usize, &'a Row)| {
        let from = |other: Option<f64>| other.map(|other| totals[at] - other);
        let before = at.checked_sub(1);
        Step {
            row,
            from_before: from(before.map(|before| totals[before])),
            from_first: from(before.map(|_| totals[0])),
        }
    };
    findings.kernels.iter().enumerate().map(step).collect()
}

/// Totals of the kernels, in the order given.
fn totals(findings: &Findings) -> Block {
    let signed = |value: Option<f64>| {
        value.map_or(Cell::None, |value| {
            Cell::Values(format!("{value:+.1}").into(), vec![value.into()])
        })
    };
    let steps = steps(findings);
    let lost = findings.kernels.iter().any(|row| row.lost > 0);
    Table::of(&steps)
        .words("kernel", |step: &Step<'_>| Cell::text(step.row.label.as_str()))
        .hidden("release", |step| Cell::text(step.row.release.as_str()))
        .hidden("file", |step| Cell::text(step.row.file.as_str()))
        .numbers("instructions", |step| Cell::number(step.row.instructions, Digits::Decimals(1)))
        .numbers("bursts", |step| {
            Cell::interval((step.row.least, step.row.most), Digits::Decimals(1))
        })
        .keys(&["least", "most"])
        .numbers("vs first", move |step| signed(step.from_first))
        .numbers("vs previous", move |step| signed(step.from_before))
        .numbers("changed", |step| {
            step.from_first.map_or(Cell::None, |_| Cell::count(step.row.differing))
        })
        .keys(&["changed_functions"])
        .about("functions that differ from the first kernel's")
        .numbers("packets", |step| Cell::count(step.row.packets))
        .when(lost)
        .numbers("lost", |step| Cell::count(step.row.lost))
        .when(lost)
        .set(|table| {
            table.name = Some("kernels");
            table.measures = &[INSTRUCTIONS_OF_KERNELS];
            table.in_panels = true;
        })
        .block()
}

/// Functions that changed, those first that changed most.
fn changed(findings: &Findings) -> Vec<&Function> {
    let mut changed: Vec<&Function> = findings
        .functions
        .iter()
        .filter(|function| !function.background && function.differs.contains(&true))
        .collect();
    changed.sort_by(|a, b| range(b).total_cmp(&range(a)).then_with(|| a.name.cmp(&b.name)));
    changed
}

/// From the least to the most of its costs, instructions per packet.
fn range(function: &Function) -> f64 {
    let (least, most) = ends(&function.instructions);
    most - least
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, m), v| (l.min(*v), m.max(*v)))
}

/// The functions that changed, by kernels. A function that a kernel does not execute is a dash.
fn table(findings: &Findings, functions: usize) -> Block {
    let cost = |value: f64| match value.abs() < SHOWN / 10.0 {
        true => Cell::Values("-".into(), vec![value.into()]),
        false => Cell::number(value, Digits::Decimals(1)),
    };
    let shown: Vec<&Function> = changed(findings).into_iter().take(functions).collect();
    let left_out = changed(findings).len() - shown.len();
    let mut table = Table::of(shown)
        .words("function", |function: &Function| Cell::text(function.name.as_str()))
        .numbers("range", |function| Cell::number(range(function), Digits::Decimals(1)));
    for (number, kernel) in findings.kernels.iter().enumerate() {
        table = table.numbers(kernel.label.clone(), move |f| cost(f.instructions[number]));
    }
    let table = table.set(|table| {
        table.name = Some("functions");
        table.in_panels = true;
    });
    match left_out {
        0 => table.block(),
        _ => Block::section(
            format!("Functions that changed most ({left_out} more: --functions)"),
            vec![table.block()],
        ),
    }
}

/// The totals as a picture.
pub(super) fn plot(findings: &Findings) -> Drawing {
    let points = findings.kernels.iter().map(|row| RevisionPoint {
        label: row.label.clone(),
        median: row.instructions,
        least: row.least,
        most: row.most,
        patched: row.change.is_some(),
    });
    let figure = Revisions {
        title: format!("Instructions to forward a packet, {}", findings.family),
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
    let rows = &findings.kernels;
    let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return String::new() };
    let by_total = |a: &&Row, b: &&Row| a.instructions.total_cmp(&b.instructions);
    let (Some(least), Some(most)) = (rows.iter().min_by(by_total), rows.iter().max_by(by_total))
    else {
        return String::new();
    };
    let steps = steps(findings);
    let size = |pair: &&[Step<'_>]| pair[1].from_before.unwrap_or(0.0).abs();
    let step = steps.windows(2).max_by(|a, b| size(a).total_cmp(&size(b)));
    let step = step.map_or(String::new(), |pair| {
        let (from, to) = (&pair[0].row.label, &pair[1].row.label);
        let size = pair[1].from_before.unwrap_or(0.0);
        format!(" The largest step is {size:+.1} from {from} to {to}.")
    });
    let difference = last.instructions - first.instructions;
    let widest = rows.iter().map(|row| (row.most - row.least) / row.instructions);
    format!(
        "{} kernels: {} executes {:.1} instructions to forward a packet, {} {:.1} ({difference:+.1}, \
         {:+.2} %); the least are {:.1} ({}), the most {:.1} ({}).{step} {} functions changed by half \
         an instruction or more; bursts of one kernel are within {:.2} %.",
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
        changed(findings).len(),
        100.0 * widest.fold(0.0, f64::max),
    )
}

#[cfg(test)]
mod tests {
    use super::super::document::document;
    use super::super::document::tests::counted;
    use super::super::findings::Failed;
    use super::*;
    use fwdlab_packet::Family;
    use fwdlab_results::document::FORMS;

    fn findings(totals: &[f64]) -> Findings {
        let kernels = totals.iter().enumerate();
        let kernels = kernels.map(|(n, total)| counted(&format!("6.{n}.0-amd64"), *total, true));
        Findings::of(kernels.collect(), Vec::new(), (Family::Inet, 32, 1))
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
        assert!(text.contains("1 functions changed"), "{text}");
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
        assert!(rendered(&found, "html", 100).contains("instructions a packet"));
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
