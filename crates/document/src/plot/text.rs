//! Widths of text, and wrapping.
//!
//! The widths are those of the vendored font, so a PNG matches the layout exactly; browsers without
//! the font use one of similar width.

use crate::text::{cut_to, fill};

/// Font families in order of preference; the first is the vendored one.
pub(super) const FONT_FAMILY: &str = "DejaVu Sans, Verdana, sans-serif";

/// Units of the font's em.
const UNITS_PER_EM: f64 = 2048.0;
/// Advance widths of DejaVu Sans from space to tilde, in units of the font.
#[rustfmt::skip]
const ASCII_WIDTHS: [u16; 95] = [
    651, 821, 942, 1716, 1303, 1946, 1597, 563, 799, 799, 1024, 1716, 651, 739, 651, 690, 1303,
    1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 1303, 690, 690, 1716, 1716, 1716, 1087, 2048,
    1401, 1405, 1430, 1577, 1294, 1178, 1587, 1540, 604, 604, 1343, 1141, 1767, 1532, 1612, 1235,
    1612, 1423, 1300, 1251, 1499, 1401, 2025, 1403, 1251, 1403, 799, 690, 799, 1716, 1024, 1024,
    1255, 1300, 1126, 1300, 1260, 721, 1300, 1298, 569, 569, 1186, 569, 1995, 1298, 1253, 1300,
    1300, 842, 1067, 803, 1298, 1212, 1675, 1212, 1212, 1075, 1303, 690, 1303, 1716,
];
/// Width assumed for other Latin letters.
const LATIN_WIDTH: u16 = 1300;

/// Width in pixels of one line of text.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let units: f64 = text
        .chars()
        .map(|c| match c {
            ' '..='~' => f64::from(ASCII_WIDTHS[c as usize - 0x20]),
            '\u{a0}'..='\u{24f}' => f64::from(LATIN_WIDTH),
            _ => UNITS_PER_EM,
        })
        .sum();
    units * size / UNITS_PER_EM
}

/// Wraps text to lines of at most `limit` pixels: after commas if that suffices, else between
/// words; a word that is too long is cut with an ellipsis.
pub(super) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let fits = |text: &str| width(text, size) <= limit;
    let parts = text.split_inclusive(", ").map(str::trim).filter(|part| !part.is_empty());
    let pieces = parts.flat_map(|part| match fits(part) {
        true => vec![part.to_owned()],
        false => part.split_whitespace().map(|word| shorten(word, size, limit)).collect(),
    });
    fill(&pieces.collect::<Vec<String>>(), " ", ["", ""], fits)
}

/// Width of the widest line in pixels.
pub(super) fn widest(lines: &[String], size: f64) -> f64 {
    lines.iter().map(|line| width(line, size)).fold(0.0, f64::max)
}

/// Cuts text that is wider than `limit` pixels, with an ellipsis.
pub(super) fn shorten(text: &str, size: f64, limit: f64) -> String {
    cut_to(text, |text| width(text, size) <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_agrees_with_the_font() {
        for text in ["forwarded (Mpps)", "WWWWiiii", "netns testbed: virtual, 12345"] {
            let drawn = crate::plot::png::text_width(text, 20.0);
            let computed = width(text, 20.0);
            assert!((computed - drawn).abs() < 1e-3, "{text}: {computed}, {drawn}");
        }
    }

    #[test]
    fn wrap_prefers_breaks_after_commas() {
        let lines = |limit| wrap("stateful, 4 queues, inet6", 13.0, limit);
        assert_eq!(lines(500.0), ["stateful, 4 queues, inet6"]);
        assert_eq!(lines(130.0), ["stateful, 4 queues,", "inet6"]);
        assert_eq!(lines(70.0), ["stateful,", "4 queues,", "inet6"]);
        assert_eq!(lines(50.0), ["state…", "4", "queu…", "inet6"]);
        assert_eq!(wrap("", 13.0, 50.0), [""]);
    }

    #[test]
    fn wrap_never_exceeds_the_limit() {
        for limit in [20.0, 35.0, 90.0, 200.0] {
            let text = "net.ipv4.ip_early_demux=0, unreasonablyLongWordWithoutAnyBreak, a b c";
            for line in wrap(text, 12.0, limit) {
                assert!(width(&line, 12.0) <= limit, "{line:?} is wider than {limit}");
            }
        }
    }
}
