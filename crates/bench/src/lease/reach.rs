//! The hosts of a laboratory, as far as they can be reached.

use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use fwdlab_model::lab::LabHost;

/// Connects to these hosts at the same time, and asks each what is to be asked; answers are in
/// their order. Each is connected to, asked and left in a thread of its own: a shell over which
/// all commands of a host run (`one_shell`) ends with the thread that began it.
pub(super) fn reach<'a, T: Send>(
    hosts: impl Iterator<Item = &'a LabHost>,
    settings: &SshSettings,
    ask: impl Fn(&LabHost, Result<&ConnectedHost, BenchError>) -> T + Sync,
) -> Vec<T> {
    let ask = &ask;
    let one = move |host: &'a LabHost| match ConnectedHost::connect(host, settings) {
        Ok(reached) => ask(host, Ok(&reached)),
        Err(error) => ask(host, Err(error)),
    };
    std::thread::scope(|scope| {
        let asked: Vec<_> = hosts.map(|host| scope.spawn(move || one(host))).collect();
        let joined = asked.into_iter().map(|thread| thread.join());
        joined.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The laboratory has a host of this name.
///
/// # Errors
/// Names those that it has.
pub(super) fn is_host<'a>(lab: &'a Lab, name: &str) -> Result<&'a LabHost, BenchError> {
    if let Some(host) = lab.host(name) {
        return Ok(host);
    }
    let names: Vec<&str> = lab.hosts.iter().map(|host| host.name.as_str()).collect();
    let (lab, names) = (&lab.name, names.join(", "));
    Err(BenchError::Refused(format!(
        "the laboratory {lab} has no host {name}\n  next step: name one of {names}"
    )))
}
