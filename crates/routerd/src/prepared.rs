//! Reads and builds a router from its set-up, without ports, threads and privileges.

use super::interfaces::NamedInterface;
use super::routing::Routing;
use super::{advertise, drop_log, firewall, host, interfaces, mistake, tables};
use fwdlab_model::router::{FileWarning, RouterSetup};
use fwdlab_router::firewall::SharedFirewall;
use fwdlab_router::path::harvest::Pool;
use fwdlab_router::path::{Config, HostRate, Rate};
use std::sync::Arc;

/// Maximum number of worker threads.
const WORKERS_MAX: u16 = 64;

/// A router that is read and built, without ports and threads.
pub(super) struct Prepared {
    pub(super) routing: Routing,
    pub(super) interfaces: Vec<NamedInterface>,
    pub(super) wall: Option<Arc<SharedFirewall>>,
    pub(super) pool: Option<Arc<Pool>>,
    pub(super) config: Config,
    /// Facts about the tables.
    pub(super) facts: Vec<(String, String)>,
    /// Parts of files that are left out.
    pub(super) warnings: Vec<FileWarning>,
}

/// Reads and builds everything that needs no privileges.
pub(super) fn prepare(setup: &RouterSetup, open: &[NamedInterface]) -> anyhow::Result<Prepared> {
    if !(1..=WORKERS_MAX).contains(&setup.workers) {
        return Err(mistake(format!(
            "workers = {}: a router has 1 to {WORKERS_MAX}",
            setup.workers
        )));
    }
    let mut tables = tables::build(setup)?;
    let mut interfaces = interfaces::read(setup, open)?;
    host::names(setup)?;
    drop_log::setting(setup)?;
    let host_ports = host::ports(setup);
    for (named, _) in interfaces.iter_mut().zip(&host_ports).filter(|(_, port)| port.is_some()) {
        interfaces::add_link_local(&mut named.interface);
    }
    let advertising = setup.interfaces.iter().zip(&mut interfaces);
    for (_, named) in advertising.filter(|(entry, _)| entry.advertise.is_some()) {
        interfaces::add_link_local(&mut named.interface);
    }
    let advertiser = advertise::read(setup, &interfaces)?;
    let wall = firewall::shared(setup, &interfaces)?;
    let pool = setup.entropy_harvest.then(|| Arc::new(Pool::new()));
    let facts = std::mem::take(&mut tables.facts);
    let mut warnings = std::mem::take(&mut tables.warnings);
    warnings.extend(firewall::shadowed(setup, &interfaces)?);
    let neighbours = interfaces::neighbours(setup, &interfaces, &tables.next_hops)?;
    let host_rate = setup.host.as_ref().map_or(HostRate::default(), |host| {
        HostRate(Rate { per_second: host.pps, burst: (host.pps / 10).max(1) })
    });
    let config = Config {
        path: setup.path,
        redirects: setup.icmp_redirect,
        harvest: pool.clone(),
        reverse_paths: interfaces::reverse_paths(setup),
        neighbours: neighbours.clone(),
        interfaces: interfaces.iter().map(|named| named.interface.clone()).collect(),
        errors: Rate { per_second: setup.icmp_errors_pps, ..Rate::default() },
        host_ports,
        host_rate,
        advertiser,
        ..Config::default()
    };
    let routing = Routing::new(tables, neighbours, interfaces.clone());
    Ok(Prepared { routing, interfaces, wall, pool, config, facts, warnings })
}
