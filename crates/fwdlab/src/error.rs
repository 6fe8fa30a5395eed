//! The command line's own errors.

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
