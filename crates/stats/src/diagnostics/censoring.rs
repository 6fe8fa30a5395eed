//! Rates that a limit other than the DUT bounded.

use fwdlab_model::units::format_pps;
use serde::Serialize;

/// Maximum relative distance of a bounded rate from its bound.
const NEAR: f64 = 0.015;

/// A limit of the rate other than the DUT.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The wire.
    LineRate,
    /// Sender and receiver.
    Generator,
}

/// Rate of one run, and whether it was limited by the generator.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunRate {
    /// Packets per second.
    pub pps: f64,
    /// True if the run has the warning.
    pub generator_limited: bool,
}

/// Runs of a variant whose rate had an external bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Censored {
    /// Label of the variant.
    pub label: String,
    /// The limit.
    pub by: Limit,
    /// Runs at the bound.
    pub runs: usize,
    /// Runs of the variant.
    pub of: usize,
    /// The bound in packets per second; `None` if unknown.
    pub limit_pps: Option<f64>,
}

/// Looks for runs of the variant `label` at the line rate or at the generator's ceiling (both in
/// packets per second, if known), or with the corresponding warning; `None` if there are none.
pub fn censoring(
    label: &str,
    rates: &[RunRate],
    line_rate_pps: Option<f64>,
    ceiling_pps: Option<f64>,
) -> Option<Censored> {
    let near = |pps: f64, limit: Option<f64>| limit.is_some_and(|l| pps >= l * (1.0 - NEAR));
    let at_line = rates.iter().filter(|rate| near(rate.pps, line_rate_pps)).count();
    let at_ceiling =
        rates.iter().filter(|rate| rate.generator_limited || near(rate.pps, ceiling_pps)).count();
    // A generator at line rate is as fast as possible: the wire is the bound.
    let (by, runs, limit_pps) = if at_line > 0 && at_line >= at_ceiling {
        (Limit::LineRate, at_line, line_rate_pps)
    } else {
        (Limit::Generator, at_ceiling, ceiling_pps)
    };
    let label = label.to_owned();
    (runs > 0).then_some(Censored { label, by, runs, of: rates.len(), limit_pps })
}

impl Censored {
    /// Returns one sentence for the user.
    pub fn sentence(&self) -> String {
        let Censored { label, runs, of, .. } = self;
        let limit = match self.by {
            Limit::LineRate => "line rate",
            Limit::Generator => "what sender and receiver can do",
        };
        let at = self.limit_pps.map_or(String::new(), |pps| format!(" ({})", format_pps(pps)));
        format!(
            "{label}: {runs} of {of} runs are at {limit}{at}; the true rate may be higher, and a ratio \
             with it is a bound"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(pps: &[f64]) -> Vec<RunRate> {
        pps.iter().map(|&pps| RunRate { pps, generator_limited: false }).collect()
    }

    #[test]
    fn runs_at_the_line_rate_are_counted() {
        let found =
            censoring("a", &rates(&[14.87e6, 14.67e6, 14.6e6]), Some(14.88e6), None).unwrap();
        assert_eq!((found.by, found.runs, found.of), (Limit::LineRate, 2, 3));
        assert_eq!(
            found.sentence(),
            "a: 2 of 3 runs are at line rate (14.9 Mpps); the true rate may be higher, and a ratio \
             with it is a bound"
        );
    }

    #[test]
    fn warning_counts_without_a_known_ceiling() {
        let mut some = rates(&[1e6, 1e6]);
        assert_eq!(censoring("a", &some, None, Some(2e6)), None);
        some[1].generator_limited = true;
        let found = censoring("a", &some, Some(14.88e6), None).unwrap();
        assert_eq!((found.by, found.runs, found.limit_pps), (Limit::Generator, 1, None));
        assert!(found.sentence().contains("1 of 2 runs are at what sender and receiver can do;"));
        let found = censoring("a", &some, None, Some(1.01e6)).unwrap();
        assert_eq!(found.runs, 2);
    }
}
