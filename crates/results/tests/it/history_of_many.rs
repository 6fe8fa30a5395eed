//! Histories of many series: order of revisions of all kinds, what is shown, and how they are
//! filtered.

use crate::revisions::{archive, store};
use crate::support::{plan, queues};
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::document::form::text;
use fwdlab_results::facts::Filter;
use fwdlab_results::history::{Collector, History};
use std::path::Path;

/// One series of the archive, from labels with rate, uname and date.
fn history_of_labels(sets: &[(&str, f64, &str, &str)]) -> History {
    let plan = plan(TestbedKind::Netns, Vec::new(), Vec::new(), 5);
    let mut collector = Collector::new();
    for (label, rate, uname, date) in sets {
        let names = [
            ("machine", "Xeon_E5-2650_8Cores"),
            ("topic", "firewalls"),
            ("label", label),
            ("uname", uname),
            ("started", date),
        ];
        let contents = store(&plan, "archive", date, archive(&names), &|_| *rate);
        collector.add(Path::new(&format!("{label}/run.sqlite")), &contents);
    }
    collector.finish()
}

#[test]
fn history_orders_releases_among_revisions() {
    // A fourfold gain between two releases, the older of which has no number in its name.
    let history = history_of_labels(&[
        ("fbsd12-head.r317849", 5.8e6, "", "2017-05-01T00:00:00Z"),
        ("fbsd11-stable.r312663", 5.5e6, "", "2017-02-01T00:00:00Z"),
        ("fbsd10.1", 1.36e6, "", "2015-05-30T11:04:16+02:00"),
        ("fbsd10.2", 1.35e6, "", "2015-09-01T00:00:00Z"),
        ("fbsd12-head.r317849VIMAGE", 5.7e6, "", "2017-05-02T00:00:00Z"),
        ("fbsd10.3", 1.37e6, "", "2016-04-01T00:00:00Z"),
        ("fbsd12-head.r320657", 5.6e6, "", "2017-08-01T00:00:00Z"),
    ]);
    let [series] = &history.series[..] else { panic!("{:?}", history.series) };
    let order: Vec<&str> = series.points.iter().map(|point| point.revision.as_str()).collect();
    assert_eq!(
        order,
        ["fbsd10.1", "fbsd10.2", "fbsd10.3", "r312663", "r317849", "r317849VIMAGE", "r320657"]
    );
    assert!(series.points[5].patched && series.warnings.is_empty(), "{series:?}");
    let [change] = &series.changes[..] else { panic!("{:?}", series.changes) };
    assert_eq!((change.before.as_str(), change.after.as_str()), ("fbsd10.3", "r312663"));
    assert!(change.ratio > 4.0, "{change:?}");
}

#[test]
fn history_orders_mixed_numberings_by_day() {
    let [may, july, september] = ["Sat May  1", "Thu Jul  1", "Wed Sep  1"]
        .map(|day| format!("FreeBSD x #0: {day} 10:00:00 UTC 2021 root@x"));
    let history = history_of_labels(&[
        // The larger number was counted on another branch and is the older source.
        ("fbsd14-n245456", 1e6, &september, "2021-09-02T00:00:00Z"),
        ("fbsd13-c255632", 1e6, &may, "2021-05-02T00:00:00Z"),
        ("main", 1e6, &july, "2021-07-02T00:00:00Z"),
    ]);
    let series = &history.series[0];
    let order: Vec<&str> = series.points.iter().map(|point| point.revision.as_str()).collect();
    assert_eq!(order, ["c255632", "main", "n245456"]);
    assert!(series.warnings[0].contains("in the order of their days"), "{:?}", series.warnings);
    // Without days, the kinds follow each other, with a warning.
    let history = history_of_labels(&[("main", 1e6, "", ""), ("fbsd13-r364730", 1e6, "", "")]);
    let series = &history.series[0];
    assert_eq!(series.points[0].revision, "r364730");
    assert!(series.warnings[0].contains("sorted by kind, not by date"), "{:?}", series.warnings);
}

/// Twelve series of eight revisions; one series changes.
fn many() -> History {
    collect_many().finish()
}

fn collect_many() -> Collector {
    let labels =
        ["r299000", "r300000", "r301000", "r302000", "r303000", "r304000", "r305000", "r306000"];
    let plan = plan(TestbedKind::Netns, vec![queues()], vec![Some(0)], 5);
    let mut collector = Collector::new();
    for machine in ["Atom", "Xeon", "Ryzen"] {
        for (i, label) in labels.iter().enumerate() {
            let date = format!("2016-{:02}-01T00:00:00Z", i + 1);
            let names = [
                ("machine", machine),
                ("interface", "Chelsio"),
                ("topic", "queues"),
                ("label", label),
                ("started", &date),
            ];
            let contents = store(&plan, "archive", &date, archive(&names), &|variant| {
                let is_slow = machine == "Xeon" && variant == "4" && i >= 4;
                3e5 * variant.parse::<f64>().unwrap() * if is_slow { 0.8 } else { 1.0 }
            });
            collector.add(Path::new(&format!("{machine}/{label}/run.sqlite")), &contents);
        }
    }
    collector
}

#[test]
fn history_of_many_series_shows_changed_ones() {
    let history = many();
    assert_eq!((history.counts.series, history.counts.changes), (12, 1));
    let brief = render_text(&history, 100);
    assert!(brief.lines().count() < 20, "{brief}");
    let row = brief.lines().find(|line| line.trim().starts_with("2016-05-01")).expect("a row");
    assert!(row.contains("-20.") && row.contains("r302000") && row.contains("r303000"), "{row}");
    assert!(!brief.contains("8 points"), "{brief}");
    let all = text::render(&history.document(false, true), 100);
    assert_eq!(all.matches("8 points, ").count(), 12, "{all}");
    let files = history.files(false);
    assert_eq!(files.len(), 3, "a page in two forms, and the one figure with a story");
    assert_eq!(history.files(true).len(), 14);
    let page = String::from_utf8(files[1].bytes.clone()).unwrap();
    assert_eq!(
        page.matches("<svg").count(),
        2,
        "the one figure for wide windows and for narrow ones"
    );
    assert!(page.contains("Ryzen, Chelsio, queues, queues = 8"), "every series has its row");
}

#[test]
fn history_is_filtered_by_day_and_machine() {
    let mut since = many();
    since.keep_since("2016-06-01");
    assert_eq!((since.counts.series, since.counts.changes), (12, 0));
    assert!(since.notes[0].starts_with("0 series and 1 changes are of before 2016-06-01"));
    let mut since = many();
    since.keep_since("2016-05-01");
    assert_eq!(since.counts.changes, 1, "{:?}", since.notes);
    let mut never = many();
    never.keep_since("2017-01-01");
    assert_eq!(never.counts.series, 0);
    let mut collector = collect_many();
    assert_eq!(collector.titles().len(), 12);
    collector.keep_admitted(&Filter { machine: Some("xeon".into()), ..Filter::default() });
    assert_eq!(collector.titles().len(), 4);
    collector.keep_admitted(&Filter { family: Some("inet6".into()), ..Filter::default() });
    assert_eq!(collector.titles().len(), 0);
}

fn render_text(history: &History, width: usize) -> String {
    text::render(&history.document(false, false), width)
}
