//! Figure of a bisection's posterior: the probability of each candidate.

use super::axis::Axis;
use super::draw::Draw;
use super::frame::{self, Frame, LABEL_SIZE, LINE};
use super::svg::{Anchor, INK, Sheet, TextStyle};
use super::text::shorten;

/// Posterior over candidates in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Posterior {
    /// Title.
    pub title: String,
    /// Names of the candidates.
    pub labels: Vec<String>,
    /// Probability that the change is in each candidate.
    pub probabilities: Vec<f64>,
    /// Number of runs of each candidate.
    pub runs: Vec<usize>,
    /// Line under the figure.
    pub footnote: Option<String>,
}

/// Palette indices of the most probable candidate and of the others.
const MOST: usize = 1;
const OTHERS: usize = 0;
/// Maximum number of labels under the axis, and the width of one in pixels.
const LABELS: usize = 8;
const ROOM: f64 = 96.0;

impl Draw for Posterior {
    fn draw(&self, width: f64) -> Sheet {
        let y = Axis::from_zero(100.0, "%");
        let frame = Frame {
            title: &self.title,
            legend: Vec::new(),
            y_label: "probability that the change came here",
            y: &y,
            right: None,
            x_label: "candidate, in order; marks: runs of it",
            footnote: self.footnote.as_deref(),
            width,
        };
        let (mut svg, plot) = frame.open(0.0, 7.0 + LABEL_SIZE * LINE);
        let count = self.probabilities.len().max(1);
        let slot = (plot.right - plot.left - 20.0) / count as f64;
        let x_of = |index: usize| plot.left + 10.0 + (index as f64 + 0.5) * slot;
        let most = (0..self.probabilities.len())
            .max_by(|&a, &b| self.probabilities[a].total_cmp(&self.probabilities[b]));
        let label = |index: usize| self.labels.get(index).map_or("", String::as_str);
        let bar = (0.8 * slot).clamp(1.0, 24.0);
        let busiest = self.runs.iter().copied().max().unwrap_or(0).max(1) as f64;
        for (index, &probability) in self.probabilities.iter().enumerate() {
            let top = plot.y(&y, 100.0 * probability.clamp(0.0, 1.0));
            let runs = self.runs.get(index).copied().unwrap_or(0);
            let tip = format!("{}: {:.1} %, {runs} runs", label(index), 100.0 * probability);
            if plot.bottom - top >= 0.5 {
                let series = if Some(index) == most { MOST } else { OTHERS };
                let size = (bar, plot.bottom - top);
                let corner = (x_of(index) - bar / 2.0, top);
                svg.rect(corner, size, &frame::bar_style(series), &tip);
            }
            if runs > 0 {
                let radius = 1.5 + 4.0 * (runs as f64 / busiest).sqrt();
                svg.marker((x_of(index), plot.bottom), radius, 6, &tip);
            }
        }
        let most = ((plot.right - plot.left) / ROOM).max(1.0) as usize;
        let step = count.div_ceil(most.min(LABELS)).max(1);
        for index in (0..self.labels.len()).step_by(step) {
            let x = x_of(index);
            svg.line((x, plot.bottom), (x, plot.bottom + 4.0), &format!("stroke=\"{INK}\""));
            let style = TextStyle::new(LABEL_SIZE, Anchor::Middle);
            let text = shorten(label(index), LABEL_SIZE, ROOM);
            svg.text((x, plot.bottom + 5.0 + LABEL_SIZE), &text, style);
        }
        svg.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn posterior_draws_bars_and_run_marks() {
        let figure = Posterior {
            title: "Where <it> changed".into(),
            labels: (0..40).map(|k| format!("r{k}")).collect(),
            probabilities: (0..40).map(|k| if k == 7 { 0.9 } else { 0.1 / 39.0 }).collect(),
            runs: (0..40).map(|k| usize::from(k == 7 || k == 6) * 5).collect(),
            footnote: None,
        };
        let svg = figure.render();
        assert!(svg.contains("Where &lt;it&gt; changed"));
        assert!(svg.contains("r7: 90.0 %, 5 runs") && svg.contains("r6: 0.3 %, 5 runs"));
        // One bar in the colour of the most probable candidate, and a mark for each measured one.
        assert_eq!(svg.matches("#D55E00").count(), 1, "{svg}");
        assert!(
            svg.contains(">r0</text>") && svg.contains(">r5</text>") && !svg.contains(">r6</text>")
        );
        let nothing = Posterior { probabilities: Vec::new(), labels: Vec::new(), ..figure };
        assert!(nothing.render().ends_with("</svg>\n"));
    }
}
