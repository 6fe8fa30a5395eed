//! Replaces the rules while packets pass: states and the workers' caches of them stay.

use super::{Filter, Flows, RuleError, Ruleset, SharedFirewall, StateConfig, States, WorkerTables};
use std::any::Any;
use std::sync::Arc;

/// A worker's part of the states.
struct WorkerStates {
    states: Arc<States>,
    own: Option<WorkerTables>,
    flows: Option<Flows>,
}

impl SharedFirewall {
    /// Creates a firewall with other rules. It keeps the states and the first fragments of packets
    /// in transit, unless `config` changes how states are stored: connections that have a state
    /// keep it, whatever the new rules, as with pf. Counters restart from zero.
    ///
    /// # Errors
    /// As [`SharedFirewall::new`].
    pub fn with_other_rules(
        &self,
        ruleset: &Ruleset,
        config: &StateConfig,
    ) -> Result<Arc<SharedFirewall>, RuleError> {
        if *config != self.config {
            return SharedFirewall::new(ruleset, config);
        }
        let (states, fragments) = (self.states.clone(), self.fragments.clone());
        // Existing states stay valid even if no rule creates new ones.
        SharedFirewall::with(ruleset, config, states, fragments, self.keeps)
    }
}

impl Filter {
    pub(super) fn give(&mut self) -> Option<Box<dyn Any + Send>> {
        let states = self.shared.states.clone();
        Some(Box::new(WorkerStates { states, own: self.own.take(), flows: self.flows.take() }))
    }

    pub(super) fn take(&mut self, before: Box<dyn Any + Send>) {
        let Ok(worker_states) = before.downcast::<WorkerStates>() else { return };
        let WorkerStates { states, own, flows } = *worker_states;
        if !Arc::ptr_eq(&states, &self.shared.states) {
            return;
        }
        // The new worker's own tables are empty, and no longer count.
        if let (Some(empty), true) = (&self.own, own.is_some()) {
            states.give_up(empty);
        }
        if own.is_some() {
            self.own = own;
        }
        if self.flows.is_some() && flows.is_some() {
            self.flows = flows;
        }
    }
}
