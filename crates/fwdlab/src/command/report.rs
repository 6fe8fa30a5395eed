//! `fwdlab report`: reports of stored runs.

use crate::exit::Exit;
use crate::store_filter::FilterArguments;
use crate::stores::{self, stores_at};
use crate::terminal;
use crate::{metric_arg, value_enum};
use fwdlab_model::plan::Rule;
use fwdlab_results::catalogue::{Catalogue, Entry};
use fwdlab_results::facts::Filter;
use fwdlab_results::report::{self, Analysis};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

/// Rebuild the report from the store alone: the same store gives the same bytes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab report results/demo
  fwdlab report results/demo/run.sqlite --out /tmp/demo
  fwdlab report results/archive                beside each of the stores below it, and a page
                                               over all of them
  fwdlab report results/x --pictures           with copies of what was published with it")]
pub(crate) struct Arguments {
    /// An experiment's directory, its store, or a directory of several
    #[arg(value_name = "DIR-or-STORE")]
    path: PathBuf,
    /// Directory of the report; several reports keep their relative paths below it
    /// [default: the store's]
    #[arg(long, short, value_name = "DIR", visible_alias = "output")]
    out: Option<PathBuf>,
    /// Rule for the value of an imported run [default: as imported]
    #[arg(long, value_name = "RULE", value_parser = value_enum::any::<Rule>())]
    rule: Option<Rule>,
    /// Copy published plots and call graphs into the report instead of linking to the imported
    /// files
    #[arg(long)]
    pictures: bool,
    #[command(flatten)]
    selected: FilterArguments,
}

/// Writes the report; for several stores, also a page about all of them.
///
/// # Errors
/// If there is no store, or the report can't be written.
pub(crate) fn execute(arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut paths = stores_at(&arguments.path);
    let filter = arguments.selected.filter();
    if !filter.is_empty() {
        let selected = stores::catalogue(&paths, &arguments.path, &filter, "");
        paths = selected.entries.into_iter().map(|entry| entry.path).collect();
        paths.sort();
    }
    let is_one = paths.len() == 1 && filter.is_empty();
    let threads = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let failed = AtomicBool::new(false);
    // One report per thread at a time; results are printed in the order of their stores.
    let (sender, receiver) = mpsc::channel();
    let entries = std::thread::scope(|scope| {
        for _ in 0..threads.min(paths.len()) {
            let sender = sender.clone();
            let (paths, next, failed) = (&paths, &next, &failed);
            scope.spawn(move || {
                while !failed.load(Ordering::Relaxed)
                    && let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let written = arguments.write(path);
                    failed.fetch_or(written.is_err(), Ordering::Relaxed);
                    // The receiver may be gone after an error.
                    let _ = sender.send((path, written));
                }
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut entries = Vec::new();
        let mut stores = paths.iter().peekable();
        for (path, written) in receiver {
            early.insert(path, written);
            while let Some(written) = stores.peek().and_then(|path| early.remove(path)) {
                stores.next();
                let printed = written.and_then(|(readme, entry)| {
                    entries.push(Ok(entry));
                    Ok(terminal::print(&readme)?)
                });
                if let Err(why) = printed {
                    failed.store(true, Ordering::Relaxed);
                    return Err(why);
                }
            }
        }
        Ok(entries)
    })?;
    if !is_one {
        let catalogue = Catalogue::of(entries, &Filter::default(), "");
        let directory = arguments.out.as_deref().unwrap_or(&arguments.path);
        let title = stores::title_of(&arguments.path);
        report::write_files(directory, catalogue.files(&title))?;
        terminal::print(&directory.join("index.html").display().to_string())?;
    }
    Ok(Exit::Done)
}

impl Arguments {
    /// Writes the report of the store at `path`; returns the path of its README and the entry for
    /// the page about all stores.
    fn write(&self, path: &Path) -> anyhow::Result<(String, Entry)> {
        let contents = metric_arg::contents(path, self.rule)?;
        let parent = path.parent().unwrap_or(Path::new("."));
        let below = parent.strip_prefix(&self.path).unwrap_or(Path::new(""));
        let directory = match &self.out {
            Some(out) if below != Path::new("") => out.join(below),
            Some(out) => out.clone(),
            None => parent.to_path_buf(),
        };
        let mut analysis = Analysis::of(&contents);
        if self.pictures {
            analysis.copy_pictures();
        }
        analysis.relate_pictures(&directory);
        report::write_analysed(&contents, &analysis, &directory)?;
        let entry = Entry::of(path, &self.path, &contents);
        Ok((directory.join("README.md").display().to_string(), entry))
    }
}
