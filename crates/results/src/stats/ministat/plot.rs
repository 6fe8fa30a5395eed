//! The plot, with what the original does that nobody planned.
//!
//! Two of its properties look like mistakes here and are not: the plot is as
//! high as the stacks of the *last* set need, so taller stacks of earlier sets
//! are cut; and where sets meet in one cell it shows the symbol of the bitwise
//! OR of their numbers. Published text depends on both.

use super::{Moments, Options, SYMBOLS};

/// Start of the search for the smallest value; values beyond it leave it there.
const BEYOND: f64 = 999e99;

pub(super) struct Plot {
    width: usize,
    span: f64,
    x0: f64,
    dx: f64,
    /// Rows above the bars, the lowest first; each cell holds the OR of set
    /// numbers.
    rows: Vec<Vec<usize>>,
    bars: Vec<Vec<char>>,
}

impl Plot {
    pub(super) fn of(sets: &[Moments], options: &Options) -> Plot {
        let (min, max) = range(sets);
        let span = max - min;
        let dx = span / (options.width as f64 - 1.0);
        let lines = if options.separate_bars { sets.len() } else { 1 };
        let mut plot = Plot {
            width: options.width,
            span,
            x0: min - 0.5 * dx,
            dx,
            rows: Vec::new(),
            bars: vec![vec![' '; options.width]; lines],
        };
        if span != 0.0 {
            for (index, set) in sets.iter().enumerate() {
                plot.stack(set, index + 1);
                plot.draw_bar(set, if options.separate_bars { index } else { 0 });
            }
        }
        plot
    }

    pub(super) fn render(&self) -> String {
        if self.span == 0.0 {
            return "[no plot, span is zero width]\n".into();
        }
        let border = format!("+{}+\n", "-".repeat(self.width));
        let mut text = border.clone();
        for row in self.rows.iter().rev() {
            text.push('|');
            text.extend(row.iter().map(|&set_numbers| SYMBOLS[set_numbers]));
            text.push_str("|\n");
        }
        for bar in &self.bars {
            text.push('|');
            text.extend(bar);
            text.push_str("|\n");
        }
        text + &border
    }

    /// Piles the set's values up, equal cells on top of each other.
    fn stack(&mut self, set: &Moments, number: usize) {
        let mut piles: Vec<(Option<usize>, usize)> = Vec::with_capacity(set.sorted.len());
        for &value in &set.sorted {
            let bin = self.bin(value);
            let level = match piles.last() {
                Some(&(previous, level)) if previous == bin => level + 1,
                _ => 0,
            };
            piles.push((bin, level));
        }
        let height = piles.iter().map(|&(_, level)| level + 1).max().unwrap_or(1);
        self.rows.resize(height, vec![0; self.width]);
        for (bin, level) in piles {
            if let Some(bin) = bin {
                self.rows[level][bin] |= number;
            }
        }
    }

    /// Draws standard deviation, median and average over what is there.
    fn draw_bar(&mut self, set: &Moments, line: usize) {
        let (median, average) = (self.bin(set.median), self.bin(set.average));
        let ends = (self.bin(set.average - set.stddev()), self.bin(set.average + set.stddev()));
        let bar = &mut self.bars[line];
        if let (Some(from), Some(to)) = ends {
            bar[to] = '|';
            bar[from] = '|';
            for cell in bar.iter_mut().take(to).skip(from + 1).filter(|cell| **cell == ' ') {
                *cell = '_';
            }
        }
        for (bin, symbol) in [(median, 'M'), (average, 'A')] {
            if let Some(bin) = bin {
                bar[bin] = symbol;
            }
        }
    }

    /// Cell of a value; none outside the plot, where the original writes into
    /// foreign memory.
    fn bin(&self, value: f64) -> Option<usize> {
        let bin = ((value - self.x0) / self.dx).trunc();
        (bin >= 0.0 && bin < self.width as f64).then_some(bin as usize)
    }
}

fn range(sets: &[Moments]) -> (f64, f64) {
    let (mut min, mut max) = (BEYOND, -BEYOND);
    for set in sets {
        let (average, stddev) = (set.average, set.stddev());
        for value in [set.min(), set.max(), average - stddev, average + stddev] {
            // Comparisons that a NaN never passes.
            if value < min {
                min = value;
            }
            if value > max {
                max = value;
            }
        }
    }
    (min, max)
}
