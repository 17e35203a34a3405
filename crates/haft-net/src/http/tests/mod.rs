//! The door against real servers on this machine: what it reaches, what it refuses, and how it ends.
#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "a test that cannot go on should stop")]

mod bodies;
mod caching;
mod conversations;
mod refusals;
mod travels;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haft_tool::{Cancel, Http as _, HttpRequest, HttpResponse, Reach, ToolError};
use hyper_util::client::proxy::matcher::Matcher;

use super::{Door, Web};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A server on this machine; `answer` says what to write back to a request. What was asked can be heard.
struct Server {
    port: u16,
    asked: Receiver<String>,
}

impl Server {
    fn saying(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::talking(move |request, stream| {
            // A client that has had enough hangs up, which is its right.
            let _ = stream.write_all(&answer(request));
        })
    }

    fn talking(talk: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((HERE, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let talk = Arc::new(talk);
        let (tell, asked) = channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (talk, tell) = (Arc::clone(&talk), tell.clone());
                thread::spawn(move || {
                    let request = request(&stream);
                    let _ = tell.send(request.clone());
                    talk(&request, &mut stream);
                });
            }
        });
        Self { port, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The entry that lists it.
    fn entry(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// How many requests came since this was last asked.
    fn times(&self) -> usize {
        self.asked.try_iter().count()
    }
}

/// The head of a request, and the body if it says how long that is.
fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    head + &String::from_utf8_lossy(&body)
}

fn page(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

fn moved(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

/// A network whose names all lead to `answers`, and which has no proxies.
fn web(answers: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Arc<Web> {
    let lookup = move |name: &str| match answers(name) {
        none if none.is_empty() => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        found => Ok(found),
    };
    Arc::new(Web::with(Arc::new(lookup), Matcher::builder().build()))
}

fn here() -> Arc<Web> {
    web(|_| vec![HERE])
}

/// A door to these hosts alone.
fn door(web: &Arc<Web>, hosts: &[&str]) -> Door {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    reaching(web, Reach { hosts, ..Reach::default() })
}

fn reaching(web: &Arc<Web>, reach: Reach) -> Door {
    Door::new(Arc::clone(web), reach, Cancel::new())
}

/// A door that rules let through to the whole public network.
fn public() -> Reach {
    Reach { public: true, ..Reach::default() }
}

fn get(door: &Door, url: &str) -> Result<HttpResponse, ToolError> {
    door.fetch(&HttpRequest { timeout: Duration::from_mins(1), ..HttpRequest::get(url) })
}

fn text(response: &HttpResponse) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}
