//! Counts of a file's records: read, and left out by kind.

use std::collections::BTreeMap;

/// Records of a capture file so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaptureCounts {
    /// Frames that were read.
    pub frames: u64,
    /// Frames of which the file contains only the beginning.
    pub truncated: u64,
    /// Frames that are longer than a [`crate::Frame`] can be.
    pub too_long: u64,
    /// Blocks of pcapng that may contain frames in a form that is not read, by block type.
    pub blocks: BTreeMap<u32, u64>,
    /// Place and reason of the end of reading, if that is not the end of the file.
    pub fault: Option<String>,
    /// True once nothing more is read.
    pub is_at_end: bool,
}

impl CaptureCounts {
    /// Returns the number of frames and blocks that were left out.
    pub fn left_out(&self) -> u64 {
        self.missed() + self.blocks.values().sum::<u64>()
    }

    /// Returns the number of frames that were left out.
    pub fn missed(&self) -> u64 {
        self.truncated + self.too_long
    }

    /// Returns the counts of what was left out, by kind, and the place where reading ended early;
    /// `None` if the file was read whole.
    pub fn remark(&self) -> Option<String> {
        let mut kinds = Vec::new();
        for (count, what) in [
            (self.truncated, "truncated when they were captured"),
            (self.too_long, "longer than frames can be"),
        ] {
            if count > 0 {
                kinds.push(format!("{count} {what}"));
            }
        }
        kinds.extend(self.blocks.iter().map(|(kind, n)| format!("{n} x block of type {kind:#x}")));
        let left_out = self.left_out();
        let counted = (left_out > 0).then(|| {
            format!(
                "{left_out} of {} records left out: {}",
                self.frames + left_out,
                kinds.join(", ")
            )
        });
        let parts: Vec<String> = counted.into_iter().chain(self.fault.clone()).collect();
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// True if less than half of the file can be used.
    pub fn is_mostly_left_out(&self) -> bool {
        self.left_out() > self.frames
    }
}
