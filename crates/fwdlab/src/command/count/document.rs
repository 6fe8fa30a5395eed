//! Counts as a document.

use super::findings::{Findings, Function, Row, SHOWN};
use super::graphs::Drawn;
use super::many;
use fwdlab_results::document::measure::INSTRUCTIONS_OF_KERNELS;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Document, Remark, Table};

/// The limit of all counts.
const NOT_TIME: &str =
    "Instructions are not time: caches, branches and contention between CPUs are not in them.";

/// The document: totals, functions, remarks. Three and more kernels are compared in one table
/// ([`many`]).
pub(super) fn document(findings: &Findings, functions: usize) -> Document<'_> {
    let (conclusion, mut blocks) = match many::are_many(findings) {
        true => (many::conclusion(findings), many::blocks(findings, functions)),
        false => (conclusion(findings), few(findings, functions)),
    };
    blocks.insert(0, Block::remark(Remark::Caption, NOT_TIME));
    blocks.extend(doubts(findings));
    blocks.extend(findings.calls.iter().map(Drawn::remark));
    if let Some(caches) = &findings.caches {
        let kernels = findings.kernels.iter().map(|row| row.kernel.as_str()).collect();
        blocks.push(caches.section(kernels, functions));
    }
    Document {
        title: format!(
            "Instructions a packet, {}, {} packets at a time",
            findings.family, findings.batch
        ),
        conclusion: vec![Block::text(conclusion)],
        blocks,
        data: findings,
        version: 1,
    }
}

/// Reasons to doubt the counts.
fn doubts(findings: &Findings) -> Vec<Block> {
    let failures = findings.failed.iter().map(|failed| {
        let why = failed.why.lines().next().unwrap_or_default();
        Block::remark(Remark::Warning, format!("{} was not counted: {why}", failed.kernel))
    });
    let mut doubts: Vec<Block> = failures.collect();
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

/// Totals and functions of one kernel or two, or of several boots.
fn few(findings: &Findings, functions: usize) -> Vec<Block> {
    let rate = |value: f64, digits| Cell::number(value, Digits::Decimals(digits));
    let mut totals = Table::of(&findings.kernels)
        .words("kernel", |row: &Row| Cell::text(row.kernel.as_str()))
        .hidden("file", |row| Cell::text(row.file.as_str()));
    if findings.kernels.iter().any(|row| row.label != row.kernel && row.change.is_none()) {
        totals = totals.words("short", |row| Cell::text(row.label.as_str()));
    }
    let mut totals = totals
        .numbers("instructions", move |row| rate(row.instructions, 1))
        .numbers("bursts", |row| Cell::interval((row.least, row.most), Digits::Decimals(1)))
        .keys(&["least", "most"]);
    if findings.kernels.len() > 1 {
        totals = totals
            .numbers("difference", |row| Cell::number(row.difference, Digits::SignedSignificant));
    }
    let totals = totals
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
        .block();
    let several = findings.kernels.len() > 1;
    let shown: Vec<&Function> = findings
        .functions
        .iter()
        .filter(|function| function.weight(findings.boots > 1) >= SHOWN && !function.background)
        .take(functions)
        .collect();
    let mut table = Table::of(shown)
        .words("function", |function: &Function| Cell::text(function.name.as_str()));
    for (number, kernel) in findings.kernels.iter().enumerate() {
        let title = match &kernel.change {
            Some(_) if findings.kernels.len() == 2 => "after".to_owned(),
            _ if several => kernel.label.clone(),
            Some(_) => "after".to_owned(),
            None => "instructions".to_owned(),
        };
        table = table.numbers(title, move |function| rate(function.instructions[number], 1));
        if findings.boots > 1 {
            table = table.numbers("bursts", move |function| {
                Cell::interval(function.bursts[number], Digits::Decimals(1))
            });
        } else if number > 0 {
            table = table.numbers("difference", move |function| {
                let (now, before) = (function.instructions[number], function.instructions[0]);
                Cell::number(now - before, Digits::SignedSignificant)
            });
        }
    }
    let last = findings.kernels.len().saturating_sub(1);
    let table = table
        .numbers("atomic", move |function| rate(function.atomics[last], 1))
        .set(|table| table.name = Some("functions"))
        .block();
    vec![totals, table]
}

/// The result in a sentence.
fn conclusion(findings: &Findings) -> String {
    let agreement = findings.kernels.iter().map(|row| (row.most - row.least) / row.instructions);
    let agreement = 100.0 * agreement.fold(0.0, f64::max);
    match findings.kernels.as_slice() {
        [] => String::new(),
        [only] => format!(
            "{} executes {:.1} instructions to forward a packet; its bursts lie within \
             {agreement:.2} %.",
            only.release, only.instructions
        ),
        [first, others @ ..] => {
            let others: Vec<String> = others
                .iter()
                .map(|row| {
                    let difference = row.difference.unwrap_or(0.0);
                    format!(
                        "{} executes {difference:+.1} instructions a packet ({:+.2} %) in {} {}",
                        row.kernel,
                        100.0 * difference / first.instructions,
                        row.differing,
                        if row.differing == 1 { "function" } else { "functions" }
                    )
                })
                .collect();
            format!(
                "Against {} ({:.1} instructions a packet), {}. No other function differs by half \
                 an instruction and more than it scatters; bursts of one kernel lie within {agreement:.2} %.",
                first.kernel,
                first.instructions,
                others.join("; ")
            )
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::counted::Counted;
    use super::*;
    use fwdlab_packet::Family;
    use fwdlab_results::document::FORMS;
    use fwdlab_vm::bursts::Found;
    use fwdlab_vm::costs::{Costs, FunctionCost};
    use fwdlab_vm::forwarding::Answer;
    use std::time::Duration;

    pub(crate) fn counted(what: &str, instructions: f64, clock: bool) -> Counted {
        let function = |name: &str, instructions: f64| FunctionCost {
            name: name.into(),
            instructions,
            bursts: vec![instructions; 2],
            range: (instructions, instructions),
            ..FunctionCost::default()
        };
        let costs = Costs {
            packets: vec![50; 2],
            functions: vec![
                function("ip_forward", 126.0),
                function("demux", instructions - 126.0),
                FunctionCost { is_background: clock, idle: 5.0, ..function("clock", 7.0) },
            ],
            ..Costs::default()
        };
        let found = Found { costs, calls: None, caches: None };
        let answer = Answer { found, sent: 100, lost: 0, scattered: 0 };
        let second = Duration::from_secs(1);
        Counted {
            file: "k".into(),
            boot: 1,
            change: None,
            release: what.into(),
            build: String::new(),
            answer,
            ready: second,
            took: second,
        }
    }

    #[test]
    fn what_differs_stands_first_and_what_does_not_is_left_out() {
        let both = vec![counted("6.1", 1000.0, true), counted("6.2", 888.0, false)];
        let findings = Findings::of(both, Vec::new(), (Family::Inet, 32, 1));
        assert_eq!(findings.functions[0].name, "demux");
        // To a test harness there is nothing here that passes or fails.
        for form in FORMS.into_iter().filter(|form| !matches!(form.name, "ktap" | "junit")) {
            let text = (form.render)(&document(&findings, 10), 100).expect("every form");
            // Dashboards get the totals alone.
            if matches!(form.name, "bencher" | "github-action-benchmark") {
                assert!(text.contains("instructions") && text.contains("895.0"), "{text}");
                continue;
            }
            assert!(text.contains("demux"), "{}: {text}", form.name);
            if form.name != "json" {
                assert!(!text.contains("ip_forward"), "{}: {text}", form.name);
            }
        }
        let said = conclusion(&findings);
        assert!(
            said.contains("6.2 executes -112.0 instructions a packet (-11.20 %) in 1 function"),
            "{said}"
        );
    }

    #[test]
    fn boots_of_one_kernel_stand_beside_each_other_with_their_bursts() {
        let boots = (1..=3).map(|boot| Counted { boot, ..counted("6.1", 1000.0, false) });
        let findings = Findings::of(boots.collect(), Vec::new(), (Family::Inet, 32, 3));
        let markdown = FORMS.into_iter().find(|form| form.name == "markdown").expect("a form");
        let text = (markdown.render)(&document(&findings, 2), 100).expect("text");
        assert!(conclusion(&findings).contains("boot 3 executes +0.0 instructions"), "{text}");
        // Nothing differs, and the dearest are shown all the same.
        assert!(text.contains("6.1, boot 3") && !text.contains("(k)"), "{text}");
        let row = text.lines().find(|line| line.contains("demux")).expect("the dearest");
        assert_eq!(row.matches("[874.0, 874.0]").count(), 3, "{row}");
        assert!(text.contains("ip_forward") && !text.contains("clock"), "{text}");
    }

    #[test]
    fn total_of_a_kernel_does_not_depend_on_the_others() {
        let alone =
            Findings::of(vec![counted("6.2", 888.0, false)], Vec::new(), (Family::Inet, 32, 1));
        let both = vec![counted("6.1", 1000.0, true), counted("6.2", 888.0, false)];
        let both = Findings::of(both, Vec::new(), (Family::Inet, 32, 1));
        for (row, total) in both.kernels.iter().chain(&alone.kernels).zip([1000.0, 895.0, 895.0]) {
            assert_eq!((row.instructions, row.least, row.most), (total, total, total));
        }
        // The clock's function is in no difference.
        assert_eq!(both.kernels[1].difference, Some(-112.0));
    }

    #[test]
    fn function_of_packets_in_one_kernel_is_a_difference() {
        let without = |idle: f64, kernel: &str| {
            let mut counted = counted(kernel, 1000.0, false);
            let cost = FunctionCost {
                name: "kfree".into(),
                is_background: idle > 0.0,
                idle,
                bursts: vec![if idle > 0.0 { 0.0 } else { 88.0 }; 2],
                instructions: if idle > 0.0 { 0.0 } else { 88.0 },
                range: if idle > 0.0 { (0.0, 0.0) } else { (88.0, 88.0) },
                ..FunctionCost::default()
            };
            counted.answer.found.costs.functions.push(cost);
            counted
        };
        let both = vec![without(3.0, "6.1"), without(0.0, "7.3")];
        let findings = Findings::of(both, Vec::new(), (Family::Inet, 32, 1));
        assert_eq!(findings.functions[0].name, "kfree");
        assert_eq!(findings.kernels[1].difference, Some(88.0));
    }
}
