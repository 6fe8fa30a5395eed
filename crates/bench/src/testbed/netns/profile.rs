//! A profile run: as any run, with perf beside it. Never a measurement.

use super::device::Device;
use super::{Netns, now_text};
use crate::cpu::Placement;
use crate::dut::linux::Findings;
use crate::dut::path::Readings;
use crate::error::BenchError;
use crate::host::NamespaceHost;
use crate::profiler::{Census, Perf, Profiler, RawProfile};
use crate::testbed::wiring::Wiring;
use crate::testbed::{profiling, rate};
use crate::trial::{self, Clock, Moment, Observed, Order, SystemClock};
use crate::{Observer, Task};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::settings::{Arrangement, DutKind};
use fwdlab_model::warning::Warning;

impl Netns {
    /// Carries a profile run out on the CPUs of `placement`.
    pub(super) fn execute_profile(
        &self,
        task: Task<'_>,
        profile: &ProfilePlan,
        placement: &Placement,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let variant = task.run.variants[0];
        let settings = &task.plan.variants[variant].settings;
        let started_at = now_text();
        let mut findings = Findings::default();

        observer.step("namespaces");
        let wiring = Wiring::up(&self.journal, settings.dut.queues, true)?;
        let namespace = wiring
            .dut
            .clone()
            .ok_or_else(|| BenchError::Refused("the testbed was wired without a DUT".into()))?;
        let host = NamespaceHost::new(&namespace, &placement.control)?;
        observer.step("configuring the DUT");
        let (journal, program) = (&self.journal, &self.program);
        let mut dut = Device::up(&host, journal, program, settings, placement, &mut findings)?;

        observer.step("arming perf");
        let rate_pps = rate::of(&task, settings)?;
        let run_id = task.plan.run_id(task.run.index);
        let mut traffic = self.arm(&wiring, settings, placement, run_id, rate_pps)?;
        let clock = || SystemClock.now_ns();
        let file = self.journal.temporary("perf");
        let mut perf = Perf::prepare(&host, &clock, profile, &placement.dut, &file);
        let before = dut.read()?;

        observer.step("traffic (profile)");
        let mut readings: Vec<Readings> = Vec::new();
        let mut window_ns = (0, 0);
        let mut at_window = |moment| match moment {
            Moment::Opening => {
                readings.push(Readings::take(&host, &placement.dut));
                perf.start();
            }
            Moment::Open(now_ns) => window_ns.0 = now_ns,
            Moment::Closed(now_ns) => {
                window_ns.1 = now_ns;
                perf.stop();
                readings.push(Readings::take(&host, &placement.dut));
            }
        };
        let trial = profiling::trial(&task.plan.trial, profile);
        let order = Order {
            trial: &trial,
            rate_pps,
            variant,
            alternation: None,
            at_window: &mut at_window,
        };
        let observed = trial::run(&mut traffic, &SystemClock, order, observer);
        // Also of a run that failed or was interrupted: perf ends, its file goes.
        observer.step("reading the samples");
        let raw = perf.finish();
        let observed = observed?;
        let after = dut.read()?;

        observer.step("taking down");
        drop(traffic);
        dut.down()?;
        drop(host);
        wiring.down()?;
        self.journal.undo()?;

        let mut counters = raw.counters.clone();
        if let [open, close] = readings.as_slice() {
            counters.extend(open.until(close));
        }
        let mut remarks = raw.remarks.clone();
        remarks.extend(shared_cpus(placement));
        if settings.dut.kind != DutKind::Router {
            remarks.extend(other_programs(Census::of(&raw.text), placement));
        }
        remarks.extend(observed.warnings.iter().map(Warning::sentence));
        let mut facts = findings.facts;
        facts.extend(self.facts(settings, placement));
        let record = ProfileRecord {
            variant,
            started_at,
            source: raw.source.clone(),
            event: raw.event.clone(),
            frequency_hz: profile.frequency_hz,
            call_graph: raw.call_graph.clone(),
            cpus: placement.dut.clone(),
            window_ns,
            windows: profiling::windows(&observed.samples, window_ns.0, profile),
            sampled_from_ns: raw.sampled_from_ns,
            sampled_to_ns: raw.sampled_to_ns,
            counters,
            total: observed.total,
            drops: after.drops_since(
                &before,
                observed.total,
                dropped_by_receiver(&observed),
                &settings.dut.firewall,
            ),
            remarks,
            facts,
        };
        Ok((record, raw))
    }
}

/// What is to be known of samples of CPUs that do more than the DUT's work.
fn shared_cpus(placement: &Placement) -> Option<String> {
    let alone = placement.arrangement == Arrangement::Open;
    (!alone).then(|| {
        "the DUT has no CPUs of its own: the sender's work is among the samples: next step: \
         arrangement = \"open\" on a machine with two CPUs or more"
            .into()
    })
}

/// Share of the samples that may be in programs without a remark.
const OTHERS: f64 = 0.05;

/// The kernel forwards: programs on CPUs that are the DUT's alone are somebody else's.
fn other_programs(census: Census, placement: &Placement) -> Option<String> {
    let share = census.in_programs as f64 / census.samples.max(1) as f64;
    (placement.arrangement == Arrangement::Open && share > OTHERS).then(|| {
        format!(
            "{:.0} % of the samples are in programs, not in the kernel: something else ran on the \
             DUT's CPUs: next step: end it and profile again",
            100.0 * share
        )
    })
}

fn dropped_by_receiver(observed: &Observed) -> u64 {
    observed
        .warnings
        .iter()
        .find_map(|warning| match warning {
            Warning::ReceiverDropped { packets } => Some(*packets),
            _ => None,
        })
        .unwrap_or(0)
}
