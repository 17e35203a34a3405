//! What a judgement cannot reach, or could overlook, does not take effect later.

use std::fs;
use std::time::{Duration, Instant};

use super::guards::{REVISIONS, Workspace, in_every_mode};
use crate::fixture::wait_until;

/// Runs git as the user in a directory, and expects that it ran nothing that was planted.
pub(super) fn runs_nothing_planted(space: &Workspace, directory: &str, git: &str) {
    let said = space.user(&format!("cd {directory} && {git} 2>&1 || true"));
    assert!(!said.contains("PWNED"), "{} {directory}: {said}", space.namespaces);
}

const PLANT_HOOK: &str = r"printf '#!/bin/sh\necho PWNED\n'";
pub(super) const COMMIT: &str = "git commit --allow-empty -m x";

#[test]
fn f2_git_directories_under_long_paths_take_no_effect_when_they_are_moved() {
    const DEEP: &str = "import os, sys\n\
        top = os.open('.', os.O_RDONLY)\n\
        for i in range(30):\n    os.path.isdir('k' * 200) or os.mkdir('k' * 200)\n    os.chdir('k' * 200)\n\
        def attempt(action):\n    try: action()\n    except OSError as error: print(error)\n\
        if sys.argv[1] == 'make':\n    \
            os.mkdir('proj'); os.chdir('proj')\n    \
            for name in ['.git', '.git/objects', '.git/refs', '.vscode']: attempt(lambda: os.mkdir(name))\n    \
            attempt(lambda: open('.git/HEAD', 'w').write('ref: refs/heads/main\\n'))\n    \
            attempt(lambda: open('.git/config', 'w').write('[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = \"echo PWNED >&2; false\"\\n'))\n    \
            attempt(lambda: open('.vscode/tasks.json', 'w').write('PWNED'))\n\
        else: os.rename('proj', 'proj', src_dir_fd=os.open('.', 0), dst_dir_fd=top)\n";
    in_every_mode(|space| {
        fs::write(space.fixture.path("work").join("deep.py"), DEEP).unwrap();
        space.run("python3 deep.py make");
        space.run("python3 deep.py move");
        runs_nothing_planted(space, "proj", "cat .vscode/tasks.json; git status");
        let removed = space.run("rm -rf k*");
        assert_eq!(removed.code, 0, "{}", removed.stderr);
    });
}

#[test]
fn f3_closed_directories_hide_nothing_from_the_judgement() {
    for (plant, open) in [
        (
            "exec 5> .git/hooks/pre-commit; printf '#!/bin/sh\\necho PWNED\\n' >&5; chmod 755 .git/hooks/pre-commit; chmod 0 .git/hooks",
            "chmod 755 .git/hooks",
        ),
        (
            "mkdir h; printf '#!/bin/sh\\necho PWNED\\n' > h/pre-commit; chmod 755 h/pre-commit; chmod 0 h; rm -r .git/hooks; mv h .git/hooks",
            "chmod 755 .git/hooks",
        ),
        (
            "mkdir -p g/.vscode; exec 5> g/.vscode/tasks.json; echo PWNED >&5; chmod 0 g/.vscode g",
            "chmod 755 g g/.vscode; cp -r g/.vscode .",
        ),
        ("mkdir d; echo PWNED > d/tasks.json; chmod 0 d; mv d .vscode", "chmod 755 .vscode"),
        ("exec 5> .envrc; echo PWNED >&5; chmod 555 .", "chmod 755 ."),
    ] {
        in_every_mode(|space| {
            space.user("git init -q .");
            let ran = space.run(plant);
            assert!(ran.stderr.contains("Refused") || ran.code != 0, "{} {plant}", space.namespaces);
            space.run(open);
            space.user("chmod -R u+rwx .");
            runs_nothing_planted(space, ".", &format!("{COMMIT}; cat .envrc .vscode/* g/.vscode/*"));
        });
    }
}

#[test]
fn f4_what_becomes_named_in_a_call_is_judged_with_it() {
    let configured = "mkdir .githooks; printf '#!/bin/sh\\ntrue\\n' > .githooks/pre-commit; chmod 755 .githooks/pre-commit; \
        printf '[core]\\n\\tabbrev = 9\\n' > .gitconfig.shared; git add .; git commit -qm hooks; \
        git config core.hooksPath .githooks; git config include.path ../.gitconfig.shared";
    let config = r#"printf '[core]\n\tfsmonitor = "echo PWNED >&2;false"\n'"#;
    for (script, directory, git) in [
        (format!("git worktree add -q wt && {PLANT_HOOK} > wt/.githooks/pre-commit"), "wt", COMMIT),
        (
            format!(
                "mkdir c && cp -r .git .githooks c/ && {PLANT_HOOK} > c/.githooks/pre-commit; chmod 755 c/.githooks/*"
            ),
            "c",
            COMMIT,
        ),
        (format!("mkdir c && cp -r .git c/ && {config} > c/.gitconfig.shared"), "c", "git status"),
    ] {
        in_every_mode(|space| {
            space.user(REVISIONS);
            space.user(configured);
            space.run(&script);
            runs_nothing_planted(space, directory, git);
        });
    }
    // Copies and worktrees of what the user has are not violations.
    in_every_mode(|space| {
        space.user(REVISIONS);
        space.user(configured);
        for script in ["git worktree add -q wt", "mkdir c && cp -r .git .githooks .gitconfig.shared c/"] {
            let ran = space.run(script);
            assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{script}: {}", ran.stderr);
        }
    });
}

#[test]
fn f4_settings_that_a_checked_out_link_leads_to_are_judged() {
    for scripts in [
        &["mkdir cfg; echo PWNED > cfg/tasks.json", "git checkout -q linked"][..],
        &["mkdir cfg; echo PWNED > cfg/tasks.json; git checkout -q linked"],
    ] {
        in_every_mode(|space| {
            space.user(REVISIONS);
            space.user("git checkout -qb linked; git rm -qr .vscode; ln -s cfg .vscode; git add -A; git commit -qm link; git checkout -q main");
            for script in scripts {
                space.run(script);
            }
            runs_nothing_planted(space, ".", "cat .vscode/tasks.json");
        });
    }
}

#[test]
fn f6_secrets_are_not_exchanged_into_directories_that_are_not_searched() {
    const EXCHANGE: &str =
        "python3 -c 'import ctypes; ctypes.CDLL(None).renameat2(-100, b\"app\", -100, b\"node_modules\", 2)'";
    in_every_mode(|space| {
        space.user("mkdir -p app/pkg node_modules; echo SECRET > app/pkg/.env");
        space.run(EXCHANGE);
        let ran = space.run("cat node_modules/pkg/.env app/pkg/.env");
        assert!(!ran.stdout.contains("SECRET"), "{}", space.namespaces);
    });
}

#[test]
fn f7_late_writes_of_a_killed_haft_are_judged_as_the_commands() {
    const SCRIPT: &str = "exec 5> .git/hooks/pre-commit; chmod 755 .git/hooks/pre-commit; touch .ready; \
        while test ! -e .go; do :; done; printf '#!/bin/sh\\necho PWNED\\n' >&5; sleep 600";
    in_every_mode(|space| {
        space.user("git init -q .");
        let mut haft = space.fixture.bare(&space.fixture.program());
        haft.args(["sandbox", "--", "bash", "-c", SCRIPT]).env("HAFT_NAMESPACES", space.namespaces);
        let mut haft = haft.spawn().unwrap();
        let work = space.fixture.work();
        wait_until(|| work.join(".ready").exists());
        // More than a tick of the file system's clock after the last change that is recorded.
        let ready = Instant::now();
        wait_until(|| ready.elapsed() > Duration::from_millis(50));
        fs::write(work.join(".go"), "").unwrap();
        wait_until(|| !fs::read(work.join(".git/hooks/pre-commit")).unwrap().is_empty());
        haft.kill().unwrap();
        haft.wait().unwrap();
        wait_until(|| space.fixture.processes().is_empty());
        let log = space.fixture.haft(&["log"]);
        assert_eq!(log.code, 0, "{}", log.stderr);
        runs_nothing_planted(space, ".", COMMIT);
    });
}

#[test]
fn f8_undo_brings_nothing_into_effect_that_was_not_judged() {
    let hook = format!("{PLANT_HOOK} > h/pre-commit; chmod 755 h/pre-commit");
    for (set_up, scripts, planted) in [
        ("git init -q .; rm -f .git/hooks/*", ["mv .git/hooks h", hook.as_str()], ".git/hooks/pre-commit"),
        (
            "mkdir -p .claude/agents",
            ["mv .claude d", "echo PWNED > d/settings.json"],
            ".claude/settings.json",
        ),
    ] {
        in_every_mode(|space| {
            space.user(set_up);
            for script in scripts {
                let ran = space.run(script);
                assert_eq!(ran.code, 0, "{script}: {}", ran.stderr);
            }
            let undo = space.fixture.haft(&["undo", "1", "--yes"]);
            assert!(undo.code == 1 && undo.stdout.contains("conflict: a call wrote"), "{}", undo.stdout);
            assert!(!space.exists(planted), "{planted}");
            // It can be undone together with the call that wrote it.
            let undo = space.fixture.haft(&["undo", "1", "2", "--yes"]);
            assert_eq!(undo.code, 0, "{}{}", undo.stdout, undo.stderr);
            assert!(!space.exists(planted), "{planted}");
        });
    }
    // What the user had comes back.
    in_every_mode(|space| {
        space.user("git init -q .; mkdir .vscode; echo mine > .vscode/tasks.json; cp .git/hooks/pre-commit.sample .git/hooks/pre-commit");
        let ran = space.run("mv .git/hooks h; rm -r .vscode; true");
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        space.fixture.haft(&["undo", "--yes"]);
        assert!(space.exists(".vscode/tasks.json") && space.exists(".git/hooks/pre-commit"));
    });
}
