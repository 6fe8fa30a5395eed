//! Bisections of histories with known changes. Seeds are fixed and bounds are binomial: a test
//! fails if the observed share deviates from the required one so far that chance explains it once
//! in a thousand times. The example `bisections` generates the table of docs/BISECT.md with 1,000
//! searches each.

use fwdlab_search::bisect::simulated::{History, SearchRun, search};
use fwdlab_search::bisect::{Bisection, Ending, Exact, Noisy, Options, Step};

const PLAIN: History = History {
    candidates: 128,
    changes: &[-0.02],
    scatter: 0.01,
    drift: 0.0,
    layout: 0.0,
    broken: 0.0,
    bad: (0.0, 0.0),
};
const SEARCHES: u64 = 60;

fn searches(history: History, options: Options) -> Vec<SearchRun> {
    (0..SEARCHES).map(|seed| search(history, options.clone(), seed)).collect()
}

fn count(tried: &[SearchRun], which: impl Fn(&SearchRun) -> bool) -> u64 {
    tried.iter().filter(|tried| which(tried)).count() as u64
}

fn mean_runs(tried: &[SearchRun]) -> f64 {
    tried.iter().map(|tried| tried.verdict.runs as f64).sum::<f64>() / tried.len() as f64
}

/// Returns the fewest successes of [`SEARCHES`] that a share of successes explains once in a
/// thousand times.
fn at_least(share: f64) -> u64 {
    let n = SEARCHES as f64;
    let mut probability = (1.0 - share).powf(n);
    let (mut below, mut successes) = (0.0, 0);
    while below + probability < 0.001 {
        below += probability;
        probability *= (n - successes as f64) / (successes as f64 + 1.0) * share / (1.0 - share);
        successes += 1;
    }
    successes
}

#[test]
fn step_of_two_percent_is_found() {
    for drift in [0.0, 0.2] {
        let history = History { drift, ..PLAIN };
        let tried = searches(history, Options::new(128));
        assert!(count(&tried, SearchRun::is_right) >= at_least(0.95), "drift {drift}");
        assert!(mean_runs(&tried) < 60.0, "drift {drift}: {} runs", mean_runs(&tried));
        let known = Options { known: Some(-0.02), ..Options::new(128) };
        let tried = searches(history, known);
        assert!(count(&tried, SearchRun::is_right) >= at_least(0.95), "known, drift {drift}");
        assert!(mean_runs(&tried) < 50.0, "drift {drift}: {} runs", mean_runs(&tried));
    }
}

#[test]
fn unbuildable_candidates_widen_the_answer_to_a_set() {
    let tried = searches(History { broken: 0.1, ..PLAIN }, Options::new(128));
    assert!(count(&tried, SearchRun::is_right) >= at_least(0.95));
    let sets = |tried: &SearchRun| {
        tried.verdict.ending == Some(Ending::Found) && tried.verdict.set.len() > 1
    };
    assert!(count(&tried, sets) > 0);
}

#[test]
fn no_change_names_no_culprit() {
    for drift in [0.0, 0.2] {
        let history = History { changes: &[], drift, ..PLAIN };
        let tried = searches(history, Options::new(128));
        let wrong = count(&tried, SearchRun::is_wrong);
        assert!(SEARCHES - wrong >= at_least(0.95), "{wrong} named, drift {drift}");
        let ends = tried.iter().find(|tried| tried.verdict.ending == Some(Ending::NoStep));
        let detectable = ends.expect("most end so").verdict.detectable;
        assert!(detectable > 0.003 && detectable < 0.03, "{detectable}");
    }
}

#[test]
fn two_changes_are_distinguished_from_one() {
    let history = History { changes: &[-0.03, -0.03], ..PLAIN };
    let tried = searches(history, Options::new(128));
    let two = count(&tried, |tried| tried.verdict.ending == Some(Ending::Two) && tried.is_right());
    assert!(two >= at_least(0.6), "{two}");
    let one = count(&tried, SearchRun::is_wrong);
    assert!(SEARCHES - one >= at_least(0.9), "{one} wrong");
}

#[test]
fn bad_starts_are_not_steps() {
    for bad in [(0.1, 0.08), (0.02, 0.2)] {
        let tried = searches(History { bad, ..PLAIN }, Options::new(128));
        assert!(count(&tried, SearchRun::is_right) >= at_least(0.9), "{bad:?}");
        assert!(count(&tried, SearchRun::is_wrong) <= SEARCHES - at_least(0.95), "{bad:?}");
    }
}

#[test]
fn too_small_step_ends_without_a_name_or_with_a_set() {
    let tried = searches(History { changes: &[-0.003], ..PLAIN }, Options::new(128));
    let named = count(&tried, SearchRun::is_wrong);
    assert!(SEARCHES - named >= at_least(0.95), "{named} named");
    let none =
        |tried: &SearchRun| matches!(tried.verdict.ending, Some(Ending::NoStep | Ending::Cap));
    assert!(count(&tried, none) > SEARCHES / 2);
}

#[test]
fn known_layout_prevents_false_accusations() {
    let history = History { layout: 0.005, ..PLAIN };
    let with_layout = searches(history, Options { layout: 0.005, ..Options::new(128) });
    let wrong = count(&with_layout, SearchRun::is_wrong);
    assert!(SEARCHES - wrong >= at_least(0.95), "{wrong} wrong");
}

#[test]
fn recorded_figures_reproduce_a_search() {
    let options = Options { seed: 7, ..Options::new(20) };
    let figure = |candidate: usize, run: usize| {
        let step = if candidate >= 13 { 0.97 } else { 1.0 };
        step * (1.0 + 0.001 * ((run * 7919) % 11) as f64)
    };
    let mut first = Bisection::Noisy(Box::new(Noisy::new(options.clone())));
    let mut candidates = Vec::new();
    while let Step::Measure(candidate) = first.next() {
        candidates.push(candidate);
        first.take(candidate, figure(candidate, candidates.len()));
    }
    let mut again = Bisection::Noisy(Box::new(Noisy::new(options)));
    for (run, &candidate) in candidates.iter().enumerate() {
        assert_eq!(again.next(), Step::Measure(candidate), "run {run}");
        again.take(candidate, figure(candidate, run + 1));
    }
    assert_eq!(again.next(), Step::Done(Ending::Found));
    assert_eq!((again.verdict(), again.verdict().set), (first.verdict(), vec![13]));
}

#[test]
fn exact_figures_need_a_measurement_for_each_halving() {
    for candidates in [2, 3, 5, 128, 1000] {
        for place in 1..candidates {
            let mut search = Bisection::Exact(Exact::new(candidates, 0.0));
            while let Step::Measure(candidate) = search.next() {
                search.take(candidate, if candidate >= place { 1020.0 } else { 1000.0 });
            }
            let verdict = search.verdict();
            assert_eq!((verdict.ending, &verdict.set[..]), (Some(Ending::Found), &[place][..]));
            let most = 4 + (candidates as f64).log2().ceil() as usize;
            assert!(verdict.runs <= most, "{} of {most}", verdict.runs);
            assert!((verdict.change - 0.02).abs() < 1e-9 && verdict.two == 0.0);
        }
    }
}

#[test]
fn exact_search_reports_equal_ends_other_changes_and_gaps() {
    let run = |figure: &dyn Fn(usize) -> Option<f64>| {
        let mut search = Bisection::Exact(Exact::new(16, 0.001));
        while let Step::Measure(candidate) = search.next() {
            match figure(candidate) {
                Some(figure) => search.take(candidate, figure),
                None => search.skip(candidate),
            }
        }
        search.verdict()
    };
    assert_eq!(run(&|_| Some(7.0)).ending, Some(Ending::NoStep));
    // Ends that don't repeat to half of their difference give no result.
    let loose = std::cell::Cell::new(100.0);
    let wanders = |k: usize| {
        loose.set(loose.get() + 1.0);
        Some(loose.get() + if k >= 8 { 1.0 } else { 0.0 })
    };
    let alike = run(&wanders);
    assert_eq!((alike.ending, alike.runs), (Some(Ending::NoStep), 4));
    assert!(alike.detectable > 0.03, "{}", alike.detectable);
    // Skipped neighbours are as suspect as the candidate after them.
    let gap = run(&|k| (!(6..9).contains(&k)).then_some(if k >= 8 { 2.0 } else { 1.0 }));
    assert_eq!((gap.ending, gap.set), (Some(Ending::Found), vec![6, 7, 8, 9]));
    assert_eq!(run(&|k| (k > 0).then_some(1.0)).ending, Some(Ending::EndLacks));
    // The step that is found is not the whole difference.
    let two =
        run(&|k| Some(100.0 + if k >= 4 { 8.0 } else { 0.0 } + if k >= 12 { 3.0 } else { 0.0 }));
    assert_eq!((two.set, two.two), (vec![4], 1.0));
}

#[test]
fn odd_figures_and_broken_ends_do_not_panic() {
    let mut search = Bisection::Noisy(Box::new(Noisy::new(Options::new(4))));
    for figure in [0.0, f64::MIN_POSITIVE, 1e300, 5.0, 5.0, 5.0, 5.0, 5.0, 5.0] {
        let Step::Measure(candidate) = search.next() else { break };
        search.take(candidate, figure);
    }
    assert!(search.probabilities().iter().all(|probability| probability.is_finite()));
    // No scatter at all.
    let mut search = Bisection::Noisy(Box::new(Noisy::new(Options::new(40))));
    while let Step::Measure(candidate) = search.next() {
        search.take(candidate, if candidate >= 9 { 90.0 } else { 100.0 });
    }
    assert_eq!((search.verdict().ending, search.verdict().set), (Some(Ending::Found), vec![9]));
    search.skip(39);
    assert_eq!(search.next(), Step::Done(Ending::EndLacks));
}
