//! Selection of runs for verdicts, and reasons for withholding them.

use crate::support::{firewall, full_store, plan};
use fwdlab_model::plan::Adjust;
use fwdlab_model::record::RunRecord;
use fwdlab_model::settings::{Rate, TestbedKind};
use fwdlab_model::{Plan, Warning};
use fwdlab_results::report::analysis::{Compared, Outcome, verdicts};
use fwdlab_results::report::{Analysis, summary_text};
use fwdlab_results::stats::Verdict;
use fwdlab_results::store::Contents;

/// Three firewalls in ten blocks at `rate`.
fn firewall_plan(rate: Rate) -> Plan {
    let mut plan = plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 10);
    for variant in &mut plan.variants {
        variant.settings.traffic.rate = rate;
    }
    plan
}

/// Contents of a full store, with each run modified by `change`.
fn contents(plan: &Plan, change: impl Fn(&mut RunRecord)) -> Contents {
    let mut contents = full_store(plan).contents().unwrap();
    contents.runs.iter_mut().for_each(change);
    contents
}

fn reason(compared: &Compared) -> &str {
    match &compared.outcome {
        Outcome::Unanswerable { reason } => reason,
        other => panic!("{other:?}"),
    }
}

fn sentence(compared: &Compared) -> &str {
    match &compared.outcome {
        Outcome::Compared(answer) => &answer.sentence,
        other => panic!("{other:?}"),
    }
}

/// A paced run: it has the requested rate up to the sender's inaccuracy, and loses `lost` packets
/// per thousand.
fn paced(record: &mut RunRecord, lost: u64) {
    let trial = &mut record.trial;
    trial.intended = Some(trial.window_ns / 1_000_000);
    // Up to 0.3 % less than requested: below the threshold of falling short.
    let offered = trial.window_ns / 1_000_000 * (1000 - u64::from(record.run) % 4) / 1000;
    trial.window.offered = offered;
    trial.window.forwarded = offered - offered * lost / 1000;
}

#[test]
fn paced_runs_without_loss_have_no_verdict() {
    let plan = firewall_plan(Rate::Pps(1000.0));
    let found = verdicts(&contents(&plan, |run| paced(run, 0)));
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|c| reason(c) == "not loaded: no loss at 1.00 kpps"), "{found:?}");
}

#[test]
fn paced_ratio_excludes_the_senders_inaccuracy() {
    let plan = firewall_plan(Rate::Pps(1000.0));
    let found = verdicts(&contents(&plan, |run| paced(run, 20 * run.variants[0] as u64)));
    let ratio = |compared: &Compared| match &compared.outcome {
        Outcome::Compared(answer) => answer.comparison.ratio,
        other => panic!("{other:?}"),
    };
    // 2 % and 4 % loss, up to rounding to whole packets.
    assert!((ratio(&found[0]) - 0.98).abs() < 0.0005, "{}", sentence(&found[0]));
    assert!((ratio(&found[1]) - 0.96).abs() < 0.0005, "{}", sentence(&found[1]));
    assert!(sentence(&found[0]).ends_with("worse by more than 2.0 %") || ratio(&found[0]) > 0.979);
    let analysis = Analysis::of(&contents(&plan, |run| paced(run, 20)));
    let loss = analysis.core.variants[0].loss.as_ref().unwrap();
    assert!((loss.ratio - 0.02).abs() < 0.0005);
    let (low, high) = loss.interval.expect("an interval");
    assert!(low < loss.ratio && loss.ratio < high);
    assert!(loss.shown.starts_with("1.9676 %") && loss.shown.contains('['), "{}", loss.shown);
}

#[test]
fn runs_with_unsent_packets_are_left_out_of_verdicts() {
    let plan = firewall_plan(Rate::Pps(1000.0));
    let short = |run: &mut RunRecord, is_short: bool| {
        paced(run, 10 * run.variants[0] as u64);
        if is_short {
            run.warnings.push(Warning::Unsent { intended: 2000, offered: 1000 });
            run.trial.window.forwarded = 1;
        }
    };
    // The baseline of one block: its value is far off, but does not affect the result.
    let some = contents(&plan, |run| short(run, run.block == 3 && run.variants == [0]));
    let found = verdicts(&some);
    assert!(sentence(&found[0]).contains("n = 9 + 9 runs in 9 blocks"), "{}", sentence(&found[0]));
    let notes = Analysis::of(&some).core.notes;
    assert!(notes.iter().any(|note| note.contains("left out of the comparisons")), "{notes:?}");
    let all = contents(&plan, |run| short(run, run.variants == [1]));
    let judged = verdicts(&all);
    let why = reason(&judged[0]);
    assert!(why.starts_with("no run of one of them has a valid result"), "{why}");
    assert!(why.contains("the sender left 1000 of 2000 intended packets unsent"), "{why}");
}

#[test]
fn verdict_is_withheld_if_most_runs_are_disturbed() {
    let plan = firewall_plan(Rate::Max);
    let disturbed = |blocks: u32, warning: fn() -> Warning| {
        contents(&plan, move |run| {
            run.warnings.clear();
            if run.block < blocks {
                run.warnings.push(warning());
            }
        })
    };
    let contended = || Warning::CpuContended { cpu: 1, stolen: 0.3, user: 0.1, waited: None };
    let limited = || Warning::GeneratorLimited { forwarded_pps: 1e6, ceiling_pps: 1e6 };
    // Half of the runs: still a verdict.
    let found = verdicts(&disturbed(5, contended));
    assert!(sentence(&found[0]).ends_with("worse by more than 2.0 %"), "{}", sentence(&found[0]));
    let found = verdicts(&disturbed(6, contended));
    let text = sentence(&found[0]);
    assert!(text.ends_with("not judged: machine busy in 12 of 20 runs"), "{text}");
    let Outcome::Compared(answer) = &found[0].outcome else { panic!("compared") };
    assert_eq!(answer.verdict, Verdict::NotJudged);
    let found = verdicts(&disturbed(10, limited));
    let text = sentence(&found[0]);
    assert!(text.ends_with("not judged: generator-limited in 20 of 20 runs"), "{text}");
    // The mark is in the verdict's own row.
    let summary = summary_text(&Analysis::of(&disturbed(6, contended)), 200);
    assert!(summary.contains("machine busy in 12 of 20 runs"), "{summary}");
    assert!(!summary.to_lowercase().contains("nine of ten"), "{summary}");
}

#[test]
fn equal_rate_with_different_capacity_is_not_equivalent() {
    let plan = firewall_plan(Rate::Max);
    // The candidate has the same total rate, but unevenly: its best tenth is much better.
    let uneven = contents(&plan, |run| {
        run.warnings.clear();
        let is_candidate = run.variants != [0];
        let rate = 20_000 + u64::from(run.block) * 7 % 40;
        for (i, sample) in run.trial.samples.iter_mut().enumerate() {
            sample.stolen_ns = 0;
            sample.forwarded = match (is_candidate, i % 5) {
                (true, 0) => 2 * rate,
                (true, _) => rate * 3 / 4,
                (false, _) => rate,
            };
        }
        run.trial.cpus.clear();
        run.trial.window.forwarded = run.trial.samples.iter().map(|s| s.forwarded).sum();
    });
    let mut busy = uneven.clone();
    let contended = Warning::CpuContended { cpu: 1, stolen: 0.3, user: 0.1, waited: None };
    busy.runs.iter_mut().for_each(|run| run.warnings = vec![contended.clone()]);
    let notes = Analysis::of(&busy).core.notes;
    assert!(!notes.iter().any(|note| note.contains("runs less steadily")), "{notes:?}");
    let found = verdicts(&uneven);
    let Outcome::Compared(answer) = &found[0].outcome else { panic!("compared") };
    assert!(answer.within_margin, "{}", answer.sentence);
    assert_ne!(answer.verdict, Verdict::Equivalent, "{}", answer.sentence);
    let notes = Analysis::of(&uneven).core.notes;
    assert!(notes.iter().any(|note| note.contains("runs less steadily")), "{notes:?}");
}

#[test]
fn intervals_of_a_family_are_joint() {
    let plan = firewall_plan(Rate::Max);
    let found = verdicts(&contents(&plan, |run| run.warnings.clear()));
    for compared in &found {
        let Outcome::Compared(answer) = &compared.outcome else { panic!("compared") };
        assert_eq!((answer.comparison.family, answer.comparison.joint_confidence), (2, 97.5));
        assert!(answer.sentence.contains("at 95 % together"), "{}", answer.sentence);
    }
}

#[test]
fn intervals_are_not_joint_with_benjamini_hochberg() {
    let mut plan = firewall_plan(Rate::Max);
    let text = |plan: &Plan| {
        let analysis = Analysis::of(&contents(plan, |run| run.warnings.clear()));
        let files =
            fwdlab_results::report::files(&contents(plan, |run| run.warnings.clear()), &analysis);
        let files = files.unwrap();
        let readme = files.iter().find(|file| file.name == "README.md").unwrap();
        let figure = files.iter().find(|file| file.name == "effects.svg").unwrap();
        let [readme, figure] =
            [readme, figure].map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        summary_text(&analysis, 200) + &readme + &figure
    };
    for phrase in ["intervals and p (", "of all 2 together", "of all comparisons together"] {
        assert!(text(&plan).contains(phrase), "{phrase}");
    }
    plan.compare.adjust = Adjust::BenjaminiHochberg;
    for phrase in ["intervals and p (", "of all 2 together", "of all comparisons together"] {
        assert!(!text(&plan).contains(phrase), "{phrase}");
    }
}

#[test]
fn detectable_difference_is_of_comparisons_with_an_answer() {
    let plan = firewall_plan(Rate::Max);
    let some = contents(&plan, |run| {
        run.warnings.clear();
        match run.variants[0] {
            2 => run.warnings.push(Warning::Unsent { intended: 2000, offered: 1000 }),
            _ => {
                let rate = 2_000_000 + u64::from(run.block) * 7 % 40;
                run.trial.samples.iter_mut().for_each(|sample| sample.forwarded = rate / 40);
                run.trial.window.forwarded = rate;
            }
        }
    });
    let files = fwdlab_results::report::files(&some, &Analysis::of(&some)).unwrap();
    let readme = files.iter().find(|file| file.name == "README.md").unwrap();
    let readme = String::from_utf8_lossy(&readme.bytes).replace('\n', " ");
    assert!(readme.contains("have been found, in the 1 with an answer."), "{readme}");
}

#[test]
fn unequal_sample_sizes_use_both_tests() {
    use fwdlab_results::stats::{Criteria, Method, compare_unblocked};
    let spread = |n: u32, level: f64| -> Vec<f64> {
        (0..n).map(|i| level * (1.0 + 0.001 * f64::from(i * 7 % 5))).collect()
    };
    let many = spread(20, 1e6);
    let found = compare_unblocked(&many, &spread(5, 1.05e6), Criteria::default()).unwrap();
    assert_eq!((found.method, found.verdict()), (Method::BothTests, Verdict::Better));
    // Two of the five are outliers of a second mode: Welch's test alone would find a difference.
    let few = [1.0e6, 1.0005e6, 1.001e6, 1.0e6, 1.0002e6];
    let modes: Vec<f64> = (0..20).map(|i| if i % 3 == 0 { 1.1e6 } else { 1.0e6 }).collect();
    let found = compare_unblocked(&modes, &few, Criteria::default()).unwrap();
    assert!(found.p >= found.robust.as_ref().unwrap().p, "{found:?}");
    assert_eq!(found.verdict(), Verdict::Inconclusive, "{found}");
    let equal = compare_unblocked(&many, &spread(12, 1.05e6), Criteria::default()).unwrap();
    assert_eq!(equal.method, Method::Welch);
}
