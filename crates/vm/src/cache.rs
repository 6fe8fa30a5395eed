//! Files that survive the process: created completely or not at all.

use std::fs;
use std::path::{Path, PathBuf};

/// Prefix of the names of unfinished files; a process id follows.
const UNFINISHED: &str = "unpacking-";

/// Returns the path of a file or directory under construction below `cache`; [`clean_cache`]
/// removes it.
pub(crate) fn unfinished(cache: &Path, name: &str) -> PathBuf {
    cache.join(format!("{UNFINISHED}{}-{name}", std::process::id()))
}

/// Removes unfinished files of dead processes below `cache`.
pub fn clean_cache(cache: &Path) {
    let Ok(entries) = fs::read_dir(cache) else { return };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let pid = name.strip_prefix(UNFINISHED).and_then(|rest| rest.split('-').next());
        if pid.and_then(|pid| pid.parse().ok()).is_some_and(|pid| start_of(pid).is_none()) {
            // A kernel is a directory, a disk a file; another process may remove it first.
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
}

/// Start of a process in ticks since boot (proc(5), field 22). `None` if there is no such process.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clean_cache_removes_unfinished_files_of_dead_processes() {
        let parent = tempfile::tempdir().unwrap();
        // No process has an id of this length.
        let (dead, finished) = (parent.path().join("unpacking-4194999-x"), parent.path().join("x"));
        let current = unfinished(parent.path(), "y");
        [&dead, &finished, &current].into_iter().for_each(|path| fs::write(path, "").unwrap());
        fs::create_dir(parent.path().join("unpacking-4194998")).unwrap();
        clean_cache(parent.path());
        assert!(finished.exists() && current.exists() && !dead.exists());
        assert!(!parent.path().join("unpacking-4194998").exists());
    }
}
