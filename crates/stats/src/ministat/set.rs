//! One set of values with its statistics.

use super::read::{self, FileValues};
use super::sort::sorted;
use super::{MinistatError, ReadOptions, Rules, Variance};
use crate::cformat::general;
use std::io::{self, Read, Write};

/// Fewest values of a set.
const MIN_VALUES: usize = 3;

/// A named set of at least three sorted values. It takes eight bytes per value.
#[derive(Clone, Debug)]
pub struct Set {
    name: Vec<u8>,
    sorted: Vec<f64>,
    /// Both sums are computed in input order: the last printed digit depends on it.
    sum: f64,
    squares: f64,
}

impl Set {
    /// Creates the set of `values` in their order. The name is the legend's: the file as given on
    /// the command line, which need not be UTF-8.
    ///
    /// # Errors
    /// [`MinistatError::TooFewPoints`] for fewer than three values.
    pub fn new(name: impl Into<Vec<u8>>, values: &[f64]) -> Result<Set, MinistatError> {
        let mut gathered = FileValues::default();
        gathered.add(values);
        Set::of(name.into(), gathered)
    }

    /// Reads the set of the values in a file. An unreadable part (a directory, for example) ends
    /// the file, as in the original.
    ///
    /// # Errors
    /// [`MinistatError::InvalidData`] for a token that isn't a number,
    /// [`MinistatError::TooFewPoints`] for fewer than three values.
    pub fn read(
        name: impl Into<Vec<u8>>,
        input: impl Read,
        options: &ReadOptions,
    ) -> Result<Set, MinistatError> {
        Set::of(name.into(), read::read(input, options)?)
    }

    fn of(name: Vec<u8>, gathered: FileValues) -> Result<Set, MinistatError> {
        let FileValues { values, sum, squares, .. } = gathered;
        if values.len() < MIN_VALUES {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(MinistatError::TooFewPoints { name });
        }
        Ok(Set { name, sorted: sorted(values), sum, squares })
    }

    pub(super) fn name(&self) -> &[u8] {
        &self.name
    }
}

/// Statistics of one set.
pub(super) struct Moments<'a> {
    pub(super) sorted: &'a [f64],
    pub(super) median: f64,
    pub(super) average: f64,
    pub(super) variance: f64,
}

impl Moments<'_> {
    pub(super) fn of<'a>(set: &'a Set, rules: &Rules) -> Moments<'a> {
        let sorted = &set.sorted[..];
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 || rules.upper_median {
            sorted[middle]
        } else {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        };
        let n = sorted.len() as f64;
        let average = set.sum / n;
        let freedom = n - 1.0;
        let (squares, square) = (set.squares, set.sum * set.sum / n);
        let variance = match rules.variance {
            Variance::OnePassClamped if squares <= square => 0.0,
            Variance::OnePass | Variance::OnePassClamped => (squares - square) / freedom,
            Variance::TwoPass => {
                sorted.iter().fold(0.0, |sum, v| sum + (v - average) * (v - average)) / freedom
            }
        };
        Moments { sorted, median, average, variance }
    }

    pub(super) fn n(&self) -> f64 {
        self.sorted.len() as f64
    }

    pub(super) fn min(&self) -> f64 {
        self.sorted[0]
    }

    pub(super) fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    pub(super) fn stddev(&self) -> f64 {
        self.variance.sqrt()
    }

    /// Writes the set's line of the table.
    pub(super) fn write_line(&self, symbol: u8, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{} {:>3}", char::from(symbol), self.sorted.len())?;
        for value in [self.min(), self.max(), self.median, self.average, self.stddev()] {
            write!(out, " {:>13}", general(value, 8))?;
        }
        out.write_all(b"\n")
    }
}
