//! Which scenarios a revision requires, read from what the suite itself lists.

use super::Leg;

/// The scenarios of a revision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Required {
    pub(super) scored: Vec<(Leg, String)>,
    pub(super) unscored: Vec<(Leg, String)>,
}

/// Parses the printed list, the only form there is; the count in its header shows whether all of it was understood.
pub(super) fn parse(revision: &str, listed: &str) -> Result<Required, String> {
    let mut required = Required::default();
    let mut expected = None;
    let mut section = None;
    for line in listed.lines() {
        if let Some(header) = line.strip_prefix(&format!("Required for {revision} (")) {
            expected = header.split(' ').next().and_then(|count| count.parse::<usize>().ok());
        } else if line.starts_with("Server scenarios") {
            section = Some(Leg::Server);
        } else if line.starts_with("Client scenarios") {
            section = Some(Leg::Client);
        } else if line.starts_with("Run and reported") {
            section = None;
        } else if let Some(name) = line.trim_start().strip_prefix("- ") {
            match (section, name.split_once(" [")) {
                (Some(leg), _) => required.scored.push((leg, name.to_owned())),
                (None, Some((name, "server]"))) => required.unscored.push((Leg::Server, name.to_owned())),
                (None, Some((name, "client]"))) => required.unscored.push((Leg::Client, name.to_owned())),
                (None, _) => return Err(format!("the suite lists {name} for neither server nor client")),
            }
        }
    }
    if expected != Some(required.scored.len()) {
        return Err(format!(
            "the suite's list for {revision} is not understood: {} scenarios found\n{listed}",
            required.scored.len()
        ));
    }
    Ok(required)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "\
Required for 2026-07-28 (3 scenarios, frozen; run at the 2026-07-28 wire):

Server scenarios (test against a server):
  - caching
  - tools-list

Client scenarios (test against a client):
  - auth/iss-supported

Run and reported, but never scored:
  extension (2):
    - auth/dpop [client]
    - tasks-lifecycle [server]
";

    #[test]
    fn scored_and_unscored_scenarios_are_separated() {
        let required = parse("2026-07-28", LISTED).unwrap();
        let named = |leg, name: &str| (leg, name.to_owned());
        assert_eq!(
            required.scored,
            [
                named(Leg::Server, "caching"),
                named(Leg::Server, "tools-list"),
                named(Leg::Client, "auth/iss-supported")
            ]
        );
        assert_eq!(
            required.unscored,
            [named(Leg::Client, "auth/dpop"), named(Leg::Server, "tasks-lifecycle")]
        );
    }

    #[test]
    fn a_list_with_another_count_is_an_error() {
        assert!(parse("2026-07-28", &LISTED.replace("(3 ", "(4 ")).is_err());
        assert!(parse("2025-11-25", LISTED).is_err());
        assert!(parse("2026-07-28", "").is_err());
    }
}
