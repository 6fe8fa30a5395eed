//! Lines of the set-up that speak of fwdlab's own router. There are none where no
//! variant's device is one.

use super::{is_any, rows, varied};
use crate::store::Contents;
use fwdlab_model::Settings;
use fwdlab_model::settings::{DutKind, TestbedKind};
use fwdlab_model::spec::keys::{self, Owner};

/// What forwards, when it is not the kernel alone.
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

/// How it was set, as far as it matters.
pub(super) fn lines(contents: &Contents) -> Vec<String> {
    keys::settings()
        .filter(|key| key.owner == Owner::Router && !key.title.is_empty())
        .flat_map(|key| rows::lines(contents, key.name))
        .collect()
}
