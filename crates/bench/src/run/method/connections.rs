//! How fast a stateful device sets connections up, how fast it removes them, and how many it
//! holds, over UDP alone (RFC 9693).
//!
//! Every trial begins with an empty table and sends counted packets, each of another flow: each
//! opens a connection. One counts when its packet has arrived and, where the device tells how
//! many states it holds, when its state is there.

use super::{Kind, Trials, Wish};
use crate::error::BenchError;
use fwdlab_model::design::SearchMethod;
use fwdlab_model::record::{Connections, MethodTrial, OwnTrial};
use fwdlab_model::settings::Settings;
use fwdlab_search::{Longest, Trial as DutQueries};

/// Interval in which it is looked whether all packets are sent, nanoseconds.
const LOOK_NS: u64 = 5_000_000;
/// Longest time in which a trial may open its connections, seconds: the first ones must not
/// have expired when the last one comes. ipfw has the shortest timeout of UDP that is known, 10 s
/// (`net.inet.ip.fw.dyn_udp_lifetime`).
const LONGEST_S: f64 = 8.0;
/// Share of the rate found at which a table is filled.
const GENTLE: f64 = 0.5;
/// The same of the forwarding rate, where no rate was searched for.
const VERY_GENTLE: f64 = 0.1;
/// Connections that a search for a table's capacity tries first, over the most.
const FIRST: f64 = 1.0 / 16.0;
/// Looks at a table that are kept of a trial.
const LOOKS: usize = 50;
/// How often a table is filled where others had the device's CPU meanwhile.
const SPOILED: usize = 10;

impl Trials<'_, '_> {
    pub(super) fn establishment(
        &mut self,
        method: &SearchMethod,
        own: &OwnTrial,
    ) -> Result<(), BenchError> {
        if !self.forget()? {
            return Ok(());
        }
        let (all, least) = (self.connections(), self.slowest());
        let limited = SearchMethod { min_load: method.min_load.or(least), ..method.clone() };
        let wish = move |_: &Trials<'_, '_>, asked| opening(asked, all, false);
        self.search_by(&limited, own, wish, Trials::open)
    }

    pub(super) fn tear_downs(&mut self, repeats: u32, own: &OwnTrial) -> Result<(), BenchError> {
        let (all, load) = (self.connections(), self.gentle(own));
        (self.record.min_load, self.record.max_load) = (load, load);
        for _ in 0..repeats {
            if self.is_full() || !self.forget()? {
                break;
            }
            let trial = self.take(filling(load, all), |trials, wish| {
                let mut trial = trials.open(wish)?;
                let torn_down_ns = trials.timed_forget()?;
                // What asking for it takes by itself.
                let empty_ns = trials.timed_forget()?;
                if let Some(opened) = &mut trial.connections {
                    (opened.torn_down_ns, opened.empty_ns) = (Some(torn_down_ns), Some(empty_ns));
                }
                Ok(trial)
            })?;
            self.report(trial.invalid, None);
        }
        Ok(())
    }

    pub(super) fn capacities(&mut self, repeats: u32, own: &OwnTrial) -> Result<(), BenchError> {
        let (most, load) = (self.connections(), self.gentle(own));
        (self.record.min_load, self.record.max_load) = (1, most);
        if !self.forget()? {
            return Ok(());
        }
        for _ in 0..repeats {
            let mut search = Longest::new((most as f64 * FIRST) as u64, most);
            while let Some(connections) = search.next() {
                let Some(held) = self.holds(connections, load)? else { return Ok(()) };
                search.record(connections, held);
            }
        }
        self.forget().map(drop)
    }

    /// Fills the table until what became of it was the device's doing; none if that never was
    /// so, or the run's ids of trials are used up.
    fn holds(&mut self, connections: u64, load: u64) -> Result<Option<bool>, BenchError> {
        for _ in 0..SPOILED {
            if self.is_full() {
                return Ok(None);
            }
            let held = self.take(filling(load, connections), Trials::open)?.is_whole();
            self.report(held.clone().err(), None);
            if let Ok(held) = held {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    /// One trial that opens connections, into an empty table.
    fn open(&mut self, wish: Wish) -> Result<MethodTrial, BenchError> {
        let connections = match wish.kind {
            Kind::Open(connections, _) => connections,
            _ => self.connections(),
        };
        if self.forget()? {
            let settings = &self.task.plan.variants[self.task.run.variants[0]].settings;
            self.parts.dut.await_room(self.parts.host, settings)?;
        }
        let states_before = self.states();
        let (trial, observed) = self.observe(wish)?;
        let opened = Connections {
            wanted: connections,
            states_before,
            states: self.states(),
            missed: observed.missed,
            meanwhile: thinned(&observed.states),
            ..Connections::default()
        };
        Ok(MethodTrial { connections: Some(opened), ..trial })
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.task.plan.variants[self.task.run.variants[0]].settings
    }

    /// Connections of a trial: a flow each.
    fn connections(&self) -> u64 {
        u64::from(self.settings().traffic.flows.count())
    }

    /// The least rate at which they are open before the first of them expires.
    fn slowest(&self) -> Option<u64> {
        Some((self.connections() as f64 / LONGEST_S).ceil() as u64)
    }

    /// A rate at which the device surely sets up every connection.
    fn gentle(&self, own: &OwnTrial) -> u64 {
        let rate = match self.throughput {
            Some(found) => GENTLE * found,
            None => VERY_GENTLE * own.forwarded_pps(),
        };
        (rate as u64).max(self.slowest().unwrap_or(1))
    }

    pub(super) fn states(&mut self) -> Option<u64> {
        let settings = &self.task.plan.variants[self.task.run.variants[0]].settings;
        self.parts.dut.connections(self.parts.host, settings)
    }

    /// Empties the device's table; false if that is not possible.
    pub(super) fn forget(&mut self) -> Result<bool, BenchError> {
        let settings = &self.task.plan.variants[self.task.run.variants[0]].settings;
        let how = self.parts.dut.forget_states(self.parts.host, settings)?;
        let said = how.as_deref().unwrap_or("not possible: no connections were opened");
        self.findings.facts.insert("connections removed by".into(), said.to_owned());
        Ok(how.is_some())
    }

    /// The same, and how long it took, nanoseconds.
    fn timed_forget(&mut self) -> Result<u64, BenchError> {
        let began_ns = self.parts.clock.now_ns();
        self.forget()?;
        Ok(self.parts.clock.now_ns() - began_ns)
    }
}

/// The request of a trial that opens connections; with `is_watched` the table is looked at during
/// the trial.
fn opening(asked: DutQueries, connections: u64, is_watched: bool) -> Wish {
    let kind = Kind::Open(connections, is_watched);
    Wish { asked, kind, warmup_ns: 0, slice_ns: LOOK_NS }
}

/// The request of a trial that fills the table: its length follows from rate and number.
fn filling(load: u64, connections: u64) -> Wish {
    let duration_ns = (connections as f64 * 1e9 / load.max(1) as f64) as u64;
    opening(DutQueries { load, duration_ns: duration_ns.max(LOOK_NS) }, connections, true)
}

/// Some of many looks at a table, the last of them among these.
fn thinned(looks: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let step = looks.len().div_ceil(LOOKS).max(1);
    let mut kept: Vec<(u64, u64)> = looks.iter().rev().step_by(step).copied().collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_looks_are_kept_and_the_last_one() {
        let looks: Vec<(u64, u64)> = (0..1234).map(|n| (n, 10 * n)).collect();
        let kept = thinned(&looks);
        assert!(kept.len() <= LOOKS && kept.is_sorted(), "{kept:?}");
        assert_eq!(kept.last(), Some(&(1233, 12_330)));
        assert_eq!(thinned(&looks[..7]), &looks[..7]);
        assert!(thinned(&[]).is_empty());
    }
}
