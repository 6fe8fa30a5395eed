//! Classification of the files published with the logs.

use super::lists;
use crate::found::FoundFile;
use fwdlab_results::store::DocumentKind;

/// Classification of a file that is not a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileClass {
    /// Kept in the store.
    Kept(DocumentKind),
    /// Not kept; with the reason.
    Left(&'static str),
    /// Possibly a list of values, depending on its content.
    PerhapsList,
}

/// Maximum size of a kept document in bytes; larger ones are only named.
pub(super) const LARGEST: u64 = 8 << 20;

/// Classifies a file by its name. `groups` contains the groups' names.
pub(super) fn taken(file: &FoundFile, groups: &[&str]) -> FileClass {
    let base = file.base();
    let lower = base.to_ascii_lowercase();
    let ends = |suffixes: &[&str]| suffixes.iter().any(|suffix| lower.ends_with(suffix));
    if groups.iter().any(|group| lists::is_called(base, group)) {
        return FileClass::PerhapsList;
    }
    match lower.as_str() {
        "readme.md" | "readme" | "readme.txt" => FileClass::Kept(DocumentKind::Readme),
        "source.json" | "license" | "license.txt" => {
            FileClass::Left("origin or license of the files")
        }
        _ if ends(&[".pps"]) || lower.starts_with("pps.") => FileClass::PerhapsList,
        _ if ends(&[".equilibrium", ".equilibrium.max"]) => FileClass::PerhapsList,
        _ if ends(&[".data"]) => FileClass::Kept(DocumentKind::Table),
        _ if ends(&[".plt", ".gnuplot"]) => FileClass::Kept(DocumentKind::Plot),
        _ if lower.starts_with("pmcstat") || lower.contains("gprof") => {
            FileClass::Kept(DocumentKind::CallGraph)
        }
        _ if ends(&[".graph"]) => FileClass::Kept(DocumentKind::CallGraph),
        _ if ends(&[".stack", ".stacks", ".folded"]) => FileClass::Kept(DocumentKind::Stacks),
        _ if lower.starts_with("bench.") && ends(&[".svg"]) => {
            FileClass::Kept(DocumentKind::FlameGraph)
        }
        _ if ends(&[".svg", ".png", ".jpg", ".jpeg", ".gif"]) => FileClass::Left("a picture"),
        _ if ends(&[".during"]) => FileClass::Left("counters of the device during a run"),
        _ if ends(&[".bak", "~", ".orig"]) => FileClass::Left("a copy kept beside"),
        _ if !base.contains(' ') && !ends(&[".sh", ".txt", ".html", ".csv", ".gz", ".xz"]) => {
            FileClass::PerhapsList
        }
        _ => FileClass::Left("of no kind that holds results"),
    }
}

/// Returns the group of a document named `bench.GROUP.SUFFIX` or `GROUP.SUFFIX`: the longest
/// matching name.
pub(super) fn group(base: &str, groups: &[&str]) -> Option<usize> {
    let stem = base.strip_prefix("bench.").unwrap_or(base);
    let fits = |group: &str| {
        !group.is_empty()
            && stem.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    (0..groups.len()).filter(|i| fits(groups[*i])).max_by_key(|i| groups[*i].len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> FileClass {
        let file = FoundFile { path: name.into(), name: name.to_owned(), size: 1, modified_ns: 0 };
        taken(&file, &["1", "pf.inet4"])
    }

    #[test]
    fn taken_classifies_files_by_name() {
        assert_eq!(of("results/x/README.md"), FileClass::Kept(DocumentKind::Readme));
        assert_eq!(of("x/pf.inet4"), FileClass::PerhapsList);
        assert_eq!(of("x/pps.1"), FileClass::PerhapsList);
        assert_eq!(of("x/gnuplot.data"), FileClass::Kept(DocumentKind::Table));
        assert_eq!(of("x/bench.pf.inet4.svg"), FileClass::Kept(DocumentKind::FlameGraph));
        assert_eq!(of("x/graph.png"), FileClass::Left("a picture"));
        assert_eq!(of("x/bench.pf.inet4.1.pmc.graph"), FileClass::Kept(DocumentKind::CallGraph));
        assert_eq!(of("x/pmcstat-gprof-295802.txt"), FileClass::Kept(DocumentKind::CallGraph));
    }

    #[test]
    fn group_is_the_longest_matching_name() {
        let groups = ["r1", "r1.inet4", "r1.inet6"];
        assert_eq!(group("bench.r1.inet4.svg", &groups), Some(1));
        assert_eq!(group("r1.pps", &groups), Some(0));
        assert_eq!(group("bench.r12.svg", &groups), None);
        assert_eq!(group("README.md", &groups), None);
    }
}
