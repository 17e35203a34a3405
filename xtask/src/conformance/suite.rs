//! Running the suite, one scenario at a time, and reading what it found.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::{Job, Leg};
use crate::peers::mcp::Mcp;

/// What the suite gives a scenario, in milliseconds: far more than one needs, for a machine that is busy with other things.
const PATIENCE: &str = "120000";
/// After this a suite that outlives its own limit is ended.
const END: Duration = Duration::from_mins(3);

pub(super) struct Suite {
    mcp: Mcp,
    out: PathBuf,
}

/// What came of one scenario.
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
    pub(super) fn good(&self) -> bool {
        self.problems.is_empty()
    }

    /// What a person sees of it.
    pub(super) fn line(&self, job: &Job) -> String {
        let word = if self.good() { "ok  " } else { "FAIL" };
        let checks = self.passed + self.failed;
        let mut line = format!(
            "{word} {} {} {}: {} of {checks} checks\n",
            job.leg, job.revision, job.scenario, self.passed
        );
        let warnings = self.warnings.iter().map(|warning| format!("(only a warning) {warning}"));
        for said in self.problems.iter().cloned().chain(warnings) {
            line.push_str(&format!("       {}\n", said.replace('\n', "\n       ")));
        }
        line
    }

    /// What a side should do and does not is told, and not held against it; the suite judges servers like that.
    fn of(checks: Vec<Check>) -> Self {
        let mut outcome = Self::default();
        for check in checks {
            let said = format!("{}: {}", check.name, check.error_message.unwrap_or(check.description));
            match check.status.as_str() {
                "SUCCESS" => outcome.passed += 1,
                "FAILURE" => {
                    outcome.failed += 1;
                    outcome.problems.push(said);
                }
                "WARNING" => outcome.warnings.push(said),
                _ => {}
            }
        }
        if outcome.passed + outcome.failed == 0 {
            outcome.problems.push("nothing was checked".to_owned());
        }
        outcome
    }
}

impl Suite {
    pub(super) fn new(mcp: Mcp, out: PathBuf) -> Self {
        Self { mcp, out }
    }

    /// What a revision requires, as text.
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

    /// The suite cuts the command at spaces, so it is named from within its own folder.
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
            .args(["--timeout", PATIENCE, "--output-dir"])
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
            None => outcome.problems.push(format!("no end within {} s", END.as_secs())),
            // The suite sees more than its checks tell: a client that fails or does not end, and for clients warnings count.
            Some(status) if !status.success() && outcome.good() => {
                let why = match job.leg {
                    Leg::Client => "the client failed, did not end or was warned",
                    Leg::Server => "the suite failed",
                };
                outcome.problems.push(format!("{why}; see {}", folder.join("suite.log").display()));
            }
            Some(_) => {}
        }
        Ok(outcome)
    }
}

/// None when it had to be ended, with whatever it had started.
fn wait(mut child: Child) -> Result<Option<ExitStatus>, String> {
    let limit = Instant::now() + END;
    loop {
        match child.try_wait().map_err(|error| error.to_string())? {
            Some(status) => return Ok(Some(status)),
            None if Instant::now() < limit => std::thread::sleep(Duration::from_millis(10)),
            None => {
                end(&mut child);
                return Ok(None);
            }
        }
    }
}

/// Ends a program that leads a process group, and all that it started. It must not have been waited for.
pub(super) fn end(child: &mut Child) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    let _ = child.wait();
}

/// The suite puts its findings into a folder with the time in its name, deeper for scenarios with a slash in theirs.
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
    fn only_a_scenario_whose_checks_all_succeed_is_good() {
        assert!(of(&["SUCCESS", "INFO", "SUCCESS"]).good());
        assert_eq!(of(&["SUCCESS", "FAILURE"]).problems, ["Ping: answers"]);
    }

    #[test]
    fn a_warning_is_told_and_not_held_against_a_scenario() {
        let outcome = of(&["SUCCESS", "WARNING"]);
        assert!(outcome.good());
        let job = Job { leg: Leg::Server, revision: "2026-07-28", scenario: "ping".to_owned() };
        let line = outcome.line(&job);
        assert!(line.starts_with("ok   server 2026-07-28 ping: 1 of 1 checks\n"), "{line}");
        assert!(line.contains("(only a warning) Ping: answers"), "{line}");
    }

    #[test]
    fn a_scenario_that_checked_nothing_is_not_good() {
        assert!(!of(&[]).good());
        assert!(!of(&["INFO", "SKIPPED", "WARNING"]).good());
    }

    #[test]
    fn the_findings_are_found_at_any_depth() {
        let folder = tempfile::tempdir().unwrap();
        assert!(checks(folder.path()).unwrap().is_none());
        let deep = folder.path().join("auth/iss-2026");
        fs::create_dir_all(&deep).unwrap();
        let text = r#"[{"id":"a","name":"A","description":"d","status":"SUCCESS","timestamp":"t"}]"#;
        fs::write(deep.join("checks.json"), text).unwrap();
        assert_eq!(checks(folder.path()).unwrap().unwrap().len(), 1);
    }
}
