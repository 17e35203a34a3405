//! Files of the workspace that the user's own configurations are, or name for all repositories.

use haft::json;

use super::guards::{REPOSITORY, Workspace, in_every_mode};
use super::hidden::{COMMIT, runs_nothing_planted};

const CONFIG: &str = "printf '[core]\\n\\tfsmonitor = \"echo PWNED >&2; false\"\\n'";
const HOOK: &str = "printf '#!/bin/sh\\necho PWNED\\n'";

/// Runs a script in the sandbox and expects a refusal that leaves the file as it was.
fn is_refused(space: &Workspace, script: &str, file: &str) {
    let before = space.read(file);
    let ran = space.run(script);
    assert!(ran.stderr.contains("Refused"), "{} {script}: {}", space.namespaces, ran.stderr);
    assert_eq!(space.read(file), before, "{} {script}: {}", space.namespaces, ran.stderr);
}

/// Writes a file with a file tool and expects a refusal.
fn is_refused_to_tools(space: &Workspace, file: &str) {
    let before = space.read(file);
    let mut session = space.fixture.session(space.namespaces);
    let path = space.fixture.path("work").join(file);
    session.call("Read", &json!({"file_path": path}));
    let result =
        session.call("Write", &json!({"file_path": path, "content": "[core]\n\tfsmonitor = evil\n"}));
    assert_eq!(space.read(file), before, "{}: {result}", space.namespaces);
    assert!(result.to_string().contains("--allow-write"), "{}: {result}", space.namespaces);
}

#[test]
fn configuration_of_the_user_in_the_workspace_is_judged() {
    in_every_mode(|space| {
        space.user(&format!(
            "{REPOSITORY}; mkdir dot; mv ~/.gitconfig dot/gc; ln -s $PWD/dot/gc ~/.gitconfig"
        ));
        is_refused(space, &format!("{CONFIG} >> dot/gc"), "dot/gc");
        is_refused_to_tools(space, "dot/gc");
        runs_nothing_planted(space, ".", "git status");
    });
    in_every_mode(|space| {
        space.user(REPOSITORY);
        for variable in ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"] {
            let mut command = space.fixture.sandboxed(&[], &format!("{CONFIG} > gc"));
            command.env(variable, space.fixture.path("work/gc")).env("HAFT_NAMESPACES", space.namespaces);
            let ran = space.fixture.run(&mut command);
            assert!(ran.stderr.contains("Refused"), "{variable}: {}", ran.stderr);
            assert!(!space.exists("gc"), "{variable}: {}", ran.stderr);
        }
    });
}

#[test]
fn what_configurations_of_the_user_name_is_judged_without_a_repository() {
    in_every_mode(|space| {
        space.user("mkdir shared; echo > shared/inc; git config --global include.path $PWD/shared/inc");
        is_refused(space, &format!("{CONFIG} > shared/inc"), "shared/inc");
        is_refused_to_tools(space, "shared/inc");
        space.user("git init -q ../outside/r");
        runs_nothing_planted(space, "../outside/r", "git status");
    });
}

#[test]
fn hooks_of_the_users_template_are_judged() {
    in_every_mode(|space| {
        space.user("mkdir -p tpl/hooks; git config --global init.templateDir $PWD/tpl");
        let hook = format!("{HOOK} > tpl/hooks/post-checkout; chmod 755 tpl/hooks/post-checkout");
        is_refused(space, &hook, "tpl/hooks/post-checkout");
        is_refused(space, &format!("{CONFIG} > tpl/config"), "tpl/config");
        space.user(&format!("mkdir ../outside/o; cd ../outside/o; {REPOSITORY}"));
        runs_nothing_planted(space, "../outside", "git clone o p; cd p; git status");
    });
}

#[test]
fn links_from_the_home_are_followed() {
    in_every_mode(|space| {
        space.user(
            "mkdir -p zsh fish ~/.config/fish dot/tools; echo : | tee zsh/rc fish/c dot/tools/config.toml",
        );
        space.user("ln -s $PWD/zsh/rc ~/.bashrc; ln -s $PWD/fish/c ~/.config/fish/config.fish; ln -s $PWD/dot/tools ~/.config/mise");
        for file in ["zsh/rc", "fish/c", "dot/tools/config.toml"] {
            is_refused(space, &format!("echo echo PWNED > {file}"), file);
            is_refused_to_tools(space, file);
        }
    });
}

#[test]
fn home_of_a_named_user_is_expanded() {
    in_every_mode(|space| {
        // The homes of root and of the unprivileged user differ, and both are directories.
        let up = "$(getent passwd root | cut -d: -f6 | sed 's,[^/]*/*,../,g')";
        space.user(&format!(
            "{REPOSITORY}; mkdir shared; echo > shared/inc; git config include.path \"~root/{up}$PWD/shared/inc\""
        ));
        is_refused(space, &format!("{CONFIG} > shared/inc"), "shared/inc");
    });
}

#[test]
fn hooks_of_a_bare_repository_with_a_working_tree_are_judged() {
    in_every_mode(|space| {
        space.user("git init -q --bare repo.git; git -C repo.git config core.bare false; git -C repo.git config core.worktree $PWD");
        space.user("git -C repo.git config core.hooksPath .hk; mkdir .hk");
        is_refused(space, &format!("{HOOK} > .hk/pre-commit; chmod 755 .hk/pre-commit"), ".hk/pre-commit");
        runs_nothing_planted(space, ".", &format!("export GIT_DIR=repo.git; {COMMIT}"));
    });
}
