//! Rates of machines by firewall.

use super::{Catalogue, Entry, VariantRate};
use crate::facts::{Facts, Filter};
use crate::plot::{Chart, Draw, Drawing, Point, Quantity, Series, XAxis};
use serde::Serialize;
use std::collections::BTreeMap;

/// Maximum number of machines in the figure.
const DRAWN: usize = 24;

/// Rates of machines by firewall.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineTable {
    /// The firewalls, `none` first.
    pub firewalls: Vec<String>,
    /// The machines.
    pub machines: Vec<MachineRates>,
    /// Address family of all rates.
    pub family: String,
}

/// Rates of one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MachineRates {
    /// The machine with its interface.
    pub name: String,
    /// The newest rate for each of [`MachineTable::firewalls`], packets per second, with the
    /// directory of its store.
    pub rates: Vec<Option<(f64, String)>>,
}

impl Catalogue {
    /// Returns the newest rate of each machine and interface for each firewall, for the address
    /// family with more rates. If a store has several variants with one firewall, the fastest
    /// counts. Excludes simulations and virtual testbeds, which are not machines.
    pub fn machines(&self) -> MachineTable {
        let is_machine = |entry: &&Entry| matches!(entry.testbed.as_str(), "archive" | "ssh");
        let all = || self.entries.iter().filter(is_machine);
        let count_family = |family: &str| {
            all().flat_map(|entry| &entry.rates).filter(|rate| rate.family == family).count()
        };
        let family = if count_family("inet6") > count_family("inet") { "inet6" } else { "inet" };
        let mut found: BTreeMap<String, BTreeMap<String, (f64, String)>> = BTreeMap::new();
        // The newest entries come first.
        for entry in all() {
            let name = [&entry.facts.machine, &entry.facts.interface];
            let name: Vec<&str> =
                name.iter().map(|part| part.as_str()).filter(|part| !part.is_empty()).collect();
            let machine = found.entry(name.join(", ")).or_default();
            let mut fastest_by_firewall: BTreeMap<&str, f64> = BTreeMap::new();
            let rates = entry.rates.iter().filter(|rate| rate.family == family);
            let rates = rates.filter(|rate| self.is_selected(rate));
            for VariantRate { firewall, median, .. } in rates {
                if let Some(firewall) = firewall {
                    let rate = fastest_by_firewall.entry(firewall).or_insert(*median);
                    *rate = rate.max(*median);
                }
            }
            for (firewall, rate) in fastest_by_firewall {
                let newest = machine.entry(firewall.to_owned());
                newest.or_insert_with(|| (rate, entry.place.clone()));
            }
        }
        found.retain(|_, rates| !rates.is_empty());
        let mut firewalls: Vec<String> =
            found.values().flat_map(|rates| rates.keys().cloned()).collect();
        firewalls.sort_by_key(|firewall| (firewall != "none", firewall.clone()));
        firewalls.dedup();
        let machines = found
            .into_iter()
            .map(|(name, mut rates)| MachineRates {
                name,
                rates: firewalls.iter().map(|firewall| rates.remove(firewall)).collect(),
            })
            .collect();
        MachineTable { firewalls, machines, family: family.to_owned() }
    }
}

impl Catalogue {
    fn is_selected(&self, rate: &VariantRate) -> bool {
        let filter = Filter { firewall: self.firewall.clone(), ..Filter::default() };
        let firewalls = rate.firewall.iter().cloned().collect();
        filter.admits(&Facts { firewalls, ..Facts::default() })
    }
}

impl MachineTable {
    /// Draws the figure; `None` if there are no rates or too many machines.
    pub(super) fn draw(&self) -> Option<Drawing> {
        if self.machines.is_empty() || self.machines.len() > DRAWN || self.firewalls.is_empty() {
            return None;
        }
        let series = self.firewalls.iter().enumerate().map(|(at, firewall)| Series {
            name: firewall.clone(),
            points: self
                .machines
                .iter()
                .map(|machine| {
                    let (pps, _) = machine.rates[at].as_ref()?;
                    Some(Point { median_pps: *pps, min_pps: *pps, max_pps: *pps })
                })
                .collect(),
            fit: None,
        });
        let names = self.machines.iter().map(|machine| machine.name.clone()).collect();
        let chart = Chart {
            middle: "median",
            title: "Machines by firewall".to_owned(),
            x_label: String::new(),
            x: XAxis::Categories(names),
            series: series.collect(),
            y: Quantity::Rate,
            right: None,
            ceiling_pps: None,
            footnote: Some(format!(
                "The newest median of each machine and firewall, {}; software, settings and dates \
                 differ.",
                self.family
            )),
        };
        Some(chart.drawing())
    }
}
