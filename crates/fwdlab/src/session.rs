//! Executes the missing runs of a store and commits each one immediately.
//!
//! The commands choose the runs and use the results.

mod keeping;

use crate::VERSION;
use crate::error::CliError;
use crate::events::Events;
use crate::experiment::STORE;
use crate::lease_wait::once_free;
use crate::profiling::{self, PendingProfile};
use crate::progress::Progress;
use crate::signal::Stop;
use crate::state_dir;
use crate::stores::now;
use crate::terminal::{self, wrap};
use anyhow::{Context, Result};
use fwdlab_bench::probe::Privilege;
use fwdlab_bench::testbed::{Choice, Paths};
use fwdlab_bench::{BenchError, Runner, Task};
use fwdlab_model::record::ProfileRecord;
use fwdlab_model::settings::{Settings, TestbedKind};
use fwdlab_model::{Calibration, Plan, PlannedRun, RunRecord};
use fwdlab_results::facts;
use fwdlab_results::report::analysis::StoppingWatch;
use fwdlab_results::store::{self, Invocation, Store};
use keeping::Keeping;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Parameters of a session.
pub(crate) struct Session<'a> {
    /// The plan.
    pub(crate) plan: &'a Plan,
    /// The experiment file's directory, to which the files that it names are relative.
    pub(crate) directory: PathBuf,
    /// Measure unknown ceilings.
    pub(crate) calibrates: bool,
    /// Print errors only.
    pub(crate) quiet: bool,
    /// The command that resumes the experiment after an interruption.
    pub(crate) resume: String,
    /// Total number of runs as text: a number, or a maximum.
    pub(crate) runs: String,
    /// Name of the bed, instead of the plan's.
    pub(crate) bed: Option<String>,
    /// Revision of the software under test, if the user gave one.
    pub(crate) revision: Option<String>,
    /// Take the plan's profile runs that the store does not contain.
    pub(crate) takes_profiles: bool,
    /// Time to wait for hosts that another controller holds.
    pub(crate) wait: Duration,
}

/// Chooses the next run; notified of each result.
pub(crate) trait RunSource {
    /// The ceilings are measured and stored.
    fn calibrated(&mut self, _calibrations: &[Calibration]) {}
    /// The index of the next run in the plan; `None` if there is nothing more to measure.
    fn next(&mut self) -> Option<u32>;
    /// A run was measured and is stored.
    fn took(&mut self, run: &RunRecord);
    /// A variant cannot be measured.
    fn gave_up(&mut self, given_up: &GivenUp);
}

/// The requested runs in the order of the plan, until a rule needs no further block.
struct PlannedRuns<'a> {
    plan: &'a Plan,
    runs: std::slice::Iter<'a, PlannedRun>,
    requested: HashSet<u32>,
    watch: Option<StoppingWatch>,
    block: Option<u32>,
    given_up: HashSet<usize>,
}

impl<'a> PlannedRuns<'a> {
    fn new(plan: &'a Plan, runs: &[u32], watch: Option<StoppingWatch>) -> PlannedRuns<'a> {
        let requested = runs.iter().copied().collect();
        let (block, given_up) = (None, HashSet::new());
        PlannedRuns { plan, runs: plan.runs.iter(), requested, watch, block, given_up }
    }
}

impl RunSource for PlannedRuns<'_> {
    fn next(&mut self) -> Option<u32> {
        loop {
            let run = self.runs.find(|run| self.requested.contains(&run.index))?;
            if self.block != Some(run.block)
                && self.watch.as_ref().is_some_and(StoppingWatch::is_done)
            {
                self.runs = self.plan.runs[self.plan.runs.len()..].iter();
                return None;
            }
            self.block = Some(run.block);
            if !self.given_up.contains(&run.variants[0]) {
                return Some(run.index);
            }
        }
    }

    fn calibrated(&mut self, calibrations: &[Calibration]) {
        if let Some(watch) = &mut self.watch {
            watch.set_calibrations(calibrations.to_vec());
        }
    }

    fn took(&mut self, run: &RunRecord) {
        if let Some(watch) = &mut self.watch {
            watch.add(run);
        }
    }

    fn gave_up(&mut self, given_up: &GivenUp) {
        self.given_up.insert(given_up.variant);
    }
}

/// A variant that could not be measured in this invocation; the next one tries it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenUp {
    /// Its index in the plan.
    pub(crate) variant: usize,
    /// The reason.
    pub(crate) why: String,
}

/// Opens the store in the directory `out`, creating it if needed. With `fresh`, sets an old store
/// aside and returns a message about it.
///
/// # Errors
/// Fails if `out` is not a directory, or if the store cannot be opened.
pub(crate) fn open_store(out: &Path, fresh: bool) -> Result<(Store, Option<String>)> {
    if out.exists() && !out.is_dir() {
        let why = format!("{} is not a directory; give another one with --out", out.display());
        return Err(CliError::Environment(why).into());
    }
    let path = out.join(STORE);
    let aside = if fresh && path.exists() { Some(store::set_aside(&path)?) } else { None };
    let message = aside.map(|aside| format!("the old store is kept as {}", aside.display()));
    Ok((Store::open(&path)?, message))
}

impl Session<'_> {
    /// Opens the testbed and executes `runs` (indices into the plan, in its order), then the
    /// profiles. `watch` receives every run and decides before each block whether it is needed.
    /// Returns the variants that were given up: their runs are still missing, the others' are
    /// stored.
    ///
    /// # Errors
    /// Errors of the testbed, a store that cannot be written, an interruption.
    pub(crate) fn measure(
        &self,
        store: &mut Store,
        runs: &[u32],
        watch: Option<StoppingWatch>,
    ) -> Result<Vec<GivenUp>> {
        self.follow(store, &mut PlannedRuns::new(self.plan, runs, watch))
    }

    /// As [`Session::measure`], for the runs that `course` selects, one after the other.
    ///
    /// # Errors
    /// As [`Session::measure`].
    pub(crate) fn follow(
        &self,
        store: &mut Store,
        course: &mut dyn RunSource,
    ) -> Result<Vec<GivenUp>> {
        let plan = self.plan;
        let stop = Stop::on_signals().context("listening to signals")?;
        let mut testbed = self.open_testbed(&stop)?;
        self.say(&description(testbed.choice(), terminal::width_of_stderr()));
        store.begin_invocation(&self.invocation(&testbed))?;
        let done = store.recorded_runs()?.len();
        let guess_ns = plan.estimate().run_ns;
        // A store in memory has no directory.
        let directory = store.path().parent().filter(|_| store.path().is_file());
        let events = directory.map_or_else(Events::none, Events::create);
        // A share has a part of the plan's runs.
        let total = self.runs.parse().unwrap_or(plan.runs.len());
        let mut progress = Progress::new(plan, &stop, (done, total), guess_ns, self.quiet, events);
        let mut given_up = Vec::new();
        let result = self.calibrate(store, &mut testbed, &mut progress).and_then(|()| {
            let testbed = &mut testbed;
            self.execute_runs(store, course, testbed, &mut progress, &mut given_up)
        });
        progress.end();
        if let Err(error) = testbed.close() {
            terminal::warn(&error.to_string());
        }
        match result {
            // Ctrl-C also reaches the programs of the testbed, so that their failure may be noticed
            // before our own flag.
            Err(_) if stop.requested() => {
                Err(CliError::Interrupted(self.interruption(store)?).into())
            }
            other => other.map(|()| given_up),
        }
    }

    fn invocation(&self, testbed: &Runner) -> Invocation {
        let choice = testbed.choice();
        let mut environment = testbed.environment(VERSION);
        if let Some(revision) = &self.revision {
            facts::set_revision(&mut environment, revision);
        }
        Invocation {
            started_at: now(),
            bed: self.bed(),
            environment,
            fwdlab_version: VERSION.to_owned(),
            testbed: choice.kind,
            testbed_reason: choice.reasons.join("; "),
            simulated: choice.simulated,
        }
    }

    /// Contents of the store after an interruption, and the command that continues.
    fn interruption(&self, store: &Store) -> Result<String> {
        let (stored, runs) = (store.recorded_runs()?.len(), &self.runs);
        let finished = match store.unfinished_trials()? {
            0 => String::new(),
            1 => " and 1 trial of another run".to_owned(),
            trials => format!(" and {trials} trials of another run"),
        };
        let continued = &self.resume;
        Ok(format!(
            "interrupted: {stored} of {runs} runs are stored{finished}; continue with\n  {continued}"
        ))
    }

    /// The bed of the measurement: the given name, or else the name of the lab file; `None` without
    /// a laboratory.
    fn bed(&self) -> Option<String> {
        let laboratory = || Path::new(self.plan.base.testbed.lab.as_deref()?).file_stem();
        let of_plan = || Some(laboratory()?.to_string_lossy().into_owned());
        self.bed.clone().or_else(of_plan)
    }

    /// Opens the testbed; waits for hosts that another controller holds.
    fn open_testbed(&self, stop: &Stop) -> Result<Runner> {
        let (privilege, paths) = ground(self.plan, &self.directory)?;
        let paths = Paths { stop: stop.shared(), ..paths };
        let opened = once_free(
            self.wait,
            stop,
            |what| self.say(what),
            || Runner::open(self.plan, &privilege, &paths),
        );
        match opened {
            // Ctrl-C also reaches the programs that query the hosts.
            Err(_) if stop.requested() => {
                let what = format!("interrupted; begin again with\n  {}", self.resume);
                Err(CliError::Interrupted(what).into())
            }
            opened => Ok(opened?),
        }
    }

    /// Measures every ceiling that the plan needs and the store does not contain.
    fn calibrate(
        &self,
        store: &mut Store,
        testbed: &mut Runner,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        if !self.calibrates || !testbed.has_ceiling() {
            return Ok(());
        }
        for variant in &self.plan.variants {
            let settings = &variant.settings;
            if ceiling(&store.calibrations()?, testbed, settings).is_some() {
                continue;
            }
            let traffic = &settings.traffic;
            progress.begin_calibration(&format!(
                "{}, {}",
                traffic.family.name(),
                traffic.frame_size
            ));
            let calibration = testbed.calibrate(self.plan, settings, progress)?;
            progress.finish_calibration(calibration.median_pps());
            store.insert_calibration(&calibration)?;
        }
        Ok(())
    }

    fn execute_runs(
        &self,
        store: &mut Store,
        course: &mut dyn RunSource,
        testbed: &mut Runner,
        progress: &mut Progress<'_>,
        given_up: &mut Vec<GivenUp>,
    ) -> Result<()> {
        let plan = self.plan;
        let calibrations = store.calibrations()?;
        course.calibrated(&calibrations);
        let mut profiles = self.missing_profiles(store)?;
        loop {
            if fwdlab_bench::Observer::cancelled(progress) {
                return Err(BenchError::Interrupted.into());
            }
            let Some(index) = course.next() else { break };
            let run = &plan.runs[index as usize];
            let is_due = |pending: &mut PendingProfile| pending.after_block < run.block;
            for pending in profiles.extract_if(.., is_due).collect::<Vec<_>>() {
                self.profile(store, testbed, progress, pending)?;
            }
            let ceiling_pps = ceiling(&calibrations, testbed, self.settings_of(run));
            progress.begin_run(run);
            let task = Task { plan, run, ceiling_pps };
            let mut checkpoints = store.checkpoints(index)?;
            progress.show_checkpoints(&checkpoints);
            let mut keeping = Keeping::new(progress, store, index);
            let ran = testbed.run_sampled(task, &mut checkpoints, &mut keeping);
            keeping.end()?;
            let (record, sampled) = match ran {
                Err(BenchError::GivenUp { variant, why }) => {
                    progress.gave_up(&why);
                    let refused = GivenUp { variant, why };
                    course.gave_up(&refused);
                    given_up.push(refused);
                    continue;
                }
                other => other
                    .with_context(|| format!("run {} of {}", run.index + 1, plan.runs.len()))?,
            };
            store.insert_run(&record)?;
            if let Some(sampled) = &sampled {
                profiling::store_samples(store, plan, sampled)?;
            }
            progress.finish_run(&record);
            progress.show_remarks(sampled.iter().flat_map(|sampled| &sampled.raw.remarks));
            course.took(&record);
        }
        // From here on it is known which measured runs have no samples.
        for pending in self.missing_profiles(store)? {
            self.profile(store, testbed, progress, pending)?;
        }
        Ok(())
    }

    fn missing_profiles(&self, store: &Store) -> Result<Vec<PendingProfile>> {
        match self.takes_profiles {
            true => profiling::missing(self.plan, store),
            false => Ok(Vec::new()),
        }
    }

    /// Takes a profile run. A failure is reported and does not affect the measured runs.
    fn profile(
        &self,
        store: &mut Store,
        testbed: &mut Runner,
        progress: &mut Progress<'_>,
        pending: PendingProfile,
    ) -> Result<()> {
        let plan = self.plan;
        let Some(profile_plan) = &plan.profile else { return Ok(()) };
        let run = profiling::run_of(plan, pending);
        let ceiling_pps = ceiling(&store.calibrations()?, testbed, self.settings_of(&run));
        progress.begin_profile(pending.variant);
        match testbed.profile(Task { plan, run: &run, ceiling_pps }, profile_plan, progress) {
            Ok((record, raw)) => {
                let record = ProfileRecord { start: pending.start, ..record };
                profiling::store_profile(store, plan, &record, &raw)?;
                progress.finish_profile(&record);
            }
            Err(BenchError::Interrupted) => return Err(BenchError::Interrupted.into()),
            Err(error) => progress.failed_profile(&error.to_string()),
        }
        Ok(())
    }

    fn settings_of(&self, run: &PlannedRun) -> &Settings {
        &self.plan.variants[run.variants[0]].settings
    }

    /// Prints a note unless quiet.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            terminal::note(text);
        }
    }
}

/// The privileges and directories with which the plan's testbed is opened.
fn ground(plan: &Plan, directory: &Path) -> Result<(Privilege, Paths)> {
    // A simulation needs no privileges, lock or journal; neither do packets that stay in memory.
    let (paths, privilege) = match plan.base.testbed.kind {
        TestbedKind::Sim | TestbedKind::Archive => (
            state_dir::nowhere()?,
            Privilege::None { why: "not asked for, since the device is simulated".into() },
        ),
        TestbedKind::Memory => (
            state_dir::nowhere()?,
            Privilege::None { why: "not asked for, since the packets stay in memory".into() },
        ),
        TestbedKind::Vm if plan.base.testbed.vm.is_timed => {
            (Paths { cache: state_dir::cache()?, ..state_dir::paths()? }, Privilege::of_root())
        }
        TestbedKind::Vm => (
            Paths { cache: state_dir::cache()?, ..state_dir::nowhere()? },
            Privilege::None { why: "not asked for, since a machine of QEMU needs none".into() },
        ),
        // The paths first: in a user namespace they can no longer be determined.
        TestbedKind::Auto | TestbedKind::Netns | TestbedKind::Ssh => {
            (state_dir::paths()?, Privilege::obtain())
        }
    };
    Ok((privilege, Paths { experiment: directory.to_owned(), ..paths }))
}

/// Rate that sender and receiver reach without a DUT under these settings, in packets per second;
/// `None` if it was not measured.
fn ceiling(stored: &[Calibration], testbed: &Runner, settings: &Settings) -> Option<f64> {
    let key = testbed.calibration_key(settings);
    let traffic = &settings.traffic;
    let holds = |calibration: &&Calibration| {
        calibration.testbed == key
            && calibration.family == traffic.family.name()
            && calibration.frame_size == traffic.frame_size
    };
    stored.iter().rfind(holds).map(Calibration::median_pps)
}

fn description(choice: &Choice, width: usize) -> String {
    let mut text = format!("testbed: {}\n", choice.kind);
    for line in choice.reasons.iter().flat_map(|reason| reason.lines()) {
        text += &wrap(&format!("  {}", line.trim_start()), width, "    ");
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pilots and complete experiments in a laboratory run on one bed: its own.
    #[test]
    fn bed_is_the_lab_file_name_unless_given() {
        let (mut plan, text) = crate::selftest::live::plan(TestbedKind::Sim).unwrap();
        plan.base.testbed.lab = Some("racks/rack7.toml".into());
        let mut store = Store::memory().unwrap();
        store.adopt_plan(&plan, &text).unwrap();
        for (run, bed) in [None, Some("other".to_owned())].into_iter().enumerate() {
            let session = Session {
                bed,
                revision: None,
                plan: &plan,
                directory: PathBuf::new(),
                calibrates: false,
                quiet: true,
                resume: String::new(),
                runs: "2".into(),
                takes_profiles: false,
                wait: Duration::ZERO,
            };
            session.measure(&mut store, &[run as u32], None).unwrap();
        }
        assert_eq!(store.contents().unwrap().run_beds(), [Some("rack7"), Some("other")]);
    }
}
