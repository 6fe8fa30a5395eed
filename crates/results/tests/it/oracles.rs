//! The statistics against other programs, case by case.
//!
//! The cases and what the others say are in `oracles/vectors.json`, made by
//! `oracles/make_vectors.py`. Estimates and ends of intervals agree to 1e-10 of
//! their size, p-values to 1e-8 of theirs, however small (the smallest is below
//! 1e-80).

use fwdlab_results::stats::diagnostics::{dip, grubbs, lag1_autocorrelation, run_order_trend};
use fwdlab_results::stats::ministat::{DataSet, Options, render};
use fwdlab_results::stats::power::detectable_multiple;
use fwdlab_results::stats::sequential::open::log_e;
use fwdlab_results::stats::sequential::planned::bounds;
use fwdlab_results::stats::summary::{Interval, median_interval, quantile, t_quantile};
use fwdlab_results::stats::{
    Adjustment, BlockedRun, Comparison, Criteria, Estimate, Method, ScaledRun, Summary,
    compare_blocked, compare_unblocked, fit_scalability,
};
use serde_json::Value;
use std::sync::OnceLock;

/// Estimates and ends of intervals, relative.
const ESTIMATE: f64 = 1e-10;
/// p-values, relative.
const P: f64 = 1e-8;

#[test]
fn summaries() {
    for case in cases("summaries") {
        let name = name(case);
        let values = figures(&case["values"]);
        let summary = Summary::of(&values).unwrap();
        near(&format!("{name}: mean"), summary.mean, number(&case["mean"]), ESTIMATE);
        near(&format!("{name}: sd"), summary.sd.unwrap(), number(&case["sd"]), ESTIMATE);
        near(&format!("{name}: median"), summary.median, number(&case["median"]), ESTIMATE);
        for pair in array(&case["quantiles"]) {
            let (p, theirs) = (number(&pair[0]), number(&pair[1]));
            near(&format!("{name}: quantile {p}"), quantile(&values, p).unwrap(), theirs, ESTIMATE);
        }
        for row in array(&case["mean_intervals"]) {
            let confidence = number(&row[0]);
            let ours = summary.mean_interval(confidence).unwrap();
            let what = format!("{name}: mean at {confidence} %");
            ends(&what, (ours.low, ours.high), (number(&row[1]), number(&row[2])));
        }
        for row in array(&case["median_intervals"]) {
            let confidence = number(&row[0]);
            let theirs = interval(&row[1]).map(|(low, high)| Interval { low, high });
            let ours = median_interval(&values, confidence);
            assert_eq!(ours, theirs, "{name}: median at {confidence} %");
        }
    }
}

#[test]
fn quantiles_of_t() {
    for case in cases("t_quantiles") {
        let ours = t_quantile(number(&case["confidence"]), number(&case["df"])).unwrap();
        near(name(case), ours, number(&case["t"]), ESTIMATE);
    }
}

#[test]
fn detectable_effects() {
    for case in cases("powers") {
        let [confidence, df, power] =
            ["confidence", "df", "power"].map(|field| number(&case[field]));
        let ours = detectable_multiple(confidence, df, power).unwrap();
        near(name(case), ours, number(&case["multiple"]), ESTIMATE);
    }
}

#[test]
fn comparisons_without_blocks() {
    for case in cases("unblocked") {
        let name = name(case);
        let (a, b) = (figures(&case["a"]), figures(&case["b"]));
        let found = compare_unblocked(&a, &b, criteria(case)).unwrap();
        compare_t(name, &found, &case["t"]);
        assert_eq!(Some(found.is_within_margin()), case["within_margin"].as_bool(), "{name}: TOST");
        compare_rank(name, found.robust.as_ref(), &case["rank"]);
    }
}

#[test]
fn comparisons_in_blocks() {
    let mut decided_by_exact_test = 0;
    for case in cases("blocked") {
        let name = name(case);
        let runs_of = |variant: usize| -> Vec<BlockedRun> {
            (0..)
                .zip(array(&case["blocks"]))
                .flat_map(|(block, both)| {
                    figures(&both[variant]).into_iter().map(move |pps| BlockedRun { block, pps })
                })
                .collect()
        };
        let found = compare_blocked(&runs_of(0), &runs_of(1), criteria(case)).unwrap();
        if found.method == Method::BlockedT {
            compare_t(name, &found, &case["t"]);
            if let Some(within) = case["t_within_margin"].as_bool() {
                assert_eq!(found.is_within_margin(), within, "{name}: TOST");
            }
        } else {
            decided_by_exact_test += 1;
            let t = &case["t"];
            let beside = found.beside.as_ref().unwrap();
            assert_eq!(beside.method, Method::BlockedT, "{name}");
            compare_estimate(name, beside, t);
            near(&format!("{name}: MDE"), found.mde, number(&t["mde"]), ESTIMATE);
        }
        compare_exact(name, &found, &case["exact"]);
        compare_rank(name, found.robust.as_ref(), &case["rank"]);
    }
    assert!(decided_by_exact_test >= 10, "only {decided_by_exact_test}");
}

#[test]
fn pooled_t_of_ministat() {
    for case in cases("ministat") {
        let name = name(case);
        let sets = ["a", "b"]
            .map(|variant| DataSet { name: variant.to_owned(), values: figures(&case[variant]) });
        let confidence = number(&case["confidence"]);
        let text = render(&sets, &Options { confidence, ..Options::default() }).unwrap();
        for line in array(&case["lines"]) {
            let line = line.as_str().unwrap();
            assert!(text.lines().any(|ours| ours == line), "{name}: no {line:?} in\n{text}");
        }
    }
}

#[test]
fn families() {
    for case in cases("families") {
        let given = figures(&case["p"]);
        for (adjustment, theirs) in [
            (Adjustment::Holm, &case["holm"]),
            (Adjustment::BenjaminiHochberg, &case["benjamini_hochberg"]),
        ] {
            let (ours, theirs) = (adjustment.adjust(&given), figures(theirs));
            assert_eq!(ours.len(), theirs.len(), "{}: {adjustment}", name(case));
            for (i, (ours, theirs)) in ours.into_iter().zip(theirs).enumerate() {
                near(&format!("{}: {adjustment} {i}", name(case)), ours, theirs, ESTIMATE);
            }
        }
    }
}

#[test]
fn order_of_runs() {
    for case in cases("orders") {
        let name = name(case);
        let figures = figures(&case["figures"]);
        let trend = run_order_trend(&figures).unwrap();
        near(&format!("{name}: slope"), trend.slope, number(&case["slope"]), ESTIMATE);
        p_value(&format!("{name}: trend"), trend.p, number(&case["p"]));
        let lag1 = lag1_autocorrelation(&figures).unwrap();
        near(&format!("{name}: lag 1"), lag1, number(&case["lag1"]), ESTIMATE);
    }
}

/// The answer by a t test that decides, with everything that comes with it.
fn compare_t(name: &str, found: &Comparison, t: &Value) {
    compare_estimate(name, &found.estimate(), t);
    let equivalence = (found.equivalence_low, found.equivalence_high);
    ends(&format!("{name}: equivalence"), equivalence, interval(&t["equivalence"]).unwrap());
    near(&format!("{name}: MDE"), found.mde, number(&t["mde"]), ESTIMATE);
}

/// The randomisation test, whichever place it has.
fn compare_exact(name: &str, found: &Comparison, exact: &Value) {
    let estimates = [Some(found.estimate()), found.beside.clone()];
    let ours = estimates
        .into_iter()
        .flatten()
        .find(|estimate| matches!(estimate.method, Method::Exact { .. }));
    let (Some(ours), Some(count)) = (ours, exact["assignments"].as_u64()) else {
        assert!(exact.is_null(), "{name}: no randomisation test");
        return;
    };
    assert_eq!(ours.method, Method::Exact { assignments: count }, "{name}");
    p_value(&format!("{name}: exact"), ours.p, number(&exact["p"]));
    match (ours.interval, interval(&exact["interval"])) {
        (Some(ours), Some(theirs)) => ends(&format!("{name}: inversion"), ours, theirs),
        (ours, theirs) => assert_eq!(ours, theirs, "{name}: inversion"),
    }
}

fn compare_rank(name: &str, ours: Option<&Estimate>, rank: &Value) {
    match ours {
        Some(ours) => compare_estimate(&format!("{name}: ranks"), ours, rank),
        None => assert!(rank.is_null(), "{name}: no ranks"),
    }
}

fn compare_estimate(name: &str, ours: &Estimate, theirs: &Value) {
    assert!(!theirs.is_null(), "{name}: the oracle has none");
    near(&format!("{name}: ratio"), ours.ratio, number(&theirs["ratio"]), ESTIMATE);
    ends(name, ours.interval.unwrap(), interval(&theirs["interval"]).unwrap());
    p_value(name, ours.p, number(&theirs["p"]));
}

fn ends(what: &str, ours: (f64, f64), theirs: (f64, f64)) {
    near(&format!("{what}: low"), ours.0, theirs.0, ESTIMATE);
    near(&format!("{what}: high"), ours.1, theirs.1, ESTIMATE);
}

fn p_value(what: &str, ours: f64, theirs: f64) {
    near(&format!("{what}: p"), ours, theirs, P);
}

fn near(what: &str, ours: f64, theirs: f64, tolerance: f64) {
    assert!(
        (ours - theirs).abs() <= tolerance * theirs.abs(),
        "{what}: {ours:e} is not {theirs:e}"
    );
}

fn criteria(case: &Value) -> Criteria {
    let (confidence, margin) = (number(&case["confidence"]), number(&case["margin"]));
    Criteria { confidence, margin, ..Criteria::default() }
}

#[test]
fn evidence_of_an_open_experiment() {
    for case in cases("e_process") {
        let ours = log_e(number(&case["n"]) as u32, number(&case["t"]));
        let theirs = number(&case["log_e"]);
        // A logarithm near 0 is only as good as its parts.
        let error = (ours - theirs).abs();
        assert!(
            error <= ESTIMATE * theirs.abs().max(1.0),
            "{}: {ours} is not {theirs}",
            name(case)
        );
    }
}

#[test]
fn bounds_of_planned_looks() {
    for case in cases("obrien_fleming") {
        let looks = number(&case["looks"]) as usize;
        let fractions: Vec<f64> = (1..=looks).map(|look| look as f64 / looks as f64).collect();
        let ours = bounds(&fractions, number(&case["level"])).unwrap();
        for (ours, theirs) in ours.iter().zip(figures(&case["bounds"])) {
            near(name(case), *ours, theirs, number(&case["good_to"]));
        }
    }
}

#[test]
fn outliers_and_modes() {
    for case in cases("grubbs") {
        let ours = grubbs(&figures(&case["figures"])).unwrap();
        let theirs = number(&case["statistic"]);
        near(&format!("{}: statistic", name(case)), ours.statistic, theirs, ESTIMATE);
        near(&format!("{}: p", name(case)), ours.p, number(&case["p"]), P);
    }
    for case in cases("dips") {
        let ours = dip(&figures(&case["figures"])).unwrap();
        near(&format!("{}: dip", name(case)), ours, number(&case["dip"]), ESTIMATE);
    }
}

#[test]
fn scaling_laws() {
    for case in cases("scalability") {
        let rates = figures(&case["rates"]);
        let runs: Vec<ScaledRun> = array(&case["levels"])
            .iter()
            .zip(rates)
            .map(|(level, pps)| ScaledRun {
                level: number(level) as u32,
                block: 0,
                pps,
                limited: false,
            })
            .collect();
        let law = fit_scalability(&runs, 95.0).unwrap();
        let good_to = number(&case["good_to"]);
        let parameters = [("lambda", law.lambda_pps), ("sigma", law.sigma), ("kappa", law.kappa)];
        for (which, ours) in parameters {
            let what = format!("{}: {which}", name(case));
            near(&what, ours.value, number(&case[which]), good_to);
            let theirs = &case[format!("{which}_interval")];
            near(&what, ours.low, number(&theirs[0]), good_to);
            near(&what, ours.high, number(&theirs[1]), good_to);
        }
    }
}

fn cases(statistic: &str) -> &'static [Value] {
    static VECTORS: OnceLock<Value> = OnceLock::new();
    let vectors =
        VECTORS.get_or_init(|| serde_json::from_str(include_str!("oracles/vectors.json")).unwrap());
    let cases = array(&vectors[statistic]);
    assert!(!cases.is_empty(), "no cases of {statistic}");
    cases
}

fn name(case: &Value) -> &str {
    case["name"].as_str().unwrap()
}

/// A list, or the recipe of a long one: base + step * (i * factor % modulus).
fn figures(value: &Value) -> Vec<f64> {
    if let Some(list) = value.as_array() {
        return list.iter().map(number).collect();
    }
    let [factor, modulus, count] =
        ["factor", "modulus", "count"].map(|field| value[field].as_u64().unwrap());
    let (base, step) = (number(&value["base"]), number(&value["step"]));
    (0..count).map(|i| base + step * (i * factor % modulus) as f64).collect()
}

fn interval(value: &Value) -> Option<(f64, f64)> {
    let list = value.as_array()?;
    Some((number(&list[0]), number(&list[1])))
}

fn array(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}
