//! Flame graph files of counted instructions: stacks of calls, as wide as their instructions.

use anyhow::{Context, Result};
use fwdlab_results::document::{Block, Remark};
use fwdlab_results::profile::draw::{Look, flame_graph};
use fwdlab_results::profile::unfold;
use fwdlab_vm::calls::Calls;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// The flame graph of a kernel in one state.
#[derive(Serialize)]
pub(super) struct GraphFile {
    file: PathBuf,
    /// Share of the instructions whose callers are not known.
    unknown_share: f64,
    /// Returns to the caller, returns that are jumps, and returns of unknown frames.
    matched: u64,
    jumps: u64,
    lost: u64,
    /// Instructions by which stacks and flat counts differ.
    unaccounted: u64,
}

impl GraphFile {
    /// Describes the flame graph and its gaps.
    pub(super) fn remark(&self) -> Block {
        let text = format!(
            "Flame graph of calls: {}. Callers are unknown of {:.2} % of the instructions; {} \
             returns went to where was called from, {} elsewhere, as thunks of indirect calls \
             do, and {} ended frames that nobody knew.",
            self.file.display(),
            100.0 * self.unknown_share,
            self.matched,
            self.jumps,
            self.lost,
        );
        match self.unaccounted {
            0 => Block::remark(Remark::Note, text),
            n => Block::remark(
                Remark::Warning,
                format!("{text} Stacks and flat counts differ by {n} instructions in all bursts."),
            ),
        }
    }
}

/// Draws each kernel (release, change, calls) into `directory`, which is created if it is missing.
///
/// # Errors
/// If nothing was counted, or a file can't be written.
pub(super) fn write<'a>(
    counted: impl Iterator<Item = (&'a str, Option<&'a str>, &'a Calls)>,
    directory: &Path,
) -> Result<Vec<GraphFile>> {
    let fail = |path: &Path| format!("{}: flame graphs can't be written there", path.display());
    std::fs::create_dir_all(directory).with_context(|| fail(directory))?;
    let mut drawn = Vec::new();
    for (number, (release, change, calls)) in (1..).zip(counted) {
        let stacks = unfold(&calls.folded());
        let look = Look {
            title: match change {
                None => release.to_owned(),
                Some(change) => format!("{release} after `{change}`"),
            },
            subtitle: "instructions are not time".into(),
            unit: "instructions per 1000 packets".into(),
            is_icicle: false,
        };
        let file = directory.join(format!("{number}-{release}.svg"));
        std::fs::write(&file, flame_graph(&stacks, &look)?).with_context(|| fail(&file))?;
        let folded = file.with_extension("svg.folded");
        std::fs::write(&folded, stacks.folded()).with_context(|| fail(&folded))?;
        drawn.push(GraphFile {
            file,
            unknown_share: calls.unknown_share(),
            matched: calls.returns.matched,
            jumps: calls.returns.jumps,
            lost: calls.returns.lost,
            unaccounted: calls.unaccounted,
        });
    }
    Ok(drawn)
}
