//! Flame graphs, drawn with inferno.
//!
//! The pictures contain a script for searching and zooming, load nothing from outside, and are
//! deterministic: colours derive from names. Out of scope: charts over time.

use super::stacks::{Stacks, foldable};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};
use std::collections::BTreeMap;

/// The script in the picture counts in floating point, where integers are exact up to 2^53. inferno
/// multiplies by 150 in 64 bits, which is not a tighter limit.
const MOST: f64 = 9e15;

/// Texts and orientation of a flame graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Title, in large letters.
    pub title: String,
    /// Line below the title; may be empty.
    pub subtitle: String,
    /// Unit of the counts, in the plural: `samples`.
    pub unit: String,
    /// True to draw roots at the top.
    pub is_icicle: bool,
}

/// One of the two profiles of a difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side<'a> {
    /// The profile.
    pub stacks: &'a Stacks,
    /// Cost of one count per packet: 1 over the packets forwarded during the profile for samples,
    /// cycles per sample over packets for cycles. Positive.
    pub per_count: f64,
}

/// Error of drawing a flame graph.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// Nothing was counted.
    #[error("there is nothing to draw: no stack has a sample")]
    Empty,
    /// A weight that is not positive, or so large that sums overflow.
    #[error("a profile can't be scaled by {0}: give the number of packets, above 0")]
    Scale(String),
    /// Drawing failed, which is a bug.
    #[error("the flame graph can't be drawn: {0}")]
    Draw(String),
}

/// Draws a profile as SVG.
///
/// # Errors
/// Fails for a profile without samples, or with too many for the script.
pub fn flame_graph(stacks: &Stacks, look: &Look) -> Result<String, DrawError> {
    if stacks.total() as f64 > MOST {
        return Err(DrawError::Scale(format!("1, with {} {}", stacks.total(), look.unit)));
    }
    let mut lines: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (frames, count) in stacks.iter() {
        let sum = lines.entry(frames.iter().map(|frame| drawable(frame)).collect()).or_default();
        *sum = sum.saturating_add(count);
    }
    let lines = lines.into_iter().map(|(frames, count)| format!("{} {count}", frames.join(";")));
    draw(lines.collect(), look, &look.unit, &look.subtitle)
}

/// Draws the difference of two profiles. Widths are the candidate's; red frames have a higher own
/// cost per packet than in the baseline, blue ones a lower cost. Stacks that the candidate no
/// longer has get no width; the subtitle gives their share.
///
/// Both sides are scaled to cost per packet, so a faster candidate is not drawn as hotter for the
/// additional packets that it forwards. If the number of packets is unknown (`is_per_packet` is
/// false), the weights are 1 over each side's total, and the graph shows shares.
///
/// # Errors
/// Fails for profiles without samples and for weights that are not positive.
pub fn difference(
    baseline: Side<'_>,
    candidate: Side<'_>,
    is_per_packet: bool,
    look: &Look,
) -> Result<String, DrawError> {
    if baseline.stacks.is_empty() || candidate.stacks.is_empty() {
        return Err(DrawError::Empty);
    }
    for side in [baseline, candidate] {
        if !(side.per_count > 0.0 && side.per_count.is_finite()) {
            return Err(DrawError::Scale(side.per_count.to_string()));
        }
    }
    let (exponent, scale) = scale(baseline, candidate)?;
    let mut lines: BTreeMap<Vec<String>, (f64, f64)> = BTreeMap::new();
    for (frames, count) in baseline.stacks.iter() {
        let frames = frames.iter().map(|frame| drawable(frame)).collect();
        lines.entry(frames).or_default().0 += count as f64 * baseline.per_count * scale;
    }
    for (frames, count) in candidate.stacks.iter() {
        let frames = frames.iter().map(|frame| drawable(frame)).collect();
        lines.entry(frames).or_default().1 += count as f64 * candidate.per_count * scale;
    }
    let whole: f64 = lines.values().map(|(before, _)| before).sum();
    let gone: f64 =
        lines.values().filter(|(_, after)| *after == 0.0).map(|(before, _)| before).sum();
    let subtitle = format!(
        "{}{}red: costs more by itself, blue: less; {:.1} % of the baseline's cost are stacks \
         that are gone",
        look.subtitle,
        if look.subtitle.is_empty() { "" } else { "; " },
        100.0 * gone / whole
    );
    let unit = match is_per_packet {
        true => format!("{} per 10^{exponent} packets", look.unit),
        false => format!("of 10^{exponent} {}", look.unit),
    };
    // Stacks without width must not set the scale of the colours.
    let drawn = lines.into_iter().filter(|(_, (_, after))| after.round() > 0.0);
    let lines = drawn.map(|(frames, (before, after))| {
        format!("{} {} {}", frames.join(";"), before.round(), after.round())
    });
    draw(lines.collect(), look, &unit, &subtitle)
}

/// Scale factor, because inferno counts in integers. With at least ten digits for the larger side,
/// one sample in 10^9 is still distinguishable.
fn scale(baseline: Side<'_>, candidate: Side<'_>) -> Result<(i32, f64), DrawError> {
    const DIGITS: f64 = 1e10;
    let cost = |side: Side<'_>| side.stacks.total() as f64 * side.per_count;
    let largest = cost(baseline).max(cost(candidate));
    let exponent = (DIGITS / largest).log10().ceil().max(0.0);
    if !(exponent <= 300.0 && largest * 10_f64.powf(exponent) < MOST) {
        return Err(DrawError::Scale(candidate.per_count.to_string()));
    }
    Ok((exponent as i32, 10_f64.powi(exponent as i32)))
}

/// Draws lines that are sorted by their frames.
fn draw(lines: Vec<String>, look: &Look, unit: &str, subtitle: &str) -> Result<String, DrawError> {
    if lines.is_empty() {
        return Err(DrawError::Empty);
    }
    let mut options = Options::default();
    options.title = xml(&look.title);
    options.subtitle = Some(xml(subtitle)).filter(|subtitle| !subtitle.is_empty());
    options.count_name = xml(unit);
    options.deterministic = true;
    // The font family of PNGs. Its letters are somewhat wider than inferno assumes, so a few names
    // are cut earlier.
    options.font_type = "sans-serif".to_owned();
    options.font_width = 0.65;
    options.direction = if look.is_icicle { Direction::Inverted } else { Direction::Straight };
    options.text_truncate_direction = TextTruncateDirection::Right;
    // inferno sorts lines as text, where `f.cold` comes between `f` and `f;g` and would divide the
    // rectangle of f. These lines are sorted by frames; only the chart mode skips inferno's
    // sorting, and it reverses the lines.
    options.flame_chart = true;
    let mut svg = Vec::new();
    from_lines(&mut options, lines.iter().rev().map(String::as_str), &mut svg)
        .map_err(|error| DrawError::Draw(error.to_string()))?;
    let mut svg = String::from_utf8(svg).map_err(|error| DrawError::Draw(error.to_string()))?;
    svg.push('\n');
    Ok(svg)
}

/// A frame that inferno parses correctly: no semicolon, no number after the last blank (it would be
/// a count), no beginning of a comment.
fn drawable(frame: &str) -> String {
    let mut frame = foldable(frame);
    if let Some((name, last)) = frame.rsplit_once(' ')
        && last.chars().all(|c| c.is_ascii_digit() || c == '.')
    {
        frame = format!("{name}\u{a0}{last}");
    }
    if let Some(rest) = frame.strip_prefix("# ") {
        frame = format!("#\u{a0}{rest}");
    }
    frame
}

/// Text without the characters that XML 1.0 forbids; inferno escapes the others.
fn xml(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::stacks::{Frame, stacks};
    use super::*;
    use crate::{normal, read};
    use proptest::prelude::*;

    fn look() -> Look {
        Look { title: "T".into(), subtitle: "S".into(), unit: "samples".into(), is_icicle: false }
    }

    /// Titles of the rectangles.
    fn titles(svg: &str) -> Vec<&str> {
        svg.split("<title>").skip(1).filter_map(|t| t.split("</title>").next()).collect()
    }

    #[test]
    fn flame_graph_draws_a_caller_as_one_rectangle() {
        let some = stacks(&[("f", 1), ("f.cold;x", 1), ("f;g", 2), ("cpu 5", 3), ("# a", 1)]);
        let svg = flame_graph(&some, &look()).unwrap();
        let mut all = titles(&svg);
        all.sort_unstable();
        assert_eq!(
            all,
            [
                "#\u{a0}a (1 samples, 12.50%)",
                "all (8 samples, 100%)",
                "cpu\u{a0}5 (3 samples, 37.50%)",
                "f (3 samples, 37.50%)",
                "f.cold (1 samples, 12.50%)",
                "g (2 samples, 25.00%)",
                "x (1 samples, 12.50%)",
            ]
        );
        assert!(svg.contains(">T</text>") && svg.contains(">S</text>"), "{svg}");
    }

    #[test]
    fn flame_graph_is_self_contained_and_deterministic() {
        let some = stacks(&[("a;b", 3), ("a;c", 5)]);
        let svg = flame_graph(&some, &look()).unwrap();
        assert_eq!(flame_graph(&some, &look()), Ok(svg.clone()));
        // XML namespaces are not loaded.
        for loads in ["<link", "<image", "src=", "@import", "<script xlink", "<script href"] {
            assert!(!svg.contains(loads), "{loads}");
        }
        assert!(svg.contains("function search") && svg.contains("function zoom"));
        let icicle = flame_graph(&some, &Look { is_icicle: true, ..look() }).unwrap();
        assert_ne!(icicle, svg);
        let options = Default::default();
        assert!(resvg::usvg::Tree::from_str(&svg, &options).is_ok());
        assert!(resvg::usvg::Tree::from_str(&icicle, &options).is_ok());
        assert_eq!(flame_graph(&Stacks::default(), &look()), Err(DrawError::Empty));
        let endless = flame_graph(&stacks(&[("a", u64::MAX), ("b", 1)]), &look());
        assert!(matches!(endless, Err(DrawError::Scale(_))), "{endless:?}");
    }

    #[test]
    fn difference_is_scaled_per_packet() {
        // Twice the samples for four times the packets: half the cost each.
        let before = stacks(&[("f", 100), ("old", 100)]);
        let after = stacks(&[("f", 400)]);
        let side = |stacks, packets: f64| Side { stacks, per_count: 1.0 / packets };
        let svg = difference(side(&before, 1e6), side(&after, 4e6), true, &look()).unwrap();
        let mut drawn = titles(&svg);
        drawn.sort_unstable();
        // One sample per 10^4 packets, for 10^14 packets; `old` is gone.
        let count = "10,000,000,000 samples per 10^14 packets";
        let (all, f) = (format!("all ({count}, 100%)"), format!("f ({count}, 100.00%; 0.00%)"));
        assert_eq!(drawn, [all, f]);
        assert!(svg.contains("50.0 % of the baseline"), "{svg}");
        let less = difference(side(&before, 1e6), side(&after, 8e6), true, &look()).unwrap();
        assert!(titles(&less).iter().any(|title| title.contains("; -")), "{:?}", titles(&less));
        // The largest change of a remaining frame has the full colour.
        assert!(less.contains("fill=\"rgb(100,100,255)\""), "{less}");
    }

    #[test]
    fn difference_scaling_keeps_every_sample() {
        let before = stacks(&[("a", 1_000_000), ("b", 1)]);
        let side = |packets: f64| Side { stacks: &before, per_count: 1.0 / packets };
        // From 10^30 packets down to a millionth of one, the digits are the same.
        for packets in [1e-6, 3.0, 1e8, 1e30] {
            let svg = difference(side(packets), side(packets), true, &look()).unwrap();
            assert!(titles(&svg).iter().all(|t| !t.contains("+")), "{packets}: {:?}", titles(&svg));
        }
        for packets in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            let result = difference(side(packets), side(1.0), true, &look());
            assert!(matches!(result, Err(DrawError::Scale(_))), "{packets}: {result:?}");
        }
    }

    proptest! {
        #[test]
        fn flame_graph_reads_back(
            lines in prop::collection::vec((prop::collection::vec("\\PC{0,5}|[ab]|[a-c;# ]{0,3} [0-9]", 1..5), 1..1000_u64), 1..12)
        ) {
            let mut some = Stacks::default();
            for (frames, count) in lines {
                some.add(frames.iter().map(|f| Frame::from(format!("f{f}").as_str())).collect(), count);
            }
            let svg = flame_graph(&some, &look()).unwrap();
            let again = read(svg.as_bytes()).unwrap();
            prop_assert_eq!(again.remarks.len(), 0, "{:?}", again.remarks);
            let again = again.stacks().unwrap().into_owned();
            prop_assert_eq!(again.total(), some.total());
            // Own counts are unchanged, apart from characters that drawing replaces and names that
            // a reader normalises.
            let mut expected = Stacks::default();
            for (frames, count) in some.iter() {
                let normal = frames.iter().map(|f| Frame::from(normal(&drawable(f))));
                expected.add(normal.collect(), count);
            }
            prop_assert_eq!(again.folded(), expected.folded());
        }
    }
}
