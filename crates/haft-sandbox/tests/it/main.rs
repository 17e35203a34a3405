//! Real commands through the one door that starts processes.
#![expect(clippy::disallowed_methods, reason = "the test looks at /proc and starts itself anew")]
#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod place;

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::thread;

use haft_tool::{ErrorKind, Exit};
use tempfile::TempDir;

use place::{LATER, Place, SOON, again, alone, bash, check, marked, peak_memory, text};

#[test]
fn an_exit_code_is_told_as_it_is() {
    for code in [0, 1, 2, 42, 77, 126, 127, 255] {
        assert_eq!(bash(&format!("exit {code}")).exit, Exit::Code(code));
    }
}

#[test]
fn a_death_by_signal_is_told_with_the_signal() {
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("PIPE", 13)] {
        assert_eq!(bash(&format!("kill -{name} $$")).exit, Exit::Signal(number));
    }
}

#[test]
fn streams_are_kept_apart() {
    let done = bash("echo out; echo err >&2");
    assert_eq!((text(&done.stdout.head), text(&done.stderr.head)), ("out\n", "err\n"));
    assert_eq!((done.stdout.total, done.stderr.total, done.left_behind), (4, 4, 0));
}

#[test]
fn merged_streams_keep_the_order_they_were_written_in() {
    let place = Place::with(|request| request.merge = true);
    let done = place.bash("for i in {1..200}; do echo o$i; echo e$i >&2; done");
    let expected: String = (1..=200).flat_map(|i| [format!("o{i}\n"), format!("e{i}\n")]).collect();
    assert_eq!(text(&done.stdout.head), expected);
    assert_eq!(done.stderr.total, 0);
}

#[test]
fn standard_input_is_empty() {
    assert_eq!(text(&bash("cat; wc -c; readlink /proc/self/fd/0").stdout.head), "0\n/dev/null\n");
}

#[test]
fn arguments_reach_the_program_as_they_are() {
    let words = ["", " a  b ", "$HOME `x` \"'\\", "*", "ünï\n"];
    let done = Place::new().run(&[&["printf", "%s|"][..], &words].concat()).unwrap();
    assert_eq!(text(&done.stdout.head), words.join("|") + "|");
}

#[test]
fn a_command_runs_in_the_workspace_or_in_the_directory_it_names() {
    let mut place = Place::new();
    fs::create_dir(place.path("sub")).unwrap();
    let here = fs::canonicalize(place.directory.path()).unwrap();
    let shown = |place: &Place| text(&place.bash("pwd -P; echo $PWD").stdout.head).to_owned();
    assert!(shown(&place).starts_with(&format!("{}\n", here.display())));
    place.request.cwd = Some("sub".into());
    assert_eq!(
        shown(&place),
        format!("{0}/sub\n{1}/sub\n", here.display(), place.directory.path().display())
    );
    place.request.cwd = Some("/".into());
    assert_eq!(shown(&place), "/\n/\n");
}

#[test]
fn only_the_first_and_last_bytes_are_kept_and_all_are_counted() {
    let place = Place::with(|request| request.keep_bytes = 10);
    let done = place.bash("printf abcde; for i in {1..1000}; do printf xxxxxxxxxx; done; printf vwxyz");
    assert_eq!((text(&done.stdout.head), text(&done.stdout.tail)), ("abcde", "vwxyz"));
    assert_eq!(done.stdout.total, 10_010);
}

#[test]
fn a_timeout_keeps_what_was_printed_and_leaves_nobody() {
    let place = Place::with(|request| request.timeout = LATER);
    let done = place.bash("echo early; echo problem >&2; (setsid sleep 600 &) ; sleep 600; echo late");
    assert_eq!(done.exit, Exit::TimedOut);
    assert_eq!((text(&done.stdout.head), text(&done.stderr.head)), ("early\n", "problem\n"));
    place.assert_nobody_is_left();
}

#[test]
fn a_command_that_cleans_up_on_sigterm_gets_to_do_so_once() {
    let place = Place::with(|request| request.timeout = LATER);
    let done = place.bash("trap 'echo cleaned; exit 3' TERM; sleep 600 & wait; echo late");
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::TimedOut, "cleaned\n"));
    place.assert_nobody_is_left();
}

#[test]
fn whoever_ignores_sigterm_is_killed() {
    let place = Place::with(|request| request.timeout = SOON);
    let done = place.bash(
        "trap '' TERM HUP INT; (trap '' TERM; while :; do sleep 600; done) & while :; do sleep 600; done",
    );
    assert_eq!(done.exit, Exit::TimedOut);
    place.assert_nobody_is_left();
}

#[test]
fn a_stopped_process_is_killed_too() {
    let place = Place::with(|request| request.timeout = SOON);
    assert_eq!(place.bash("kill -STOP $$").exit, Exit::TimedOut);
    place.assert_nobody_is_left();
}

#[test]
fn a_double_fork_does_not_get_away() {
    let place = Place::new();
    place.fifo("ready");
    let done = place.bash(
        "(setsid bash -c '(trap \"\" TERM; setsid sleep 600 & echo > ready; exec sleep 600) & exit' &)\n\
         read < ready; exit 5",
    );
    assert_eq!(done.exit, Exit::Code(5));
    assert!(done.left_behind >= 2, "{}", done.left_behind);
    place.assert_nobody_is_left();
}

#[test]
fn a_background_child_that_holds_the_pipe_neither_hangs_the_call_nor_survives_it() {
    for merge in [false, true] {
        let place = Place::with(|request| request.merge = merge);
        let done = place.bash("sleep 600 & echo started");
        assert_eq!((done.exit, text(&done.stdout.head), done.left_behind), (Exit::Code(0), "started\n", 1));
        place.assert_nobody_is_left();
    }
}

#[test]
fn a_process_outside_of_the_tree_that_holds_the_pipe_does_not_hang_the_call() {
    let place = Place::new();
    let (ready, go) = (place.fifo("ready"), place.fifo("go"));
    let outsider = thread::spawn(move || {
        let command = fs::read_to_string(ready).unwrap();
        let held = File::options().write(true).open(format!("/proc/{}/fd/1", command.trim())).unwrap();
        fs::write(go, "\n").unwrap();
        held
    });
    let done = place.bash("echo $$ > ready; read < go; echo done");
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::Code(0), "done\n"));
    drop(outsider.join().unwrap());
}

#[test]
fn what_ends_by_itself_right_after_the_command_may_finish_and_is_not_counted() {
    let done = bash("exec > >(cat); echo through the cat");
    assert_eq!((text(&done.stdout.head), done.left_behind), ("through the cat\n", 0));
}

#[test]
fn a_cancellation_from_another_thread_ends_the_tree_and_keeps_the_output() {
    let place = Place::new();
    let ready = place.fifo("ready");
    let cancel = place.cancel.clone();
    let canceller = thread::spawn(move || {
        fs::read(ready).unwrap();
        cancel.cancel();
    });
    let done = place.bash("echo begun; (setsid sleep 600 &); echo > ready; sleep 600");
    canceller.join().unwrap();
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::Cancelled, "begun\n"));
    place.assert_nobody_is_left();
}

#[test]
fn a_cancelled_call_starts_nothing() {
    let place = Place::new();
    place.cancel.cancel();
    assert_eq!(place.bash("touch started").exit, Exit::Cancelled);
    assert!(!place.path("started").exists());
}

#[test]
fn a_fork_heavy_tree_is_ended_whole() {
    let place = Place::with(|request| request.timeout = SOON);
    let done = place.bash(
        "grow() { [ $1 -gt 0 ] || exec sleep 600; (grow $(($1 - 1))) & (grow $(($1 - 1))) & setsid sleep 600 & wait; }\n\
         trap '' TERM; grow 5",
    );
    assert_eq!(done.exit, Exit::TimedOut);
    place.assert_nobody_is_left();
}

#[test]
fn processes_that_keep_forking_into_new_sessions_are_ended() {
    let place = Place::with(|request| request.timeout = SOON);
    let done = place.bash("run() { trap '' TERM; n=$1; while :; do setsid sleep 0.01 & n=$((n + 1)); [ $((n % 50)) -gt 0 ] || wait; done; }; for i in 1 2 3; do run $i & done; wait");
    assert_eq!(done.exit, Exit::TimedOut);
    place.assert_nobody_is_left();
}

#[test]
fn a_command_that_stops_its_keeper_is_still_ended_in_time() {
    let place = Place::with(|request| request.timeout = SOON);
    assert_eq!(place.bash("echo a; kill -STOP $PPID; sleep 600").exit, Exit::TimedOut);
    place.assert_nobody_is_left();
}

#[test]
fn a_command_that_kills_its_keeper_ends_with_it() {
    let place = Place::new();
    let done = place.bash("sleep 600 & sleep 600 & echo a; kill -KILL $PPID; sleep 600");
    assert_eq!((done.exit, text(&done.stdout.head)), (Exit::Signal(9), "a\n"));
    place.assert_nobody_is_left();
}

#[test]
fn when_haft_is_killed_its_commands_end_too() {
    if let Some(directory) = std::env::var_os("ALONE_IN") {
        let mut place = Place::new();
        place.mark = std::env::var("ALONE_MARK").unwrap();
        place.request.cwd = Some(directory.into());
        place.bash(
            "exec 9> alive; trap '' TERM; (setsid sleep 600 &); (trap '' TERM; sleep 600; sleep 600) & \
             echo > ready; sleep 600",
        );
        return;
    }
    let place = Place::new();
    let (alive, ready) = (place.fifo("alive"), place.fifo("ready"));
    let mut victim = again("when_haft_is_killed_its_commands_end_too")
        .envs([("ALONE_IN", place.directory.path().as_os_str()), ("ALONE_MARK", place.mark.as_ref())])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut alive = File::open(alive).unwrap();
    fs::read(ready).unwrap();
    assert!(marked(&place.mark).len() >= 3, "the tree is up");
    victim.kill().unwrap();
    assert_eq!(victim.wait().unwrap().signal(), Some(9));
    assert_eq!(alive.read(&mut [0]).unwrap(), 0, "everybody who held it open is gone");
    place.assert_nobody_is_left();
}

#[test]
fn a_flood_passes_in_bounded_memory_and_is_counted_exactly() {
    alone("a_flood_passes_in_bounded_memory_and_is_counted_exactly", || {
        let place = Place::with(|request| request.keep_bytes = 64 * 1024);
        let done =
            place.bash("echo head; head -c 2000000000 /dev/zero; echo tail; head -c 500000000 /dev/zero >&2");
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
fn no_descriptor_and_no_zombie_stays_after_two_hundred_runs() {
    alone("no_descriptor_and_no_zombie_stays_after_two_hundred_runs", || {
        let open = || fs::read_dir("/proc/self/fd").unwrap().count();
        let place = Place::new();
        let missing = Place::with(|request| request.cwd = Some("/nowhere".into()));
        place.bash("true");
        let before = open();
        for round in 0..200 {
            match round % 4 {
                0 => drop(place.bash("exit 1")),
                1 => drop(place.bash("sleep 0.001 & true")),
                2 => drop(place.run(&["no-such-program-anywhere"]).unwrap_err()),
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
fn a_command_inherits_three_descriptors_and_no_more() {
    let place = Place::new();
    let secret = File::create(place.path("secret")).unwrap();
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty()).unwrap();
    let done = place.run(&["ls", "/proc/self/fd"]).unwrap();
    assert_eq!(text(&done.stdout.head), "0\n1\n2\n3\n", "the last is the directory that ls reads");
}

#[test]
fn a_command_starts_with_default_signals() {
    /// Signals 32 and 33 belong to the C library, which lets nobody set them.
    const LIBRARY: u64 = 0b11 << 31;
    let done = Place::new().run(&["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]).unwrap();
    let sets: Vec<_> = text(&done.stdout.head)
        .lines()
        .map(|line| u64::from_str_radix(line.split_once('\t').unwrap().1, 16).unwrap() & !LIBRARY)
        .collect();
    assert_eq!(sets, [0, 0]);
    assert_eq!(text(&bash("yes | head -1; echo ${PIPESTATUS[0]}").stdout.head), "y\n141\n");
}

#[test]
fn secrets_of_hafts_environment_do_not_reach_a_command() {
    if std::env::var_os("ALONE").is_none() {
        let name = "secrets_of_hafts_environment_do_not_reach_a_command";
        return check(&again(name).env("OPENAI_API_KEY", "sk-fake").env("LC_TIME", "C").output().unwrap());
    }
    let done = Place::new().run(&["env"]).unwrap();
    let shown = text(&done.stdout.head);
    assert!(!shown.contains("sk-fake") && !shown.contains("ALONE"), "{shown}");
    for line in ["LC_TIME=C", "TERM=dumb", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0"] {
        assert!(shown.lines().any(|shown| shown == line), "{line}: {shown}");
    }
}

#[test]
fn what_cannot_be_started_is_told_by_kind_and_by_name() {
    let mut place = Place::new();
    fs::write(place.path("plain"), "text").unwrap();
    fs::write(place.path("odd"), "not a program").unwrap();
    fs::set_permissions(place.path("odd"), fs::Permissions::from_mode(0o755)).unwrap();
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
        let error = place.run(argv).unwrap_err();
        assert!(error.kind == kind && error.message.contains(words), "{:?}: {error}", error.kind);
    }
    for (cwd, kind) in [("nowhere", ErrorKind::FileNotFound), ("plain", ErrorKind::InvalidPath)] {
        place.request.cwd = Some(cwd.into());
        let error = place.run(&["true"]).unwrap_err();
        assert!(error.kind == kind && error.message.contains(cwd), "{:?}: {error}", error.kind);
    }
}

/// This test again, as a user whom the kernel holds to its limits.
fn as_nobody(name: &str, body: impl FnOnce()) {
    const NOBODY: u32 = 65_534;
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
        command.uid(NOBODY).gid(NOBODY);
    }
    check(&command.output().unwrap());
}

#[test]
fn a_full_process_table_is_a_clear_error() {
    as_nobody("a_full_process_table_is_a_clear_error", || {
        let limit = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(rustix::process::Resource::Nproc, limit).unwrap();
        let error = Place::new().run(&["true"]).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Io, "{error}");
        assert!(error.message.contains("no room for another process"), "{error}");
    });
}

#[test]
fn many_calls_at_once_do_not_get_in_each_others_way() {
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
