//! Quantities written as text with their unit: durations, rates, percentages.

use crate::settings::Rate;

/// Parses a duration such as `2s`, `250ms`, `100us`, `1.5s`, `2min` to nanoseconds.
///
/// # Errors
/// A description of a valid value.
pub fn duration_ns(text: &str) -> Result<u64, String> {
    let (number, unit) = split(text).ok_or_else(|| missing(text))?;
    let scale = match unit {
        "ns" => 1.0,
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "" => return Err(missing(text)),
        _ => return Err(format!("`{unit}` is no unit of time: use ns, us, ms, s or min")),
    };
    let ns = (number * scale).round();
    // 2^53 ns are 104 days; beyond that the f64 would not be exact.
    if ns > 9e15 { Err("longer than 100 days".to_owned()) } else { Ok(ns as u64) }
}

fn missing(text: &str) -> String {
    match text.trim().parse::<f64>() {
        Ok(_) => format!("the unit is missing: write \"{0}s\" or \"{0}ms\"", text.trim()),
        Err(_) => "a duration is a number and a unit, such as \"250ms\"".to_owned(),
    }
}

/// Parses an intended load such as `max`, `10Mpps`, `50%`, `1Gbit/s`.
///
/// # Errors
/// A description of a valid value.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    // Also in the notation of field and tools for bits per second.
    let bits = |unit| scaled(unit, "bit/s").or_else(|| scaled(unit, "bps"));
    let forms = "a rate is \"max\", a number of packets per second, \"10Mpps\", \"50%\" (of the ceiling) or \"1Gbit/s\"";
    let (number, unit) = split(text).ok_or(forms)?;
    let rate = match unit {
        "%" if number > 100.0 => return Err("more than 100 % of the ceiling".to_owned()),
        "%" => Rate::Ceiling(number / 100.0),
        _ => match (scaled(unit, "pps"), bits(unit)) {
            (Some(scale), _) => Rate::Pps(number * scale),
            (_, Some(scale)) => Rate::Bps(number * scale),
            _ => return Err(forms.to_owned()),
        },
    };
    if number == 0.0 { Err("a rate of 0 sends nothing".to_owned()) } else { Ok(rate) }
}

/// Parses whole bits per second of a link, such as `10Gbit/s`.
///
/// # Errors
/// A description of a valid value.
pub fn link_bps(text: &str) -> Result<u64, String> {
    match rate(text) {
        Ok(Rate::Bps(bps)) if (1e3..=1e13).contains(&bps) => Ok(bps.round() as u64),
        Ok(Rate::Bps(_)) => Err("outside of 1 kbit/s to 10^13 bit/s".to_owned()),
        _ => Err("bits per second with their unit, such as 10Gbit/s".to_owned()),
    }
}

/// Parses packets per second such as `1.6Mpps`.
///
/// # Errors
/// A description of a valid value.
pub(super) fn pps(text: &str) -> Result<f64, String> {
    match split(text).and_then(|(number, unit)| Some(number * scaled(unit, "pps")?)) {
        Some(pps) => Ok(pps),
        None => Err("packets per second are a number, or text such as \"1.6Mpps\"".to_owned()),
    }
}

/// Parses a percentage such as `2%` to a ratio (0.02).
///
/// # Errors
/// A description of a valid value.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    match split(text) {
        Some((number, "%")) => Ok(number / 100.0),
        _ => Err("a percentage is written such as \"2%\"".to_owned()),
    }
}

/// Returns the factor of a unit with a decimal prefix, e.g. `Mpps`.
fn scaled(unit: &str, base: &str) -> Option<f64> {
    match unit.strip_suffix(base)? {
        "" => Some(1.0),
        "k" => Some(1e3),
        "M" => Some(1e6),
        "G" => Some(1e9),
        _ => None,
    }
}

/// Splits text into a finite, non-negative number and the rest.
fn split(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|&(_, c)| !(c.is_ascii_digit() || c == '.' || c == '_'))
        .map_or(text.len(), |(at, _)| at);
    let number: f64 = text[..end].replace('_', "").parse().ok()?;
    number.is_finite().then(|| (number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_with_units() {
        for (text, expected) in [
            ("2s", 2_000_000_000),
            ("250ms", 250_000_000),
            ("100us", 100_000),
            ("7ns", 7),
            ("1.5 s", 1_500_000_000),
            ("2min", 120_000_000_000),
            ("1_000ms", 1_000_000_000),
        ] {
            assert_eq!(duration_ns(text), Ok(expected), "{text}");
        }
        for text in ["", "s", "-1s", "2", "2h", "2 seconds", "1e3s", "9999999min", ".", "1.2.3s"] {
            assert!(duration_ns(text).is_err(), "{text}");
        }
        assert!(duration_ns("2").unwrap_err().contains("\"2s\""));
    }

    #[test]
    fn rates_are_parsed_with_units() {
        assert_eq!(rate("max"), Ok(Rate::Max));
        assert_eq!(rate("10Mpps"), Ok(Rate::Pps(10e6)));
        assert_eq!(rate("850 pps"), Ok(Rate::Pps(850.0)));
        assert_eq!(rate("50%"), Ok(Rate::Ceiling(0.5)));
        assert_eq!(rate("1Gbit/s"), Ok(Rate::Bps(1e9)));
        assert_eq!(rate("1.5 Gbit/s"), Ok(Rate::Bps(1.5e9)));
        for text in ["", "fast", "10", "10M", "101%", "0pps", "-1pps", "1Tpps"] {
            assert!(rate(text).is_err(), "{text}");
        }
        assert_eq!(rate("10Gbps"), Ok(Rate::Bps(10e9)));
        assert_eq!(
            [link_bps("10Gbit/s"), link_bps("2.5 Gbps")],
            [Ok(10e9 as u64), Ok(25e8 as u64)]
        );
        for text in ["10", "10Mpps", "max", "50%", "1bit/s", "1e9Gbit/s"] {
            assert!(link_bps(text).is_err(), "{text}");
        }
    }

    #[test]
    fn percentages_and_packet_rates_are_parsed() {
        assert_eq!(percent("2%"), Ok(0.02));
        assert!(percent("2").is_err());
        assert_eq!(pps("1.6Mpps"), Ok(1.6e6));
        assert!(pps("1.6M").is_err());
    }
}
