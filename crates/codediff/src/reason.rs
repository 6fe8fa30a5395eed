//! Reasons for which two functions differ.

use crate::image::Location;

/// Difference between two functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Other instructions, from this offset in the old function.
    Code {
        /// Bytes from the beginning of the old function.
        offset: u64,
    },
    /// The same instructions with other numbers, from this offset: offsets of structures, or
    /// constants.
    Numbers {
        /// Bytes from the beginning of the function.
        offset: u64,
    },
    /// The instruction refers to something else.
    Target {
        /// Name in the old and in the new build.
        names: [String; 2],
    },
    /// The data to which it refers has another initial content.
    Data {
        /// Name of the variable or table.
        name: String,
        /// Bytes from its beginning.
        offset: u64,
    },
    /// The kernel patches other places, or with other code.
    Patch {
        /// Bytes from the beginning of the old function.
        offset: u64,
    },
    /// The old build does not contain it.
    Added,
    /// The new build does not contain it.
    Removed,
    /// Parts or copies of the function: their number in the old and in the new build.
    Copies([usize; 2]),
    /// The comparison can't resolve a reference, or decode the code.
    Unresolved {
        /// Bytes from the beginning of the old function.
        offset: u64,
    },
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Reason::Code { offset } => write!(f, "other instructions from +{offset:#x}"),
            Reason::Numbers { offset } => {
                write!(f, "other offsets or constants from +{offset:#x}")
            }
            Reason::Target { names: [old, new] } => write!(f, "{old} is now {new}"),
            Reason::Data { name, offset } => write!(f, "other content of {name} at +{offset:#x}"),
            Reason::Patch { offset } => write!(f, "other patches at +{offset:#x}"),
            Reason::Added => f.write_str("added"),
            Reason::Removed => f.write_str("removed"),
            Reason::Copies([old, new]) => write!(f, "{old} parts are now {new}"),
            Reason::Unresolved { offset } => write!(f, "can't be compared at +{offset:#x}"),
        }
    }
}

/// The reason that two locations have different names.
pub(crate) fn names(old: Location<'_>, new: Location<'_>) -> Reason {
    let name = |one: Location<'_>| match (one.symbol.is_empty(), one.offset) {
        (true, _) => format!("{}+{:#x}", one.section.name, one.offset),
        (false, 0) => one.symbol.to_owned(),
        (false, offset) => format!("{}+{offset:#x}", one.symbol),
    };
    Reason::Target { names: [name(old), name(new)] }
}
