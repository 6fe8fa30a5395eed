//! What a figure shows.

use fwdlab_model::units::format_pps;

/// What the y axis counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Quantity {
    /// Packets per second that were forwarded.
    #[default]
    Rate,
    /// Packets per second that were to be sent.
    Load,
    /// Packets lost, in percent of those offered.
    Loss,
    /// Frames of a burst.
    Frames,
    /// Connections in a table.
    Connections,
    /// Instructions that were executed for a packet.
    Instructions,
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
        }
    }

    /// Its unit, without a prefix.
    pub(super) fn unit(self) -> &'static str {
        match self {
            Quantity::Rate | Quantity::Load => "pps",
            Quantity::Loss => "%",
            Quantity::Frames => "frames",
            Quantity::Connections => "",
            Quantity::Instructions => "instructions per packet",
        }
    }

    /// A value with its unit, where that isn't told by the axis.
    pub(super) fn print(self, value: f64) -> String {
        match self {
            Quantity::Rate | Quantity::Load => format_pps(value),
            Quantity::Loss => format!("{value:.4} %"),
            Quantity::Frames | Quantity::Connections => format!("{value:.0}"),
            Quantity::Instructions => format!("{value:.1}"),
        }
    }
}
