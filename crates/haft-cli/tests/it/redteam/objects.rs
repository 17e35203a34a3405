//! Who owns a git object depends on who wrote it first, not on the file that contains it now.

use std::fs;

use super::guards::{REVISIONS, Workspace, in_every_mode};

/// Makes a branch with a command's settings, without touching the working tree.
const PLANT_BRANCH: &str = "blob=$(printf evil | git hash-object -w --stdin); \
     tree=$(printf '100644 blob %s\\ttasks.json\\n' $blob | git mktree); \
     tree=$(printf '040000 tree %s\\t.vscode\\n' $tree | git mktree); \
     git update-ref refs/heads/evil $(git commit-tree -p HEAD -m evil $tree)";
const CHECK_OUT_PLANTED: &str = "git checkout -q evil -- .vscode; true";

fn is_refused(space: &Workspace, folder: &str, script: &str) {
    let ran = space.run_in(folder, script);
    let tasks = fs::read_to_string(space.fixture.path(folder).join(".vscode/tasks.json")).unwrap_or_default();
    assert!(
        !tasks.contains("evil") && ran.stderr.contains("Refused"),
        "{} {script}: {tasks} {}",
        space.namespaces,
        ran.stderr
    );
}

fn works(space: &Workspace, folder: &str, script: &str) {
    let ran = space.run_in(folder, script);
    let said = format!("{} {script}: {}{}", space.namespaces, ran.stdout, ran.stderr);
    assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{said}");
    let mut status = space.fixture.command("git");
    status.args(["status", "--short", "--untracked-files=no"]).current_dir(space.fixture.path(folder));
    assert_eq!(space.fixture.run(&mut status).stdout, "", "{said}");
}

#[test]
fn b6_object_of_a_command_stays_so_when_the_user_packs_it() {
    for scripts in [
        &[PLANT_BRANCH][..],
        &[PLANT_BRANCH, "git repack -adq"],
        &[PLANT_BRANCH, "git -c pack.indexVersion=1 repack -adq"],
        &[PLANT_BRANCH, "git repack -adq; git multi-pack-index write"],
        // The name of a loose object does not reveal where its directory will be.
        &[
            "git init -q y; cd y; printf evil | git hash-object -w --stdin; mkdir ../q; \
             cp .git/objects/*/* ../q/; rm -rf ../y",
            PLANT_BRANCH,
        ],
    ] {
        in_every_mode(|space| {
            space.user(REVISIONS);
            for script in scripts {
                space.run(script);
            }
            is_refused(space, "work", CHECK_OUT_PLANTED);
            space.user("git gc -q --prune=now || true");
            is_refused(space, "work", CHECK_OUT_PLANTED);
            space.run("git gc -q");
            space.user("git gc -q || true");
            is_refused(space, "work", CHECK_OUT_PLANTED);
        });
    }
}

#[test]
fn c12_object_behind_a_linked_index_stays_the_commands_when_the_user_packs_it() {
    // Writes pack and index under other names, so that only links have the names that git looks for.
    const PLANT_LINKED_PACK: &str = r"git init -q y; cd y; blob=$(printf evil | git hash-object -w --stdin)
        tree=$(printf '100644 blob %s\ttasks.json\n' $blob | git mktree)
        tree=$(printf '040000 tree %s\t.vscode\n' $tree | git mktree)
        commit=$(git commit-tree -m evil $tree)
        git rev-list --objects $commit | cut -c1-40 | git pack-objects -q --stdout > p.pack
        git index-pack -o p.idx p.pack; cat p.pack > ../one; cat p.idx > ../two; cd ..; rm -rf y
        pack=.git/objects/pack/pack-0000000000000000000000000000000000000000
        mkdir -p .git/objects/pack; ln -s ../../../one $pack.pack; ln -s ../../../two $pack.idx
        git update-ref refs/heads/evil $commit";
    in_every_mode(|space| {
        space.user(REVISIONS);
        space.run(PLANT_LINKED_PACK);
        space.user("git cat-file -e evil:.vscode/tasks.json");
        is_refused(space, "work", CHECK_OUT_PLANTED);
        space.user("git gc -q --prune=now || true");
        is_refused(space, "work", CHECK_OUT_PLANTED);
    });
}

#[test]
fn b6_object_of_a_command_stays_so_when_the_user_moves_or_copies_the_workspace() {
    in_every_mode(|space| {
        space.user(REVISIONS);
        space.run(PLANT_BRANCH);
        space.fixture.dir("copy");
        space.user("cp -r . ../copy");
        is_refused(space, "copy", CHECK_OUT_PLANTED);
        works(space, "copy", "git reset -q --hard && git checkout -q other && git checkout -q main");
        fs::rename(space.fixture.path("work"), space.fixture.path("renamed")).unwrap();
        is_refused(space, "renamed", CHECK_OUT_PLANTED);
        works(space, "renamed", "git reset -q --hard && git checkout -q other && git checkout -q main");
    });
}

#[test]
fn file_of_a_command_is_not_the_users_because_he_commits_it() {
    in_every_mode(|space| {
        space.user(REVISIONS);
        space.run("printf evil > notes");
        space.user("git add notes && git commit -qm notes");
        is_refused(space, "work", "cp notes .vscode/tasks.json");
        space.user("git gc -q");
        is_refused(space, "work", "cp notes .vscode/tasks.json");
        works(space, "work", "git checkout -q other && git checkout -q main");
    });
}

#[test]
fn b8_revisions_of_the_user_stay_so_when_a_command_packs_them() {
    for scripts in [
        &["git gc -q", "git checkout -q other"][..],
        &["git gc -q && git checkout -q other"],
        &[
            "git repack -dq",
            "echo 3 > h; git add h; git commit -qm three; git gc -q",
            "git checkout -q other",
        ],
        &["git gc -q", "git gc -q --aggressive --prune=now", "git merge -q other"],
        &["git clone -q . copy", "git checkout -q other"],
    ] {
        in_every_mode(|space| {
            space.user(REVISIONS);
            for script in scripts {
                works(space, "work", script);
            }
        });
    }
    in_every_mode(|space| {
        space.user(REVISIONS);
        works(space, "work", "git gc -q");
        space.user("git gc -q --prune=now");
        works(space, "work", "git checkout -q other && git checkout -q main");
        fs::rename(space.fixture.path("work"), space.fixture.path("renamed")).unwrap();
        works(space, "renamed", "git checkout -q other");
    });
}

#[test]
fn b8_revisions_of_the_user_after_commands_packed_theirs() {
    in_every_mode(|space| {
        space.user(REVISIONS);
        // The command's packs are gone later, but the ledger knows what they contained.
        works(space, "work", "echo 3 > h; git add h; git commit -qm three; git repack -adq");
        space.user("git checkout -q other && echo later > .vscode/tasks.json && git commit -qam four && git checkout -q main");
        space.user("git gc -q --prune=now");
        works(space, "work", "git checkout -q other");
        assert_eq!(space.read(".vscode/tasks.json"), "later\n");
    });
}

#[test]
fn f9_revisions_of_the_user_stay_so_when_git_converts_their_line_ends() {
    in_every_mode(|space| {
        space.user(REVISIONS);
        space.user("printf '* text=auto eol=crlf\\n' > .gitattributes; git add .; git commit -qm ends; git merge -q other");
        works(space, "work", "git checkout -q HEAD~1 && git checkout -q main");
        is_refused(space, "work", "printf 'evil\\r\\n' > .vscode/tasks.json");
    });
}
