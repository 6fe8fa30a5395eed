//! File names of imported variants.

use crate::store::Contents;

/// Gives imported variants the names of their published lists, as long as those are plain and
/// distinct.
pub(super) fn apply(contents: &Contents, files: &mut [String]) {
    let Some(import) = &contents.import else { return };
    for (index, group) in import.about.groups.iter().enumerate().take(files.len()) {
        if let Some(name) = &group.published
            && crate::report::names::safe(name) == *name
            && !RESERVED.contains(&name.to_lowercase().as_str())
            && files.iter().all(|other| !other.eq_ignore_ascii_case(name))
        {
            files[index].clone_from(name);
        }
    }
}

/// Names of the report's own files.
const RESERVED: [&str; 12] = [
    "readme.md",
    "details.md",
    "profiles.md",
    "effects.svg",
    "index.html",
    "graph.png",
    "graph.svg",
    "gnuplot.data",
    "runs.csv",
    "results.json",
    "environment.json",
    "run.sqlite",
];
