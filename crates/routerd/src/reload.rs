//! Replaces the set-up while packets are forwarded.
//!
//! Everything is built next to the running router. Each worker then switches to its new engine
//! between two batches and takes over waiting packets, known neighbours and the firewall's states.
//! Interfaces stay open; neither they nor the way they are opened can change.

use super::firewall::rules;
use super::prepared::{Prepared, prepare};
use super::{Running, drop_log, mistake};
use fwdlab_model::router::{InterfaceSetup, RouterSetup};
use fwdlab_packet::forwarding::ForwardingPath::Xdp;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time that workers have to switch.
const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    /// Switches to `setup`. On error nothing changes. Returns a message about workers that have not
    /// switched yet.
    ///
    /// # Errors
    /// Errors of `setup`, and changes that a running router cannot make.
    pub fn reload(&mut self, setup: &RouterSetup) -> anyhow::Result<Option<String>> {
        can_follow(&self.setup, setup)?;
        let is_other = |file: &&String| Path::new(file).metadata().is_ok_and(|it| !it.is_file());
        if let Some(file) = setup.routes_file.as_ref().filter(is_other) {
            // A pipe could stop this thread.
            return Err(mistake(format!("{file}: a running router reads regular files only")));
        }
        let open = self.locked().interfaces().to_vec();
        let Prepared { mut routing, interfaces, mut wall, pool, mut config, mut facts, warnings } =
            prepare(setup, &open)?;
        // States are kept if both set-ups have rules.
        if let (Some(before), Some((rules, states))) = (&self.wall, rules(setup, &interfaces)?) {
            let renewed = before.with_other_rules(&rules, &states);
            wall = Some(renewed.map_err(|error| mistake(format!("firewall: {error}")))?);
        }
        let mut current = self.locked();
        routing.neighbours.learn_from(&current.neighbours);
        config.neighbours = routing.neighbours.clone();
        (config.flows, routing.flows) = (self.flows.clone(), self.flows.clone());
        config.drop_log = self.drop_log.clone();
        routing.follow(current.kernel().clone()).map_err(anyhow::Error::msg)?;
        let engines = self.engines(&config, &routing, wall.as_ref())?;
        let advertiser = config.advertiser.clone();
        if let (Some(before), Some(after)) = (&self.advertiser, &advertiser) {
            after.follow(before);
        }
        // From here on nothing can fail.
        *current = routing;
        drop(current);
        let before: Vec<u64> = self.orders.iter().map(|orders| orders.taken()).collect();
        for (orders, engine) in self.orders.iter().zip(engines) {
            orders.replace(engine);
        }
        let begin = Instant::now();
        // Workers that have ended never switch.
        let workers = || self.orders.iter().zip(&self.threads).zip(&before).enumerate();
        let late = || {
            workers().filter(|(_, ((orders, thread), before))| {
                orders.taken() <= **before && !thread.is_finished()
            })
        };
        while late().next().is_some() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(log) = &self.drop_log {
            log.set_rules(drop_log::rules(setup));
        }
        let late: Vec<String> = late().map(|(number, _)| number.to_string()).collect();
        // The ports have not changed.
        facts.extend(self.facts.drain(..).filter(|(name, _)| name.starts_with("interface ")));
        (self.facts, self.wall, self.setup) = (facts, wall, setup.clone());
        (self.pool, self.advertiser, self.warnings) = (pool, advertiser, warnings);
        self.reloads += 1;
        Ok((!late.is_empty()).then(|| {
            format!(
                "worker {} still uses the earlier set-up: it has been busy for {PATIENCE:?}",
                late.join(", ")
            )
        }))
    }
}

/// Refuses changes that need a restart.
fn can_follow(before: &RouterSetup, after: &RouterSetup) -> anyhow::Result<()> {
    let restart =
        |what: &str| mistake(format!("{what} can't change while the router runs: restart it"));
    let [old, new] = [before, after]
        .map(|setup| (setup.workers, &setup.cpus, setup.rss, &setup.circuits, &setup.host));
    for (is_same, what) in [
        (old.0 == new.0, "workers"),
        (old.1 == new.1, "cpus"),
        (old.2 == new.2, "rss"),
        (old.3 == new.3, "circuits"),
        (old.4 == new.4, "[host]"),
        (before.drop_log == after.drop_log, "drop_log"),
        ((before.path == Xdp) == (after.path == Xdp), "path from or to xdp"),
        (before.interfaces.len() == after.interfaces.len(), "the number of interfaces"),
    ] {
        if !is_same {
            return Err(restart(what));
        }
    }
    for (old, new) in before.interfaces.iter().zip(&after.interfaces) {
        // The host also has these addresses, and can no longer be changed.
        let addresses = match after.host {
            Some(_) => old.addresses.clone(),
            None => new.addresses.clone(),
        };
        let unchanged = InterfaceSetup { reverse_path: new.reverse_path, addresses, ..old.clone() };
        if unchanged != *new {
            return Err(restart(&format!(
                "interface {}: all but reverse_path (and addresses, without a [host])",
                old.name
            )));
        }
    }
    Ok(())
}
