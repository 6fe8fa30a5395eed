//! Data for tests, from two places.
//!
//! The repository's own fixtures (`fixtures/`) are figures and settings in a compact form;
//! what a test reads (logs, published lists, configuration trees, cases of ministat) is
//! rendered from them into a temporary folder. So a clone runs every test with nothing
//! beside it. A larger set, the original files, may lie beside the workspace: tests then
//! run over both.
//!
//! | function | rendered from | larger set |
//! |---|---|---|
//! | [`archives`] | `fixtures/archive/*.txt` | `archive` |
//! | [`ministat_cases`] | `fixtures/ministat.txt` | `conformance/ministat` |
//! | [`logs`] | `fixtures/logs.txt` | `conformance/logs` |
//!
//! The larger set is the folder that `FWDLAB_TESTDATA` names, or `../shared` beside the
//! workspace. Left out: data that only one test reads, which stays with that test.

mod archive;
mod frames;
mod gprof;
mod lines;
mod logs;
mod ministat;
mod pkt_gen;
mod random;
mod skip;
mod stacks;

pub use frames::translate_source;
pub use logs::{Expected, FixtureLog, logs};
pub use pkt_gen::Layout;
pub use random::Random;
pub use skip::{in_ci, skip, skip_part, skip_part_without_data, skip_without_data};

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with test data. What was rendered is removed when this is dropped.
pub struct Collection {
    path: PathBuf,
    rendered: Option<TempDir>,
}

impl Collection {
    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether these are the original files rather than what the fixtures rendered.
    #[must_use]
    pub fn is_larger(&self) -> bool {
        self.rendered.is_none()
    }

    fn rendered(write: fn(&Path)) -> Collection {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path());
        Collection { path: folder.path().to_path_buf(), rendered: Some(folder) }
    }

    fn both(write: fn(&Path), name: &str) -> Vec<Collection> {
        let larger = larger_too(name).map(|path| Collection { path, rendered: None });
        std::iter::once(Collection::rendered(write)).chain(larger).collect()
    }
}

/// Five experiments in the layout of the netbenches archive: first as rendered from their
/// figures, then the original files where they are.
#[must_use]
pub fn archives() -> Vec<Collection> {
    Collection::both(archive::render, "archive")
}

/// Cases of ministat with what each of its generations printed, a folder a case: `cmd`
/// (one argument a line), `expected` and `expected.exit`, `expected.GENERATION` where one
/// differs, and the input. First the repository's own, then the larger set where it is.
#[must_use]
pub fn ministat_cases() -> Vec<Collection> {
    Collection::both(ministat::render, "conformance/ministat")
}

/// A folder of the larger set, for a test that runs over nothing else. `None` if it is absent:
/// the test is then recorded as skipped, which is no failure in continuous integration either,
/// because other tests run over the fixtures.
#[must_use]
pub fn larger(name: &str) -> Option<PathBuf> {
    let folder = folder_of_larger(name);
    if folder.is_none() {
        skip_without_data(&format!("no larger set of test data: {name}"));
    }
    folder
}

/// As [`larger`], for a test that also runs over fixtures: it is recorded as reduced.
#[must_use]
pub fn larger_too(name: &str) -> Option<PathBuf> {
    let folder = folder_of_larger(name);
    if folder.is_none() {
        skip_part_without_data(&format!("no larger set of test data: {name}"));
    }
    folder
}

fn folder_of_larger(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("FWDLAB_TESTDATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    Some(root.join(name)).filter(|folder| folder.is_dir())
}
