//! Units of the field, as types if two quantities could be confused.
//!
//! A frame size counts the bytes from the destination MAC address through the FCS (RFC 2544 section
//! 9; the minimum is 64). A program passes four bytes fewer to the network, because the hardware
//! adds the FCS.

pub use fwdlab_packet::size::{FCS_BYTES, FRAME_MAX, FRAME_MIN, FrameSize, WIRE_OVERHEAD_BYTES};

/// Formats a rate in packets per second with three significant digits and a prefix: `1.49 Mpps`.
pub fn format_pps(pps: f64) -> String {
    format!("{}pps", prefixed(pps))
}

/// Formats a rate in bits per second with three significant digits and a prefix: `14.9 Gbit/s`.
pub fn format_bps(bps: f64) -> String {
    format!("{}bit/s", prefixed(bps))
}

/// Name of the run fact that contains the line rate of its links.
pub const LINE_RATE: &str = "line rate";

/// Formats the line rate of a link exactly: `10 Gbit/s`.
pub fn line_rate_text(bps: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")];
    let unit = UNITS.into_iter().find(|(scale, _)| bps > 0 && bps.is_multiple_of(*scale));
    let (scale, prefix) = unit.unwrap_or((1, ""));
    format!("{} {prefix}bit/s", bps / scale)
}

/// Parses the output of [`line_rate_text`] to bits per second.
pub fn line_rate_of(text: &str) -> Option<u64> {
    let (number, unit) = text.split_once(' ')?;
    let scale = match unit {
        "Gbit/s" => 1_000_000_000,
        "Mbit/s" => 1_000_000,
        "kbit/s" => 1_000,
        "bit/s" => 1,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(scale)
}

/// Returns the maximum frames per second of a link of `bps`, each with preamble and gap (L1).
pub fn line_pps(bps: u64, frame: FrameSize) -> f64 {
    bps as f64 / frame.l1_bits_per_second(1.0)
}

fn prefixed(value: f64) -> String {
    let (scaled, prefix) = match value.abs() {
        v if v >= 999.5e6 => (value / 1e9, "G"),
        v if v >= 999.5e3 => (value / 1e6, "M"),
        v if v >= 999.5 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match scaled.abs() {
        s if s >= 99.95 => 0,
        s if s >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$} {prefix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_rate_text_survives_a_round_trip() {
        for (bps, text) in [
            (10_000_000_000, "10 Gbit/s"),
            (2_500_000_000, "2500 Mbit/s"),
            (1_000, "1 kbit/s"),
            (1_001, "1001 bit/s"),
            (0, "0 bit/s"),
        ] {
            assert_eq!((line_rate_text(bps).as_str(), line_rate_of(text)), (text, Some(bps)));
        }
        assert_eq!([line_rate_of("10Gbit/s"), line_rate_of("fast Gbit/s")], [None, None]);
    }

    #[test]
    fn rates_are_formatted_with_three_digits_and_a_prefix() {
        assert_eq!(format_pps(1_488_095.0), "1.49 Mpps");
        assert_eq!(format_pps(14_880_952.0), "14.9 Mpps");
        assert_eq!(format_pps(999_600.0), "1.00 Mpps");
        assert_eq!(format_pps(850.0), "850 pps");
        assert_eq!(format_bps(10e9), "10.0 Gbit/s");
    }
}
