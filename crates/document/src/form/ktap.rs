//! Form for test harnesses: KTAP, the format of the kernel's own tests
//! (Documentation/dev-tools/ktap.rst).
//!
//! Every comparison is a test, with the result of its [`Judgement`].

use super::text::{self, Detail};
use crate::Document;
use crate::judgement::Judgement;

/// Line width of a remark.
const WIDTH: usize = 96;

/// Renders the document.
pub fn render(document: &Document<'_>) -> String {
    let tests = document.comparisons();
    let mut lines = vec!["KTAP version 1".to_owned()];
    lines.push(match tests.len() {
        0 => "1..0 # SKIP nothing is compared".to_owned(),
        tests => format!("1..{tests}"),
    });
    lines.push(format!("# {}", document.title));
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for (number, (table, row, judgement)) in (1..).zip(&tests) {
        lines.extend(row.statistics(table).map(|statistic| format!("# {statistic}")));
        let name = row.called().replace('#', "");
        lines.push(match judgement {
            Judgement::Pass => {
                passed += 1;
                format!("ok {number} {name}")
            }
            Judgement::Fail => {
                failed += 1;
                format!("not ok {number} {name}")
            }
            Judgement::Skip(why) => {
                skipped += 1;
                format!("ok {number} {name} # SKIP {why}")
            }
        });
    }
    lines.extend(conclusion(document, WIDTH).into_iter().map(|line| format!("# {line}")));
    if !tests.is_empty() {
        // Same order and names as in tools/testing/selftests.
        lines.push(format!(
            "# Totals: pass:{passed} fail:{failed} xfail:0 xpass:0 skip:{skipped} error:0"
        ));
    }
    lines.join("\n") + "\n"
}

/// Renders the document's conclusion in lines of at most `width` columns.
pub(super) fn conclusion(document: &Document<'_>, width: usize) -> Vec<String> {
    let conclusion = Document {
        title: String::new(),
        conclusion: document.conclusion.clone(),
        blocks: Vec::new(),
        data: &(),
        version: document.version,
    };
    let text = text::text(text::lines(&conclusion, width, Detail::Brief));
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}
