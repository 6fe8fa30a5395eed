//! Errors of the router's process.

/// An error with its cause for the exit code.
#[derive(Debug, thiserror::Error)]
pub enum RouterdError {
    /// A user error.
    #[error("{0}")]
    Mistake(String),
    /// The environment is missing something.
    #[error("{0}")]
    Environment(String),
}
