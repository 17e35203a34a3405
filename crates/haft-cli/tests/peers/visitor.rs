//! Clients of other makers, and how each is led.

use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::stage::{Served, Stage};
use super::{node, ours, python};

/// The newest revision, which has no handshake.
pub(crate) const MODERN: &str = "2026-07-28";

/// A client and the era it is told to speak.
#[derive(Clone, Copy)]
pub(crate) struct Visitor {
    script: &'static str,
    mode: &'static str,
}

pub(crate) const PYTHON: Visitor = Visitor { script: "client.py", mode: "auto" };
pub(crate) const TYPESCRIPT_1: Visitor = Visitor { script: "client_v1.mjs", mode: "legacy" };
pub(crate) const TYPESCRIPT_2: Visitor = Visitor { script: "client_v2.mjs", mode: "auto" };

/// How a client reaches Haft.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    Stdio,
    Http,
}

/// What came of a visit.
pub(crate) struct Visit {
    pub(crate) protocol: String,
    pub(crate) steps: Vec<Value>,
    /// What the client's user was asked.
    pub(crate) asked: Vec<Value>,
}

impl Visitor {
    pub(crate) const fn speaks(self, mode: &'static str) -> Self {
        Self { mode, ..self }
    }

    /// The revision that it must come to.
    pub(crate) fn revision(self) -> &'static str {
        if self.mode == "legacy" { "2025-11-25" } else { MODERN }
    }

    /// The number of that error; the second TypeScript client tells its user the new one in either era.
    pub(crate) fn hears_of_a_missing_resource(self) -> i64 {
        if self.mode == "legacy" && self.script != TYPESCRIPT_2.script { -32002 } else { -32602 }
    }

    /// Whether it shows each page of a list, and does not turn them by itself.
    pub(crate) fn shows_pages(self) -> bool {
        self.script != TYPESCRIPT_2.script
    }

    /// Leads it through these steps over stdio; `flags` are those of `haft mcp`.
    pub(crate) fn over_stdio(
        self,
        stage: &Stage,
        flags: &[&str],
        answers: Option<&Value>,
        steps: &Value,
    ) -> Command {
        let mut command = self.command(stage, answers, steps);
        command.args(["--", env!("CARGO_BIN_EXE_haft"), "mcp"]).args(flags);
        command
    }

    /// Leads it through these steps at a server over HTTP.
    pub(crate) fn at(
        self,
        stage: &Stage,
        served: &Served,
        answers: Option<&Value>,
        steps: &Value,
    ) -> Command {
        let mut command = self.command(stage, answers, steps);
        command.args(["--http", &served.url, "--token", &served.token]);
        command
    }

    /// Leads it through these steps, either way.
    pub(crate) fn visit(
        self,
        stage: &Stage,
        over: Over,
        flags: &[&str],
        answers: Option<&Value>,
        steps: &Value,
    ) -> Visit {
        match over {
            Over::Stdio => self.ends(self.over_stdio(stage, flags, answers, steps)),
            Over::Http => {
                let served = stage.serve(flags);
                let visit = self.ends(self.at(stage, &served, answers, steps));
                served.ends();
                visit
            }
        }
    }

    /// Runs it to its end, and reads what it says.
    pub(crate) fn ends(self, mut command: Command) -> Visit {
        self.read(&command.output().unwrap())
    }

    pub(crate) fn read(self, ran: &std::process::Output) -> Visit {
        let said = String::from_utf8_lossy(&ran.stdout);
        let complaints = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "{}: {complaints}", self.script);
        let mut all: Value = serde_json::from_str(&said).unwrap_or_default();
        let list = |value: Value| value.as_array().cloned().unwrap_or_default();
        let visit = Visit {
            protocol: all["protocol"].as_str().unwrap_or_default().to_owned(),
            steps: list(all["steps"].take()),
            asked: list(all["asked"].take()),
        };
        assert_eq!(visit.protocol, self.revision(), "{said}{complaints}");
        assert_eq!(all["server"]["name"], "haft", "{said}");
        visit
    }

    fn command(self, stage: &Stage, answers: Option<&Value>, steps: &Value) -> Command {
        let program: PathBuf = if self.script == PYTHON.script { python() } else { node() };
        let mut command = stage.alone(Command::new(program));
        command.arg(ours(&format!("tests/clients/{}", self.script))).args(["--mode", self.mode]);
        if let Some(answers) = answers {
            command.args(["--answers", &answers.to_string()]);
        }
        command.arg(steps.to_string());
        command
    }
}

/// All text of a result.
pub(crate) fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    blocks.iter().filter_map(|block| block["text"].as_str()).collect()
}
