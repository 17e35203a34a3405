//! The HTTP client against real servers on this machine.
#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "a failed step fails the test")]

mod bodies;
mod cache;
mod reach;
mod redirects;
mod streams;

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haft_tool::{Cancel, Http as _, HttpRequest, HttpResponse, Reach, ToolError};
use hyper_util::client::proxy::matcher::Matcher;

use super::{HttpClient, HttpService};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A server on this machine that records the requests it gets.
struct TestServer {
    port: u16,
    requests: Receiver<String>,
}

impl TestServer {
    fn responding(response: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        Self::handling(move |request, stream| {
            // Fails if the client closes the connection early.
            let _ = stream.write_all(&response(request));
        })
    }

    fn handling(handler: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let handler = Arc::new(handler);
        let (sender, requests) = channel();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (handler, sender) = (Arc::clone(&handler), sender.clone());
                thread::spawn(move || {
                    let request = read_request(&stream);
                    let _ = sender.send(request.clone());
                    handler(&request, &mut stream);
                });
            }
        });
        Self { port, requests }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The entry that allows it.
    fn entry(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The number of requests since the last call.
    fn request_count(&self) -> usize {
        self.requests.try_iter().count()
    }
}

/// The head of a request, and its body if it has a Content-Length.
fn read_request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).is_ok_and(|count| count > 2) {}
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ").map(str::to_owned));
    let mut body = vec![0; length.and_then(|length| length.parse().ok()).unwrap_or(0)];
    let _ = reader.read_exact(&mut body);
    head + &String::from_utf8_lossy(&body)
}

fn ok_page(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n{body}", body.len())
        .into_bytes()
}

fn redirect_to(status: u16, location: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}

/// A service without proxies whose names resolve to what `resolve` returns.
fn service(resolve: impl Fn(&str) -> Vec<IpAddr> + Send + Sync + 'static) -> Arc<HttpService> {
    let lookup = move |name: &str| match resolve(name) {
        none if none.is_empty() => Err(io::Error::new(io::ErrorKind::NotFound, "no such name")),
        found => Ok(found),
    };
    Arc::new(HttpService::with(Arc::new(lookup), Matcher::builder().build()))
}

/// A service whose names all resolve to this machine.
fn local_service() -> Arc<HttpService> {
    service(|_| vec![LOCALHOST])
}

/// A client for these hosts only.
fn client_for(service: &Arc<HttpService>, hosts: &[&str]) -> HttpClient {
    let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
    client_within(service, Reach { hosts, ..Reach::default() })
}

fn client_within(service: &Arc<HttpService>, reach: Reach) -> HttpClient {
    HttpClient::new(Arc::clone(service), reach, Cancel::new())
}

/// All public hosts.
fn public() -> Reach {
    Reach { public: true, ..Reach::default() }
}

fn get(client: &HttpClient, url: &str) -> Result<HttpResponse, ToolError> {
    client.fetch(&HttpRequest { timeout: Duration::from_mins(1), ..HttpRequest::get(url) })
}

fn text(response: &HttpResponse) -> &str {
    std::str::from_utf8(&response.body).unwrap()
}
