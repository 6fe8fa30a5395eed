//! Selects experiments: the same options wherever a directory of stores is read.

use fwdlab_results::facts::Filter;

/// The selection of experiments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FilterArguments {
    /// Of several stores, only those of a machine whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    machine: Option<String>,
    /// Only those of a network interface whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    interface: Option<String>,
    /// Only those of a topic that contains TEXT (for fwdlab's own runs: the experiment's name)
    #[arg(long, value_name = "TEXT")]
    topic: Option<String>,
    /// Only those with this address family: inet (4) or inet6 (6)
    #[arg(long, value_name = "FAMILY", value_parser = ["inet", "inet4", "4", "inet6", "6"])]
    family: Option<String>,
    /// Only those with this firewall: none, stateful, pf, ipfw-stateless ...
    #[arg(long, value_name = "NAME")]
    firewall: Option<String>,
}

impl FilterArguments {
    /// The filter of the library.
    pub(crate) fn filter(&self) -> Filter {
        Filter {
            machine: self.machine.clone(),
            interface: self.interface.clone(),
            topic: self.topic.clone(),
            family: self.family.clone(),
            firewall: self.firewall.clone(),
        }
    }
}
