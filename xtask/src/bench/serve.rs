//! `haft serve` over a ledger of 100,000 calls, one of which changed 20,000 files: how long the first answers of each view take, and
//! the server's memory.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use super::measure::{Row, median};
use super::{Bench, Place};
use crate::Done;

const CALL_COUNT: usize = 100_000;
const CHANGE_COUNT: usize = 20_000;
const ROUNDS: usize = 21;
/// Pages that listen at once.
const STREAM_COUNT: usize = 500;

pub(super) fn run(bench: &mut Bench) -> Done {
    let place = bench.place()?;
    // A project of its own, because the sample lies in Haft's repository.
    std::fs::write(place.workspace.path().join("haft.toml"), "").map_err(|error| error.to_string())?;
    let path = place.workspace.path().join("file.txt");
    std::fs::write(&path, "one line\n").map_err(|error| error.to_string())?;
    let mut mcp = place.serve(&bench.haft)?;
    mcp.many_at_once("Read", &json!({"file_path": path}), CALL_COUNT)?;
    let command = format!("mkdir many && cd many && seq -f file%g.txt {CHANGE_COUNT} | xargs touch");
    mcp.call("Bash", &json!({"command": command}))?;
    mcp.end();

    let server = PageServer::start(bench, &place)?;
    let mut connection = server.connect()?;
    let (_, sessions) = connection.get("/sessions")?;
    let session = text_after(&sessions, "\"id\":\"").to_owned();
    let (_, calls) = connection.get("/calls?limit=1")?;
    let call = text_after(&calls, "\"id\":").to_owned();
    let workspace = place.workspace.path().display().to_string();
    for (case, target) in [
        ("Now", "/now".to_owned()),
        ("Sessions", "/sessions?limit=200".to_owned()),
        ("all calls", "/calls?limit=200".to_owned()),
        ("Timeline", format!("/sessions/{session}/calls?limit=200")),
        ("a session", format!("/sessions/{session}")),
        ("Call with 20,000 changes", format!("/calls/{call}")),
        ("its changes, a part", format!("/calls/{call}/changes?offset=10000&limit=1000")),
        ("Files", format!("/files?workspace={workspace}&limit=1000")),
        ("search without a hit", "/calls?text=nothing-has-this-text".to_owned()),
    ] {
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            times.push(connection.get(&target)?.0);
        }
        let first = times.first().map_or(0.0, Duration::as_secs_f64) * 1e3;
        let row = Row { part: "serve", case: case.to_owned(), haft_ms: median(&mut times), ..Row::default() };
        let row = Row { peer: "the first time".to_owned(), peer_ms: Some(first), ..row };
        bench.table.add(row.with_peaks(server.memory_kib("VmRSS:"), None));
    }
    let mut pages = Vec::new();
    for _ in 0..STREAM_COUNT {
        let mut page = server.connect()?;
        page.open_stream()?;
        pages.push(page);
    }
    let (time, _) = connection.get("/now")?;
    let case = format!("Now, with {STREAM_COUNT} pages");
    let row = Row { part: "serve", case, haft_ms: time.as_secs_f64() * 1e3, ..Row::default() };
    bench.table.add(row.with_peaks(server.memory_kib("VmRSS:"), server.memory_kib("VmHWM:")));
    Ok(())
}

/// What follows a mark, up to the next quote or comma.
fn text_after<'a>(text: &'a str, mark: &str) -> &'a str {
    let rest = text.split_once(mark).map_or("", |(_, rest)| rest);
    rest.split(['"', ',']).next().unwrap_or_default()
}

/// `haft serve`; dropping it kills it.
struct PageServer {
    child: Child,
    address: String,
    token: String,
}

impl PageServer {
    fn start(bench: &Bench, place: &Place) -> Result<Self, String> {
        let mut command = Command::new(&bench.haft);
        command.arg("serve").current_dir(place.workspace.path()).env("HAFT_HOME", place.home.path());
        command.env("HAFT_CONFIG", place.home.path().join("none.toml"));
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let output = child.stdout.take().ok_or("a child without pipes")?;
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url).map_err(|error| error.to_string())?;
        let parts = url.trim().strip_prefix("http://").and_then(|rest| rest.split_once("/#token="));
        let (page, token) = parts.ok_or_else(|| format!("`haft serve` said {url:?}"))?;
        // Only browsers resolve the name of the page.
        let port = page.rsplit(':').next().unwrap_or_default();
        Ok(Self { child, address: format!("127.0.0.1:{port}"), token: token.to_owned() })
    }

    fn connect(&self) -> Result<PageConnection, String> {
        let stream = TcpStream::connect(&self.address).map_err(|error| error.to_string())?;
        stream.set_nodelay(true).map_err(|error| error.to_string())?;
        let head = format!("Host: {}\r\nAuthorization: Bearer {}\r\n\r\n", self.address, self.token);
        Ok(PageConnection { reader: BufReader::new(stream), head })
    }

    fn memory_kib(&self, field: &str) -> Option<i64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that stays open, as a browser's does.
struct PageConnection {
    reader: BufReader<TcpStream>,
    /// The headers of each request.
    head: String,
}

impl PageConnection {
    /// How long an answer takes, to its last byte, and its body.
    fn get(&mut self, target: &str) -> Result<(Duration, String), String> {
        let failed = |error: std::io::Error| format!("{target}: {error}");
        let start = Instant::now();
        let length = self.request(target)?.ok_or_else(|| format!("{target}: no length"))?;
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).map_err(failed)?;
        Ok((start.elapsed(), String::from_utf8_lossy(&body).into_owned()))
    }

    fn open_stream(&mut self) -> Done {
        self.request("/events").map(drop)
    }

    /// Sends a request and reads the head of its answer; returns the length of the body, if it has one.
    fn request(&mut self, target: &str) -> Result<Option<usize>, String> {
        let failed = |error: std::io::Error| format!("{target}: {error}");
        let request = format!("GET /api/v1{target} HTTP/1.1\r\n{}", self.head);
        self.reader.get_mut().write_all(request.as_bytes()).map_err(failed)?;
        let (mut length, mut line) = (None, String::new());
        self.reader.read_line(&mut line).map_err(failed)?;
        if !line.contains(" 200 ") {
            return Err(format!("{target}: {}", line.trim()));
        }
        while line.trim() != "" {
            line.clear();
            self.reader.read_line(&mut line).map_err(failed)?;
            length = length.or_else(|| line.strip_prefix("content-length: ")?.trim().parse().ok());
        }
        Ok(length)
    }
}
