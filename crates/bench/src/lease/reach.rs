//! The hosts of a laboratory, as far as they can be reached.

use crate::error::BenchError;
use crate::host::SshSettings;
use crate::lab::reached::Reached;
use fwdlab_model::Lab;

/// Connects to every host at the same time; in the order of the file.
pub(super) fn reach(lab: &Lab, settings: &SshSettings) -> Vec<Result<Reached, BenchError>> {
    std::thread::scope(|scope| {
        let hosts = lab.hosts.iter();
        let asked: Vec<_> =
            hosts.map(|host| scope.spawn(move || Reached::connect(host, settings))).collect();
        let joined = asked.into_iter().map(|thread| thread.join());
        joined.map(|one| one.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

/// The laboratory has a host of this name.
///
/// # Errors
/// Names those that it has.
pub(super) fn is_host(lab: &Lab, name: &str) -> Result<(), BenchError> {
    if lab.host(name).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = lab.hosts.iter().map(|host| host.name.as_str()).collect();
    let (lab, names) = (&lab.name, names.join(", "));
    Err(BenchError::Refused(format!(
        "the laboratory {lab} has no host {name}\n  next step: name one of {names}"
    )))
}
