//! Routers of all kinds behind one trait.

use crate::fib::{V4, V6};
use crate::firewall::SharedFirewall;
use crate::path::{Config, ConfigError, Firewall, HandedOver, Lookup, NoFirewall, Router, Tally};
use fwdlab_netio::frame::{Batch, Frame};
use std::sync::Arc;

/// A router of any kind, as workers use it.
pub trait Engine: Send {
    /// As [`Router::process`].
    fn process(&mut self, batch: &mut [Frame], now_ns: u64);
    /// As [`Router::originate`].
    fn originate(&mut self, batch: &mut [Frame]);
    /// As [`Router::take_emitted`].
    fn take_emitted(&mut self, work: &mut Batch) -> usize;
    /// As [`Router::no_room`].
    fn no_room(&mut self, packets: u64);
    /// As [`Router::extra_lost`].
    fn extra_lost(&mut self, frames: u64);
    /// As [`Router::flush`].
    fn flush(&mut self);
    /// As [`Router::rest`].
    fn rest(&mut self, now_ns: u64) -> bool;
    /// As [`Router::end`].
    fn end(&mut self);
    /// As [`Router::hand_over`].
    fn hand_over(&mut self) -> HandedOver;
    /// As [`Router::take_over`].
    fn take_over(&mut self, before: HandedOver, now_ns: u64);
}

impl<W: Firewall> Engine for Router<W> {
    fn process(&mut self, batch: &mut [Frame], now_ns: u64) {
        Router::process(self, batch, now_ns);
    }
    fn originate(&mut self, batch: &mut [Frame]) {
        Router::originate(self, batch);
    }
    fn take_emitted(&mut self, work: &mut Batch) -> usize {
        Router::take_emitted(self, work)
    }
    fn no_room(&mut self, packets: u64) {
        Router::no_room(self, packets);
    }
    fn extra_lost(&mut self, frames: u64) {
        Router::extra_lost(self, frames);
    }
    fn flush(&mut self) {
        Router::flush(self);
    }
    fn rest(&mut self, now_ns: u64) -> bool {
        Router::rest(self, now_ns)
    }
    fn end(&mut self) {
        Router::end(self);
    }
    fn hand_over(&mut self) -> HandedOver {
        Router::hand_over(self)
    }
    fn take_over(&mut self, before: HandedOver, now_ns: u64) {
        Router::take_over(self, before, now_ns);
    }
}

/// A router that uses these tables, behind `firewall` if there is one.
///
/// # Errors
/// If `config` is invalid.
pub fn engine(
    config: &Config,
    inet: Arc<dyn Lookup<V4>>,
    inet6: Arc<dyn Lookup<V6>>,
    firewall: Option<&Arc<SharedFirewall>>,
    tally: Tally,
) -> Result<Box<dyn Engine>, ConfigError> {
    Ok(match firewall {
        None => Box::new(Router::new(config, inet, inet6, NoFirewall, tally)?),
        Some(shared) => Box::new(Router::new(config, inet, inet6, shared.filter(), tally)?),
    })
}
