//! DPDK's testpmd as a sender (forward mode `txonly`), at its prompt.
//!
//! It sends IPv4 at the maximum rate only, and its flows differ from the load's: with
//! `--txonly-multi-flow` it derives source addresses from the destination (DPDK 22.11:
//! 198.19.1.1, 198.19.3.1, ..., 128 per sending CPU). It does not receive here: arrivals
//! are counted at the receiver's interface. Its rates (`Tx-pps`) are not used: the first
//! one after clearing the counters is meaningless.
//! Source: the testpmd application user guide of DPDK.
//!
//! `options` are further words, those of the EAL before `--`, testpmd's own after it. An
//! interface `0000:05:00.0` is a PCI device; another name is one of the kernel's, which
//! DPDK drives by AF_PACKET unless the options name a device (`-a`, `--vdev`).

use super::account::Account;
use super::interface::{InterfaceCounter, InterfaceReading, Witness};
use super::talk::{Heard, Talk};
use super::{Capabilities, Counted, Edges, Ends, Generator, Load, Outcome, mac};
use crate::error::BenchError;
use fwdlab_model::record::Counter;
use fwdlab_packet::Family;
use fwdlab_packet::address::{Side, flow_address};
use fwdlab_packet::template::{DESTINATION_PORT, SOURCE_PORT};
use std::time::Duration;

/// Time limit for the first prompt: DPDK clears hugepages first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A testpmd that sends, and an interface that receives.
pub struct Testpmd<'a> {
    ends: Ends<'a>,
    patience: Duration,
    talk: Option<Talk>,
    receiver: Option<InterfaceCounter<'a>>,
    before: InterfaceReading,
    sent: PortStats,
    has_stopped: bool,
    account: Account,
    witness: Witness<'a>,
    outcome: Outcome,
}

/// Counters of all ports, as `show port stats all` and `stop` print them.
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
    /// Nothing is started yet.
    pub fn new(ends: Ends<'a>) -> Testpmd<'a> {
        Testpmd {
            ends,
            patience: PATIENCE,
            talk: None,
            receiver: None,
            before: InterfaceReading::default(),
            sent: PortStats::default(),
            has_stopped: false,
            account: Account::open(None, Duration::ZERO),
            witness: Witness::default(),
            outcome: Outcome::default(),
        }
    }

    /// Longest time until its prompt, and for each answer.
    pub fn patience(mut self, patience: Duration) -> Testpmd<'a> {
        self.patience = patience;
        self
    }

    fn talk(&mut self) -> Result<&mut Talk, BenchError> {
        let why = "testpmd must be prepared before it can be talked to";
        self.talk.as_mut().ok_or_else(|| BenchError::Refused(why.into()))
    }

    /// `show port stats all`, answered.
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
        // Ports that follow are there already or come in a moment.
        loop {
            match talk.hear(Duration::from_millis(20)) {
                Heard::Line(line) => read_stats(&line, &mut stats),
                Heard::Silence => return Ok(stats),
                Heard::Ended => return Err(talk.died()),
            }
        }
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
        Capabilities { paced: false, inet6: false, edges: Edges::Read }
    }

    fn prepare(&mut self, load: &Load) -> Result<(), BenchError> {
        let words = command(&self.ends, load)?;
        let facts = &mut self.outcome.facts;
        facts.insert("testpmd command".into(), words.join(" "));
        facts.insert("received".into(), "at the interface: every packet counts".into());
        if load.flows.count() > 1 {
            let told = "it makes source addresses of the destination's (--txonly-multi-flow), \
                        up to 256 for each CPU; the destination does not vary";
            facts.insert("testpmd flows".into(), told.into());
            self.outcome.remarks.push(format!(
                "testpmd can't send the {} flows that were asked for: {told}",
                load.flows.count()
            ));
        }
        let receiver = InterfaceCounter::new(self.ends.receiver, &self.ends.receiver_interface)?;
        self.receiver = Some(receiver);
        // Its output is block-buffered over a pipe.
        let mut all: Vec<String> = ["stdbuf", "-oL"].map(str::to_owned).to_vec();
        all.extend(words);
        let mut talk = Talk::start(self.ends.sender, &all)?;
        talk.hear_until("Done", self.patience, |line| line.trim() == "Done")?;
        self.talk = Some(talk);
        self.talk()?.tell("clear port stats all")?;
        self.port_stats()?;
        self.account = Account::open(None, Duration::from_secs(2));
        self.before = self.received()?;
        self.witness = Witness::new(self.ends.sender, &self.ends.sender_interface);
        Ok(())
    }

    fn start(&mut self) -> Result<(), BenchError> {
        let patience = self.patience;
        let talk = self.talk()?;
        talk.tell("start")?;
        talk.hear_until("packet forwarding", patience, |line| {
            line.contains("txonly packet forwarding")
        })?;
        self.account.begin();
        Ok(())
    }

    fn counted(&mut self) -> Result<Counted, BenchError> {
        if !self.has_stopped && self.talk.is_some() {
            self.sent = self.port_stats()?;
        }
        self.account.saw(self.sent.sent);
        let received = self.received()?;
        Ok(Counted {
            sent: self.sent.sent,
            received: received.received.saturating_sub(self.before.received),
            receiver_dropped: received
                .receiver_dropped
                .saturating_sub(self.before.receiver_dropped),
            unsent: 0,
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
        self.account.end();
        let stats = self.port_stats()?;
        self.has_stopped = true;
        self.sent = PortStats { dropped: total.dropped, ..stats };
        // Its two counters: packets that the application enqueued, packets that the port sent.
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
        match self.witness.testify("sent packets", counted.sent, |reading| reading.sent) {
            Ok(counter) => outcome.counters.push(counter),
            // A port that DPDK owns is none of the kernel's.
            Err(remark) => {
                outcome.facts.insert("sender's interface".into(), remark);
            }
        }
        outcome.remarks.extend(self.account.remarks(counted.sent, None));
        outcome.counted = counted;
        Ok(outcome)
    }
}

/// Its command line.
///
/// # Errors
/// When the load is none that it can send.
fn command(ends: &Ends<'_>, load: &Load) -> Result<Vec<String>, BenchError> {
    let refused = |why: &str| Err(BenchError::Refused(why.into()));
    if load.rate_pps.is_some() {
        return refused("testpmd keeps no rate: it sends as fast as it can (rate = \"max\")");
    }
    if load.family == Family::Inet6 {
        return refused("testpmd sends IPv4 only: choose another generator for inet6");
    }
    if ends.sender_cpus.len() == 1 {
        return refused("testpmd needs a CPU for its prompt beside those that send: name two");
    }
    let mut parts = ends.options.splitn(2, |word| word == "--");
    let (eal, own) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut words = vec!["dpdk-testpmd".to_owned()];
    if !ends.sender_cpus.is_empty() {
        let cpus = ends.sender_cpus.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        words.extend(["-l".into(), cpus]);
    }
    let names_device = eal.iter().any(|word| word.starts_with("-a") || word.starts_with("--vdev"));
    if !names_device && is_pci(&ends.sender_interface) {
        words.extend(["-a".into(), ends.sender_interface.clone()]);
    } else if !names_device {
        words.push(format!("--vdev=net_af_packet0,iface={}", ends.sender_interface));
    }
    words.extend(eal.iter().cloned());
    words.extend(["--", "-i", "--forward-mode=txonly"].map(str::to_owned));
    words.push(format!("--eth-peer=0,{}", mac(load.next_hop_mac)));
    // Its sizes don't count the FCS.
    words.push(format!("--txpkts={}", load.frame_size.saturating_sub(4)));
    let address = |side| flow_address(load.family, side, 0);
    words.push(format!("--tx-ip={},{}", address(Side::Sender), address(Side::Receiver)));
    words.push(format!("--tx-udp={SOURCE_PORT},{DESTINATION_PORT}"));
    if load.flows.count() > 1 {
        words.push("--txonly-multi-flow".into());
    }
    if ends.sender_cpus.len() > 2 {
        let senders = ends.sender_cpus.len() - 1;
        words.push(format!("--nb-cores={senders}"));
        words.push(format!("--txq={senders}"));
        words.push(format!("--rxq={senders}"));
    }
    words.extend(own.iter().cloned());
    Ok(words)
}

/// `0000:05:00.0` or `05:00.0`.
fn is_pci(name: &str) -> bool {
    let Some((bus, function)) = name.rsplit_once('.') else { return false };
    let is_hex = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_hexdigit());
    is_hex(function) && matches!(bus.split(':').count(), 2 | 3) && bus.split(':').all(is_hex)
}

/// Adds the line's counters: `TX-packets: 2112  TX-errors: 0  TX-bytes: 126720`.
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
    fn statistics_of_several_ports_add_up() {
        let text = "\n  ######################## NIC statistics for port 0  ####\n  \
                    RX-packets: 3          RX-missed: 0          RX-bytes:  230\n  \
                    TX-packets: 2112       TX-errors: 1          TX-bytes:  126720\n  \
                    TX-packets: 8          TX-dropped: 5         TX-total: 13\n";
        let mut stats = PortStats::default();
        text.lines().for_each(|line| read_stats(line, &mut stats));
        assert_eq!(stats, PortStats { sent: 2120, dropped: 5, errors: 1 });
    }

    #[test]
    fn pci_addresses_are_told_from_interfaces() {
        assert!(is_pci("0000:05:00.0") && is_pci("05:00.1"));
        assert!(!is_pci("eth0") && !is_pci("vlan.0") && !is_pci("eth0:1.5"));
    }

    proptest! {
        #[test]
        fn any_line_is_survived(line in "(TX-packets:|TX-dropped:|[ 0-9a-z:-])*") {
            read_stats(&line, &mut PortStats { sent: u64::MAX, ..PortStats::default() });
        }
    }
}
