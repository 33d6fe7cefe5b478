//! One error type for the whole crate. Each variant has a stable [`Error::code`] that JavaScript sees
//! as `error.code`; the message says what is wrong and what the user can do about it.

/// The result of every fallible function of the crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong, by what the user can do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The file is intact but of a kind that Sterna does not run (architecture, encoding, version).
    #[error("{0}")]
    UnsupportedFormat(String),
    /// The file contradicts itself or its format: truncated, lying sizes, missing tensors.
    #[error("{0}")]
    CorruptFile(String),
    /// Memory could not be allocated; the message has the numbers.
    #[error("{0}")]
    OutOfMemory(String),
    /// The prompt, or prompt plus requested tokens, does not fit the context window.
    #[error("{0}")]
    ContextOverflow(String),
    /// There is no GPU that can be used, or it cannot run the kernels.
    #[error("{0}")]
    UnsupportedBrowser(String),
    /// The GPU was taken away; everything on it is lost.
    #[error("{0}")]
    DeviceLost(String),
    /// A parameter of the call is wrong.
    #[error("{0}")]
    InvalidArgument(String),
}

impl Error {
    /// The stable, machine-readable name of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Error::UnsupportedFormat(_) => "unsupported_format",
            Error::CorruptFile(_) => "corrupt_file",
            Error::OutOfMemory(_) => "out_of_memory",
            Error::ContextOverflow(_) => "context_overflow",
            Error::UnsupportedBrowser(_) => "unsupported_browser",
            Error::DeviceLost(_) => "device_lost",
            Error::InvalidArgument(_) => "invalid_argument",
        }
    }

    /// The same error, saying which tensor it is about.
    pub(crate) fn in_tensor(self, name: &str) -> Self {
        let told = |message: String| format!("tensor {name:?}: {message}");
        match self {
            Error::UnsupportedFormat(message) => Error::UnsupportedFormat(told(message)),
            Error::CorruptFile(message) => Error::CorruptFile(told(message)),
            Error::OutOfMemory(message) => Error::OutOfMemory(told(message)),
            Error::ContextOverflow(message) => Error::ContextOverflow(told(message)),
            Error::UnsupportedBrowser(message) => Error::UnsupportedBrowser(told(message)),
            Error::DeviceLost(message) => Error::DeviceLost(told(message)),
            Error::InvalidArgument(message) => Error::InvalidArgument(told(message)),
        }
    }
}

/// `unsupported!("…")` builds an [`Error::UnsupportedFormat`] like `format!`.
macro_rules! unsupported {
    ($($arg:tt)*) => { $crate::Error::UnsupportedFormat(format!($($arg)*)) };
}
/// `corrupt!("…")` builds an [`Error::CorruptFile`] like `format!`.
macro_rules! corrupt {
    ($($arg:tt)*) => { $crate::Error::CorruptFile(format!($($arg)*)) };
}
/// `invalid!("…")` builds an [`Error::InvalidArgument`] like `format!`.
macro_rules! invalid {
    ($($arg:tt)*) => { $crate::Error::InvalidArgument(format!($($arg)*)) };
}
pub(crate) use {corrupt, invalid, unsupported};
