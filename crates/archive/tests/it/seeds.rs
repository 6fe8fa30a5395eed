//! Imports and reports five experiments of the archive and compares them with their published
//! results.

use fwdlab_archive::assemble::{AssembledSet, Options, assemble};
use fwdlab_archive::found::FoundFile;
use fwdlab_archive::published::with_tabs;
use fwdlab_archive::scan::scan;
use fwdlab_model::plan::RunMetric;
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::stats::log_rule::Rule;
use fwdlab_results::store::Store;
use fwdlab_testdata::{Collection, archives};

fn read(file: &FoundFile) -> std::io::Result<Vec<u8>> {
    std::fs::read(&file.path)
}

fn options() -> Options {
    Options {
        rule: None,
        imported_at: "2024-03-05T10:00:00Z".to_owned(),
        fwdlab_version: "0.1.0".to_owned(),
        named: "archive".to_owned(),
    }
}

/// Assembles and stores an experiment's result; returns its folder.
fn imported(archive: &Collection, name: &str) -> (AssembledSet, Store, tempfile::TempDir) {
    let found = scan(&archive.path().join(name)).unwrap();
    let [set] = found.sets.as_slice() else { panic!("{} sets in {name}", found.sets.len()) };
    let assembled = assemble(&set.set, None, &options(), read).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sqlite");
    let AssembledSet { plan, invocation, runs, import, .. } = &assembled;
    Store::create_imported(&path, plan, invocation, runs, import).unwrap();
    (assembled, Store::open_read_only(&path).unwrap(), folder)
}

/// Known facts of each experiment: folder, variants, runs, ministat blocks.
const EXPERIMENTS: [(&str, usize, usize, usize); 5] = [
    ("000-cxgbe-queues-fbsd10.2", 8, 40, 1),
    ("001-cxgbe-queues-harvest351-fbsd11-head.r287478", 8, 40, 1),
    ("002-firewalls-fbsd13.D27401", 10, 50, 2),
    ("003-firewalls-fbsd12-head.r299288.D8526", 6, 30, 3),
    ("004-fastfwd-pf-ipfw-fbsd10-stable.r295802.D5330", 6, 60, 3),
];

#[test]
fn import_reproduces_everything_published() {
    for archive in archives() {
        for (name, variants, runs, blocks) in EXPERIMENTS {
            let (assembled, store, _folder) = imported(&archive, name);
            let tally = assembled.tally;
            assert_eq!((tally.runs, tally.failed, tally.refused), (runs, 0, 0), "{name}");
            assert_eq!((tally.lists_equal, tally.lists_different), (variants, 0), "{name}");
            assert_eq!((tally.blocks_equal, tally.blocks_different), (blocks, 0), "{name}");
            assert!(tally.rows_equal > 0 && tally.rows_different == 0, "{name}: {tally:?}");

            // The values in JSON equal the published lists.
            let shown = report::show_json(&Analysis::of_store(&store).unwrap()).unwrap();
            let shown = shown["variants"].as_array().unwrap();
            assert_eq!(shown.len(), variants, "{name}");
            for (group, variant) in assembled.import.about.groups.iter().zip(shown) {
                let list = published_list(&archive, name, group.published.as_deref().unwrap());
                let values: Vec<f64> =
                    list.lines().map(|line| line.trim().parse().unwrap()).collect();
                let ours: Vec<f64> = variant["values"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|v| v.as_f64().unwrap())
                    .collect();
                assert_eq!(ours, values, "{name}, {}", group.name);
            }
        }
    }
}

fn published_list(archive: &Collection, name: &str, base: &str) -> String {
    let results = archive.path().join(name).join("results");
    let label = std::fs::read_dir(results).unwrap().next().unwrap().unwrap().path();
    std::fs::read_to_string(label.join(base)).unwrap()
}

#[test]
fn report_contains_published_blocks_to_the_byte() {
    for archive in archives() {
        for (name, _, _, blocks) in EXPERIMENTS {
            let (assembled, store, folder) = imported(&archive, name);
            let out = folder.path().join("report");
            report::write(&store, &out).unwrap();
            let ours = fenced(&std::fs::read_to_string(out.join("DETAILS.md")).unwrap());
            let readme = assembled.import.documents.iter().find(|d| d.path.ends_with("README.md"));
            let published = String::from_utf8(readme.unwrap().content.clone()).unwrap();
            let published: Vec<String> = fenced(&with_tabs(&published.replace('\r', "")));
            assert_eq!(ours.len(), blocks, "{name}");
            assert_eq!(ours, published, "{name}");
            // The lists in the report equal the published ones.
            for group in &assembled.import.about.groups {
                let base = group.published.as_deref().unwrap();
                let ours = std::fs::read_to_string(out.join(base)).unwrap();
                // The first line states the origin.
                let (label, ours) = ours.split_once('\n').unwrap();
                assert!(label.starts_with("# fwdlab ") && label.contains("testbed: archive"));
                assert_eq!(
                    ours.trim_end(),
                    published_list(&archive, name, base).trim_end(),
                    "{name}, {base}"
                );
            }
        }
    }
}

/// The texts between fences, without leading and trailing blank lines.
fn fenced(text: &str) -> Vec<String> {
    let parts = text.split("```").skip(1).step_by(2);
    parts.map(|part| part.trim_matches('\n').to_owned()).collect()
}

#[test]
fn report_shows_own_verdicts_next_to_published_ones() {
    for archive in archives() {
        let (_, store, _folder) =
            imported(&archive, "004-fastfwd-pf-ipfw-fbsd10-stable.r295802.D5330");
        let analysis = Analysis::of_store(&store).unwrap();
        let archive = analysis.archive.as_ref().unwrap();
        let contradicted: Vec<&str> = archive
            .blocks
            .iter()
            .flat_map(|block| &block.contradicted)
            .map(|contradiction| contradiction.sentence.as_str())
            .collect();
        let [same] = contradicted.as_slice() else { panic!("{contradicted:?}") };
        assert!(same.contains("Same performance") && same.contains("don't show that"), "{same}");
        assert!(
            analysis
                .core
                .notes
                .iter()
                .any(|note| note.contains("2000 flows") && note.contains("200"))
        );
        assert!(archive.warnings.iter().any(|warning| warning.starts_with("sequential order")));
        assert!(archive.warnings.iter().any(|warning| warning.starts_with("one build per arm")));
        assert!(archive.groups[3].changes.contains("revision 295802 -> 295802D5330"));
        assert!(archive.configurations.iter().any(|(_, changes)| changes.contains("pf_enable")));
        // Both rules give similar rates here; the report contains the difference.
        assert_eq!(archive.rules.used, "netbenches");
        assert!(archive.rules.largest.unwrap().abs() < 0.01);
        let steady = Analysis::of(&store.contents().unwrap().by_rule(Rule::Steady));
        let steady_rules = &steady.archive.as_ref().unwrap().rules;
        assert_eq!(steady_rules.used, "steady");
        let (a, b) = (&archive.rules.variants[0], &steady_rules.variants[0]);
        assert_eq!((a.used_pps, a.other_pps), (b.other_pps, b.used_pps));
    }
}

#[test]
fn report_of_a_queue_sweep_has_a_scaling_law_and_settings() {
    for archive in archives() {
        for name in ["000-cxgbe-queues-fbsd10.2", "001-cxgbe-queues-harvest351-fbsd11-head.r287478"]
        {
            let (_, store, _folder) = imported(&archive, name);
            let analysis = Analysis::of_store(&store).unwrap();
            assert_eq!(analysis.core.factors[0].name, "queues");
            assert_eq!(analysis.core.factors[0].numbers.as_ref().unwrap().len(), 8);
            assert_eq!(analysis.scaling.len(), 1, "{name}");
            let archive = analysis.archive.as_ref().unwrap();
            assert_eq!(
                archive.groups[3].changes, "hw.cxgbe.nrxq10g 1 -> 4, hw.cxgbe.ntxq10g 1 -> 4",
                "{name}"
            );
            assert!(analysis.core.order.is_some());
            // Graph and lists use the median rule of their time.
            assert_eq!(analysis.core.figure, RunMetric::NetbenchesUpper);
        }
    }
}

#[test]
fn complete_reproduces_the_stored_comparison() {
    for archive in archives() {
        for (name, ..) in EXPERIMENTS {
            let (_, store, _folder) = imported(&archive, name);
            let kept = store.contents().unwrap();
            let mut older = kept.clone();
            older.import.as_mut().unwrap().about.reproductions = None;
            fwdlab_archive::complete(&mut older);
            assert!(older.import == kept.import, "{name}");
        }
    }
}

#[test]
fn report_has_published_axes_and_pictures() {
    for archive in archives() {
        let (_, store, folder) = imported(&archive, "002-firewalls-fbsd13.D27401");
        let contents = store.contents().unwrap();
        let mut analysis = report::write_contents(&contents, folder.path()).unwrap();
        let referred = &analysis.archive.as_ref().unwrap().pictures;
        let exists = |file: &str| file.starts_with("../") && folder.path().join(file).is_file();
        assert!(referred.iter().all(|p| exists(&p.file)), "{referred:?}");
        let published = folder.path().join("flamegraphs/bench.D27401.forwarding.inet4.svg");
        assert!(!published.exists());
        analysis.copy_pictures();
        report::write_analysed(&contents, &analysis, folder.path()).unwrap();
        let archive = analysis.archive.as_ref().unwrap();
        assert!(archive.imix_axis);
        let graph = std::fs::read_to_string(folder.path().join("graph.svg")).unwrap();
        assert!(graph.contains("simple IMIX") && graph.contains("inet6"), "no second axis");
        assert_eq!(archive.pictures.len(), 10);
        for picture in &archive.pictures {
            assert!(folder.path().join(&picture.file).is_file(), "{}", picture.file);
        }
        let graphs =
            archive.missing.iter().filter(|missing| missing.contains(".graph: the stacks"));
        assert_eq!(graphs.count(), 10, "{:?}", archive.missing);
    }
}
