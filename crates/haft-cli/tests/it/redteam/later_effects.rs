//! What one command prepares is not put into effect by a later one, and secrets stay unread where the kernel opens files
//! itself.

use std::fs;

use super::guards::{REPOSITORY, Workspace, in_every_mode};

#[test]
fn g1_hooks_that_were_never_judged_as_executable_are_not_the_users() {
    in_every_mode(|space| {
        space.user(REPOSITORY);
        let hook = "post-checkout";
        space.run(&format!(
            "printf '#!/bin/sh\\necho PWNED\\n' > .git/hooks/{hook}; mkdir -p x/hooks; cp .git/hooks/{hook} x/hooks/; \
             chmod 755 x/hooks/{hook}"
        ));
        space.run(&format!("rm x/hooks/{hook}; mkdir x/objects x/refs"));
        let ran = space.run(&format!("chmod 755 .git/hooks/{hook}"));
        assert!(ran.stderr.contains("Refused"), "{}: {}", space.namespaces, ran.stderr);
        let said = space.user("git checkout -q -b later 2>&1");
        assert!(!said.contains("PWNED"), "{}: {said}", space.namespaces);
    });
}

/// Closes a directory of the user in one command, writes to the target of something in it in the next one, and opens it again.
fn writes_behind_closed(space: &Workspace, write: &str, file: &str) {
    let before = space.read(file);
    let refused = space.run(write);
    assert!(refused.stderr.contains("Refused"), "{}: {}", space.namespaces, refused.stderr);
    space.run("chmod 000 sub");
    let ran = space.run(write);
    space.run("chmod 755 sub");
    space.user("chmod 755 sub");
    assert_eq!(space.read(file), before, "{} {write}: {}", space.namespaces, ran.stderr);
}

#[test]
fn g2_closed_directories_hide_no_links_and_repositories() {
    in_every_mode(|space| {
        space.user("mkdir -p sub shared; ln -s ../shared sub/.vscode; echo '{}' > shared/tasks.json");
        writes_behind_closed(space, "echo PWNED > shared/tasks.json", "shared/tasks.json");
    });
    in_every_mode(|space| {
        space.user("git init -q sub; git -C sub config include.path ../../inc; echo > inc");
        writes_behind_closed(space, "printf '[core]\\n\\tfsmonitor = PWNED\\n' > inc", "inc");
    });
}

#[test]
fn g3_configurations_that_include_themselves_are_judged_once() {
    in_every_mode(|space| {
        let includes = "\tpath = config\n".repeat(500);
        fs::write(space.fixture.path("work/inc"), format!("[include]\n{includes}")).unwrap();
        space.run("mkdir -p x/objects; mv inc x/config; mkdir x/refs");
        let ran = space.run("echo 1 > after");
        assert_eq!((ran.code, space.read("after").as_str()), (0, "1\n"), "{}", ran.stderr);
    });
}

#[test]
fn g4_strategies_of_a_stopped_rebase_are_marked() {
    in_every_mode(|space| {
        space.user(&format!("{REPOSITORY}; mkdir -p .git/rebase-merge .git/sequencer"));
        for file in ["rebase-merge/strategy", "sequencer/opts", "sequencer/todo"] {
            let ran = space.run(&format!("echo x > .git/{file}"));
            assert!(ran.stderr.contains("hanges what runs on build"), "{file}: {}", ran.stderr);
        }
    });
}

#[test]
fn g5_secrets_are_not_read_by_changing_the_path_of_a_call() {
    const SWAP: &str = "import ctypes, os, threading\n\
        libc = ctypes.CDLL(None)\n\
        names = [b'plain/a', b'.env', b'deep/er/.env', b'plain/.env', b'other']\n\
        paths = ctypes.create_string_buffer(64)\n\
        done = False\n\
        def swap():\n    \
            n = 0\n    \
            while not done:\n        \
                name = names[n % len(names)] + b'\\0'\n        \
                ctypes.memmove(paths, name, len(name)); n += 1\n\
        ctypes.memmove(paths, b'plain/a\\0', 8)\n\
        thread = threading.Thread(target=swap); thread.start()\n\
        seen = set()\n\
        n = 0\n\
        while n < 4000 or b'PUBLIC\\n' not in seen:\n    \
            n += 1\n    \
            fd = libc.open(paths, os.O_RDONLY)\n    \
            if fd >= 0: seen.add(os.read(fd, 99)); os.close(fd)\n\
        done = True\n\
        thread.join()\n\
        print(seen)\n";
    in_every_mode(|space| {
        space.user("mkdir -p plain deep/er; echo PUBLIC > plain/a; for each in . deep/er plain; do echo CANARY > $each/.env; done");
        fs::write(space.fixture.path("work/swap.py"), SWAP).unwrap();
        let ran = space.run("echo OWN > other; python3 swap.py");
        assert!(
            ran.stdout.contains("PUBLIC") && !ran.stdout.contains("CANARY"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
        // A directory with a secret, or a secret file, may be moved to where everything else can be read.
        let ran = space.run("mkdir new; mv deep/er plain/er; mv plain/.env new/.env; sed -i 's:deep/er:plain/er:; s:plain/.env:new/.env:' swap.py; python3 swap.py");
        assert!(
            ran.stdout.contains("PUBLIC") && !ran.stdout.contains("CANARY"),
            "{}{}",
            ran.stdout,
            ran.stderr
        );
    });
}

#[test]
fn files_beside_secrets_are_read_wherever_they_come_from() {
    in_every_mode(|space| {
        space.user("mkdir -p old/deep; echo SECRET > .env; echo SECRET > old/.env; echo 1 > old/deep/a; echo 2 > top");
        let ran = space.run(
            "mkdir -p new/dir; echo 3 > new/dir/b; echo 4 > fresh; ln -s old/deep/a link; mv old/deep moved; \
             cat moved/a top new/dir/b fresh; cp -r moved new/copy; cat new/copy/a; echo 5 > moved/c; cat moved/c; \
             cat < top; exec 5< fresh; cat /dev/fd/5 /proc/self/fd/5; ls -A . | tr '\\n' ' '; cat .env old/.env",
        );
        assert_eq!(
            ran.stdout, "1\n2\n3\n4\n1\n5\n2\n4\n4\n.env fresh link moved new old top ",
            "{}",
            ran.stderr
        );
        let again = space.run("cat new/copy/a new/dir/b fresh moved/c; grep -rh 5 . 2> /dev/null");
        assert_eq!(again.stdout, "1\n3\n4\n5\n5\n", "{}", again.stderr);
    });
}
