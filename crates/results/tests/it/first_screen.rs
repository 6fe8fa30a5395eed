//! The beginning of a report: short, and limited to the verdicts.

use crate::support::{
    alternation_plan, family, file, firewall, full_store, plan, queues, record, report, store,
};
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Plan, Warning};
use fwdlab_results::report::Analysis;
use fwdlab_results::store::Store;

/// Firewalls in both address families, with a baseline per family.
fn netns_plan() -> Plan {
    plan(TestbedKind::Netns, vec![firewall(), family()], vec![Some(0), None], 5)
}

/// Maximum size of a README in bytes: details belong in other files.
const README_MAX: usize = 8 * 1024;

#[test]
fn readme_is_short_and_links_to_details() {
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
        let caption = Analysis::of_store(&full_store(&plan)).unwrap().core.testbed.caption;
        assert!(details.contains(&caption), "{caption}");
    }
}

#[test]
fn lead_summarises_the_verdicts() {
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
    // A comparison without runs has no answer, and untrusted runs are mentioned first.
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
    let untrusted = lead(&distrusted);
    assert!(untrusted.starts_with("**Not to be trusted (not-conserved).** "), "{untrusted}");
    // Without comparisons, the lead contains rates only.
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
