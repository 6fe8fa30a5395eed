//! Resets of devices that translate addresses.

use super::variants;
use crate::design::{MethodKind, SuiteTest};
use crate::diagnostic::Diagnostic;
use crate::experiment::Experiment;
use crate::settings::Settings;
use crate::spec::MethodSpec;
use toml::Spanned;

/// Checks that packets after a reset can be compared with earlier ones: a device that lost its
/// translations gives flows other source ports.
pub(super) fn judge(
    written: &MethodSpec,
    kind: &Spanned<MethodKind>,
    experiment: &Experiment,
    faults: &mut Vec<Diagnostic>,
) {
    let translates = |settings: Settings| settings.dut.nat.is_of_sources();
    if !variants(experiment).any(translates) {
        return;
    }
    let test = written.tests.iter().flat_map(|tests| tests.get_ref());
    let test = test.into_iter().find(|test| *test.get_ref() == SuiteTest::Reset);
    let span = test.map_or(kind.span(), Spanned::span);
    faults.push(
        Diagnostic::new(span, "a reset ends translations of sources")
            .label("flows that get another port count as damaged")
            .help(
                "write tests = [\"throughput\", \"latency\", ...] without \"reset\" in [method], or \
                 nat = \"destination\"",
            ),
    );
}
