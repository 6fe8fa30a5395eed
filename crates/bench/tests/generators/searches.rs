//! Whole searches, trial by trial, with generators behind a server: their counts are judged like
//! trials of fwdlab's own sender, and missing results are not made up.

use crate::bench::{load, trial};
use fwdlab_bench::generator::Generator;
use fwdlab_bench::trial::CountedTraffic;
use fwdlab_bench::trial::Traffic as _;
use fwdlab_model::record::{MethodTrial, tolerated};
use fwdlab_model::warning::Warning;
use fwdlab_packet::Family;
use fwdlab_search::{Ending, Goal, Irregular, Limits, Search, SearchResult, Step, Trial};
use std::time::Duration;

/// Forwarding capacity of the device behind a generator, packets per second.
pub(crate) const CAPACITY: f64 = 20_000.0;

/// Tolerated share of unsent packets in a trial whose counters were read in time.
const UNSENT: f64 = 0.02;

/// Returns a goal that tolerates the delay between the readings of sender and receiver: on a busy
/// machine several milliseconds of a trial.
fn goal() -> Goal {
    Goal {
        name: "tenth".into(),
        loss_ratio: 0.1,
        exceed_ratio: 0.5,
        initial_ns: 400_000_000,
        final_ns: 400_000_000,
        sum_ns: 800_000_000,
        width: 0.1,
    }
}

/// Runs one trial of a search.
fn measure(generator: Box<dyn Generator + '_>, request: Trial) -> MethodTrial {
    let load = load(Family::Inet, 2, 4, Some(request.load as f64));
    let (observed, outcome) =
        trial(generator, &load, Duration::from_nanos(request.duration_ns)).expect("a trial");
    assert!(observed.arrivals.flows.is_none(), "flows by packet are told of our own sender only");
    let is_instrument = |warning: &&Warning| {
        matches!(warning, Warning::NotConserved { .. } | Warning::ReceiverDropped { .. })
    };
    MethodTrial {
        load: request.load,
        duration_ns: request.duration_ns,
        window_ns: observed.window_ns,
        offered: observed.window.offered,
        forwarded: observed.window.forwarded,
        receiver_lost: outcome.counted.receiver_dropped,
        invalid: observed.warnings.iter().find(is_instrument).map(Warning::sentence),
        ..MethodTrial::default()
    }
}

/// Runs a search between 2000 and 80,000 packets per second; returns its result and trials.
pub(crate) fn searched<'a>(
    generator: &dyn Fn() -> Box<dyn Generator + 'a>,
) -> (SearchResult, Vec<MethodTrial>) {
    let limits = Limits { trials: 40, ..Limits::between(2_000, 80_000) };
    let mut search = Search::new(vec![goal()], limits).expect("a search");
    let mut trials = Vec::new();
    let result = loop {
        match search.next() {
            Step::Done(result) => break *result,
            Step::Measure(request) => {
                let trial = measure(generator(), request);
                search.record(trial.outcome(tolerated(&[goal()])));
                trials.push(trial);
            }
        }
    };
    (result, trials)
}

/// Checks that the search finds the device's capacity, and that every trial had the requested load.
pub(crate) fn finds_the_capacity<'a>(generator: &dyn Fn() -> Box<dyn Generator + 'a>) {
    let (result, trials) = searched(generator);
    let goal = &result.goals[0];
    assert!(goal.is_regular(), "{goal:?} of {trials:?}");
    // Half of the trials at a load may lose more than a tenth; the width is another tenth.
    let pps = goal.conditional_throughput.expect("regular");
    assert!((pps / CAPACITY - 1.0).abs() < 0.25, "{pps}: {trials:?}");
    assert!(trials.len() >= 4 && trials.iter().all(|trial| trial.latency.is_none()));
    // On a busy machine sender and receiver are read at different times, as far apart as the window
    // is longer than its trial, and packets of that time are missing.
    for trial in &trials {
        let late = 1.0 - trial.duration_ns as f64 / trial.window_ns as f64;
        let intended = trial.load as f64 * trial.window_ns as f64 / 1e9;
        let unsent = 1.0 - trial.offered as f64 / intended;
        assert!(unsent < UNSENT + late.max(0.0), "{unsent} unsent, {late} late: {trial:?}");
    }
}

/// Checks that a search finds nothing with a generator that sends half of the requested packets
/// through a lossless device: no load can be judged.
pub(crate) fn finds_nothing_by_a_sender_that_falls_short<'a>(
    generator: &dyn Fn() -> Box<dyn Generator + 'a>,
) {
    let (result, trials) = searched(generator);
    let goal = &result.goals[0];
    assert_eq!(goal.conditional_throughput, None, "{goal:?} of {trials:?}");
    match &goal.irregular {
        Some(Irregular::Ended { by: Ending::Unmeasurable { why, .. } }) => {
            assert!(why.contains("unsent"), "{why}");
        }
        other => panic!("{other:?} of {trials:?}"),
    }
    assert!(result.trials.is_empty() && result.invalid.len() == 3, "{result:?}");
}

/// Checks that no latency is made up: the generator reports none, and methods that need it are
/// refused.
pub(crate) fn tells_no_delays(name: &str, generator: Box<dyn Generator + '_>) {
    let mut traffic =
        CountedTraffic::new(generator, &load(Family::Inet, 2, 4, None)).expect("a generator");
    assert_eq!(traffic.delays(), None);
    let refused = |method: &str| {
        let text = format!(
            "version = 1\n[testbed]\nkind = \"ssh\"\nlab = \"lab.toml\"\n[traffic]\n\
             generator = \"{name}\"\n[method]\nkind = \"{method}\"\n"
        );
        let faults = fwdlab_model::load("x.toml", &text, &|_| Err("no files".into()));
        faults.expect_err("refused").render(false)
    };
    for (method, lack) in [
        ("latency", "writes no sending times"),
        ("rfc2544", "writes no sending times"),
        ("back-to-back", "is not asked for counted bursts"),
    ] {
        let message = refused(method);
        assert!(message.contains(&format!("`{name}` {lack}")), "{message}");
        assert!(message.contains("leave `generator` out"), "{message}");
    }
}
