//! From an experiment file to its plan, with the overrides of the command line.

use crate::error::CliError;
use crate::value_enum;
use anyhow::Result;
use fwdlab_model::assign::assign;
use fwdlab_model::experiment::{Experiment, RUNS_MAX, profile_of};
use fwdlab_model::plan::Stop;
use fwdlab_model::profile::ProfilePlan;
use fwdlab_model::settings::TestbedKind;
use fwdlab_model::{Diagnostics, Plan, plan, spec};
use fwdlab_search::PRESETS;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Name of the store within an experiment's directory.
pub(crate) const STORE: &str = "run.sqlite";
/// Testbeds that need nothing but their names.
const TESTBEDS: [TestbedKind; 4] =
    [TestbedKind::Auto, TestbedKind::Netns, TestbedKind::Memory, TestbedKind::Sim];

/// Command-line values that replace values of the file. They are part of the plan and therefore of
/// its hash.
#[derive(Clone, Debug, Default, PartialEq, Eq, clap::Args)]
pub(crate) struct Overrides {
    /// Replace a value of the file: trial.duration=5s, dut.firewall=stateful,
    /// factor.firewall.levels='["none", "stateful"]'. May be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Testbed, instead of the file's
    #[arg(long, value_name = "KIND", value_parser = value_enum::some(&TESTBEDS))]
    pub(crate) testbed: Option<TestbedKind>,
    /// Lab file, instead of the experiment's testbed. Not part of the hash: the same plan runs in
    /// any laboratory
    #[arg(long, value_name = "FILE", conflicts_with = "testbed")]
    pub(crate) lab: Option<PathBuf>,
    /// Number of blocks, instead of the file's; the maximum (max_blocks) if the file has a stopping
    /// rule (stop)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) blocks: Option<u32>,
    /// Seed of the random order, instead of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: Option<u64>,
    /// Search for these rates in each run (RFC 9971), whatever the file's method: ndr, pdr,
    /// rfc2544, tst009
    #[arg(long, value_name = "GOAL", value_delimiter = ',', value_parser = PRESETS)]
    pub(crate) search: Vec<String>,
}

impl Overrides {
    /// The command line that passes the same experiment to `command`: everything that is part of
    /// the plan, and the directory.
    pub(crate) fn command_line(
        &self,
        command: &str,
        experiment: &Path,
        out: Option<&Path>,
    ) -> String {
        let mut line = format!("fwdlab {command} {}", quoted(&experiment.to_string_lossy()));
        let Overrides { set, testbed, lab, blocks, seed, search } = self;
        let options = [
            ("--out", out.map(|out| quoted(&out.to_string_lossy()))),
            ("--testbed", testbed.map(|testbed| testbed.name().to_owned())),
            ("--lab", lab.as_ref().map(|lab| quoted(&lab.to_string_lossy()))),
            ("--blocks", blocks.map(|blocks| blocks.to_string())),
            ("--seed", seed.map(|seed| seed.to_string())),
            ("--search", (!search.is_empty()).then(|| search.join(","))),
        ];
        for assignment in set {
            line += &format!(" --set {}", quoted(assignment));
        }
        for (option, value) in options {
            if let Some(value) = value {
                line += &format!(" {option} {value}");
            }
        }
        line
    }
}

/// The directory of an experiment's store and report: `out` if given, else `results/NAME`.
pub(crate) fn directory(plan: &Plan, out: Option<&Path>) -> PathBuf {
    out.map_or_else(|| Path::new("results").join(&plan.name), Path::to_path_buf)
}

/// The directory of the experiment file.
pub(crate) fn beside(experiment: &Path) -> PathBuf {
    experiment.parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

/// A plan and the text from which it was made.
pub(crate) struct Loaded {
    /// The plan.
    pub(crate) plan: Plan,
    /// The experiment file.
    pub(crate) text: String,
}

/// Reads an experiment file (`-` is standard input) and plans it.
///
/// # Errors
/// Fails if the file cannot be read; otherwise reports all of its faults together.
pub(crate) fn load(path: &Path, overrides: &Overrides) -> Result<Loaded> {
    load_changed(path, overrides, &|text| Ok(text))
}

/// As [`load`], of a text that is changed before it is validated.
///
/// # Errors
/// As [`load`], and the errors of the change.
pub(crate) fn load_changed(
    path: &Path,
    overrides: &Overrides,
    change: &dyn Fn(String) -> Result<String>,
) -> Result<Loaded> {
    let text = read(path)?;
    let assigned =
        overrides.set.iter().try_fold(text, |text, assignment| assign(&text, assignment));
    let text = change(assigned.map_err(|error| CliError::Mistake(format!("--set {error}")))?)?;
    let directory = beside(path);
    let loader = |name: &str| read_beside(&directory, name);
    let name = name_of(path);
    let plan = fwdlab_model::load(&name, &text, &loader)?;
    let plan = match overridden(&name, &text, &loader, overrides, None)? {
        Some(plan) => plan,
        None => plan,
    };
    Ok(Loaded { plan, text })
}

/// The plan of an experiment read as `text` from `path`, with only two levels of one factor: the
/// first one is the baseline.
///
/// # Errors
/// As [`load`].
pub(crate) fn of_pair(
    path: &Path,
    text: &str,
    overrides: &Overrides,
    factor: usize,
    pair: [usize; 2],
) -> Result<Plan> {
    let directory = beside(path);
    let loader = |name: &str| read_beside(&directory, name);
    let plan = overridden(&name_of(path), text, &loader, overrides, Some((factor, pair)))?;
    plan.ok_or_else(|| CliError::Mistake("the experiment can't be read any more".into()).into())
}

fn name_of(path: &Path) -> String {
    if path == Path::new("-") { "stdin".into() } else { path.to_string_lossy().into_owned() }
}

fn read(path: &Path) -> Result<String> {
    let text = match path == Path::new("-") {
        true => io::read_to_string(io::stdin()),
        false => fs::read_to_string(path),
    };
    Ok(text.map_err(|error| {
        CliError::Mistake(format!(
            "can't read the experiment {}: {error}\n  next step: name an experiment file, e.g. \
             `fwdlab plan experiments/demo.toml`",
            path.display()
        ))
    })?)
}

/// The profile plan if the command line decides whether variants are profiled. The file's other
/// profile keys still apply.
pub(crate) fn profile(path: &Path, text: &str, enabled: bool) -> Option<ProfilePlan> {
    let directory = path.parent().map_or_else(PathBuf::new, Path::to_path_buf);
    let loader = |name: &str| read_beside(&directory, name);
    let (spec, _) = spec::parse(text, &loader);
    profile_of(&spec.unwrap_or_default(), Some(enabled))
}

fn read_beside(directory: &Path, name: &str) -> std::result::Result<Vec<u8>, String> {
    let file = directory.join(name);
    let read = if name.ends_with('/') { files_below(&file) } else { fs::read(&file) };
    read.map_err(|error| format!("can't read {}: {error}", file.display()))
}

/// Maximum depth of an overlay: a link that points back up must end somewhere.
const DEPTH_MAX: usize = 16;

/// The files below a directory as [`spec::Loader`] expects them: each path relative to it,
/// terminated by a zero byte, sorted by name.
fn files_below(top: &Path) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    let mut open = vec![(top.to_path_buf(), 0)];
    while let Some((directory, depth)) = open.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            if !path.is_dir() {
                found.push(path.strip_prefix(top).unwrap_or(&path).to_path_buf());
            } else if depth < DEPTH_MAX {
                open.push((path, depth + 1));
            } else {
                return Err(io::Error::other("directories are too deep"));
            }
        }
    }
    found.sort();
    Ok(found.into_iter().flat_map(|path| [path.as_os_str().as_bytes(), b"\0"].concat()).collect())
}

/// The plan with overridden values of a valid file, or with only two levels of one factor. `None`
/// without any of these.
fn overridden(
    path: &str,
    text: &str,
    loader: &spec::Loader<'_>,
    overrides: &Overrides,
    pair: Option<(usize, [usize; 2])>,
) -> Result<Option<Plan>> {
    let of_text = Overrides { set: overrides.set.clone(), ..Overrides::default() };
    if *overrides == of_text && pair.is_none() {
        return Ok(None);
    }
    let (Some(mut spec), _) = spec::parse(text, loader) else { return Ok(None) };
    if let Some(testbed) = overrides.testbed {
        spec.set_testbed(testbed);
    }
    if let Some(lab) = &overrides.lab {
        // Files named by an experiment are relative to it, files named by the user to the working
        // directory.
        let lab = std::path::absolute(lab).unwrap_or_else(|_| lab.clone());
        spec.set_lab(&lab.to_string_lossy());
    }
    if !overrides.search.is_empty() {
        spec.set_search(&overrides.search);
    }
    let (mut experiment, faults) = Experiment::new(path, &spec);
    // The file has no faults, but another testbed may not support its settings.
    if !faults.is_empty() {
        return Err(Diagnostics::new(path, text, faults).into());
    }
    if let Some(blocks) = overrides.blocks {
        if experiment.design.stop.is_some() && blocks < Stop::BLOCKS_MIN {
            let why = format!(
                "an experiment with `stop` needs at least {} blocks, not {blocks}: raise --blocks",
                Stop::BLOCKS_MIN
            );
            return Err(CliError::Mistake(why).into());
        }
        experiment.design.blocks = blocks;
    }
    if let Some(seed) = overrides.seed {
        experiment.design.seed = seed;
    }
    if let Some((factor, pair)) = pair {
        experiment = experiment.of_pair(factor, pair);
    }
    let variants = experiment.combinations().len();
    let runs = variants.saturating_mul(experiment.design.blocks as usize);
    if runs > RUNS_MAX {
        let why = format!(
            "{variants} variants in {} blocks make {runs} runs; at most {RUNS_MAX} can be planned: \
             lower --blocks",
            experiment.design.blocks
        );
        return Err(CliError::Mistake(why).into());
    }
    Ok(Some(plan::plan(&experiment)))
}

/// A word, quoted as a shell reads it back.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_with(text: &str, overrides: &Overrides) -> Result<Plan> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("x.toml");
        fs::write(&path, text)?;
        Ok(load(&path, overrides)?.plan)
    }

    const TWO: &str = "version = 1\n[[factor]]\nname = \"queues\"\nlevels = [1, 2]\n";

    #[test]
    fn overrides_equal_values_in_the_file() {
        let set = ["trial.duration=700ms", "factor.queues.levels=[2, 4]"];
        let overrides = Overrides {
            set: set.map(str::to_owned).to_vec(),
            testbed: Some(TestbedKind::Sim),
            lab: None,
            blocks: Some(3),
            seed: Some(9),
            search: vec!["pdr".into()],
        };
        let got = plan_with(TWO, &overrides).unwrap();
        let four = TWO.replace("[1, 2]", "[2, 4]");
        let written = format!(
            "{four}[trial]\nduration = \"700ms\"\n[testbed]\nkind = \"sim\"\n[design]\nblocks = 3\nseed = 9\n\
             [method]\nkind = \"mlrsearch\"\ngoals = [\"pdr\"]\n"
        );
        assert_eq!(got, plan_with(&written, &Overrides::default()).unwrap());
        assert_ne!(got.hash, plan_with(TWO, &Overrides::default()).unwrap().hash);
        assert!(got.is_intact());
    }

    #[test]
    fn set_values_are_validated_like_file_values() {
        let set = |assignment: &str| {
            let overrides = Overrides { set: vec![assignment.to_owned()], ..Overrides::default() };
            plan_with(TWO, &overrides).unwrap_err().to_string()
        };
        let refused = set("trial.duratoin=5s");
        assert!(refused.contains("duratoin") && refused.contains("duration"), "{refused}");
        assert!(set("design.blocks=0").contains("blocks"), "{}", set("design.blocks=0"));
        let refused = set("factor.queus.levels=[1]");
        assert!(refused.starts_with("--set there is no `queus`"), "{refused}");
    }

    #[test]
    fn testbed_without_the_device_is_refused() {
        let overrides = Overrides { testbed: Some(TestbedKind::Memory), ..Overrides::default() };
        let refused = plan_with(TWO, &overrides).unwrap_err().to_string();
        assert!(refused.contains("no kernel forwards packets in memory"), "{refused}");
        let router = format!("{TWO}[dut]\nkind = \"router\"\n");
        let got = plan_with(&router, &overrides).unwrap();
        assert_eq!(got.base.testbed.kind, TestbedKind::Memory);
    }

    #[test]
    fn lab_override_sets_or_replaces_the_testbed() {
        let lab = Overrides { lab: Some("/racks/b.toml".into()), ..Overrides::default() };
        let ssh = format!("{TWO}[testbed]\nkind = \"ssh\"\nlab = \"a.toml\"\n");
        let (here, there) =
            (plan_with(&ssh, &Overrides::default()).unwrap(), plan_with(&ssh, &lab));
        let there = there.unwrap();
        assert_eq!(there.base.testbed.lab.as_deref(), Some("/racks/b.toml"));
        assert_eq!(here.hash, there.hash);
        assert_eq!(plan_with(TWO, &lab).unwrap().base.testbed.kind, TestbedKind::Ssh);
        let freebsd = format!("{ssh}[dut]\nkind = \"freebsd\"\n");
        let sim = Overrides { testbed: Some(TestbedKind::Sim), ..Overrides::default() };
        let rehearsed = plan_with(&freebsd, &sim).unwrap();
        assert_eq!(rehearsed.base.testbed.lab, None);
        let netns = Overrides { testbed: Some(TestbedKind::Netns), ..Overrides::default() };
        assert!(plan_with(&freebsd, &netns).unwrap_err().to_string().contains("FreeBSD"));
    }

    #[test]
    fn overlay_is_read_from_its_directory() {
        let directory = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("configs/a/etc/rc.conf", "one\n");
        write("configs/a/boot/loader.conf.local", "two\n");
        write(
            "x.toml",
            &format!(
                "{TWO}[testbed]\nkind = \"ssh\"\nlab = \"lab.toml\"\n[dut]\nkind = \"freebsd\"\n\
                 overlay = \"configs/a\"\n"
            ),
        );
        let loaded = load(&directory.path().join("x.toml"), &Overrides::default()).unwrap();
        let overlay = loaded.plan.base.dut.remote.overlay.unwrap();
        let files: Vec<(&str, &str)> =
            overlay.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        assert_eq!(files, [("boot/loader.conf.local", "two\n"), ("etc/rc.conf", "one\n")]);
    }

    #[test]
    fn blocks_override_sets_max_blocks_of_a_stopping_rule() {
        let blocks = |n| Overrides { blocks: Some(n), ..Overrides::default() };
        let text = format!("{TWO}[design]\nstop = \"open\"\n");
        let got = plan_with(&text, &blocks(12)).unwrap();
        let written = format!("{text}max_blocks = 12\n");
        assert_eq!(got, plan_with(&written, &Overrides::default()).unwrap());
        assert_eq!((got.design.blocks, got.design.stop), (12, Some(Stop::Open)));
        let refused = plan_with(&text, &blocks(3)).unwrap_err().to_string();
        assert!(refused.contains("at least 4 blocks") && refused.contains("--blocks"), "{refused}");
    }

    #[test]
    fn too_many_runs_are_refused_with_a_reason() {
        let levels: Vec<String> = (1..=101).map(|n| format!("\"rules:{n}\"")).collect();
        let text = format!(
            "version = 1\n[[factor]]\nname = \"firewall\"\nlevels = [{}]\n",
            levels.join(", ")
        );
        let overrides = Overrides { blocks: Some(10_000), ..Overrides::default() };
        assert!(plan_with(&text, &overrides).unwrap_err().to_string().contains("--blocks"));
    }

    #[test]
    fn words_are_quoted_if_a_shell_would_split_them() {
        assert_eq!(quoted("results/demo"), "results/demo");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$HOME"), "'$HOME'");
    }
}
