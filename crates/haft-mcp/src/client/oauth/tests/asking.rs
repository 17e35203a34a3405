//! Making Haft known, sending the user, and changing what comes back for tokens.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use haft_tool::{Cancel, Secret, json};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::client::McpError;
use crate::client::oauth::RegisteredClient;

const HERE: &str = "GET https://auth.example.org/.well-known/oauth-authorization-server";
const TOKEN: &str = "POST https://auth.example.org/token";
const REGISTER: &str = "POST https://auth.example.org/register";

/// The scene with these fields of the authorization server's description changed.
fn with(browser: Arc<Browser>, fields: &[(&str, Value)]) -> Scene {
    let scene = Scene::with(browser);
    let mut document = metadata(ISSUER);
    for (name, value) in fields {
        document[*name] = value.clone();
    }
    scene.town.says(HERE, document);
    scene
}

fn answering(query: &'static str) -> Arc<Browser> {
    Browser::new(move |asked| vec![query.replace("STATE", &asked["state"])])
}

#[test]
fn a_code_is_changed_for_a_token_with_everything_that_protects_it() {
    let scene = Scene::new();
    assert_eq!(scene.first().unwrap(), "token-1");
    let (asked, form) = (&scene.browser.opened()[0], &scene.forms()[0]);
    assert_eq!((asked["response_type"].as_str(), asked["code_challenge_method"].as_str()), ("code", "S256"));
    assert_eq!(
        asked["code_challenge"],
        URL_SAFE_NO_PAD.encode(Sha256::digest(form["code_verifier"].as_bytes()))
    );
    assert!(
        asked["redirect_uri"].starts_with("http://127.0.0.1:")
            && asked["redirect_uri"].ends_with("/callback")
    );
    assert!(asked["state"].len() >= 43 && !asked.contains_key("scope"));
    for name in ["client_id", "redirect_uri", "resource"] {
        assert_eq!(asked[name], form[name], "{name}");
    }
    assert_eq!((form["resource"].as_str(), form["code"].as_str()), (SERVER, "the-code"));
    let wish = scene.town.asked(REGISTER)[0].json();
    assert_eq!(wish["redirect_uris"], json!([asked["redirect_uri"]]));
    assert_eq!(wish["application_type"], "native");
    assert_eq!(wish["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(wish["token_endpoint_auth_method"], "none");
}

#[test]
fn an_answer_with_a_wrong_state_is_not_heard_and_the_right_one_still_is() {
    let scene = Scene::with(Browser::new(|asked| {
        vec![
            "code=evil&state=guess".to_owned(),
            "error=access_denied".to_owned(),
            format!("code=evil&state={}&state={}", asked["state"], asked["state"]),
            format!("code=good&state={}&iss={ISSUER}", asked["state"]),
        ]
    }));
    assert_eq!(scene.first().unwrap(), "token-1");
    assert_eq!(scene.forms().iter().map(|form| form["code"].as_str()).collect::<Vec<_>>(), ["good"]);
}

#[test]
fn a_code_is_never_sent_on_when_its_issuer_is_wrong() {
    for (query, signs) in [
        ("code=c&state=STATE", true),
        ("code=c&state=STATE&iss=https://evil.example", true),
        ("code=c&state=STATE&iss=https://evil.example", false),
        ("code=c&state=STATE&iss=https://auth.example.org/", true),
        ("error=oops&error_description=call+555&state=STATE&iss=https://evil.example", false),
    ] {
        let scene =
            with(answering(query), &[("authorization_response_iss_parameter_supported", json!(signs))]);
        let words = scene.refusal();
        assert!(words.contains("nothing of it was used") && !words.contains("555"), "{words}");
        assert!(scene.forms().is_empty(), "{query}");
    }
    let scene = with(
        answering("code=c&state=STATE"),
        &[("authorization_response_iss_parameter_supported", json!(false))],
    );
    assert_eq!(scene.first().unwrap(), "token-1");
}

#[test]
fn a_user_who_says_no_is_told_so() {
    let scene = Scene::with(answering("error=access_denied&state=STATE&iss=https://auth.example.org"));
    let error = scene.first().unwrap_err();
    assert_eq!(error.kind, McpError::Unauthorized);
    assert!(error.message.contains("access_denied"), "{error}");
    assert!(scene.forms().is_empty());
}

#[test]
fn a_wait_for_the_user_ends() {
    let mut scene = Scene::with(Browser::new(|_| Vec::new()));
    scene.options.limit = Duration::from_millis(20);
    assert_eq!(scene.first().unwrap_err().kind, McpError::TimedOut);
    let (cancel, other) = (Cancel::new(), Cancel::new());
    let asker = cancel.clone();
    let scene = Scene::with(Browser::new(move |_| {
        asker.cancel();
        Vec::new()
    }));
    let gone = scene.authorizer().challenged(None, 401, &[], &cancel).unwrap_err();
    assert_eq!(gone.kind, McpError::Cancelled);
    assert!(!other.is_cancelled());
}

#[test]
fn who_opens_no_browser_says_what_to_do_instead() {
    struct Nobody;
    impl BrowserOpener for Nobody {
        fn open(&self, _url: &Url) -> Result<(), ToolError> {
            Err(ToolError::denied("nobody is there; sign in first"))
        }
    }
    let scene = Scene::new();
    let authorizer = Authorizer::new(
        SERVER,
        doors(&scene.town),
        Arc::new(Nobody),
        scene.folder.path(),
        OAuthOptions::default(),
    )
    .unwrap();
    for _ in 0..10 {
        let error = renew(&authorizer, None, 401, &[]).unwrap_err();
        assert!(error.message.contains("sign in first"), "{error}");
    }
    assert_eq!(scene.town.asked(REGISTER).len(), 1);
}

#[test]
fn clients_are_known_in_the_order_of_the_specification() {
    let documents = [("client_id_metadata_document_supported", json!(true))];
    let mut scene = with(Browser::willing(), &documents);
    scene.options.document = Some(Url::parse("https://haft.example/client.json").unwrap());
    scene.first().unwrap();
    assert_eq!(scene.browser.opened()[0]["client_id"], "https://haft.example/client.json");
    assert_eq!(scene.forms()[0]["client_id"], "https://haft.example/client.json");
    assert!(scene.town.asked(REGISTER).is_empty());

    let mut scene = Scene::new();
    scene.options.document = Some(Url::parse("https://haft.example/client.json").unwrap());
    scene.first().unwrap();
    assert_eq!(
        scene.browser.opened()[0]["client_id"],
        "client-of-https://auth.example.org",
        "documents are not taken"
    );

    let mut scene = with(Browser::willing(), &documents);
    scene.options.document = Some(Url::parse("https://haft.example/client.json").unwrap());
    scene.options.registered = Some(RegisteredClient {
        id: "by-hand".to_owned(),
        secret: None,
        issuer: Some(ISSUER.to_owned()),
        redirect: None,
    });
    scene.first().unwrap();
    assert_eq!(scene.browser.opened()[0]["client_id"], "by-hand");
}

#[test]
fn a_client_proves_itself_as_it_is_asked_to() {
    let basic = format!("Basic {}", STANDARD.encode("c%3A1:s%2F1"));
    for (registered, taken, header, posted) in [
        (json!("client_secret_basic"), json!(["none"]), Some(basic.as_str()), None),
        (json!("client_secret_post"), json!(["none"]), None, Some("s/1")),
        (json!("none"), json!(["client_secret_post"]), None, None),
        (json!(null), json!(["client_secret_basic", "client_secret_post"]), Some(basic.as_str()), None),
        (json!(null), json!(["client_secret_post"]), None, Some("s/1")),
        (json!(null), json!(["none"]), None, None),
        (json!(null), json!(null), Some(basic.as_str()), None),
    ] {
        let scene = with(Browser::willing(), &[("token_endpoint_auth_methods_supported", taken.clone())]);
        scene.town.says(
            REGISTER,
            json!({"client_id": "c:1", "client_secret": "s/1", "token_endpoint_auth_method": registered}),
        );
        scene.first().unwrap();
        let asked = &scene.town.asked(TOKEN)[0];
        let form = asked.form();
        assert_eq!(asked.header("authorization"), header, "{registered} {taken}");
        assert_eq!(form.get("client_secret").map(String::as_str), posted, "{registered} {taken}");
        assert_eq!(!form.contains_key("client_id"), header.is_some(), "{registered} {taken}");
    }
}

#[test]
fn a_registration_that_fails_or_makes_no_sense_is_told() {
    for (status, answer, words) in [
        (
            400,
            json!({"error": "invalid_redirect_uri", "error_description": "no\u{1b}[31m loopback"}),
            "invalid_redirect_uri: no\\u{1b}[31m loopback",
        ),
        (403, json!([]), "403"),
        (201, json!({}), "client_id"),
        (201, json!({"client_id": ""}), "empty"),
        (201, json!({"client_id": "c", "token_endpoint_auth_method": "private_key_jwt"}), "private_key_jwt"),
        (
            201,
            json!({"client_id": "c", "token_endpoint_auth_method": "client_secret_basic"}),
            "gives no secret",
        ),
        (307, json!("https://evil.example/register"), "sends its callers on"),
    ] {
        let scene = Scene::new();
        scene.town.fails(REGISTER, status, answer);
        let told = scene.refusal();
        assert!(told.contains(words), "{told}");
        assert!(scene.browser.opened().is_empty());
    }
    let scene = with(Browser::willing(), &[("registration_endpoint", json!(null))]);
    assert!(scene.refusal().contains("register Haft there by hand"));
}

#[test]
fn a_client_registered_by_hand_has_its_own_redirect() {
    let registered = |redirect: &str| RegisteredClient {
        id: "by-hand".to_owned(),
        secret: Some(Secret::new("hush")),
        issuer: None,
        redirect: Some(Url::parse(redirect).unwrap()),
    };
    let mut scene = Scene::new();
    scene.options.registered = Some(registered("http://localhost/oauth/done"));
    scene.first().unwrap();
    let redirect = Url::parse(&scene.browser.opened()[0]["redirect_uri"]).unwrap();
    assert_eq!((redirect.host_str(), redirect.path()), (Some("localhost"), "/oauth/done"));
    assert!(redirect.port().is_some());
    for bad in [
        "https://localhost/x",
        "http://evil.example/x",
        "http://127.0.0.1/x?y=1",
        "http://[::1]:1/x",
        "haft:/x",
    ] {
        let mut scene = Scene::new();
        scene.options.registered = Some(registered(bad));
        assert!(scene.refusal().contains("cannot be listened at"), "{bad}");
    }
}

#[test]
fn a_token_that_cannot_be_used_is_an_error_that_shows_no_secret() {
    for (status, answer, words) in [
        (200, json!({}), "no access_token"),
        (200, json!({"access_token": "x y", "token_type": "Bearer"}), "characters"),
        (200, json!({"access_token": "x", "token_type": "mac"}), "only Bearer"),
        (
            400,
            json!({"error": "invalid_request", "error_description": "code the-code is wrong"}),
            "code *** is wrong",
        ),
        (400, json!("rude"), "400"),
        (503, json!({}), "503"),
        (0, json!({}), "was not reached"),
    ] {
        let scene = Scene::new();
        scene.town.fails(TOKEN, status, answer);
        let told = scene.refusal();
        assert!(told.contains(words), "{told}");
        assert!(!told.contains("the-code"), "{told}");
        assert_eq!(scene.authorizer().token(), None);
    }
}

#[test]
fn scopes_are_those_of_the_challenge_or_those_of_the_server_or_none() {
    let offering = |scopes: Value| {
        let scene = with(Browser::willing(), &[("scopes_supported", scopes)]);
        scene.town.says(
            "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            json!({"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["files:read", "files:list"]}),
        );
        scene
    };
    let scene = offering(json!(["x"]));
    renew(&scene.authorizer(), None, 401, &challenge("scope=\"other\"")).unwrap();
    assert_eq!(scene.browser.opened()[0]["scope"], "other");
    let scene = offering(json!(["x"]));
    scene.first().unwrap();
    assert_eq!(scene.browser.opened()[0]["scope"], "files:read files:list");
    assert!(!scene.browser.opened()[0].contains_key("prompt"));
    let scene = offering(json!(["x", "offline_access"]));
    scene.first().unwrap();
    assert_eq!(scene.browser.opened()[0]["scope"], "files:read files:list offline_access");
    assert_eq!(scene.browser.opened()[0]["prompt"], "consent");
    assert_eq!(scene.town.asked(REGISTER)[0].json()["scope"], "files:read files:list offline_access");
    let scene = with(Browser::willing(), &[("scopes_supported", json!(["offline_access"]))]);
    scene.first().unwrap();
    assert!(
        !scene.browser.opened()[0].contains_key("scope"),
        "alone it would ask for less than nothing does"
    );
}

#[test]
fn a_document_needs_an_address_of_its_own() {
    for bad in ["http://haft.example/client.json", "https://haft.example"] {
        let scene = Scene::new();
        let options = OAuthOptions { document: Some(Url::parse(bad).unwrap()), ..OAuthOptions::default() };
        assert!(
            Authorizer::new(SERVER, doors(&scene.town), Browser::willing(), scene.folder.path(), options)
                .is_err()
        );
    }
}
