//! The files of a history.

use super::markdown::markdown;
use crate::history::draw;
use crate::history::results::History;
use crate::report::{ReportFile, safe_name};
use std::collections::BTreeSet;

/// `history.md` and a figure for each series: `history.svg` when there is one,
/// else `history-<title>.svg`.
///
/// # Errors
/// Never for a history that was made by this crate, unless a template is broken.
pub fn files(history: &History) -> Result<Vec<ReportFile>, minijinja::Error> {
    let names = figures(history);
    let page = markdown(history, &names)?;
    let mut files = vec![ReportFile { name: "history.md".into(), bytes: page.into_bytes() }];
    files.extend(history.series.iter().zip(names).map(|(series, name)| {
        let svg = draw::svg(series, history.threshold);
        ReportFile { name, bytes: svg.into_bytes() }
    }));
    Ok(files)
}

/// Names of the figures, all different, in the order of the series.
fn figures(history: &History) -> Vec<String> {
    if history.series.len() == 1 {
        return vec!["history.svg".to_owned()];
    }
    let mut used = BTreeSet::new();
    history
        .series
        .iter()
        .map(|series| {
            let stem = safe_name(&series.title);
            let numbered = |n: usize| match n {
                1 => format!("history-{stem}.svg"),
                n => format!("history-{stem}-{n}.svg"),
            };
            let names = (1..).map(numbered);
            let mut unused = names.filter(|name| used.insert(name.to_ascii_lowercase()));
            unused.next().unwrap_or_default()
        })
        .collect()
}
