//! Number formats of reports.

/// A share as percent: `2.0 %`. Values with more than four digits are only marked as huge.
pub fn percent(share: f64, digits: usize) -> String {
    let percent = 100.0 * share;
    if percent.is_nan() || percent >= 9999.5 {
        return ">9999 %".to_owned();
    }
    format!("{percent:.digits$} %")
}

/// A relative change as percent with its sign: `+2.0 %`; `0.0 %` without a sign if it rounds to
/// zero.
pub fn signed_percent(change: f64, digits: usize) -> String {
    let unsigned = percent(change.abs(), digits);
    let is_zero = unsigned.bytes().all(|b| matches!(b, b'0' | b'.' | b' ' | b'%'));
    match change {
        _ if is_zero => unsigned,
        c if c < 0.0 => format!("-{unsigned}"),
        _ => format!("+{unsigned}"),
    }
}

/// Three significant digits, without an exponent if that is shorter.
pub fn significant(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor();
    if !(-4.0..9.0).contains(&magnitude) {
        return format!("{number:.2e}");
    }
    let digits = (2.0 - magnitude).max(0.0) as usize;
    format!("{number:.digits$}")
}

/// Three significant digits with a sign.
pub fn signed(number: f64) -> String {
    let sign = if number < 0.0 { "-" } else { "+" };
    format!("{sign}{}", significant(number.abs()))
}

/// A p-value with four digits; smaller ones as `< 0.0001`.
pub fn p_value(p: f64) -> String {
    if p < 0.0001 { "< 0.0001".to_owned() } else { format!("{p:.4}") }
}

/// An integer in groups of three digits: `1 234 567`.
pub fn grouped(value: i128) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            // A narrow no-break space keeps the groups on one line.
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}

/// A time in seconds with three significant digits in an appropriate unit: `3.21 ms`.
pub fn duration(seconds: f64) -> String {
    let (factor, unit) = match seconds.abs() {
        s if s == 0.0 || s >= 1.0 => (1.0, "s"),
        s if s >= 1e-3 => (1e3, "ms"),
        s if s >= 1e-6 => (1e6, "us"),
        _ => (1e9, "ns"),
    };
    format!("{} {unit}", significant(seconds * factor))
}

/// Seconds without trailing zeros: `2 s`, `0.25 s`.
pub fn seconds(ns: u64) -> String {
    format!("{} s", ns as f64 / 1e9)
}

/// "1 run", "2 runs".
pub fn runs_of(count: usize) -> String {
    number_of(count, "run")
}

/// A count with its noun: "1 store", "2 stores".
pub fn number_of(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// "a", "a and b", "a, b and c".
pub fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_units_signs_and_groups() {
        assert_eq!(percent(0.0213, 1), "2.1 %");
        assert_eq!(percent(f64::INFINITY, 1), ">9999 %");
        assert_eq!(signed_percent(-0.05, 1), "-5.0 %");
        assert_eq!(signed_percent(0.05, 2), "+5.00 %");
        assert_eq!(signed_percent(-0.0001, 1), "0.0 %");
        assert_eq!(p_value(0.00001), "< 0.0001");
        assert_eq!(p_value(0.5), "0.5000");
        assert_eq!(grouped(-1_234_567), "-1\u{202f}234\u{202f}567");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1\u{202f}000");
        assert_eq!(seconds(250_000_000), "0.25 s");
        assert_eq!((runs_of(1), runs_of(2)), ("1 run".to_owned(), "2 runs".to_owned()));
        assert_eq!(listed(&["a".into(), "b".into(), "c".into()]), "a, b and c");
    }
}
