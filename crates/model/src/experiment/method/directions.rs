//! Methods that can send in both directions.

use super::variants;
use crate::design::{Method, MethodKind};
use crate::diagnostic::Diagnostic;
use crate::experiment::Experiment;
use crate::settings::{Directions, Settings};
use toml::Spanned;

/// Checks that traffic in both directions is steady traffic: other traffic of a method has one
/// direction.
pub(super) fn judge(
    kind: &Spanned<MethodKind>,
    experiment: &Experiment,
    faults: &mut Vec<Diagnostic>,
) {
    let is_steady = |method: &Method| {
        matches!(method, Method::Mlrsearch(_) | Method::LossCurve { .. } | Method::Soak { .. })
    };
    let is_bidirectional = |settings: Settings| settings.traffic.directions == Directions::Both;
    let mut parts = experiment.method.iter().flat_map(Method::parts);
    if parts.all(is_steady) || !variants(experiment).any(is_bidirectional) {
        return;
    }
    let steady = "\"fixed\", \"mlrsearch\", \"loss-curve\" or \"soak\"";
    let help = match kind.get_ref() {
        MethodKind::Rfc2544 => {
            "write tests = [\"throughput\", \"frame-loss-rate\"] in [method], or leave \
                                `directions` out of [traffic]"
                .to_owned()
        }
        _ => format!("leave `directions` out of [traffic], or choose kind = {steady}"),
    };
    let name = kind.get_ref().name();
    faults.push(
        Diagnostic::new(kind.span(), format!("`{name}` sends in one direction only"))
            .label("and `directions` in [traffic] is \"both\"")
            .help(help),
    );
}
