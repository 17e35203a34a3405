//! A house with a home of its own, and outputs without what differs from run to run.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use haft_cli::servers::{ServerEntry, ServerOrigin, TrustStore};
use serde_json::Value;
use tempfile::TempDir;

use crate::house::{House, Ran};

/// A workspace, a ledger, settings and a home.
pub(crate) struct Stage {
    pub(crate) house: House,
    user: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { house: House::new(), user: tempfile::tempdir().unwrap() }
    }

    /// A file in the user's home.
    pub(crate) fn at_home(&self, name: &str) -> PathBuf {
        self.user.path().join(name)
    }

    /// Writes a file in the user's home, with the folders above it.
    pub(crate) fn plant(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.at_home(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// What the user's haft.toml says.
    pub(crate) fn settings(&self) -> String {
        std::fs::read_to_string(self.house.config()).unwrap_or_default()
    }

    pub(crate) fn set(&self, text: &str) {
        std::fs::write(self.house.config(), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = self.house.command(args);
        command.env("HOME", self.user.path()).env("PATH", "/usr/bin:/bin");
        for name in ["XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    /// Runs it, and it must succeed.
    pub(crate) fn done(&self, args: &[&str]) -> Ran {
        let ran = self.haft(args);
        assert_eq!(ran.code, 0, "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran
    }

    /// All that a run says, without what differs from run to run.
    pub(crate) fn said(&self, args: &[&str]) -> String {
        let Ran { code, stdout, stderr } = self.haft(args);
        let mut text = format!("$ haft {}\n", args.join(" "));
        if !stdout.is_empty() {
            let _ = writeln!(text, "{}", stdout.trim_end());
        }
        if !stderr.is_empty() {
            let _ = writeln!(text, "--- stderr\n{}", stderr.trim_end());
        }
        let _ = writeln!(text, "--- exit {code}");
        self.same(&text)
    }

    /// The text with the places of this run replaced by names.
    pub(crate) fn same(&self, text: &str) -> String {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let config = self.house.config().parent().unwrap().to_owned();
        let mut text = text.to_owned();
        for (path, name) in [
            (PathBuf::from(env!("CARGO_BIN_EXE_haft")), "/bin/haft"),
            (config, "/config"),
            (self.user.path().to_owned(), "/home"),
            (self.house.root().to_owned(), "/work"),
            (self.house.home().to_owned(), "/state"),
        ] {
            text = text.replace(real(&path).to_str().unwrap(), name).replace(path.to_str().unwrap(), name);
        }
        text
    }

    pub(crate) fn trust(&self) -> TrustStore {
        TrustStore::new(self.house.home())
    }

    /// The server of that name as the project's file has it.
    pub(crate) fn of_project(&self, name: &str) -> ServerEntry {
        let file: Value = serde_json::from_str(&self.house.read(".mcp.json")).unwrap();
        let origin = ServerOrigin::Project(self.house.path(".mcp.json"));
        ServerEntry::read(name, &file["mcpServers"][name], origin, &|_| None).unwrap().unwrap()
    }
}
