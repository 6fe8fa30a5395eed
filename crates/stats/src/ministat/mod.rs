//! Output of ministat(1), byte for byte, for each of its generations.
//!
//! Ten years of published forwarding benchmarks quote this output, so it can verify old results and
//! present new ones to people used to it. FreeBSD changed the numbers three times; [`Generation`]
//! selects the rules.
//!
//! This module contains the numbers and their text ([`Page`], and [`render`] for values in memory)
//! and the reading of files ([`Set::read`]), both fit for tens of millions of values. The command
//! line and its messages are in the binary.
//!
//! For decisions use [`super::blocked`]: ministat's test pools variances, ignores blocks and prints
//! "No difference proven" without the detectable difference.

mod number;
mod plot;
mod read;
mod set;
mod sort;
mod table;

pub use number::number;
pub use read::{ReadOptions, read_values};
pub use set::Set;
pub use table::CONFIDENCES;

use super::cformat::general;
use plot::Plot;
use set::Moments;
use std::io::{self, Write};

/// Symbols of the sets, in order; overlaps have the symbol of the OR.
const SYMBOLS: [u8; 8] = *b" x+*%#@O";
/// Maximum number of sets in one text: the number of symbols.
pub const MAX_SETS: usize = 7;
/// Heading of the table.
const HEADING: &[u8] =
    b"    N           Min           Max        Median           Avg        Stddev\n";

/// Named values in memory.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// Name in the legend.
    pub name: String,
    /// The values in their order.
    pub values: Vec<f64>,
}

/// Options of the output.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Confidence in percent: 80, 90, 95, 98, 99 or 99.5 (`-c`).
    pub confidence: f64,
    /// Cells between the plot's borders (`-w`). Below 2 the original's behaviour is undefined if
    /// there is something to plot.
    pub width: usize,
    /// One line of bars per set (`-s`).
    pub separate_bars: bool,
    /// No plot (`-A`, `-n`).
    pub no_plot: bool,
    /// No difference tests (`-n`).
    pub no_tests: bool,
    /// No legend and no heading of the table (`-q`).
    pub quiet: bool,
    /// Rules to follow.
    pub generation: Generation,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            confidence: 95.0,
            width: 74,
            separate_bars: false,
            no_plot: false,
            no_tests: false,
            quiet: false,
            generation: Generation::default(),
        }
    }
}

/// Rules, named by the FreeBSD release whose ministat follows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// FreeBSD up to 10.
    Fbsd10,
    /// Debian's 20150715: FreeBSD 10's numbers, and any white space may end a line.
    Debian,
    /// FreeBSD 11.0 and head of 2016.
    Fbsd11_0,
    /// FreeBSD 12, since November 2016.
    Fbsd12,
    /// FreeBSD 13 and 14.
    #[default]
    Fbsd14,
    /// FreeBSD 15.
    Fbsd15,
}

impl Generation {
    /// All generations, oldest first.
    pub const ALL: [Generation; 6] = [
        Generation::Fbsd10,
        Generation::Debian,
        Generation::Fbsd11_0,
        Generation::Fbsd12,
        Generation::Fbsd14,
        Generation::Fbsd15,
    ];

    /// Returns the name on the command line: `fbsd10`, `fbsd11.0`, ...
    pub fn name(self) -> &'static str {
        match self {
            Generation::Fbsd10 => "fbsd10",
            Generation::Debian => "debian",
            Generation::Fbsd11_0 => "fbsd11.0",
            Generation::Fbsd12 => "fbsd12",
            Generation::Fbsd14 => "fbsd14",
            Generation::Fbsd15 => "fbsd15",
        }
    }

    /// Returns the generations of FreeBSD's releases, oldest first.
    pub fn of_freebsd() -> impl DoubleEndedIterator<Item = Generation> {
        Generation::ALL.into_iter().filter(|&generation| generation != Generation::Debian)
    }

    /// Returns the generation with this [`Generation::name`].
    pub fn by_name(name: &str) -> Option<Generation> {
        Generation::ALL.into_iter().find(|generation| generation.name() == name)
    }

    /// Returns the rules as data.
    fn rules(self) -> Rules {
        Rules {
            upper_median: self <= Generation::Debian,
            variance: match self {
                Generation::Fbsd10 | Generation::Debian | Generation::Fbsd11_0 => Variance::OnePass,
                Generation::Fbsd12 => Variance::OnePassClamped,
                Generation::Fbsd14 | Generation::Fbsd15 => Variance::TwoPass,
            },
            percent_error_of_ratio: self >= Generation::Fbsd12,
        }
    }
}

/// Differences between the generations' numbers.
struct Rules {
    /// The median of an even number of values is the upper of the middle two, not their mean.
    upper_median: bool,
    variance: Variance,
    /// The percent error is the ratio's own, not the difference's divided by the reference's
    /// average (since 2016-11-05).
    percent_error_of_ratio: bool,
}

enum Variance {
    /// From running sums in file order; rounding may make it negative.
    OnePass,
    /// The same, but never negative.
    OnePassClamped,
    /// Squared distances from the average, over the sorted values.
    TwoPass,
}

/// Reason why nothing can be printed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MinistatError {
    /// More than seven sets.
    #[error("Too many datasets.")]
    TooManySets,
    /// A set of fewer than three values.
    #[error("Dataset {name} must contain at least 3 data points")]
    TooFewPoints {
        /// Name of the set.
        name: String,
    },
    /// A confidence that is not in the table.
    #[error("No support for confidence level")]
    Confidence,
    /// A width of 0 or 1, where the original's behaviour is undefined.
    #[error("the width of the plot must be at least 2")]
    Width,
    /// Not a number (see [`read_values`]).
    #[error("Invalid data on line {line}")]
    InvalidData {
        /// Line, from 1.
        line: usize,
        /// Token, as the generation reads it.
        token: Vec<u8>,
    },
}

/// Returns the whole text for `sets`, as ministat prints it to standard output.
///
/// # Errors
/// Same as [`Page::of`], and a set of fewer than three values.
pub fn render(sets: &[DataSet], options: &Options) -> Result<String, MinistatError> {
    let sets = sets
        .iter()
        .map(|set| Set::new(set.name.as_str(), &set.values))
        .collect::<Result<Vec<Set>, MinistatError>>()?;
    let mut text = Vec::new();
    // Writing to a vector cannot fail, and names that were text remain text.
    let _ = Page::of(&sets, options)?.write_to(&mut text);
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// A validated text, ready to be written.
pub struct Page<'a> {
    sets: &'a [Set],
    moments: Vec<Moments<'a>>,
    plot: Option<Plot>,
    options: Options,
    /// Column of the table of Student's t.
    column: usize,
}

impl Page<'_> {
    /// Creates the text for `sets`.
    ///
    /// # Errors
    /// More than seven sets, an unknown confidence, a width below 2 if there is something to plot.
    pub fn of<'a>(sets: &'a [Set], options: &Options) -> Result<Page<'a>, MinistatError> {
        if sets.len() > MAX_SETS {
            return Err(MinistatError::TooManySets);
        }
        let column = table::column(options.confidence).ok_or(MinistatError::Confidence)?;
        let rules = options.generation.rules();
        let moments: Vec<Moments> = sets.iter().map(|set| Moments::of(set, &rules)).collect();
        let plot = !options.no_plot && !sets.is_empty();
        let plot = plot.then(|| Plot::of(&moments, options)).transpose()?;
        Ok(Page { sets, moments, plot, options: *options, column })
    }

    /// Writes the text. Plots of big sets have as many lines as their fullest column has values:
    /// use a buffer for writers that are slow for small writes.
    ///
    /// # Errors
    /// If writing fails.
    pub fn write_to(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(reference) = self.moments.first() else { return Ok(()) };
        if !self.options.quiet {
            for (&symbol, set) in SYMBOLS[1..].iter().zip(self.sets) {
                out.write_all(&[&[symbol, b' '], set.name(), b"\n"].concat())?;
            }
        }
        if let Some(plot) = &self.plot {
            plot.write_to(out)?;
        }
        if !self.options.quiet {
            out.write_all(HEADING)?;
        }
        for (index, (&symbol, set)) in SYMBOLS[1..].iter().zip(&self.moments).enumerate() {
            set.write_line(symbol, out)?;
            if index > 0 && !self.options.no_tests {
                out.write_all(self.difference(set, reference).as_bytes())?;
            }
        }
        Ok(())
    }

    /// Tests a set against the first one, with Student's pooled variance.
    fn difference(&self, set: &Moments, reference: &Moments) -> String {
        let confidence = self.options.confidence;
        let (n1, v1, avg1) = (reference.n(), reference.variance, reference.average);
        let (n2, v2, avg2) = (set.n(), set.variance, set.average);
        let freedom = n1 + n2 - 2.0;
        let t = table::student(freedom as usize, self.column);
        let pooled = (((n2 - 1.0) * v2 + (n1 - 1.0) * v1) / freedom).sqrt();
        let error = t * (pooled * (1.0 / n2 + 1.0 / n1).sqrt());
        let change = avg2 - avg1;
        let proven = change.abs() > error;
        if !proven {
            return format!("No difference proven at {confidence:.1}% confidence\n");
        }
        let relative_error = if self.options.generation.rules().percent_error_of_ratio {
            let sum = (n2 - 1.0) * v2 + (((n1 - 1.0) * v1) * (avg2 * avg2)) / (avg1 * avg1);
            t * (sum * ((n1 + n2) / (n1 * n2 * (n1 + n2 - 2.0)))).sqrt()
        } else {
            error
        };
        format!(
            "Difference at {confidence:.1}% confidence\n\
             \t{} +/- {}\n\
             \t{}% +/- {}%\n\
             \t(Student's t, pooled s = {})\n",
            general(change, 6),
            general(error, 6),
            general(change * 100.0 / avg1, 6),
            general(relative_error * 100.0 / avg1, 6),
            general(pooled, 6),
        )
    }
}

#[cfg(test)]
mod tests;
