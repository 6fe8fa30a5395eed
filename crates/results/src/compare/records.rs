//! Text as lines of fields: blanks, tabs or commas between them.
//!
//! With commas the rules of RFC 4180 hold: a field in double quotes may hold
//! commas, line feeds and doubled quotes. Empty lines and lines that begin with
//! `#` are skipped.

use std::borrow::Cow;

/// What stands between two fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Separator {
    /// A comma.
    Comma,
    /// A tab.
    Tab,
    /// Any number of blanks and tabs.
    Blanks,
}

/// One record and the line on which it begins, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record<'a> {
    /// The line.
    pub(super) line: usize,
    /// Its fields, blanks around them removed.
    pub(super) fields: Vec<Cow<'a, str>>,
}

/// The records of `text`, and what separates their fields, as its first one says.
pub(super) fn records(text: &str) -> (Separator, Vec<Record<'_>>) {
    // A byte order mark, as spreadsheets write it.
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

/// Bytes up to the first line feed outside quotes.
fn record_length(text: &str) -> usize {
    // The quotes of a comment are no quotes.
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
    fn lists_have_one_field() {
        assert_eq!(of("# c\n\n 12 \r\n3"), [(3, vec!["12".into()]), (4, vec!["3".to_owned()])]);
        assert_eq!(of(""), []);
    }

    #[test]
    fn quoted_fields_hold_anything() {
        let text = "a,b\n\"4, \"\"inet6\"\"\",\"x\ny\"\n# \"\n1, 2\n";
        let expected =
            [(1, vec!["a", "b"]), (2, vec!["4, \"inet6\"", "x\ny"]), (5, vec!["1", "2"])];
        let expected = expected.map(|(line, f)| (line, f.into_iter().map(str::to_owned).collect()));
        assert_eq!(of(text), expected);
    }

    #[test]
    fn the_first_line_says_what_separates() {
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
