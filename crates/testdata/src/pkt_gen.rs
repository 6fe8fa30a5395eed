//! Logs in the format of netmap's pkt-gen, generated from rates.

use crate::random::Random;
use std::fmt::Write as _;

/// Format of a rate per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// Until 2016: rate, packets and time.
    F1,
    /// Since then: with bits, the mean batch and the minimum space in the ring.
    F2,
}

impl Layout {
    /// Returns a layout by its name in the fixtures.
    ///
    /// # Panics
    /// For any other name.
    #[must_use]
    pub fn named(name: &str) -> Layout {
        match name {
            "F1" => Layout::F1,
            "F2" => Layout::F2,
            other => panic!("no layout is called {other}"),
        }
    }
}

/// A log being written.
pub(crate) struct Log {
    pub(crate) text: String,
    layout: Layout,
    /// Line number in pkt-gen's source that prints rates, which differs by version.
    version: u32,
    clock_us: u64,
    random: Random,
    /// Sums of packets and time of the rates so far.
    pub(crate) packets: u64,
    pub(crate) time_us: u64,
}

impl Log {
    pub(crate) fn new(name: &str, layout: Layout, version: u32, command: &str) -> Log {
        Log {
            text: format!("{command}\n"),
            layout,
            version,
            clock_us: 405_515_953,
            random: Random::of(name),
            packets: 0,
            time_us: 0,
        }
    }

    fn write_stamped(&mut self, function: &str, text: &str) {
        let (seconds, fraction) = (self.clock_us / 1_000_000 % 1000, self.clock_us % 1_000_000);
        let _ = writeln!(self.text, "{seconds:03}.{fraction:06} {function} {text}");
    }

    /// Writes the `lines` lines before the first rate.
    pub(crate) fn head(&mut self, interface: &str, lines: usize) {
        let known = [
            format!("[1753] interface is {interface}"),
            "[1956] mapped 334980KB at 0x801600000".to_owned(),
            "[2042] Wait 4 secs for phy reset".to_owned(),
            "[2044] Ready...".to_owned(),
        ];
        let ranges = lines.saturating_sub(known.len());
        self.write_stamped("main", &known[0]);
        for number in 0..ranges {
            let range = format!("[294] range is 10.{number}.0.1:0 to 10.{number}.0.1:0");
            self.write_stamped("extract_ip_range", &range);
        }
        for line in &known[1..] {
            self.clock_us += 1_000_000;
            self.write_stamped("main", line);
        }
    }

    /// Writes a rate, after a little more than a second.
    pub(crate) fn rate(&mut self, pps: u64) {
        let us = 1_000_000 + self.random.below(3000);
        // A little more than a second contains a few more packets than the rate, so every rate has
        // a matching count.
        let packets = (pps * us + 500_000) / 1_000_000;
        self.clock_us += us;
        self.packets += packets;
        self.time_us += us;
        let version = self.version;
        let line = match self.layout {
            Layout::F1 => format!("[{version}] {pps} pps ({packets} pkts in {us} usec)"),
            Layout::F2 => format!(
                "[{version}] {pps} pps ({packets} pkts {} bps in {us} usec) 42.70 avg_batch 881 \
                 min_space",
                packets * 480
            ),
        };
        self.write_stamped("main_thread", &line);
    }

    /// Writes a line between the rates.
    pub(crate) fn noise(&mut self) {
        self.write_stamped("sender_body", "[1200] pending tx tail 192 head 452 on ring 1");
    }

    /// Writes a sender's totals, for frames of `bytes`.
    pub(crate) fn totals(&mut self, bytes: u64) {
        let Log { packets, time_us, .. } = *self;
        let seconds = time_us as f64 / 1e6;
        let pps = packets as f64 / seconds;
        let bits = pps * 8.0 * bytes as f64;
        self.text += &match self.layout {
            Layout::F1 => format!(
                "Sent {packets} packets, {bytes} bytes each, in {seconds:.2} seconds.\n\
                 Speed: {:.2} Mpps Bandwidth: {:.2} Gbps (raw {:.2} Gbps)\n",
                pps / 1e6,
                bits / 1e9,
                (bits + pps * 192.0) / 1e9
            ),
            Layout::F2 => format!(
                "Sent {packets} packets {} bytes {} events {bytes} bytes each in {seconds:.2} \
                 seconds.\nSpeed: {pps:.0} pps Bandwidth: {bits:.0} bps (raw {:.0} bps). Average \
                 batch: 253.70 pkts\n",
                packets * bytes,
                packets / 254,
                bits + pps * 192.0
            ),
        };
    }

    /// Writes the last line of a receiver that a signal ended.
    pub(crate) fn terminated(&mut self) {
        self.text += "Terminated\n";
    }
}
