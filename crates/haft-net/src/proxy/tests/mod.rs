//! The proxy against real sockets: what it lets through, what it refuses, and how it ends.
#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "a test that cannot go on should stop")]

mod bounds;
mod http;
mod loopback;
mod names;
mod socks;

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::gate::Refused;
use haft_tool::net::Domains;

use super::Proxy;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A proxy, and what it refused so far.
struct Run {
    proxy: Proxy,
    refused: Arc<Mutex<Vec<Refused>>>,
}

/// A proxy for `list` with a resolver that gives `answers`.
fn run(list: &[&str], answers: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static) -> Run {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&refused);
    let tell = move |refused| told.lock().unwrap().push(refused);
    let proxy = Proxy::with_lookup(domains(list), Arc::new(answers), tell).unwrap();
    Run { proxy, refused }
}

/// A proxy that allows `example.test` at `port`, which is on this machine.
fn run_example(port: u16) -> Run {
    run(&[&format!("example.test:{port}"), &format!("127.0.0.1:{port}")], |_| Ok(vec![HERE]))
}

impl Run {
    fn client(&self) -> TcpStream {
        TcpStream::connect(self.proxy.address()).unwrap()
    }

    /// All that is answered to `request`.
    fn ask(&self, request: impl AsRef<[u8]>) -> Vec<u8> {
        let mut client = self.client();
        client.write_all(request.as_ref()).unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).unwrap();
        answer
    }

    fn ask_text(&self, request: impl AsRef<[u8]>) -> String {
        String::from_utf8(self.ask(request)).unwrap()
    }

    fn only_refused(&self) -> Refused {
        let refused = self.refused.lock().unwrap();
        assert_eq!(refused.len(), 1, "{refused:?}");
        refused[0].clone()
    }
}

fn domains(list: &[&str]) -> Domains {
    Domains::parse(&list.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>()).unwrap()
}

/// A server on this machine that treats each connection with `serve`; gives its port.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let serve = Arc::new(serve);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// A server that hears its client out to the end, and only then says it all back.
fn echo_at_the_end() -> u16 {
    server(|mut stream| {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        stream.write_all(&said).unwrap();
    })
}

/// A port of this machine where nobody listens, nor can begin to while it is held: a client's own.
fn closed_port() -> (u16, (TcpListener, TcpStream)) {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client.local_addr().unwrap().port(), (listener, client))
}

/// Says `bytes` through a tunnel that stands, and hears the other side to its end.
fn exchange(mut tunnel: &TcpStream, bytes: &[u8]) -> Vec<u8> {
    let mut writer = tunnel.try_clone().unwrap();
    let mut heard = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        tunnel.read_to_end(&mut heard).unwrap();
    });
    heard
}

/// Exactly as many bytes as `expected` has, which must be those.
fn hear(mut stream: &TcpStream, expected: &[u8]) {
    let mut heard = vec![0; expected.len()];
    stream.read_exact(&mut heard).unwrap();
    assert_eq!(heard, expected, "{}", heard.escape_ascii());
}
