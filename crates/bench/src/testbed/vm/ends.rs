//! Both ends of a machine's links: this process. Packets flow while the trial waits, so that
//! nothing else runs at the same time.

use super::lockstep::Pump;
use super::machines::RunningMachine;
use crate::cpu::Placement;
use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::generator::Outcome;
use crate::testbed::cpu_times::CpuTimes;
use crate::testbed::rig::awaited;
use crate::testbed::{Armed, Endpoints, TrafficRequest};
use crate::trial::{Clock, Evidence, OpeningConditions, Snapshot, SystemClock, Traffic};
use fwdlab_model::record::{Arrivals, Executed};
use fwdlab_model::settings::Settings;
use fwdlab_packet::Phase;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// The ends.
pub(super) struct VmEnds<'a> {
    pub(super) up: &'a RunningMachine,
    pub(super) placement: Placement,
    /// The packets of the run, once it is armed.
    pump: RefCell<Option<Pump<'a>>>,
    /// Offset of the trial's clock from the system's, in nanoseconds.
    ahead: Cell<i64>,
}

impl<'a> VmEnds<'a> {
    pub(super) fn new(up: &'a RunningMachine, placement: Placement) -> VmEnds<'a> {
        VmEnds { up, placement, pump: RefCell::new(None), ahead: Cell::new(0) }
    }

    fn with<T>(&self, query: impl FnOnce(&mut Pump<'a>) -> T) -> Option<T> {
        self.pump.borrow_mut().as_mut().map(query)
    }

    /// Sends a batch if packets flow, and lets its time pass; returns false if no packets flow.
    fn batch(&self) -> bool {
        let start_ns = self.now_ns();
        let passed_ns = self.with(|pump| pump.flows().then(|| pump.batch())).flatten();
        if let Some(passed_ns) = passed_ns {
            let real_ns = self.now_ns() - start_ns;
            self.ahead.set(self.ahead.get() + passed_ns as i64 - real_ns as i64);
        }
        passed_ns.is_some()
    }
}

/// Waiting is sending: one thread does both. While packets flow the clock advances by packets, so
/// that trials are equally long on every machine, however busy.
impl Clock for VmEnds<'_> {
    fn now_ns(&self) -> u64 {
        SystemClock.now_ns().saturating_add_signed(self.ahead.get())
    }

    fn sleep_until(&self, deadline_ns: u64) -> u64 {
        while self.now_ns() < deadline_ns && self.batch() {}
        SystemClock.sleep_until(deadline_ns.saturating_add_signed(-self.ahead.get()));
        self.now_ns()
    }

    fn wall_ns(&self) -> i64 {
        SystemClock.wall_ns()
    }
}

impl Endpoints for VmEnds<'_> {
    fn arm<'a>(
        &'a self,
        request: &TrafficRequest<'_>,
        _findings: &mut Findings,
    ) -> Result<(Box<dyn Armed + 'a>, CpuTimes), BenchError> {
        *self.pump.borrow_mut() = Some(Pump::new(self.up, request)?);
        Ok((Box::new(VmTraffic(self)), CpuTimes::none()))
    }

    fn awaited(&self, settings: &Settings) -> OpeningConditions {
        awaited(settings, 1)
    }

    fn facts(&self, _settings: &Settings) -> BTreeMap<String, String> {
        BTreeMap::from([
            ("kernel".into(), self.up.release.clone()),
            ("executed by".into(), self.up.executed_by().to_owned()),
            ("sender".into(), "lockstep over Unix sockets".to_owned()),
            ("dut CPUs".into(), format!("{:?}", self.placement.dut)),
        ])
    }
}

/// The armed ends.
struct VmTraffic<'a, 'u>(&'a VmEnds<'u>);

impl Armed for VmTraffic<'_, '_> {
    fn traffic(&mut self) -> &mut dyn Traffic {
        self
    }

    fn end(self: Box<Self>) -> Result<Outcome, BenchError> {
        Ok(Outcome::default())
    }
}

impl Traffic for VmTraffic<'_, '_> {
    fn start(&mut self) -> Result<(), BenchError> {
        self.0.with(Pump::start);
        Ok(())
    }

    fn set_phase(&mut self, phase: Phase) {
        self.0.with(|pump| pump.set_phase(phase));
    }

    /// A snapshot without a wait for the clock also sends a batch.
    fn snapshot(&mut self) -> Snapshot {
        self.0.batch();
        self.0.with(|pump| pump.snapshot()).unwrap_or_default()
    }

    fn stop(&mut self) -> Result<(), BenchError> {
        self.0.with(Pump::stop).unwrap_or(Ok(()))
    }

    fn flows_seen(&mut self) -> Option<u32> {
        self.0.with(|pump| pump.flows_seen()).flatten()
    }

    fn arrivals(&mut self) -> Arrivals {
        self.0.with(|pump| pump.arrivals()).unwrap_or_default()
    }

    /// Empty: time is meaningless on an emulated machine.
    fn evidence(&mut self) -> Evidence {
        Evidence::default()
    }

    fn executed(&mut self) -> Result<Option<Executed>, BenchError> {
        self.0.with(Pump::executed).unwrap_or(Ok(None))
    }
}
