//! Hosts that are not listed: asked about, or refused at once.

use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use haft_tool::Cancel;
use rustix::event::{PollFd, PollFlags};

use super::{LOCALHOST, echo_at_eof, exchange, expect_bytes, listener, run, run_with};
use crate::proxy::{HostAsker, LazyProxy, ParentProxies, ProxySettings, UnlistedHost};
use haft_tool::net::Domains;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Reports each question and waits for its answer or for the end.
struct TestAsker {
    asked: Mutex<Sender<UnlistedHost>>,
    answers: Mutex<Receiver<bool>>,
    on_cancel: Sender<()>,
}

impl HostAsker for TestAsker {
    fn allows(&self, host: &UnlistedHost, cancel: &Cancel) -> bool {
        let on_cancel = self.on_cancel.clone();
        let _listener = cancel.on_cancel(move || {
            let _ = on_cancel.send(());
        });
        self.asked.lock().unwrap().send(host.clone()).unwrap();
        self.answers.lock().unwrap().recv().unwrap_or(false)
    }
}

struct Questions {
    asked: Receiver<UnlistedHost>,
    answer: Sender<bool>,
    cancelled: Receiver<()>,
}

fn asker() -> (Arc<dyn HostAsker>, Questions) {
    let ((asked, on_asked), (answer, answers), (on_cancel, cancelled)) = (channel(), channel(), channel());
    let asker = TestAsker { asked: Mutex::new(asked), answers: Mutex::new(answers), on_cancel };
    (Arc::new(asker), Questions { asked: on_asked, answer, cancelled })
}

#[expect(clippy::unnecessary_wraps, reason = "the proxy is given a function that may fail")]
fn to_localhost(_: &str) -> io::Result<Vec<IpAddr>> {
    Ok(vec![LOCALHOST])
}

#[test]
fn connection_waits_for_the_answer_and_is_made_or_refused() {
    let port = echo_at_eof();
    let (asker, questions) = asker();
    // The test's server has a loopback address, which only a host of the user's own settings may lead to.
    let own = format!("asked.test:{port}");
    let proxy = run_with(&[], &[&own], Some(asker), to_localhost);
    let connect = || {
        let mut client = proxy.client();
        client.write_all(format!("CONNECT asked.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
        client
    };

    let allowed = connect();
    let asked = questions.asked.recv().unwrap();
    assert_eq!((asked.host.as_str(), asked.port, asked.entry.as_str()), ("asked.test", port, own.as_str()));
    questions.answer.send(true).unwrap();
    expect_bytes(&allowed, ESTABLISHED);
    assert_eq!(exchange(&allowed, b"hello"), b"hello");

    let mut refused = connect();
    questions.asked.recv().unwrap();
    questions.answer.send(false).unwrap();
    let mut text = String::new();
    refused.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
    assert_eq!(proxy.only_refused().allow, Some(own));
}

#[test]
fn allowed_name_does_not_lead_to_a_private_address() {
    let (asker, questions) = asker();
    let proxy = run_with(&[], &[], Some(asker), to_localhost);
    questions.answer.send(true).unwrap();
    let text = proxy.ask_text("CONNECT asked.test:443 HTTP/1.1\r\n\r\n");
    assert!(text.contains("its name resolves to 127.0.0.1, a loopback address"), "{text}");
}

#[test]
fn addresses_of_the_users_own_network_are_refused_without_a_question() {
    let (asker, questions) = asker();
    let proxy = run_with(&[], &[], Some(asker), to_localhost);
    for host in ["169.254.169.254", "10.0.0.1", "localhost"] {
        let text = proxy.ask_text(format!("CONNECT {host}:443 HTTP/1.1\r\n\r\n"));
        assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
    }
    drop(proxy);
    assert!(questions.asked.recv().is_err(), "a question was asked");
}

#[test]
fn open_question_ends_with_the_proxy() {
    let (asker, questions) = asker();
    let proxy = run_with(&[], &[], Some(asker), to_localhost);
    let client = proxy.client();
    (&client).write_all(b"CONNECT asked.test:443 HTTP/1.1\r\n\r\n").unwrap();
    questions.asked.recv().unwrap();
    drop(proxy);
    questions.cancelled.recv().unwrap();
}

#[test]
fn socks_clients_are_refused_with_the_host_named() {
    let proxy = run(&[], to_localhost);
    let answer = proxy.ask([&[5, 1, 0, 5, 1, 0, 3, 12][..], b"refused.test", &[1, 187]].concat());
    assert_eq!(answer[..4], [5, 0, 5, 2], "not allowed by the ruleset");
    let refused = proxy.only_refused();
    assert_eq!((refused.host.as_str(), refused.port), ("refused.test", 443));
}

#[test]
fn proxy_starts_with_its_first_connection() {
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let settings = ProxySettings {
        domains: Domains::default(),
        own_hosts: Domains::default(),
        parents: ParentProxies::default(),
        asker: None,
        on_refused: Box::new(|_| {}),
    };
    let mut proxy = LazyProxy::new(listener, settings);
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"CONNECT example.test:443 HTTP/1.1\r\n\r\n").unwrap();
    let ready = rustix::event::poll(
        &mut [PollFd::from_borrowed_fd(proxy.first_connection().unwrap().as_fd(), PollFlags::IN)],
        None,
    );
    assert_eq!(ready, Ok(1));
    proxy.start();
    assert!(proxy.first_connection().is_none());
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 403 "), "{text}");
}
