//! The ceiling: rates that sender and receiver reach without a DUT.

use super::cells::frame_size;
use super::{Context, DETAILS, Input, Section};
use crate::document::table::Cell;
use crate::document::{Block, DetailLevel, Table};
use crate::report::analysis::common_traffic;
use crate::store::Contents;
use fwdlab_model::units::FrameSize;
use serde::Serialize;

/// Rates that sender and receiver reach without a DUT.
#[derive(Clone, Debug, Serialize)]
pub struct Ceiling {
    /// The calibrations.
    pub calibrations: Vec<CalibrationResult>,
    /// The ceiling, packets per second, if it is the same for all variants.
    pub ceiling_pps: Option<f64>,
}

/// One calibration.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationResult {
    /// Calibration key of the ceiling.
    pub testbed: String,
    /// Address family.
    pub family: String,
    /// Frame size with FCS, bytes.
    pub frame_size: FrameSize,
    /// Median of the trials, packets per second.
    pub median_pps: f64,
    /// Rates of the trials.
    pub rates_pps: Vec<f64>,
    /// Wall-clock time.
    pub measured_at: String,
}

impl Section for Ceiling {
    fn analyse(input: &Input<'_>) -> Ceiling {
        Ceiling {
            calibrations: calibrations(input.contents),
            ceiling_pps: common_ceiling_pps(input.contents),
        }
    }

    fn document(&self, context: &Context<'_>) -> Vec<Block> {
        // Counts of instructions have no ceiling.
        if !context.core.figure.is_rate() {
            return Vec::new();
        }
        let title = "Ceiling without a device under test";
        vec![Block::section(title, vec![self.table()]).folded().on_page(DETAILS)]
    }
}

impl Ceiling {
    fn table(&self) -> Block {
        if self.calibrations.is_empty() {
            return Block::text("Not measured.");
        }
        let text = "What sender and receiver reach together on the same testbed; a result within 10 % \
                    of it is limited by them. It counts what arrives: a sender may offer more.";
        let table = Table::of(&self.calibrations)
            .words("testbed", |c| Cell::text(&c.testbed))
            .words("family", |c| Cell::text(&c.family))
            .numbers("frame size", |c| frame_size(c.frame_size))
            .numbers("median", |c| Cell::rate(c.median_pps))
            .words("trials", |c| {
                let rates = c.rates_pps.iter().map(|rate| rate.round().to_string());
                Cell::text(rates.collect::<Vec<String>>().join(", "))
            });
        Block::Where(DetailLevel::Terminal, vec![Block::text(text), table.block()])
    }
}

/// Returns the calibrations, with their medians.
fn calibrations(contents: &Contents) -> Vec<CalibrationResult> {
    contents
        .calibrations
        .iter()
        .map(|calibration| CalibrationResult {
            testbed: calibration.testbed.clone(),
            family: calibration.family.clone(),
            frame_size: calibration.frame_size,
            median_pps: calibration.median_pps(),
            rates_pps: calibration.rates_pps.clone(),
            measured_at: calibration.measured_at.clone(),
        })
        .collect()
}

/// Returns the newest ceiling, packets per second; `None` if it differs between variants.
fn common_ceiling_pps(contents: &Contents) -> Option<f64> {
    // Each bed has its own ceiling.
    if contents.beds().len() > 1 {
        return None;
    }
    let (family, frame_size) = common_traffic(contents)?;
    contents
        .calibrations
        .iter()
        .rev()
        .find(|c| c.family == family && c.frame_size == frame_size)
        .map(|calibration| calibration.median_pps())
        .filter(|pps| pps.is_finite())
}
