//! Origin of values, in files that contain only values.
//!
//! A list, a table or a file for gnuplot can be separated from its report, but its readers must
//! still be able to distinguish simulated values from measured ones. Lists have the origin in a
//! comment, which gnuplot and ministat of every release skip; tables have it in columns.

use fwdlab_model::plan::RunMetric;
use fwdlab_model::settings::TestbedKind;
use std::fmt;
use std::str::FromStr;

/// Column names of a table, in the order of [`Label::fields`].
pub const COLUMNS: [&str; 4] = ["testbed", "simulated", "figure", "fwdlab_version"];
/// Beginning of the comment.
const BEGINNING: &str = "# fwdlab ";

/// Origin of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The testbed.
    pub testbed: MeasuredOn,
    /// True if no packet was sent.
    pub simulated: bool,
    /// Metric of a run. `None` if its name is unknown to this version.
    pub figure: Option<RunMetric>,
    /// Version of the measuring fwdlab; several if they differ.
    pub version: String,
}

/// Testbed of a measurement, `netns` or `ssh, virtual`: a laboratory of virtual machines is a
/// different testbed from one of physical machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MeasuredOn {
    /// Kind of the testbed. `None` if nothing was measured.
    pub kind: Option<TestbedKind>,
    /// True for hosts below a hypervisor, including guests that the CPU executes directly; false
    /// for emulated ones.
    pub below_hypervisor: bool,
}

impl MeasuredOn {
    /// A testbed of this kind, with the caption of its numbers ([`caption`]).
    pub fn of(kind: Option<TestbedKind>, caption: &str) -> MeasuredOn {
        let can_be = matches!(kind, Some(TestbedKind::Ssh | TestbedKind::Vm));
        let below_hypervisor = can_be && caption.starts_with("virtual");
        MeasuredOn { kind, below_hypervisor }
    }
}

const VIRTUAL: &str = ", virtual";
const NONE: &str = "none";

impl fmt::Display for MeasuredOn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.kind.map_or(NONE, TestbedKind::name);
        write!(f, "{name}{}", if self.below_hypervisor { VIRTUAL } else { "" })
    }
}

impl FromStr for MeasuredOn {
    type Err = <TestbedKind as FromStr>::Err;

    fn from_str(text: &str) -> Result<MeasuredOn, Self::Err> {
        let kind = text.strip_suffix(VIRTUAL).unwrap_or(text);
        let below_hypervisor = kind.len() < text.len();
        let kind = if kind == NONE { None } else { Some(kind.parse()?) };
        Ok(MeasuredOn { kind, below_hypervisor })
    }
}

impl Label {
    /// Fields of a table's line.
    pub fn fields(&self) -> [String; 4] {
        let simulated = if self.simulated { "yes" } else { "no" };
        let figure = self.figure.map_or(String::new(), word_of);
        [self.testbed.to_string(), simulated.to_owned(), figure, self.version.clone()]
    }

    /// Label of a table's line, whose columns `at` returns. `None` if there is no label.
    pub fn of_fields<'a>(at: impl Fn(&str) -> Option<&'a str>) -> Option<Label> {
        let testbed: MeasuredOn = at("testbed")?.parse().ok()?;
        let simulated = testbed.kind == Some(TestbedKind::Sim) || at("simulated") == Some("yes");
        let figure = at("figure").and_then(figure_named);
        let version = at("fwdlab_version").unwrap_or_default().to_owned();
        Some(Label { testbed, simulated, figure, version })
    }

    /// First label in the comments of a text. `None` if there is none.
    pub fn in_comments(text: &str) -> Option<Label> {
        let comments = text.lines().take_while(|line| line.starts_with('#') || line.is_empty());
        comments.filter_map(Label::in_comment).next()
    }

    fn in_comment(line: &str) -> Option<Label> {
        let (version, rest) = line.strip_prefix(BEGINNING)?.split_once("; ")?;
        let pairs: Vec<(&str, &str)> =
            rest.split("; ").filter_map(|pair| pair.split_once(": ")).collect();
        let value = |name: &str| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| *value);
        Label::of_fields(|name| match name {
            "fwdlab_version" => Some(version),
            name => value(name).map(str::trim),
        })
    }

    /// Caption to print with every number.
    pub fn caption(&self) -> &'static str {
        let figure = self.figure.unwrap_or(RunMetric::Mean);
        caption(self.simulated, self.testbed.kind, self.testbed.below_hypervisor, figure)
    }

    /// Returns true if the testbeds permit comparing values of the two.
    pub fn is_comparable(&self, other: &Label) -> bool {
        (&self.testbed, self.simulated) == (&other.testbed, other.simulated)
    }
}

const PPS: &str = "packets per second";
/// Unit of counts.
pub const INSTRUCTIONS: &str = "instructions per packet";

/// Unit of a metric.
pub fn unit(figure: RunMetric) -> &'static str {
    if figure.is_rate() { PPS } else { INSTRUCTIONS }
}

/// Name of a metric in files for programs.
pub fn word_of(figure: RunMetric) -> String {
    let word = serde_json::to_value(figure).unwrap_or_default();
    word.as_str().unwrap_or_default().to_owned()
}

fn figure_named(name: &str) -> Option<RunMetric> {
    serde_json::from_value(name.into()).ok()
}

/// Caption to print with every number of a testbed; empty for hardware.
pub fn caption(
    simulated: bool,
    kind: Option<TestbedKind>,
    below_hypervisor: bool,
    figure: RunMetric,
) -> &'static str {
    match (simulated, kind) {
        (true, _) => "SIMULATED: no packet was sent; these numbers say nothing about any machine",
        (false, Some(TestbedKind::Netns)) => "virtual testbed; not comparable with hardware",
        (false, Some(TestbedKind::Memory)) => {
            "virtual testbed: packets in memory of this machine, no kernel forwarded them; not \
             comparable with hardware"
        }
        (false, Some(TestbedKind::Ssh)) if below_hypervisor => {
            "virtual testbed: the device under test runs below a hypervisor; not comparable with \
             hardware"
        }
        (false, Some(TestbedKind::Vm)) if !figure.is_rate() => {
            "emulated machine (QEMU, TCG): instructions are exact, time means nothing. \
             Instructions are not time: caches, branches and contention between CPUs are not in \
             them."
        }
        (false, Some(TestbedKind::Vm)) if !below_hypervisor => {
            "emulated machine (QEMU, TCG): the time of an emulated CPU is no time of a machine. \
             These rates say how fast this emulation was, and nothing about any machine."
        }
        (false, Some(TestbedKind::Vm)) => {
            "virtual testbed: the device under test is a virtual machine of this machine; not \
             comparable with hardware"
        }
        (false, Some(TestbedKind::Archive)) => "imported: measured elsewhere, read from logs",
        (false, _) => "",
    }
}

/// Formats the comment, one line without its end.
impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [testbed, simulated, figure, version] = self.fields();
        write!(
            f,
            "{BEGINNING}{version}; testbed: {testbed}; simulated: {simulated}; figure: {figure}; \
             unit: {}",
            self.figure.map_or(PPS, unit)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caption_distinguishes_emulated_and_virtual_machines() {
        let kind = Some(TestbedKind::Vm);
        let caption_of = |below, figure| caption(false, kind, below, figure);
        let (emulated, executed) =
            (caption_of(false, RunMetric::Mean), caption_of(true, RunMetric::Mean));
        assert!(emulated.contains("no time of a machine"), "{emulated}");
        assert!(executed.starts_with("virtual testbed"), "{executed}");
        // Two testbeds: their values are not comparable.
        let of = |caption| MeasuredOn::of(kind, caption);
        assert_ne!(of(emulated), of(executed));
        for on in [of(emulated), of(executed)] {
            assert_eq!(on.to_string().parse(), Ok(on));
        }
        let counted = caption_of(true, RunMetric::Instructions);
        assert!(counted.contains("instructions are exact"), "{counted}");
    }

    #[test]
    fn label_reads_back_from_comment_and_fields() {
        for (testbed, simulated, figure) in
            [("sim", true, RunMetric::Mean), ("ssh, virtual", false, RunMetric::P90)]
        {
            let label = Label {
                testbed: testbed.parse().expect("a testbed"),
                simulated,
                figure: Some(figure),
                version: "0.1.0 (c434a91)".into(),
            };
            let text = format!("# mine\n{label}\n1\n2\n");
            assert_eq!(Label::in_comments(&text), Some(label.clone()), "{text}");
            let fields = label.fields();
            let at = |name: &str| {
                COLUMNS.iter().position(|column| *column == name).map(|at| fields[at].as_str())
            };
            assert_eq!(Label::of_fields(at), Some(label));
        }
        assert_eq!(Label::in_comments("# fwdlab\n# fwdlab 1; a: b\n1\n"), None);
        assert_eq!(
            Label::in_comments("1\n# fwdlab 1; testbed: sim\n"),
            None,
            "no comment of a head"
        );
        let known = Label::in_comments("# fwdlab 9; testbed: sim; figure: else\n").expect("one");
        assert_eq!((known.simulated, known.figure), (true, None));
    }
}
