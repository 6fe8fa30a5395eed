//! The plot, including the original's unplanned behaviour.
//!
//! Two properties look like mistakes but are intended, because published text depends on them: the
//! plot is as high as the stacks of the *last* set require, so taller stacks of earlier sets are
//! cut; and where sets meet in one cell the plot shows the symbol of the bitwise OR of their
//! numbers.

use super::set::Moments;
use super::{MinistatError, Options, SYMBOLS};
use std::collections::BTreeSet;
use std::io::{self, Write};

/// Initial value of the search for the minimum; larger values do not change it.
const BEYOND: f64 = 999e99;

pub(super) struct Plot {
    width: usize,
    span: f64,
    x0: f64,
    dx: f64,
    /// Points in each column, one list per set.
    stacks: Vec<Vec<usize>>,
    /// Rows above the bars.
    height: usize,
    bars: Vec<Vec<u8>>,
}

impl Plot {
    /// # Errors
    /// A width below 2, unless there is nothing to draw.
    pub(super) fn of(sets: &[Moments], options: &Options) -> Result<Plot, MinistatError> {
        let (min, max) = range(sets);
        let span = max - min;
        let dx = span / (options.width as f64 - 1.0);
        let mut plot = Plot {
            width: options.width,
            span,
            x0: min - 0.5 * dx,
            dx,
            stacks: Vec::new(),
            height: 0,
            bars: Vec::new(),
        };
        if span == 0.0 {
            return Ok(plot);
        }
        if options.width < 2 {
            return Err(MinistatError::Width);
        }
        let lines = if options.separate_bars { sets.len() } else { 1 };
        plot.bars = vec![vec![b' '; options.width]; lines];
        for (index, set) in sets.iter().enumerate() {
            plot.stack(set);
            plot.draw_bar(set, if options.separate_bars { index } else { 0 });
        }
        Ok(plot)
    }

    pub(super) fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        if self.span == 0.0 {
            return out.write_all(b"[no plot, span is zero width]\n");
        }
        let border = [b"+", &vec![b'-'; self.width][..], b"+\n"].concat();
        out.write_all(&border)?;
        // Big sets have hundreds of thousands of rows, nearly all equal to the row above.
        let changes: BTreeSet<usize> = self.stacks.iter().flatten().copied().collect();
        let mut line = framed(&vec![b' '; self.width]);
        for row in (0..self.height).rev() {
            if changes.contains(&(row + 1)) {
                line = framed(&self.row(row));
            }
            out.write_all(&line)?;
        }
        for bar in &self.bars {
            out.write_all(&framed(bar))?;
        }
        out.write_all(&border)
    }

    /// Returns the cells of a row, counted from the lowest.
    fn row(&self, row: usize) -> Vec<u8> {
        let numbers = |bin| {
            let high = self.stacks.iter().zip(1..).filter(|(stack, _)| stack[bin] > row);
            high.fold(0, |numbers, (_, number): (_, usize)| numbers | number)
        };
        (0..self.width).map(|bin| SYMBOLS[numbers(bin)]).collect()
    }

    /// Stacks the set's values, equal cells on top of each other. Rows above its highest stack are
    /// lost, including earlier sets' values in them.
    fn stack(&mut self, set: &Moments) {
        let mut stack = vec![0; self.width];
        self.height = 0;
        let mut rest = set.sorted;
        while let Some(&first) = rest.first() {
            let bin = self.bin(first);
            // Sorted values have sorted bins.
            let count = rest.partition_point(|&value| self.bin(value) == bin);
            // Values without a bin are not stacked, but still raise the plot.
            self.height = self.height.max(count);
            if let Some(bin) = bin {
                stack[bin] = count;
            }
            rest = &rest[count.max(1)..];
        }
        self.stacks.push(stack);
        for earlier in self.stacks.iter_mut().flatten() {
            *earlier = (*earlier).min(self.height);
        }
    }

    /// Draws standard deviation, median and average over the existing cells.
    fn draw_bar(&mut self, set: &Moments, line: usize) {
        let (median, average) = (self.bin(set.median), self.bin(set.average));
        let ends = (self.bin(set.average - set.stddev()), self.bin(set.average + set.stddev()));
        let bar = &mut self.bars[line];
        if let (Some(from), Some(to)) = ends {
            bar[to] = b'|';
            bar[from] = b'|';
            for cell in bar.iter_mut().take(to).skip(from + 1).filter(|cell| **cell == b' ') {
                *cell = b'_';
            }
        }
        for (bin, symbol) in [(median, b'M'), (average, b'A')] {
            if let Some(bin) = bin {
                bar[bin] = symbol;
            }
        }
    }

    /// Returns the cell of a value; `None` outside the plot, where the original writes out of
    /// bounds.
    fn bin(&self, value: f64) -> Option<usize> {
        let bin = ((value - self.x0) / self.dx).trunc();
        (bin >= 0.0 && bin < self.width as f64).then_some(bin as usize)
    }
}

/// Returns a line of the plot between its borders.
fn framed(cells: &[u8]) -> Vec<u8> {
    [b"|", cells, b"|\n"].concat()
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
