//! Units of the field, as types where two quantities could be swapped.
//!
//! A frame size counts the bytes from the destination MAC address through the
//! FCS (RFC 2544 section 9; the smallest is 64). What a program hands to the
//! network is four bytes shorter, because the hardware adds the FCS.

pub use fwdlab_packet::size::{FCS_BYTES, FrameSize, WIRE_OVERHEAD_BYTES};

/// Prints a rate in packets per second with three significant digits and a
/// prefix: `1.49 Mpps`.
pub fn format_pps(pps: f64) -> String {
    format!("{}pps", prefixed(pps))
}

/// Prints a rate in bits per second with three significant digits and a
/// prefix: `14.9 Gbit/s`.
pub fn format_bps(bps: f64) -> String {
    format!("{}bit/s", prefixed(bps))
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
    fn rates_have_three_digits_and_a_prefix() {
        assert_eq!(format_pps(1_488_095.0), "1.49 Mpps");
        assert_eq!(format_pps(14_880_952.0), "14.9 Mpps");
        assert_eq!(format_pps(999_600.0), "1.00 Mpps");
        assert_eq!(format_pps(850.0), "850 pps");
        assert_eq!(format_bps(10e9), "10.0 Gbit/s");
    }
}
