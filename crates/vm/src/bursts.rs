//! Bursts of packets and all counts of them, whichever program sends them.
//!
//! A [`CountSnapshot`] contains all counts at one moment, a [`Period`] the differences between two moments,
//! and [`found`] turns bursts into the cost of a packet.

use crate::caches::{self, Blocks, BurstMisses, CacheCosts, CacheFile, FileSnapshot};
use crate::calls::{BurstPaths, CallFile, Calls, Returns, Tree, TreeCounts, by_path};
use crate::costs::{self, Costs, costs};
use crate::counts::{Counts, Executed};
use crate::error::VmError;
use crate::guest::RunningGuest;
use crate::symbols::Symbols;
use std::time::{Duration, Instant};

/// Minimum time for which the idle guest is counted: its rarest timers expire once a second.
const IDLE_MIN: Duration = Duration::from_secs(1);

/// All counts at one moment.
pub struct CountSnapshot {
    counts: Counts,
    tree: Option<Tree>,
    seen: Option<FileSnapshot>,
}

/// Counts between two moments.
#[derive(Clone, Debug, Default)]
pub struct Period {
    executed: Vec<Executed>,
    nodes: TreeCounts,
    returns: Returns,
    misses: Blocks,
}

/// A burst.
#[derive(Clone, Debug, Default)]
pub struct Burst {
    /// Forwarded packets.
    pub packets: u64,
    /// Counts from the first to the last packet.
    pub work: Period,
    /// Counts of the idle guest.
    pub idle: Period,
    /// Time for which the idle guest was counted.
    pub idle_time: Duration,
    /// Length of the burst as a multiple of the idle time.
    pub scale: f64,
}

/// Cost of a packet.
#[derive(Clone, Debug)]
pub struct PacketCost {
    /// Instructions by function.
    pub costs: Costs,
    /// Instructions by call stack; `None` if calls are not followed.
    pub calls: Option<Calls>,
    /// Misses of the cache model; `None` without a model.
    pub caches: Option<CacheCosts>,
}

/// Starts the optional counts in addition to instructions. Send packets before the first look:
/// stacks are known from the next batch on, and caches start empty.
///
/// # Errors
/// If no plugin does it.
pub fn begin(running: &RunningGuest) -> Result<(), VmError> {
    running.calls.as_ref().map(CallFile::begin).transpose()?;
    running.caches.as_ref().map(CacheFile::begin).transpose().map(drop)
}

/// Stops the counts that slow the guest down, until [`begin`].
///
/// # Errors
/// If the file can't be written.
fn end(running: &RunningGuest) -> Result<(), VmError> {
    running.caches.as_ref().map(CacheFile::end).transpose().map(drop)
}

impl CountSnapshot {
    /// Reads all current counts.
    ///
    /// # Errors
    /// If the guest has no plugin that counts, or a file can't be read.
    pub fn at(running: &RunningGuest) -> Result<CountSnapshot, VmError> {
        let counts = running.counts.as_ref().ok_or_else(|| {
            VmError::Counts("the guest was started without a plugin that counts".into())
        })?;
        let seen = running.caches.as_ref().map(CacheFile::seen).transpose()?;
        let (counts, tree) = match &running.calls {
            None => (counts.counts()?, None),
            Some(calls) => calls.frozen(|| counts.counts()).map(|(all, tree)| (all, Some(tree)))?,
        };
        Ok(CountSnapshot { counts, tree, seen })
    }

    /// Returns the counts since `before`.
    ///
    /// # Errors
    /// If the counts are incomplete.
    pub fn since(&self, before: &CountSnapshot) -> Result<Period, VmError> {
        let mut period =
            Period { executed: self.counts.since(&before.counts)?, ..Period::default() };
        if let (Some(now), Some(then)) = (&self.tree, &before.tree) {
            (period.nodes, period.returns) = (now.grown_since(then)?, now.returns_since(then));
        }
        if let (Some(now), Some(then)) = (&self.seen, &before.seen) {
            period.misses = now.since(then)?;
        }
        Ok(period)
    }
}

/// Counts the idle guest for as long as the longest burst took, and at least a second, as the
/// background of all bursts; each comes with its duration. Stops counts that slow the guest down.
/// Returns the bursts with the last look.
///
/// # Errors
/// If the counts can't be read.
pub fn with_idle(
    running: &RunningGuest,
    bursts: Vec<(Burst, Duration)>,
) -> Result<(Vec<Burst>, CountSnapshot), VmError> {
    let longest = bursts.iter().map(|(_, took)| *took).max().unwrap_or_default();
    let (before, start) = (CountSnapshot::at(running)?, Instant::now());
    std::thread::sleep(longest.max(IDLE_MIN));
    let last = CountSnapshot::at(running)?;
    let idle_time = start.elapsed();
    end(running)?;
    let idle = last.since(&before)?;
    let bursts = bursts.into_iter().map(|(burst, took)| {
        let scale = took.as_secs_f64() / idle_time.as_secs_f64();
        Burst { idle: idle.clone(), idle_time, scale, ..burst }
    });
    Ok((bursts.collect(), last))
}

/// Returns the cost of a packet from `bursts`; `last` is the look after the last one.
///
/// # Errors
/// If caches should have been modelled and were not.
pub fn found(
    running: &RunningGuest,
    bursts: Vec<Burst>,
    last: &CountSnapshot,
    symbols: &Symbols,
) -> Result<PacketCost, VmError> {
    let flat = |burst: &Burst| costs::Burst {
        packets: burst.packets,
        executed: burst.work.executed.clone(),
        idle: burst.idle.executed.clone(),
        idle_time: burst.idle_time,
        scale: burst.scale,
    };
    let flat: Vec<costs::Burst> = bursts.iter().map(flat).collect();
    let costs = costs(&flat, symbols);
    let calls = last.tree.as_ref().map(|tree| {
        let paths_in = |period: &Period| tree.paths(&period.nodes, symbols);
        let paths = bursts.iter().map(|burst| BurstPaths {
            executed: paths_in(&burst.work),
            idle: paths_in(&burst.idle),
        });
        let pairs: Vec<_> = flat.into_iter().zip(paths).collect();
        let returns = bursts.iter().map(|burst| burst.work.returns);
        by_path(&costs, &pairs, symbols, returns.fold(Returns::default(), Returns::and))
    });
    let misses = bursts.into_iter().map(|burst| BurstMisses {
        packets: burst.packets,
        seen: burst.work.misses,
        idle: burst.idle.misses,
        scale: burst.scale,
    });
    let caches = running
        .caches
        .as_ref()
        .map(|file| caches::by_function(file.model, &costs, &misses.collect::<Vec<_>>(), symbols));
    let caches = caches.transpose()?;
    Ok(PacketCost { costs, calls, caches })
}
