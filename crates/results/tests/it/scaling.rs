//! The scalability law, from runs to the report: on sweeps with known parameters, and on the
//! archive's queue sweeps compared with scipy.

use crate::golden::{golden, picture};
use crate::support::{family, plan, record, store, truth};
use fwdlab_model::plan::{Change, Factor, Level};
use fwdlab_model::record::Counter;
use fwdlab_model::record::queues::{Direction, counter_name};
use fwdlab_model::settings::{Family, TestbedKind};
use fwdlab_model::units::FrameSize;
use fwdlab_model::{Plan, RunRecord, Warning};
use fwdlab_results::plot::{
    Chart, CurvePoint, Draw, Fit, Point, Quantity, RightAxis, Series, XAxis,
};
use fwdlab_results::report::sections::{FittedLaw, ScaledSeries, ScalingOutcome};
use fwdlab_results::report::{Analysis, files, results_json, show_json, summary_text};
use fwdlab_results::stats::{Scalability, ScaledRun, Summary, fit_scalability};
use fwdlab_results::store::Store;
use std::path::Path;

fn queues(levels: &[u32]) -> Factor {
    let level = |&n: &u32| Level {
        label: n.to_string(),
        number: Some(f64::from(n)),
        changes: vec![Change { setting: "queues".into(), value: n.to_string(), live: false }],
        build_of: None,
    };
    Factor { name: "queues".into(), levels: levels.iter().map(level).collect() }
}

fn law(n: f64, lambda: f64, sigma: f64, kappa: f64) -> f64 {
    lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
}

/// Record of a run on a device that follows the law: inet peaks between four and five queues, inet6
/// has no peak.
fn record_by_law(plan: &Plan, index: u32) -> RunRecord {
    let mut run = record(plan, index);
    let variant = &plan.variants[run.variants[0]];
    let n = f64::from(variant.settings.dut.queues);
    let rate = match variant.settings.traffic.family {
        Family::Inet => law(n, 1.2e6, 0.05, 0.045),
        Family::Inet6 => law(n, 0.7e6, 0.08, 0.0),
    };
    let factor = rate / truth(variant);
    run.trial.window.forwarded = (run.trial.window.forwarded as f64 * factor) as u64;
    for sample in &mut run.trial.samples {
        sample.forwarded = (sample.forwarded as f64 * factor) as u64;
    }
    run
}

fn sweep(levels: &[u32], families: bool, change: impl Fn(&Plan, &mut RunRecord)) -> Store {
    let mut factors = vec![queues(levels)];
    factors.extend(families.then(family));
    let baseline = vec![None; factors.len()];
    let mut plan = plan(TestbedKind::Sim, factors, baseline, 4);
    plan.title = "Impact of queue number on forwarding performance".into();
    let mut store = store(&plan, []);
    for run in 0..plan.runs.len() as u32 {
        let mut record = record_by_law(&plan, run);
        change(&plan, &mut record);
        store.insert_run(&record).unwrap();
    }
    store
}

fn fitted(series: &ScaledSeries) -> &FittedLaw {
    match &series.outcome {
        ScalingOutcome::Fitted(fitted) => fitted,
        ScalingOutcome::Unanswerable { reason } => panic!("{}: {reason}", series.label),
    }
}

#[test]
fn sweep_recovers_the_law_in_every_output() {
    let store = sweep(&[1, 2, 3, 4, 5, 6, 7, 8], true, |_, _| {});
    let contents = store.contents().unwrap();
    let analysis = Analysis::of(&contents);
    assert_eq!(analysis.scaling.len(), 1);
    let [inet, inet6] = &analysis.scaling[0].series[..] else { panic!("two series") };
    assert_eq!((inet.label.as_str(), inet6.label.as_str()), ("inet", "inet6"));

    let four = fitted(inet);
    assert!(four.holds, "{}", four.sentence);
    assert!(four.law.sigma.low <= 0.05 && 0.05 <= four.law.sigma.high, "{}", four.sentence);
    assert!(four.law.kappa.low <= 0.045 && 0.045 <= four.law.kappa.high, "{}", four.sentence);
    assert!(four.law.best.level == 4 || four.law.best.level == 5, "{}", four.sentence);
    assert_eq!(four.law.blocks, 4);
    let six = fitted(inet6);
    assert!(six.law.peak.high.is_none() && six.law.best.level == 8, "{}", six.sentence);
    assert!(six.sentence.contains("no peak within what was measured"), "{}", six.sentence);

    let files = files(&contents, &analysis).unwrap();
    let text = |name: &str| {
        let file = files.iter().find(|file| file.name == name).unwrap();
        String::from_utf8(file.bytes.clone()).unwrap()
    };
    golden("report/scaling.README.md", &text("README.md"));
    golden("report/scaling.summary.100.txt", &summary_text(&analysis, 100));
    picture("figure/scaling", &text("graph.svg"));
    assert!(text("index.html").contains("<h2 id=\"scaling\">Scaling</h2>"));
    let law = &results_json(&analysis).unwrap()["scaling"][0]["series"][0]["outcome"];
    assert_eq!(law["fitted"]["law"]["best"]["level"], four.law.best.level);
    assert_eq!(&show_json(&analysis).unwrap()["scaling"][0]["series"][0]["outcome"], law);
}

#[test]
fn legend_of_one_series_shows_its_best() {
    let analysis = Analysis::of_store(&sweep(&[1, 2, 4, 6, 8], false, |_, _| {})).unwrap();
    let fit = fitted(&analysis.scaling[0].series[0]);
    // Between the measured levels, but an integer.
    assert!(fit.law.best.level == 4 || fit.law.best.level == 5, "{}", fit.sentence);
    let store = sweep(&[1, 2, 4, 6, 8], false, |_, _| {});
    let contents = store.contents().unwrap();
    let files = files(&contents, &analysis).unwrap();
    let graph = files.iter().find(|file| file.name == "graph.svg").unwrap();
    let svg = String::from_utf8(graph.bytes.clone()).unwrap();
    assert!(svg.contains("best by the law: "), "{svg}");
    picture("figure/scaling-one", &svg);
}

#[test]
fn levels_at_the_ceiling_are_left_out_with_a_note() {
    let store = sweep(&[1, 2, 3, 4, 6, 8], false, |plan, run| {
        if plan.variants[run.variants[0]].settings.dut.queues == 8 && run.block == 1 {
            let limited = Warning::GeneratorLimited { forwarded_pps: 6.9e6, ceiling_pps: 7.1e6 };
            run.warnings.push(limited);
        }
    });
    let analysis = Analysis::of_store(&store).unwrap();
    let fit = fitted(&analysis.scaling[0].series[0]);
    assert_eq!((&fit.law.censored[..], fit.law.levels.last()), (&[8][..], Some(&6)));
    let contents = store.contents().unwrap();
    let files = files(&contents, &analysis).unwrap();
    let readme = files.iter().find(|file| file.name == "README.md").unwrap();
    let readme = String::from_utf8(readme.bytes.clone()).unwrap();
    for text in [&summary_text(&analysis, 400), &readme] {
        assert!(text.contains("(8 left out: limited by sender, receiver or line)"), "{text}");
    }
}

#[test]
fn too_few_levels_are_reported_as_reason() {
    let plan = plan(TestbedKind::Sim, vec![queues(&[1, 2, 4, 8])], vec![None], 2);
    let three = (0..8).filter(|&i| plan.runs[i as usize].variants != [3]);
    let analysis = Analysis::of_store(&store(&plan, three)).unwrap();
    let text = summary_text(&analysis, 200);
    let reason =
        "scaling with queues: no fit: too few levels for three parameters: 3 of at least 4";
    assert!(text.contains(reason), "{text}");
}

/// Sweep of the archive: folder, ln lambda, kappa, their standard errors and the lack of fit by
/// scipy 1.17.1 (`curve_fit`, tolerances 1e-15; where sigma is nearly 0, 200 further Gauss-Newton
/// steps by numpy 2.4.6's `lstsq`).
struct Archived {
    folder: &'static str,
    name: &'static str,
    log_lambda: (f64, f64),
    sigma: Option<(f64, f64)>,
    kappa: (f64, f64),
    lack_of_fit: f64,
    /// The law rises from n to n + 1 if (1 - sigma) / kappa exceeds n (n + 1).
    best: u32,
}

const ARCHIVED: [Archived; 2] = [
    Archived {
        folder: "000-cxgbe-queues-fbsd10.2/results/fbsd10.2",
        name: "scaling-archive-000",
        log_lambda: (13.938723917655443, 0.033072178146727874),
        sigma: None,
        kappa: (0.09826562462562136, 0.005475461129849224),
        lack_of_fit: 28.465606352103155,
        best: 3,
    },
    Archived {
        folder: "001-cxgbe-queues-harvest351-fbsd11-head.r287478/results/fbsd11-head.r287478",
        name: "scaling-archive-001",
        log_lambda: (13.959213030485978, 0.039955811030408975),
        sigma: Some((0.004101628355280724, 0.05015073473617778)),
        kappa: (0.08245105390135231, 0.006959757969400033),
        lack_of_fit: 28.75719643265341,
        best: 4,
    },
];

#[test]
fn archived_sweeps_agree_with_scipy() {
    for archive in fwdlab_testdata::archives() {
        for expected in ARCHIVED {
            let runs = archived_runs(&archive.path().join(expected.folder));
            assert_eq!(runs.len(), 40, "{}", expected.folder);
            let law = fit_scalability(&runs, 95.0).unwrap();
            let close = |actual: f64, oracle: f64, tolerance: f64| {
                let name = expected.name;
                assert!(
                    (actual / oracle - 1.0).abs() < tolerance,
                    "{name}: {actual} is not {oracle}"
                );
            };
            close(law.lambda_pps.value, expected.log_lambda.0.exp(), 1e-6);
            close(law.lambda_pps.se.unwrap(), expected.log_lambda.1, 1e-4);
            close(law.kappa.value, expected.kappa.0, 1e-6);
            close(law.kappa.se.unwrap(), expected.kappa.1, 1e-4);
            match expected.sigma {
                Some((sigma, se)) => {
                    close(law.sigma.value, sigma, 1e-6);
                    close(law.sigma.se.unwrap(), se, 1e-4);
                }
                None => assert!(law.sigma.at_bound && law.sigma.value == 0.0),
            }
            close(law.lack_of_fit.unwrap().f, expected.lack_of_fit, 1e-6);
            // In both sweeps, four of eight queues do not fit any smooth curve.
            assert_eq!((law.best.level, law.fastest_measured.level), (expected.best, 4));
            assert!(law.sentence().starts_with("the law does NOT describe these levels"));
            let svg = chart(&runs, &law).render();
            picture(&format!("figure/{}", expected.name), &svg);
        }
    }
}

fn archived_runs(folder: &Path) -> Vec<ScaledRun> {
    let runs_of = |level: u32| {
        let text = std::fs::read_to_string(folder.join(format!("pps.{level}"))).unwrap();
        let rates: Vec<f64> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        rates.into_iter().map(move |pps| ScaledRun { level, block: 0, pps, limited: false })
    };
    (1..=8).flat_map(runs_of).collect()
}

fn chart(runs: &[ScaledRun], law: &Scalability) -> Chart {
    let point = |&level: &u32| {
        let level_runs = runs.iter().filter(|run| run.level == level);
        let rates: Vec<f64> = level_runs.map(|run| run.pps).collect();
        let summary = Summary::of(&rates)?;
        let (median_pps, min_pps, max_pps) = (summary.median, summary.min, summary.max);
        Some(Point { median_pps, min_pps, max_pps })
    };
    let curve = (0..=70).map(|i| 1.0 + f64::from(i) / 10.0).map(|x| {
        let (pps, interval) = law.predict(x);
        CurvePoint { x, pps, low_pps: interval.low, high_pps: interval.high }
    });
    let fit = Fit {
        curve: curve.collect(),
        best: Some((f64::from(law.best.level), law.best.pps)),
        confidence: law.confidence,
        holds: law.holds(),
    };
    Chart {
        middle: "median",
        title: "Impact of Chelsio rx/tx queue number on forwarding performance".into(),
        x_label: "queues".into(),
        x: XAxis::Numbers(law.levels.iter().map(|&n| (f64::from(n), n.to_string())).collect()),
        series: vec![Series {
            name: String::new(),
            points: law.levels.iter().map(point).collect(),
            fit: Some(fit),
        }],
        y: Quantity::Rate,
        right: Some(RightAxis::L2Rate(FrameSize::of(64))),
        ceiling_pps: None,
        footnote: Some("Medians of the runs with the slowest and the fastest.".into()),
    }
}

/// Counters of `queues` receive queues, the first `used` of which have packets.
fn received(queues: u16, used: u16) -> Vec<Counter> {
    let counter = |queue| Counter {
        name: counter_name("d0", Direction::Receive, queue),
        before: 0,
        after: if queue < used { 1000 } else { 0 },
        expected: None,
    };
    (0..queues).map(counter).collect()
}

#[test]
fn queues_that_share_cpus_or_are_idle_are_not_fitted() {
    let levels = [1, 2, 3, 4, 5, 6, 7, 8];
    let queues = |plan: &Plan, run: &RunRecord| plan.variants[run.variants[0]].settings.dut.queues;
    // Eight queues on two CPUs: no fit, with the reason.
    let store = sweep(&levels, false, |_, run| run.trial.cpus.truncate(3));
    let analysis = Analysis::of(&store.contents().unwrap());
    let ScalingOutcome::Unanswerable { reason } = &analysis.scaling[0].series[0].outcome else {
        panic!("a law of eight queues on two CPUs");
    };
    assert!(reason.contains("3, 4, 5, 6, 7 and 8 queues shared 2 CPUs"), "{reason}");
    assert_eq!(analysis.core.factors[0].shown, "queues");
    // Packets at the first two receive queues only: a sweep of something else.
    let store = sweep(&levels, false, |plan, run| {
        let queues = queues(plan, run);
        run.trial.counters.extend(received(queues, queues.min(2)));
    });
    let analysis = Analysis::of(&store.contents().unwrap());
    let ScalingOutcome::Unanswerable { reason } = &analysis.scaling[0].series[0].outcome else {
        panic!("a law of queues that were idle");
    };
    assert!(reason.contains("8 queues were not all received at"), "{reason}");
    assert!(
        analysis.core.factors[0].shown.contains("transmit queues"),
        "{:?}",
        analysis.core.factors[0]
    );
    let last = analysis.queues.iter().find(|row| row.label == "8").expect("eight queues");
    assert_eq!((last.queues, last.used), (8, 2));
    assert_eq!(last.shares[..3], [0.5, 0.5, 0.0]);
    // Packets at all queues: the law, and the shares.
    let store = sweep(&levels, false, |plan, run| {
        let queues = queues(plan, run);
        run.trial.counters.extend(received(queues, queues));
    });
    let analysis = Analysis::of(&store.contents().unwrap());
    fitted(&analysis.scaling[0].series[0]);
    assert!(analysis.queues.iter().all(|row| row.used == row.queues), "{:?}", analysis.queues);
}
