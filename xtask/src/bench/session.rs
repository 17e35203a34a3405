//! A server that speaks MCP over its standard input and output, and how long its answers take.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::measure::median;
use crate::Done;

/// Calls before the first one that is measured.
const WARM_UP_COUNT: usize = 300;
/// Requests without an answer, where many are sent at once.
const MAX_OPEN_REQUESTS: usize = 64;

pub(super) struct McpSession {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
    last_id: usize,
}

/// The command that serves Haft's tools in a workspace.
pub(super) fn haft_mcp(haft: &Path, home: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(haft);
    command
        .arg("mcp")
        .current_dir(workspace)
        .env("HAFT_HOME", home)
        .env("HAFT_CONFIG", home.join("none.toml"));
    command
}

impl McpSession {
    /// Starts a program without a handshake.
    pub(super) fn spawn(command: &mut Command) -> Result<Self, String> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child without pipes".to_owned());
        };
        Ok(Self { child, input, output: BufReader::new(output), line: String::new(), last_id: 0 })
    }

    /// Starts a server and initializes it with a protocol version that every server here has.
    pub(super) fn start(command: &mut Command) -> Result<Self, String> {
        let mut session = Self::spawn(command)?;
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        }});
        session.send(&format!("{hello}\n"))?;
        session.read_reply()?;
        session.send("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")?;
        Ok(session)
    }

    /// One tool call and how long it took; an error of the tool is an error.
    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Duration, String> {
        let request = self.request(tool, arguments);
        self.exchange(&request)
    }

    /// The median of many calls, one after the other, in milliseconds.
    pub(super) fn median_call(&mut self, tool: &str, arguments: &Value, calls: usize) -> Result<f64, String> {
        let mut times = Vec::with_capacity(WARM_UP_COUNT + calls);
        for _ in 0..WARM_UP_COUNT + calls {
            times.push(self.call(tool, arguments)?);
        }
        Ok(median(&mut times[WARM_UP_COUNT..]))
    }

    /// Milliseconds per call with many requests under way.
    pub(super) fn many_at_once(
        &mut self,
        tool: &str,
        arguments: &Value,
        calls: usize,
    ) -> Result<f64, String> {
        let requests: Vec<String> = (0..calls).map(|_| self.request(tool, arguments)).collect();
        let start = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < calls {
            let more = (MAX_OPEN_REQUESTS - (sent - answered)).min(calls - sent);
            self.send(&requests[sent..sent + more].concat())?;
            sent += more;
            self.read_reply()?;
            answered += 1;
        }
        Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(u32::try_from(calls).unwrap_or(u32::MAX)))
    }

    /// Sends a line, waits for one and returns the time between.
    pub(super) fn exchange(&mut self, request: &str) -> Result<Duration, String> {
        let start = Instant::now();
        self.send(request)?;
        self.read_reply()?;
        let time = start.elapsed();
        if self.line.contains("\"isError\":true") || self.line.contains("\"error\":{") {
            return Err(format!("{request}{}", self.line));
        }
        Ok(time)
    }

    pub(super) fn request(&mut self, tool: &str, arguments: &Value) -> String {
        self.last_id += 1;
        let params = json!({"name": tool, "arguments": arguments});
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": self.last_id, "method": "tools/call", "params": params})
        )
    }

    /// The memory that the server has now, in KiB.
    pub(super) fn memory_kib(&self) -> Option<i64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }

    /// Closes the server's input and waits for its end.
    pub(super) fn end(mut self) {
        drop(self.input);
        let _ = self.child.wait();
    }

    fn send(&mut self, text: &str) -> Done {
        self.input.write_all(text.as_bytes()).map_err(|error| error.to_string())
    }

    /// Reads until a line has a result or an error; notifications are skipped.
    fn read_reply(&mut self) -> Done {
        loop {
            self.line.clear();
            let read = self.output.read_line(&mut self.line).map_err(|error| error.to_string())?;
            if read == 0 {
                return Err("the server ended".to_owned());
            }
            if !self.line.contains("\"method\":\"notifications/") {
                return Ok(());
            }
        }
    }
}
