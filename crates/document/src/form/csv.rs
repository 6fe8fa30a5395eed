//! Form for spreadsheets (RFC 4180, lines end in LF): the named tables with the unrounded numbers
//! of [`super::json`], separated by an empty line.

use super::json::rounded;
use crate::{Document, Table};
use serde_json::Value;

/// For each name, renders a line of keys and a line per row.
pub fn render(document: &Document<'_>) -> String {
    let tables = document.tables().into_iter().map(|(_, tables)| lines(&tables));
    tables.collect::<Vec<String>>().join("\n")
}

/// Lines of the tables of one name, which have the same columns.
fn lines(tables: &[&Table]) -> String {
    let mut text = String::new();
    for table in tables {
        let (keys, rows) = table.for_programs();
        if text.is_empty() {
            text += &line(keys);
        }
        rows.into_iter().for_each(|row| text += &line(row.into_iter().map(field)));
    }
    text
}

/// Digits as in JSON; a p-value of 1e-9 is not rounded to 0.
fn field(value: Value) -> String {
    match rounded(value) {
        Value::Null => String::new(),
        Value::String(text) => text,
        Value::Number(number) if number.is_f64() => {
            number.as_f64().map_or(String::new(), |number| number.to_string())
        }
        other => other.to_string(),
    }
}

/// Formats a line of CSV, with quotes where required.
pub fn line(fields: impl IntoIterator<Item = String>) -> String {
    let quoted: Vec<String> = fields
        .into_iter()
        .map(|field| {
            if field.contains([',', '"', '\n', '\r']) {
                format!("\"{}\"", field.replace('"', "\"\""))
            } else {
                field
            }
        })
        .collect();
    format!("{}\n", quoted.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_needed() {
        let line = line(["a".into(), "4, inet6".into(), "5\"".into()]);
        assert_eq!(line, "a,\"4, inet6\",\"5\"\"\"\n");
    }
}
