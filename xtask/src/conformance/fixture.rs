//! Haft's own programs that the suite is run against: a server with the suite's test tools, and a client that plays its scenes.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;

use super::suite::end;

const PACKAGE: &str = "haft-mcp";
const SERVER: &str = "conformance-server";
const CLIENT: &str = "conformance-client";

pub(super) struct Fixtures {
    server: PathBuf,
    pub(super) client: PathBuf,
}

/// A server that runs until it is let go.
pub(super) struct Running {
    child: Child,
    pub(super) url: String,
}

impl Fixtures {
    pub(super) fn build() -> Result<Self, String> {
        let built = Command::new("cargo")
            .args(["build", "--quiet", "-p", PACKAGE, "--bins", "--examples"])
            .arg("--message-format=json-render-diagnostics")
            .stderr(Stdio::inherit())
            .output();
        let built = built.map_err(|error| format!("cargo could not be started: {error}"))?;
        if !built.status.success() {
            return Err(format!("{PACKAGE} does not build"));
        }
        let messages = String::from_utf8_lossy(&built.stdout);
        let find = |name: &str| {
            executable(&messages, name).ok_or_else(|| format!("{PACKAGE} has no program {name}"))
        };
        Ok(Self { server: find(SERVER)?, client: find(CLIENT)? })
    }

    /// Starts the server on a port of its own choice and waits until it says which.
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
        let (said, hear) = mpsc::channel();
        std::thread::spawn(move || {
            // Read to the end, so that a talkative server never waits for us.
            for line in
                stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines()).map_while(Result::ok)
            {
                let _ = said.send(line);
            }
        });
        let first = hear.recv_timeout(Duration::from_secs(30));
        let first = first.map_err(|_| format!("{SERVER} did not say within 30 s where it listens"))?;
        let url = first.strip_prefix("listening on ").map(str::trim);
        let url = url.ok_or_else(|| format!("{SERVER} said `{first}` instead of where it listens"))?;
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
            end(&mut self.child);
        }
    }
}

/// Where cargo says that it put the program.
fn executable(messages: &str, name: &str) -> Option<PathBuf> {
    messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()).find_map(|message| {
        let ours = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
        ours.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_where_cargo_put_it_whether_binary_or_example() {
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
