//! Imports many result sets into stores, one store each, on all CPUs.
//!
//! A store made of the same files, by the same rule and the same version of fwdlab is left
//! unchanged, without reading a log. A store is either complete or absent, so an import may be
//! stopped at any time: finished stores remain, and the next import continues. Out of scope:
//! finding the sets ([`scan`](super::scan)) and turning their files into runs
//! ([`assemble`](super::assemble)).

use super::assemble::{Options, Parent, Refused, Rule, Tally, assemble};
use super::found::{FoundFile, ResultSet};
use fwdlab_model::plan::RunMetric;
use fwdlab_results::store::{Source, Status, Store, StoreError};
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read};
use std::num::NonZeroUsize;
use std::path::{Component, Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Limit in bytes; larger files are refused. The longest log of the archive is smaller than one
/// MiB.
pub const LARGEST: u64 = 64 << 20;

/// One set and its store.
#[derive(Clone, Debug)]
pub struct Job {
    /// The set.
    pub set: ResultSet,
    /// Path of its store, existing or not.
    pub store: PathBuf,
    /// The directory as given by the user.
    pub named: String,
}

/// Returns, for each job, the job whose set it extends by a patch: the closest one if there are
/// several.
pub fn parents(jobs: &[Job]) -> Vec<Option<usize>> {
    let place = |job: usize| &jobs[job].set.place;
    let parent = |job: usize| {
        let all = (0..jobs.len()).filter(|&other| place(job).is_patch_of(place(other)));
        all.max_by_key(|&other| place(other).label.len())
    };
    (0..jobs.len()).map(parent).collect()
}

/// Parameters of an import.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The sets.
    pub jobs: &'a [Job],
    /// Options for all sets; [`Job::named`] replaces [`Options::named`].
    pub options: &'a Options,
    /// Number of threads.
    pub threads: NonZeroUsize,
    /// Once true, no further set is started.
    pub stop: &'a AtomicBool,
    /// Reads a file's bytes: [`read`], except in tests that count the calls.
    pub read: &'a (dyn Fn(&FoundFile) -> io::Result<Vec<u8>> + Sync),
    /// Receives events, from any thread.
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

/// An event of an import.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Files were read or skipped. The sums over all events equal the totals of the sets.
    Passed {
        /// Number of files.
        files: usize,
        /// Their size in bytes.
        bytes: u64,
    },
    /// A set is finished.
    Done {
        /// Its index in [`Request::jobs`].
        job: usize,
        /// Its outcome.
        outcome: &'a Outcome,
    },
}

/// Result of an import.
#[derive(Debug)]
pub struct Summary {
    /// The sets, in the order of [`Request::jobs`].
    pub sets: Vec<Finished>,
    /// Sums over the sets that were read.
    pub tally: Tally,
    /// Wall time.
    pub duration: Duration,
}

/// Result of one set.
#[derive(Debug)]
pub struct Finished {
    /// Its outcome.
    pub outcome: Outcome,
    /// Wall time spent on it.
    pub duration: Duration,
}

/// Outcome of one set.
#[derive(Debug)]
pub enum Outcome {
    /// A new store was created.
    Imported(Known),
    /// The files, the rule or fwdlab changed; the store was recreated.
    Updated(Known),
    /// The store already matches the files. The tally counts its logs only.
    Unchanged(Known),
    /// None of its runs could be read, or another set claims the same store.
    Refused(Refused),
    /// The set was read, but its store cannot be read or written.
    Failed(StoreError),
    /// Not started: the user stopped the import first.
    NotReached,
}

/// Summary of a stored set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Counts.
    pub tally: Tally,
    /// Each refused file: name and reason.
    pub refused: Vec<(String, String)>,
    /// Notes on the set.
    pub notes: Vec<String>,
}

impl Outcome {
    /// Returns the summary; `None` if the set has no store.
    pub fn known(&self) -> Option<&Known> {
        match self {
            Outcome::Imported(known) | Outcome::Updated(known) | Outcome::Unchanged(known) => {
                Some(known)
            }
            Outcome::Refused(_) | Outcome::Failed(_) | Outcome::NotReached => None,
        }
    }
}

/// Imports the sets, largest first, so that no thread is left with a large set after the others
/// have finished.
pub fn import(request: &Request<'_>) -> Summary {
    let began = Instant::now();
    let Request { jobs, stop, .. } = *request;
    let (claimed, parents) = (collisions(jobs), parents(jobs));
    let mut order: Vec<usize> = (0..jobs.len()).collect();
    order.sort_by_key(|&job| std::cmp::Reverse(size(&jobs[job].set).1));
    let next = AtomicUsize::new(0);
    let finished: Vec<Mutex<Option<Finished>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        while !stop.load(Ordering::Relaxed)
            && let Some(&job) = order.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let began = Instant::now();
            let parent = parents[job].map(|parent| &jobs[parent]);
            let outcome = one(request, &jobs[job], parent, claimed[job].as_deref());
            (request.on_event)(Event::Done { job, outcome: &outcome });
            let done = Finished { outcome, duration: began.elapsed() };
            *finished[job].lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(done);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..request.threads.get().min(jobs.len()) {
            scope.spawn(work);
        }
        work();
    });
    let not_reached = || Finished { outcome: Outcome::NotReached, duration: Duration::ZERO };
    let sets: Vec<Finished> = finished
        .into_iter()
        .map(|done| done.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()))
        .map(|done| done.unwrap_or_else(not_reached))
        .collect();
    let tally = sum(&sets);
    Summary { sets, tally, duration: began.elapsed() }
}

/// Returns the bytes of a file, at most [`LARGEST`].
///
/// # Errors
/// Fails if the file cannot be opened or read, and with [`io::ErrorKind::FileTooLarge`] if it is
/// larger.
pub fn read(file: &FoundFile) -> io::Result<Vec<u8>> {
    let too_large = || {
        let why = format!("larger than {} MiB, which no log of the harness is", LARGEST >> 20);
        io::Error::new(io::ErrorKind::FileTooLarge, why)
    };
    if file.size > LARGEST {
        return Err(too_large());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(file.size).unwrap_or(0) + 1);
    File::open(&file.path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST { Err(too_large()) } else { Ok(bytes) }
}

/// Returns the number of files of a set and their total size in bytes: logs, published results,
/// configurations.
pub fn size(set: &ResultSet) -> (usize, u64) {
    let sum = |(files, bytes): (usize, u64), file: &FoundFile| (files + 1, bytes + file.size);
    files(set).fold((0, 0), sum)
}

fn files(set: &ResultSet) -> impl Iterator<Item = &FoundFile> {
    let trees = set.configurations.iter().flat_map(|tree| &tree.files);
    set.files.iter().chain(trees).chain(&set.lab)
}

/// Imports one set, unless another set has `claimed` its store. `parent` is the same set without
/// its patch.
fn one(request: &Request<'_>, job: &Job, parent: Option<&Job>, claimed: Option<&str>) -> Outcome {
    let (files, bytes) = size(&job.set);
    let own: HashSet<&Path> = self::files(&job.set).map(|file| file.path.as_path()).collect();
    let passed = RefCell::new(ReadFiles::default());
    let read = |file: &FoundFile| {
        let bytes = (request.read)(file);
        // Files of the parent count towards the parent's own job.
        if own.contains(file.path.as_path()) && passed.borrow_mut().is_new(file) {
            (request.on_event)(Event::Passed { files: 1, bytes: file.size });
        }
        bytes
    };
    let outcome = match claimed {
        Some(why) => refused(why.to_owned()),
        None => {
            let directory = parent.map(|parent| relative(&job.store, &parent.store));
            let parent = parent.zip(directory.as_deref());
            let parent = parent.map(|(parent, store)| Parent { set: &parent.set, store });
            into_store(request, job, parent, read)
        }
    };
    let passed = passed.into_inner();
    let files = files.saturating_sub(passed.paths.len());
    let bytes = bytes.saturating_sub(passed.bytes);
    (request.on_event)(Event::Passed { files, bytes });
    outcome
}

/// Files of a set read so far. Some are read twice but count once.
#[derive(Default)]
struct ReadFiles {
    paths: HashSet<PathBuf>,
    bytes: u64,
}

impl ReadFiles {
    fn is_new(&mut self, file: &FoundFile) -> bool {
        let is_new = self.paths.insert(file.path.clone());
        self.bytes += if is_new { file.size } else { 0 };
        is_new
    }
}

/// Creates the store of a set unless an up-to-date one exists.
fn into_store(
    request: &Request<'_>,
    job: &Job,
    parent: Option<Parent<'_>>,
    read: impl Fn(&FoundFile) -> io::Result<Vec<u8>>,
) -> Outcome {
    match stored(&job.store) {
        Err(error @ (StoreError::NotImported { .. } | StoreError::NotAStore { .. })) => {
            refused(error.to_string())
        }
        Err(error) => Outcome::Failed(error),
        Ok(Some(stored))
            if stored.matches(&job.set, request.options) && matches_parent(&job.store, parent) =>
        {
            Outcome::Unchanged(stored.known())
        }
        Ok(stored) => fetch(request, job, parent, stored.is_some(), read),
    }
}

/// Returns true if `parent` is `None` or the store was made with its figures.
fn matches_parent(store: &Path, parent: Option<Parent<'_>>) -> bool {
    let Some(parent) = parent else { return true };
    let import = Store::open_read_only(store).and_then(|store| store.import());
    let unpatched = import.ok().flatten().and_then(|import| import.about.unpatched);
    unpatched.is_some_and(|unpatched| {
        unpatched.label == parent.set.place.label && unpatched.newest_ns == parent.newest_ns()
    })
}

/// Returns the directory of the file `to` relative to the directory of the file `from`.
fn relative(from: &Path, to: &Path) -> String {
    let directory = |file: &Path| {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        file.parent().map(Path::to_path_buf).unwrap_or_default()
    };
    let (from, to) = (directory(from), directory(to));
    let common = from.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| Component::ParentDir);
    let path: PathBuf = up.chain(to.components().skip(common)).collect();
    path.display().to_string()
}

/// Reads a set and creates its store.
fn fetch(
    request: &Request<'_>,
    job: &Job,
    parent: Option<Parent<'_>>,
    exists: bool,
    read: impl Fn(&FoundFile) -> io::Result<Vec<u8>>,
) -> Outcome {
    let options = Options { named: job.named.clone(), ..request.options.clone() };
    let assembled = match assemble(&job.set, parent, &options, read) {
        Ok(assembled) => assembled,
        Err(refused) => return Outcome::Refused(refused),
    };
    let mut import = assembled.import;
    complete(&mut import.sources, &job.set);
    let known = Known {
        tally: assembled.tally,
        refused: refused_files(&import.sources),
        notes: import.about.notes.clone(),
    };
    let (plan, invocation, runs) = (&assembled.plan, &assembled.invocation, &assembled.runs);
    match Store::create_imported(&job.store, plan, invocation, runs, &import) {
        Err(error) => Outcome::Failed(error),
        Ok(()) if exists => Outcome::Updated(known),
        Ok(()) => Outcome::Imported(known),
    }
}

/// Adds the files that the assembly skipped, since any changed file makes a store outdated.
fn complete(sources: &mut Vec<Source>, set: &ResultSet) {
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    let missing: Vec<Source> = files(set)
        .filter(|file| sources.binary_search_by(|known| known.path.cmp(&file.name)).is_err())
        .map(|file| Source {
            path: file.name.clone(),
            size: file.size,
            modified_ns: file.modified_ns,
            status: Status::Ignored,
            message: String::new(),
        })
        .collect();
    sources.extend(missing);
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources.dedup_by(|a, b| a.path == b.path);
}

fn refused_files(sources: &[Source]) -> Vec<(String, String)> {
    let refused = sources.iter().filter(|source| source.status == Status::Refused);
    refused.map(|source| (source.path.clone(), source.message.clone())).collect()
}

/// Contents of an earlier import.
struct EarlierImport {
    sources: Vec<Source>,
    metric: Option<RunMetric>,
    fwdlab_version: String,
}

/// Reads the earlier import at `path`; `None` if the file does not exist.
fn stored(path: &Path) -> Result<Option<EarlierImport>, StoreError> {
    if !path.exists() {
        return Ok(None);
    }
    let store = Store::open_read_only(path)?;
    let sources = store.sources()?;
    if sources.is_empty() && store.import()?.is_none() {
        return Err(StoreError::NotImported { path: path.to_path_buf() });
    }
    let metric = store.plan()?.compare.figure;
    let last = store.invocations()?.pop();
    let fwdlab_version = last.map(|last| last.invocation.fwdlab_version).unwrap_or_default();
    Ok(Some(EarlierImport { sources, metric, fwdlab_version }))
}

impl EarlierImport {
    /// Returns true if importing `set` would produce the same store.
    fn matches(&self, set: &ResultSet, options: &Options) -> bool {
        let is_same_rule = match self.metric {
            // Throughput searches have one figure, regardless of the rule.
            Some(RunMetric::Mean) => true,
            metric => (metric == Some(RunMetric::Steady)) == (options.rule == Some(Rule::Steady)),
        };
        if !is_same_rule || self.fwdlab_version != options.fwdlab_version {
            return false;
        }
        let mut now: Vec<_> =
            files(set).map(|f| (f.name.as_str(), f.size, f.modified_ns)).collect();
        now.sort_unstable();
        now.dedup_by_key(|(name, ..)| *name);
        let then = self.sources.iter().map(|s| (s.path.as_str(), s.size, s.modified_ns));
        now.into_iter().eq(then)
    }

    fn known(&self) -> Known {
        let is_log = |path: &str| [".receiver", ".sender"].iter().any(|end| path.ends_with(end));
        let logs = self.sources.iter().filter(|s| s.status == Status::Read && is_log(&s.path));
        let refused = refused_files(&self.sources);
        let mut tally = Tally { refused: refused.len(), ..Tally::default() };
        for log in logs {
            tally.logs += 1;
            tally.bytes += log.size;
        }
        Known { tally, refused, notes: Vec::new() }
    }
}

/// Returns, for each job, the reason why it cannot have its store: another set also claims it.
fn collisions(jobs: &[Job]) -> Vec<Option<String>> {
    let mut claims: HashMap<&Path, Vec<usize>> = HashMap::new();
    for (job, Job { store, .. }) in jobs.iter().enumerate() {
        claims.entry(store).or_default().push(job);
    }
    let why = |job: usize| {
        let store = &jobs[job].store;
        let other = claims[store.as_path()].iter().copied().find(|&other| other != job)?;
        let ResultSet { origin, place, .. } = &jobs[other].set;
        Some(format!(
            "{} would be the store of {} in {} too; import them one by one, each with its own --out",
            store.display(),
            place.label,
            origin.display()
        ))
    };
    (0..jobs.len()).map(why).collect()
}

fn refused(why: String) -> Outcome {
    Outcome::Refused(Refused { why, files: Vec::new() })
}

fn sum(sets: &[Finished]) -> Tally {
    let read = sets.iter().filter_map(|set| match &set.outcome {
        Outcome::Imported(known) | Outcome::Updated(known) => Some(&known.tally),
        _ => None,
    });
    read.fold(Tally::default(), |sum, tally| Tally {
        logs: sum.logs + tally.logs,
        bytes: sum.bytes + tally.bytes,
        refused: sum.refused + tally.refused,
        runs: sum.runs + tally.runs,
        failed: sum.failed + tally.failed,
        lists_equal: sum.lists_equal + tally.lists_equal,
        lists_different: sum.lists_different + tally.lists_different,
        lists_absent: sum.lists_absent + tally.lists_absent,
        blocks_equal: sum.blocks_equal + tally.blocks_equal,
        blocks_different: sum.blocks_different + tally.blocks_different,
        blocks_unmatched: sum.blocks_unmatched + tally.blocks_unmatched,
        rows_equal: sum.rows_equal + tally.rows_equal,
        rows_different: sum.rows_different + tally.rows_different,
    })
}
