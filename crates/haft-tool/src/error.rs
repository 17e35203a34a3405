//! One error type, and one table with everything about each of its kinds.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One row per kind, so that a new kind cannot miss a column.
macro_rules! kinds {
    ($( $(#[$doc:meta])* $variant:ident: $name:literal, loom $loom:literal, clawft $clawft:literal, retry $retry:literal, $advice:literal; )*) => {
        /// The kind of a failure, with its name in every dialect.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ErrorKind { $( $(#[$doc])* $variant, )* }

        impl ErrorKind {
            /// Every kind, in the order of the table.
            pub const ALL: &[Self] = &[$( Self::$variant, )*];

            /// The name on Haft's own wires (`error_kind` in JSON).
            pub const fn name(self) -> &'static str { match self { $( Self::$variant => $name, )* } }

            /// The variant's name in the `loom` dialect.
            pub const fn loom_name(self) -> &'static str { match self { $( Self::$variant => $loom, )* } }

            /// The variant's name in the `clawft` dialect.
            pub const fn clawft_name(self) -> &'static str { match self { $( Self::$variant => $clawft, )* } }

            /// Whether the same call may succeed if it is simply repeated.
            pub const fn retry_can_help(self) -> bool { match self { $( Self::$variant => $retry, )* } }

            /// What the model is told to do next, unless the error itself says something better.
            pub const fn advice(self) -> &'static str { match self { $( Self::$variant => $advice, )* } }
        }
    };
}

kinds! {
    /// No tool of that name is registered.
    NotFound: "not_found", loom "NotFound", clawft "NotFound", retry false, "Use one of the listed tools.";
    /// The arguments do not fit the tool's schema or its rules.
    InvalidArguments: "invalid_arguments", loom "InvalidArguments", clawft "InvalidArgs", retry false, "Correct the arguments and call again.";
    /// The tool ran and did not succeed.
    ExecutionFailed: "execution_failed", loom "Internal", clawft "ExecutionFailed", retry false, "Read the output before trying again.";
    /// Policy, the scope or the operating system said no.
    PermissionDenied: "permission_denied", loom "Internal", clawft "PermissionDenied", retry false, "Do not try to get around this; choose another way or ask the user.";
    /// The file is not there.
    FileNotFound: "file_not_found", loom "FileNotFound", clawft "FileNotFound", retry false, "Check the path.";
    /// The path is malformed or leads out of what the call may touch.
    InvalidPath: "invalid_path", loom "PathOutsideWorkspace", clawft "InvalidPath", retry false, "Use a path inside the workspace.";
    /// The time limit passed before the work was done.
    Timeout: "timeout", loom "Timeout", clawft "Timeout", retry true, "Allow more time or do less at once.";
    /// The text or cell to act on is not in the file, or is there more than once.
    TargetNotFound: "target_not_found", loom "TargetNotFound", clawft "InvalidArgs", retry false, "Read the file again and use its exact text.";
    /// Another program or call changed the same thing meanwhile.
    Conflict: "conflict", loom "Io", clawft "ExecutionFailed", retry true, "Read the current state and try again.";
    /// The operating system reported a failure.
    Io: "io", loom "Io", clawft "ExecutionFailed", retry true, "";
    /// A value could not be turned into the form it needs.
    Serialization: "serialization", loom "Serialization", clawft "InvalidArgs", retry false, "";
    /// The call was cancelled before it was done.
    Interrupted: "interrupted", loom "Internal", clawft "ExecutionFailed", retry true, "";
    /// A fault in Haft or in the tool itself.
    Internal: "internal", loom "Internal", clawft "ExecutionFailed", retry false, "";
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a call did not do what was asked: a kind for programs, a sentence for the reader.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolError {
    /// Which kind of failure this is.
    pub kind: ErrorKind,
    /// What happened, where, and what to do next; shown to the model and to people.
    pub message: String,
    /// Facts for programs, if there are any beyond the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl ToolError {
    /// An error of `kind` that says `message`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), details: None }
    }

    /// The same error with facts for programs.
    #[must_use]
    pub fn with_details(mut self, details: Value) -> Self {
        self.details = Some(details);
        self
    }

    /// The same error with another message.
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The same error with `context: ` before its message.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        let message = format!("{context}: {}", self.message);
        self.with_message(message)
    }

    /// [`ErrorKind::InvalidArguments`].
    pub fn invalid_arguments(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArguments, message)
    }

    /// [`ErrorKind::InvalidPath`].
    pub fn invalid_path(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidPath, message)
    }

    /// [`ErrorKind::ExecutionFailed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ExecutionFailed, message)
    }

    /// [`ErrorKind::PermissionDenied`].
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::PermissionDenied, message)
    }

    /// [`ErrorKind::Internal`].
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// [`ErrorKind::Io`], or a more precise kind if the operating system's error has one.
    pub fn io(what: impl fmt::Display, error: &std::io::Error) -> Self {
        use std::io::ErrorKind as Os;
        let kind = match error.kind() {
            Os::NotFound => ErrorKind::FileNotFound,
            Os::PermissionDenied | Os::ReadOnlyFilesystem => ErrorKind::PermissionDenied,
            Os::InvalidInput | Os::InvalidFilename => ErrorKind::InvalidPath,
            Os::TimedOut => ErrorKind::Timeout,
            _ => ErrorKind::Io,
        };
        Self::new(kind, format!("{what}: {}", describe(error)))
    }

    /// The text for wires that have no error flag: `Error: …`.
    pub fn as_text(&self) -> String {
        format!("Error: {}", self.message)
    }
}

/// The operating system's words without Rust's ` (os error N)`.
fn describe(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ToolError {}

impl From<serde_json::Error> for ToolError {
    fn from(error: serde_json::Error) -> Self {
        Self::new(ErrorKind::Serialization, error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_a_unique_name_that_serde_agrees_with() {
        let mut seen = std::collections::HashSet::new();
        for kind in ErrorKind::ALL {
            assert!(seen.insert(kind.name()), "{kind} twice");
            assert_eq!(serde_json::to_value(kind).unwrap(), Value::from(kind.name()));
        }
    }

    #[test]
    fn loom_and_clawft_know_each_of_their_own_kinds() {
        let loom: Vec<_> = ErrorKind::ALL.iter().map(|k| k.loom_name()).collect();
        for name in [
            "NotFound",
            "InvalidArguments",
            "Io",
            "Timeout",
            "Internal",
            "TargetNotFound",
            "PathOutsideWorkspace",
            "FileNotFound",
            "Serialization",
        ] {
            assert!(loom.contains(&name), "{name}");
        }
        let clawft: Vec<_> = ErrorKind::ALL.iter().map(|k| k.clawft_name()).collect();
        for name in [
            "NotFound",
            "InvalidArgs",
            "ExecutionFailed",
            "PermissionDenied",
            "FileNotFound",
            "InvalidPath",
            "Timeout",
        ] {
            assert!(clawft.contains(&name), "{name}");
        }
    }

    #[test]
    fn os_errors_keep_their_words_and_find_their_kind() {
        let error = ToolError::io("open /x", &std::io::Error::from_raw_os_error(2));
        assert_eq!(error.kind, ErrorKind::FileNotFound);
        assert_eq!(error.message, "open /x: no such file or directory");
        assert_eq!(error.as_text(), "Error: open /x: no such file or directory");
    }
}
