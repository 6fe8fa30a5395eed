//! Methods of a run: further trials in addition to its own trial, on the same start of the device,
//! at loads that a search, a curve or a soak requests.

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
use crate::testbed::{Parts, RigLocation, TrafficRequest};
use crate::trial::{
    self, DutCounters, LoadProfile, NoCounters, Observed, OpeningConditions, TrialSpec,
};
use crate::{Observer, Task};
use fwdlab_model::design::Method;
use fwdlab_model::plan::Trial;
use fwdlab_model::record::{MethodRecord, MethodTrial, OwnTrial, Reset, Sample};
use fwdlab_model::settings::Settings;
use fwdlab_model::units::{LINE_RATE, format_pps, line_pps, line_rate_of};
use fwdlab_model::warning::Warning;
use fwdlab_search::Trial as SearchTrial;
pub(super) use resume::Attempt;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Share of its maximum rate that a sender can surely offer at a given pace.
const PACED: f64 = 0.9;
/// Share of the line rate that a sender limited only by the links offers.
const FULL: f64 = 0.995;
/// Maximum load of a method, as a multiple of the forwarding rate at the maximum offered load.
const ABOVE: f64 = 2.0;

/// Carries out the plan's method, after the run's own trial; `None` without a method. Trials that
/// `attempt` contains from earlier attempts are not repeated.
///
/// # Errors
/// As [`trial::run`]; also returns conditions that make a search impossible on this device.
pub(super) fn run_method(
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
        trials.execute(part, &own)?;
        trials.done += trials.record.trials.len() as u32;
        records.push(std::mem::take(&mut trials.record));
    }
    Ok(Some(match method.is_composed() {
        true => MethodRecord { parts: records, ..MethodRecord::default() },
        false => records.pop().unwrap_or_default(),
    }))
}

/// Returns the parts of the run's own trial from which a method derives its loads.
fn own_trial(observed: &Observed) -> OwnTrial {
    OwnTrial {
        window_ns: observed.window_ns,
        intended: observed.intended,
        offered: observed.window.offered,
        forwarded: observed.window.forwarded,
        taken_ns: taken_ns(observed),
    }
}

/// Maximum load of the links in all directions together, whole packets per second; `None` if the
/// line rate is unknown.
fn line_load(facts: &BTreeMap<String, String>, settings: &Settings) -> Option<u64> {
    let bps = line_rate_of(facts.get(LINE_RATE)?)?;
    let directions = f64::from(settings.traffic.directions.count());
    Some((directions * line_pps(bps, settings.traffic.frame_size)) as u64)
}

/// Load that the sender can surely offer, packets per second: its maximum rate, less the cost of
/// keeping a pace; if the `link` limited it, the whole capacity of the link.
fn surely(own: &OwnTrial, link: Option<u64>) -> f64 {
    let offered = own.offered_pps();
    let full = link.map(|link| link as f64).filter(|link| offered >= FULL * link);
    full.unwrap_or(PACED * offered)
}

/// Default maximum load of a method: well above the device's forwarding rate, as far as the sender
/// can offer it.
fn greatest_load(own: &OwnTrial, link: Option<u64>) -> u64 {
    let (forwarded, surely) = (own.forwarded_pps(), surely(own, link));
    let target = if forwarded > 0.0 { ABOVE * forwarded } else { surely };
    target.min(surely).round() as u64
}

/// The trials of a method in one run.
struct Trials<'a, 'p> {
    parts: &'a mut Parts<'p>,
    task: Task<'a>,
    attempt: &'a mut Attempt,
    own: OwnTrial,
    findings: &'a mut Findings,
    observer: &'a mut dyn Observer,
    /// Start of the first trial, less the time between attempts.
    began_ns: u64,
    record: MethodRecord,
    /// Number of trials in earlier parts of the suite.
    done: u32,
    /// Invalid trials of the run so far.
    invalid: u32,
    /// The rate that an earlier part of the suite has found, packets per second.
    throughput: Option<f64>,
    /// Maximum load of the links, in all directions together; `None` if unknown.
    link: Option<u64>,
}

/// Request for one trial. Checkpoints contain its `Debug` text, so field names must not change.
#[derive(Clone, Copy, Debug)]
struct Wish {
    /// The load (for a burst, the sender's maximum rate) and the length of the window.
    asked: SearchTrial,
    kind: Kind,
    warmup_ns: u64,
    slice_ns: u64,
}

/// Load profile of a trial, and action on the device.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Steady,
    /// This number of frames, as fast as possible.
    Burst(u64),
    /// The window begins with another load, packets per second.
    Then(f64),
    /// The device is reset this number of nanoseconds into the window.
    Reset(u64),
    /// As `Steady`, every packet with its sending time; the load is this share of the rate found.
    Timed(f64),
    /// This number of packets, each of another flow; true if the device's states are read during
    /// the trial.
    Open(u64, bool),
    /// As `Steady`, with this number of new flows per second during the window.
    Flood(u64),
}

impl Trials<'_, '_> {
    fn execute(&mut self, method: &Method, own: &OwnTrial) -> Result<(), BenchError> {
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

    /// Number of traffic directions: a load in a file applies to each.
    fn directions(&self) -> u64 {
        let variant = &self.task.plan.variants[self.task.run.variants[0]];
        u64::from(variant.settings.traffic.directions.count())
    }

    /// Returns the maximum load: `request` for each direction, or `found` without a request,
    /// limited to the capacity of the links. Records and notes such a limit.
    fn up_to(&mut self, request: Option<u64>, found: u64) -> u64 {
        let load = request.map_or(found, |load| load.saturating_mul(self.directions()));
        self.record.link = self.link;
        let Some(link) = self.link.filter(|link| *link < load) else { return load };
        let [rate, requested] = [link, load].map(|load| format_pps(load as f64));
        let note = format!("loads end at the links' line rate, {rate}: {requested} are above it");
        self.observer.note(&note);
        link
    }

    /// Returns true if the trial ids of the run are used up.
    fn is_full(&self) -> bool {
        self.number() >= fwdlab_model::design::method::TRIALS_MAX
    }

    /// Number of the next trial in its run.
    fn number(&self) -> u32 {
        self.done + self.record.trials.len() as u32
    }

    /// Request for a trial at one load.
    fn steady(&self, request: SearchTrial) -> Wish {
        let trial = self.task.plan.trial;
        let slice_ns = trial.slice_ns.min(request.duration_ns);
        Wish { asked: request, kind: Kind::Steady, warmup_ns: trial.warmup_ns, slice_ns }
    }

    /// Runs one trial at a load and records it.
    fn measure(&mut self, request: SearchTrial) -> Result<MethodTrial, BenchError> {
        self.take(self.steady(request), |trials, wish| Ok(trials.observe(wish)?.0))
    }

    /// Runs one trial, with senders and receiver armed for it alone.
    fn observe(&mut self, wish: Wish) -> Result<(MethodTrial, Observed), BenchError> {
        let Wish { asked: request, kind, warmup_ns, slice_ns } = wish;
        let number = self.number();
        let Trials { parts, task: Task { plan, run, .. }, findings, observer, .. } = self;
        let first = run.variants[0];
        let timed = matches!(kind, Kind::Timed(_));
        let with_times = latency::with_times(&plan.variants[first].settings);
        let settings = if timed { &with_times } else { &plan.variants[first].settings };
        let (rate_pps, limit) = match kind {
            Kind::Burst(frames) => (None, Some(frames)),
            Kind::Open(connections, _) => (Some(request.load as f64), Some(connections)),
            _ => (Some(request.load as f64), None),
        };
        observer.step(&format!("trial {} at {}", number + 1, format_pps(request.load as f64)));
        let phases = Trial {
            duration_ns: request.duration_ns,
            interval_ns: plan.trial.interval_ns.min(request.duration_ns),
            warmup_ns,
            slice_ns,
            ..plan.trial
        };
        let threads = parts.dut.threads();
        let run_id = plan.trial_id(run.index, number);
        let traffic_request = TrafficRequest {
            timed,
            rate_pps,
            limit,
            threads: &threads,
            flood: match kind {
                Kind::Flood(load) => flood::flood_request(load, request.duration_ns),
                _ => None,
            },
            ..TrafficRequest::of(settings, run_id, &phases)
        };
        let (ends, clock) = (parts.ends, parts.clock);
        let at_ns = clock.now_ns().wrapping_sub(self.began_ns);
        let (mut armed, _times) = ends.arm(&traffic_request, findings)?;
        let counters = parts.dut.read(parts.host)?;
        let (dut, host, placement) = (RefCell::new(&mut *parts.dut), parts.host, parts.placement);
        let mut states = States { dut: &dut, host, settings };
        let is_watched = matches!(kind, Kind::Open(_, true)) && !is_remote(parts.reach);
        let spec = TrialSpec {
            trial: &phases,
            rate_pps,
            variant: first,
            alternation: None,
            at_window: &mut |_| {},
            // The run's own trial has seen every flow; at a low load that would take long.
            awaited: OpeningConditions::default(),
            account: if is_watched { &mut states } else { &mut NoCounters },
        };
        let mut reset = None;
        let mut act = |at_ns| {
            let began_ns = clock.now_ns();
            let done = dut.borrow_mut().reset(host, settings, placement, findings)?;
            let took_ns = clock.now_ns() - began_ns;
            reset = done.map(|how| Reset { how, at_ns, took_ns, lost: 0 });
            Ok(())
        };
        let profile = match kind {
            Kind::Steady | Kind::Timed(_) | Kind::Flood(_) => LoadProfile::Steady,
            Kind::Burst(frames) | Kind::Open(frames, _) => LoadProfile::Burst(frames),
            Kind::Then(rate_pps) => LoadProfile::Then(rate_pps),
            Kind::Reset(due_ns) => LoadProfile::Meanwhile(due_ns, Some(&mut act)),
        };
        let observed = trial::run_as(profile, armed.traffic(), clock, spec, *observer)?;
        let latency = match kind {
            Kind::Timed(share) => latency::of_trial(share, armed.traffic()),
            _ => None,
        };
        armed.end()?;
        let refused = ends.lost_at_receiver(&counters, &parts.dut.read(parts.host)?);
        let (load, before) = match kind {
            Kind::Then(rate_pps) => (rate_pps.round() as u64, Some(request.load)),
            _ => (request.load, None),
        };
        let trial = MethodTrial {
            load,
            duration_ns: request.duration_ns,
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

fn is_remote(reach: RigLocation) -> bool {
    matches!(reach, RigLocation::Remote { .. })
}

/// DUT counters that report the connection states only.
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

/// Fault of the instrument in a trial, by which its losses are not due to the device; `None` if
/// there was none.
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

    fn trial_of(offered: u64, forwarded: u64, taken_ns: u64) -> OwnTrial {
        own_trial(&Observed {
            window_ns: 1_000_000_000,
            window: Counts { offered, forwarded },
            samples: vec![Sample { waited_ns: Some(taken_ns), ..Sample::default() }],
            ..Observed::default()
        })
    }

    #[test]
    fn greatest_load_is_limited_by_device_sender_and_link() {
        let greatest = |trial: OwnTrial| greatest_load(&trial, None);
        assert_eq!(greatest(trial_of(1000, 300, 0)), 600);
        assert_eq!(greatest(trial_of(1000, 300, 250_000_000)), 800, "of the time that it had");
        assert_eq!(greatest(trial_of(1000, 900, 0)), 900, "nine tenths of what was offered");
        assert_eq!(greatest(trial_of(1000, 0, 0)), 900, "a dead device");
        assert_eq!(greatest_load(&trial_of(996, 900, 0), Some(1000)), 1000, "stopped by the link");
        assert_eq!(greatest_load(&trial_of(1000, 300, 0), Some(1000)), 600);
        assert_eq!(
            greatest_load(&trial_of(990, 990, 0), Some(1000)),
            891,
            "a sender slower than it"
        );
    }
}
