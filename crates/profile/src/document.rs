//! Parts of a document that describe a profile.

use super::compare::{Change, Changes};
use super::functions::{Function, Neighbours, SortKey};
use super::subsystems::Subsystem;
use super::summary::{FilteredProfile, Summary};
use fwdlab_document::format::{grouped, percent};
use fwdlab_document::table::{Cell, Digits, Table};
use fwdlab_document::text::Tone;
use fwdlab_document::{Block, Remark};

/// Text for rows omitted by forms without room for all.
const REST: &str = "{} more; --top shows them";

/// One line on the profile's format and division, and every remark.
pub fn summary(summary: &Summary, name: &str) -> Vec<Block> {
    let samples = match summary.samples {
        Some(samples) if summary.unit != "samples" => {
            format!(" ({} samples)", grouped(samples as i128))
        }
        _ => String::new(),
    };
    let line = format!(
        "{name}: {}, {} {}{samples}: work {}, idle {}, harness {}",
        summary.format,
        amount(summary.total),
        summary.unit,
        percent(summary.work_share, 1),
        percent(summary.idle_share, 1),
        percent(summary.harness_share, 1),
    );
    let notes = summary.notes();
    let mut blocks = vec![Block::Paragraph(line.into(), Tone::Plain)];
    blocks.extend(notes.into_iter().map(|note| Block::remark(Remark::Note, note)));
    blocks
}

/// Functions, the costliest first; shares are of the kept part.
pub fn functions(divided: &FilteredProfile, by: SortKey, top: usize) -> Block {
    let rows = divided.kept.functions(by);
    costs("function", &rows, divided.kept.total(), top)
}

/// Subsystems; shares are of the kept part.
pub fn subsystems(list: &[Subsystem], whole: f64, top: usize) -> Block {
    let rows = list.iter().map(|subsystem| Function {
        name: subsystem.name.clone(),
        own: subsystem.own as f64,
        total: Some(subsystem.total as f64),
    });
    costs("subsystem", &rows.collect::<Vec<_>>(), whole, top)
}

fn costs(what: &'static str, rows: &[Function], whole: f64, top: usize) -> Block {
    let is_fine = rows.iter().any(|row| is_fine(row.own)) && whole < FINE;
    Table::of(rows)
        .words(what, |row| Cell::text(&row.name))
        .numbers("own %", |row| share(Some(row.own), whole))
        .keys(&["own_share"])
        .numbers("total %", |row| share(row.total, whole))
        .keys(&["total_share"])
        .numbers("own", |row| count(Some(row.own), is_fine))
        .numbers("total", |row| count(row.total, is_fine))
        .set(|table| {
            table.name = Some("costs");
            (table.brief, table.rest) = (Some(top), REST);
        })
        .block()
}

/// A function between its callers and callees, as gprof lists it; shares are of its total.
pub fn neighbours(around: &Neighbours, top: usize) -> Block {
    let Function { name, own, total } = &around.function;
    let whole = total.unwrap_or(*own);
    let root = "(no caller: a root)";
    let caller = |name: &'_ str| if name.is_empty() { root.to_owned() } else { name.to_owned() };
    let callers = around.callers.iter().take(top).map(|c| ("caller", caller(&c.name), c.count));
    let callees = around.callees.iter().take(top).map(|c| ("callee", c.name.clone(), c.count));
    let itself = [("function", name.clone(), whole), ("itself", name.clone(), *own)];
    let rows: Vec<_> = callers.chain(itself).chain(callees).collect();
    Table::of(&rows)
        .words("function", |(_, name, _)| Cell::text(name))
        .words("is", |(role, ..)| Cell::text(*role))
        .numbers("share", |(.., figure)| share(Some(*figure), whole))
        .numbers("count", |(.., figure)| count(Some(*figure), is_fine(*figure)))
        .set(|table| table.name = Some("around"))
        .block()
}

/// Differences, the largest first; `unit` is the unit of the values.
pub fn changes(changes: &Changes, unit: &str, what: &'static str, top: usize) -> Vec<Block> {
    let mut blocks = vec![Block::text(format!("figures are {unit}"))];
    blocks.extend(changes.remarks.iter().map(|remark| Block::remark(Remark::Note, remark)));
    let differ = changes.parts.iter().filter(|part| part.difference != 0.0);
    let rows: Vec<&Change> = std::iter::once(&changes.whole).chain(differ).collect();
    // The first row is the whole.
    blocks.push(Block::Table(differences(
        &rows,
        what,
        "",
        ["baseline", "candidate"],
        Some(top + 1),
    )));
    blocks
}

/// Table with one row per compared part. `unit` is the unit of the values, or empty if it is stated
/// elsewhere.
pub fn differences(
    changes: &[&Change],
    what: &str,
    unit: &str,
    [baseline, candidate]: [&str; 2],
    brief: Option<usize>,
) -> Table {
    let headed = |title: &str| match unit {
        "" => title.to_owned(),
        unit => format!("{title}, {unit}"),
    };
    Table::of(changes.iter().copied())
        .words(what, |change: &Change| Cell::text(&change.name))
        .numbers(headed(baseline), |c| Cell::number(c.baseline, Digits::Significant))
        .numbers(headed(candidate), |c| Cell::number(c.candidate, Digits::Significant))
        .numbers(headed("difference"), |c| Cell::number(c.difference, Digits::SignedSignificant))
        .words("interval", |c| Cell::interval(c.interval, Digits::SignedSignificant))
        .set(|table| {
            table.brief = brief;
            for (row, change) in table.rows.iter_mut().zip(changes) {
                row.tone = tone(change);
                row.is_same = row.tone == Tone::Plain && change.interval.is_some();
            }
        })
        .table()
}

/// Cheaper is better, if the interval excludes zero.
fn tone(change: &Change) -> Tone {
    match change.interval {
        Some((low, _)) if low > 0.0 => Tone::Worse,
        Some((_, high)) if high < 0.0 => Tone::Better,
        _ => Tone::Plain,
    }
}

fn share(part: Option<f64>, whole: f64) -> Cell {
    let share = part.filter(|_| whole > 0.0).map(|part| part / whole);
    Cell::number(share, Digits::Percent(1))
}

fn count(value: Option<f64>, is_fine: bool) -> Cell {
    match is_fine {
        true => Cell::number(value, Digits::Decimals(2)),
        false => Cell::count(value.map(|value| value.round() as i64)),
    }
}

/// Amounts below this are not rounded to integers: gprof counts in hundredths of a second.
const FINE: f64 = 1000.0;

/// Returns true for a small amount with decimals.
fn is_fine(amount: f64) -> bool {
    amount < FINE && amount.fract() != 0.0
}

fn amount(value: f64) -> String {
    match is_fine(value) {
        true => Digits::Decimals(2).print(value),
        false => grouped(value.round() as i128),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, read};
    use fwdlab_document::{Document, FORMS};

    fn render(text: &str, form: &str) -> String {
        let divided =
            FilteredProfile::of(&read(text.as_bytes()).unwrap(), &Filter::default(), false);
        let mut blocks = summary(&divided.summary, "some.txt");
        blocks.push(functions(&divided, SortKey::Own, 9));
        let data = &divided.summary;
        let title = "Some".to_owned();
        let document = Document { title, conclusion: Vec::new(), blocks, data, version: 1 };
        let form = FORMS.into_iter().find(|known| known.name == form).unwrap();
        let text = (form.render)(&document, 200).unwrap();
        // Lines are wrapped by each form.
        text.split_whitespace().filter(|word| *word != ">").collect::<Vec<&str>>().join(" ")
    }

    #[test]
    fn parts_left_out_are_in_every_form() {
        let text = "a 1 1.0: 70 cycles: \n\tffffffff81a0 f+0x1 ([k])\n  f.c:7\n\n\
                    a 1 1.0: 70 misses: \n\tffffffff81a0 f+0x1 ([k])\n\nwhat is this\n";
        for form in ["text", "markdown", "html", "mail"] {
            let shown = render(text, form);
            for part in ["1 source lines", "1 samples of misses", "not understood: 1", "line 8"] {
                assert!(shown.contains(part), "{form}: no {part} in {shown}");
            }
            assert!(shown.contains("70 cycles (1 samples)"), "{form}: {shown}");
        }
        let json = render(text, "json");
        for part in [
            "\"count\": 1, \"kind\": \"source lines\"",
            "\"count\": 1, \"kind\": \"samples of misses\"",
            "\"unknown\": { \"count\": 1",
            "\"samples\": 1",
            "\"event\": \"cycles\"",
        ] {
            assert!(json.contains(part), "no {part} in {json}");
        }
    }

    #[test]
    fn small_amounts_of_gprof_are_not_rounded() {
        let text = "flat profile:\n time   seconds   seconds  name\n \
                    66.7  0.60  0.60  ip_input [1]\n 33.3  0.90  0.30  ip_output [2]\n";
        let shown = render(text, "text");
        assert!(shown.contains("0.90 seconds: work"), "{shown}");
        assert!(shown.contains("ip_input 66.7 % 0.60"), "{shown}");
        assert!(shown.contains("ip_output 33.3 % 0.30"), "{shown}");
    }
}
