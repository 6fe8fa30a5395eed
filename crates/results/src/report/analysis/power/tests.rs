use super::*;
use crate::store::{Invocation, StoredInvocation};
use fwdlab_model::record::{Counts, TrialRecord};
use fwdlab_model::{RunRecord, plan::Stop};
use std::collections::BTreeMap;

const NETNS: &str = "version = 1\n[testbed]\nkind = \"netns\"\n[[factor]]\nname = \"queues\"\n\
                     levels = [1, 2]\n[compare]\nfigure = \"mean\"\n[design]\nblocks = 12\n";

fn plan(text: &str) -> Plan {
    fwdlab_model::load("x.toml", text, &|_| Err("no files".into())).unwrap()
}

fn environment(cpu: &str) -> Environment {
    let model = BTreeMap::from([("model".to_owned(), cpu.to_owned())]);
    Environment(BTreeMap::from([("cpu".to_owned(), model)]))
}

/// A store of `plan` whose second variant has the given log ratio in each block.
fn contents(plan: &Plan, testbed: &str, log_ratios: &[f64]) -> Contents {
    let record = |run: &fwdlab_model::PlannedRun| {
        let log_ratio = log_ratios.get(run.block as usize)?;
        let forwarded = 1e9 * if run.variants[0] == 1 { log_ratio.exp() } else { 1.0 };
        let window = Counts { offered: 2_000_000_000, forwarded: forwarded.round() as u64 };
        Some(RunRecord {
            method: None,
            run: run.index,
            block: run.block,
            variants: run.variants.clone(),
            run_id: run.index,
            started_at: String::new(),
            trial: TrialRecord {
                window_ns: 1_000_000_000,
                window,
                total: window,
                flows_seen: Some(1),
                ..TrialRecord::default()
            },
            facts: BTreeMap::default(),
            warnings: Vec::new(),
            overhead_ns: Vec::new(),
        })
    };
    let runs: Vec<RunRecord> = plan.runs.iter().filter_map(record).collect();
    let invocation = Invocation {
        started_at: String::new(),
        fwdlab_version: "test".into(),
        testbed: testbed.parse().expect("a testbed"),
        testbed_reason: String::new(),
        simulated: testbed == "sim",
        bed: None,
        environment: environment("Zen 3"),
    };
    Contents {
        plan: plan.clone(),
        experiment: String::new(),
        invocations: vec![StoredInvocation { id: 1, invocation }],
        run_invocations: vec![1; runs.len()],
        runs,
        calibrations: Vec::new(),
        import: None,
        profiles: Vec::new(),
    }
}

#[test]
fn scatter_is_computed_from_blocks() {
    let plan = plan(NETNS);
    let stored = contents(&plan, "netns", &[0.01, 0.03, 0.05]);
    let known = KnownScatter::of(&stored, &plan, &environment("Zen 3")).unwrap();
    assert!(known.same_plan && known.remarks.is_empty(), "{known:?}");
    assert_eq!(known.blocks, 3);
    let analysis = PowerAnalysis::of(&plan, &[&known], false).unwrap();
    assert!((analysis.scatter.sd - 0.02).abs() < 1e-6, "{analysis:?}");
    assert_eq!(analysis.scatter.df, 2.0);
    // scipy 1.17.1: sqrt(2 / chi2.ppf(.2, 2)) = 2.1169.
    assert!(analysis.is_upper && (analysis.sd / 0.02 - 2.1169).abs() < 1e-3, "{analysis:?}");
    let design = analysis.design.unwrap();
    assert!(design.mde_90 > design.mde_80);
    assert_eq!(design.outcomes.len(), 5);
}

#[test]
fn time_of_a_run_contains_all_its_steps() {
    let plan = plan(NETNS);
    let mut stored = contents(&plan, "netns", &[0.01, 0.03]);
    let known = |stored: &Contents, plan: &Plan| {
        KnownScatter::of(stored, plan, &environment("Zen 3")).unwrap().run_ns
    };
    assert_eq!(known(&stored, &plan), None, "simulated runs have no steps");
    for (run, seconds) in stored.runs.iter_mut().zip([20, 40, 60, 80]) {
        let step = |name: &str, seconds: u64| (name.to_owned(), seconds * 1_000_000_000);
        run.overhead_ns = vec![step("set up", 1), step("read", seconds)];
    }
    let expected_ns = plan.trial.warmup_ns + (1 + 1 + 50) * 1_000_000_000;
    assert_eq!(known(&stored, &plan), Some(expected_ns));
    let search = self::plan(&format!("{NETNS}[method]\nkind = \"mlrsearch\"\n"));
    assert_eq!(known(&stored, &search), None, "a search takes other trials");
}

#[test]
fn pilot_uses_upper_limit_of_scatter() {
    let plan = plan(NETNS);
    let log_ratios: Vec<f64> = (0..12).map(|i| 0.01 * f64::from(i % 2)).collect();
    let stored = contents(&plan, "netns", &log_ratios);
    let known = KnownScatter::of(&stored, &plan, &Environment::default()).unwrap();
    let history = PowerAnalysis::of(&plan, &[&known], false).unwrap();
    assert!(!history.is_upper && history.sd == history.scatter.sd);
    let pilot = PowerAnalysis::of(&plan, &[&known], true).unwrap();
    assert!(pilot.is_upper && pilot.sd > history.sd);
    assert!(pilot.blocks_for_margin >= history.blocks_for_margin);
}

#[test]
fn stores_are_pooled_around_their_means() {
    let plan = plan(NETNS);
    let known = |log_ratios: &[f64]| {
        KnownScatter::of(&contents(&plan, "netns", log_ratios), &plan, &Environment::default())
            .unwrap()
    };
    let (one, two) = (known(&[0.0, 0.02]), known(&[0.5, 0.52]));
    let analysis = PowerAnalysis::of(&plan, &[&one, &two], false).unwrap();
    assert_eq!(analysis.scatter.df, 2.0);
    assert!((analysis.scatter.sd - 0.02 / 2f64.sqrt()).abs() < 1e-6, "{analysis:?}");
}

#[test]
fn other_plan_of_same_device_is_used_with_remark() {
    let (current, other) = (plan(NETNS), plan(&NETNS.replace("blocks = 12", "blocks = 4")));
    let stored = contents(&other, "netns", &[0.0, 0.01]);
    let known = KnownScatter::of(&stored, &current, &environment("Zen 4")).unwrap();
    assert!(!known.same_plan);
    assert!(known.remarks[0].starts_with("another plan of the same device"), "{known:?}");
    assert_eq!(known.remarks[1], "measured with another CPU: Zen 3, here Zen 4");
}

#[test]
fn other_testbeds_and_devices_are_refused() {
    let environment = Environment::default();
    let refused =
        |stored: &Contents, plan: &Plan| KnownScatter::of(stored, plan, &environment).unwrap_err();
    let netns = plan(NETNS);
    let sim = plan(&NETNS.replace("netns", "sim"));
    let auto = plan(&NETNS.replace("netns", "auto"));
    let simulated = contents(&sim, "sim", &[0.0, 0.01]);
    for plan in [&netns, &auto] {
        assert!(matches!(refused(&simulated, plan), Unusable::OtherTestbed { .. }));
    }
    // The same plan may use simulated runs.
    assert!(KnownScatter::of(&contents(&auto, "sim", &[0.0, 0.01]), &auto, &environment).is_ok());
    let noisier = NETNS.replace("\"netns\"", "\"sim\"\n[testbed.sim]\nnoise = 0.2");
    assert_eq!(refused(&simulated, &plan(&noisier)), Unusable::OtherDevice);
    let one = contents(&netns, "netns", &[0.0]);
    assert_eq!(refused(&one, &netns), Unusable::TooFew { unit: "blocks", need: 2 });
    assert_eq!(refused(&contents(&netns, "netns", &[]), &netns), Unusable::NoRuns);
}

#[test]
fn stopping_rule_affects_predicted_blocks() {
    let planned = plan(&NETNS.replace("blocks = 12", "stop = \"planned\"\nmax_blocks = 12"));
    assert_eq!(planned.design.stop, Some(Stop::Planned));
    let stored = contents(&planned, "netns", &[0.0, 0.01, 0.0, 0.01]);
    let known = KnownScatter::of(&stored, &planned, &Environment::default()).unwrap();
    let analysis = PowerAnalysis::of(&planned, &[&known], false).unwrap();
    let blocks: Vec<f64> =
        analysis.design.unwrap().outcomes.iter().map(|outcome| outcome.blocks).collect();
    // A change of 5 % ends the experiment before a change of 1 %.
    assert!(blocks[4] < blocks[1] && blocks[1] <= 12.0, "{blocks:?}");
}

#[test]
fn unknown_or_zero_scatter_has_no_power_analysis() {
    let plan = plan(NETNS);
    assert_eq!(PowerAnalysis::of(&plan, &[], false), None);
    let same = contents(&plan, "netns", &[0.01, 0.01]);
    let known = KnownScatter::of(&same, &plan, &Environment::default()).unwrap();
    assert_eq!(PowerAnalysis::of(&plan, &[&known], false), None);
}
