//! What would make programs run outside the sandbox is judged by what is on disk, whichever calls wrote which part.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use haft::{CallOptions, Runtime, json};

use crate::fixture::cli::RunOutput;
use crate::fixture::runtime::Directories;
use crate::fixture::sandbox::{SandboxFixture, User};

/// Runs `test` for every user, with and without namespaces.
pub(super) fn in_every_mode(test: impl Fn(&Workspace)) {
    for user in User::all() {
        for namespaces in ["true", "false"] {
            test(&Workspace { fixture: SandboxFixture::new(*user), namespaces });
        }
    }
}

pub(super) struct Workspace {
    pub(super) fixture: SandboxFixture,
    pub(super) namespaces: &'static str,
}

impl Workspace {
    /// Runs a script in the sandbox, as one command in a session of its own.
    pub(super) fn run(&self, script: &str) -> RunOutput {
        self.run_in("work", script)
    }

    pub(super) fn run_in(&self, folder: &str, script: &str) -> RunOutput {
        let mut command = self.fixture.sandboxed(&[], script);
        command.current_dir(self.fixture.path(folder));
        self.fixture.run(command.env("HAFT_NAMESPACES", self.namespaces))
    }

    /// Runs a script as the user, and expects that it works.
    pub(super) fn user(&self, script: &str) -> String {
        let ran = self.fixture.unsandboxed(script);
        assert_eq!(ran.code, 0, "{script}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.fixture.path("work").join(name)).unwrap_or_default()
    }

    pub(super) fn exists(&self, name: &str) -> bool {
        self.fixture.path("work").join(name).symlink_metadata().is_ok()
    }

    /// Runs the scripts one after another, then git as the user. Expects that nothing planted was run and that something was
    /// refused.
    pub(super) fn plants_nothing(&self, scripts: &[&str]) {
        let mut said = String::new();
        for script in scripts {
            let out = self.fixture.path("outside");
            let script = format!("OUT={}\n{PLANT}{script}", out.display());
            let ran = self.run(&script);
            said += &format!("{}{}\n", ran.stdout, ran.stderr);
        }
        self.run_git_everywhere(&self.fixture.path("work"));
        let trace = self.fixture.path("outside/pwned");
        assert!(!trace.exists(), "{} {scripts:?}: {said}", self.namespaces);
        assert!(said.contains("Refused:"), "{} {scripts:?}: {said}", self.namespaces);
    }

    fn run_git_everywhere(&self, folder: &Path) {
        let script = "for each in status 'checkout -q -b later' 'commit -q --allow-empty -m later' 'add .' diff; do \
                      GIT_EDITOR=true timeout 20 git $each; done; true";
        self.fixture.run(self.fixture.command("bash").args(["-c", script]).current_dir(folder));
        for entry in fs::read_dir(folder).unwrap().flatten() {
            if entry.file_type().unwrap().is_dir() {
                self.run_git_everywhere(&entry.path());
            }
        }
    }
}

const PLANT: &str = "plant() { printf '#!/bin/sh\\ntouch %s/pwned\\n' $OUT > $1; chmod +x $1; }\n\
key() { printf '[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = touch %s/pwned #\\n' $OUT; }\n";

pub(super) const REPOSITORY: &str = "git init -q . && echo 1 > f && git add . && git commit -qm one";

#[test]
fn e02_repository_is_not_replaced_in_parts() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.plants_nothing(&[
            "mv .git old",
            "mkdir .git; cp old/HEAD .git/; cp -r old/refs .git/; key > .git/config",
            "mv old/objects .git/objects",
        ]);
    });
    in_every_mode(|space| {
        space.plants_nothing(&[
            "mkdir -p .git/refs; echo 'ref: refs/heads/main' > .git/HEAD; key > .git/config",
            "mkdir -p .git/objects .git/refs",
        ]);
    });
    // The same in one command, and with a copy that is moved into place.
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.plants_nothing(&["cp -r .git g; key >> g/config; mv .git old; mv g .git"]);
        assert!(space.exists(".git") || space.exists("old"));
    });
}

#[test]
fn e04_hook_through_a_handle_of_a_moved_directory_is_found() {
    for namespaces in [true, false] {
        let directories = Directories::new();
        let work = directories.folder.path();
        fs::create_dir(work.join("x")).unwrap();
        let git = std::process::Command::new("git").args(["init", "-q"]).current_dir(work).status().unwrap();
        assert!(git.success());
        fs::remove_dir_all(work.join(".git/hooks")).unwrap();
        let builder =
            Runtime::builder().workspace(work).home(directories.home.path()).dialect(haft::claude());
        let mut options = haft::SandboxOptions::default();
        options.namespaces = namespaces;
        let builder = builder.sandbox_options(options);
        let runtime = builder.build().unwrap();
        let call = |id: &str, arguments| {
            runtime
                .run_blocking(haft::Call::new(id, "Bash", arguments), CallOptions::default())
                .output
                .as_text()
        };
        // The first command holds the directory open and waits until it has another name.
        let holder = "w=$PWD; cd x; touch ready; while [ ! -e $w/moved ]; do sleep 0.01; done; \
                      printf '#!/bin/sh\\n' > post-commit; chmod +x post-commit; touch done; sleep 600";
        call("1", json!({"command": holder, "run_in_background": true}));
        call(
            "2",
            json!({"command": "while [ ! -e x/ready ]; do sleep 0.01; done; mv x .git/hooks; touch moved"}),
        );
        // The handle's directory is judged by its current name, and the hook is removed although the command goes on.
        let waits = "while [ ! -e .git/hooks/done ]; do sleep 0.01; done; \
                     while [ -e .git/hooks/post-commit ]; do sleep 0.01; done; echo gone";
        let waited = call("3", json!({"command": waits, "timeout": 60000}));
        assert!(waited.contains("gone"), "{waited}");
        drop(runtime);
        assert!(!work.join(".git/hooks/post-commit").exists());
    }
}

#[test]
fn e10_folder_that_a_command_made_has_no_free_settings() {
    in_every_mode(|space| {
        space.user("mkdir -p sub/.vscode && echo '{}' > sub/.vscode/tasks.json");
        let ran = space.run("mv sub away; cp -r away sub; echo evil > sub/.vscode/tasks.json; true");
        assert!(ran.stderr.contains("Refused:"), "{}", ran.stderr);
        assert!(!space.read("sub/.vscode/tasks.json").contains("evil"));
        let ran = space.run("mkdir -p new/.claude; echo '{\"hooks\":{}}' > new/.claude/settings.json");
        assert!(
            ran.stderr.contains("Refused: write") && !space.exists("new/.claude/settings.json"),
            "{}",
            ran.stderr
        );
        // The copy contains what the user already had.
        let ran = space.run("mkdir deep; cp -r away deep/copy");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        assert_eq!(space.read("deep/copy/.vscode/tasks.json"), "{}\n");
    });
}

#[test]
fn e11_workspace_below_a_folder_called_vendor_is_guarded() {
    in_every_mode(|space| {
        for folder in ["vendor/p", "target/p", "node_modules/p", "site-packages/p"] {
            space.fixture.dir(folder);
            let ran = space
                .run_in(folder, "echo evil > .mcp.json; mkdir .vscode; echo evil > .vscode/tasks.json; true");
            assert!(ran.stderr.contains("Refused: write"), "{folder}: {}", ran.stderr);
            assert!(!space.fixture.path(folder).join(".mcp.json").exists(), "{folder}");
            assert!(!space.fixture.path(folder).join(".vscode/tasks.json").exists(), "{folder}");
        }
        let ran = space.run("mkdir -p vendor/q node_modules/q; for d in vendor node_modules; do echo evil > $d/q/.mcp.json; done");
        assert!(
            !space.exists("vendor/q/.mcp.json") && !space.exists("node_modules/q/.mcp.json"),
            "{}",
            ran.stderr
        );
    });
}

#[test]
fn e12_bare_repository_is_not_completed_in_parts() {
    let bare = "mkdir -p b/refs b/objects; key > b/config";
    for scripts in [
        &[bare, "echo 'ref: refs/heads/main' > b/HEAD"][..],
        &[bare, "ln -s refs/heads/main b/HEAD"],
        &["mkdir -p b/refs; key > b/config; echo 'ref: refs/heads/main' > b/HEAD", "mkdir b/objects"],
        &["mkdir -p b/refs o; key > b/config; echo 'ref: refs/heads/main' > b/HEAD", "mv o b/objects"],
        &["mkdir -p b/hooks; plant b/hooks/post-checkout", "git init -q --bare b"],
        &["git init -q --bare b", "key >> b/config"],
        &["git init -q --bare b", "plant b/hooks/reference-transaction"],
        &[
            "git init -q --bare b",
            "plant b/hooks/x.sample",
            "mv b/hooks/x.sample b/hooks/reference-transaction",
        ],
        // A configuration that is not in the git directory itself but in its common directory.
        &[
            "mkdir -p c/objects c/refs n/.git; echo 'ref: refs/heads/main' > n/.git/HEAD; echo ../../c > n/.git/commondir",
            "key > c/config",
        ],
        &[
            "mkdir c; key > c/config",
            "mkdir -p n/.git; echo 'ref: refs/heads/main' > n/.git/HEAD; echo ../../c > n/.git/commondir",
            "mkdir c/objects c/refs",
        ],
    ] {
        in_every_mode(|space| space.plants_nothing(scripts));
    }
}

#[test]
fn e12_links_do_not_lead_git_elsewhere() {
    for scripts in [
        // Commands may write to their temporary directory, where nothing is judged.
        &["git init -q --bare $TMPDIR/g; key >> $TMPDIR/g/config; mkdir n; echo gitdir: $TMPDIR/g > n/.git"]
            [..],
        &["git init -q --bare $TMPDIR/g; key >> $TMPDIR/g/config; mkdir n; ln -s $TMPDIR/g n/.git"],
        &["git init -q n; key > c; rm n/.git/config; ln -s ../../c n/.git/config"],
        &["git init -q n; mkdir h; plant h/post-checkout; rm -rf n/.git/hooks; ln -s ../../h n/.git/hooks"],
        &["git init -q n; plant h; ln -s ../../../h n/.git/hooks/post-index-change"],
    ] {
        in_every_mode(|space| space.plants_nothing(scripts));
    }
}

#[test]
fn files_that_the_configuration_names_are_judged() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir hooks; git config include.path ../shared.inc; git config core.hooksPath hooks");
        space.plants_nothing(&["key > shared.inc"]);
        space.plants_nothing(&["plant hooks/post-index-change"]);
        space.user("printf '#!/bin/sh\\n' > hooks/pre-push; chmod +x hooks/pre-push");
        space.plants_nothing(&["plant hooks/pre-push"]);
        assert_eq!(space.read("hooks/pre-push"), "#!/bin/sh\n");
        let ran = space.run("printf '[user]\\n\\tname = B\\n' > shared.inc; git config --get user.name");
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "B\n"), "{}", ran.stderr);
    });
}

/// Two revisions with different tracked settings; the working tree has the first.
pub(super) const REVISIONS: &str = "git init -q . && mkdir .vscode && echo one > .vscode/tasks.json && echo one > .mcp.json && \
     echo 1 > f && git add -f . && git commit -qm one && git checkout -qb other && echo two > .vscode/tasks.json && \
     git rm -q .mcp.json && mkdir -p sub/.claude && echo two > sub/.claude/settings.json && echo 2 > g && \
     git add -f . && git commit -qm two && git checkout -q main";

#[test]
fn git_changes_between_revisions_with_different_settings() {
    for script in [
        "git checkout -q other && cat .vscode/tasks.json && git checkout -q main && cat .mcp.json",
        "git merge -q other && cat .vscode/tasks.json sub/.claude/settings.json",
        "echo 3 > h && git add h && git commit -qm three && git rebase -q other && cat .vscode/tasks.json",
        "git checkout -q other -- .vscode && git reset -q --hard && cat .vscode/tasks.json",
        "git worktree add -q tree other && cat tree/.vscode/tasks.json && git -C tree status --short",
        "git stash -q 2>/dev/null; git switch -q other; git switch -q -; git cherry-pick other > /dev/null; cat .vscode/tasks.json",
    ] {
        in_every_mode(|space| {
            space.user(REVISIONS);
            let ran = space.run(script);
            let said = format!("{script}: {}{}", ran.stdout, ran.stderr);
            assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{said}");
            let status = space.user("git status --short --untracked-files=no");
            assert_eq!(status, "", "{said}");
        });
    }
}

#[test]
fn stashed_settings_come_back_in_a_later_call() {
    in_every_mode(|space| {
        space.user(REVISIONS);
        space.user("echo mine > .vscode/tasks.json");
        for script in ["git stash -q", "git checkout -q other; git checkout -q main", "git stash pop -q"] {
            let ran = space.run(script);
            assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{script}: {}", ran.stderr);
        }
        assert_eq!(space.read(".vscode/tasks.json"), "mine\n");
    });
}

#[test]
fn objects_that_commands_wrote_are_not_the_users() {
    for scripts in [
        &["echo evil > x; git hash-object -w x; cp x .mcp.json"][..],
        &["echo evil > x; git hash-object -w x", "cp x .mcp.json"],
        &["echo evil > x; git add x; git commit -qm x; git gc -q", "cp x .mcp.json"],
        &[
            "git init -q y; echo evil > x; cd y; git hash-object -w ../x",
            "mv y/.git/objects/?? .git/objects/; cp x .mcp.json",
        ],
        &[
            "git init -q y; echo evil > x; cd y; git hash-object -w ../x",
            "mv y/.git/objects/?? .git/objects/",
            "cp x .mcp.json",
        ],
        &[
            "cp -r .git g; echo evil > x; GIT_DIR=g git hash-object -w x",
            "mv .git old; mv g .git",
            "cp x .mcp.json",
        ],
        &[
            "echo evil > x; b=$(git hash-object -w x); t=$(printf '100644 blob %s\\t.mcp.json\\n' $b | git mktree); \
             git update-ref refs/heads/evil $(git commit-tree -m evil $t)",
            "git checkout -q evil -- .mcp.json",
        ],
    ] {
        in_every_mode(|space| {
            space.user(REVISIONS);
            let said: Vec<String> = scripts.iter().map(|script| space.run(script).stderr).collect();
            assert!(!space.read(".mcp.json").contains("evil"), "{scripts:?}: {said:?}");
            assert!(said.last().unwrap().contains("Refused"), "{scripts:?}: {said:?}");
        });
    }
}

#[test]
fn clone_is_made_and_removed() {
    in_every_mode(|space| {
        space.user(&format!("mkdir origin; cd origin; {REVISIONS}"));
        let ran = space
            .run("git clone -q origin copy && cat copy/.vscode/tasks.json && git -C copy status --short");
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "one\n", ""), "the same bytes");
        let ran = space.run("rm -rf copy origin/.git/nothing && ls");
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "origin\n", ""));
        let ran = space.run("rm -rf origin");
        assert!(ran.code == 0 && ran.stderr.is_empty() && !space.exists("origin"), "{}", ran.stderr);
    });
}

#[test]
fn new_repositories_are_made_but_programs_are_refused() {
    in_every_mode(|space| {
        let ran = space.run(
            "git init -q a && cd a && echo 1 > f && git add f && git commit -qm one && git remote add o ../x && \
             git worktree add -q ../w && cd .. && git init -q b && cd b && git commit -q --allow-empty -m one && \
             git -c protocol.file.allow=always submodule --quiet add ../a sub && git commit -qm sub && git status --short",
        );
        assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", ""));
        let ran = space.run("cd a && git config filter.lfs.clean 'git-lfs clean -- %f'");
        assert!(ran.stderr.contains("Refused:") && ran.stderr.contains("filter.lfs.clean"), "{}", ran.stderr);
        let ran =
            space.run("git init -q c && cd c && git config filter.lfs.clean 'git-lfs clean -- %f'; true");
        assert!(ran.stderr.contains("Refused:") && ran.stderr.contains("filter.lfs.clean"), "{}", ran.stderr);
        assert!(!space.read("a/.git/config").contains("lfs") && !space.read("c/.git/config").contains("lfs"));
    });
}

#[test]
fn hook_is_copied_only_as_it_is() {
    in_every_mode(|space| {
        space.user(&format!("mkdir a b; (cd a; {REPOSITORY}); (cd b; {REPOSITORY})"));
        space.user("printf '#!/bin/sh\\ntrue\\n' > a/.git/hooks/pre-push; chmod +x a/.git/hooks/pre-push");
        let ran = space.run("cp a/.git/hooks/pre-push b/.git/hooks/ && cp -r a c && rm -rf a && mv c a");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
        let mode =
            fs::metadata(space.fixture.path("work/a/.git/hooks/pre-push")).unwrap().permissions().mode();
        assert_eq!(mode & 0o111, 0o111);
        let ran = space.run("cp a/.git/hooks/pre-push b/.git/hooks/post-commit");
        assert!(
            ran.stderr.contains("Refused") && !space.exists("b/.git/hooks/post-commit"),
            "another name: {}",
            ran.stderr
        );
        let ran = space.run("echo more >> b/.git/hooks/pre-push");
        assert!(ran.stderr.contains("Refused"), "{}", ran.stderr);
        assert_eq!(space.read("b/.git/hooks/pre-push"), "#!/bin/sh\ntrue\n");
        let ran = space.run("printf '#!/bin/sh\\n' > b/.git/hooks/pre-commit; true");
        assert!(!ran.stderr.contains("Refused"), "git does not run it: {}", ran.stderr);
        let ran = space.run("chmod +x b/.git/hooks/pre-commit; true");
        assert!(ran.stderr.contains("Refused"), "{}", ran.stderr);
    });
}

#[test]
fn accepted_settings_are_not_changed_through_another_name_or_handle() {
    in_every_mode(|space| {
        space.user("echo mine > .mcp.json");
        for scripts in [
            &["cp .mcp.json x; rm .mcp.json; ln x .mcp.json", "echo evil > x"][..],
            &["cp .mcp.json x; exec 3>> x; mv x .mcp.json; echo evil >&3; true"],
            &["ln -s .mcp.json l; echo evil > l; true"],
            &["cp .mcp.json x; ln -sf x .mcp.json", "echo evil > x"],
        ] {
            for script in scripts {
                space.run(script);
            }
            assert_eq!(space.read(".mcp.json"), "mine\n", "{scripts:?}");
            space.user("rm -f x l");
        }
    });
}

#[test]
fn refused_settings_are_as_before_and_on_no_receipt() {
    in_every_mode(|space| {
        space.user(
            "echo mine > .mcp.json; mkdir .claude; echo '{}' > .claude/settings.json; chmod 600 .mcp.json",
        );
        let ran = space.run(
            "echo evil > .mcp.json; rm -rf .claude; mkdir .claude; echo a > .claude/notes; echo b > other",
        );
        assert!(
            ran.stderr.contains("Refused: write") && ran.stderr.contains("Refused: delete"),
            "{}",
            ran.stderr
        );
        assert!(ran.stderr.contains("--allow-write"), "{}", ran.stderr);
        assert_eq!(
            (space.read(".mcp.json").as_str(), space.read(".claude/settings.json").as_str()),
            ("mine\n", "{}\n")
        );
        let mode = fs::metadata(space.fixture.path("work/.mcp.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let shown = space.fixture.haft(&["show", "1", "--json"]).stdout;
        let receipt: haft::Value = serde_json::from_str(&shown).unwrap();
        let text = receipt["changes"].to_string();
        assert!(text.contains("other") && text.contains("notes"), "{text}");
        assert!(!text.contains(".mcp.json") && !text.contains("settings.json"), "{text}");
        let undone = space.fixture.haft(&["undo", "--yes"]);
        assert_eq!(undone.code, 0, "{}", undone.stderr);
        assert!(
            !space.exists("other") && !space.exists(".claude/notes") && space.exists(".claude/settings.json")
        );
    });
}
