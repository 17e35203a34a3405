//! A workspace, a ledger and a runtime that speaks one dialect.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::disallowed_methods, reason = "tests look at the machine from outside")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use haft::{Builder, CallResult, Dialect, ErrorKind, Runtime, Value};
use tempfile::TempDir;

/// A workspace, a ledger and a runtime.
pub(crate) struct Stage {
    folder: TempDir,
    home: TempDir,
    pub(crate) haft: Runtime,
}

impl Stage {
    pub(crate) fn of(dialect: Dialect) -> Self {
        Self::with(|builder| builder.dialect(dialect))
    }

    /// Built as `how` says, on a workspace and a ledger of its own.
    pub(crate) fn with(how: impl FnOnce(Builder) -> Builder) -> Self {
        let (folder, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let haft = how(Runtime::builder().workspace(folder.path()).home(home.path())).build().unwrap();
        Self { folder, home, haft }
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        self.path(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    /// Makes a call. A result whose schema is declared has to fit it.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> CallResult {
        let done = self.haft.call(tool, arguments).await;
        let defined = self.haft.definitions().into_iter().find(|defined| defined.name == tool);
        let schema = defined.and_then(|defined| defined.output_schema);
        assert_eq!(done.output.whole, schema.is_some() && !done.output.is_error(), "{tool}");
        if let (Some(schema), true) = (schema, done.output.whole) {
            let value = done.output.structured.as_ref().unwrap();
            let misfit = jsonschema::draft202012::validate(&schema, value).err();
            assert!(misfit.is_none(), "{tool}: {}", misfit.unwrap());
        }
        done
    }

    /// The text of a call that succeeds.
    pub(crate) async fn text(&self, tool: &str, arguments: Value) -> String {
        let output = self.call(tool, arguments).await.output;
        assert_eq!(output.error_kind, None, "{}", output.as_text());
        output.as_text()
    }

    /// The one JSON value of a call that succeeds: the same in its text and for programs.
    pub(crate) async fn value(&self, tool: &str, arguments: Value) -> Value {
        let output = self.call(tool, arguments).await.output;
        assert_eq!(output.error_kind, None, "{}", output.as_text());
        let value: Value = serde_json::from_str(&output.as_text()).unwrap();
        assert_eq!(output.structured.as_ref(), Some(&value));
        value
    }

    /// How a call fails.
    pub(crate) async fn fails(&self, tool: &str, arguments: Value) -> (ErrorKind, String) {
        let output = self.call(tool, arguments).await.output;
        (output.error_kind.unwrap(), output.as_text())
    }
}

/// The names of an object's fields, in order.
pub(crate) fn fields(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
