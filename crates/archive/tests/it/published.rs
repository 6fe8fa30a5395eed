//! Compares the published results of five experiments with their published lists of values, and
//! reads arbitrary contents of these files.

use fwdlab_archive::published::lists::List;
use fwdlab_archive::published::plot::Plot;
use fwdlab_archive::published::tables::{Row, RowSource, Table, check_rows};
use fwdlab_archive::published::{
    LinkKind, MedianRule, Outcome, Readme, Reproduction, claims, reproduce, with_tabs,
};
use fwdlab_results::stats::ministat::Generation;
use fwdlab_results::store::Claim;
use fwdlab_testdata::{Collection, archives, larger};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

use Generation::{Fbsd10, Fbsd11_0, Fbsd12, Fbsd14, Fbsd15};

/// Generations that compute the percent error from the ratio.
const NEW: &[Generation] = &[Fbsd15, Fbsd14, Fbsd12];
/// Earlier generations; medians of odd numbers do not distinguish them.
const OLD: &[Generation] = &[Fbsd11_0, Fbsd10];
/// Generations whose median of an even number is the mean of the two middle values.
const MEAN: &[Generation] = &[Fbsd15, Fbsd14, Fbsd12, Fbsd11_0];

/// A published result.
struct Published {
    folder: PathBuf,
    readme: Readme,
    /// Name and values of its lists.
    lists: Vec<(String, Vec<f64>)>,
}

impl Published {
    fn variants(&self) -> Vec<(&str, &[f64])> {
        self.lists.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect()
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name)).unwrap()
    }

    /// Returns the source list of each row of a table.
    fn sources(&self, name: &str) -> (Vec<Row>, Vec<Option<RowSource>>) {
        let rows = Table::parse(&self.text(name)).rows;
        let sources = check_rows(&rows, &self.variants());
        (rows, sources)
    }
}

/// The experiment with this name prefix.
fn published(archive: &Collection, prefix: &str) -> Published {
    let experiment = entries(archive.path())
        .into_iter()
        .find(|path| name(path).starts_with(prefix))
        .expect("an experiment of that name");
    let folder = entries(&experiment.join("results")).remove(0);
    let readme = Readme::parse(&fs::read_to_string(folder.join("README.md")).unwrap());
    let lists = entries(&folder)
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).ok()?;
            let list = List::parse(&text);
            list.is_list().then(|| (name(path), list.numbers()))
        })
        .collect();
    Published { folder, readme, lists }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

/// Checks that these generations reprint every block from these lists.
fn check(archive: &Collection, prefix: &str, width: usize, expected: &[(&[Generation], &[&str])]) {
    let published = published(archive, prefix);
    let variants = published.variants();
    assert_eq!(published.readme.blocks.len(), expected.len(), "{prefix}");
    for (block, (generations, members)) in published.readme.blocks.iter().zip(expected) {
        let reproduction = reproduce(block, &variants);
        let Outcome::Exact { generations: found, text } = reproduction.outcome else {
            panic!("{prefix}, line {}: {:?}", block.line, reproduction.outcome);
        };
        assert_eq!(&found, generations, "{prefix}, line {}", block.line);
        assert_eq!(text, with_tabs(&block.text));
        let found: Vec<&str> =
            reproduction.members.iter().flatten().map(|&member| variants[member].0).collect();
        assert_eq!(&found, members, "{prefix}, line {}", block.line);
        assert_eq!((block.width, block.separate_bars), (Some(width), true), "{prefix}");
    }
}

#[test]
fn reproduce_reprints_all_ten_blocks() {
    for archive in archives() {
        let queues = &["pps.1", "pps.2", "pps.3", "pps.4", "pps.5", "pps.6", "pps.8"];
        check(&archive, "000", 74, &[(OLD, queues)]);
        check(&archive, "001", 72, &[(OLD, queues)]);
        let images =
            ["r368287", "r368287D27401v2", "r368606", "r368606D27401v3", "r368606D27401v4"];
        let inet = images.map(|image| format!("{image}.inet4.pps"));
        let inet6 = images.map(|image| format!("{image}.inet6.pps"));
        let (inet, inet6) = (inet.each_ref().map(|s| &**s), inet6.each_ref().map(|s| &**s));
        check(&archive, "002", 74, &[(NEW, &inet), (NEW, &inet6)]);
        check(
            &archive,
            "003",
            74,
            &[
                (NEW, &["299288.fastforwarding.pps", "299288D8526.fastforwarding.pps"]),
                (NEW, &["299288.ipfw-statefull.pps", "299288D8526.ipfw-statefull.pps"]),
                (NEW, &["299288.pf-statefull.pps", "299288D8526.pf-statefull.pps"]),
            ],
        );
        check(
            &archive,
            "004",
            74,
            &[
                (MEAN, &["295802.fastforwarding", "295802D5330.fastforwarding"]),
                (&[Fbsd11_0], &["295802.ipfw-statefull", "295802D5330.ipfw-statefull"]),
                (&[Fbsd11_0], &["295802.pf-statefull", "295802D5330.pf-statefull"]),
            ],
        );
    }
}

/// Reprints the blocks of the whole archive from their lists.
#[test]
fn reproduce_reprints_blocks_of_ten_years() {
    let Some(folder) = larger("conformance/ministat") else { return };
    let (mut exact, mut others) = (0, Vec::new());
    for case in entries(&folder).iter().filter(|case| case.join("readme-block.txt").is_file()) {
        let text = fs::read_to_string(case.join("readme-block.txt")).unwrap();
        let command = fs::read_to_string(case.join("cmd")).unwrap();
        let lists: Vec<(String, Vec<f64>)> = entries(case)
            .iter()
            .filter(|path| command.lines().any(|argument| argument == name(path)))
            .map(|path| (name(path), List::parse(&fs::read_to_string(path).unwrap()).numbers()))
            .collect();
        let variants: Vec<_> =
            lists.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let blocks = Readme::parse(&format!("title\n```\n{text}\n```\n")).blocks;
        assert_eq!(blocks.len(), 1, "{}", case.display());
        match reproduce(&blocks[0], &variants).outcome {
            Outcome::Exact { generations, .. } => {
                let meta = fs::read_to_string(case.join("meta.json")).unwrap();
                let meta: serde_json::Value = serde_json::from_str(&meta).unwrap();
                // The cases were collected before the newest generation existed.
                let found: Vec<&str> = Generation::ALL
                    .into_iter()
                    .filter(|generation| *generation != Fbsd15 && generations.contains(generation))
                    .map(Generation::name)
                    .collect();
                assert_eq!(meta["readme_generations"], serde_json::json!(found), "{}", name(case));
                exact += 1;
            }
            other => others.push(format!("{}: {other:?}", name(case))),
        }
    }
    println!("{exact} blocks come out the same, {} don't", others.len());
    assert!(others.is_empty(), "{}", others.join("\n"));
    assert!(exact > 200, "only {exact} blocks");
}

#[test]
fn reproduce_reports_a_missing_run() {
    for archive in archives() {
        let published = published(&archive, "002");
        let mut lists = published.lists.clone();
        lists.retain(|(name, _)| name != "r368606.inet6.pps");
        let variants: Vec<_> =
            lists.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect();
        let blocks = &published.readme.blocks;
        let Reproduction { outcome, members } = reproduce(&blocks[1], &variants);
        assert_eq!(outcome, Outcome::Unmatched { sets: vec![2] });
        assert_eq!(members.iter().flatten().count(), 4);
        assert!(matches!(reproduce(&blocks[0], &variants).outcome, Outcome::Exact { .. }));
    }
}

#[test]
fn readme_parses_published_texts() {
    for archive in archives() {
        let d5330 = published(&archive, "004");
        let readme = &d5330.readme;
        let (title, setup) = if archive.is_larger() {
            let title = "Comparing impact of patch D5330 (https://reviews.freebsd.org/D5330) \
                     on forwarding performance";
            (title, (6, "Traffic load at 10Mpps"))
        } else {
            ("Forwarding and firewalls with the changes of D5330", (3, "one generator at 10 Mpps"))
        };
        assert_eq!(readme.title.as_deref(), Some(title));
        assert_eq!((readme.setup.len(), readme.setup.last().unwrap().as_str()), setup);
        let links: Vec<_> = readme.links.iter().map(|l| (l.target.as_str(), l.kind)).collect();
        let profile = LinkKind::Profile;
        let expected =
            [("pmcstat-gprof-295802.txt", profile), ("pmcstat-gprof-295802D5330.txt", profile)];
        assert_eq!(links, expected);
        let block_claims: Vec<_> = readme.blocks.iter().map(claims).collect();
        assert_eq!(block_claims[0].heading, Claim::Same);
        assert_eq!(block_claims[0].sets, [Claim::NotProven]);
        assert_eq!(block_claims[1].heading, Claim::Worse { percent: Some(-3.3) });
        assert_eq!(block_claims[1].sets, [Claim::Worse { percent: Some(-3.2795) }]);
        assert_eq!(block_claims[2].heading, Claim::Worse { percent: Some(-2.8) });

        let d27401 = published(&archive, "002").readme;
        assert_eq!(d27401.setup.len(), if archive.is_larger() { 10 } else { 4 });
        let headings: Vec<_> = d27401.blocks.iter().map(|block| block.heading.as_str()).collect();
        assert_eq!(headings, ["IPv4:", "IPv6:"]);
        let flames = d27401.links.iter().filter(|link| link.kind == LinkKind::FlameGraph);
        assert_eq!(flames.count(), 10);
        assert_eq!(d27401.links[0].kind, LinkKind::Figure);
        let inet = claims(&d27401.blocks[0]).sets;
        assert_eq!(inet[..2], [Claim::NotProven, Claim::NotProven]);
        assert_eq!(inet[2], Claim::Better { percent: Some(5.5058) });

        let d8526 = published(&archive, "003").readme;
        assert!(d8526.blocks.iter().all(|b| claims(b).heading == Claim::Better { percent: None }));
        let queues = published(&archive, "000").readme;
        assert_eq!(queues.title.as_deref(), Some(queues.blocks[0].heading.as_str()));
        assert_eq!(claims(&queues.blocks[0]).heading, Claim::None);
    }
}

#[test]
fn check_rows_matches_published_tables() {
    for archive in archives() {
        for (prefix, rows) in [("000", 16), ("001", 16), ("002", 20), ("003", 12), ("004", 12)] {
            let published = published(&archive, prefix);
            let names: Vec<String> =
                entries(&published.folder).iter().map(|path| name(path)).collect();
            let (mut all, mut reproduced) = (0, 0);
            for name in names.iter().filter(|name| name.ends_with(".data")) {
                let (rows, sources) = published.sources(name);
                all += rows.len();
                reproduced += sources.iter().flatten().count();
            }
            assert_eq!((all, reproduced), (rows, rows), "{prefix}");
        }
        let queues = published(&archive, "000");
        let (rows, sources) = queues.sources("gnuplot.bak");
        assert_eq!((rows.len(), sources), (4, vec![None; 4]), "of runs that were thrown away");
        let d5330 = published(&archive, "004");
        let (rows, sources) = d5330.sources("gnuplot.data");
        assert_eq!(rows[0].label, "fastforwarding 295802");
        let first = sources[0].expect("a list");
        assert_eq!(d5330.lists[first.variant].0, "295802.fastforwarding");
        assert_eq!(first.rule, MedianRule::Mean);
    }
}

#[test]
fn plot_parses_published_scripts() {
    for archive in archives() {
        let plot = |prefix: &str| Plot::parse(&published(&archive, prefix).text("gnuplot.plt"));
        let harvest = plot("001");
        let [title, series_title, y2label] = if archive.is_larger() {
            [
                "Impact of random.harvest.mask on fastforwarding performance",
                "FreeBSD 11-head (r287478) random.harvest.mask=351",
                "Theorical equity using simple IMIX distribution (Ethernet throughput)",
            ]
        } else {
            ["Queues and entropy", "mask 351", "Ethernet throughput of simple IMIX"]
        };
        assert_eq!(harvest.title.as_deref(), Some(title));
        let other = "../../../nXxq10g/results/fbsd11-head.r287478/gnuplot.data";
        assert_eq!(harvest.files(), ["gnuplot.data", other]);
        assert_eq!(harvest.series[0].title.as_deref(), Some(series_title));
        assert_eq!(
            (harvest.series.len(), harvest.y2_factor),
            (if archive.is_larger() { 4 } else { 3 }, None)
        );
        let d27401 = plot("002");
        assert_eq!(d27401.y2_factor, Some(2834.666667));
        assert_eq!(d27401.y2label.as_deref(), Some(y2label));
        assert!(d27401.title.is_some_and(|title| title.contains('\n')));
        let titles: Vec<_> = d27401.series.iter().map(|series| series.title.as_deref()).collect();
        assert_eq!(titles, [Some("inet"), Some("inet6")]);
        let d8526 = plot("003");
        assert_eq!(d8526.files(), ["299288-D8526.data", "299288.data"]);
    }
}

/// Lines typical of READMEs and their data files, in any order.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("```".to_owned()),
        Just("+----------+".to_owned()),
        Just("x legend".to_owned()),
        Just("x   3             1             3             2             2             1".into()),
        Just("+   3             2             4             3             3             1".into()),
        Just("%   3             9             9             9             9           nan".into()),
        Just("No difference proven at 95.0% confidence".to_owned()),
        Just("Difference at 95.0% confidence".to_owned()),
        Just("\t1 +/- 2.5%".to_owned()),
        Just("        5% +/- 1%".to_owned()),
        Just("| |_A_M|  |".to_owned()),
        Just("plot 'a' title \"b\", \\".to_owned()),
        "[-x+*%#@O|_AM0-9.e \"'\\\\\\[\\]()!,n]{0,40}",
        ".{0,30}",
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

    #[test]
    fn parsers_accept_arbitrary_lines(
        lines in proptest::collection::vec(line(), 0..40),
        values in proptest::collection::vec(any::<f64>(), 0..5),
    ) {
        let text = lines.join("\n");
        let variants: [(&str, &[f64]); 4] = [
            ("a", &[1.0, 2.0, 3.0]), ("b", &[2.0, 3.0, 4.0]), ("c", &[9.0; 3]), ("d", &values),
        ];
        for block in Readme::parse(&text).blocks {
            let Reproduction { members, outcome } = reproduce(&block, &variants);
            prop_assert_eq!(members.len(), block.sets.len());
            let missing = members.iter().any(Option::is_none);
            prop_assert_eq!(missing, matches!(outcome, Outcome::Unmatched { .. }));
            if let Outcome::Differs { same_lines, lines, text, first_difference, .. } = outcome {
                prop_assert!(same_lines <= lines);
                prop_assert!(text != with_tabs(&block.text));
                prop_assert!(first_difference.published != first_difference.computed);
            }
            prop_assert_eq!(claims(&block).sets.len() + 1, block.sets.len());
        }
        let table = Table::parse(&text);
        prop_assert_eq!(check_rows(&table.rows, &variants).len(), table.rows.len());
        let (list, plot) = (List::parse(&text), Plot::parse(&text));
        prop_assert!(list.values.len() + list.others.len() <= text.lines().count());
        prop_assert!(plot.files().len() <= plot.series.len());
    }

    #[test]
    fn parsers_accept_arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let fenced = format!("```\n{text}");
        let _ = (Readme::parse(&fenced), Table::parse(&text), Plot::parse(&text));
        let without_tabs = text.replace('\t', "");
        prop_assert_eq!(with_tabs(&without_tabs).replace('\t', "        "), without_tabs);
    }
}
