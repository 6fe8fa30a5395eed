//! Reader of the values of one file, compatible with ministat.
//!
//! Lines are those of fgets(3) with FreeBSD's buffer of 1024 bytes: a longer line is split into
//! pieces that count as separate lines. A file of any length is read in blocks, so only its values
//! stay in memory; from the second block on two threads parse the lines.

use super::number::{is_space, number, plain_line};
use super::{Generation, MinistatError};
use std::io::{BufRead, Read};
use std::sync::mpsc;
use std::thread;

/// Size of a block in bytes.
const BLOCK: usize = 1 << 18;
/// Size of a line's pieces in bytes: a buffer of 1024 without the terminating NUL.
const PIECE: usize = 1023;
/// Threads that parse lines.
const WORKERS: usize = 2;
/// Maximum number of blocks per worker: the current and the next one.
const IN_HAND: usize = 2;

/// Options for parsing a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Column of the value, from 1 (`-C`).
    pub column: usize,
    /// Characters that separate columns (`-d`); consecutive ones count as one.
    pub delimiters: Vec<u8>,
    /// Rules to follow.
    pub generation: Generation,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let generation = Generation::default();
        ReadOptions { column: 1, delimiters: b" \t".to_vec(), generation }
    }
}

/// The options, prepared for millions of lines.
struct Columns {
    column: usize,
    /// For each byte, true if it is a delimiter.
    delimiters: [bool; 256],
    /// True if a line with only one plain decimal has that value.
    plain_lines: bool,
    generation: Generation,
}

impl Columns {
    fn of(options: &ReadOptions) -> Columns {
        let mut delimiters = [false; 256];
        for &byte in &options.delimiters {
            delimiters[usize::from(byte)] = true;
        }
        let of_numbers = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        Columns {
            column: options.column,
            delimiters,
            plain_lines: options.column == 1 && !options.delimiters.iter().any(of_numbers),
            generation: options.generation,
        }
    }

    /// Returns the selected column of a line, if the line has it.
    fn token<'a>(&self, line: &'a [u8]) -> Option<&'a [u8]> {
        let is_delimiter = |byte: &u8| self.delimiters[usize::from(*byte)];
        let mut rest = line;
        for number in 1..=self.column {
            let start = rest.iter().position(|byte| !is_delimiter(byte))?;
            rest = &rest[start..];
            if rest[0] == b'#' {
                return None;
            }
            let (token, behind) =
                rest.split_at(rest.iter().position(is_delimiter).unwrap_or(rest.len()));
            if number == self.column {
                return Some(token);
            }
            rest = behind;
        }
        None
    }

    /// Returns the value in a line, `None` if the line is skipped; the error is the token that
    /// isn't a number.
    fn value(&self, line: &[u8]) -> Result<Option<f64>, Vec<u8>> {
        // C strings end at a NUL.
        let end = if line.contains(&0) { line.iter().position(|&byte| byte == 0) } else { None };
        let line = &line[..end.unwrap_or(line.len())];
        let line = match self.generation {
            // A carriage return or vertical tab remains, and is not part of a number.
            Generation::Fbsd10 => line.strip_suffix(b"\n").unwrap_or(line),
            _ => trim_end(line),
        };
        let Some(token) = self.token(line) else {
            return Ok(None);
        };
        let changed = decimal_comma(token, self.generation);
        let token = changed.as_deref().unwrap_or(token);
        number(token).map(Some).ok_or_else(|| token.to_vec())
    }
}

/// Returns the values of a file's `text`, in their order. Lines with fewer columns and lines with a
/// comment (`#` at the start of a column) up to the selected one are skipped.
///
/// # Errors
/// [`MinistatError::InvalidData`] with line and token that isn't a number.
pub fn read_values(text: &[u8], options: &ReadOptions) -> Result<Vec<f64>, MinistatError> {
    read(text, options).map(|gathered| gathered.values)
}

/// Values read from a file so far.
#[derive(Debug, Default)]
pub(super) struct FileValues {
    /// The values in file order.
    pub(super) values: Vec<f64>,
    /// Sum of the values, added up in that order.
    pub(super) sum: f64,
    /// Sum of their squares, in the same order.
    pub(super) squares: f64,
    lines: usize,
}

impl FileValues {
    /// Adds values; the sums depend on the order.
    pub(super) fn add(&mut self, values: &[f64]) {
        for &value in values {
            self.sum += value;
            self.squares += value * value;
        }
        self.values.extend_from_slice(values);
    }

    fn add_block(&mut self, block: &Block) -> Result<(), MinistatError> {
        if let Some((line, token)) = &block.fault {
            let line = self.lines + line;
            return Err(MinistatError::InvalidData { line, token: token.clone() });
        }
        self.add(&block.values);
        self.lines += block.lines;
        Ok(())
    }
}

/// Reads to the end. An unreadable part ends the file, as for fgets(3).
pub(super) fn read(input: impl Read, options: &ReadOptions) -> Result<FileValues, MinistatError> {
    let columns = Columns::of(options);
    let mut gathered = FileValues::default();
    let mut source = Source { input, rest: Vec::new(), ended: false };
    let mut block = Block::default();
    if source.fill(&mut block) {
        block.take_apart(&columns);
        gathered.add_block(&block)?;
    }
    if !source.ended {
        read_on(&mut source, &columns, &mut gathered)?;
    }
    Ok(gathered)
}

/// Reads the rest: this thread reads and adds up, the workers get the blocks in turn and return
/// them in the same order.
fn read_on(
    source: &mut Source<impl Read>,
    columns: &Columns,
    gathered: &mut FileValues,
) -> Result<(), MinistatError> {
    thread::scope(|scope| {
        let workers = [(); WORKERS].map(|()| {
            let (to_worker, full) = mpsc::channel::<Block>();
            let (to_us, done) = mpsc::channel();
            scope.spawn(move || {
                for mut block in full {
                    block.take_apart(columns);
                    if to_us.send(block).is_err() {
                        break;
                    }
                }
            });
            (to_worker, done)
        });
        let (mut handed, mut returned) = (0, 0);
        let mut spare = Block::default();
        while source.fill(&mut spare) {
            // A terminated worker becomes visible when it returns nothing; the scope then
            // propagates its panic.
            let _ = workers[handed % WORKERS].0.send(std::mem::take(&mut spare));
            handed += 1;
            if handed - returned == WORKERS * IN_HAND {
                let Ok(block) = workers[returned % WORKERS].1.recv() else { return Ok(()) };
                gathered.add_block(&block)?;
                returned += 1;
                spare = block;
            }
        }
        while returned < handed {
            let Ok(block) = workers[returned % WORKERS].1.recv() else { return Ok(()) };
            gathered.add_block(&block)?;
            returned += 1;
        }
        Ok(())
    })
}

/// A file as blocks of complete lines.
struct Source<R> {
    input: R,
    /// Start of a line whose end has not been read yet.
    rest: Vec<u8>,
    ended: bool,
}

impl<R: Read> Source<R> {
    /// Replaces the block's text by the next one; false if there is none.
    fn fill(&mut self, block: &mut Block) -> bool {
        let text = &mut block.text;
        text.clear();
        if self.ended {
            return false;
        }
        text.reserve(BLOCK);
        text.append(&mut self.rest);
        let missing = (BLOCK - text.len()) as u64;
        let read = self.input.by_ref().take(missing).read_to_end(text);
        self.ended = read.is_err() || text.len() < BLOCK;
        if !self.ended {
            let line_end = text.iter().rposition(|&byte| byte == b'\n').map(|last| last + 1);
            // A line longer than a block is cut at the end of a piece.
            let end = line_end.unwrap_or(text.len() - text.len() % PIECE);
            self.rest.extend_from_slice(&text[end..]);
            text.truncate(end);
        }
        !text.is_empty()
    }
}

/// Some lines and their values.
#[derive(Default)]
struct Block {
    text: Vec<u8>,
    values: Vec<f64>,
    lines: usize,
    /// Line within the block, from 1, and the token that isn't a number; the block is parsed up to
    /// there.
    fault: Option<(usize, Vec<u8>)>,
}

impl Block {
    fn take_apart(&mut self, columns: &Columns) {
        self.values.clear();
        self.lines = 0;
        let mut rest = &self.text[..];
        while !rest.is_empty() {
            self.lines += 1;
            if columns.plain_lines
                && let Some((value, length)) = plain_line(rest)
            {
                self.values.push(value);
                rest = &rest[length..];
                continue;
            }
            let mut window = &rest[..rest.len().min(PIECE)];
            // On a slice this is a fast search, which cannot fail.
            let length = window.skip_until(b'\n').unwrap_or(0).max(1);
            let (piece, behind) = rest.split_at(length);
            rest = behind;
            match columns.value(piece) {
                Ok(value) => self.values.extend(value),
                Err(token) => {
                    self.fault = Some((self.lines, token));
                    return;
                }
            }
        }
    }
}

/// Returns the token with its first comma replaced by a point, as in FreeBSD 15.
fn decimal_comma(token: &[u8], generation: Generation) -> Option<Vec<u8>> {
    if generation < Generation::Fbsd15 {
        return None;
    }
    let comma = token.iter().position(|&byte| byte == b',')?;
    let mut changed = token.to_vec();
    changed[comma] = b'.';
    Some(changed)
}

fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, options: &ReadOptions) -> Result<Vec<f64>, MinistatError> {
        read_values(text.as_bytes(), options)
    }

    fn fault(line: usize, token: &str) -> MinistatError {
        MinistatError::InvalidData { line, token: token.into() }
    }

    #[test]
    fn lines_are_parsed_into_columns() {
        let first = ReadOptions::default();
        assert_eq!(values("1\n 2 x\n\n#3\n4 #\r\n5", &first), Ok(vec![1.0, 2.0, 4.0, 5.0]));
        let second = ReadOptions { column: 2, ..first.clone() };
        assert_eq!(values("1 10\n2\n3 #30\n4\t \t40 x\n# 5\n", &second), Ok(vec![10.0, 40.0]));
        let commas = ReadOptions { column: 2, delimiters: b",".to_vec(), ..first.clone() };
        assert_eq!(values(",,1,, 10\n", &commas), Ok(vec![10.0]));
        let odd = ReadOptions { delimiters: b".".to_vec(), ..first.clone() };
        assert_eq!(values("1.5\n", &odd), Ok(vec![1.0]));
        assert_eq!(values("1\0x\n\0\n2\n", &first), Ok(vec![1.0, 2.0]));
    }

    #[test]
    fn invalid_data_reports_line_and_token() {
        assert_eq!(values("1\n1,5\n", &ReadOptions::default()), Err(fault(2, "1,5")));
        let newest = ReadOptions { generation: Generation::Fbsd15, ..ReadOptions::default() };
        assert_eq!(values("1\n1,5\n", &newest), Ok(vec![1.0, 1.5]));
        assert_eq!(values("1\n1,5,2\n", &newest), Err(fault(2, "1.5,2")));
    }

    #[test]
    fn other_white_space_ends_lines_only_after_freebsd_10() {
        let by = |generation| ReadOptions { generation, ..ReadOptions::default() };
        for (text, token) in [("1\n2\r\n", "2\r"), ("1\n2\x0b\n", "2\x0b"), ("1\n\r\n", "\r")] {
            assert_eq!(values(text, &by(Generation::Fbsd10)), Err(fault(2, token)));
            let read = if text.contains('2') { vec![1.0, 2.0] } else { vec![1.0] };
            for generation in Generation::ALL.into_iter().skip(1) {
                assert_eq!(values(text, &by(generation)).as_ref(), Ok(&read), "{generation:?}");
            }
        }
        assert_eq!(values("1 \n\t2\t\n", &by(Generation::Fbsd10)), Ok(vec![1.0, 2.0]));
    }

    #[test]
    fn long_lines_are_split_into_pieces() {
        let first = ReadOptions::default();
        // 1022 blanks and a digit fill the buffer: the rest is another line.
        let split = format!("{}12\n3\n", " ".repeat(PIECE - 1));
        assert_eq!(values(&split, &first), Ok(vec![1.0, 2.0, 3.0]));
        // A remaining line end is a separate piece.
        let full = format!("{}1\nx\n", " ".repeat(PIECE - 1));
        assert_eq!(values(&full, &first), Err(fault(3, "x")));
        let comment = format!("#{}\nx", "y".repeat(PIECE - 2));
        assert_eq!(values(&comment, &first), Err(fault(2, "x")));
    }

    #[test]
    fn block_boundaries_do_not_change_the_values() {
        let lines = 3 * WORKERS * IN_HAND * BLOCK / 8;
        let mut text: Vec<u8> = (0..lines).flat_map(|n| format!("{n:7}\n").into_bytes()).collect();
        let gathered = read(&text[..], &ReadOptions::default()).unwrap();
        assert_eq!(gathered.values.len(), lines);
        assert!(gathered.values.iter().zip(0..).all(|(&value, n)| value == f64::from(n)));
        let last = lines as f64 - 1.0;
        assert_eq!(gathered.sum, last * (last + 1.0) / 2.0);
        // Two faults in different blocks: the first one is reported, with its line.
        for line in [lines / 2, lines - 5] {
            text[8 * line + 6] = b'x';
        }
        let token = format!("{:7}", lines / 2).trim().to_owned();
        let token = format!("{}x", &token[..token.len() - 1]);
        let options = ReadOptions::default();
        assert_eq!(read(&text[..], &options).unwrap_err(), fault(lines / 2 + 1, &token));
    }

    #[test]
    fn a_line_longer_than_a_block_needs_no_more_memory_than_others() {
        let mut text = vec![b' '; 2 * BLOCK];
        text.extend(b"\nx\n");
        let pieces = 2 * BLOCK / PIECE + 1;
        assert_eq!(read_values(&text, &ReadOptions::default()), Err(fault(pieces + 1, "x")));
    }

    #[test]
    fn unreadable_input_ends_the_file() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
                Err(std::io::Error::other("broken"))
            }
        }
        let input = b"1\n2\n".chain(Broken);
        assert_eq!(read(input, &ReadOptions::default()).unwrap().values, [1.0, 2.0]);
    }
}
