//! Lines of a log: splitting, truncating, keeping those of interest.

use super::cursor::Cursor;

/// Maximum length of a log line in bytes: longer lines are counted, not read.
pub const LONGEST_LINE: usize = 64 * 1024;
/// Maximum bytes of a line's text in a [`NumberedLine`].
pub const SHOWN_BYTES: usize = 120;
/// Maximum number of kept lines of one kind; all are counted.
pub const KEPT_LINES: usize = 20;

/// A line of interest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedLine {
    /// Number of the line, from 1.
    pub number: usize,
    /// Its text, truncated at [`SHOWN_BYTES`], with U+FFFD for invalid UTF-8 and for control
    /// characters; only the length of a line longer than [`LONGEST_LINE`].
    pub text: String,
}

impl NumberedLine {
    pub(super) fn new(number: usize, line: &[u8]) -> Self {
        Self { number, text: shown(line) }
    }
}

/// Returns the truncated text of a line.
pub(super) fn shown(line: &[u8]) -> String {
    if line.len() > LONGEST_LINE {
        return format!("({} bytes without a line feed)", line.len());
    }
    // Not in the middle of a character.
    let mut end = line.len().min(SHOWN_BYTES);
    while end < line.len() && end > SHOWN_BYTES - 4 && line[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    text(&line[..end])
}

/// Returns the whole text of a line; U+FFFD replaces invalid UTF-8 and control characters, so the
/// contents of a log cannot control a terminal.
pub(super) fn text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}")
}

/// Adds a line to a list that keeps only the first ones.
pub(super) fn keep(list: &mut Vec<NumberedLine>, count: &mut usize, number: usize, line: &[u8]) {
    *count += 1;
    if list.len() < KEPT_LINES {
        list.push(NumberedLine::new(number, line));
    }
}

/// A line and its number, without its end (`\n`, `\r\n`) and leading blanks.
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Line<'a> {
    /// Returns the text after `prefix`, if the line begins with it.
    pub(super) fn after(&self, prefix: &[u8]) -> Option<Cursor<'a>> {
        self.bytes.strip_prefix(prefix).map(Cursor)
    }
    /// True for a line longer than any generator's.
    pub(super) fn is_too_long(&self) -> bool {
        self.bytes.len() > LONGEST_LINE
    }
}

/// Returns the lines of a text, including an unterminated last one.
pub(super) fn lines(bytes: &[u8]) -> impl Iterator<Item = Line<'_>> {
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', bytes).map(Some).chain([None]);
    let pieces = ends.filter_map(move |end| {
        let piece = &bytes[start..end.unwrap_or(bytes.len())];
        start += piece.len() + 1;
        (end.is_some() || !piece.is_empty()).then_some(piece)
    });
    (1..).zip(pieces).map(|(number, piece)| Line { number, bytes: piece.trim_ascii_end() })
}

/// Returns the number of line feeds, as counted by `wc -l`.
pub(super) fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<(usize, &[u8])> {
        lines(text.as_bytes()).map(|line| (line.number, line.bytes)).collect()
    }

    #[test]
    fn line_ends_may_be_lf_crlf_or_missing() {
        assert_eq!(split("a\r\n\nb \n"), [(1, &b"a"[..]), (2, b""), (3, b"b")]);
        assert_eq!(split("a\nb"), [(1, &b"a"[..]), (2, b"b")]);
        assert_eq!(split("\n"), [(1, &b""[..])]);
        assert_eq!(split(""), []);
    }

    #[test]
    fn shown_text_is_truncated_between_characters() {
        let line = "é".repeat(100);
        assert_eq!(shown(line.as_bytes()), "é".repeat(60));
        let odd = format!("x{line}");
        assert_eq!(shown(odd.as_bytes()), format!("x{}", "é".repeat(59)));
        assert_eq!(shown(&[0xff; 3]), "\u{fffd}".repeat(3));
        assert_eq!(shown(&[0x80; 200]).chars().count(), 116);
        assert_eq!(shown(b"\x1b[2Ja\tb"), "\u{fffd}[2Ja\tb");
        assert_eq!(shown(&vec![b'x'; 65_537]), "(65537 bytes without a line feed)");
    }
}
