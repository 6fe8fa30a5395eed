//! Tests that no two texts of a figure overlap and that none leaves the page, for any data.

use super::text::width;
use super::*;
use fwdlab_model::units::FrameSize;
use proptest::prelude::*;

/// Bounding box of a text: its four corners.
#[derive(Debug)]
struct Box {
    text: String,
    corners: [(f64, f64); 4],
}

fn attribute(element: &str, name: &str) -> Option<f64> {
    let rest = element.split_once(&format!(" {name}=\""))?.1;
    rest.split_once('"')?.0.parse().ok()
}

/// Boxes of all text elements, computed from their attributes.
fn boxes(svg: &str) -> Vec<Box> {
    svg.lines()
        .filter(|line| line.starts_with("<text "))
        .map(|line| {
            let size = attribute(line, "font-size").unwrap();
            let (x, y) = (attribute(line, "x").unwrap(), attribute(line, "y").unwrap());
            let escaped = line.split_once('>').unwrap().1.strip_suffix("</text>").unwrap();
            let text = escaped
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&#39;", "'")
                .replace("&quot;", "\"")
                .replace("&amp;", "&");
            let w = width(&text, size);
            let start = match line {
                _ if line.contains("\"middle\"") => -w / 2.0,
                _ if line.contains("\"end\"") => -w,
                _ => 0.0,
            };
            let angle: f64 = line
                .split_once("rotate(")
                .map_or(0.0, |(_, rest)| rest.split_once(' ').unwrap().0.parse().unwrap());
            let (sin, cos) = angle.to_radians().sin_cos();
            // Height of capitals and depth of a comma, not of the whole line.
            let (up, down) = (-0.74 * size, 0.15 * size);
            let corners = [(start, up), (start + w, up), (start + w, down), (start, down)]
                .map(|(dx, dy)| (x + dx * cos - dy * sin, y + dx * sin + dy * cos));
            Box { text, corners }
        })
        .filter(|b| !b.text.trim().is_empty())
        .collect()
}

/// Returns true if two boxes overlap by more than a pixel: no side of either box separates them.
fn overlap(a: &Box, b: &Box) -> bool {
    let separated = |by: &Box| {
        (0..4).any(|i| {
            let (p, q) = (by.corners[i], by.corners[(i + 1) % 4]);
            let length = (q.0 - p.0).hypot(q.1 - p.1);
            if length == 0.0 {
                return false;
            }
            let normal = ((q.1 - p.1) / length, (p.0 - q.0) / length);
            let span = |of: &Box| {
                let along = of.corners.map(|c| c.0 * normal.0 + c.1 * normal.1);
                (
                    along.iter().copied().fold(f64::INFINITY, f64::min),
                    along.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                )
            };
            let ((a_low, a_high), (b_low, b_high)) = (span(a), span(b));
            a_high < b_low + 1.0 || b_high < a_low + 1.0
        })
    };
    !separated(a) && !separated(b)
}

fn check(svg: &str) -> Result<(), TestCaseError> {
    let (page_width, page_height) = (attribute(svg, "width"), attribute(svg, "height"));
    let (page_width, page_height) = (page_width.unwrap(), page_height.unwrap());
    let boxes = boxes(svg);
    for (i, a) in boxes.iter().enumerate() {
        for (x, y) in a.corners {
            let inside =
                (-1.0..page_width + 1.0).contains(&x) && (-1.0..page_height + 1.0).contains(&y);
            prop_assert!(inside, "{:?} leaves the page at {x} {y}", a.text);
        }
        for b in &boxes[i + 1..] {
            prop_assert!(!overlap(a, b), "{:?} overlaps {:?}", a.text, b.text);
        }
    }
    prop_assert!(!svg.contains("=\"NaN") && !svg.contains("=\"inf"), "a coordinate isn't a number");
    Ok(())
}

/// Checks the wide and the narrow layout.
fn check_all(figure: &impl Draw) -> Result<(), TestCaseError> {
    let widths = [frame::WIDTH, draw::NARROW];
    widths.into_iter().try_for_each(|width| check(&figure.draw(width).svg))
}

fn label() -> impl Strategy<Value = String> {
    let word = "[a-zA-Z0-9_.<&-]{1,14}";
    prop::collection::vec(word, 1..5).prop_map(|words| words.join(", "))
}

/// A rate with a minimum and a maximum.
fn point() -> impl Strategy<Value = Option<Point>> {
    prop::option::weighted(
        0.9,
        (0.0..1.0f64, 0.0..9.0f64, 0.5..1.0f64).prop_map(|(mantissa, power, low)| {
            let median = mantissa * 10f64.powf(power);
            Point { median_pps: median, min_pps: low * median, max_pps: median / low }
        }),
    )
}

/// A curve that can leave the plot, with a wider band.
fn fit() -> impl Strategy<Value = Option<Fit>> {
    let curve = prop::collection::btree_map(0u32..2_000_000, 0.0..1e9f64, 2..20);
    prop::option::of((curve, any::<bool>()).prop_map(|(curve, holds)| {
        let point = |(x, pps): (u32, f64)| CurvePoint {
            x: f64::from(x),
            pps,
            low_pps: 0.5 * pps,
            high_pps: if holds { 2.0 * pps } else { f64::INFINITY },
        };
        let curve: Vec<CurvePoint> = curve.into_iter().map(point).collect();
        let best = Some((curve[0].x, curve[0].pps));
        Fit { curve, best, confidence: 95.0, holds }
    }))
}

fn series(levels: usize) -> impl Strategy<Value = Vec<Series>> {
    let one = (label(), prop::collection::vec(point(), levels), fit());
    prop::collection::vec(one.prop_map(|(name, points, fit)| Series { name, points, fit }), 1..10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bars_never_overlap_their_labels(
        (labels, series) in (1usize..50).prop_flat_map(|levels| {
            (prop::collection::vec(label(), levels), series(levels))
        }),
        title in label(),
        ceiling_pps in prop::option::of(1e3..1e9f64),
        right in any::<bool>(),
    ) {
        let chart = Chart {
            middle: "median",
            title,
            x_label: "variant".into(),
            x: XAxis::Categories(labels),
            series,
            y: Quantity::Rate,
            right: right.then_some(RightAxis::L2Rate(FrameSize::of(64))),
            ceiling_pps,
            footnote: Some("simulated".into()),
        };
        check_all(&chart)?;
    }

    #[test]
    fn lines_never_overlap_their_labels(
        unit in prop::option::of(label()),
        right in any::<bool>(),
        (levels, series) in (1usize..25).prop_flat_map(|levels| {
            let numbers = prop::collection::btree_set(0u32..2_000_000, levels);
            (numbers, series(levels))
        }),
    ) {
        let levels = levels
            .into_iter()
            .map(|n| (f64::from(n), format!("{n} {}", unit.as_deref().unwrap_or_default())))
            .collect();
        let chart = Chart {
            middle: "median",
            title: "Lines".into(),
            x_label: "routes".into(),
            x: XAxis::Numbers(levels),
            series,
            y: Quantity::Rate,
            right: right.then_some(RightAxis::L2Rate(FrameSize::of(1518))),
            ceiling_pps: None,
            footnote: None,
        };
        check(&chart.render())?;
        // Long units do not fit on the axis of a narrow figure.
        if unit.is_none() {
            check_all(&chart)?;
        }
    }

    #[test]
    fn strips_never_overlap_their_labels(
        runs in prop::collection::vec((0u32..6, 0usize..4, 0.0..1e8f64), 0..60),
        names in prop::collection::vec(label(), 4),
    ) {
        check_all(&Strip::of_runs("Runs", names, &runs))?;
    }

    #[test]
    fn effects_never_overlap_their_labels(
        rows in prop::collection::vec((label(), 0.01..20.0f64, 0.5..1.0f64), 1..20),
        margin in 0.001..0.2f64,
    ) {
        let row = |(label, ratio, low): (String, f64, f64)| Effect {
            label,
            ratio,
            low: low * ratio,
            high: ratio / low,
            runs: vec![ratio],
            found: Found::Better,
            said: format!("{:+.1} %  better", 100.0 * (ratio - 1.0)),
        };
        check_all(&Effects {
            title: "Effects".into(),
            rows: rows.into_iter().map(row).collect(),
            what: "rate".into(),
            margin,
            footnote: "Bars: 95 % intervals; points: single runs.".into(),
        })?;
    }

    #[test]
    fn curves_never_overlap_their_labels(
        curves in prop::collection::vec((label(), prop::collection::vec(0.0..100.0f64, 0..20)), 1..9),
        step in 1.0..1e9f64,
    ) {
        let point = |(at, lost): (usize, f64)| LossPoint {
            load_pps: step * (1 + at) as f64,
            lost,
            least: 0.9 * lost,
            most: 1.1 * lost,
            at_most: 1.2 * lost,
        };
        let curves = curves.into_iter().map(|(name, lost)| LossCurve {
            name,
            points: lost.into_iter().enumerate().map(point).collect(),
        });
        check_all(&Losses { title: "Losses".into(), curves: curves.collect(), footnote: None })?;
    }

    #[test]
    fn revisions_never_overlap_their_labels(
        title in label(),
        points in prop::collection::vec((label(), 1e3..1e8f64, 0.9..1.0f64, any::<bool>()), 0..120),
        breaks in prop::collection::btree_set(1usize..120, 0..12),
        effect in -0.5..0.5f64,
    ) {
        let points: Vec<RevisionPoint> = points
            .into_iter()
            .map(|(label, median, low, patched)| RevisionPoint {
                label,
                median,
                least: low * median,
                most: median / low,
                patched,
            })
            .collect();
        let changes = breaks.into_iter().filter(|at| *at < points.len());
        let figure = Revisions {
            title,
            levels: vec![Level { first: 0, last: points.len().saturating_sub(1), value: 1e6 }],
            changes: changes.map(|at| ChangeMark { at, effect }).collect(),
            points,
            quantity: Quantity::Rate,
            footnote: Some("simulated".into()),
        };
        check_all(&figure)?;
    }
}
