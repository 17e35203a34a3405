//! Tokens that end, that are not good for enough, and that somebody else gives out now.

use std::sync::Barrier;

use haft_tool::{Secret, json};

use super::*;
use crate::client::oauth::RegisteredClient;

const TOKEN: &str = "POST https://auth.example.org/token";
const REGISTER: &str = "POST https://auth.example.org/register";
const AT_PATH: &str = "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp";

fn refreshes(scene: &Scene) -> Vec<Query> {
    scene.forms().into_iter().filter(|form| form["grant_type"] == "refresh_token").collect()
}

/// The stored token ends at `ends`.
fn set_end(scene: &Scene, ends: u64) {
    let path = scene.folder.path().join("haft/oauth.json");
    let mut stored = scene.stored();
    stored["servers"][SERVER]["tokens"]["ends"] = ends.into();
    std::fs::write(path, stored.to_string()).unwrap();
}

#[test]
fn a_token_that_was_turned_down_is_renewed_without_the_user() {
    let scene = Scene::new();
    let authorizer = scene.authorizer();
    assert_eq!(authorizer.token(), None);
    let first = renew(&authorizer, None, 401, &[]).unwrap();
    assert_eq!(authorizer.token().as_ref(), Some(&first));
    assert_eq!(
        renew(&authorizer, Some(&first), 401, &challenge("error=\"invalid_token\"")).unwrap(),
        "token-2"
    );
    assert_eq!(renew(&authorizer, Some("token-2"), 401, &[]).unwrap(), "token-3");
    assert_eq!(scene.browser.opened().len(), 1);
    let used: Vec<_> = refreshes(&scene).into_iter().map(|form| form["refresh_token"].clone()).collect();
    assert_eq!(used, ["refresh-1", "refresh-2"], "each is used once");
    assert!(
        refreshes(&scene)
            .iter()
            .all(|form| form["resource"] == SERVER && form["client_id"].starts_with("client-of"))
    );
}

#[test]
fn whoever_gives_no_new_token_to_renew_with_lets_the_old_one_stand() {
    let scene = Scene::new();
    scene.first().unwrap();
    scene.town.says(TOKEN, token("next", None));
    for used in ["token-1", "next"] {
        assert_eq!(renew(&scene.authorizer(), Some(used), 401, &[]).unwrap(), "next");
    }
    let used: Vec<_> = refreshes(&scene).into_iter().map(|form| form["refresh_token"].clone()).collect();
    assert_eq!(used, ["refresh-1", "refresh-1"]);
}

#[test]
fn two_threads_that_are_turned_down_renew_once() {
    let scene = Scene::new();
    let authorizer = scene.authorizer();
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
    assert_eq!(refreshes(&scene).len(), 1);
}

#[test]
fn two_processes_share_what_either_gets_and_ask_the_user_once() {
    let scene = Scene::new();
    let (one, other) = (scene.authorizer(), scene.authorizer());
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
    assert_eq!((scene.browser.opened().len(), scene.forms().len()), (1, 1));
    assert_eq!(renew(&one, Some("token-1"), 401, &[]).unwrap(), "token-2");
    assert_eq!(renew(&other, Some("token-1"), 401, &[]).unwrap(), "token-2");
    assert_eq!((other.token().unwrap().as_str(), refreshes(&scene).len()), ("token-2", 1));
}

#[test]
fn a_token_that_ends_soon_is_renewed_before_it_is_used() {
    let scene = Scene::new();
    scene.first().unwrap();
    set_end(&scene, 1);
    let (one, other) = (scene.authorizer(), scene.authorizer());
    assert_eq!(other.token().unwrap(), "token-2");
    set_end(&scene, u64::MAX / 2);
    assert_eq!(one.token().unwrap(), "token-2");
    assert_eq!(scene.browser.opened().len(), 1);
}

#[test]
fn a_renewal_that_fails_is_not_tried_at_every_call_and_the_server_decides() {
    let scene = Scene::new();
    scene.first().unwrap();
    set_end(&scene, 1);
    scene.town.fails(TOKEN, 503, json!({}));
    let authorizer = scene.authorizer();
    for _ in 0..3 {
        assert_eq!(authorizer.token().unwrap(), "token-1");
    }
    assert_eq!(refreshes(&scene).len(), 1);
    assert!(renew(&authorizer, Some("token-1"), 401, &[]).unwrap_err().message.contains("503"));
    assert_eq!(scene.stored()["servers"][SERVER]["tokens"]["refresh"], "refresh-1", "it may be good later");
    assert_eq!(scene.browser.opened().len(), 1, "nobody is bothered because a server is down");
}

#[test]
fn a_spent_token_is_not_offered_again_and_the_user_is_asked() {
    let scene = Scene::new();
    scene.first().unwrap();
    scene.town.answers(TOKEN, |asked| match asked.form()["grant_type"].as_str() {
        "refresh_token" => (400, json!({"error": "invalid_grant"}).to_string()),
        _ => (200, token("fresh", None).to_string()),
    });
    assert_eq!(renew(&scene.authorizer(), Some("token-1"), 401, &[]).unwrap(), "fresh");
    assert_eq!((refreshes(&scene).len(), scene.browser.opened().len()), (1, 2));
    assert_eq!(renew(&scene.authorizer(), Some("fresh"), 401, &[]).unwrap(), "fresh");
    assert_eq!((refreshes(&scene).len(), scene.browser.opened().len()), (1, 3));
}

#[test]
fn a_registration_is_used_again_with_its_redirect() {
    let scene = Scene::new();
    scene.town.says(TOKEN, token("one", None));
    scene.first().unwrap();
    renew(&scene.authorizer(), Some("one"), 401, &[]).unwrap();
    let opened = scene.browser.opened();
    assert_eq!((opened[0]["redirect_uri"].as_str(), opened.len()), (opened[1]["redirect_uri"].as_str(), 2));
    assert_eq!(scene.town.asked(REGISTER).len(), 1);
    let port = Url::parse(&opened[0]["redirect_uri"]).unwrap().port().unwrap();
    let _taken = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    renew(&scene.authorizer(), Some("one"), 401, &[]).unwrap();
    assert_eq!(scene.town.asked(REGISTER).len(), 2, "another redirect is another registration");
}

#[test]
fn a_registration_whose_secret_has_ended_is_made_again() {
    for (ends, registrations) in [(0, 1), (1, 2), (u64::MAX, 1)] {
        let scene = Scene::new();
        scene.town.says(TOKEN, token("one", None));
        scene.town.says(
            REGISTER,
            json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": ends}),
        );
        scene.first().unwrap();
        renew(&scene.authorizer(), Some("one"), 401, &[]).unwrap();
        assert_eq!(scene.town.asked(REGISTER).len(), registrations, "{ends}");
    }
}

#[test]
fn an_authorization_server_that_forgot_its_clients_gets_to_know_haft_again_once() {
    let scene = Scene::new();
    scene.town.says(TOKEN, token("one", None));
    scene.first().unwrap();
    scene.town.says(REGISTER, json!({"client_id": "second"}));
    scene.town.answers(TOKEN, |asked| match asked.form()["client_id"].as_str() {
        "second" => (200, token("two", None).to_string()),
        _ => (401, json!({"error": "invalid_client"}).to_string()),
    });
    assert_eq!(renew(&scene.authorizer(), Some("one"), 401, &[]).unwrap(), "two");
    scene.town.fails(TOKEN, 401, json!({"error": "invalid_client"}));
    assert!(
        renew(&scene.authorizer(), Some("two"), 401, &[]).unwrap_err().message.contains("invalid_client")
    );
    assert_eq!(scene.browser.opened().len(), 5, "one, one and again, one and again");
}

#[test]
fn nothing_of_one_authorization_server_is_shown_to_another() {
    let scene = Scene::with(Browser::new(|query| {
        let issuer = if query["client_id"].ends_with("new.example") { "https://new.example" } else { ISSUER };
        vec![format!("code=c&state={}&iss={issuer}", query["state"])]
    }));
    let authorizer = scene.authorizer();
    renew(&authorizer, None, 401, &[]).unwrap();
    scene.town.settle("https://new.example");
    scene.town.says(AT_PATH, json!({"resource": SERVER, "authorization_servers": ["https://new.example"]}));
    scene.town.says("POST https://new.example/token", token("new-token", None));
    assert_eq!(renew(&authorizer, Some("token-1"), 401, &[]).unwrap(), "new-token");
    for asked in scene.town.asked("POST https://new.example") {
        for old in ["client-of-https://auth", "client-of-https%3A%2F%2Fauth", "refresh-1", "token-1"] {
            assert!(!asked.body.contains(old), "{asked:?}");
        }
    }
    assert_eq!(scene.town.asked("POST https://new.example/register").len(), 1);
    let stored = scene.stored().to_string();
    assert!(stored.contains("new-token") && !stored.contains("refresh-1") && !stored.contains(ISSUER));
}

#[test]
fn a_client_registered_by_hand_does_not_follow_to_another_authorization_server() {
    let registered = |issuer: Option<&str>| {
        let (id, secret) = ("by-hand".to_owned(), Some(Secret::new("hush")));
        Some(RegisteredClient { id, secret, issuer: issuer.map(str::to_owned), redirect: None })
    };
    for issuer in [None, Some(ISSUER)] {
        let mut scene = Scene::new();
        scene.options.registered = registered(issuer);
        scene.first().unwrap();
        scene.town.settle("https://new.example");
        scene
            .town
            .says(AT_PATH, json!({"resource": SERVER, "authorization_servers": ["https://new.example"]}));
        let told = renew(&scene.authorizer(), Some("token-1"), 401, &[]).unwrap_err().message;
        assert!(told.contains("by-hand") && told.contains("https://new.example"), "{told}");
        assert!(scene.town.asked("POST https://new.example").is_empty() && scene.browser.opened().len() == 1);
        assert!(!told.contains("hush"));
    }
}

#[test]
fn more_rights_are_asked_for_beside_those_there_are() {
    let scene = Scene::new();
    let authorizer = scene.authorizer();
    renew(&authorizer, None, 401, &challenge("scope=\"read\"")).unwrap();
    let more = challenge("error=\"insufficient_scope\", scope=\"write\"");
    assert_eq!(renew(&authorizer, Some("token-1"), 403, &more).unwrap(), "token-2");
    assert_eq!(scene.browser.opened()[1]["scope"], "read write");
    let told = renew(&authorizer, Some("token-2"), 403, &more).unwrap_err().message;
    assert!(told.contains("asking again would not help"), "{told}");
    let other = challenge("error=\"insufficient_scope\", scope=\"read\"");
    assert!(renew(&authorizer, Some("token-2"), 403, &other).is_err());
    assert!(renew(&authorizer, Some("token-2"), 403, &challenge("error=\"insufficient_scope\"")).is_err());
    assert_eq!(
        renew(&authorizer, Some("token-1"), 403, &more).unwrap(),
        "token-2",
        "somebody else has asked meanwhile"
    );
    assert_eq!(scene.browser.opened().len(), 2);
}

#[test]
fn rights_that_were_not_given_are_asked_for_once() {
    let scene = Scene::new();
    let mut narrow = token("narrow", None);
    narrow["scope"] = "read".into();
    scene.town.says(TOKEN, narrow);
    let authorizer = scene.authorizer();
    renew(&authorizer, None, 401, &challenge("scope=\"read\"")).unwrap();
    let more = challenge("error=\"insufficient_scope\", scope=\"write\"");
    renew(&authorizer, Some("narrow"), 403, &more).unwrap();
    let told = renew(&authorizer, Some("narrow"), 403, &more).unwrap_err().message;
    assert!(told.contains("asked for and not given"), "{told}");
    assert_eq!(scene.browser.opened().len(), 2);
}

#[test]
fn a_server_that_forbids_is_not_answered_with_a_question_to_the_user() {
    let scene = Scene::new();
    let authorizer = scene.authorizer();
    for (status, words) in
        [(403, "Bearer"), (403, "Bearer error=\"access_denied\""), (404, "Bearer"), (500, "")]
    {
        assert!(renew(&authorizer, None, status, &[words.to_owned()]).is_err(), "{status} {words}");
    }
    assert!(scene.browser.opened().is_empty() && scene.town.lines().is_empty());
}

#[test]
fn a_server_that_is_never_content_does_not_keep_the_browser_busy() {
    let scene = Scene::new();
    scene.town.says(TOKEN, token("same", None));
    let authorizer = scene.authorizer();
    let told = (0..20).find_map(|_| renew(&authorizer, Some("same"), 401, &[]).err()).unwrap().message;
    assert!(told.contains("not asked for again so soon"), "{told}");
    assert_eq!(scene.browser.opened().len(), 6);
}

#[test]
fn signing_in_again_asks_whatever_is_at_hand_and_forgetting_leaves_nothing() {
    let scene = Scene::new();
    let authorizer = scene.authorizer();
    authorizer.login(&Cancel::new()).unwrap();
    authorizer.login(&Cancel::new()).unwrap();
    assert_eq!((scene.browser.opened().len(), authorizer.token().unwrap().as_str()), (2, "token-2"));
    authorizer.forget().unwrap();
    assert_eq!((authorizer.token(), scene.authorizer().token()), (None, None));
    assert_eq!(scene.stored()["servers"], json!({}));
}

#[test]
fn a_registration_that_is_gone_is_made_again_before_the_user_is_sent_into_the_void() {
    let scene = Scene::new();
    scene.first().unwrap();
    scene.town.says(REGISTER, json!({"client_id": "second"}));
    scene.town.answers(TOKEN, |asked| match asked.form()["client_id"].as_str() {
        "second" => (200, token("two", None).to_string()),
        _ => (401, json!({"error": "invalid_client"}).to_string()),
    });
    assert_eq!(renew(&scene.authorizer(), Some("token-1"), 401, &[]).unwrap(), "two");
    let opened = scene.browser.opened();
    assert_eq!((opened.len(), opened[1]["client_id"].as_str()), (2, "second"));
}

#[test]
fn a_registration_that_led_to_no_answer_is_not_used_again() {
    let mut scene = Scene::new();
    scene.town.says(TOKEN, token("one", None));
    scene.first().unwrap();
    scene.browser = Browser::new(|_| Vec::new());
    scene.options.limit = Duration::from_millis(20);
    assert!(renew(&scene.authorizer(), Some("one"), 401, &[]).is_err());
    scene.browser = Browser::willing();
    scene.options.limit = Duration::from_mins(1);
    scene.town.says(REGISTER, json!({"client_id": "second"}));
    renew(&scene.authorizer(), Some("one"), 401, &[]).unwrap();
    assert_eq!(scene.browser.opened()[0]["client_id"], "second");
}

#[test]
fn a_user_who_gives_no_more_rights_keeps_those_there_are() {
    let mut scene = Scene::new();
    scene.town.says(REGISTER, json!({"client_id": "narrow", "scope": "read"}));
    renew(&scene.authorizer(), None, 401, &challenge("scope=\"read\"")).unwrap();
    scene.town.says(REGISTER, json!({"client_id": "wide", "scope": "read write"}));
    scene.browser =
        Browser::new(|query| vec![format!("error=access_denied&state={}&iss={ISSUER}", query["state"])]);
    let more = challenge("error=\"insufficient_scope\", scope=\"write\"");
    assert!(renew(&scene.authorizer(), Some("token-1"), 403, &more).is_err());
    assert_eq!(
        scene.browser.opened()[0]["client_id"],
        "wide",
        "who may ask for reading only registers for more"
    );
    let later = scene.authorizer();
    assert_eq!(later.token().unwrap(), "token-1");
    assert_eq!(renew(&later, Some("token-1"), 401, &[]).unwrap(), "token-2");
    assert_eq!(refreshes(&scene)[0]["client_id"], "narrow", "a token is renewed by who got it");
}

#[test]
fn an_authorization_server_that_is_down_is_not_left_for_another() {
    let scene = Scene::new();
    scene.first().unwrap();
    scene.town.settle("https://new.example");
    scene
        .town
        .says(AT_PATH, json!({"resource": SERVER, "authorization_servers": ["https://new.example", ISSUER]}));
    assert_eq!(renew(&scene.authorizer(), Some("token-1"), 401, &[]).unwrap(), "token-2");
    scene.town.fails(&format!("GET {ISSUER}/.well-known/oauth-authorization-server"), 503, json!({}));
    assert!(renew(&scene.authorizer(), Some("token-2"), 401, &[]).unwrap_err().message.contains("503"));
    assert!(!scene.town.lines().iter().any(|line| line.contains("new.example")));
}
