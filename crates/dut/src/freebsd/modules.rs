//! Kernel modules that fwdlab loads: noted on the DUT, and unloaded when no variant needs them.

use super::backup::Backup;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use std::collections::BTreeSet;

/// Note of the files of fwdlab's modules.
const NOTE: &str = "modules";

/// Loads a module that is not loaded.
///
/// # Errors
/// Fails if there is no such module or it is rejected.
pub fn load(host: &dyn Host, backup: &Backup, file: &str) -> Result<(), BenchError> {
    note(backup, file)?;
    host.run(&["kldload", "-n", file], "").map(drop)
}

/// Notes one of fwdlab's modules: loaded by fwdlab, or by the next boot because of a file that
/// fwdlab wrote.
///
/// # Errors
/// Fails if the note cannot be written.
pub fn note(backup: &Backup, file: &str) -> Result<(), BenchError> {
    let mut noted = noted(backup)?;
    if noted.insert(file.to_owned()) { write(backup, &noted) } else { Ok(()) }
}

/// Unloads those of fwdlab's modules that are `unneeded`. The returned function reports whether a
/// file is still loaded, because it is not fwdlab's or because the kernel keeps it.
///
/// # Errors
/// Fails if the DUT cannot be reached or the note cannot be written.
pub fn unload(
    host: &dyn Host,
    backup: &Backup,
    unneeded: impl Fn(&str) -> bool,
) -> Result<impl Fn(&str) -> bool, BenchError> {
    let mut noted = noted(backup)?;
    let mut gone = BTreeSet::new();
    for file in noted.clone().into_iter().filter(|file| unneeded(file)) {
        match host.run(&["kldunload", &file], "") {
            // Busy or compiled in: the module stays loaded, and noted for the next attempt.
            Err(BenchError::Program { why, .. }) if !is_absent(&why) => {}
            Err(error @ BenchError::Environment { .. }) => return Err(error),
            _ => {
                noted.remove(&file);
                gone.insert(file);
            }
        }
    }
    if !gone.is_empty() {
        write(backup, &noted)?;
    }
    Ok(move |file: &str| !gone.contains(file))
}

/// Matches `kldunload: can't find file pf`: the boot did not load it.
fn is_absent(why: &str) -> bool {
    why.contains("can't find file")
}

/// True for one of fwdlab's modules.
///
/// # Errors
/// Fails if the note cannot be read.
pub fn is_noted(backup: &Backup, file: &str) -> Result<bool, BenchError> {
    Ok(noted(backup)?.contains(file))
}

fn noted(backup: &Backup) -> Result<BTreeSet<String>, BenchError> {
    let text = backup.note(NOTE)?.unwrap_or_default();
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn write(backup: &Backup, files: &BTreeSet<String>) -> Result<(), BenchError> {
    if files.is_empty() {
        return backup.forget(NOTE);
    }
    backup.set_note(NOTE, &files.iter().cloned().collect::<Vec<_>>().join(" "))
}
