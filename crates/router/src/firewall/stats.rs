//! Counters of the firewall, readable by other threads.
//!
//! Each worker has its own counters, written without locked instructions. Readers sum over
//! workers and may see part of a batch.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Packets and bytes that matched a rule. Packets that matched a state are not included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RuleStats {
    /// Packets.
    pub packets: u64,
    /// Bytes from the IP header on.
    pub bytes: u64,
}

/// Counters of all workers at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirewallStats {
    /// Counters of each rule, in the order of the ruleset.
    pub rules: Vec<RuleStats>,
    /// Counters of packets that no rule matched.
    pub policy: RuleStats,
    /// Current number of states, including expired ones that are not yet removed.
    pub states: u64,
    /// States created.
    pub created: u64,
    /// Expired states removed.
    pub expired: u64,
    /// Packets for which a state was looked up.
    pub searches: u64,
    /// Packets that matched a state.
    pub matches: u64,
    /// Packets whose state could not be created because the table was full, or their source had
    /// reached its limit.
    pub full: u64,
    /// Unanswered states that were removed to make room for others.
    pub evicted: u64,
    /// Memory of the states.
    pub memory_bytes: u64,
}

/// Counts of one batch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    pub(super) created: u64,
    pub(super) expired: u64,
    pub(super) searches: u64,
    pub(super) matches: u64,
    pub(super) full: u64,
    pub(super) evicted: u64,
}

/// Counters of one worker.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Counts {
    totals: [AtomicU64; 6],
    rules: Box<[[AtomicU64; 2]]>,
    /// Number of times that its worker has discarded its own states.
    pub(super) forgotten: AtomicU64,
}

impl Counts {
    /// Counters for this many rules, and for packets that match none.
    pub(super) fn new(rules: usize) -> Arc<Counts> {
        let rules = (0..=rules).map(|_| [const { AtomicU64::new(0) }; 2]).collect();
        let totals = [const { AtomicU64::new(0) }; 6];
        Arc::new(Counts { totals, rules, forgotten: AtomicU64::new(0) })
    }

    /// Counts packets for a rule. Only its worker may call this.
    fn rule(&self, rule: u32, stats: RuleStats) {
        if let Some([packets, bytes]) = self.rules.get(rule as usize) {
            add(packets, stats.packets);
            add(bytes, stats.bytes);
        }
    }

    /// Adds the counts of a batch. Only its worker may call this.
    #[inline]
    pub(super) fn add(&self, totals: Totals) {
        let Totals { created, expired, searches, matches, full, evicted } = totals;
        let all = [created, expired, searches, matches, full, evicted];
        for (counter, more) in self.totals.iter().zip(all) {
            add(counter, more);
        }
    }

    pub(super) fn sum(&self, stats: &mut FirewallStats) {
        let [created, expired, searches, matches, full, evicted] =
            [0, 1, 2, 3, 4, 5].map(|at| self.totals[at].load(Relaxed));
        stats.created += created;
        stats.expired += expired;
        stats.searches += searches;
        stats.matches += matches;
        stats.full += full;
        stats.evicted += evicted;
        let rules = stats.rules.iter_mut().chain([&mut stats.policy]);
        for (sum, [packets, bytes]) in rules.zip(&self.rules) {
            *sum += RuleStats { packets: packets.load(Relaxed), bytes: bytes.load(Relaxed) };
        }
    }
}

/// Counts for rules in a batch: consecutive packets mostly match the same rule, and are recorded
/// together.
pub(super) struct RuleTally<'a> {
    counts: &'a Counts,
    rule: u32,
    stats: RuleStats,
}

impl<'a> RuleTally<'a> {
    #[inline(always)]
    pub(super) fn new(counts: &'a Counts) -> RuleTally<'a> {
        RuleTally { counts, rule: 0, stats: RuleStats::default() }
    }

    /// Counts a packet.
    #[inline(always)]
    pub(super) fn count(&mut self, rule: u32, bytes: u16) {
        if rule != self.rule {
            self.write();
            self.rule = rule;
        }
        self.stats += RuleStats { packets: 1, bytes: bytes.into() };
    }

    fn write(&mut self) {
        self.counts.rule(self.rule, std::mem::take(&mut self.stats));
    }
}

impl Drop for RuleTally<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.write();
    }
}

/// Adds without a locked instruction: there is only one writer.
#[inline(always)]
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Relaxed) + more, Relaxed);
}

impl AddAssign for RuleStats {
    #[inline(always)]
    fn add_assign(&mut self, other: RuleStats) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}
