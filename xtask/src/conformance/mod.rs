//! `cargo xtask conformance`: MCP's official suite against Haft's protocol core. Nothing is expected to fail.

mod fixture;
mod scenarios;
mod suite;

use std::fmt;
use std::path::Path;

use crate::Done;
use crate::peers::mcp::McpPeers;
use crate::workspace::Workspace;
use fixture::Fixtures;
use suite::{Outcome, Suite};

/// The revisions that have a frozen set of requirements: one with sessions, one stateless.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// A scenario of the suite that checks nothing yet.
const NOT_IN_SUITE: &str = "tasks-status-notifications";

/// Which side of the protocol is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leg {
    Server,
    Client,
}

impl fmt::Display for Leg {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Server => "server",
            Self::Client => "client",
        })
    }
}

/// One scenario at one revision.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Job {
    leg: Leg,
    revision: &'static str,
    scenario: String,
}

/// The command line.
#[derive(Debug, PartialEq, Eq)]
struct ConformanceArgs {
    legs: Vec<Leg>,
    scenario: Option<String>,
}

pub(crate) fn run(args: &[String]) -> Done {
    let selected = ConformanceArgs::parse(args)?;
    let out = Workspace::load()?.built("conformance");
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let suite = Suite::new(McpPeers::find()?, out.clone());
    let jobs = selected.jobs(&suite)?;
    let fixtures = Fixtures::build()?;
    // Both sides at once, each with one scenario at a time, as the suite's time limits expect.
    let outcomes = std::thread::scope(|scope| {
        let threads: Vec<_> = selected
            .legs
            .iter()
            .map(|leg| {
                let jobs = jobs.iter().filter(|job| job.leg == *leg).collect::<Vec<_>>();
                let (suite, fixtures, out) = (&suite, &fixtures, out.as_path());
                scope.spawn(move || run_side(*leg, &jobs, suite, fixtures, out))
            })
            .collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| "a thread panicked".to_owned())?);
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    summary(&outcomes.concat(), &out)
}

fn run_side(
    leg: Leg,
    jobs: &[&Job],
    suite: &Suite,
    fixtures: &Fixtures,
    out: &Path,
) -> Result<Vec<(Job, Outcome)>, String> {
    let mut outcomes = Vec::new();
    let mut server = None;
    for &job in jobs {
        let mut outcome = match leg {
            Leg::Client => suite.client(job, &fixtures.client)?,
            Leg::Server => {
                let running = match server.take() {
                    Some(running) => running,
                    None => fixtures.serve(&out.join("server.log"))?,
                };
                suite.server(job, &server.insert(running).url)?
            }
        };
        if let Some(running) = &mut server
            && let Some(status) = running.ended()
        {
            outcome.problems.push(format!("the server ended with {status} and is started again"));
            server = None;
        }
        print!("{}", outcome.line(job));
        outcomes.push((job.clone(), outcome));
    }
    Ok(outcomes)
}

fn summary(outcomes: &[(Job, Outcome)], out: &Path) -> Done {
    println!();
    for leg in [Leg::Server, Leg::Client] {
        for revision in REVISIONS {
            let rows = outcomes.iter().filter(|(job, _)| job.leg == leg && job.revision == revision);
            let rows = rows.map(|(_, outcome)| outcome).collect::<Vec<_>>();
            if rows.is_empty() {
                continue;
            }
            let passing = rows.iter().filter(|outcome| outcome.passes()).count();
            let passed: usize = rows.iter().map(|outcome| outcome.passed).sum();
            let failed: usize = rows.iter().map(|outcome| outcome.failed).sum();
            println!(
                "{leg} {revision}: {passing} of {} scenarios pass; checks: {passed} passed, {failed} failed",
                rows.len()
            );
        }
    }
    let failing = outcomes.iter().filter(|(_, outcome)| !outcome.passes()).count();
    if failing == 0 {
        return Ok(());
    }
    Err(format!(
        "{failing} of {} scenarios fail; their output is in {}; repeat one with --scenario NAME",
        outcomes.len(),
        out.display()
    ))
}

impl ConformanceArgs {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut selected = Self { legs: Vec::new(), scenario: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "server" => selected.legs.push(Leg::Server),
                "client" => selected.legs.push(Leg::Client),
                "--scenario" => {
                    selected.scenario = Some(args.next().ok_or("--scenario needs a name")?.clone());
                }
                other => {
                    return Err(format!(
                        "conformance does not know `{other}`; it takes server, client and --scenario NAME"
                    ));
                }
            }
        }
        selected.legs.dedup();
        if selected.legs.is_empty() {
            selected.legs = vec![Leg::Server, Leg::Client];
        }
        Ok(selected)
    }

    /// Every scored scenario and those of the tasks extension, or the one that was named, scored or not.
    fn jobs(&self, suite: &Suite) -> Result<Vec<Job>, String> {
        let mut jobs = Vec::new();
        for revision in REVISIONS {
            let required = scenarios::parse(revision, &suite.list(revision)?)?;
            // Extensions are not scored; of those, Haft has this one.
            let unscored = required.unscored.iter().filter(|(_, name)| {
                self.scenario.is_some() || (name.starts_with("tasks-") && name != NOT_IN_SUITE)
            });
            let all = required.scored.iter().chain(unscored);
            jobs.extend(all.filter(|(leg, _)| self.legs.contains(leg)).filter_map(|(leg, scenario)| {
                let named = self.scenario.as_ref().is_none_or(|name| name == scenario);
                named.then(|| Job { leg: *leg, revision, scenario: scenario.clone() })
            }));
        }
        if jobs.is_empty() {
            let name = self.scenario.as_deref().unwrap_or("of that kind");
            return Err(format!("no requirement set has a scenario {name}"));
        }
        Ok(jobs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<ConformanceArgs, String> {
        ConformanceArgs::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn both_sides_are_the_default() {
        assert_eq!(parse(&[]).unwrap().legs, [Leg::Server, Leg::Client]);
    }

    #[test]
    fn a_side_and_a_scenario_are_parsed() {
        let selected = parse(&["client", "--scenario", "auth/iss-supported"]).unwrap();
        assert_eq!(selected.legs, [Leg::Client]);
        assert_eq!(selected.scenario.as_deref(), Some("auth/iss-supported"));
    }

    #[test]
    fn an_unknown_argument_is_an_error() {
        assert!(parse(&["sever"]).unwrap_err().contains("`sever`"));
        assert!(parse(&["--scenario"]).is_err());
    }
}
