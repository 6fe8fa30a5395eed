//! Flame graphs, drawn with inferno.
//!
//! The pictures are searched and zoomed by a script within them, need nothing
//! from outside, and the same profile yields the same bytes: colours come from
//! names. Left out: charts over time.

use super::stacks::{Stacks, foldable};
use inferno::flamegraph::{Direction, Options, TextTruncateDirection, from_lines};
use std::collections::BTreeMap;

/// The script in the picture counts in floating point: whole numbers end at
/// 2^53. inferno multiplies by 150 in 64 bits, which is no tighter.
const MOST: f64 = 9e15;

/// What stands around the flames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Title, in large letters.
    pub title: String,
    /// A line below it; empty for none.
    pub subtitle: String,
    /// What is counted, in the plural: `samples`.
    pub unit: String,
    /// True for roots at the top.
    pub is_icicle: bool,
}

/// One of two profiles whose difference is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side<'a> {
    /// The profile.
    pub stacks: &'a Stacks,
    /// What one count costs a packet: 1 over the packets forwarded meanwhile
    /// for samples, cycles per sample over packets for cycles. Above 0.
    pub per_count: f64,
}

/// Why there is no picture.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DrawError {
    /// Nothing was counted.
    #[error("there is nothing to draw: no stack has a sample")]
    Empty,
    /// A weight that isn't above 0, or so large that sums overflow.
    #[error("a profile can't be scaled by {0}: give the number of packets, above 0")]
    Scale(String),
    /// The drawing itself failed, which is a bug.
    #[error("the flame graph can't be drawn: {0}")]
    Draw(String),
}

/// The flame graph of a profile, as SVG.
///
/// # Errors
/// A profile without samples.
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

/// The flame graph of a difference: widths are those of the candidate, red
/// frames cost it more per packet by themselves than the baseline, blue ones
/// less. What the candidate no longer does has no width; how much that was
/// stands in the subtitle.
///
/// Both sides are scaled to what they cost a packet, so that a faster candidate
/// isn't drawn as the hotter one for the packets that it forwards more. Where
/// the number of packets isn't known (`is_per_packet` is false) the weights are
/// 1 over each side's total, and shares are drawn.
///
/// # Errors
/// Profiles without samples, and weights that aren't above 0.
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
    // What has no width must not set the scale of the colours either.
    let drawn = lines.into_iter().filter(|(_, (_, after))| after.round() > 0.0);
    let lines = drawn.map(|(frames, (before, after))| {
        format!("{} {} {}", frames.join(";"), before.round(), after.round())
    });
    draw(lines.collect(), look, &unit, &subtitle)
}

/// inferno counts in integers. Scaled so that the larger side has at least ten
/// digits, a sample of a thousand million is still told from the next.
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

/// Draws lines that are in the order of their frames.
fn draw(lines: Vec<String>, look: &Look, unit: &str, subtitle: &str) -> Result<String, DrawError> {
    if lines.is_empty() {
        return Err(DrawError::Empty);
    }
    let mut options = Options::default();
    options.title = xml(&look.title);
    options.subtitle = Some(xml(subtitle)).filter(|subtitle| !subtitle.is_empty());
    options.count_name = xml(unit);
    options.deterministic = true;
    // The family that PNGs are made with too; its letters are somewhat wider
    // than those inferno reckons with, so that a few names are cut earlier.
    options.font_type = "sans-serif".to_owned();
    options.font_width = 0.65;
    options.direction = if look.is_icicle { Direction::Inverted } else { Direction::Straight };
    options.text_truncate_direction = TextTruncateDirection::Right;
    // inferno sorts lines as text, where `f.cold` comes between `f` and `f;g`
    // and would divide the rectangle of f. Ours stand in the order of frames;
    // the only way past the sorting is that of charts, which turns them round.
    options.flame_chart = true;
    let mut svg = Vec::new();
    from_lines(&mut options, lines.iter().rev().map(String::as_str), &mut svg)
        .map_err(|error| DrawError::Draw(error.to_string()))?;
    let mut svg = String::from_utf8(svg).map_err(|error| DrawError::Draw(error.to_string()))?;
    svg.push('\n');
    Ok(svg)
}

/// A frame as inferno reads it back: no semicolon, no number behind the last
/// blank (it would be a count), no beginning of a comment.
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

/// Text without the characters that XML 1.0 forbids; the others are escaped by
/// inferno.
fn xml(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') { ' ' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::stacks::{Frame, stacks};
    use super::*;
    use crate::read;
    use proptest::prelude::*;

    fn look() -> Look {
        Look { title: "T".into(), subtitle: "S".into(), unit: "samples".into(), is_icicle: false }
    }

    /// Titles of the rectangles.
    fn titles(svg: &str) -> Vec<&str> {
        svg.split("<title>").skip(1).filter_map(|t| t.split("</title>").next()).collect()
    }

    #[test]
    fn a_caller_is_one_rectangle_whatever_its_neighbours_are_called() {
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
    fn pictures_need_nothing_and_stay_the_same() {
        let some = stacks(&[("a;b", 3), ("a;c", 5)]);
        let svg = flame_graph(&some, &look()).unwrap();
        assert_eq!(flame_graph(&some, &look()), Ok(svg.clone()));
        // Names of XML are no places to load from.
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
    fn a_faster_candidate_is_not_the_hotter_one() {
        // Twice the samples for four times the packets: half the cost each.
        let before = stacks(&[("f", 100), ("old", 100)]);
        let after = stacks(&[("f", 400)]);
        let side = |stacks, packets: f64| Side { stacks, per_count: 1.0 / packets };
        let svg = difference(side(&before, 1e6), side(&after, 4e6), true, &look()).unwrap();
        let mut drawn = titles(&svg);
        drawn.sort_unstable();
        // A sample each 10^4 packets, of 10^14; of `old` there is nothing.
        let count = "10,000,000,000 samples per 10^14 packets";
        let (all, f) = (format!("all ({count}, 100%)"), format!("f ({count}, 100.00%; 0.00%)"));
        assert_eq!(drawn, [all, f]);
        assert!(svg.contains("50.0 % of the baseline"), "{svg}");
        let less = difference(side(&before, 1e6), side(&after, 8e6), true, &look()).unwrap();
        assert!(titles(&less).iter().any(|title| title.contains("; -")), "{:?}", titles(&less));
        // The largest change of what is still there has the full colour.
        assert!(less.contains("fill=\"rgb(100,100,255)\""), "{less}");
    }

    #[test]
    fn scaling_keeps_every_sample() {
        let before = stacks(&[("a", 1_000_000), ("b", 1)]);
        let side = |packets: f64| Side { stacks: &before, per_count: 1.0 / packets };
        // A hundred million packets or a millionth of one: the digits are the same.
        for packets in [1e-6, 3.0, 1e8, 1e30] {
            let svg = difference(side(packets), side(packets), true, &look()).unwrap();
            assert!(titles(&svg).iter().all(|t| !t.contains("+")), "{packets}: {:?}", titles(&svg));
        }
        for packets in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            let refused = difference(side(packets), side(1.0), true, &look());
            assert!(matches!(refused, Err(DrawError::Scale(_))), "{packets}: {refused:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_drawn_reads_back(
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
            // Own counts stay where they were, apart from what drawing replaces.
            let mut expected = Stacks::default();
            for (frames, count) in some.iter() {
                expected.add(frames.iter().map(|f| Frame::from(drawable(f))).collect(), count);
            }
            prop_assert_eq!(again.folded(), expected.folded());
        }
    }
}
