//! The plugin that counts, and loading it into the installed QEMU.
//!
//! It is compiled on first use, because QEMU's interface is C. QEMU accepts an object only if
//! the object names a version of the plugin API that this QEMU still supports (7 and 8 accept
//! 1, 9 to 11.0 accept 2, 11.1 accepts 7 alone), so each version is offered until one is
//! accepted. The functions of a version are found by what QEMU exports (`qemu.h`).

use crate::cache;
use crate::error::VmError;
use crate::qemu::QEMU;
use crate::tool;
use fwdlab_netio::process;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Source of the plugin: parts of one compilation unit.
const SOURCE: &str = concat!(
    include_str!("qemu.h"),
    include_str!("counters.c"),
    include_str!("calls.c"),
    include_str!("caches.c"),
    include_str!("misses.c"),
    include_str!("count.c")
);
/// Arguments of the compiler.
const FLAGS: [&str; 5] = ["-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-xc"];
/// Versions of QEMU's plugin API whose signatures `qemu.h` knows, in the order of trying: the last
/// of each group with different signatures, and the oldest.
const VERSIONS: [u32; 3] = [2, 7, 1];
/// Passes the accepted version to the plugin.
const VARIABLE: &str = "FWDLAB_PLUGIN_API";
/// Prefix of the line that the plugin prints if QEMU has loaded it without a counting file.
const LOADED: &str = "fwdlab: API ";

/// The plugin with its output files, as loaded by QEMU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plugin {
    version: u32,
    argument: String,
}

impl Plugin {
    /// Compiles the plugin below `cache` for the installed QEMU.
    ///
    /// # Errors
    /// If there is no C compiler or no QEMU, `cache` can't be written, or QEMU accepts no version
    /// of the plugin.
    pub fn new(cache: &Path) -> Result<Plugin, VmError> {
        let file = compiled_plugin(cache)?;
        let version = accepted_version(&file)?;
        Ok(Plugin { version, argument: file.display().to_string() })
    }

    /// Adds an option of the plugin.
    #[must_use]
    pub fn with(mut self, option: &str) -> Plugin {
        self.argument.push(',');
        self.argument.push_str(option);
        self
    }

    /// Adds the plugin to QEMU's command line and environment.
    pub(crate) fn load(&self, command: &mut Command) {
        command.args(["-plugin", &self.argument]).env(VARIABLE, self.version.to_string());
    }
}

/// Returns the compiled plugin in `directory`, and compiles it if it does not exist yet. A change
/// of the source changes its name.
fn compiled_plugin(directory: &Path) -> Result<PathBuf, VmError> {
    let mut hasher = DefaultHasher::new();
    (SOURCE, FLAGS).hash(&mut hasher);
    let file = directory.join(format!("count-{:016x}.so", hasher.finish()));
    if file.exists() {
        return Ok(file);
    }
    fs::create_dir_all(directory).map_err(|source| VmError::file(directory, source))?;
    // Under a temporary name first: another process may look for the file at the same time.
    let part = cache::unfinished(directory, "count.so");
    let text = part.to_string_lossy();
    let mut arguments = FLAGS.to_vec();
    arguments.extend(["-", "-o", &text]);
    tool::run("cc", &arguments, SOURCE.as_bytes(), "gcc")?;
    fs::rename(&part, &file).map_err(|source| VmError::file(&file, source))?;
    Ok(file)
}

/// Returns the version of the plugin API with which QEMU accepts the object at `file`.
fn accepted_version(file: &Path) -> Result<u32, VmError> {
    let mut refusals = Vec::new();
    for version in VERSIONS {
        let plugin = Plugin { version, argument: file.display().to_string() };
        let output = try_loading(&plugin)?;
        if output.lines().any(|line| line.starts_with(LOADED)) {
            return Ok(version);
        }
        let refusal = output.lines().find(|line| line.contains("plugin"));
        refusals.extend(refusal.map(|line| line.rsplit(": ").next().unwrap_or(line).to_owned()));
    }
    refusals.dedup();
    Err(VmError::Program {
        program: QEMU.into(),
        why: match refusals.is_empty() {
            true => "it loads no plugins (built with --disable-plugins, or without TCG)".into(),
            false => format!("it does not accept fwdlab's plugin: {}", refusals.join("; ")),
        },
        next: "install QEMU 7 to 11 as Debian builds it (qemu-system-x86)".into(),
    })
}

/// Loads the plugin into a QEMU without a machine, which ends by itself. Returns QEMU's output.
fn try_loading(plugin: &Plugin) -> Result<String, VmError> {
    let mut command = Command::new(QEMU);
    command.args(["-accel", "tcg", "-machine", "none", "-display", "none", "-monitor", "none"]);
    plugin.load(&mut command);
    let command = process::die_with_us(&mut command).stdin(Stdio::null());
    let output = command.output().map_err(|error| crate::qemu::missing(&error))?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugin_is_compiled_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = compiled_plugin(directory.path()).unwrap();
        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        assert_eq!(compiled_plugin(directory.path()).unwrap(), file);
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), modified);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    #[test]
    fn plugin_options_and_version_reach_qemu() {
        let plugin = Plugin { version: 7, argument: "p.so".into() }.with("counts=c");
        let mut command = Command::new(QEMU);
        plugin.load(&mut command);
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["-plugin", "p.so,counts=c"]);
        let variables: Vec<_> = command.get_envs().collect();
        assert_eq!(variables, [(VARIABLE.as_ref(), Some("7".as_ref()))]);
    }
}
