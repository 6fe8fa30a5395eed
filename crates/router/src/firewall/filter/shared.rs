//! Constructors and counters of the firewall.

use super::super::fragments::Fragments;
use super::super::rule::{Direction, RuleError, Ruleset};
use super::super::rules::{Rules, Tables};
use super::super::states::{Queries, StateConfig, States};
use super::super::stats::{Counts, FirewallStats, RuleStats};
use super::{BatchState, Filter, NO_RULE, SharedFirewall};
use crate::path::HeldBack;
use fwdlab_netio::frame::BATCH;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};

impl SharedFirewall {
    /// Creates a firewall with these rules.
    ///
    /// # Errors
    /// If a rule contradicts itself.
    pub fn new(ruleset: &Ruleset, config: &StateConfig) -> Result<Arc<SharedFirewall>, RuleError> {
        let states = Arc::new(States::new(config));
        SharedFirewall::with(ruleset, config, states, Arc::default(), false)
    }

    pub(super) fn with(
        ruleset: &Ruleset,
        config: &StateConfig,
        states: Arc<States>,
        fragments: Arc<Mutex<Fragments>>,
        has_kept: bool,
    ) -> Result<Arc<SharedFirewall>, RuleError> {
        let rules_in = Rules::of(ruleset, Direction::In)?;
        let rules_out = Rules::of(ruleset, Direction::Out)?;
        let rules_local = Rules::of(ruleset, Direction::Local)?;
        let keep = has_kept || rules_in.keep_state() || rules_out.keep_state();
        let keeps = states.keep() && keep;
        Ok(Arc::new(SharedFirewall {
            rules_in,
            rules_out,
            rules_local,
            rules: ruleset.rules.len(),
            tables: Tables::of(ruleset),
            states,
            keeps,
            when_full: config.when_full,
            fragments,
            config: config.clone(),
            workers: Mutex::default(),
            forgotten: AtomicU64::new(0),
        }))
    }

    /// Creates the part of one more worker.
    pub fn filter(self: &Arc<SharedFirewall>) -> Filter {
        let counts = Counts::new(self.rules);
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counts));
        let (inet, inet6) = (Queries::new(), Queries::new());
        let held_back = HeldBack::default();
        let (known, steady, rules) = (0, 0, [NO_RULE; BATCH]);
        let scratch = BatchState { inet, inet6, known, steady, held_back, rules, was_full: false };
        let flows = self.keeps.then(|| self.states.flows()).flatten();
        let forgotten = self.forgotten.load(Acquire);
        counts.forgotten.store(forgotten, Release);
        Filter {
            shared: Arc::clone(self),
            own: self.states.own(),
            flows,
            scratch,
            counts,
            forgotten,
        }
    }

    /// Returns the counters of all workers so far. Workers may continue while it runs.
    pub fn stats(&self) -> FirewallStats {
        let rules = vec![RuleStats::default(); self.rules];
        let mut stats = FirewallStats { rules, ..FirewallStats::default() };
        for counts in self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            counts.sum(&mut stats);
        }
        (stats.states, stats.memory_bytes) = self.states.size();
        stats
    }
}
