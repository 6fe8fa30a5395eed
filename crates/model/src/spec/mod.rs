//! Raw experiment file: values with their places.
//!
//! The file is read by hand from toml's tree with spans instead of through serde's derive, because
//! serde stops at the first fault and this reader must report all of them. [`crate::experiment`]
//! checks combinations of values.

mod elsewhere;
mod factor;
mod file;
mod host;
pub mod keys;
pub mod kind;
mod method;
mod profile;
mod quantity;
mod section;
mod syntax;

pub use factor::{FactorSpec, LevelSpec};
pub use keys::setting::Setting;
pub use keys::value::format_ns;
pub(crate) use keys::value::{Node, Reader};
pub use method::{GoalSpec, MethodSpec};
pub use profile::ProfileSpec;
pub use quantity::{duration_ns, link_bps};
pub(crate) use section::Section;
pub(crate) use syntax::merge;

use crate::design::{Adjust, MethodKind, RunMetric, Stop};
use crate::diagnostic::Diagnostic;
use crate::settings::{SimSettings, TestbedKind};
use keys::SECTIONS;
use keys::value::{self, found, scalar_text};
use toml::Spanned;

/// Reads a file that the experiment names, by its path relative to the experiment file. Its content
/// is bytes, because a dump of routes is not text; the error is a sentence for the user.
///
/// A path that ends with `/` is a directory: the result is the list of the files below it, at any
/// depth, as paths relative to the directory, each ended with a zero byte.
pub type Loader<'a> = dyn Fn(&str) -> Result<Vec<u8>, String> + 'a;

/// Contents of an experiment file; `None` for keys that are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spec {
    /// `title`.
    pub title: Option<String>,
    /// `testbed.kind`.
    pub kind: Option<Spanned<TestbedKind>>,
    /// `testbed.lab`.
    pub lab: Option<Spanned<String>>,
    /// True if a value of `[testbed]` or `[dut]` could not be read: checks of their combinations
    /// are skipped.
    pub device_faulty: bool,
    /// Settings of `[testbed]`, `[dut]` and `[traffic]`.
    pub settings: Vec<Spanned<Setting>>,
    /// `[testbed.sim]` applied to its defaults, without the effects.
    pub sim: SimSettings,
    /// `testbed.sim.effect`: `setting=label` and the factor.
    pub effects: Vec<(Spanned<String>, f64)>,
    /// The factors in the order of the file; lists of overlays and frame sizes come last.
    pub factors: Vec<FactorSpec>,
    /// `[trial]`.
    pub trial: TrialSpec,
    /// `[design]`.
    pub design: DesignSpec,
    /// `[method]`.
    pub method: MethodSpec,
    /// `[compare]`.
    pub compare: CompareSpec,
    /// `[profile]`.
    pub profile: ProfileSpec,
    /// True if a factor could not be read at all, so a name that is not found among the factors may
    /// still be valid.
    pub factors_incomplete: bool,
}

impl Spec {
    /// Overrides the kind of testbed. Only hosts have a laboratory.
    pub fn set_testbed(&mut self, kind: TestbedKind) {
        let place = self.kind.as_ref().map_or(0..0, Spanned::span);
        self.kind = Some(Spanned::new(place, kind));
        if kind != TestbedKind::Ssh {
            self.lab = None;
        }
    }

    /// Overrides the method with a search for these goals.
    pub fn set_search(&mut self, goals: &[String]) {
        let place = self.method.kind.as_ref().map_or(0..0, Spanned::span);
        let goals = goals.iter().map(|goal| Spanned::new(place.clone(), goal.clone())).collect();
        self.method = MethodSpec {
            kind: Some(Spanned::new(place.clone(), MethodKind::Mlrsearch)),
            goals: Some(Spanned::new(place, goals)),
            ..MethodSpec::default()
        };
    }

    /// Overrides the laboratory.
    pub fn set_lab(&mut self, lab: &str) {
        self.set_testbed(TestbedKind::Ssh);
        let place = self.lab.as_ref().map_or(0..0, Spanned::span);
        self.lab = Some(Spanned::new(place, lab.to_owned()));
    }
}

/// `[trial]`, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrialSpec {
    /// `warmup`.
    pub warmup: Option<Spanned<u64>>,
    /// `duration`.
    pub duration: Option<Spanned<u64>>,
    /// `drain`.
    pub drain: Option<Spanned<u64>>,
    /// `interval`.
    pub interval: Option<Spanned<u64>>,
    /// `slice`.
    pub slice: Option<Spanned<u64>>,
    /// True if a value could not be read: checks that depend on it are skipped.
    pub faulty: bool,
}

/// `[design]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DesignSpec {
    /// `blocks`.
    pub blocks: Option<Spanned<u32>>,
    /// `stop`.
    pub stop: Option<Spanned<Stop>>,
    /// `max_blocks`.
    pub max_blocks: Option<Spanned<u32>>,
    /// `seed`.
    pub seed: Option<Spanned<u64>>,
    /// `alternate`, in nanoseconds.
    pub alternate: Option<Spanned<u64>>,
    /// `settle`, in nanoseconds.
    pub settle: Option<Spanned<u64>>,
    /// True if a value could not be read: checks that depend on it are skipped.
    pub faulty: bool,
}

/// `[compare]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CompareSpec {
    /// `baseline`: factor and label of a level.
    pub baseline: Option<Vec<(Spanned<String>, Spanned<String>)>>,
    /// `confidence`, in percent.
    pub confidence: Option<f64>,
    /// `margin`, as a ratio.
    pub margin: Option<f64>,
    /// `figure`; `None` also for `auto`.
    pub figure: Option<Spanned<RunMetric>>,
    /// `adjust`.
    pub adjust: Option<Adjust>,
}

/// Reads an experiment file. Returns everything readable and every fault; `None` only if the text
/// cannot be parsed at all.
pub fn parse(text: &str, loader: &Loader) -> (Option<Spec>, Vec<Diagnostic>) {
    let (root, errors) = toml::de::DeTable::parse_recoverable(text);
    let mut reader = Reader { file: SECTIONS, loader, faults: Vec::new() };
    let spec = reader.spec(root.get_ref());
    let faults = merge(text, &errors, reader.faults);
    (errors.is_empty().then_some(spec), faults)
}

impl Reader<'_> {
    fn spec(&mut self, root: &toml::de::DeTable) -> Spec {
        let mut spec = Spec::default();
        let top = self.top(root);
        self.version(&top);
        spec.title = top.read("title", |key, node| self.text(key, node));
        let faults = self.faults.len();
        self.testbed(&top, &mut spec);
        let dut = self.table(&top, &keys::DUT);
        let overlays = dut.get("overlay").filter(|(_, node)| node.get_ref().is_array());
        self.settings_of(&dut, &mut spec.settings);
        spec.device_faulty = self.faults.len() > faults;
        self.factors(&top, &mut spec);
        spec.factors.extend(overlays.map(|(key, node)| self.sweep(key, node)));
        self.traffic(&top, &mut spec);
        self.trial(&top, &mut spec.trial);
        self.design(&top, &mut spec.design);
        spec.method = self.method(&top);
        self.compare(&top, &mut spec.compare);
        spec.profile = self.profile(&top);
        spec
    }

    fn testbed(&mut self, top: &Section, spec: &mut Spec) {
        let testbed = self.table(top, &keys::TESTBED);
        spec.kind = testbed.read_spanned("kind", |key, node| self.word(key, node));
        spec.lab = testbed.read_spanned("lab", |key, node| self.text(key, node));
        self.settings_of(&testbed, &mut spec.settings);

        let vm = self.table(top, &keys::VM);
        self.settings_of(&vm, &mut spec.settings);

        let sim = self.table(&testbed, &keys::SIM);
        let numbers = [
            ("noise", &mut spec.sim.noise),
            ("drift", &mut spec.sim.drift),
            ("phi", &mut spec.sim.phi),
            ("jitter", &mut spec.sim.jitter),
            ("loss", &mut spec.sim.loss),
            ("reverse", &mut spec.sim.reverse),
            ("contamination", &mut spec.sim.contamination),
            ("contamination_depth", &mut spec.sim.contamination_depth),
        ];
        for (name, place) in numbers {
            if let Some(value) = sim.read(name, |key, node| self.number(key, node)) {
                *place = value;
            }
        }
        let rates = [
            ("capacity", &mut spec.sim.capacity_pps),
            ("ceiling", &mut spec.sim.ceiling_pps),
            ("establishment", &mut spec.sim.table.establishment_pps),
            ("tear_down", &mut spec.sim.table.tear_down_pps),
        ];
        for (name, place) in rates {
            if let Some(value) = sim.read(name, |key, node| self.packet_rate(key, node)) {
                *place = value;
            }
        }
        if let Some(value) = sim.read("buffer", |key, node| self.integer(key, node)) {
            spec.sim.buffer = value;
        }
        spec.sim.link_speed_bps = sim.read("link_speed", |key, node| self.bit_rate(key, node));
        if let Some(value) = sim.read("states", |key, node| self.integer(key, node)) {
            spec.sim.table.states = value;
        }
        if let Some(value) = sim.read("realtime", |key, node| self.boolean(key, node)) {
            spec.sim.realtime = value;
        }
        if let Some((key, node)) = sim.get("effect") {
            spec.effects = self.effects(key, node);
        }
    }

    fn effects(&mut self, key: &keys::Key, node: &Node) -> Vec<(Spanned<String>, f64)> {
        let Some(table) = node.get_ref().as_table() else {
            let _: Option<()> = self.wrong(key, node);
            return Vec::new();
        };
        let mut out = Vec::new();
        for (name, value) in table {
            match value::plain_number(value) {
                Some(factor) if factor > 0.0 && factor <= 1000.0 => {
                    out.push((Spanned::new(name.span(), name.get_ref().to_string()), factor));
                }
                _ => self.faults.push(
                    Diagnostic::new(value.span(), "an effect must be a number above 0, up to 1000")
                        .label(format!("this is {}", found(value)))
                        .help("0.8 leaves 80 % of the capacity"),
                ),
            }
        }
        out
    }

    fn traffic(&mut self, top: &Section, spec: &mut Spec) {
        let traffic = self.table(top, &keys::TRAFFIC);
        // There is only one protocol: its word is checked, and not used.
        let _ = traffic.read("protocol", |key, node| self.word::<String>(key, node));
        if let Some((key, node)) = traffic.get("frame_size")
            && node.get_ref().is_array()
        {
            spec.factors.push(self.sweep(key, node));
        }
        self.settings_of(&traffic, &mut spec.settings);
    }

    fn settings_of(&mut self, section: &Section, out: &mut Vec<Spanned<Setting>>) {
        for (key, node) in section.present() {
            let sweep = matches!(key.name, "frame_size" | "overlay") && node.get_ref().is_array();
            if key.vary != keys::Vary::Never && !sweep {
                self.setting(key, node, out);
            }
        }
    }

    /// Reads one setting; each entry of a table of names is a separate setting.
    fn setting(&mut self, key: &'static keys::Key, node: &Node, out: &mut Vec<Spanned<Setting>>) {
        if let Some(field) = &key.field {
            (field.read)(self, key, node, out);
        }
    }

    fn trial(&mut self, top: &Section, spec: &mut TrialSpec) {
        let trial = self.table(top, &keys::TRIAL);
        let faults = self.faults.len();
        let mut time = |name| trial.read_spanned(name, |key, node| self.duration_ns(key, node));
        spec.warmup = time("warmup");
        spec.duration = time("duration");
        spec.drain = time("drain");
        spec.interval = time("interval");
        spec.slice = time("slice");
        spec.faulty = self.faults.len() > faults;
    }

    fn design(&mut self, top: &Section, spec: &mut DesignSpec) {
        let design = self.table(top, &keys::DESIGN);
        let faults = self.faults.len();
        spec.blocks = design.read_spanned("blocks", |key, node| self.integer(key, node));
        spec.stop = design.read_spanned("stop", |key, node| self.word(key, node));
        spec.max_blocks = design.read_spanned("max_blocks", |key, node| self.integer(key, node));
        spec.seed = design.read_spanned("seed", |key, node| self.integer(key, node));
        spec.alternate = design.read_spanned("alternate", |key, node| self.duration_ns(key, node));
        spec.settle = design.read_spanned("settle", |key, node| self.duration_ns(key, node));
        spec.faulty = self.faults.len() > faults;
    }

    fn compare(&mut self, top: &Section, spec: &mut CompareSpec) {
        let compare = self.table(top, &keys::COMPARE);
        spec.confidence = compare.read("confidence", |key, node| self.confidence(key, node));
        spec.margin = compare.read("margin", |key, node| self.percent(key, node));
        spec.figure = compare.read_spanned("figure", |key, node| {
            // The only word that is not a metric is `auto`.
            self.word::<String>(key, node)?.parse().ok()
        });
        spec.adjust = compare.read("adjust", |key, node| self.word(key, node));
        let Some((key, node)) = compare.get("baseline") else { return };
        let Some(table) = node.get_ref().as_table() else {
            let _: Option<()> = self.wrong(key, node);
            return;
        };
        let mut baseline = Vec::new();
        for (name, value) in table {
            match scalar_text(value) {
                Some(label) => baseline.push((
                    Spanned::new(name.span(), name.get_ref().to_string()),
                    Spanned::new(value.span(), label),
                )),
                None => self.faults.push(
                    Diagnostic::new(value.span(), "a baseline names one level of a factor")
                        .label(format!("this is {}", found(value)))
                        .help("write the level's value or its label, e.g. { queues = 1 }"),
                ),
            }
        }
        spec.baseline = Some(baseline);
    }
}
