//! Answers that are given a second time, and those that are not.

use std::time::Instant;

use super::super::cache::{Cache, Kept, Key};
use super::*;

fn cached(url: String) -> HttpRequest {
    HttpRequest { cached: true, ..HttpRequest::get(url) }
}

#[test]
fn the_same_request_is_made_once_if_its_caller_takes_an_older_answer() {
    let server = Server::saying(|_| page("once"));
    let web = here();
    for _ in 0..3 {
        let answer = door(&web, &[&server.entry()]).fetch(&cached(server.url("/"))).unwrap();
        assert_eq!(text(&answer), "once");
    }
    assert_eq!(server.times(), 1);
    get(&door(&web, &[&server.entry()]), &server.url("/")).unwrap();
    door(&web, &[&server.entry()]).fetch(&cached(server.url("/other"))).unwrap();
    let request =
        HttpRequest { headers: vec![("accept".into(), "text/html".into())], ..cached(server.url("/")) };
    door(&web, &[&server.entry()]).fetch(&request).unwrap();
    assert_eq!(server.times(), 3);
}

#[test]
fn an_answer_is_kept_only_if_it_is_one_and_its_server_lets_us() {
    let lost = Server::saying(|_| b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec());
    let secret = Server::saying(|_| {
        b"HTTP/1.1 200 OK\r\nCache-Control: private, No-Store\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let web = here();
    for server in [lost, secret] {
        for _ in 0..2 {
            door(&web, &[&server.entry()]).fetch(&cached(server.url("/"))).unwrap();
        }
        assert_eq!(server.times(), 2);
    }
}

#[test]
fn what_one_call_was_let_through_to_no_other_call_gets() {
    let last = Server::saying(|_| page("inside"));
    let location = last.url("/");
    let first = Server::saying(move |_| moved(302, &location));
    let web = here();
    let wide = door(&web, &[&first.entry(), &last.entry()]).fetch(&cached(first.url("/"))).unwrap();
    assert_eq!(text(&wide), "inside");
    assert!(door(&web, &[&first.entry()]).fetch(&cached(first.url("/"))).is_err());
}

#[test]
fn answers_grow_old_and_make_room() {
    let kept = |bytes: usize| Kept {
        response: HttpResponse {
            status: 200,
            status_text: String::new(),
            url: String::new(),
            headers: Vec::new(),
            body: vec![0; bytes],
            total_bytes: 0,
            more: false,
            redirect: None,
        },
        visited: Vec::new(),
    };
    let key = |name: &str| Key::of(&cached(name.to_owned())).unwrap();
    let mut cache = Cache::default();
    let start = Instant::now();
    cache.put(key("a"), kept(1), start);
    assert!(cache.get(&key("a"), start + Duration::from_mins(14)).is_some());
    assert!(cache.get(&key("a"), start + Duration::from_mins(15)).is_none());
    for name in ["b", "c", "d", "e"] {
        cache.put(key(name), kept(10 << 20), start);
    }
    assert!(cache.get(&key("a"), start).is_none() && cache.get(&key("b"), start).is_none());
    assert!(cache.get(&key("c"), start).is_some() && cache.get(&key("e"), start).is_some());
}
