//! The plugin that counts: compiled on the spot, since QEMU's interface is C and the
//! machine that runs QEMU has a compiler or gets one by name.

use crate::error::VmError;
use crate::machine;
use crate::tool;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Its source: parts that are one file to the compiler.
const SOURCE: &str = concat!(
    include_str!("plugin.h"),
    include_str!("calls.c"),
    include_str!("caches.c"),
    include_str!("misses.c"),
    include_str!("count.c")
);
/// How it is compiled.
const FLAGS: [&str; 5] = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-xc"];

/// The compiled plugin in `directory`; compiled where it is not there yet. A change of the
/// source gives it another name.
///
/// # Errors
/// When there is no C compiler, or the directory can't be written.
pub fn compiled(directory: &Path) -> Result<PathBuf, VmError> {
    let mut hasher = DefaultHasher::new();
    (SOURCE, FLAGS).hash(&mut hasher);
    let file = directory.join(format!("count-{:016x}.so", hasher.finish()));
    if file.exists() {
        return Ok(file);
    }
    fs::create_dir_all(directory).map_err(|source| VmError::file(directory, source))?;
    // Beside its place first: another process may look for it at the same time.
    let part = machine::unfinished(directory, "count.so");
    let text = part.to_string_lossy();
    let mut arguments = FLAGS.to_vec();
    arguments.extend(["-", "-o", &text]);
    tool::run("cc", &arguments, SOURCE.as_bytes(), "gcc")?;
    fs::rename(&part, &file).map_err(|source| VmError::file(&file, source))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_compiles_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = compiled(directory.path()).unwrap();
        let made = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(compiled(directory.path()).unwrap(), file);
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), made);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
