//! Receiving by an XDP program that checks, counts and drops.

use super::array_of;
use super::layout::{Mix, ReceiverState};
use super::mapped::Mapped;
use crate::sender::{Received, Receiver, Watch};
use crate::{NetNs, NetioError, affinity};
use aya::programs::{TestRun, TestRunOptions, Xdp};
use aya::{Ebpf, EbpfLoader, include_bytes_aligned};
use fwdlab_packet::Family;
use fwdlab_packet::arrivals::delays::{BUCKETS, Delays};
use fwdlab_packet::arrivals::flows::Entry;
use fwdlab_packet::arrivals::flows::{Line, summary};
use fwdlab_packet::arrivals::order::{ENTRIES_MAX, shares};
use fwdlab_packet::arrivals::{FlowSummary, Pattern};
use std::net::IpAddr;
use std::time::Duration;

static OBJECT: &[u8] = include_bytes_aligned!("../../bpf/receiver.bpf.o");

/// Attachment point of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpMode {
    /// In the driver.
    Driver,
    /// In the stack, after the socket buffer is allocated: works with any driver.
    Generic,
}

impl From<XdpMode> for aya::programs::XdpMode {
    fn from(mode: XdpMode) -> aya::programs::XdpMode {
        match mode {
            XdpMode::Driver => aya::programs::XdpMode::Driver,
            XdpMode::Generic => aya::programs::XdpMode::Skb,
        }
    }
}

/// A receiver attached to an interface; detached on drop.
#[derive(Debug)]
pub struct XdpReceiver {
    state: Mapped<ReceiverState>,
    flows: Option<FlowMap>,
    /// Packets by bucket, one CPU after the other: of delays, and of differences between them;
    /// `None` without sending times.
    delays: Option<[Mapped<u64>; 2]>,
    program: &'static str,
    /// Expected packets; `None` if only stamps are read.
    pattern: Option<Pattern>,
    // Holds program and link; dropping it detaches.
    object: Ebpf,
}

/// The map of flows.
#[derive(Debug)]
struct FlowMap {
    entries: Mapped<Entry>,
    flows: u32,
    senders: u32,
    shares: u32,
    /// False if only the stamp is read.
    sequences: bool,
}

impl XdpReceiver {
    /// Attaches the counting program to `interface`.
    ///
    /// # Errors
    /// If the kernel refuses program, map or hook.
    pub fn new(
        namespace: &NetNs,
        interface: &str,
        watch: &Watch,
        mode: XdpMode,
    ) -> Result<XdpReceiver, NetioError> {
        let (interface, watch) = (interface.to_owned(), watch.clone());
        namespace.run(move || {
            let mut receiver = XdpReceiver::detached(&watch)?;
            receiver
                .program()?
                .attach(&interface, mode.into())
                .map_err(|e| NetioError::bpf("attaching the BPF receiver", &e))?;
            Ok(receiver)
        })
    }

    /// Creates a receiver that is not attached: it sees only the frames passed to
    /// [`XdpReceiver::show`].
    ///
    /// # Errors
    /// If the kernel refuses program or map.
    pub fn detached(watch: &Watch) -> Result<XdpReceiver, NetioError> {
        let cpus = affinity::possible_cpus();
        let settings = Settings::of(watch);
        let entries = settings.entries();
        let newest = if settings.shares > 0 { settings.flows * settings.senders } else { 0 };
        let buckets = if watch.has_delays() { cpus * BUCKETS } else { 0 };
        let timed = watch.has_delays() && entries > 0;
        let last = if timed { settings.flows * settings.senders } else { 0 };
        let object = EbpfLoader::new()
            .override_global("RUN_ID", &settings.run_id, true)
            .override_global("FAMILY", &settings.family, true)
            .override_global("LENGTH", &settings.length, true)
            .override_global("WORDS", &settings.words[..], true)
            .override_global("MASKS", &settings.masks[..], true)
            .override_global("PREFIXES", &settings.prefixes[..], true)
            .override_global("IP_SUM", &settings.sums.0, true)
            .override_global("UDP_SUM", &settings.sums.1, true)
            .override_global("SOURCES", &settings.ranges.0, true)
            .override_global("DESTINATIONS", &settings.ranges.1, true)
            .override_global("SOURCE_BASE", &settings.bases.0, true)
            .override_global("DESTINATION_BASE", &settings.bases.1, true)
            .override_global("IS_TRANSLATED", &u32::from(settings.translated.is_some()), true)
            .override_global("TRANSLATED", &settings.translated.unwrap_or_default()[..], true)
            .override_global("SOURCE_PORT", &settings.source_port, true)
            .override_global("SENDERS", &settings.senders, true)
            .override_global("FLOWS", &settings.flows.max(1), true)
            .override_global("SAME_CLOCK", &u32::from(settings.same_clock), true)
            .override_global("FOLLOWED", &u32::from(entries > 0), true)
            .override_global("SAMPLED", &u32::from(settings.sampled), true)
            .override_global("SHARES", &settings.shares, true)
            .override_global("MIX", &settings.mix.count, true)
            .override_global("MIX_PASS", &settings.mix.pass, true)
            .override_global("MIX_LENGTHS", &settings.mix.lengths[..], true)
            .map_max_entries("receiver", cpus as u32)
            .map_max_entries("flows", entries.max(1))
            .map_max_entries("newest", newest.max(1))
            .map_max_entries("delays", buckets.max(1) as u32)
            .map_max_entries("differences", buckets.max(1) as u32)
            .map_max_entries("last", last.max(1))
            .map_max_entries("mappings", settings.mappings().max(1))
            .load(OBJECT)
            .map_err(|e| NetioError::bpf("loading the BPF receiver", &e))?;
        let state = Mapped::new(array_of(&object, "receiver")?.fd(), cpus)?;
        let flows = match entries {
            0 => None,
            n => Some(FlowMap {
                entries: Mapped::new(array_of(&object, "flows")?.fd(), n as usize)?,
                flows: settings.flows,
                senders: settings.senders,
                shares: settings.shares,
                sequences: settings.pattern.is_some(),
            }),
        };
        let delays = match buckets {
            0 => None,
            n => Some([
                Mapped::new(array_of(&object, "delays")?.fd(), n)?,
                Mapped::new(array_of(&object, "differences")?.fd(), n)?,
            ]),
        };
        let (program, pattern) = (settings.program(), settings.pattern);
        let mut receiver = XdpReceiver { state, flows, delays, program, pattern, object };
        let loaded = receiver.program()?.load();
        loaded.map_err(|e| NetioError::bpf("loading the BPF receiver", &e))?;
        Ok(receiver)
    }

    /// Runs the program `times` times on a frame (`BPF_PROG_TEST_RUN`); returns the mean duration
    /// of a call as measured by the kernel.
    ///
    /// # Errors
    /// If the kernel refuses, e.g. a frame of fewer than 14 bytes.
    pub fn show(&mut self, frame: &[u8], times: u32) -> Result<Duration, NetioError> {
        let mut options = TestRunOptions::new();
        options.data_in = Some(frame);
        options.repeat = times;
        let result = self.program()?.test_run(options);
        let result = result.map_err(|e| NetioError::bpf("showing the BPF receiver a frame", &e))?;
        Ok(result.duration)
    }

    /// Merges the times of all CPUs in a map of buckets; `ends` returns their sum, the smallest
    /// plus 1, and the greatest on a CPU.
    fn times(
        &self,
        counts: &Mapped<u64>,
        ends: impl Fn(&ReceiverState) -> (u64, u64, u64),
    ) -> Delays {
        let mut all = Delays::default();
        for cpu in 0..self.state.len() {
            let (sum_ns, least, most) = ends(&self.state.read(cpu));
            let Some(least) = least.checked_sub(1) else { continue };
            let counts_of_cpu: Vec<u64> =
                (cpu * BUCKETS..(cpu + 1) * BUCKETS).map(|at| counts.read(at)).collect();
            all.merge(&Delays::of_parts(&counts_of_cpu, sum_ns, least as u32, most as u32));
        }
        all
    }

    fn program(&mut self) -> Result<&mut Xdp, NetioError> {
        self.object
            .program_mut(self.program)
            .ok_or(NetioError::Bpf { what: "reading a BPF object", why: "no program".into() })?
            .try_into()
            .map_err(|e: aya::programs::ProgramError| NetioError::bpf("BPF receiver", &e))
    }
}

/// The program's constants.
#[derive(Default)]
struct Settings {
    pattern: Option<Pattern>,
    run_id: u32,
    family: u32,
    length: u32,
    words: [u64; 10],
    masks: [u64; 10],
    prefixes: [u64; 4],
    sums: (u32, u32),
    ranges: (u32, u32),
    bases: (u32, u32),
    /// In memory byte order, IPv4 in the last word; `None` if packets keep their source addresses.
    translated: Option<[u32; 4]>,
    source_port: u32,
    senders: u32,
    flows: u32,
    shares: u32,
    times: bool,
    same_clock: bool,
    sampled: bool,
    mix: Mix,
}

impl Settings {
    fn of(watch: &Watch) -> Settings {
        let expected = match watch {
            Watch::Packets(expected) => expected,
            Watch::Stamps { run_id, flows } => {
                let (run_id, flows) = (*run_id, *flows);
                return Settings { run_id, flows, senders: 1, family: 4, ..Settings::default() };
            }
        };
        let pattern = Pattern::new(expected);
        let template = &expected.template;
        let flows = template.flows();
        let mut prefixes = [0; 4];
        if template.family() == Family::Inet6 {
            for (side, at) in [22, 38].into_iter().enumerate() {
                let bytes = &template.bytes()[at..at + 12];
                let mut word = [0; 16];
                word[..12].copy_from_slice(bytes);
                let word = u128::from_le_bytes(word);
                prefixes[2 * side] = word as u64;
                prefixes[2 * side + 1] = (word >> 64) as u64;
            }
        }
        Settings {
            run_id: template.run_id(),
            family: if template.family() == Family::Inet { 4 } else { 6 },
            length: pattern.length as u32,
            words: pattern.words,
            masks: pattern.masks,
            prefixes,
            sums: (pattern.ip_sum, pattern.udp_sum),
            ranges: (flows.sources, flows.destinations),
            bases: template.bases(),
            translated: expected.translated.map(words),
            source_port: u32::from(u16::from_ne_bytes([
                template.bytes()[template.udp_offset()],
                template.bytes()[template.udp_offset() + 1],
            ])),
            senders: u32::from(expected.senders),
            flows: flows.count(),
            shares: shares(flows.count()),
            times: expected.timestamps,
            same_clock: expected.same_clock,
            sampled: expected.sampled,
            mix: Mix::of(template),
            pattern: Some(pattern),
        }
    }

    /// Returns the program that counts such packets; it contains only the checks that it needs.
    fn program(&self) -> &'static str {
        match (&self.pattern, self.family, self.times) {
            (None, ..) => "receive_stamps",
            (Some(_), 4, false) => "receive_inet",
            (Some(_), 4, true) => "receive_inet_timed",
            (Some(_), _, false) => "receive_inet6",
            (Some(_), _, true) => "receive_inet6_timed",
        }
    }

    /// Entries of the map of flows; 0 if there would be too many.
    fn entries(&self) -> u32 {
        let entries = (u64::from(self.flows) * u64::from(self.senders)) << self.shares;
        u32::try_from(entries).ok().filter(|_| entries <= ENTRIES_MAX).unwrap_or(0)
    }

    /// Entries of the map of mappings; 0 without translation, or for too many flows.
    fn mappings(&self) -> u32 {
        let is_followed = self.translated.is_some() && u64::from(self.flows) <= ENTRIES_MAX;
        if is_followed { self.flows } else { 0 }
    }
}

/// Returns an address as words in memory byte order; IPv4 is the last one.
fn words(address: IpAddr) -> [u32; 4] {
    let mut bytes = [0; 16];
    match address {
        IpAddr::V4(address) => bytes[12..].copy_from_slice(&address.octets()),
        IpAddr::V6(address) => bytes = address.octets(),
    }
    std::array::from_fn(|n| u32::from_ne_bytes(std::array::from_fn(|byte| bytes[4 * n + byte])))
}

impl Receiver for XdpReceiver {
    fn received(&self) -> Received {
        let mut sum = Received::default();
        for cpu in 0..self.state.len() {
            sum.add(&self.state.read(cpu).into());
        }
        // Values that follow from other counters are not counted per packet.
        if let Some(pattern) = &self.pattern {
            if !pattern.expected().template.size().is_mix() {
                sum.bytes = sum.packets.map(|packets| pattern.length as u64 * packets);
            }
            if !pattern.expected().sampled {
                sum.checked = sum.ours();
            }
            if !pattern.has_payload() {
                sum.in_full = sum.checked;
            }
        }
        sum
    }

    fn flows(&self) -> Option<FlowSummary> {
        let FlowMap { entries, flows, senders, shares, sequences } = self.flows.as_ref()?;
        let lines = (0..senders * flows).map(|number| {
            let range = number << shares..(number + 1) << shares;
            let entries: Vec<Entry> = range.map(|at| entries.read(at as usize)).collect();
            let (sender, flow) = (number / flows, number % flows);
            Line::of(sender as usize, flow, flow, &entries, *shares)
        });
        let lengths = vec![*flows; *senders as usize];
        Some(summary(lines, &lengths, *sequences))
    }

    fn delays(&self) -> Option<Delays> {
        let [delays, differences] = self.delays.as_ref()?;
        let of_delays = |s: &ReceiverState| (s.delay_sum, s.delay_min, s.delay_max);
        let between = |s: &ReceiverState| (s.difference_sum, s.difference_min, s.difference_max);
        Some(self.times(delays, of_delays).with_differences(self.times(differences, between)))
    }

    fn dropped(&self) -> u64 {
        0 // the program sees every packet that the driver polls
    }
}
