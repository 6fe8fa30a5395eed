//! Numbers as parsed by C's strtod(3) in the C locale: decimal, hexadecimal, infinity, NaN.

/// Largest integer up to which all integers are exact doubles.
const EXACT_INTEGER: u64 = 1 << 53;
/// Decimal digits that always fit an unsigned 64-bit integer.
const MAX_DIGITS: usize = 19;
/// Powers of ten that are exact doubles; more decimals than [`MAX_DIGITS`] cannot occur.
const POWERS: [f64; MAX_DIGITS + 1] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19,
];

/// Returns the value of a text that strtod(3) consumes completely, after white space.
pub fn number(text: &[u8]) -> Option<f64> {
    let start = text.iter().position(|&byte| !is_space(byte))?;
    if let Some((value, length)) = plain(&text[start..])
        && start + length == text.len()
    {
        return Some(value);
    }
    let text = std::str::from_utf8(&text[start..]).ok()?;
    let (sign, unsigned) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    if unsigned.starts_with(['+', '-']) {
        return None;
    }
    let magnitude = if let Some(digits) = without_prefix(unsigned, "0x") {
        hexadecimal(digits)?
    } else if let Some(payload) = without_prefix(unsigned, "nan(") {
        let inner = payload.strip_suffix(')')?;
        inner.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_').then_some(f64::NAN)?
    } else {
        // Rust accepts the same syntax as strtod, including infinity and NaN.
        unsigned.parse().ok()?
    };
    Some(sign * magnitude)
}

/// Returns the number at the start of `text` and the length of the line with its end, if the line
/// is only a plain decimal, as nearly every line of a big file is.
pub(super) fn plain_line(text: &[u8]) -> Option<(f64, usize)> {
    let (value, length) = plain(text)?;
    (text.get(length) == Some(&b'\n')).then_some((value, length + 1))
}

/// Returns the plain decimal at the start of `text`, and its length: digits, optionally with a
/// point and a minus.
///
/// Exact: an exact mantissa divided by an exact power of ten is rounded once (Clinger, "How to read
/// floating point numbers accurately", 1990). Everything else is left to [`number`].
fn plain(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut mantissa: u64 = 0;
    let mut at = start;
    let mut point = None;
    // Too many digits wrap around here and are rejected below.
    while let Some(&byte) = text.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            mantissa = mantissa.wrapping_mul(10).wrapping_add(u64::from(digit));
        } else if byte == b'.' && point.is_none() {
            point = Some(at);
        } else {
            break;
        }
        at += 1;
    }
    let digits = at - start - usize::from(point.is_some());
    let decimals = point.map_or(0, |point| at - point - 1);
    if !(1..=MAX_DIGITS).contains(&digits) || mantissa > EXACT_INTEGER {
        return None;
    }
    let value = mantissa as f64 / POWERS[decimals];
    Some((if negative { -value } else { value }, at))
}

/// Returns the text after a prefix of either case.
fn without_prefix<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let head = text.get(..prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then(|| &text[prefix.len()..])
}

/// Returns the value of hexadecimal digits with optional point and binary exponent, rounded once.
fn hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = match text.split_once(['p', 'P']) {
        Some((digits, exponent)) => (digits, binary_exponent(exponent)?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    // Sixty bits are more than a double holds. The lowest bit records whether lower bits were lost,
    // so rounding stays correct.
    let mut mantissa: u64 = 0;
    let mut shift = exponent - 4 * fraction.len() as i64;
    for digit in whole.chars().chain(fraction.chars()) {
        let digit = u64::from(digit.to_digit(16)?);
        if mantissa >> 56 == 0 {
            mantissa = mantissa << 4 | digit;
        } else {
            mantissa |= u64::from(digit != 0);
            shift += 4;
        }
    }
    Some(scaled(mantissa, shift))
}

/// Parses a binary exponent with optional sign; values beyond all doubles saturate.
fn binary_exponent(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let beyond = 100_000;
    let magnitude = digits.parse().unwrap_or(beyond).min(beyond);
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

/// Returns `mantissa * 2^shift` as the nearest double, ties to even.
fn scaled(mantissa: u64, shift: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let highest = i64::from(mantissa.ilog2()) + shift;
    // The lowest bit of a double of this size.
    let lowest = (highest - 52).max(-1074);
    let (mantissa, shift) = match lowest - shift {
        ..=0 => (mantissa, shift),
        drop @ 1..=63 => {
            let kept = mantissa >> drop;
            let (rest, half) = (mantissa & ((1 << drop) - 1), 1 << (drop - 1));
            let up = rest > half || rest == half && kept % 2 == 1;
            (kept + u64::from(up), lowest)
        }
        _ => return 0.0,
    };
    // In two steps: a single factor may exceed the range of doubles.
    let shift = shift.clamp(-2200, 2200) as i32;
    let half = shift / 2;
    mantissa as f64 * 2f64.powi(half) * 2f64.powi(shift - half)
}

/// isspace(3) in the C locale.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 0x0b | 0x0c | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_match_strtod() {
        for (token, value) in [
            ("1e3", 1000.0),
            ("+.5", 0.5),
            ("7.", 7.0),
            ("007", 7.0),
            (" \t7", 7.0),
            ("0x10", 16.0),
            ("0X1P1", 2.0),
            ("-0x1.8p1", -3.0),
            ("0x1p-1074", 5e-324),
            ("0x1fffffffffffff8", 144115188075855864.0),
            // Halfway between two doubles below the normal ones: rounded once.
            ("0x1.8p-1074", 1e-323),
            ("0x1.7ffffffffffffp-1074", 5e-324),
            ("0x1p-1075", 0.0),
            ("0x1.00000000000001p-1075", 5e-324),
            ("0x1p99999999999999999999", f64::INFINITY),
            ("0x1p-99999999999999999999", 0.0),
            ("0x0p99999", 0.0),
            ("Inf", f64::INFINITY),
            ("-infinity", f64::NEG_INFINITY),
            ("1e999", f64::INFINITY),
        ] {
            assert_eq!(number(token.as_bytes()), Some(value), "{token}");
        }
        assert!(number(b"nan").unwrap().is_nan());
        assert!(number(b"-NaN(abc_1)").unwrap().is_nan());
        for token in [
            "", " ", "x", "1x", "1e", "--1", "+-1", "0x", "0xp1", "0x1p", "0x1p+", "0xg", "1 ",
            "1,5", "nan(-)", "infin", "é",
        ] {
            assert_eq!(number(token.as_bytes()), None, "{token}");
        }
    }

    #[test]
    fn plain_line_includes_its_line_end() {
        assert_eq!(plain_line(b"12.50\n7"), Some((12.5, 6)));
        assert_eq!(plain_line(b"-0\n").map(|(v, n)| (v.to_bits(), n)), Some((1 << 63, 3)));
        assert_eq!(plain_line(b"5.\n"), Some((5.0, 3)));
        for other in [
            &b"12"[..],
            b"\n",
            b".\n",
            b"-\n",
            b"1.2.3\n",
            b"1 \n",
            b"1e3\n",
            b"+1\n",
            b"#1\n",
            b"9007199254740993\n",
            b"18446744073709551617\n",
            b"00000000000000000001\n",
        ] {
            assert_eq!(plain_line(other), None, "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn plain_lines_match_the_rust_parser(
            whole in "-?[0-9]{1,17}", decimals in "(\\.[0-9]{0,12})?"
        ) {
            let text = format!("{whole}{decimals}");
            if let Some((value, length)) = plain_line(format!("{text}\n").as_bytes()) {
                prop_assert_eq!(value.to_bits(), text.parse::<f64>().unwrap().to_bits());
                prop_assert_eq!(length, text.len() + 1);
            }
        }
    }
}
