//! The text of ministat(1), byte for byte, as its generations print it.
//!
//! Ten years of published forwarding benchmarks quote this text, so old results
//! can be checked against it and new ones read by people used to it. FreeBSD
//! changed the numbers three times; [`Generation`] selects which rules hold.
//!
//! Here are the numbers ([`render`]) and the reading of files
//! ([`read_values`]); the command line with its messages is the binary's.
//! For decisions see [`super::blocked`]: this test pools variances, knows no
//! blocks and says "No difference proven" without saying what it could have
//! found.

mod plot;
mod read;
mod table;

pub use read::{ReadOptions, read_values};

use super::cformat::general;
use plot::Plot;
use std::fmt::Write as _;

/// Symbols of the sets, in order; overlaps are the symbol of the OR.
const SYMBOLS: [char; 8] = [' ', 'x', '+', '*', '%', '#', '@', 'O'];
/// As many sets as there are symbols.
const MAX_SETS: usize = 7;
/// Fewest values of a set.
const MIN_VALUES: usize = 3;

/// One file's values.
#[derive(Clone, Debug, PartialEq)]
pub struct DataSet {
    /// Name in the legend: the file as given on the command line.
    pub name: String,
    /// The values in the order of the file.
    pub values: Vec<f64>,
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// Confidence in percent: 80, 90, 95, 98, 99 or 99.5 (`-c`).
    pub confidence: f64,
    /// Cells between the plot's borders, at least 2 (`-w`).
    pub width: usize,
    /// A line of bars for each set (`-s`).
    pub separate_bars: bool,
    /// No plot (`-A`, `-n`).
    pub no_plot: bool,
    /// No difference tests (`-n`).
    pub no_tests: bool,
    /// No legend and no heading of the table (`-q`).
    pub quiet: bool,
    /// Whose rules hold.
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

/// Rules by the FreeBSD release whose ministat follows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Generation {
    /// FreeBSD up to 10 (and Debian's 20150715).
    Fbsd10,
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
    pub const ALL: [Generation; 5] = [
        Generation::Fbsd10,
        Generation::Fbsd11_0,
        Generation::Fbsd12,
        Generation::Fbsd14,
        Generation::Fbsd15,
    ];

    /// Name as written on the command line: `fbsd10`, `fbsd11.0`, ...
    pub fn name(self) -> &'static str {
        match self {
            Generation::Fbsd10 => "fbsd10",
            Generation::Fbsd11_0 => "fbsd11.0",
            Generation::Fbsd12 => "fbsd12",
            Generation::Fbsd14 => "fbsd14",
            Generation::Fbsd15 => "fbsd15",
        }
    }

    /// The generation of that [`Generation::name`].
    pub fn by_name(name: &str) -> Option<Generation> {
        Generation::ALL.into_iter().find(|generation| generation.name() == name)
    }

    /// The rules as data.
    fn rules(self) -> Rules {
        Rules {
            upper_median: self == Generation::Fbsd10,
            variance: match self {
                Generation::Fbsd10 | Generation::Fbsd11_0 => Variance::OnePass,
                Generation::Fbsd12 => Variance::OnePassClamped,
                Generation::Fbsd14 | Generation::Fbsd15 => Variance::TwoPass,
            },
            percent_error_of_ratio: self >= Generation::Fbsd12,
        }
    }
}

/// What differs between the generations' numbers.
struct Rules {
    /// The median of an even number of values is the upper of the middle two,
    /// not their mean.
    upper_median: bool,
    variance: Variance,
    /// The percent error is the ratio's own, not the difference's divided by
    /// the reference's average (since 2016-11-05).
    percent_error_of_ratio: bool,
}

enum Variance {
    /// From running sums, in the order of the file; rounding may make it negative.
    OnePass,
    /// The same, but never negative.
    OnePassClamped,
    /// Squared distances from the average, over the sorted values.
    TwoPass,
}

/// Why nothing can be printed.
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
    /// A confidence that the table lacks.
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
        /// What stands there.
        token: String,
    },
}

/// The whole text for `sets`, as ministat prints it to standard output.
///
/// # Errors
/// More than seven sets, a set of fewer than three values, an unknown
/// confidence, a width below 2: nothing is printed then.
pub fn render(sets: &[DataSet], options: &Options) -> Result<String, MinistatError> {
    if sets.is_empty() {
        return Ok(String::new());
    }
    if sets.len() > MAX_SETS {
        return Err(MinistatError::TooManySets);
    }
    if let Some(set) = sets.iter().find(|set| set.values.len() < MIN_VALUES) {
        return Err(MinistatError::TooFewPoints { name: set.name.clone() });
    }
    if options.width < 2 && !options.no_plot {
        return Err(MinistatError::Width);
    }
    let column = table::column(options.confidence).ok_or(MinistatError::Confidence)?;
    let rules = options.generation.rules();
    let moments: Vec<Moments> = sets.iter().map(|set| Moments::of(&set.values, &rules)).collect();

    let mut text = String::new();
    if !options.quiet {
        for (symbol, set) in SYMBOLS[1..].iter().zip(sets) {
            text.push_str(&format!("{symbol} {}\n", set.name));
        }
    }
    if !options.no_plot {
        text.push_str(&Plot::of(&moments, options).render());
    }
    if !options.quiet {
        text.push_str(
            "    N           Min           Max        Median           Avg        Stddev\n",
        );
    }
    for (index, set) in moments.iter().enumerate() {
        text.push_str(&set.line(SYMBOLS[index + 1]));
        if index > 0 && !options.no_tests {
            text.push_str(&difference(set, &moments[0], options.confidence, column, &rules));
        }
    }
    Ok(text)
}

/// What is computed of one set.
struct Moments {
    sorted: Vec<f64>,
    median: f64,
    average: f64,
    variance: f64,
}

impl Moments {
    fn of(values: &[f64], rules: &Rules) -> Moments {
        let n = values.len();
        let mut sorted = values.to_vec();
        // NaN last: a total order, which the sort relies on for longer inputs.
        sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())));
        let median = if n % 2 == 1 || rules.upper_median {
            sorted[n / 2]
        } else {
            (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0
        };
        // Every sum runs in the original's order: the last printed digit
        // depends on it.
        let sum = values.iter().fold(0.0, |sum, v| sum + v);
        let average = sum / n as f64;
        let freedom = n as f64 - 1.0;
        let one_pass = || {
            let squares = values.iter().fold(0.0, |sum, v| sum + v * v);
            (squares, sum * sum / n as f64)
        };
        let variance = match rules.variance {
            Variance::OnePass => {
                let (squares, square) = one_pass();
                (squares - square) / freedom
            }
            Variance::OnePassClamped => match one_pass() {
                (squares, square) if squares <= square => 0.0,
                (squares, square) => (squares - square) / freedom,
            },
            Variance::TwoPass => {
                sorted.iter().fold(0.0, |sum, v| sum + (v - average) * (v - average)) / freedom
            }
        };
        Moments { sorted, median, average, variance }
    }

    fn n(&self) -> f64 {
        self.sorted.len() as f64
    }

    fn min(&self) -> f64 {
        self.sorted[0]
    }

    fn max(&self) -> f64 {
        self.sorted[self.sorted.len() - 1]
    }

    fn stddev(&self) -> f64 {
        self.variance.sqrt()
    }

    fn line(&self, symbol: char) -> String {
        let mut line = format!("{symbol} {:>3}", self.sorted.len());
        for value in [self.min(), self.max(), self.median, self.average, self.stddev()] {
            // Writing to a String can't fail.
            let _ = write!(line, " {:>13}", general(value, 8));
        }
        line.push('\n');
        line
    }
}

/// The test of a set against the first one, pooled as Student does.
fn difference(
    set: &Moments,
    reference: &Moments,
    confidence: f64,
    column: usize,
    rules: &Rules,
) -> String {
    let (n1, v1, avg1) = (reference.n(), reference.variance, reference.average);
    let (n2, v2, avg2) = (set.n(), set.variance, set.average);
    let freedom = n1 + n2 - 2.0;
    let t = table::student(freedom as usize, column);
    let pooled = (((n2 - 1.0) * v2 + (n1 - 1.0) * v1) / freedom).sqrt();
    let error = t * (pooled * (1.0 / n2 + 1.0 / n1).sqrt());
    let change = avg2 - avg1;
    let proven = change.abs() > error;
    if !proven {
        return format!("No difference proven at {confidence:.1}% confidence\n");
    }
    let relative_error = if rules.percent_error_of_ratio {
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

#[cfg(test)]
mod tests;
