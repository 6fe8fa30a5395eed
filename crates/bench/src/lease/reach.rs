//! Parallel access to the hosts of a laboratory.

use crate::error::BenchError;
use crate::host::SshSettings;
use crate::host::connected::ConnectedHost;
use fwdlab_model::Lab;
use fwdlab_model::lab::LabHost;

/// Connects to these hosts in parallel and runs `ask` for each; results are in the order of the
/// hosts. Connecting, querying and disconnecting use one thread per host: a shell that runs all
/// commands of a host (`one_shell`) ends with the thread that started it.
pub(super) fn reach<'a, T: Send>(
    hosts: impl Iterator<Item = &'a LabHost>,
    settings: &SshSettings,
    query: impl Fn(&LabHost, Result<&ConnectedHost, BenchError>) -> T + Sync,
) -> Vec<T> {
    let query = &query;
    let one = move |host: &'a LabHost| match ConnectedHost::connect(host, settings) {
        Ok(reached) => query(host, Ok(&reached)),
        Err(error) => query(host, Err(error)),
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = hosts.map(|host| scope.spawn(move || one(host))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// Finds a host of the laboratory by name.
///
/// # Errors
/// Names the existing hosts.
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
