//! Splits text into lines of fields, separated by blanks, tabs or commas.
//!
//! Commas follow RFC 4180: a field in double quotes may contain commas, line feeds and doubled
//! quotes. Empty lines and lines that begin with `#` are skipped.

use std::borrow::Cow;

/// Separator of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// A comma.
    Comma,
    /// A tab.
    Tab,
    /// Any number of blanks and tabs.
    Blanks,
}

/// A record and its first line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// Line number, from 1.
    pub(super) line: usize,
    /// Fields, without surrounding blanks.
    pub(super) fields: Vec<Cow<'a, str>>,
}

/// Records of `text`, and the separator, detected from the first record.
pub(super) fn records(text: &str) -> (Separator, Vec<Record<'_>>) {
    // Spreadsheets write a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let first = text.lines().find(|line| !is_skipped(line)).unwrap_or_default();
    let separator = match first {
        line if line.contains(',') => Separator::Comma,
        line if line.trim().contains('\t') => Separator::Tab,
        _ => Separator::Blanks,
    };
    let mut records = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while !rest.is_empty() {
        let length = match separator {
            Separator::Comma => record_length(rest),
            _ => rest.find('\n').unwrap_or(rest.len()),
        };
        let record = &rest[..length];
        if !is_skipped(record) {
            let fields = match separator {
                Separator::Comma => comma_fields(record),
                Separator::Tab => record.split('\t').map(|f| Cow::Borrowed(f.trim())).collect(),
                Separator::Blanks => record.split_whitespace().map(Cow::Borrowed).collect(),
            };
            records.push(Record { line, fields });
        }
        line += 1 + record.matches('\n').count();
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    (separator, records)
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Length in bytes up to the first line feed outside quotes.
fn record_length(text: &str) -> usize {
    // Quotes in a comment do not count.
    let skipped = text.lines().next().is_some_and(is_skipped);
    let mut quoted = false;
    text.bytes()
        .position(|byte| {
            quoted ^= byte == b'"' && !skipped;
            byte == b'\n' && !quoted
        })
        .unwrap_or(text.len())
}

fn comma_fields(record: &str) -> Vec<Cow<'_, str>> {
    let mut quoted = false;
    record
        .split(|c: char| {
            quoted ^= c == '"';
            c == ',' && !quoted
        })
        .map(|field| {
            let field = field.trim();
            match field.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')) {
                Some(inner) if inner.contains("\"\"") => Cow::Owned(inner.replace("\"\"", "\"")),
                Some(inner) => Cow::Borrowed(inner),
                None => Cow::Borrowed(field),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(usize, Vec<String>)> {
        let (_, records) = records(text);
        let owned = |fields: Vec<Cow<'_, str>>| fields.into_iter().map(Cow::into_owned).collect();
        records.into_iter().map(|record| (record.line, owned(record.fields))).collect()
    }

    #[test]
    fn records_of_a_list_have_one_field() {
        assert_eq!(of("# c\n\n 12 \r\n3"), [(3, vec!["12".into()]), (4, vec!["3".to_owned()])]);
        assert_eq!(of(""), []);
    }

    #[test]
    fn quoted_fields_contain_commas_quotes_and_line_feeds() {
        let text = "a,b\n\"4, \"\"inet6\"\"\",\"x\ny\"\n# \"\n1, 2\n";
        let expected =
            [(1, vec!["a", "b"]), (2, vec!["4, \"inet6\"", "x\ny"]), (5, vec!["1", "2"])];
        let expected = expected.map(|(line, f)| (line, f.into_iter().map(str::to_owned).collect()));
        assert_eq!(of(text), expected);
    }

    #[test]
    fn separator_is_detected_from_the_first_line() {
        for (text, separator) in [
            ("1 2", Separator::Blanks),
            ("# a,b\n1\t2", Separator::Tab),
            ("1,2\t3", Separator::Comma),
        ] {
            assert_eq!(records(text).0, separator, "{text}");
        }
        assert_eq!(of("a b\tc\n"), [(1, vec!["a b".to_owned(), "c".to_owned()])]);
    }
}
