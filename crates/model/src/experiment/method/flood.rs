//! Floods: their senders, and the number of distinguishable flows.

use super::{own_sender, variants};
use crate::design::MethodKind;
use crate::diagnostic::Diagnostic;
use crate::experiment::Experiment;
use crate::settings::{Engine, Settings, TestbedKind};
use crate::spec::format_ns;
use crate::units::format_pps;
use fwdlab_packet::address::MAX_ADDRESSES;
use fwdlab_packet::template::FLOOD_FLOWS;
use toml::Spanned;

/// Checks that a flood of up to `max_load` packets per second can be sent in addition to the
/// traffic.
pub(super) fn judge(
    kind: &Spanned<MethodKind>,
    max_load: u64,
    experiment: &Experiment,
    faults: &mut Vec<Diagnostic>,
) {
    own_sender(kind, experiment, "sends no flood beside the traffic", faults);
    if max_load == 0 {
        faults.push(
            Diagnostic::new(kind.span(), "a flood has a greatest load, and none is named")
                .help("write max_load = \"200kpps\" in [method], for example"),
        );
        return;
    }
    if experiment.base.testbed.kind == TestbedKind::Ssh {
        faults.push(
            Diagnostic::new(
                kind.span(),
                "the hosts of a laboratory send one stream: nothing sends a flood beside it",
            )
            .help("choose kind = \"netns\" or \"memory\" in [testbed]"),
        );
    }
    let is_xdp = |settings: &Settings| settings.testbed.engine == Engine::Xdp;
    if variants(experiment).any(|settings| is_xdp(&settings)) {
        faults.push(
            Diagnostic::new(kind.span(), "XDP live frames are one stream at one rate")
                .label("a flood is sent beside the traffic, by the same thread")
                .help("leave `engine` out of [testbed], or write engine = \"xsk\""),
        );
    }
    let duration_ns = experiment.trial.duration_ns;
    let packets = (max_load as f64 * duration_ns as f64 / 1e9).ceil();
    let destinations = variants(experiment)
        .filter(|settings| settings.dut.nat.is_of_destinations())
        .map(|settings| settings.traffic.flows.destinations)
        .min();
    if let Some(destinations) = destinations
        && packets > f64::from(destinations) * f64::from(MAX_ADDRESSES)
    {
        faults.push(
            Diagnostic::new(
                kind.span(),
                format!(
                    "a flood of {packets} packets has more than {MAX_ADDRESSES} sources for each \
                     translated destination"
                ),
            )
            .help(
                "lower `max_load`, shorten `duration` in [trial], or write nat_address and flows \
                 with more destinations",
            ),
        );
    }
    if packets > FLOOD_FLOWS as f64 {
        let (load, window) = (format_pps(max_load as f64), format_ns(duration_ns));
        faults.push(
            Diagnostic::new(
                kind.span(),
                format!("a flood of {load} for {window} has more flows than can be told apart"),
            )
            .help(format!(
                "at most {FLOOD_FLOWS} packets, each of a flow of its own: lower `max_load`, or \
                 shorten `duration` in [trial]"
            )),
        );
    }
}
