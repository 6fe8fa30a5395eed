//! Sorts files into groups: the runs that share an `.info` file.
//!
//! A log is named `bench.GROUP.ITERATION.ROLE`. `GROUP` may contain dots (`11.0`,
//! `forwarding.inet4`), the iteration never does, so only the iteration is split off. The group's
//! parameters come from its `.info` file, not from its name.

use crate::found::FoundFile;
use std::collections::BTreeMap;

/// Suffixes of senders' logs, the main one first.
const SENDERS: [&str; 4] = ["sender", "sender_2", "sender_gen2", "sender_gen2_2"];

/// The logs of a set by group, and all other files.
#[derive(Debug, Default)]
pub(super) struct Sorted<'a> {
    /// The groups by name.
    pub(super) groups: BTreeMap<String, RawGroup<'a>>,
    /// Files that are neither logs nor `.info` files.
    pub(super) others: Vec<&'a FoundFile>,
    /// Files whose run or group another file already describes: file and reason.
    pub(super) refused: Vec<(&'a FoundFile, String)>,
}

/// One group's files.
#[derive(Debug, Default)]
pub(super) struct RawGroup<'a> {
    /// Its `.info`, if there is one.
    pub(super) info: Option<&'a FoundFile>,
    /// Its runs by iteration.
    pub(super) runs: BTreeMap<u32, RawRun<'a>>,
}

/// One run's files.
#[derive(Debug, Default)]
pub(super) struct RawRun<'a> {
    /// Text of the iteration in the file names. The published lists are in the order of this text.
    pub(super) iteration: String,
    /// The receiver's log.
    pub(super) receiver: Option<&'a FoundFile>,
    /// The senders' logs with their suffixes.
    pub(super) senders: Vec<(&'static str, &'a FoundFile)>,
}

/// A parsed file name: group, iteration and role.
#[derive(Debug, PartialEq, Eq)]
enum Name<'a> {
    Info(&'a str),
    Receiver(&'a str, &'a str),
    Sender(&'a str, &'a str, &'static str),
    Other,
}

/// Sorts the files of a set.
pub(super) fn sort(files: &[FoundFile]) -> Sorted<'_> {
    let mut sorted = Sorted::default();
    for file in files {
        match name(file.base()) {
            Name::Other => sorted.others.push(file),
            Name::Info(group) => {
                let entry = sorted.groups.entry(group.to_owned()).or_default();
                match entry.info {
                    None => entry.info = Some(file),
                    Some(first) => {
                        let why =
                            format!("describes the same runs as {}, which is used", first.name);
                        sorted.refused.push((file, why));
                    }
                }
            }
            Name::Receiver(group, iteration) => {
                let run = run(&mut sorted.groups, group, iteration);
                match run.receiver {
                    None => run.receiver = Some(file),
                    Some(first) => sorted.refused.push((file, same_run(first))),
                }
            }
            Name::Sender(group, iteration, suffix) => {
                let run = run(&mut sorted.groups, group, iteration);
                match run.senders.iter().find(|(known, _)| *known == suffix) {
                    None => run.senders.push((suffix, file)),
                    Some((_, first)) => sorted.refused.push((file, same_run(first))),
                }
            }
        }
    }
    for run in sorted.groups.values_mut().flat_map(|group| group.runs.values_mut()) {
        run.senders.sort_by_key(|(suffix, _)| SENDERS.iter().position(|known| known == suffix));
    }
    sorted
}

fn same_run(first: &FoundFile) -> String {
    format!("claims the same run as {}, which is used; remove one of the two", first.name)
}

fn run<'b, 'a>(
    groups: &'b mut BTreeMap<String, RawGroup<'a>>,
    group: &str,
    iteration: &str,
) -> &'b mut RawRun<'a> {
    let number = iteration.parse().unwrap_or(u32::MAX);
    let run = groups.entry(group.to_owned()).or_default().runs.entry(number).or_default();
    if run.iteration.is_empty() {
        iteration.clone_into(&mut run.iteration);
    }
    run
}

fn name(base: &str) -> Name<'_> {
    let Some(rest) = base.strip_prefix("bench.") else { return Name::Other };
    if rest == "info" {
        return Name::Info("");
    }
    if let Some(group) = rest.strip_suffix(".info") {
        return Name::Info(group);
    }
    let Some((stem, suffix)) = rest.rsplit_once('.') else { return Name::Other };
    let (group, iteration) = stem.rsplit_once('.').unwrap_or(("", stem));
    let is_number = iteration.parse::<u32>().is_ok();
    match SENDERS.iter().find(|known| **known == suffix) {
        Some(sender) if is_number => Name::Sender(group, iteration, sender),
        None if is_number && suffix == "receiver" => Name::Receiver(group, iteration),
        _ => Name::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> FoundFile {
        FoundFile { path: name.into(), name: name.to_owned(), size: 1, modified_ns: 0 }
    }

    #[test]
    fn name_splits_off_the_iteration() {
        assert_eq!(name("bench.1.info"), Name::Info("1"));
        assert_eq!(name("bench.info"), Name::Info(""));
        assert_eq!(name("bench.1.receiver"), Name::Receiver("", "1"));
        assert_eq!(name("bench.11.0.fw.inet4.3.receiver"), Name::Receiver("11.0.fw.inet4", "3"));
        assert_eq!(name("bench.a.10.sender_gen2_2"), Name::Sender("a", "10", "sender_gen2_2"));
        for other in
            ["bench.a.graph", "README.md", "bench.a.x.receiver", "bench.", "bench.receiver"]
        {
            assert_eq!(name(other), Name::Other, "{other}");
        }
    }

    #[test]
    fn sort_refuses_a_second_receiver() {
        let files = [
            "r/bench.a.1.receiver",
            "r/RAW/bench.a.1.receiver",
            "r/bench.a.01.receiver",
            "r/bench.a.1.sender",
            "r/bench.a.1.sender_2",
            "r/bench.a.info",
            "r/x.pps",
        ]
        .map(file);
        let sorted = sort(&files);
        let run = &sorted.groups["a"].runs[&1];
        assert_eq!(run.receiver.unwrap().name, "r/bench.a.1.receiver");
        assert_eq!(run.senders.len(), 2);
        let refused: Vec<&str> = sorted.refused.iter().map(|(file, _)| file.base()).collect();
        assert_eq!(refused, ["bench.a.1.receiver", "bench.a.01.receiver"]);
        assert!(sorted.refused[0].1.contains("claims the same run as r/bench.a.1.receiver"));
        assert_eq!(sorted.others.len(), 1);
    }
}
