//! Making Haft known, sending the user, and changing what comes back for tokens.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use haft_tool::{Cancel, Secret, json};
use sha2::{Digest as _, Sha256};

use super::*;
use haft_mcp::client::McpError;
use haft_mcp::client::oauth::RegisteredClient;

const ISSUER_METADATA: &str = "GET https://auth.example.org/.well-known/oauth-authorization-server";
const TOKEN_ENDPOINT: &str = "POST https://auth.example.org/token";
const REGISTRATION_ENDPOINT: &str = "POST https://auth.example.org/register";

/// The fixture with these fields of the authorization server's description changed.
fn with(browser: Arc<TestBrowser>, fields: &[(&str, Value)]) -> Fixture {
    let fixture = Fixture::with(browser);
    let mut document = metadata(ISSUER);
    for (name, value) in fields {
        document[*name] = value.clone();
    }
    fixture.network.respond_json(ISSUER_METADATA, document);
    fixture
}

fn answering(query: &'static str) -> Arc<TestBrowser> {
    TestBrowser::new(move |asked| vec![query.replace("STATE", &asked["state"])])
}

#[test]
fn code_is_exchanged_with_pkce_and_resource() {
    let fixture = Fixture::new();
    assert_eq!(fixture.first_token().unwrap(), "token-1");
    let (asked, form) = (&fixture.browser.opened()[0], &fixture.forms()[0]);
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
    let registration = fixture.network.received(REGISTRATION_ENDPOINT)[0].json();
    assert_eq!(registration["redirect_uris"], json!([asked["redirect_uri"]]));
    assert_eq!(registration["application_type"], "native");
    assert_eq!(registration["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(registration["token_endpoint_auth_method"], "none");
}

#[test]
fn answer_with_a_wrong_state_is_ignored() {
    let fixture = Fixture::with(TestBrowser::new(|asked| {
        vec![
            "code=evil&state=guess".to_owned(),
            "error=access_denied".to_owned(),
            format!("code=evil&state={}&state={}", asked["state"], asked["state"]),
            format!("code=good&state={}&iss={ISSUER}", asked["state"]),
        ]
    }));
    assert_eq!(fixture.first_token().unwrap(), "token-1");
    assert_eq!(fixture.forms().iter().map(|form| form["code"].as_str()).collect::<Vec<_>>(), ["good"]);
}

#[test]
fn code_of_a_wrong_issuer_is_not_used() {
    for (query, signs) in [
        ("code=c&state=STATE", true),
        ("code=c&state=STATE&iss=https://evil.example", true),
        ("code=c&state=STATE&iss=https://evil.example", false),
        ("code=c&state=STATE&iss=https://auth.example.org/", true),
        ("error=oops&error_description=call+555&state=STATE&iss=https://evil.example", false),
    ] {
        let fixture =
            with(answering(query), &[("authorization_response_iss_parameter_supported", json!(signs))]);
        let message = fixture.login_error();
        assert!(message.contains("was not used") && !message.contains("555"), "{message}");
        assert!(fixture.forms().is_empty(), "{query}");
    }
    let fixture = with(
        answering("code=c&state=STATE"),
        &[("authorization_response_iss_parameter_supported", json!(false))],
    );
    assert_eq!(fixture.first_token().unwrap(), "token-1");
}

#[test]
fn refused_login_is_reported() {
    let fixture = Fixture::with(answering("error=access_denied&state=STATE&iss=https://auth.example.org"));
    let error = fixture.first_token().unwrap_err();
    assert_eq!(error.kind, McpError::Unauthorized);
    assert!(error.message.contains("access_denied"), "{error}");
    assert!(fixture.forms().is_empty());
}

#[test]
fn login_times_out_and_can_be_cancelled() {
    let mut fixture = Fixture::with(TestBrowser::new(|_| Vec::new()));
    fixture.options.limit = Duration::from_millis(20);
    assert_eq!(fixture.first_token().unwrap_err().kind, McpError::TimedOut);
    let (cancel, other) = (Cancel::new(), Cancel::new());
    let asker = cancel.clone();
    let fixture = Fixture::with(TestBrowser::new(move |_| {
        asker.cancel();
        Vec::new()
    }));
    let gone = fixture.authorizer().challenged(None, 401, &[], &cancel).unwrap_err();
    assert_eq!(gone.kind, McpError::Cancelled);
    assert!(!other.is_cancelled());
}

#[test]
fn error_of_the_browser_is_reported() {
    struct NoBrowser;
    impl BrowserOpener for NoBrowser {
        fn open(&self, _url: &Url) -> Result<(), ToolError> {
            Err(ToolError::denied("there is no user; sign in first"))
        }
    }
    let fixture = Fixture::new();
    let authorizer = Authorizer::new(
        SERVER,
        http_factory(&fixture.network),
        Arc::new(NoBrowser),
        fixture.folder.path(),
        OAuthOptions::default(),
    )
    .unwrap();
    for _ in 0..10 {
        let error = renew(&authorizer, None, 401, &[]).unwrap_err();
        assert!(error.message.contains("sign in first"), "{error}");
    }
    assert_eq!(fixture.network.received(REGISTRATION_ENDPOINT).len(), 1);
}

#[test]
fn client_is_chosen_in_the_order_of_the_specification() {
    let documents = [("client_id_metadata_document_supported", json!(true))];
    let mut fixture = with(TestBrowser::accepting(), &documents);
    fixture.options.document = Some(Url::parse("https://haft.example/client.json").unwrap());
    fixture.first_token().unwrap();
    assert_eq!(fixture.browser.opened()[0]["client_id"], "https://haft.example/client.json");
    assert_eq!(fixture.forms()[0]["client_id"], "https://haft.example/client.json");
    assert!(fixture.network.received(REGISTRATION_ENDPOINT).is_empty());

    let mut fixture = Fixture::new();
    fixture.options.document = Some(Url::parse("https://haft.example/client.json").unwrap());
    fixture.first_token().unwrap();
    assert_eq!(
        fixture.browser.opened()[0]["client_id"],
        "client-of-https://auth.example.org",
        "documents are not taken"
    );

    let mut fixture = with(TestBrowser::accepting(), &documents);
    fixture.options.document = Some(Url::parse("https://haft.example/client.json").unwrap());
    fixture.options.registered = Some(RegisteredClient {
        id: "by-hand".to_owned(),
        secret: None,
        issuer: Some(ISSUER.to_owned()),
        redirect: None,
    });
    fixture.first_token().unwrap();
    assert_eq!(fixture.browser.opened()[0]["client_id"], "by-hand");
}

#[test]
fn client_authenticates_as_registered() {
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
        let fixture =
            with(TestBrowser::accepting(), &[("token_endpoint_auth_methods_supported", taken.clone())]);
        fixture.network.respond_json(
            REGISTRATION_ENDPOINT,
            json!({"client_id": "c:1", "client_secret": "s/1", "token_endpoint_auth_method": registered}),
        );
        fixture.first_token().unwrap();
        let asked = &fixture.network.received(TOKEN_ENDPOINT)[0];
        let form = asked.form();
        assert_eq!(asked.header("authorization"), header, "{registered} {taken}");
        assert_eq!(form.get("client_secret").map(String::as_str), posted, "{registered} {taken}");
        assert_eq!(!form.contains_key("client_id"), header.is_some(), "{registered} {taken}");
    }
}

#[test]
fn failed_registration_is_reported() {
    for (status, answer, message) in [
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
            "has no secret",
        ),
        (307, json!("https://evil.example/register"), "is not followed"),
    ] {
        let fixture = Fixture::new();
        fixture.network.respond_status(REGISTRATION_ENDPOINT, status, answer);
        let error = fixture.login_error();
        assert!(error.contains(message), "{error}");
        assert!(fixture.browser.opened().is_empty());
    }
    let fixture = with(TestBrowser::accepting(), &[("registration_endpoint", json!(null))]);
    assert!(fixture.login_error().contains("Register Haft there"));
}

#[test]
fn registered_client_uses_its_redirect() {
    let registered = |redirect: &str| RegisteredClient {
        id: "by-hand".to_owned(),
        secret: Some(Secret::new("hush")),
        issuer: None,
        redirect: Some(Url::parse(redirect).unwrap()),
    };
    let mut fixture = Fixture::new();
    fixture.options.registered = Some(registered("http://localhost/oauth/done"));
    fixture.first_token().unwrap();
    let redirect = Url::parse(&fixture.browser.opened()[0]["redirect_uri"]).unwrap();
    assert_eq!((redirect.host_str(), redirect.path()), (Some("localhost"), "/oauth/done"));
    assert!(redirect.port().is_some());
    for bad in [
        "https://localhost/x",
        "http://evil.example/x",
        "http://127.0.0.1/x?y=1",
        "http://[::1]:1/x",
        "haft:/x",
    ] {
        let mut fixture = Fixture::new();
        fixture.options.registered = Some(registered(bad));
        assert!(fixture.login_error().contains("is not supported"), "{bad}");
    }
}

#[test]
fn invalid_token_error_shows_no_secret() {
    for (status, answer, message) in [
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
        let fixture = Fixture::new();
        fixture.network.respond_status(TOKEN_ENDPOINT, status, answer);
        let error = fixture.login_error();
        assert!(error.contains(message), "{error}");
        assert!(!error.contains("the-code"), "{error}");
        assert_eq!(fixture.authorizer().token(), None);
    }
}

#[test]
fn scopes_come_from_the_challenge_or_the_metadata() {
    let offering = |scopes: Value| {
        let fixture = with(TestBrowser::accepting(), &[("scopes_supported", scopes)]);
        fixture.network.respond_json(
            "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp",
            json!({"resource": SERVER, "authorization_servers": [ISSUER], "scopes_supported": ["files:read", "files:list"]}),
        );
        fixture
    };
    let fixture = offering(json!(["x"]));
    renew(&fixture.authorizer(), None, 401, &challenge("scope=\"other\"")).unwrap();
    assert_eq!(fixture.browser.opened()[0]["scope"], "other");
    let fixture = offering(json!(["x"]));
    fixture.first_token().unwrap();
    assert_eq!(fixture.browser.opened()[0]["scope"], "files:read files:list");
    assert!(!fixture.browser.opened()[0].contains_key("prompt"));
    let fixture = offering(json!(["x", "offline_access"]));
    fixture.first_token().unwrap();
    assert_eq!(fixture.browser.opened()[0]["scope"], "files:read files:list offline_access");
    assert_eq!(fixture.browser.opened()[0]["prompt"], "consent");
    assert_eq!(
        fixture.network.received(REGISTRATION_ENDPOINT)[0].json()["scope"],
        "files:read files:list offline_access"
    );
    let fixture = with(TestBrowser::accepting(), &[("scopes_supported", json!(["offline_access"]))]);
    fixture.first_token().unwrap();
    assert!(
        !fixture.browser.opened()[0].contains_key("scope"),
        "alone it would ask for less than nothing does"
    );
}

#[test]
fn metadata_document_needs_https_and_a_path() {
    for bad in ["http://haft.example/client.json", "https://haft.example"] {
        let fixture = Fixture::new();
        let options = OAuthOptions { document: Some(Url::parse(bad).unwrap()), ..OAuthOptions::default() };
        assert!(
            Authorizer::new(
                SERVER,
                http_factory(&fixture.network),
                TestBrowser::accepting(),
                fixture.folder.path(),
                options
            )
            .is_err()
        );
    }
}
