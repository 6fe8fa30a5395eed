//! Set-up lines about the hosts of a laboratory, for other testbeds empty. Settings that an
//! experiment doesn't make have no line.

use super::is_any;
use super::rows::{self, as_found};
use super::{varied, varied_of};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, Firewall, GeneratorKind, Reboot, Revision, TestbedKind};
use fwdlab_model::words;

/// Returns the traffic generator, unless it is fwdlab.
pub(super) fn generator(contents: &Contents) -> Option<String> {
    let is_other = |s: &Settings| s.traffic.generator != GeneratorKind::Fwdlab;
    is_any(contents, is_other).then(|| {
        varied(contents, "Traffic generator: ", |s| {
            let traffic = &s.traffic;
            let mut text = traffic.generator.name().to_owned();
            if !traffic.generator_server.is_empty() {
                text += &format!(" at {}", traffic.generator_server);
            }
            if !traffic.generator_options.is_empty() {
                text += &format!(" with `{}`", words::join(&traffic.generator_options));
            }
            text
        })
    })
}

/// Returns the settings of the device under test that the experiment makes.
pub(super) fn lines(contents: &Contents) -> Vec<String> {
    let mut lines = Vec::new();
    if is_any(contents, |s| s.dut.remote.revision.is_some()) {
        lines.push(varied(contents, "Revision of the device under test: ", revision));
    }
    if is_any(contents, |s| s.dut.remote.overlay.is_some()) {
        lines.push(varied(contents, "Files laid over the device's own: ", overlay));
    }
    for name in ["harvest_mask", "bind_interrupts"] {
        lines.extend(rows::lines(contents, name));
    }
    let has_reboot = |s: &Settings| s.dut.remote.reboot != Reboot::Needed;
    if is_any(contents, has_reboot) {
        lines.push(varied(contents, "Reboot of the device: ", |s| {
            match s.dut.remote.reboot {
                Reboot::Needed => "where a variant needs it",
                Reboot::Always => "before every run",
                Reboot::Never => "never",
            }
            .to_owned()
        }));
    }
    if is_any(contents, has_program) {
        let name = "Program of the firewall: ";
        lines.push(varied_of(contents, has_program, name, |s| match s.dut.kind {
            _ if s.dut.remote.firewall_program != Default::default() => {
                s.dut.remote.firewall_program.name().to_owned()
            }
            DutKind::Freebsd => "pf".to_owned(),
            _ => "nft".to_owned(),
        }));
    }
    lines.extend(rows::lines(contents, "loader"));
    lines.extend(rows::lines(contents, "rc"));
    lines
}

fn revision(settings: &Settings) -> String {
    let Some(Revision { install, image, verify, expect, .. }) = &settings.dut.remote.revision
    else {
        return as_found();
    };
    let mut parts: Vec<String> = Vec::new();
    parts.extend(image.as_ref().map(|image| format!("image {image}")));
    parts.extend((!install.is_empty()).then(|| format!("installed by `{}`", install.join("; "))));
    parts.extend((!expect.is_empty()).then(|| format!("`{verify}` says {expect}")));
    if parts.is_empty() { format!("as `{verify}` says") } else { parts.join(", ") }
}

fn overlay(settings: &Settings) -> String {
    match &settings.dut.remote.overlay {
        Some(overlay) => format!("{} ({} files)", overlay.directory, overlay.files.len()),
        None => "none".to_owned(),
    }
}

fn has_program(settings: &Settings) -> bool {
    settings.testbed.kind == TestbedKind::Ssh && settings.dut.firewall != Firewall::None
}
