//! `haft mcp` against a bare pipe and against the reference server for files; Haft's client against the server itself.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft::json;
use haft_cli::servers::{self, Entry, Origin};
use haft_mcp::client::oauth::Opener;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::commands::call;
use super::measure::{Row, alternate, median};
use super::{Bench, Stage};
use crate::Done;
use crate::peers::mcp::Mcp;

/// How many calls are measured, after so many that are not.
const CALLS: usize = 3_000;
const WARM_UP: usize = 300;
/// In how many rounds, where two are measured beside each other.
const ROUNDS: usize = 15;
/// How many calls are under way at once, how many there are in all, and in how many rounds: one takes a fifth of a second,
/// which is short enough for something else to come between.
const AT_ONCE: usize = 64;
const MANY: usize = 20_000;
const MANY_ROUNDS: usize = 5;

/// A server over its standard input and output.
struct Line {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    /// Room to read into, and how much of it was filled last.
    room: Box<[u8]>,
    filled: usize,
}

impl Line {
    fn start(command: &mut Command) -> Result<Self, String> {
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut child = child.map_err(|error| format!("{command:?}: {error}"))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("a child without pipes".to_owned());
        };
        Ok(Self { child, input, output, room: vec![0; 64 << 10].into(), filled: 0 })
    }

    fn send(&mut self, bytes: &[u8]) -> Done {
        self.input.write_all(bytes).map_err(|error| error.to_string())
    }

    /// Reads until so many lines have come.
    fn lines(&mut self, mut count: usize) -> Done {
        while count > 0 {
            self.filled = self.output.read(&mut self.room).map_err(|error| error.to_string())?;
            if self.filled == 0 {
                return Err("the server ended".to_owned());
            }
            count = count.saturating_sub(self.ends());
        }
        Ok(())
    }

    /// How many lines ended in what was read last.
    fn ends(&self) -> usize {
        memchr::memchr_iter(b'\n', &self.room[..self.filled]).count()
    }

    fn ask(&mut self, line: &str) -> Done {
        self.send(line.as_bytes())?;
        self.lines(1)
    }

    /// Shakes hands in the older way, which every server here knows.
    fn greet(&mut self) -> Done {
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"},
        }});
        self.ask(&format!("{hello}\n"))?;
        self.send(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n")
    }

    /// The median of one call after the other, in milliseconds.
    fn one_by_one(&mut self, request: &dyn Fn(usize) -> String, calls: usize) -> Result<f64, String> {
        let mut times = Vec::with_capacity(WARM_UP + calls);
        for number in 1..=WARM_UP + calls {
            let line = request(number);
            let start = Instant::now();
            self.ask(&line)?;
            times.push(start.elapsed());
        }
        Ok(median(&mut times[WARM_UP..]))
    }

    /// Milliseconds per call with many under way at once.
    fn many_at_once(&mut self, request: &dyn Fn(usize) -> String, all: usize) -> Result<f64, String> {
        let requests: Vec<String> = (0..all).map(|number| request(1_000_000 + number)).collect();
        let start = Instant::now();
        let (mut sent, mut answered) = (0, 0);
        while answered < all {
            let more = (AT_ONCE - (sent - answered)).min(all - sent);
            self.send(requests[sent..sent + more].concat().as_bytes())?;
            sent += more;
            self.lines(1)?;
            answered += self.ends();
        }
        Ok(start.elapsed().as_secs_f64() * 1e3 / f64::from(u32::try_from(all).unwrap_or(u32::MAX)))
    }

    /// The memory that it has now, in KiB.
    fn memory(&self) -> Option<i64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }

    fn end(mut self) {
        drop(self.input);
        let _ = self.child.wait();
    }
}

/// Two processors, one for each end of a pipe. Where the scheduler puts both ends on one, a bare pipe is seven times as fast,
/// and which of two servers it does that to is a matter of luck.
struct Places {
    anywhere: CpuSet,
    ours: usize,
    theirs: usize,
}

impl Places {
    fn find() -> Option<Self> {
        let anywhere = sched_getaffinity(None).ok()?;
        let mut all = (0..CpuSet::MAX_CPU).filter(|processor| anywhere.is_set(*processor));
        Some(Self { anywhere, ours: all.next()?, theirs: all.next()? })
    }

    /// Starts something there, and stays here.
    fn apart<T>(&self, start: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        Self::stay(self.theirs)?;
        let started = start();
        Self::stay(self.ours)?;
        started
    }

    fn stay(processor: usize) -> Done {
        let mut only = CpuSet::new();
        only.set(processor);
        sched_setaffinity(None, &only).map_err(|error| error.to_string())
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        // Whatever is measured next may run anywhere.
        let _ = sched_setaffinity(None, &self.anywhere);
    }
}

fn tool(name: &str, arguments: &haft::Value) -> impl Fn(usize) -> String + use<> {
    let params = json!({"name": name, "arguments": arguments}).to_string();
    move |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n")
}

fn haft_mcp(haft: &Path, home: &Path, workspace: &Path) -> Command {
    let mut command = Command::new(haft);
    command
        .arg("mcp")
        .env("HAFT_HOME", home)
        .env("HAFT_CONFIG", home.join("none.toml"))
        .current_dir(workspace);
    command
}

/// Starts the command and waits for its first answer, several times; milliseconds.
fn connect(make: &dyn Fn() -> Command, rounds: usize) -> Result<f64, String> {
    let mut times = Vec::new();
    for _ in 0..rounds {
        let start = Instant::now();
        let mut line = Line::start(&mut make())?;
        line.greet()?;
        times.push(start.elapsed());
        line.end();
    }
    Ok(median(&mut times))
}

pub(crate) fn run(bench: &mut Bench) -> Done {
    let mcp = Mcp::find()?;
    let stage = Stage::new(bench)?;
    let workspace = stage.folder.path().to_owned();
    let home = bench.sample.scratch.join("mcp-home");
    // What earlier runs wrote down would be entered beside what is measured.
    let _ = std::fs::remove_dir_all(&home);
    let file = workspace.join("small.txt");
    std::fs::write(&file, format!("{}\n", "x".repeat(63)).repeat(16)).map_err(|error| error.to_string())?;
    let reference = || {
        let mut command = Command::new(&mcp.node);
        command.arg(mcp.module("@modelcontextprotocol/server-filesystem/dist/index.js")).arg(&workspace);
        command
    };
    let (haft_read, their_read) =
        (tool("Read", &json!({"file_path": file})), tool("read_text_file", &json!({"path": file})));
    let haft_program = bench.haft.clone();
    let mut row = |case: &str, haft_ms, peer: &str, peer_ms, haft_peak_kib, peer_peak_kib| {
        bench.table.add(Row {
            part: "mcp",
            case: case.to_owned(),
            haft_ms,
            peer: peer.to_owned(),
            peer_ms: Some(peer_ms),
            ratio: Some(haft_ms / peer_ms),
            haft_peak_kib,
            peer_peak_kib,
        });
    };

    for (case, place) in [("Read 1 KiB, one by one", None), ("the same, a processor each", Places::find())] {
        let start = |command: &mut Command| match &place {
            Some(places) => places.apart(|| Line::start(command)),
            None => Line::start(command),
        };
        // Each beside the other, many times: how fast a pipe is depends on where the scheduler puts its two ends.
        let (mut ours, mut bare, mut memory) = (Vec::new(), Vec::new(), None);
        for _ in 0..ROUNDS {
            let mut cat = start(&mut Command::new("cat"))?;
            bare.push(Duration::from_secs_f64(cat.one_by_one(&haft_read, CALLS / ROUNDS)? / 1e3));
            cat.end();
            let mut haft = start(&mut haft_mcp(&haft_program, &home, &workspace))?;
            haft.greet()?;
            ours.push(Duration::from_secs_f64(haft.one_by_one(&haft_read, CALLS / ROUNDS)? / 1e3));
            memory = haft.memory();
            haft.end();
        }
        let mut theirs = start(&mut reference())?;
        theirs.greet()?;
        let their_ms = theirs.one_by_one(&their_read, CALLS)?;
        let their_memory = theirs.memory();
        theirs.end();
        let haft_ms = median(&mut ours);
        row(case, haft_ms, "cat", median(&mut bare), memory, None);
        row(case, haft_ms, "filesystem", their_ms, memory, their_memory);
    }
    let (mut ours, mut theirs, mut memory) = (Vec::new(), Vec::new(), (None, None));
    for _ in 0..MANY_ROUNDS {
        let mut peer = Line::start(&mut reference())?;
        peer.greet()?;
        theirs.push(Duration::from_secs_f64(peer.many_at_once(&their_read, MANY / 10)? / 1e3));
        memory.1 = peer.memory();
        peer.end();
        let mut haft = Line::start(&mut haft_mcp(&haft_program, &home, &workspace))?;
        haft.greet()?;
        ours.push(Duration::from_secs_f64(haft.many_at_once(&haft_read, MANY)? / 1e3));
        memory.0 = haft.memory();
        haft.end();
    }
    row("Read 1 KiB, 64 at once", median(&mut ours), "filesystem", median(&mut theirs), memory.0, memory.1);

    let ours = connect(&|| haft_mcp(&haft_program, &home, &workspace), 15)?;
    let theirs = connect(&reference, 5)?;
    row("connect", ours, "filesystem", theirs, None, None);
    held(bench, &mcp, &workspace, &home)?;
    configured(bench, &workspace, &home, &file)
}

/// What Haft's client adds to a call of a server: the same call, by a bare pipe and by the runtime that holds the server.
fn held(bench: &mut Bench, mcp: &Mcp, workspace: &Path, home: &Path) -> Done {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().ok_or("no root")?;
    let script = root.join("crates/haft-mcp/tests/hostile/server.py");
    let mut bare = Line::start(Command::new(&mcp.python).arg(&script).arg("good"))?;
    bare.greet()?;
    let bare_ms = bare.one_by_one(&tool("echo", &json!({"text": "hello"})), CALLS)?;
    bare.end();

    let written = json!({"command": mcp.python, "args": [script, "good"]});
    let entry =
        Entry::read("local", &written, Origin::Flag, &|_| None)?.ok_or("the server is switched off")?;
    let servers = servers::Servers::new(servers::Setup {
        entries: vec![entry],
        naming: servers::with_prefix,
        home: home.to_owned(),
        host: Arc::new(haft::NoHost),
        opener: Arc::new(Nobody),
    });
    let runtime =
        haft::Runtime::builder().workspace(workspace).home(home).source(Arc::new(servers.clone())).build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let mut times = Vec::with_capacity(CALLS);
    for number in 0..WARM_UP + CALLS {
        let call = haft::Call::new(number.to_string(), "mcp__local__echo", json!({"text": "hello"}));
        let start = Instant::now();
        let done = runtime.run_blocking(call, haft::CallOptions::default());
        times.push(start.elapsed());
        if done.output.is_error() {
            return Err(done.output.as_text());
        }
    }
    servers.close();
    runtime.end();
    let haft_ms = median(&mut times[WARM_UP..]);
    bench.table.add(Row {
        part: "mcp",
        case: "a server's tool, held and recorded".to_owned(),
        haft_ms,
        peer: "bare pipe".to_owned(),
        peer_ms: Some(bare_ms),
        ratio: Some(haft_ms / bare_ms),
        haft_peak_kib: None,
        peer_peak_kib: None,
    });
    Ok(())
}

/// Nobody is here to log in.
struct Nobody;

impl Opener for Nobody {
    fn open(&self, _url: &url::Url) -> Result<(), haft::ToolError> {
        Err(haft::ToolError::denied("nobody is here"))
    }
}

/// What fifty configured servers cost a call that needs none of them.
fn configured(bench: &mut Bench, workspace: &Path, home: &Path, file: &Path) -> Done {
    let fifty: String = (0..50)
        .map(|at| format!("[tools.mcp_servers.server{at}]\ncommand = \"node\"\nargs = [\"server{at}.js\", \"--quiet\"]\n"))
        .collect();
    let settings = bench.sample.scratch.join("fifty.toml");
    std::fs::write(&settings, fifty).map_err(|error| error.to_string())?;
    let read = json!({"file_path": file});
    let mut with = call(&bench.haft, home, workspace, "Read", &read);
    let mut without = call(&bench.haft, home, workspace, "Read", &read);
    with.env("HAFT_CONFIG", &settings);
    without.env("HAFT_CONFIG", home.join("none.toml"));
    let mut ran = alternate(41, &mut [&mut with, &mut without])?;
    let (with_ms, without_ms) = (median(&mut ran[0].times), median(&mut ran[1].times));
    bench.table.add(Row {
        part: "mcp",
        case: "Read with 50 servers configured".to_owned(),
        haft_ms: with_ms,
        peer: "none".to_owned(),
        peer_ms: Some(without_ms),
        ratio: Some(with_ms / without_ms),
        haft_peak_kib: Some(ran[0].peak_kib),
        peer_peak_kib: Some(ran[1].peak_kib),
    });
    Ok(())
}
