//! A variant's profile in a store, for all commands that read profiles.

use crate::error::CliError;
use crate::experiment::STORE;
use anyhow::Result;
use fwdlab_results::profile::{self, Content, Format, Profile, Stacks, Unknown};
use fwdlab_results::store::{Store, StoredProfile};
use std::io::Read;
use std::path::{Path, PathBuf};

/// First bytes of every SQLite file, and so of every store.
const MAGIC: &[u8] = b"SQLite format 3\0";

/// A profile of a store with its label and packets.
pub(super) struct Stored {
    /// Label of the variant.
    pub(super) label: String,
    pub(super) profile: Profile,
    /// Packets forwarded during the profile.
    pub(super) packets: f64,
}

/// Returns the profile at `DIR-or-STORE` or `DIR-or-STORE:VARIANT`; `None` if the argument is not a
/// store.
///
/// # Errors
/// A store without profiles, or without one of that label.
pub(super) fn of(argument: &Path) -> Result<Option<Stored>> {
    let Some((path, label)) = split_label(argument) else { return Ok(None) };
    let store = Store::open_read_only(&path)?;
    let plan = store.plan()?;
    let stored = store.profiles()?;
    let label_of = |profile: &StoredProfile| {
        plan.variants.get(profile.record.variant).map_or("?", |variant| variant.label.as_str())
    };
    let mut known: Vec<&str> = stored.iter().map(label_of).collect();
    // Profiles are sorted by variant.
    known.dedup();
    let shown = path.display();
    let label = match (label, known.as_slice()) {
        (_, []) => {
            let what = format!("{shown} holds no profiles: take them with `fwdlab run --profile`");
            return Err(CliError::Mistake(what).into());
        }
        (None, [only]) => (*only).to_owned(),
        (None, [first, ..]) => {
            let what = format!(
                "{shown} holds several profiles: name one of them, e.g. {}:{first}",
                argument.display(),
            );
            return Err(CliError::Mistake(what).into());
        }
        (Some(label), known) if known.contains(&label.as_str()) => label,
        (Some(label), known) => {
            let what = format!("{shown} has no profile of `{label}`, but of {}", known.join(", "));
            return Err(CliError::Mistake(what).into());
        }
    };
    let of_variant = || stored.iter().filter(|profile| label_of(profile) == label);
    // Profile runs have more samples than measured runs.
    let mut starts: Vec<&StoredProfile> = of_variant().filter(|p| p.record.run.is_none()).collect();
    if starts.is_empty() {
        starts = of_variant().collect();
    }
    let windows = starts.iter().flat_map(|start| &start.record.windows);
    let packets = windows.map(|window| window.forwarded as f64).sum();
    Ok(Some(Stored { packets, profile: read(&starts), label }))
}

/// Splits an argument into the path of the store and the label of the variant. An existing path is
/// taken as a whole, even if it contains colons.
fn split_label(argument: &Path) -> Option<(PathBuf, Option<String>)> {
    if let Some(store) = store(argument) {
        return Some((store, None));
    }
    let text = argument.to_str()?;
    text.match_indices(':')
        .find_map(|(at, _)| Some((store(Path::new(&text[..at]))?, Some(text[at + 1..].to_owned()))))
}

fn store(path: &Path) -> Option<PathBuf> {
    let path = if path.is_dir() { path.join(STORE) } else { path.to_path_buf() };
    let mut first = [0; MAGIC.len()];
    std::fs::File::open(&path).and_then(|mut file| file.read_exact(&mut first)).ok()?;
    (first == *MAGIC).then_some(path)
}

/// Combines all windows of a variant's profile runs, in the sampled unit. Samples of other programs
/// and of the receiver on the same CPUs are excluded.
fn read(starts: &[&StoredProfile]) -> Profile {
    let (mut stacks, mut left_out, mut all) = (Stacks::default(), 0, 0);
    let mut remarks: Vec<String> = Vec::new();
    for stored in starts {
        let windows: Vec<Stacks> = stored.windows.iter().map(|w| profile::unfold(w)).collect();
        let filter = profile::of_dut(&windows);
        for split in windows.iter().map(|stacks| filter.split(stacks)) {
            for (frames, count) in split.work.iter().chain(split.idle.iter()) {
                stacks.add(frames.to_vec(), (count as f64 * stored.per_sample).round() as u64);
            }
            left_out += split.harness.total();
            all += split.total();
        }
        let new = stored.record.remarks.iter().filter(|remark| !remarks.contains(remark));
        let new: Vec<String> = new.cloned().collect();
        remarks.extend(new);
    }
    if starts.len() > 1 {
        let are_measured = starts.iter().all(|stored| stored.record.run.is_some());
        let kind = if are_measured { "measured" } else { "profile" };
        remarks.push(format!("{} {kind} runs together", starts.len()));
    }
    if left_out > 0 {
        let share = 100.0 * left_out as f64 / all as f64;
        remarks.push(format!(
            "{share:.1} % of the samples, of other programs and of the receiver, are left out"
        ));
    }
    Profile {
        format: Format::Folded,
        content: Content::Stacks(stacks),
        unit: starts.first().map_or(String::new(), |stored| stored.unit.clone()),
        event: None,
        unknown: Unknown::default(),
        left_out: Vec::new(),
        remarks,
    }
}
