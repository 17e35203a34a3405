//! What an earlier call left is not the user's, wherever it is moved and whatever names it later.

use std::fs;

use super::guards::{REPOSITORY, in_every_mode};
use crate::fixture::sandbox::{CANARY, SandboxFixture, User};
use crate::fixture::wait_until;

#[test]
fn c3_hook_of_an_earlier_call_is_not_the_users() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.plants_nothing(&[
            "mkdir -p g/hooks; plant g/hooks/pre-commit",
            "rm g/hooks/pre-commit",
            "mkdir g/objects g/refs",
            "plant .git/hooks/pre-commit",
        ]);
    });
}

#[test]
fn c5_hooks_of_every_configuration_are_judged() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir -p .husky/_ && git config core.hooksPath .husky/_ && git config --global includeIf.gitdir:/nowhere/.path inc");
        space.user("printf '[core]\\n\\thooksPath = /nowhere/hooks\\n' > ~/inc");
        space.plants_nothing(&["plant .husky/_/pre-commit"]);
    });
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("git worktree add -q wt && git config extensions.worktreeConfig true && git -C wt config --worktree core.hooksPath myhooks && mkdir wt/myhooks");
        space.plants_nothing(&["plant wt/myhooks/pre-commit"]);
    });
}

#[test]
fn c5_hooks_are_judged_when_a_configuration_names_them_again() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir -p .husky/_ && git config core.hooksPath .husky/_");
        space.plants_nothing(&["mv .git g", "plant .husky/_/pre-commit", "mv g .git"]);
    });
}

#[test]
fn c6_links_that_git_reads_through_are_not_replaced() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user(
            "mkdir -p tools/hooks && ln -s tools/hooks .githooks && git config core.hooksPath .githooks",
        );
        space.plants_nothing(&["rm .githooks; mkdir .githooks; plant .githooks/pre-commit"]);
    });
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir cfg shared && echo > shared/inc && ln -s ../shared/inc cfg/inc && git config include.path ../cfg/inc");
        space.plants_nothing(&["rm cfg/inc; key > cfg/inc"]);
    });
}

#[test]
fn c7_chains_of_links_are_followed() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir scripts && printf '#!/bin/sh\\n' > scripts/pc && chmod +x scripts/pc && ln -s scripts/pc a && ln -s ../../a .git/hooks/pre-commit");
        space.plants_nothing(&["plant e.sh", "rm scripts/pc; ln -s ../e.sh scripts/pc"]);
    });
}

#[test]
fn c8_named_directory_gets_no_files_with_other_names() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir -p .husky/_ && printf '#!/bin/sh\\n' > .husky/_/pre-commit && chmod +x .husky/_/pre-commit && git config core.hooksPath .husky/_");
        let prepare = "mkdir prep; cp -p .husky/_/pre-commit prep/; ln prep/pre-commit other; mv .husky/_ old; mv prep .husky/_";
        assert_eq!(space.run(prepare).code, 0);
        space.run("echo 'echo evil' >> other");
        assert_eq!(space.read(".husky/_/pre-commit"), "#!/bin/sh\n");
    });
}

#[test]
fn c9_search_for_names_is_not_blinded() {
    in_every_mode(|space| {
        space.user("git init -q a && mkdir -p common/hooks && git -C a config core.hooksPath ../common/hooks && git -C a commit -q --allow-empty -m one");
        space.plants_nothing(&[
            "python3 -c \"for i in range(20001): open('z%d' % i, 'w').close()\"",
            "plant common/hooks/pre-commit",
        ]);
    });
    in_every_mode(|space| {
        space.user("mkdir -p sub vs && echo '{}' > vs/tasks.json && ln -s ../vs sub/.vscode");
        let ran = space.run("mv sub target");
        assert!(ran.stderr.contains("Refused: move"), "{}", ran.stderr);
    });
}

#[test]
fn c10_file_tools_ask_about_what_sibling_repositories_name() {
    in_every_mode(|space| {
        space.user("git init -q a && mkdir -p common/hooks && printf '#!/bin/sh\\n' > common/hooks/pre-commit && chmod +x common/hooks/pre-commit && git -C a config core.hooksPath ../common/hooks");
        let mut session = space.fixture.session(space.namespaces);
        let path = space.fixture.work().join("common/hooks/pre-commit");
        let result = session.call("Write", &haft::json!({"file_path": path, "content": "#!/bin/sh\nevil\n"}));
        assert!(result["isError"] == true, "{result}");
        assert_eq!(space.read("common/hooks/pre-commit"), "#!/bin/sh\n");
    });
}

#[test]
fn c13_later_work_of_the_user_survives_the_judgement_at_recovery() {
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("work/.vscode/settings.json", "{}\n");
    let mut haft = fixture.bare(&fixture.program());
    let script = "cp .vscode/settings.json c; cat c > .vscode/settings.json; touch ready; sleep 600";
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    haft.kill().unwrap();
    haft.wait().unwrap();
    wait_until(|| fixture.processes().is_empty());
    let ended = || fs::metadata(fixture.path("ledger/spool/1")).unwrap().modified().unwrap();
    wait_until(|| ended().elapsed().is_ok_and(|elapsed| elapsed.as_millis() > 50));
    fixture.file("work/.vscode/settings.json", "{\"mine\": 1}\n");
    assert_eq!(fixture.haft(&["log"]).code, 0);
    let kept = fs::read_to_string(fixture.work().join(".vscode/settings.json")).unwrap();
    assert_eq!(kept, "{\"mine\": 1}\n");
}

#[test]
fn c14_reused_inode_is_not_the_commands_own_file() {
    let fixture = SandboxFixture::new(User::Current);
    let mut haft = fixture.bare(&fixture.program());
    let script =
        "mkdir d; echo own > d/x; touch ready; while [ ! -e go ]; do sleep 0.05; done; echo evil > d/theirs";
    let mut haft = haft.args(["sandbox", "--", "bash", "-c", script]).spawn().unwrap();
    wait_until(|| fixture.work().join("ready").exists());
    assert_eq!(fixture.unsandboxed("rm d/x; echo theirs > d/theirs; touch go").code, 0);
    assert!(haft.wait().unwrap().success());
    assert_eq!(fixture.haft(&["undo", "--yes", "1"]).code, 0);
    assert_eq!(fs::read_to_string(fixture.work().join("d/theirs")).unwrap(), "theirs\n");
}

#[test]
fn c15_secret_is_not_moved_to_where_it_is_not_looked_for() {
    in_every_mode(|space| {
        space.user(&format!("mkdir sub && echo {CANARY} > .env && cp .env sub/.env"));
        for (hide, read) in [
            ("mkdir -p node_modules; mv .env node_modules/", "cat node_modules/.env .env"),
            ("mv sub target", "cat target/.env sub/.env"),
            ("mkdir -p vendor; ln .env vendor/.env; mv sub vendor/sub", "cat vendor/.env vendor/sub/.env"),
        ] {
            space.run(hide);
            let ran = space.run(read);
            assert!(!ran.stdout.contains(CANARY), "{hide}: {}", ran.stdout);
        }
    });
}

#[test]
fn c2_directory_is_not_passed_as_standard_input() {
    let fixture = SandboxFixture::new(User::Current);
    let mut command = fixture.sandboxed(&[], "ls /proc/self/fd/0/");
    let ran = fixture.run(command.stdin(fs::File::open(fixture.path("outside")).unwrap()));
    assert!(ran.code == 125 && ran.stderr.contains("Standard input is a directory"), "{}", ran.stderr);
}
