//! Statistics compared with other programs, case by case.
//!
//! Cases and the results of the other programs are in `oracles/vectors.json`, made by
//! `oracles/make_vectors.py`. Estimates and ends of intervals agree to a relative 1e-10, p-values
//! to a relative 1e-8, however small (the smallest is below 1e-80).

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

/// Relative tolerance of estimates and ends of intervals.
const ESTIMATE: f64 = 1e-10;
/// Relative tolerance of p-values.
const P: f64 = 1e-8;

#[test]
fn summaries_agree_with_oracles() {
    for case in cases("summaries") {
        let name = name(case);
        let values = figures(&case["values"]);
        let summary = Summary::of(&values).unwrap();
        near(&format!("{name}: mean"), summary.mean, number(&case["mean"]), ESTIMATE);
        near(&format!("{name}: sd"), summary.sd.unwrap(), number(&case["sd"]), ESTIMATE);
        near(&format!("{name}: median"), summary.median, number(&case["median"]), ESTIMATE);
        for pair in array(&case["quantiles"]) {
            let (p, oracle) = (number(&pair[0]), number(&pair[1]));
            near(&format!("{name}: quantile {p}"), quantile(&values, p).unwrap(), oracle, ESTIMATE);
        }
        for row in array(&case["mean_intervals"]) {
            let confidence = number(&row[0]);
            let actual = summary.mean_interval(confidence).unwrap();
            let what = format!("{name}: mean at {confidence} %");
            ends(&what, (actual.low, actual.high), (number(&row[1]), number(&row[2])));
        }
        for row in array(&case["median_intervals"]) {
            let confidence = number(&row[0]);
            let oracle = interval(&row[1]).map(|(low, high)| Interval { low, high });
            let actual = median_interval(&values, confidence);
            assert_eq!(actual, oracle, "{name}: median at {confidence} %");
        }
    }
}

#[test]
fn t_quantiles_agree_with_oracles() {
    for case in cases("t_quantiles") {
        let actual = t_quantile(number(&case["confidence"]), number(&case["df"])).unwrap();
        near(name(case), actual, number(&case["t"]), ESTIMATE);
    }
}

#[test]
fn detectable_effects_agree_with_oracles() {
    for case in cases("powers") {
        let [confidence, df, power] =
            ["confidence", "df", "power"].map(|field| number(&case[field]));
        let actual = detectable_multiple(confidence, df, power).unwrap();
        near(name(case), actual, number(&case["multiple"]), ESTIMATE);
    }
}

#[test]
fn unblocked_comparisons_agree_with_oracles() {
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
fn blocked_comparisons_agree_with_oracles() {
    let mut decided_by_exact_test = 0;
    for case in cases("blocked") {
        let name = name(case);
        let runs_of = |variant: usize| -> Vec<BlockedRun> {
            (0..)
                .zip(array(&case["blocks"]))
                .flat_map(|(block, pair)| {
                    figures(&pair[variant]).into_iter().map(move |pps| BlockedRun { block, pps })
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
            let secondary = found.beside.as_ref().unwrap();
            assert_eq!(secondary.method, Method::BlockedT, "{name}");
            compare_estimate(name, secondary, t);
            near(&format!("{name}: MDE"), found.mde, number(&t["mde"]), ESTIMATE);
        }
        compare_exact(name, &found, &case["exact"]);
        compare_rank(name, found.robust.as_ref(), &case["rank"]);
    }
    assert!(decided_by_exact_test >= 10, "only {decided_by_exact_test}");
}

#[test]
fn ministat_pooled_t_agrees_with_oracles() {
    for case in cases("ministat") {
        let name = name(case);
        let sets = ["a", "b"]
            .map(|variant| DataSet { name: variant.to_owned(), values: figures(&case[variant]) });
        let confidence = number(&case["confidence"]);
        let text = render(&sets, &Options { confidence, ..Options::default() }).unwrap();
        for line in array(&case["lines"]) {
            let line = line.as_str().unwrap();
            assert!(text.lines().any(|actual| actual == line), "{name}: no {line:?} in\n{text}");
        }
    }
}

#[test]
fn adjustments_agree_with_oracles() {
    for case in cases("families") {
        let given = figures(&case["p"]);
        for (adjustment, oracle) in [
            (Adjustment::Holm, &case["holm"]),
            (Adjustment::BenjaminiHochberg, &case["benjamini_hochberg"]),
        ] {
            let (actual, oracle) = (adjustment.adjust(&given), figures(oracle));
            assert_eq!(actual.len(), oracle.len(), "{}: {adjustment}", name(case));
            for (i, (actual, oracle)) in actual.into_iter().zip(oracle).enumerate() {
                near(&format!("{}: {adjustment} {i}", name(case)), actual, oracle, ESTIMATE);
            }
        }
    }
}

#[test]
fn run_order_statistics_agree_with_oracles() {
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

/// Compares the result of a t test that decides, with everything derived from it.
fn compare_t(name: &str, found: &Comparison, t: &Value) {
    compare_estimate(name, &found.estimate(), t);
    let equivalence = (found.equivalence_low, found.equivalence_high);
    ends(&format!("{name}: equivalence"), equivalence, interval(&t["equivalence"]).unwrap());
    near(&format!("{name}: MDE"), found.mde, number(&t["mde"]), ESTIMATE);
}

/// Compares the randomisation test, whether it is the primary or the secondary result.
fn compare_exact(name: &str, found: &Comparison, exact: &Value) {
    let estimates = [Some(found.estimate()), found.beside.clone()];
    let actual = estimates
        .into_iter()
        .flatten()
        .find(|estimate| matches!(estimate.method, Method::Exact { .. }));
    let (Some(actual), Some(count)) = (actual, exact["assignments"].as_u64()) else {
        assert!(exact.is_null(), "{name}: no randomisation test");
        return;
    };
    assert_eq!(actual.method, Method::Exact { assignments: count }, "{name}");
    p_value(&format!("{name}: exact"), actual.p, number(&exact["p"]));
    match (actual.interval, interval(&exact["interval"])) {
        (Some(actual), Some(oracle)) => ends(&format!("{name}: inversion"), actual, oracle),
        (actual, oracle) => assert_eq!(actual, oracle, "{name}: inversion"),
    }
}

fn compare_rank(name: &str, actual: Option<&Estimate>, rank: &Value) {
    match actual {
        Some(actual) => compare_estimate(&format!("{name}: ranks"), actual, rank),
        None => assert!(rank.is_null(), "{name}: no ranks"),
    }
}

fn compare_estimate(name: &str, actual: &Estimate, oracle: &Value) {
    assert!(!oracle.is_null(), "{name}: the oracle has none");
    near(&format!("{name}: ratio"), actual.ratio, number(&oracle["ratio"]), ESTIMATE);
    ends(name, actual.interval.unwrap(), interval(&oracle["interval"]).unwrap());
    p_value(name, actual.p, number(&oracle["p"]));
}

fn ends(what: &str, actual: (f64, f64), oracle: (f64, f64)) {
    near(&format!("{what}: low"), actual.0, oracle.0, ESTIMATE);
    near(&format!("{what}: high"), actual.1, oracle.1, ESTIMATE);
}

fn p_value(what: &str, actual: f64, oracle: f64) {
    near(&format!("{what}: p"), actual, oracle, P);
}

fn near(what: &str, actual: f64, oracle: f64, tolerance: f64) {
    assert!(
        (actual - oracle).abs() <= tolerance * oracle.abs(),
        "{what}: {actual:e} is not {oracle:e}"
    );
}

fn criteria(case: &Value) -> Criteria {
    let (confidence, margin) = (number(&case["confidence"]), number(&case["margin"]));
    Criteria { confidence, margin, ..Criteria::default() }
}

#[test]
fn open_evidence_agrees_with_oracles() {
    for case in cases("e_process") {
        let actual = log_e(number(&case["n"]) as u32, number(&case["t"]));
        let oracle = number(&case["log_e"]);
        // A logarithm near 0 is only as exact as its terms.
        let error = (actual - oracle).abs();
        assert!(
            error <= ESTIMATE * oracle.abs().max(1.0),
            "{}: {actual} is not {oracle}",
            name(case)
        );
    }
}

#[test]
fn planned_bounds_agree_with_oracles() {
    for case in cases("obrien_fleming") {
        let looks = number(&case["looks"]) as usize;
        let fractions: Vec<f64> = (1..=looks).map(|look| look as f64 / looks as f64).collect();
        let actual = bounds(&fractions, number(&case["level"])).unwrap();
        for (actual, oracle) in actual.iter().zip(figures(&case["bounds"])) {
            near(name(case), *actual, oracle, number(&case["good_to"]));
        }
    }
}

#[test]
fn outliers_and_modes_agree_with_oracles() {
    for case in cases("grubbs") {
        let actual = grubbs(&figures(&case["figures"])).unwrap();
        let oracle = number(&case["statistic"]);
        near(&format!("{}: statistic", name(case)), actual.statistic, oracle, ESTIMATE);
        near(&format!("{}: p", name(case)), actual.p, number(&case["p"]), P);
    }
    for case in cases("dips") {
        let actual = dip(&figures(&case["figures"])).unwrap();
        near(&format!("{}: dip", name(case)), actual, number(&case["dip"]), ESTIMATE);
    }
}

#[test]
fn scaling_laws_agree_with_oracles() {
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
        for (which, actual) in parameters {
            let what = format!("{}: {which}", name(case));
            near(&what, actual.value, number(&case[which]), good_to);
            let oracle = &case[format!("{which}_interval")];
            near(&what, actual.low, number(&oracle[0]), good_to);
            near(&what, actual.high, number(&oracle[1]), good_to);
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

/// A list, or the formula of a long one: base + step * (i * factor % modulus).
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
