//! Transfer of a key's value into and out of the [`Settings`] of a variant.

use super::Key;
use super::setting::Setting;
use super::value::{Node, Reader};
use crate::settings::{Revision, Settings};
use crate::units::FrameSize;
use crate::words;
use toml::Spanned;

/// A setting's place with its reader and writer.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Reads the value in a file; each entry of a table of names is a separate setting.
    pub(in crate::spec) read:
        fn(&mut Reader<'_>, &'static Key, &Node<'_>, &mut Vec<Spanned<Setting>>),
    /// Returns the set values. An empty revision that remains is then removed.
    pub(in crate::spec) get: fn(&mut Settings, &'static Key, &mut Vec<Setting>),
}

/// `field!(reader, place)`: the method of [`Reader`] that reads it, and its place, a function of
/// [`Settings`]. Its text is its `Display`, unless a third argument is a function that writes it.
/// The reader is preceded by `some` if the place is an `Option`, and by `each` if it is a map of
/// names and values; `if` gives the condition under which it is a setting at all.
macro_rules! field {
    (@ $read:ident, $wrap:expr, $place:expr, $text:expr) => {
        $crate::spec::keys::Field {
            read: |reader, key, node, out| {
                let value = reader.$read(key, node).map($wrap);
                let setting = value.map(|value| $crate::spec::Setting::new(key, value, $place, $text));
                out.extend(setting.map(|setting| toml::Spanned::new(node.span(), setting)));
            },
            get: |settings, key, out| {
                let place: $crate::spec::keys::Place<_> = $place;
                let value = place(settings).clone();
                out.push($crate::spec::Setting::new(key, value, place, $text));
            },
        }
    };
    (some $read:ident, $place:expr) => {
        field!(@ $read, Some, $place, $crate::spec::keys::field::optional)
    };
    (each $read:ident, $place:expr) => {
        $crate::spec::keys::Field {
            read: |reader, key, node, out| {
                for (span, name, value) in reader.$read(key, node) {
                    let setting = $crate::spec::Setting::entry(key, name, value, $place);
                    out.push(toml::Spanned::new(span, setting));
                }
            },
            get: |settings, key, out| {
                let place: $crate::spec::keys::Place<
                    std::collections::BTreeMap<String, String>,
                > = $place;
                for (name, value) in place(settings).clone() {
                    out.push($crate::spec::Setting::entry(key, name, value, place));
                }
            },
        }
    };
    ($read:ident, $place:expr, if $has:expr) => {
        $crate::spec::keys::Field {
            get: |settings, key, out| {
                let has: fn(&$crate::settings::Settings) -> bool = $has;
                if has(settings) {
                    (field!($read, $place).get)(settings, key, out);
                }
            },
            ..field!($read, $place)
        }
    };
    ($read:ident, $place:expr) => {
        field!(@ $read, std::convert::identity, $place, ToString::to_string)
    };
    ($read:ident, $place:expr, $text:expr) => {
        field!(@ $read, std::convert::identity, $place, $text)
    };
}
pub(in crate::spec) use field;

/// Returns an empty text for `None`.
pub(in crate::spec) fn optional<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map(ToString::to_string).unwrap_or_default()
}

/// Returns the commands in sequence.
#[expect(clippy::ptr_arg, reason = "the type is that of the setting's place")]
pub(in crate::spec) fn commands(commands: &Vec<String>) -> String {
    commands.join("; ")
}

/// Returns words as a command line; a shell script of several lines becomes one.
#[expect(clippy::ptr_arg, reason = "the type is that of the setting's place")]
pub(in crate::spec) fn words(list: &Vec<String>) -> String {
    words::join(list).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the plain number, or the name of a mix.
pub(in crate::spec) fn bytes(size: &FrameSize) -> String {
    size.text()
}

/// Returns the revision, creating an empty one if there is none.
pub(in crate::spec) fn revision(settings: &mut Settings) -> &mut Revision {
    settings.dut.remote.revision.get_or_insert_default()
}
