//! Data for tests, from two places.
//!
//! The repository's own fixtures (`fixtures/`) are numbers and settings in a compact form. The
//! files that tests read (logs, published lists, configuration trees, cases of ministat) are
//! rendered from them into a temporary folder. So a clone runs every test without additional data.
//! A larger set, the original files, may be installed next to the workspace: then tests run over
//! both.
//!
//! | function | rendered from | larger set |
//! |---|---|---|
//! | [`archives`] | `fixtures/archive/*.txt` | `archive` |
//! | [`ministat_cases`] | `fixtures/ministat.txt` | `conformance/ministat` |
//! | [`logs`] | `fixtures/logs.txt` | `conformance/logs` |
//!
//! The larger set is the folder named by `FWDLAB_TESTDATA`, or `../shared` next to the workspace.
//! Not included: data that only one test reads, which is stored with that test.

mod archive;
mod expectation;
mod frames;
mod gprof;
pub mod guests;
mod lines;
mod logs;
mod ministat;
mod pkt_gen;
mod random;
mod skip;
mod stacks;

pub use expectation::{Expectation, expectations};
pub use frames::{translate_destination, translate_source};
pub use logs::{Expected, FixtureLog, logs};
pub use pkt_gen::Layout;
pub use random::Random;
pub use skip::{in_ci, skip, skip_part, skip_part_without_data, skip_without_data};

use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with test data. Rendered data is removed on drop.
pub struct Collection {
    path: PathBuf,
    rendered: Option<TempDir>,
}

impl Collection {
    /// Path of the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// True if these are the original files rather than files rendered from the fixtures.
    #[must_use]
    pub fn is_larger(&self) -> bool {
        self.rendered.is_none()
    }

    fn rendered(write: fn(&Path)) -> Collection {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write(folder.path());
        Collection { path: folder.path().to_path_buf(), rendered: Some(folder) }
    }

    fn rendered_and_larger(write: fn(&Path), name: &str) -> Vec<Collection> {
        let larger = larger_too(name).map(|path| Collection { path, rendered: None });
        std::iter::once(Collection::rendered(write)).chain(larger).collect()
    }
}

/// Returns five experiments in the layout of the netbenches archive: first rendered from the
/// fixtures, then the original files, if present.
#[must_use]
pub fn archives() -> Vec<Collection> {
    Collection::rendered_and_larger(archive::render, "archive")
}

/// Returns cases of ministat with the output of each of its generations, one folder per case: `cmd`
/// (one argument per line), `expected` and `expected.exit`, `expected.GENERATION` if one differs,
/// and the input. First the repository's own, then the larger set, if present.
#[must_use]
pub fn ministat_cases() -> Vec<Collection> {
    Collection::rendered_and_larger(ministat::render, "conformance/ministat")
}

/// Returns a folder of the larger set, for a test without other data. `None` if it is absent: the
/// test is then recorded as skipped. This is not a failure in continuous integration either,
/// because other tests run over the fixtures.
#[must_use]
pub fn larger(name: &str) -> Option<PathBuf> {
    let folder = folder_of_larger(name);
    if folder.is_none() {
        skip_without_data(&format!("no larger set of test data: {name}"));
    }
    folder
}

/// Like [`larger`], for a test that also runs over fixtures: it is recorded as reduced.
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
