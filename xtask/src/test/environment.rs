//! Environment of test programs: the contents of `target/` created by `scripts/deps.sh` and `make
//! kernels`.

use std::path::{Path, PathBuf};

/// Variables that tests read, with their default path below the root.
const DEFAULTS: &[(&str, &str)] = &[
    ("FWDLAB_DUCKDB", "target/duckdb/bin/python"),
    ("FWDLAB_SNAPPI", "target/snappi/bin/python"),
    ("FWDLAB_LABGRID", "target/labgrid"),
    ("FWDLAB_KERNELS", "target/kernels"),
];

/// Returns the defaults of unset variables, if their path exists.
pub(crate) fn defaults(root: &Path) -> Vec<(&'static str, PathBuf)> {
    let all = DEFAULTS.iter().map(|(name, path)| (*name, root.join(path)));
    all.filter(|(name, path)| std::env::var_os(name).is_none() && path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_omit_missing_paths() {
        let root = tempfile::tempdir().expect("a directory");
        assert!(defaults(root.path()).is_empty());
        std::fs::create_dir_all(root.path().join("target/labgrid")).expect("a directory");
        let is_set = std::env::var_os("FWDLAB_LABGRID").is_some();
        let names: Vec<&str> = defaults(root.path()).iter().map(|(name, _)| *name).collect();
        assert_eq!(names, if is_set { vec![] } else { vec!["FWDLAB_LABGRID"] });
    }
}
