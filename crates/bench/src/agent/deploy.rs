//! Deploys fwdlab to another host.

use crate::error::BenchError;
use crate::host::{Host, LocalHost};
use std::path::{Path, PathBuf};

/// The program to deploy: this one.
#[derive(Clone, Copy, Debug)]
pub struct ThisProgram<'a> {
    /// Its file on this machine.
    pub program: &'a Path,
    /// Version as printed by `--version`, without the name: `0.1.0 (73212c1)`.
    pub version: &'a str,
}

/// Makes this program available on `host` and returns its path there: the same path as on this
/// machine, one in `PATH`, or a copy in `folder` (default `~/.cache/fwdlab`), created if missing or
/// different. A copy keeps symbols, which profiles need, but no debugging information.
///
/// # Errors
/// Fails if the program cannot be copied or does not run there; the error names both systems.
pub fn program(
    host: &dyn Host,
    own: ThisProgram<'_>,
    folder: Option<&str>,
) -> Result<String, BenchError> {
    let here = own.program.to_string_lossy();
    let same = |ours: &Path, path: &str| -> Result<bool, BenchError> {
        let sum = LocalHost.run(&["cksum", &ours.to_string_lossy()], "")?;
        let remote = host.run(&["cksum", path], "");
        Ok(remote.is_ok_and(|remote| numbers(&remote) == numbers(&sum)))
    };
    if same(own.program, &here)? {
        return Ok(here.into_owned());
    }
    // A version with uncommitted changes does not identify a program.
    if !own.version.contains("dirty") && version(host, "fwdlab").as_deref() == Ok(own.version) {
        return Ok("fwdlab".into());
    }
    let folder = match folder {
        Some(folder) => folder.to_owned(),
        None => {
            let home = host.run(&["/bin/sh", "-c", r#"cd && pwd"#], "")?;
            format!("{}/.cache/fwdlab", home.trim().trim_end_matches('/'))
        }
    };
    let path = format!("{folder}/{}", file_name(own.version));
    let copy = Parcel::of(own.program);
    if !same(&copy.path, &path)? {
        let (remote_system, local_system) = (system(host)?, system(&LocalHost)?);
        if remote_system != local_system {
            return Err(wrong_system(
                host,
                &remote_system,
                &local_system,
                "it is not copied there",
            ));
        }
        host.run(&["mkdir", "-p", &folder], "")?;
        host.send_file(&copy.path, &path)?;
        host.run(&["chmod", "755", &path], "")?;
    }
    match version(host, &path) {
        Ok(installed) if installed == own.version => Ok(path),
        Ok(installed) => Err(BenchError::environment(
            format!("{path} on {} is fwdlab {installed}, not {}", host.name(), own.version),
            "remove it there",
        )),
        Err(why) => Err(wrong_system(host, &system(host)?, &system(&LocalHost)?, &why)),
    }
}

/// The file to copy.
struct Parcel {
    path: PathBuf,
    /// True for a temporary file that we remove.
    is_temporary: bool,
}

impl Parcel {
    /// A copy without debugging information; the program itself if binutils are missing or
    /// can't read it.
    fn of(program: &Path) -> Parcel {
        let stripped = LocalHost
            .run(&["mktemp"], "")
            .ok()
            .map(|name| Parcel { path: PathBuf::from(name.trim()), is_temporary: true });
        stripped
            .filter(|copy| {
                let (from, to) = (program.to_string_lossy(), copy.path.to_string_lossy());
                LocalHost.run(&["strip", "--strip-debug", "-o", &to, &from], "").is_ok()
            })
            .unwrap_or_else(|| Parcel { path: program.to_path_buf(), is_temporary: false })
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if self.is_temporary {
            // A leftover is harmless: it is in the directory for temporary files.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn wrong_system(host: &dyn Host, remote: &str, local: &str, why: &str) -> BenchError {
    BenchError::environment(
        format!(
            "this fwdlab does not run on {}: it was built on {local}, and that is {remote}: {why}",
            host.name()
        ),
        "build the same revision there (`cargo build --release`), or here without libraries for \
         its machine (a musl target: `--target x86_64-unknown-linux-musl`), and put it into a \
         folder of PATH there",
    )
}

/// System and machine, `Linux x86_64`.
fn system(host: &dyn Host) -> Result<String, BenchError> {
    host.run(&["uname", "-sm"], "").map(|text| text.trim().to_owned())
}

/// Output of `PROGRAM --version` without the name, or the reason for its failure.
fn version(host: &dyn Host, program: &str) -> Result<String, String> {
    let output = host.run(&[program, "--version"], "").map_err(|error| error.to_string())?;
    let output = output.trim();
    Ok(output.strip_prefix("fwdlab ").unwrap_or(output).to_owned())
}

/// Checksum and size that cksum(1) prints before the name.
fn numbers(text: &str) -> Option<(&str, &str)> {
    let mut words = text.split_whitespace();
    words.next().zip(words.next())
}

/// `fwdlab-0.1.0-73212c1` of `0.1.0 (73212c1)`.
fn file_name(version: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { ' ' };
    let words: String = version.chars().map(plain).collect();
    format!("fwdlab-{}", words.split_whitespace().collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::FakeHost;

    const VERSION: &str = "0.1.0 (73212c1)";

    /// Any existing file works; one that cannot be stripped is sent unchanged.
    const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");

    fn own() -> ThisProgram<'static> {
        ThisProgram { program: Path::new(PROGRAM), version: VERSION }
    }

    /// A machine of this kind without fwdlab.
    fn bare() -> FakeHost {
        let mut host = FakeHost::default();
        let ours = system(&LocalHost).expect("uname");
        host.outputs.insert("uname -sm".into(), ours);
        host.outputs.insert("/bin/sh -c".into(), "/h\n".into());
        host.failures.insert("fwdlab --version".into(), "fwdlab is not installed".into());
        host.outputs.insert(
            "/h/.cache/fwdlab/fwdlab-0.1.0-73212c1 --version".into(),
            format!("fwdlab {VERSION}\n"),
        );
        host
    }

    fn commands(host: &FakeHost) -> Vec<String> {
        let commands = host.commands.lock().expect("commands");
        commands.iter().map(|(words, _)| words.join(" ")).collect()
    }

    #[test]
    fn program_at_the_same_path_is_reused() {
        let here = std::env::current_exe().expect("this test");
        let own = ThisProgram { program: &here, version: "any" };
        assert_eq!(program(&LocalHost, own, None).expect("here"), here.to_string_lossy());
    }

    #[test]
    fn installed_version_is_used_unless_it_is_dirty() {
        let mut host = bare();
        host.failures.clear();
        host.outputs.insert("fwdlab --version".into(), format!("fwdlab {VERSION}\n"));
        assert_eq!(program(&host, own(), None).expect("installed"), "fwdlab");
        let dirty = ThisProgram { version: "0.1.0 (73212c1-dirty)", ..own() };
        let path = "/x/fwdlab-0.1.0-73212c1-dirty";
        let output = format!("fwdlab {}\n", dirty.version);
        host.outputs.insert(format!("{path} --version"), output);
        assert_eq!(program(&host, dirty, Some("/x")).expect("copied"), path);
    }

    #[test]
    fn program_is_copied_only_once() {
        let mut host = bare();
        let path = program(&host, own(), None).expect("copied");
        assert_eq!(path, "/h/.cache/fwdlab/fwdlab-0.1.0-73212c1");
        let executed = commands(&host);
        for command in [
            "mkdir -p /h/.cache/fwdlab".to_owned(),
            format!("send-file {path}"),
            format!("chmod 755 {path}"),
        ] {
            assert!(executed.contains(&command), "{command} in {executed:?}");
        }
        let sum = LocalHost.run(&["cksum", PROGRAM], "").expect("cksum");
        host.outputs.insert(format!("cksum {path}"), sum);
        host.commands.lock().expect("commands").clear();
        assert_eq!(program(&host, own(), None).expect("there"), path);
        assert!(!commands(&host).iter().any(|c| c.starts_with("send-file")));
    }

    #[test]
    fn a_copy_is_smaller_runs_and_does_not_stay() {
        if LocalHost.run(&["strip", "--version"], "").is_err() {
            return fwdlab_testdata::skip("there is no strip");
        }
        let here = std::env::current_exe().expect("this test");
        let copy = Parcel::of(&here);
        let path = copy.path.clone();
        let size = |path: &Path| std::fs::metadata(path).expect("a file").len();
        assert!(copy.is_temporary && size(&path) < size(&here), "{}", size(&path));
        LocalHost.run(&["chmod", "755", &path.to_string_lossy()], "").expect("chmod");
        let listed = LocalHost.run(&[&path.to_string_lossy(), "--list"], "").expect("it runs");
        assert!(listed.contains("a_copy_is_smaller_runs_and_does_not_stay"));
        drop(copy);
        assert!(!path.exists() && here.exists());
        drop(Parcel::of(Path::new(PROGRAM)));
        assert!(Path::new(PROGRAM).exists(), "what is sent as it is stays");
    }

    #[test]
    fn wrong_system_error_names_both_systems() {
        let mut host = bare();
        host.outputs.insert("uname -sm".into(), "FreeBSD amd64\n".into());
        let error = program(&host, own(), None).expect_err("another system").to_string();
        assert!(error.contains("FreeBSD amd64") && error.contains("Linux"), "{error}");
        assert!(error.contains("musl"), "{error}");
        assert!(!commands(&host).iter().any(|c| c.starts_with("send-file")));

        let mut host = bare();
        let path = "/h/.cache/fwdlab/fwdlab-0.1.0-73212c1";
        let why = "/lib/libc.so.6: version `GLIBC_2.39' not found";
        host.failures.insert(format!("{path} --version"), why.into());
        let error = program(&host, own(), None).expect_err("another library").to_string();
        assert!(error.contains("GLIBC_2.39") && error.contains("musl"), "{error}");
    }
}
