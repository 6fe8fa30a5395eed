//! Converts flame graphs of flamegraph.pl (<https://github.com/brendangregg/FlameGraph>) and
//! inferno back to stacks.
//!
//! The title of a rectangle has its count (until 2013, the text shown under the pointer). The caller is the rectangle below it (above it in an
//! icicle graph). Frames that a graph omits as too narrow count as the caller's own.

use super::svg_elements::{Rectangle, drawn};
use super::{Notes, ProfileError};
use crate::stacks::{Frame, Names, Stacks};

/// Frame for samples of the whole that no part has.
const TOO_NARROW: &str = "[too narrow to be drawn]";

/// Returns true for the beginning of an SVG document.
pub(super) fn is_svg(text: &str) -> bool {
    let text = text.trim_start();
    text.starts_with("<svg") || (text.starts_with("<?xml") && text.contains("<svg"))
}

pub(super) fn read(text: &str, notes: &mut Notes) -> Result<Stacks, ProfileError> {
    if !text.trim_end().ends_with("</svg>") {
        notes.remark("the end of the picture is missing: the file was cut off");
    }
    let (rectangles, unreadable) = drawn(text);
    if rectangles.is_empty() {
        return Err(ProfileError::Picture);
    }
    notes.read = rectangles.len();
    let first = unreadable.first().map_or(0, |at| 1 + text[..*at].matches('\n').count());
    for _ in &unreadable {
        notes.unusable(first, "rectangles without a count (they count as their callers)");
    }
    if let Some(first) = rectangles.first() {
        notes.unit.clone_from(&first.unit);
    }
    if rectangles.iter().any(|drawn| drawn.is_differential) {
        notes.remark("a difference of two profiles: only the second can be read from it");
    }
    let rows = rows(rectangles);
    let tree = Tree::grow(&rows, notes);
    let stacks = tree.stacks(&rows);
    let narrow = stacks.count(&[Frame::from(TOO_NARROW)]);
    if narrow > 0 {
        let share = 100.0 * narrow as f64 / stacks.total() as f64;
        notes.remark(format!(
            "{narrow} {} ({share:.2} %) are in no rectangle of the first row: too narrow to be drawn",
            notes.unit
        ));
    }
    Ok(stacks)
}

/// Rectangles by their distance from the root, each row from left to right.
fn rows(mut all: Vec<Rectangle>) -> Vec<Vec<Rectangle>> {
    all.sort_by(|a, b| a.y.total_cmp(&b.y).then(a.left.total_cmp(&b.left)));
    let mut rows: Vec<Vec<Rectangle>> = Vec::new();
    for drawn in all {
        match rows.last_mut() {
            Some(row) if row.first().is_some_and(|first| first.y == drawn.y) => row.push(drawn),
            _ => rows.push(vec![drawn]),
        }
    }
    // Flames grow from the lowest row, icicles from the highest: the root row has all samples.
    let counted = |row: Option<&Vec<Rectangle>>| {
        row.map_or(0, |row| row.iter().fold(0_u64, |sum, d| sum.saturating_add(d.count)))
    };
    if counted(rows.last()) >= counted(rows.first()) {
        rows.reverse();
    }
    rows
}

/// Calling relation between the rectangles.
struct Tree {
    /// For each row, the callers' indices in the previous row. `None` in the first row, and for
    /// rectangles without a caller.
    callers: Vec<Vec<Option<usize>>>,
    /// For each row, the rectangles' own samples.
    own: Vec<Vec<u64>>,
}

impl Tree {
    fn grow(rows: &[Vec<Rectangle>], notes: &mut Notes) -> Tree {
        let counts = |row: &Vec<Rectangle>| row.iter().map(|drawn| drawn.count).collect();
        let mut own: Vec<Vec<u64>> = rows.iter().map(counts).collect();
        let mut callers: Vec<Vec<Option<usize>>> = Vec::new();
        let (mut orphans, mut exceeded) = (0, 0);
        for (depth, row) in rows.iter().enumerate() {
            let mut row_callers = Vec::with_capacity(row.len());
            for drawn in row {
                let Some(depth) = depth.checked_sub(1) else {
                    row_callers.push(None);
                    continue;
                };
                let caller = caller(drawn, &rows[depth], &own[depth]);
                match caller {
                    None => orphans += 1,
                    Some(at) => {
                        let left = &mut own[depth][at];
                        exceeded += usize::from(drawn.count > *left);
                        *left = left.saturating_sub(drawn.count);
                    }
                }
                row_callers.push(caller);
            }
            callers.push(row_callers);
        }
        for (count, what) in [
            (orphans, "stand on no other and were taken for roots"),
            (exceeded, "are wider than what they stand on has left"),
        ] {
            if count > 0 {
                notes.remark(format!("{count} rectangles {what}: the totals may be wrong"));
            }
        }
        Tree { callers, own }
    }

    /// Stacks without the root row "all".
    fn stacks(&self, rows: &[Vec<Rectangle>]) -> Stacks {
        let mut stacks = Stacks::default();
        let mut names = Names::default();
        for (depth, row) in rows.iter().enumerate() {
            for (at, drawn) in row.iter().enumerate() {
                let mut frames = vec![names.function(&drawn.name)];
                let (mut below, mut caller) = (depth, self.callers[depth][at]);
                while let Some(at) = caller {
                    below -= 1;
                    frames.push(names.function(&rows[below][at].name));
                    caller = self.callers[below][at];
                }
                if frames.last().is_some_and(|root| is_all(root)) {
                    frames.pop();
                }
                if frames.is_empty() {
                    frames.push(names.frame(TOO_NARROW));
                }
                frames.reverse();
                stacks.add(frames, self.own[depth][at]);
            }
        }
        stacks
    }
}

/// Returns true for the root that drawing tools add.
fn is_all(name: &str) -> bool {
    matches!(name, "all" | "all samples" | "")
}

/// Caller of `drawn` in the previous row: the rectangle with the largest common width. If several
/// are equal (all are rounded), the first one with enough samples `left`.
fn caller(drawn: &Rectangle, row: &[Rectangle], left: &[u64]) -> Option<usize> {
    let slack = drawn.tolerance;
    let start = row.partition_point(|below| below.right + slack < drawn.left);
    let mut best: Option<(usize, f64)> = None;
    for (at, below) in row.iter().enumerate().skip(start) {
        if below.left > drawn.right + slack {
            break;
        }
        let common = drawn.right.min(below.right) - drawn.left.max(below.left);
        let better = match best {
            None => common >= -slack,
            Some((best_at, most)) if (common - most).abs() <= slack => {
                left[best_at] < drawn.count && left[at] >= drawn.count
            }
            Some((_, most)) => common > most,
        };
        if better {
            best = Some((at, common));
        }
    }
    best.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use crate::{Format, ProfileError, read};

    fn picture(rectangles: &[(&str, u64, f64, u32, f64)]) -> String {
        let body: String = rectangles
            .iter()
            .map(|(name, count, x, y, width)| {
                format!(
                    "<g >\n<title>{name} ({count} samples, 1.00%)</title>\
                     <rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"15.0\"/>\n</g>\n"
                )
            })
            .collect();
        format!("<?xml version=\"1.0\"?>\n<svg width=\"1200\">\n{body}</svg>\n")
    }

    const FLAMES: &[(&str, u64, f64, u32, f64)] = &[
        ("b", 30, 10.0, 33, 300.0),
        ("all", 100, 10.0, 65, 1000.0),
        ("a", 60, 10.0, 49, 600.0),
        ("b", 39, 610.0, 49, 390.0),
        ("a", 39, 610.0, 33, 390.0),
    ];

    #[test]
    fn svg_rectangles_become_stacks() {
        let profile = read(picture(FLAMES).as_bytes()).unwrap();
        assert_eq!(profile.format, Format::FlameGraph);
        let folded = "[too narrow to be drawn] 1\na 30\na;b 30\nb;a 39\n";
        assert_eq!(profile.stacks().unwrap().folded(), folded);
        assert!(profile.remarks[0].contains("1 samples (1.00 %)"), "{:?}", profile.remarks);
        let icicle: Vec<_> =
            FLAMES.iter().map(|(name, count, x, y, w)| (*name, *count, *x, 100 - y, *w)).collect();
        assert_eq!(read(picture(&icicle).as_bytes()).unwrap().stacks().unwrap().folded(), folded);
    }

    #[test]
    fn svg_remarks_on_orphans_and_wide_rectangles() {
        let mut broken = FLAMES.to_vec();
        broken[4].2 = 1100.0;
        broken[0].1 = 61;
        let profile = read(picture(&broken).as_bytes()).unwrap();
        let remarks = profile.remarks.join("\n");
        assert!(remarks.contains("1 rectangles stand on no other"), "{remarks}");
        assert!(remarks.contains("1 rectangles are wider"), "{remarks}");
    }

    #[test]
    fn svg_remarks_on_truncated_files() {
        let text = picture(FLAMES);
        let profile = read(&text.as_bytes()[..text.len() - 90]).unwrap();
        assert!(profile.remarks[0].contains("cut off"), "{:?}", profile.remarks);
    }

    #[test]
    fn svg_of_2011_has_counts_in_texts_for_the_pointer() {
        let rect = |name: &str, count: u32, x: u32, y: u32| {
            let info =
                format!("onmouseover=\"s('{name} ({count} samples, 1%)')\" onmouseout=\"c()\"");
            let place = format!("x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"15.0\"", 10 * count);
            [
                format!("<rect {place} rx=\"2\" {info} />\n<text x=\"3\" {info} >{name}</text>\n"),
                format!("<g class=\"func_g\" {info}>\n<rect {place} rx=\"2\" />\n</g>\n"),
            ]
        };
        let all = [
            rect("all samples", 50, 10, 65),
            rect("kernel`ip_input", 30, 10, 49),
            rect("kernel`cpu_idle", 20, 310, 49),
        ];
        for form in 0..2 {
            let body: String = all.iter().map(|rect| rect[form].as_str()).collect();
            let text = format!("<?xml version=\"1.0\"?>\n<svg width=\"1200\">\n{body}</svg>\n");
            let profile = read(text.as_bytes()).unwrap();
            assert_eq!(profile.stacks().unwrap().folded(), "cpu_idle 20\nip_input 30\n");
            assert!(profile.notes().is_empty(), "{:?}", profile.notes());
        }
    }

    #[test]
    fn svg_without_counts_is_refused() {
        let graph =
            "<svg width=\"9\">\n<g id=\"node1\"><title>main</title><polygon/></g>\n</svg>\n";
        assert_eq!(read(graph.as_bytes()), Err(ProfileError::Picture));
        let lost = picture(FLAMES).replace("b (30 samples, 1.00%)", "thirty");
        let profile = read(lost.as_bytes()).unwrap();
        assert!(profile.notes().iter().any(|note| note.contains("1 rectangles without a count")));
        let most = lost.replace("a (", "a [").replace("b (", "b [");
        assert!(matches!(read(most.as_bytes()), Err(ProfileError::Unusable { line: 4, .. })));
    }
}
