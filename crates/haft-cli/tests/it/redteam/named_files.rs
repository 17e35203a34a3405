//! Files that are guarded because something leads to them: links of the user, git configurations, directories that several
//! calls prepare.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use haft::json;

use crate::fixture::sandbox::{SandboxFixture, User};

use super::sandbox::{in_every_mode, run};

/// Runs a script outside, as the user.
fn set_up(fixture: &SandboxFixture, script: &str) {
    let ran = fixture.unsandboxed(&format!("set -e\n{script}"));
    assert_eq!(ran.code, 0, "{}", ran.stderr);
}

fn text(fixture: &SandboxFixture, name: &str) -> String {
    fs::read_to_string(fixture.path(name)).unwrap_or_default()
}

/// The user's links and configurations, and the files of the workspace that they lead to.
const LED_TO: &[&str] = &[
    "work/shared/tasks.json",
    "work/vs/settings.json",
    "work/zed/settings.json",
    "work/m/mcp.json",
    "work/c/scripts/pre-commit",
    "work/common/hooks/pre-commit",
    "work/common/git.inc",
    "work/a/githooks/post-index-change",
];

fn user_setup(fixture: &SandboxFixture) {
    for name in LED_TO {
        fixture.file(name, "old\n");
        if name.contains("hook") || name.contains("pre-commit") {
            fs::set_permissions(fixture.path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    fixture.file("work/common/git.inc", "[color]\n\tui = auto\n");
    set_up(
        fixture,
        "git init -q a; git init -q b; git init -q c; mkdir -p .vscode sub; ln -s ../shared/tasks.json .vscode/tasks.json; ln -s ../vs sub/.vscode; ln -s zed .zed\n\
         ln -s m/mcp.json .mcp.json; ln -s ../../scripts/pre-commit c/.git/hooks/pre-commit\n\
         git -C b config core.hooksPath ../common/hooks; git -C b config include.path ../../common/git.inc; git -C a config core.hooksPath githooks",
    );
}

#[test]
fn files_that_links_and_configurations_lead_to_are_not_changed_by_commands() {
    in_every_mode(|fixture, namespaces| {
        user_setup(fixture);
        let before: Vec<String> = LED_TO.iter().map(|name| text(fixture, name)).collect();
        let script = "for f in shared/tasks.json vs/settings.json c/scripts/pre-commit common/hooks/pre-commit a/githooks/post-index-change; do echo evil > $f; done\n\
                      printf '[core]\\n\\tfsmonitor = ./evil\\n' > common/git.inc; echo evil > evil.json; ln -sf ../evil.json zed/settings.json\n\
                      mkdir m2; echo evil > m2/mcp.json";
        let ran = run(fixture, namespaces, script);
        let again = run(
            fixture,
            namespaces,
            "mv m m.old; mv m2 m; head -c 1200000 /dev/zero | tr '\\0' '\\n' >> common/git.inc; printf '[core]\\n\\tfsmonitor = ./evil\\n' >> common/git.inc",
        );
        for (name, before) in LED_TO.iter().zip(before).filter(|(name, _)| !name.starts_with("work/m/")) {
            assert_eq!(text(fixture, name), before, "{namespaces} {name}: {}{}", ran.stderr, again.stderr);
        }
        assert_ne!(text(fixture, "work/.mcp.json"), "evil\n", "{namespaces}: {}", again.stderr);
    });
}

#[test]
fn files_that_links_and_configurations_lead_to_are_not_changed_by_tools() {
    in_every_mode(|fixture, namespaces| {
        user_setup(fixture);
        let mut session = fixture.session(namespaces);
        for name in ["work/shared/tasks.json", "work/zed/settings.json", "work/a/githooks/post-index-change"]
        {
            let before = text(fixture, name);
            let path = fixture.path(name);
            session.call("Read", &json!({"file_path": path}));
            let result = session.call("Write", &json!({"file_path": path, "content": "evil"}));
            assert_eq!(text(fixture, name), before, "{namespaces} {name}: {result}");
            assert!(result.to_string().contains("--allow-write"), "{namespaces} {name}: {result}");
        }
        let path = fixture.path("work/b/ordinary.txt");
        session.call("Write", &json!({"file_path": path, "content": "fine"}));
        assert_eq!(text(fixture, "work/b/ordinary.txt"), "fine", "{namespaces}");
    });
}

#[test]
fn hook_below_a_named_directory_is_refused_while_the_command_runs() {
    in_every_mode(|fixture, namespaces| {
        user_setup(fixture);
        let script = "echo evil > a/githooks/pre-push; chmod +x a/githooks/pre-push; for i in {1..2000}; do test -x a/githooks/pre-push || { echo gone; exit; }; sleep 0.01; done";
        let ran = run(fixture, namespaces, script);
        assert_eq!(ran.stdout, "gone\n", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn directory_that_calls_prepare_does_not_become_a_repository_with_hooks() {
    in_every_mode(|fixture, namespaces| {
        set_up(fixture, "git init -q .");
        let mut session = fixture.session(namespaces);
        session.bash("mkdir -p g/hooks g/objects; echo ref: refs/heads/main > g/HEAD; printf '#!/bin/sh\\ntouch ran\\n' > g/hooks/post-index-change; chmod +x g/hooks/post-index-change");
        let keep = fixture.path("work/g/refs/heads/x/.keep");
        let result = session.call("Write", &json!({"file_path": keep, "content": ""}));
        assert!(!keep.exists(), "{namespaces}: {result}");
        // The user completes it without looking into it.
        drop(session);
        set_up(fixture, "mkdir -p g/refs/heads");
        let ran = run(fixture, namespaces, "mv .git old && mv g .git; true");
        assert!(!fixture.path("work/.git/hooks/post-index-change").exists(), "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn repository_of_the_user_moves_with_its_hooks() {
    in_every_mode(|fixture, namespaces| {
        set_up(
            fixture,
            "git init -q p; printf '#!/bin/sh\\n' > p/.git/hooks/pre-push; chmod +x p/.git/hooks/pre-push; git -C p config core.pager less",
        );
        let script = "git -C p remote add o https://example.org/x && mv p q && mv q/.git q/.g2 && mv q/.g2 q/.git && git -C q status -s && test -x q/.git/hooks/pre-push && git -C q config core.pager";
        let first = run(fixture, namespaces, script);
        let second =
            run(fixture, namespaces, "mv q r; test -x r/.git/hooks/pre-push && git -C r config core.pager");
        assert_eq!(
            first.stdout + &second.stdout,
            "less\nless\n",
            "{namespaces}: {}{}",
            first.stderr,
            second.stderr
        );
    });
}

#[test]
fn settings_that_another_command_moves_before_they_are_judged_are_refused() {
    in_every_mode(|fixture, namespaces| {
        // A file that is open for writing delays the judgement.
        fixture.file(
            "programs/hold.py",
            "import os, time\n\
             os.makedirs('z'); os.makedirs('x/.vscode')\n\
             held = open('z/config', 'w'); open('x/.vscode/tasks.json', 'w').write('evil'); open('ready', 'w').close()\n\
             while not os.path.exists('go'): time.sleep(0.01)\n",
        );
        let mut session = fixture.session(namespaces);
        let hold = format!("python3 -IS {}", fixture.path("programs/hold.py").display());
        let background = json!({"command": hold, "run_in_background": true});
        let started = session.call("Bash", &background);
        let moved = session.bash("while ! test -e ready; do sleep 0.01; done; mv x proj; touch go");
        drop(session);
        let planted = fixture.path("work/proj/.vscode/tasks.json");
        assert!(!planted.exists(), "{namespaces}: {started} {moved}");
    });
}

#[test]
fn common_directory_that_cannot_be_read_is_refused() {
    in_every_mode(|fixture, namespaces| {
        set_up(fixture, "git init -q .");
        let script = "mkdir -p ~/.cache/r && (echo ~/.cache/r; head -c 1100000 /dev/zero | tr '\\0' '\\n') > .git/commondir; true";
        let ran = run(fixture, namespaces, script);
        assert!(!fixture.path("work/.git/commondir").exists(), "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn directory_of_the_session_is_no_remote() {
    in_every_mode(|fixture, namespaces| {
        set_up(fixture, "git init -q .; git init -q --bare ../outside/r.git");
        let script = "git init -q --bare ~/.cache/r.git; host=$(awk '$5 ~ /[.]cache$/ {print $4}' /proc/self/mountinfo | head -1); \
                      git remote add one ~/.cache/r.git; git remote add two file://$HOME/.cache/r.git; git config url.$HOME/.cache/.insteadOf up:; \
                      test -z \"$host\" || git remote add three $host/r.git; true";
        let ran = run(fixture, namespaces, script);
        run(fixture, namespaces, "git remote add fine ../outside/r.git");
        let config = text(fixture, "work/.git/config");
        assert!(
            !config.contains(".cache") && !config.contains("caches"),
            "{namespaces}: {config}{}",
            ran.stderr
        );
        assert!(config.contains("../outside/r.git"), "{namespaces}: {config}{}", ran.stderr);
    });
}

#[test]
fn push_runs_no_hook_of_a_directory_of_the_session() {
    // `$host` is the repository's path outside the sandbox.
    const WAYS: &[&str] = &[
        r#"git remote add origin "$host""#,
        r#"mkdir -p .git/remotes; echo "URL: $host" > .git/remotes/origin"#,
        r#"mkdir -p .git/branches; echo " $host#main" > .git/branches/origin"#,
        r#"mkdir x; echo "URL: $host" > x/origin; rm -rf .git/remotes; mv x .git/remotes"#,
        r#"mkdir x; echo "URL: $host" > x/origin; rm -rf .git/remotes; ln -s ../x .git/remotes"#,
        r#"git config url.${host:0:3}.insteadOf x:; git config remote.origin.url "x:${host:3}""#,
        r#"git config url.f.pushInsteadOf x; git config remote.origin.url "xile://$host""#,
        r#"git config remote.origin.url "~/../../../../../..$host""#,
        r#"git config remote.origin.url "~$(id -un)/../../../../../..$host""#,
        r#"git config remote.origin.url "file://%2fx$host""#,
        r#"mkdir -p a/b/c/d/e/f; ln -s "$PWD" a/b/c/d/e/f/up; git config remote.origin.url "a/b/c/d/e/f/up/../../../..$host""#,
        r#"echo "gitdir: $host" > pointer; git config remote.origin.url ./pointer"#,
        r#"git config "remote.$host.prune" true; git config branch.main.remote "$host""#,
    ];
    in_every_mode(|fixture, namespaces| {
        let ran = fixture.path("outside/ran");
        let mut session = fixture.session(namespaces);
        let host = session.bash(&format!(
            r#"d=${{TMPDIR:-/tmp}}; git init -q --bare "$d/r.git"; rm -rf "$d"/r.git/hooks/*
               printf '#!/bin/sh\ntouch {}\n' > "$d/r.git/hooks/pre-receive"; chmod +x "$d/r.git/hooks/pre-receive"
               host=$(awk '$5 == "/tmp" {{print $4}}' /proc/self/mountinfo | tail -1); echo "${{host:-$d}}/r.git""#,
            ran.display()
        ));
        let host = host.trim();
        assert!(fixture.unsandboxed(&format!("test -x {host}/hooks/pre-receive")).code == 0, "{host}");
        for way in WAYS {
            set_up(fixture, "rm -rf .git *; git init -q; git commit -q --allow-empty -m one");
            let said = session.bash(&format!("host={host}; {way}"));
            let pushed = fixture.unsandboxed("git push -q origin HEAD:refs/heads/one; git push -q");
            assert!(!ran.exists(), "{namespaces} {way}: {said} {}", pushed.stderr);
            assert!(said.contains("Refused"), "{namespaces} {way}: {said}");
        }
        // The test itself proves nothing if the hook does not run.
        fixture.unsandboxed(&format!("git push -q {host} HEAD:refs/heads/one"));
        assert!(ran.exists(), "{namespaces}");
    });
}

#[test]
fn remotes_that_are_not_of_the_session_work() {
    in_every_mode(|fixture, namespaces| {
        set_up(fixture, "git init -q; git init -q --bare ../outside/r.git");
        let script = "git remote add one ../outside/r.git; git remote add two git@example.org:a/b; git remote add team/three https://example.org/x\n\
                      git config url.https://example.org/.insteadOf ex:; mkdir -p .git/remotes; echo 'URL: ../outside/r.git' > .git/remotes/four\n\
                      git remote add five new/one; git remote add six \"$PWD\"; git clone -q . copy";
        let ran = run(fixture, namespaces, script);
        assert!(!ran.stderr.contains("Refused"), "{namespaces}: {}", ran.stderr);
        assert_eq!(text(fixture, "work/.git/remotes/four"), "URL: ../outside/r.git\n", "{namespaces}");
    });
}

#[test]
fn link_of_the_user_to_a_directory_may_be_written_otherwise() {
    in_every_mode(|fixture, namespaces| {
        fixture.dir("work/docs");
        symlink("docs", fixture.path("work/manual")).unwrap();
        let ran = run(fixture, namespaces, "echo fine > manual/page.md");
        assert_eq!(text(fixture, "work/docs/page.md"), "fine\n", "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn repository_behind_a_long_pointer_is_found() {
    // Git ignores line ends after a path, and paths may have any bytes.
    for name in ["g", "$'g\\377'"] {
        in_every_mode(|fixture, namespaces| {
            let long = "head -c 20000 /dev/zero | tr '\\0' '\\n'";
            set_up(
                fixture,
                &format!(
                    "G={name}; mkdir -p p/hk; git init -q $G; (echo gitdir: ../$G/.git; {long}) > p/.git; git -C $G config core.hooksPath hk\n\
                     git init -q c; git -C c config core.hooksPath hk; git -C c commit -q --allow-empty -m one; git -C c worktree add -q ../wt; mkdir wt/hk\n\
                     (cat c/.git/worktrees/wt/commondir; {long}) > d; mv d c/.git/worktrees/wt/commondir"
                ),
            );
            for top in ["p", "wt"] {
                let ran = run(
                    fixture,
                    namespaces,
                    &format!("printf '#!/bin/sh\\n' > {top}/hk/pre-commit; chmod 755 {top}/hk/pre-commit"),
                );
                let is_there = fixture.path(&format!("work/{top}/hk/pre-commit")).exists();
                assert!(ran.stderr.contains("Refused") && !is_there, "{namespaces} {top}: {}", ran.stderr);
            }
        });
    }
}

#[test]
fn thousands_of_worktrees_do_not_stall_the_search() {
    const MAKE: &str = "import os\n\
        for n in range(4000):\n    \
            open('g/.git/worktrees/e%d' % n, 'w').close()\n    \
            os.mkdir('r%d' % n)\n    \
            open('r%d/.git' % n, 'w').write('gitdir: ../g/.git')\n";
    let fixture = SandboxFixture::new(User::Current);
    set_up(&fixture, "git init -q g; mkdir g/.git/worktrees");
    fixture.file("outside/make.py", MAKE);
    set_up(&fixture, "python3 ../outside/make.py");
    let ran = run(&fixture, "true", "echo fine > r1/x; mkdir .git; echo also > r2/x");
    assert_eq!((ran.code, text(&fixture, "work/r2/x").as_str()), (0, "also\n"), "{}", ran.stderr);
}

#[test]
fn directory_that_is_too_large_is_not_moved_to_where_a_link_leads() {
    const FILL: &str = "mkdir big; python3 -c 'for n in range(20001): open(\"big/%d\" % n, \"w\").close()'";
    in_every_mode(|fixture, namespaces| {
        set_up(
            fixture,
            "mkdir -p conf/vscode; ln -s conf/vscode .vscode; echo '{}' > conf/vscode/tasks.json",
        );
        set_up(fixture, FILL);
        let script = "echo evil > big/tasks.json; mv conf/vscode conf/old; mv big conf/vscode";
        let ran = run(fixture, namespaces, script);
        assert_ne!(text(fixture, "work/.vscode/tasks.json"), "evil\n", "{namespaces}: {}", ran.stderr);
        assert!(ran.stderr.contains("Refused"), "{namespaces}: {}", ran.stderr);
    });
}

#[test]
fn links_in_a_linked_directory_of_settings_are_followed() {
    in_every_mode(|fixture, namespaces| {
        set_up(
            fixture,
            "mkdir -p conf/vscode/more common/more; ln -s conf/vscode .vscode; for f in t m more/x; do echo '{}' > common/$f.json; done\n\
             ln -s ../../common/t.json conf/vscode/tasks.json; ln -s ../../../common/m.json conf/vscode/more/m.json; ln -s ../../common/more conf/vscode/dir",
        );
        let ran = run(
            fixture,
            namespaces,
            "for f in t m more/x; do echo evil > common/$f.json; done; echo fine > common/other",
        );
        for name in ["t", "m", "more/x"] {
            let left = text(fixture, &format!("work/common/{name}.json"));
            assert_eq!(left, "{}\n", "{namespaces} {name}: {}", ran.stderr);
        }
        assert_eq!(text(fixture, "work/common/other"), "fine\n", "{namespaces}: {}", ran.stderr);
        let mut session = fixture.session(namespaces);
        let path = fixture.path("work/common/t.json");
        session.call("Read", &json!({"file_path": path}));
        let result = session.call("Write", &json!({"file_path": path, "content": "evil"}));
        assert!(result.to_string().contains("--allow-write"), "{namespaces}: {result}");
    });
}
