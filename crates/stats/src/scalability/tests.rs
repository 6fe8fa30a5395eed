//! Oracle: scipy 1.17.1, `curve_fit` for estimates and standard errors,
//! `brentq` over `least_squares` for profile intervals, tolerances 1e-15.

use super::*;
use proptest::prelude::*;

/// Three runs of 1 to 8 without blocks; lambda 1e6, sigma 0.05, kappa 0.01, 2 %.
const PLAIN: [f64; 24] = [
    1000025., 1005993., 994532., 1836160., 1852239., 1832453., 2589320., 2656466., 2560873.,
    3110763., 3180614., 3172168., 3578966., 3505581., 3569340., 3925174., 3768286., 3835701.,
    3917922., 3966147., 3922586., 4168834., 4083643., 4211267.,
];
/// Block, level, rate; lambda 8e5, sigma 0.2, kappa 0.002, 1 %; one run is missing.
const BLOCKED: [(u32, u32, f64); 23] = [
    (0, 1, 885524.),
    (0, 2, 1465923.),
    (0, 3, 1831791.),
    (0, 4, 2165977.),
    (0, 6, 2573907.),
    (0, 8, 2818914.),
    (1, 1, 749428.),
    (1, 2, 1258067.),
    (1, 3, 1601077.),
    (1, 4, 1859244.),
    (1, 6, 2240096.),
    (1, 8, 2404023.),
    (2, 1, 824096.),
    (2, 2, 1381539.),
    (2, 3, 1741289.),
    (2, 4, 2028185.),
    (2, 8, 2628264.),
    (3, 1, 738964.),
    (3, 2, 1211796.),
    (3, 3, 1570231.),
    (3, 4, 1843833.),
    (3, 6, 2117928.),
    (3, 8, 2372188.),
];
/// Three runs of 1, 2, 4 and 8; lambda 1e6, sigma 0.1, kappa 0, 2 %.
const RISING: [f64; 12] = [
    1041663., 950171., 1008397., 1797652., 1801796., 1810359., 2955094., 3062683., 3024137.,
    5029262., 4727181., 4672810.,
];

fn run(level: u32, pps: f64) -> ScaledRun {
    ScaledRun { level, block: 0, pps, limited: false }
}

fn plain() -> Vec<ScaledRun> {
    PLAIN.iter().zip(0..).map(|(&pps, i)| run(i / 3 + 1, pps)).collect()
}

fn rising() -> Vec<ScaledRun> {
    RISING.iter().zip(0..).map(|(&pps, i)| run(1 << (i / 3), pps)).collect()
}

fn law(level: u32, lambda: f64, sigma: f64, kappa: f64) -> f64 {
    let n = f64::from(level);
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

#[track_caller]
fn close(ours: f64, theirs: f64, tolerance: f64) {
    assert!((ours - theirs).abs() <= tolerance * theirs.abs(), "{ours} is not {theirs}");
}

#[track_caller]
fn parameter(ours: Parameter, value: f64, se: f64) {
    close(ours.value, value, 1e-6);
    close(ours.se.unwrap(), se, 1e-4);
    assert!(!ours.at_bound && ours.low < value && value < ours.high);
}

#[test]
fn runs_without_blocks_agree_with_scipy() {
    let fit = fit_scalability(&plain(), 95.0).unwrap();
    parameter(fit.lambda_pps, 13.811094088714977_f64.exp(), 0.007952985739987253);
    parameter(fit.sigma, 0.045112249944017545, 0.007464228489506177);
    parameter(fit.kappa, 0.01112422908574618, 0.0009096925769118437);
    close(fit.residual_sd.powi(2) * fit.df, 0.005146588311953806, 1e-6);
    let test = fit.lack_of_fit.unwrap();
    close(test.f, 2.6709090823215837, 1e-6);
    close(test.p, 0.06121217023756457, 1e-6);
    assert_eq!((test.df_law, test.df_runs, fit.df), (5.0, 16.0, 21.0));
    close(fit.peak.level.unwrap(), 9.264909874694228, 1e-6);
    close(fit.peak.low, 8.631618065730649, 1e-6);
    close(fit.peak.high.unwrap(), 10.102156720892564, 1e-6);
    let (pps, interval) = fit.predict(10.0);
    close(pps, 4135913.2861867906, 1e-6);
    close(interval.low, 4025214.230941859, 1e-6);
    close(interval.high, 4249656.721216014, 1e-6);
    // The peak is beyond the largest level: nothing is extrapolated.
    assert_eq!(fit.best.level, 8);
    assert!(fit.sentence().contains("no peak within what was measured (at 9.26 [8.63, 10.1])"));
}

#[test]
fn runs_in_blocks_agree_with_scipy() {
    let runs = BLOCKED.map(|(block, level, pps)| ScaledRun { block, ..run(level, pps) });
    let fit = fit_scalability(&runs, 95.0).unwrap();
    parameter(fit.lambda_pps, 13.588914633239309_f64.exp(), 0.004418259535176862);
    parameter(fit.sigma, 0.20215196203671734, 0.005441950866908667);
    parameter(fit.kappa, 0.0015129140686942328, 0.000652694315237796);
    let test = fit.lack_of_fit.unwrap();
    close(test.f, 0.6673561978338649, 1e-6);
    close(test.p, 0.5859185531259754, 1e-6);
    assert_eq!((fit.df, fit.blocks, fit.runs), (17.0, 4, 23));
    assert!(fit.holds());
}

#[test]
fn bound_is_reported_with_a_one_sided_interval() {
    let fit = fit_scalability(&rising(), 95.0).unwrap();
    parameter(fit.lambda_pps, 13.804317946966604_f64.exp(), 0.014255489060430617);
    parameter(fit.sigma, 0.09507404922507541, 0.005826234225847272);
    assert_eq!((fit.kappa.value, fit.kappa.low, fit.kappa.se), (0.0, 0.0, None));
    close(fit.kappa.high, 0.002063278861235766, 1e-6);
    assert_eq!((fit.peak.level, fit.peak.high, fit.best.level), (None, None, 8));
    close(fit.peak.low, 21.132213311500784, 1e-6);
    let sentence = fit.sentence();
    assert!(sentence.contains("no peak within what was measured (above 21.1)"), "{sentence}");
    assert!(sentence.contains("kappa 0 (bound) [0, 0.0021]"), "{sentence}");
}

#[test]
fn archive_spike_does_not_fit_the_law() {
    // Chelsio queues 1 to 8 on FreeBSD 10.2, five boots each.
    let medians = [
        [1199682, 1189795, 1200070, 1199361, 1200125],
        [1700477, 1682173, 1707862, 1778483, 1741181],
        [1904508, 1933360, 1967253, 1898512, 1904284],
        [2565039, 2501358, 2269851, 2580742, 2570750],
        [2039046, 2031626, 1927777, 1929135, 2016438],
        [1866248, 1760286, 1718975, 1814065, 1697397],
        [1648023, 1345079, 1539144, 1588275, 1411721],
        [1350436, 1235417, 1235351, 1355429, 1219407],
    ];
    let runs: Vec<ScaledRun> = (1..)
        .zip(medians)
        .flat_map(|(level, rates)| rates.map(|pps| run(level, f64::from(pps))))
        .collect();
    let fit = fit_scalability(&runs, 95.0).unwrap();
    parameter(fit.lambda_pps, 13.938723917655443_f64.exp(), 0.033072178146727874);
    parameter(fit.kappa, 0.09826562462562136, 0.005475461129849224);
    assert!(fit.sigma.at_bound && fit.sigma.value == 0.0);
    close(fit.sigma.high, 0.0833303199215717, 1e-6);
    close(fit.peak.level.unwrap(), 3.190062456086512, 1e-6);
    close(fit.peak.low, 3.0171352698990184, 1e-5);
    close(fit.peak.high.unwrap(), 3.375477366357782, 1e-5);
    close(fit.lack_of_fit.unwrap().f, 28.465606352103155, 1e-6);
    assert_eq!((fit.best.level, fit.fastest_measured.level, fit.holds()), (3, 4, false));
    let sentence = fit.sentence();
    assert!(sentence.starts_with("the law does NOT describe these levels"), "{sentence}");
    assert!(sentence.contains("fastest measured level 4 (2.49 Mpps)"), "{sentence}");
}

#[test]
fn best_is_open_if_the_equipment_limits_higher_levels() {
    let at = |n: f64| 1.6e6 * n / (1.0 + 0.1 * (n - 1.0) + 0.02 * n * (n - 1.0));
    let runs = |limited_from: u32| -> Vec<ScaledRun> {
        let levels = (1..=8).flat_map(|level| [(level, 0.99), (level, 1.01)]);
        levels
            .map(|(level, noise)| ScaledRun {
                level,
                block: 0,
                pps: noise * at(f64::from(level)),
                limited: level >= limited_from,
            })
            .collect()
    };
    // The law's peak is at 6.7; only four levels are not limited.
    let limited = fit_scalability(&runs(5), 95.0).unwrap();
    assert_eq!(limited.best_phrase(), "4 or more");
    assert!(limited.sentence().starts_with("best level 4 or more (at 4: "), "{limited:?}");
    let whole = fit_scalability(&runs(9), 95.0).unwrap();
    assert_eq!((whole.best_is_open(), whole.best_phrase().as_str()), (false, "7"));
}

#[test]
fn level_at_the_ceiling_is_excluded_completely() {
    let mut runs = plain();
    // One run of eight queues was limited: the other two of that level are also excluded.
    runs[22].limited = true;
    let fit = fit_scalability(&runs, 95.0).unwrap();
    assert_eq!(fit.censored, [8]);
    assert_eq!(fit.levels, [1, 2, 3, 4, 5, 6, 7]);
    let without: Vec<ScaledRun> = plain().into_iter().filter(|run| run.level < 8).collect();
    assert_eq!(fit.sigma, fit_scalability(&without, 95.0).unwrap().sigma);
    assert!(fit.sentence().contains("(8 left out: limited by sender, receiver or line)"));
    for run in runs.iter_mut().filter(|run| run.level > 3) {
        run.limited = true;
    }
    let error = fit_scalability(&runs, 95.0).unwrap_err();
    assert_eq!(error, NoFit::TooFewLevels { have: 3, censored: vec![4, 5, 6, 7, 8] });
    assert_eq!(
        error.to_string(),
        "too few levels for three parameters: 3 of at least 4 (4, 5, 6, 7, 8 left out: limited by \
         sender, receiver or line)"
    );
}

#[test]
fn unusable_sweeps_are_refused_with_reasons() {
    let three: Vec<ScaledRun> = plain().into_iter().filter(|run| run.level < 4).collect();
    let few = NoFit::TooFewLevels { have: 3, censored: Vec::new() };
    assert_eq!(fit_scalability(&three, 95.0), Err(few));
    assert_eq!(fit_scalability(&plain(), 100.0), Err(NoFit::Confidence(100.0)));
    let mut silent = plain();
    silent[0].pps = 0.0;
    let silent = fit_scalability(&silent, 95.0);
    assert_eq!(silent, Err(NoFit::NotPositive { level: 1, pps: 0.0 }));
    // Two blocks of two levels each: four parameters, four runs.
    let tangled = [(0, 1), (0, 2), (1, 3), (1, 4)]
        .map(|(block, level)| ScaledRun { block, ..run(level, 1e6 * f64::from(level)) });
    let few = NoFit::TooFewRuns { have: 4, need: 5, parameters: 4 };
    assert_eq!(fit_scalability(&tangled, 95.0), Err(few));
}

#[test]
fn runs_without_scatter_are_fitted_exactly() {
    let runs: Vec<ScaledRun> = (1..=6).map(|n| run(n, law(n, 2e6, 0.1, 0.02))).collect();
    let fit = fit_scalability(&runs, 95.0).unwrap();
    close(fit.lambda_pps.value, 2e6, 1e-9);
    close(fit.sigma.value, 0.1, 1e-7);
    close(fit.kappa.value, 0.02, 1e-7);
    assert_eq!((fit.lack_of_fit, fit.holds()), (None, true));
}

/// Nearly normal numbers: the sum of twelve uniforms, by Steele, Lea and Flood's SplitMix64 (2014).
struct Random(u64);

impl Random {
    fn normal(&mut self) -> f64 {
        let mut unit = || {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = self.0;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| unit()).sum::<f64>() - 6.0
    }
}

#[test]
fn interval_coverage_matches_the_confidence() {
    const FITS: u32 = 400;
    let (lambda, sigma, kappa) = (1e6, 0.12, 0.012_f64);
    let peak = ((1.0 - sigma) / kappa).sqrt();
    let mut random = Random(20240305);
    let (mut sigmas, mut kappas, mut peaks, mut rejected) = (0, 0, 0, 0);
    for _ in 0..FITS {
        let mut runs = Vec::new();
        for block in 0..3 {
            let common = 0.05 * random.normal();
            for level in [1, 2, 4, 6, 8, 12] {
                let log = common + 0.02 * random.normal();
                let pps = law(level, lambda, sigma, kappa) * log.exp();
                runs.push(ScaledRun { block, ..run(level, pps) });
            }
        }
        let fit = fit_scalability(&runs, 95.0).unwrap();
        let covers = |p: Parameter, truth: f64| u32::from(p.low <= truth && truth <= p.high);
        sigmas += covers(fit.sigma, sigma);
        kappas += covers(fit.kappa, kappa);
        let high = fit.peak.high.unwrap_or(f64::INFINITY);
        peaks += u32::from(fit.peak.low <= peak && peak <= high);
        rejected += u32::from(fit.lack_of_fit.unwrap().p < 0.05);
    }
    println!("of {FITS}: sigma {sigmas}, kappa {kappas}, peak {peaks}, rejected {rejected}");
    for covered in [sigmas, kappas, peaks, FITS - rejected] {
        let share = f64::from(covered) / f64::from(FITS);
        assert!((0.93..=0.97).contains(&share), "{share}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// The closest curve is closer than any other within the bounds.
    #[test]
    fn fit_is_the_closest_curve(
        rates in prop::collection::vec(1e5..1e7f64, 12),
        other in (12.0..17.0f64, 0.0..1.0f64, 0.0..0.5f64),
    ) {
        let runs: Vec<ScaledRun> =
            rates.iter().zip(0..).map(|(&pps, i)| run(i / 2 + 1, pps)).collect();
        let sse = |lambda: f64, sigma: f64, kappa: f64| -> f64 {
            runs.iter().map(|r| (r.pps / law(r.level, lambda, sigma, kappa)).ln().powi(2)).sum()
        };
        if let Ok(fit) = fit_scalability(&runs, 95.0) {
            let ours = sse(fit.lambda_pps.value, fit.sigma.value, fit.kappa.value);
            prop_assert!((ours / (fit.residual_sd.powi(2) * fit.df) - 1.0).abs() < 1e-6);
            prop_assert!(sse(other.0.exp(), other.1, other.2) >= ours * (1.0 - 1e-9));
            prop_assert!(fit.sigma.low <= fit.sigma.value && fit.sigma.value <= fit.sigma.high);
            prop_assert!(fit.kappa.low <= fit.kappa.value && fit.kappa.value <= fit.kappa.high);
            prop_assert!((1..=6).contains(&fit.best.level));
            let best = (1..=6).map(|n| fit.predict(f64::from(n)).0).fold(0.0, f64::max);
            prop_assert!(fit.best.pps >= best * (1.0 - 1e-9));
            let peak = fit.peak.level.unwrap_or(f64::INFINITY);
            prop_assert!(fit.peak.low <= peak && fit.peak.high.is_none_or(|high| peak <= high));
        }
    }
}
