//! What a run does beside its own trial: further trials on the same start of the device, at
//! loads that a search, a curve or a soak asks for.

mod burst;
mod connections;
mod curve;
mod flood;
pub(super) mod latency;
mod recovery;
mod resume;
mod search;

use crate::dut::Dut;
use crate::dut::findings::Findings;
use crate::error::BenchError;
use crate::host::Host;
use crate::testbed::{Parts, Reach, TrafficRequest};
use crate::trial::{self, Awaited, DutCounters, LoadProfile, Observed, TrialSpec, Unasked};
use crate::{Observer, Task};
use fwdlab_model::design::Method;
use fwdlab_model::plan::Trial;
use fwdlab_model::record::{MethodRecord, MethodTrial, OwnTrial, Reset, Sample};
use fwdlab_model::settings::Settings;
use fwdlab_model::units::{LINE_RATE, format_pps, line_pps, line_rate_of};
use fwdlab_model::warning::Warning;
use fwdlab_search::Trial as DutQueries;
pub(super) use resume::Attempt;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Share of what the sender offered at most that it can surely offer at a pace.
const PACED: f64 = 0.9;
/// Share of the line rate that a sender offers whom the links stop and nothing else.
const FULL: f64 = 0.995;
/// Greatest load of a method over what the device forwarded at the maximum offered load.
const ABOVE: f64 = 2.0;

/// Carries the plan's method out, after the run's own trial; `None` without a method. What
/// `attempt` has of earlier attempts is not measured again.
///
/// # Errors
/// As [`trial::run`]; what makes a search impossible on this device.
pub(super) fn carry_out(
    parts: &mut Parts<'_>,
    task: Task<'_>,
    own: &Observed,
    attempt: &mut Attempt,
    findings: &mut Findings,
    observer: &mut dyn Observer,
) -> Result<Option<MethodRecord>, BenchError> {
    let Some(method) = &task.plan.method else { return Ok(None) };
    let began_ns = parts.clock.now_ns();
    let record = MethodRecord::default();
    let (done, invalid, throughput) = (0, 0, None);
    let settings = &task.plan.variants[task.run.variants[0]].settings;
    let link = line_load(&parts.ends.facts(settings), settings);
    let own = attempt.own().unwrap_or_else(|| own_trial(own));
    let mut trials = Trials {
        parts,
        task,
        attempt,
        own,
        findings,
        observer,
        began_ns,
        record,
        done,
        invalid,
        throughput,
        link,
    };
    let mut records = Vec::new();
    for part in method.parts() {
        trials.carry_out(part, &own)?;
        trials.done += trials.record.trials.len() as u32;
        records.push(std::mem::take(&mut trials.record));
    }
    Ok(Some(match method.is_composed() {
        true => MethodRecord { parts: records, ..MethodRecord::default() },
        false => records.pop().unwrap_or_default(),
    }))
}

/// The run's own trial, as far as loads of a method follow from it.
fn own_trial(observed: &Observed) -> OwnTrial {
    OwnTrial {
        window_ns: observed.window_ns,
        intended: observed.intended,
        offered: observed.window.offered,
        forwarded: observed.window.forwarded,
        taken_ns: taken_ns(observed),
    }
}

/// The greatest load that links take in all directions together, whole packets per second; none
/// where no line rate is known.
fn line_load(facts: &BTreeMap<String, String>, settings: &Settings) -> Option<u64> {
    let bps = line_rate_of(facts.get(LINE_RATE)?)?;
    let ways = f64::from(settings.traffic.directions.count());
    Some((ways * line_pps(bps, settings.traffic.frame_size)) as u64)
}

/// The load that the sender can surely offer, packets per second: what it offered at most, less
/// what keeping a pace may take; where the `link` stopped it, all that this takes.
fn surely(own: &OwnTrial, link: Option<u64>) -> f64 {
    let offered = own.offered_pps();
    let full = link.map(|link| link as f64).filter(|link| offered >= FULL * link);
    full.unwrap_or(PACED * offered)
}

/// The greatest load that a method tries unless told otherwise: well above what the device
/// forwards, as far as the sender can offer it.
fn greatest_load(own: &OwnTrial, link: Option<u64>) -> u64 {
    let (forwarded, surely) = (own.forwarded_pps(), surely(own, link));
    let wanted = if forwarded > 0.0 { ABOVE * forwarded } else { surely };
    wanted.min(surely).round() as u64
}

/// The trials of a method in one run.
struct Trials<'a, 'p> {
    parts: &'a mut Parts<'p>,
    task: Task<'a>,
    attempt: &'a mut Attempt,
    own: OwnTrial,
    findings: &'a mut Findings,
    observer: &'a mut dyn Observer,
    /// When the first trial began, less the time between attempts.
    began_ns: u64,
    record: MethodRecord,
    /// Trials of the suite's earlier parts.
    done: u32,
    /// Invalid trials of the run so far.
    invalid: u32,
    /// The rate that an earlier part of the suite has found, packets per second.
    throughput: Option<f64>,
    /// The greatest load that the links take, in all directions together; none if not known.
    link: Option<u64>,
}

/// What one trial is to do.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// The load, or what the sender reaches where it is a burst, and the length of the window.
    asked: DutQueries,
    kind: Kind,
    warmup_ns: u64,
    slice_ns: u64,
}

/// How the load goes in a trial, and what happens to the device.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Steady,
    /// So many frames as fast as possible.
    Burst(u64),
    /// The window begins with another load, packets per second.
    Then(f64),
    /// The device is reset so many nanoseconds into the window.
    Reset(u64),
    /// As steady, every packet with its sending time: the load is this share of the rate found.
    Timed(f64),
    /// So many packets, each of another flow; true if the device's states are looked at
    /// meanwhile.
    Open(u64, bool),
    /// As steady, beside so many new flows a second in the window.
    Flood(u64),
}

impl Trials<'_, '_> {
    fn carry_out(&mut self, method: &Method, own: &OwnTrial) -> Result<(), BenchError> {
        match method {
            Method::Mlrsearch(search) => self.search(search, own),
            Method::LossCurve { step, max_load } => self.curve(*step, *max_load, own),
            Method::Soak { trials } => self.soak(*trials, own),
            Method::Flood { step, max_load } => self.floods(*step, *max_load, own),
            Method::BackToBack { repeats, max_frames } => self.bursts(*repeats, *max_frames, own),
            Method::SystemRecovery { repeats, overload_ns } => {
                self.recovery(*repeats, *overload_ns, own)
            }
            Method::Reset { repeats } => self.resets(*repeats, own),
            Method::Delays { shares, repeats } => self.delays(shares, *repeats),
            Method::Establishment(search) => self.establishment(search, own),
            Method::TearDown { repeats } => self.tear_downs(*repeats, own),
            Method::Capacity { repeats } => self.capacities(*repeats, own),
            Method::Rfc2544 { .. } | Method::Latency { .. } | Method::Rfc9693 { .. } => {
                Err(BenchError::Refused("a suite within a suite".to_owned()))
            }
        }
    }

    /// Directions in which packets go: a load that a file names is that of each.
    fn directions(&self) -> u64 {
        let variant = &self.task.plan.variants[self.task.run.variants[0]];
        u64::from(variant.settings.traffic.directions.count())
    }

    /// A greatest load that is `asked` for, of each direction, or `found` where none is; no more
    /// than the links take, which the record and whoever watches are told.
    fn up_to(&mut self, asked: Option<u64>, found: u64) -> u64 {
        let wanted = asked.map_or(found, |load| load.saturating_mul(self.directions()));
        self.record.link = self.link;
        let Some(link) = self.link.filter(|link| *link < wanted) else { return wanted };
        let [rate, wanted] = [link, wanted].map(|load| format_pps(load as f64));
        let said = format!("loads end at the links' line rate, {rate}: {wanted} are above it");
        self.observer.note(&said);
        link
    }

    /// True when a run's own ids of trials are used up.
    fn is_full(&self) -> bool {
        self.number() >= fwdlab_model::design::method::TRIALS_MAX
    }

    /// Number of the next trial in its run.
    fn number(&self) -> u32 {
        self.done + self.record.trials.len() as u32
    }

    /// The request of a trial at one load.
    fn steady(&self, asked: DutQueries) -> Wish {
        let trial = self.task.plan.trial;
        let slice_ns = trial.slice_ns.min(asked.duration_ns);
        Wish { asked, kind: Kind::Steady, warmup_ns: trial.warmup_ns, slice_ns }
    }

    /// One trial at a load, which the record then contains.
    fn measure(&mut self, asked: DutQueries) -> Result<MethodTrial, BenchError> {
        self.take(self.steady(asked), |trials, wish| Ok(trials.observe(wish)?.0))
    }

    /// One trial, with senders and receiver that are armed for it alone.
    fn observe(&mut self, wish: Wish) -> Result<(MethodTrial, Observed), BenchError> {
        let Wish { asked, kind, warmup_ns, slice_ns } = wish;
        let number = self.number();
        let Trials { parts, task: Task { plan, run, .. }, findings, observer, .. } = self;
        let first = run.variants[0];
        let timed = matches!(kind, Kind::Timed(_));
        let with_times = latency::with_times(&plan.variants[first].settings);
        let settings = if timed { &with_times } else { &plan.variants[first].settings };
        let (rate_pps, limit) = match kind {
            Kind::Burst(frames) => (None, Some(frames)),
            Kind::Open(connections, _) => (Some(asked.load as f64), Some(connections)),
            _ => (Some(asked.load as f64), None),
        };
        observer.step(&format!("trial {} at {}", number + 1, format_pps(asked.load as f64)));
        let phases = Trial {
            duration_ns: asked.duration_ns,
            interval_ns: plan.trial.interval_ns.min(asked.duration_ns),
            warmup_ns,
            slice_ns,
            ..plan.trial
        };
        let threads = parts.dut.threads();
        let run_id = plan.trial_id(run.index, number);
        let wanted = TrafficRequest {
            timed,
            rate_pps,
            limit,
            threads: &threads,
            flood: match kind {
                Kind::Flood(load) => flood::wanted(load, asked.duration_ns),
                _ => None,
            },
            ..TrafficRequest::of(settings, run_id, &phases)
        };
        let (ends, clock) = (parts.ends, parts.clock);
        let at_ns = clock.now_ns().wrapping_sub(self.began_ns);
        let (mut armed, _times) = ends.arm(&wanted, findings)?;
        let counters = parts.dut.read(parts.host)?;
        let (dut, host, placement) = (RefCell::new(&mut *parts.dut), parts.host, parts.placement);
        let mut states = States { dut: &dut, host, settings };
        let is_watched = matches!(kind, Kind::Open(_, true)) && !is_remote(parts.reach);
        let order = TrialSpec {
            trial: &phases,
            rate_pps,
            variant: first,
            alternation: None,
            at_window: &mut |_| {},
            // The run's own trial has seen every flow; at a low load that would take long.
            awaited: Awaited::default(),
            account: if is_watched { &mut states } else { &mut Unasked },
        };
        let mut reset = None;
        let mut act = |at_ns| {
            let began_ns = clock.now_ns();
            let done = dut.borrow_mut().reset(host, settings, placement, findings)?;
            let took_ns = clock.now_ns() - began_ns;
            reset = done.map(|how| Reset { how, at_ns, took_ns, lost: 0 });
            Ok(())
        };
        let course = match kind {
            Kind::Steady | Kind::Timed(_) | Kind::Flood(_) => LoadProfile::Steady,
            Kind::Burst(frames) | Kind::Open(frames, _) => LoadProfile::Burst(frames),
            Kind::Then(rate_pps) => LoadProfile::Then(rate_pps),
            Kind::Reset(due_ns) => LoadProfile::Meanwhile(due_ns, Some(&mut act)),
        };
        let observed = trial::run_as(course, armed.traffic(), clock, order, *observer)?;
        let latency = match kind {
            Kind::Timed(share) => latency::of_trial(share, armed.traffic()),
            _ => None,
        };
        armed.end()?;
        let refused = ends.lost_at_receiver(&counters, &parts.dut.read(parts.host)?);
        let (load, before) = match kind {
            Kind::Then(rate_pps) => (rate_pps.round() as u64, Some(asked.load)),
            _ => (asked.load, None),
        };
        let trial = MethodTrial {
            load,
            duration_ns: asked.duration_ns,
            at_ns,
            window_ns: observed.window_ns,
            offered: observed.window.offered,
            forwarded: observed.window.forwarded,
            reverse: observed.arrivals.reverse.as_ref().map(|reverse| reverse.window),
            damaged: observed.arrivals.damaged,
            duplicates: observed.arrivals.duplicates,
            taken_ns: taken_ns(&observed),
            stalled_ns: observed.samples.iter().map(taken_in).max().unwrap_or(0),
            invalid: invalid(&observed),
            receiver_lost: refused.unwrap_or(0),
            burst: match kind {
                Kind::Burst(frames) => Some(frames),
                _ => None,
            },
            before,
            reset,
            latency,
            flood: match kind {
                Kind::Flood(load) => Some(flood::of_trial(load, &observed)),
                _ => None,
            },
            ..MethodTrial::default()
        };
        Ok((trial, observed))
    }
}

fn is_remote(reach: Reach) -> bool {
    matches!(reach, Reach::Remote { .. })
}

/// Asks the device for its states and for nothing else.
struct States<'a, 'b, 'c> {
    dut: &'a RefCell<&'b mut (dyn Dut + 'c)>,
    host: &'a dyn Host,
    settings: &'a Settings,
}

impl DutCounters for States<'_, '_, '_> {
    fn states(&mut self) -> Option<u64> {
        self.dut.borrow_mut().states(self.host, self.settings)
    }
}

/// CPU time that was provably taken from the device within a sample, nanoseconds.
fn taken_in(sample: &Sample) -> u64 {
    sample.stolen_ns.saturating_add(sample.waited_ns.unwrap_or(0))
}

/// CPU time that was provably taken from the device in the window.
fn taken_ns(observed: &Observed) -> u64 {
    observed.samples.iter().map(taken_in).fold(0, u64::saturating_add)
}

/// What the instrument did wrong in a trial: then its losses are not the device's.
fn invalid(observed: &Observed) -> Option<String> {
    let is_instrument = |warning: &&Warning| {
        matches!(warning, Warning::NotConserved { .. } | Warning::ReceiverDropped { .. })
    };
    observed.warnings.iter().find(is_instrument).map(Warning::sentence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fwdlab_model::record::Counts;

    fn own(offered: u64, forwarded: u64, taken_ns: u64) -> OwnTrial {
        own_trial(&Observed {
            window_ns: 1_000_000_000,
            window: Counts { offered, forwarded },
            samples: vec![Sample { waited_ns: Some(taken_ns), ..Sample::default() }],
            ..Observed::default()
        })
    }

    #[test]
    fn the_greatest_load_is_what_the_sender_can_and_the_device_may_need() {
        let greatest = |own: OwnTrial| greatest_load(&own, None);
        assert_eq!(greatest(own(1000, 300, 0)), 600);
        assert_eq!(greatest(own(1000, 300, 250_000_000)), 800, "of the time that it had");
        assert_eq!(greatest(own(1000, 900, 0)), 900, "nine tenths of what was offered");
        assert_eq!(greatest(own(1000, 0, 0)), 900, "a dead device");
        assert_eq!(greatest_load(&own(996, 900, 0), Some(1000)), 1000, "stopped by the link");
        assert_eq!(greatest_load(&own(1000, 300, 0), Some(1000)), 600);
        assert_eq!(greatest_load(&own(990, 990, 0), Some(1000)), 891, "a sender slower than it");
    }
}
