//! Connection setup rate, teardown rate and table capacity of a stateful device, over UDP alone
//! (RFC 9693).
//!
//! Every trial begins with an empty table and sends counted packets, each of another flow: each
//! opens a connection. A connection counts if its packet has arrived and, where the device reports
//! its number of states, if its state exists.

use super::{Kind, Trials, Wish};
use crate::error::BenchError;
use fwdlab_model::design::SearchMethod;
use fwdlab_model::record::{Connections, MethodTrial, OwnTrial};
use fwdlab_model::settings::Settings;
use fwdlab_search::{Longest, Trial as SearchTrial};

/// Interval for checking whether all packets are sent, nanoseconds.
const LOOK_NS: u64 = 5_000_000;
/// Maximum time for a trial to open its connections, seconds: the first ones must not have expired
/// when the last one arrives. ipfw has the shortest known UDP timeout, 10 s
/// (`net.inet.ip.fw.dyn_udp_lifetime`).
const LONGEST_S: f64 = 8.0;
/// Share of the rate found at which a table is filled.
const GENTLE: f64 = 0.5;
/// Share of the forwarding rate at which a table is filled, if no rate was searched for.
const VERY_GENTLE: f64 = 0.1;
/// Share of the maximum number of connections at which a capacity search starts.
const FIRST: f64 = 1.0 / 16.0;
/// Number of table readings kept per trial.
const LOOKS: usize = 50;
/// Maximum number of attempts to fill a table while other work had the device's CPU.
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
        let wish = move |_: &Trials<'_, '_>, request| opening(request, all, false);
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
                // The duration of the command itself, on an empty table.
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

    /// Fills the table until the result is due to the device; `None` if every attempt was spoiled,
    /// or the trial ids of the run are used up.
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

    /// Runs one trial that opens connections, into an empty table.
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

    /// Number of connections of a trial: one per flow.
    fn connections(&self) -> u64 {
        u64::from(self.settings().traffic.flows.count())
    }

    /// Minimum rate at which all connections are open before the first of them expires.
    fn slowest(&self) -> Option<u64> {
        Some((self.connections() as f64 / LONGEST_S).ceil() as u64)
    }

    /// Returns a rate at which the device surely sets up every connection.
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

    /// Empties the device's table; returns false if that is not possible.
    pub(super) fn forget(&mut self) -> Result<bool, BenchError> {
        let settings = &self.task.plan.variants[self.task.run.variants[0]].settings;
        let how = self.parts.dut.forget_states(self.parts.host, settings)?;
        let message = how.as_deref().unwrap_or("not possible: no connections were opened");
        self.findings.facts.insert("connections removed by".into(), message.to_owned());
        Ok(how.is_some())
    }

    /// Empties the device's table and returns the duration, nanoseconds.
    fn timed_forget(&mut self) -> Result<u64, BenchError> {
        let start_ns = self.parts.clock.now_ns();
        self.forget()?;
        Ok(self.parts.clock.now_ns() - start_ns)
    }
}

/// Request for a trial that opens connections; with `is_watched` the table is read during the
/// trial.
fn opening(request: SearchTrial, connections: u64, is_watched: bool) -> Wish {
    let kind = Kind::Open(connections, is_watched);
    Wish { asked: request, kind, warmup_ns: 0, slice_ns: LOOK_NS }
}

/// Request for a trial that fills the table: its length follows from rate and number.
fn filling(load: u64, connections: u64) -> Wish {
    let duration_ns = (connections as f64 * 1e9 / load.max(1) as f64) as u64;
    opening(SearchTrial { load, duration_ns: duration_ns.max(LOOK_NS) }, connections, true)
}

/// Thins out readings of a table, keeping the last one.
fn thinned(readings: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let step = readings.len().div_ceil(LOOKS).max(1);
    let mut kept: Vec<(u64, u64)> = readings.iter().rev().step_by(step).copied().collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_readings_include_the_last_one() {
        let readings: Vec<(u64, u64)> = (0..1234).map(|n| (n, 10 * n)).collect();
        let kept = thinned(&readings);
        assert!(kept.len() <= LOOKS && kept.is_sorted(), "{kept:?}");
        assert_eq!(kept.last(), Some(&(1233, 12_330)));
        assert_eq!(thinned(&readings[..7]), &readings[..7]);
        assert!(thinned(&[]).is_empty());
    }
}
