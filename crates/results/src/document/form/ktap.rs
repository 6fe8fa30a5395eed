//! For test harnesses: KTAP, as the kernel's own tests speak it (Documentation/dev-tools/ktap.rst).
//!
//! Every comparison is a test. A device that got worse fails; one that got better or stayed
//! equivalent passes; one of which nothing was shown is skipped, since a test that can't tell
//! must not pass.

use super::text::{self, Detail};
use crate::document::table::{Cell, Row, Wholes};
use crate::document::{Document, Table};

/// Columns of a remark.
const WIDTH: usize = 96;

/// What a comparison is to a test.
enum Outcome {
    Pass,
    Fail,
    Skip(String),
}

/// The document.
pub fn render(document: &Document<'_>) -> String {
    let named = document.tables().into_iter().filter(|(name, _)| *name == "verdicts");
    let tables: Vec<&Table> = named.flat_map(|(_, tables)| tables).collect();
    let tests: Vec<(&Table, &Row)> =
        tables.iter().flat_map(|table| table.rows.iter().map(|row| (*table, row))).collect();
    let mut lines = vec!["KTAP version 1".to_owned()];
    lines.push(match tests.len() {
        0 => "1..0 # SKIP nothing is compared".to_owned(),
        tests => format!("1..{tests}"),
    });
    lines.push(format!("# {}", document.title));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (number, (table, row)) in (1..).zip(&tests) {
        lines.extend(statistics(table, row).map(|statistic| format!("# {statistic}")));
        let name = row.called().replace('#', "");
        lines.push(match outcome(row) {
            Outcome::Pass => {
                passed += 1;
                format!("ok {number} {name}")
            }
            Outcome::Fail => {
                failed += 1;
                format!("not ok {number} {name}")
            }
            Outcome::Skip(why) => {
                skipped += 1;
                format!("ok {number} {name} # SKIP {why}")
            }
        });
    }
    let conclusion = Document {
        title: String::new(),
        conclusion: document.conclusion.clone(),
        blocks: Vec::new(),
        data: &(),
        version: document.version,
    };
    let said = text::text(text::lines(&conclusion, WIDTH, Detail::Brief));
    let said = said.lines().filter(|line| !line.trim().is_empty());
    lines.extend(said.map(|line| format!("# {line}")));
    if !tests.is_empty() {
        // The order and the names are those of tools/testing/selftests.
        lines.push(format!(
            "# Totals: pass:{passed} fail:{failed} xfail:0 xpass:0 skip:{skipped} error:0"
        ));
    }
    lines.join("\n") + "\n"
}

fn outcome(row: &Row) -> Outcome {
    let verdict = row.cells.iter().find_map(|cell| match cell {
        Cell::Verdict(kind, words) => Some((kind.as_str(), words)),
        _ => None,
    });
    match verdict {
        Some(("worse" | "more", _)) => Outcome::Fail,
        Some(("better" | "fewer" | "equivalent", _)) => Outcome::Pass,
        Some((_, words)) => Outcome::Skip(words.clone()),
        None => Outcome::Skip("no answer".to_owned()),
    }
}

/// What the table says of a comparison, a column each.
fn statistics<'d>(table: &'d Table, row: &'d Row) -> impl Iterator<Item = String> + 'd {
    let known = table.titled().filter(|(at, _)| !matches!(row.cells[*at], Cell::None));
    known.map(|(at, column)| {
        format!("{} {}", column.title, row.cells[at].shown(Wholes::Short).plain())
    })
}
