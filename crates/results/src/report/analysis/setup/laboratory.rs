//! Lines of the set-up that speak of a laboratory's hosts. There are none elsewhere, and
//! none of what nothing was said of.

use super::router::is_any;
use super::{enabled, varied, varied_of};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, Firewall, GeneratorKind, Reboot, Revision, TestbedKind};
use fwdlab_model::words;
use std::collections::BTreeMap;

/// What made and counted the traffic, where it was not fwdlab.
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

/// How the device under test was set, as far as it was.
pub(super) fn lines(contents: &Contents) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = |has: fn(&Settings) -> bool, name: &str, of: fn(&Settings) -> String| {
        if is_any(contents, has) {
            lines.push(varied(contents, name, of));
        }
    };
    line(has_revision, "Revision of the device under test: ", revision);
    line(|s| s.dut.remote.overlay.is_some(), "Files laid over the device's own: ", overlay);
    line(
        |s| s.dut.remote.harvest_mask.is_some(),
        "Mask of harvested entropy: ",
        |s| s.dut.remote.harvest_mask.map_or_else(as_found, |mask| mask.to_string()),
    );
    line(
        |s| s.dut.remote.bind_interrupts,
        "Interrupts bound to CPUs, queue by queue: ",
        |s| enabled(s.dut.remote.bind_interrupts),
    );
    line(
        |s| s.dut.remote.reboot != Reboot::Needed,
        "Reboot of the device: ",
        |s| {
            match s.dut.remote.reboot {
                Reboot::Needed => "where a variant needs it",
                Reboot::Always => "before every run",
                Reboot::Never => "never",
            }
            .to_owned()
        },
    );
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
    lines.extend(named(contents, "loader.conf", |s| &s.dut.remote.loader));
    lines.extend(named(contents, "rc.conf", |s| &s.dut.remote.rc));
    lines
}

/// Lines of a configuration file that any variant sets, each with all its values.
fn named(
    contents: &Contents,
    file: &str,
    of: fn(&Settings) -> &BTreeMap<String, String>,
) -> Vec<String> {
    let variants = contents.plan.variants.iter();
    let mut names: Vec<&String> = variants.flat_map(|v| of(&v.settings).keys()).collect();
    names.sort();
    names.dedup();
    let value = |settings: &Settings, name: &String| of(settings).get(name).cloned();
    names
        .into_iter()
        .map(|name| {
            varied(contents, &format!("{file} {name} = "), |s| {
                value(s, name).unwrap_or_else(as_found)
            })
        })
        .collect()
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

fn as_found() -> String {
    "as found".to_owned()
}

fn has_revision(settings: &Settings) -> bool {
    settings.dut.remote.revision.is_some()
}

fn has_program(settings: &Settings) -> bool {
    settings.testbed.kind == TestbedKind::Ssh && settings.dut.firewall != Firewall::None
}
