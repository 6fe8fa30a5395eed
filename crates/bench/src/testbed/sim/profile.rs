//! A profile run of the simulated device.

use super::{Sim, SimRun};
use crate::error::BenchError;
use crate::profiler::simulated::Simulated;
use crate::profiler::{Profiler, RawProfile};
use crate::testbed::netns::now_text;
use crate::testbed::profiling;
use crate::trial::{self, Awaited, Clock, Moment, Order, Unasked};
use crate::{Observer, Task};
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{DropPlace, ProfileRecord};
use fwdlab_model::settings::Firewall;

impl Sim {
    pub(super) fn simulate_profile(
        task: Task<'_>,
        profile: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let variant = task.run.variants[0];
        let has_firewall = task.plan.variants[variant].settings.dut.firewall != Firewall::None;
        let SimRun { mut traffic, clock, intended, .. } = SimRun::new(&task);
        observer.step("traffic (simulated profile)");
        let now_ns = || clock.now_ns();
        let mut profiler = Simulated::new(&now_ns, profile, has_firewall);
        let mut window_ns = (0, 0);
        let mut at_window = |moment| match moment {
            Moment::Opening => profiler.start(),
            Moment::Open(now_ns) => window_ns.0 = now_ns,
            Moment::Closed(now_ns) => {
                window_ns.1 = now_ns;
                profiler.stop();
            }
        };
        let trial = profiling::trial(&task.plan.trial, profile);
        let order = Order {
            trial: &trial,
            rate_pps: intended,
            variant,
            alternation: None,
            at_window: &mut at_window,
            awaited: Awaited::default(),
            account: &mut Unasked,
        };
        let observed = trial::run(&mut traffic, &clock, order, observer)?;
        let raw = profiler.finish();
        let place = "the simulated device".to_owned();
        let record = ProfileRecord {
            variant,
            start: 0,
            repeated: 0,
            started_at: now_text(),
            source: raw.source.clone(),
            event: raw.event.clone(),
            frequency_hz: profile.frequency_hz,
            call_graph: raw.call_graph.clone(),
            cpus: vec![0],
            window_ns,
            windows: profiling::windows(&observed.samples, window_ns.0, profile),
            sampled_from_ns: raw.sampled_from_ns,
            sampled_to_ns: raw.sampled_to_ns,
            counters: raw.counters.clone(),
            total: observed.total,
            drops: vec![
                DropPlace { place, packets: observed.total.lost() },
                DropPlace { place: "no counter tells".into(), packets: 0 },
            ],
            remarks: raw.remarks.clone(),
            facts: [("sender".to_owned(), "simulated".to_owned())].into(),
        };
        Ok((record, raw))
    }
}
