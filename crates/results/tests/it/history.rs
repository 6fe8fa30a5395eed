//! Histories of fabricated stores: collection, changes, and output. Golden files are in
//! `tests/golden/history`; `UPDATE=1` rewrites them.

use crate::golden::golden;
use crate::revisions::{archive, machine, store};
use crate::support::{plan, queues};
use fwdlab_model::plan::{Factor, Level};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::document::form::{json, text};
use fwdlab_results::history::{Collector, Detection, Direction, History};
use fwdlab_results::store::Contents;
use std::path::Path;

/// A factor with revisions as levels.
fn of_revisions(labels: &[&str]) -> Factor {
    let level = |label: &&str| Level {
        label: label.to_string(),
        number: None,
        changes: Vec::new(),
        build_of: None,
    };
    Factor { name: "revision".into(), levels: labels.iter().map(level).collect() }
}

const LABELS: [&str; 10] = [
    "r299288",
    "r300102",
    "r301000",
    "r302250",
    "r302250D27401",
    "r303642",
    "r303643",
    "r305001",
    "n240001",
    "n240100",
];

/// A store with ten revisions as a factor, slower by `loss` from r303643 on.
fn with_factor(machine: &str, loss: f64) -> Contents {
    let plan =
        plan(TestbedKind::Netns, vec![of_revisions(&LABELS), queues()], vec![Some(0), None], 5);
    let environment = archive(&[
        ("machine", machine),
        ("interface", "Chelsio_T540-CR"),
        ("topic", "hw.cxgbe.nXxq10g"),
        ("label", "fbsd12-head"),
    ]);
    store(&plan, "archive", "2016-06-01T00:00:00Z", environment, &|label| {
        let (revision, queues) = label.split_once(", ").unwrap();
        let later = LABELS.iter().position(|known| *known == revision) >= Some(6);
        1e6 * queues.parse::<f64>().unwrap() * if later { 1.0 - loss } else { 1.0 }
    })
}

/// Adds stores of one kernel each: `rates` in packets per second by release.
fn of_kernels(collector: &mut Collector, testbed: &str, kind: TestbedKind, rates: &[(&str, f64)]) {
    let plan = plan(kind, Vec::new(), Vec::new(), 5);
    for (i, (release, rate)) in rates.iter().enumerate() {
        let date = format!("2026-01-{:02}T00:00:00Z", i + 1);
        let contents = store(&plan, testbed, &date, machine(release), &|_| *rate);
        collector.add(Path::new(&format!("{testbed}/{release}/run.sqlite")), &contents);
    }
}

fn of_archive(machines: &[(&str, f64)]) -> History {
    let mut collector = Collector::new();
    for (machine, loss) in machines {
        let path = format!("archive/{machine}/run.sqlite");
        collector.add(Path::new(&path), &with_factor(machine, *loss));
    }
    collector.finish()
}

#[test]
fn revision_factor_becomes_a_series_per_machine_and_setting() {
    let history = of_archive(&[("Xeon_E5-2650_8Cores", 0.06), ("Atom_C2558_4Cores", 0.05)]);
    assert_eq!((history.stores, history.counts.series), (2, 8));
    for series in &history.series {
        let revisions: Vec<&str> = series.points.iter().map(|p| p.revision.as_str()).collect();
        assert_eq!(revisions, LABELS, "{}", series.title);
        let patched: Vec<usize> = (0..10).filter(|&i| series.points[i].patched).collect();
        assert_eq!(patched, [4]);
        assert_eq!(series.changes.len(), 1, "{}: {:?}", series.title, series.changes);
        let change = &series.changes[0];
        assert_eq!((change.before.as_str(), change.after.as_str()), ("r303642", "r303643"));
        assert!(change.confirmation_needed);
        assert_eq!(change.run_again, ["r303642", "r303643"]);
        let truth = if series.machine.starts_with("Xeon") { 0.94 } else { 0.95 };
        assert!(change.low < truth && truth < change.high, "{change:?}");
        assert_eq!(change.direction, Direction::Worse);
    }
    assert_eq!(
        history.series[0].title,
        "Atom_C2558_4Cores, Chelsio_T540-CR, hw.cxgbe.nXxq10g, queues = 1"
    );
    let [together] = &history.agreements[..] else { panic!("{:?}", history.agreements) };
    assert_eq!((together.before.as_str(), together.after.as_str()), ("r303642", "r303643"));
    assert_eq!(together.machines, ["Atom_C2558_4Cores", "Xeon_E5-2650_8Cores"]);
    assert_eq!(together.series.len(), 8);
}

#[test]
fn machines_agree_if_one_revision_can_cause_both_changes() {
    // Changes after r303642 up to r303643, and after r303000 up to r304000.
    let labels =
        ["r299000", "r300000", "r301000", "r302000", "r303000", "r304000", "r305000", "r306000"];
    let plan = plan(TestbedKind::Netns, vec![of_revisions(&labels)], vec![Some(0)], 5);
    let environment = archive(&[("machine", "Xeon"), ("topic", "hw.cxgbe.nXxq10g")]);
    let mut collector = Collector::new();
    collector.add(Path::new("atom"), &with_factor("Atom", 0.06));
    let slower = |label: &str| if label >= "r304000" { 0.95e6 } else { 1e6 };
    collector.add(Path::new("xeon"), &store(&plan, "archive", "", environment, &slower));
    collector.keep_titles_with("Xeon");
    let alone = collector.finish();
    assert_eq!(
        (alone.series[0].changes[0].before.as_str(), alone.agreements.len()),
        ("r303000", 0)
    );

    let mut collector = Collector::new();
    collector.add(Path::new("atom"), &with_factor("Atom", 0.06));
    collector.keep_titles_with("queues = 4");
    let environment = archive(&[("machine", "Xeon"), ("topic", "hw.cxgbe.nXxq10g")]);
    collector.add(Path::new("xeon"), &store(&plan, "archive", "", environment.clone(), &slower));
    // A third machine changes in the other direction, so it does not agree.
    let faster = |label: &str| 2e6 - slower(label);
    let mut third = environment;
    third.0.get_mut("archive").unwrap().insert("machine".into(), "Ryzen".into());
    collector.add(Path::new("ryzen"), &store(&plan, "archive", "", third, &faster));
    let history = collector.finish();
    assert_eq!(history.counts.changes, 3);
    let [agreement] = &history.agreements[..] else { panic!("{:?}", history.agreements) };
    assert_eq!((agreement.before.as_str(), agreement.after.as_str()), ("r303642", "r303643"));
    assert_eq!(agreement.machines, ["Atom", "Xeon"]);
}

#[test]
fn one_machine_has_no_agreements() {
    let history = of_archive(&[("Xeon_E5-2650_8Cores", 0.06)]);
    assert_eq!((history.counts.worse, history.agreements.len()), (4, 0));
}

#[test]
fn stores_of_one_revision_each_become_a_series() {
    let plan = plan(TestbedKind::Netns, vec![queues()], vec![Some(0)], 5);
    let mut collector = Collector::new();
    // In random order, with one label twice.
    let labels = [287_478, 280_000, 281_000, 295_802, 283_000, 285_000, 290_000, 297_000];
    for (i, number) in labels.into_iter().enumerate() {
        for twice in 0..=usize::from(number == 290_000) {
            let label = format!("fbsd11-head.r{number}");
            let date = format!("2015-{:02}-{:02}T00:00:00Z", i + 1, twice + 1);
            let names = [
                ("machine", "Atom"),
                ("topic", "queues"),
                ("label", label.as_str()),
                ("started", date.as_str()),
            ];
            let gain = if number >= 287_478 { 1.04 } else { 1.0 };
            let contents = store(&plan, "archive", &date, archive(&names), &|label| {
                3e5 * gain * label.parse::<f64>().unwrap()
            });
            collector.add(Path::new(&format!("{label}-{twice}/run.sqlite")), &contents);
        }
    }
    let history = collector.finish();
    assert_eq!((history.stores, history.counts.series), (9, 4));
    for series in &history.series {
        let order: Vec<&str> = series.points.iter().map(|p| p.revision.as_str()).collect();
        let expected =
            [280_000, 281_000, 283_000, 285_000, 287_478, 290_000, 290_000, 295_802, 297_000];
        assert_eq!(order, expected.map(|n| format!("r{n}")));
        let names = [5, 6].map(|i| series.points[i].name());
        assert_eq!(names, ["r290000 (2015-07-01 00:00)", "r290000 (2015-07-02 00:00)"]);
        let changes: Vec<&str> = series.changes.iter().map(|c| c.after.as_str()).collect();
        assert_eq!(changes, ["r287478"], "{}", series.title);
        assert_eq!(series.changes[0].direction, Direction::Better);
    }
}

#[test]
fn stores_sort_by_kernel_and_testbeds_are_separate() {
    let mut collector = Collector::new();
    let rates = [("6.18.1", 1.00e6), ("6.2.9", 1.02e6), ("6.18.0-rc2", 1.01e6), ("6.18.0", 1.01e6)];
    of_kernels(&mut collector, "netns", TestbedKind::Netns, &rates);
    of_kernels(&mut collector, "memory", TestbedKind::Netns, &rates[..2]);
    of_kernels(&mut collector, "sim", TestbedKind::Sim, &rates[..3]);
    let history = collector.finish();
    let found: Vec<(&str, usize)> =
        history.series.iter().map(|s| (s.testbed.as_str(), s.points.len())).collect();
    assert_eq!(found, [("memory", 2), ("netns", 4), ("sim", 3)]);
    let order = |of: usize| -> Vec<&str> {
        history.series[of].points.iter().map(|point| point.revision.as_str()).collect()
    };
    assert_eq!(order(1), ["6.2.9", "6.18.0-rc2", "6.18.0", "6.18.1"]);
    // Memory and simulated testbeds have no forwarding kernel.
    assert_eq!(order(0), ["2026-01-01 00:00", "2026-01-02 00:00"]);
    // One name, three series: titles contain the difference.
    assert!(history.series[2].title.contains("testbed = sim"), "{}", history.series[2].title);
    assert!(history.series[2].caption.starts_with("SIMULATED"));
    assert_eq!(history.series[0].detection, Detection::TooShort { points: 2, need: 4 });
    assert_eq!(history.counts.too_short, 2);
}

#[test]
fn outlier_is_not_a_change() {
    let kernels: Vec<String> = (0..16).map(|i| format!("6.{i}.0")).collect();
    let series = |of: &dyn Fn(usize) -> f64| {
        let mut collector = Collector::new();
        let rates: Vec<(&str, f64)> =
            kernels.iter().enumerate().map(|(i, k)| (k.as_str(), of(i))).collect();
        of_kernels(&mut collector, "ssh", TestbedKind::Netns, &rates);
        collector.finish().series.remove(0)
    };
    // The scatter of the runs would hide a change of 0.9 %, so a large one is tested.
    let step = series(&|i| if i < 9 { 1e6 } else { 0.95e6 });
    assert_eq!(step.changes.len(), 1, "{:?}", step.changes);
    assert_eq!(step.changes[0].after, "6.9.0");
    let odd = series(&|i| if i == 7 { 0.8e6 } else { 1e6 });
    assert!(odd.changes.is_empty(), "{:?}", odd.changes);
    let apart: Vec<(&str, bool)> =
        odd.apart.iter().map(|apart| (apart.point.as_str(), apart.is_latest)).collect();
    assert_eq!(apart, [("6.7.0", false)]);
    // An outlier at the end does not blame the previous point.
    let last = series(&|i| if i == 15 { 0.85e6 } else { 1e6 });
    assert!(last.changes.is_empty(), "{:?}", last.changes);
    assert_eq!((last.apart[0].point.as_str(), last.apart[0].is_latest), ("6.15.0", true));
    assert!((last.apart[0].ratio - 0.85).abs() < 0.02);
}

/// Kernels without a change, with low and with high scatter.
#[test]
fn no_change_reports_the_detectable_step() {
    let of = |spread: f64| {
        let mut collector = Collector::new();
        let rates: Vec<(String, f64)> = [0.3, -0.9, 0.5, -0.2, 0.8, -0.4, 0.1, -0.7, 0.6, -0.1]
            .iter()
            .enumerate()
            .map(|(i, by): (usize, &f64)| (format!("6.{i}.0"), 1e6 * (1.0 + spread * by)))
            .collect();
        let rates: Vec<(&str, f64)> = rates.iter().map(|(name, rate)| (&**name, *rate)).collect();
        of_kernels(&mut collector, "ssh", TestbedKind::Netns, &rates);
        collector.finish()
    };
    let detection = |history: &History| match history.series[0].detection {
        Detection::Done { detectable, can_tell, .. } => (detectable, can_tell),
        other => panic!("{other:?}"),
    };
    let (quiet, loud) = (of(0.005), of(0.3));
    let ((small, can_tell), (large, cannot)) = (detection(&quiet), detection(&loud));
    assert!(can_tell && !cannot && small < 0.1 && large > 0.1, "{small} {large}");
    assert_eq!((quiet.counts.cant_tell, loud.counts.cant_tell), (0, 1));
    let output = render_text(&quiet, 500);
    assert!(
        output.contains("no change: ") && output.contains("halfway would have been found"),
        "{output}"
    );
    let output = render_text(&loud, 500);
    assert!(output.contains("can't tell: ") && !output.contains("no change: "), "{output}");
    assert!(
        output.contains("could have been missed") && output.contains("scatter too widely to tell")
    );
}

#[test]
fn change_within_one_revision_is_marked() {
    let mut collector = Collector::new();
    let rates = [1e6, 1e6, 1e6, 1e6, 0.9e6, 0.9e6, 0.9e6].map(|rate| ("6.1.0", rate));
    of_kernels(&mut collector, "ssh", TestbedKind::Netns, &rates);
    let history = collector.finish();
    let change = &history.series[0].changes[0];
    assert!(change.same_revision);
    assert_eq!(change.before, "6.1.0 (2026-01-04 00:00)");
    assert_eq!(change.after, "6.1.0 (2026-01-05 00:00)");
    assert!(change.sentence.ends_with("something else has changed"), "{}", change.sentence);
}

#[test]
fn history_reports_a_revision_that_forwards_nothing() {
    let mut collector = Collector::new();
    let rates = [("6.1", 1e6), ("6.2", 0.0), ("6.3", 1e6), ("6.4", 1e6), ("6.5", 1e6)];
    of_kernels(&mut collector, "ssh", TestbedKind::Netns, &rates);
    let history = collector.finish();
    assert_eq!(history.series[0].detection, Detection::NothingForwarded);
    assert!(render_text(&history, 80).contains("nothing was forwarded at some revision"));
    assert!(!json::value(&history.document(false, true)).unwrap().to_string().contains("inf"));
    for file in history.files(true) {
        let text = String::from_utf8(file.bytes).unwrap();
        let page = text.split("<script>").next().unwrap();
        assert!(!page.contains("NaN"), "{}", file.name);
    }
}

#[test]
fn history_notes_stores_without_rates() {
    let mut collector = Collector::new();
    // A capacity is computed from samples, which this store lacks.
    let mut plan = plan(TestbedKind::Netns, Vec::new(), Vec::new(), 5);
    plan.compare.figure = Some(fwdlab_model::plan::RunMetric::P90);
    let contents = store(&plan, "netns", "2026-01-01T00:00:00Z", machine("6.1"), &|_| 1e6);
    collector.add(Path::new("netns/6.1/run.sqlite"), &contents);
    let mut contents = with_factor("Atom", 0.0);
    contents.run_invocations.clear();
    collector.add(Path::new("unfinished/run.sqlite"), &contents);
    let history = collector.finish();
    assert_eq!((history.stores, history.counts.series), (1, 0));
    assert_eq!(
        history.notes,
        [
            "netns/6.1/run.sqlite: none of its runs has a figure, it is left out",
            "unfinished/run.sqlite: holds no runs and is left out"
        ]
    );
}

#[test]
fn keep_titles_with_selects_series() {
    let mut collector = Collector::new();
    collector.add(Path::new("a"), &with_factor("Atom", 0.0));
    assert_eq!(collector.titles().len(), 4);
    collector.keep_titles_with("QUEUES = 4");
    assert_eq!(collector.finish().counts.series, 1);
    let empty = Collector::new().finish();
    assert_eq!(render_text(&empty, 80), "History\n\n0 stores; 0 series; no changes found.\n");
}

#[test]
fn history_forms_match_golden_files() {
    let mut collector = Collector::new();
    collector.add(Path::new("archive/xeon/run.sqlite"), &with_factor("Xeon_E5-2650_8Cores", 0.06));
    collector.add(Path::new("archive/atom/run.sqlite"), &with_factor("Atom_C2558_4Cores", 0.05));
    collector.keep_titles_with("queues = 1");
    of_kernels(&mut collector, "sim", TestbedKind::Sim, &[("6.1", 1e6), ("main", 1.1e6)]);
    let history = collector.finish();
    golden("history/text.80.txt", &render_text(&history, 80));
    golden("history/text.40.txt", &render_text(&history, 40));
    let files = history.files(false);
    assert_eq!(files.len(), 2 + history.series.len());
    let figure = String::from_utf8(files[2].bytes.clone()).unwrap();
    assert!(figure.contains(">-4.9 %</text>") && figure.contains("does not begin at zero"));
    let page = String::from_utf8(files[0].bytes.clone()).unwrap();
    for file in &files[2..] {
        assert!(page.contains(&format!("]({})", file.name)), "{} is in no page", file.name);
    }
    golden("history/history.md", &page);
    golden("history/history.json", &json::render(&history.document(false, true)).unwrap());
    let widest = render_text(&history, 40).lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(44), "{widest:?}");
}

fn render_text(history: &History, width: usize) -> String {
    text::render(&history.document(false, false), width)
}
