//! From samples to a verdict: samples of a device of known truth go through the same statistics and
//! comparisons as the samples of a store.
//!
//! A device is a rate in each of a run's slices of 20 ms. Disturbances are either its own (stalls,
//! an unsteady pace) or taken from it (steal, which the machine reports or hides); a verdict must
//! distinguish the two.

use super::Table;
use super::law::CV;
use crate::selftest::Bar;
use fwdlab_bench::testbed::sim::RunLaw;
use fwdlab_model::plan::Plan;
use fwdlab_model::record::{
    Counts, CpuTime, DeviceTime, ReceiverPlace, RunRecord, Sample, TrialRecord,
};
use fwdlab_model::settings::SimSettings;
use fwdlab_results::report::analysis::{Outcome, verdicts};
use fwdlab_results::stats::Verdict;
use fwdlab_results::store::Contents;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeSet;

/// Blocks of an experiment.
const BLOCKS: u32 = 10;
/// Number of slices of a run, and their length.
const SLICES: u64 = 50;
const SLICE_NS: u64 = 20_000_000;
/// The kernel reports steal in ticks of 10 ms.
const TICK_NS: u64 = 10_000_000;
/// Rate of the undisturbed device, packets per second.
const PPS: f64 = 1e6;
/// Scatter of the slices of a steady device.
const STEADY: f64 = 0.02;

/// Disturbances of a device's slices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Device {
    /// Rate relative to the baseline.
    pub(super) ratio: f64,
    /// Share of slices in which it stalls, losing 85 % of them.
    pub(super) stalls: f64,
    /// Scatter of its slices.
    pub(super) scatter: f64,
    /// Mean of a one-sided loss in every slice (exponential).
    pub(super) sag: f64,
    /// Chance of a start that is 4 % slower.
    pub(super) bad_starts: f64,
    /// Share of packets lost at a paced rate.
    pub(super) loss: f64,
}

pub(super) const STEADY_DEVICE: Device =
    Device { ratio: 1.0, stalls: 0.0, scatter: STEADY, sag: 0.0, bad_starts: 0.0, loss: 0.0 };

/// Effects of the machine on both device and sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Machine {
    /// Share of slices in which a fifth to all of the time is stolen.
    pub(super) steal: f64,
    /// True if the kernel reports the steal.
    pub(super) reports_steal: bool,
    /// Scatter of a paced sender's rate.
    pub(super) sender: f64,
    /// Amplitude of a wave of 1 Hz in the machine's speed.
    pub(super) wave: f64,
    /// Share of runs in which the kernel accounts a third to a half of the device's CPU time, and
    /// the rest as waiting.
    pub(super) understated: f64,
}

pub(super) const QUIET_MACHINE: Machine =
    Machine { steal: 0.0, reports_steal: true, sender: 0.0, wave: 0.0, understated: 0.0 };

/// The layout of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Runs at full load.
    Full,
    /// Runs at a paced rate.
    Paced,
    /// Streams, switched at this interval in milliseconds.
    Streams(u32),
}

impl Kind {
    fn name(self) -> String {
        match self {
            Kind::Full => format!("{BLOCKS} blocks of 1 + 1, full load"),
            Kind::Paced => format!("{BLOCKS} blocks of 1 + 1, paced"),
            Kind::Streams(ms) => format!("5 streams of 24 slices of {ms} ms"),
        }
    }

    /// The plan of an experiment of this kind.
    fn plan(self) -> Plan {
        let mut text = String::from(TWO_VARIANTS);
        text += match self {
            Kind::Full | Kind::Streams(_) => "",
            Kind::Paced => "[traffic]\nrate = \"100kpps\"\n",
        };
        text += &match self {
            Kind::Full | Kind::Paced => format!("[design]\nblocks = {BLOCKS}\n"),
            Kind::Streams(ms) => format!(
                "[design]\nblocks = 5\nalternate = \"{ms}ms\"\n[trial]\nduration = \"{}ms\"\n\
                 slice = \"10ms\"\n",
                24 * ms
            ),
        };
        load(&text)
    }
}

/// Plan of a constant text, which a test loads.
pub(super) fn load(text: &str) -> Plan {
    let nothing = |name: &str| Err(format!("no file {name} belongs to the self-test"));
    fwdlab_model::load("road.toml", text, &nothing)
        .unwrap_or_else(|faults| panic!("{}", faults.render(false)))
}

/// Experiment file of two variants, without a design.
pub(super) const TWO_VARIANTS: &str = "version = 1\n[testbed]\nkind = \"netns\"\n[[factor]]\n\
    name = \"firewall\"\nlevels = [\"none\", \"stateless\"]\n";

/// One experiment, drawn from a seed.
pub(super) struct Draw {
    random: Xoshiro256StarStar,
    /// Runs whose CPU time is understated.
    pub(super) understated: BTreeSet<u32>,
}

impl Draw {
    pub(super) fn new(seed: u64) -> Draw {
        Draw { random: Xoshiro256StarStar::seed_from_u64(seed), understated: BTreeSet::new() }
    }

    fn uniform(&mut self) -> f64 {
        (self.random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A factor around 1 of this relative scatter.
    fn factor(&mut self, scatter: f64) -> f64 {
        let sim = SimSettings { noise: scatter, ..SimSettings::default() };
        RunLaw::new(&sim, self.random.next_u64()).factor()
    }

    fn chance(&mut self, share: f64) -> bool {
        self.uniform() < share
    }

    /// The runs of `plan`; the second variant is `candidate`.
    pub(super) fn contents(
        &mut self,
        plan: &Plan,
        candidate: Device,
        machine: Machine,
    ) -> Contents {
        let baseline = Device { ratio: 1.0, stalls: 0.0, scatter: STEADY, loss: 0.0, ..candidate };
        let devices = [baseline, candidate];
        let runs = plan.runs.iter().map(|run| {
            let start = self.factor(CV);
            let mut samples = match plan.design.alternate_ns {
                None => self.run(devices[run.variants[0]], run.variants[0], machine, plan, start),
                Some(slice_ns) => self.stream(&devices, slice_ns, run, machine, plan, start),
            };
            if machine.understated > 0.0 && self.chance(machine.understated) {
                let share = (1.0 + 0.5 * self.uniform()) / 3.0;
                samples.iter_mut().for_each(|sample| understate(sample, share));
                self.understated.insert(run.index);
            }
            let ran_ns = samples.iter().map(|sample| sample.ran_ns).sum();
            let sum = |of: fn(&Sample) -> u64| samples.iter().map(of).sum::<u64>();
            let window = Counts { offered: sum(|s| s.offered), forwarded: sum(|s| s.forwarded) };
            let window_ns = sum(|s| s.duration_ns);
            let intended = plan.variants[run.variants[0]].settings.is_paced();
            RunRecord {
                run: run.index,
                block: run.block,
                variants: run.variants.clone(),
                trial: TrialRecord {
                    window_ns,
                    intended: intended.then(|| (1e5 * window_ns as f64 / 1e9) as u64),
                    window,
                    total: window,
                    samples,
                    cpus: vec![CpuTime { cpu: 1, role: "dut".into(), ..CpuTime::default() }],
                    device: DeviceTime {
                        ran_ns,
                        receiver: ReceiverPlace::Own,
                        ..DeviceTime::default()
                    },
                    ..TrialRecord::default()
                },
                ..RunRecord::default()
            }
        });
        let runs: Vec<RunRecord> = runs.collect();
        Contents {
            plan: plan.clone(),
            experiment: String::new(),
            invocations: Vec::new(),
            run_invocations: vec![1; runs.len()],
            runs,
            calibrations: Vec::new(),
            import: None,
            profiles: Vec::new(),
        }
    }

    fn run(
        &mut self,
        device: Device,
        variant: usize,
        machine: Machine,
        plan: &Plan,
        start: f64,
    ) -> Vec<Sample> {
        let start = if self.chance(device.bad_starts) { 0.96 * start } else { start };
        let paced = plan.variants[variant].settings.is_paced();
        let sender = self.factor(machine.sender.max(1e-9));
        let mut unreported_ns = 0;
        (0..SLICES)
            .map(|slice| {
                let mut sample = self.slice(device, machine, SLICE_NS, start, &mut unreported_ns);
                if paced {
                    // The sender's own pace; the device keeps up except for its loss.
                    let offered = 1e5 * sender.min(1.0) * SLICE_NS as f64 / 1e9;
                    sample.offered = offered as u64;
                    sample.forwarded = (sample.offered as f64 * (1.0 - device.loss)) as u64;
                }
                Sample { at_ns: slice * SLICE_NS, variant, valid: true, ..sample }
            })
            .collect()
    }

    fn stream(
        &mut self,
        devices: &[Device; 2],
        slice_ns: u64,
        run: &fwdlab_model::PlannedRun,
        machine: Machine,
        plan: &Plan,
        start: f64,
    ) -> Vec<Sample> {
        const SAMPLE_NS: u64 = 10_000_000;
        let phase = self.uniform();
        let length = run.variants.len() as u64;
        let mut unreported_ns = 0;
        let count = plan.trial.duration_ns / SAMPLE_NS;
        (0..count)
            .map(|n| {
                let at_ns = n * SAMPLE_NS;
                let slice = at_ns / slice_ns;
                let cycle = plan.cycle(run, (slice / length) as u32);
                let variant = cycle[(slice % length) as usize];
                let turns = at_ns as f64 / 1e9 + phase;
                let wave = 1.0 + machine.wave * (std::f64::consts::TAU * turns).sin();
                let sample = self.slice(
                    devices[variant],
                    machine,
                    SAMPLE_NS,
                    start * wave,
                    &mut unreported_ns,
                );
                Sample { at_ns, variant, slice: slice as u32, valid: true, ..sample }
            })
            .collect()
    }

    /// One slice of a device; `unreported_ns` is the steal that no tick has reported yet.
    fn slice(
        &mut self,
        device: Device,
        machine: Machine,
        slice_ns: u64,
        start: f64,
        unreported_ns: &mut u64,
    ) -> Sample {
        let mut rate = PPS * start * device.ratio * self.factor(device.scatter);
        if self.chance(device.stalls) {
            rate *= 0.15;
        }
        if device.sag > 0.0 {
            rate *= (1.0 + device.sag * self.uniform().max(1e-12).ln()).max(0.1);
        }
        let share = if self.chance(machine.steal) { 0.2 + 0.8 * self.uniform() } else { 0.0 };
        let stolen_ns = (share * slice_ns as f64) as u64;
        let mut sample = Sample {
            duration_ns: slice_ns,
            offered: (2.0 * PPS * slice_ns as f64 / 1e9) as u64,
            forwarded: (rate * (slice_ns - stolen_ns) as f64 / 1e9) as u64,
            ..Sample::default()
        };
        if machine.reports_steal {
            *unreported_ns += stolen_ns;
            sample.stolen_ns = *unreported_ns / TICK_NS * TICK_NS;
            *unreported_ns -= sample.stolen_ns;
            sample.ran_ns = Some(slice_ns - stolen_ns);
            sample.waited_ns = Some(0);
        }
        sample
    }
}

/// Keeps this share of a sample's running time, and accounts the rest as waiting.
fn understate(sample: &mut Sample, share: f64) {
    let (ran_ns, waited_ns) = (sample.ran_ns.unwrap_or(0), sample.waited_ns.unwrap_or(0));
    let left_ns = (share * ran_ns as f64) as u64;
    (sample.ran_ns, sample.waited_ns) = (Some(left_ns), Some(waited_ns + ran_ns - left_ns));
}

/// The verdict, or `None` if there is nothing to compare.
fn verdict(plan: &Plan, seed: u64, candidate: Device, machine: Machine) -> Option<Verdict> {
    verdict_of(&Draw::new(seed).contents(plan, candidate, machine))
}

/// The verdict on the runs of a store, or `None` if there is nothing to compare.
pub(super) fn verdict_of(contents: &Contents) -> Option<Verdict> {
    match &verdicts(contents).first()?.outcome {
        Outcome::Compared(answer) => Some(answer.verdict),
        Outcome::Counted(_) | Outcome::Unanswerable { .. } => None,
    }
}

/// A row: question, layout, candidate, machine, promise, verdicts that count.
type Row<'a> = (&'a str, Kind, Device, Machine, Option<Bar>, &'a [Option<Verdict>]);

impl Table<'_> {
    /// The rows of this module.
    pub(super) fn road(&mut self) {
        use Verdict::{Better, Equivalent, Worse};
        let steal = Machine { steal: 0.08, ..QUIET_MACHINE };
        let hidden = Machine { reports_steal: false, ..steal };
        let stalls = Device { stalls: 0.08, ..STEADY_DEVICE };
        let slower = Device { ratio: 0.98, ..STEADY_DEVICE };
        let unsteady = Device { scatter: 0.06, ..STEADY_DEVICE };
        let noisy = Device { ratio: 0.97, ..unsteady };
        let sagging = Device { sag: 0.03, ..STEADY_DEVICE };
        let starts = Device { bad_starts: 0.05, ..STEADY_DEVICE };
        let lossy = Device { loss: 0.01, ..STEADY_DEVICE };
        let wild = Machine { sender: 0.002, ..QUIET_MACHINE };
        let wave = Machine { wave: 0.03, ..QUIET_MACHINE };
        let (found, size) = (Some(Bar::AtLeast(0.9)), Some(Bar::UpperLimitAtMost(0.062)));
        let different = &[Some(Better), Some(Worse)][..];
        let rows: &[Row<'_>] = &[
            ("stalls that lose 7 %: worse", Kind::Full, stalls, steal, found, &[Some(Worse)]),
            ("stalls that lose 7 %: worse", Kind::Full, stalls, hidden, found, &[Some(Worse)]),
            (
                "stalls that lose 7 %: equivalent",
                Kind::Full,
                stalls,
                steal,
                Some(Bar::AtMost(0.01)),
                &[Some(Equivalent)],
            ),
            (
                "stalls that lose 7 %: equivalent",
                Kind::Full,
                stalls,
                hidden,
                Some(Bar::AtMost(0.01)),
                &[Some(Equivalent)],
            ),
            (
                "finds a loss of 2 % from samples",
                Kind::Full,
                slower,
                QUIET_MACHINE,
                found,
                &[Some(Worse)],
            ),
            ("finds a loss of 2 % from samples", Kind::Full, slower, steal, found, &[Some(Worse)]),
            ("finds a loss of 2 % from samples", Kind::Full, slower, hidden, None, &[Some(Worse)]),
            (
                "the same, and shown to be",
                Kind::Full,
                STEADY_DEVICE,
                steal,
                Some(Bar::AtLeast(0.85)),
                &[Some(Equivalent)],
            ),
            (
                "the same, and shown to be",
                Kind::Full,
                STEADY_DEVICE,
                hidden,
                None,
                &[Some(Equivalent)],
            ),
            ("false difference from samples", Kind::Full, STEADY_DEVICE, steal, size, different),
            ("false difference from samples", Kind::Full, STEADY_DEVICE, hidden, size, different),
            ("false difference from samples", Kind::Full, unsteady, steal, size, different),
            ("false difference from samples", Kind::Full, sagging, steal, size, different),
            ("false difference from samples", Kind::Full, starts, steal, size, different),
            (
                "false difference from samples",
                Kind::Streams(170),
                STEADY_DEVICE,
                wave,
                size,
                different,
            ),
            (
                "false difference from samples",
                Kind::Streams(300),
                STEADY_DEVICE,
                wave,
                size,
                different,
            ),
            ("3 % slower and unsteady: worse", Kind::Full, noisy, steal, found, &[Some(Worse)]),
            (
                "3 % slower and unsteady: better",
                Kind::Full,
                noisy,
                steal,
                Some(Bar::AtMost(0.01)),
                &[Some(Better)],
            ),
            (
                "stalls that lose 7 %: worse",
                Kind::Streams(300),
                stalls,
                QUIET_MACHINE,
                found,
                &[Some(Worse)],
            ),
            (
                "no loss at a paced rate: any verdict",
                Kind::Paced,
                STEADY_DEVICE,
                wild,
                Some(Bar::AtMost(0.0)),
                &[Some(Better), Some(Worse), Some(Equivalent), Some(Verdict::Inconclusive)],
            ),
            ("1 % lost at a paced rate: worse", Kind::Paced, lossy, wild, found, &[Some(Worse)]),
        ];
        for (question, kind, device, machine, bar, expected) in rows {
            let plan = kind.plan();
            let happens = |seed: u64| {
                expected.contains(&verdict(&plan, seed, *device, *machine)) && !expected.is_empty()
            };
            // Each one goes through samples: a tenth of the experiments is enough.
            let experiments = (self.experiments / 10).max(self.experiments.min(200));
            let noise = name(*device, *machine);
            self.add_counted(question, kind.name(), noise, *bar, experiments, &happens);
        }
    }
}

/// The distinctive properties as text.
fn name(device: Device, machine: Machine) -> String {
    let mut parts = Vec::new();
    let mut add = |special: bool, text: &str| {
        if special {
            parts.push(text.to_owned());
        }
    };
    add(device.stalls > 0.0, "stalls in 8 % of slices");
    add(device.scatter > STEADY, "its slices scatter by 6 %");
    add(device.sag > 0.0, "one-sided tails");
    add(device.bad_starts > 0.0, "5 % bad starts");
    add(machine.steal > 0.0 && machine.reports_steal, "steal, recorded");
    add(machine.steal > 0.0 && !machine.reports_steal, "steal, hidden");
    add(machine.wave > 0.0, "a wave of 1 Hz, 3 %");
    add(machine.sender > 0.0, "an unsteady sender");
    if parts.is_empty() { "steady".to_owned() } else { parts.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_valid_plan() {
        for kind in [Kind::Full, Kind::Paced, Kind::Streams(170), Kind::Streams(300)] {
            assert_eq!(kind.plan().variants.len(), 2, "{kind:?}");
        }
    }

    #[test]
    fn verdict_includes_stalls_and_excludes_steal() {
        let plan = Kind::Full.plan();
        let steal = Machine { steal: 0.08, ..QUIET_MACHINE };
        let stalls = Device { stalls: 0.08, ..STEADY_DEVICE };
        assert_eq!(verdict(&plan, 3, stalls, steal), Some(Verdict::Worse));
        assert_eq!(verdict(&plan, 3, STEADY_DEVICE, steal), Some(Verdict::Equivalent));
        let plan = Kind::Paced.plan();
        assert_eq!(verdict(&plan, 3, STEADY_DEVICE, QUIET_MACHINE), None);
    }
}
