//! Labels of categories under an axis: horizontal if they fit, possibly in several lines, else
//! slanted, else vertical. They never overlap.

use super::frame::{LABEL_SIZE, LINE};
use super::svg::{Anchor, Svg, TextStyle};
use super::text::{shorten, widest, wrap};

/// Maximum number of lines of a label.
const MAX_LINES: usize = 4;
/// Maximum length of a line of a slanted or vertical label, in pixels.
const MAX_TURNED: f64 = 210.0;
/// Angles of turned labels, in degrees.
const SLANT: f64 = 40.0;
const UPRIGHT: f64 = 90.0;
/// Gap between axis and labels.
const GAP: f64 = 7.0;
/// Height of one line.
const STEP: f64 = LABEL_SIZE * LINE;

/// Labels laid out for slots of equal width.
pub(super) struct XLabels {
    lines: Vec<Vec<String>>,
    /// Angle of the text in degrees, rising to the right.
    angle: f64,
    /// Height under the axis.
    pub(super) height: f64,
    /// Extent of the labels to the left of the first slot's middle.
    pub(super) reach: f64,
}

impl XLabels {
    /// Lays `labels` out in slots of `slot` pixels: in the first orientation in which none is cut,
    /// else vertically and cut.
    pub(super) fn layout(labels: &[String], slot: f64) -> XLabels {
        let level: Vec<Vec<String>> =
            labels.iter().map(|label| wrap(label, LABEL_SIZE, slot - 10.0)).collect();
        if level.iter().all(|lines| lines.len() <= MAX_LINES && is_whole(lines)) {
            let most = level.iter().map(Vec::len).max().unwrap_or(1);
            let reach = level.first().map_or(0.0, |lines| widest(lines, LABEL_SIZE) / 2.0);
            let height = GAP + most as f64 * STEP;
            return XLabels { lines: level, angle: 0.0, height, reach };
        }
        // Lines of neighbours need a distance across the slant.
        let room = (slot * SLANT.to_radians().sin() / STEP) as usize;
        if room > 0 {
            let slanted = XLabels::turned(labels, slot, SLANT, room);
            if slanted.lines.iter().all(|lines| is_whole(lines)) {
                return slanted;
            }
        }
        XLabels::turned(labels, slot, UPRIGHT, ((slot / STEP) as usize).max(1))
    }

    /// Labels of at most `room` lines at an angle.
    fn turned(labels: &[String], slot: f64, angle: f64, room: usize) -> XLabels {
        let (sin, cos) = angle.to_radians().sin_cos();
        let room = room.min(MAX_LINES);
        let lines: Vec<Vec<String>> = labels.iter().map(|label| short_lines(label, room)).collect();
        let most = lines.iter().map(Vec::len).max().unwrap_or(1) as f64;
        let widths = || lines.iter().map(|lines| widest(lines, LABEL_SIZE));
        let height = GAP + widths().fold(0.0, f64::max) * sin + most * STEP * cos;
        // A later label can extend further left than the first one.
        let reach = widths()
            .enumerate()
            .map(|(i, width)| width * cos + most * STEP * sin - i as f64 * slot)
            .fold(0.0, f64::max);
        XLabels { lines, angle, height, reach }
    }

    /// Draws the labels at the middles of their slots, under `y`.
    pub(super) fn draw(&self, svg: &mut Svg, middles: &[f64], y: f64) {
        for (lines, &x) in self.lines.iter().zip(middles) {
            let count = lines.len() as f64;
            for (i, line) in lines.iter().enumerate() {
                let i = i as f64;
                let level = TextStyle::new(LABEL_SIZE, Anchor::Middle);
                if self.angle == 0.0 {
                    svg.text((x, y + GAP + LABEL_SIZE + i * STEP - 2.0), line, level);
                    continue;
                }
                // The block's right end is at the middle of the slot; its lines follow each other
                // across the slant.
                let (sin, cos) = self.angle.to_radians().sin_cos();
                let across = (i - (count - 1.0) / 2.0) * STEP + 0.35 * LABEL_SIZE;
                let lift = (count - 1.0) / 2.0 * STEP * cos;
                let at = (x + across * sin, y + GAP + lift + across * cos + 2.0);
                let style = TextStyle { anchor: Anchor::End, rotate: -self.angle, ..level };
                svg.text(at, line, style);
            }
        }
    }
}

/// Breaks a label into at most `room` lines that are as short as possible.
fn short_lines(label: &str, room: usize) -> Vec<String> {
    let mut limit = 60.0;
    while limit < MAX_TURNED {
        let lines = wrap(label, LABEL_SIZE, limit);
        if lines.len() <= room && is_whole(&lines) {
            return lines;
        }
        limit += 10.0;
    }
    let mut lines = wrap(label, LABEL_SIZE, MAX_TURNED);
    if lines.len() > room {
        let rest = lines.split_off(room - 1).join(" ") + "…";
        lines.push(shorten(&rest, LABEL_SIZE, MAX_TURNED));
    }
    lines
}

fn is_whole(lines: &[String]) -> bool {
    lines.iter().all(|line| !line.ends_with('…'))
}
