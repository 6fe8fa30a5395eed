//! apt with its own directory: it changes nothing of this machine's configuration and needs no
//! privileges.

use super::catalogue::IMAGE;
use super::parse::{self, Package, Reason, Trouble};
use crate::error::CliError;
use crate::progress::Stage;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

/// Suites whose kernels are listed: every Debian release whose kernels mirrors still provide.
const SUITES: [&str; 11] = [
    "bullseye",
    "bullseye-security",
    "bookworm",
    "bookworm-updates",
    "bookworm-security",
    "bookworm-backports",
    "trixie",
    "trixie-updates",
    "trixie-security",
    "trixie-backports",
    "sid",
];
/// Keyrings of Debian's archive, in order of preference.
const KEYRINGS: [&str; 2] = [
    "/usr/share/keyrings/debian-archive-keyring.pgp",
    "/usr/share/keyrings/debian-archive-keyring.gpg",
];
/// Prefixes of the names of the packages into which a kernel is divided.
const PARTS: [&str; 3] = [IMAGE, "linux-binary-", "linux-modules-"];
/// Time after which lists are fetched again.
const FRESH: Duration = Duration::from_secs(12 * 60 * 60);

/// Source of packages.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Source {
    /// Mirror of Debian.
    pub(super) mirror: String,
    /// Mirror of Debian's security updates.
    pub(super) security: String,
    pub(super) suites: Vec<String>,
    /// Keyring that checks the signatures of the suites.
    keyring: PathBuf,
    /// True if suites are accepted that their mirror has not renewed in time.
    allow_expired: bool,
}

/// apt with its own directory.
#[derive(Debug)]
pub(super) struct Apt {
    directory: PathBuf,
    source: Source,
}

/// Returns the suites of this machine's Debian release.
///
/// # Errors
/// If this machine runs another distribution.
pub(super) fn suites_of_host() -> Result<Vec<String>> {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    host_suites(&text).ok_or_else(|| {
        CliError::Mistake(
            "`--series host` needs a machine that runs Debian\n  next step: name a series, such \
             as --series 6.12"
                .into(),
        )
        .into()
    })
}

/// Returns the suites from the text of `/etc/os-release`; `None` for other distributions.
fn host_suites(text: &str) -> Option<Vec<String>> {
    let field = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once('='));
        lines.find(|(key, _)| *key == name).map(|(_, value)| value.trim_matches('"').to_owned())
    };
    if field("ID")? != "debian" {
        return None;
    }
    // Testing and unstable name the next release.
    if field("PRETTY_NAME").is_some_and(|name| name.ends_with("/sid")) {
        return Some(vec!["sid".to_owned()]);
    }
    let codename = field("VERSION_CODENAME")?;
    Some(["", "-updates", "-security"].map(|part| format!("{codename}{part}")).into())
}

/// True if this machine's apt accepts suites that their mirror has not renewed in time.
fn machine_accepts_expired() -> bool {
    let mut config = Command::new("apt-config");
    let output = run(config.args(["shell", "VALUE", "Acquire::Check-Valid-Until"]));
    let output = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    output.is_ok_and(|output| ["'false'", "'no'", "'0'"].iter().any(|no| output.contains(no)))
}

impl Source {
    /// Finds mirrors and keyring, unless they are given.
    ///
    /// # Errors
    /// If this machine has none for Debian.
    pub(super) fn find(
        suites: Vec<String>,
        mirror: Option<&str>,
        keyring: Option<&Path>,
        allow_expired: bool,
    ) -> Result<Source> {
        let suites = match suites.is_empty() {
            true => SUITES.map(str::to_owned).into(),
            false => suites,
        };
        let allow_expired = allow_expired || (mirror.is_none() && machine_accepts_expired());
        let (mirror, security) = match mirror {
            Some(mirror) => (mirror.trim_end_matches('/').to_owned(), parse::security_of(mirror)),
            None => mirrors()?,
        };
        let keyring = match keyring {
            Some(path) => path.canonicalize().with_context(|| path.display().to_string())?,
            None => default_keyring()?,
        };
        Ok(Source { mirror, security, suites, keyring, allow_expired })
    }

    /// Returns the list of sources (sources.list(5)).
    fn list(&self) -> String {
        let lines = self.suites.iter().map(|suite| {
            let mirror = if suite.ends_with("-security") { &self.security } else { &self.mirror };
            format!("deb [arch=amd64 signed-by={}] {mirror} {suite} main\n", self.keyring.display())
        });
        lines.collect()
    }

    /// Explains why the lists of a suite are unavailable.
    fn explain(&self, trouble: &Trouble) -> String {
        let suite = &trouble.suite;
        match trouble.reason {
            Reason::Absent => format!("{suite}: {} does not have it", self.mirror),
            Reason::Expired => format!(
                "{suite}: its mirror has not renewed it in time, so that it may be out of date\n  \
                 next step: name another --mirror, or give --allow-expired, as for a snapshot"
            ),
            Reason::UnknownKey => format!(
                "{suite}: {} lacks the keys that it is signed with\n  next step: install the \
                 newest debian-archive-keyring, or name a file with --keyring",
                self.keyring.display()
            ),
            Reason::Other if suite.is_empty() => trouble.text.clone(),
            Reason::Other => format!("{suite}: {}", trouble.text),
        }
    }
}

fn default_keyring() -> Result<PathBuf> {
    let found = KEYRINGS.map(PathBuf::from).into_iter().find(|path| path.is_file());
    found.ok_or_else(|| {
        CliError::Environment(
            "this machine has no keyring of Debian's archive\n  next step: install \
             debian-archive-keyring, or name a file with --keyring"
                .into(),
        )
        .into()
    })
}

/// Finds the mirrors that this machine's apt uses.
fn mirrors() -> Result<(String, String)> {
    let format = ["indextargets", "--format", "$(REPO_URI) $(RELEASE)"];
    let output = run(Command::new("apt-get").args(format))?;
    let text = String::from_utf8_lossy(&output.stdout);
    parse::mirrors(&text, &SUITES).ok_or_else(|| {
        CliError::Environment(
            "this machine's apt has no source of Debian\n  next step: name a mirror, as in \
             --mirror http://MIRROR/debian"
                .into(),
        )
        .into()
    })
}

impl Apt {
    /// Prepares apt's directory below `cache`.
    ///
    /// # Errors
    /// If apt is missing, or the directory can't be written.
    pub(super) fn open(cache: &Path, source: Source) -> Result<Apt> {
        let directory = cache.join("apt");
        let apt = Apt { directory, source };
        for name in ["state/lists/partial", "cache/archives/partial"] {
            let path = apt.directory.join(name);
            fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
        }
        let dumped = run(Command::new("apt-config").arg("dump"))?;
        let connection = parse::connection(&String::from_utf8_lossy(&dumped.stdout));
        apt.write("state/status", "")?;
        apt.write("sources.list", &apt.source.list())?;
        apt.write("apt.conf", &apt.configuration(&connection))?;
        Ok(apt)
    }

    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.directory.join(name);
        fs::write(&path, text).with_context(|| path.display().to_string())
    }

    /// Returns the configuration (apt.conf(5)): everything that apt reads and writes is below the
    /// directory; `connection` contains the settings for reaching mirrors.
    fn configuration(&self, connection: &str) -> String {
        let directory = self.directory.display();
        let expired = if self.source.allow_expired { "false" } else { "true" };
        format!(
            "Dir::State \"{directory}/state\";\n\
             Dir::State::lists \"{directory}/state/lists\";\n\
             Dir::State::status \"{directory}/state/status\";\n\
             Dir::Cache \"{directory}/cache\";\n\
             Dir::Etc::sourcelist \"{directory}/sources.list\";\n\
             Dir::Etc::sourceparts \"/dev/null\";\n\
             Dir::Etc::main \"/dev/null\";\n\
             Dir::Etc::parts \"/dev/null\";\n\
             Dir::Etc::preferences \"/dev/null\";\n\
             Dir::Etc::preferencesparts \"/dev/null\";\n\
             Dir::Etc::trusted \"/dev/null\";\n\
             Dir::Etc::trustedparts \"/dev/null\";\n\
             APT::Architecture \"amd64\";\n\
             APT::Architectures {{ \"amd64\"; }};\n\
             APT::Sandbox::User \"root\";\n\
             Acquire::Languages \"none\";\n\
             Acquire::PDiffs \"false\";\n\
             Acquire::GzipIndexes \"true\";\n\
             Acquire::Check-Valid-Until \"{expired}\";\n\
             {connection}"
        )
    }

    /// Returns a command of apt that uses only this directory.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("APT_CONFIG", self.directory.join("apt.conf")).env("LC_ALL", "C");
        command
    }

    /// Fetches the lists of the suites, unless they are fresh. Returns the unavailable ones with
    /// the reason.
    ///
    /// # Errors
    /// If apt is missing, or no suite is available.
    pub(super) fn update(&self, stage: &mut Stage) -> Result<Vec<String>> {
        let stamp = self.directory.join("updated");
        let key = format!("{}{}", self.source.list(), self.source.allow_expired);
        let age = fs::metadata(&stamp).and_then(|meta| meta.modified());
        let age = age.map(|at| SystemTime::now().duration_since(at).unwrap_or_default());
        let known = fs::read_to_string(&stamp).unwrap_or_default();
        if let (Some(troubles), true) = (known.strip_prefix(&key), age.is_ok_and(|age| age < FRESH))
        {
            return Ok(troubles
                .split('\0')
                .filter(|text| !text.is_empty())
                .map(Into::into)
                .collect());
        }
        stage.begin("fetching lists of packages");
        let messages = self.run_update(stage)?;
        let troubles = parse::troubles(&messages, &self.source.suites);
        let explained: Vec<String> =
            troubles.iter().map(|trouble| self.source.explain(trouble)).collect();
        let lost = self.source.suites.iter();
        let lost = lost.filter(|suite| troubles.iter().any(|trouble| trouble.suite == **suite));
        if lost.count() == self.source.suites.len() {
            return Err(CliError::Environment(format!(
                "no suite of {} can be had:\n{}",
                self.source.mirror,
                explained.join("\n")
            ))
            .into());
        }
        // After a network failure the next attempt may succeed.
        if !troubles.iter().any(|trouble| trouble.reason == Reason::Other) {
            self.write("updated", &format!("{key}{}", explained.join("\0")))?;
        }
        Ok(explained)
    }

    /// Runs `apt-get update`, and returns its errors and warnings.
    fn run_update(&self, stage: &Stage) -> Result<String> {
        let mut command = self.command("apt-get");
        command.arg("update").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| missing("apt-get", &error))?;
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let messages = std::thread::scope(|scope| {
            let messages = scope.spawn(move || {
                let mut text = String::new();
                // Unreadable output contains no messages.
                let _ = stderr.map(|mut pipe| pipe.read_to_string(&mut text));
                text
            });
            for line in stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()) {
                stage.detail(line.unwrap_or_default().trim());
            }
            messages.join().unwrap_or_default()
        });
        // Its status is 100 as soon as one suite fails; its messages name the suite.
        child.wait().map_err(|error| missing("apt-get", &error))?;
        Ok(messages)
    }

    /// Lists the packages into which kernels of a flavour are divided.
    ///
    /// # Errors
    /// If apt fails.
    pub(super) fn packages(&self, flavour: &str) -> Result<Vec<Package>> {
        let mut names = Vec::new();
        for part in PARTS {
            let output = run(self.command("apt-cache").args(["pkgnames", part]))?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let of_flavour = text.lines().filter(|name| name.ends_with(flavour));
            names.extend(of_flavour.map(str::to_owned));
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        // Debian has a few hundred, and a command line accepts some thousands.
        let read = |what: &str| -> Result<String> {
            let output = run(self.command("apt-cache").arg(what).args(&names))?;
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        Ok(parse::packages(&read("show")?, &read("madison")?))
    }

    /// Downloads packages into a directory. apt checks them against its signed lists.
    ///
    /// # Errors
    /// If one of them is unavailable.
    pub(super) fn download(&self, packages: &[String], directory: &Path) -> Result<()> {
        let mut command = self.command("apt-get");
        run(command.arg("download").args(packages).current_dir(directory)).map(drop)
    }
}

/// Runs a program of apt to completion.
fn run(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| missing(&program, &error))?;
    if output.status.success() {
        return Ok(output);
    }
    let messages = String::from_utf8_lossy(&output.stderr);
    let errors: Vec<&str> = messages.lines().filter(|line| line.starts_with('E')).collect();
    let why = if errors.is_empty() { messages.trim().to_owned() } else { errors.join("; ") };
    let next = match why.contains("404  Not Found") {
        true => "take another kernel: the mirror lists this one, but has lost its file",
        false => "see whether the mirror can be reached",
    };
    Err(CliError::Environment(format!("{program} failed: {why}\n  next step: {next}")).into())
}

fn missing(program: &str, error: &std::io::Error) -> CliError {
    CliError::Environment(format!(
        "{program}: {error}\n  next step: install apt and debian-archive-keyring; elsewhere fetch a \
         kernel by the distribution's own program, such as `dnf download kernel-core \
         kernel-modules-core`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_suites_match_the_debian_release() {
        let trixie = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n\
                      VERSION_CODENAME=trixie\n";
        let expected = ["trixie", "trixie-updates", "trixie-security"].map(str::to_owned);
        assert_eq!(host_suites(trixie).unwrap(), expected);
        let sid = "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux forky/sid\"\nVERSION_CODENAME=forky\n";
        assert_eq!(host_suites(sid).unwrap(), ["sid"]);
        assert_eq!(host_suites("ID=fedora\nVERSION_CODENAME=x\n"), None);
    }

    #[test]
    fn list_uses_the_security_mirror_for_security_suites() {
        let source = Source {
            mirror: "http://deb.example.org/debian".into(),
            security: "http://deb.example.org/debian-security".into(),
            suites: vec!["trixie".into(), "trixie-security".into()],
            keyring: "/k.pgp".into(),
            allow_expired: false,
        };
        let expected = "deb [arch=amd64 signed-by=/k.pgp] http://deb.example.org/debian trixie main\n\
                        deb [arch=amd64 signed-by=/k.pgp] http://deb.example.org/debian-security \
                        trixie-security main\n";
        assert_eq!(source.list(), expected);
        let trouble =
            Trouble { suite: "trixie".into(), reason: Reason::UnknownKey, text: String::new() };
        assert!(source.explain(&trouble).contains("debian-archive-keyring"));
    }
}
