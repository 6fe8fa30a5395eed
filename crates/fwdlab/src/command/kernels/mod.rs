//! `fwdlab kernels`: lists kernels for guests, and fetches them with apt.

mod apt;
mod catalogue;
mod document;
mod fetch;
mod parse;

use crate::error::CliError;
use crate::exit::Exit;
use crate::output_format::FormArguments;
use crate::progress::Stage;
use crate::state_dir;
use anyhow::Result;
use apt::{Apt, Source};
use catalogue::{Offer, Selection};
use document::{Fetched, Findings};
use fwdlab_vm::kernel;
use std::path::{Path, PathBuf};

/// Name of the series of this machine's Debian release.
const HOST: &str = "host";
/// Flavour of Debian's kernels without `--flavour`: the smallest ones.
const FLAVOUR: &str = "cloud-amd64";

/// List kernels for guests (installed ones, fetched ones, and Debian's by suite), and fetch them.
///
/// apt-get fetches lists and packages into its own directory below fwdlab's cache: it does not
/// touch this machine's packages or configuration, and needs no privileges. apt checks signatures
/// with the keyring of debian-archive-keyring.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fwdlab kernels                                     what there is
  fwdlab kernels 6.12.43 '7.*'                       only these releases
  fwdlab kernels --fetch kernels                     the newest of every series
  fwdlab count kernels                               and what they cost, the oldest first
  fwdlab kernels --fetch kernels --series 6.1 --take all
  fwdlab kernels --fetch kernels --series host --take ends
  fwdlab kernels --fetch kernels --flavour amd64 6.12.117
  fwdlab kernels --fetched kernels --offline --json

Kernels of the flavour cloud-amd64 are the smallest ones, a third of the size of amd64; they
have the drivers of virtual machines, and the same network stack. Since 6.19 Debian divides a
kernel into several packages: all of them are fetched, and a kernel of which the mirror has
lost one is listed with what is missing.

Other distributions: `apt-get download linux-image-unsigned-VERSION linux-modules-VERSION`
(Ubuntu), `dnf download kernel-core kernel-modules-core` (Fedora), `zypper download
kernel-default` (openSUSE), or the file of the package `linux` (Arch Linux). `fwdlab count`
accepts their packages unchanged.")]
pub(crate) struct Arguments {
    /// Releases: complete, a prefix (6.12.43), or with `*` for any text
    #[arg(value_name = "RELEASE")]
    patterns: Vec<String>,
    /// Fetch kernels into this directory: the newest of each series, unless releases or --take
    /// select others
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "offline")]
    fetch: Option<PathBuf>,
    /// Also list the kernels in this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "fetch")]
    fetched: Option<PathBuf>,
    /// Kernels to take from each series [default: newest with --fetch, else all]
    #[arg(long, value_enum, value_name = "WHICH")]
    take: Option<Selection>,
    #[command(flatten)]
    source: SourceArguments,
    /// List only what is on this machine
    #[arg(long)]
    offline: bool,
    #[command(flatten)]
    form: FormArguments,
}

/// Source of Debian's kernels.
#[derive(Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct SourceArguments {
    /// Only these series, separated by commas; `host` is the series of this machine's Debian
    /// release
    #[arg(long, value_name = "SERIES", value_delimiter = ',')]
    series: Vec<String>,
    /// Debian's flavour of the kernel [default: cloud-amd64]
    #[arg(long, value_name = "NAME")]
    flavour: Option<String>,
    /// Only these suites, separated by commas [default: bullseye to sid, with security
    /// updates and backports]
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    suite: Vec<String>,
    /// Mirror of Debian [default: the mirror of this machine's apt]
    #[arg(long, value_name = "URL")]
    mirror: Option<String>,
    /// Keyring to check signatures with [default: the keyring of debian-archive-keyring]
    #[arg(long, value_name = "FILE")]
    keyring: Option<PathBuf>,
    /// Accept suites that their mirror has not renewed in time, such as those of a snapshot
    /// [default: as this machine's apt for its own mirror]
    #[arg(long)]
    allow_expired: bool,
}

/// Lists kernels, or fetches them.
///
/// # Errors
/// If nothing matches, apt is missing, or a package can't be fetched.
pub(crate) fn execute(arguments: &Arguments) -> Result<Exit> {
    let mut findings = Findings::new(arguments.source.flavour());
    if arguments.offline {
        findings.installed = kernel::installed(Path::new("/"));
        findings.fetched = fetched(arguments.fetched.as_deref())?;
        arguments.form.print(&findings.document())?;
        return Ok(Exit::Done);
    }
    let mut stage = Stage::new();
    let Available { apt, source, series, offers, troubles } =
        arguments.source.available(&mut stage)?;
    findings.troubles = troubles;
    findings.source = Some(source);
    let chosen = catalogue::choose(&offers, &series, &arguments.patterns, arguments.take());
    if chosen.is_empty() {
        return Err(nothing(&arguments.source, &offers, &findings.troubles).into());
    }
    let Some(directory) = &arguments.fetch else {
        findings.installed = kernel::installed(Path::new("/"));
        findings.fetched = fetched(arguments.fetched.as_deref())?;
        findings.offers = chosen.into_iter().cloned().collect();
        drop(stage);
        arguments.form.print(&findings.document())?;
        return Ok(Exit::Done);
    };
    let failures = fetch::fetch(&apt, &chosen, directory, &mut stage)?;
    drop(stage);
    findings.offers = chosen.into_iter().cloned().collect();
    findings.directory = Some(directory.clone());
    findings.failures = failures;
    arguments.form.print(&findings.document())?;
    match findings.failures.is_empty() {
        true => Ok(Exit::Done),
        false => Ok(Exit::Environment),
    }
}

/// Fetches Debian's kernels that are not in the directory yet. Returns a remark for each suite that
/// could not be read, and each kernel that could not be fetched.
///
/// # Errors
/// If nothing matches, apt is missing, or the directory can't be written.
pub(crate) fn fetch_new(arguments: &SourceArguments, directory: &Path) -> Result<Vec<String>> {
    let mut stage = Stage::new();
    let Available { apt, series, offers, troubles, .. } = arguments.available(&mut stage)?;
    let chosen = catalogue::choose(&offers, &series, &[], Selection::All);
    if chosen.is_empty() {
        return Err(nothing(arguments, &offers, &troubles).into());
    }
    let failures = fetch::fetch(&apt, &chosen, directory, &mut stage)?;
    let failures = failures.iter().map(|one| format!("{}: {}", one.release, one.why));
    Ok(troubles.into_iter().chain(failures).collect())
}

/// Kernels that suites of Debian have.
struct Available {
    apt: Apt,
    source: Source,
    /// Requested series; all if empty.
    series: Vec<String>,
    offers: Vec<Offer>,
    /// Suites that could not be read.
    troubles: Vec<String>,
}

impl SourceArguments {
    fn flavour(&self) -> &str {
        self.flavour.as_deref().unwrap_or(FLAVOUR)
    }

    /// Reads the suites.
    ///
    /// # Errors
    /// If apt is missing, or no suite names the series of this machine's release if it is requested.
    fn available(&self, stage: &mut Stage) -> Result<Available> {
        let flavour = self.flavour();
        let is_of_host = self.series.iter().any(|series| series == HOST);
        let suites = match self.suite.is_empty() && is_of_host {
            true => apt::suites_of_host()?,
            false => self.suite.clone(),
        };
        let (mirror, keyring) = (self.mirror.as_deref(), self.keyring.as_deref());
        let source = Source::find(suites, mirror, keyring, self.allow_expired)?;
        let apt = Apt::open(&state_dir::cache()?, source.clone())?;
        let troubles = apt.update(stage)?;
        let packages = apt.packages(flavour)?;
        let offers = catalogue::offers(&packages, flavour);
        let mut series: Vec<String> =
            self.series.iter().filter(|series| *series != HOST).cloned().collect();
        if is_of_host {
            series.push(catalogue::series_of_meta(&packages, flavour).ok_or_else(|| {
                CliError::Environment(format!(
                    "no suite has linux-image-{flavour}, so the series of this machine's release is \
                     unknown\n  next step: name a series, such as --series 6.12"
                ))
            })?);
        }
        Ok(Available { apt, source, series, offers, troubles })
    }
}

impl Arguments {
    /// Returns the kernels to take from each series.
    fn take(&self) -> Selection {
        let all = self.fetch.is_none() || !self.patterns.is_empty();
        self.take.unwrap_or(if all { Selection::All } else { Selection::Newest })
    }
}

/// Lists the kernels in a directory.
fn fetched(directory: Option<&Path>) -> Result<Vec<Fetched>> {
    let Some(directory) = directory else { return Ok(Vec::new()) };
    let files = kernel::packages(directory).into_iter();
    let fetched = files.map(|file| -> Result<Fetched> {
        let missing = kernel::missing(&file)?;
        Ok(Fetched { file, missing })
    });
    fetched.collect()
}

/// Returns the error for a selection that no kernel matches.
fn nothing(arguments: &SourceArguments, offers: &[Offer], troubles: &[String]) -> CliError {
    let mut series: Vec<&str> = offers.iter().map(|offer| offer.series.as_str()).collect();
    series.dedup();
    let has = match series.as_slice() {
        [] => format!("the suites have no kernel of the flavour {}", arguments.flavour()),
        series => format!("no kernel matches; the suites have {}", series.join(", ")),
    };
    let troubles: String = troubles.iter().map(|trouble| format!("\n{trouble}")).collect();
    CliError::Mistake(format!(
        "{has}\n  next step: see `fwdlab kernels` for the releases, and give one of \
         them{troubles}"
    ))
}
