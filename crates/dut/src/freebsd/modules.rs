//! Kernel modules that fwdlab loads: noted on the DUT, and unloaded when no variant needs them.

use super::backup::Backup;
use fwdlab_host::Host;
use fwdlab_host::error::BenchError;
use std::collections::BTreeSet;

/// Note of the files of the modules that are there because of us.
const NOTE: &str = "modules";

/// Loads a module that is not there.
///
/// # Errors
/// When there is none, or it is refused.
pub fn load(host: &dyn Host, memory: &Backup, file: &str) -> Result<(), BenchError> {
    note(memory, file)?;
    host.run(&["kldload", "-n", file], "").map(drop)
}

/// Notes a module that is there because of us: we load it, or the next boot does for what we
/// have written.
///
/// # Errors
/// When it can't be noted.
pub fn note(memory: &Backup, file: &str) -> Result<(), BenchError> {
    let mut noted = noted(memory)?;
    if noted.insert(file.to_owned()) { write(memory, &noted) } else { Ok(()) }
}

/// Unloads those of our modules that are `unneeded`; tells of a file whether it is still
/// loaded, be it because it is not ours or because the kernel keeps it.
///
/// # Errors
/// When the DUT can't be reached, or the note can't be written.
pub fn unload(
    host: &dyn Host,
    memory: &Backup,
    unneeded: impl Fn(&str) -> bool,
) -> Result<impl Fn(&str) -> bool, BenchError> {
    let mut noted = noted(memory)?;
    let mut gone = BTreeSet::new();
    for file in noted.clone().into_iter().filter(|file| unneeded(file)) {
        match host.run(&["kldunload", &file], "") {
            // Busy, or compiled in: it stays, and stays noted for the next time.
            Err(BenchError::Program { why, .. }) if !is_absent(&why) => {}
            Err(error @ BenchError::Environment { .. }) => return Err(error),
            _ => {
                noted.remove(&file);
                gone.insert(file);
            }
        }
    }
    if !gone.is_empty() {
        write(memory, &noted)?;
    }
    Ok(move |file: &str| !gone.contains(file))
}

/// `kldunload: can't find file pf`: the boot did not load it.
fn is_absent(why: &str) -> bool {
    why.contains("can't find file")
}

/// True for a module that is there because of us.
///
/// # Errors
/// When the note can't be read.
pub fn is_noted(memory: &Backup, file: &str) -> Result<bool, BenchError> {
    Ok(noted(memory)?.contains(file))
}

fn noted(memory: &Backup) -> Result<BTreeSet<String>, BenchError> {
    let text = memory.note(NOTE)?.unwrap_or_default();
    Ok(text.split_whitespace().map(str::to_owned).collect())
}

fn write(memory: &Backup, files: &BTreeSet<String>) -> Result<(), BenchError> {
    if files.is_empty() {
        return memory.forget(NOTE);
    }
    memory.set_note(NOTE, &files.iter().cloned().collect::<Vec<_>>().join(" "))
}
