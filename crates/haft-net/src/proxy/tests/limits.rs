//! Limits of connections, time and bytes, and the end of the proxy.

use std::collections::HashMap;
use std::sync::mpsc;

use super::*;
use crate::proxy::proxy_variables;

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

fn connect(run: &RunningProxy, port: u16) -> TcpStream {
    let client = run.client();
    (&client).write_all(format!("CONNECT example.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).unwrap();
    client
}

#[test]
fn sixty_fifth_connection_gets_an_error() {
    let port = echo_at_eof();
    let run = proxy_for_example(port);
    let mut tunnels: Vec<TcpStream> = (0..64)
        .map(|_| {
            let client = connect(&run, port);
            expect_bytes(&client, ESTABLISHED);
            client
        })
        .collect();
    let request = format!("CONNECT example.test:{port} HTTP/1.1\r\n\r\n");
    let answer = run.ask_text(&request);
    assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    let mut socks = run.client();
    socks.write_all(&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1, 0, 80]).unwrap();
    let mut answer = Vec::new();
    socks.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [5, 0, 5, 1, 0, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(*run.refused.lock().unwrap(), []);

    assert_eq!(exchange(&tunnels.pop().unwrap(), b"bye"), b"bye");
    // The slot is freed a moment after the client sees EOF.
    while {
        let client = connect(&run, port);
        let mut status = [0; 12];
        (&client).read_exact(&mut status).unwrap();
        &status == b"HTTP/1.1 503"
    } {}
}

#[test]
fn slow_clients_do_not_block_others() {
    let port = echo_at_eof();
    let run = proxy_for_example(port);
    let slow: Vec<TcpStream> = (0..60)
        .map(|at| {
            let client = run.client();
            let start: &[u8] = if at % 2 == 0 { b"GET http://exam" } else { &[5] };
            (&client).write_all(start).unwrap();
            client
        })
        .collect();
    let client = connect(&run, port);
    expect_bytes(&client, ESTABLISHED);
    assert_eq!(exchange(&client, b"quick"), b"quick");
    drop(slow);
}

#[test]
fn request_head_is_limited() {
    let port = echo_at_eof();
    let run = proxy_for_example(port);
    let head = |length: usize| {
        let start = format!("CONNECT example.test:{port} HTTP/1.1\r\nA: ");
        let filling = "a".repeat(length - start.len() - 4);
        format!("{start}{filling}\r\n\r\n")
    };
    let client = run.client();
    (&client).write_all(head(64 * 1024).as_bytes()).unwrap();
    expect_bytes(&client, ESTABLISHED);
    for long in [head(64 * 1024 + 1), head(300_000), "a".repeat(100_000)] {
        let answer = run.ask_text(long);
        assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    }
}

#[test]
fn dropping_the_proxy_ends_all_connections_and_threads() {
    let (held, hold) = mpsc::channel::<()>();
    let hold = Mutex::new(hold);
    let (on_lookup, looked_up) = mpsc::channel();
    let port = server(|mut stream| {
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let witness = Arc::new(());
    let watched = Arc::clone(&witness);
    let list = domains(&["stuck.test", &format!("example.test:{port}"), &format!("127.0.0.1:{port}")]);
    let settings = ProxySettings {
        domains: list,
        own_hosts: domains(&[]),
        parents: ParentProxies::default(),
        asker: None,
        on_refused: Box::new(move |_| drop(Arc::clone(&watched))),
    };
    let lookup = move |name: &str| {
        if name == "stuck.test" {
            on_lookup.send(()).unwrap();
            let _ = hold.lock().unwrap().recv();
        }
        Ok(vec![LOCALHOST])
    };
    let listener = listener();
    let address = listener.local_addr().unwrap();
    let proxy = Proxy::with_lookup(listener, settings, Arc::new(lookup)).unwrap();
    let run = RunningProxy { _proxy: proxy, address, refused: Arc::default() };

    let mut clients: Vec<TcpStream> = (0..10).map(|_| connect(&run, port)).collect();
    for client in &clients {
        expect_bytes(client, ESTABLISHED);
    }
    for start in [&b"GET http://"[..], &[5, 1], b"CONNECT stuck.test:443 HTTP/1.1\r\n\r\n"] {
        let client = run.client();
        (&client).write_all(start).unwrap();
        clients.push(client);
    }
    clients.push(run.client());
    looked_up.recv().unwrap();

    drop(run);
    // Every thread that could still call it would hold a reference.
    assert_eq!(Arc::strong_count(&witness), 1);
    assert!(TcpStream::connect(address).is_err());
    for mut client in clients {
        // EOF or a reset, depending on unread bytes.
        let _ = client.read_to_end(&mut Vec::new());
    }
    drop(held);
}

#[test]
fn environment_variables_name_the_proxy() {
    let run = run(&[], |_| Ok(vec![LOCALHOST]));
    let answer = run.ask_text("CONNECT example.test:443 HTTP/1.1\r\n\r\n");
    assert!(
        answer.starts_with("HTTP/1.1 403 Haft refused example.test:443: the network is not part"),
        "{answer}"
    );
    assert!(answer.ends_with("; to allow it: --network example.test\n"), "{answer}");
    let variables: HashMap<&str, String> = proxy_variables(run.address).into_iter().collect();
    for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]
        .into_iter()
        .chain(["npm_config_https_proxy", "PIP_PROXY", "CARGO_HTTP_PROXY"])
    {
        assert_eq!(variables[name], format!("http://{}", run.address), "{name}");
    }
    assert_eq!(variables["NO_PROXY"], "localhost,127.0.0.1,::1");
}
