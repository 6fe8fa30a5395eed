//! Quantities that runs are compared by: unit, direction, and printed form.

use crate::document::measure::{FORWARDING_RATE, Measure, RATE_RATIO};
use crate::document::table::{Cell, Digits};
use crate::format::significant;
use crate::plot;
use fwdlab_model::units::format_pps;
use serde::{Serialize, Serializer};
use std::borrow::Cow;

/// Steps of a unit: smallest value, printed unit, and its size in the base unit.
type Steps = &'static [(f64, &'static str, f64)];

const PACKET_STEPS: Steps = &[(1e6, "Mpps", 1e6), (1e3, "kpps", 1e3), (0.0, "pps", 1.0)];
const BIT_STEPS: Steps =
    &[(1e9, "Gbit/s", 1e9), (1e6, "Mbit/s", 1e6), (1e3, "kbit/s", 1e3), (0.0, "bit/s", 1.0)];
const SECOND_STEPS: Steps =
    &[(1.0, "s", 1.0), (1e-3, "ms", 1e-3), (1e-6, "us", 1e-6), (0.0, "ns", 1e-9)];

/// A quantity with its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quantity {
    /// Symbol of the unit.
    unit: Cow<'static, str>,
    /// Name of the unit in sentences.
    name: Cow<'static, str>,
    /// True if a smaller value is a better one.
    is_smaller_better: bool,
}

impl Quantity {
    const fn known(unit: &'static str, name: &'static str, is_smaller_better: bool) -> Quantity {
        Quantity { unit: Cow::Borrowed(unit), name: Cow::Borrowed(name), is_smaller_better }
    }

    /// Packets per second.
    pub(crate) const PACKET_RATE: Quantity = Quantity::known("pps", "packets per second", false);
    /// Bits per second.
    pub(crate) const BIT_RATE: Quantity = Quantity::known("bit/s", "bits per second", false);
    /// Seconds.
    pub(crate) const TIME: Quantity = Quantity::known("s", "seconds", true);
    /// Packets per run.
    pub(crate) const PACKETS: Quantity = Quantity::known("packets", "packets", false);
    /// Bytes of memory.
    pub(crate) const MEMORY: Quantity = Quantity::known("B", "bytes", true);

    /// A unit that another program defines.
    pub(crate) fn named(unit: &str, is_smaller_better: bool) -> Quantity {
        let unit: Cow<'static, str> = Cow::Owned(unit.to_owned());
        Quantity { name: unit.clone(), unit, is_smaller_better }
    }

    /// Quantity of a figure's axis.
    pub(crate) fn plotted(&self) -> plot::Quantity {
        match &*self.unit {
            "pps" => plot::Quantity::Rate,
            "bit/s" => plot::Quantity::Bits,
            "s" => plot::Quantity::Time,
            _ => plot::Quantity::Value { is_smaller_better: self.is_smaller_better },
        }
    }

    /// Symbol of the unit.
    pub(crate) fn unit(&self) -> &str {
        &self.unit
    }

    /// Name of the unit in sentences.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// True if a smaller value is a better one.
    pub(crate) fn is_smaller_better(&self) -> bool {
        self.is_smaller_better
    }

    /// True for packets per second.
    pub(crate) fn is_packet_rate(&self) -> bool {
        self.unit == "pps"
    }

    /// Returns the unit that suits a value, and its size.
    pub(crate) fn scale(&self, most: f64) -> (&str, f64) {
        let steps = match &*self.unit {
            "pps" => PACKET_STEPS,
            "bit/s" => BIT_STEPS,
            "s" => SECOND_STEPS,
            unit => return (unit, 1.0),
        };
        let step = steps.iter().find(|(least, ..)| most >= *least);
        step.map_or((&*self.unit, 1.0), |&(_, unit, size)| (unit, size))
    }

    /// Formats a value with its unit: `9.41 Gbit/s`.
    pub(crate) fn print(&self, value: f64) -> String {
        if self.is_packet_rate() {
            return format_pps(value);
        }
        let (unit, size) = self.scale(value);
        format!("{} {unit}", significant(value / size))
    }

    /// Cell with a value. `Cell::None` without a value.
    pub(crate) fn cell(&self, value: f64) -> Cell {
        match self.is_packet_rate() {
            true => Cell::rate(value),
            false => Cell::Values(self.print(value).into(), vec![value.into()]),
        }
    }

    /// Cell with a value in a fixed unit of size `size`.
    pub(crate) fn scaled(value: Option<f64>, size: f64) -> Cell {
        value.map_or(Cell::None, |value| {
            Cell::Values(Digits::Significant.print(value / size).into(), vec![value.into()])
        })
    }

    /// Measure of variants for dashboards.
    pub(crate) fn measure(&self) -> &'static [Measure] {
        const BITS: Measure = Measure { name: "bit-rate", unit: "bits/s", ..FORWARDING_RATE };
        const TIME: Measure =
            Measure { name: "time", unit: "s", is_smaller_better: true, ..FORWARDING_RATE };
        const GREATER: Measure = Measure { name: "value", unit: "", ..FORWARDING_RATE };
        const SMALLER: Measure = Measure { is_smaller_better: true, ..GREATER };
        match (&*self.unit, self.is_smaller_better) {
            ("pps", _) => &[FORWARDING_RATE],
            ("bit/s", _) => &[BITS],
            ("s", _) => &[TIME],
            (_, false) => &[GREATER],
            (_, true) => &[SMALLER],
        }
    }

    /// Measure of comparisons for dashboards.
    pub(crate) fn ratio(&self) -> &'static [Measure] {
        const GREATER: Measure = Measure { name: "ratio", ..RATE_RATIO };
        const SMALLER: Measure = Measure { is_smaller_better: true, ..GREATER };
        match self.is_smaller_better {
            _ if self.is_packet_rate() => &[RATE_RATIO],
            false => &[GREATER],
            true => &[SMALLER],
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_printed_in_a_suitable_unit() {
        for (quantity, value, text) in [
            (Quantity::BIT_RATE, 9.412e9, "9.41 Gbit/s"),
            (Quantity::BIT_RATE, 12.0, "12.0 bit/s"),
            (Quantity::TIME, 1.5, "1.50 s"),
            (Quantity::TIME, 0.0125, "12.5 ms"),
            (Quantity::TIME, 3.1e-8, "31.0 ns"),
            (Quantity::PACKETS, 1000.0, "1000 packets"),
            (Quantity::named("ns/op", true), 123.4, "123 ns/op"),
        ] {
            assert_eq!(quantity.print(value), text);
        }
    }
}
