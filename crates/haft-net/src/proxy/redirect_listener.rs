//! A loopback listener for the redirect of a browser login.
//!
//! Any program of this machine, and any web page, can connect to it. So only a `GET` of one path under a name of this
//! machine is passed to the caller, who decides whether it is the awaited one; all others get an error page, and the wait
//! goes on. Browsers open connections in advance and send nothing on them: each has its own thread and timeout.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haft_tool::{Cancel, ErrorKind, ToolError, lock};
use rustix::event::PollFlags;

use super::connection::{ClientConnection, REQUEST_TIMEOUT, RequestHead};
use super::wake::{WaitEnd, WakeReceiver, WakeSender, wake_channel};

const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_CONNECTIONS: usize = 16;
/// The pause after a failed accept.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_millis(10);
const BAD_REQUEST: &str = "400 Bad Request";

/// A listener on this machine that waits for one redirect.
#[derive(Debug)]
pub struct RedirectListener {
    listener: TcpListener,
    port: u16,
    path: String,
}

/// The caller's decision about a query, with the text that the browser shows.
pub enum RedirectReply<T> {
    /// It is the awaited one.
    Accept(T, String),
    /// It is not; the wait goes on.
    Reject(String),
}

impl RedirectListener {
    /// Listens for a request of `path` on `port`, or on a free one.
    pub fn bind(port: Option<u16>, path: &str) -> Result<Self, ToolError> {
        let port = port.unwrap_or(0);
        let bind = || -> io::Result<Self> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
            listener.set_nonblocking(true)?;
            Ok(Self { port: listener.local_addr()?.port(), listener, path: path.to_owned() })
        };
        bind().map_err(|error| ToolError::io(format!("listen on 127.0.0.1:{port}"), &error))
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until `decide` accepts a query, for at most `limit`.
    pub fn wait<T: Send>(
        self,
        limit: Duration,
        cancel: &Cancel,
        decide: &(dyn Fn(&str) -> RedirectReply<T> + Sync),
    ) -> Result<T, ToolError> {
        let deadline = Instant::now() + limit;
        let (stop, stopped) =
            wake_channel().map_err(|error| ToolError::io("wait for the browser", &error))?;
        let stop = Arc::new(stop);
        let on_cancel = Arc::clone(&stop);
        let _guard = cancel.on_cancel(move || on_cancel.wake());
        let (accepted, connections) = (Mutex::new(None), AtomicUsize::new(0));
        let wait =
            RedirectWait { listener: &self, decide, accepted: &accepted, stop: &stop, stopped: &stopped };
        thread::scope(|scope| {
            while stopped.poll([Some((self.listener.as_fd(), PollFlags::IN))], Some(deadline)).is_ok() {
                let Ok((stream, _)) = self.listener.accept() else {
                    // Nothing to accept, or no descriptor free.
                    cancel.wait(ACCEPT_RETRY_INTERVAL);
                    continue;
                };
                if connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                    connections.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let (wait, connections) = (&wait, &connections);
                let serve = move || {
                    let _ = wait.serve(stream);
                    connections.fetch_sub(1, Ordering::SeqCst);
                };
                let thread = thread::Builder::new().name("haft-redirect".to_owned());
                if thread.spawn_scoped(scope, serve).is_err() {
                    connections.fetch_sub(1, Ordering::SeqCst);
                }
            }
            stop.wake();
        });
        let accepted = accepted.into_inner().unwrap_or_else(PoisonError::into_inner);
        accepted.ok_or_else(|| {
            if cancel.is_cancelled() {
                return ToolError::new(ErrorKind::Interrupted, "the wait for the browser was cancelled");
            }
            let seconds = limit.as_secs();
            ToolError::new(ErrorKind::Timeout, format!("the browser did not respond within {seconds} s"))
        })
    }

    /// The query of a request for the awaited path; otherwise the status and text of the response.
    fn query(&self, head: &[u8]) -> Result<String, (&'static str, &'static str)> {
        let bad = (BAD_REQUEST, "This request is not valid here.");
        let head = std::str::from_utf8(head).map_err(|_| bad)?;
        let mut lines = head.split("\r\n");
        let first: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, "HTTP/1.1" | "HTTP/1.0"] = first[..] else { return Err(bad) };
        let hosts: Vec<&str> = lines
            .filter_map(|line| line.split_once(':'))
            .filter(|(name, _)| name.eq_ignore_ascii_case("host"))
            .map(|(_, value)| value.trim())
            .collect();
        let is_own = |host: &str| {
            let own = ["127.0.0.1", "localhost"].map(|name| format!("{name}:{}", self.port));
            own.iter().any(|own| host.eq_ignore_ascii_case(own))
        };
        // Another host is a web page whose name was made to resolve to this machine.
        if !matches!(hosts[..], [host] if is_own(host)) {
            return Err(("421 Misdirected Request", "This host name is not served here."));
        }
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        if path != self.path {
            return Err(("404 Not Found", "There is nothing here."));
        }
        if method != "GET" {
            return Err(("405 Method Not Allowed", "Only GET is supported here."));
        }
        Ok(query.to_owned())
    }
}

/// What every connection needs.
struct RedirectWait<'a, T> {
    listener: &'a RedirectListener,
    decide: &'a (dyn Fn(&str) -> RedirectReply<T> + Sync),
    accepted: &'a Mutex<Option<T>>,
    stop: &'a WakeSender,
    stopped: &'a WakeReceiver,
}

impl<T> RedirectWait<'_, T> {
    fn serve(&self, stream: TcpStream) -> Result<(), WaitEnd> {
        let client = ClientConnection::new(stream, self.stopped.clone(), REQUEST_TIMEOUT);
        let mut client = client.map_err(|_| WaitEnd::Closed)?;
        let RequestHead::Complete(head) = client.take_head(MAX_HEAD_BYTES)? else {
            client.finish(&page("431 Request Header Fields Too Large", "This request is too long."));
            return Ok(());
        };
        match self.listener.query(&head).map(|query| (self.decide)(&query)) {
            Err((status, text)) => client.finish(&page(status, text)),
            Ok(RedirectReply::Reject(text)) => client.finish(&page(BAD_REQUEST, &text)),
            Ok(RedirectReply::Accept(value, text)) => {
                client.finish(&page("200 OK", &text));
                lock(self.accepted).get_or_insert(value);
                self.stop.wake();
            }
        }
        Ok(())
    }
}

fn page(status: &str, text: &str) -> Vec<u8> {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>Haft</title><p>{text}</p></html>\n"
    );
    // The URL of this page contains a code, so it must not be sent on or stored.
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
