//! A workspace with somebody's files and a skill, a home without any, and Haft served over HTTP.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::house::{House, interrupt};

/// How long something may take that comes at once where all is well.
const PATIENCE: Duration = Duration::from_mins(1);

/// A house whose user has a home of their own.
pub(crate) struct Stage {
    pub(crate) house: House,
    user: TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { house: House::new(), user: tempfile::tempdir().unwrap() }
    }

    /// A file of the workspace, absolute.
    pub(crate) fn path(&self, name: &str) -> String {
        self.house.path(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        Path::new(&self.path(name)).exists()
    }

    /// The command with nothing of this machine's user but what the test gives.
    pub(crate) fn alone(&self, mut command: Command) -> Command {
        command.current_dir(self.house.root()).env("HOME", self.user.path()).stdin(Stdio::null());
        command.env("HAFT_HOME", self.house.home()).env("HAFT_CONFIG", self.house.config());
        command
    }

    pub(crate) fn haft(&self, args: &[&str]) -> String {
        let ran = self.alone(self.house.command(args)).output().unwrap();
        let (said, complaints) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
        assert!(ran.status.success(), "{args:?}: {said}{complaints}");
        said.into_owned()
    }

    /// The receipts of this workspace, the oldest first.
    pub(crate) fn receipts(&self) -> Vec<Value> {
        let said = self.haft(&["log", "--json", "--limit", "1000"]);
        let mut all: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        all.reverse();
        all
    }

    /// Serves over HTTP, at a port that is free and with a token that is new.
    pub(crate) fn serve(&self, flags: &[&str]) -> Served {
        let args = [&["mcp", "--http", "127.0.0.1:0"], flags].concat();
        let mut child = self.alone(self.house.command(&args)).stderr(Stdio::piped()).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let (mut url, mut token, mut said) = (None, None, String::new());
        while url.is_none() || token.is_none() {
            let mut line = String::new();
            assert!(errors.read_line(&mut line).unwrap() > 0, "`haft mcp --http` ended: {said}");
            let word = |before: &str| line.trim().strip_prefix(before).map(str::to_owned);
            url = url.or_else(|| word("listening on "));
            token = token.or_else(|| word("clients need the header: Authorization: Bearer "));
            said += &line;
        }
        let drained = std::thread::spawn(move || {
            let mut rest = String::new();
            let _ = errors.read_to_string(&mut rest);
            rest
        });
        Served { child, url: url.unwrap(), token: token.unwrap(), drained: Some(drained) }
    }
}

/// Haft, serving over HTTP.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    pub(crate) token: String,
    drained: Option<JoinHandle<String>>,
}

impl Served {
    /// Presses Ctrl-C; it must end well.
    pub(crate) fn ends(mut self) {
        interrupt(self.child.id());
        let ended = self.child.wait().unwrap();
        let said = self.drained.take().unwrap().join().unwrap();
        assert!(ended.success(), "{ended}: {said}");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Only where the test has failed is it still there.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that will happen.
pub(crate) fn until(what: &str, happened: impl Fn() -> bool) {
    let limit = Instant::now() + PATIENCE;
    while !happened() {
        assert!(Instant::now() < limit, "it never came about that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
