//! A profile run on a DUT of a laboratory: as any run, with its perf beside it.

use super::Ssh;
use super::traffic::{self, Wanted};
use crate::dut::linux::Findings;
use crate::error::BenchError;
use crate::host::Host;
use crate::profiler::RawProfile;
use crate::testbed::asked::Asked;
use crate::testbed::profiling::Subject;
use crate::testbed::rate;
use crate::testbed::stopwatch::Stopwatch;
use crate::trial::{Clock, SystemClock};
use crate::{Observer, Task};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{Counts, ProfileRecord};
use std::cell::RefCell;
use std::path::Path;

/// perf's file on the DUT.
const FILE: &str = "/var/tmp/fwdlab-perf.data";

impl Ssh {
    /// Carries a profile run out.
    pub(super) fn execute_profile(
        &mut self,
        task: Task<'_>,
        profile: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        let mut findings = Findings::default();
        self.prepare(settings, &task.plan.trial, &mut Stopwatch::default(), observer)?;
        observer.step("configuring the DUT");
        let host = self.rack.dut()?.host();
        self.dut.remote().configure(host, settings, &mut findings)?;

        observer.step("arming perf");
        let rate_pps = rate::of(&task, settings)?;
        let run_id = task.plan.run_id(task.run.index);
        let phases = crate::testbed::profiling::trial(&task.plan.trial, profile);
        let wanted = Wanted { settings, run_id, rate_pps, trial: &phases };
        let mut armed = traffic::arm(&self.rack, &self.links, &wanted)?;
        let subject = Subject {
            task,
            plan: profile,
            host,
            links: &self.links,
            placement: &self.placement,
            file: Path::new(FILE),
            ahead_ns: ahead_ns(host),
        };
        let before = self.dut.remote().read(host)?;
        let dut = RefCell::new(&mut self.dut);
        let mut account = Asked {
            drops: &|| {
                let mut dut = dut.borrow_mut();
                let now = dut.remote().read(host).ok()?;
                Some(dut.remote().drops(&before, &now, Counts::default(), 0, settings))
            },
            states: &|| dut.borrow_mut().states(host, &settings.dut.firewall),
        };
        let sampled = subject.sample(armed.as_traffic(), rate_pps, &mut account, observer)?;
        let after = self.dut.remote().read(host)?;
        let (total, receiver) = (sampled.observed.total, sampled.observed.receiver_dropped);
        let drops = self.dut.remote().drops(&before, &after, total, receiver, settings);
        let mut facts = findings.facts;
        facts.extend(armed.facts());
        armed.end()?;
        facts.extend(self.facts(settings));
        Ok(subject.record(sampled, drops, facts, &|_| Vec::new()))
    }
}

/// How far a Linux host's CLOCK_MONOTONIC is ahead of this machine's, nanoseconds, to
/// half a round trip; 0 when it does not say.
fn ahead_ns(host: &dyn Host) -> i64 {
    let before = SystemClock.now_ns() as i64;
    // "now at N nsecs" in the third line (kernel/time/timer_list.c).
    let said =
        host.run(&["sed", "-n", "s/^now at \\([0-9]*\\) nsecs/\\1/p;3q", "/proc/timer_list"], "");
    let after = SystemClock.now_ns() as i64;
    let theirs = said.ok().and_then(|text| text.trim().parse::<i64>().ok());
    theirs.map_or(0, |theirs| theirs - (before + after) / 2)
}
