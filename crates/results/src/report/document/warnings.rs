//! Warnings about runs.

use crate::document::{Block, Inline, Item, List};
use crate::format::runs_of;
use crate::report::analysis::{RunWarning, WarningGroup};
use crate::report::sections::Context;

/// Maximum number of warnings of one kind in compact output formats.
const WARNINGS: usize = 2;

/// Returns the section of all warnings, by kind.
pub(super) fn section(context: &Context<'_>) -> Block {
    Block::section("Warnings", vec![warnings(context)])
}

fn warnings(context: &Context<'_>) -> Block {
    if context.core.warnings.is_empty() {
        return Block::text("None.");
    }
    let item = |group: &WarningGroup| {
        let WarningGroup { kind, count, runs, fatal, warnings } = group;
        let of = runs_of(context.core.runs_recorded);
        let times = if count == runs { String::new() } else { format!("{count} times ") };
        let text = Inline::default().strong(kind).text(format!(": {times}in {runs} of {of}"));
        let each = |warning: &RunWarning| {
            format!("{}: {}", context.run_name(warning.run), warning.sentence)
        };
        Item {
            text: match fatal {
                true => text.text(", ").strong("the numbers can't be trusted"),
                false => text,
            },
            list: List {
                brief: Some((WARNINGS, "and {} more in results.json")),
                open: *fatal || *count <= WARNINGS,
                ..List::of(warnings.iter().map(each))
            },
        }
    };
    let items = context.core.warnings.iter().map(item).collect();
    Block::List(List { items, ..List::default() })
}
