//! Reading the values of one file as ministat does.
//!
//! Lines as fgets(3) hands them over with FreeBSD's buffer of 1024 bytes: what
//! is longer comes in pieces that count as lines of their own. A file of any
//! length is read in blocks, so that no more of it is in memory than its
//! values; from the second block on two threads take the lines apart.

use super::number::{is_space, number, plain_line};
use super::{Generation, MinistatError};
use std::io::{BufRead, Read};
use std::sync::mpsc;
use std::thread;

/// Bytes of a block.
const BLOCK: usize = 1 << 18;
/// Bytes of a line's pieces: a buffer of 1024 without the NUL that ends it.
const PIECE: usize = 1023;
/// Threads that take lines apart.
const WORKERS: usize = 2;
/// Blocks that a worker may have in hand: the one it is at and the next.
const IN_HAND: usize = 2;

/// How a line is taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Column of the value, from 1 (`-C`).
    pub column: usize,
    /// Characters that separate columns (`-d`); runs of them count as one.
    pub delimiters: Vec<u8>,
    /// Whose rules hold.
    pub generation: Generation,
}

impl Default for ReadOptions {
    fn default() -> Self {
        let generation = Generation::default();
        ReadOptions { column: 1, delimiters: b" \t".to_vec(), generation }
    }
}

/// The same, ready for millions of lines.
struct Columns {
    column: usize,
    /// Whether each byte is a delimiter.
    delimiters: [bool; 256],
    /// A line that is one plain decimal has that decimal's value.
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

    /// The wanted column of a line, if the line has it.
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

    /// The value in a line, none if the line is skipped; the error is the token
    /// that isn't a number.
    fn value(&self, line: &[u8]) -> Result<Option<f64>, Vec<u8>> {
        // C strings end at a NUL.
        let end = if line.contains(&0) { line.iter().position(|&byte| byte == 0) } else { None };
        let line = &line[..end.unwrap_or(line.len())];
        let line = match self.generation {
            // A carriage return or vertical tab stays, and is no part of a number.
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

/// The values of a file's `text`, in their order. Lines with fewer columns and
/// lines with a comment (`#` at the start of a column) up to the wanted one
/// are skipped.
///
/// # Errors
/// [`MinistatError::InvalidData`] with line and token that isn't a number.
pub fn read_values(text: &[u8], options: &ReadOptions) -> Result<Vec<f64>, MinistatError> {
    read(text, options).map(|gathered| gathered.values)
}

/// What has been read of a file.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The values in the order of the file.
    pub(super) values: Vec<f64>,
    /// Their sum, added up in that order.
    pub(super) sum: f64,
    /// The sum of their squares, likewise.
    pub(super) squares: f64,
    lines: usize,
}

impl Gathered {
    /// Adds values while they are at hand: the sums depend on the order.
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

/// Reads to the end. What can't be read ends the file there, as it does for
/// fgets(3).
pub(super) fn read(input: impl Read, options: &ReadOptions) -> Result<Gathered, MinistatError> {
    let columns = Columns::of(options);
    let mut gathered = Gathered::default();
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

/// Reads what remains: this thread reads and adds up, the workers get the
/// blocks in turn and give them back in the same turn.
fn read_on(
    source: &mut Source<impl Read>,
    columns: &Columns,
    gathered: &mut Gathered,
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
            // That a worker is gone shows when nothing comes back from it; the
            // scope then passes its panic on.
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

/// A file as blocks of whole lines.
struct Source<R> {
    input: R,
    /// The beginning of a line whose end isn't read yet.
    rest: Vec<u8>,
    ended: bool,
}

impl<R: Read> Source<R> {
    /// Replaces the block's text by the next one; false when there is none.
    fn fill(&mut self, block: &mut Block) -> bool {
        let text = &mut block.text;
        text.clear();
        if self.ended {
            return false;
        }
        text.reserve(BLOCK);
        text.append(&mut self.rest);
        let wanted = (BLOCK - text.len()) as u64;
        let read = self.input.by_ref().take(wanted).read_to_end(text);
        self.ended = read.is_err() || text.len() < BLOCK;
        if !self.ended {
            let line_end = text.iter().rposition(|&byte| byte == b'\n').map(|last| last + 1);
            // A line longer than a block is cut where its pieces end.
            let end = line_end.unwrap_or(text.len() - text.len() % PIECE);
            self.rest.extend_from_slice(&text[end..]);
            text.truncate(end);
        }
        !text.is_empty()
    }
}

/// Some lines and what is in them.
#[derive(Default)]
struct Block {
    text: Vec<u8>,
    values: Vec<f64>,
    lines: usize,
    /// Line within the block, from 1, and the token that isn't a number; the
    /// block is taken apart up to there.
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
            // For a slice this is a fast search, which can't fail.
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

/// The token with its first comma turned into a point, which FreeBSD 15 does.
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
    fn lines_are_taken_apart() {
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
    fn faults_name_line_and_token() {
        assert_eq!(values("1\n1,5\n", &ReadOptions::default()), Err(fault(2, "1,5")));
        let newest = ReadOptions { generation: Generation::Fbsd15, ..ReadOptions::default() };
        assert_eq!(values("1\n1,5\n", &newest), Ok(vec![1.0, 1.5]));
        assert_eq!(values("1\n1,5,2\n", &newest), Err(fault(2, "1.5,2")));
    }

    #[test]
    fn line_ends_with_other_white_space_only_after_freebsd_10() {
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
    fn long_lines_are_lines_in_pieces() {
        let first = ReadOptions::default();
        // 1022 blanks and a digit fill the buffer: the rest is another line.
        let split = format!("{}12\n3\n", " ".repeat(PIECE - 1));
        assert_eq!(values(&split, &first), Ok(vec![1.0, 2.0, 3.0]));
        // The line end itself is a piece when it alone is left.
        let full = format!("{}1\nx\n", " ".repeat(PIECE - 1));
        assert_eq!(values(&full, &first), Err(fault(3, "x")));
        let comment = format!("#{}\nx", "y".repeat(PIECE - 2));
        assert_eq!(values(&comment, &first), Err(fault(2, "x")));
    }

    #[test]
    fn blocks_make_no_difference() {
        let lines = 3 * WORKERS * IN_HAND * BLOCK / 8;
        let mut text: Vec<u8> = (0..lines).flat_map(|n| format!("{n:7}\n").into_bytes()).collect();
        let gathered = read(&text[..], &ReadOptions::default()).unwrap();
        assert_eq!(gathered.values.len(), lines);
        assert!(gathered.values.iter().zip(0..).all(|(&value, n)| value == f64::from(n)));
        let last = lines as f64 - 1.0;
        assert_eq!(gathered.sum, last * (last + 1.0) / 2.0);
        // Two faults in different blocks: the first one counts, with its line.
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
    fn what_cannot_be_read_ends_the_file() {
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
