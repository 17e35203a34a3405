//! Running the suite, one scenario at a time, and reading its checks.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Job, Leg};
use crate::peers::mcp::McpPeers;

/// The suite's own limit for a scenario: far more than one needs, for busy machines.
const SCENARIO_TIMEOUT_MS: &str = "120000";
/// A suite that exceeds its own limit is killed after this.
const SUITE_TIMEOUT: Duration = Duration::from_mins(3);

pub(super) struct Suite {
    mcp: McpPeers,
    out: PathBuf,
}

/// The outcome of one scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) problems: Vec<String>,
    warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Check {
    name: String,
    description: String,
    status: String,
    error_message: Option<String>,
}

impl Outcome {
    pub(super) fn passes(&self) -> bool {
        self.problems.is_empty()
    }

    /// The report of one scenario.
    pub(super) fn line(&self, job: &Job) -> String {
        let word = if self.passes() { "ok  " } else { "FAIL" };
        let checks = self.passed + self.failed;
        let mut line = format!(
            "{word} {} {} {}: {} of {checks} checks\n",
            job.leg, job.revision, job.scenario, self.passed
        );
        let warnings = self.warnings.iter().map(|warning| format!("(only a warning) {warning}"));
        for text in self.problems.iter().cloned().chain(warnings) {
            line.push_str(&format!("       {}\n", text.replace('\n', "\n       ")));
        }
        line
    }

    /// Counts the checks. A warning is reported but is no failure; the suite judges servers like that.
    fn of(checks: Vec<Check>) -> Self {
        let mut outcome = Self::default();
        for check in checks {
            let text = format!("{}: {}", check.name, check.error_message.unwrap_or(check.description));
            match check.status.as_str() {
                "SUCCESS" => outcome.passed += 1,
                "FAILURE" => {
                    outcome.failed += 1;
                    outcome.problems.push(text);
                }
                "WARNING" => outcome.warnings.push(text),
                _ => {}
            }
        }
        if outcome.passed + outcome.failed == 0 {
            outcome.problems.push("the suite checked nothing".to_owned());
        }
        outcome
    }
}

impl Suite {
    pub(super) fn new(mcp: McpPeers, out: PathBuf) -> Self {
        Self { mcp, out }
    }

    /// The requirements of a revision, as text.
    pub(super) fn list(&self, revision: &str) -> Result<String, String> {
        let listed = self.command().args(["list", "--requirements", revision]).output();
        let listed = listed.map_err(|error| format!("the conformance suite: {error}"))?;
        if !listed.status.success() {
            return Err(format!("the conformance suite: {}", String::from_utf8_lossy(&listed.stderr)));
        }
        Ok(String::from_utf8_lossy(&listed.stdout).into_owned())
    }

    pub(super) fn server(&self, job: &Job, url: &str) -> Result<Outcome, String> {
        self.run(job, self.command().args(["server", "--url", url]))
    }

    /// The suite splits the command at spaces, so it is started in its own directory by its bare name.
    pub(super) fn client(&self, job: &Job, program: &Path) -> Result<Outcome, String> {
        let (Some(folder), Some(name)) = (program.parent(), program.file_name()) else {
            return Err(format!("{} is no program", program.display()));
        };
        let name = format!("./{}", name.to_string_lossy());
        self.run(job, self.command().current_dir(folder).args(["client", "--command", &name]))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.mcp.node);
        command.arg(self.mcp.suite()).env("NO_COLOR", "1");
        command
    }

    fn run(&self, job: &Job, command: &mut Command) -> Result<Outcome, String> {
        let folder =
            self.out.join(job.revision).join(job.leg.to_string()).join(job.scenario.replace('/', "-"));
        let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(&folder).map_err(failed)?;
        let log = File::create(folder.join("suite.log")).map_err(failed)?;
        let child = command
            .args(["--scenario", &job.scenario, "--spec-version", job.revision, "--force"])
            .args(["--timeout", SCENARIO_TIMEOUT_MS, "--output-dir"])
            .arg(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            .process_group(0)
            .spawn();
        let status = wait(child.map_err(|error| format!("the conformance suite: {error}"))?)?;
        let mut outcome = match checks(&folder).map_err(failed)? {
            Some(checks) => Outcome::of(checks),
            None => Outcome { problems: vec!["the suite left no checks".to_owned()], ..Outcome::default() },
        };
        match status {
            None => outcome.problems.push(format!("no result within {} s", SUITE_TIMEOUT.as_secs())),
            // The suite fails for more than its checks: a client that fails or does not exit, and for clients warnings count.
            Some(status) if !status.success() && outcome.passes() => {
                let why = match job.leg {
                    Leg::Client => "the client failed, did not exit or caused a warning",
                    Leg::Server => "the suite failed",
                };
                outcome.problems.push(format!("{why}; see {}", folder.join("suite.log").display()));
            }
            Some(_) => {}
        }
        Ok(outcome)
    }
}

/// Waits for the suite; None if it exceeded its limit and was killed with its children.
fn wait(mut child: Child) -> Result<Option<ExitStatus>, String> {
    let limit = Instant::now() + SUITE_TIMEOUT;
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() < limit => std::thread::sleep(Duration::from_millis(10)),
            None => {
                kill_group(&mut child);
                return Ok(None);
            }
        }
    }
}

/// Kills a process group by its leader, which must not have been waited for.
pub(super) fn kill_group(child: &mut Child) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    let _ = child.wait();
}

/// The suite writes its checks into a directory with the time in its name, deeper for scenarios with a slash in theirs.
fn checks(folder: &Path) -> std::io::Result<Option<Vec<Check>>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            if let Some(found) = checks(&path)? {
                return Ok(Some(found));
            }
        } else if path.ends_with("checks.json") {
            return Ok(Some(serde_json::from_slice(&fs::read(path)?)?));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(statuses: &[&str]) -> Outcome {
        let checks = statuses.iter().map(|status| Check {
            name: "Ping".to_owned(),
            description: "answers".to_owned(),
            status: (*status).to_owned(),
            error_message: None,
        });
        Outcome::of(checks.collect())
    }

    #[test]
    fn a_scenario_passes_if_all_checks_succeed() {
        assert!(of(&["SUCCESS", "INFO", "SUCCESS"]).passes());
        assert_eq!(of(&["SUCCESS", "FAILURE"]).problems, ["Ping: answers"]);
    }

    #[test]
    fn a_warning_is_reported_but_no_failure() {
        let outcome = of(&["SUCCESS", "WARNING"]);
        assert!(outcome.passes());
        let job = Job { leg: Leg::Server, revision: "2026-07-28", scenario: "ping".to_owned() };
        let line = outcome.line(&job);
        assert!(line.starts_with("ok   server 2026-07-28 ping: 1 of 1 checks\n"), "{line}");
        assert!(line.contains("(only a warning) Ping: answers"), "{line}");
    }

    #[test]
    fn a_scenario_without_checks_fails() {
        assert!(!of(&[]).passes());
        assert!(!of(&["INFO", "SKIPPED", "WARNING"]).passes());
    }

    #[test]
    fn checks_are_found_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        assert!(checks(folder.path()).unwrap().is_none());
        let deep = folder.path().join("auth/iss-2026");
        fs::create_dir_all(&deep).unwrap();
        let text = r#"[{"id":"a","name":"A","description":"d","status":"SUCCESS","timestamp":"t"}]"#;
        fs::write(deep.join("checks.json"), text).unwrap();
        assert_eq!(checks(folder.path()).unwrap().unwrap().len(), 1);
    }
}
