//! Brings many result sets into stores, one store each, on all CPUs.
//!
//! A set whose store was made of the same files, by the same rule and the same
//! version of fwdlab is left as it is, without reading a log. Each store is
//! complete or not there at all, so an import may be stopped at any time: what is
//! done stays, and the next one goes on. What it deliberately leaves out: finding
//! the sets ([`scan`](super::scan)) and making runs of their files
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

/// Larger files are refused: the longest log of the archive has less than one.
pub const LARGEST: u64 = 64 << 20;

/// One set and its store.
#[derive(Clone, Debug)]
pub struct Job {
    /// The set.
    pub set: ResultSet,
    /// Where its store is, or will be.
    pub store: PathBuf,
    /// The directory as the user named it.
    pub named: String,
}

/// Finds for each job the one whose set it has with a patch: of several the closest.
pub fn parents(jobs: &[Job]) -> Vec<Option<usize>> {
    let place = |job: usize| &jobs[job].set.place;
    let parent = |job: usize| {
        let all = (0..jobs.len()).filter(|&other| place(job).is_patch_of(place(other)));
        all.max_by_key(|&other| place(other).label.len())
    };
    (0..jobs.len()).map(parent).collect()
}

/// What is to be done, and how.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The sets.
    pub jobs: &'a [Job],
    /// How each is read; [`Job::named`] replaces [`Options::named`].
    pub options: &'a Options,
    /// Threads.
    pub threads: NonZeroUsize,
    /// Once true, no further set is begun.
    pub stop: &'a AtomicBool,
    /// Fetches a file's bytes: [`read`], unless a test counts them.
    pub read: &'a (dyn Fn(&FoundFile) -> io::Result<Vec<u8>> + Sync),
    /// Is told what happens, by any thread.
    pub on_event: &'a (dyn Fn(Event<'_>) + Sync),
}

/// What happens during an import.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// Files were read, or need not be read. All of them add up to those of the
    /// sets.
    Passed {
        /// How many.
        files: usize,
        /// Bytes of them.
        bytes: u64,
    },
    /// A set is done with.
    Done {
        /// Its index in [`Request::jobs`].
        job: usize,
        /// How it ended.
        outcome: &'a Outcome,
    },
}

/// How an import ended.
#[derive(Debug)]
pub struct Summary {
    /// The sets, in the order of [`Request::jobs`].
    pub sets: Vec<Finished>,
    /// Sums over the sets that were read.
    pub tally: Tally,
    /// Wall time.
    pub duration: Duration,
}

/// One set, done with.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub outcome: Outcome,
    /// Wall time spent on it.
    pub duration: Duration,
}

/// How a set ended.
#[derive(Debug)]
pub enum Outcome {
    /// There was no store; now there is.
    Imported(Known),
    /// The files, the rule or fwdlab changed: the store was made anew.
    Updated(Known),
    /// The store is of the same files already. The tally counts its logs only.
    Unchanged(Known),
    /// Nothing of it could be read, or its store is claimed by another set.
    Refused(Refused),
    /// It was read, and its store can't be read or written.
    Failed(StoreError),
    /// Not begun: the user stopped the import before.
    NotReached,
}

/// What is known of a stored set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Counts.
    pub tally: Tally,
    /// Each refused file: name, and why.
    pub refused: Vec<(String, String)>,
    /// Remarks on the set.
    pub notes: Vec<String>,
}

impl Outcome {
    /// What is known of the set when a store of it is there.
    pub fn known(&self) -> Option<&Known> {
        match self {
            Outcome::Imported(known) | Outcome::Updated(known) | Outcome::Unchanged(known) => {
                Some(known)
            }
            Outcome::Refused(_) | Outcome::Failed(_) | Outcome::NotReached => None,
        }
    }
}

/// Imports the sets, the largest first, so that no thread is left with a large one
/// when the others have nothing more to do.
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

/// The bytes of a file, at most [`LARGEST`].
///
/// # Errors
/// As opening and reading it; [`io::ErrorKind::FileTooLarge`] for a larger one.
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

/// Files of a set and their bytes: logs, what was published, configurations.
pub fn size(set: &ResultSet) -> (usize, u64) {
    let sum = |(files, bytes): (usize, u64), file: &FoundFile| (files + 1, bytes + file.size);
    files(set).fold((0, 0), sum)
}

fn files(set: &ResultSet) -> impl Iterator<Item = &FoundFile> {
    let trees = set.configurations.iter().flat_map(|tree| &tree.files);
    set.files.iter().chain(trees).chain(&set.lab)
}

/// Imports one set, unless its store is `claimed` by another. `parent` is the one without its
/// patch.
fn one(request: &Request<'_>, job: &Job, parent: Option<&Job>, claimed: Option<&str>) -> Outcome {
    let (files, bytes) = size(&job.set);
    let own: HashSet<&Path> = self::files(&job.set).map(|file| file.path.as_path()).collect();
    let passed = RefCell::new(Passed::default());
    let read = |file: &FoundFile| {
        let bytes = (request.read)(file);
        // Those of the parent are its own job's.
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

/// The files of a set that were read: some are looked at twice.
#[derive(Default)]
struct Passed {
    paths: HashSet<PathBuf>,
    bytes: u64,
}

impl Passed {
    fn is_new(&mut self, file: &FoundFile) -> bool {
        let is_new = self.paths.insert(file.path.clone());
        self.bytes += if is_new { file.size } else { 0 };
        is_new
    }
}

/// Makes the store of a set, unless it is there already.
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
            if stored.is_of(&job.set, request.options) && has_parent(&job.store, parent) =>
        {
            Outcome::Unchanged(stored.known())
        }
        Ok(stored) => fetch(request, job, parent, stored.is_some(), read),
    }
}

/// True if a store was made with the figures of `parent`, or there is none.
fn has_parent(store: &Path, parent: Option<Parent<'_>>) -> bool {
    let Some(parent) = parent else { return true };
    let import = Store::open_read_only(store).and_then(|store| store.import());
    let unpatched = import.ok().flatten().and_then(|import| import.about.unpatched);
    unpatched.is_some_and(|unpatched| {
        unpatched.label == parent.set.place.label && unpatched.newest_ns == parent.newest_ns()
    })
}

/// The directory of `to` as seen from the directory of `from`, two files.
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

/// Reads a set and makes its store.
fn fetch(
    request: &Request<'_>,
    job: &Job,
    parent: Option<Parent<'_>>,
    is_there: bool,
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
        refused: refused_of(&import.sources),
        notes: import.about.notes.clone(),
    };
    let (plan, invocation, runs) = (&assembled.plan, &assembled.invocation, &assembled.runs);
    match Store::create_imported(&job.store, plan, invocation, runs, &import) {
        Err(error) => Outcome::Failed(error),
        Ok(()) if is_there => Outcome::Updated(known),
        Ok(()) => Outcome::Imported(known),
    }
}

/// Files that the assembly passed over are remembered too: whether anything
/// changed is decided by all of them.
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

fn refused_of(sources: &[Source]) -> Vec<(String, String)> {
    let refused = sources.iter().filter(|source| source.status == Status::Refused);
    refused.map(|source| (source.path.clone(), source.message.clone())).collect()
}

/// What an earlier import left.
struct Stored {
    sources: Vec<Source>,
    metric: Option<RunMetric>,
    fwdlab_version: String,
}

/// The earlier import at `path`; none when there is no file.
fn stored(path: &Path) -> Result<Option<Stored>, StoreError> {
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
    Ok(Some(Stored { sources, metric, fwdlab_version }))
}

impl Stored {
    /// True when an import of `set` would make the same store again.
    fn is_of(&self, set: &ResultSet, options: &Options) -> bool {
        let is_same_rule = match self.metric {
            // Searches for a throughput have one figure, whatever the rule.
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
        let refused = refused_of(&self.sources);
        let mut tally = Tally { refused: refused.len(), ..Tally::default() };
        for log in logs {
            tally.logs += 1;
            tally.bytes += log.size;
        }
        Known { tally, refused, notes: Vec::new() }
    }
}

/// For each job why it can't have its store: another set claims it too.
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
