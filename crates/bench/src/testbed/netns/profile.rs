//! A profile run: as any run, with perf beside it. Never a measurement.

use super::Netns;
use super::device::Device;
use super::receiver;
use crate::cpu::Placement;
use crate::dut::linux::Findings;
use crate::error::BenchError;
use crate::host::NamespaceHost;
use crate::lab::links::Links;
use crate::profiler::{Census, RawProfile};
use crate::testbed::asked::Asked;
use crate::testbed::profiling::Subject;
use crate::testbed::rate;
use crate::testbed::wiring::Wiring;
use crate::{Observer, Task};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{Counts, ProfileRecord};
use fwdlab_model::settings::{Arrangement, DutKind};
use std::cell::RefCell;

impl Netns {
    /// Carries a profile run out on the CPUs of `placement`.
    pub(super) fn execute_profile(
        &self,
        task: Task<'_>,
        profile: &ProfilePlan,
        placement: &Placement,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        let mut findings = Findings::default();

        observer.step("namespaces");
        let wiring = Wiring::up(&self.journal, settings.dut.queues, true)?;
        let namespace = wiring
            .dut
            .clone()
            .ok_or_else(|| BenchError::Refused("the testbed was wired without a DUT".into()))?;
        let host = NamespaceHost::new(&namespace, &placement.control)?;
        observer.step("configuring the DUT");
        let (journal, paths, links) = (&self.journal, &self.paths, Links::of_namespaces());
        let dut = Device::up(&host, journal, &links, paths, settings, placement, &mut findings)?;
        let mut dut = dut.fed_by(&wiring, &placement.control)?;

        observer.step("arming perf");
        let rate_pps = rate::of(&task, settings)?;
        let run_id = task.plan.run_id(task.run.index);
        let mut traffic =
            self.arm(&wiring, settings, placement, run_id, rate_pps, &dut.threads())?;
        receiver::poll_or_say(&wiring, placement, &mut findings);
        let file = self.journal.temporary("perf");
        let subject = Subject {
            task,
            plan: profile,
            host: &host,
            links: &links,
            placement,
            file: &file,
            ahead_ns: 0,
        };
        let before = dut.read()?;
        let dut = RefCell::new(dut);
        let mut account = Asked {
            drops: &|| {
                let now = dut.borrow_mut().read().ok()?;
                Some(now.drops_since(&before, Counts::default(), 0, &settings.dut.firewall))
            },
            states: &|| dut.borrow_mut().states(&settings.dut.firewall),
        };
        let sampled = subject.sample(&mut traffic, rate_pps, &mut account, observer)?;
        let mut dut = dut.into_inner();
        let drops = dut.read()?.drops_since(
            &before,
            sampled.observed.total,
            sampled.observed.receiver_dropped,
            &settings.dut.firewall,
        );

        observer.step("taking down");
        drop(traffic);
        dut.down()?;
        let mut facts = findings.facts;
        facts.extend(self.facts(settings, placement));
        let remarks = |raw: &RawProfile| match settings.dut.kind {
            // A program on the DUT's CPUs is the DUT.
            DutKind::Router => Vec::new(),
            _ => other_programs(Census::of(&raw.text), placement).into_iter().collect(),
        };
        let record = subject.record(sampled, drops, facts, &remarks);
        drop(host);
        wiring.down()?;
        // What stays is told by the runs, and at the next start.
        let _ = self.journal.undo();
        Ok(record)
    }
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
