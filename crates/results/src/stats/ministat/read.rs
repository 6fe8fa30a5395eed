//! Reading the values of one file as ministat does.
//!
//! A number is what C's strtod takes in the C locale, all of it: decimal,
//! hexadecimal, infinity, NaN. Left out: the original splits lines longer than
//! its buffer into pieces that count as lines of their own.

use super::{Generation, MinistatError};

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

/// The values of a file's `text`, in their order. Lines with fewer columns and
/// lines with a comment (`#` at the start of a column) up to the wanted one
/// are skipped.
///
/// # Errors
/// [`MinistatError::InvalidData`] with line and token that isn't a number.
pub fn read_values(text: &[u8], options: &ReadOptions) -> Result<Vec<f64>, MinistatError> {
    let mut values = Vec::new();
    for (index, line) in text.split(|&byte| byte == b'\n').enumerate() {
        // C strings end at a NUL.
        let line = line.split(|&byte| byte == 0).next().unwrap_or_default();
        let Some(token) = token(trim_end(line), options) else { continue };
        let value = match decimal_comma(token, options.generation) {
            Some(changed) => number(&changed),
            None => number(token),
        };
        values.push(value.ok_or_else(|| MinistatError::InvalidData {
            line: index + 1,
            token: String::from_utf8_lossy(token).into_owned(),
        })?);
    }
    Ok(values)
}

/// The wanted column of a line, if the line has it.
fn token<'a>(line: &'a [u8], options: &ReadOptions) -> Option<&'a [u8]> {
    let mut last = None;
    let mut tokens =
        line.split(|byte| options.delimiters.contains(byte)).filter(|token| !token.is_empty());
    for _ in 0..options.column {
        last = tokens.next();
        if last?.starts_with(b"#") {
            return None;
        }
    }
    last
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

/// The value of a token that strtod(3) takes as a whole.
fn number(token: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(trim_start(token)).ok()?;
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if unsigned.starts_with(['+', '-']) {
        return None;
    }
    let lower = unsigned.to_ascii_lowercase();
    let magnitude = if let Some(digits) = lower.strip_prefix("0x") {
        hexadecimal(digits)?
    } else if let Some(payload) = lower.strip_prefix("nan(") {
        let inner = payload.strip_suffix(')')?;
        inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(f64::NAN)?
    } else {
        // Rust takes what strtod takes, infinity and NaN included.
        lower.parse().ok()?
    };
    Some(sign * magnitude)
}

/// The value of hexadecimal digits with optional point and binary exponent.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once('p') {
        Some((digits, exponent)) => (digits, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Sixty bits are more than a double keeps; what falls off below them is
    // remembered in the lowest bit, so that rounding stays right.
    let mut mantissa: u64 = 0;
    let mut shift = exponent.clamp(-100_000, 100_000) - 4 * fraction.len() as i64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if mantissa >> 56 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            mantissa |= u64::from(digit != 0);
            shift += 4;
        }
    }
    // In two steps: one factor alone may be beyond what a double holds.
    let shift = shift.clamp(-2200, 2200) as i32;
    let half = shift / 2;
    Some(mantissa as f64 * 2f64.powi(half) * 2f64.powi(shift - half))
}

fn trim_end(line: &[u8]) -> &[u8] {
    let end = line.iter().rposition(|&byte| !is_space(byte)).map_or(0, |last| last + 1);
    &line[..end]
}

fn trim_start(token: &[u8]) -> &[u8] {
    let start = token.iter().position(|&byte| !is_space(byte)).unwrap_or(token.len());
    &token[start..]
}

/// isspace(3) of the C locale.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, options: &ReadOptions) -> Result<Vec<f64>, MinistatError> {
        read_values(text.as_bytes(), options)
    }

    #[test]
    fn lines_are_taken_apart() {
        let first = ReadOptions::default();
        assert_eq!(read("1\n 2 x\n\n#3\n4 #\r\n5", &first), Ok(vec![1.0, 2.0, 4.0, 5.0]));
        let second = ReadOptions { column: 2, ..first.clone() };
        assert_eq!(read("1 10\n2\n3 #30\n4\t \t40 x\n# 5\n", &second), Ok(vec![10.0, 40.0]));
        let commas = ReadOptions { column: 2, delimiters: b",".to_vec(), ..first };
        assert_eq!(read(",,1,, 10\n", &commas), Ok(vec![10.0]));
    }

    #[test]
    fn numbers_are_those_of_strtod() {
        for (token, value) in [
            ("1e3", 1000.0),
            ("+.5", 0.5),
            ("7.", 7.0),
            ("007", 7.0),
            ("0x10", 16.0),
            ("-0x1.8p1", -3.0),
            ("0x1p-1074", 5e-324),
            ("0x1fffffffffffff8", 144115188075855864.0),
            ("Inf", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
            ("1e999", f64::INFINITY),
        ] {
            assert_eq!(number(token.as_bytes()), Some(value), "{token}");
        }
        assert!(number(b"nan").unwrap().is_nan());
        assert!(number(b"-nan(abc_1)").unwrap().is_nan());
        for token in ["", "x", "1x", "1e", "--1", "+-1", "0x", "0xp1", "0xg", "1 ", "1,5", "nan(-)"]
        {
            assert_eq!(number(token.as_bytes()), None, "{token}");
        }
    }

    #[test]
    fn faults_name_line_and_token() {
        let fault = MinistatError::InvalidData { line: 2, token: "1,5".into() };
        assert_eq!(read("1\n1,5\n", &ReadOptions::default()), Err(fault));
        let newest = ReadOptions { generation: Generation::Fbsd15, ..ReadOptions::default() };
        assert_eq!(read("1\n1,5\n", &newest), Ok(vec![1.0, 1.5]));
    }
}
