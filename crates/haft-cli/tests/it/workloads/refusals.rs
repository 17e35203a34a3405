//! What the scope refuses is told: what, where, which rule, and how to allow it.

use std::os::unix::fs::MetadataExt as _;

use crate::fixture::sandbox::{SandboxFixture, User};

struct Refusal {
    script: &'static str,
    /// Words that the line of refusal must have.
    says: &'static [&'static str],
    /// Whether the program itself is told. What is judged after it was written is told at the end.
    fails: bool,
}

const TABLE: &[Refusal] = &[
    Refusal { script: "echo x > ../outside/new", says: &["Refused: write", "outside/new"], fails: true },
    Refusal { script: "rm ../outside/there", says: &["Refused:", "outside/there"], fails: true },
    Refusal { script: "mkdir ../outside/dir", says: &["Refused:", "outside/dir"], fails: true },
    Refusal { script: "mv mine ../outside/moved", says: &["Refused:", "outside/moved"], fails: true },
    Refusal { script: "chmod 777 ../outside/there", says: &["Refused:", "outside/there"], fails: true },
    Refusal {
        script: "echo x > .mcp.json",
        says: &["Refused: write", ".mcp.json", "protected"],
        fails: false,
    },
    Refusal {
        script: "mkdir .vscode && echo x > .vscode/tasks.json",
        says: &["Refused:", ".vscode", "protected"],
        fails: false,
    },
    Refusal { script: "cat .env", says: &["Refused: read", ".env"], fails: true },
    Refusal { script: "kill -9 $PPID", says: &["Refused: signal"], fails: true },
    Refusal { script: "exec 3<>/dev/tcp/192.0.2.1/9", says: &["Refused: connect", "192.0.2.1"], fails: true },
    Refusal {
        script: "git init -q; git config core.fsmonitor ./x",
        says: &["Refused:", "config", "fsmonitor"],
        fails: false,
    },
    Refusal {
        script: "cd repository; git config core.fsmonitor ./x",
        says: &["Refused:", "config", "fsmonitor"],
        fails: true,
    },
];

#[test]
fn each_refusal_is_told() {
    let mut failures = String::new();
    for user in User::all() {
        for refusal in TABLE {
            let fixture = SandboxFixture::new(*user);
            fixture.file("outside/there", "x");
            fixture.file("work/mine", "x");
            fixture.file("work/.env", "x");
            assert_eq!(fixture.unsandboxed("git init -q repository").code, 0);
            let ran = fixture.inside(refusal.script);
            let told = ran.stderr.lines().any(|line| refusal.says.iter().all(|word| line.contains(word)));
            if !told || (ran.code == 0) == refusal.fails {
                let Refusal { script, says, .. } = refusal;
                failures.push_str(&format!(
                    "{} `{script}` (exit {}) says {:?}, not {says:?}\n",
                    user.word(),
                    ran.code,
                    ran.stderr
                ));
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// What is refused again and again is told once.
#[test]
fn a_thousand_refusals_are_few_lines() {
    let fixture = SandboxFixture::new(User::Current);
    let ran = fixture.inside("for i in $(seq 1000); do echo x > ../outside/new; done 2>/dev/null; true");
    let lines = ran.stderr.lines().filter(|line| line.contains("Refused")).count();
    assert!((1..=20).contains(&lines), "{lines} lines: {}", ran.stderr);
}

/// Exit codes, both streams and standard input pass.
#[test]
fn the_command_looks_as_if_it_ran_alone() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        for code in [0, 1, 2, 3, 42, 124, 126, 127, 255] {
            assert_eq!(fixture.inside(&format!("exit {code}")).code, code, "{}", user.word());
        }
        let ran = fixture.inside("echo out; echo err >&2; exit 3");
        assert_eq!((ran.code, ran.stdout.as_str()), (3, "out\n"), "{}", ran.stderr);
        assert!(ran.stderr.contains("err\n"), "{}", ran.stderr);
        let mut command = fixture.sandboxed(&[], "cat; wc -c < /dev/null");
        fixture.file("outside/input", "from outside\n");
        command.stdin(std::fs::File::open(fixture.path("outside/input")).unwrap());
        assert_eq!(fixture.run(&mut command).stdout, "from outside\n0\n");
        assert_eq!(fixture.inside("kill -TERM $$").code, 143);
        let mut command = fixture.command(&fixture.program());
        assert_eq!(fixture.run(command.args(["sandbox", "--", "/nonexistent/program"])).code, 127);
    }
}

/// A command has a temporary directory of its own, and leaves alone what is in the common one.
#[test]
fn files_of_others_in_the_temporary_directory_stay() {
    for user in User::all() {
        for namespaces in ["true", "false"] {
            let fixture = SandboxFixture::new(*user);
            let old = format!("/tmp/{}-old", fixture.mark());
            assert_eq!(fixture.unsandboxed(&format!("echo old > {old}")).code, 0);
            let script = format!(
                "echo x > {old}; echo x >> {old}; rm -f {old}; mv {old} {old}-2; chmod 777 {old}; \
                 echo new > $TMPDIR/new && cat $TMPDIR/new"
            );
            let mut command = fixture.sandboxed(&[], &script);
            let ran = fixture.run(command.env("HAFT_NAMESPACES", namespaces));
            let (kept, mode) =
                (std::fs::read_to_string(&old).unwrap(), std::fs::metadata(&old).unwrap().mode());
            let _ = std::fs::remove_file(&old);
            let said = format!("{}, namespaces {namespaces}: {}", user.word(), ran.stderr);
            assert_eq!((ran.code, ran.stdout.as_str()), (0, "new\n"), "{said}");
            assert_eq!((kept.as_str(), mode & 0o777), ("old\n", 0o644), "{said}");
            assert!(!std::path::Path::new(&format!("{old}-2")).exists(), "{said}");
            assert_eq!(
                ran.stderr.contains(&format!("Refused: write {old}")),
                namespaces == "false",
                "{said}"
            );
        }
    }
}

/// A sandbox inside of a sandbox has no witness of its own; both scopes hold.
#[test]
fn a_sandbox_in_a_sandbox_holds_twice() {
    for user in User::all() {
        let fixture = SandboxFixture::new(*user);
        let haft = fixture.program();
        let ran = fixture.inside(&format!("{haft} sandbox -- sh -c 'touch ran; ! touch /etc/haft-inner'"));
        assert_eq!(ran.code, 0, "{}: {}{}", user.word(), ran.stdout, ran.stderr);
        assert!(fixture.path("work/ran").exists(), "{}: {}", user.word(), ran.stderr);
        assert!(!std::path::Path::new("/etc/haft-inner").exists(), "{}", user.word());
    }
}
