//! DPDK's testpmd as a sender (forward mode `txonly`), at its prompt.
//!
//! testpmd sends IPv4 as fast as it can. On an interface of the Linux kernel the kernel paces it
//! (`shaper.rs`), and the interface's counter is the number of packets sent. Its flows differ from
//! the load's: with `--txonly-multi-flow` it derives source addresses from the destination (DPDK
//! 22.11: 198.19.1.1, 198.19.3.1, ..., 128 per sending CPU). It does not receive here: the
//! receiver's interface counts arrivals. Its rates (`Tx-pps`) are not used: the first one after
//! clearing the counters is meaningless. Source: the testpmd application user guide of DPDK.
//!
//! `options` are further arguments: arguments of the EAL before `--`, testpmd's own after it. An
//! interface `0000:05:00.0` is a PCI device; any other name is an interface of the kernel, which
//! DPDK drives through AF_PACKET unless the options name a device (`-a`, `--vdev`).

use super::interface::{InterfaceCounter, InterfaceCounters, InterfaceReading};
use super::load_check::LoadCheck;
use super::process::{LineOutcome, ProgramIo};
use super::shaper::Shaper;
use super::{Capabilities, Counted, Edges, Generator, GeneratorHosts, Load, Outcome, mac};
use fwdlab_host::error::BenchError;
use fwdlab_model::record::Counter;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, flow_address};
use fwdlab_packet::template::{DESTINATION_PORT, SOURCE_PORT};
use std::time::{Duration, Instant};

/// Time limit for the first prompt: DPDK clears hugepages first.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time limit for packets to leave a paced interface after testpmd has stopped.
const DRAINED: Duration = Duration::from_secs(10);
/// Interval without transmission after which the interface counts as drained.
const STILL: Duration = Duration::from_millis(100);

/// A testpmd that sends, and an interface that receives.
pub struct Testpmd<'a> {
    ends: GeneratorHosts<'a>,
    patience: Duration,
    talk: Option<ProgramIo>,
    receiver: Option<InterfaceCounter<'a>>,
    before: InterfaceReading,
    /// Pacing by the kernel, with the interface's counter and its value before sending.
    pace: Option<(Shaper, InterfaceCounter<'a>, u64)>,
    sent: PortStats,
    has_stopped: bool,
    load_check: LoadCheck,
    interface_counters: InterfaceCounters<'a>,
    outcome: Outcome,
}

/// Counters of all ports, printed by `show port stats all` and `stop`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Packets sent.
    pub sent: u64,
    /// Packets dropped because a port's queue was full; printed by `stop` only.
    pub dropped: u64,
    /// Packets that a port failed to send.
    pub errors: u64,
}

impl<'a> Testpmd<'a> {
    /// Creates the generator without starting anything.
    pub fn new(ends: GeneratorHosts<'a>) -> Testpmd<'a> {
        Testpmd {
            ends,
            patience: PATIENCE,
            talk: None,
            receiver: None,
            before: InterfaceReading::default(),
            pace: None,
            sent: PortStats::default(),
            has_stopped: false,
            load_check: LoadCheck::open(None, Duration::ZERO),
            interface_counters: InterfaceCounters::default(),
            outcome: Outcome::default(),
        }
    }

    /// Sets the time limit for the prompt, and for each answer.
    pub fn patience(mut self, patience: Duration) -> Testpmd<'a> {
        self.patience = patience;
        self
    }

    fn talk(&mut self) -> Result<&mut ProgramIo, BenchError> {
        let why = "testpmd must be prepared before it can be talked to";
        self.talk.as_mut().ok_or_else(|| BenchError::Refused(why.into()))
    }

    /// Runs `show port stats all` and parses the answer.
    fn port_stats(&mut self) -> Result<PortStats, BenchError> {
        let patience = self.patience;
        let talk = self.talk()?;
        talk.tell("show port stats all")?;
        let mut stats = PortStats::default();
        talk.hear_until("NIC statistics", patience, |line| line.contains("NIC statistics for"))?;
        talk.hear_until("Tx-pps", patience, |line| {
            read_stats(line, &mut stats);
            line.trim_start().starts_with("Tx-pps:")
        })?;
        // Statistics of further ports are already available or follow shortly.
        loop {
            match talk.hear(Duration::from_millis(20)) {
                LineOutcome::Line(line) => read_stats(&line, &mut stats),
                LineOutcome::Silence => return Ok(stats),
                LineOutcome::Ended => return Err(talk.died()),
            }
        }
    }

    /// Number of packets that have left: the interface's counter if paced, otherwise testpmd's.
    fn count_sent(&mut self) -> Result<u64, BenchError> {
        if let Some((_, interface, before)) = &self.pace {
            return Ok(interface.read()?.sent.saturating_sub(*before));
        }
        if !self.has_stopped && self.talk.is_some() {
            self.sent = self.port_stats()?;
        }
        Ok(self.sent.sent)
    }

    /// Waits until all packets handed over have left.
    fn wait_until_drained(&mut self) -> Result<(), BenchError> {
        let deadline = Instant::now() + DRAINED;
        let mut before = self.count_sent()?;
        while self.pace.is_some() && Instant::now() < deadline {
            std::thread::sleep(STILL);
            let now = self.count_sent()?;
            if now == std::mem::replace(&mut before, now) {
                break;
            }
        }
        Ok(())
    }

    fn received(&self) -> Result<InterfaceReading, BenchError> {
        match &self.receiver {
            Some(receiver) => receiver.read(),
            None => Ok(InterfaceReading::default()),
        }
    }
}

impl Generator for Testpmd<'_> {
    fn name(&self) -> &'static str {
        "testpmd"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { paced: is_paceable(&self.ends), inet6: false, edges: Edges::Read }
    }

    fn prepare(&mut self, load: &Load) -> Result<(), BenchError> {
        let words = command(&self.ends, load)?;
        let facts = &mut self.outcome.facts;
        facts.insert("testpmd command".into(), words.join(" "));
        facts.insert("received".into(), "at the interface: every packet counts".into());
        if load.stream.flows.count() > 1 {
            let note = "it makes source addresses of the destination's (--txonly-multi-flow), \
                        up to 256 for each CPU; the destination does not vary";
            facts.insert("testpmd flows".into(), note.into());
            self.outcome.remarks.push(format!(
                "testpmd can't send the {} flows that were asked for: {note}",
                load.stream.flows.count()
            ));
        }
        let receiver = InterfaceCounter::new(self.ends.receiver, &self.ends.receiver_interface)?;
        self.receiver = Some(receiver);
        if let Some(rate_pps) = load.rate_pps {
            let (host, interface) = (self.ends.sender, self.ends.sender_interface.as_str());
            let pace = Shaper::begin(
                host,
                interface,
                rate_pps,
                load.stream.frame_size.most().saturating_sub(4),
            )?;
            let counter = InterfaceCounter::new(host, interface)?;
            let before = counter.read()?.sent;
            self.pace = Some((pace, counter, before));
            let note =
                "by the kernel's token bucket (tc-tbf) on its interface, which counts what left";
            self.outcome.facts.insert("testpmd paced".into(), note.into());
        }
        // testpmd's output is block-buffered over a pipe.
        let mut all: Vec<String> = ["stdbuf", "-oL"].map(str::to_owned).to_vec();
        all.extend(words);
        let mut talk = ProgramIo::start(self.ends.sender, &all)?;
        talk.hear_until("Done", self.patience, |line| line.trim() == "Done")?;
        self.talk = Some(talk);
        self.talk()?.tell("clear port stats all")?;
        self.port_stats()?;
        self.load_check = LoadCheck::open(load.rate_pps, Duration::from_secs(2));
        self.before = self.received()?;
        self.interface_counters =
            InterfaceCounters::new(self.ends.sender, &self.ends.sender_interface);
        Ok(())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        let patience = self.patience;
        let talk = self.talk()?;
        talk.tell("start")?;
        talk.hear_until("packet forwarding", patience, |line| {
            line.contains("txonly packet forwarding")
        })?;
        self.load_check.begin();
        Ok(())
    }

    fn counted(&mut self) -> Result<Counted, BenchError> {
        let sent = self.count_sent()?;
        self.load_check.saw(sent);
        let received = self.received()?;
        Ok(Counted {
            sent,
            received: received.received.saturating_sub(self.before.received),
            receiver_dropped: received
                .receiver_dropped
                .saturating_sub(self.before.receiver_dropped),
            unsent: self.load_check.unsent(sent, None),
        })
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        if self.has_stopped {
            return Ok(());
        }
        let patience = self.patience;
        let talk = self.talk()?;
        talk.tell("stop")?;
        let mut total = PortStats::default();
        let mut is_total = false;
        talk.hear_until("Done.", patience, |line| {
            is_total |= line.contains("Accumulated forward statistics");
            if is_total {
                read_stats(line, &mut total);
            }
            line.trim() == "Done."
        })?;
        self.load_check.end();
        let stats = self.port_stats()?;
        self.has_stopped = true;
        self.sent = PortStats { dropped: total.dropped, ..stats };
        self.wait_until_drained()?;
        // testpmd has two counters: packets enqueued by the application, and packets sent by the
        // port.
        let name = "testpmd TX-packets (forward statistics)".to_owned();
        let expected = Some(stats.sent);
        let counter = Counter { name, before: 0, after: total.sent, expected };
        self.outcome.counters.push(counter);
        Ok(())
    }

    fn finish(&mut self) -> Result<Outcome, BenchError> {
        if self.talk.is_some() {
            self.stop()?;
        }
        let counted = self.counted()?;
        let pace = self.pace.take();
        let is_paced = pace.is_some();
        self.outcome.remarks.extend(pace.and_then(|(mut pace, ..)| pace.end()));
        if let Some(mut talk) = self.talk.take() {
            talk.tell("quit")?;
            let ended = talk.wait(self.patience.min(Duration::from_secs(15)));
            if !ended.well {
                let remark = format!("testpmd did not end well: {}", ended.status);
                self.outcome.remarks.push(remark);
            }
        }
        let mut outcome = std::mem::take(&mut self.outcome);
        for (name, after) in [("TX-dropped", self.sent.dropped), ("TX-errors", self.sent.errors)] {
            let name = format!("testpmd {name}");
            outcome.counters.push(Counter { name, before: 0, after, expected: None });
        }
        // The last frames handed over may still have been queued at the end.
        let counter_name = if is_paced { "paced packets" } else { "sent packets" };
        match self.interface_counters.testify(counter_name, counted.sent, |reading| reading.sent) {
            Ok(counter) => outcome.counters.push(counter),
            // The kernel does not know a port that DPDK owns.
            Err(remark) => {
                outcome.facts.insert("sender's interface".into(), remark);
            }
        }
        outcome.remarks.extend(self.load_check.remarks(counted.sent, None));
        outcome.counted = counted;
        Ok(outcome)
    }
}

/// Command line of testpmd.
///
/// # Errors
/// Fails if testpmd cannot send the load.
fn command(ends: &GeneratorHosts<'_>, load: &Load) -> Result<Vec<String>, BenchError> {
    let refused = |why: &str| Err(BenchError::Refused(why.into()));
    if load.rate_pps.is_some() && !is_paceable(ends) {
        return refused(
            "testpmd keeps no rate on a device of its own, where no kernel can do it: write rate = \
             \"max\" and no [method], or name an interface of the kernel's in the lab's file",
        );
    }
    if load.stream.family == Family::Inet6 {
        return refused("testpmd sends IPv4 only: choose another generator for inet6");
    }
    if ends.sender_cpus.len() == 1 {
        return refused("testpmd needs a CPU for its prompt beside those that send: name two");
    }
    let mut parts = ends.options.splitn(2, |word| word == "--");
    let (eal, own_options) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut words = vec!["dpdk-testpmd".to_owned()];
    if !ends.sender_cpus.is_empty() {
        let cpus = ends.sender_cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        words.extend(["-l".into(), cpus]);
    }
    let names_device = names_device(eal);
    if !names_device && is_pci(&ends.sender_interface) {
        words.extend(["-a".into(), ends.sender_interface.clone()]);
    } else if !names_device {
        // Bypassing the queueing discipline would bypass the pacing.
        let bypass = if load.rate_pps.is_some() { ",qdisc_bypass=0" } else { "" };
        words.push(format!("--vdev=net_af_packet0,iface={}{bypass}", ends.sender_interface));
    }
    words.extend(eal.iter().cloned());
    words.extend(["--", "-i", "--forward-mode=txonly"].map(str::to_owned));
    words.push(format!("--eth-peer=0,{}", mac(load.next_hop_mac)));
    // testpmd's sizes exclude the FCS.
    words.push(format!("--txpkts={}", load.stream.frame_size.most().saturating_sub(4)));
    let address = |side| flow_address(load.stream.family, side, 0);
    words.push(format!("--tx-ip={},{}", address(Side::Sender), address(Side::Receiver)));
    words.push(format!("--tx-udp={SOURCE_PORT},{DESTINATION_PORT}"));
    if load.stream.flows.count() > 1 {
        words.push("--txonly-multi-flow".into());
    }
    if ends.sender_cpus.len() > 2 {
        let senders = ends.sender_cpus.len() - 1;
        words.push(format!("--nb-cores={senders}"));
        words.push(format!("--txq={senders}"));
        words.push(format!("--rxq={senders}"));
    }
    words.extend(own_options.iter().cloned());
    Ok(words)
}

/// True if arguments of the EAL name the device.
fn names_device(eal: &[String]) -> bool {
    eal.iter().any(|word| word.starts_with("-a") || word.starts_with("--vdev"))
}

/// True if packets go through a kernel, which can pace them.
fn is_paceable(ends: &GeneratorHosts<'_>) -> bool {
    let eal = ends.options.split(|word| word == "--").next().unwrap_or_default();
    !is_pci(&ends.sender_interface) && !names_device(eal)
}

/// Matches `0000:05:00.0` or `05:00.0`.
fn is_pci(name: &str) -> bool {
    let Some((bus, function)) = name.rsplit_once('.') else { return false };
    let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex(function) && matches!(bus.split(':').count(), 2 | 3) && bus.split(':').all(is_hex)
}

/// Adds the line's counters: `TX-packets: 2112 TX-errors: 0 TX-bytes: 126720`.
pub fn read_stats(line: &str, stats: &mut PortStats) {
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        let field = match word {
            "TX-packets:" => &mut stats.sent,
            "TX-dropped:" => &mut stats.dropped,
            "TX-errors:" => &mut stats.errors,
            _ => continue,
        };
        if let Some(value) = words.next().and_then(|word| word.parse::<u64>().ok()) {
            *field = field.saturating_add(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statistics_of_several_ports_are_summed() {
        let text = "\n  ######################## NIC statistics for port 0  ####\n  \
                    RX-packets: 3          RX-missed: 0          RX-bytes:  230\n  \
                    TX-packets: 2112       TX-errors: 1          TX-bytes:  126720\n  \
                    TX-packets: 8          TX-dropped: 5         TX-total: 13\n";
        let mut stats = PortStats::default();
        text.lines().for_each(|line| read_stats(line, &mut stats));
        assert_eq!(stats, PortStats { sent: 2120, dropped: 5, errors: 1 });
    }

    #[test]
    fn pci_addresses_differ_from_interface_names() {
        assert!(is_pci("0000:05:00.0") && is_pci("05:00.1"));
        assert!(!is_pci("eth0") && !is_pci("vlan.0") && !is_pci("eth0:1.5"));
    }

    proptest! {
        #[test]
        fn any_line_is_accepted(line in "(TX-packets:|TX-dropped:|[ 0-9a-z:-])*") {
            read_stats(&line, &mut PortStats { sent: u64::MAX, ..PortStats::default() });
        }
    }
}
