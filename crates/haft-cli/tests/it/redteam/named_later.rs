//! Files that links or configurations come to name while a command runs, through another call or the command itself.

use std::fs;
use std::process::Child;

use super::guards::{REPOSITORY, Workspace, in_every_mode};
use super::hidden::{COMMIT, runs_nothing_planted};
use crate::fixture::wait_until;

/// Writes a hook into `hk`, which the repository that is called `g` for the moment is configured to take hooks from.
const PLANT: &str = "printf '#!/bin/sh\\necho PWNED\\n' > hk/pre-commit; chmod 755 hk/pre-commit";

/// Starts a command, and waits until it has written `ready`.
fn start(space: &Workspace, script: &str) -> Child {
    let mut haft = space.fixture.bare(&space.fixture.program());
    haft.args(["sandbox", "--", "bash", "-c", script]).env("HAFT_NAMESPACES", space.namespaces);
    let started = haft.spawn().unwrap();
    wait_until(|| space.exists("ready"));
    started
}

fn with_hooks_elsewhere(space: &Workspace) {
    space.user(&format!("{REPOSITORY}; mkdir hk; git config core.hooksPath hk"));
    assert_eq!(space.run("mv .git g").code, 0);
}

#[test]
fn h4_what_another_call_names_meanwhile_is_judged_at_the_end() {
    for named_again in ["mv g .git", "mv g .git; true"] {
        in_every_mode(|space| {
            with_hooks_elsewhere(space);
            let script = format!("touch ready; while test ! -e go; do :; done; {PLANT}");
            let mut running = start(space, &script);
            assert_eq!(space.run(named_again).code, 0);
            fs::write(space.fixture.path("work/go"), "").unwrap();
            running.wait().unwrap();
            runs_nothing_planted(space, ".", COMMIT);
        });
    }
    // The user makes git use it.
    in_every_mode(|space| {
        space.user(&format!("{REPOSITORY}; mkdir hk"));
        let script = format!("touch ready; {PLANT}; while test ! -e go; do :; done");
        let mut running = start(space, &script);
        space.user("git config core.hooksPath hk");
        assert_eq!(space.run("touch other").code, 0);
        fs::write(space.fixture.path("work/go"), "").unwrap();
        running.wait().unwrap();
        runs_nothing_planted(space, ".", COMMIT);
    });
}

#[test]
fn h5_what_a_running_command_names_is_judged_before_its_end() {
    in_every_mode(|space| {
        with_hooks_elsewhere(space);
        let mut running = start(space, &format!("{PLANT}; mv g .git; touch ready; sleep 600"));
        wait_until(|| !space.exists("hk/pre-commit"));
        running.kill().unwrap();
        running.wait().unwrap();
        wait_until(|| space.fixture.processes().is_empty());
        runs_nothing_planted(space, ".", COMMIT);
    });
}

#[test]
fn h6_what_a_killed_haft_has_named_is_judged_by_the_next_call() {
    in_every_mode(|space| {
        with_hooks_elsewhere(space);
        assert_eq!(space.run(PLANT).code, 0);
        let mut running = start(space, "mv g .git; touch ready; sleep 600");
        running.kill().unwrap();
        running.wait().unwrap();
        wait_until(|| space.fixture.processes().is_empty());
        let log = space.fixture.haft(&["log"]);
        assert_eq!(log.code, 0, "{}", log.stderr);
        runs_nothing_planted(space, ".", COMMIT);
    });
}

#[test]
fn h7_programs_that_a_configuration_of_the_user_names_are_guarded() {
    for (key, program) in [
        ("core.fsmonitor", "./fsm.sh"),
        ("filter.x.clean", "sh tools/fsm.sh %f"),
        ("filter.x.clean", "/bin/sh \"tools/fsm.sh\" %f"),
        ("filter.x.clean", "/usr/bin/env sh fsm.sh"),
    ] {
        in_every_mode(|space| {
            space.user(&format!(
                "{REPOSITORY}; mkdir tools; echo exit > fsm.sh; cp fsm.sh tools; chmod 755 fsm.sh; git config {key} '{program}'"
            ));
            let path = if program.contains("tools") { "tools/fsm.sh" } else { "fsm.sh" };
            let refused = space.run(&format!("echo echo PWNED > {path}"));
            assert!(refused.stderr.contains("Refused"), "{key}: {}", refused.stderr);
            assert_eq!(space.read(path), "exit\n");
            // The user's own revisions are not violations.
            space.user("git add -A; git commit -qm two; echo other > tools/fsm.sh; cp tools/fsm.sh .; git add -A; git commit -qm three");
            let ran = space.run("git checkout -q HEAD~1");
            assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{}", ran.stderr);
        });
    }
}

#[test]
fn h8_what_another_call_names_is_judged_while_a_background_task_runs() {
    in_every_mode(|space| {
        space.user(&format!(
            "{REPOSITORY}; mkdir .githooks; printf '#!/bin/sh\\n' > .githooks/pre-commit; chmod 755 .githooks/pre-commit; \
             git add .; git commit -qm hooks; git config core.hooksPath .githooks"
        ));
        let mut session = space.fixture.session(space.namespaces);
        let script = "touch ready; while test ! -e go; do sleep 0.01; done; \
             printf '#!/bin/sh\\necho PWNED\\n' > wt2/.githooks/pre-commit; touch done; sleep 600";
        session.call("Bash", &haft::json!({"command": script, "run_in_background": true}));
        wait_until(|| space.exists("ready"));
        let added = session.bash("git worktree add -q wt2");
        fs::write(space.fixture.path("work/go"), "").unwrap();
        wait_until(|| space.exists("done") && !space.read("wt2/.githooks/pre-commit").contains("PWNED"));
        runs_nothing_planted(space, "wt2", COMMIT);
        drop(session);
        assert!(space.exists("wt2/.githooks"), "{added}");
    });
}
