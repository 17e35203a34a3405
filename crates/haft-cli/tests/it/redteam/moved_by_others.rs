//! Files that a command writes while other commands and Haft processes move their directories.

use haft::json;

use super::guards::{REPOSITORY, in_every_mode};
use crate::fixture::wait_until;

/// Makes settings and a hook in a directory that another call then moves, changes them there, and writes the same bytes to
/// where they are in effect. The call was never judged under the path that they had when it changed them.
const LAUNDER: &str = "\
import os
os.makedirs('x/p/.vscode')
os.makedirs('x/p/.git/hooks')
def attempt(act, *arguments):
    try: act(*arguments)
    except OSError: pass
def write(path, text):
    with open(path, 'w') as file: file.write(text)
def make(path, text): attempt(write, path, text)
make('x/p/.vscode/tasks.json', 'evil')
make('x/p/.git/hooks/pre-commit', '#!/bin/sh\\ntouch pwned\\n')
make('ready', '')
while not os.path.exists('gone'): pass
attempt(os.chmod, 'y/p/.vscode/tasks.json', 0o600)
attempt(os.chmod, 'y/p/.git/hooks/pre-commit', 0o755)
os.makedirs('.vscode', exist_ok=True)
make('.vscode/tasks.json', 'evil')
make('.git/hooks/pre-commit', '#!/bin/sh\\ntouch pwned\\n')
attempt(os.chmod, '.git/hooks/pre-commit', 0o755)
make('done', '')
";

#[test]
fn settings_of_a_call_do_not_become_the_users_when_another_call_moves_them() {
    in_every_mode(|space| {
        space.user(&format!("{REPOSITORY}; rm -f .git/hooks/*; mkdir x"));
        space.fixture.file("work/launder.py", LAUNDER);
        let mut session = space.fixture.session(space.namespaces);
        session.call("Bash", &json!({"command": "python3 launder.py", "run_in_background": true}));
        wait_until(|| space.exists("ready"));
        session.bash("mv x y; touch gone");
        wait_until(|| space.exists("done"));
        drop(session);
        assert_eq!(space.read(".vscode/tasks.json"), "", "{}", space.namespaces);
        space.user("git commit -q --allow-empty -m later");
        assert!(!space.exists("pwned"), "{}", space.namespaces);
        assert!(!space.exists("y/p/.vscode/tasks.json"), "{}", space.namespaces);
    });
}

#[test]
fn settings_are_judged_although_another_haft_process_keeps_moving_them() {
    in_every_mode(|space| {
        space.user("mkdir x");
        let command = |script: &str| {
            let mut command = space.fixture.sandboxed(&[], script);
            command.current_dir(space.fixture.work()).env("HAFT_NAMESPACES", space.namespaces);
            command
        };
        let mut mover =
            command("touch ready; while test ! -e stop; do mv x y; mv y x; done").spawn().unwrap();
        wait_until(|| space.exists("ready"));
        let plant = "for n in $(seq 20); do until mkdir -p x/p$n/.vscode && echo evil > x/p$n/.vscode/tasks.json; do :; done; done";
        let planted = command(&format!("{{ {plant}; }} 2> /dev/null; true")).output().unwrap();
        space.user("touch stop");
        mover.wait().unwrap();
        let left = space.user("find . -name tasks.json");
        assert_eq!(left, "", "{} {planted:?}", space.namespaces);
    });
}

#[test]
fn e04_hook_is_found_when_another_haft_process_moves_its_directory() {
    in_every_mode(|space| {
        space.user("git init -q . && rm -rf .git/hooks");
        // Storing so large a file takes long enough for the other process to move its directory meanwhile.
        space.run("mkdir x; printf '#!/bin/sh\\ntouch pwned\\n' > x/a.sample; truncate -s 100M x/a.sample; chmod +x x/a.sample");
        let command = |script: &str| {
            let mut command = space.fixture.sandboxed(&[], script);
            command.current_dir(space.fixture.work()).env("HAFT_NAMESPACES", space.namespaces);
            command
        };
        let mut first = command("touch started; mv x/a.sample x/pre-commit").spawn().unwrap();
        wait_until(|| space.exists("started"));
        let second = command("rm -rf .git/hooks; mv x .git/hooks; true").output().unwrap();
        first.wait().unwrap();
        assert!(!space.exists(".git/hooks/pre-commit"), "{} {second:?}", space.namespaces);
    });
}
