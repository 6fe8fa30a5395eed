//! Counts of builds: plain forwarding in each family, and features of the price list.

use crate::command::counted_guest::{GuestOptions, Subject, TrafficArguments};
use crate::command::prices::{self, Feature, Outcome, Progress, Stored};
use anyhow::Result;
use fwdlab_model::record::Executed;
use fwdlab_packet::Family;
use fwdlab_vm::guest::{CountOptions, System};
use std::path::{Path, PathBuf};

/// Counts of one build, by profile; the reason if the build lacks a feature.
pub(super) type Counts = Vec<Result<Found, String>>;

/// Counts of one build under one profile.
pub(super) struct Found {
    pub(super) executed: Executed,
    /// Packets sent while counting, and the number lost of them.
    pub(super) sent: u64,
    pub(super) lost: u64,
}

/// Counts builds under all profiles.
pub(super) struct Counter {
    families: Vec<(TrafficArguments, Vec<Feature>)>,
    out: PathBuf,
    cache: PathBuf,
}

impl Counter {
    /// Counts plain forwarding in these families, and features that `only` selects.
    ///
    /// # Errors
    /// If a word selects no feature.
    pub(super) fn new(
        families: &[Family],
        only: &[String],
        out: &Path,
        cache: &Path,
    ) -> Result<Counter> {
        let family = |family: &Family| {
            let features = match only {
                [] => Vec::new(),
                words => prices::features_of(System::Linux, *family, words)?,
            };
            anyhow::Ok((TrafficArguments::of(*family), features))
        };
        let families = families.iter().map(family).collect::<Result<_>>()?;
        Ok(Counter { families, out: out.to_owned(), cache: cache.to_owned() })
    }

    /// Names of the profiles.
    pub(super) fn profiles(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (traffic, features) in &self.families {
            let family = traffic.family;
            names.push(family.to_string());
            names.extend(features.iter().map(|feature| format!("{family} {}", feature.name)));
        }
        names
    }

    /// True if guests need the modules and programs of features.
    pub(super) fn has_features(&self) -> bool {
        self.families.iter().any(|(_, features)| !features.is_empty())
    }

    /// Counts a build, unless it was counted before.
    ///
    /// # Errors
    /// If it doesn't boot or forward, or counts can't be stored.
    pub(super) fn count(&self, subject: &Subject) -> Result<Counts> {
        let mut counts = Vec::new();
        for (traffic, features) in &self.families {
            let mut stored = Stored::open(&self.out, subject, traffic)?;
            let missing =
                stored.missing(features).len() + usize::from(stored.list.boots.is_empty());
            let options = GuestOptions {
                nic: traffic.nic,
                also: CountOptions::default(),
                features: self.has_features(),
                cache: &self.cache,
            };
            if missing > 0 {
                let progress = Progress::new(missing);
                prices::measure(subject, options, traffic, features, &mut stored, &progress)?;
            }
            if let Some((name, (_, why))) = stored.failures.first_key_value() {
                anyhow::bail!("{name}: {why}");
            }
            let plain = stored.list.boots.last().ok_or_else(|| "not counted".to_owned());
            counts.push(plain.map(|plain| Found {
                executed: plain.first.clone(),
                sent: plain.sent,
                lost: plain.lost,
            }));
            counts.extend(features.iter().map(|feature| {
                match stored.list.row(feature).map(|row| &row.outcome) {
                    Some(Outcome::Counted { executed, sent, lost, .. }) => {
                        Ok(Found { executed: executed.as_ref().clone(), sent: *sent, lost: *lost })
                    }
                    Some(Outcome::Absent { why }) => Err(why.clone()),
                    None => Err("not counted".to_owned()),
                }
            }));
        }
        Ok(counts)
    }
}
