//! Errors of reading machine code.

/// A file whose machine code can't be compared.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// Not an ELF file, or a damaged one.
    #[error("{name}: not a readable ELF file: {source}")]
    Elf {
        /// The kernel or module.
        name: String,
        /// Reason of the reader.
        source: object::read::Error,
    },
    /// Something in a kernel or module that this crate does not know.
    #[error("{name}: {why}")]
    Unsupported {
        /// The kernel or module.
        name: String,
        /// The missing or unknown thing, with the next step.
        why: String,
    },
}

impl CodeError {
    pub(crate) fn unsupported(name: &str, why: impl Into<String>) -> CodeError {
        CodeError::Unsupported { name: name.to_owned(), why: why.into() }
    }
}
