//! Lines of a log: splitting, cutting, keeping those that need a look.

use super::cursor::Cursor;

/// Lines longer than this (bytes) are no log lines: they are counted, not read.
pub const LONGEST_LINE: usize = 64 * 1024;
/// Bytes of a line's text that a [`NumberedLine`] keeps.
pub const SHOWN_BYTES: usize = 120;
/// How many lines of one kind are kept; all are counted.
pub const KEPT_LINES: usize = 20;

/// A line that needs a look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NumberedLine {
    /// Number of the line, from 1.
    pub number: usize,
    /// Its text, cut at [`SHOWN_BYTES`], with U+FFFD for what is no UTF-8 and
    /// for control characters; of a line longer than [`LONGEST_LINE`] only how
    /// long it is.
    pub text: String,
}

impl NumberedLine {
    pub(super) fn new(number: usize, line: &[u8]) -> Self {
        Self { number, text: shown(line) }
    }
}

/// The text of a line as it is shown: cut.
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

/// The whole text of a line; U+FFFD stands for what is no UTF-8, and for control
/// characters, so that nothing of a log steers a terminal.
pub(super) fn text(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    text.replace(|c: char| c.is_control() && c != '\t', "\u{fffd}")
}

/// Adds a line to a list of which only the first are kept.
pub(super) fn keep(list: &mut Vec<NumberedLine>, count: &mut usize, number: usize, line: &[u8]) {
    *count += 1;
    if list.len() < KEPT_LINES {
        list.push(NumberedLine::new(number, line));
    }
}

/// One line and its number, without its end (`\n`, `\r\n`) and the blanks before.
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) bytes: &'a [u8],
}

impl<'a> Line<'a> {
    /// What follows `prefix`, if the line begins with it.
    pub(super) fn after(&self, prefix: &[u8]) -> Option<Cursor<'a>> {
        self.bytes.strip_prefix(prefix).map(Cursor)
    }
    /// True for a line that is longer than any generator's.
    pub(super) fn is_too_long(&self) -> bool {
        self.bytes.len() > LONGEST_LINE
    }
}

/// The lines of a text; an unterminated last one included.
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

/// What `wc -l` says: line feeds.
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
    fn lines_have_either_end_or_none() {
        assert_eq!(split("a\r\n\nb \n"), [(1, &b"a"[..]), (2, b""), (3, b"b")]);
        assert_eq!(split("a\nb"), [(1, &b"a"[..]), (2, b"b")]);
        assert_eq!(split("\n"), [(1, &b""[..])]);
        assert_eq!(split(""), []);
    }

    #[test]
    fn shown_text_is_cut_between_characters() {
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
