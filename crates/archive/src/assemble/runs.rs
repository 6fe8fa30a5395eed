//! Turns one run's logs into its record.
//!
//! The receiver's lines become samples; the senders' totals are the offered load. The hosts' clocks
//! are not aligned, because the logs share no common instant.

use super::groups::RawRun;
use crate::found::FoundFile;
use fwdlab_model::Warning;
use fwdlab_model::log::{self, Command, EquilibriumLog, GeneratorLog, Log, LogEnd, NumberedLine};
use fwdlab_model::record::{Counts, RunRecord, Sample, TrialRecord};
use fwdlab_results::stats::log_rule;
use fwdlab_results::stats::summary::median;
use std::collections::BTreeMap;

/// Nanoseconds per microsecond.
const US: u64 = 1_000;
/// Share of the offered load from which on the senders limit the result.
const LIMITED: f64 = 0.9;
/// Nominal length of a search step, which the log does not contain.
const STEP_NS: u64 = 1_000_000_000;

/// A run read from its logs; its place in the plan is filled in later.
#[derive(Debug)]
pub(super) struct ReadRun {
    /// The record.
    pub(super) record: RunRecord,
    /// Text of the iteration in the file names.
    pub(super) iteration: String,
    /// The main sender's command, if its log contains one.
    pub(super) sender: Option<Command>,
    /// Frame size with FCS in bytes, from the command or the log.
    pub(super) frame_bytes: Option<u64>,
    /// True for a search for the equilibrium throughput.
    pub(super) is_search: bool,
    /// Result of a search in Mbit/s, as in its published list.
    pub(super) estimate_mbps: Option<f64>,
    /// Number of log files read.
    pub(super) logs: usize,
    /// Their size in bytes.
    pub(super) bytes: u64,
}

impl ReadRun {
    /// Returns its iteration from 0: the round of the harness.
    pub(super) fn block(&self) -> u32 {
        self.iteration.parse::<u32>().unwrap_or(1).saturating_sub(1)
    }
}

/// A file with a fault: name, reason, and whether it was refused.
pub(super) type FileFault = (String, String, bool);

/// Reads the logs of one run; `None` without a usable log. Adds faults to `complaints` in either
/// case.
pub(super) fn read(
    raw: &RawRun<'_>,
    bytes_of: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
    complaints: &mut Vec<FileFault>,
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
        (Some((file, Log::Generator(log))), _) => read_blast(file, log, &senders),
        (_, Some((file, log))) => read_search(file, log, complaints)?,
        (Some((file, Log::Equilibrium(log))), None) => read_search(file, log, complaints)?,
        (None, None) => return None,
    };
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

fn read_blast(file: &FoundFile, log: &GeneratorLog, senders: &[(&FoundFile, Log)]) -> ReadRun {
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
    let sender_logs: Vec<(&FoundFile, &GeneratorLog)> = senders
        .iter()
        .filter_map(|(file, log)| match log {
            Log::Generator(log) => Some((*file, log)),
            Log::Equilibrium(_) => None,
        })
        .collect();
    let offered = sender_logs.iter().map(|(_, log)| packets(log)).sum();
    let seconds = sender_logs.iter().filter_map(|(_, log)| log.total.as_ref()?.seconds);
    let longest = seconds.filter(|s| s.is_finite() && *s > 0.0).fold(0.0, f64::max);
    let active_ns: u64 = log_rule::traffic(&samples).iter().map(|sample| sample.duration_ns).sum();
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
    let main_sender = sender_logs.first().map(|(_, log)| *log);
    let command = main_sender.and_then(|log| log.command.clone());
    fact("sender logs", names(&sender_logs));
    fact("sender command", command.as_ref().map(|command| command.text.clone()));
    fact("sender host", command.as_ref().and_then(|command| command.host.clone()));
    fact("sender rate", main_sender.and_then(sender_rate).map(|pps| format!("{pps:.0} pps")));
    fact("log ends", Some(ending(log.ending).to_owned()));

    let mut warnings = log_warnings(file, log);
    warnings.extend(sender_logs.iter().flat_map(|(file, log)| log_warnings(file, log)));
    if samples.is_empty() {
        warnings.push(doubt(file, None, "no line with a rate: nothing arrived, or nobody counted"));
    }
    if !sender_logs.is_empty() && offered > 0 && forwarded > offered {
        warnings.push(Warning::NotConserved { offered, forwarded });
    }
    let offered_pps = sender_logs.iter().filter_map(|(_, log)| sender_rate(log)).sum::<f64>();
    if let Some(forwarded_pps) = log_rule::steady_pps(&samples)
        && offered_pps > 0.0
        && forwarded_pps >= LIMITED * offered_pps
    {
        let ceiling_pps = offered_pps;
        warnings.push(Warning::GeneratorLimited { forwarded_pps, ceiling_pps });
    }
    if sender_logs.is_empty() {
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

/// Reads a search: each step becomes a sample, of which only the estimate is valid. Rates are of
/// frames without FCS, as the tool counts them. An aborted search has no figure. `None` if the log
/// lacks the frame size, without which rates cannot be converted to packets.
fn read_search(
    file: &FoundFile,
    log: &EquilibriumLog,
    complaints: &mut Vec<FileFault>,
) -> Option<ReadRun> {
    let mut complain = |why: &str, refused| {
        complaints.push((file.name.clone(), why.to_owned(), refused));
    };
    let Some(frame) = log.load.map(|load| load.frame_bytes) else {
        complain("the search broke off before it told the size of its frames", true);
        return None;
    };
    if log.estimate.is_none() {
        complain("the search broke off before it had a result", false);
    }
    let packets = |mbps: u64| mbps * 1_000_000 / (8 * frame.max(1));
    let mut samples = Vec::new();
    for step in &log.steps {
        // The step during which the search was aborted was not measured.
        let Some(measured) = step.measured_mbps.map(packets) else { continue };
        let mut step_sample = sample(samples.len() as u64 * STEP_NS, STEP_NS, measured, false);
        step_sample.offered = packets(step.offered_mbps.unwrap_or(0));
        samples.push(step_sample);
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
                // Without a result there is no window, and therefore no rate of 0.
                window_ns: if estimate.is_some() { STEP_NS } else { 0 },
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
    Sample { at_ns, duration_ns, forwarded, valid, ..Sample::default() }
}

/// Returns the packets that a sender reports; if it was killed, the sum of its intervals.
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

fn ending(ending: LogEnd) -> &'static str {
    match ending {
        LogEnd::Total => "with its totals",
        LogEnd::Terminated => "killed, as the harness does",
        LogEnd::Interval => "cut off after a rate",
        LogEnd::Other => "otherwise",
    }
}

fn log_warnings(file: &FoundFile, log: &GeneratorLog) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(first) = log.errors.first() {
        let more = more(log.error_count);
        warnings.push(doubt(
            file,
            Some(first.number),
            &format!("the tool reported: {}{more}", first.text),
        ));
    }
    warnings.extend(unknown(file, &log.unknown, log.unknown_count));
    let inconsistent: Vec<usize> = log
        .intervals
        .iter()
        .filter(|i| i.exact && i.averaged.is_none() && i.computed_pps().is_some_and(|c| c != i.pps))
        .map(|interval| interval.line)
        .collect();
    if let Some(line) = inconsistent.first() {
        let what = format!(
            "the rate is not that of packets and time in the same line ({} such lines); packets \
             over time count",
            inconsistent.len()
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

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: &str = "\
CMD: equilibrium -4 -u -t em0 -r em1
Benchmark tool using equilibrium throughput method
- Benchmark mode: Bandwitdh (bps) for VPN gateway
- UDP load = 500B, IPv4 packet size=528B, Ethernet frame size=542B
- Link rate = 1000 Mb/s
- Tolerance = 0.01
Iteration 1
  - Offering load = 500 Mb/s
  - Step = 250 Mb/s
  - Measured forwarding rate = 36 Mb/s
Iteration 2
  - Offering load = 36 Mb/s
";
    const END: &str = "Estimated Equilibrium Ethernet throughput= 36 Mb/s \
                       (maximum value seen: 37 Mb/s)\n";

    fn read_sender_log(text: &str) -> (Option<ReadRun>, Vec<FileFault>) {
        let file = FoundFile {
            path: "x".into(),
            name: "bench.null.1.sender".to_owned(),
            size: text.len() as u64,
            modified_ns: 0,
        };
        let raw =
            RawRun { iteration: "1".to_owned(), receiver: None, senders: vec![("sender", &file)] };
        let mut complaints = Vec::new();
        let run = read(&raw, &|_| Ok(text.as_bytes().to_vec()), &mut complaints);
        (run, complaints)
    }

    #[test]
    fn read_converts_a_search_to_packets() {
        let (run, complaints) = read_sender_log(&format!("{SEARCH}{END}"));
        let run = run.unwrap();
        assert_eq!(run.estimate_mbps, Some(36.0));
        assert_eq!(run.record.trial.window.forwarded, 36_000_000 / (8 * 542));
        assert_eq!(run.record.trial.window_ns, STEP_NS);
        assert_eq!((complaints, run.frame_bytes), (Vec::new(), Some(546)));
    }

    #[test]
    fn read_reports_an_aborted_search() {
        let (run, complaints) = read_sender_log(SEARCH);
        let run = run.unwrap();
        assert_eq!((run.estimate_mbps, run.record.trial.window_ns), (None, 0));
        assert_eq!(run.record.trial.samples.len(), 1);
        assert!(complaints[0].1.contains("broke off before it had a result"), "{complaints:?}");

        let head: String = SEARCH.lines().take(2).map(|line| format!("{line}\n")).collect();
        let (run, complaints) = read_sender_log(&head);
        assert!(run.is_none());
        assert!(
            complaints[0].2 && complaints[0].1.contains("size of its frames"),
            "{complaints:?}"
        );
    }
}
