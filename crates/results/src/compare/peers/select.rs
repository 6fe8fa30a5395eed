//! Selects benchmarks of a reading, and checks that two inputs measure the same.

use super::{Benchmark, Fault, Format, Reading, UnusableRuns, excerpt, read};
use crate::compare::error::{CompareError, mostly_left_out};
use crate::compare::input::{Identity, Input, Kind, Peer, Variant};
use crate::profile::is_majority;
use crate::stats::BlockedRun;
use fwdlab_model::labels::some_of;
use fwdlab_model::suggest;
use std::path::Path;

/// Selection of runs in files of other tools.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::compare) struct Choice<'a> {
    /// Name of the benchmark.
    pub(in crate::compare) only: Option<&'a str>,
    /// Name of the value.
    pub(in crate::compare) column: Option<&'a str>,
    /// True if an argument names a benchmark of the file, which may be a secondary one.
    pub(in crate::compare) has_label: bool,
    /// True if one run suffices: nothing is compared.
    pub(in crate::compare) is_single_enough: bool,
}

/// Reads the file as an input if it is of a known format. `None` for any other text.
pub(in crate::compare) fn input(
    path: &Path,
    text: &str,
    choice: Choice<'_>,
) -> Result<Option<Input>, CompareError> {
    match read(path, text, choice.column).map_err(|fault| fault.in_file(path))? {
        Some((format, reading)) => select(path, format, reading, choice).map(Some),
        None => Ok(None),
    }
}

fn select(
    path: &Path,
    format: Format,
    mut reading: Reading,
    choice: Choice<'_>,
) -> Result<Input, CompareError> {
    let error = |what: String, next: String| CompareError::input(path, None, what, next);
    let shown = path.display();
    let benchmarks = std::mem::take(&mut reading.benchmarks);
    let is_requested: Box<dyn Fn(&Benchmark) -> bool> = match choice.only {
        Some(only) => {
            let names: Vec<&str> =
                benchmarks.iter().filter_map(|one| one.name.as_deref()).collect();
            if !names.contains(&only) {
                let next = match suggest::nearest(only, names.iter().copied()) {
                    Some(nearest) => format!("did you mean `{nearest}`?"),
                    None if names.is_empty() => "leave out --only".to_owned(),
                    None => format!("its benchmarks are {}", some_of(names.iter().copied())),
                };
                return Err(error(format!("there is no benchmark `{only}`"), next));
            }
            let only = only.to_owned();
            Box::new(move |benchmark| benchmark.name.as_deref() == Some(&only))
        }
        None if choice.has_label || benchmarks.iter().all(|one| one.is_secondary) => {
            Box::new(|_| true)
        }
        None => Box::new(|benchmark| !benchmark.is_secondary),
    };
    let (kept, other): (Vec<Benchmark>, Vec<Benchmark>) =
        benchmarks.into_iter().partition(|benchmark| is_requested(benchmark));
    // Ports and sending counters are other values of the same runs.
    let (views, other): (Vec<Benchmark>, Vec<Benchmark>) =
        other.into_iter().partition(|benchmark| benchmark.is_secondary);
    if kept.iter().all(|benchmark| !benchmark.is_secondary) {
        let runs = other.iter().map(|benchmark| benchmark.values.len()).sum::<usize>();
        reading.leave_out(format!("runs of {} other benchmarks", other.len()), runs);
        let names: Vec<&str> = views.iter().filter_map(|one| one.name.as_deref()).collect();
        if !names.is_empty() {
            let names = some_of(names.iter().copied());
            reading.notes.push(format!("--only also selects {names}"));
        }
    }
    let is_unread = |name: &String| {
        let names = |all: &[Benchmark]| all.iter().any(|one| one.name.as_ref() == Some(name));
        let is_other = names(&views) || names(&other) || choice.only.is_some();
        is_other && !names(&kept)
    };
    let unusable = unusable(&reading.unusable, is_unread);
    let kept: Vec<Benchmark> = kept.into_iter().filter(|one| !one.values.is_empty()).collect();
    for benchmark in &kept {
        Fault::check(benchmark).map_err(|fault| fault.in_file(path))?;
    }
    let left_out: Vec<String> =
        reading.left_out.iter().map(|(kind, runs)| format!("{runs} {kind}")).collect();
    let Some(first) = kept.first() else {
        let what = match left_out.is_empty() {
            true => format!("{format} wrote no run into this file"),
            false => format!("no run of {format} is usable ({})", left_out.join(", ")),
        };
        return Err(error(what, "measure again".to_owned()));
    };
    let runs = kept.iter().map(|benchmark| benchmark.values.len()).sum::<usize>();
    let failed = unusable.iter().map(|(_, runs)| runs).sum::<usize>();
    if is_majority(failed, failed + runs) {
        let kinds: Vec<String> =
            unusable.iter().map(|(kind, runs)| format!("{runs} {kind}")).collect();
        let what = mostly_left_out(&kinds.join(", "), runs);
        return Err(error(what, "measure again, or give a file without these runs".to_owned()));
    }
    if let ([only], true, false) =
        (kept.as_slice(), first.values.len() < 2, choice.is_single_enough)
    {
        let of =
            only.name.as_deref().map_or(String::new(), |name| format!(" of {}", excerpt(name)));
        let parts = reading.parts.map_or(String::new(), |(kind, parts)| {
            format!(" ({parts} {kind} are parts of runs, not runs)")
        });
        let left_out = match left_out.is_empty() {
            true => String::new(),
            false => format!("; left out: {}", left_out.join(", ")),
        };
        let what = format!("one run{of} of {format} does not show the scatter{parts}{left_out}");
        let next =
            "measure it at least twice, better ten times, and append the results to one file";
        return Err(error(what, next.to_owned()));
    }
    let name = match (kept.as_slice(), &first.name) {
        ([_], Some(name)) => format!(" of `{}`", excerpt(name)),
        ([_], None) => String::new(),
        (several, _) => format!(" of {} benchmarks", several.len()),
    };
    let parts = reading.parts.map_or(String::new(), |(kind, parts)| format!(" ({parts} {kind})"));
    let mut notes = vec![format!("{shown}: {format}, {runs} runs{name}{parts}, {}", first.title())];
    if !left_out.is_empty() {
        notes.push(format!("{shown}: left out: {}", left_out.join(", ")));
    }
    notes.extend(reading.notes.iter().map(|note| format!("{shown}: {note}")));
    let is_single = kept.len() == 1 && !choice.has_label;
    let variant = |benchmark: &Benchmark| Variant {
        label: match &benchmark.name {
            Some(name) if !is_single => name.clone(),
            _ => Input::stem(path),
        },
        runs: (0..).zip(&benchmark.values).map(|(block, &pps)| BlockedRun { block, pps }).collect(),
        known: Vec::new(),
        executed: Vec::new(),
    };
    Ok(Input {
        path: path.to_path_buf(),
        name: shown.to_string(),
        kind: Kind::Peer,
        variants: kept.iter().map(variant).collect(),
        has_blocks: false,
        origin: None,
        label: None,
        plan: None,
        streams: Vec::new(),
        beds: Vec::new(),
        notes,
        peer: Some(Peer {
            tool: format.to_string(),
            benchmarks: kept.iter().map(Benchmark::identity).collect(),
        }),
    })
}

/// Unusable runs by kind, except runs of benchmarks that are not read.
fn unusable(all: &[UnusableRuns], is_unread: impl Fn(&String) -> bool) -> Vec<(&str, usize)> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for UnusableRuns { benchmark, kind, runs } in all.iter().filter(|one| one.runs > 0) {
        if benchmark.as_ref().is_some_and(&is_unread) {
            continue;
        }
        match kinds.iter_mut().find(|(known, _)| known == kind) {
            Some((_, sum)) => *sum += runs,
            None => kinds.push((kind, *runs)),
        }
    }
    kinds
}

impl Benchmark {
    /// Unit and meaning of the values, e.g. `bits per second received`.
    fn title(&self) -> String {
        match self.what {
            "" => self.quantity.name().to_owned(),
            what => format!("{} {what}", self.quantity.name()),
        }
    }

    fn identity(&self) -> Identity {
        Identity {
            quantity: self.quantity.clone(),
            title: self.title(),
            name: self.name.clone(),
            is_identified: self.is_identity,
        }
    }
}
