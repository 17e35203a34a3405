//! `cargo xtask conformance`: MCP's official suite against Haft's protocol core. Nothing is expected to fail.

mod fixture;
mod scenarios;
mod suite;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Done;
use crate::peers::mcp::Mcp;
use fixture::Fixtures;
use suite::{Outcome, Suite};

/// The revisions that have a frozen set of requirements, one for each era of the protocol.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

/// Which side of the protocol is tried.
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

/// What was asked for on the command line.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    legs: Vec<Leg>,
    scenario: Option<String>,
}

pub(crate) fn run(args: &[String]) -> Done {
    let wanted = Wanted::parse(args)?;
    let out = root()?.join("target/conformance");
    if out.exists() {
        std::fs::remove_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    }
    std::fs::create_dir_all(&out).map_err(|error| format!("{}: {error}", out.display()))?;
    let suite = Suite::new(Mcp::find()?, out.clone());
    let jobs = wanted.jobs(&suite)?;
    let fixtures = Fixtures::build()?;
    // Each side by itself is one scenario at a time, as the suite's own time limits expect.
    let outcomes = std::thread::scope(|scope| {
        let sides: Vec<_> = wanted
            .legs
            .iter()
            .map(|leg| {
                let jobs = jobs.iter().filter(|job| job.leg == *leg).collect::<Vec<_>>();
                let (suite, fixtures, out) = (&suite, &fixtures, out.as_path());
                scope.spawn(move || side(*leg, &jobs, suite, fixtures, out))
            })
            .collect();
        let joined = sides.into_iter().map(|side| side.join().map_err(|_| "a side panicked".to_owned())?);
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    summary(&outcomes.concat(), &out)
}

fn side(
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
            outcome.problems.push(format!("the server ended with {status}; it is started again"));
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
            let these = outcomes.iter().filter(|(job, _)| job.leg == leg && job.revision == revision);
            let these = these.map(|(_, outcome)| outcome).collect::<Vec<_>>();
            if these.is_empty() {
                continue;
            }
            let good = these.iter().filter(|outcome| outcome.good()).count();
            let passed: usize = these.iter().map(|outcome| outcome.passed).sum();
            let failed: usize = these.iter().map(|outcome| outcome.failed).sum();
            println!(
                "{leg} {revision}: {good} of {} scenarios pass; checks: {passed} passed, {failed} failed",
                these.len()
            );
        }
    }
    let bad = outcomes.iter().filter(|(_, outcome)| !outcome.good()).count();
    if bad == 0 {
        return Ok(());
    }
    Err(format!(
        "{bad} of {} scenarios fail; what was said is in {}; try one again with --scenario",
        outcomes.len(),
        out.display()
    ))
}

impl Wanted {
    fn parse(args: &[String]) -> Result<Self, String> {
        let mut wanted = Self { legs: Vec::new(), scenario: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "server" => wanted.legs.push(Leg::Server),
                "client" => wanted.legs.push(Leg::Client),
                "--scenario" => {
                    wanted.scenario = Some(args.next().ok_or("--scenario needs a name")?.clone());
                }
                other => {
                    return Err(format!(
                        "conformance does not know `{other}`; it takes server, client and --scenario NAME"
                    ));
                }
            }
        }
        wanted.legs.dedup();
        if wanted.legs.is_empty() {
            wanted.legs = vec![Leg::Server, Leg::Client];
        }
        Ok(wanted)
    }

    /// Every scored scenario; or the one that was named, scored or not.
    fn jobs(&self, suite: &Suite) -> Result<Vec<Job>, String> {
        let mut jobs = Vec::new();
        for revision in REVISIONS {
            let required = scenarios::parse(revision, &suite.list(revision)?)?;
            let all = required.scored.iter().chain(self.scenario.iter().flat_map(|_| &required.unscored));
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

fn root() -> Result<PathBuf, String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("the project has no root")?;
    Ok(root.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Wanted, String> {
        Wanted::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn without_arguments_both_sides_are_tried() {
        assert_eq!(parse(&[]).unwrap().legs, [Leg::Server, Leg::Client]);
    }

    #[test]
    fn a_side_and_a_scenario_can_be_named() {
        let wanted = parse(&["client", "--scenario", "auth/iss-supported"]).unwrap();
        assert_eq!(wanted.legs, [Leg::Client]);
        assert_eq!(wanted.scenario.as_deref(), Some("auth/iss-supported"));
    }

    #[test]
    fn an_unknown_word_is_refused_by_name() {
        assert!(parse(&["sever"]).unwrap_err().contains("`sever`"));
        assert!(parse(&["--scenario"]).is_err());
    }
}
