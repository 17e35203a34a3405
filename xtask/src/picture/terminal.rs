//! A shell in tmux: types commands as a person does, and waits for the next prompt.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::process::read;

pub(super) const COLUMNS: usize = 80;
const ROWS: &str = "50";
const TIMEOUT: Duration = Duration::from_mins(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Shows a green `$` and what is typed in bold. The title, which is not on the screen, says how many commands have ended and the
/// exit status of the last one.
const PROMPT: &str = r"\[\e[1;32m\]$\[\e[0m\] \[\e[1m\e]2;prompt \# $?\a\]";
const BEFORE_OUTPUT: &str = r"\e[0m";

/// A tmux server of its own with one shell; it ends with this value.
pub(super) struct TmuxShell {
    socket: PathBuf,
    commands: usize,
}

impl TmuxShell {
    /// Starts the shell with these variables and no others.
    pub(super) fn start(
        socket: &Path,
        directory: &Path,
        variables: &[(&str, String)],
    ) -> Result<Self, String> {
        let shell = Self { socket: socket.to_owned(), commands: 0 };
        let mut command = shell.tmux(&["-f", "/dev/null", "new-session", "-d"]);
        command.args(["-x", &COLUMNS.to_string(), "-y", ROWS, "-c"]).arg(directory);
        command.args(["bash", "--noprofile", "--norc"]);
        command.env_clear().envs(variables.iter().map(|(name, value)| (name, value)));
        command.envs([
            ("PS1", PROMPT),
            ("PS0", BEFORE_OUTPUT),
            ("TERM", "xterm-256color"),
            ("LANG", "C.UTF-8"),
        ]);
        read(&mut command)?;
        shell.wait_for_prompt()?;
        Ok(shell)
    }

    /// Runs a command that succeeds; `answers` are questions on the screen and what is typed then. Returns the lines with the
    /// command and its output, with escape sequences.
    pub(super) fn run(&mut self, command: &str, answers: &[(&str, &str)]) -> Result<Vec<String>, String> {
        let start = self.cursor_line()?;
        self.type_line(command)?;
        for (question, answer) in answers {
            self.wait(&format!("the question {question:?}"), || {
                Ok(self.text(start)?.contains(question).then_some(()))
            })?;
            self.type_line(answer)?;
        }
        self.commands += 1;
        let status = self.wait_for_prompt()?;
        if status != "0" {
            return Err(self.failure(&format!("`{command}` ended with status {status}")));
        }
        let end = self.cursor_line()?;
        Ok(self.capture(start, &["-e"])?.lines().take(end - start).map(str::to_owned).collect())
    }

    /// An error with what is on the screen.
    pub(super) fn failure(&self, what: &str) -> String {
        format!("{what}; the terminal shows:\n{}", self.text(0).unwrap_or_default().trim_end())
    }

    fn tmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(&self.socket).args(args);
        command
    }

    fn type_line(&self, line: &str) -> Result<(), String> {
        read(&mut self.tmux(&["send-keys", "-l", "--", line]))?;
        read(&mut self.tmux(&["send-keys", "Enter"])).map(drop)
    }

    /// Returns the exit status of the last command.
    fn wait_for_prompt(&self) -> Result<String, String> {
        let expected = format!("prompt {} ", self.commands + 1);
        self.wait("the prompt", || {
            Ok(self.query("#{pane_title}")?.strip_prefix(&expected).map(str::to_owned))
        })
    }

    fn wait<T>(&self, what: &str, check: impl Fn() -> Result<Option<T>, String>) -> Result<T, String> {
        let started = Instant::now();
        loop {
            if let Some(found) = check()? {
                return Ok(found);
            }
            if started.elapsed() > TIMEOUT {
                return Err(self.failure(&format!("{what} did not come in {} s", TIMEOUT.as_secs())));
            }
            sleep(POLL_INTERVAL);
        }
    }

    /// The number of the cursor's line since the shell started.
    fn cursor_line(&self) -> Result<usize, String> {
        let answer = self.query("#{history_size} #{cursor_y}")?;
        answer
            .split(' ')
            .map(|number| number.parse::<usize>().map_err(|error| format!("{answer}: {error}")))
            .sum()
    }

    fn query(&self, format: &str) -> Result<String, String> {
        Ok(read(&mut self.tmux(&["display-message", "-p", format]))?.trim_end().to_owned())
    }

    /// Everything from this line on, with wrapped lines joined.
    fn text(&self, start: usize) -> Result<String, String> {
        self.capture(start, &["-J"])
    }

    fn capture(&self, start: usize, flags: &[&str]) -> Result<String, String> {
        let history: usize = self.query("#{history_size}")?.parse().unwrap_or(0);
        // tmux counts from the first line on the screen; those above it are negative.
        let first =
            if start < history { format!("-{}", history - start) } else { (start - history).to_string() };
        read(self.tmux(&["capture-pane", "-p", "-S", &first]).args(flags))
    }
}

impl Drop for TmuxShell {
    fn drop(&mut self) {
        let _ = read(&mut self.tmux(&["kill-server"]));
    }
}
