//! Counts a kernel in its states: under the commands of `--under`, and again after each change.

use super::Arguments;
use super::state::State;
use crate::command::counted_guest::{CountedGuest, GuestOptions, Subject};
use crate::progress::Stage;
use anyhow::Result;

/// Boots a kernel once and counts: under the commands of `--under`, and again after each change.
///
/// # Errors
/// If the guest doesn't boot, a command fails, or nothing is forwarded.
pub(super) fn count(
    arguments: &Arguments,
    subject: &Subject,
    options: GuestOptions<'_>,
    input: &str,
) -> Result<Vec<State>> {
    let mut stage = Stage::new();
    stage.begin(&format!("booting {}", subject.name));
    let guest = CountedGuest::boot(subject, options, arguments.traffic.family)?;
    let question = arguments.traffic.question();
    for command in &arguments.under {
        guest.run(command, input)?;
    }
    let changes = arguments.change.iter().map(Some);
    let mut states = Vec::new();
    for change in std::iter::once(None).chain(changes) {
        if let Some(command) = change {
            guest.run(command, input)?;
        }
        let after = change.map_or(String::new(), |change| format!(" after `{change}`"));
        stage.begin(&format!("counting {}{after}", guest.release));
        let boot = guest.count(&question, &mut |burst| match burst {
            None => stage.detail("warming up"),
            Some(burst) => stage.detail(&format!("burst {burst} of {}", question.bursts)),
        })?;
        states.push(State {
            file: subject.name.clone(),
            change: change.cloned(),
            release: guest.release.clone(),
            build: guest.build.clone(),
            boots: vec![boot],
        });
    }
    Ok(states)
}
