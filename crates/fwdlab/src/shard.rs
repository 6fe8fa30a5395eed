//! A share of an experiment: every nth block of its plan, measured by its own process into its own
//! store. `fwdlab merge` combines the stores of all shares.
//!
//! Shares take blocks in turn, so that each of them is spread over the whole plan, and a share that
//! is never measured leaves no gap at its end.

use crate::error::CliError;
use crate::session;
use crate::signal::Stop;
use crate::terminal;
use anyhow::{Context, Result};
use fwdlab_model::Plan;
use fwdlab_results::store::{Store, StoreError};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;

/// Directory of the shares within the experiment's directory. Searches for stores in a tree skip
/// it, as its name begins with a dot: parts are not experiments.
pub(crate) const SHARES: &str = ".shares";
/// Maximum number of shares of an experiment, which is the maximum number of blocks.
pub(crate) const MOST: u32 = 10_000;
/// Polling interval while another process measures a share.
const LOOK: Duration = Duration::from_millis(500);

/// A share of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// Its number, from 1.
    pub(crate) number: u32,
    /// Number of shares.
    pub(crate) of: u32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Shard, String> {
        let numbers = text.split_once('/').map(|(number, of)| (number.parse(), of.parse()));
        match numbers {
            Some((Ok(number), Ok(of))) if (1..=of).contains(&number) && of <= MOST => {
                Ok(Shard { number, of })
            }
            _ => Err(format!("a share is written I/N, such as 2/4, with I from 1 to N <= {MOST}")),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "share {} of {}", self.number, self.of)
    }
}

impl Shard {
    /// True if the block is part of it.
    pub(crate) fn holds(self, block: u32) -> bool {
        block % self.of == self.number - 1
    }

    /// Its runs among `runs`.
    pub(crate) fn part_of(self, plan: &Plan, runs: &[u32]) -> Vec<u32> {
        let is_in = |run: &u32| self.holds(plan.runs[*run as usize].block);
        runs.iter().copied().filter(is_in).collect()
    }

    /// Number of runs of the plan in it.
    pub(crate) fn runs(self, plan: &Plan) -> usize {
        plan.runs.iter().filter(|run| self.holds(run.block)).count()
    }

    /// Its directory within the experiment's. Shares of another division have other directories.
    pub(crate) fn directory(self, out: &Path) -> PathBuf {
        out.join(SHARES).join(format!("{:05}-of-{:05}", self.number, self.of))
    }

    /// The share with this directory name.
    fn named(directory: &str) -> Option<Shard> {
        let (number, of) = directory.split_once("-of-")?;
        Some(Shard { number: number.parse().ok()?, of: of.parse().ok()? })
    }

    /// Refuses to join shares of another division in the experiment's directory `out`: runs would
    /// be measured twice, and others never.
    ///
    /// # Errors
    /// Names both shares.
    pub(crate) fn fits(self, out: &Path) -> Result<()> {
        let shares = out.join(SHARES);
        let entries = fs::read_dir(&shares).into_iter().flatten().flatten();
        let found = entries.filter_map(|entry| Shard::named(&entry.file_name().to_string_lossy()));
        let Some(other) = found.filter(|other| other.of != self.of).min_by_key(|o| o.number) else {
            return Ok(());
        };
        let why = format!(
            "{self} divides the blocks otherwise than {other}, which is in {} already: runs would \
             be measured twice, and others never\n  next step: go on with shares of {}, or choose \
             another directory (--out)",
            other.directory(out).display(),
            other.of
        );
        Err(CliError::Mistake(why).into())
    }

    /// Opens its store in the experiment's directory `out`. Waits while another process measures
    /// the same share (for example a job that its queue believes lost), whose stored runs need not
    /// be measured again.
    ///
    /// # Errors
    /// Fails if the store cannot be opened, if other shares are of another division, or on an
    /// interruption.
    pub(crate) fn open(self, out: &Path) -> Result<Store> {
        self.fits(out)?;
        let directory = self.directory(out);
        // A signal from here on is not forgotten: a later listener receives it.
        let stop = Stop::on_signals().context("listening to signals")?;
        let mut is_reported = false;
        loop {
            let locked = match session::open_store(&directory, false) {
                Ok((store, _)) => return Ok(store),
                Err(error) => error,
            };
            let Some(StoreError::Locked { .. }) = locked.downcast_ref::<StoreError>() else {
                return Err(locked);
            };
            if !std::mem::replace(&mut is_reported, true) {
                terminal::note(&format!("{self} waits: {locked}"));
            }
            if stop.requested() {
                let why = format!("{self} was interrupted while it waited: {locked}");
                return Err(CliError::Interrupted(why).into());
            }
            sleep(LOOK);
        }
    }
}

/// Refuses a plan whose blocks cannot be measured separately.
///
/// # Errors
/// The reason, with a next step.
pub(crate) fn check(plan: &Plan) -> Result<()> {
    if plan.design.stop.is_some() {
        let why = format!(
            "{}: its rule that ends early (stop) needs every run before the next block, so that \
             blocks can't be measured apart\n  next step: leave `stop` out of [design] and say how \
             many `blocks` there are",
            plan.name
        );
        return Err(CliError::Mistake(why).into());
    }
    Ok(())
}

/// Parses the name of a bed, which must be fit for folders and columns.
///
/// # Errors
/// The permitted characters.
pub(crate) fn bed(name: &str) -> std::result::Result<String, String> {
    let is_fit = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(is_fit) {
        return Ok(name.to_owned());
    }
    Err("a bed's name is 1 to 64 letters, digits, `.`, `-` and `_`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_numbers_are_within_bounds() {
        assert_eq!("2/4".parse(), Ok(Shard { number: 2, of: 4 }));
        for wrong in ["", "2", "0/4", "5/4", "1/0", "-1/2", "1/10001", "1/2/3", "a/b"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn share_of_another_division_is_refused_by_name() {
        let out = tempfile::tempdir().unwrap();
        let share = |number, of| Shard { number, of };
        assert_ne!(share(1, 2).directory(out.path()), share(1, 4).directory(out.path()));
        assert!(share(1, 4).fits(out.path()).is_ok(), "nothing is there");
        fs::create_dir_all(share(2, 2).directory(out.path())).unwrap();
        fs::create_dir_all(share(1, 2).directory(out.path())).unwrap();
        fs::write(out.path().join(SHARES).join("submission.json"), "").unwrap();
        assert!(share(1, 2).fits(out.path()).is_ok());
        let why = share(1, 4).fits(out.path()).unwrap_err().to_string();
        assert!(why.contains("share 1 of 4 divides") && why.contains("than share 1 of 2"), "{why}");
    }

    #[test]
    fn every_run_is_in_exactly_one_share() {
        let text = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2, 4]\n[design]\nblocks = 11\n";
        let plan = fwdlab_model::load("x.toml", text, &|_| Err("none".into())).unwrap();
        for of in [1, 2, 4, 11, 20] {
            let all: Vec<u32> = plan.runs.iter().map(|run| run.index).collect();
            let shares = (1..=of).map(|number| Shard { number, of });
            let mut parts: Vec<u32> = shares.clone().flat_map(|s| s.part_of(&plan, &all)).collect();
            parts.sort_unstable();
            assert_eq!(parts, all, "{of} shares");
            assert_eq!(shares.map(|share| share.runs(&plan)).sum::<usize>(), all.len());
        }
    }

    #[test]
    fn bed_names_are_fit_for_folders() {
        assert_eq!(bed("rack-7.lab_2").as_deref(), Ok("rack-7.lab_2"));
        for wrong in ["", "a b", "a/b", "bett\u{e4}"] {
            assert!(bed(wrong).is_err(), "{wrong}");
        }
    }
}
