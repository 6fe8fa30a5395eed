//! Progress of an experiment on standard error: a few lines that are rewritten on a terminal,
//! otherwise one line per finished run.

mod figure;
mod remaining;
mod stage;
mod trials;

use crate::events::Events;
use crate::signal::Stop;
use crate::terminal::{self, cut, duration};
pub(crate) use figure::{figure, value};
use fwdlab_bench::{Live, Observer, TrialReport};
use fwdlab_model::design::Method;
use fwdlab_model::record::Checkpoint;
use fwdlab_model::units::format_pps;
use fwdlab_model::{Plan, PlannedRun, ProfileRecord, RunRecord};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use remaining::Remaining;
pub(crate) use stage::Stage;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use trials::Pace;
pub(crate) use trials::Trials;

/// Below this width the rates get their own line.
const WIDE: usize = 70;

/// Redraw interval of the elapsed time, while nothing is timed.
const TICK: Duration = Duration::from_millis(500);
/// Columns of the elapsed time, with the space before it.
const TIME: usize = 10;

/// True for a terminal that cannot rewrite lines.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

/// Shows the elapsed time next to the message and redraws it from a thread, or stops doing so.
fn passing(bar: &ProgressBar, passes: bool) {
    let template = if passes { "{msg}  {elapsed}" } else { "{msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    match passes {
        true => bar.enable_steady_tick(TICK),
        false => bar.disable_steady_tick(),
    }
}

/// Observes runs and shows their progress.
pub(crate) struct Progress<'a> {
    plan: &'a Plan,
    stop: &'a Stop,
    shown: Shown,
    /// Writes the same to viewers elsewhere.
    events: Events,
    state: State,
    /// Start of the current run.
    began: Instant,
    remaining: Remaining,
    /// Remarks of profilers that have been shown.
    remarks: BTreeSet<String>,
    /// Decides which trials get a line if lines are not rewritten.
    trials: Pace,
}

/// The form of the display.
enum Shown {
    Nothing,
    Lines,
    Bar(ProgressBar),
}

/// The displayed state.
#[derive(Clone, Debug, Default)]
struct State {
    /// `block 2/6`, or another activity.
    stage: String,
    label: String,
    step: String,
    /// The last trial of a method, with the bounds found so far.
    trial: String,
    live: Option<Live>,
    done: usize,
    total: usize,
    left_ns: u64,
}

impl<'a> Progress<'a> {
    /// Shows runs of `plan`, `done` of which are already stored, and writes them to `events`.
    /// `guess_ns` is the expected duration of a run.
    pub(crate) fn new(
        plan: &'a Plan,
        stop: &'a Stop,
        (done, total): (usize, usize),
        guess_ns: u64,
        quiet: bool,
        mut events: Events,
    ) -> Progress<'a> {
        events.begin(plan, done, total);
        let shown = match () {
            () if quiet => Shown::Nothing,
            () if is_dumb() || !std::io::stderr().is_terminal() => Shown::Lines,
            () => Shown::Bar(bar()),
        };
        let state = State { done, total, ..State::default() };
        let began = Instant::now();
        let (remaining, remarks, trials) = (Remaining::new(guess_ns), BTreeSet::new(), Pace::new());
        Progress { plan, stop, shown, events, state, began, remaining, remarks, trials }
    }

    /// The measurement of a ceiling begins; `what` names it.
    pub(crate) fn begin_calibration(&mut self, what: &str) {
        self.state.stage = "calibrating".into();
        self.state.label = what.into();
        self.state.live = None;
        self.began = Instant::now();
        self.events.stage(&self.state.stage, &self.state.label);
        self.draw();
    }

    /// A ceiling was measured.
    pub(crate) fn finish_calibration(&mut self, median_pps: f64) {
        let what = &self.state.label;
        let text = format!("ceiling without DUT  {what}  {}", format_pps(median_pps));
        self.events.note(&text);
        if let Shown::Lines = self.shown {
            terminal::note(&text);
        }
    }

    /// A run begins.
    pub(crate) fn begin_run(&mut self, run: &PlannedRun) {
        let design = &self.plan.design;
        let what = if design.alternate_ns.is_some() { "stream" } else { "block" };
        self.state.stage = format!("{what} {}/{}", run.block + 1, design.blocks);
        self.state.label = label(self.plan, run);
        self.state.live = None;
        self.state.trial.clear();
        self.trials = Pace::new();
        self.remaining.begin_run();
        self.began = Instant::now();
        self.events.run(run, &self.state.stage, &self.state.label);
        self.draw();
    }

    /// Shows the number of trials that the run continues from.
    pub(crate) fn show_checkpoints(&mut self, checkpoints: &[Checkpoint]) {
        if let Some(Checkpoint { started_at, .. }) = checkpoints.first() {
            self.remaining.continue_run();
            let State { stage, label, .. } = &self.state;
            let trials = checkpoints.len();
            let text = format!(
                "{stage}  {label}  continues after {trials} stored trials, begun {started_at}"
            );
            self.above(&text);
        }
    }

    /// A run is stored.
    pub(crate) fn finish_run(&mut self, record: &RunRecord) {
        self.state.done += 1;
        self.remaining.finish_run(self.elapsed_ns());
        self.began = Instant::now();
        let figure = figure(self.plan, record);
        self.events.done(record, value(self.plan, record), &figure);
        if let Shown::Lines = self.shown {
            let State { stage, label, .. } = &self.state;
            terminal::note(&format!("{stage}  {label}  {figure}"));
            for warning in &record.warnings {
                terminal::note(&format!("  {}", warning.sentence()));
            }
        }
        self.draw();
    }

    /// A profile of a variant begins.
    pub(crate) fn begin_profile(&mut self, variant: usize) {
        self.state.stage = "profile".into();
        self.state.label = self.plan.variants[variant].label.clone();
        self.state.live = None;
        self.began = Instant::now();
        self.events.stage(&self.state.stage, &self.state.label);
        self.draw();
    }

    /// A profile is stored.
    pub(crate) fn finish_profile(&mut self, record: &ProfileRecord) {
        let text = format!("profile  {}  {}", self.state.label, record.source);
        self.above(&text);
        self.show_remarks(record.remarks.iter());
    }

    /// Shows a profiler's remarks, each once.
    pub(crate) fn show_remarks<'r>(&mut self, remarks: impl Iterator<Item = &'r String>) {
        for remark in remarks {
            if self.remarks.insert(remark.clone()) {
                self.above(&format!("  {remark}"));
            }
        }
    }

    /// A run failed; its variant is given up for this invocation.
    pub(crate) fn gave_up(&mut self, why: &str) {
        let label = &self.state.label;
        let text = format!("{label} is given up for now, the others continue: {why}");
        self.above(&text);
    }

    /// A profile failed.
    pub(crate) fn failed_profile(&mut self, why: &str) {
        self.end();
        let label = &self.state.label;
        let text = format!("no profile of {label}: {why}; the results stand without it");
        self.events.note(&text);
        terminal::warn(&text);
    }

    /// Prints text that stays, above the lines that are rewritten.
    fn above(&mut self, text: &str) {
        self.events.note(text);
        match &self.shown {
            Shown::Nothing => {}
            Shown::Lines => terminal::note(text),
            Shown::Bar(bar) => bar.suspend(|| terminal::note(text)),
        }
    }

    /// Clears the display and ends it.
    pub(crate) fn end(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }

    /// Time since the current run began, in nanoseconds.
    fn elapsed_ns(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    fn draw(&mut self) {
        let left = (self.state.total - self.state.done.min(self.state.total)) as u64;
        self.state.left_ns = self.remaining.left_ns(self.elapsed_ns(), left);
        if let Shown::Bar(bar) = &self.shown {
            // The last column stays free: some terminals wrap when it is used.
            let time = if self.state.is_booting() { TIME } else { 0 };
            let width = (terminal::width_of_stderr() - 1).saturating_sub(time);
            bar.set_message(self.state.lines(width).join("\n"));
        }
    }
}

impl Observer for Progress<'_> {
    fn step(&mut self, name: &str) {
        let booted = self.state.is_booting();
        self.state.step = name.into();
        self.events.step(name);
        let boots = self.state.is_booting();
        if let Shown::Bar(bar) = &self.shown
            && booted != boots
        {
            bar.reset_elapsed();
            passing(bar, boots);
        }
        self.draw();
    }

    fn live(&mut self, live: &Live) {
        if self.plan.design.alternate_ns.is_some() {
            self.state.label = self.plan.variants[live.variant].label.clone();
        }
        self.state.live = Some(*live);
        self.events.rates(live, &self.state.label);
        self.draw();
    }

    fn trial(&mut self, report: &TrialReport) {
        self.events.trial(&report.line());
        self.state.trial = report.progress();
        // A suite has further trials after its search.
        let method = self.plan.method.as_ref();
        if let Some(Method::Mlrsearch(_) | Method::Establishment(_)) = method
            && let Some(forecast) = &report.forecast
        {
            self.remaining.forecast(self.elapsed_ns(), forecast);
        }
        match self.shown {
            Shown::Lines if self.trials.is_due(report) => {
                terminal::note(&format!("  {}", self.state.trial));
            }
            _ => self.draw(),
        }
    }

    fn note(&mut self, text: &str) {
        self.above(&format!("  {text}"));
    }

    fn cancelled(&self) -> bool {
        self.stop.requested()
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        self.end();
        self.events.end();
    }
}

/// A text-only bar: [`State::lines`] lays it out. It does not have its own thread, which would
/// disturb the measurement.
fn bar() -> ProgressBar {
    let style =
        ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(style)
}

/// The variant of a run, or the variants that alternate in it.
fn label(plan: &Plan, run: &PlannedRun) -> String {
    match run.variants.as_slice() {
        [one] => plan.variants[*one].label.clone(),
        several => {
            // A cycle A B B A: the first half contains each variant once.
            let half = &several[..several.len() / 2];
            let labels: Vec<&str> =
                half.iter().map(|&variant| plan.variants[variant].label.as_str()).collect();
            labels.join(" > ")
        }
    }
}

impl State {
    /// True while a machine boots, which takes a while and during which nothing is measured.
    fn is_booting(&self) -> bool {
        self.step.starts_with("booting")
    }

    /// The display for `width` columns; no line is longer.
    fn lines(&self, width: usize) -> Vec<String> {
        let runs = format!("{}/{}", self.done, self.total);
        let left = format!("{} left", duration(self.left_ns));
        let rates = self.live.map_or(String::new(), |live| {
            let (offered, forwarded) =
                (format_pps(live.offered_pps), format_pps(live.forwarded_pps));
            if width < WIDE {
                format!("{offered} > {forwarded}")
            } else {
                format!("offered {offered}  forwarded {forwarded}")
            }
        });
        let bar_width = (width / 4).min(30);
        let filled = bar_width * self.done / self.total.max(1);
        let bar = format!("[{}{}]", "#".repeat(filled), "-".repeat(bar_width - filled));
        let mut lines = if width < WIDE {
            vec![
                joined(&[&self.stage, &self.label]),
                joined(&[&self.step, &rates]),
                joined(&[&bar, &runs, &left]),
            ]
        } else {
            vec![
                joined(&[&self.stage, &self.label, &self.step]),
                joined(&[&bar, &runs, &left, &rates]),
            ]
        };
        lines.extend((!self.trial.is_empty()).then(|| self.trial.clone()));
        lines.iter().map(|line| cut(line, width)).collect()
    }
}

/// The parts that are not empty, side by side.
fn joined(parts: &[&str]) -> String {
    let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state() -> State {
        State {
            stage: "block 2/6".into(),
            label: "stateful, inet6".into(),
            step: "traffic".into(),
            trial: String::new(),
            live: Some(Live {
                at_ns: 500_000_000,
                total_ns: 1_000_000_000,
                offered_pps: 3.1e6,
                forwarded_pps: 1.02e6,
                variant: 0,
            }),
            done: 9,
            total: 36,
            left_ns: 65_000_000_000,
        }
    }

    #[test]
    fn state_has_two_lines_on_a_wide_terminal() {
        assert_eq!(
            state().lines(100),
            [
                "block 2/6  stateful, inet6  traffic",
                "[######-------------------]  9/36  1 min 5 s left  offered 3.10 Mpps  forwarded 1.02 Mpps",
            ]
        );
    }

    #[test]
    fn search_adds_a_line() {
        let trial = "trial 57  812 kpps: 0.200 % lost  ndr 790 kpps to 812 kpps".to_owned();
        let state = State { trial: trial.clone(), ..state() };
        assert_eq!(state.lines(100)[2..], [trial]);
        assert_eq!(state.lines(39).len(), 4);
    }

    #[test]
    fn state_fits_forty_columns() {
        assert_eq!(
            state().lines(39),
            [
                "block 2/6  stateful, inet6",
                "traffic  3.10 Mpps > 1.02 Mpps",
                "[##-------]  9/36  1 min 5 s left",
            ]
        );
    }

    #[test]
    fn lines_never_exceed_the_width() {
        let mut state = state();
        state.label = "a label that goes on and on and on, inet6, 8 queues, bound".into();
        for width in 20..140 {
            let lines = state.lines(width);
            assert!(lines.iter().all(|line| line.chars().count() <= width), "{width} {lines:?}");
        }
        assert!(State::default().lines(30).len() == 3);
    }

    #[test]
    fn label_of_an_alternation_contains_each_level_once() {
        let text = "version = 1\n[[factor]]\nname = \"firewall\"\nlevels = [\"rules:0\", \"rules:1\"]\n[trial]\nduration = \"2s\"\n[design]\nalternate = \"170ms\"\n";
        let plan = fwdlab_model::load("x.toml", text, &|_| Ok(Vec::new())).unwrap();
        let label = label(&plan, &plan.runs[0]);
        assert!(["rules:0 > rules:1", "rules:1 > rules:0"].contains(&label.as_str()), "{label}");
    }

    #[test]
    fn elapsed_time_is_shown_during_boots_only() {
        let mut state = state();
        assert!(!state.is_booting());
        state.step = "booting newest.deb".into();
        assert!(state.is_booting());
        // Its time fits next to the longest line.
        assert!(state.lines(50 - TIME).iter().all(|line| line.chars().count() + TIME <= 50));
    }

    #[test]
    fn stop_request_reaches_the_run() {
        let plan = fwdlab_model::load("x.toml", "version = 1", &|_| Ok(Vec::new())).unwrap();
        let stop = Stop::default();
        let progress = Progress::new(&plan, &stop, (0, 1), 0, true, Events::none());
        assert!(!progress.cancelled());
        stop.request();
        assert!(progress.cancelled());
    }
}
