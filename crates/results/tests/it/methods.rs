//! Reports of search methods: results by frame size, in both directions, on links of a known line
//! rate. The searches are real, on a fabricated device.

use crate::golden::{golden, picture};
use crate::support::{Random, file, fill, full_store, plan, record, report};
use fwdlab_model::design::{Method, SearchMethod};
use fwdlab_model::plan::{Change, Factor, Level};
use fwdlab_model::record::{Arrivals, Counts, MethodRecord, MethodTrial, Reverse, tolerated};
use fwdlab_model::settings::{Directions, TestbedKind};
use fwdlab_model::units::LINE_RATE;
use fwdlab_model::{Plan, RunRecord, Variant};
use fwdlab_results::report::Analysis;
use fwdlab_results::report::analysis::found_in_words;
use fwdlab_results::store::Store;
use fwdlab_search::{Ending, Goal, Limits, Search, SearchResult, Step};

/// Line rate of the links in bit/s.
const LINK: f64 = 10e9;

fn sizes() -> Factor {
    let level = |bytes: u16| Level {
        label: bytes.to_string(),
        number: Some(f64::from(bytes)),
        changes: vec![Change {
            setting: "frame_size".into(),
            value: bytes.to_string(),
            live: false,
        }],
        build_of: None,
    };
    Factor { name: "frame_size".into(), levels: [64, 256, 1518].map(level).to_vec() }
}

fn goals() -> Vec<Goal> {
    let preset = |name| Goal { width: 0.01, ..Goal::preset(name).expect("a preset") };
    ["ndr", "pdr"].map(preset).into()
}

/// Plan of three frame sizes, packets in both directions, and one search in each of four runs.
fn searching() -> Plan {
    let mut plan = plan(TestbedKind::Ssh, vec![sizes()], vec![None], 4);
    let variants = plan.variants.iter_mut().map(|variant| &mut variant.settings);
    for settings in variants.chain([&mut plan.base]) {
        settings.traffic.directions = Directions::Both;
    }
    plan.method = Some(Method::Mlrsearch(SearchMethod::of(goals())));
    plan.sealed()
}

/// Capacity of the device from the sender to the receiver, packets per second: lower for larger
/// frames, and at most the line rate.
fn truth(variant: &Variant) -> f64 {
    let frame = variant.settings.traffic.frame_size;
    (4e6 / (1.0 + f64::from(frame.most()) / 4000.0)).min(LINK / frame.l1_bits_per_second(1.0))
}

/// Ratio of the reverse capacity to the forward capacity.
const BACK: f64 = 0.75;

/// A trial at `load`, split equally between the directions.
fn trial(load: u64, duration_ns: u64, capacity: f64) -> MethodTrial {
    let seconds = duration_ns as f64 / 1e9;
    let direction = |capacity: f64| {
        let offered = load as f64 / 2.0 * seconds;
        Counts {
            offered: offered as u64,
            forwarded: offered.min((capacity * seconds).floor()) as u64,
        }
    };
    let (forward, back) = (direction(capacity), direction(BACK * capacity));
    MethodTrial {
        load,
        duration_ns,
        window_ns: duration_ns,
        offered: forward.offered + back.offered,
        forwarded: forward.forwarded + back.forwarded,
        reverse: Some(back),
        ..MethodTrial::default()
    }
}

/// Record of a run with a search of its device, whose capacity varies by 3 % between runs.
fn searched_run(plan: &Plan, index: u32) -> RunRecord {
    let mut run = record(plan, index);
    let variant = &plan.variants[plan.runs[index as usize].variants[0]];
    let noise = 1.0 + 0.03 * Random(u64::from(index) + 99).normal();
    let capacity = truth(variant) * noise;
    let limits = Limits::between(100_000, 16_000_000);
    let mut search = Search::new(goals(), limits).expect("a search");
    let mut record =
        MethodRecord { min_load: 100_000, max_load: 16_000_000, ..MethodRecord::default() };
    let mut at_ns = 0;
    while let Step::Measure(step) = search.next() {
        let trial = MethodTrial { at_ns, ..trial(step.load, step.duration_ns, capacity) };
        at_ns += step.duration_ns;
        search.record(trial.outcome(tolerated(&goals())));
        record.trials.push(trial);
    }
    run.method = Some(record);
    let window_trial = trial(16_000_000, plan.trial.duration_ns, capacity);
    run.trial.window = Counts { offered: window_trial.offered, forwarded: window_trial.forwarded };
    let window = window_trial.reverse.expect("both directions");
    let reverse = Reverse { window, total: window, arrivals: Arrivals::default() };
    run.trial.arrivals = Arrivals { reverse: Some(Box::new(reverse)), ..run.trial.arrivals };
    run.facts.insert(LINE_RATE.into(), "10 Gbit/s".into());
    run
}

fn analysis(plan: &Plan) -> (Store, Analysis) {
    let mut store = Store::memory().expect("memory");
    fill(&mut store, plan, []);
    for index in 0..plan.runs.len() as u32 {
        store.insert_run(&searched_run(plan, index)).expect("a run is kept");
    }
    let analysis = Analysis::of(&store.contents().expect("contents"));
    (store, analysis)
}

#[test]
fn report_shows_searches_by_frame_size_and_direction() {
    let (store, _) = analysis(&searching());
    let files = report(&store);
    golden("report/methods.README.md", &file(&files, "README.md"));
    picture("report/methods.frame-sizes", &file(&files, "frame-sizes.svg"));
}

/// Ten trials at each of two low loads, each of which loses one packet in 200: the report contains
/// the loss with both loads, and nothing for a device without loss.
#[test]
fn report_shows_loss_that_persists_at_low_loads() {
    let plan = searching();
    let readme = |share: u64| {
        let mut run = searched_run(&plan, 0);
        let trials = [1_000_000, 1_200_000].into_iter().flat_map(|load| {
            let mut trial = trial(load, 1_000_000_000, 1e9);
            trial.forwarded -= trial.offered / 1000 * share;
            std::iter::repeat_n(trial, 10)
        });
        run.method.as_mut().expect("a search").trials = trials.collect();
        let mut store = Store::memory().expect("memory");
        fill(&mut store, &plan, []);
        store.insert_run(&run).expect("a run is kept");
        file(&report(&store), "README.md")
    };
    let lossy = readme(5);
    let line = lossy.lines().find(|line| line.contains("the loss stays")).expect("a line");
    assert!(line.contains("half of the trials at 1.00 Mpps lost 0.500 % or more"), "{line}");
    assert!(line.contains("at 1.20 Mpps at most twice that"), "{line}");
    assert!(!readme(0).contains("the loss stays"));
}

/// An aborted search has a load without loss, which is not a result: it must not enter comparisons
/// or the rates of its variant.
#[test]
fn irregular_result_is_not_a_rate_of_its_variant() {
    let plan = searching();
    let words = |run: &RunRecord| found_in_words(&plan, run).expect("a search");
    let whole = searched_run(&plan, 0);
    // Aborted with passed loads but without a failed one.
    let mut cut = whole.clone();
    let method = cut.method.as_mut().expect("a search");
    method.ended = Some(Ending::Trials);
    method.trials.retain(|trial| trial.forwarded == trial.offered);
    let limits = Limits::between(method.min_load, method.max_load);
    let outcomes = method.outcomes(&goals());
    let found = SearchResult::of(goals(), &limits, outcomes, method.ended.as_ref());
    assert!(found.goals[0].conditional_throughput.is_some(), "{found:?}");
    let invalid = MethodTrial { invalid: Some("others had the CPU".into()), ..trial(1000, 1, 1.0) };
    method.trials.push(invalid);
    let trials = |run: &RunRecord| run.method.as_ref().expect("a search").trials.len();
    assert!(words(&whole).ends_with(&format!(" ({} trials)", trials(&whole))), "{}", words(&whole));
    let counted = format!(" ({} trials, 1 more invalid)", trials(&cut) - 1);
    assert!(words(&cut).ends_with(&counted), "{}", words(&cut));
    let values = |run: RunRecord| {
        let variant = run.variants[0];
        let mut store = Store::memory().expect("memory");
        fill(&mut store, &plan, []);
        store.insert_run(&run).expect("a run is kept");
        let analysis = Analysis::of(&store.contents().expect("contents"));
        (analysis.core.variants[variant].values.len(), analysis.core.notes)
    };
    assert_eq!(values(whole).0, 1);
    let (count, notes) = values(cut);
    assert_eq!(count, 0);
    assert!(notes.iter().any(|note| note.contains("no regular result for ndr")), "{notes:?}");
}

/// Directions with different capacities have separate results, whose sum is the total.
#[test]
fn directions_sum_to_the_total() {
    let plan = searching();
    let (_, analysis) = analysis(&plan);
    let method = analysis.method.expect("a search");
    // Three sizes, two goals, two bounds, two directions.
    assert_eq!(method.directions.len(), 24);
    for pair in method.directions.chunks(2) {
        let [forward, back] = pair else { panic!("two directions") };
        assert_eq!(
            (&forward.at, &forward.label, forward.trials),
            (&back.at, &back.label, back.trials)
        );
        assert_eq!(forward.loss_ratio, Some(0.0), "{forward:?}");
        let lost = back.loss_ratio.expect("trials");
        // The goal of PDR, 0.5 %, is of both directions together: a single lossy direction loses 1
        // %.
        let (least, most) = match back.at.as_str() {
            "ndr, lower bound" => (0.0, 0.0),
            "ndr, upper bound" => (1e-9, 0.011),
            "pdr, lower bound" => (0.0, 0.01),
            _ => (0.01, 0.025),
        };
        assert!((least..=most).contains(&lost), "{back:?}");
        let row = method
            .searched
            .iter()
            .find(|row| row.variant == back.variant && back.at.starts_with(&row.goal));
        let found = row.expect("a row").throughput.expect("regular").median;
        let sum = forward.forwarded_pps.unwrap_or(0.0) + back.forwarded_pps.unwrap_or(0.0);
        assert!((sum / found - 1.0).abs() < 0.03, "{sum} of {found}");
    }
}

/// Shares are of the line rate in both directions, for the frame size.
#[test]
fn shares_of_the_line_rate_agree_with_the_device() {
    let plan = searching();
    let (_, analysis) = analysis(&plan);
    let method = analysis.method.expect("a search");
    for row in method.searched.iter().filter(|row| row.goal == "ndr") {
        let variant = &plan.variants[row.variant];
        let line = 2.0 * LINK / variant.settings.traffic.frame_size.l1_bits_per_second(1.0);
        let expected = 2.0 * BACK * truth(variant) / line;
        let share = row.of_line.expect("a line rate");
        assert!((share / expected - 1.0).abs() < 0.05, "{share} of {expected}: {}", row.label);
    }
    let sizes = analysis.sizes.expect("frame sizes");
    let names: Vec<&str> = sizes.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["ndr", "pdr"]);
    for point in sizes.series.iter().flat_map(|series| &series.points) {
        let (low, high) = point.interval.expect("four runs");
        assert!(low < point.rate && point.rate < high && point.runs == 4, "{point:?}");
    }
}

/// Without a recorded line rate, neither the report nor the picture shows a share of it.
#[test]
fn report_without_line_rate_has_no_shares() {
    let plan = plan(TestbedKind::Netns, vec![sizes()], vec![None], 2);
    let store = full_store(&plan);
    let files = report(&store);
    let (report, svg) = (file(&files, "README.md"), file(&files, "frame-sizes.svg"));
    assert!(!report.contains("line rate") && !svg.contains("line rate"), "{report}");
    assert!(svg.contains("too few"), "two runs have no interval: {svg}");
}
