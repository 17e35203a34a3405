//! The proxy with real sockets.
#![allow(clippy::unwrap_used, clippy::allow_attributes, reason = "a failed step fails the test")]

mod asked;
mod fuzz;
mod http;
mod limits;
mod names;
mod parent;
mod redirect_listener;
mod socks;

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use std::thread;

use super::upstream::RefusedConnection;
use haft_tool::net::Domains;

use super::{HostAsker, ParentProxies, Proxy, ProxySettings};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A proxy and the connections that it refused.
struct RunningProxy {
    _proxy: Proxy,
    address: SocketAddr,
    refused: Arc<Mutex<Vec<RefusedConnection>>>,
}

/// A proxy for `list` with a resolver that gives `answers`.
fn run(
    list: &[&str],
    answers: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
) -> RunningProxy {
    run_with(list, &[], None, answers)
}

/// The same with hosts of the user's own settings and an asker.
fn run_with(
    list: &[&str],
    own_hosts: &[&str],
    asker: Option<Arc<dyn HostAsker>>,
    answers: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
) -> RunningProxy {
    run_settings(list, own_hosts, asker, ParentProxies::default(), answers)
}

/// The same behind the user's own proxies.
fn run_settings(
    list: &[&str],
    own_hosts: &[&str],
    asker: Option<Arc<dyn HostAsker>>,
    parents: ParentProxies,
    answers: impl Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync + 'static,
) -> RunningProxy {
    let refused = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&refused);
    let on_refused = Box::new(move |refused| log.lock().unwrap().push(refused));
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let (domains, own_hosts) = (domains(list), domains(own_hosts));
    let settings = ProxySettings { domains, own_hosts, parents, asker, on_refused };
    let proxy = Proxy::with_lookup(listener, settings, Arc::new(answers)).unwrap();
    RunningProxy { _proxy: proxy, address, refused }
}

/// A proxy that allows `example.test` on `port` of this machine.
fn proxy_for_example(port: u16) -> RunningProxy {
    run(&[&format!("example.test:{port}"), &format!("127.0.0.1:{port}")], |_| Ok(vec![LOCALHOST]))
}

impl RunningProxy {
    fn client(&self) -> TcpStream {
        TcpStream::connect(self.address).unwrap()
    }

    /// The whole response to `request`.
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

    fn only_refused(&self) -> RefusedConnection {
        let refused = self.refused.lock().unwrap();
        assert_eq!(refused.len(), 1, "{refused:?}");
        refused[0].clone()
    }
}

fn domains(list: &[&str]) -> Domains {
    Domains::parse(&list.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>()).unwrap()
}

/// The port of a server that calls `serve` for each connection.
fn server(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind((LOCALHOST, 0)).unwrap();
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

/// A server that reads until EOF and then sends everything back.
fn echo_at_eof() -> u16 {
    server(|mut stream| {
        let mut said = Vec::new();
        stream.read_to_end(&mut said).unwrap();
        stream.write_all(&said).unwrap();
    })
}

/// A port that a socket is bound to without listening, so that connections are refused, also one that the port itself would
/// be chosen for.
fn closed_port() -> (u16, OwnedFd) {
    use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
    let held = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&held, &SocketAddr::from((LOCALHOST, 0))).unwrap();
    let bound = SocketAddr::try_from(getsockname(&held).unwrap()).unwrap();
    (bound.port(), held)
}

/// Sends `bytes` through an open tunnel and reads until EOF.
fn exchange(mut tunnel: &TcpStream, bytes: &[u8]) -> Vec<u8> {
    let mut writer = tunnel.try_clone().unwrap();
    let mut received = Vec::new();
    thread::scope(|scope| {
        scope.spawn(move || {
            writer.write_all(bytes).unwrap();
            writer.shutdown(Shutdown::Write).unwrap();
        });
        tunnel.read_to_end(&mut received).unwrap();
    });
    received
}

/// Reads as many bytes as `expected` has and compares them.
fn expect_bytes(mut stream: &TcpStream, expected: &[u8]) {
    let mut received = vec![0; expected.len()];
    stream.read_exact(&mut received).unwrap();
    assert_eq!(received, expected, "{}", received.escape_ascii());
}

fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}
