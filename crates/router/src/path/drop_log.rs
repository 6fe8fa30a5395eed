//! Log of dropped packets: a pcapng file whose comments name the reason, and the rule of the
//! firewall.
//!
//! All workers share one log. Only packets of selected reasons are logged, at a limited rate; the
//! next logged packet reports how many were left out.

use super::slow::{Rate, TokenBucket};
use super::{Class, Firewall, Reason, Router};
use fwdlab_netio::clock;
use fwdlab_netio::files::RecordFile;
use fwdlab_netio::frame::Frame;
use fwdlab_netio::pcap::PcapngWriter;
use std::fmt::Write;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Reasons that are logged by default: decisions by configuration, but not broken packets and those
/// of other stations, which are numerous on any link.
const DEFAULT: [Reason; 8] = [
    Reason::Firewall,
    Reason::StateFull,
    Reason::FirewallUnreadable,
    Reason::FirewallFragment,
    Reason::FirewallStray,
    Reason::ReversePath,
    Reason::Blackhole,
    Reason::NeighbourUnknown,
];
/// Bytes of a packet that are written: headers, not contents.
const SNAP: u32 = 128;

/// Setting of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropLogSetting {
    /// Maximum number of logged packets per second in the long run; bursts may be as large.
    pub per_second: u32,
    /// Reasons of the packets that are logged.
    pub reasons: Vec<Reason>,
}

impl DropLogSetting {
    /// Reasons by their names; with no name, the decisions of the configuration.
    ///
    /// # Errors
    /// The first text that does not name a reason for dropping.
    pub fn reasons(names: &[String]) -> Result<Vec<Reason>, String> {
        let dropped =
            |reason: &&Reason| reason.class() == Class::Dropped && **reason != Reason::NoRoom;
        let find = |name: &String| {
            let mut all = Reason::ALL.iter().filter(dropped);
            all.find(|reason| reason.name() == name).copied().ok_or_else(|| {
                let known: Vec<&str> =
                    Reason::ALL.iter().filter(dropped).map(|reason| reason.name()).collect();
                format!(
                    "`{name}` is no reason of a dropped packet: use one of {}",
                    known.join(", ")
                )
            })
        };
        match names.is_empty() {
            true => Ok(DEFAULT.into()),
            false => names.iter().map(find).collect(),
        }
    }
}

/// Numbers of packets of the selected reasons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropLogCounts {
    /// Written to the log.
    pub logged: u64,
    /// Left out because of the rate limit.
    pub omitted: u64,
}

/// The log.
#[derive(Debug)]
pub struct DropLog {
    reasons: Vec<Reason>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    writer: PcapngWriter<RecordFile>,
    bucket: TokenBucket,
    /// Texts of the firewall's rules.
    rules: Vec<String>,
    counts: DropLogCounts,
    /// Packets left out since the last logged one.
    omitted: u64,
    comment: String,
    has_unwritten: bool,
}

impl DropLog {
    /// Begins a log in `file`; `interfaces` are the names of the router's ports.
    ///
    /// # Errors
    /// If the header can't be written.
    pub fn new(
        file: RecordFile,
        interfaces: &[String],
        setting: &DropLogSetting,
    ) -> io::Result<DropLog> {
        let rate = Rate { per_second: setting.per_second, burst: setting.per_second };
        let state = State {
            writer: PcapngWriter::new(file, interfaces, SNAP)?,
            bucket: TokenBucket::new(rate),
            rules: Vec::new(),
            counts: DropLogCounts::default(),
            omitted: 0,
            comment: String::new(),
            has_unwritten: true,
        };
        Ok(DropLog { reasons: setting.reasons.clone(), state: Mutex::new(state) })
    }

    /// Sets the texts of the firewall's rules, in their order.
    pub fn set_rules(&self, rules: Vec<String>) {
        self.locked().rules = rules;
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> DropLogCounts {
        self.locked().counts
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has(&self, reason: Reason) -> bool {
        self.reasons.contains(&reason)
    }

    /// Writes what was logged; without effect while another worker logs.
    pub(super) fn flush(&self) {
        if let Ok(mut state) = self.state.try_lock()
            && std::mem::take(&mut state.has_unwritten)
        {
            // The file counts and reports its losses.
            let _ = state.writer.flush();
        }
    }
}

impl State {
    fn log(&mut self, frame: &Frame, reason: Reason, rule: Option<u32>, now_ns: u64) {
        if !self.bucket.take(now_ns) {
            self.omitted += 1;
            self.counts.omitted += 1;
            return;
        }
        self.comment.clear();
        self.comment.push_str(reason.name());
        // Writing to a text does not fail.
        let _ = match rule.map(|rule| (rule as usize + 1, self.rules.get(rule as usize))) {
            Some((number, Some(text))) => write!(self.comment, ": rule {number}: {text}"),
            Some((_, None)) => write!(self.comment, ": policy"),
            None => Ok(()),
        };
        let omitted = std::mem::take(&mut self.omitted);
        if omitted > 0 {
            let _ = write!(self.comment, "; {omitted} packets before it not logged");
        }
        self.counts.logged += 1;
        self.has_unwritten = true;
        // The file counts and reports its losses.
        let _ =
            self.writer.write(frame.ingress(), clock::realtime_ns(), &frame.whole(), &self.comment);
    }
}

impl<W: Firewall> Router<W> {
    /// Logs the dropped packets of a batch.
    #[cold]
    pub(super) fn log_drops(&mut self, batch: &[Frame], now_ns: u64) {
        if let Some(log) = &self.drop_log {
            let mut state = log.locked();
            for packet in self.exceptions.dropped.iter().filter(|packet| log.has(packet.reason)) {
                state.log(&batch[packet.place], packet.reason, packet.rule, now_ns);
            }
        }
        self.exceptions.dropped.clear();
    }
}
