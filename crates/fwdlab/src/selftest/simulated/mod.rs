//! Error rates on simulated runs: the law and the truth are known.
//!
//! The runs come from the law of the simulated testbed, one start after the other. No packets are
//! simulated, because an error rate needs tens of thousands of experiments. Every experiment has
//! its own seed, so that the rates are the same on every machine, whatever the number of threads.

mod account;
mod beds;
mod blame;
mod end_to_end;
mod history;
mod law;
mod residuals;
mod rules;
mod runs;
mod searches;

use super::{Bar, ErrorRate};
use fwdlab_results::stats::binomial::{Rate, interval_over_groups};
use fwdlab_results::stats::power::{MDE_POWER, detectable_multiple};
use fwdlab_results::stats::sequential::{Decision, Mode, Rule};
use fwdlab_results::stats::{Comparison, Criteria, Verdict};
use law::{Design, Noise, QUIET, Tails};
use runs::Runs;
use std::sync::atomic::{AtomicU64, Ordering};

fn is_difference(comparison: &Comparison) -> bool {
    matches!(comparison.verdict(), Verdict::Better | Verdict::Worse)
}

/// Counts over `experiments` seeds, on all CPUs. `row` makes the seeds of rows distinct.
fn count(row: u64, experiments: u64, happens: &(dyn Fn(u64) -> bool + Sync)) -> Rate {
    count_events(row, experiments, &|seed| Rate { hits: u64::from(happens(seed)), of: 1 })
}

/// Sums the events of `experiments` seeds, on all CPUs.
fn count_events(row: u64, experiments: u64, events: &(dyn Fn(u64) -> Rate + Sync)) -> Rate {
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let sum = |rates: &mut dyn Iterator<Item = Rate>| {
        rates.fold(Rate::default(), |sum, rate| Rate {
            hits: sum.hits + rate.hits,
            of: sum.of + rate.of,
        })
    };
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads)
            .map(|part| {
                scope.spawn(move || {
                    let experiments = (part..experiments).step_by(threads as usize);
                    sum(&mut experiments.map(|experiment| events((row << 32) | experiment)))
                })
            })
            .collect();
        // A panic of a part is a bug and continues here.
        let join = |part: std::thread::ScopedJoinHandle<'_, Rate>| {
            part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        sum(&mut parts.into_iter().map(join))
    })
}

/// Number of rows returned by [`measure`].
pub(crate) const ROWS: u64 = 128 + 24 + 12 + 6 + 6 + 3 + 2 + 13 + 3 + 8 + 28 + 8 + 8 + 5;

/// Measures the promises about simulated runs whose row contains `filter`, in any case; calls
/// `report_row` with each row before it is counted or skipped.
pub(crate) fn measure(
    experiments: u64,
    filter: &str,
    report_row: &mut dyn FnMut(&str),
) -> Vec<ErrorRate> {
    let filter = filter.to_lowercase();
    let mut table = Table { experiments, filter, number: 0, rows: Vec::new(), report_row };
    for noise in Noise::all() {
        table.false_differences(noise);
    }
    for noise in
        [QUIET, Noise { tails: Tails::T3, ..QUIET }, Noise { contamination: 0.05, ..QUIET }]
    {
        table.coverage(noise);
    }
    table.power();
    table.equivalence();
    table.families();
    table.lists_in_families();
    table.printed_effects();
    table.losses();
    table.blame();
    table.stopping();
    table.history();
    table.road();
    table.beds();
    table.accounts();
    table.rules();
    table.unsteady_histories();
    table.searches();
    table.bisections();
    table.sharp_modes();
    table.rows
}

struct Table<'a> {
    experiments: u64,
    /// Text of the rows to count, in lower case; empty for all rows.
    filter: String,
    /// Number of the next row. Skipped rows have one too, so that a row's seeds do not depend on
    /// the filter.
    number: u64,
    rows: Vec<ErrorRate>,
    report_row: &'a mut dyn FnMut(&str),
}

/// Predicate of a wrong claim about a comparison of a family.
type WrongClaim = fn(&Comparison, f64) -> bool;

/// Claims about a family, with a promised rate of errors.
fn claims() -> Vec<(usize, &'static str, WrongClaim)> {
    let misses: WrongClaim = |c, truth| c.low > truth || c.high < truth;
    let equivalent: WrongClaim = |c, _| c.is_within_margin();
    let beyond: WrongClaim = |c, _| c.is_beyond_margin();
    [5, 20]
        .into_iter()
        .flat_map(|variants| {
            [
                (variants, "any interval that misses the truth", misses),
                (variants, "any one called equivalent", equivalent),
                (variants, "any one called more than the margin", beyond),
            ]
        })
        .collect()
}

/// Bar for a rate of 5 %: the upper limit must stay below it.
const SIZE: Bar = Bar::UpperLimitAtMost(0.062);

impl Table<'_> {
    fn add(
        &mut self,
        question: &str,
        design: Design,
        noise: Noise,
        bar: Option<Bar>,
        happens: &(dyn Fn(&mut Runs) -> bool + Sync),
    ) -> Option<&mut ErrorRate> {
        let happens = |seed: u64| happens(&mut Runs::new(noise, seed));
        let experiments = self.experiments;
        self.add_counted(question, design.name(), noise.name(), bar, experiments, &happens)
    }

    /// Adds a row whose experiments follow from their seeds; `None` if it is skipped.
    fn add_counted(
        &mut self,
        question: &str,
        design: String,
        noise: String,
        bar: Option<Bar>,
        experiments: u64,
        happens: &(dyn Fn(u64) -> bool + Sync),
    ) -> Option<&mut ErrorRate> {
        let events = |seed: u64| Rate { hits: u64::from(happens(seed)), of: 1 };
        self.add_events((question, design, noise), bar, experiments, &events)
    }

    /// Adds a row (question, design, scatter) whose experiments have any number of events each.
    fn add_events(
        &mut self,
        (question, design, noise): (&str, String, String),
        bar: Option<Bar>,
        experiments: u64,
        events: &(dyn Fn(u64) -> Rate + Sync),
    ) -> Option<&mut ErrorRate> {
        let row = self.begin(question, &design, &noise)?;
        let rate = count_events(row, experiments, events);
        self.rows.push(ErrorRate::new(question, design, noise, rate).against(bar));
        self.rows.last_mut()
    }

    /// Begins the next row; returns its number, or `None` if it is skipped.
    fn begin(&mut self, question: &str, design: &str, noise: &str) -> Option<u64> {
        let (number, name) = (self.number, format!("{question}: {design}, {noise}"));
        self.number += 1;
        (self.report_row)(&name);
        name.to_lowercase().contains(&self.filter).then_some(number)
    }

    fn false_differences(&mut self, noise: Noise) {
        let designs = [
            Design::Pairs(6),
            Design::Pairs(10),
            Design::Pairs(20),
            Design::Fours(5),
            Design::Lists(10),
            Design::Streams { streams: 5, slices: 24 },
        ];
        for design in designs {
            let finds = |runs: &mut Runs| {
                runs.compare(design, 1.0, Criteria::default()).is_some_and(|c| is_difference(&c))
            };
            // This number suffices for the classic practice.
            let experiments = self.experiments.min(4000);
            let classic = |seed| Runs::new(noise, seed).classic_finds(design.runs(), 1.0);
            let number = self.number;
            let row = self.add("false difference", design, noise, Some(SIZE), &finds);
            if let Some(row) = row.filter(|_| !matches!(design, Design::Streams { .. })) {
                row.classic = Some(count(number, experiments, &classic).share());
            }
        }
    }

    /// Share of 95 % intervals that contain a true loss of 3 %.
    fn coverage(&mut self, noise: Noise) {
        let truth = 0.97;
        for design in [Design::Pairs(6), Design::Pairs(10), Design::Pairs(20), Design::Lists(10)] {
            let covers = |runs: &mut Runs| {
                runs.compare(design, truth, Criteria::default())
                    .is_some_and(|c| c.low <= truth && truth <= c.high)
            };
            self.add("coverage of 95 %", design, noise, Some(Bar::Within(0.935, 0.965)), &covers);
        }
    }

    fn power(&mut self) {
        let cases = [
            (0.98, Design::Pairs(8), Some(Bar::AtLeast(0.9))),
            (0.97, Design::Pairs(6), Some(Bar::AtLeast(0.9))),
            (0.99, Design::Pairs(23), Some(Bar::AtLeast(0.9))),
            (0.98, Design::Pairs(5), None),
        ];
        for (truth, design, bar) in cases {
            let finds = |runs: &mut Runs| {
                runs.compare(design, truth, Criteria::default())
                    .is_some_and(|c| c.verdict() == Verdict::Worse)
            };
            let question = format!("finds a loss of {:.0} %", 100.0 * (1.0 - truth));
            let classic = |seed| Runs::new(QUIET, seed).classic_finds(design.runs(), truth);
            let (number, experiments) = (self.number, self.experiments);
            if let Some(row) = self.add(&question, design, QUIET, bar, &finds) {
                row.classic = Some(count(number, experiments, &classic).share());
            }
        }
    }

    fn equivalence(&mut self) {
        for (design, margin) in [
            (Design::Lists(20), 0.01),
            (Design::Fours(10), 0.01),
            (Design::Pairs(20), 0.01),
            (Design::Pairs(10), 0.02),
        ] {
            let criteria = Criteria { margin, ..Criteria::default() };
            let equivalent = |runs: &mut Runs, truth: f64| {
                runs.compare(design, truth, criteria).is_some_and(|c| c.is_within_margin())
            };
            let percent = 100.0 * margin;
            let question = format!("equivalent within {percent} %, though at the margin");
            let at_margin = 1.0 + margin;
            self.add(&question, design, QUIET, Some(Bar::AtMost(0.05)), &|runs| {
                equivalent(runs, at_margin)
            });
            let question = format!("equivalent within {percent} %, and the same");
            let bar = (design == Design::Lists(20)).then_some(Bar::AtLeast(0.85));
            self.add(&question, design, QUIET, bar, &|runs| equivalent(runs, 1.0));
        }
    }

    /// Rules that look at the result. The margin is almost zero where false differences are
    /// counted, so that equivalence never stops early.
    fn stopping(&mut self) {
        let planned = Design::Until { mode: Mode::Planned, max_blocks: 20 };
        let open = Design::Until { mode: Mode::Open, max_blocks: 200 };
        let drifting = Noise { drift: 0.5, ..QUIET };
        let bad = Noise { contamination: 0.05, ..QUIET };
        for design in [planned, open] {
            for noise in [QUIET, drifting, bad] {
                let question = "false difference, looking again and again";
                self.add_until(
                    question,
                    design,
                    noise,
                    (1.0, 1e-9),
                    Some(SIZE),
                    Decision::Difference,
                );
            }
            let question = "finds a loss of 2 %, stopping early";
            let bar = Some(Bar::AtLeast(0.9));
            self.add_until(question, design, QUIET, (0.98, 0.001), bar, Decision::Difference);
            let question = "equivalent within 2 %, though at the margin, stopping early";
            let bar = Some(Bar::AtMost(0.05));
            self.add_until(question, design, QUIET, (1.02, 0.02), bar, Decision::Equivalent);
            let question = "equivalent within 2 %, and the same, stopping early";
            self.add_until(question, design, QUIET, (1.0, 0.02), None, Decision::Equivalent);
        }
    }

    /// Rate at which a rule ends with a decision, and the mean number of blocks.
    fn add_until(
        &mut self,
        question: &str,
        design: Design,
        noise: Noise,
        (truth, margin): (f64, f64),
        bar: Option<Bar>,
        ends: Decision,
    ) {
        let Design::Until { mode, max_blocks } = design else { return };
        let criteria = Criteria { margin, ..Criteria::default() };
        let Ok(rule) = Rule::new(mode, max_blocks, criteria) else { return };
        let blocks = AtomicU64::new(0);
        let happens = |runs: &mut Runs| {
            let (decision, after) = runs.until(&rule, truth);
            blocks.fetch_add(u64::from(after), Ordering::Relaxed);
            decision == ends
        };
        let experiments = self.experiments as f64;
        if let Some(row) = self.add(question, design, noise, bar, &happens) {
            row.blocks = Some(blocks.into_inner() as f64 / experiments);
        }
    }

    /// Any false difference among 20 variants compared with one baseline.
    fn families(&mut self) {
        const VARIANTS: usize = 20;
        for blocks in [5, 10, 20] {
            let errs = |runs: &mut Runs| {
                runs.family(blocks, VARIANTS, 1.0, false).iter().any(is_difference)
            };
            let question = format!("any false one of {VARIANTS} variants");
            let bar = Some(Bar::AtMost(0.05));
            self.add(&question, Design::Pairs(blocks), QUIET, bar, &errs);
        }
        let (blocks, margin) = (10, Criteria::default().margin);
        let design = Design::Pairs(blocks);
        for (variants, question, is_so) in claims() {
            let truth = 1.0 + margin;
            let errs = |runs: &mut Runs| {
                runs.family(blocks, variants, truth, false).iter().any(|c| is_so(c, truth))
            };
            let question = format!("{question} of {variants}, all at the margin");
            self.add(&question, design, QUIET, Some(Bar::AtMost(0.05)), &errs);
        }
        for variants in [5, VARIANTS] {
            // The minimum detectable effect of the report, for a known scatter.
            let criteria = Criteria { family: variants, ..Criteria::default() };
            let se = law::CV * (2.0 / f64::from(blocks)).sqrt();
            let df = f64::from(blocks) - 1.0;
            let multiple = detectable_multiple(criteria.joint_confidence(), df, MDE_POWER);
            let truth = (-multiple.unwrap_or(f64::NAN) * se).exp();
            let finds = |runs: &mut Runs| {
                let first = runs.family(blocks, variants, truth, true).into_iter().next();
                first.is_some_and(|c| c.verdict() == Verdict::Worse)
            };
            let question = format!("finds its MDE among {variants} variants");
            self.add(&question, design, QUIET, Some(Bar::AtLeast(0.88)), &finds);
        }
    }
}

impl Table<'_> {
    /// Any false claim among 20 lists compared with one baseline, of runs with two modes.
    fn lists_in_families(&mut self) {
        const VARIANTS: usize = 20;
        let experiments = self.experiments.min(2000);
        for (baseline, each) in [(30, 10), (3, 3)] {
            let family = |seed: u64, truth: f64| {
                let mut runs = Runs::new(QUIET, seed);
                runs.family_of_lists(baseline, (each, VARIANTS), truth)
            };
            let design = format!("{baseline} against {VARIANTS} times {each}");
            let question = "any false difference among lists";
            let errs = |seed: u64| family(seed, 1.0).iter().any(is_difference);
            let bar = Some(Bar::AtMost(0.05));
            self.add_counted(question, design.clone(), "two modes".into(), bar, experiments, &errs);
            let question = "any list called equivalent at the margin";
            let at_margin = 1.0 + Criteria::default().margin;
            let errs = |seed: u64| family(seed, at_margin).iter().any(|c| c.is_within_margin());
            self.add_counted(question, design, "two modes".into(), bar, experiments, &errs);
        }
    }

    /// Share of experiments that find the smallest effect printed by another experiment.
    fn printed_effects(&mut self) {
        let design = Design::Pairs(7);
        let finds = |runs: &mut Runs| {
            let printed = runs.compare(design, 1.0, Criteria::default()).map(|c| c.mde);
            let truth = 1.0 / (1.0 + printed.unwrap_or_default());
            let found = runs.compare(design, truth, Criteria::default());
            found.is_some_and(|c| c.verdict() == Verdict::Worse)
        };
        let bar = Some(Bar::AtLeast(0.9));
        self.add("finds the effect that another printed", design, QUIET, bar, &finds);
    }

    /// Coverage of the interval of a loss ratio, for runs that scatter more than independent
    /// packets would: by a fifth of the loss.
    fn losses(&mut self) {
        let covers = |runs: &mut Runs| {
            let ratio = |runs: &mut Runs| 0.01 * (1.0 + 0.2 * (runs.next() - 1.0) / law::CV);
            let rate =
                |runs: &mut Runs| Rate { hits: (1e6 * ratio(runs)).max(0.0) as u64, of: 1_000_000 };
            let rates: Vec<Rate> = (0..10).map(|_| rate(runs)).collect();
            interval_over_groups(&rates, 95.0)
                .is_some_and(|interval| interval.low <= 0.01 && 0.01 <= interval.high)
        };
        let bar = Some(Bar::Within(0.935, 0.965));
        let question = "coverage of 95 %, loss of 1 %";
        self.add(question, Design::Lists(10), QUIET, bar, &covers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_rates_are_reproducible_and_near_their_promise() {
        let noise = Noise { drift: 0.5, ..QUIET };
        let finds = |seed| {
            let mut runs = Runs::new(noise, seed);
            let found = runs.compare(Design::Pairs(8), 1.0, Criteria::default());
            found.is_some_and(|comparison| is_difference(&comparison))
        };
        let rate = count(7, 400, &finds);
        assert_eq!(rate, count(7, 400, &finds));
        // 400 x 5 % = 20, four standard errors either way.
        assert!((3..=37).contains(&rate.hits), "{rate:?}");
        // The classic practice under the same law: four times as often.
        let classic = count(7, 400, &|seed| Runs::new(noise, seed).classic_finds(8, 1.0));
        assert!(classic.hits > 2 * rate.hits, "{classic:?} against {rate:?}");
    }

    #[test]
    fn rows_contain_every_promise() {
        let mut rows_reported = 0;
        let rows = measure(2, "", &mut |_| rows_reported += 1);
        assert_eq!((rows.len(), rows_reported), (ROWS as usize, ROWS as usize));
        for question in [
            "false difference",
            "coverage",
            "finds a loss of 2 %",
            "at the margin",
            "20 variants",
            "again and again",
            "series without a change",
            "any bed named",
            "any function named",
            "names the bed that is 2 % slower",
            "understated CPU time",
            "rule against verdict",
            "wide border",
            "bisection",
        ] {
            assert!(rows.iter().any(|row| row.question.contains(question)), "{question}");
        }
        // Other rows count events of an experiment: marked and true steps, runs, named changes.
        let of_experiments = rows.iter().filter(|row| row.rate.of == 2).count();
        assert!(of_experiments > rows.len() * 9 / 10, "{of_experiments} of {}", rows.len());
    }

    #[test]
    fn filter_counts_the_same_rows_with_the_same_seeds() {
        let table = |filter: &str| {
            let report_row = &mut |_: &str| {};
            let filter = filter.to_owned();
            let mut table = Table { experiments: 40, filter, number: 0, rows: vec![], report_row };
            table.power();
            table.rows
        };
        let (all, some) = (table(""), table("a loss of 1 %"));
        let [only] = &some[..] else { panic!("{some:?}") };
        assert_eq!((only.rate, only.classic), (all[2].rate, all[2].classic));
        assert_eq!(only.question, all[2].question);
    }
}
