//! E34: clawft's denylist reads commands as a shell does.

use haft::json;

use super::denied;
use crate::fixture::runtime::Directories;

#[test]
fn e34_denied_program_is_found_wherever_a_shell_would_start_it() {
    let directories = Directories::new();
    let haft = directories.builder().dialect(haft::clawft()).build().unwrap();
    for command in [
        "if true; then sudo ls; fi",
        "for x in a; do sudo ls; done",
        "while sudo ls; do :; done",
        "! sudo ls",
        "find . -exec sudo ls {} \\;",
        "find . -execdir sh -c 'sudo ls' \\;",
        "bash <<< 'sudo ls'",
        "ls | xargs sudo ls",
        "env A=1 sudo ls",
        "nohup sudo ls",
        "time sudo ls",
        "command sudo ls",
        "builtin command sudo ls",
        "echo $(sudo ls)",
        "echo `sudo ls`",
        "cat <(sudo ls)",
        "bash <(echo 'sudo ls')",
        "echo 'sudo ls' | sh",
    ] {
        let said = denied(&haft, "exec_shell", json!({"command": command}));
        assert!(said.contains("denylist"), "{command}: {said}");
    }
}
