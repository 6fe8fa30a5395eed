//! netmap's pkt-gen, on FreeBSD and Linux, at both ends.
//!
//! It reports counters ten times a second, and totals only on SIGINT (not on SIGTERM). Its receiver
//! counts every packet. Its sender counts packets put into a ring, not transmitted ones, so they
//! are cross-checked with the interface's counters. Opening an interface for netmap may take its
//! link down for seconds, so both ends wait before they are ready; the receiver is opened first.
//! `options` are appended to the sender's command line, e.g. `-U` (compute UDP checksums) or `-w
//! 4`.

mod command;
pub mod tally;

use super::flow_pattern::FlowPattern;
use super::interface::InterfaceCounters;
use super::load_check::LoadCheck;
use super::process::{LineOutcome, ProgramIo};
use super::{Capabilities, Counted, Edges, Generator, GeneratorHosts, Load, Outcome};
use command::REPORT_MS;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use fwdlab_packet::Family;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tally::Tally;

/// Time limit for an end to become ready: drivers reset their link.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of missing reports after which the program is checked for being alive.
const MISSED: u32 = 3;

/// A pkt-gen at each end.
pub struct PktGen<'a> {
    ends: GeneratorHosts<'a>,
    patience: Duration,
    load: Option<Load>,
    sender: Option<End>,
    receiver: Option<End>,
    load_check: LoadCheck,
    /// True after the sender reported its first packets.
    has_begun: bool,
    interface_counters: [InterfaceCounters<'a>; 2],
    facts: BTreeMap<String, String>,
    remarks: Vec<String>,
}

/// One end: the program and its reports so far.
struct End {
    talk: ProgramIo,
    tally: Tally,
    last_output: Instant,
    has_ended: bool,
    was_stopped: bool,
}

impl<'a> PktGen<'a> {
    /// Creates the generator without starting anything.
    pub fn new(ends: GeneratorHosts<'a>) -> PktGen<'a> {
        PktGen {
            ends,
            patience: PATIENCE,
            load: None,
            sender: None,
            receiver: None,
            load_check: LoadCheck::open(None, Duration::ZERO),
            has_begun: false,
            interface_counters: Default::default(),
            facts: BTreeMap::new(),
            remarks: Vec::new(),
        }
    }

    /// Sets the time limit for an end to become ready, and to exit.
    pub fn patience(mut self, patience: Duration) -> PktGen<'a> {
        self.patience = patience;
        self
    }

    /// Detects the build: only FreeBSD's port has `-U`, and it iterates over address ranges
    /// differently from upstream netmap.
    fn identify(&mut self, load: &Load) -> Result<(), BenchError> {
        let script = "pkt-gen -U -h 2>&1; for tool in 'sha256 -q' sha256sum; do \
                      $tool \"$(command -v pkt-gen)\" 2>/dev/null && break; done; true";
        let text = self.ends.sender.run(&["sh", "-c", script], "")?;
        let unknown = ["illegal option", "invalid option", "unrecognized option", "bad option"];
        let is_port = !text.lines().any(|line| unknown.iter().any(|words| line.contains(words)));
        let hash = text.lines().rev().find_map(|line| {
            let word = line.split_whitespace().next()?;
            (word.len() == 64 && word.bytes().all(|b| b.is_ascii_hexdigit())).then_some(word)
        });
        let (build, pattern) = match is_port {
            true => ("FreeBSD's port (knows -U)", FlowPattern::Nested),
            false => ("netmap's own (no -U)", FlowPattern::Lockstep),
        };
        self.facts.insert("pkt-gen build".into(), build.into());
        if let Some(hash) = hash {
            self.facts.insert("pkt-gen sha256".into(), hash.to_owned());
        }
        self.facts.insert("pkt-gen flows".into(), pattern.describe(load.stream.flows));
        let recomputes = self.ends.options.iter().any(|option| option == "-U");
        if recomputes && load.stream.family == Family::Inet6 {
            let remark = "with -U, pkt-gen's own source doubts its UDP checksums of IPv6";
            self.remarks.push(remark.into());
        }
        if pattern.flows(load.stream.flows) < FlowPattern::Nested.flows(load.stream.flows) {
            self.remarks.push(format!(
                "this build of pkt-gen makes {}: choose numbers of sources and destinations \
                 without a common divisor",
                pattern.describe(load.stream.flows)
            ));
        }
        Ok(())
    }

    /// Detects the first packets. A paced sender waits for a full second and so starts up to two
    /// seconds after it was ready; that time is not counted as a shortfall.
    fn detect_start(&mut self) {
        let Some(tally) = self.sender.as_ref().map(|end| &end.tally) else { return };
        if !self.has_begun && tally.packets > 0 {
            self.has_begun = true;
            self.load_check.began_ago(tally.busy);
        }
    }

    fn ends(&mut self) -> impl Iterator<Item = (&'static str, &mut End)> {
        let sender = self.sender.as_mut().map(|end| ("sender", end));
        sender.into_iter().chain(self.receiver.as_mut().map(|end| ("receiver", end)))
    }

    fn counts(&self) -> Counted {
        let count = |end: &Option<End>| end.as_ref().map_or(0, |end| end.tally.count());
        let sent = count(&self.sender);
        let reported_time = self.sender.as_ref().and_then(|end| end.tally.time());
        let unsent = self.load_check.unsent(sent, reported_time);
        Counted { sent, received: count(&self.receiver), receiver_dropped: 0, unsent }
    }
}

impl Generator for PktGen<'_> {
    fn name(&self) -> &'static str {
        "pkt-gen"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { paced: true, inet6: true, edges: Edges::Reported(REPORT_MS) }
    }

    fn prepare(&mut self, load: &Load) -> Result<(), BenchError> {
        self.identify(load)?;
        let reports = Duration::from_millis(u64::from(MISSED * REPORT_MS)) * 4;
        self.load_check = LoadCheck::open(load.rate_pps, reports);
        let receiver = command::receiver(&self.ends)?;
        self.facts.insert("pkt-gen receiver".into(), receiver.join(" "));
        self.receiver = Some(End::start(self.ends.receiver, &receiver, self.patience)?);
        self.load = Some(load.clone());
        Ok(())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        let load = self.load.as_ref().ok_or_else(|| {
            BenchError::Refused("pkt-gen must be prepared before it can start".into())
        })?;
        let sender = command::sender(&self.ends, load)?;
        self.facts.insert("pkt-gen sender".into(), sender.join(" "));
        self.interface_counters = [
            InterfaceCounters::new(self.ends.sender, &self.ends.sender_interface),
            InterfaceCounters::new(self.ends.receiver, &self.ends.receiver_interface),
        ];
        self.sender = Some(End::start(self.ends.sender, &sender, self.patience)?);
        self.load_check.begin();
        Ok(())
    }

    fn counted(&mut self) -> Result<Counted, BenchError> {
        for (name, end) in self.ends() {
            // The sender may have reached its packet limit.
            end.listen(name == "sender")?;
        }
        self.detect_start();
        let counted = self.counts();
        self.load_check.saw(counted.sent);
        Ok(counted)
    }

    fn fresh(&mut self) -> Result<Counted, BenchError> {
        let patience = Duration::from_millis(u64::from(MISSED * REPORT_MS)) * 4;
        for (_, end) in self.ends() {
            end.next_report(patience)?;
        }
        self.counted()
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        let patience = self.patience;
        let Some(sender) = &mut self.sender else { return Ok(()) };
        if sender.has_ended && !sender.was_stopped {
            self.remarks.push("the sender had ended before it was stopped".into());
        }
        // Before its final output, because only the reports contain the start time. A dead sender
        // is reported below.
        let _ = sender.listen(true);
        self.detect_start();
        let Some(sender) = &mut self.sender else { return Ok(()) };
        sender.end(patience);
        self.load_check.end();
        match sender.tally.reports == 0 && sender.tally.total.is_none() {
            true => Err(sender.talk.error("it ended without a report")),
            false => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<Outcome, BenchError> {
        self.stop()?;
        let patience = self.patience;
        if let Some(receiver) = &mut self.receiver {
            receiver.listen(false)?;
            receiver.end(patience);
        }
        let counted = self.counts();
        let mut outcome = Outcome {
            counted,
            counters: Vec::new(),
            facts: std::mem::take(&mut self.facts),
            remarks: std::mem::take(&mut self.remarks),
        };
        let reported_time = self.sender.as_ref().and_then(|end| end.tally.time());
        outcome.remarks.extend(self.load_check.remarks(counted.sent, reported_time));
        for (name, end) in self.ends() {
            outcome.remarks.extend(end.tally.remarks(name));
            if let Some(version) = end.tally.version {
                let source = format!("reports by line {version} of pkt-gen.c");
                outcome.facts.insert(format!("pkt-gen {name} version"), source);
            }
            if let Some(flows) = end.tally.flows.take() {
                outcome.facts.insert(format!("pkt-gen {name} says"), flows);
            }
        }
        let [sender, receiver] = &self.interface_counters;
        for result in [
            sender.testify("sent packets", counted.sent, |reading| reading.sent),
            receiver.testify("received packets", counted.received, |reading| reading.received),
        ] {
            match result {
                Ok(counter) => outcome.counters.push(counter),
                Err(remark) => outcome.remarks.push(remark),
            }
        }
        (self.sender, self.receiver) = (None, None);
        Ok(outcome)
    }
}

impl End {
    /// Starts one end and waits until it is ready.
    fn start(host: &dyn Host, words: &[String], patience: Duration) -> Result<End, BenchError> {
        let talk = ProgramIo::start(host, words)?;
        let (tally, last_output) = (Tally::default(), Instant::now());
        let mut end = End { talk, tally, last_output, has_ended: false, was_stopped: false };
        let tally = &mut end.tally;
        end.talk.hear_until("Ready...", patience, |line| {
            tally.read(line);
            tally.is_ready
        })?;
        end.last_output = Instant::now();
        Ok(end)
    }

    /// Reads pending output; a program that has exited is an error unless `may_end`.
    fn listen(&mut self, may_end: bool) -> Result<(), BenchError> {
        while !self.has_ended {
            let is_late =
                self.last_output.elapsed() > Duration::from_millis((MISSED * REPORT_MS).into());
            let wait = if is_late { Duration::from_millis(2) } else { Duration::ZERO };
            match self.talk.hear(wait) {
                LineOutcome::Line(line) => {
                    self.last_output = Instant::now();
                    self.tally.read(&line);
                }
                LineOutcome::Silence => return Ok(()),
                LineOutcome::Ended => self.has_ended = true,
            }
        }
        match self.was_stopped || may_end && self.tally.total.is_some() {
            true => Ok(()),
            false => Err(self.talk.died()),
        }
    }

    /// Waits for the next new report.
    fn next_report(&mut self, patience: Duration) -> Result<(), BenchError> {
        if self.has_ended {
            return Ok(());
        }
        self.listen(true)?;
        let (before, deadline) = (self.tally.reports, Instant::now() + patience);
        // A receiver prints nothing before its first packet.
        while !self.has_ended && self.tally.reports == before && Instant::now() < deadline {
            match self.talk.hear(Duration::from_millis(REPORT_MS.into())) {
                LineOutcome::Line(line) => {
                    self.last_output = Instant::now();
                    self.tally.read(&line);
                }
                LineOutcome::Silence => {}
                LineOutcome::Ended => self.has_ended = true,
            }
        }
        Ok(())
    }

    /// Interrupts the program and reads its totals.
    fn end(&mut self, patience: Duration) {
        self.was_stopped = true;
        if !self.has_ended {
            self.talk.interrupt();
            let deadline = Instant::now() + patience;
            while Instant::now() < deadline {
                match self.talk.hear(Duration::from_millis(50)) {
                    LineOutcome::Line(line) => self.tally.read(&line),
                    LineOutcome::Silence => {}
                    LineOutcome::Ended => break,
                }
            }
            self.talk.wait(Duration::from_millis(200));
            self.has_ended = true;
        }
    }
}
