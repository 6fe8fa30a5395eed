//! Executes runs on any testbed: prepares and configures the DUT, reads settings back, checks
//! forwarding, arms sender and receiver, runs the trial, waits until counters settle, derives
//! warnings and writes the record. A failed run is retried once, then given up.

pub(crate) mod asked;
mod cpus;
pub(crate) mod doubts;
mod forwards;
mod held;
mod hooks;
mod method;
pub(crate) mod profile;
mod rate;

use crate::cpu;
use crate::dut::findings::Findings;
use crate::dut::{Dut, Loss, Reading, Totals};
use crate::error::BenchError;
use crate::host::Host;
use crate::probe::Privilege;
use crate::profiler::RawProfile;
use crate::testbed::netns::receiver;
use crate::testbed::stopwatch::Stopwatch;
use crate::testbed::{self, Choice, Ends, Parts, Paths, Reach, Testbed, Wanted};
use crate::trial::{self, Alternation, Awaited, Moment, SystemClock, TrialSpec};
use crate::{Observer, Task};
use asked::Asked;
use cpus::Sampler;
use doubts::doubts;
use fwdlab_model::plan::Plan;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::record::{
    Calibration, Counts, Environment, MethodRecord, ProfileRecord, RunRecord, TrialRecord,
};
use fwdlab_model::settings::{Settings, TestbedKind};
use fwdlab_model::warning::Warning;
use fwdlab_port::affinity;
use held::while_held;
use hooks::Around;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Executes runs on a testbed, and remembers variants that were given up.
pub struct Runner {
    testbed: Box<dyn Testbed>,
    /// Variants that are not retried, with the reason.
    given_up: BTreeMap<usize, String>,
}

impl Runner {
    /// A runner on `testbed`.
    pub fn new(testbed: Box<dyn Testbed>) -> Runner {
        Runner { testbed, given_up: BTreeMap::new() }
    }

    /// Opens the testbed that the plan names; `auto` takes the best one available on this
    /// machine.
    ///
    /// # Errors
    /// When the named testbed is not available here; `auto` always finds one.
    pub fn open(plan: &Plan, privilege: &Privilege, paths: &Paths) -> Result<Runner, BenchError> {
        testbed::choose(plan, privilege, paths).map(Runner::new)
    }

    /// Puts back what the testbed has changed; dropping the runner does the same, and can't say
    /// what failed.
    ///
    /// # Errors
    /// What could not be put back.
    pub fn close(mut self) -> Result<(), BenchError> {
        self.testbed.close()
    }

    /// The testbed in use and why it was chosen.
    pub fn choice(&self) -> &Choice {
        self.testbed.choice()
    }

    /// Hardware and software environment of the machine that forwards. `version` is fwdlab's.
    pub fn environment(&self, version: &str) -> Environment {
        self.testbed.environment(version)
    }

    /// Calibration key: a ceiling applies to all settings with the same key.
    pub fn calibration_key(&self, settings: &Settings) -> String {
        self.testbed.calibration_key(settings)
    }

    /// True when the testbed's sender has a ceiling that can be measured.
    pub fn has_ceiling(&self) -> bool {
        self.testbed.has_ceiling()
    }

    /// Measures the ceiling for a variant's family and frame size: the sender straight into
    /// the receiver, or up to the DUT's interface.
    ///
    /// # Errors
    /// As [`Runner::run`].
    pub fn calibrate(
        &mut self,
        plan: &Plan,
        settings: &Settings,
        observer: &mut dyn Observer,
    ) -> Result<Calibration, BenchError> {
        let _pinned = Pinned::to(&self.testbed.place(settings).control)?;
        while_held(self.testbed.lease(), observer, |observer| {
            self.testbed.calibrate(plan, settings, observer)
        })
    }

    /// Executes a run: sets up the variant, runs the trial, tears everything down. Retries once
    /// if something failed or a host was lost.
    ///
    /// # Errors
    /// User errors and interruptions are returned at once. A second failure gives the variant up
    /// ([`BenchError::GivenUp`]); runs of other variants may continue. Everything is torn down
    /// in any case.
    pub fn run(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let variant = task.run.variants[0];
        if let Some(why) = self.given_up.get(&variant) {
            return Err(BenchError::GivenUp { variant, why: why.clone() });
        }
        let mut repeated = None;
        loop {
            self.testbed.begin(observer)?;
            let lease = self.testbed.lease();
            let error = match while_held(lease, observer, |observer| self.once(task, observer)) {
                Ok(mut record) => {
                    record.facts.extend(repeated.map(|why| ("repeated after".into(), why)));
                    return Ok(record);
                }
                Err(error @ (BenchError::Refused(_) | BenchError::Interrupted)) => {
                    return Err(error);
                }
                Err(_) if observer.cancelled() => return Err(BenchError::Interrupted),
                Err(error) => error,
            };
            let meanwhile = self.testbed.recover(observer)?;
            let and = meanwhile.map_or(String::new(), |what| format!("; {what}"));
            let why = format!("{error}{and}").replace('\n', ";");
            if let Some(first) = repeated {
                let why =
                    if why == first { why } else { format!("{why}; the first time: {first}") };
                self.given_up.insert(variant, why.clone());
                return Err(BenchError::GivenUp { variant, why });
            }
            repeated = Some(why);
        }
    }

    fn once(
        &mut self,
        task: Task<'_>,
        observer: &mut dyn Observer,
    ) -> Result<RunRecord, BenchError> {
        let first = task.run.variants[0];
        let settings = &task.plan.variants[first].settings;
        let placement = self.testbed.place(settings);
        let _pinned = Pinned::to(&placement.control)?;
        let started_at = SystemClock.wall_text();
        let mut watch = Stopwatch::default();
        let mut findings = Findings::default();
        let mut rig = self.testbed.stand(task, observer)?;
        watch.lap("set up");
        rig.prepare(settings, &task.plan.trial, &mut watch, observer)?;
        let measured = measure(rig.parts()?, task, &mut watch, &mut findings, observer)?;
        observer.step("taking down");
        let left = rig.down()?;
        watch.lap("take down");

        let Measured { trial, mut method, mut warnings, simulated } = measured;
        if let Some(record) = &mut method {
            method::latency::measure_floor(self.testbed.as_ref(), task, record, observer)?;
        }
        warnings.extend(left);
        warnings.extend(findings.warnings);
        Ok(RunRecord {
            run: task.run.index,
            block: task.run.block,
            variants: task.run.variants.clone(),
            run_id: task.plan.run_id(task.run.index),
            started_at,
            trial,
            method,
            facts: findings.facts,
            warnings,
            // The overhead of a simulated run is meaningless.
            overhead_ns: if simulated { Vec::new() } else { watch.laps },
        })
    }

    /// Executes a profile run of a variant: with a sampling profiler on the DUT's CPUs. Its rate
    /// is not a measurement. A failed profiler is a remark in the record, not an error.
    ///
    /// # Errors
    /// As [`Runner::run`], without a retry.
    pub fn profile(
        &mut self,
        task: Task<'_>,
        plan: &ProfilePlan,
        observer: &mut dyn Observer,
    ) -> Result<(ProfileRecord, RawProfile), BenchError> {
        let settings = &task.plan.variants[task.run.variants[0]].settings;
        let placement = self.testbed.place(settings);
        let _pinned = Pinned::to(&placement.control)?;
        self.testbed.begin(observer)?;
        while_held(self.testbed.lease(), observer, |observer| {
            let mut rig = self.testbed.stand(task, observer)?;
            rig.prepare(settings, &task.plan.trial, &mut Stopwatch::default(), observer)?;
            let profiled = profile::take(rig.parts()?, task, plan, observer)?;
            observer.step("taking down");
            // Settings that can't be restored are reported by the runs, and at the next start.
            rig.down().map(drop)?;
            Ok(profiled)
        })
    }
}

/// Pins this thread to CPUs until dropped.
struct Pinned {
    before: Vec<u16>,
}

impl Pinned {
    /// Pins it to `cpus`; unchanged if the list is empty.
    fn to(cpus: &[u16]) -> Result<Pinned, BenchError> {
        if cpus.is_empty() {
            return Ok(Pinned { before: Vec::new() });
        }
        let before = affinity::allowed_cpus()?;
        affinity::pin_thread(cpus)?;
        Ok(Pinned { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if !self.before.is_empty() {
            // Failing to unpin this thread must not discard a finished record.
            let _ = affinity::pin_thread(&self.before);
        }
    }
}

/// Result of a run before it becomes a record.
struct Measured {
    trial: TrialRecord,
    method: Option<MethodRecord>,
    warnings: Vec<Warning>,
    simulated: bool,
}

/// Measures on a rig that is up: configures, runs the trial, returns the result.
fn measure(
    mut parts: Parts<'_>,
    task: Task<'_>,
    watch: &mut Stopwatch,
    findings: &mut Findings,
    observer: &mut dyn Observer,
) -> Result<Measured, BenchError> {
    let plan = task.plan;
    let first = task.run.variants[0];
    let settings = &plan.variants[first].settings;
    let remote = matches!(parts.reach, Reach::Remote { .. });

    observer.step("configuring the DUT");
    let (host, placement) = (parts.host, parts.placement);
    parts.dut.configure(host, settings, placement, findings)?;
    let around = Around::begin(host, settings, parts.reach, findings)?;
    verify_levels(parts.dut, host, task, findings)?;
    watch.lap("configure");
    // This machine's set-up is complete when the calls return; another machine, or a
    // program that has just started, may respond before it forwards.
    if remote || !parts.dut.tells_when_ready() {
        observer.step("trying whether it forwards");
        forwards::attempt(&mut parts, task, findings, observer)?;
        watch.lap("try");
    }

    observer.step("arming");
    let ends = parts.ends;
    let task = Task { ceiling_pps: ends.known_ceiling_pps(settings).or(task.ceiling_pps), ..task };
    let rate_pps = rate::of(&task, settings)?;
    let (run_id, threads) = (plan.run_id(task.run.index), parts.dut.threads());
    let wanted =
        Wanted { rate_pps, threads: &threads, ..Wanted::of(settings, run_id, &plan.trial) };
    let (mut armed, mut times) = ends.arm(&wanted, findings)?;
    let mut others = || armed.traffic().snapshot().others();
    let (before, others_before) = together(&mut parts, &mut others)?;
    watch.lap("arm");

    observer.step(if is_simulated(&parts) { "traffic (simulated)" } else { "traffic" });
    let (reach, machine) = (parts.reach, parts.machine);
    let mut in_force = first;
    let dut = RefCell::new(&mut *parts.dut);
    let mut switch = |next: usize| {
        let (from, to) = (&plan.variants[in_force].settings, &plan.variants[next].settings);
        in_force = next;
        dut.borrow_mut().switch(host, from, to)
    };
    let mut account = asked(&dut, host, ends, &before, settings);
    // Who counts instructions asks for no time, and lets nothing else run meanwhile.
    let is_timed = settings.testbed.kind != TestbedKind::Vm;
    let sampler = match remote && is_timed {
        true => Sampler::start(&**dut.borrow(), machine, parts.clock, plan.trial.duration_ns),
        false => None,
    };
    let (mut cpu_times, mut window) = (Vec::new(), (0, 0));
    let mut read_cpus = |moment| {
        match moment {
            Moment::Opening => {}
            Moment::Open(now_ns) => window.0 = now_ns,
            Moment::Closed(now_ns) => window.1 = now_ns,
        }
        // On a remote DUT read before the window opens: the answer takes a round trip.
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
    };
    let cycle = |number| plan.cycle(task.run, number);
    let order = TrialSpec {
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
        account: &mut account,
    };
    let observed = trial::run(armed.traffic(), parts.clock, order, observer)?;
    drop(account);
    if let Some(both) = sampler.and_then(|sampler| sampler.end(&**dut.borrow(), window)) {
        cpu_times = both.into();
    }
    let warmup_ns = observed.opening.warmup_ns.max(plan.trial.warmup_ns);
    watch.skip(warmup_ns + observed.window_ns);
    watch.lap("stop and drain");
    // The warm-up lasts until each flow was seen.
    watch.laps.push(("wait for flows".into(), warmup_ns - plan.trial.warmup_ns));

    let mut others = || match remote {
        // The agents have ended.
        true => observed.others(),
        false => armed.traffic().snapshot().others(),
    };
    let (after, mut counters) = reach.settled(|| {
        let (after, others) = together(&mut parts, &mut others)?;
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
    let method = method::carry_out(&mut parts, task, &observed, findings, observer)?;
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
    Ok(Measured { trial, method, warnings, simulated: is_simulated(&parts) })
}

/// What a run's own trial waits for: every flow and its state, unless connections are opened
/// afterwards, more of them than the table may hold.
fn awaited(plan: &Plan, ends: &dyn Ends, settings: &Settings) -> Awaited {
    match &plan.method {
        Some(method) if method.opens_connections() => Awaited::default(),
        _ => ends.awaited(settings),
    }
}

fn is_simulated(parts: &Parts<'_>) -> bool {
    parts.reach == Reach::Here { simulated: true }
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

/// A consistent reading of the DUT's counters (queues included) and of the packets that
/// arrived and do not belong to the run: if a packet originated by the DUT arrives during
/// the reading, both are read again.
fn together(
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
fn asked<'a, 'b: 'a, 'c: 'b>(
    dut: &'a RefCell<&'b mut (dyn Dut + 'c)>,
    host: &'a dyn Host,
    ends: &'a dyn Ends,
    before: &'a Reading,
    settings: &'a Settings,
) -> Asked<'a> {
    Asked {
        drops: Box::new(move |sent| {
            let mut dut = dut.borrow_mut();
            let mut now = dut.read(host).ok()?;
            ends.complete(&mut now, &**dut);
            // How many are lost is what is asked.
            let total = Counts { offered: sent, forwarded: sent };
            Some(dut.drops(&Loss { before, after: &now, total, receiver: 0, settings }))
        }),
        states: Box::new(move || dut.borrow_mut().states(host, settings)),
    }
}
