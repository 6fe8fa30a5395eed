//! What was counted, as a document.

use super::graphs::Drawn;
use super::misses::Modelled;
use fwdlab_packet::Family;
use fwdlab_results::document::measure::INSTRUCTIONS_OF_KERNELS;
use fwdlab_results::document::table::{Cell, Digits};
use fwdlab_results::document::{Block, Document, Remark, Table};
use fwdlab_vm::calls::Calls;
use fwdlab_vm::costs::{Costs, FunctionCost};
use fwdlab_vm::forwarding::Answer;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Smallest difference of a function that counts as one, instructions a packet. Below it lies
/// what depends on the state that the boot left behind, such as how full a slab is: two boots
/// of one kernel differ by up to 0.3 there.
const SHOWN: f64 = 0.5;

/// What was counted of one kernel in one state.
pub(super) struct Counted {
    /// The kernel as it was given.
    pub(super) file: String,
    /// Which of its boots, from 1 on.
    pub(super) boot: u32,
    /// The command that changed it since.
    pub(super) change: Option<String>,
    /// `uname -r`.
    pub(super) release: String,
    pub(super) answer: Answer,
    /// From the start to a guest that forwards.
    pub(super) ready: Duration,
    /// Time of the counting.
    pub(super) took: Duration,
}

impl Counted {
    /// Its release, the change and its calls, where they were followed.
    pub(super) fn stacks(&self) -> Option<(&str, Option<&str>, &Calls)> {
        Some((&self.release, self.change.as_deref(), self.answer.found.calls.as_ref()?))
    }
}

/// Everything, as programs read it.
#[derive(Serialize)]
pub(super) struct Findings {
    family: Family,
    batch: u16,
    /// How often each kernel was booted.
    boots: u32,
    kernels: Vec<Row>,
    functions: Vec<Function>,
    /// Of each kernel where calls were followed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<Drawn>,
    /// Where caches were modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    caches: Option<Modelled>,
}

/// A kernel's totals, a packet each.
#[derive(Serialize)]
struct Row {
    /// Its release, and the change.
    kernel: String,
    file: String,
    release: String,
    change: Option<String>,
    instructions: f64,
    /// Least and most of the bursts.
    least: f64,
    most: f64,
    /// Against the first, instructions a packet: the sum over the functions that differ;
    /// none for the first.
    difference: Option<f64>,
    /// How many functions differ from the first's.
    differing: usize,
    atomics: f64,
    bytes: f64,
    background: f64,
    packets: u64,
    lost: u64,
    scattered: u64,
    ready_s: f64,
    took_s: f64,
}

/// A function's instructions a packet in each kernel.
#[derive(Serialize)]
struct Function {
    name: String,
    instructions: Vec<f64>,
    /// Least and most of its bursts in each.
    bursts: Vec<(f64, f64)>,
    atomics: Vec<f64>,
    /// True where the bursts lie apart from those of the first kernel.
    differs: Vec<bool>,
    /// True when it is executed by the idle guest, mostly.
    background: bool,
}

impl Findings {
    pub(super) fn of(
        counted: Vec<Counted>,
        calls: Vec<Drawn>,
        (family, batch, boots): (Family, u16, u32),
    ) -> Findings {
        let costs: Vec<&Costs> =
            counted.iter().map(|counted| &counted.answer.found.costs).collect();
        let functions = functions(&costs, boots > 1);
        // Of one kernel or of another: totals are of the same functions everywhere.
        let background: BTreeSet<&str> =
            functions.iter().filter(|f| f.background).map(|f| f.name.as_str()).collect();
        let is_alone = |release: &str| {
            let same = |c: &&Counted| c.change.is_none() && c.boot == 1 && c.release == release;
            counted.iter().filter(same).count() == 1
        };
        let kernels = counted.iter().enumerate().map(|(number, counted)| {
            let costs = &counted.answer.found.costs;
            let total = costs.over(|function| !background.contains(function.name.as_str()));
            let differing = || functions.iter().filter(|f| f.differs[number] && !f.background);
            let difference = differing().map(|f| f.instructions[number] - f.instructions[0]);
            // Of nothing it is -0.
            let difference = difference.sum::<f64>() + 0.0;
            Row {
                kernel: {
                    let (release, file) = (&counted.release, &counted.file);
                    let alone = is_alone(release);
                    let mut name = release.clone();
                    if !alone {
                        name += &format!(" ({file})");
                    }
                    if boots > 1 {
                        name += &format!(", boot {}", counted.boot);
                    }
                    match &counted.change {
                        None => name,
                        Some(change) => format!("{name} after `{change}`"),
                    }
                },
                file: counted.file.clone(),
                release: counted.release.clone(),
                change: counted.change.clone(),
                instructions: total.instructions,
                least: total.bursts.iter().copied().fold(f64::INFINITY, f64::min),
                most: total.bursts.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                difference: (number > 0).then_some(difference),
                differing: differing().count(),
                atomics: total.atomics,
                bytes: total.bytes,
                background: costs.background,
                packets: counted.answer.sent,
                lost: counted.answer.lost,
                scattered: counted.answer.scattered,
                ready_s: counted.ready.as_secs_f64(),
                took_s: counted.took.as_secs_f64(),
            }
        });
        let kernels = kernels.collect();
        let caches = Modelled::of(counted.iter().map(|c| c.answer.found.caches.as_ref()));
        Findings { family, batch, boots, kernels, functions, calls, caches }
    }
}

/// All functions: of several kernels those that differ most first, else, and where it is
/// `repeated` boots that are looked at, the dearest.
fn functions(costs: &[&Costs], repeated: bool) -> Vec<Function> {
    let empty = FunctionCost::default();
    let by_name: Vec<BTreeMap<&str, &FunctionCost>> = costs
        .iter()
        .map(|costs| costs.functions.iter().map(|f| (f.name.as_str(), f)).collect())
        .collect();
    let names: BTreeSet<&str> =
        by_name.iter().flat_map(|functions| functions.keys().copied()).collect();
    let mut functions: Vec<Function> = names
        .into_iter()
        .map(|name| {
            let of = |figure: fn(&FunctionCost) -> f64| {
                by_name.iter().map(|f| figure(f.get(name).copied().unwrap_or(&empty))).collect()
            };
            let here = |n: usize| by_name[n].get(name).copied().unwrap_or(&empty);
            Function {
                name: name.to_owned(),
                instructions: of(|function| function.instructions),
                bursts: (0..by_name.len()).map(|n| here(n).range).collect(),
                atomics: of(|function| function.atomics),
                differs: (0..by_name.len())
                    .map(|n| {
                        let far = (here(n).instructions - here(0).instructions).abs() >= SHOWN;
                        far && here(n).differs(here(0))
                    })
                    .collect(),
                // Mostly so in one kernel, and it says nothing about either.
                background: by_name.iter().any(|f| f.get(name).is_some_and(|f| f.is_background)),
            }
        })
        .collect();
    let weight = |function: &Function| function.weight(repeated);
    functions.sort_by(|a, b| weight(b).total_cmp(&weight(a)).then_with(|| a.name.cmp(&b.name)));
    functions
}

impl Function {
    /// What it is sorted by: the largest difference from the first kernel, or the cost.
    fn weight(&self, repeated: bool) -> f64 {
        match self.instructions.as_slice() {
            [first, ..] if repeated => *first,
            [only] => *only,
            [first, ..] => {
                let differing = self.instructions.iter().zip(&self.differs).filter(|(_, d)| **d);
                differing.map(|(now, _)| (now - first).abs()).fold(0.0, f64::max)
            }
            [] => 0.0,
        }
    }
}

/// The document: totals, functions, what to know.
pub(super) fn document(findings: &Findings, functions: usize) -> Document<'_> {
    let rate = |value: f64, digits| Cell::number(value, Digits::Decimals(digits));
    let mut totals = Table::of(&findings.kernels)
        .words("kernel", |row: &Row| Cell::text(row.kernel.as_str()))
        .hidden("file", |row| Cell::text(row.file.as_str()))
        .numbers("instructions", move |row| rate(row.instructions, 1))
        .numbers("bursts", |row| Cell::interval((row.least, row.most), Digits::Decimals(1)))
        .keys(&["least", "most"]);
    if findings.kernels.len() > 1 {
        totals = totals
            .numbers("difference", |row| Cell::number(row.difference, Digits::SignedSignificant));
    }
    let totals = totals
        .numbers("atomic", move |row| rate(row.atomics, 1))
        .numbers("background", move |row| rate(row.background, 1))
        .numbers("packets", |row| Cell::count(row.packets))
        .numbers("lost", |row| Cell::count(row.lost))
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
            _ if several => kernel.kernel.clone(),
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
    let mut blocks = vec![
        Block::remark(
            Remark::Caption,
            "Instructions are not time: caches, branches and contention between CPUs are not in \
             them.",
        ),
        totals,
        table,
    ];
    let scattered: u64 = findings.kernels.iter().map(|row| row.scattered).sum();
    if scattered > 0 {
        let text = format!("{scattered} batches were not found at once by the guest.");
        blocks.push(Block::remark(Remark::Warning, text));
    }
    let lost: u64 = findings.kernels.iter().map(|row| row.lost).sum();
    if lost > 0 {
        let text = format!("{lost} packets did not come out: counts are per packet that did.");
        blocks.push(Block::remark(Remark::Warning, text));
    }
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
        conclusion: vec![Block::text(conclusion(findings))],
        blocks,
        data: findings,
        version: 1,
    }
}

/// What was found, in a sentence.
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
mod tests {
    use super::*;
    use fwdlab_results::document::FORMS;
    use fwdlab_vm::bursts::Found;

    fn counted(what: &str, instructions: f64, clock: bool) -> Counted {
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
                FunctionCost { is_background: clock, ..function("clock", 7.0) },
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
                assert!(text.contains("instructions") && text.contains("888.0"), "{text}");
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
    fn a_total_and_its_bursts_are_of_the_same_functions() {
        let both = vec![counted("6.1", 1000.0, true), counted("6.2", 888.0, false)];
        let findings = Findings::of(both, Vec::new(), (Family::Inet, 32, 1));
        for (row, total) in findings.kernels.iter().zip([1000.0, 888.0]) {
            assert_eq!((row.instructions, row.least, row.most), (total, total, total));
        }
    }
}
