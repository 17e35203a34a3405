//! Real commands without a sandbox: streams, exits and the end of process trees.
#![expect(clippy::disallowed_methods, reason = "the tests read /proc and start themselves")]
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod fixture;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::thread;

use haft_tool::{ErrorKind, Exit};
use tempfile::TempDir;

use fixture::{
    Fixture, SHORT_TIMEOUT, TIMEOUT, bash, check, marked, peak_memory, rerun_command, run_in_own_process,
    text,
};

#[test]
fn exit_code_is_reported() {
    for code in [0, 1, 2, 42, 77, 126, 127, 255] {
        assert_eq!(bash(&format!("exit {code}")).exit, Exit::Code(code));
    }
}

#[test]
fn death_by_signal_is_reported_with_the_signal() {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("PIPE", 13)] {
        assert_eq!(bash(&format!("kill -{name} $$")).exit, Exit::Signal(number));
    }
}

#[test]
fn stdout_and_stderr_are_separate() {
    let done = bash("echo out; echo err >&2");
    assert_eq!((text(&done.stdout.head), text(&done.stderr.head)), ("out\n", "err\n"));
    assert_eq!((done.stdout.total, done.stderr.total, done.left_behind), (4, 4, 0));
}

#[test]
fn merged_streams_keep_their_order() {
    let fixture = Fixture::with(|request| request.merge = true);
    let done = fixture.bash("for i in {1..200}; do echo o$i; echo e$i >&2; done");
    let expected: String = (1..=200).flat_map(|i| [format!("o{i}\n"), format!("e{i}\n")]).collect();
    assert_eq!(text(&done.stdout.head), expected);
    assert_eq!(done.stderr.total, 0);
}

#[test]
fn standard_input_is_empty() {
    assert_eq!(text(&bash("cat; wc -c; readlink /proc/self/fd/0").stdout.head), "0\n/dev/null\n");
}

#[test]
fn standard_input_is_what_the_request_has_and_need_not_be_read() {
    let input: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
    let fixture = Fixture::with(|request| request.input = input.clone());
    for (script, expected) in [
        ("wc -c; cat", "1048576\n"),
        ("echo ignored", "ignored\n"),
        ("head -c 3 | od -An -tu1; echo rest", "   0   1   2\nrest\n"),
    ] {
        assert_eq!(text(&fixture.bash(script).stdout.head), expected);
    }
}

#[test]
fn arguments_are_passed_unchanged() {
    let words = ["", " a  b ", "$HOME `x` \"'\\", "*", "ünï\n"];
    let done = Fixture::new().run(&[&["printf", "%s|"][..], &words].concat()).unwrap();
    assert_eq!(text(&done.stdout.head), words.join("|") + "|");
}

#[test]
fn command_runs_in_the_workspace_or_in_its_cwd() {
    let mut fixture = Fixture::new();
    fs::create_dir(fixture.path("sub")).unwrap();
    let here = fs::canonicalize(fixture.directory.path()).unwrap();
    let shown = |fixture: &Fixture| text(&fixture.bash("pwd -P; echo $PWD").stdout.head).to_owned();
    assert!(shown(&fixture).starts_with(&format!("{}\n", here.display())));
    fixture.request.cwd = Some("sub".into());
    assert_eq!(
        shown(&fixture),
        format!("{0}/sub\n{1}/sub\n", here.display(), fixture.directory.path().display())
    );
    fixture.request.cwd = Some("/".into());
    assert_eq!(shown(&fixture), "/\n/\n");
}

#[test]
fn output_keeps_head_and_tail_and_counts_all_bytes() {
    let fixture = Fixture::with(|request| request.keep_bytes = 10);
    let done = fixture.bash("printf abcde; for i in {1..1000}; do printf xxxxxxxxxx; done; printf vwxyz");
    assert_eq!((text(&done.stdout.head), text(&done.stdout.tail)), ("abcde", "vwxyz"));
    assert_eq!(done.stdout.total, 10_010);
}

#[test]
fn timeout_keeps_output_and_ends_the_tree() {
    let fixture = Fixture::with(|request| request.timeout = TIMEOUT);
    let done = fixture.bash("echo early; echo problem >&2; (setsid sleep 600 &) ; sleep 600; echo late");
    assert_eq!(done.exit, Exit::TimedOut);
    assert_eq!((text(&done.stdout.head), text(&done.stderr.head)), ("early\n", "problem\n"));
    fixture.assert_no_processes_left();
}

#[test]
fn sigterm_handler_runs_once() {
    let fixture = Fixture::with(|request| request.timeout = TIMEOUT);
    let done = fixture.bash("trap 'echo cleaned; exit 3' TERM; sleep 600 & wait; echo late");
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::TimedOut, "cleaned\n"));
    fixture.assert_no_processes_left();
}

#[test]
fn process_that_ignores_sigterm_is_killed() {
    let fixture = Fixture::with(|request| request.timeout = SHORT_TIMEOUT);
    let done = fixture.bash(
        "trap '' TERM HUP INT; (trap '' TERM; while :; do sleep 600; done) & while :; do sleep 600; done",
    );
    assert_eq!(done.exit, Exit::TimedOut);
    fixture.assert_no_processes_left();
}

#[test]
fn stopped_process_is_killed() {
    let fixture = Fixture::with(|request| request.timeout = SHORT_TIMEOUT);
    assert_eq!(fixture.bash("kill -STOP $$").exit, Exit::TimedOut);
    fixture.assert_no_processes_left();
}

#[test]
fn double_fork_is_ended() {
    let fixture = Fixture::new();
    fixture.fifo("ready");
    let done = fixture.bash(
        "(setsid bash -c '(trap \"\" TERM; setsid sleep 600 & echo > ready; exec sleep 600) & exit' &)\n\
         read < ready; exit 5",
    );
    assert_eq!(done.exit, Exit::Code(5));
    assert!(done.left_behind >= 2, "{}", done.left_behind);
    fixture.assert_no_processes_left();
}

#[test]
fn background_child_with_the_pipe_is_ended() {
    for merge in [false, true] {
        let fixture = Fixture::with(|request| request.merge = merge);
        let done = fixture.bash("sleep 600 & echo started");
        assert_eq!((done.exit, text(&done.stdout.head), done.left_behind), (Exit::Code(0), "started\n", 1));
        fixture.assert_no_processes_left();
    }
}

#[test]
fn outside_process_with_the_pipe_does_not_block_the_call() {
    let fixture = Fixture::new();
    let (ready, go) = (fixture.fifo("ready"), fixture.fifo("go"));
    let outsider = thread::spawn(move || {
        let command = fs::read_to_string(ready).unwrap();
        let held = File::options().write(true).open(format!("/proc/{}/fd/1", command.trim())).unwrap();
        fs::write(go, "\n").unwrap();
        held
    });
    let done = fixture.bash("echo $$ > ready; read < go; echo done");
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::Code(0), "done\n"));
    drop(outsider.join().unwrap());
}

#[test]
fn child_that_ends_right_after_the_command_is_not_counted() {
    let done = bash("exec > >(cat); echo through the cat");
    assert_eq!((text(&done.stdout.head), done.left_behind), ("through the cat\n", 0));
}

#[test]
fn cancellation_ends_the_tree_and_keeps_output() {
    let fixture = Fixture::new();
    let ready = fixture.fifo("ready");
    let cancel = fixture.cancel.clone();
    let canceller = thread::spawn(move || {
        fs::read(ready).unwrap();
        cancel.cancel();
    });
    let done = fixture.bash("echo begun; (setsid sleep 600 &); echo > ready; sleep 600");
    canceller.join().unwrap();
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::Cancelled, "begun\n"));
    fixture.assert_no_processes_left();
}

#[test]
fn cancelled_call_starts_nothing() {
    let fixture = Fixture::new();
    fixture.cancel.cancel();
    assert_eq!(fixture.bash("touch started").exit, Exit::Cancelled);
    assert!(!fixture.path("started").exists());
}

#[test]
fn large_tree_is_ended() {
    let fixture = Fixture::with(|request| request.timeout = SHORT_TIMEOUT);
    let done = fixture.bash(
        "grow() { [ $1 -gt 0 ] || exec sleep 600; (grow $(($1 - 1))) & (grow $(($1 - 1))) & setsid sleep 600 & wait; }\n\
         trap '' TERM; grow 5",
    );
    assert_eq!(done.exit, Exit::TimedOut);
    fixture.assert_no_processes_left();
}

#[test]
fn processes_that_fork_into_new_sessions_are_ended() {
    let fixture = Fixture::with(|request| request.timeout = SHORT_TIMEOUT);
    let done = fixture.bash("run() { trap '' TERM; n=$1; while :; do setsid sleep 0.01 & n=$((n + 1)); [ $((n % 50)) -gt 0 ] || wait; done; }; for i in 1 2 3; do run $i & done; wait");
    assert_eq!(done.exit, Exit::TimedOut);
    fixture.assert_no_processes_left();
}

#[test]
fn command_that_stops_its_reaper_is_ended_in_time() {
    let fixture = Fixture::with(|request| request.timeout = SHORT_TIMEOUT);
    assert_eq!(fixture.bash("echo a; kill -STOP $PPID; sleep 600").exit, Exit::TimedOut);
    fixture.assert_no_processes_left();
}

#[test]
fn command_that_kills_its_reaper_ends() {
    let fixture = Fixture::new();
    let done = fixture.bash("sleep 600 & sleep 600 & echo a; kill -KILL $PPID; sleep 600");
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::Signal(9), "a\n"));
    fixture.assert_no_processes_left();
}

#[test]
fn commands_end_when_haft_is_killed() {
    if let Some(directory) = std::env::var_os("ALONE_IN") {
        let mut fixture = Fixture::new();
        fixture.mark = std::env::var("ALONE_MARK").unwrap();
        fixture.request.cwd = Some(directory.into());
        fixture.bash(
            "exec 9> alive; trap '' TERM; (setsid sleep 600 &); (trap '' TERM; sleep 600; sleep 600) & \
             echo > ready; sleep 600",
        );
        return;
    }
    let fixture = Fixture::new();
    let (alive, ready) = (fixture.fifo("alive"), fixture.fifo("ready"));
    let mut victim = rerun_command("commands_end_when_haft_is_killed")
        .envs([("ALONE_IN", fixture.directory.path().as_os_str()), ("ALONE_MARK", fixture.mark.as_ref())])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut alive = File::open(alive).unwrap();
    fs::read(ready).unwrap();
    assert!(marked(&fixture.mark).len() >= 3, "the tree is up");
    victim.kill().unwrap();
    assert_eq!(victim.wait().unwrap().signal(), Some(9));
    assert_eq!(alive.read(&mut [0]).unwrap(), 0, "everybody who held it open is gone");
    fixture.assert_no_processes_left();
}

#[test]
fn large_output_needs_bounded_memory_and_is_counted() {
    run_in_own_process("large_output_needs_bounded_memory_and_is_counted", || {
        let fixture = Fixture::with(|request| request.keep_bytes = 64 * 1024);
        let done = fixture
            .bash("echo head; head -c 2000000000 /dev/zero; echo tail; head -c 500000000 /dev/zero >&2");
        assert_eq!(
            (done.exit, done.stdout.total, done.stderr.total),
            (Exit::Code(0), 2_000_000_010, 500_000_000)
        );
        assert!(done.stdout.head.starts_with(b"head\n\0") && done.stdout.tail.ends_with(b"\0tail\n"));
        assert_eq!((done.stdout.head.len(), done.stdout.tail.len()), (32 * 1024, 32 * 1024));
        assert!(peak_memory() < 50_000_000, "{} bytes", peak_memory());
    });
}

#[test]
fn two_hundred_runs_leave_no_descriptors_or_zombies() {
    run_in_own_process("two_hundred_runs_leave_no_descriptors_or_zombies", || {
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let fixture = Fixture::new();
        let missing = Fixture::with(|request| request.cwd = Some("/nowhere".into()));
        fixture.bash("true");
        let before = open();
        for round in 0..200 {
            match round % 4 {
                0 => drop(fixture.bash("exit 1")),
                1 => drop(fixture.bash("sleep 0.001 & true")),
                2 => drop(fixture.run(&["no-such-program-anywhere"]).unwrap_err()),
                _ => drop(missing.run(&["true"]).unwrap_err()),
            }
        }
        assert_eq!(open(), before);
        let children: String = fs::read_dir("/proc/self/task")
            .unwrap()
            .map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap())
            .collect();
        assert_eq!(children, "", "children are left");
    });
}

#[test]
fn command_inherits_three_descriptors() {
    let fixture = Fixture::new();
    let secret = File::create(fixture.path("secret")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let done = fixture.run(&["ls", "/proc/self/fd"]).unwrap();
    assert_eq!(text(&done.stdout.head), "0\n1\n2\n3\n", "the last is the directory that ls reads");
}

#[test]
fn command_starts_with_default_signals() {
    /// Signals 32 and 33 belong to the C library, which does not allow setting them.
    const LIBRARY: u64 = 0b11 << 31;
    let done = Fixture::new().run(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]).unwrap();
    let sets: Vec<_> = text(&done.stdout.head)
        .lines()
        .map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap() & !LIBRARY)
        .collect();
    assert_eq!(sets, [0, 0]);
    assert_eq!(text(&bash("yes | head -1; echo ${PIPESTATUS[0]}").stdout.head), "y\n141\n");
}

#[test]
fn secret_variables_are_not_passed_to_commands() {
    if std::env::var_os("ALONE").is_none() {
        let name = "secret_variables_are_not_passed_to_commands";
        return check(
            &rerun_command(name).env("OPENAI_API_KEY", "sk-fake").env("LC_TIME", "C").output().unwrap(),
        );
    }
    let done = Fixture::new().run(&["env"]).unwrap();
    let shown = text(&done.stdout.head);
    assert!(!shown.contains("sk-fake") && !shown.contains("ALONE"), "{shown}");
    for line in ["LC_TIME=C", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
}

#[test]
fn start_errors_name_the_program_and_the_reason() {
    let mut fixture = Fixture::new();
    fs::write(fixture.path("plain"), "text").unwrap();
    fs::write(fixture.path("odd"), "not a program").unwrap();
    fs::set_permissions(fixture.path("odd"), fs::Permissions::from_mode(0o755)).unwrap();
    let long = "x".repeat(3_000_000);
    let long_argv = ["true", &long];
    let hundred_kilobytes = "x".repeat(100_000);
    let many_argv = [vec!["true"], vec![hundred_kilobytes.as_str(); 100]].concat();
    let cases: [(&[&str], ErrorKind, &str); 9] = [
        (&[], ErrorKind::InvalidArguments, "names no program"),
        (
            &["no-such-program-anywhere"],
            ErrorKind::FileNotFound,
            "no program named no-such-program-anywhere in PATH",
        ),
        (&["./no-such-program"], ErrorKind::FileNotFound, "no program ./no-such-program"),
        (&["./plain"], ErrorKind::PermissionDenied, "./plain may not be executed"),
        (&["/"], ErrorKind::PermissionDenied, "/ may not be executed"),
        (&["./odd"], ErrorKind::ExecutionFailed, "./odd is not a program"),
        (&["true", "a\0b"], ErrorKind::InvalidArguments, "NUL byte"),
        (&long_argv, ErrorKind::InvalidArguments, "the longest has 3000000"),
        (&many_argv, ErrorKind::InvalidArguments, "too long for the system"),
    ];
    for (argv, kind, words) in cases {
        let error = fixture.run(argv).unwrap_err();
        assert!(error.kind == kind && error.message.contains(words), "{:?}: {error}", error.kind);
    }
    for (cwd, kind) in [("nowhere", ErrorKind::FileNotFound), ("plain", ErrorKind::InvalidPath)] {
        fixture.request.cwd = Some(cwd.into());
        let error = fixture.run(&["true"]).unwrap_err();
        assert!(error.kind == kind && error.message.contains(cwd), "{:?}: {error}", error.kind);
    }
}

/// This test again, as a user whom the kernel holds to its limits.
fn as_unprivileged_user(name: &str, body: impl FnOnce()) {
    const OVERFLOW_UID: u32 = 65_534;
    if std::env::var_os("ALONE").is_some() {
        return body();
    }
    let copy = TempDir::new().unwrap();
    let program = copy.path().join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(copy.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(&program);
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env("ALONE", name).current_dir("/");
    if rustix::process::getuid().is_root() {
        command.uid(OVERFLOW_UID).gid(OVERFLOW_UID);
    }
    check(&command.output().unwrap());
}

#[test]
fn full_process_table_is_a_clear_error() {
    as_unprivileged_user("full_process_table_is_a_clear_error", || {
        let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Nproc, limit).unwrap();
        let error = Fixture::new().run(&["true"]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io, "{error}");
        assert!(error.message.contains("no room for another process"), "{error}");
    });
}

#[test]
fn concurrent_calls_are_independent() {
    let workers: Vec<_> = (0..16)
        .map(|worker| {
            thread::spawn(move || {
                for round in 0..10 {
                    let done = bash(&format!("echo {worker}.{round}; sleep 600 & exit {round}"));
                    assert_eq!((done.exit, done.left_behind), (Exit::Code(round), 1));
                    assert_eq!(text(&done.stdout.head), format!("{worker}.{round}\n"));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.join().unwrap();
    }
}
