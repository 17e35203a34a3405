//! Haft's programs that the suite is run against: a server with the suite's test tools, and a client for its scenarios.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::suite::kill_group;
use crate::workspace::Workspace;

const SERVER: &str = "conformance-server";
const CLIENT: &str = "conformance-client";
const START_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) struct Fixtures {
    server: PathBuf,
    pub(super) client: PathBuf,
}

/// A running server, killed when it is dropped.
pub(super) struct Running {
    child: Child,
    pub(super) url: String,
}

impl Fixtures {
    pub(super) fn build() -> Result<Self, String> {
        let workspace = Workspace::load()?;
        let package = workspace.package_with("example", SERVER)?;
        let built = Command::new("cargo")
            .args(["build", "-p", package, "--examples"])
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .output();
        let built = built.map_err(|error| format!("cargo could not be started: {error}"))?;
        if !built.status.success() {
            return Err(format!("{package} does not build"));
        }
        let messages = String::from_utf8_lossy(&built.stdout);
        let find = |name: &str| {
            executable(&messages, name).ok_or_else(|| format!("{package} has no program {name}"))
        };
        Ok(Self { server: find(SERVER)?, client: find(CLIENT)? })
    }

    /// Starts the server on a free port and waits until it prints its address.
    pub(super) fn serve(&self, log: &Path) -> Result<Running, String> {
        let failed = |error: std::io::Error| format!("{SERVER}: {error}");
        let log = File::options().create(true).append(true).open(log).map_err(failed)?;
        let mut child = Command::new(&self.server)
            .args(["--port", "0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let stdout = child.stdout.take();
        let mut running = Running { child, url: String::new() };
        let (sender, receiver) = mpsc::channel();
        std::thread::spawn(move || {
            // Reads to EOF, so that the server never blocks on a full pipe.
            for line in
                stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok)
            {
                let _ = sender.send(line);
            }
        });
        let first = receiver.recv_timeout(START_TIMEOUT);
        let first =
            first.map_err(|_| format!("{SERVER} printed no address within {} s", START_TIMEOUT.as_secs()))?;
        let url = first.strip_prefix("listening on ").map(str::trim);
        let url = url.ok_or_else(|| format!("{SERVER} printed `{first}` instead of its address"))?;
        url.clone_into(&mut running.url);
        Ok(running)
    }
}

impl Running {
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.ended().is_none() {
            kill_group(&mut self.child);
        }
    }
}

/// The path of a built program in cargo's messages.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        let is_named = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
        is_named.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_program_is_found_in_the_messages() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"conformance-server","kind":["lib"]},"executable":null}"#,
            "\nnot json\n",
            r#"{"reason":"compiler-artifact","target":{"name":"conformance-server","kind":["example"]},"executable":"/t/examples/conformance-server"}"#,
        );
        assert_eq!(
            executable(messages, SERVER).as_deref(),
            Some(Path::new("/t/examples/conformance-server"))
        );
        assert_eq!(executable(messages, CLIENT), None);
    }
}
