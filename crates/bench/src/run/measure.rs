//! The measurement on a rig that is up: configures the DUT, arms both ends, runs the trial, and
//! reads the DUT's counters.

use super::cpus::Sampler;
use super::doubts::doubts;
use super::dut_queries::DutQueries;
use super::hooks::SetupGuard;
use super::method::Attempt;
use super::sampled::{self, Sampled};
use super::{method, preflight, rate};
use crate::cpu;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Loss, Reading, Totals};
use crate::error::BenchError;
use crate::host::Host;
use crate::profiler::Sampling;
use crate::testbed::netns::receiver;
use crate::testbed::stopwatch::Stopwatch;
use crate::testbed::{Endpoints, Parts, RigLocation, TrafficRequest};
use crate::trial::{self, Alternation, Moment, OpeningConditions, TrialSpec};
use crate::{Observer, Task};
use fwdlab_model::plan::Plan;
use fwdlab_model::record::{Counts, MethodRecord, TrialRecord};
use fwdlab_model::settings::{Settings, TestbedKind};
use fwdlab_model::warning::Warning;
use std::cell::RefCell;

/// Result of a run before it becomes a record.
pub(super) struct RunMeasurement {
    pub(super) trial: TrialRecord,
    pub(super) method: Option<MethodRecord>,
    pub(super) warnings: Vec<Warning>,
    pub(super) simulated: bool,
    /// Samples of the window; `None` if it was not sampled.
    pub(super) sampled: Option<Sampled>,
}

/// Measures on a rig that is up: configures, runs the trial, returns the result. With `sampling`, a
/// profiler samples the window. The method continues from the finished trials of `attempt`.
pub(super) fn measure(
    mut parts: Parts<'_>,
    task: Task<'_>,
    sampling: Option<Sampling>,
    watch: &mut Stopwatch,
    attempt: &mut Attempt,
    findings: &mut Findings,
    observer: &mut dyn Observer,
) -> Result<RunMeasurement, BenchError> {
    let plan = task.plan;
    let first = task.run.variants[0];
    let settings = &plan.variants[first].settings;
    let remote = matches!(parts.reach, RigLocation::Remote { .. });

    observer.step("configuring the DUT");
    let (host, placement) = (parts.host, parts.placement);
    parts.dut.configure(host, settings, placement, findings)?;
    let around = SetupGuard::begin(host, settings, parts.reach, findings)?;
    verify_levels(parts.dut, host, task, findings)?;
    watch.lap("configure");
    // The setup of this machine is complete when the calls return; another machine, or a program
    // that has just started, may respond before it forwards.
    if remote || !parts.dut.tells_when_ready() {
        observer.step("trying whether it forwards");
        preflight::attempt(&mut parts, task, findings, observer)?;
        watch.lap("try");
    }

    observer.step("arming");
    let ends = parts.ends;
    let task = Task { ceiling_pps: ends.known_ceiling_pps(settings).or(task.ceiling_pps), ..task };
    let rate_pps = rate::of(&task, settings)?;
    let (run_id, threads) = (plan.run_id(task.run.index), parts.dut.threads());
    let request = TrafficRequest {
        rate_pps,
        threads: &threads,
        ..TrafficRequest::of(settings, run_id, &plan.trial)
    };
    let (mut armed, mut times) = ends.arm(&request, findings)?;
    let (reach, trial_clock) = (parts.reach, parts.clock);
    let clock = || reach.dut_ns(trial_clock.now_ns());
    let mut profiler = sampling.as_ref().map(|sampling| {
        ends.profiler(host, &clock, sampling, &placement.dut, parts.perf_file, settings)
    });
    let mut others = || armed.traffic().snapshot().others();
    let (before, others_before) = read_consistently(&mut parts, &mut others)?;
    watch.lap("arm");

    observer.step(if is_simulated(&parts) { "traffic (simulated)" } else { "traffic" });
    let machine = parts.machine;
    let mut in_force = first;
    let dut = RefCell::new(&mut *parts.dut);
    let mut switch = |next: usize| {
        let (from, to) = (&plan.variants[in_force].settings, &plan.variants[next].settings);
        in_force = next;
        dut.borrow_mut().switch(host, from, to)
    };
    let mut queries = dut_queries(&dut, host, ends, &before, settings);
    // A run that counts instructions has no rate, and nothing else may run during it.
    let is_timed = settings.testbed.kind != TestbedKind::Vm;
    let sampler = match remote && is_timed {
        true => Sampler::start(&**dut.borrow(), machine, parts.clock, plan.trial.duration_ns),
        false => None,
    };
    let (mut cpu_times, mut window) = (Vec::new(), (0, 0));
    let mut read_cpus = |moment| {
        match moment {
            Moment::Opening => {
                if let Some(profiler) = &mut profiler {
                    profiler.start();
                }
            }
            Moment::Open(now_ns) => window.0 = now_ns,
            Moment::Closed(now_ns) => window.1 = now_ns,
        }
        // A remote DUT is read before the window opens: the answer takes a round trip.
        let is_due = match moment {
            _ if sampler.is_some() || !is_timed => false,
            Moment::Opening => remote,
            Moment::Open(_) => !remote,
            Moment::Closed(_) => true,
        };
        if is_due {
            times.read();
            cpu_times.push(dut.borrow().cpu_times(machine));
        }
        if let (Moment::Closed(_), Some(profiler)) = (moment, &mut profiler) {
            profiler.stop();
        }
    };
    let cycle = |number| plan.cycle(task.run, number);
    let spec = TrialSpec {
        trial: &plan.trial,
        rate_pps,
        variant: first,
        alternation: plan.design.alternate_ns.map(|slice_ns| Alternation {
            slice_ns,
            settle_ns: plan.design.settle_ns,
            length: task.run.variants.len() as u32,
            cycle: &cycle,
            switch: &mut switch,
        }),
        at_window: &mut read_cpus,
        awaited: awaited(plan, ends, settings),
        account: &mut queries,
    };
    let observed = match trial::run(armed.traffic(), parts.clock, spec, observer) {
        Ok(observed) => observed,
        Err(error) => {
            // Stops the profiler and removes its file.
            drop(profiler.map(|profiler| profiler.finish()));
            return Err(error);
        }
    };
    drop(queries);
    if let Some(readings) = sampler.and_then(|sampler| sampler.end(&**dut.borrow(), window)) {
        cpu_times = readings.into();
    }
    let warmup_ns = observed.opening.warmup_ns.max(plan.trial.warmup_ns);
    watch.skip(warmup_ns + observed.window_ns);
    watch.lap("stop and drain");
    // The warm-up lasts until each flow was seen.
    watch.laps.push(("wait for flows".into(), warmup_ns - plan.trial.warmup_ns));
    let sampled = sampling.zip(profiler).map(|(sampling, profiler)| {
        let (raw, start_ns) = (profiler.finish(), parts.reach.dut_ns(window.0));
        findings.facts.insert("sampled".into(), raw.source.clone());
        sampled::of_run(task.run, &observed, placement, &sampling, start_ns, raw)
    });
    if sampled.is_some() {
        watch.lap("read samples");
    }

    let mut others = || match remote {
        // The agents have ended.
        true => observed.others(),
        false => armed.traffic().snapshot().others(),
    };
    let (after, mut counters) = reach.settled(|| {
        let (after, others) = read_consistently(&mut parts, &mut others)?;
        let at_interfaces = observed.at_the_dut(others.saturating_sub(others_before));
        let directions = settings.traffic.directions;
        let totals = Totals { passed: observed.passed(), at_interfaces, directions };
        let counters = parts.dut.compare(&before, &after, totals);
        Ok((after, counters))
    })?;
    let cpus = match cpu_times.as_slice() {
        [open, close] => cpu::difference(open, close, placement),
        _ => Vec::new(),
    };
    if observed.total.lost() > 0 {
        let (total, receiver) = (observed.total, observed.receiver_dropped);
        let loss = Loss { before: &before, after: &after, total, receiver, settings };
        let places = parts.dut.drops(&loss);
        for place in places.into_iter().filter(|place| place.packets != 0) {
            findings.facts.insert(format!("lost: {}", place.place), place.packets.to_string());
        }
    }
    let executed = armed.traffic().executed()?;
    findings.facts.extend(armed.facts());
    let ended = armed.end()?;
    let method = method::run_method(&mut parts, task, &observed, attempt, findings, observer)?;
    around.end()?;
    parts.dut.stop(host)?;
    watch.lap("read");

    let device = times.since_first();
    let mut warnings = observed.warnings.clone();
    warnings.extend(receiver::doubt(&device, placement));
    let forwarded = observed.total.forwarded;
    warnings.extend(receiver::refused(&counters, forwarded, settings.traffic.rate, &device));
    if let Some(why) = &placement.fallback {
        let used = format!("{:?} arrangement", placement.arrangement).to_lowercase();
        warnings.push(Warning::Fallback { used, why: why.clone() });
    }
    counters.extend(ended.counters);
    warnings.extend(doubts(
        &observed,
        settings,
        placement,
        parts.pressure,
        &task,
        &counters,
        &cpus,
    ));
    findings.facts.extend(ended.facts);
    for (number, remark) in (1..).zip(ended.remarks) {
        findings.facts.insert(format!("generator's remark {number}"), remark);
    }
    findings.facts.extend(ends.facts(settings));
    if executed.is_some() {
        warnings.retain(|warning| !warning.is_of_time());
    }
    let trial = TrialRecord { device, executed, ..observed.into_record(counters, cpus) };
    Ok(RunMeasurement { trial, method, warnings, simulated: is_simulated(&parts), sampled })
}

/// Returns the conditions for a run's own trial to open its window: every flow and its state were
/// seen, unless connections are opened afterwards, possibly more than the table holds.
fn awaited(plan: &Plan, ends: &dyn Endpoints, settings: &Settings) -> OpeningConditions {
    match &plan.method {
        Some(method) if method.opens_connections() => OpeningConditions::default(),
        _ => ends.awaited(settings),
    }
}

fn is_simulated(parts: &Parts<'_>) -> bool {
    parts.reach == RigLocation::Here { simulated: true }
}

/// Applies and verifies every level once before traffic flows, and returns to the first.
fn verify_levels(
    dut: &mut dyn Dut,
    host: &dyn Host,
    task: Task<'_>,
    findings: &mut Findings,
) -> Result<(), BenchError> {
    if task.run.variants.len() < 2 {
        return Ok(());
    }
    let mut levels = task.run.variants.clone();
    levels.push(task.run.variants[0]);
    for pair in levels.windows(2).filter(|pair| pair[0] != pair[1]) {
        let [from, to] = [pair[0], pair[1]].map(|index| &task.plan.variants[index].settings);
        dut.switch(host, from, to)?;
        dut.verify(host, from, to, findings)?;
    }
    Ok(())
}

/// Reads the DUT's counters (queues included) and the number of arrived packets that do not belong
/// to the run, consistently: if a packet originated by the DUT arrives during the reading, reads
/// both again.
fn read_consistently(
    parts: &mut Parts<'_>,
    others: &mut dyn FnMut() -> u64,
) -> Result<(Reading, u64), BenchError> {
    let mut known = others();
    let mut tries = 0;
    loop {
        let mut reading = parts.dut.read(parts.host)?;
        reading.machine.extend(parts.dut.queues(parts.host));
        parts.ends.complete(&mut reading, parts.dut);
        let again = others();
        tries += 1;
        if again == known || tries == 10 {
            return Ok((reading, again));
        }
        known = again;
    }
}

/// The DUT queries of a trial; `before` holds the counters at its beginning.
pub(super) fn dut_queries<'a, 'b: 'a, 'c: 'b>(
    dut: &'a RefCell<&'b mut (dyn Dut + 'c)>,
    host: &'a dyn Host,
    ends: &'a dyn Endpoints,
    before: &'a Reading,
    settings: &'a Settings,
) -> DutQueries<'a> {
    DutQueries {
        drops: Box::new(move |sent| {
            let mut dut = dut.borrow_mut();
            let mut now = dut.read(host).ok()?;
            ends.complete(&mut now, &**dut);
            // Sent counts as forwarded: the loss is the result of this query.
            let total = Counts { offered: sent, forwarded: sent };
            Some(dut.drops(&Loss { before, after: &now, total, receiver: 0, settings }))
        }),
        states: Box::new(move || dut.borrow_mut().states(host, settings)),
    }
}
