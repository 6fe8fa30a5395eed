//! Other rules while packets pass: states and what workers know of them stay.

use super::{Filter, Flows, Own, RuleError, Ruleset, SharedFirewall, StateConfig, States};
use std::any::Any;
use std::sync::Arc;

/// What a worker has of the states.
struct Given {
    states: Arc<States>,
    own: Option<Own>,
    flows: Option<Flows>,
}

impl SharedFirewall {
    /// A firewall with other rules. States and the first fragments of packets under way are
    /// those of this one, unless `config` says that they are kept otherwise: connections that
    /// have a state keep it, whatever the rules say now, as with pf. Counters begin anew.
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
        // Where there are states, they count, if no rule makes any more.
        SharedFirewall::with(ruleset, config, states, fragments, self.keeps)
    }
}

impl Filter {
    pub(super) fn give(&mut self) -> Option<Box<dyn Any + Send>> {
        let states = self.shared.states.clone();
        Some(Box::new(Given { states, own: self.own.take(), flows: self.flows.take() }))
    }

    pub(super) fn take(&mut self, before: Box<dyn Any + Send>) {
        let Ok(given) = before.downcast::<Given>() else { return };
        let Given { states, own, flows } = *given;
        if !Arc::ptr_eq(&states, &self.shared.states) {
            return;
        }
        // Its own tables are empty ones, which count for nothing any more.
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
