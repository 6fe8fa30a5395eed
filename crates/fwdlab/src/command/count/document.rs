//! Document of the counts.

use super::findings::{Findings, Row};
use super::graphs::GraphFile;
use super::many;
use crate::command::counted_guest::exact;
use fwdlab_results::counts::{FunctionCount, NOT_TIME, SHOWN};
use fwdlab_results::document::measure::INSTRUCTIONS_OF_KERNELS;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, DetailLevel, Document, Remark, Table};
use fwdlab_results::report::analysis::Compared;
use fwdlab_results::report::counted;

/// The document: totals, comparisons, functions, remarks.
pub(super) fn document(findings: &Findings, functions: usize) -> Document<'_> {
    let are_many = many::are_many(findings);
    let (conclusion, totals) = match are_many {
        true => (many::conclusion(findings), many::blocks(findings, functions)),
        false => (conclusion(findings), vec![totals(findings)]),
    };
    let mut blocks = vec![Block::remark(Remark::Caption, NOT_TIME)];
    blocks.extend(
        findings
            .question
            .under
            .iter()
            .map(|command| Block::remark(Remark::Note, format!("Counted under `{command}`."))),
    );
    // Mails of several comparisons contain these instead.
    match findings.comparisons.len() {
        0 | 1 => blocks.extend(totals),
        _ => blocks.push(Block::Screen(totals)),
    }
    blocks.extend(legend(findings));
    let mut compared: Vec<Block> = comparisons(findings, are_many).into_iter().collect();
    if !are_many {
        compared.extend(differences(findings, functions));
    }
    match findings.comparisons.len() {
        0 | 1 => blocks.extend(compared),
        _ => {
            blocks.push(Block::Screen(compared));
            blocks.push(Block::Mail(counted::brief(&findings.comparisons)));
        }
    }
    if findings.kernels.len() == 1 {
        blocks.extend(findings.kernels.iter().map(|row| most_expensive(findings, row, functions)));
    }
    blocks.extend(doubts(findings));
    blocks.extend(findings.calls.iter().map(GraphFile::remark));
    if let Some(caches) = &findings.caches {
        let kernels = findings.kernels.iter().map(|row| row.kernel.as_str()).collect();
        blocks.push(caches.section(kernels, functions));
    }
    let question = &findings.question;
    Document {
        title: format!(
            "Instructions per packet, {}, {} packets at a time",
            question.family, question.batch
        ),
        conclusion: vec![Block::text(conclusion)],
        blocks,
        data: findings,
        version: 2,
    }
}

/// Totals of one kernel or two, in each state.
fn totals(findings: &Findings) -> Block {
    let rate = |value: f64, digits| Cell::number(value, Digits::Decimals(digits));
    Table::of(&findings.kernels)
        .words("kernel", |row: &Row| Cell::text(row.label.as_str()))
        .hidden("release", |row| Cell::text(row.release.as_str()))
        .hidden("file", |row| Cell::text(row.file.as_str()))
        .hidden("change", |row| row.change.as_deref().map_or(Cell::None, Cell::text))
        .numbers("instructions", move |row| rate(row.instructions, 1))
        .numbers("boots", |row| Cell::interval(many::ends(&row.boots), Digits::Decimals(1)))
        .when(findings.question.boots > 1)
        .keys(&["least_boot", "most_boot"])
        .numbers("bursts", |row| Cell::interval((row.least, row.most), Digits::Decimals(1)))
        .keys(&["least", "most"])
        .numbers("atomic", move |row| rate(row.atomics, 1))
        .spare()
        .numbers("background", move |row| rate(row.background, 1))
        .spare()
        .numbers("packets", |row| Cell::count(row.packets))
        .spare()
        .numbers("lost", |row| Cell::count(row.lost))
        .spare()
        .set(|table| {
            table.name = Some("kernels");
            table.measures = &[INSTRUCTIONS_OF_KERNELS];
        })
        .block()
}

/// The full names of kernels and changes; `None` if the table of totals has them.
fn legend(findings: &Findings) -> Option<Block> {
    let rows = findings.kernels.iter().filter(|row| row.label != row.kernel);
    let text = |row: &Row| match &row.change {
        None => format!("{}: {}, {}", row.label, row.release, row.file),
        Some(change) => format!("{}: after `{change}`", row.label),
    };
    let lines: Vec<String> = rows.map(text).collect();
    (!lines.is_empty()).then(|| Block::list(lines))
}

/// One row per comparison. Terminals show it if there are several and few kernels: one comparison
/// is in the conclusion, and many kernels are in the table of totals.
fn comparisons(findings: &Findings, are_many: bool) -> Option<Block> {
    let is_judged =
        |compared: &Compared| findings.decisive().any(|one| std::ptr::eq(one, compared));
    let verdicts = || counted::verdicts_judged_if(is_judged, &findings.comparisons);
    match findings.comparisons.as_slice() {
        [] => None,
        [_] => Some(Block::Where(DetailLevel::Page, vec![verdicts()])),
        _ if are_many && findings.states == 1 => {
            Some(Block::Where(DetailLevel::Page, vec![verdicts()]))
        }
        _ => Some(verdicts()),
    }
}

/// The functions of each comparison; a lone comparison needs no heading.
fn differences(findings: &Findings, functions: usize) -> Vec<Block> {
    let one = |compared: &Compared| counted::functions_that_differ(compared, functions);
    let sections = findings.comparisons.iter().filter_map(one);
    match findings.comparisons.len() {
        1 => sections.flatten().collect(),
        _ => findings
            .comparisons
            .iter()
            .zip(sections)
            .map(|(compared, blocks)| {
                let title = format!("{} against {}", compared.label, compared.baseline_label);
                Block::section(title, blocks)
            })
            .collect(),
    }
}

/// The most expensive functions of the only kernel.
fn most_expensive(findings: &Findings, row: &Row, functions: usize) -> Block {
    let rate = |value: f64| Cell::number(value, Digits::Decimals(1));
    let range = match findings.question.boots {
        1 => "bursts",
        _ => "boots",
    };
    let shown = row.functions.iter().filter(|f| f.instructions >= SHOWN).take(functions);
    Table::of(shown)
        .words("function", |f: &FunctionCount| Cell::text(f.name.as_str()))
        .words("subsystem", |f| Cell::text(f.subsystem.as_str()))
        .numbers("instructions", move |f| rate(f.instructions))
        .numbers(range, |f| Cell::interval(f.range, Digits::Decimals(1)))
        .keys(&["least", "most"])
        .numbers("atomic", move |f| rate(f.atomics))
        .set(|table| table.name = Some("functions"))
        .block()
}

/// Reasons to doubt the counts.
fn doubts(findings: &Findings) -> Vec<Block> {
    let failures = findings.failed.iter().map(|failed| {
        let why = failed.why.lines().next().unwrap_or_default();
        Block::remark(Remark::Warning, format!("{} was not counted: {why}", failed.kernel))
    });
    let mut doubts: Vec<Block> = failures.collect();
    if !findings.question.has_baseline {
        let text = "The first kernel was not counted: kernels are not compared.";
        doubts.push(Block::remark(Remark::Warning, text));
    }
    let scattered: u64 = findings.kernels.iter().map(|row| row.scattered).sum();
    if scattered > 0 {
        let text = format!("{scattered} batches were not found at once by the guest.");
        doubts.push(Block::remark(Remark::Warning, text));
    }
    let lost: u64 = findings.kernels.iter().map(|row| row.lost).sum();
    if lost > 0 {
        let text = format!("{lost} packets did not come out: counts are per packet that did.");
        doubts.push(Block::remark(Remark::Warning, text));
    }
    doubts
}

/// The result in a sentence or two.
fn conclusion(findings: &Findings) -> String {
    let within = |row: &Row| 100.0 * (row.most - row.least) / row.instructions;
    let bursts = findings.kernels.iter().map(within).fold(0.0, f64::max);
    match (findings.kernels.as_slice(), findings.comparisons.as_slice()) {
        ([], _) => String::new(),
        ([only], _) => format!(
            "{} executes {:.1} instructions per packet; its bursts lie within {bursts:.2} %.",
            only.release, only.instructions
        ),
        (_, [only]) => difference(only),
        (_, several) => several.iter().map(difference).collect::<Vec<_>>().join(" "),
    }
}

/// A comparison in a sentence.
fn difference(compared: &Compared) -> String {
    let (label, baseline) = (&compared.label, &compared.baseline_label);
    let Some(exact) = exact(compared) else {
        return format!("{label} against {baseline}: no answer.");
    };
    format!("{label} against {baseline}: {}: {}.", exact.differences(), exact.shown)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::findings::Question;
    use super::super::state::{Boot, State};
    use super::*;
    use fwdlab_model::record::{Executed, ExecutedFunction};
    use fwdlab_packet::Family;
    use fwdlab_results::document::FORMS;
    use std::time::Duration;

    pub(crate) fn question(boots: u32) -> Question {
        Question {
            family: Family::Inet,
            batch: 32,
            boots,
            under: Vec::new(),
            margin: 0.02,
            kernels: 1,
            has_baseline: true,
        }
    }

    fn function(name: &str, instructions: f64) -> ExecutedFunction {
        ExecutedFunction {
            name: name.into(),
            bursts: vec![instructions; 2],
            ..ExecutedFunction::default()
        }
    }

    fn boot(functions: Vec<ExecutedFunction>) -> Boot {
        let second = Duration::from_secs(1);
        Boot {
            executed: Executed {
                packets: vec![50; 2],
                batch: 32,
                functions,
                ..Executed::default()
            },
            sent: 100,
            lost: 0,
            calls: None,
            caches: None,
            ready: second,
            took: second,
        }
    }

    /// A kernel of two functions, and a function of the clock that is `background` or not.
    pub(crate) fn state(release: &str, instructions: f64, background: bool) -> State {
        let clock =
            ExecutedFunction { is_background: background, idle: 5.0, ..function("clock", 7.0) };
        let functions =
            vec![function("ip_forward", 126.0), function("demux", instructions - 126.0), clock];
        State {
            file: "k".into(),
            change: None,
            release: release.into(),
            build: String::new(),
            boots: vec![boot(functions)],
        }
    }

    fn findings(states: &[State]) -> Findings {
        let kernels = states.iter().filter(|state| state.change.is_none()).count();
        Findings::new(states, Question { kernels, ..question(1) })
    }

    /// Two kernels, each also after a change by which it executes a quarter more.
    fn changed_pair() -> [State; 4] {
        let changed = |release: &str| State {
            change: Some("nft -f x".into()),
            ..state(release, 1250.0, true)
        };
        [state("6.1", 1000.0, true), changed("6.1"), state("6.2", 1000.0, true), changed("6.2")]
    }

    #[test]
    fn only_decisive_comparisons_are_test_results() {
        let found = findings(&changed_pair());
        assert_eq!(found.comparisons.len(), 4);
        let ktap = rendered(&found, "ktap");
        assert!(ktap.contains("ok 2 6.2 nft against 6.1 nft"), "{ktap}");
        assert!(!ktap.contains("not ok") && !ktap.contains("6.1 nft against 6.1"), "{ktap}");
        let alone = findings(&changed_pair()[..2]);
        assert!(rendered(&alone, "ktap").contains("not ok 1 6.1 nft against 6.1"));
    }

    #[test]
    fn failed_baseline_is_not_replaced() {
        let question = Question { kernels: 3, has_baseline: false, ..question(1) };
        let found = Findings::new(&changed_pair(), question);
        let compared: Vec<_> = found.comparisons.iter().map(|c| (c.baseline, c.variant)).collect();
        assert_eq!((compared, found.decisive().count()), (vec![(0, 1), (2, 3)], 0));
        let text = rendered(&found, "text");
        assert!(text.contains("The first kernel was not counted"), "{text}");
    }

    fn rendered(findings: &Findings, name: &str) -> String {
        let form = FORMS.into_iter().find(|form| form.name == name).expect("a form");
        (form.render)(&document(findings, 10), 100).expect("a document")
    }

    #[test]
    fn functions_that_differ_are_in_every_form_and_others_are_not() {
        let found = findings(&[state("6.1", 1000.0, true), state("6.2", 888.0, true)]);
        for form in FORMS {
            let text = rendered(&found, form.name);
            match form.name {
                // Dashboards get the totals, test harnesses the verdict.
                "bencher" | "github-action-benchmark" => assert!(text.contains("888.0"), "{text}"),
                "openmetrics" => assert!(text.contains("} 888\n"), "{text}"),
                "ktap" => assert!(text.contains("ok 1 6.2 against 6.1"), "{text}"),
                "junit" => assert!(text.contains("6.2 against 6.1"), "{text}"),
                "json" => assert!(text.contains("demux"), "{text}"),
                _ => {
                    assert!(text.contains("demux"), "{}: {text}", form.name);
                    assert!(!text.contains("ip_forward"), "{}: {text}", form.name);
                }
            }
        }
        let text = conclusion(&found);
        let start = "6.2 against 6.1: -112.0 instructions per packet (-11.20 %) in 1 function, ";
        assert!(text.starts_with(start), "{text}");
    }

    #[test]
    fn mail_of_any_count_fits_its_limits() {
        let long = "6.12.113+deb13-cloud-amd64-with-a-local-version".repeat(3);
        for (kernels, changes) in
            [(1, 0), (1, 12), (2, 0), (2, 8), (3, 1), (4, 1), (20, 3), (60, 0)]
        {
            for name in ["6.1", &long] {
                let one = |kernel: usize, change: usize| {
                    let mut state = state(&format!("{name}.{kernel}"), 1000.0, true);
                    let number = kernel * 20 + change;
                    state.change = (change > 0).then(|| format!("sysctl -w {name}={change}"));
                    let differing =
                        (0..70).map(|n| function(&format!("f{n}_{name}"), number as f64));
                    state.boots[0].executed.functions.extend(differing);
                    state
                };
                let each = |kernel| (0..=changes).map(move |change| (kernel, change));
                let states = (0..kernels).flat_map(each).map(|(k, c)| one(k, c));
                let mail = rendered(&findings(&states.collect::<Vec<_>>()), "mail");
                assert!(mail.lines().count() <= 45, "{kernels} {changes}:\n{mail}");
                assert!(mail.lines().all(|line| line.chars().count() <= 72), "{mail}");
                let comparisons = mail.lines().filter(|line| line.contains(" more  ")).count();
                let functions = mail.lines().filter(|line| line.contains("_6.1")).count();
                if (kernels, changes, name) == (4, 1, "6.1") {
                    assert!(comparisons == 10 && functions == 10, "{mail}");
                }
            }
        }
    }

    #[test]
    fn more_instructions_fail_and_fewer_pass() {
        let worse = findings(&[state("6.1", 1000.0, true), state("6.2", 1100.0, true)]);
        assert!(rendered(&worse, "ktap").contains("not ok 1 6.2 against 6.1"));
        let within = findings(&[state("6.1", 1000.0, true), state("6.2", 1001.0, true)]);
        assert!(rendered(&within, "ktap").contains("\nok 1 6.2 against 6.1"));
    }

    #[test]
    fn total_of_a_kernel_does_not_depend_on_the_others() {
        let alone = findings(&[state("6.2", 888.0, false)]);
        let pair = findings(&[state("6.1", 1000.0, true), state("6.2", 888.0, false)]);
        for (row, total) in pair.kernels.iter().chain(&alone.kernels).zip([1000.0, 895.0, 895.0]) {
            assert_eq!((row.instructions, row.least, row.most), (total, total, total));
        }
        // The clock's function is background in one of them, and so in no difference.
        assert_eq!(exact(&pair.comparisons[0]).map(|exact| exact.difference), Some(-112.0));
    }

    #[test]
    fn kernels_and_changes_are_a_matrix() {
        let after = |release: &str, instructions: f64| State {
            change: Some("nft -f -".into()),
            ..state(release, instructions, true)
        };
        let states = [
            state("6.1", 1000.0, true),
            after("6.1", 1300.0),
            state("6.2", 1050.0, true),
            after("6.2", 1400.0),
        ];
        let found = findings(&states);
        let of = |compared: &Compared| {
            let difference = exact(compared).map(|exact| exact.difference);
            (compared.baseline_label.clone(), compared.label.clone(), difference)
        };
        let expected = [
            ("6.1", "6.2", 50.0),
            ("6.1 nft", "6.2 nft", 100.0),
            ("6.1", "6.1 nft", 300.0),
            ("6.2", "6.2 nft", 350.0),
        ];
        let expected = expected.map(|(a, b, d)| (a.to_owned(), b.to_owned(), Some(d)));
        assert_eq!(found.comparisons.iter().map(of).collect::<Vec<_>>(), expected);
        // Between kernels only: the cost of the ruleset is not a kernel's fault.
        assert_eq!(found.decisive().count(), 2);
        let alone = findings(&states[..2]);
        assert_eq!(alone.decisive().count(), 1);
    }

    #[test]
    fn boots_of_a_kernel_are_its_runs() {
        let mut booted = state("6.1", 1000.0, true);
        booted.boots.extend(state("6.1", 1004.0, true).boots);
        let found = Findings::new(&[booted], question(2));
        assert_eq!(found.kernels[0].boots, [1000.0, 1004.0]);
        let text = rendered(&found, "markdown");
        assert!(text.contains("[1000.0, 1004.0]") && text.contains("[874.0, 878.0]"), "{text}");
        assert!(text.contains("ip_forward") && !text.contains("clock"), "{text}");
    }
}
