//! Classes and conditional throughput compared with the RFC's text, its example, the reference
//! implementation and an oracle in whole numbers.

use fwdlab_search::{Class, Goal, Measured, Output, Sums, Trial, conditional_throughput};
use proptest::prelude::*;

const LOAD: u64 = 1_000_000;
const MS: u64 = 1_000_000;

/// Returns a goal from milliseconds, millionths of loss and thousandths that may exceed.
fn goal(final_ms: u64, sum_ms: u64, loss_ppm: u64, exceed: u64) -> Goal {
    Goal {
        name: "goal".into(),
        loss_ratio: loss_ppm as f64 / 1e6,
        exceed_ratio: exceed as f64 / 1e3,
        initial_ns: MS,
        final_ns: final_ms * MS,
        sum_ns: sum_ms * MS,
        width: 0.005,
    }
}

/// Returns a trial from milliseconds (intended and effective) and millionths of loss.
fn trial((intended_ms, effective_ms, loss_ppm): (u64, u64, u64)) -> Measured {
    let trial = Trial { load: LOAD, duration_ns: intended_ms * MS };
    let loss_ratio = loss_ppm as f64 / 1e6;
    Measured { trial, output: Output { loss_ratio, effective_ns: effective_ms * MS } }
}

fn class(goal: &Goal, trials: &[(u64, u64, u64)]) -> Class {
    let trials: Vec<Measured> = trials.iter().copied().map(trial).collect();
    Sums::of(goal, &trials).class(goal)
}

/// "Load Classification Logic", step by step, with every quantity scaled to a whole number.
fn oracle(goal: (u64, u64, u64, u64), trials: &[(u64, u64, u64)]) -> Class {
    let (last, duration_sum, ratio, exceed) = goal;
    let sum = |full: bool, high: bool| -> i128 {
        let of = |t: &&(u64, u64, u64)| (t.0 >= last) == full && (t.2 > ratio) == high;
        trials.iter().filter(of).map(|t| i128::from(t.1)).sum()
    };
    let (exceed, subceed) = (i128::from(exceed), i128::from(1000 - exceed));
    let balancing = sum(false, false) * exceed;
    let positive_excess = (sum(false, true) * subceed - balancing).max(0);
    let high = sum(true, true) * subceed + positive_excess;
    let full = high + sum(true, false) * subceed;
    let whole = full.max(i128::from(duration_sum) * subceed);
    let pessimistic = high + (whole - full);
    if high * 1000 > exceed * whole {
        Class::Upper
    } else if pessimistic * 1000 <= exceed * whole {
        Class::Lower
    } else {
        Class::Undecided
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(4000) })]

    #[test]
    fn classes_match_an_integer_oracle(
        final_ms in 1_u64..5, more in 0_u64..40, ratio in prop::sample::select(vec![0, 5_000, 300_000]),
        exceed in prop::sample::select(vec![0_u64, 100, 200, 300, 333, 500, 700, 900, 999]),
        trials in prop::collection::vec(
            (1_u64..6, 0_u64..3, prop::sample::select(vec![0, 1, 5_000, 5_001, 400_000, 1_000_000])), 0..40,
        ),
    ) {
        let trials: Vec<_> = trials.into_iter().map(|(ms, over, loss)| (ms, ms + over, loss)).collect();
        let given = (final_ms, final_ms + more, ratio, exceed);
        prop_assert_eq!(class(&goal(given.0, given.1, ratio, exceed), &trials), oracle(given, &trials));
    }

    /// The RFC's meaning of the classes: a bound is certain, whatever trials follow until the
    /// duration sum is reached.
    #[test]
    fn bound_holds_for_any_remaining_trials(
        sum in 1_u64..25, exceed in 0_u64..10, low in 0_u64..25, high in 0_u64..25,
    ) {
        let goal = goal(1, sum, 0, 100 * exceed);
        let trials = [vec![(1, 1, 0); low as usize], vec![(1, 1, 9); high as usize]].concat();
        let missing = sum.saturating_sub(low + high);
        let holds = |bad: u64| 10 * (high + bad) <= exceed * (low + high + missing);
        let expected = match ((0..=missing).all(holds), (0..=missing).any(holds)) {
            (true, _) => Class::Lower,
            (false, false) => Class::Upper,
            (false, true) => Class::Undecided,
        };
        prop_assert_eq!(class(&goal, &trials), expected);
    }
}

/// The RFC's appendix "Example Search". Its table prints "Lower Bound" in the last column of points
/// 5 and 6 below pessimistic exceed ratios of 42.857 % and 27.273 %, which are larger than the
/// goal's 20 %: the rule decides, here and in the reference implementation.
#[test]
fn rfc_example_is_classified_by_its_rule() {
    let second = 1000;
    let goals = [
        goal(60 * second, 60 * second, 0, 0),
        goal(60 * second, 120 * second, 0, 500),
        goal(second, 120 * second, 5_000, 500),
        goal(60 * second, 60 * second, 5_000, 200),
    ];
    let short = |loss| (second, second, loss);
    let long = |loss| (60 * second, 60 * second, loss);
    let added = [
        vec![short(0); 59],
        vec![short(10_000)],
        vec![short(10_000); 59],
        vec![short(0)],
        vec![long(1_000)],
        vec![long(0)],
    ];
    let expected = ["????", "U???", "U??U", "U?LU", "U?LU", "ULLU"];
    let mut trials = Vec::new();
    for (point, (added, expected)) in added.into_iter().zip(expected).enumerate() {
        trials.extend(added);
        let classes: String = goals.iter().map(|goal| letter(class(goal, &trials))).collect();
        assert_eq!(classes, expected, "point {}", point + 1);
    }
    let trials: Vec<Measured> = trials.into_iter().map(trial).collect();
    let rate = |goal: &Goal| conditional_throughput(goal, LOAD, &trials).unwrap().round();
    // As in the RFC; the last one as if the load were a lower bound.
    assert_eq!(goals[1..].iter().map(rate).collect::<Vec<_>>(), [1e6, 1e6, 999_000.0]);
}

fn letter(class: Class) -> char {
    match class {
        Class::Lower => 'L',
        Class::Upper => 'U',
        Class::Undecided => '?',
    }
}

/// Random trial sets with the results of PyPI's MLRsearch 1.2.1: goal (final and sum in ms, loss in
/// millionths, exceed ratio in thousandths), trials (intended ms, effective ms, millionths lost),
/// class, and the loss in millionths from which it computes conditional throughput.
#[test]
fn classes_match_the_reference_implementation() {
    let mut seen = std::collections::BTreeMap::<char, usize>::new();
    for (number, line) in include_str!("reference.txt").lines().enumerate() {
        let fields: Vec<&str> = line.split('|').collect();
        let numbers = |text: &str| -> Vec<u64> {
            text.split([' ', ':']).filter(|t| !t.is_empty()).map(|t| t.parse().unwrap()).collect()
        };
        let of = numbers(fields[0]);
        let goal = goal(of[0], of[1], of[2], of[3]);
        let trials: Vec<_> = numbers(fields[1]).chunks(3).map(|t| (t[0], t[1], t[2])).collect();
        let found = letter(class(&goal, &trials));
        assert_eq!(found.to_string(), fields[2], "line {}", number + 1);
        *seen.entry(found).or_default() += 1;
        let trials: Vec<Measured> = trials.into_iter().map(trial).collect();
        let loss = conditional_throughput(&goal, LOAD, &trials)
            .map_or("-".into(), |rate| (1e6 - rate).round().to_string());
        assert_eq!(loss, fields[3], "line {}", number + 1);
    }
    assert!(seen.len() == 3 && seen.values().all(|count| *count >= 50), "{seen:?}");
}

#[test]
fn conditional_throughput_is_the_guaranteed_rate() {
    let goal = goal(1, 4, 5_000, 500);
    let rate = |trials: &[(u64, u64, u64)]| {
        let trials: Vec<Measured> = trials.iter().copied().map(trial).collect();
        conditional_throughput(&goal, LOAD, &trials)
    };
    // Short trials give no throughput; missing duration counts as lost, beyond the exceed ratio.
    assert_eq!(rate(&[]), None);
    assert_eq!(rate(&[(1, 1, 0)]), Some(0.0));
    assert_eq!(rate(&[(1, 1, 0), (1, 1, 3_000)]), Some(997_000.0));
    assert_eq!(rate(&[(1, 1, 0), (1, 1, 3_000), (1, 1, 900_000)]), Some(997_000.0));
    // Beyond the duration sum all measurements count.
    let many = [(1, 1, 0), (1, 1, 0), (1, 1, 0), (1, 1, 4_000), (1, 1, 5_000), (1, 3, 6_000)];
    assert_eq!(rate(&many), Some(996_000.0));
}
