//! Profiles published in an archive: ten flame graphs and two gprof texts.

use fwdlab_results::profile::{
    Content, Filter, FilteredProfile, FlatProfile, Format, Profile, read,
};
use fwdlab_testdata::{Collection, archives};
use std::fs;
use std::path::{Path, PathBuf};

/// Files below the archive's experiment `number` whose names end in `ending`.
fn files(archive: &Collection, number: &str, ending: &str) -> Vec<PathBuf> {
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let experiment =
        entries(archive.path()).into_iter().find(|path| name(path).starts_with(number));
    let mut files: Vec<PathBuf> = entries(&experiment.unwrap().join("results"))
        .iter()
        .flat_map(|set| entries(set))
        .filter(|path| name(path).ends_with(ending))
        .collect();
    files.sort();
    files
}

fn profile(path: &Path) -> Profile {
    read(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Counts in the titles of rectangles with this name, extracted independently of the reader:
/// `<title>all (13,557,075 samples, 100%)`.
fn counts_in_titles(svg: &str, name: &str) -> Vec<u64> {
    svg.split(&format!("<title>{name} ("))
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().replace(',', "").parse().unwrap())
        .collect()
}

#[test]
fn archived_flame_graphs_are_read_as_stacks() {
    for archive in archives() {
        let files = files(&archive, "002-", ".svg");
        assert_eq!(files.len(), 10);
        for path in &files {
            let profile = profile(path);
            assert_eq!((profile.format, profile.unknown.count), (Format::FlameGraph, 0));
            let (stacks, svg) = (profile.stacks().unwrap(), fs::read_to_string(path).unwrap());
            assert_eq!([stacks.total()], *counts_in_titles(&svg, "all"), "{}", path.display());
            // Rectangles on the root have the counts of their titles: fork_exit occurs nowhere
            // else.
            let below = |root: &str| -> u64 {
                stacks.iter().filter(|(f, _)| f[0].as_ref() == root).map(|(_, n)| n).sum()
            };
            assert_eq!(
                [below("fork_exit")],
                *counts_in_titles(&svg, "fork_exit"),
                "{}",
                path.display()
            );
            // Less than a thousandth is in rectangles that were not drawn; there are no orphans and
            // no overfull rectangles.
            assert_eq!(profile.remarks.len(), 1, "{:?}", profile.remarks);
            assert!(below("[too narrow to be drawn]") * 1000 < stacks.total());
            // The sum over all occurrences of a function equals the sum of its titles.
            for function in ["ip_tryforward", "mlx5e_xmit", "service_iq_fl", "m_free"] {
                let drawn: u64 = counts_in_titles(&svg, function).iter().sum();
                let inclusive: u64 = stacks
                    .iter()
                    .map(|(f, n)| n * f.iter().filter(|f| f.as_ref() == function).count() as u64)
                    .sum();
                assert_eq!(inclusive, drawn, "{function} of {}", path.display());
            }
        }
    }
}

#[test]
fn archived_gprof_texts_are_read_completely() {
    for archive in archives() {
        let files = files(&archive, "004-", ".txt");
        let files: Vec<_> =
            files.iter().filter(|path| path.to_string_lossy().contains("gprof")).collect();
        assert_eq!(files.len(), 2);
        for path in &files {
            let (profile, total) =
                (profile(path), printed_total(&fs::read_to_string(path).unwrap()));
            assert_eq!(profile.unknown.count, 0, "{:?}", profile.unknown);
            let Content::Flat(flat) = &profile.content else { panic!("{profile:?}") };
            assert!((flat.total() - total).abs() < 1.0, "{} of {total}", flat.total());
            let input = flat.function("ip_input").unwrap();
            let forward = edge(flat, "ip_input", "ip_tryforward");
            assert!(
                forward.0 > 0.9 * input.total.unwrap() && forward.1 > Some(100_000),
                "{forward:?}"
            );
            let divided = FilteredProfile::of(&profile, &Filter::default(), false);
            assert!(divided.summary.work_share > 0.99);
        }
    }
}

/// Total in the text: `for 0.00% of 1300193.00 seconds`.
fn printed_total(text: &str) -> f64 {
    let (_, rest) = text.split_once("% of ").unwrap();
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Cost and number of calls of an edge.
fn edge(flat: &FlatProfile, caller: &str, callee: &str) -> (f64, Option<u64>) {
    let mut edges = flat.edges.iter().filter(|e| e.caller == caller && e.callee == callee);
    let edge = edges.next().unwrap();
    assert!(edges.next().is_none(), "{caller} calls {callee} twice");
    (edge.own + edge.descendants, edge.calls)
}
