//! The response cache.

use std::time::Instant;

use super::super::cache::{CacheKey, CachedResponse, ResponseCache};
use super::*;

fn cached(url: String) -> HttpRequest {
    HttpRequest { cached: true, ..HttpRequest::get(url) }
}

#[test]
fn same_request_is_answered_from_the_cache() {
    let server = TestServer::responding(|_| ok_page("once"));
    let service = local_service();
    for _ in 0..3 {
        let answer = client_for(&service, &[&server.entry()]).fetch(&cached(server.url("/"))).unwrap();
        assert_eq!(text(&answer), "once");
    }
    assert_eq!(server.request_count(), 1);
    get(&client_for(&service, &[&server.entry()]), &server.url("/")).unwrap();
    client_for(&service, &[&server.entry()]).fetch(&cached(server.url("/other"))).unwrap();
    let request =
        HttpRequest { headers: vec![("accept".into(), "text/html".into())], ..cached(server.url("/")) };
    client_for(&service, &[&server.entry()]).fetch(&request).unwrap();
    assert_eq!(server.request_count(), 3);
}

#[test]
fn errors_and_no_store_are_not_cached() {
    let lost = TestServer::responding(|_| b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_vec());
    let secret = TestServer::responding(|_| {
        b"HTTP/1.1 200 OK\r\nCache-Control: private, No-Store\r\nContent-Length: 0\r\n\r\n".to_vec()
    });
    let service = local_service();
    for server in [lost, secret] {
        for _ in 0..2 {
            client_for(&service, &[&server.entry()]).fetch(&cached(server.url("/"))).unwrap();
        }
        assert_eq!(server.request_count(), 2);
    }
}

#[test]
fn cache_does_not_widen_the_reach() {
    let last = TestServer::responding(|_| ok_page("inside"));
    let location = last.url("/");
    let first = TestServer::responding(move |_| redirect_to(302, &location));
    let service = local_service();
    let wide = client_for(&service, &[&first.entry(), &last.entry()]).fetch(&cached(first.url("/"))).unwrap();
    assert_eq!(text(&wide), "inside");
    assert!(client_for(&service, &[&first.entry()]).fetch(&cached(first.url("/"))).is_err());
}

#[test]
fn cache_is_bounded_in_age_and_size() {
    let kept = |bytes: usize| CachedResponse {
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
    let key = |name: &str| CacheKey::of(&cached(name.to_owned())).unwrap();
    let mut cache = ResponseCache::default();
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
