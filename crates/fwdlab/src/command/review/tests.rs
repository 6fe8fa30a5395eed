//! Reviews of builds that are only numbers: the cost of each function.

use super::counts::{Counts, Found};
use super::document::document;
use super::exit;
use super::follow::Follow;
use super::sources::{Kernel, names_of};
use super::steps::{BuildName, Outcome, Review, Source, review};
use crate::exit::Exit;
use crate::verdict::FailOn;
use anyhow::Result;
use fwdlab_codediff::{Change, Comparison, Reason};
use fwdlab_model::record::{Executed, ExecutedFunction};
use fwdlab_results::document::FORMS;
use std::collections::{BTreeMap, BTreeSet};

/// A build: instructions by function; `Err` if it does not build.
type Costs = Result<Vec<(&'static str, f64)>, &'static str>;

struct Fake {
    builds: Vec<Costs>,
    /// Builds that were counted, in order.
    counted: Vec<usize>,
    /// Build that does not boot.
    dead: Option<usize>,
    /// Builds without the feature of a second profile; `None` without that profile.
    lacking: Option<Vec<usize>>,
    /// Build that loses packets.
    lossy: Option<usize>,
}

fn fake(builds: Vec<Costs>) -> Fake {
    Fake { builds, counted: Vec::new(), dead: None, lacking: None, lossy: None }
}

/// A build with these costs, and a function that packets do not execute.
fn costs(forward: f64, lookup: f64, unused: f64) -> Costs {
    Ok(vec![("forward", forward), ("lookup", lookup), ("unused", unused)])
}

impl Source for Fake {
    type Code = Vec<(&'static str, f64)>;

    fn names(&self) -> Vec<BuildName> {
        let name =
            |number| BuildName { name: format!("build {number}"), subject: None, file: None };
        (0..self.builds.len()).map(name).collect()
    }

    fn profiles(&self) -> Vec<String> {
        let names = ["inet", "inet vxlan"];
        let number = if self.lacking.is_some() { 2 } else { 1 };
        names[..number].iter().map(|name| (*name).to_owned()).collect()
    }

    fn code(&mut self, build: usize) -> Result<Result<Self::Code, String>> {
        Ok(self.builds[build].clone().map_err(str::to_owned))
    }

    fn compare(old: &Self::Code, new: &Self::Code, functions: &[&str]) -> Comparison {
        let mut found = Comparison::default();
        for name in functions {
            let cost = |code: &Self::Code| code.iter().find(|(one, _)| one == name).map(|c| c.1);
            let function = (*name).to_owned();
            match cost(old) == cost(new) {
                true => found.equal.push(function),
                false => {
                    let reason = Reason::Code { offset: 4 };
                    found.changed.push(Change { function, reason });
                }
            }
        }
        found
    }

    fn callers<'n>(_: &Self::Code, functions: &[&'n str]) -> BTreeMap<&'n str, BTreeSet<&'n str>> {
        functions
            .iter()
            .filter(|name| **name == "lookup")
            .map(|name| (*name, ["forward"].into()))
            .collect()
    }

    fn count(&mut self, build: usize) -> Result<Counts> {
        if self.dead == Some(build) {
            anyhow::bail!("a panic");
        }
        self.counted.push(build);
        let costs = self.builds[build].clone().unwrap_or_default();
        let executed = costs.iter().filter(|(name, _)| *name != "unused");
        let function = |(name, cost): &(&str, f64)| ExecutedFunction {
            name: (*name).to_owned(),
            bursts: vec![*cost; 5],
            ..ExecutedFunction::default()
        };
        let functions: Vec<ExecutedFunction> = executed.map(function).collect();
        let packets = vec![1600; 5];
        let executed = Executed { packets, batch: 32, functions, ..Executed::default() };
        let lost = if self.lossy == Some(build) { 80 } else { 0 };
        let found = || Found { executed: executed.clone(), sent: 8000, lost };
        let mut counts = vec![Ok(found())];
        if let Some(lacking) = &self.lacking {
            counts.push(match lacking.contains(&build) {
                true => Err("RTNETLINK answers: Not supported".to_owned()),
                false => Ok(found()),
            });
        }
        Ok(counts)
    }
}

fn reviewed(source: &mut Fake) -> Review {
    review(source, 0.02, false).unwrap()
}

#[test]
fn review_counts_the_first_build_and_those_that_differ() {
    let mut source = fake(vec![
        costs(100.0, 50.0, 1.0),
        costs(100.0, 50.0, 2.0),
        costs(112.0, 50.0, 2.0),
        costs(112.0, 50.0, 3.0),
        costs(112.0, 40.0, 3.0),
    ]);
    let found = reviewed(&mut source);
    assert_eq!(source.counted, [0, 2, 4]);
    let is_equal = |at: usize| matches!(found.steps[at].outcome, Outcome::Equal { .. });
    assert_eq!([0, 1, 2, 3].map(is_equal), [true, false, true, false]);
    let text = serde_json::to_value(&found).unwrap();
    let difference =
        |at: usize| text["steps"][at]["outcome"]["counted"][0]["outcome"]["counted"].clone();
    assert_eq!(difference(1)["difference"], 12.0, "{text:#}");
    assert_eq!(difference(3)["difference"], -10.0, "{text:#}");
    assert_eq!(text["ends"][0]["outcome"]["counted"]["difference"], 2.0, "{text:#}");
    assert!(found.gaps.is_empty(), "{text:#}");
    assert_eq!(exit(&found, Some(FailOn::Worse)), Exit::Difference);
    assert_eq!(exit(&found, None), Exit::Done);
}

#[test]
fn build_that_does_not_build_is_skipped_and_reported() {
    let mut source =
        fake(vec![costs(100.0, 50.0, 1.0), Err("error: expected `;`"), costs(101.0, 50.0, 1.0)]);
    let found = reviewed(&mut source);
    assert_eq!(source.counted, [0, 2]);
    assert_eq!((found.steps[1].before, found.steps[1].build), (0, 2));
    assert_eq!(exit(&found, None), Exit::Environment);
    let text = fwdlab_results::document::form::text::render(&document(&found), 80);
    assert!(text.contains("not built") && text.contains("expected `;`"), "{text}");
}

#[test]
fn build_that_does_not_boot_is_reported_and_the_next_is_compared() {
    let mut source =
        fake(vec![costs(100.0, 50.0, 1.0), costs(110.0, 50.0, 1.0), costs(110.0, 60.0, 1.0)]);
    source.dead = Some(1);
    let found = reviewed(&mut source);
    assert_eq!(source.counted, [0, 2]);
    assert_eq!(exit(&found, None), Exit::Environment);
    let text = serde_json::to_value(&found).unwrap();
    assert_eq!(text["steps"][0]["outcome"]["failure"], "a panic", "{text:#}");
    assert_eq!(text["steps"][1]["outcome"]["counted"][0]["outcome"]["counted"]["difference"], 20.0);
}

#[test]
fn equal_build_after_an_uncounted_one_is_counted() {
    let (first, second) = (costs(100.0, 50.0, 1.0), costs(110.0, 50.0, 1.0));
    let mut source = fake(vec![first, second.clone(), second]);
    source.dead = Some(1);
    let found = reviewed(&mut source);
    assert_eq!(source.counted, [0, 2]);
    // Its code is compared with the build that was counted.
    assert!(matches!(found.steps[1].outcome, Outcome::Changed { .. }));
    assert_eq!((found.steps[1].before, found.steps[1].counted().len()), (0, 1));
    assert_eq!(exit(&found, Some(FailOn::Worse)), Exit::Difference);
}

#[test]
fn profile_that_no_build_has_is_never_equal() {
    let build = costs(100.0, 50.0, 1.0);
    let mut source = fake(vec![build.clone(), build.clone(), build]);
    source.lacking = Some(vec![0, 1, 2]);
    let found = reviewed(&mut source);
    // A later build could have the feature.
    assert_eq!(source.counted, [0, 1, 2]);
    assert_eq!(exit(&found, None), Exit::Untrustworthy);
    let text = fwdlab_results::document::form::text::render(&document(&found), 300);
    assert!(text.contains("Packets (inet) execute"), "{text}");
    assert!(text.contains("3 counted builds are without it"), "{text}");
}

#[test]
fn lost_feature_has_no_verdict_and_does_not_pass() {
    let mut source = fake(vec![costs(100.0, 50.0, 1.0), costs(100.0, 51.0, 1.0)]);
    source.lacking = Some(vec![1]);
    let found = reviewed(&mut source);
    assert_eq!(exit(&found, None), Exit::Done);
    assert_eq!(exit(&found, Some(FailOn::Worse)), Exit::Untrustworthy);
    let text = fwdlab_results::document::form::text::render(&document(&found), 300);
    assert!(text.contains("build 1 lacks the feature: RTNETLINK"), "{text}");
}

#[test]
fn build_that_loses_packets_is_not_trusted() {
    let mut source = fake(vec![costs(100.0, 50.0, 1.0), costs(101.0, 50.0, 1.0)]);
    source.lossy = Some(1);
    let found = reviewed(&mut source);
    assert_eq!(exit(&found, None), Exit::Untrustworthy);
    let text = fwdlab_results::document::form::text::render(&document(&found), 300);
    assert!(text.contains("build 1, inet: 80 of 8000 packets did not come out"), "{text}");
    // As in the first build: a property of the traffic.
    let mut source = fake(vec![costs(100.0, 50.0, 1.0)]);
    source.lossy = Some(0);
    assert_eq!(exit(&reviewed(&mut source), None), Exit::Done);
}

#[test]
fn review_with_verify_counts_every_build() {
    let mut source = fake(vec![costs(100.0, 50.0, 1.0), costs(100.0, 50.0, 2.0)]);
    let found = review(&mut source, 0.02, true).unwrap();
    assert_eq!(source.counted, [0, 1]);
    assert_eq!(found.steps[0].counted().len(), 1);
}

#[test]
fn forms_of_comparisons_name_each_build_and_its_result() {
    let mut source = fake(vec![
        costs(100.0, 50.0, 1.0),
        costs(100.0, 50.0, 2.0),
        costs(112.0, 50.0, 2.0),
        Err("no compiler"),
    ]);
    let found = reviewed(&mut source);
    // The other forms contain measured values alone.
    let names = ["text", "markdown", "html", "json", "csv", "ktap", "junit", "mail"];
    for form in FORMS.into_iter().filter(|form| names.contains(&form.name)) {
        let text = (form.render)(&document(&found), 80).unwrap();
        for build in ["build 1", "build 2", "build 3"] {
            assert!(text.contains(build), "{}: {text}", form.name);
        }
    }
    let rendered = |name: &str| {
        let form = FORMS.into_iter().find(|form| form.name == name).unwrap();
        (form.render)(&document(&found), 80).unwrap()
    };
    let text = rendered("csv");
    for line in ["build 1,,equal,,,", "build 2,,changed,1,12,12", "build 3,,not built,,,"] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
    let text = rendered("ktap");
    for line in [
        "ok 1 build 1",
        "ok 2 build 3 # SKIP not built",
        "not ok 3 build 2 against build 0",
        "not ok 4 build 2 against build 0",
    ] {
        assert!(text.lines().any(|one| one == line), "{line}: {text}");
    }
}

#[test]
fn follow_reports_each_complete_build_once_and_keeps_a_page_of_all() {
    let out = tempfile::tempdir().unwrap();
    let builds = vec![
        costs(100.0, 50.0, 1.0),
        costs(112.0, 50.0, 1.0),
        Err("no modules"),
        costs(112.0, 50.0, 2.0),
    ];
    let call = |builds: &[Costs]| {
        let mut found = reviewed(&mut fake(builds.to_vec()));
        let follow = Follow::read(out.path()).unwrap();
        follow.keep_new(&mut found, document).unwrap();
        follow.record(&found).unwrap();
        let reported: Vec<usize> = found.steps.iter().map(|step| step.build).collect();
        (reported, found.ends.len(), std::fs::read_to_string(follow.page(&found)).unwrap())
    };
    let (reported, ends, _) = call(&builds[..2]);
    assert_eq!((reported, ends), (vec![1], 1));
    // A build that failed is reported each time.
    let (reported, ends, page) = call(&builds);
    assert_eq!((reported, ends), (vec![2, 3], 0));
    assert!(page.contains("build 1") && page.contains("no modules"), "{page}");
    let (reported, _, page) = call(&builds);
    assert_eq!(reported, [2]);
    assert!(page.contains("build 1") && page.contains("build 3"), "{page}");
    let (reported, ..) = call(&builds[..2]);
    assert_eq!(reported, [0; 0]);
}

#[test]
fn builds_before_the_first_that_loads_are_not_built() {
    let mut source =
        fake(vec![Err("no modules"), costs(100.0, 50.0, 1.0), costs(101.0, 50.0, 1.0)]);
    let found = reviewed(&mut source);
    assert_eq!(source.counted, [1, 2]);
    assert!(matches!(found.steps[0].outcome, Outcome::NotBuilt { .. }));
    assert_eq!((found.steps[1].before, found.steps[1].build), (1, 2));
    assert_eq!(exit(&found, None), Exit::Environment);
    let text = fwdlab_results::document::form::text::render(&document(&found), 80);
    assert!(text.contains("no modules") && !text.contains("compared with build 0"), "{text}");
    assert!(review(&mut fake(vec![Err("no"), Err("no")]), 0.02, false).is_err());
}

#[test]
fn packages_of_one_release_have_different_names() {
    let files =
        ["linux-image-6.1-cloud_6.1.37-1_amd64.deb", "linux-image-6.1-cloud_6.1.38-1_amd64.deb"];
    let kernels = |files: &[&str]| {
        let kernel = |file: &&str| Kernel { file: (*file).to_owned(), subject: Err(String::new()) };
        names_of(&files.iter().map(kernel).collect::<Vec<_>>())
    };
    let names: Vec<String> = kernels(&files).into_iter().map(|build| build.name).collect();
    assert_eq!(names, ["6.1-cloud_6.1.37-1_amd64", "6.1-cloud_6.1.38-1_amd64"]);
    assert_eq!(kernels(&files[..1])[0].name, "6.1-cloud");
    assert_eq!(kernels(&files)[1].file.as_deref(), Some(files[1]));
}
