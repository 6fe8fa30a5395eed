//! Errors at the edge: the command line's own, and how all are printed.

use crate::exit::Exit;
use crate::terminal;
use fwdlab_model::Diagnostics;

/// What only the command line can meet. The text names the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The user's mistake.
    #[error("{0}")]
    Mistake(String),
    /// The environment lacks something.
    #[error("{0}")]
    Environment(String),
    /// Stopped by the user; says how to go on.
    #[error("{0}")]
    Interrupted(String),
}

/// Prints an error on standard error, as its exit code asks.
pub(crate) fn print(error: &anyhow::Error, exit: Exit) {
    if exit == Exit::Done {
        return;
    }
    if let Some(faults) = error.downcast_ref::<Diagnostics>() {
        terminal::note(faults.render(true).trim_end());
        return;
    }
    if exit == Exit::Interrupted {
        terminal::note(&text(error));
        return;
    }
    terminal::error(&text(error));
}

/// The error with its causes, leaving out those that it quotes already.
fn text(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |mut text, cause| {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&cause);
        }
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn causes_are_told_once() {
        let inner = || io::Error::other("disk on fire");
        let outer = CliError::Mistake("can't write x: disk on fire".into());
        assert_eq!(
            text(&anyhow::Error::from(inner()).context(outer)),
            "can't write x: disk on fire"
        );
        assert_eq!(text(&anyhow::Error::from(inner()).context("run 3")), "run 3: disk on fire");
    }
}
