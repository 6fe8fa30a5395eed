//! Remaining time of an experiment: from the estimate of its runs, the runs finished so far, and
//! forecasts of the search in progress.

use fwdlab_search::Forecast;

/// Durations of the runs, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remaining {
    /// Expected duration of a run until one has finished.
    guess_ns: u64,
    /// Wall time of the runs finished by this invocation.
    spent_ns: u64,
    finished: u64,
    /// Expected duration of the current run; `None` without a forecast.
    run_ns: Option<u64>,
    /// True if an earlier invocation measured a part of the current run.
    is_continued: bool,
}

impl Remaining {
    /// Creates the state before the first run, of which each is expected to take `guess_ns`.
    pub(super) fn new(guess_ns: u64) -> Remaining {
        Remaining { guess_ns, spent_ns: 0, finished: 0, run_ns: None, is_continued: false }
    }

    /// A run begins.
    pub(super) fn begin_run(&mut self) {
        (self.run_ns, self.is_continued) = (None, false);
    }

    /// The run continues from stored trials.
    pub(super) fn continue_run(&mut self) {
        self.is_continued = true;
    }

    /// A search of the run, `elapsed_ns` after its begin, is expected to take more traffic. Pauses
    /// and invalid trials will take the same share of time as so far.
    pub(super) fn forecast(&mut self, elapsed_ns: u64, forecast: &Forecast) {
        let left_ns = match self.is_continued {
            // The traffic so far took more than this time.
            true => forecast.left_ns,
            false => (elapsed_ns as f64 * forecast.ratio()) as u64,
        };
        let run_ns = elapsed_ns.saturating_add(left_ns);
        self.run_ns = Some(run_ns);
        if !self.is_continued {
            self.guess_ns = run_ns;
        }
    }

    /// The run has ended after `elapsed_ns`.
    pub(super) fn finish_run(&mut self, elapsed_ns: u64) {
        self.finished += 1;
        self.spent_ns += elapsed_ns;
        self.begin_run();
    }

    /// Returns the time for `runs` runs, the current one included, `elapsed_ns` after its begin.
    pub(super) fn left_ns(&self, elapsed_ns: u64, runs: u64) -> u64 {
        let usual_ns = self.spent_ns.checked_div(self.finished).unwrap_or(self.guess_ns);
        let Some(others) = runs.checked_sub(1) else { return 0 };
        let this_ns = self.run_ns.unwrap_or(usual_ns).saturating_sub(elapsed_ns);
        usual_ns.saturating_mul(others).saturating_add(this_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_follows_finished_runs() {
        let mut remaining = Remaining::new(10);
        assert_eq!([remaining.left_ns(4, 3), remaining.left_ns(99, 3)], [26, 20]);
        remaining.finish_run(30);
        assert_eq!([remaining.left_ns(0, 2), remaining.left_ns(0, 0)], [60, 0]);
    }

    #[test]
    fn remaining_time_follows_the_forecast_of_a_search() {
        let mut remaining = Remaining::new(10);
        remaining.begin_run();
        // A third of the traffic took 20, so all of it takes 60; so do the other runs.
        remaining.forecast(20, &Forecast { done_ns: 5, left_ns: 10 });
        assert_eq!([remaining.left_ns(20, 1), remaining.left_ns(20, 3)], [40, 160]);
        remaining.finish_run(70);
        assert_eq!(remaining.left_ns(0, 2), 140);
    }

    #[test]
    fn continued_run_takes_the_forecast_traffic() {
        let mut remaining = Remaining::new(50);
        remaining.begin_run();
        remaining.continue_run();
        remaining.forecast(20, &Forecast { done_ns: 100, left_ns: 30 });
        assert_eq!([remaining.left_ns(20, 1), remaining.left_ns(20, 2)], [30, 80]);
    }
}
