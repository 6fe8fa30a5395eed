//! The five experiments whose logs are kept whole: imported, reported, and held
//! against what was published with them.

use fwdlab_results::archive::assemble::{Assembled, Options, assemble};
use fwdlab_results::archive::found::FoundFile;
use fwdlab_results::archive::published::with_tabs;
use fwdlab_results::archive::scan::scan;
use fwdlab_results::report::{self, Analysis};
use fwdlab_results::store::Store;
use std::path::{Path, PathBuf};

/// Where the experiments lie beside the project.
fn archive() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/archive");
    if path.is_dir() {
        return Some(path);
    }
    assert!(
        std::env::var_os("FWDLAB_CI").is_none(),
        "{} is missing: CI must have it",
        path.display()
    );
    eprintln!("SKIPPED: {} is missing, the archive's experiments were not read", path.display());
    None
}

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

/// An experiment's result, assembled and stored, with its folder.
fn imported(name: &str) -> Option<(Assembled, Store, tempfile::TempDir)> {
    let found = scan(&archive()?.join(name)).unwrap();
    let [set] = found.sets.as_slice() else { panic!("{} sets in {name}", found.sets.len()) };
    let assembled = assemble(&set.set, &options(), read).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.sqlite");
    let Assembled { plan, invocation, runs, import, .. } = &assembled;
    Store::create_imported(&path, plan, invocation, runs, import).unwrap();
    Some((assembled, Store::open_read_only(&path).unwrap(), folder))
}

#[test]
fn look() {
    for entry in std::fs::read_dir(archive().unwrap()).unwrap().flatten() {
        let name = entry.file_name().into_string().unwrap();
        if !entry.path().is_dir() {
            continue;
        }
        let (assembled, store, _folder) = imported(&name).unwrap();
        println!("{name}: {:?}", assembled.tally);
        let out = Path::new("/tmp/seeds").join(&name);
        report::write(&store, &out).unwrap();
    }
}
