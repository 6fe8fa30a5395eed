//! One trial: warm up, open the window, send, close it, stop, drain, read.
//!
//! Every packet carries the phase in which it was sent, so packets of the window are counted
//! exactly, whatever their latency: `offered = forwarded + lost` holds to the packet. The state
//! machine is independent of sockets and clocks; it drives a [`Traffic`] by a [`Clock`].

mod burst;
mod clock;
mod drain;
mod dut_counters;
mod generated;
mod opening;
mod plain;
mod spec;
mod steadiness;

pub use clock::{Clock, SystemClock};
pub use drain::DrainResult;
pub use dut_counters::{DutCounters, NoCounters, OpeningConditions};
pub use generated::CountedTraffic;
pub use opening::{WAIT_LIMIT_NS, longest_ns};
pub use plain::plain;
pub use spec::{Action, Alternation, LoadProfile, Moment, Switch, TrialSpec};

use self::steadiness::unsteady;
use crate::error::BenchError;
use crate::{Live, Observer};
use fwdlab_model::record::{
    Arrivals, Counter, Counts, CpuTime, Executed, Latency, Opening, Sample, TrialRecord,
};
use fwdlab_model::warning::Warning;
use fwdlab_packet::Phase;
use fwdlab_packet::stamp::PHASES;

/// Sends packets and counts received ones.
pub trait Traffic {
    /// Begins sending in phase [`Phase::WarmUp`].
    ///
    /// # Errors
    /// Returns an error if sending cannot begin.
    fn start(&mut self) -> Result<(), BenchError>;
    /// Sets the phase of the packets sent from now on.
    fn set_phase(&mut self, phase: Phase);
    /// Changes the sending rate, packets per second.
    ///
    /// # Errors
    /// Returns an error if the rate cannot change while traffic flows.
    fn set_rate(&mut self, _rate_pps: f64) -> Result<(), BenchError> {
        Err(BenchError::Refused("this generator keeps one rate as long as it sends".into()))
    }
    /// Returns the counters so far.
    fn snapshot(&mut self) -> Snapshot;
    /// Stops sending and waits until the senders are idle.
    ///
    /// # Errors
    /// Returns an error if a sender has failed.
    fn stop(&mut self) -> Result<(), BenchError>;
    /// Number of distinct flows received; `None` if flows are not counted.
    fn flows_seen(&mut self) -> Option<u32>;
    /// Results of the receiver's checks (damage, duplicates, order); called after the drain.
    fn arrivals(&mut self) -> Arrivals {
        Arrivals::default()
    }
    /// Latency of the packets of the window; `None` if it was not measured. Called after the drain.
    fn delays(&mut self) -> Option<Latency> {
        None
    }
    /// Returns the CPU time that the device received and lost so far.
    fn evidence(&mut self) -> Evidence;
    /// Length of the window by the senders' clocks, nanoseconds; called after [`Traffic::stop`].
    /// `None` if the senders use the trial's clock.
    fn window_ns(&mut self) -> Option<u64> {
        None
    }
    /// Counts of code that the device executed in the window; `None` if it is not counted. Called
    /// after the last reading.
    ///
    /// # Errors
    /// Returns an error if the counts are unavailable.
    fn executed(&mut self) -> Result<Option<Executed>, BenchError> {
        Ok(None)
    }
    /// Ends all traffic, after the last reading.
    ///
    /// # Errors
    /// Returns failures since [`Traffic::stop`], which a snapshot cannot return.
    fn finish(&mut self) -> Result<(), BenchError> {
        Ok(())
    }
}

/// Counters of both ends at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// Packets sent, by phase.
    pub sent: [u64; PHASES],
    /// Packets of this run that arrived intact, each once, by the phase they were sent in.
    pub received: [u64; PHASES],
    /// Packets of this run that arrived damaged.
    pub damaged: u64,
    /// Packets of other runs that arrived.
    pub foreign: u64,
    /// Packets without stamp that arrived.
    pub unstamped: u64,
    /// Frames that are not test traffic (neighbour discovery ...).
    pub other_frames: u64,
    /// Packets that the receiver dropped.
    pub receiver_dropped: u64,
    /// Packets that the senders skipped because they were late, as far as known.
    pub missed: u64,
    /// Packets of a flood in addition to the traffic: sent, and arrived.
    pub flood: Counts,
}

impl Snapshot {
    /// Returns the snapshot during a flood of `offered` sent packets: up to that number, foreign
    /// packets belong to the flood.
    pub(crate) fn beside_flood(self, offered: u64) -> Snapshot {
        let forwarded = self.foreign.min(offered);
        let flood = Counts { offered, forwarded };
        Snapshot { flood, foreign: self.foreign - forwarded, ..self }
    }

    /// Packets received that do not belong to this run.
    pub fn others(&self) -> u64 {
        self.foreign.saturating_add(self.unstamped).saturating_add(self.other_frames)
    }
}

/// CPU time so far, nanoseconds since an arbitrary start; `None` if the kernel does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Stolen from the DUT's CPUs by the hypervisor, summed over them.
    pub stolen_ns: u64,
    /// CPU time of the device's threads, summed.
    pub ran_ns: Option<u64>,
    /// Run delay of the device's threads while no other device thread ran on the same CPU,
    /// summed over CPUs.
    pub waited_ns: Option<u64>,
    /// Run delay of the sender's threads, steal included.
    pub sender_waited_ns: Option<u64>,
}

/// Results of a trial.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// Length of the window as measured.
    pub window_ns: u64,
    /// Intended packets in the window; `None` at the maximum rate.
    pub intended: Option<u64>,
    /// Counts of the window.
    pub window: Counts,
    /// Counts of the whole trial.
    pub total: Counts,
    /// Counts of the warm-up.
    pub warm_up: Counts,
    /// Packets of other runs.
    pub foreign: u64,
    /// Packets of a flood in addition to the traffic.
    pub flood: Counts,
    /// Packets without stamp.
    pub unstamped: u64,
    /// Flows seen.
    pub flows_seen: Option<u32>,
    /// Results of the receiver's checks.
    pub arrivals: Arrivals,
    /// Time until the last packets arrived, nanoseconds.
    pub drain_ns: u64,
    /// Packets that the receiver dropped.
    pub receiver_dropped: u64,
    /// Packets that the senders skipped because they were late, as far as known.
    pub missed: u64,
    /// Flows and states when the window opened, and packets unaccounted for at the end.
    pub opening: Opening,
    /// Counts of all phases when the window opened.
    pub at_opening: Counts,
    /// States of the device while counted packets were sent, each with the nanoseconds since the
    /// first packet. Empty for other load profiles.
    pub states: Vec<(u64, u64)>,
    /// Raw samples.
    pub samples: Vec<Sample>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

impl Observed {
    /// Packets received that do not belong to this run.
    pub fn others(&self) -> u64 {
        let test_packets = self.foreign.saturating_add(self.unstamped);
        test_packets.saturating_add(self.arrivals.others)
    }

    /// Packets of the trial as the DUT's interfaces should have counted them: forwarded packets,
    /// damaged and duplicate ones, the receiver's drops, and `others` that arrived since the first
    /// reading of its counters.
    pub fn at_the_dut(&self, others: u64) -> Counts {
        let passed = self.passed();
        let forwarded = passed.forwarded + self.receiver_dropped + others;
        Counts { offered: passed.offered, forwarded }
    }

    /// Packets of the whole trial: sent, and transmitted by the device (including damaged and
    /// duplicate ones).
    pub fn passed(&self) -> Counts {
        let Arrivals { damaged, duplicates, .. } = self.arrivals;
        let others = damaged.saturating_add(duplicates);
        Counts { forwarded: self.total.forwarded.saturating_add(others), ..self.total }
    }

    /// Returns the record of the trial, with the readings of DUT counters and CPU times.
    pub fn into_record(self, counters: Vec<Counter>, cpus: Vec<CpuTime>) -> TrialRecord {
        TrialRecord {
            window_ns: self.window_ns,
            intended: self.intended,
            window: self.window,
            total: self.total,
            foreign: self.foreign,
            unstamped: self.unstamped,
            flows_seen: self.flows_seen,
            drain_ns: self.drain_ns,
            opening: self.opening,
            samples: self.samples,
            counters,
            cpus,
            arrivals: self.arrivals,
            ..TrialRecord::default()
        }
    }
}

/// Deviation of the wall clock from the monotonic clock that counts as a clock step.
const JUMP_NS: i64 = 50_000_000;

/// Runs one trial: warm-up and window at one load.
///
/// # Errors
/// Returns [`BenchError::Interrupted`] if the observer cancels (the senders are stopped then), and
/// errors of traffic or switching.
pub fn run(
    traffic: &mut dyn Traffic,
    clock: &dyn Clock,
    spec: TrialSpec<'_>,
    observer: &mut dyn Observer,
) -> Result<Observed, BenchError> {
    run_as(LoadProfile::Steady, traffic, clock, spec, observer)
}

/// Runs one trial with another load profile than a steady load.
///
/// # Errors
/// As [`run`], and errors of the profile's action.
pub fn run_as(
    mut profile: LoadProfile<'_>,
    traffic: &mut dyn Traffic,
    clock: &dyn Clock,
    mut spec: TrialSpec<'_>,
    observer: &mut dyn Observer,
) -> Result<Observed, BenchError> {
    let idle = traffic.snapshot();
    if idle.received_total() > 0 {
        // Can't happen with an unused run id unless something is badly broken.
        let (offered, forwarded) = (idle.sent_total(), idle.received_total());
        return Err(BenchError::Refused(format!(
            "{forwarded} packets of this run arrived before it began ({offered} sent)"
        )));
    }
    let wall_before = clock.wall_ns() - clock.now_ns() as i64;
    if matches!(profile, LoadProfile::Burst(_)) {
        traffic.set_phase(Phase::Window);
    }
    traffic.start()?;
    let measured = match profile {
        LoadProfile::Burst(packets) => burst::measure(packets, traffic, clock, &mut spec, observer),
        _ => measure(&mut profile, traffic, clock, &mut spec, observer),
    };
    traffic.set_phase(Phase::After);
    let stopped = traffic.stop();
    let Window { ns: window_ns, samples, mut opening, at_opening, states } = measured?;
    stopped?;
    let drained = drain::wait(traffic, clock, spec.account, spec.trial.drain_ns);
    let drain_ns = drained.last_ns;
    (opening.drained, opening.unaccounted) = (Some(drained.end), drained.unaccounted);
    let last = traffic.snapshot();
    let flows_seen = traffic.flows_seen();
    let arrivals = traffic.arrivals();
    traffic.finish()?;
    let window_ns = traffic.window_ns().unwrap_or(window_ns);
    let jump_ns = clock.wall_ns() - clock.now_ns() as i64 - wall_before;

    let phase = Phase::Window as usize;
    let window = Counts { offered: last.sent[phase], forwarded: last.received[phase] };
    let phase = Phase::WarmUp as usize;
    let warm_up = Counts { offered: last.sent[phase], forwarded: last.received[phase] };
    let total = Counts { offered: last.sent_total(), forwarded: last.received_total() };
    let rate_pps = profile.window_pps().or(spec.rate_pps);
    let intended = rate_pps.map(|rate| (rate * window_ns as f64 / 1e9).round() as u64);
    let mut warnings = Vec::new();
    // Each direction by itself: a surplus of one does not make up for a shortfall of the other.
    let reverse = arrivals.reverse.as_deref();
    let directions = match reverse {
        Some(reverse) => vec![window.without(reverse.window), reverse.window],
        None => vec![window],
    };
    let least = directions.iter().map(|direction| direction.offered).min().unwrap_or(0)
        * directions.len() as u64;
    if let Some(intended) = intended
        && intended as f64 > least as f64 * 1.005
    {
        warnings.push(Warning::Unsent { intended, offered: window.offered });
    }
    let totals = reverse.map(|reverse| [total.without(reverse.total), reverse.total]);
    for counts in [window, total].into_iter().chain(directions).chain(totals.into_iter().flatten())
    {
        if counts.lost() < 0 {
            warnings.push(Warning::NotConserved {
                offered: counts.offered,
                forwarded: counts.forwarded,
            });
            break;
        }
    }
    if last.foreign > 0 {
        warnings.push(Warning::Foreign { packets: last.foreign });
    }
    warnings.extend(crate::arrivals::doubts(&arrivals, total.forwarded, last.unstamped));
    if last.receiver_dropped > 0 {
        warnings.push(Warning::ReceiverDropped { packets: last.receiver_dropped });
    }
    warnings.extend(drained.doubt(spec.trial.drain_ns));
    warnings.extend(opening::doubt(&opening));
    if jump_ns.abs() > JUMP_NS {
        warnings.push(Warning::ClockJump { jump_ns });
    }
    if spec.alternation.is_none()
        && let Some(ratio) = unsteady(&samples)
    {
        warnings.push(Warning::NotSteady { ratio });
    }
    Ok(Observed {
        window_ns,
        intended,
        window,
        total,
        warm_up,
        foreign: last.foreign,
        flood: last.flood,
        unstamped: last.unstamped,
        flows_seen,
        arrivals,
        drain_ns,
        receiver_dropped: last.receiver_dropped,
        missed: last.missed,
        opening,
        at_opening,
        states,
        samples,
        warnings,
    })
}

/// Observations of a window.
#[derive(Default)]
struct Window {
    /// Length, nanoseconds.
    ns: u64,
    samples: Vec<Sample>,
    /// Flows and states when the window opened.
    opening: Opening,
    /// Counts of all phases when the window opened.
    at_opening: Counts,
    /// [`Observed::states`].
    states: Vec<(u64, u64)>,
}

/// Runs warm-up and window.
fn measure(
    profile: &mut LoadProfile<'_>,
    traffic: &mut dyn Traffic,
    clock: &dyn Clock,
    spec: &mut TrialSpec<'_>,
    observer: &mut dyn Observer,
) -> Result<Window, BenchError> {
    let trial = *spec.trial;
    let begin = clock.now_ns();
    let total_ns = trial.warmup_ns + trial.duration_ns;
    let mut variant = spec.variant;
    let mut shown = (begin, traffic.snapshot());
    let mut show = |now: u64, snapshot: Snapshot, variant, observer: &mut dyn Observer| {
        let seconds = (now - shown.0) as f64 / 1e9;
        if seconds >= 0.1 {
            let per_second = |a: u64, b: u64| a.saturating_sub(b) as f64 / seconds;
            observer.live(&Live {
                at_ns: now - begin,
                total_ns,
                offered_pps: per_second(snapshot.sent_total(), shown.1.sent_total()),
                forwarded_pps: per_second(snapshot.received_total(), shown.1.received_total()),
                variant,
            });
            shown = (now, snapshot);
        }
    };

    let open = begin + trial.warmup_ns;
    let mut now = begin;
    while now < open {
        now = clock.sleep_until(open.min(now + trial.interval_ns));
        show(now, traffic.snapshot(), variant, observer);
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
    }
    let mut waiting = opening::Waiting::new(begin, open, spec.awaited);
    while !waiting.is_over(now, traffic, spec.account) {
        now = clock.sleep_until(now + trial.interval_ns);
        show(now, traffic.snapshot(), variant, observer);
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
    }
    let mut opening = waiting.into_opening(clock.now_ns());

    (spec.at_window)(Moment::Opening);
    traffic.set_phase(Phase::Window);
    if let Some(rate_pps) = profile.window_pps() {
        traffic.set_rate(rate_pps)?;
    }
    let start = clock.now_ns();
    (spec.at_window)(Moment::Open(start));
    let close = start + trial.duration_ns;
    let mut samples = Vec::with_capacity((trial.duration_ns / trial.slice_ns.max(1)) as usize + 1);
    let (mut slice, mut settled) = (0, start);
    let mut last = (start, traffic.snapshot(), traffic.evidence());
    let (offered, forwarded) = (last.1.sent_total(), last.1.received_total());
    let at_opening = Counts { offered, forwarded };
    let mut deadline = start;
    while last.0 < close {
        if let Some(alternation) = &mut spec.alternation {
            let current = ((last.0 - start) / alternation.slice_ns.max(1)) as u32;
            if current != slice {
                slice = current;
                let length = alternation.length.max(1);
                let next = (alternation.cycle)(current / length)[(current % length) as usize];
                if next != variant {
                    (alternation.switch)(next)?;
                    variant = next;
                }
                // The warm-up served as the first slice's settling time. A repeated level (B B)
                // also gets one, although nothing is switched, so that all slices are treated
                // alike.
                settled = clock.now_ns() + alternation.settle_ns;
            }
        }
        deadline = (deadline + trial.slice_ns).max(last.0 + trial.slice_ns / 2).min(close);
        let now = clock.sleep_until(deadline);
        let (snapshot, evidence) = (traffic.snapshot(), traffic.evidence());
        samples.push(Sample {
            variant,
            slice,
            valid: last.0 >= settled,
            ..sample_of(&last, &(now, snapshot, evidence), start)
        });
        show(now, snapshot, variant, observer);
        last = (now, snapshot, evidence);
        profile.at(now - start)?;
        if observer.cancelled() {
            return Err(BenchError::Interrupted);
        }
    }
    traffic.set_phase(Phase::After);
    let end = clock.now_ns();
    (spec.at_window)(Moment::Closed(end));
    opening.states_closing = opening.states.and_then(|_| spec.account.states());
    Ok(Window { ns: end - start, samples, opening, at_opening, ..Window::default() })
}

/// Readings of both ends and of the kernel at one moment, by the trial's clock.
type Reading = (u64, Snapshot, Evidence);

/// Returns the sample between two readings, of a window that began at `start` nanoseconds.
fn sample_of(before: &Reading, after: &Reading, start: u64) -> Sample {
    let (last, now) = (before, after);
    let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
    Sample {
        at_ns: last.0 - start,
        duration_ns: now.0 - last.0,
        offered: now.1.sent_total().saturating_sub(last.1.sent_total()),
        forwarded: now.1.received_total().saturating_sub(last.1.received_total()),
        stolen_ns: now.2.stolen_ns.saturating_sub(last.2.stolen_ns),
        ran_ns: since(now.2.ran_ns, last.2.ran_ns),
        waited_ns: since(now.2.waited_ns, last.2.waited_ns),
        sender_waited_ns: since(now.2.sender_waited_ns, last.2.sender_waited_ns),
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests;
