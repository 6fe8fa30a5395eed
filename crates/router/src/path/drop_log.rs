//! Log of dropped packets: a pcapng file whose comments name the reason, and the rule of the
//! firewall.
//!
//! All workers share one log. Only packets of selected reasons are logged, at a limited rate; the
//! next logged packet reports how many were left out.

use super::counters::Reasons;
use super::punt::DroppedPacket;
use super::slow::{Rate, TokenBucket};
use super::{Class, Firewall, Reason, Router};
use fwdlab_netio::clock;
use fwdlab_netio::files::RecordFile;
use fwdlab_netio::frame::Frame;
use fwdlab_netio::pcap::PcapngWriter;
use std::fmt::Write;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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
/// Reasons of packets that are not identified, or have no interface in the file.
const UNLOGGED: [Reason; 2] = [Reason::NoRoom, Reason::PortUnknown];
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
        let known = Reason::ALL.iter().filter(|reason| reason.class() == Class::Dropped);
        let known: Vec<&Reason> = known.filter(|reason| !UNLOGGED.contains(reason)).collect();
        let find = |name: &String| {
            let found = known.iter().find(|reason| reason.name() == name);
            found.map(|reason| **reason).ok_or_else(|| {
                let known: Vec<&str> = known.iter().map(|reason| reason.name()).collect();
                let known = known.join(", ");
                format!("`{name}` is no reason of a dropped packet: use one of {known}")
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
    /// Left out: beyond the rate, or while another worker was logging.
    pub omitted: u64,
}

/// The log.
#[derive(Debug)]
pub struct DropLog {
    reasons: Reasons,
    state: Mutex<State>,
    /// Packets left out since the last logged one, because of the limit or because another worker
    /// was logging.
    omitted: AtomicU64,
    /// All of them.
    all_omitted: AtomicU64,
}

#[derive(Debug)]
struct State {
    writer: PcapngWriter<RecordFile>,
    bucket: TokenBucket,
    /// Texts of the firewall's rules.
    rules: Vec<String>,
    logged: u64,
    comment: String,
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
            logged: 0,
            comment: String::new(),
        };
        Ok(DropLog {
            reasons: Reasons::of(&setting.reasons),
            state: Mutex::new(state),
            omitted: AtomicU64::new(0),
            all_omitted: AtomicU64::new(0),
        })
    }

    /// Sets the texts of the firewall's rules, in their order.
    pub fn set_rules(&self, rules: Vec<String>) {
        self.locked().rules = rules;
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> DropLogCounts {
        DropLogCounts { logged: self.locked().logged, omitted: self.all_omitted.load(Relaxed) }
    }

    /// Writes what was logged to the file. Call this a few times per second, and at the end.
    pub fn flush(&self) {
        // The file counts and reports its losses.
        let _ = self.locked().writer.flush();
    }

    pub(super) fn reasons(&self) -> Reasons {
        self.reasons
    }

    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn omit(&self, packets: usize) {
        self.omitted.fetch_add(packets as u64, Relaxed);
        self.all_omitted.fetch_add(packets as u64, Relaxed);
    }

    /// Logs packets; a worker does not wait for another one, nor for the file.
    fn log(&self, batch: &[Frame], packets: &[DroppedPacket], now_ns: u64) {
        let Ok(mut state) = self.state.try_lock() else { return self.omit(packets.len()) };
        for packet in packets {
            match state.bucket.take(now_ns) {
                true => state.log(&batch[packet.place], packet, &self.omitted),
                false => self.omit(1),
            }
        }
    }
}

impl State {
    fn log(&mut self, frame: &Frame, packet: &DroppedPacket, omitted: &AtomicU64) {
        self.comment.clear();
        self.comment.push_str(packet.reason.name());
        // Writing to a text does not fail.
        let _ = match packet.rule.map(|rule| (rule as usize + 1, self.rules.get(rule as usize))) {
            Some((number, Some(text))) => write!(self.comment, ": rule {number}: {text}"),
            Some((_, None)) => write!(self.comment, ": policy"),
            None => Ok(()),
        };
        let omitted = omitted.swap(0, Relaxed);
        if omitted > 0 {
            let _ = write!(self.comment, "; {omitted} earlier packets not logged");
        }
        self.logged += 1;
        let (port, time_ns) = (frame.ingress(), clock::realtime_ns());
        // The file counts and reports its losses.
        let _ = self.writer.write(port, time_ns, &frame.whole(), &self.comment);
    }
}

impl<W: Firewall> Router<W> {
    /// Logs the dropped packets of a batch.
    #[cold]
    pub(super) fn log_drops(&mut self, batch: &[Frame], now_ns: u64) {
        if let Some(log) = &self.drop_log {
            log.log(batch, &self.exceptions.dropped, now_ns);
        }
        self.exceptions.dropped.clear();
    }
}
