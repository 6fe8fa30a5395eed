//! Quality of the data: doubts, packet conservation, drift, and the testbed's ceiling.

use crate::document::table::{Cell, Digits};
use crate::document::{Block, DetailLevel, Figure, Inline, Item, List, Table};
use crate::format::{p_value, percent, runs_of, signed_percent};
use crate::plot::Drawing;
use crate::report::analysis::{
    Analysis, ArrivalResult, RunResult, RunSteadiness, RunWarning, SampledDamage, WarningGroup,
};
use crate::stats::diagnostics::level_of_beds;
use fwdlab_model::units::{FrameSize, format_bps};

/// Maximum number of warnings of one kind in compact output formats.
const WARNINGS: usize = 2;
/// Maximum number of runs without a steady state in compact output formats.
const UNSTEADY: usize = 3;

/// Returns warnings about runs, and findings of the diagnostics.
pub(super) fn doubts(analysis: &Analysis) -> Vec<Block> {
    let mut doubts = vec![Block::section("Warnings", vec![warnings(analysis)])];
    if has_findings(analysis) {
        doubts.push(Block::section("Diagnostics", diagnostics(analysis)));
    }
    doubts
}

fn has_findings(analysis: &Analysis) -> bool {
    let is_unsteady = analysis.steadiness.iter().any(|run| run.sentence.is_some());
    analysis.counts.is_none() && (is_unsteady || !analysis.diagnoses.is_empty())
}

/// Returns the folded sections, from packet conservation to the list of runs; `order` is the plot
/// of the runs in order.
pub(super) fn sections(analysis: &Analysis, order: &Drawing) -> Vec<Block> {
    let mut sections = vec![Block::section("Conservation", conservation(analysis))];
    let has_time = analysis.counts.is_none();
    if has_time && !has_findings(analysis) {
        sections.insert(0, Block::section("Diagnostics", diagnostics(analysis)));
    }
    sections.extend(queues(analysis));
    sections.extend(openings(analysis));
    if has_time {
        let ceiling = vec![ceiling(analysis)];
        sections.push(Block::section("Ceiling without a device under test", ceiling));
        sections.push(Block::section("Stolen time and order", time(analysis, order)));
    } else {
        sections.push(Block::section("Order", in_order(analysis, order)));
    }
    sections.push(Block::section("Runs", vec![runs(analysis)]));
    let mut sections: Vec<Block> =
        sections.into_iter().map(|section| section.folded().on_page(super::DETAILS)).collect();
    // runs.csv contains every run.
    if let Some(runs) = sections.pop() {
        sections.push(Block::Where(DetailLevel::All, vec![runs]));
    }
    sections
}

fn warnings(analysis: &Analysis) -> Block {
    if analysis.warnings.is_empty() {
        return Block::text("None.");
    }
    let item = |group: &WarningGroup| {
        let WarningGroup { kind, count, runs, fatal, warnings } = group;
        let of = runs_of(analysis.runs_recorded);
        let times = if count == runs { String::new() } else { format!("{count} times ") };
        let text = Inline::default().strong(kind).text(format!(": {times}in {runs} of {of}"));
        let each = |warning: &RunWarning| {
            format!("{}: {}", analysis.run_name(warning.run), warning.sentence)
        };
        Item {
            text: match fatal {
                true => text.text(", ").strong("the numbers can't be trusted"),
                false => text,
            },
            list: List {
                brief: Some((WARNINGS, "and {} more in results.json")),
                open: *fatal || *count <= WARNINGS,
                ..List::of(warnings.iter().map(each))
            },
        }
    };
    let items = analysis.warnings.iter().map(item).collect();
    Block::List(List { items, ..List::default() })
}

fn diagnostics(analysis: &Analysis) -> Vec<Block> {
    let steady = match analysis.alternation {
        true => {
            "; not for warm-up and steady state within the streams, whose slices switch and settle \
             by themselves"
        }
        false => ", and warm-up and steady state within each window",
    };
    let beds = analysis.beds.as_ref().map_or(1, |beds| beds.beds.len());
    let level = percent(level_of_beds(beds), if beds > 1 { 2 } else { 0 });
    let by = if beds > 1 { " and in each bed by itself" } else { "" };
    let looked_for = format!(
        "Checked for trend and autocorrelation across the run order, outliers (Grubbs) and \
         multimodality (dip test), each at the {level} level{by}; runs at the ceiling of sender and \
         receiver{steady}. No run was excluded."
    );
    let findings = analysis.diagnoses.iter().map(|finding| finding.sentence.clone());
    let unsteady =
        analysis.steadiness.iter().filter_map(|RunSteadiness { run, label, sentence, .. }| {
            Some(format!("{} ({label}): {}", analysis.run_name(*run), sentence.as_ref()?))
        });
    let found: Vec<String> = findings.chain(unsteady).collect();
    let few = analysis.runs.len().saturating_sub(analysis.steadiness.len());
    let block = if !found.is_empty() {
        let rest = "and {} more runs with a warm-up or without a steady state in results.json";
        let brief = Some((analysis.diagnoses.len() + UNSTEADY, rest));
        Block::List(List { brief, ..List::of(found) })
    } else if analysis.order.is_none() && analysis.beds.is_none() {
        Block::text("Too few runs to look.")
    } else if !analysis.alternation && few > 0 {
        Block::text(format!(
            "Nothing was found ({few} of {} runs have too few samples to judge their steady \
             state).",
            analysis.runs.len()
        ))
    } else {
        Block::text("Nothing was found.")
    };
    vec![Block::text(looked_for), block]
}

fn conservation(analysis: &Analysis) -> Vec<Block> {
    let text = "Packets of the whole trials, warm-up included; lost is offered minus forwarded.";
    let table = Table::of(&analysis.conservation)
        .words("variant", |c| Cell::text(&c.label))
        .numbers("runs", |c| Cell::count(c.runs))
        .numbers("offered", |c| Cell::count(c.offered))
        .numbers("forwarded", |c| Cell::count(c.forwarded))
        .numbers("lost", |c| Cell::count(c.lost))
        .numbers("loss", |c| Cell::number(c.loss_ratio, Digits::Percent(2)))
        .numbers("unsent", |c| Cell::count(c.unsent))
        .numbers("others", |c| Cell::count(c.foreign))
        .about("packets with the stamp of another run")
        .numbers("no stamp", |c| Cell::count(c.unstamped))
        .about("UDP packets between the benchmark's addresses without a stamp");
    let mut blocks = vec![Block::text(text), table.block()];
    blocks.extend(mixes(analysis));
    blocks.extend(directions(analysis));
    blocks.extend(analysis.arrivals.iter().flat_map(arrivals));
    if !analysis.counters.is_empty() {
        let table = Table::of(&analysis.counters)
            .words("counter", |c| Cell::text(&c.name))
            .numbers("counted", |c| Cell::count(c.counted))
            .numbers("ours", |c| Cell::count(c.expected))
            .numbers("difference", |c| Cell::count(c.difference))
            .numbers("largest in a run", |c| Cell::count(c.largest_in_a_run));
        let text = "The counters of the device under test against ours, all runs together:";
        blocks.extend([Block::text(text), table.block()]);
    }
    blocks
}

fn arrivals(arrivals: &ArrivalResult) -> Vec<Block> {
    let mut blocks = vec![Block::text(&arrivals.sentence)];
    if !arrivals.found.is_empty() {
        let table = Table::of(&arrivals.found)
            .words("variant", |f| Cell::text(&f.label))
            .numbers("intact", |f| Cell::count(f.intact))
            .numbers("damaged", |f| Cell::count(f.damaged))
            .words("what is wrong with them", |f| Cell::text(&f.faults_in_words))
            .numbers("twice", |f| Cell::count(f.duplicates))
            .numbers("out of order in their flow", |f| {
                Cell::text(format!("{} ({})", f.reordered, percent(f.reordered_ratio, 3)))
            })
            .numbers("runs that lack flows", |f| Cell::count(f.runs_without_flows));
        blocks.push(table.block());
    }
    for found in arrivals.found.iter().filter(|found| found.damaged > 0 && found.intact > 0) {
        if let Some(SampledDamage { sample, share, interval }) = found.sampled {
            let interval = interval.map_or(String::new(), |ends| {
                format!(" [{}, {}]", percent(ends.low, 3), percent(ends.high, 3))
            });
            blocks.push(Block::text(format!(
                "{}: {} of the {} packets checked arrived damaged{interval}; of the {} others, what \
                 is damaged counts as forwarded unless its stamp shows it.",
                found.label,
                percent(share, 3),
                sample.checked,
                sample.of - sample.checked,
            )));
        }
    }
    blocks
}

fn queues(analysis: &Analysis) -> Option<Block> {
    let text = "Share of each queue of the device under test, from queue 0, over all runs of a \
                variant; a queue counts as used if it had packets in every run.";
    let table = Table::of(&analysis.queues)
        .words("variant", |q| Cell::text(&q.label))
        .words("interface", |q| Cell::text(format!("{} {}", q.interface, q.direction)))
        .numbers("queues", |q| Cell::count(q.queues))
        .numbers("used", |q| match q.used < q.queues {
            true => Cell::text(Inline::default().strong(q.used.to_string())),
            false => Cell::count(q.used),
        })
        .words("shares", |q| Cell::text(&q.shown));
    let blocks = vec![Block::text(text), table.block()];
    (!analysis.queues.is_empty()).then(|| Block::section("Packets by queue", blocks))
}

fn openings(analysis: &Analysis) -> Option<Block> {
    let text = "The smallest numbers of flows and states of any run when its window opened, and \
                the reason why the drain ended. States are of the device under test.";
    let table = Table::of(&analysis.openings)
        .words("variant", |o| Cell::text(&o.label))
        .numbers("runs", |o| Cell::count(o.runs))
        .numbers("warm-up, s", |o| Cell::number(o.warmup_s, Digits::Decimals(2)))
        .numbers("flows", |o| Cell::count(o.flows))
        .numbers("received", |o| match o.received {
            Some(received) => Cell::count(received),
            None => Cell::text("not counted"),
        })
        .numbers("states", |o| Cell::count(o.states))
        .numbers("states at closing", |o| Cell::count(o.states_closing))
        .numbers("not all there", |o| Cell::count(o.early))
        .words("the drain ended", |o| Cell::text(&o.drained))
        .numbers("unaccounted", |o| Cell::count(o.unaccounted));
    let blocks = vec![Block::text(text), table.block()];
    (!analysis.openings.is_empty()).then(|| Block::section("Before and after the windows", blocks))
}

/// Returns the bit rates of mixes of frame sizes, from the bytes that arrived.
fn mixes(analysis: &Analysis) -> Vec<Block> {
    if analysis.mixes.is_empty() {
        return Vec::new();
    }
    let text = "Frames of a mix, with FCS, and bits a second of those that arrived in the \
                windows, by their bytes: where the mean frame that arrived is another than the \
                one that was sent, sizes are not lost alike.";
    let mean = |bytes| Cell::number(bytes, Digits::Decimals(1));
    let table = Table::of(&analysis.mixes)
        .words("variant", |mix| Cell::text(&mix.label))
        .words("mix", |mix| Cell::text(&mix.mix))
        .words("sizes", |mix| Cell::text(&mix.proportions))
        .numbers("mean sent", move |mix| mean(Some(mix.sent_bytes)))
        .numbers("mean arrived", move |mix| mean(mix.arrived_bytes))
        .numbers("L1", |mix| bits(mix.l1_bps))
        .numbers("L2", |mix| bits(mix.l2_bps))
        .set(|table| table.name = Some("mixes"));
    vec![Block::text(text), table.block()]
}

/// Returns the results per direction of bidirectional traffic.
fn directions(analysis: &Analysis) -> Vec<Block> {
    if analysis.directions.is_empty() {
        return Vec::new();
    }
    let text = "Traffic is bidirectional (RFC 2544, section 14): every rate and loss elsewhere is \
                for both directions together. Each direction (medians over runs; loss and faults \
                of all runs):";
    let table = Table::of(&analysis.directions)
        .words("variant", |row| Cell::text(&row.label))
        .words("direction", |row| Cell::text(&row.direction))
        .numbers("offered", |row| Cell::rate(row.offered_pps))
        .numbers("forwarded", |row| Cell::rate(row.forwarded_pps))
        .numbers("loss", |row| Cell::number(row.loss_ratio, Digits::Percent(2)))
        .numbers("damaged", |row| Cell::count(row.damaged))
        .numbers("duplicates", |row| Cell::count(row.duplicates))
        .set(|table| table.name = Some("directions"));
    vec![Block::text(text), table.block()]
}

/// Formats bits per second.
fn bits(bps: Option<f64>) -> Cell {
    bps.map_or(Cell::None, |bps| Cell::Values(format_bps(bps).into(), vec![bps.into()]))
}

/// Formats the frame size in bytes, or the mix.
pub(super) fn frame_size(size: FrameSize) -> Cell {
    size.one().map_or_else(|| Cell::text(size.text()), Cell::count)
}

fn ceiling(analysis: &Analysis) -> Block {
    if analysis.calibrations.is_empty() {
        return Block::text("Not measured.");
    }
    let text = "What sender and receiver reach together on the same testbed; a result within 10 % \
                of it is limited by them. It counts what arrives: a sender may offer more.";
    let table = Table::of(&analysis.calibrations)
        .words("testbed", |c| Cell::text(&c.testbed))
        .words("family", |c| Cell::text(&c.family))
        .numbers("frame size", |c| frame_size(c.frame_size))
        .numbers("median", |c| Cell::rate(c.median_pps))
        .words("trials", |c| {
            let rates = c.rates_pps.iter().map(|rate| rate.round().to_string());
            Cell::text(rates.collect::<Vec<String>>().join(", "))
        });
    Block::Where(DetailLevel::Terminal, vec![Block::text(text), table.block()])
}

fn time(analysis: &Analysis, order: &Drawing) -> Vec<Block> {
    let mut blocks = match analysis.steal.is_empty() {
        true => vec![Block::text("Stolen time was not observed.")],
        false => {
            let text = "Time that the hypervisor took from the measured CPUs, as a share of the \
                        window:";
            let table = Table::of(&analysis.steal)
                .words("variant", |s| Cell::text(&s.label))
                .numbers("runs", |s| Cell::count(s.runs))
                .numbers("mean", |s| Cell::number(s.mean_share, Digits::Percent(2)))
                .numbers("worst CPU and run", |s| Cell::number(s.max_share, Digits::Percent(2)));
            vec![Block::text(text), table.block()]
        }
    };
    if let Some(order) = &analysis.order {
        let lag1 = order.lag1.map_or("-".to_owned(), |lag1| format!("{lag1:.2}"));
        let lag1_p = order.lag1_p.map_or(String::new(), |p| format!(" (p {})", p_value(p)));
        blocks.push(Block::text(format!(
            "From run to run, variants' differences taken out: trend {} per run (p {}), \
             correlation of neighbours {lag1}{lag1_p}.",
            signed_percent(order.slope, 3),
            p_value(order.p)
        )));
    }
    blocks.extend(in_order(analysis, order));
    blocks
}

/// Returns the plot of the runs in order, and the time outside their traffic.
fn in_order(analysis: &Analysis, order: &Drawing) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !analysis.runs.is_empty() {
        let title = "Runs in their order".to_owned();
        blocks.push(Block::Figure(Figure { title, file: None, drawing: order.clone() }));
    }
    if !analysis.overhead.is_empty() {
        let table = Table::of(&analysis.overhead)
            .words("step", |o| Cell::text(&o.step))
            .numbers("median", |o| Cell::number(o.median_ms, Digits::Decimals(1)))
            .numbers("longest", |o| Cell::number(o.max_ms, Digits::Decimals(1)));
        let text = "Time of a run outside its traffic, in milliseconds:";
        blocks.extend([Block::text(text), table.block()]);
    }
    blocks
}

fn runs(analysis: &Analysis) -> Block {
    let table = match analysis.counts {
        Some(_) => super::counts::runs(analysis),
        None => rated(analysis),
    };
    let title = format!("All {} in their order", analysis.runs.len());
    let blocks = vec![Block::Table(table)];
    Block::section(title, blocks).folded()
}

/// Formats the value of a run, with a mark if comparisons exclude it: a search without a regular
/// result also has a value.
fn compared(run: &RunResult) -> Cell {
    match (run.value_pps, &run.left_out) {
        (Some(pps), Some(_)) => {
            Cell::Values(format!("({pps:.0}) left out").into(), vec![pps.into()])
        }
        (value, _) => Cell::rate(value),
    }
}

fn rated(analysis: &Analysis) -> Table {
    Table::of(&analysis.runs)
        .numbers("run", |r| Cell::count(r.run))
        .numbers("block", |r| Cell::count(r.block))
        .words("variant", |r| Cell::text(&r.label))
        .words("started", |r| Cell::text(&r.started_at))
        .numbers("compared", compared)
        .numbers("mean", |r| Cell::rate(r.mean_pps))
        .numbers("p90", |r| Cell::rate(r.p90_pps))
        .numbers("offered pps", |r| Cell::rate(r.offered_pps))
        .numbers("offered", |r| Cell::count(r.offered))
        .numbers("forwarded", |r| Cell::count(r.forwarded))
        .numbers("warnings", |r| Cell::count(r.warnings))
        .table()
}
