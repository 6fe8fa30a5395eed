//! One run's logs become its record.
//!
//! The receiver's lines are the samples; the senders' totals are what was
//! offered. The clocks of the hosts are not matched: a log shows no common
//! instant.

use super::groups::RawRun;
use crate::archive::found::FoundFile;
use crate::archive::rule;
use crate::stats::summary::median;
use fwdlab_model::Warning;
use fwdlab_model::log::{self, Command, Ending, EquilibriumLog, GeneratorLog, Log, NumberedLine};
use fwdlab_model::record::{Counts, RunRecord, Sample, TrialRecord};
use std::collections::BTreeMap;

/// Nanoseconds of a microsecond.
const US: u64 = 1_000;
/// Length that stands for one step of a search, whose log doesn't say it.
const STEP_NS: u64 = 1_000_000_000;

/// A run as its logs tell it; its place in the plan is filled in later.
#[derive(Debug)]
pub(super) struct ReadRun {
    /// The record.
    pub(super) record: RunRecord,
    /// The iteration as its files write it.
    pub(super) iteration: String,
    /// The main sender's command, where its log shows one.
    pub(super) sender: Option<Command>,
    /// Frame size with FCS in bytes, as the command or the log says.
    pub(super) frame_bytes: Option<u64>,
    /// True for a search for the equilibrium throughput.
    pub(super) is_search: bool,
    /// What a search found, Mbit/s, as its published list has it.
    pub(super) estimate_mbps: Option<f64>,
    /// Log files that were read.
    pub(super) logs: usize,
    /// Bytes of them.
    pub(super) bytes: u64,
}

impl ReadRun {
    /// Its iteration from 0: the round of the harness.
    pub(super) fn block(&self) -> u32 {
        self.iteration.parse::<u32>().unwrap_or(1).saturating_sub(1)
    }
}

/// What became of a file, when it wasn't simply read: name, why, and whether it
/// was refused.
pub(super) type Complaint = (String, String, bool);

/// Reads the logs of one run. None when there is nothing to be a run of; what
/// was wrong is added to `complaints` either way.
pub(super) fn read(
    raw: &RawRun<'_>,
    bytes_of: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
    complaints: &mut Vec<Complaint>,
) -> Option<ReadRun> {
    let mut logs = (0, 0);
    let mut parse = |file: &FoundFile| match parse(file, bytes_of) {
        Ok(log) => {
            logs = (logs.0 + 1, logs.1 + file.size);
            Some(log)
        }
        Err(why) => {
            complaints.push((file.name.clone(), why, true));
            None
        }
    };
    let receiver = raw.receiver.and_then(|file| Some((file, parse(file)?)));
    let senders: Vec<(&FoundFile, Log)> =
        raw.senders.iter().filter_map(|(_, file)| Some((*file, parse(file)?))).collect();
    let search = senders.iter().find_map(|(file, log)| match log {
        Log::Equilibrium(log) => Some((*file, log)),
        Log::Generator(_) => None,
    });
    let mut run = match (&receiver, search) {
        (Some((file, Log::Generator(log))), _) => of_blast(file, log, &senders),
        (_, Some((file, log))) => of_search(file, log)?,
        (Some((file, Log::Equilibrium(log))), None) => of_search(file, log)?,
        (None, None) => return None,
    };
    if run.is_search && run.record.trial.samples.iter().all(|sample| !sample.valid) {
        let name = search.map_or(String::new(), |(file, _)| file.name.clone());
        complaints.push((name, "the search broke off before it had a result".to_owned(), false));
    }
    (run.logs, run.bytes) = logs;
    run.iteration.clone_from(&raw.iteration);
    Some(run)
}

fn parse(
    file: &FoundFile,
    bytes_of: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
) -> Result<Log, String> {
    let bytes = bytes_of(file).map_err(|error| error.to_string())?;
    log::parse(&bytes).map_err(|error| error.to_string())
}

fn of_blast(file: &FoundFile, log: &GeneratorLog, senders: &[(&FoundFile, Log)]) -> ReadRun {
    let kept = log.kept_range();
    let mut at_ns = 0;
    let samples: Vec<Sample> = log
        .intervals
        .iter()
        .enumerate()
        .map(|(i, interval)| {
            let sample =
                sample(at_ns, interval.duration_us * US, interval.packets, kept.contains(&i));
            at_ns += sample.duration_ns;
            sample
        })
        .collect();
    let forwarded = samples.iter().map(|sample| sample.forwarded).sum();
    let sent: Vec<(&FoundFile, &GeneratorLog)> = senders
        .iter()
        .filter_map(|(file, log)| match log {
            Log::Generator(log) => Some((*file, log)),
            Log::Equilibrium(_) => None,
        })
        .collect();
    let offered = sent.iter().map(|(_, log)| packets(log)).sum();
    let seconds = sent.iter().filter_map(|(_, log)| log.total.as_ref()?.seconds);
    let longest = seconds.filter(|s| s.is_finite() && *s > 0.0).fold(0.0, f64::max);
    let active_ns: u64 = rule::traffic(&samples).iter().map(|sample| sample.duration_ns).sum();
    let window_ns = if longest > 0.0 { (longest * 1e9) as u64 } else { active_ns };
    let counts = Counts { offered, forwarded };

    let mut facts = BTreeMap::new();
    let mut fact = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    fact("receiver log", Some(file.name.clone()));
    fact("receiver tool", log.version.map(|line| format!("pkt-gen, main_thread at line {line}")));
    fact("receiver command", log.command.as_ref().map(|command| command.text.clone()));
    fact("receiver host", log.command.as_ref().and_then(|command| command.host.clone()));
    let main = sent.first().map(|(_, log)| *log);
    let command = main.and_then(|log| log.command.clone());
    fact("sender logs", names(&sent));
    fact("sender command", command.as_ref().map(|command| command.text.clone()));
    fact("sender host", command.as_ref().and_then(|command| command.host.clone()));
    fact("sender rate", main.and_then(sender_rate).map(|pps| format!("{pps:.0} pps")));
    fact("log ends", Some(ending(log.ending).to_owned()));

    let mut warnings = log_warnings(file, log);
    warnings.extend(sent.iter().flat_map(|(file, log)| log_warnings(file, log)));
    if samples.is_empty() {
        warnings.push(doubt(file, None, "no line with a rate: nothing arrived, or nobody counted"));
    }
    if !sent.is_empty() && offered > 0 && forwarded > offered {
        warnings.push(Warning::NotConserved { offered, forwarded });
    }
    if sent.is_empty() {
        warnings.push(doubt(file, None, "no sender's log: what was offered is not known"));
    }
    let frame_bytes = command.as_ref().map(|command| command.packet_bytes().unwrap_or(60) + 4);
    ReadRun {
        record: RunRecord {
            trial: TrialRecord {
                window_ns,
                window: counts,
                total: counts,
                samples,
                ..TrialRecord::default()
            },
            facts,
            warnings,
            ..RunRecord::default()
        },
        iteration: String::new(),
        sender: command,
        frame_bytes,
        is_search: false,
        estimate_mbps: None,
        logs: 0,
        bytes: 0,
    }
}

/// A search: each step a sample, the estimate the only valid one. Rates are of
/// frames without FCS, as the tool counts them.
fn of_search(file: &FoundFile, log: &EquilibriumLog) -> Option<ReadRun> {
    let frame = log.load.map(|load| load.frame_bytes)?;
    let packets = |mbps: u64| mbps * 1_000_000 / (8 * frame.max(1));
    let mut samples = Vec::new();
    for step in &log.steps {
        let mut of_step =
            sample(samples.len() as u64 * STEP_NS, STEP_NS, packets(step.measured_mbps?), false);
        of_step.offered = packets(step.offered_mbps.unwrap_or(0));
        samples.push(of_step);
    }
    let estimate = log.estimate.map(|estimate| packets(estimate.mbps));
    samples
        .extend(estimate.map(|found| sample(samples.len() as u64 * STEP_NS, STEP_NS, found, true)));
    let forwarded = estimate.unwrap_or(0);
    let counts = Counts { offered: forwarded, forwarded };
    let mut facts = BTreeMap::new();
    facts.insert("sender logs".to_owned(), file.name.clone());
    if let Some(command) = &log.command {
        facts.insert("sender command".to_owned(), command.text.clone());
    }
    if let Some(estimate) = log.estimate {
        facts.insert("equilibrium".to_owned(), format!("{} Mbit/s", estimate.mbps));
        facts.insert("largest rate seen".to_owned(), format!("{} Mbit/s", estimate.max_mbps));
    }
    let warnings = unknown(file, &log.unknown, log.unknown_count).into_iter().collect();
    Some(ReadRun {
        record: RunRecord {
            trial: TrialRecord {
                window_ns: STEP_NS,
                window: counts,
                total: counts,
                samples,
                ..TrialRecord::default()
            },
            facts,
            warnings,
            ..RunRecord::default()
        },
        iteration: String::new(),
        sender: None,
        frame_bytes: Some(frame + 4),
        is_search: true,
        estimate_mbps: log.estimate.map(|estimate| estimate.mbps as f64),
        logs: 0,
        bytes: 0,
    })
}

fn sample(at_ns: u64, duration_ns: u64, forwarded: u64, valid: bool) -> Sample {
    Sample { at_ns, duration_ns, offered: 0, forwarded, stolen_ns: 0, variant: 0, slice: 0, valid }
}

/// Packets that a sender says it sent; those of its lines when it was killed.
fn packets(log: &GeneratorLog) -> u64 {
    let counted = || log.intervals.iter().map(|interval| interval.packets).sum();
    log.total.as_ref().map_or_else(counted, |total| total.packets)
}

fn sender_rate(log: &GeneratorLog) -> Option<f64> {
    let rates: Vec<f64> =
        log.intervals.iter().map(|interval| interval.pps as f64).filter(|pps| *pps > 0.0).collect();
    median(&rates)
}

fn names(logs: &[(&FoundFile, &GeneratorLog)]) -> Option<String> {
    let names: Vec<&str> = logs.iter().map(|(file, _)| file.name.as_str()).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Total => "with its totals",
        Ending::Terminated => "killed, as the harness does",
        Ending::Interval => "cut off after a rate",
        Ending::Other => "otherwise",
    }
}

fn log_warnings(file: &FoundFile, log: &GeneratorLog) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(first) = log.errors.first() {
        let more = more(log.error_count);
        warnings.push(doubt(
            file,
            Some(first.number),
            &format!("the tool says: {}{more}", first.text),
        ));
    }
    warnings.extend(unknown(file, &log.unknown, log.unknown_count));
    let odd: Vec<usize> = log
        .intervals
        .iter()
        .filter(|i| i.exact && i.averaged.is_none() && i.computed_pps().is_some_and(|c| c != i.pps))
        .map(|interval| interval.line)
        .collect();
    if let Some(line) = odd.first() {
        let what = format!(
            "the rate is not that of packets and time in the same line ({} such lines); packets \
             over time count",
            odd.len()
        );
        warnings.push(doubt(file, Some(*line), &what));
    }
    warnings
}

fn unknown(file: &FoundFile, lines: &[NumberedLine], count: usize) -> Option<Warning> {
    let first = lines.first()?;
    let what = format!("a line of no known kind: {}{}", first.text, more(count));
    Some(doubt(file, Some(first.number), &what))
}

fn more(count: usize) -> String {
    if count > 1 { format!(" (and {} more such lines)", count - 1) } else { String::new() }
}

fn doubt(file: &FoundFile, line: Option<usize>, what: &str) -> Warning {
    Warning::Log {
        file: file.name.clone(),
        line: line.map(|line| line as u64),
        what: what.to_owned(),
    }
}
