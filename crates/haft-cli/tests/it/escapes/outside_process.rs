//! A process outside of the sandbox, run by the same user: what an escape would signal, trace, write to or talk to.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::fixture::sandbox::{CANARY, SandboxFixture};

pub(crate) struct OutsideProcess {
    child: Child,
    out: BufReader<ChildStdout>,
    /// Where it can be found, as assignments for a shell.
    pub(crate) places: String,
    status: String,
}

impl OutsideProcess {
    pub(crate) fn start(fixture: &SandboxFixture) -> Self {
        let mut command = fixture.bare(fixture.programs().join("outsider").to_str().unwrap());
        command.arg(fixture.path("outside")).arg(fixture.mark()).arg(fixture.path("outside/held"));
        let mut child = Self::spawn(command.env("HIDDEN", CANARY));
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = || {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let places = line();
        let places = places.strip_prefix("ready ").unwrap_or_else(|| panic!("the outsider says {places:?}"));
        let (places, status) = (places.to_owned(), line());
        Self { child, out, places, status }
    }

    fn spawn(command: &mut Command) -> Child {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Lets it end and tells what was done to it.
    pub(crate) fn end(mut self) -> Vec<String> {
        let mut harm = Vec::new();
        if let Some(status) = self.child.try_wait().unwrap() {
            return vec![format!("the process outside was ended: {status}")];
        }
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        let status = self.child.wait().unwrap();
        if !status.success() {
            harm.push(format!("the process outside was ended: {status}"));
        }
        for line in rest.lines().filter(|line| *line != self.status) {
            harm.push(format!("the process outside: {line}; it was: {}", self.status));
        }
        harm
    }
}
