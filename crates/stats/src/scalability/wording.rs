//! Wording of a fit: the single place that prints it.

use super::{LackOfFit, Parameter, Peak, Scalability};
use fwdlab_model::units::format_pps;

impl Scalability {
    /// Returns the whole fit in one line: fit of the law, parameters, best level.
    pub fn sentence(&self) -> String {
        let best = self.best;
        let at = if self.best_is_open() { format!("at {}: ", best.level) } else { String::new() };
        let rate = format!(
            "{} ({at}{} [{}, {}])",
            self.best_phrase(),
            format_pps(best.pps),
            format_pps(best.low),
            format_pps(best.high)
        );
        let parameters = format!("{}; {}", self.parameters(), self.sizes());
        if self.holds() {
            let tested = self.lack_of_fit.map_or("untested".to_owned(), |test| test.to_string());
            return format!(
                "best level {rate}, {}; {parameters}; lack of fit {tested}",
                self.peak_phrase()
            );
        }
        let tested = self.lack_of_fit.map_or(String::new(), |test| format!(" ({test})"));
        let fastest = self.fastest_measured;
        format!(
            "the law does NOT describe these levels{tested}: a staircase, a plateau or one odd level \
             isn't its shape; fastest measured level {} ({}); smoothed by the law, no forecast: best level {rate}, \
             {}; {parameters}",
            fastest.level,
            format_pps(fastest.pps),
            self.peak_phrase()
        )
    }

    /// Returns the parameters with their intervals.
    fn parameters(&self) -> String {
        let lambda = self.lambda_pps;
        format!(
            "lambda {} [{}, {}], sigma {}, kappa {} at {} %",
            format_pps(lambda.value),
            format_pps(lambda.low),
            format_pps(lambda.high),
            self.sigma.shown(),
            self.kappa.shown(),
            self.confidence
        )
    }

    /// Returns the best level, e.g. `4`, or `4 or more` if the levels above it were limited by
    /// something other than the DUT.
    pub fn best_phrase(&self) -> String {
        let more = if self.best_is_open() { " or more" } else { "" };
        format!("{}{more}", self.best.level)
    }

    /// Returns the level at which the rate turns, and whether the runs include it.
    pub fn peak_phrase(&self) -> String {
        match self.peak.level {
            None => format!("no peak within what was measured (above {})", level(self.peak.low)),
            Some(_) if self.peak_is_within() => format!("peak at {}", self.peak.shown()),
            Some(_) => format!("no peak within what was measured (at {})", self.peak.shown()),
        }
    }

    fn sizes(&self) -> String {
        let blocks = match self.blocks {
            1 => "without blocks".to_owned(),
            blocks => format!("in {blocks} blocks"),
        };
        let levels = self.levels.len();
        format!("{} runs of {levels} levels {blocks}{}", self.runs, left_out(&self.censored))
    }
}

impl Parameter {
    /// Returns value and interval, e.g. `0.081 [0.062, 0.099]`; a value on a bound is marked.
    pub fn shown(&self) -> String {
        let bound = if self.at_bound { " (bound)" } else { "" };
        format!("{}{bound} [{}, {}]", short(self.value), short(self.low), short(self.high))
    }
}

impl Peak {
    /// Returns level and interval, e.g. `4.2 [3.9, 4.6]`; an open end is `none`.
    pub fn shown(&self) -> String {
        let value = self.level.map_or("none".to_owned(), level);
        let high = self.high.map_or("none".to_owned(), level);
        format!("{value} [{}, {high}]", level(self.low))
    }
}

/// Writes `F(5, 32) = 1.20, p = 0.33`.
impl std::fmt::Display for LackOfFit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let p = match self.p {
            p if p < 0.0001 => "p < 0.0001".to_owned(),
            p if p < 0.01 => format!("p = {p:.4}"),
            p => format!("p = {p:.3}"),
        };
        write!(f, "F({}, {}) = {}, {p}", self.df_law, self.df_runs, short(self.f))
    }
}

/// Describes excluded levels; empty if there are none.
pub(super) fn left_out(levels: &[u32]) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let levels: Vec<String> = levels.iter().map(u32::to_string).collect();
    format!(" ({} left out: limited by sender, receiver or line)", levels.join(", "))
}

/// Formats with two significant digits, three for 1 or more.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        v if v >= 0.1 => format!("{value:.3}"),
        v if v >= 0.001 => format!("{value:.4}"),
        v if v < 1e-12 => "0".to_owned(),
        _ => format!("{value:.1e}"),
    }
}

/// Formats a level that need not be a whole number.
fn level(value: f64) -> String {
    match value {
        v if v >= 100.0 => format!("{v:.0}"),
        v if v >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}
