//! Incremental parser of a line, without copying.

/// The rest of a line.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a>(pub(super) &'a [u8]);

impl<'a> Cursor<'a> {
    /// Consumes `text`, which must come next.
    pub(super) fn eat(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }
    /// Consumes blanks, if any.
    pub(super) fn blanks(&mut self) {
        while let [b' ', rest @ ..] = self.0 {
            self.0 = rest;
        }
    }
    /// Succeeds if nothing is left.
    pub(super) fn end(self) -> Option<()> {
        self.0.is_empty().then_some(())
    }
    /// Parses one to nineteen digits, which always fit.
    pub(super) fn number(&mut self) -> Option<u64> {
        let (value, digits) = self.digits(0);
        (1..=19).contains(&digits).then_some(value)
    }
    /// Appends the following digits to `value`; returns it with their number.
    fn digits(&mut self, mut value: u64) -> (u64, usize) {
        let before = self.0.len();
        while let [digit @ b'0'..=b'9', rest @ ..] = self.0 {
            value = value.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
            self.0 = rest;
        }
        (value, before - self.0.len())
    }
    /// Parses digits with an optional fraction: all of them as one number, and the number of
    /// fractional digits.
    fn fixed(&mut self) -> Option<(u64, usize)> {
        let (whole, digits) = self.digits(0);
        let (value, decimals) = match self.0 {
            [b'.', rest @ ..] => {
                self.0 = rest;
                let (value, decimals) = self.digits(whole);
                (value, if decimals == 0 { return None } else { decimals })
            }
            _ => (whole, 0),
        };
        (digits > 0 && digits + decimals <= 19).then_some((value, decimals))
    }
    /// Parses C's output of a finite floating-point number with `%.Nf`, signed.
    pub(super) fn decimal(&mut self) -> Option<f64> {
        let negative = self.eat(b"-").is_some();
        let (digits, decimals) = self.fixed()?;
        // One rounding: exact as long as the digits are below 2^53.
        let value = digits as f64 / 10f64.powi(decimals as i32);
        Some(if negative { -value } else { value })
    }
    /// Like [`Cursor::decimal`], but `inf`, `nan` and their negatives are accepted as a missing
    /// number.
    pub(super) fn perhaps_decimal(&mut self) -> Option<Option<f64>> {
        for odd in [&b"inf"[..], b"-inf", b"nan", b"-nan"] {
            if self.eat(odd).is_some() {
                return Some(None);
            }
        }
        self.decimal().map(Some)
    }
    /// Parses the unit that comes next as a power of thousand: K, M, G, T or none.
    pub(super) fn unit(&mut self) -> u32 {
        let power = match self.0 {
            [b'K', ..] => 1,
            [b'M', ..] => 2,
            [b'G', ..] => 3,
            [b'T', ..] => 4,
            _ => return 0,
        };
        self.0 = &self.0[1..];
        power
    }
    /// Parses a count with its unit and its word, like `1.490 Mpps`, `892 pps` or, in versions of
    /// 2015 and 2016, `33.000 pps`; true if all its digits were printed. A fraction of one is
    /// rounded.
    pub(super) fn count(&mut self, word: &[u8]) -> Option<(u64, bool)> {
        let (digits, decimals) = self.fixed()?;
        self.eat(b" ")?;
        let power = self.unit();
        self.eat(word)?;
        if power == 0 {
            let one = 10u64.checked_pow(decimals as u32)?;
            let (whole, fraction) = (digits / one, digits % one);
            return Some((whole + u64::from(fraction >= one.div_ceil(2)), fraction == 0));
        }
        let places = (3 * power as usize).checked_sub(decimals)?;
        let value = digits.checked_mul(10u64.checked_pow(places as u32)?)?;
        Some((value, false))
    }
    /// Parses a quantity with its unit, like `714.29 M` or `-0 `, but not the word after it.
    pub(super) fn quantity(&mut self) -> Option<Option<f64>> {
        let value = self.perhaps_decimal()?;
        let _ = self.eat(b" ");
        let scale = 1000f64.powi(self.unit() as i32);
        Some(value.map(|value| value * scale))
    }
    /// Returns everything up to `end`, which is also consumed.
    pub(super) fn until(&mut self, end: &[u8]) -> Option<&'a [u8]> {
        let place = memchr::memmem::find(self.0, end)?;
        let (before, rest) = self.0.split_at(place);
        self.0 = &rest[end.len()..];
        Some(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_units_and_words() {
        let count = |text: &str| Cursor(text.as_bytes()).count(b"pps");
        assert_eq!(count("892 pps"), Some((892, true)));
        assert_eq!(count("1.490 Mpps"), Some((1_490_000, false)));
        assert_eq!(count("12 Kpps"), Some((12_000, false)));
        assert_eq!(count("9.99 Gpps"), Some((9_990_000_000, false)));
        assert_eq!(count("33.000 pps"), Some((33, true)));
        assert_eq!(count("0.000 pps"), Some((0, true)));
        assert_eq!(count("1.499 pps"), Some((1, false)));
        assert_eq!(count("1.5 pps"), Some((2, false)));
        for wrong in ["", " pps", "1pps", "1. Mpps", "1. pps", "-1 pps", "1 Mbps", ".5 Kpps"] {
            assert_eq!(count(wrong), None, "{wrong}");
        }
        assert_eq!(count("1.2345 Kpps"), None);
        assert_eq!(count("9999999999999999999 pps"), Some((9_999_999_999_999_999_999, true)));
        assert_eq!(count("10000000000000000000 pps"), None);
        assert_eq!(count("9999999999999999999 Tpps"), None);
    }

    #[test]
    fn decimals_match_the_standard_library() {
        for text in ["0.00", "1.48", "-1541753577.69", "99.999999", "512.00", "-0", "12"] {
            assert_eq!(Cursor(text.as_bytes()).decimal(), text.parse().ok(), "{text}");
        }
        assert_eq!(Cursor(b"-inf").perhaps_decimal(), Some(None));
        assert_eq!(Cursor(b"-nan").decimal(), None);
        assert_eq!(Cursor(b"-").decimal(), None);
        assert_eq!(Cursor(b"714.29 Mbps").quantity(), Some(Some(714.29e6)));
    }
}
