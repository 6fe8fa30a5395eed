//! Splits text into lines of fields, separated by blanks, tabs or commas.
//!
//! Commas follow RFC 4180: a field in double quotes may contain commas, line feeds and doubled
//! quotes. A quote opens a field only as its first character, also after blanks; elsewhere it is a
//! character like any other. Empty lines and lines that begin with `#` are skipped.

#[cfg(test)]
mod oracle;

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

/// A quote that makes a record ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuoteError {
    /// Line of the opening quote, from 1.
    pub(super) line: usize,
    /// Description of the error.
    pub(super) what: &'static str,
}

/// Records of `text`, and the separator, detected from the first record.
pub(super) fn records(text: &str) -> Result<(Separator, Vec<Record<'_>>), QuoteError> {
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
        let mut length = rest.find('\n').unwrap_or(rest.len());
        let first = &rest[..length];
        if !is_skipped(first) {
            let fields = match separator {
                Separator::Comma if first.contains('"') => {
                    let (fields, whole) = quoted_fields(rest, line)?;
                    length = whole;
                    fields
                }
                Separator::Comma => first.split(',').map(|f| Cow::Borrowed(f.trim())).collect(),
                Separator::Tab => first.split('\t').map(|f| Cow::Borrowed(f.trim())).collect(),
                Separator::Blanks => first.split_whitespace().map(Cow::Borrowed).collect(),
            };
            records.push(Record { line, fields });
        }
        line += 1 + rest[..length].matches('\n').count();
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    Ok((separator, records))
}

fn is_skipped(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

/// Fields of the record that `text` begins with, in `line`, and the record's length in bytes.
fn quoted_fields(text: &str, line: usize) -> Result<(Vec<Cow<'_, str>>, usize), QuoteError> {
    let mut fields = Vec::new();
    let mut at = 0;
    loop {
        let rest = text[at..].trim_start_matches([' ', '\t']);
        at = text.len() - rest.len();
        let (field, length) = match rest.strip_prefix('"') {
            None => {
                let length = rest.find([',', '\n']).unwrap_or(rest.len());
                (Cow::Borrowed(rest[..length].trim()), length)
            }
            Some(inner) => {
                let fault = |what| {
                    let line = line + text[..at].matches('\n').count();
                    QuoteError { line, what }
                };
                let end = closing(inner).ok_or_else(|| fault("a quote that is never closed"))?;
                let behind = &inner[end + 1..];
                let blanks = behind.find([',', '\n']).unwrap_or(behind.len());
                if !behind[..blanks].trim().is_empty() {
                    return Err(fault("a quote that closes before the end of its field"));
                }
                let field = match &inner[..end] {
                    inner if inner.contains('"') => Cow::Owned(inner.replace("\"\"", "\"")),
                    inner => Cow::Borrowed(inner),
                };
                (field, 1 + end + 1 + blanks)
            }
        };
        fields.push(field);
        at += length;
        if !text[at..].starts_with(',') {
            return Ok((fields, at));
        }
        at += 1;
    }
}

/// Offset of the quote that closes a field: the first one that is not doubled.
fn closing(inner: &str) -> Option<usize> {
    let bytes = inner.as_bytes();
    let mut from = 0;
    loop {
        let at = from + inner[from..].find('"')?;
        if bytes.get(at + 1) != Some(&b'"') {
            return Some(at);
        }
        from = at + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<(usize, Vec<String>)> {
        let (_, records) = records(text).expect("records");
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
    fn quotes_within_fields_are_characters() {
        let text = "run,pps,note\n1,10,7\" disk\n2,20,a \"b\" c\n3,30,\"12\"\" rack\"\r\n\
                    4, 40, \"a, b\" \n";
        let (_, records) = records(text).expect("records");
        let notes: Vec<&str> = records.iter().map(|record| &*record.fields[2]).collect();
        assert_eq!(notes, ["note", "7\" disk", "a \"b\" c", "12\" rack", "a, b"]);
    }

    #[test]
    fn unbalanced_quotes_are_refused_with_their_line() {
        let error = |text: &str| records(text).expect_err("a fault");
        let open = error("a,b\n\n1,\"x\n2,y\n3,z\n");
        assert_eq!((open.line, open.what), (3, "a quote that is never closed"));
        let open = error("a,b\n\"1\n2\",\"x\n");
        assert_eq!((open.line, open.what), (3, "a quote that is never closed"));
        let early = error("a,b\n1,\"7\" disk\n");
        assert_eq!(
            (early.line, early.what),
            (2, "a quote that closes before the end of its field")
        );
    }

    #[test]
    fn separator_is_detected_from_the_first_line() {
        for (text, separator) in [
            ("1 2", Separator::Blanks),
            ("# a,b\n1\t2", Separator::Tab),
            ("1,2\t3", Separator::Comma),
        ] {
            assert_eq!(records(text).expect("records").0, separator, "{text}");
        }
        assert_eq!(of("a b\tc\n"), [(1, vec!["a b".to_owned(), "c".to_owned()])]);
    }
}
