//! Quantities that a figure shows.

use crate::format::significant;
use fwdlab_model::units::format_pps;

/// Quantity of the y axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// Forwarded packets per second.
    #[default]
    Rate,
    /// Intended load in packets per second.
    Load,
    /// Packet loss in percent of the offered packets.
    Loss,
    /// Burst size in frames.
    Frames,
    /// Connections in a table.
    Connections,
    /// Instructions executed per packet.
    Instructions,
    /// Bits per second.
    Bits,
    /// Seconds.
    Time,
    /// Any other quantity, whose unit is in the title.
    Value {
        /// True if a smaller value is a better one.
        is_smaller_better: bool,
    },
}

impl Quantity {
    /// Name of the axis.
    pub(super) fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "forwarded",
            Quantity::Load => "intended load",
            Quantity::Loss => "lost",
            Quantity::Frames => "burst",
            Quantity::Connections => "connections held",
            Quantity::Instructions => "executed",
            Quantity::Bits => "bit rate",
            Quantity::Time => "time",
            Quantity::Value { .. } => "value",
        }
    }

    /// Unit of the axis, without a prefix.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Quantity::Rate | Quantity::Load => "pps",
            Quantity::Loss => "%",
            Quantity::Frames => "frames",
            Quantity::Connections | Quantity::Value { .. } => "",
            Quantity::Instructions => "instructions per packet",
            Quantity::Bits => "bit/s",
            Quantity::Time => "s",
        }
    }

    /// A value with its unit, unless the axis shows the unit.
    pub(super) fn print(self, value: f64) -> String {
        match self {
            Quantity::Rate | Quantity::Load => format_pps(value),
            Quantity::Loss => format!("{value:.4} %"),
            Quantity::Frames | Quantity::Connections => format!("{value:.0}"),
            Quantity::Instructions => format!("{value:.1}"),
            Quantity::Bits => format_pps(value).replace("pps", "bit/s"),
            Quantity::Time => format!("{} s", significant(value)),
            Quantity::Value { .. } => significant(value),
        }
    }
}
