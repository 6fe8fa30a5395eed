//! Experiments that a stopping rule ends: the rule's decision against the verdicts of the report.

use super::Table;
use super::end_to_end::{Device, Draw, QUIET_MACHINE, STEADY_DEVICE, TWO_VARIANTS, load};
use crate::selftest::Bar;
use fwdlab_model::plan::Plan;
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Outcome, Stopping, StoppingWatch};
use fwdlab_results::stats::Verdict;
use fwdlab_results::store::{Contents, Store};
use std::sync::atomic::{AtomicU64, Ordering};

/// Rules, and their maximum number of blocks.
const RULES: [(&str, u32); 2] = [("planned", 20), ("open", 30)];

/// An experiment at its end.
struct EndedExperiment {
    stopping: Stopping,
    contents: Contents,
}

/// Plan of an experiment under a rule.
fn plan((rule, max_blocks): (&str, u32)) -> Plan {
    load(&format!("{TWO_VARIANTS}[design]\nstop = \"{rule}\"\nmax_blocks = {max_blocks}\n"))
}

/// Runs an experiment until its rule ends it, as `fwdlab run` does.
fn run(plan: &Plan, seed: u64, candidate: Device) -> EndedExperiment {
    let mut contents = Draw::new(seed).contents(plan, candidate, QUIET_MACHINE);
    let begin = || {
        let mut store = Store::memory().ok()?;
        store.adopt_plan(plan, "").ok()?;
        StoppingWatch::begin(plan, &store).ok()?
    };
    let mut watch = begin().unwrap_or_else(|| unreachable!("an empty store in memory has a plan"));
    let mut block = None;
    let needed = contents.runs.iter().take_while(|run| {
        // A block that has begun is finished.
        let is_needed = block == Some(run.block) || !watch.is_done();
        if is_needed {
            block = Some(run.block);
            watch.add(run);
        }
        is_needed
    });
    let needed = needed.count();
    contents.runs.truncate(needed);
    contents.run_invocations.truncate(needed);
    EndedExperiment { stopping: watch.stopping().clone(), contents }
}

impl EndedExperiment {
    /// Numbers of differences, of equivalences, and of undecided comparisons in the report.
    fn reported(&self) -> [usize; 3] {
        let mut found = [0; 3];
        for compared in &Analysis::of(&self.contents).core.comparisons {
            let verdict = match &compared.outcome {
                Outcome::Compared(answer) => Some(answer.verdict),
                Outcome::Counted(_) | Outcome::Unanswerable { .. } => None,
            };
            found[match verdict {
                Some(Verdict::Better | Verdict::Worse) => 0,
                Some(Verdict::Equivalent) => 1,
                Some(Verdict::Inconclusive | Verdict::NotJudged) | None => 2,
            }] += 1;
        }
        found
    }

    /// True if the rule counts other verdicts than the report contains, or if it ended the
    /// experiment early with an undecided comparison.
    fn is_contradictory(&self) -> bool {
        let Stopping { different, equivalent, open, blocks, max_blocks, .. } = self.stopping;
        self.reported() != [different, equivalent, open] || (open > 0 && blocks < max_blocks)
    }
}

impl Table<'_> {
    /// Rows about experiments that a rule ends.
    pub(super) fn rules(&mut self) {
        let at = |ratio: f64| Device { ratio, ..STEADY_DEVICE };
        // Each experiment is analysed after every block.
        let experiments = (self.experiments / 200).max(self.experiments.min(50));
        for (rule, max_blocks) in RULES {
            let plan = plan((rule, max_blocks));
            for (noise, candidate) in [
                ("no effect", at(1.0)),
                ("1 % slower", at(0.99)),
                ("2 % slower", at(0.98)),
                ("stalls in 8 % of slices", Device { stalls: 0.08, ..STEADY_DEVICE }),
            ] {
                let blocks = AtomicU64::new(0);
                let errs = |seed| {
                    let ended = run(&plan, seed, candidate);
                    blocks.fetch_add(u64::from(ended.stopping.blocks), Ordering::Relaxed);
                    ended.is_contradictory()
                };
                let design = format!("rule \"{rule}\", up to {max_blocks} blocks");
                let (question, never) = ("rule against verdict: they differ", Bar::AtMost(0.0));
                let noise = noise.to_owned();
                let row =
                    self.add_counted(question, design, noise, Some(never), experiments, &errs);
                if let Some(row) = row {
                    row.blocks = Some(blocks.into_inner() as f64 / experiments as f64);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rule_ends_with_the_verdict_of_the_report() {
        for rule in RULES {
            let slower = Device { ratio: 0.9, ..STEADY_DEVICE };
            let mut ended = run(&plan(rule), 3, slower);
            assert_eq!(ended.reported(), [1, 0, 0], "{rule:?}");
            assert!(ended.stopping.blocks < rule.1 && !ended.is_contradictory(), "{rule:?}");
            (ended.stopping.different, ended.stopping.equivalent) = (0, 1);
            assert!(ended.is_contradictory(), "{rule:?}");
        }
    }
}
