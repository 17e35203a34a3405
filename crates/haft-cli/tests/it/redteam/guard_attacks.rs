//! More ways to make programs outside the sandbox run something: through links, handles and files that other files name.

use std::fs;

use haft::{CallOptions, Runtime, json};

use super::guards::{REPOSITORY, Workspace, in_every_mode};
use crate::fixture::runtime::Directories;
use crate::fixture::sandbox::{SandboxFixture, User};

/// More than a tick of any kernel's clock.
const CLOCK_TICK: std::time::Duration = std::time::Duration::from_millis(25);

#[test]
fn directories_of_the_session_are_not_linked_into_the_workspace() {
    in_every_mode(|space| {
        // With namespaces, the temporary directory has another path outside.
        if space.namespaces == "false" {
            space.plants_nothing(&["git init -q $TMPDIR/r; key >> $TMPDIR/r/.git/config; ln -s $TMPDIR/r r"]);
            space.plants_nothing(&["ln -s $TMPDIR/later r"]);
            space.plants_nothing(&["ln -s $TMPDIR $TMPDIR/l; ln -s $TMPDIR/l/later r"]);
            space.plants_nothing(&["mkdir a; cd a; ln -s ../b c; ln -s $TMPDIR/x ../b; true"]);
            assert!(!space.exists("r"));
        }
        let ran = space
            .run("mkdir d; ln -s d l; ln -s nothing m; ln -s /etc n; echo x > $TMPDIR/f; ls l n > /dev/null");
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    });
}

#[test]
fn links_of_the_user_are_followed() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("rm -rf .git/hooks; mkdir githooks agents; ln -s ../githooks .git/hooks; ln -s agents .claude; ln -s tools.json .mcp.json");
        space.user("echo '{}' > agents/settings.json; echo '{}' > tools.json");
        space.plants_nothing(&["plant githooks/post-index-change"]);
        for name in ["agents/settings.json", "tools.json"] {
            let ran = space.run(&format!("echo evil > {name}; echo b > agents/note.md"));
            assert!(ran.stderr.contains("Refused: write"), "{name}: {}", ran.stderr);
            assert_eq!(space.read(name), "{}\n");
        }
        assert_eq!(space.read("agents/note.md"), "b\n");
    });
}

#[test]
fn included_file_is_not_replaced_through_its_directory() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.user("mkdir shared; echo > shared/inc; git config include.path ../shared/inc");
        space.plants_nothing(&["mkdir other; key > other/inc; mv shared old; ln -s other shared"]);
        space.user("rm -rf shared other; mkdir shared; echo > shared/inc");
        space.plants_nothing(&["mkdir other; key > other/inc", "mv shared old2; mv other shared"]);
    });
}

#[test]
fn git_is_not_led_through_a_link_that_can_change() {
    in_every_mode(|space| {
        space.plants_nothing(&[
            "git init -q --bare real; ln -s real l; mkdir n; echo 'gitdir: ../l' > n/.git",
        ]);
        assert!(!space.exists("n/.git"));
        let ran = space.run("git init -q --bare direct; mkdir o; echo 'gitdir: ../direct' > o/.git; git -C o rev-parse --git-dir");
        assert!(ran.code == 0 && !ran.stderr.contains("Refused"), "{}", ran.stderr);
    });
}

#[test]
fn refused_name_is_not_written_again_by_the_same_command() {
    in_every_mode(|space| {
        let script = "echo evil > .mcp.json; while [ -e .mcp.json ]; do :; done; echo evil > .mcp.json && echo ESCAPED; true";
        let ran = space.run(script);
        assert!(
            !ran.stdout.contains("ESCAPED") && !space.exists(".mcp.json"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        // A hook is also removed while the command runs, and so is each one after it.
        space.user(REPOSITORY);
        space.plants_nothing(&[
            "for h in pre-commit post-commit post-index-change; do plant .git/hooks/$h; while [ -x .git/hooks/$h ]; do :; done; done",
        ]);
    });
}

#[test]
fn many_settings_are_refused_while_a_file_is_open() {
    in_every_mode(|space| {
        let ran = space.run(
            "mkdir d; exec 3> d/.mcp.json; for i in $(seq 400); do mkdir d/$i; echo evil > d/$i/.mcp.json; done; \
             echo evil >&3; ls d | wc -l",
        );
        assert_eq!((ran.code, ran.stdout.trim()), (0, "400"), "{}", ran.stderr);
        let left = space.user("find . -name .mcp.json | wc -l");
        assert_eq!(left.trim(), "0");
    });
}

#[test]
fn file_that_was_open_before_its_directory_became_guarded_stays_as_it_was() {
    for namespaces in [true, false] {
        let directories = Directories::new();
        let work = directories.folder.path();
        fs::create_dir(work.join(".vscode")).unwrap();
        fs::write(work.join(".vscode/tasks.json"), "mine\n").unwrap();
        // A change within a tick of the clock before a running call may be that call's.
        let written = std::time::Instant::now();
        while written.elapsed() < CLOCK_TICK {
            std::thread::yield_now();
        }
        let builder =
            Runtime::builder().workspace(work).home(directories.home.path()).dialect(haft::claude());
        let mut options = haft::SandboxOptions::default();
        options.namespaces = namespaces;
        let runtime = builder.sandbox_options(options).build().unwrap();
        let call = |id: &str, arguments| {
            runtime
                .run_blocking(haft::Call::new(id, "Bash", arguments), CallOptions::default())
                .output
                .as_text()
        };
        let holder = "cp -r .vscode d; exec 3>> d/tasks.json; touch ready; while [ ! -e moved ]; do sleep 0.01; done; \
                      echo evil >&3; touch done; sleep 600";
        call("1", json!({"command": holder, "run_in_background": true}));
        call(
            "2",
            json!({"command": "while [ ! -e ready ]; do sleep 0.01; done; rm -rf .vscode; mv d .vscode; touch moved"}),
        );
        let said =
            call("3", json!({"command": "while [ ! -e done ]; do sleep 0.01; done; cat .vscode/tasks.json"}));
        assert!(said.contains("mine") && !said.contains("evil"), "{said}");
        drop(runtime);
        assert_eq!(fs::read_to_string(work.join(".vscode/tasks.json")).unwrap(), "mine\n");
    }
}

#[test]
fn what_an_earlier_command_prepared_is_not_put_into_effect_by_restoring_it() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        space.plants_nothing(&[
            "mkdir X; printf '[core]\\n\\trepositoryformatversion = 0\\n' > X/config; key >> X/config",
            "echo '# changed' >> X/config; cp -r .git/HEAD .git/refs .git/index X/; cp -r .git/objects X/objects",
            "mv .git old; echo 'gitdir: X' > .git",
        ]);
    });
}

#[test]
fn objects_that_a_command_leads_to_are_not_the_users() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        let ran = space.run(
            "printf evil > $TMPDIR/evil; git init -q $TMPDIR/r; git -C $TMPDIR/r hash-object -w $TMPDIR/evil > /dev/null\n\
             host=$TMPDIR/r; [ $TMPDIR != /tmp ] || host=$(awk '$5 == \"/tmp\" { print $4 }' /proc/self/mountinfo)/r\n\
             exec 5> .git/commondir; echo $host/.git >&5; cp $TMPDIR/evil .mcp.json; mkdir .vscode; cp $TMPDIR/evil .vscode/tasks.json",
        );
        assert!(!space.exists(".mcp.json") && !space.exists(".vscode/tasks.json"), "{}", ran.stderr);
    });
}

#[test]
fn directory_called_config_is_no_configuration() {
    in_every_mode(|space| {
        space.user("mkdir config objects; echo x > config/app; echo 1 > HEAD");
        let ran = space.run("mkdir refs; ls config");
        assert_eq!((ran.stdout.as_str(), ran.code), ("app\n", 0), "{}", ran.stderr);
        assert_eq!(space.read("config/app"), "x\n");
    });
}

#[test]
fn large_settings_are_refused_unless_they_are_the_users() {
    in_every_mode(|space| {
        space.user("mkdir .vscode && head -c 2000000 /dev/zero > .vscode/users.json");
        let ran = space.run(
            "mkdir new; truncate -s 1023M .vscode/new.json; truncate -s 2000000 .vscode/other.json; \
             chmod 600 .vscode/users.json; exec 3>> .vscode/users.json; exec 3>&-; cp -r .vscode new",
        );
        assert!(ran.stderr.contains(".vscode/new.json"), "{}", ran.stderr);
        assert!(ran.stderr.contains(".vscode/other.json"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("users.json"), "{}", ran.stderr);
        let left = space.user("find . -type f -size +1M | sort");
        assert_eq!(left, "./.vscode/users.json\n./new/.vscode/users.json\n", "{}", ran.stderr);

        let ran = space.run("printf x >> .vscode/users.json");
        assert!(ran.stderr.contains(".vscode/users.json"), "{}", ran.stderr);
        assert_eq!(space.user("stat -c %s .vscode/users.json").trim(), "2000000");
    });
}

#[test]
fn files_with_other_names_are_copied_up_to_a_bound_or_refused() {
    in_every_mode(|space| {
        let ran = space.run(
            "for i in $(seq 20); do truncate -s 50000 shared-$i; done; \
             for i in $(seq 20); do mkdir -p e/$i; ln shared-$i e/$i/.mcp.json; done; mkdir .vscode; \
             truncate -s 60M big; ln big .vscode/a.json",
        );
        assert!(ran.stderr.contains(".mcp.json"), "{}", ran.stderr);
        assert_eq!(space.user("find . -name .mcp.json -o -name a.json | wc -l").trim(), "0");
        assert_eq!(space.user("ls -d shared-* big | wc -l").trim(), "21");
    });
}

#[test]
fn settings_of_the_user_are_found_in_large_trees() {
    let tasks =
        "mkdir -p a/b/c/d/.vscode .vscode; echo 1 > a/b/c/d/.vscode/tasks.json; echo 2 > .vscode/tasks.json";
    for (set_up, copy, expected) in [
        ("mkdir node_modules; cd node_modules; seq 25000 | xargs touch", "a/b/c/d/.vscode", "1\n"),
        ("seq 20100 | xargs mkdir", ".vscode", "2\n"),
    ] {
        let space = Workspace { fixture: SandboxFixture::new(User::Current), namespaces: "true" };
        space.user(&format!("{tasks}; {set_up}"));
        let ran = space.run(&format!("mkdir -p q/r; cp -r {copy} q/r/"));
        assert_eq!(space.read("q/r/.vscode/tasks.json"), expected, "{set_up}: {}", ran.stderr);
        let ran = space.run("echo PWNED > q/r/.vscode/tasks.json");
        assert!(ran.stderr.contains("Refused"), "{set_up}");
    }
}
