//! Comparisons against known values, their symmetries, and their error rates.

use fwdlab_results::stats::alternation::{Slice, compare_alternation, slices_of};
use fwdlab_results::stats::stolen_time::Roles;
use fwdlab_results::stats::{
    Adjustment, BlockedRun, Comparison, Criteria, Layout, Method, Scope, Unanswerable, Verdict,
    adjust_family, compare_blocked, compare_unblocked,
};
use proptest::prelude::*;

fn runs(rates: &[f64]) -> Vec<BlockedRun> {
    (0..).zip(rates).map(|(block, &pps)| BlockedRun { block, pps }).collect()
}

fn close(actual: f64, oracle: f64, tolerance: f64) {
    assert!((actual / oracle - 1.0).abs() < tolerance, "{actual} is not {oracle}");
}

/// Effect in standard errors that t tests at 95 % detect with 90 % power, for five and seven
/// degrees of freedom (scipy 1.17.1: brentq over integrate.quad).
const MULTIPLE_DF5: f64 = 4.091685804716075;
const MULTIPLE_DF7: f64 = 3.7951902340489423;

const A: [f64; 6] = [1488e3, 1473e3, 1495e3, 1466e3, 1481e3, 1490e3];
const B: [f64; 6] = [1459e3, 1450e3, 1462e3, 1441e3, 1449e3, 1470e3];

#[test]
fn compare_blocked_agrees_with_scipy() {
    // scipy 1.17.1: ttest_rel(log(b), log(a)), its confidence_interval(.95).
    let found = compare_blocked(&runs(&A), &runs(&B), Criteria::default()).unwrap();
    close(found.ratio, 0.9817849414560584, 1e-12);
    close(found.low, 0.978184621963396, 1e-9);
    close(found.high, 0.9853985123331306, 1e-9);
    close(found.p, 5.057717446965263e-05, 1e-7);
    // The exact multiple for five degrees of freedom times the standard error, and (5 /
    // chi2.ppf(.1, 5)) ** .5.
    close(found.mde, (MULTIPLE_DF5 * 0.0014291926180858712f64 * 1.7620999086329479).exp_m1(), 1e-5);
    assert_eq!((found.n_a, found.n_b, found.blocks, found.layout), (6, 6, 6, Layout::Blocks));
    assert_eq!(found.verdict(), Verdict::Worse);
}

#[test]
fn exact_test_decides_if_it_can_reach_the_level() {
    // scipy 1.17.1: permutation_test((b, a), mean difference,
    // permutation_type='samples', n_resamples=inf): p-value.
    let a = [1488e3, 1473e3, 1495e3, 1466e3, 1481e3, 1490e3, 1470e3, 1485e3];
    let b = [1459e3, 1485e3, 1462e3, 1441e3, 1449e3, 1470e3, 1479e3, 1466e3];
    let found = compare_blocked(&runs(&a), &runs(&b), Criteria::default()).unwrap();
    assert_eq!(found.method, Method::Exact { assignments: 256 });
    close(found.p, 0.046875, 1e-12);
    assert_eq!(found.verdict(), Verdict::Worse, "{found}");
    // The t test is the secondary result: ttest_rel(log(b), log(a)).
    let secondary = found.beside.as_ref().unwrap();
    assert_eq!(secondary.method, Method::BlockedT);
    close(secondary.p, 0.029544832285820926, 1e-8);
    // If the exact test cannot reach the level (five blocks), the roles are swapped; they depend on
    // the design alone.
    let five = compare_blocked(&runs(&a[..5]), &runs(&b[..5]), Criteria::default()).unwrap();
    assert_eq!(five.method, Method::BlockedT);
    let secondary = five.beside.as_ref().unwrap();
    assert_eq!((secondary.method, secondary.interval), (Method::Exact { assignments: 32 }, None));
    let family_of_ten = Criteria { family: 10, ..Criteria::default() };
    let many = compare_blocked(&runs(&a), &runs(&b), family_of_ten).unwrap();
    assert_eq!(many.method, Method::BlockedT, "2/256 x 10 is above the level");
}

#[test]
fn several_runs_per_block_agree_with_least_squares() {
    // Five blocks of two and two runs. statsmodels 0.15.0: OLS log(pps) ~
    // C(block) + arm: coefficient, p, conf_int; and all 7776 assignments by
    // itertools.combinations.
    let rates = [
        [[1501e3, 1489e3], [1490e3, 1470e3]],
        [[1520e3, 1511e3], [1499e3, 1507e3]],
        [[1475e3, 1466e3], [1461e3, 1469e3]],
        [[1530e3, 1521e3], [1512e3, 1509e3]],
        [[1499e3, 1488e3], [1494e3, 1479e3]],
    ];
    let of = |variant: usize| -> Vec<BlockedRun> {
        (0..)
            .zip(&rates)
            .flat_map(|(block, pair)| pair[variant].map(|pps| BlockedRun { block, pps }))
            .collect()
    };
    let found = compare_blocked(&of(0), &of(1), Criteria::default());
    let found = found.unwrap();
    assert_eq!(found.method, Method::Exact { assignments: 7776 });
    let secondary = found.beside.as_ref().unwrap();
    close(found.ratio, 0.9926852435595545, 1e-10);
    close(secondary.p, 0.00408382709319522, 1e-8);
    let (low, high) = secondary.interval.unwrap();
    close(low, 0.9881351326831801, 1e-9);
    close(high, 0.9972563065388372, 1e-9);
    close(found.p, 0.004629629629629629, 1e-10);
}

#[test]
fn compare_unblocked_agrees_with_scipy() {
    // scipy 1.17.1: ttest_ind(log(e), log(c), equal_var=False).
    let c = [1.01e6, 0.98e6, 1.05e6, 1.0e6, 0.97e6];
    let e = [1.02e6, 1.03e6, 1.025e6, 1.04e6, 1.035e6, 1.028e6, 1.031e6];
    let found = compare_unblocked(&c, &e, Criteria::default()).unwrap();
    close(found.ratio, 1.028176885924737, 1e-12);
    close(found.low, 0.9898429640962494, 1e-8);
    close(found.high, 1.0679953761302847, 1e-8);
    close(found.p, 0.11400630756630359, 1e-7);
    assert_eq!(found.verdict(), Verdict::Inconclusive);
}

#[test]
fn comparison_line_contains_the_mde() {
    let mut found = compare_blocked(&runs(&A), &runs(&B), Criteria::default()).unwrap();
    assert_eq!(
        found.to_string(),
        "-1.82 % [-2.18 %, -1.46 %] at 95 %, p < 0.0001, n = 6 + 6 runs in 6 blocks, \
         MDE 1.04 % at 90 % power, blocked t on log rates, across starts: worse"
    );
    // scipy 1.17.1: ttest_ind(log(a[:3]), log(a), equal_var=False).
    let other = compare_unblocked(&A, &A[..3], Criteria::default()).unwrap();
    assert_eq!(
        other.to_string(),
        "+0.21 % [-1.25 %, +1.70 %] at 95 %, p = 0.709, n = 6 + 3 runs without blocks, \
         MDE 4.62 % at 90 % power, Welch's t on log rates, across starts: equivalent within 2.0 %"
    );
    found.margin = 0.05;
    let mut family = [found, other];
    adjust_family(&mut family, Adjustment::Holm);
    assert!(
        family[0].to_string().ends_with("worse, but within 5.0 %"),
        "a small sure difference stays one: {}",
        family[0]
    );
    assert!(
        family[0].to_string().contains("(adjusted = 0.0001 for 2 comparisons, Holm)"),
        "{}",
        family[0]
    );
}

#[test]
fn adjustment_can_make_a_difference_inconclusive() {
    let criteria = Criteria { margin: 0.001, ..Criteria::default() };
    let a = [100.0, 101.0, 99.0, 100.5, 100.0];
    let b = [101.0, 102.5, 99.5, 101.0, 100.8];
    let one = compare_blocked(&runs(&a), &runs(&b), criteria).unwrap();
    assert_eq!(one.verdict(), Verdict::Better, "{one}");
    let mut family = vec![one; 10];
    adjust_family(&mut family, Adjustment::Holm);
    assert_eq!(family[0].verdict(), Verdict::Inconclusive, "{}", family[0]);
}

#[test]
fn too_few_runs_report_the_required_number() {
    let criteria = Criteria::default();
    let error = compare_blocked(&runs(&A), &runs(&B[..1]), criteria).unwrap_err();
    assert_eq!(error.to_string(), "too few blocks with runs of both variants: 1 of at least 2");
    let error = compare_unblocked(&[], &B, criteria).unwrap_err();
    assert_eq!(error.to_string(), "too few runs of each variant: 0 of at least 2");
    let error = compare_unblocked(&[0.0, 1.0], &B, criteria).unwrap_err();
    assert_eq!(error, Unanswerable::NotPositive { rate: 0.0 });
    let silly = Criteria { confidence: 100.0, ..Criteria::default() };
    assert!(matches!(compare_unblocked(&A, &B, silly), Err(Unanswerable::Criteria { .. })));
}

#[test]
fn runs_without_partner_are_left_out_and_reported() {
    let found = compare_blocked(&runs(&A), &runs(&B[..4]), Criteria::default()).unwrap();
    assert_eq!((found.n_a, found.n_b, found.blocks, found.left_out), (4, 4, 4, 2));
    assert!(found.to_string().contains("(2 without partner left out)"), "{found}");
}

#[test]
fn runs_without_scatter_print_no_nan() {
    let (same, other) = ([5e6; 3], [6e6; 3]);
    // Lists without any scatter have no result.
    let error = compare_unblocked(&same, &other, Criteria::default()).unwrap_err();
    assert_eq!(error, Unanswerable::NoScatter);
    let unblocked = compare_unblocked(&same, &same, Criteria::default()).unwrap();
    for (b, verdict, unblocked) in
        [(same, Verdict::Equivalent, Some(unblocked)), (other, Verdict::Better, None)]
    {
        let blocked = compare_blocked(&runs(&same), &runs(&b), Criteria::default()).unwrap();
        for found in std::iter::once(blocked).chain(unblocked) {
            assert_eq!(found.verdict(), verdict);
            assert!(!found.to_string().contains("NaN"), "{found}");
        }
    }
    let wild = compare_blocked(&runs(&[1.0, 1e9]), &runs(&[1e9, 1.0]), Criteria::default());
    let wild = wild.unwrap().to_string();
    assert!(!wild.contains("NaN") && !wild.contains("inf") && wild.len() < 240, "{wild}");
}

proptest! {
    #[test]
    fn ratio_is_independent_of_unit_and_order(
        pairs in prop::collection::vec((1e3..1e8f64, 1e3..1e8f64), 2..12),
        scale in 0.01..100.0f64,
    ) {
        let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let criteria = Criteria::default();
        let base = compare_blocked(&runs(&a), &runs(&b), criteria).unwrap();
        let scaled = |values: &[f64]| -> Vec<f64> { values.iter().map(|v| v * scale).collect() };

        let scaled_result = compare_blocked(&runs(&scaled(&a)), &runs(&scaled(&b)), criteria).unwrap();
        prop_assert!((scaled_result.ratio / base.ratio - 1.0).abs() < 1e-9);
        prop_assert!((scaled_result.p - base.p).abs() < 1e-6);

        let one = compare_blocked(&runs(&a), &runs(&scaled(&b)), criteria).unwrap();
        prop_assert!((one.ratio / base.ratio / scale - 1.0).abs() < 1e-9);

        let swapped = compare_blocked(&runs(&b), &runs(&a), criteria).unwrap();
        prop_assert!((swapped.ratio * base.ratio - 1.0).abs() < 1e-9);
        prop_assert!((swapped.low * base.high - 1.0).abs() < 1e-9);
        let mirrored = match base.verdict() {
            Verdict::Better => Verdict::Worse,
            Verdict::Worse => Verdict::Better,
            same => same,
        };
        prop_assert_eq!(swapped.verdict(), mirrored);

        // The interval excludes 1 exactly when p is below the level.
        prop_assert_eq!(base.low > 1.0 || base.high < 1.0, base.p < 0.05);
        prop_assert!(base.low <= base.ratio && base.ratio <= base.high);
    }

    #[test]
    fn factor_common_to_a_block_cancels(
        blocks in prop::collection::vec((0.9..1.1f64, 0.9..1.1f64, 0.1..10.0f64), 2..12),
    ) {
        let a: Vec<f64> = blocks.iter().map(|(a, _, _)| 1e6 * a).collect();
        let b: Vec<f64> = blocks.iter().map(|(_, b, _)| 1e6 * b).collect();
        let drifted_a: Vec<f64> = blocks.iter().map(|(a, _, drift)| 1e6 * a * drift).collect();
        let drifted_b: Vec<f64> = blocks.iter().map(|(_, b, drift)| 1e6 * b * drift).collect();
        let plain = compare_blocked(&runs(&a), &runs(&b), Criteria::default()).unwrap();
        let drifted =
            compare_blocked(&runs(&drifted_a), &runs(&drifted_b), Criteria::default()).unwrap();
        prop_assert!((plain.ratio / drifted.ratio - 1.0).abs() < 1e-9);
        prop_assert!((plain.high / drifted.high - 1.0).abs() < 1e-9);
    }
}

/// Normal numbers from SplitMix64 with the Box-Muller transform.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// Blocks of three variants in random order; half of the runs' variance is a drift from run to run
/// (AR(1), 0.9).
fn drifting_blocks(
    noise: &mut Noise,
    blocks: u32,
    effect: f64,
) -> (Vec<BlockedRun>, Vec<BlockedRun>) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    let mut drift = noise.normal();
    for block in 0..blocks {
        let mut order = [0, 1, 2];
        for last in (1..order.len()).rev() {
            order.swap(last, (noise.uniform() * (last + 1) as f64) as usize);
        }
        for variant in order {
            drift = 0.9 * drift + (1.0f64 - 0.81).sqrt() * noise.normal();
            let log = 0.01 * (0.5f64.sqrt() * drift + 0.5f64.sqrt() * noise.normal());
            match variant {
                0 => a.push(BlockedRun { block, pps: 1e6 * log.exp() }),
                1 => b.push(BlockedRun { block, pps: 1e6 * effect * log.exp() }),
                _ => {}
            }
        }
    }
    (a, b)
}

#[test]
fn blocked_intervals_cover_the_effect_under_drift() {
    let truth = 0.97;
    let mut noise = Noise(1);
    let (mut covered, mut equivalent) = (0, 0);
    for _ in 0..2000 {
        let (a, b) = drifting_blocks(&mut noise, 5, truth);
        // The margin equals the effect, so equivalence is an error.
        let criteria = Criteria { margin: 1.0 / truth - 1.0, ..Criteria::default() };
        let found = compare_blocked(&a, &b, criteria).unwrap();
        covered += usize::from(found.low <= truth && truth <= found.high);
        equivalent += usize::from(found.is_within_margin());
    }
    println!("{covered} of 2000 cover, {equivalent} called equivalent at the margin");
    assert!((1860..=1940).contains(&covered), "{covered} of 2000 intervals cover");
    assert!(equivalent <= 125, "{equivalent} of 2000 called equivalent at the margin");
}

#[test]
fn effects_of_the_mde_are_detected_with_the_stated_power() {
    // Pairs with a known standard deviation, so the MDE is known.
    let mut noise = Noise(2);
    let (blocks, sd) = (8, 0.01);
    // Exact for seven degrees of freedom.
    let effect = (MULTIPLE_DF7 * sd / f64::from(blocks).sqrt()).exp();
    let mut found = 0;
    for _ in 0..1000 {
        let pps = |block, pps| BlockedRun { block, pps };
        let a: Vec<_> = (0..blocks).map(|block| pps(block, 1e6)).collect();
        let b: Vec<_> = (0..blocks)
            .map(|block| pps(block, 1e6 * effect * (sd * noise.normal()).exp()))
            .collect();
        let comparison = compare_blocked(&a, &b, Criteria::default()).unwrap();
        found += usize::from(comparison.verdict() == Verdict::Better);
    }
    assert!((870..=930).contains(&found), "{found} of 1000 found, 900 stated");
}

/// One stream of `cycles` times A B B A, whose samples occasionally lose time to neighbours.
fn stream(noise: &mut Noise, cycles: u32, log_effect: f64, phi: f64) -> Vec<Slice> {
    let mut wander = 0.0;
    (0..4 * cycles)
        .map(|number| {
            let variant = [0, 1, 1, 0][number as usize % 4];
            wander = phi * wander + 0.01 * (1.0 - phi * phi).sqrt() * noise.normal();
            let stolen = if noise.uniform() < 0.1 { 0.2 } else { 0.0 };
            let level = wander + log_effect * variant as f64 + 0.0005 * f64::from(number) - stolen;
            let pps = 2e6 * (level + 0.01 / 20f64.sqrt() * noise.normal()).exp();
            Slice { number, variant, pps, capacity_pps: 1.02 * pps }
        })
        .collect()
}

#[test]
fn alternation_intervals_cover_the_effect() {
    let log_effect = -0.03f64;
    let truth = log_effect.exp();
    let mut noise = Noise(3);
    for (streams, phi, trials, scope) in [
        (1, 0.0, 400, Scope::ThisStart),
        (1, 0.7, 400, Scope::ThisStart),
        (6, 0.3, 100, Scope::AcrossStarts),
    ] {
        let mut covered = 0;
        let mut mean = 0.0;
        for _ in 0..trials {
            let all: Vec<_> =
                (0..streams).map(|_| stream(&mut noise, 9, log_effect, phi)).collect();
            let found = compare_alternation(&all, 0, 1, Criteria::default()).unwrap();
            assert_eq!(found.scope, scope);
            covered += usize::from(found.low <= truth && truth <= found.high);
            mean += found.ratio.ln() / f64::from(trials);
        }
        println!(
            "{streams} streams, correlation {phi}: {covered} of {trials} cover, mean {mean:.4}"
        );
        let share = f64::from(covered as u32) / f64::from(trials);
        assert!((0.92..=0.995).contains(&share), "{streams} streams, {phi}: {share} cover");
        assert!((mean - log_effect).abs() < 0.002, "{streams} streams, {phi}: biased, {mean}");
    }
}

#[test]
fn alternation_accepts_three_variants() {
    let mut noise = Noise(4);
    let slices: Vec<Slice> = (0..60)
        .map(|number| {
            let variant = [0, 1, 2, 2, 1, 0][number as usize % 6];
            let drift = 0.01 * f64::from(number);
            let level = drift + [0.0, 0.1, -0.1][variant];
            let pps = 1e6 * (level + 0.001 * noise.normal()).exp();
            Slice { number, variant, pps, capacity_pps: pps }
        })
        .collect();
    let found = |candidate| -> Comparison {
        compare_alternation(std::slice::from_ref(&slices), 0, candidate, Criteria::default())
            .unwrap()
    };
    close(found(1).ratio, 0.1f64.exp(), 0.005);
    close(found(2).ratio, (-0.1f64).exp(), 0.005);
    assert_eq!((found(1).n_a, found(1).blocks, found(1).left_out), (20, 20, 0));
    let line = found(1).to_string();
    assert!(line.contains("n = 20 + 20 slices in 20 pairs"), "{line}");
    assert!(line.contains("alternation, this start: better"), "{line}");
}

#[test]
fn missing_slice_leaves_its_partner_out() {
    let mut noise = Noise(5);
    let mut slices = stream(&mut noise, 9, 0.0, 0.0);
    slices.remove(5);
    let found =
        compare_alternation(std::slice::from_ref(&slices), 0, 1, Criteria::default()).unwrap();
    assert_eq!((found.blocks, found.left_out), (17, 1));
    let error =
        compare_alternation(&[slices[..8].to_vec()], 0, 1, Criteria::default()).unwrap_err();
    assert!(matches!(error, Unanswerable::TooFew { have: 3, need: 6, .. }), "{error}");
    let error = compare_alternation(&[], 0, 1, Criteria::default()).unwrap_err();
    assert_eq!(error.to_string(), "too few streams: 0 of at least 1");
}

#[test]
fn slices_of_uses_valid_samples_only() {
    use fwdlab_model::record::Sample;
    let sample = |slice, variant, forwarded, valid| Sample {
        duration_ns: 10_000_000,
        forwarded,
        variant,
        slice,
        valid,
        ..Sample::default()
    };
    let samples = [
        sample(0, 1, 20_000, true),
        sample(0, 1, 10_000, true),
        sample(1, 0, 1, false),
        sample(1, 0, 30_000, true),
    ];
    let roles = Roles::of(&[]);
    let slice = |number, variant, pps, capacity_pps| Slice { number, variant, pps, capacity_pps };
    let whole = [slice(0, 1, 1.5e6, 1.75e6), slice(1, 0, 3e6, 3e6)];
    assert_eq!(slices_of(&samples, roles, None), whole);
    // Half of the second slice was stolen, so all its packets were forwarded in the other half.
    let stolen = Sample { stolen_ns: 5_000_000, ..samples[3] };
    let slices = slices_of(&[samples[0], samples[1], stolen], roles, None);
    assert_eq!(slices, [whole[0].clone(), slice(1, 0, 6e6, 3e6)]);
    // At a paced rate, the sender's deviation from the pace does not affect the result.
    let paced = Sample { offered: 40_000, ..samples[3] };
    assert_eq!(slices_of(&[paced], roles, Some(2e6)), [slice(1, 0, 1.5e6, 3e6)]);
}
