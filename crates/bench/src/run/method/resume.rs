//! Trials of a method, and continuation of a method from trials that earlier attempts at its run
//! finished.
//!
//! A method derives each trial request from the run's own trial and the trials before, so it
//! repeats the same requests. Trials that checkpoints contain are taken from there.

use super::{Trials, Wish};
use crate::TrialReport;
use crate::error::BenchError;
use fwdlab_model::record::{Checkpoint, MethodTrial, OwnTrial};
use fwdlab_model::warning::Warning;
use fwdlab_search::Search;

/// One attempt at a run, with the trials of its method that are finished.
pub(in crate::run) struct Attempt {
    /// Wall clock at the start, RFC 3339, UTC.
    started_at: String,
    /// Finished trials, earlier attempts first.
    checkpoints: Vec<Checkpoint>,
    /// Number of trials taken from earlier attempts.
    replayed: usize,
}

impl Attempt {
    /// Returns an attempt that began at `started_at` and continues from `checkpoints`.
    pub(in crate::run) fn new(started_at: String, checkpoints: Vec<Checkpoint>) -> Attempt {
        Attempt { started_at, checkpoints, replayed: 0 }
    }

    /// All finished trials.
    pub(in crate::run) fn into_checkpoints(self) -> Vec<Checkpoint> {
        self.checkpoints
    }

    /// The run's own trial in the first attempt; `None` without an earlier attempt.
    pub(super) fn own(&self) -> Option<OwnTrial> {
        self.checkpoints.first().map(|first| first.own)
    }

    /// Returns warnings that name the earlier attempts which measured trials of the run.
    pub(in crate::run) fn warnings(&self) -> Vec<Warning> {
        let earlier = &self.checkpoints[..self.replayed];
        let attempts = earlier.chunk_by(|a, b| a.started_at == b.started_at);
        let warning = |trials: &[Checkpoint]| Warning::Continued {
            trials: trials.len() as u32,
            started_at: trials[0].started_at.clone(),
        };
        attempts.map(warning).collect()
    }
}

impl Trials<'_, '_> {
    /// Adds the next trial to the record: the finished one if there is one for this request,
    /// otherwise the result of `measure`.
    pub(super) fn take(
        &mut self,
        wish: Wish,
        measure: impl FnOnce(&mut Self, Wish) -> Result<MethodTrial, BenchError>,
    ) -> Result<MethodTrial, BenchError> {
        if let Some(trial) = self.replay(&wish) {
            return Ok(trial);
        }
        let trial = measure(self, wish)?;
        self.keep(&wish, trial.clone());
        Ok(trial)
    }

    /// Adds the finished trial of a request to the record and returns it; `None` if there is none.
    /// From this trial on, checkpoints of other requests are void.
    pub(super) fn replay(&mut self, wish: &Wish) -> Option<MethodTrial> {
        let number = self.number() as usize;
        let finished = self.attempt.checkpoints.get(number)?;
        if finished.request != request(wish) {
            self.attempt.checkpoints.truncate(number);
            return None;
        }
        let trial = finished.trial.clone();
        self.began_ns = self.parts.clock.now_ns().wrapping_sub(finished.done_ns);
        self.attempt.replayed += 1;
        self.record.trials.push(trial.clone());
        Some(trial)
    }

    /// Reports the last trial of the record, which is valid or invalid for a reason; `search` is
    /// the search that requested it. A trial of an earlier attempt was reported then.
    pub(super) fn report(&mut self, invalid: Option<String>, search: Option<&Search>) {
        self.invalid += u32::from(invalid.is_some());
        let number = self.number();
        let Some(trial) = self.record.trials.last() else { return };
        if number as usize <= self.attempt.replayed {
            return;
        }
        let report = TrialReport::new(number, trial);
        let report = TrialReport { invalid, invalid_trials: self.invalid, ..report };
        self.observer.trial(&match search {
            Some(search) => report.with_bounds(search),
            None => report,
        });
    }

    /// Adds a trial that was just measured to the record, and makes it a checkpoint.
    pub(super) fn keep(&mut self, wish: &Wish, trial: MethodTrial) {
        let checkpoint = Checkpoint {
            started_at: self.attempt.started_at.clone(),
            own: self.own,
            request: request(wish),
            done_ns: self.parts.clock.now_ns().wrapping_sub(self.began_ns),
            trial: trial.clone(),
        };
        self.observer.checkpoint(self.number(), &checkpoint);
        self.attempt.checkpoints.push(checkpoint);
        self.record.trials.push(trial);
    }
}

/// Text of a request, for comparison with a checkpoint.
fn request(wish: &Wish) -> String {
    format!("{wish:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::sim::Sim;
    use crate::{NoopObserver, Observer, Runner, Task};
    use fwdlab_model::Plan;
    use fwdlab_model::record::RunRecord;
    use proptest::prelude::*;

    /// Every kind of method, with short trials.
    const METHODS: [&str; 9] = [
        "kind = \"mlrsearch\"\n",
        "kind = \"loss-curve\"\n",
        "kind = \"soak\"\nmax_trials = 9\n",
        "kind = \"flood\"\nmax_load = \"400kpps\"\nstep = \"25%\"\n",
        "kind = \"back-to-back\"\nrepeats = 2\n",
        "kind = \"system-recovery\"\nrepeats = 3\noverload = \"100ms\"\n",
        "kind = \"latency\"\nrepeats = 2\n",
        "kind = \"rfc2544\"\nrepeats = 2\noverload = \"100ms\"\n",
        "kind = \"rfc9693\"\nrepeats = 2\n",
    ];
    const GOAL: &str = "[[method.goal]]\nname = \"short\"\ninitial_trial = \"50ms\"\n\
                        final_trial = \"100ms\"\nduration_sum = \"300ms\"\nwidth = \"5%\"\n";

    fn plan(method: &str, seed: u64) -> Plan {
        let searches = ["mlrsearch", "latency", "rfc2544", "rfc9693"];
        let goal = if searches.iter().any(|kind| method.contains(kind)) { GOAL } else { "" };
        let rate = if ["soak", "flood"].iter().any(|kind| method.contains(kind)) {
            "[traffic]\nrate = \"300kpps\"\n"
        } else {
            ""
        };
        let text = format!(
            "version = 1\n[testbed]\nkind = \"sim\"\n[testbed.sim]\ncapacity = \"200kpps\"\n\
             ceiling = \"1Mpps\"\n[dut]\nfirewall = \"stateful\"\n{rate}\
             [trial]\nwarmup = \"20ms\"\nduration = \"100ms\"\ninterval = \"20ms\"\nslice = \"5ms\"\n\
             [design]\nseed = {seed}\n[method]\n{method}{goal}"
        );
        fwdlab_model::load("x.toml", &text, &|_| Err("no files".into()))
            .unwrap_or_else(|faults| panic!("{}", faults.render(false)))
    }

    /// Observer that ends an attempt after some trials, and keeps the checkpoints of a store.
    struct Cut {
        trials: usize,
        kept: Vec<Checkpoint>,
        new: usize,
    }

    impl Observer for Cut {
        fn checkpoint(&mut self, number: u32, checkpoint: &Checkpoint) {
            self.kept.truncate(number as usize);
            self.kept.push(checkpoint.clone());
            self.new += 1;
        }

        fn cancelled(&self) -> bool {
            self.new >= self.trials
        }
    }

    fn attempt(
        plan: &Plan,
        checkpoints: &[Checkpoint],
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let task = Task { plan, run: &plan.runs[0], ceiling_pps: None };
        let mut runner = Runner::new(Box::new(Sim::new(Vec::new())));
        let result = runner.run_sampled(task, &mut checkpoints.to_vec(), observer);
        result.map(|(record, _)| record)
    }

    /// Returns the record without the times of its attempts, and the number of trials of earlier
    /// ones.
    fn without_attempts(mut record: RunRecord) -> (RunRecord, u32) {
        record.started_at.clear();
        let mut trials = 0;
        record.warnings.retain(|warning| match warning {
            Warning::Continued { trials: earlier, .. } => {
                trials += earlier;
                false
            }
            _ => true,
        });
        // Emptying a table takes time in proportion to its entries, which after a new start come
        // from another trial than before.
        let mut all: Vec<&mut MethodTrial> = Vec::new();
        if let Some(method) = &mut record.method {
            all.extend(&mut method.trials);
            all.extend(method.parts.iter_mut().flat_map(|part| &mut part.trials));
        }
        let has_states = |t: &&mut MethodTrial| t.connections.is_some() || t.flood.is_some();
        if all.iter().any(has_states) {
            all.iter_mut().for_each(|trial| trial.at_ns = 0);
        }
        (record, trials)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn run_cut_short_anywhere_continues_to_the_uninterrupted_result(
            method in 0..METHODS.len(),
            seed in 0_u64..1000,
            cuts in proptest::collection::vec(1_usize..40, 1..4),
        ) {
            let plan = plan(METHODS[method], seed);
            let whole = attempt(&plan, &[], &mut NoopObserver).unwrap();
            let (whole, continued) = without_attempts(whole);
            prop_assert_eq!(continued, 0);
            let mut kept: Vec<Checkpoint> = Vec::new();
            for trials in cuts {
                let mut cut = Cut { trials, kept: kept.clone(), new: 0 };
                if attempt(&plan, &kept, &mut cut).is_ok() {
                    break;
                }
                prop_assert_eq!(cut.kept.len(), kept.len() + trials);
                prop_assert!(cut.kept.starts_with(&kept), "stored trials were measured again");
                kept = cut.kept;
            }
            let (record, continued) = without_attempts(attempt(&plan, &kept, &mut NoopObserver).unwrap());
            prop_assert_eq!(continued as usize, kept.len());
            prop_assert_eq!(record, whole);
        }
    }

    #[test]
    fn checkpoints_of_other_requests_are_measured_again() {
        let plan = plan(METHODS[1], 1);
        let mut cut = Cut { trials: 3, kept: Vec::new(), new: 0 };
        attempt(&plan, &[], &mut cut).unwrap_err();
        let mut other = cut.kept.clone();
        other[1].request = "another".to_owned();
        let mut again = Cut { trials: 100, kept: other.clone(), new: 0 };
        let (record, continued) = without_attempts(attempt(&plan, &other, &mut again).unwrap());
        assert_eq!(continued, 1, "only the first is what the curve requests");
        assert_eq!(again.kept.len(), record.method.unwrap().len());
        assert_eq!(
            again.kept[..3].iter().map(|kept| &kept.trial).collect::<Vec<_>>(),
            cut.kept.iter().map(|kept| &kept.trial).collect::<Vec<_>>()
        );
    }
}
