//! Tokens that expire, that lack a scope, or whose issuer has changed.

use std::sync::Barrier;

use haft_tool::{Secret, json};

use super::*;
use haft_mcp::client::oauth::RegisteredClient;

const TOKEN_ENDPOINT: &str = "POST https://auth.example.org/token";
const REGISTRATION_ENDPOINT: &str = "POST https://auth.example.org/register";
const SERVER_METADATA: &str = "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

fn refreshes(fixture: &Fixture) -> Vec<Query> {
    fixture.forms().into_iter().filter(|form| form["grant_type"] == "refresh_token").collect()
}

/// The stored token ends at `ends`.
fn set_end(fixture: &Fixture, ends: u64) {
    let path = fixture.folder.path().join("haft/oauth.json");
    let mut stored = fixture.stored();
    stored["servers"][SERVER]["tokens"]["ends"] = ends.into();
    std::fs::write(path, stored.to_string()).unwrap();
}

#[test]
fn rejected_token_is_refreshed_without_the_user() {
    let fixture = Fixture::new();
    let authorizer = fixture.authorizer();
    assert_eq!(authorizer.token(), None);
    let first = renew(&authorizer, None, 401, &[]).unwrap();
    assert_eq!(authorizer.token().as_ref(), Some(&first));
    assert_eq!(
        renew(&authorizer, Some(&first), 401, &challenge("error=\"invalid_token\"")).unwrap(),
        "token-2"
    );
    assert_eq!(renew(&authorizer, Some("token-2"), 401, &[]).unwrap(), "token-3");
    assert_eq!(fixture.browser.opened().len(), 1);
    let used: Vec<_> = refreshes(&fixture).into_iter().map(|form| form["refresh_token"].clone()).collect();
    assert_eq!(used, ["refresh-1", "refresh-2"], "each is used once");
    assert!(
        refreshes(&fixture)
            .iter()
            .all(|form| form["resource"] == SERVER && form["client_id"].starts_with("client-of"))
    );
}

#[test]
fn old_refresh_token_is_kept_without_a_new_one() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    fixture.network.respond_json(TOKEN_ENDPOINT, token("next", None));
    for used in ["token-1", "next"] {
        assert_eq!(renew(&fixture.authorizer(), Some(used), 401, &[]).unwrap(), "next");
    }
    let used: Vec<_> = refreshes(&fixture).into_iter().map(|form| form["refresh_token"].clone()).collect();
    assert_eq!(used, ["refresh-1", "refresh-1"]);
}

#[test]
fn threads_share_one_refresh() {
    let fixture = Fixture::new();
    let authorizer = fixture.authorizer();
    renew(&authorizer, None, 401, &[]).unwrap();
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        let renew = || {
            start.wait();
            renew(&authorizer, Some("token-1"), 401, &[]).unwrap()
        };
        let running: Vec<_> = (0..4).map(|_| scope.spawn(renew)).collect();
        assert!(running.into_iter().all(|one| one.join().unwrap() == "token-2"));
    });
    assert_eq!(refreshes(&fixture).len(), 1);
}

#[test]
fn processes_share_tokens_and_one_login() {
    let fixture = Fixture::new();
    let (one, other) = (fixture.authorizer(), fixture.authorizer());
    assert_eq!(other.token(), None);
    let start = Barrier::new(2);
    let ask = |authorizer: &Authorizer| {
        start.wait();
        renew(authorizer, None, 401, &[]).unwrap()
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| ask(&one));
        assert_eq!(ask(&other), first.join().unwrap());
    });
    assert_eq!((fixture.browser.opened().len(), fixture.forms().len()), (1, 1));
    assert_eq!(renew(&one, Some("token-1"), 401, &[]).unwrap(), "token-2");
    assert_eq!(renew(&other, Some("token-1"), 401, &[]).unwrap(), "token-2");
    assert_eq!((other.token().unwrap().as_str(), refreshes(&fixture).len()), ("token-2", 1));
}

#[test]
fn expiring_token_is_refreshed_before_use() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    set_end(&fixture, 1);
    let (one, other) = (fixture.authorizer(), fixture.authorizer());
    assert_eq!(other.token().unwrap(), "token-2");
    set_end(&fixture, u64::MAX / 2);
    assert_eq!(one.token().unwrap(), "token-2");
    assert_eq!(fixture.browser.opened().len(), 1);
}

#[test]
fn failed_refresh_is_not_repeated_at_once() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    set_end(&fixture, 1);
    fixture.network.respond_status(TOKEN_ENDPOINT, 503, json!({}));
    let authorizer = fixture.authorizer();
    for _ in 0..3 {
        assert_eq!(authorizer.token().unwrap(), "token-1");
    }
    assert_eq!(refreshes(&fixture).len(), 1);
    assert!(renew(&authorizer, Some("token-1"), 401, &[]).unwrap_err().message.contains("503"));
    assert_eq!(fixture.stored()["servers"][SERVER]["tokens"]["refresh"], "refresh-1", "it may be good later");
    assert_eq!(fixture.browser.opened().len(), 1, "no login because a server is down");
}

#[test]
fn rejected_refresh_token_leads_to_a_login() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    fixture.network.respond_with(TOKEN_ENDPOINT, |asked| match asked.form()["grant_type"].as_str() {
        "refresh_token" => (400, json!({"error": "invalid_grant"}).to_string()),
        _ => (200, token("fresh", None).to_string()),
    });
    assert_eq!(renew(&fixture.authorizer(), Some("token-1"), 401, &[]).unwrap(), "fresh");
    assert_eq!((refreshes(&fixture).len(), fixture.browser.opened().len()), (1, 2));
    assert_eq!(renew(&fixture.authorizer(), Some("fresh"), 401, &[]).unwrap(), "fresh");
    assert_eq!((refreshes(&fixture).len(), fixture.browser.opened().len()), (1, 3));
}

#[test]
fn registration_is_reused_with_its_redirect() {
    let fixture = Fixture::new();
    fixture.network.respond_json(TOKEN_ENDPOINT, token("one", None));
    fixture.first_token().unwrap();
    renew(&fixture.authorizer(), Some("one"), 401, &[]).unwrap();
    let opened = fixture.browser.opened();
    assert_eq!((opened[0]["redirect_uri"].as_str(), opened.len()), (opened[1]["redirect_uri"].as_str(), 2));
    assert_eq!(fixture.network.received(REGISTRATION_ENDPOINT).len(), 1);
    let port = Url::parse(&opened[0]["redirect_uri"]).unwrap().port().unwrap();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    renew(&fixture.authorizer(), Some("one"), 401, &[]).unwrap();
    assert_eq!(
        fixture.network.received(REGISTRATION_ENDPOINT).len(),
        2,
        "another redirect is another registration"
    );
}

#[test]
fn expired_registration_is_repeated() {
    for (ends, registrations) in [(0, 1), (1, 2), (u64::MAX, 1)] {
        let fixture = Fixture::new();
        fixture.network.respond_json(TOKEN_ENDPOINT, token("one", None));
        fixture.network.respond_json(
            REGISTRATION_ENDPOINT,
            json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": ends}),
        );
        fixture.first_token().unwrap();
        renew(&fixture.authorizer(), Some("one"), 401, &[]).unwrap();
        assert_eq!(fixture.network.received(REGISTRATION_ENDPOINT).len(), registrations, "{ends}");
    }
}

#[test]
fn unknown_client_registers_again_once() {
    let fixture = Fixture::new();
    fixture.network.respond_json(TOKEN_ENDPOINT, token("one", None));
    fixture.first_token().unwrap();
    fixture.network.respond_json(REGISTRATION_ENDPOINT, json!({"client_id": "second"}));
    fixture.network.respond_with(TOKEN_ENDPOINT, |asked| match asked.form()["client_id"].as_str() {
        "second" => (200, token("two", None).to_string()),
        _ => (401, json!({"error": "invalid_client"}).to_string()),
    });
    assert_eq!(renew(&fixture.authorizer(), Some("one"), 401, &[]).unwrap(), "two");
    fixture.network.respond_status(TOKEN_ENDPOINT, 401, json!({"error": "invalid_client"}));
    assert!(
        renew(&fixture.authorizer(), Some("two"), 401, &[]).unwrap_err().message.contains("invalid_client")
    );
    assert_eq!(fixture.browser.opened().len(), 5, "one, one and again, one and again");
}

#[test]
fn no_secret_is_sent_to_another_issuer() {
    let fixture = Fixture::with(TestBrowser::new(|query| {
        let issuer = if query["client_id"].ends_with("new.example") { "https://new.example" } else { ISSUER };
        vec![format!("code=c&state={}&iss={issuer}", query["state"])]
    }));
    let authorizer = fixture.authorizer();
    renew(&authorizer, None, 401, &[]).unwrap();
    fixture.network.add_issuer("https://new.example");
    fixture.network.respond_json(
        SERVER_METADATA,
        json!({"resource": SERVER, "authorization_servers": ["https://new.example"]}),
    );
    fixture.network.respond_json("POST https://new.example/token", token("new-token", None));
    assert_eq!(renew(&authorizer, Some("token-1"), 401, &[]).unwrap(), "new-token");
    for asked in fixture.network.received("POST https://new.example") {
        for old in ["client-of-https://auth", "client-of-https%3A%2F%2Fauth", "refresh-1", "token-1"] {
            assert!(!asked.body.contains(old), "{asked:?}");
        }
    }
    assert_eq!(fixture.network.received("POST https://new.example/register").len(), 1);
    let stored = fixture.stored().to_string();
    assert!(stored.contains("new-token") && !stored.contains("refresh-1") && !stored.contains(ISSUER));
}

#[test]
fn registered_client_is_not_used_with_another_issuer() {
    let registered = |issuer: Option<&str>| {
        let (id, secret) = ("by-hand".to_owned(), Some(Secret::new("hush")));
        Some(RegisteredClient { id, secret, issuer: issuer.map(str::to_owned), redirect: None })
    };
    for issuer in [None, Some(ISSUER)] {
        let mut fixture = Fixture::new();
        fixture.options.registered = registered(issuer);
        fixture.first_token().unwrap();
        fixture.network.add_issuer("https://new.example");
        fixture.network.respond_json(
            SERVER_METADATA,
            json!({"resource": SERVER, "authorization_servers": ["https://new.example"]}),
        );
        let message = renew(&fixture.authorizer(), Some("token-1"), 401, &[]).unwrap_err().message;
        assert!(message.contains("by-hand") && message.contains("https://new.example"), "{message}");
        assert!(
            fixture.network.received("POST https://new.example").is_empty()
                && fixture.browser.opened().len() == 1
        );
        assert!(!message.contains("hush"));
    }
}

#[test]
fn missing_scope_is_added_to_the_old_ones() {
    let fixture = Fixture::new();
    let authorizer = fixture.authorizer();
    renew(&authorizer, None, 401, &challenge("scope=\"read\"")).unwrap();
    let more = challenge("error=\"insufficient_scope\", scope=\"write\"");
    assert_eq!(renew(&authorizer, Some("token-1"), 403, &more).unwrap(), "token-2");
    assert_eq!(fixture.browser.opened()[1]["scope"], "read write");
    let message = renew(&authorizer, Some("token-2"), 403, &more).unwrap_err().message;
    assert!(message.contains("although it has all scopes"), "{message}");
    let other = challenge("error=\"insufficient_scope\", scope=\"read\"");
    assert!(renew(&authorizer, Some("token-2"), 403, &other).is_err());
    assert!(renew(&authorizer, Some("token-2"), 403, &challenge("error=\"insufficient_scope\"")).is_err());
    assert_eq!(
        renew(&authorizer, Some("token-1"), 403, &more).unwrap(),
        "token-2",
        "another request has logged in meanwhile"
    );
    assert_eq!(fixture.browser.opened().len(), 2);
}

#[test]
fn refused_scope_is_requested_once() {
    let fixture = Fixture::new();
    let mut narrow = token("narrow", None);
    narrow["scope"] = "read".into();
    fixture.network.respond_json(TOKEN_ENDPOINT, narrow);
    let authorizer = fixture.authorizer();
    renew(&authorizer, None, 401, &challenge("scope=\"read\"")).unwrap();
    let more = challenge("error=\"insufficient_scope\", scope=\"write\"");
    renew(&authorizer, Some("narrow"), 403, &more).unwrap();
    let message = renew(&authorizer, Some("narrow"), 403, &more).unwrap_err().message;
    assert!(message.contains("requested but not granted"), "{message}");
    assert_eq!(fixture.browser.opened().len(), 2);
}

#[test]
fn forbidden_request_does_not_start_a_login() {
    let fixture = Fixture::new();
    let authorizer = fixture.authorizer();
    for (status, message) in
        [(403, "Bearer"), (403, "Bearer error=\"access_denied\""), (404, "Bearer"), (500, "")]
    {
        assert!(renew(&authorizer, None, status, &[message.to_owned()]).is_err(), "{status} {message}");
    }
    assert!(fixture.browser.opened().is_empty() && fixture.network.lines().is_empty());
}

#[test]
fn number_of_logins_is_limited() {
    let fixture = Fixture::new();
    fixture.network.respond_json(TOKEN_ENDPOINT, token("same", None));
    let authorizer = fixture.authorizer();
    let message = (0..20).find_map(|_| renew(&authorizer, Some("same"), 401, &[]).err()).unwrap().message;
    assert!(message.contains("Try again later"), "{message}");
    assert_eq!(fixture.browser.opened().len(), 6);
}

#[test]
fn login_always_asks_and_forget_removes_all() {
    let fixture = Fixture::new();
    let authorizer = fixture.authorizer();
    authorizer.login(&Cancel::new()).unwrap();
    authorizer.login(&Cancel::new()).unwrap();
    assert_eq!((fixture.browser.opened().len(), authorizer.token().unwrap().as_str()), (2, "token-2"));
    authorizer.forget().unwrap();
    assert_eq!((authorizer.token(), fixture.authorizer().token()), (None, None));
    assert_eq!(fixture.stored()["servers"], json!({}));
}

#[test]
fn lost_registration_is_repeated_before_the_login() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    fixture.network.respond_json(REGISTRATION_ENDPOINT, json!({"client_id": "second"}));
    fixture.network.respond_with(TOKEN_ENDPOINT, |asked| match asked.form()["client_id"].as_str() {
        "second" => (200, token("two", None).to_string()),
        _ => (401, json!({"error": "invalid_client"}).to_string()),
    });
    assert_eq!(renew(&fixture.authorizer(), Some("token-1"), 401, &[]).unwrap(), "two");
    let opened = fixture.browser.opened();
    assert_eq!((opened.len(), opened[1]["client_id"].as_str()), (2, "second"));
}

#[test]
fn registration_is_not_reused_after_a_login_timeout() {
    let mut fixture = Fixture::new();
    fixture.network.respond_json(TOKEN_ENDPOINT, token("one", None));
    fixture.first_token().unwrap();
    fixture.browser = TestBrowser::new(|_| Vec::new());
    fixture.options.limit = Duration::from_millis(20);
    assert!(renew(&fixture.authorizer(), Some("one"), 401, &[]).is_err());
    fixture.browser = TestBrowser::accepting();
    fixture.options.limit = Duration::from_mins(1);
    fixture.network.respond_json(REGISTRATION_ENDPOINT, json!({"client_id": "second"}));
    renew(&fixture.authorizer(), Some("one"), 401, &[]).unwrap();
    assert_eq!(fixture.browser.opened()[0]["client_id"], "second");
}

#[test]
fn refused_upgrade_keeps_the_old_token() {
    let mut fixture = Fixture::new();
    fixture.network.respond_json(REGISTRATION_ENDPOINT, json!({"client_id": "narrow", "scope": "read"}));
    renew(&fixture.authorizer(), None, 401, &challenge("scope=\"read\"")).unwrap();
    fixture.network.respond_json(REGISTRATION_ENDPOINT, json!({"client_id": "wide", "scope": "read write"}));
    fixture.browser =
        TestBrowser::new(|query| vec![format!("error=access_denied&state={}&iss={ISSUER}", query["state"])]);
    let more = challenge("error=\"insufficient_scope\", scope=\"write\"");
    assert!(renew(&fixture.authorizer(), Some("token-1"), 403, &more).is_err());
    assert_eq!(
        fixture.browser.opened()[0]["client_id"],
        "wide",
        "who may ask for reading only registers for more"
    );
    let later = fixture.authorizer();
    assert_eq!(later.token().unwrap(), "token-1");
    assert_eq!(renew(&later, Some("token-1"), 401, &[]).unwrap(), "token-2");
    assert_eq!(refreshes(&fixture)[0]["client_id"], "narrow", "a token is renewed by who got it");
}

#[test]
fn issuer_that_is_down_is_not_replaced() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    fixture.network.add_issuer("https://new.example");
    fixture.network.respond_json(
        SERVER_METADATA,
        json!({"resource": SERVER, "authorization_servers": ["https://new.example", ISSUER]}),
    );
    assert_eq!(renew(&fixture.authorizer(), Some("token-1"), 401, &[]).unwrap(), "token-2");
    fixture.network.respond_status(
        &format!("GET {ISSUER}/.well-known/oauth-authorization-server"),
        503,
        json!({}),
    );
    assert!(renew(&fixture.authorizer(), Some("token-2"), 401, &[]).unwrap_err().message.contains("503"));
    assert!(!fixture.network.lines().iter().any(|line| line.contains("new.example")));
}
