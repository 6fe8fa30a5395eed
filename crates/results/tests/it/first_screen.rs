//! What a report begins with: short, and no more than the verdicts hold.

use crate::support::{
    alternation_plan, family, file, firewall, full_store, plan, queues, record, report, store,
};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, Warning};
use fwdlab_results::report::Analysis;
use fwdlab_results::store::Store;

/// Firewalls in both address families, each family with a baseline of its own.
fn netns_plan() -> Plan {
    plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], 5)
}

/// A report that nobody reads to its end has not been made. What it rests on is beside it.
const README_MAX: usize = 8 * 1024;

#[test]
fn a_readme_is_short_and_leads_to_the_rest() {
    let plans = [
        netns_plan(),
        alternation_plan(TestbedKind::Netns, 4),
        plan(TestbedKind::Sim, vec![queues()], vec![Some(0)], 3),
        plan(TestbedKind::Netns, vec![firewall()], vec![Some(0)], 15),
    ];
    for plan in plans {
        let files = report(&full_store(&plan));
        let readme = file(&files, "README.md");
        assert!(readme.len() <= README_MAX, "{} bytes:\n{readme}", readme.len());
        assert!(readme.contains("](effects.svg)") && readme.contains("](graph.png)"), "{readme}");
        assert!(readme.contains("[DETAILS.md](DETAILS.md): Set-up, "), "{readme}");
        let details = file(&files, "DETAILS.md");
        for heading in ["## Set-up", "## ministat", "## Conservation", "## Diagnostics"] {
            assert!(details.contains(heading) && !readme.contains(heading), "{heading}");
        }
        let caption = Analysis::of_store(&full_store(&plan)).unwrap().testbed.caption;
        assert!(details.contains(&caption), "{caption}");
    }
}

#[test]
fn the_first_sentence_is_what_the_verdicts_say() {
    let lead = |store: &Store| {
        let readme = file(&report(store), "README.md");
        let lines: Vec<&str> = readme.lines().filter(|line| !line.is_empty()).collect();
        lines[2].to_owned()
    };
    let many = lead(&full_store(&netns_plan()));
    assert!(many.starts_with("**4 comparisons: 4 worse.** Largest: **stateful, inet against none, inet: worse by more than 2.0 %.** -20.5 %"), "{many}");
    let mut two = firewall();
    two.levels.truncate(2);
    let one = lead(&full_store(&plan(TestbedKind::Netns, vec![two], vec![Some(0)], 7)));
    assert!(one.starts_with("**stateless against none: worse"), "{one}");
    assert!(one.contains("% interval [") && one.contains("(medians "), "{one}");
    // What has no answer has none, and what is not to be trusted says so first.
    let early = lead(&store(&netns_plan(), 0..1));
    assert!(
        early.starts_with("**none, inet: 985 kpps in its one run.** 4 comparisons are"),
        "{early}"
    );
    assert!(early.contains("without an answer: too few blocks with runs of both"), "{early}");
    let mut doubtful = record(&netns_plan(), 0);
    doubtful.warnings = vec![Warning::NotConserved { offered: 10, forwarded: 11 }];
    let mut distrusted = store(&netns_plan(), 1..30);
    distrusted.insert_run(&doubtful).unwrap();
    let said = lead(&distrusted);
    assert!(said.starts_with("**Not to be trusted (not-conserved).** "), "{said}");
    // Nothing is compared: rates alone.
    let alone = lead(&full_store(&plan(TestbedKind::Netns, vec![firewall()], vec![None], 3)));
    assert!(alone.contains("no variant is compared with another"), "{alone}");
}

#[test]
fn withheld_verdicts_are_not_reported_as_no_difference() {
    let plan = netns_plan();
    let mut contended = store(&plan, 0..0);
    for run in 0..plan.runs.len() as u32 {
        let mut record = record(&plan, run);
        record.warnings =
            vec![Warning::CpuContended { cpu: 1, stolen: 0.0, user: 0.5, waited: None }];
        contended.insert_run(&record).unwrap();
    }
    let readme = file(&report(&contended), "README.md");
    let expected =
        "4 not judged.** Why they are not judged: machine busy in 10 of 10 runs. The table has";
    assert!(readme.contains(expected), "{readme}");
    assert!(!readme.contains("No difference was shown"), "{readme}");
}
