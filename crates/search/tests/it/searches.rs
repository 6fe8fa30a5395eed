//! Whole searches on simulated devices with known behaviour: number of trials, coverage of their
//! bounds, and results without a threshold to find.

use fwdlab_search::simulated::{Device, Law};
use fwdlab_search::{
    Class, Ending, Goal, Irregular, Limits, Outcome, Output, Search, SearchResult, Step, Trial,
    Trials, run,
};

const MIN: u64 = 9_001;
const MAX: u64 = 14_880_000;

fn presets(names: &[&str]) -> Vec<Goal> {
    names.iter().map(|name| Goal::preset(name).unwrap()).collect()
}

fn search(device: &mut Device, names: &[&str]) -> SearchResult {
    let search = Search::new(presets(names), Limits::between(MIN, MAX)).unwrap();
    run(search, |trial| Ok::<_, ()>(device.measure(trial))).unwrap()
}

/// Results of a thousand searches for NDR and PDR.
#[derive(Debug, Default)]
struct Thousand {
    trials: Vec<usize>,
    /// Searches whose bounds contain the true value; without one, searches that report so.
    covered: [usize; 2],
    regular: [usize; 2],
    drifting: usize,
    /// Searches that found loss that persists at lower loads.
    floors: usize,
    /// Searches that found loss that falls while the load rises.
    dips: usize,
}

impl Thousand {
    /// Searches devices of one law, with capacities spread evenly over the logarithm.
    fn of(law: Law) -> Thousand {
        let mut all = Thousand::default();
        for seed in 0..1000 {
            let at = (seed as f64 * 0.618_033_988_75).fract();
            let law = Law { capacity: 10_f64.powf(5.3 + 1.7 * at), ..law };
            let mut device = Device::new(law, seed);
            let result = search(&mut device, &["ndr", "pdr"]);
            sound(&result);
            assert_eq!(device.trials, result.trials.len());
            all.trials.push(device.trials);
            all.drifting += usize::from(result.drift.is_some());
            all.floors += usize::from(result.loss_floor.is_some());
            all.dips += usize::from(result.loss_dip.is_some());
            for (at, found) in result.goals.iter().enumerate() {
                let bounds = (found.bounds.lower, found.bounds.upper);
                let is_covered = match (law.truth(found.goal.loss_ratio), bounds) {
                    (Some(truth), (Some(lower), Some(upper))) => {
                        lower as f64 <= truth && truth <= upper as f64
                    }
                    (None, _) => found.irregular == Some(Irregular::NoLowerBound),
                    _ => false,
                };
                all.covered[at] += usize::from(is_covered);
                all.regular[at] += usize::from(found.is_regular());
            }
        }
        all
    }

    fn mean(&self) -> f64 {
        self.trials.iter().sum::<usize>() as f64 / self.trials.len() as f64
    }
}

/// Verifies a result against the RFC, from all trials: each load's class, the bounds, regular only
/// within the width, loads within the limits, throughput not above the lower bound.
fn sound(result: &SearchResult) {
    let goals: Vec<Goal> = result.goals.iter().map(|found| found.goal.clone()).collect();
    let mut trials = Trials::new(goals);
    result.trials.iter().for_each(|measured| trials.add(*measured));
    assert!(result.trials.iter().all(|m| (MIN..=MAX).contains(&m.trial.load)));
    for (number, found) in result.goals.iter().enumerate() {
        let of = |class: Class| move |(load, of): (u64, Class)| (of == class).then_some(load);
        let upper = trials.classes(number).find_map(of(Class::Upper));
        let is_below = |load: &u64| upper.is_none_or(|upper| *load < upper);
        let lower = trials.classes(number).filter_map(of(Class::Lower)).rfind(is_below);
        assert_eq!((found.bounds.lower, found.bounds.upper), (lower, upper));
        assert_eq!(found.conditional_throughput.is_some(), lower.is_some());
        if let (Some(rate), Some(lower)) = (found.conditional_throughput, lower) {
            let least = lower as f64 * (1.0 - found.goal.loss_ratio);
            assert!((least - 1e-6..=lower as f64).contains(&rate), "{rate} at {lower}");
        }
        if found.is_regular() {
            let (lower, upper) = (lower.unwrap() as f64, upper.unwrap() as f64);
            assert!((upper - lower) / upper <= found.goal.width);
        }
    }
}

#[test]
fn exact_device_takes_fewer_trials_than_the_reference() {
    let all = Thousand::of(Law::exact(1.0));
    // The reference takes 35 and one to warm up. The minimum is three loads with eleven trials
    // each.
    assert!(all.trials.iter().all(|count| (33..=34).contains(count)), "{:?}", all.trials);
    assert_eq!((all.covered, all.regular, all.drifting), ([1000; 2], [1000; 2], 0));
}

#[test]
fn slight_noise_takes_fewer_trials_with_equal_coverage() {
    let all = Thousand::of(Law { sigma: 0.002, ..Law::exact(1.0) });
    assert!((36.0..43.0).contains(&all.mean()), "{}", all.mean());
    assert!(all.covered.iter().all(|count| (940..=990).contains(count)), "{:?}", all.covered);
    assert_eq!(all.regular, [1000; 2]);
    assert!(all.drifting <= 5, "{}", all.drifting);
}

#[test]
fn noise_of_twice_the_width_takes_fewer_trials_than_the_reference() {
    let all = Thousand::of(Law { sigma: 0.01, ..Law::exact(1.0) });
    assert!((50.0..70.0).contains(&all.mean()), "{}", all.mean());
    assert!(all.covered.iter().all(|count| (570..=750).contains(count)), "{:?}", all.covered);
    assert_eq!(all.regular, [1000; 2]);
}

#[test]
fn frequent_losses_take_fewer_trials_and_are_often_detected() {
    let all = Thousand::of(Law { sigma: 0.002, lossy: 0.6, ..Law::exact(1.0) });
    assert!((60.0..134.0).contains(&all.mean()), "{}", all.mean());
    // At most loads, chance alone makes one in six a lower bound.
    assert!(all.covered[0] >= 450, "{:?}", all.covered);
    assert!(all.covered[1] >= 900 && all.regular[1] == 1000, "{:?}", all.covered);
}

#[test]
fn rare_losses_keep_the_bounds_correct() {
    let all = Thousand::of(Law { lossy: 0.3, ..Law::exact(1.0) });
    assert!((33.0..42.0).contains(&all.mean()), "{}", all.mean());
    assert!(all.covered.iter().all(|count| *count >= 960), "{:?}", all.covered);
}

#[test]
fn livelocked_device_is_covered() {
    let all = Thousand::of(Law { livelock: 0.3, ..Law::exact(1.0) });
    assert!((35.0..80.0).contains(&all.mean()), "{}", all.mean());
    assert_eq!((all.covered[0], all.regular), (1000, [1000; 2]));
}

#[test]
fn search_reports_a_drifting_device() {
    let all = Thousand::of(Law { drift: -0.001, sigma: 0.0005, ..Law::exact(1.0) });
    assert!(all.drifting >= 900, "{}", all.drifting);
    let mut device = Device::new(Law { drift: -0.001, ..Law::exact(3.3e6) }, 1);
    let drift = search(&mut device, &["ndr", "pdr"]).drift.unwrap();
    assert!(drift.change < -0.02, "{drift:?}");
    // However fast the device slows down, it cannot lose more than its whole capacity.
    let mut device = Device::new(Law { drift: -0.02, ..Law::exact(3.3e6) }, 1);
    let drift = search(&mut device, &["ndr", "pdr"]).drift.unwrap();
    assert!((-1.0..-0.5).contains(&drift.change), "{drift:?}");
}

#[test]
fn search_reports_a_loss_floor() {
    // A twentieth of a second in ten, as a host takes it that has less CPU time than its guest
    // requests.
    let all = Thousand::of(Law { still: 0.0045, ..Law::exact(1.0) });
    assert_eq!((all.floors, all.regular), (1000, [0, 1000]));
    let mut device = Device::new(Law { still: 0.0045, ..Law::exact(1e6) }, 1);
    let floor = search(&mut device, &["ndr", "pdr"]).loss_floor.unwrap();
    assert!((0.0044..0.0046).contains(&floor.loss_ratio), "{floor:?}");
    assert!(floor.from == MIN && (900_000..1_010_000).contains(&floor.to), "{floor:?}");
    // None on a device that is only slower than its load, is noisy, rarely loses, or drifts.
    let of = |law| Thousand::of(law).floors;
    assert_eq!(of(Law::exact(1.0)), 0);
    assert_eq!(of(Law { sigma: 0.01, ..Law::exact(1.0) }), 0);
    assert_eq!(of(Law { lossy: 0.3, ..Law::exact(1.0) }), 0);
    assert_eq!(of(Law { livelock: 0.3, ..Law::exact(1.0) }), 0);
    assert_eq!(of(Law { drift: -0.001, sigma: 0.0005, ..Law::exact(1.0) }), 0);
    // Nor on one whose trials lose more often the higher the load: it loses nothing below.
    assert_eq!(of(Law { border: 0.05, ..Law::exact(1.0) }), 0);
    assert_eq!(of(Law { border: 0.2, ..Law::exact(1.0) }), 0);
}

/// Returns the result of trials at loads with these loss ratios.
fn of_losses(loads: &[(u64, &[f64])]) -> SearchResult {
    let outcomes = loads.iter().flat_map(|(load, lost)| {
        let trial = Trial { load: *load, duration_ns: 1_000_000_000 };
        lost.iter().map(move |lost| {
            let forwarded = (*load as f64 * (1.0 - lost)).round() as u64;
            (trial, Outcome::Valid(Output::of_counts(trial, *load, forwarded).unwrap()))
        })
    });
    SearchResult::of(presets(&["ndr"]), &Limits::between(MIN, MAX), outcomes, None)
}

#[test]
fn search_reports_a_loss_dip() {
    let much = [0.07, 0.08, 0.09, 0.08, 0.075, 0.085];
    let little = [0.003, 0.002, 0.004, 0.003, 0.003, 0.002];
    let found = of_losses(&[(600_000, &[0.0; 6]), (750_000, &much), (900_000, &little)]);
    let dip = found.loss_dip.unwrap();
    assert_eq!((dip.load, dip.higher), (750_000, 900_000));
    assert!((dip.loss_ratio - 0.08).abs() < 1e-6 && (dip.loss_at_higher - 0.003).abs() < 1e-6);
    let of = |loads: &[(u64, &[f64])]| of_losses(loads).loss_dip;
    assert_eq!(of(&[(750_000, &little), (900_000, &much)]), None, "it rises");
    assert_eq!(of(&[(750_000, &much[..5]), (900_000, &little)]), None, "too few trials");
    let overlapping = [0.07, 0.08, 0.09, 0.08, 0.075, 0.0035];
    assert_eq!(of(&[(750_000, &overlapping), (900_000, &little)]), None, "not separate");
    let less = little.map(|lost| 0.6 * lost - 0.0002);
    assert_eq!(of(&[(750_000, &little), (900_000, &less)]), None, "hardly less");
    // None on devices whose loss rises with the load, or comes by chance at any load.
    for law in [
        Law::exact(1.0),
        Law { sigma: 0.03, ..Law::exact(1.0) },
        Law { lossy: 0.3, ..Law::exact(1.0) },
        Law { still: 0.0045, ..Law::exact(1.0) },
        Law { border: 0.2, ..Law::exact(1.0) },
    ] {
        let dips = Thousand::of(law).dips;
        assert!(dips <= 5, "{law:?}: {dips}");
    }
}

#[test]
fn loss_floor_needs_distant_loads_and_enough_capacity() {
    // Ten trials at each of two loads, with their loss ratios.
    let floor = |loads: [(u64, f64); 2], trials: usize| {
        let outcomes = loads.iter().flat_map(|(load, lost)| {
            let trial = Trial { load: *load, duration_ns: 1_000_000_000 };
            let forwarded = (*load as f64 * (1.0 - lost)).round() as u64;
            let output = Output::of_counts(trial, *load, forwarded).unwrap();
            std::iter::repeat_n((trial, Outcome::Valid(output)), trials)
        });
        SearchResult::of(presets(&["ndr"]), &Limits::between(MIN, MAX), outcomes, None).loss_floor
    };
    let found = floor([(100_000, 0.004), (120_000, 0.007)], 10).unwrap();
    assert_eq!((found.loss_ratio, found.from, found.to), (0.004, 100_000, 120_000));
    assert_eq!(floor([(100_000, 0.004), (120_000, 0.009)], 10), None, "more than twice");
    assert_eq!(floor([(100_000, 0.004), (109_000, 0.004)], 10), None, "close together");
    assert_eq!(floor([(100_000, 0.004), (120_000, 0.004)], 7), None, "too few trials");
    assert_eq!(floor([(100_000, 0.0), (120_000, 0.0)], 10), None, "nothing lost");
    // Disturbed trials are valid if much is lost: the invalid ones count as lossless.
    let spoiled = |invalid: usize| {
        let trial = |load| Trial { load, duration_ns: 1_000_000_000 };
        let lost = |load: u64| {
            let output = Output::of_counts(trial(load), load, load - load / 200).unwrap();
            std::iter::repeat_n((trial(load), Outcome::Valid(output)), 10)
        };
        let others = (trial(100_000), Outcome::Invalid("the sender fell short".into()));
        let outcomes = lost(100_000).chain(lost(120_000));
        let outcomes = outcomes.chain(std::iter::repeat_n(others, invalid));
        SearchResult::of(presets(&["ndr"]), &Limits::between(MIN, MAX), outcomes, None).loss_floor
    };
    assert!(spoiled(9).is_some() && spoiled(11).is_none());
    // A device that forwards 100,000 packets per second.
    assert_eq!(floor([(120_000, 1.0 / 6.0), (150_000, 1.0 / 3.0)], 10), None, "too slow");
}

#[test]
fn dead_and_lossless_devices_are_irregular() {
    let mut dead = Device::new(Law::exact(0.0), 1);
    let result = search(&mut dead, &["ndr", "pdr"]);
    sound(&result);
    for found in &result.goals {
        assert_eq!(found.irregular, Some(Irregular::NoLowerBound));
        assert_eq!((found.bounds.lower, found.bounds.upper), (None, Some(MIN)));
        assert_eq!(found.conditional_throughput, None);
    }
    assert_eq!(dead.trials, 12);
    let mut fast = Device::new(Law::exact(1e9), 1);
    let result = search(&mut fast, &["ndr", "pdr"]);
    sound(&result);
    for found in &result.goals {
        assert_eq!(found.irregular, Some(Irregular::NoUpperBound));
        assert_eq!((found.bounds.lower, found.bounds.upper), (Some(MAX), None));
        assert_eq!(found.conditional_throughput, Some(MAX as f64));
    }
    assert_eq!(fast.trials, 11);
}

/// No load exists above the line rate: a device that passes it is as fast as its link, and few
/// trials suffice to show it.
#[test]
fn device_as_fast_as_its_link_has_the_line_rate() {
    let at = |link: u64, law: Law| {
        let limits = Limits { link: Some(link), ..Limits::between(MIN, MAX) };
        let search = Search::new(presets(&["ndr", "pdr"]), limits).expect("a search");
        let mut device = Device::new(law, 1);
        let found = run(search, |trial| Ok::<_, ()>(device.measure(trial)));
        (found.expect("trials"), device.trials)
    };
    let (found, trials) = at(MAX, Law::exact(1e9));
    for goal in &found.goals {
        assert_eq!(goal.irregular, Some(Irregular::LineRate));
        assert!(goal.has_rate() && !goal.is_regular());
        assert_eq!((goal.bounds.lower, goal.bounds.upper), (Some(MAX), None));
        assert_eq!(goal.conditional_throughput, Some(MAX as f64));
    }
    assert_eq!(trials, 11);
    let (found, _) = at(MAX + MAX / 100, Law::exact(1e9));
    assert_eq!(found.goals[0].irregular, Some(Irregular::NoUpperBound), "a link of 1 % more");
    let (found, _) = at(MAX, Law::exact(1e6));
    assert!(found.goals[0].is_regular(), "a device slower than its link");
}

#[test]
fn rfc_2544_throughput_takes_full_length_trials_at_the_lower_bound_only() {
    for (name, full) in [("rfc2544", 1), ("tst009", 2)] {
        let mut device = Device::new(Law::exact(1_234_567.8), 1);
        let result = search(&mut device, &[name]);
        sound(&result);
        let found = &result.goals[0];
        let (lower, upper) = (found.bounds.lower.unwrap(), found.bounds.upper.unwrap());
        assert!((lower..upper).contains(&1_234_567) && found.is_regular());
        assert_eq!(found.conditional_throughput, Some(lower as f64));
        let is_full = |m: &&fwdlab_search::Measured| m.trial.duration_ns == 60_000_000_000;
        assert_eq!(result.trials.iter().filter(is_full).count(), full, "{name}");
        assert!(result.trials.len() <= 5 + full, "{:?}", result.trials);
    }
}

/// Short trials pass if a buffer holds the excess; full-length ones do not.
#[test]
fn buffer_passes_short_trials_but_not_results() {
    let law = Law { buffer_s: 0.05, ..Law::exact(1_000_000.0) };
    let result = search(&mut Device::new(law, 1), &["rfc2544"]);
    let found = &result.goals[0];
    sound(&result);
    assert!(found.is_regular());
    // The buffer holds the packets of 0.05 s: 50,000 more in a second, and as many in a minute.
    let truth = 1e6 * (1.0 + 0.05 / 60.0);
    assert!(found.bounds.lower.unwrap() as f64 <= truth * 1.0001, "{:?}", found.bounds);
    assert!(found.bounds.upper.unwrap() as f64 > truth, "{:?}", found.bounds);
}

#[test]
fn goals_share_their_trials() {
    let mut device = Device::new(Law { sigma: 0.0005, ..Law::exact(5e6) }, 3);
    let mut goals = presets(&["ndr", "pdr", "rfc2544"]);
    goals.push(Goal { name: "1 %".into(), loss_ratio: 0.01, width: 0.02, ..goals[0].clone() });
    let search = |goals: Vec<Goal>, device: &mut Device| {
        let search = Search::new(goals, Limits::between(MIN, MAX)).unwrap();
        run(search, |trial| Ok::<_, ()>(device.measure(trial))).unwrap()
    };
    let result = search(goals.clone(), &mut device);
    sound(&result);
    assert!(result.goals.iter().all(fwdlab_search::GoalResult::is_regular));
    // Separate searches take more trials, and the order does not matter much.
    let apart: usize = goals
        .iter()
        .map(|goal| {
            let mut device = Device::new(Law { sigma: 0.0005, ..Law::exact(5e6) }, 3);
            search(vec![goal.clone()], &mut device).trials.len()
        })
        .sum();
    assert!(result.trials.len() < apart, "{} {apart}", result.trials.len());
    goals.reverse();
    let mut again = Device::new(Law::exact(5e6), 3);
    let reversed = search(goals.clone(), &mut again);
    goals.reverse();
    let straight = search(goals, &mut Device::new(Law::exact(5e6), 3));
    let rates = |result: &SearchResult| -> Vec<_> {
        result.goals.iter().map(|found| found.conditional_throughput).collect()
    };
    let mut reversed_rates = rates(&reversed);
    reversed_rates.reverse();
    assert_eq!(reversed_rates, rates(&straight));
}

#[test]
fn effective_duration_comes_from_the_measurer() {
    let law = Law { overhead_s: 0.5, ..Law::exact(3.3e6) };
    let result = search(&mut Device::new(law, 1), &["ndr", "pdr"]);
    sound(&result);
    // Seven trials of 1.5 s are half of 21 s, and a load needs more than half.
    assert!(result.trials.len() <= 26, "{}", result.trials.len());
}

#[test]
fn invalid_trial_is_repeated_and_finally_ends_the_search() {
    let new = || Search::new(presets(&["ndr"]), Limits::between(MIN, MAX)).unwrap();
    let mut search = new();
    let Step::Measure(first) = search.next() else { panic!("nothing is wanted") };
    for _ in 0..2 {
        search.record(Outcome::Invalid("the sender fell short".into()));
        assert_eq!(search.next(), Step::Measure(first));
    }
    search.record(Outcome::Valid(Output { loss_ratio: 0.9, effective_ns: first.duration_ns }));
    let so_far = search.result();
    assert_eq!((so_far.trials.len(), so_far.invalid.len()), (1, 2));
    for why in ["one", "two", "three"] {
        search.record(Outcome::Invalid(why.into()));
    }
    let Step::Done(result) = search.next() else { panic!("it goes on") };
    assert_eq!((result.trials.len(), result.invalid.len()), (1, 5));
    let Some(Irregular::Ended { by: Ending::Unmeasurable { why, .. } }) =
        &result.goals[0].irregular
    else {
        panic!("{:?}", result.goals)
    };
    assert_eq!(why, "three");
    // Ten at the start are enough, however many may follow a valid one.
    let limits = Limits { invalid: 30, ..Limits::between(MIN, MAX) };
    let mut search = Search::new(presets(&["ndr"]), limits).unwrap();
    let mut trials = 0;
    while let Step::Measure(_) = search.next() {
        search.record(Outcome::Invalid("others had the device's CPU for 12.1 ms".into()));
        trials += 1;
    }
    assert_eq!(trials, 10);
    // An impossible output is invalid.
    let mut search = new();
    for output in [(-0.1, 5), (1.1, 5), (f64::NAN, 5), (0.5, 0)] {
        let (loss_ratio, effective_ns) = output;
        search.record(Outcome::Valid(Output { loss_ratio, effective_ns }));
    }
    assert_eq!((search.result().trials.len(), search.result().invalid.len()), (0, 3));
    assert_eq!(Output::of_counts(first, 0, 0), None);
    assert_eq!(Output::of_counts(first, 10, 11), None);
}

#[test]
fn ended_search_reports_its_end_and_keeps_results() {
    let limited = |limits: Limits| {
        let mut device = Device::new(Law::exact(3.3e6), 1);
        let search = Search::new(presets(&["ndr", "pdr"]), limits).unwrap();
        run(search, |trial| Ok::<_, ()>(device.measure(trial))).unwrap()
    };
    let limits = Limits::between(MIN, MAX);
    let result = limited(Limits { trials: 20, ..limits.clone() });
    assert_eq!(result.trials.len(), 20);
    assert_eq!(result.goals[0].irregular, Some(Irregular::Ended { by: Ending::Trials }));
    assert!(result.goals[0].bounds.lower.is_some() && result.goals[0].bounds.upper.is_none());
    let result = limited(Limits { time_ns: 24_500_000_000, ..limits.clone() });
    assert_eq!(result.trials.len(), 25);
    // Goals reached before are regular.
    assert!(result.goals[0].is_regular());
    assert_eq!(result.goals[1].irregular, Some(Irregular::Ended { by: Ending::Time }));
    let mut search = Search::new(presets(&["ndr"]), limits).unwrap();
    search.end(Ending::Cancelled);
    let Step::Done(result) = search.next() else { panic!("it goes on") };
    assert_eq!(result.goals[0].irregular, Some(Irregular::Ended { by: Ending::Cancelled }));
    let failed =
        run(Search::new(presets(&["ndr"]), Limits::between(MIN, MAX)).unwrap(), |_: Trial| {
            Err("the cable is out")
        });
    assert_eq!(failed.unwrap_err(), "the cable is out");
}

#[test]
fn impossible_searches_are_refused_with_all_reasons() {
    let ndr = || Goal::preset("ndr").unwrap();
    let reports = |goals: Vec<Goal>, limits: Limits, part: &str| {
        let faults = Search::new(goals, limits).unwrap_err();
        let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains(part)), "{part}: {texts:?}");
    };
    let loads = || Limits::between(MIN, MAX);
    reports(vec![], loads(), "no goal");
    reports(vec![ndr(), ndr()], loads(), "two goals are named ndr");
    for ratio in [-0.1, 1.0, f64::NAN] {
        reports(vec![Goal { loss_ratio: ratio, ..ndr() }], loads(), "goal ndr: a loss ratio of");
        reports(vec![Goal { exceed_ratio: ratio, ..ndr() }], loads(), "an exceed ratio of");
        reports(vec![Goal { width: ratio, ..ndr() }], loads(), "a width of");
    }
    reports(vec![Goal { width: 0.0, ..ndr() }], loads(), "a width of 0:");
    reports(vec![Goal { initial_ns: 0, ..ndr() }], loads(), "an initial trial duration of 0");
    reports(vec![Goal { initial_ns: 2_000_000_000, ..ndr() }], loads(), "above the final one");
    reports(vec![Goal { sum_ns: 5, ..ndr() }], loads(), "below the final trial duration");
    reports(vec![ndr()], Limits::between(0, MAX), "a least load of 0");
    reports(vec![ndr()], Limits::between(MAX, MAX), "not below the greatest");
    reports(vec![ndr()], Limits { link: Some(MAX - 1), ..loads() }, "above what the link carries");
    reports(vec![ndr()], Limits::between(100, MAX), "begin at 200 frames/s");
    reports(vec![Goal { initial_ns: 1_000, ..ndr() }], loads(), "sends no frame");
    reports(vec![ndr()], Limits { trials: 0, ..loads() }, "no trials");
    // All faults together.
    let goal = Goal { loss_ratio: 2.0, width: 3.0, ..ndr() };
    assert_eq!(Search::new(vec![goal], Limits::between(5, 4)).unwrap_err().len(), 3);
    assert_eq!(Goal::preset("best"), None);
    assert!(fwdlab_search::PRESETS.iter().all(|name| Goal::preset(name).is_some()));
}

#[test]
fn equal_outcomes_lead_to_equal_searches() {
    let law = Law { sigma: 0.01, lossy: 0.2, ..Law::exact(2e6) };
    let of = |seed| search(&mut Device::new(law, seed), &["ndr", "pdr"]);
    assert_eq!(of(5), of(5));
    assert_ne!(of(5), of(6));
}
