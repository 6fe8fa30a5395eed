//! Rates are corrected for time taken from the device only if the correction is valid.

use crate::support::{fill, firewall, full_store, plan, record};
use fwdlab_model::Plan;
use fwdlab_model::plan::{RunMetric, Stop};
use fwdlab_model::record::{Calibration, Counter, CpuTime, RunRecord, Sample};
use fwdlab_model::settings::{Rate, TestbedKind};
use fwdlab_results::compare::{Question, compare};
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::{Outcome, RunResult, StoppingWatch};
use fwdlab_results::stats::Verdict;
use fwdlab_results::store::{Contents, Store};
use std::path::Path;

const MS: u64 = 1_000_000;
const SAMPLES: u64 = 30;

/// A device that costs `cost_ns` per packet and loses some time of each 20 ms sample to other
/// programs.
fn cpu_bound(run: &mut RunRecord, cost_ns: u64, taken_percent: u64) {
    set_samples(run, |had_ns| had_ns / cost_ns, taken_percent);
    let forwarded = run.trial.window.forwarded;
    set_ring_counters(run, forwarded);
}

/// A device that forwards 400 packets in 20 ms and drops the others itself.
fn shaper(run: &mut RunRecord, taken_percent: u64) {
    set_samples(run, |_| 400, taken_percent);
    set_ring_counters(run, 50 * run.trial.window.forwarded);
}

fn set_samples(run: &mut RunRecord, forwarded: impl Fn(u64) -> u64, taken_percent: u64) {
    run.warnings.clear();
    let variant = run.variants[0];
    let sample = |number: u64| {
        // Varies from sample to sample.
        let taken = (20 * MS * taken_percent / 100) * (75 + 10 * (number * 7 % 6)) / 100;
        let noise = number * 31 % 5;
        Sample {
            at_ns: number * 20 * MS,
            duration_ns: 20 * MS,
            offered: 100_000,
            forwarded: forwarded(20 * MS - taken) + noise,
            ran_ns: Some(20 * MS - taken),
            waited_ns: Some(taken),
            sender_waited_ns: Some(0),
            variant,
            valid: true,
            ..Sample::default()
        }
    };
    let trial = &mut run.trial;
    trial.samples = (0..SAMPLES).map(sample).collect();
    trial.window_ns = SAMPLES * 20 * MS;
    trial.window.offered = trial.samples.iter().map(|sample| sample.offered).sum();
    trial.window.forwarded = trial.samples.iter().map(|sample| sample.forwarded).sum();
    trial.total = trial.window;
    trial.cpus =
        ["sender", "dut"].map(|role| CpuTime { role: role.into(), ..CpuTime::default() }).to_vec();
}

fn set_ring_counters(run: &mut RunRecord, taken_in: u64) {
    let offered = run.trial.total.offered;
    let counter = |what: &str, after| Counter {
        name: format!("d0 {what}"),
        before: 0,
        after,
        expected: None,
    };
    run.trial.counters = vec![
        counter("rx_packets", taken_in),
        counter("rx_dropped", offered - taken_in.min(offered)),
        counter("rx_packets + rx_dropped", offered),
    ];
}

/// Two firewalls compared with none in eight blocks.
fn firewall_plan() -> Plan {
    plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 8)
}

fn contents(change: impl Fn(&mut RunRecord)) -> Contents {
    let mut contents = full_store(&firewall_plan()).contents().unwrap();
    contents.calibrations.clear();
    contents.runs.iter_mut().for_each(change);
    contents
}

/// Runs with costs of 1000, 1100 and 1250 ns per packet, rising slightly from block to block.
fn costs(run: &mut RunRecord, taken_percent: u64) {
    let cost_ns = [1000, 1100, 1250][run.variants[0]] + 3 * u64::from(run.block);
    cpu_bound(run, cost_ns, taken_percent);
}

fn of_variant(analysis: &Analysis, variant: usize) -> impl Iterator<Item = &RunResult> {
    analysis.core.runs.iter().filter(move |run| run.variant == variant)
}

fn verdicts(analysis: &Analysis) -> Vec<Verdict> {
    let verdict = |outcome: &Outcome| match outcome {
        Outcome::Compared(answer) => answer.verdict,
        other => panic!("{other:?}"),
    };
    analysis.core.comparisons.iter().map(|compared| verdict(&compared.outcome)).collect()
}

#[test]
fn cpu_bound_rate_is_corrected_for_taken_time() {
    for taken in [0, 30, 60] {
        let analysis = Analysis::of(&contents(|run| costs(run, taken)));
        for run in of_variant(&analysis, 0) {
            let pps = run.value_pps.expect("a rate");
            assert!((pps / 0.99e6 - 1.0).abs() < 0.015, "{taken} % taken: {pps}");
            assert!((run.taken - taken as f64 / 100.0).abs() < 0.03, "{}", run.taken);
        }
        assert_eq!(verdicts(&analysis), [Verdict::Worse; 2], "{taken} % taken");
    }
    // Too much taken time for a correction.
    let analysis = Analysis::of(&contents(|run| costs(run, 75)));
    assert_eq!(verdicts(&analysis), [Verdict::NotJudged; 2]);
}

#[test]
fn shaper_and_its_comparisons_use_the_mean() {
    let analysis = Analysis::of(&contents(|run| match run.variants[0] {
        2 => shaper(run, 30),
        _ => costs(run, 30),
    }));
    for run in &analysis.core.runs {
        assert_eq!(run.value_pps, run.mean_pps, "{}", run.label);
    }
    let notes: Vec<&String> = analysis
        .core
        .notes
        .iter()
        .filter(|note| note.contains("its CPU does not limit it"))
        .collect();
    assert!(matches!(notes[..], [note] if note.starts_with("stateful")), "{notes:?}");
    // A mean is not a valid rate of a device that lost a third of its time.
    assert_eq!(verdicts(&analysis), [Verdict::NotJudged; 2]);
}

#[test]
fn run_with_contradictory_times_is_left_out() {
    let contradictory = |run: &mut RunRecord| {
        costs(run, 0);
        if run.block == 3 && run.variants == [1] {
            // The rate is unchanged, but the recorded waiting time is more than half of the sample.
            for sample in &mut run.trial.samples {
                (sample.ran_ns, sample.waited_ns) = (Some(8 * MS), Some(12 * MS));
            }
        }
    };
    let analysis = Analysis::of(&contents(contradictory));
    let left_out: Vec<&RunResult> =
        analysis.core.runs.iter().filter(|run| run.left_out.is_some()).collect();
    let [run] = left_out[..] else { panic!("{left_out:?}") };
    assert_eq!((run.block, run.variant), (3, 1));
    let why = run.left_out.as_deref().unwrap_or_default();
    assert!(why.contains("contradicts itself: 44"), "{why}");
    // A period in which the whole machine is faster is not contradictory.
    let spell = |run: &mut RunRecord| match run.block {
        2..=4 => cpu_bound(run, [700, 770, 875][run.variants[0]], 50),
        _ => costs(run, 50),
    };
    let analysis = Analysis::of(&contents(spell));
    assert!(
        analysis.core.runs.iter().all(|run| run.left_out.is_none()),
        "{:?}",
        analysis.core.notes
    );
}

/// A ceiling of 0.9 Mpps for all variants.
fn ceiling(plan: &Plan) -> Calibration {
    let traffic = &plan.variants[0].settings.traffic;
    Calibration {
        testbed: String::new(),
        family: traffic.family.name().into(),
        frame_size: traffic.frame_size,
        rates_pps: vec![0.9e6; 3],
        measured_at: String::new(),
    }
}

#[test]
fn corrected_rate_is_limited_to_the_ceiling() {
    let mut contents = contents(|run| costs(run, 50));
    contents.calibrations = vec![ceiling(&contents.plan)];
    let analysis = Analysis::of(&contents);
    assert!(analysis.core.runs.iter().all(|run| run.value_pps <= Some(0.9e6)));
    assert!(of_variant(&analysis, 0).all(|run| run.generator_limited));
}

/// Writes a store of changed runs with a ceiling of 0.9 Mpps.
fn write_store(path: &Path, plan: &Plan, change: impl Fn(&mut RunRecord)) -> Store {
    let mut store = Store::open(path).unwrap();
    fill(&mut store, plan, []);
    store.insert_calibration(&ceiling(plan)).unwrap();
    for index in 0..plan.runs.len() as u32 {
        let mut run = record(plan, index);
        change(&mut run);
        store.insert_run(&run).unwrap();
    }
    store
}

/// A paced device that waits for its CPU in every second sample and drops up to 1 % of the packets
/// itself, a share that depends on the variant. Its ring drops none.
fn paced(run: &mut RunRecord) {
    let lost = 300 * (1 + run.variants[0] as u64) + u64::from(run.block) * 7 % 5;
    set_samples(run, |_| 100_000 - lost, 0);
    for sample in run.trial.samples.iter_mut().step_by(2) {
        (sample.ran_ns, sample.waited_ns) = (Some(10 * MS), Some(10 * MS));
    }
    let offered = run.trial.window.offered;
    set_ring_counters(run, offered);
    run.trial.intended = Some(offered);
}

#[test]
fn compare_agrees_with_reports_on_ceilings_and_counters() {
    type Change = fn(&mut RunRecord);
    let directory = tempfile::tempdir().unwrap();
    let mut paced_plan = firewall_plan();
    for variant in &mut paced_plan.variants {
        variant.settings.traffic.rate = Rate::Pps(5e6);
    }
    let at_ceiling: Change = |run| costs(run, 50);
    let mut mean_plan = firewall_plan();
    mean_plan.compare.figure = Some(RunMetric::Mean);
    for (name, plan, change) in [
        ("ceiling", firewall_plan(), at_ceiling),
        ("paced", paced_plan.sealed(), paced as Change),
        ("mean", mean_plan.sealed(), at_ceiling),
    ] {
        let store = directory.path().join(name);
        let analysis =
            Analysis::of_store(&write_store(&store.join("run.sqlite"), &plan, change)).unwrap();
        let arguments = vec![store.to_string_lossy().into_owned()];
        let results = compare(&Question { arguments, ..Question::default() }).unwrap();
        for (result, reported) in results.comparisons.iter().zip(&analysis.core.comparisons) {
            let (Outcome::Compared(result), Outcome::Compared(reported)) =
                (&result.outcome, &reported.outcome)
            else {
                panic!("no answer in {name}: {:?}", analysis.core.notes);
            };
            assert_eq!(result.comparison, reported.comparison, "{name}");
            // A paced loss is never within the margin.
            assert_eq!(result.within_margin, reported.within_margin, "{name}");
        }
        for (variant, reported) in results.variants.iter().zip(&analysis.core.variants) {
            assert_eq!(variant.values, reported.values, "{name}");
        }
        let doubted = verdicts(&analysis).contains(&Verdict::NotJudged);
        assert_eq!(doubted, name != "paced");
        if name == "paced" {
            assert_eq!(verdicts(&analysis), [Verdict::Worse; 2]);
        }
    }
}

#[test]
fn stopping_watch_agrees_with_the_report_at_the_ceiling() {
    let mut plan = firewall_plan();
    plan.design.stop = Some(Stop::Open);
    let mut store = Store::memory().unwrap();
    fill(&mut store, &plan, []);
    // An experiment begins its watch before it measures the ceiling.
    let mut watch = StoppingWatch::begin(&plan, &store).unwrap().unwrap();
    store.insert_calibration(&ceiling(&plan)).unwrap();
    watch.set_calibrations(store.calibrations().unwrap());
    for index in 0..plan.runs.len() as u32 {
        let mut run = record(&plan, index);
        costs(&mut run, 50);
        store.insert_run(&run).unwrap();
        watch.add(&run);
    }
    let analysis = Analysis::of_store(&store).unwrap();
    assert_eq!(analysis.core.stopping.as_ref(), Some(watch.stopping()));
    assert!(watch.stopping().open > 0, "{:?}", watch.stopping());
    let again = StoppingWatch::begin(&plan, &store).unwrap().unwrap();
    assert_eq!(watch.stopping(), again.stopping());
}
