//! Set-up lines about fwdlab's own router; empty if no variant uses it.

use super::{is_any, rows, varied};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, TestbedKind};
use fwdlab_model::spec::keys::{self, Owner};

/// Returns the forwarding device, unless it is the kernel alone.
pub(super) fn device(contents: &Contents) -> Option<String> {
    let is_named =
        |s: &Settings| s.dut.kind != DutKind::Linux || s.testbed.kind == TestbedKind::Ssh;
    is_any(contents, is_named).then(|| {
        varied(contents, "Device under test: ", |s| match s.dut.command.start.first() {
            Some(program) => format!("`{program}`"),
            None => s.dut.kind.row().words.to_owned(),
        })
    })
}

/// Returns the router's settings that have an effect.
pub(super) fn lines(contents: &Contents) -> Vec<String> {
    keys::settings()
        .filter(|key| key.owner == Owner::Router && !key.title.is_empty())
        .flat_map(|key| rows::lines(contents, key.name))
        .collect()
}
