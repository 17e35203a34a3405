//! The memory of Haft does not grow with the number of calls.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::fixture::sandbox::{SandboxFixture, User};
use crate::fixture::wait_until;

/// More than allocators and caches take, and less than a few hundred bytes for each of the calls.
const MAX_GROWTH_KIB: u64 = 5_000;

/// The memory of a process that is its own, in KiB.
fn memory_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn e41_opens_and_temporary_files_do_not_add_to_the_witness() {
    SandboxFixture::in_both_modes(User::Current, |fixture| {
        fixture.file(
            "programs/calls.py",
            "import os\n\
         def work(first, count):\n    \
             for n in range(first, first + count):\n        \
                 os.close(os.open('f', os.O_WRONLY | os.O_CREAT))\n        \
                 for name in ('t%d' % n, os.environ['TMPDIR'] + '/t%d' % n):\n            \
                     os.close(os.open(name, os.O_WRONLY | os.O_CREAT)); os.unlink(name)\n\
         for part in (1, 2):\n    \
             work(part * 100000, 4000 if part == 1 else 16000)\n    \
             open('ready%d' % part, 'w').close()\n    \
             while not os.path.exists('go%d' % part): pass\n",
        );
        let program = fixture.path("programs/calls.py");
        let mut haft = fixture.bare(&fixture.program());
        let mut haft = haft.args(["sandbox", "--", "python3"]).arg(program).spawn().unwrap();
        let mut used = Vec::new();
        for part in 1..=2 {
            wait_until(|| fixture.path(&format!("work/ready{part}")).exists());
            used.push(memory_kib(haft.id()));
            fs::write(fixture.path(&format!("work/go{part}")), "").unwrap();
        }
        assert!(haft.wait().unwrap().success());
        assert!(used[1] < used[0] + MAX_GROWTH_KIB, "{used:?}");
        assert!(fixture.haft(&["show", "1"]).stdout.contains("reversible  yes"));
    });
}

#[test]
fn e41_calls_do_not_add_to_the_server() {
    let fixture = SandboxFixture::new(User::Current);
    fixture.file("work/a.txt", "text\n");
    let mut haft = fixture.bare(&fixture.program());
    let mut haft = haft.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, mut output) = (haft.stdin.take().unwrap(), BufReader::new(haft.stdout.take().unwrap()));
    let mut call = |id: u64, method: &str, params: Value| {
        writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
        loop {
            let mut line = String::new();
            assert!(output.read_line(&mut line).unwrap() > 0);
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer;
            }
        }
    };
    let client = json!({"name": "test", "version": "1"});
    call(0, "initialize", json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}));
    let mut used = Vec::new();
    let (read, write) = (fixture.path("work/a.txt"), fixture.path("work/b.txt"));
    for id in 1..=6_000 {
        let arguments = if id % 5 == 0 {
            json!({"name": "Write", "arguments": {"file_path": write, "content": format!("{id}\n")}})
        } else {
            json!({"name": "Read", "arguments": {"file_path": if id > 5 { &write } else { &read }}})
        };
        let answer = call(id, "tools/call", arguments);
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        if id % 1_500 == 0 {
            used.push(memory_kib(haft.id()));
        }
    }
    drop(input);
    haft.wait().unwrap();
    assert!(used[3] < used[0] + MAX_GROWTH_KIB, "{used:?}");
}
