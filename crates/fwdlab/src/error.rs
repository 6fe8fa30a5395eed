//! Errors of the command line.

/// An error of the command line. The message names the next step.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// A user error.
    #[error("{0}")]
    Mistake(String),
    /// The environment is missing something.
    #[error("{0}")]
    Environment(String),
    /// /// Stopped by the user; the message contains the command that continues.
    #[error("{0}")]
    Interrupted(String),
}
