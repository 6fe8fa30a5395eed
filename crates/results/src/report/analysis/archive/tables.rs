//! The published tables of medians: which rows the logs give again.

use crate::archive::published::tables::{Table, check_rows};
use crate::store::{DocumentKind, Import};
use serde::Serialize;

/// Rows that a sentence names.
const NAMED: usize = 3;

/// A published table.
#[derive(Clone, Debug, Serialize)]
pub struct PublishedTable {
    /// Its file.
    pub name: String,
    /// Rows.
    pub rows: usize,
    /// Rows that come out again.
    pub equal: usize,
    /// What came of it, in one sentence.
    pub sentence: String,
}

/// All tables with rows.
pub(super) fn tables(import: &Import, values: &[Vec<f64>]) -> Vec<PublishedTable> {
    let groups = &import.about.groups;
    let variants: Vec<(&str, &[f64])> =
        groups.iter().zip(values).map(|(g, v)| (g.name.as_str(), v.as_slice())).collect();
    let tables = import.documents.iter().filter(|d| d.kind == DocumentKind::Table);
    tables
        .filter_map(|document| {
            let table = Table::parse(&String::from_utf8_lossy(&document.content));
            if table.rows.is_empty() {
                return None;
            }
            let found = check_rows(&table.rows, &variants);
            let equal = found.iter().flatten().count();
            let others: Vec<String> = table
                .rows
                .iter()
                .zip(&found)
                .filter(|(_, source)| source.is_none())
                .take(NAMED)
                .map(|(row, _)| format!("line {} ({})", row.line, row.label.replace('\n', " ")))
                .collect();
            let rows = table.rows.len();
            let sentence = match others.is_empty() {
                true => format!("all {rows} rows come out again"),
                false => {
                    format!("{equal} of {rows} rows come out again; not {}", others.join(", "))
                }
            };
            Some(PublishedTable { name: document.path.clone(), rows, equal, sentence })
        })
        .collect()
}
