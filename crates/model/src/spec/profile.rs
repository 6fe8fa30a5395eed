//! `[profile]` in the file.

use super::keys::value::{Node, Reader};
use super::keys::{self, Key};
use super::section::Section;
use crate::profile::{CallGraph, Event, Subsystems};
use crate::settings::Rate;
use std::ops::Range;

/// `[profile]`; `None` for keys that are absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProfileSpec {
    /// True if the file has the table.
    pub present: bool,
    /// Its place in the file.
    pub place: Option<Range<usize>>,
    /// `cpu`.
    pub cpu: Option<bool>,
    /// `sampling`, in Hz.
    pub sampling_hz: Option<u32>,
    /// `duration`, in nanoseconds.
    pub duration_ns: Option<u64>,
    /// `windows`.
    pub windows: Option<u16>,
    /// `starts`.
    pub starts: Option<u16>,
    /// `rate`.
    pub rate: Option<Rate>,
    /// `frequency`, in Hz.
    pub frequency_hz: Option<u32>,
    /// `event`.
    pub event: Option<Event>,
    /// `call_graph`.
    pub call_graph: Option<CallGraph>,
    /// `icicle`.
    pub icicle: Option<bool>,
    /// `subsystems`, with the file's text.
    pub subsystems: Option<Subsystems>,
}

impl Reader<'_> {
    pub(super) fn profile(&mut self, top: &Section) -> ProfileSpec {
        let profile = self.table(top, &keys::PROFILE);
        ProfileSpec {
            present: profile.is_present(),
            place: profile.is_present().then(|| profile.span()),
            cpu: profile.read("cpu", |key, node| self.boolean(key, node)),
            sampling_hz: profile.read("sampling", |key, node| self.integer(key, node)),
            duration_ns: profile.read("duration", |key, node| self.duration_ns(key, node)),
            windows: profile.read("windows", |key, node| self.integer(key, node)),
            starts: profile.read("starts", |key, node| self.integer(key, node)),
            rate: profile.read("rate", |key, node| self.rate(key, node)),
            frequency_hz: profile.read("frequency", |key, node| self.integer(key, node)),
            event: profile.read("event", |key, node| self.word(key, node)),
            call_graph: profile.read("call_graph", |key, node| self.word(key, node)),
            icicle: profile.read("icicle", |key, node| self.boolean(key, node)),
            subsystems: profile.read("subsystems", |key, node| self.subsystems(key, node)),
        }
    }

    fn subsystems(&mut self, key: &Key, node: &Node) -> Option<Subsystems> {
        let file = self.text(key, node)?;
        let text = self.text_file("the table of subsystems", &file, node)?;
        Some(Subsystems { file, text })
    }
}
