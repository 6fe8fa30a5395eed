//! Form for test dashboards: JUnit XML, with the elements that Surefire writes and Jenkins reads
//! (the schema `junit-10.xsd` of Jenkins' xunit plugin).
//!
//! Every comparison is a test case, with the result of its [`Judgement`]. Times are omitted: the
//! duration of a measurement is not a property of the device.

use super::html::escaped;
use super::ktap::conclusion;
use crate::judgement::Judgement;
use crate::table::Row;
use crate::{Document, Table};

/// Line width of the conclusion.
const WIDTH: usize = 96;
/// Class of all test cases; readers group by it.
const CLASS: &str = "fwdlab";

/// Renders the document.
pub fn render(document: &Document<'_>) -> String {
    let tests = document.comparisons();
    let count = |is_counted: fn(&Judgement) -> bool| {
        tests.iter().filter(|(_, _, judgement)| is_counted(judgement)).count()
    };
    let (all, failed) = (tests.len(), count(|judgement| *judgement == Judgement::Fail));
    let skipped = count(|judgement| matches!(judgement, Judgement::Skip(_)));
    let name = xml(&document.title);
    let cases: String = tests.iter().map(|(table, row, j)| case(table, row, j)).collect();
    let conclusion = match xml(&conclusion(document, WIDTH).join("\n")) {
        empty if empty.is_empty() => empty,
        text => format!("<system-out>{text}</system-out>\n"),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites tests=\"{all}\" failures=\"{failed}\" errors=\"0\">\n\
         <testsuite name=\"{name}\" tests=\"{all}\" failures=\"{failed}\" errors=\"0\" \
         skipped=\"{skipped}\">\n\
         {cases}{conclusion}</testsuite>\n</testsuites>\n"
    )
}

fn case(table: &Table, row: &Row, judgement: &Judgement) -> String {
    let statistics = row.statistics(table).collect::<Vec<String>>().join("\n");
    let statistics = xml(&statistics);
    let (kind, words) = row.verdict().unwrap_or(("unanswerable", "no answer"));
    let (kind, words) = (xml(kind), xml(words));
    let result = match judgement {
        Judgement::Pass => String::new(),
        Judgement::Fail => {
            format!("<failure type=\"{kind}\" message=\"{words}\">{statistics}</failure>\n")
        }
        Judgement::Skip(why) => {
            format!("<skipped type=\"{kind}\" message=\"{}\"/>\n", xml(why))
        }
    };
    // A failure contains the statistics itself.
    let output = match judgement {
        Judgement::Fail => String::new(),
        _ => format!("<system-out>{statistics}</system-out>\n"),
    };
    let name = xml(&row.called());
    format!("<testcase classname=\"{CLASS}\" name=\"{name}\">\n{result}{output}</testcase>\n")
}

/// Escapes text for XML 1.0, which forbids control characters other than the line feed.
fn xml(text: &str) -> String {
    let is_forbidden =
        |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{fffe}'..='\u{ffff}');
    escaped(&text.replace(is_forbidden, " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xml_text_contains_no_forbidden_characters() {
        assert_eq!(xml("a<b>&\"c\"\u{1b}[1m\u{ffff}\nd"), "a&lt;b&gt;&amp;&quot;c&quot; [1m \nd");
    }
}
