//! One answer from the user's browser, taken at an address of this machine.
//!
//! Whatever runs on this machine, any web page included, can knock here. So only a `GET` of the one path under a name of
//! this machine is looked at, who asks for it is judged by the caller, and everybody else gets a refusal while the wait
//! goes on. Browsers open connections ahead of need and say nothing on them: each has its own thread and its own time.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haft_tool::{Cancel, ErrorKind, ToolError, lock};
use rustix::event::PollFlags;

use super::client::{Client, Head};
use super::wait::{Bell, Ear, Stop, bell};

/// The longest request that is read; a code in its query is far shorter.
const LONGEST: usize = 16 * 1024;
/// How many may knock at once.
const MOST_AT_ONCE: usize = 16;
/// How long the next visitor waits when one could not be let in.
const PAUSE: Duration = Duration::from_millis(10);

/// A place on this machine where one answer is awaited.
#[derive(Debug)]
pub struct Loopback {
    listener: TcpListener,
    port: u16,
    path: String,
}

/// What the caller makes of a query. The words are shown in the browser.
pub enum Heard<T> {
    /// What was waited for.
    Answer(T, String),
    /// Somebody else's; the wait goes on.
    Stranger(String),
}

impl Loopback {
    /// Listens at `port`, or at one that is free, for a request of `path`.
    pub fn bind(port: Option<u16>, path: &str) -> Result<Self, ToolError> {
        let place = || format!("listen on 127.0.0.1:{}", port.unwrap_or(0));
        let bind = || {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0)))?;
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?.port(), listener))
        };
        let (port, listener) = bind().map_err(|error: io::Error| ToolError::io(place(), &error))?;
        Ok(Self { listener, port, path: path.to_owned() })
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until `judge` takes a query for the answer, for at most `limit`.
    pub fn wait<T: Send>(
        self,
        limit: Duration,
        cancel: &Cancel,
        judge: &(dyn Fn(&str) -> Heard<T> + Sync),
    ) -> Result<T, ToolError> {
        let deadline = Instant::now() + limit;
        let (strike, end) = bell().map_err(|error| ToolError::io("wait for the browser", &error))?;
        let strike = Arc::new(Mutex::new(strike));
        let stop = Arc::clone(&strike);
        let _guard = cancel.on_cancel(move || ring(&stop));
        let (answer, busy) = (Mutex::new(None), AtomicUsize::new(0));
        let desk = Desk { here: &self, judge, answer: &answer, strike: &strike, end: &end };
        thread::scope(|scope| {
            while end.wait([Some((self.listener.as_fd(), PollFlags::IN))], Some(deadline)).is_ok() {
                let Ok((stream, _)) = self.listener.accept() else {
                    // Nothing to accept, or no descriptor left to accept it with: that passes, but not at once.
                    cancel.wait(PAUSE);
                    continue;
                };
                if busy.load(Ordering::SeqCst) < MOST_AT_ONCE {
                    busy.fetch_add(1, Ordering::SeqCst);
                    let (desk, busy) = (&desk, &busy);
                    let serve = move || {
                        // One that hung up or talked too long has nothing to be told.
                        let _ = desk.serve(stream);
                        busy.fetch_sub(1, Ordering::SeqCst);
                    };
                    if thread::Builder::new()
                        .name("haft-redirect".to_owned())
                        .spawn_scoped(scope, serve)
                        .is_err()
                    {
                        busy.fetch_sub(1, Ordering::SeqCst);
                    }
                }
            }
            ring(&strike);
        });
        let answered = answer.into_inner().unwrap_or_else(PoisonError::into_inner);
        answered.ok_or_else(|| {
            if cancel.is_cancelled() {
                return ToolError::new(ErrorKind::Interrupted, "the wait for the browser was cancelled");
            }
            let seconds = limit.as_secs();
            ToolError::new(ErrorKind::Timeout, format!("no answer came from the browser within {seconds} s"))
        })
    }
}

fn ring(bell: &Mutex<Bell>) {
    lock(bell).ring();
}

/// What every connection needs.
struct Desk<'a, T> {
    here: &'a Loopback,
    judge: &'a (dyn Fn(&str) -> Heard<T> + Sync),
    answer: &'a Mutex<Option<T>>,
    strike: &'a Mutex<Bell>,
    end: &'a Ear,
}

impl<T> Desk<'_, T> {
    fn serve(&self, stream: TcpStream) -> Result<(), Stop> {
        let mut client = Client::new(stream, self.end.clone(), false).map_err(|_| Stop::Gone)?;
        let head = match client.head(LONGEST)? {
            Head::Whole(head) => head,
            Head::TooLong => {
                client.last_word(&page("431 Request Header Fields Too Large", "This request is too long."));
                return Ok(());
            }
        };
        let query = match self.here.query(&head) {
            Ok(query) => query,
            Err((status, words)) => {
                client.last_word(&page(status, words));
                return Ok(());
            }
        };
        match (self.judge)(&query) {
            Heard::Stranger(words) => client.last_word(&page("400 Bad Request", &words)),
            Heard::Answer(answer, words) => {
                client.last_word(&page("200 OK", &words));
                lock(self.answer).get_or_insert(answer);
                ring(self.strike);
            }
        }
        Ok(())
    }
}

impl Loopback {
    /// The query of a request for the path that is waited for.
    fn query(&self, head: &[u8]) -> Result<String, (&'static str, &'static str)> {
        const BAD: (&str, &str) = ("400 Bad Request", "This is no request that is understood here.");
        let head = std::str::from_utf8(head).map_err(|_| BAD)?;
        let mut lines = head.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (method, target, version) = (words.next(), words.next(), words.next());
        let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
            (method, target, version, words.next())
        else {
            return Err(BAD);
        };
        let mut hosts = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("host").then(|| value.trim())
        });
        let ours = |host: &str| {
            ["127.0.0.1", "localhost"]
                .iter()
                .any(|name| host.eq_ignore_ascii_case(&format!("{name}:{}", self.port)))
        };
        match (hosts.next(), hosts.next()) {
            (Some(host), None) if ours(host) => {}
            // A page elsewhere whose name was made to lead here.
            _ => return Err(("421 Misdirected Request", "Nobody of this name is here.")),
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != self.path {
            return Err(("404 Not Found", "There is nothing here."));
        }
        if method != "GET" {
            return Err(("405 Method Not Allowed", "Only GET is answered here."));
        }
        Ok(query.to_owned())
    }
}

fn page(status: &str, words: &str) -> Vec<u8> {
    let words = words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Haft</title><p>{words}</p></html>\n"
    );
    // The address of this page holds a code: nobody is told of it, and nothing keeps it.
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
