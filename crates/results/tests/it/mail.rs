//! Reports as mails: at most 45 lines of 72 columns, whatever the experiment.

use crate::support::{counted, family, firewall, invocation, plan, record, store};
use fwdlab_model::plan::Factor;
use fwdlab_model::settings::{Firewall, TestbedKind};
use fwdlab_model::{Plan, Warning};
use fwdlab_results::compare::{Question, compare_texts};
use fwdlab_results::document::form::mail;
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::store::Store;
use proptest::prelude::*;

/// Asserts the size of a mail.
fn check(text: &str) -> Result<(), TestCaseError> {
    prop_assert!(text.lines().count() <= 45, "{} lines:\n{text}", text.lines().count());
    for line in text.lines() {
        prop_assert!(line.chars().count() <= 72, "{line}\nin\n{text}");
    }
    Ok(())
}

/// An experiment with `candidates` compared levels, named by `words`.
fn experiment(candidates: usize, words: &[String], families: bool, blocks: u32) -> Plan {
    let mut levels = firewall().levels;
    levels.truncate(1);
    levels[0].label = format!("baseline {}", words[0]);
    let template = levels[0].clone();
    levels.extend((0..candidates).map(|n| {
        let mut level = template.clone();
        level.label = format!("{} {n}", words[n % words.len()]);
        level
    }));
    let mut factors = vec![Factor { levels, ..firewall() }];
    let mut baseline = vec![Some(0)];
    if families {
        factors.push(family());
        baseline.push(None);
    }
    let mut plan = plan(TestbedKind::Netns, factors, baseline, blocks);
    plan.title = format!("Which of these is faster? {}", words.join(" "));
    // Some are worse, the others equivalent or inconclusive.
    for variant in plan.variants.iter_mut().filter(|variant| variant.levels[0] % 3 == 1) {
        variant.settings.dut.firewall = Firewall::Stateful;
    }
    plan.sealed()
}

fn mail_of(plan: &Plan, runs: u32, warned: &[u32]) -> String {
    let mut store = store(plan, 0..0);
    for index in 0..runs.min(plan.runs.len() as u32) {
        let mut record = record(plan, index);
        if warned.contains(&(index % 7)) {
            record.warnings.extend([
                Warning::NotConserved { offered: 10, forwarded: 11 },
                Warning::NotVerified {
                    setting: "routes".into(),
                    wanted: "2".repeat(90),
                    found: "3".into(),
                },
            ]);
        }
        store.insert_run(&record).expect("a run is kept");
    }
    let analysis = Analysis::of_store(&store).expect("an analysis");
    mail::render(&report::summary(&analysis, &()))
}

fn words() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof![
        "[a-z]{1,8}",
        "[a-z]{20,90}",
        "[a-z]{3,9}(/[a-z0-9.-]{5,20}){2,6}",
        "[a-zäöü ,=]{10,120}"
    ];
    prop::collection::vec(word.prop_map(|word| format!("x{word}")), 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn mail_of_any_experiment_fits_its_limits(
        candidates in 1_usize..=60,
        words in words(),
        families: bool,
        blocks in 1_u32..5,
        share in 0.0..1.2_f64,
        warned in prop::collection::vec(0_u32..20, 0..3),
    ) {
        let plan = experiment(candidates, &words, families && candidates <= 30, blocks);
        let runs = (share * plan.runs.len() as f64) as u32;
        check(&mail_of(&plan, runs, &warned))?;
    }

    #[test]
    fn mail_of_compared_files_fits_its_limits(
        candidates in 1_usize..=60,
        words in words(),
        effects in prop::collection::vec(0.9..1.1_f64, 61),
    ) {
        let files: Vec<(String, String)> = (0..=candidates).map(|n| {
            let values = [1.0, 1.001, 0.999, 1.0005].map(|noise| noise * effects[n] * 1e6);
            let lines: String = values.iter().map(|value| format!("{value}\n")).collect();
            (format!("{} {n}", words[n % words.len()]), lines)
        }).collect();
        let texts: Vec<(&str, &str)> =
            files.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let results = compare_texts(&Question::default(), &texts).expect("an answer");
        check(&mail::render(&results.document()))?;
    }
}

#[test]
fn mail_of_24_comparisons_keeps_every_part() {
    let names: Vec<String> = vec!["candidate".into()];
    let text = mail_of(&experiment(24, &names, false, 4), 1000, &[]);
    assert!(text.lines().count() <= 45, "{text}");
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Which of these is faster?",
        "24 comparisons",
        "per run: ",
        "against baseline",
        "candidate 0 ",
        "[...] ",
        " more rows",
        "margin of equivalence",
        "repeat: fwdlab run",
    ] {
        assert!(flat.contains(part), "no {part:?} in\n{text}");
    }
    let few = mail_of(&experiment(6, &names, false, 4), 1000, &[]);
    assert!(few.contains("candidate 5") && !few.contains("[...]"), "{few}");
}

/// Mail of an experiment of guests, kernels x rulesets x families; each variant executes its own
/// number of instructions in each of 30 functions.
fn mail_of_counts(levels: [usize; 2], baseline: [Option<usize>; 3]) -> String {
    let factor = |name: &str, levels: usize| {
        let mut factor = Factor { name: name.into(), ..firewall() };
        let template = factor.levels[0].clone();
        factor.levels.clear();
        factor.levels.extend((0..levels).map(|n| {
            let mut level = template.clone();
            level.label = format!("{name} {n}");
            level
        }));
        factor
    };
    let [kernels, rules] = levels;
    let factors =
        vec![factor("6.12.113+deb13-cloud-amd64", kernels), factor("nft", rules), family()];
    let plan = plan(TestbedKind::Vm, factors, baseline.to_vec(), 2);
    let mut store = Store::memory().expect("a store");
    store.adopt_plan(&plan, "version = 1\n").expect("a plan");
    store.begin_invocation(&invocation(TestbedKind::Vm)).expect("an invocation");
    let names: Vec<String> = (0..30).map(|n| format!("nf_function_{n}")).collect();
    for index in 0..plan.runs.len() as u32 {
        let variant = plan.runs[index as usize].variants[0];
        let bursts: Vec<[f64; 3]> =
            (0..30).map(|n| [100.0 + ((variant + 1) * (n + 1)) as f64; 3]).collect();
        let functions: Vec<_> = names
            .iter()
            .zip(&bursts)
            .map(|(name, burst)| (name.as_str(), &burst[..], false))
            .collect();
        store.insert_run(&counted(&plan, index, &functions)).expect("a run is kept");
    }
    let analysis = Analysis::of_store(&store).expect("an analysis");
    mail::render(&report::summary(&analysis, &()))
}

#[test]
fn mail_of_counts_keeps_comparisons_and_functions_before_prose() {
    let mails = [
        ("8 variants", mail_of_counts([2, 2], [Some(0); 3]), 7),
        ("20 comparisons", mail_of_counts([6, 2], [Some(0), None, None]), 20),
    ];
    for (name, text, comparisons) in mails {
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() <= 45 && lines.iter().all(|line| line.chars().count() <= 72), "{text}");
        let is_verdict = |line: &&&str| {
            ["more", "fewer"].iter().any(|word| line.split_whitespace().any(|w| w == *word))
        };
        let rows = lines.iter().filter(is_verdict).count();
        assert!(rows >= comparisons, "{name}: {rows} comparisons in\n{text}");
        let functions = lines.iter().filter(|line| line.contains("nf_function_")).count();
        assert!(functions >= 10, "{name}: {functions} functions in\n{text}");
        assert!(
            lines.last().is_some_and(|line| line.starts_with("repeat: "))
                || text.contains("repeat: fwdlab run"),
            "{text}"
        );
    }
}
