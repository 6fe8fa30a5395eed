//! Another set-up while packets are forwarded.
//!
//! Everything is built beside the router that runs; then each worker takes its new one between
//! two batches, with what waits, what is known of neighbours, and the firewall's states. What
//! is open stays open: interfaces and how they are opened can't change.

use super::{Prepared, Running, mistake, prepare, rules};
use fwdlab_model::router::{InterfaceSetup, RouterSetup};
use std::time::{Duration, Instant};

/// Time that workers have to take a router.
const PATIENCE: Duration = Duration::from_secs(5);

impl Running {
    /// Goes on as `setup` says. With an error everything stays as it was. What comes back is
    /// said of workers that haven't followed yet.
    ///
    /// # Errors
    /// What is wrong with `setup`, or what can't change in a router that runs.
    pub fn reload(&mut self, setup: &RouterSetup) -> anyhow::Result<Option<String>> {
        can_follow(&self.setup, setup)?;
        let Prepared { mut routing, interfaces, mut wall, pool, mut config, mut facts } =
            prepare(setup)?;
        // States are kept as long as both have rules.
        if let (Some(before), Some((rules, states))) = (&self.wall, rules(setup, &interfaces)?) {
            let renewed = before.with_other_rules(&rules, &states);
            wall = Some(renewed.map_err(|error| mistake(format!("firewall: {error}")))?);
        }
        let mut current = self.locked();
        routing.neighbours.learn_from(&current.neighbours);
        config.neighbours = routing.neighbours.clone();
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
        // Those that have ended take nothing any more.
        let workers = || self.orders.iter().zip(&self.threads).zip(&before).enumerate();
        let late = || {
            workers().filter(|(_, ((orders, thread), before))| {
                orders.taken() <= **before && !thread.is_finished()
            })
        };
        while late().next().is_some() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let late: Vec<String> = late().map(|(number, _)| number.to_string()).collect();
        // What the ports are has not changed.
        facts.extend(self.facts.drain(..).filter(|(name, _)| name.starts_with("interface ")));
        (self.facts, self.wall, self.setup) = (facts, wall, setup.clone());
        (self.pool, self.advertiser) = (pool, advertiser);
        self.reloads += 1;
        Ok((!late.is_empty()).then(|| {
            format!(
                "worker {} goes on as before, until it comes to it: it has been busy for {PATIENCE:?}",
                late.join(", ")
            )
        }))
    }
}

/// Says what can't change.
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
        (before.interfaces.len() == after.interfaces.len(), "the number of interfaces"),
    ] {
        if !is_same {
            return Err(restart(what));
        }
    }
    for (old, new) in before.interfaces.iter().zip(&after.interfaces) {
        // Addresses are the host's as well, and it is nobody's to change any more.
        let addresses = match after.host {
            Some(_) => old.addresses.clone(),
            None => new.addresses.clone(),
        };
        let kept = InterfaceSetup { reverse_path: new.reverse_path, addresses, ..old.clone() };
        if kept != *new {
            return Err(restart(&format!(
                "interface {}: all but reverse_path (and addresses, without a [host])",
                old.name
            )));
        }
    }
    Ok(())
}
