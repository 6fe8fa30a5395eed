//! Catalogues of many experiments: order, selection, results of each, and rates by machine.

use crate::support::{firewall, full_store, plan};
use fwdlab_model::record::Environment;
use fwdlab_model::settings::TestbedKind;
use fwdlab_results::catalogue::{Catalogue, Entry, Tally};
use fwdlab_results::document::form::{html, text};
use fwdlab_results::facts::Filter;
use fwdlab_results::store::{Contents, StoreError};
use std::collections::BTreeMap;
use std::path::Path;

/// An imported set of three firewalls, with a machine and a date.
fn set(machine: &str, date: &str) -> Contents {
    let mut of = plan(TestbedKind::Archive, vec![firewall()], vec![Some(0)], 7);
    for (level, label) in
        of.factors[0].levels.iter_mut().zip(["forwarding", "ipfw-statefull", "pf"])
    {
        level.label = label.into();
    }
    let mut contents = full_store(&of).contents().expect("contents");
    let section =
        [("machine", machine), ("interface", "Chelsio"), ("topic", "firewalls"), ("started", date)];
    let section = section.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let environment = Environment(BTreeMap::from([("archive".to_owned(), section.into())]));
    for stored in &mut contents.invocations {
        stored.invocation.environment = environment.clone();
    }
    contents
}

fn entry(place: &str, contents: &Contents) -> Entry {
    Entry::of(&Path::new("root").join(place).join("run.sqlite"), Path::new("root"), contents)
}

fn read() -> Vec<Result<Entry, StoreError>> {
    let netns_store = full_store(&plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 7));
    vec![
        Ok(entry("old", &set("Atom", "Sat May 30 11:04:16 CEST 2015"))),
        Ok(entry("new", &set("Xeon", "2020-01-01T00:00:00Z"))),
        Ok(entry("undated", &set("Xeon", ""))),
        Ok(entry("own", &netns_store.contents().expect("contents"))),
        Err(StoreError::NoPlan { path: "broken".into() }),
    ]
}

/// A set with a commit count and a uname, which has the day of the software if known.
fn of_git(place: &str, commits: &str, uname: &str) -> Entry {
    let mut contents = set("Xeon", "");
    for stored in &mut contents.invocations {
        let section = stored.invocation.environment.0.get_mut("archive").expect("a section");
        section.insert("revision".to_owned(), commits.to_owned());
        section.insert("uname".to_owned(), uname.to_owned());
    }
    entry(place, &contents)
}

#[test]
fn catalogue_sorts_undated_sets_by_commit_count() {
    let dated = "FreeBSD 14.0-CURRENT #0 n277989-7e2f3b: Fri Sep  9 18:29:37 CEST 2022";
    let read = || {
        vec![
            Ok(entry("2021", &set("Atom", "2021-05-30T00:00:00Z"))),
            Ok(of_git("before", "n260000", "")),
            Ok(of_git("dated", "n277989", dated)),
            Ok(of_git("next", "n302145", "")),
            Ok(of_git("newest", "n311215", "")),
        ]
    };
    let all = Catalogue::of(read(), &Filter::default(), "");
    let places: Vec<&str> = all.entries.iter().map(|entry| entry.place.as_str()).collect();
    assert_eq!(places, ["newest", "next", "dated", "2021", "before"]);
    let newer: Vec<Option<&str>> = all.entries.iter().map(|e| e.newer_than.as_deref()).collect();
    assert_eq!(newer, [Some("2022-09-09"), Some("2022-09-09"), None, None, None]);
    let shown = text::render(&all.document("root", &|_| None), 100);
    assert!(shown.contains(">2022-09-09") && shown.contains("~2022-09-09"), "{shown}");
}

#[test]
fn catalogue_sorts_newest_first_and_undated_last() {
    let all = Catalogue::of(read(), &Filter::default(), "");
    let places: Vec<&str> = all.entries.iter().map(|entry| entry.place.as_str()).collect();
    assert_eq!(places, ["own", "new", "old", "undated"]);
    assert_eq!((all.of, all.unreadable.len()), (5, 1));
    let newest = &all.entries[0];
    assert_eq!(newest.verdicts, Tally { worse: 2, ..Tally::default() });
    let largest = newest.largest.as_ref().expect("an effect");
    assert_eq!((largest.variant.as_str(), largest.baseline.as_str()), ("stateful", "none"));
    assert!((0.75..0.85).contains(&largest.ratio), "{largest:?}");
    assert_eq!(newest.verdicts.words(), "2 worse");
}

#[test]
fn catalogue_is_filtered_by_selection_and_words() {
    let places = |filter: Filter, words: &str| {
        let found = Catalogue::of(read(), &filter, words).entries.into_iter();
        found.map(|entry| entry.place).collect::<Vec<String>>()
    };
    let of = |change: &dyn Fn(&mut Filter)| {
        let mut filter = Filter::default();
        change(&mut filter);
        places(filter, "")
    };
    assert_eq!(of(&|f| f.machine = Some("xeon".into())), ["new", "undated"]);
    assert_eq!(of(&|f| f.firewall = Some("pf".into())), ["new", "old", "undated"]);
    assert_eq!(of(&|f| f.firewall = Some("stateful".into())), ["own", "new", "old", "undated"]);
    assert_eq!(of(&|f| f.family = Some("inet6".into())), [] as [&str; 0]);
    assert_eq!(places(Filter::default(), "ATOM chelsio"), ["old"]);
}

#[test]
fn catalogue_compares_machines_by_firewall() {
    let all = Catalogue::of(read(), &Filter::default(), "");
    let table = all.machines();
    assert_eq!(table.firewalls, ["none", "ipfw-stateful", "pf"]);
    let names: Vec<&str> = table.machines.iter().map(|machine| machine.name.as_str()).collect();
    assert_eq!(names, ["Atom, Chelsio", "Xeon, Chelsio"], "a virtual testbed is no machine");
    let (none, place) = table.machines[1].rates[0].clone().expect("a rate");
    assert!((0.9e6..1.1e6).contains(&none), "{none}");
    assert_eq!(place, "new", "not the one of an unknown day");
    let document = all.document("root", &|entry| Some(format!("{}/index.html", entry.place)));
    let page = html::render(&document);
    assert!(page.contains("<a href=\"new/index.html\">"), "{page}");
    assert!(page.contains("2024-03-05 10:00"), "{page}");
    assert!(page.contains("<svg") && page.contains("what stands here is no comparison"), "{page}");
    for width in [40, 80, 160] {
        let shown = text::render(&document, width);
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{widest:?} of {width}:\n{shown}");
    }
    let shown = text::render(&document, 100);
    assert!(!shown.contains("Machines by firewall"), "{shown}");
    let line = shown.lines().find(|line| line.ends_with("  own")).expect("a line").trim();
    assert!(line.starts_with("2024-03-05  -2 "), "{line}");
    assert!(shown.contains("4 of 5 stores; 8 comparisons: 8 worse."), "{shown}");
}

#[test]
fn filtered_firewall_is_shown_in_terminals() {
    let filter = Filter { firewall: Some("pf".into()), ..Filter::default() };
    let found = Catalogue::of(read(), &filter, "");
    assert_eq!(found.machines().firewalls, ["pf"]);
    let shown = text::render(&found.document("root", &|_| None), 80);
    let row = shown.lines().find(|line| line.contains("Xeon, Chelsio")).expect("a row");
    let mpps: f64 = row.split_whitespace().last().and_then(|n| n.parse().ok()).expect("a rate");
    assert!((0.7..0.9).contains(&mpps), "{row}");
}

#[test]
fn empty_catalogue_has_a_page() {
    let none = Catalogue::of(Vec::new(), &Filter::default(), "");
    let shown = text::render(&none.document("nothing", &|_| None), 80);
    assert!(shown.contains("0 stores."), "{shown}");
    assert_eq!(none.files("nothing").len(), 2);
}
