//! Beds, with data of known parameters: effects of machines are attributed to machines, and effects
//! of variants to variants.

use crate::support::{Random, firewall, invocation, plan, record, report};
use fwdlab_model::design::Method;
use fwdlab_model::record::{
    DeviceTime, Latency, LatencyTrial, MethodRecord, MethodTrial, ReceiverPlace,
};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, RunRecord};
use fwdlab_results::compare::{Question, compare};
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::Outcome;
use fwdlab_results::report::sections::{BedRun, Beds, beds_of};
use fwdlab_results::stats::{Criteria, Verdict};
use fwdlab_results::store::{Invocation, Store};
use std::path::Path;

const BEDS: [&str; 4] = ["rack1", "rack2", "rack3", "rack4"];
const LABELS: [&str; 2] = ["old", "new"];

/// Parameters of one bed.
#[derive(Clone, Copy)]
struct Truth {
    /// Level over the level of the other beds.
    level: f64,
    /// Rate of the second variant over the first.
    effect: f64,
    /// Relative change of the level from one block to the next.
    drift: f64,
}

const ALIKE: Truth = Truth { level: 1.0, effect: 1.0, drift: 1.0 };

/// Beds of two variants in `blocks` blocks per bed, with 1 % of noise between blocks and between
/// runs.
fn simulate_beds(random: &mut Random, truths: &[Truth; 4], blocks: u32) -> Beds {
    let mut runs = Vec::new();
    for number in 0..4 * blocks {
        let (bed, turn) = ((number % 4) as usize, number / 4);
        let Truth { level, effect, drift } = truths[bed];
        let block = 1.0 + 0.01 * random.normal();
        for variant in 0..2 {
            let effect = if variant == 1 { effect } else { 1.0 };
            let noise = 1.0 + 0.01 * random.normal();
            let pps = 1e6 * level * drift.powi(turn as i32) * effect * block * noise;
            runs.push(BedRun { bed: BEDS[bed], block: number, variant, pps });
        }
    }
    beds_of(&runs, &LABELS, &[(0, 1)], Criteria::default()).expect("several beds")
}

fn is_found(outcome: &Option<Outcome>) -> bool {
    match outcome {
        Some(Outcome::Compared(answer)) => {
            matches!(answer.verdict, Verdict::Better | Verdict::Worse)
        }
        _ => false,
    }
}

/// Beds whose effect differs, and beds whose level differs.
fn differing_beds(beds: &Beds) -> (Vec<&str>, Vec<&str>) {
    let effects = beds.effects.iter().filter(|effect| is_found(&effect.difference));
    let levels = beds.beds.iter().filter(|bed| is_found(&bed.level));
    (
        effects.map(|effect| effect.bed.as_str()).collect(),
        levels.map(|bed| bed.bed.as_str()).collect(),
    )
}

/// All tests of beds are one family, so at most 5 of 100 experiments with equal beds have a
/// finding; 70 of 1000 is three standard errors above.
#[test]
fn equal_beds_have_few_false_positives() {
    let mut random = Random(4);
    let truths = [Truth { effect: 0.9, ..ALIKE }; 4];
    let (mut any, mut drifts) = (0, 0);
    for _ in 0..1000 {
        let beds = simulate_beds(&mut random, &truths, 8);
        let (effects, levels) = differing_beds(&beds);
        any += usize::from(!effects.is_empty() || !levels.is_empty());
        drifts += usize::from(beds.beds.iter().any(|bed| bed.drifts));
    }
    assert!(any <= 70 && drifts <= 70, "{any} and {drifts} of 1000");
    assert!(any >= 10 && drifts >= 10, "{any} and {drifts}: the test asks more than it promises");
}

#[test]
fn two_equal_beds_have_few_false_positives() {
    let mut random = Random(5);
    let mut any = 0;
    for _ in 0..1000 {
        let mut runs = Vec::new();
        for block in 0..12 {
            let shared = 1.0 + 0.01 * random.normal();
            for variant in 0..2 {
                let pps = 1e6 * shared * (1.0 + 0.01 * random.normal());
                runs.push(BedRun { bed: BEDS[block as usize % 2], block, variant, pps });
            }
        }
        let beds = beds_of(&runs, &LABELS, &[(0, 1)], Criteria::default()).unwrap();
        assert!(beds.beds[0].level.is_none() && beds.effects[0].difference.is_none(), "asked once");
        let (effects, levels) = differing_beds(&beds);
        any += usize::from(!effects.is_empty() || !levels.is_empty());
    }
    assert!((10..=70).contains(&any), "{any} of 1000");
}

#[test]
fn bed_with_a_different_effect_is_identified() {
    let mut random = Random(6);
    let mut truths = [Truth { effect: 0.95, ..ALIKE }; 4];
    truths[2].effect = 1.0;
    let (mut named, mut others) = (0, 0);
    for _ in 0..200 {
        let beds = simulate_beds(&mut random, &truths, 10);
        let (effects, levels) = differing_beds(&beds);
        named += usize::from(effects.contains(&"rack3"));
        let is_other = |bed: &&&str| **bed != "rack3";
        others += usize::from(levels.iter().chain(&effects).any(|bed| is_other(&bed)));
    }
    assert!(named >= 190, "named in {named} of 200");
    assert!(others <= 16, "others in {others} of 200");
    let beds = simulate_beds(&mut random, &truths, 10);
    let text = beds.sentences().join("\n");
    assert!(text.contains("new against old is other on bed rack3 than on the others: "), "{text}");
}

#[test]
fn drifting_bed_is_identified() {
    let mut random = Random(7);
    let mut truths = [ALIKE; 4];
    truths[1].drift = 1.005;
    let beds = simulate_beds(&mut random, &truths, 16);
    let drifting: Vec<&str> =
        beds.beds.iter().filter(|bed| bed.drifts).map(|bed| bed.bed.as_str()).collect();
    assert_eq!(drifting, ["rack2"]);
    assert!(beds.sentences().iter().any(|sentence| sentence.starts_with("bed rack2 drifts: +")));
}

#[test]
fn no_finding_reports_the_detectable_difference() {
    let beds = simulate_beds(&mut Random(8), &[ALIKE; 4], 8);
    let sentences = beds.sentences();
    assert!(sentences[0].starts_with("4 beds (rack1, rack2, rack3 and rack4)"), "{sentences:?}");
    assert!(sentences[1].contains(" nine of ten would have been found"), "{sentences:?}");
}

/// Creates `directory`/run.sqlite, whose runs of block `n` are on bed `bed(n)` (unnamed if empty),
/// with `speed(n)` times the fabricated rates.
fn store(
    directory: &Path,
    plan: &Plan,
    bed: impl Fn(u32) -> &'static str,
    speed: impl Fn(u32) -> f64,
) {
    let path = directory.join("run.sqlite");
    let mut store = Store::open(&path).unwrap();
    store.adopt_plan(plan, "version = 1\n").unwrap();
    let mut last = None;
    for run in &plan.runs {
        let block_bed = bed(run.block);
        if last != Some(block_bed) {
            let bed = Some(block_bed.to_owned()).filter(|block_bed| !block_bed.is_empty());
            let invocation_of_bed = Invocation { bed, ..invocation(plan.base.testbed.kind) };
            store.begin_invocation(&invocation_of_bed).unwrap();
        }
        last = Some(block_bed);
        let mut record = record(plan, run.index);
        for sample in &mut record.trial.samples {
            sample.forwarded = (sample.forwarded as f64 * speed(run.block)) as u64;
        }
        record.trial.window.forwarded = record.trial.samples.iter().map(|s| s.forwarded).sum();
        store.insert_run(&record).unwrap();
    }
}

fn experiment() -> Plan {
    plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 16)
}

/// A bed that is slower: ratios between variants, and therefore verdicts, are unchanged, and the
/// bed is reported.
#[test]
fn slower_bed_changes_no_verdict_and_is_reported() {
    let (plan, bed) = (experiment(), |block: u32| BEDS[block as usize % 4]);
    let read = |slow: f64| {
        let directory = tempfile::tempdir().unwrap();
        let speed = move |block: u32| if block % 4 == 2 { slow } else { 1.0 };
        store(directory.path(), &plan, bed, speed);
        Store::open_read_only(&directory.path().join("run.sqlite")).unwrap()
    };
    let (even, uneven) = (read(1.0), read(0.9));
    let of = |store: &Store| Analysis::of_store(store).unwrap();
    let (alike, apart) = (of(&even), of(&uneven));
    for (one, other) in alike.core.comparisons.iter().zip(&apart.core.comparisons) {
        let (Outcome::Compared(one), Outcome::Compared(other)) = (&one.outcome, &other.outcome)
        else {
            panic!("answers");
        };
        assert_eq!(one.verdict, other.verdict);
        let (a, b) = (&one.comparison, &other.comparison);
        assert!((a.ratio / b.ratio - 1.0).abs() < 1e-5, "{} and {}", a.ratio, b.ratio);
        assert!((a.p - b.p).abs() < 1e-3, "{} and {}", a.p, b.p);
    }
    // The difference is not diagnosed as a second mode or a trend either: each bed is tested
    // separately.
    let beds_of_findings = |analysis: &Analysis| -> Vec<Option<String>> {
        analysis.diagnostics.diagnoses.iter().map(|finding| finding.bed.clone()).collect()
    };
    assert_eq!(
        beds_of_findings(&alike),
        beds_of_findings(&apart),
        "{:?}",
        apart.diagnostics.diagnoses
    );
    assert!(apart.core.order.is_none(), "{:?}", apart.core.order);
    let text = apart.beds.as_ref().unwrap().sentences().join("\n");
    assert!(
        text.contains("bed rack3 is 10") && text.contains("% slower than the others"),
        "{text}"
    );
    assert!(!text.contains("is other on bed"), "{text}");
    let files = report(&uneven);
    for name in ["README.md", "index.html"] {
        let text = crate::support::file(&files, name);
        assert!(text.contains("bed rack3 is 10"), "{name}");
        assert!(text.contains("enters no verdict between variants"), "{name}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&crate::support::file(&files, "results.json")).unwrap();
    assert_eq!(json["beds"]["beds"][2]["bed"], "rack3");
    assert_eq!(json["runs"][0]["bed"], "rack1");
}

/// Runs of `plan` on the bed `first` up to the middle of block 3, and from there on `second`, at
/// half the rate.
fn analyse_divided(
    plan: &Plan,
    first: Option<&str>,
    second: Option<&str>,
    more: impl Fn(&mut RunRecord, bool),
) -> Analysis {
    let mut store = Store::memory().unwrap();
    store.adopt_plan(plan, "version = 1\n").unwrap();
    for run in 0..plan.runs.len() as u32 {
        if run == 0 || run == 10 {
            let bed = if run == 0 { first } else { second }.map(str::to_owned);
            let invocation_of_bed = Invocation { bed, ..invocation(plan.base.testbed.kind) };
            store.begin_invocation(&invocation_of_bed).unwrap();
        }
        let mut record = record(plan, run);
        if run >= 10 {
            record.trial.samples.iter_mut().for_each(|sample| sample.forwarded /= 2);
            record.trial.window.forwarded = record.trial.samples.iter().map(|s| s.forwarded).sum();
        }
        more(&mut record, run >= 10);
        store.insert_run(&record).unwrap();
    }
    Analysis::of_store(&store).unwrap()
}

#[test]
fn diagnosis_of_a_bed_contains_its_name() {
    let (directory, plan) = (tempfile::tempdir().unwrap(), experiment());
    let bed = |block: u32| BEDS[block as usize % 4];
    // One bed becomes slower from block to block.
    let speed = |block: u32| 1.0 - if block % 4 == 1 { 0.01 * f64::from(block) } else { 0.0 };
    store(directory.path(), &plan, bed, speed);
    let store = Store::open_read_only(&directory.path().join("run.sqlite")).unwrap();
    let analysis = Analysis::of_store(&store).unwrap();
    let drifting =
        analysis.diagnostics.diagnoses.iter().filter(|found| found.sentence.contains("drifted"));
    let drifting: Vec<_> = drifting.collect();
    let [finding] = drifting.as_slice() else { panic!("{:?}", analysis.diagnostics.diagnoses) };
    assert_eq!(finding.bed.as_deref(), Some("rack2"));
    assert!(finding.sentence.starts_with("bed rack2: the rates drifted by -"), "{finding:?}");
    let text = crate::support::file(&report(&store), "README.md");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in ["each at the 0.25 % level and in each bed by itself", "bed rack2: the rates"] {
        assert!(words.contains(expected), "{expected} in {words}");
    }
}

/// A share that continued on another bed: the runs of its block are compared only within each bed.
#[test]
fn costs_of_a_divided_block_are_not_compared_across_beds() {
    let plan = experiment();
    // All variants cost the device 400 ns per packet, and 800 ns on the second bed.
    let analysis = analyse_divided(&plan, Some("rack1"), Some("rack2"), |run, is_second| {
        let cost_ns = if is_second { 800.0 } else { 400.0 } + f64::from(run.run % 5);
        run.trial.device = DeviceTime {
            ran_ns: Some((cost_ns * run.trial.window.forwarded as f64) as u64),
            receiver_ns: Some(0),
            receiver_cpus: vec![0],
            receiver: ReceiverPlace::Own,
        };
    });
    let effects = &analysis.device.as_ref().unwrap().effects;
    assert_eq!(effects.len(), 2);
    assert!(effects.iter().all(|effect| effect.effect.abs() < 0.01), "{effects:?}");
    let blocks: Vec<u32> = analysis.core.runs[9..12].iter().map(|run| run.block).collect();
    assert_eq!((blocks[0], blocks[1]), (16, 3), "one run of one bed, two of the other");
    let note_text = "measured on more than one bed: block 3 (rack1, rack2)";
    assert!(
        analysis.core.notes.iter().any(|note| note.contains(note_text)),
        "{:?}",
        analysis.core.notes
    );
    for compared in &analysis.core.comparisons {
        let Outcome::Compared(answer) = &compared.outcome else { panic!("an answer") };
        let truth = if compared.label.contains("stateful") { 0.80 } else { 0.95 };
        assert!((answer.comparison.ratio / truth - 1.0).abs() < 0.03, "{}", answer.sentence);
    }
}

/// The same for delays, which are twice as long on the second bed.
#[test]
fn delays_of_a_divided_block_are_not_compared_across_beds() {
    let mut plan = experiment();
    plan.method = Some(Method::Delays { shares: vec![0.5], repeats: 1 });
    let plan = plan.sealed();
    let analysis = analyse_divided(&plan, Some("rack1"), Some("rack2"), |run, is_second| {
        // Each bucket is 0.8 % above the previous one.
        let bucket = 1000 + (run.run % 3) as u16 + if is_second { 87 } else { 0 };
        let buckets = vec![(bucket, 100_000)];
        let delays = Latency {
            sum_ns: 2_000_000_000,
            min_ns: 1_000,
            max_ns: u32::MAX,
            buckets,
            differences: None,
        };
        let trial = MethodTrial {
            load: 1_000_000,
            duration_ns: 1_000_000_000,
            window_ns: 1_000_000_000,
            offered: 1_000_000,
            forwarded: 1_000_000,
            latency: Some(LatencyTrial { share: 0.5, delays }),
            ..MethodTrial::default()
        };
        let trials = vec![trial];
        run.method = Some(MethodRecord { max_load: 4_096, trials, ..MethodRecord::default() });
    });
    let effects = &analysis.method.as_ref().unwrap().delay_effects;
    assert_eq!(effects.len(), 4);
    assert!(effects.iter().all(|effect| effect.effect.abs() < 0.02), "{effects:?}");
}

/// An experiment that started without a bed name and continued with one has one machine; with two
/// names, runs without a name are a third bed.
#[test]
fn unnamed_runs_belong_to_the_only_bed_or_form_their_own() {
    let plan = experiment();
    let analysis = analyse_divided(&plan, None, Some("rack1"), |_, _| ());
    assert!(analysis.beds.is_none(), "{:?}", analysis.beds);
    assert!(analysis.core.runs.iter().all(|run| run.bed.as_deref() == Some("rack1")));
    let directory = tempfile::tempdir().unwrap();
    store(directory.path(), &plan, |block| ["", "rack1", "rack2"][block as usize % 3], |_| 1.0);
    let store = Store::open_read_only(&directory.path().join("run.sqlite")).unwrap();
    let contents = store.contents().unwrap();
    assert_eq!(contents.beds(), [None, Some("rack1"), Some("rack2")]);
    let text = Analysis::of(&contents).beds.unwrap().sentences().join("\n");
    assert!(text.contains("3 beds (rack1, rack2 and unnamed)"), "{text}");
}

#[test]
fn compare_of_stores_on_different_beds_is_labelled() {
    let (directory, plan) = (tempfile::tempdir().unwrap(), experiment());
    for (name, bed) in [("a", "rack1"), ("b", "rack2")] {
        let bed_directory = directory.path().join(name);
        std::fs::create_dir(&bed_directory).unwrap();
        let speed = if name == "b" { 0.9 } else { 1.0 };
        store(&bed_directory, &plan, move |_| bed, move |_| speed);
    }
    let argument = |name: &str| directory.path().join(name).display().to_string();
    let question =
        Question { arguments: vec![argument("a"), argument("b")], ..Question::default() };
    let results = compare(&question).unwrap();
    assert!(results.asked.starts_with("bed rack2 against bed rack1: "), "{}", results.asked);
    let note = "what differs may be the machines";
    assert!(results.notes.iter().any(|line| line.contains(note)), "{:?}", results.notes);
    let Outcome::Compared(answer) = &results.comparisons[0].outcome else { panic!("an answer") };
    assert_eq!(answer.verdict, Verdict::Worse);

    let mixed = directory.path().join("c");
    std::fs::create_dir(&mixed).unwrap();
    let speed = |block| if block % 2 == 1 { 0.5 } else { 1.0 };
    store(&mixed, &plan, |block| BEDS[block as usize % 2], speed);
    let question = Question { arguments: vec![argument("c")], ..Question::default() };
    let results = compare(&question).unwrap();
    assert!(results.notes.iter().any(|line| line.contains("2 beds (rack1 and rack2)")));
    let is_doubt = |line: &&String| line.contains("more than one mode") || line.contains("alike");
    assert_eq!(results.notes.iter().find(is_doubt), None, "levels of beds are no doubt");
}
