//! Profiles that were published in an archive, read again: ten flame graphs and
//! two texts of gprof. The archive lies beside the workspace.

use fwdlab_results::profile::{Content, Divided, Filter, FlatProfile, Format, Profile, read};
use std::fs;
use std::path::{Path, PathBuf};

/// Files below the archive's experiment `number` whose names end in `ending`;
/// none, said aloud, where the archive isn't there.
fn files(number: &str, ending: &str) -> Option<Vec<PathBuf>> {
    let archive = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/archive");
    if !archive.is_dir() {
        let must = std::env::var_os("FWDLAB_CI").is_some_and(|ci| ci == "1");
        assert!(!must, "the archive is missing: {}", archive.display());
        eprintln!("SKIPPED: no archive in {}", archive.display());
        return None;
    }
    let entries = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let experiment = entries(&archive).into_iter().find(|path| name(path).starts_with(number));
    let mut files: Vec<PathBuf> = entries(&experiment.unwrap().join("results"))
        .iter()
        .flat_map(|set| entries(set))
        .filter(|path| name(path).ends_with(ending))
        .collect();
    files.sort();
    Some(files)
}

fn profile(path: &Path) -> Profile {
    read(&fs::read(path).unwrap()).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The count in the title of the rectangle called `name`, counted by hand:
/// `<title>all (13,557,075 samples, 100%)`.
fn titled(svg: &str, name: &str) -> Vec<u64> {
    svg.split(&format!("<title>{name} ("))
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap().replace(',', "").parse().unwrap())
        .collect()
}

#[test]
fn published_flame_graphs_give_their_stacks_back() {
    let Some(files) = files("002-", ".svg") else { return };
    assert_eq!(files.len(), 10);
    for path in &files {
        let profile = profile(path);
        assert_eq!((profile.format, profile.unknown.count), (Format::FlameGraph, 0));
        let (stacks, svg) = (profile.stacks().unwrap(), fs::read_to_string(path).unwrap());
        assert_eq!([stacks.total()], *titled(&svg, "all"), "{}", path.display());
        // What stands on the root has the counts of its titles: fork_exit is
        // nowhere else.
        let below = |root: &str| -> u64 {
            stacks.iter().filter(|(f, _)| f[0].as_ref() == root).map(|(_, n)| n).sum()
        };
        assert_eq!([below("fork_exit")], *titled(&svg, "fork_exit"), "{}", path.display());
        // Less than a thousandth is in rectangles that weren't drawn; nothing
        // stands on nothing, nor on what has too little.
        assert_eq!(profile.remarks.len(), 1, "{:?}", profile.remarks);
        assert!(below("[too narrow to be drawn]") * 1000 < stacks.total());
        // Every function has, over all its places, what its titles say.
        for function in ["ip_tryforward", "mlx5e_xmit", "service_iq_fl", "m_free"] {
            let drawn: u64 = titled(&svg, function).iter().sum();
            let inclusive: u64 = stacks
                .iter()
                .map(|(f, n)| n * f.iter().filter(|f| f.as_ref() == function).count() as u64)
                .sum();
            assert_eq!(inclusive, drawn, "{function} of {}", path.display());
        }
    }
}

#[test]
fn published_texts_of_gprof_are_read_whole() {
    let Some(files) = files("004-", ".txt") else { return };
    let files: Vec<_> =
        files.iter().filter(|path| path.to_string_lossy().contains("gprof")).collect();
    assert_eq!(files.len(), 2);
    // The totals that the texts print: `of 1300193.00 seconds`.
    for (path, total) in files.iter().zip([1_300_193.0, 819_409.0]) {
        let profile = profile(path);
        assert_eq!(profile.unknown.count, 0, "{:?}", profile.unknown);
        let Content::Flat(flat) = &profile.content else { panic!("{profile:?}") };
        assert!((flat.total() - total).abs() < 1.0, "{} of {total}", flat.total());
        let input = flat.function("ip_input").unwrap();
        let forward = edge(flat, "ip_input", "ip_tryforward");
        assert!(forward.0 > 0.9 * input.total.unwrap() && forward.1 > Some(100_000), "{forward:?}");
        let divided = Divided::of(&profile, &Filter::default(), false);
        assert!(divided.summary.work_share > 0.99);
    }
}

/// Cost and number of calls.
fn edge(flat: &FlatProfile, caller: &str, callee: &str) -> (f64, Option<u64>) {
    let mut edges = flat.edges.iter().filter(|e| e.caller == caller && e.callee == callee);
    let edge = edges.next().unwrap();
    assert!(edges.next().is_none(), "{caller} calls {callee} twice");
    (edge.own + edge.descendants, edge.calls)
}
