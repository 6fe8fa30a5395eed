//! Turns one result set into a plan, runs and documents.
//!
//! [`assemble`] follows the data: it sorts files into groups, reads each group's logs, derives
//! factors from the groups, and compares the published results with the logs.

mod about;
mod documents;
mod factors;
mod groups;
mod journal;
mod lists;
mod parent;
mod plan;
mod published;
mod runs;
mod settings;

use super::config::{self, Configuration};
use super::found::{FoundFile, ResultSet};
use super::published::in_published_order;
use factors::{GroupFactors, Identity};
use fwdlab_model::log::Info;
use fwdlab_model::{Plan, RunRecord};
pub use fwdlab_results::stats::log_rule::Rule;
use fwdlab_results::store::{Import, Invocation};
use groups::RawGroup;
use journal::Journal;
use lists::{Figures, List};
pub use parent::Parent;
use published::Published;
use runs::ReadRun;

/// Options for reading a set.
#[derive(Clone, Debug)]
pub struct Options {
    /// The figure that summarises a run, if chosen by the user: the archive's rule or the steady
    /// state's. `None` selects the archive's rule.
    pub rule: Option<Rule>,
    /// Wall clock of the import, RFC 3339, UTC.
    pub imported_at: String,
    /// Version of fwdlab.
    pub fwdlab_version: String,
    /// The directory as given by the user.
    pub named: String,
}

/// A set ready to be stored.
#[derive(Clone, Debug)]
pub struct AssembledSet {
    /// The plan of its runs.
    pub plan: Plan,
    /// The invocation that represents the import.
    pub invocation: Invocation,
    /// The runs.
    pub runs: Vec<RunRecord>,
    /// Sources, documents and further information.
    pub import: Import,
    /// Counts of reproduced results.
    pub tally: Tally,
}

/// Counts of files read and results reproduced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Logs read.
    pub logs: usize,
    /// Their size in bytes.
    pub bytes: u64,
    /// Files refused.
    pub refused: usize,
    /// Runs recorded.
    pub runs: usize,
    /// Failed runs, with too few rates.
    pub failed: usize,
    /// Variants whose values equal their published list.
    pub lists_equal: usize,
    /// Variants whose values differ from their published list.
    pub lists_different: usize,
    /// Variants without a published list.
    pub lists_absent: usize,
    /// Published ministat blocks reproduced to the byte.
    pub blocks_equal: usize,
    /// Published blocks reproduced with differences.
    pub blocks_different: usize,
    /// Published blocks whose sets are not among the variants.
    pub blocks_unmatched: usize,
    /// Rows of published tables (`.data`) reproduced.
    pub rows_equal: usize,
    /// Rows not reproduced.
    pub rows_different: usize,
}

/// A set without anything to store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// The reason, with the files and the next step.
    pub why: String,
    /// Each refused file: name, and reason with the line if known.
    pub files: Vec<(String, String)>,
}

/// Makes plan, runs and documents of `set`; `read` reads a file's bytes. If `set` is its `parent`
/// with a patch, blocks and tables may contain figures of both.
///
/// # Errors
/// Fails if no run can be read.
pub fn assemble(
    set: &ResultSet,
    parent: Option<Parent<'_>>,
    options: &Options,
    read: impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
) -> Result<AssembledSet, Refused> {
    let sorted = groups::sort(&set.files);
    let mut log = Journal::of(&sorted);
    let mut groups: Vec<Group> = sorted
        .groups
        .iter()
        .filter_map(|(name, raw)| Group::read(name, raw, &read, &mut log))
        .collect();
    if groups.is_empty() {
        return Err(log.refused(set));
    }
    let trees = configurations(set, &read, &mut log);
    let varied = vary(&groups, &trees);
    order(&mut groups, &varied.levels);
    let varied = vary(&groups, &trees);
    let published = Published::read(set, &sorted.others, &mut groups, &read, &mut log);
    let upper = published.upper;
    let figures: Vec<Vec<f64>> = groups.iter().map(|group| group.figures.values(upper)).collect();
    let unpatched = parent.map(|parent| parent.read(upper, &read));
    let matched = published.matched(&groups, &figures, unpatched.as_ref());
    let plan = plan::plan(&plan::Parts {
        set,
        groups: &groups,
        varied: &varied,
        trees: &trees,
        rule: options.rule.unwrap_or(Rule::Netbenches),
        upper,
        title: published.title(),
        references: &matched.references,
    });
    let about = about::about(set, &groups, &plan, &varied, &trees, &published);
    let mut tally = Tally { refused: log.refused.len(), ..matched.tally };
    for run in groups.iter().flat_map(|group| &group.runs) {
        tally.logs += run.logs;
        tally.bytes += run.bytes;
        tally.runs += 1;
    }
    tally.failed = groups.iter().map(|group| group.failed()).sum();
    let invocation = about::invocation(options, &about);
    let mut about = about;
    about.notes.extend(log.notes.iter().cloned());
    about.notes.extend(matched.notes.iter().cloned());
    about.reproductions = Some(matched.reproductions);
    about.unpatched = unpatched;
    let import = Import {
        // Absolute, because reports refer to the files read there.
        origin: std::path::absolute(&set.origin)
            .unwrap_or(set.origin.clone())
            .display()
            .to_string(),
        about,
        sources: log.sources(set),
        documents: published.documents,
    };
    let runs = records(groups);
    Ok(AssembledSet { plan, invocation, runs, import, tally })
}

/// The files of one group after reading.
#[derive(Debug)]
struct Group {
    identity: Identity,
    info: Option<Info>,
    /// Its runs by iteration.
    runs: Vec<ReadRun>,
    figures: Figures,
    /// The published list of its values.
    list: Option<List>,
}

impl Group {
    /// Reads a group; `None` if it has no run.
    fn read(
        name: &str,
        raw: &RawGroup<'_>,
        read: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
        journal: &mut Journal,
    ) -> Option<Group> {
        let info = raw.info.and_then(|file| {
            let parsed = read(file).map_err(|error| error.to_string());
            match parsed.and_then(|bytes| Info::parse(&bytes).map_err(|e| e.to_string())) {
                Ok(info) => Some(info),
                Err(why) => {
                    journal.refuse(file, why);
                    None
                }
            }
        });
        let mut complaints = Vec::new();
        let runs: Vec<ReadRun> =
            raw.runs.values().filter_map(|run| runs::read(run, read, &mut complaints)).collect();
        journal.complain(complaints);
        let display_name = if name.is_empty() { "bench" } else { name };
        if runs.is_empty() {
            journal.notes.push(match raw.runs.len() {
                0 => format!("{display_name}: an .info file and no logs, as profile runs leave it"),
                n => format!("{display_name}: none of its {n} runs can be read"),
            });
            return None;
        }
        let in_order = in_published_order(runs.iter(), |run| run.iteration.clone());
        let figures = match in_order.iter().all(|run| run.is_search) {
            true => Figures::found(in_order.iter().map(|run| run.estimate_mbps)),
            false => Figures::of(in_order.iter().map(|run| run.record.trial.samples.as_slice())),
        };
        let of = |part: fn(&Info) -> Option<String>| info.as_ref().and_then(part);
        let identity = Identity {
            name: name.to_owned(),
            image: of(|info| info.revision().map(str::to_owned).or_else(|| info.image.clone())),
            configuration: of(|info| info.configuration.clone()),
            traffic: of(|info| info.traffic.clone()),
        };
        Some(Group { identity, info, runs, figures, list: None })
    }

    /// Returns the number of runs without a figure by the archive's rule.
    fn failed(&self) -> usize {
        if self.is_search() {
            return 0;
        }
        self.figures.even.iter().filter(|figure| figure.is_none()).count()
    }

    /// Returns true for searches for the equilibrium throughput, which have no rates.
    fn is_search(&self) -> bool {
        self.runs.iter().all(|run| run.is_search)
    }

    /// Returns the start of its first run, if the `.info` file contains it.
    fn started_at(&self) -> Option<String> {
        self.info.as_ref()?.started_at()
    }
}

/// A configuration tree after reading.
#[derive(Debug)]
struct ReadTree {
    name: String,
    configuration: Configuration,
}

fn configurations(
    set: &ResultSet,
    read: &impl Fn(&FoundFile) -> std::io::Result<Vec<u8>>,
    journal: &mut Journal,
) -> Vec<ReadTree> {
    let mut trees = Vec::new();
    for tree in &set.configurations {
        let mut files = Vec::new();
        for file in &tree.files {
            let inside = file.name.split_once(&format!("{}/", tree.name));
            let inside = inside.map_or(file.name.clone(), |(_, inside)| inside.to_owned());
            match read(file) {
                Ok(bytes) => files.push((inside, bytes)),
                Err(error) => journal.refuse(file, error.to_string()),
            }
        }
        let files: Vec<(String, &[u8])> =
            files.iter().map(|(name, bytes)| (name.clone(), bytes.as_slice())).collect();
        let configuration = Configuration::read(&files);
        trees.push(ReadTree { name: tree.name.clone(), configuration });
    }
    trees
}

/// Returns the tree of a configuration's name. The archive's files and folders spell `stateful`
/// differently.
fn tree_of<'a>(trees: &'a [ReadTree], name: &str) -> Option<&'a Configuration> {
    let plain = |name: &str| name.to_lowercase().replace("statefull", "stateful");
    let found = trees.iter().find(|tree| tree.name == name);
    let found = found.or_else(|| trees.iter().find(|tree| plain(&tree.name) == plain(name)));
    found.map(|tree| &tree.configuration)
}

fn vary(groups: &[Group], trees: &[ReadTree]) -> GroupFactors {
    let identities: Vec<Identity> = groups.iter().map(|group| group.identity.clone()).collect();
    let in_use: Vec<(&str, &Configuration)> = groups
        .iter()
        .filter_map(|group| {
            let name = group.identity.configuration.as_deref()?;
            Some((name, tree_of(trees, name)?))
        })
        .collect();
    let name = if in_use.is_empty() { None } else { config::varied(&in_use) };
    factors::varied(&identities, name.as_deref())
}

/// Sorts groups by start if all are known, otherwise by levels.
fn order(groups: &mut Vec<Group>, levels: &[Vec<usize>]) {
    let starts: Option<Vec<String>> = groups.iter().map(Group::started_at).collect();
    let mut keyed: Vec<(Option<String>, Vec<usize>, Group)> = std::mem::take(groups)
        .into_iter()
        .enumerate()
        .map(|(i, group)| {
            let start = starts.as_ref().map(|starts| starts[i].clone());
            (start, levels[i].clone(), group)
        })
        .collect();
    keyed.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    groups.extend(keyed.into_iter().map(|(_, _, group)| group));
}

/// Returns the runs in the order of execution, as far as it is known.
fn records(groups: Vec<Group>) -> Vec<RunRecord> {
    let mut records = Vec::new();
    for (variant, group) in groups.into_iter().enumerate() {
        let started_at = group.started_at().unwrap_or_default();
        for run in group.runs {
            let block = run.block();
            let mut record = run.record;
            for sample in &mut record.trial.samples {
                sample.variant = variant;
            }
            record.facts.insert("iteration".to_owned(), run.iteration);
            records.push(RunRecord {
                run: records.len() as u32,
                block,
                variants: vec![variant],
                started_at: started_at.clone(),
                ..record
            });
        }
    }
    records
}
