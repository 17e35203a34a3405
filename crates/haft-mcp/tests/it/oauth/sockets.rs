//! The same over real sockets and the real door: where a secret goes, and where it does not.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::sync::atomic::{AtomicUsize, Ordering};

use haft_net::http::HttpService;
use haft_tool::json;

use super::*;

type Site = dyn Fn(&str, &str) -> (u16, String) + Send + Sync;

/// A web site on this machine: `answer` gets the request's line and its body.
fn site(answer: Arc<Site>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, visits) = (listener.local_addr().unwrap().port(), Arc::new(AtomicUsize::new(0)));
    let count = Arc::clone(&visits);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            serve(&stream, &*answer);
        }
    });
    (format!("http://127.0.0.1:{port}"), visits)
}

fn serve(mut stream: &TcpStream, answer: &Site) {
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).unwrap();
    let mut header = String::new();
    while reader.read_line(&mut header).is_ok_and(|count| count > 2) {
        if let Some(value) = header.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        header.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let target = line.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let (status, body) = answer(&target, &String::from_utf8(body).unwrap());
    let location = if (300..400).contains(&status) { format!("Location: {body}\r\n") } else { String::new() };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} x\r\n{location}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}

/// A server with its authorization server, which answers for tokens as it is message.
fn everything(answer: impl Fn(&str) -> (u16, String) + Send + Sync + 'static) -> String {
    let base = Arc::new(Mutex::new(String::new()));
    let known = Arc::clone(&base);
    let (url, _) = site(Arc::new(move |target: &str, body: &str| {
        let base = known.lock().unwrap().clone();
        match target {
            "GET /.well-known/oauth-protected-resource/mcp" => {
                (200, json!({"resource": format!("{base}/mcp"), "authorization_servers": [base]}).to_string())
            }
            "GET /.well-known/oauth-authorization-server" => (200, metadata(&base).to_string()),
            "POST /register" => (201, json!({"client_id": "c"}).to_string()),
            "POST /token" => answer(body),
            _ => (404, String::new()),
        }
    }));
    base.lock().unwrap().clone_from(&url);
    url
}

fn over_http(server: &str, folder: &TempDir) -> Authorizer {
    let web = Arc::new(HttpService::default());
    let http_factory: HttpFactory = Arc::new(move |reach, cancel| web.client_within(reach, cancel));
    let issuer = server.to_owned();
    let browser =
        TestBrowser::new(move |query| vec![format!("code=the-code&state={}&iss={issuer}", query["state"])]);
    Authorizer::new(&format!("{server}/mcp"), http_factory, browser, folder.path(), OAuthOptions::default())
        .unwrap()
}

#[test]
fn token_is_obtained_and_refreshed() {
    let server = everything(|body| {
        let answer =
            if body.contains("refresh_token") { token("second", None) } else { token("first", Some("r")) };
        (200, answer.to_string())
    });
    let folder = tempfile::tempdir().unwrap();
    let authorizer = over_http(&server, &folder);
    assert_eq!(renew(&authorizer, None, 401, &[]).unwrap(), "first");
    assert_eq!(renew(&authorizer, Some("first"), 401, &[]).unwrap(), "second");
}

#[test]
fn redirect_does_not_forward_a_code() {
    let (elsewhere, visits) = site(Arc::new(|_: &str, _: &str| (200, token("evil", None).to_string())));
    for status in [301, 302, 303, 307, 308] {
        let there = elsewhere.clone();
        let server = everything(move |_| (status, format!("{there}/token")));
        let folder = tempfile::tempdir().unwrap();
        let message = renew(&over_http(&server, &folder), None, 401, &[]).unwrap_err().message;
        assert!(
            message.contains("the request contains a secret") && !message.contains("the-code"),
            "{message}"
        );
    }
    assert_eq!(visits.load(Ordering::SeqCst), 0);
}
