//! Units of the field, as types where two quantities could be swapped.
//!
//! A frame size counts the bytes from the destination MAC address through the
//! FCS (RFC 2544 section 9; the smallest is 64). What a program hands to the
//! network is four bytes shorter, because the hardware adds the FCS.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Bytes of the frame check sequence, counted in a [`FrameSize`] and never in memory.
pub const FCS_BYTES: u16 = 4;
/// Preamble (7), start delimiter (1) and inter-frame gap (12) of Ethernet: the
/// bytes that a frame occupies on a wire beside itself.
pub const WIRE_OVERHEAD_BYTES: u16 = 20;

/// Bytes of an Ethernet frame from destination MAC through FCS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FrameSize(pub u16);

impl FrameSize {
    /// Bytes that lie in memory: the frame without its FCS.
    pub fn in_memory(self) -> usize {
        usize::from(self.0 - FCS_BYTES)
    }
    /// L2 rate in bit/s of `pps` frames a second: pps x frame x 8.
    pub fn l2_bits_per_second(self, pps: f64) -> f64 {
        pps * f64::from(self.0) * 8.0
    }
    /// L1 rate in bit/s of `pps` frames a second: pps x (frame + 20) x 8.
    pub fn l1_bits_per_second(self, pps: f64) -> f64 {
        pps * f64::from(self.0 + WIRE_OVERHEAD_BYTES) * 8.0
    }
}

impl fmt::Display for FrameSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0)
    }
}

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

    #[test]
    fn smallest_frames_fill_ten_gigabit_at_the_known_rate() {
        let l1 = FrameSize(64).l1_bits_per_second(14_880_952.0);
        assert!((l1 - 10e9).abs() < 1e3, "{l1}");
        assert_eq!(FrameSize(64).in_memory(), 60);
    }
}
