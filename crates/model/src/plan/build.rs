//! Creates the plan of an experiment.

use super::order::Order;
use super::{Factor, Plan, PlannedRun, Variant};
use crate::design::method::TRIALS_MAX;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::experiment::Experiment;
use crate::settings::{Family, GeneratorKind, Settings};
use crate::spec::{self, Loader};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Smallest inet6 frame that carries the stamp: 62 bytes of headers (Ethernet
/// 14, IPv6 40, UDP 8), 18 of stamp, 4 of FCS. An inet frame of 64 bytes has 42
/// of headers and carries the same 18.
pub const INET6_FRAME_MIN: u16 = 84;

/// Smallest inet6 frame of a generator that writes no stamp: 62 bytes of headers, 4 of FCS.
pub const INET6_FRAME_BARE: u16 = 66;

/// Reads, validates and plans an experiment file. `path` is the path given by the user; `loader`
/// reads the files that it names (rulesets), relative to it.
///
/// # Errors
/// All faults of the file.
pub fn load(path: &str, text: &str, loader: &Loader) -> Result<Plan, Diagnostics> {
    let (spec, mut faults) = spec::parse(text, loader);
    let experiment = spec.map(|spec| {
        let (experiment, more) = Experiment::new(path, &spec);
        faults.extend(more);
        experiment
    });
    match experiment {
        Some(experiment) if faults.is_empty() => Ok(plan(&experiment)),
        _ => {
            if faults.is_empty() {
                faults.push(Diagnostic::new(0..0, "the file can't be read as TOML"));
            }
            Err(Diagnostics::new(path, text, faults))
        }
    }
}

/// Lists all variants and all runs of an experiment in order.
pub fn plan(experiment: &Experiment) -> Plan {
    let mut notes = Vec::new();
    let mut base = experiment.base.clone();
    raise_frame(&mut base, &mut notes);
    let variants = variants_of(experiment, &mut notes);
    let mut plan = Plan {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        version: experiment.version,
        factors: experiment.factors.iter().map(|factor| factor.factor.clone()).collect(),
        runs: runs_of(experiment, variants.len()),
        variants,
        trial: experiment.trial,
        design: experiment.design,
        compare: experiment.compare.clone(),
        base,
        notes,
        method: experiment.method.clone(),
        hash: String::new(),
        profile: experiment.profile.clone(),
    };
    plan.hash = hash_of(&plan);
    plan
}

fn variants_of(experiment: &Experiment, notes: &mut Vec<String>) -> Vec<Variant> {
    let mut variants = Vec::new();
    for (index, levels) in experiment.combinations().into_iter().enumerate() {
        let mut settings = experiment.base.clone();
        for (factor, &level) in experiment.factors.iter().zip(&levels) {
            factor.settings[level].iter().for_each(|setting| setting.apply(&mut settings));
        }
        raise_frame(&mut settings, notes);
        let factors = experiment.factors.iter().map(|factor| &factor.factor);
        variants.push(Variant { index, label: label_of(factors, &levels), levels, settings });
    }
    variants
}

fn label_of<'a>(factors: impl Iterator<Item = &'a Factor>, levels: &[usize]) -> String {
    let labels: Vec<&str> =
        factors.zip(levels).map(|(factor, &level)| factor.levels[level].label.as_str()).collect();
    if labels.is_empty() { "all".to_owned() } else { labels.join(", ") }
}

/// Raises an inet6 frame without room for headers and stamp, and adds a note once.
fn raise_frame(settings: &mut Settings, notes: &mut Vec<String>) {
    let traffic = &mut settings.traffic;
    let (smallest, why) = match traffic.generator {
        GeneratorKind::Fwdlab => (
            INET6_FRAME_MIN,
            "the smallest that carry the stamp (62 bytes of headers, 18 of stamp, 4 of FCS); inet frames of 64 bytes carry the same 18",
        ),
        _ => (INET6_FRAME_BARE, "the smallest that there are (62 bytes of headers, 4 of FCS)"),
    };
    if traffic.family != Family::Inet6 || traffic.frame_size.least() >= smallest {
        return;
    }
    let small = traffic.frame_size.sizes().iter().filter(|&&size| size < smallest);
    let small: BTreeSet<String> = small.map(u16::to_string).collect();
    let small = Vec::from_iter(small).join(" and ");
    let note = format!("inet6: frames of {small} bytes raised to {smallest} bytes, {why}");
    if !notes.contains(&note) {
        notes.push(note);
    }
    traffic.frame_size = traffic.frame_size.at_least(smallest);
}

fn runs_of(experiment: &Experiment, variants: usize) -> Vec<PlannedRun> {
    let mut order = Order::new(experiment.design.seed);
    let mut runs = Vec::new();
    let mut index = 0;
    for block in 0..experiment.design.blocks {
        let shuffled = order.permutation(variants);
        let cycles: Vec<Vec<usize>> = match experiment.design.alternate_ns {
            Some(_) => vec![mirrored(shuffled)],
            None => shuffled.into_iter().map(|variant| vec![variant]).collect(),
        };
        for variants in cycles {
            runs.push(PlannedRun { index, block, variants });
            index += 1;
        }
    }
    runs
}

/// Returns A B .. then .. B A: a drift that is linear in time cancels within the cycle.
fn mirrored(mut cycle: Vec<usize>) -> Vec<usize> {
    cycle.extend(cycle.clone().into_iter().rev());
    cycle
}

impl Plan {
    /// Returns the variants of one cycle of an alternation in order, A B .. then .. B A. The first
    /// cycle is the run's own. Each further one is drawn again, so an influence with the period of
    /// a cycle does not always affect the same variant.
    pub fn cycle(&self, run: &PlannedRun, cycle: u32) -> Vec<usize> {
        if cycle == 0 {
            return run.variants.clone();
        }
        let once = &run.variants[..run.variants.len() / 2];
        let mut order = Order::of_cycle(self.design.seed, run.index, cycle);
        mirrored(order.permutation(once.len()).into_iter().map(|place| once[place]).collect())
    }

    /// Returns a random order of the variants' profile runs of one start.
    pub fn order_of_profiles(&self, start: u32) -> Vec<usize> {
        // No run has this index.
        Order::of_cycle(self.design.seed, u32::MAX, start).permutation(self.variants.len())
    }
}

/// Returns the SHA-256 of the plan as JSON with an empty hash, first 16 hexadecimal digits.
///
/// The file name is excluded, because renaming it changes no measurement. So is the laboratory: the
/// same plan may run in any of them, and its file may be anywhere. Each run records the name of its
/// laboratory.
fn hash_of(plan: &Plan) -> String {
    if plan.base.testbed.lab.is_some() || !plan.name.is_empty() {
        let mut anywhere = Plan { name: String::new(), ..plan.clone() };
        let variants = anywhere.variants.iter_mut().map(|variant| &mut variant.settings);
        variants.chain([&mut anywhere.base]).for_each(|settings| settings.testbed.lab = None);
        return hash_of(&anywhere);
    }
    // A plan consists of strings, integers and finite numbers under string keys, so its
    // serialisation cannot fail. If it did, the hash of an empty input would reveal it.
    let json = serde_json::to_vec(plan).unwrap_or_default();
    Sha256::digest(&json).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

impl Plan {
    /// Sets the hash of the contents, for a plan that was not created from an experiment file.
    #[must_use]
    pub fn sealed(mut self) -> Plan {
        self.hash = String::new();
        self.hash = hash_of(&self);
        self
    }

    /// True if the hash matches the contents; false for a modified plan.
    pub fn is_intact(&self) -> bool {
        hash_of(&Plan { hash: String::new(), ..self.clone() }) == self.hash
    }

    /// Returns the identity of the run at `index` in [`Plan::runs`], stamped into its packets.
    /// Derived from hash and index, unique within the plan, never 0.
    pub fn run_id(&self, index: u32) -> u32 {
        let base = u32::from_str_radix(self.hash.get(..8).unwrap_or("0"), 16).unwrap_or(0) >> 1;
        // 1 .. 2^32 - 1 without wrapping for any index below 2^31, so never 0,
        // which alone would be mixed to 0.
        mix(base.wrapping_add(1).wrapping_add(index))
    }

    /// Returns the identity of a method's trial, in addition to the run's own one, by its number
    /// from 0, below [`TRIALS_MAX`]. It differs from the identities of all runs and other trials of
    /// the plan.
    pub fn trial_id(&self, index: u32, trial: u32) -> u32 {
        let before = (self.runs.len() as u32).wrapping_add(index.wrapping_mul(TRIALS_MAX));
        self.run_id(before.wrapping_add(trial))
    }
}

/// Maps 32 bits bijectively and spreads neighbours (the finaliser of MurmurHash3).
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x85eb_ca6b);
    x ^= x >> 13;
    x = x.wrapping_mul(0xc2b2_ae35);
    x ^ (x >> 16)
}
