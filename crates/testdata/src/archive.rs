//! Experiments in the layout of the netbenches archive.
//!
//! A fixture contains the numbers of one experiment: for each variant the published list, the rate
//! of its generator and the facts of its `.info`; tables, ministat blocks and settings are included
//! verbatim. The rendered logs satisfy the harness's own rule: the median of a log without its
//! first 15 and last 10 lines is the published number of the run.

use crate::lines::{Entry, entries};
use crate::pkt_gen::{Layout, Log};
use crate::random::Random;
use crate::{gprof, stacks};
use std::fs;
use std::path::Path;

const FIXTURES: [&str; 5] = [
    include_str!("../fixtures/archive/000.txt"),
    include_str!("../fixtures/archive/001.txt"),
    include_str!("../fixtures/archive/002.txt"),
    include_str!("../fixtures/archive/003.txt"),
    include_str!("../fixtures/archive/004.txt"),
];

/// Lines before the first rate, and number of rates: the rule keeps an even number of them, or an
/// odd one with an additional rate.
const HEAD: usize = 9;
const RATES: usize = 45;

pub(crate) fn render(root: &Path) {
    for fixture in FIXTURES {
        let entries = entries(fixture);
        let experiment = Experiment::of(&entries);
        let root = root.join(experiment.folder);
        for entry in &entries {
            match entry.keyword {
                "list" => experiment.list(&root, entry.rest),
                "info" => experiment.info(&root, entry.rest),
                "file" => file(&root, entry),
                "profile" => profile(&root, entry.rest),
                _ => {}
            }
        }
    }
}

/// Properties of a whole experiment.
struct Experiment<'a> {
    folder: &'a str,
    /// Folders of the published results and of the logs, below the experiment's folder.
    results: String,
    logs: String,
    layout: Layout,
    version: u32,
    /// True if the harness took the upper one of the two middle rates of an even number, not their
    /// mean.
    is_upper: bool,
    /// Commands of senders, each with the suffix of the variants' names that it belongs to.
    senders: Vec<(&'a str, &'a str)>,
    receiver: &'a str,
}

impl<'a> Experiment<'a> {
    fn of(entries: &[Entry<'a>]) -> Experiment<'a> {
        let all = |keyword: &'static str| entries.iter().filter(move |e| e.keyword == keyword);
        let rest = |keyword| all(keyword).next().expect("a line of each kind").rest;
        let results = format!("results/{}", rest("label"));
        let logs = match rest("raw") {
            "-" => results.clone(),
            folder => format!("{results}/{folder}"),
        };
        let (form, version) = rest("form").split_once(' ').expect("form and version");
        let senders = all("sender").map(|entry| match entry.rest.strip_prefix('*') {
            Some(marked) => marked.split_once(' ').expect("an end and a command"),
            None => ("", entry.rest),
        });
        Experiment {
            folder: rest("folder"),
            results,
            logs,
            layout: if form == "old" { Layout::F1 } else { Layout::F2 },
            version: version.parse().expect("a number"),
            is_upper: rest("rule") == "upper",
            senders: senders.collect(),
            receiver: rest("receiver"),
        }
    }

    /// Writes the published list of a variant, and the logs of its runs: `NAME LIST load=RATE :
    /// FIGURE ...`.
    fn list(&self, root: &Path, rest: &str) {
        let (head, figures) = rest.split_once(" : ").expect("figures");
        let [name, list, load] = words(head);
        let load: u64 = load.trim_start_matches("load=").parse().expect("a rate");
        let is_for_variant = |(end, _): &&(&str, &str)| name.ends_with(end);
        let (_, sender) = self.senders.iter().find(is_for_variant).expect("the sender's command");
        let mut published = String::new();
        // The harness listed files by name: 1, 10, 2.
        let figures: Vec<&str> = figures.split(' ').collect();
        let mut numbers: Vec<String> = (1..=figures.len()).map(|n| n.to_string()).collect();
        numbers.sort();
        for (number, figure) in numbers.iter().zip(figures) {
            published += &format!("{figure}\n");
            let base = format!("{}/bench.{name}.{number}", self.logs);
            let mut random = Random::of(&format!("{}/{base}", self.folder));
            let rates = self.rates(figure, &mut random);
            let write = |end: &str, command: &str, rates: &[u64]| {
                let path = format!("{base}.{end}");
                let mut log = Log::new(&path, self.layout, self.version, command);
                log.head(word_after(command, "-i"), HEAD - 1);
                rates.iter().for_each(|&rate| log.rate(rate));
                match end {
                    "sender" => log.totals(word_after(command, "-l").parse().expect("a size")),
                    _ => log.terminated(),
                }
                put(root, &path, log.text.as_bytes());
            };
            write("receiver", self.receiver, &rates);
            let offered: Vec<u64> =
                rates.iter().map(|_| load - load / 2000 + random.below(load / 1000)).collect();
            write("sender", sender, &offered);
        }
        put(root, &format!("{}/{list}", self.results), published.as_bytes());
    }

    /// Returns rates of a run; the kept ones have this median.
    fn rates(&self, figure: &str, random: &mut Random) -> Vec<u64> {
        let (whole, is_half) = match figure.strip_suffix(".5") {
            Some(whole) => (whole, true),
            None => (figure, false),
        };
        let whole: u64 = whole.parse().expect("packets per second, or a half more");
        let mut kept = match (is_half, self.is_upper) {
            (true, _) => vec![whole, whole + 1],
            (false, true) => vec![whole - 1 - random.below(whole / 1000), whole],
            (false, false) => vec![whole],
        };
        let rates = RATES + kept.len() % 2;
        let span = whole / 400;
        while kept.len() + 15 < rates {
            kept.push(whole - span - random.below(span));
            kept.push(whole + 2 + random.below(span));
        }
        random.shuffle(&mut kept);
        let mut rates_around =
            |count| (0..count).map(|_| whole - 1 + random.below(span)).collect::<Vec<_>>();
        // The harness cuts lines, some of which are in the head and one at the end.
        let (first, mut last) = (rates_around(15 - HEAD), rates_around(HEAD));
        last[HEAD - 1] = whole / 3;
        [first, kept, last].concat()
    }

    /// Writes the facts of a variant: `NAME LINE | LINE ...`
    fn info(&self, root: &Path, rest: &str) {
        let (name, lines) = rest.split_once(' ').expect("lines");
        let text = lines.replace(" | ", "\n") + "\n";
        put(root, &format!("{}/bench.{name}.info", self.logs), text.as_bytes());
    }
}

fn words<const N: usize>(text: &str) -> [&str; N] {
    let words: Vec<&str> = text.split(' ').collect();
    words.try_into().expect("so many words")
}

/// Returns the word after an option of a command.
fn word_after<'a>(command: &'a str, option: &str) -> &'a str {
    let mut words = command.split_whitespace();
    words.find(|word| *word == option).expect("the option");
    words.next().expect("its value")
}

/// Writes a text to a file, or to each file that `{a,b}` in its path stands for. Several entries of
/// one file are concatenated.
fn file(root: &Path, entry: &Entry<'_>) {
    let text = entry.text();
    let path = entry.rest;
    let Some((before, (names, after))) =
        path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return put(root, path, text.as_bytes());
    };
    for name in names.split(',') {
        let path = format!("{before}{name}{after}");
        let existing = fs::read_to_string(root.join(&path)).unwrap_or_default();
        put(root, &path, (existing + &text).as_bytes());
    }
}

fn profile(root: &Path, path: &str) {
    let text = if path.ends_with(".svg") { stacks::flame_graph(path) } else { gprof::text(path) };
    put(root, path, text.as_bytes());
}

pub(crate) fn put(root: &Path, path: &str, content: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
    fs::write(&path, content).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
