//! From a server to who gives out its tokens.

use haft_tool::json;

use super::*;

const SERVER_METADATA: &str = "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const ROOT_METADATA: &str = "GET https://mcp.example.com/.well-known/oauth-protected-resource";
const ISSUER_METADATA: &str = "GET https://auth.example.org/.well-known/oauth-authorization-server";

#[test]
fn metadata_url_of_the_challenge_is_used_first() {
    let fixture = Fixture::new();
    fixture.network.respond_json(
        "GET https://mcp.example.com/custom.json",
        json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
    );
    let message = challenge("resource_metadata=\"https://mcp.example.com/custom.json\"");
    assert_eq!(renew(&fixture.authorizer(), None, 401, &message).unwrap(), "token-1");
    assert_eq!(fixture.network.lines()[..2], ["GET https://mcp.example.com/custom.json", ISSUER_METADATA]);
}

#[test]
fn well_known_urls_are_tried_in_order() {
    let fixture = Fixture::new();
    fixture.network.respond_status(SERVER_METADATA, 404, json!({}));
    fixture.network.respond_json(
        ROOT_METADATA,
        json!({"resource": "https://mcp.example.com", "authorization_servers": [format!("{ISSUER}/t")]}),
    );
    fixture.network.respond_json(&format!("GET {ISSUER}/t/.well-known/openid-configuration"), {
        let mut metadata = metadata(ISSUER);
        metadata["issuer"] = format!("{ISSUER}/t").into();
        metadata["authorization_response_iss_parameter_supported"] = false.into();
        metadata
    });
    let fixture = Fixture {
        browser: TestBrowser::new(|query| vec![format!("code=c&state={}", query["state"])]),
        ..fixture
    };
    assert_eq!(fixture.first_token().unwrap(), "token-1");
    assert_eq!(
        fixture.network.lines()[..5],
        [
            SERVER_METADATA,
            ROOT_METADATA,
            "GET https://auth.example.org/.well-known/oauth-authorization-server/t",
            "GET https://auth.example.org/.well-known/openid-configuration/t",
            "GET https://auth.example.org/t/.well-known/openid-configuration",
        ]
    );
    assert_eq!(fixture.browser.opened()[0]["resource"], "https://mcp.example.com");
    assert_eq!(fixture.forms()[0]["resource"], "https://mcp.example.com");
}

#[test]
fn metadata_of_another_server_is_refused() {
    for resource in
        ["https://evil.example.com/mcp", "https://mcp.example.com/other", "http://mcp.example.com/mcp", ""]
    {
        let fixture = Fixture::new();
        fixture
            .network
            .respond_json(SERVER_METADATA, json!({"resource": resource, "authorization_servers": [ISSUER]}));
        assert!(fixture.login_error().contains("not https://mcp.example.com/mcp"), "{resource}");
        assert_eq!(fixture.network.lines(), [SERVER_METADATA], "{resource}");
        assert!(fixture.browser.opened().is_empty());
    }
}

#[test]
fn issuer_of_metadata_must_match() {
    for issuer in ["https://attacker.example", "https://auth.example.org/", "https://AUTH.example.org", ""] {
        let fixture = Fixture::new();
        let mut document = metadata(ISSUER);
        document["issuer"] = issuer.into();
        fixture.network.respond_json(ISSUER_METADATA, document);
        assert!(fixture.login_error().contains("not of https://auth.example.org"), "{issuer}");
        assert!(fixture.browser.opened().is_empty() && fixture.network.received("POST").is_empty());
    }
}

#[test]
fn issuer_without_pkce_is_refused() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let fixture = Fixture::new();
        let mut document = metadata(ISSUER);
        document["code_challenge_methods_supported"] = methods;
        fixture.network.respond_json(ISSUER_METADATA, document);
        assert!(fixture.login_error().contains("PKCE"));
    }
}

#[test]
fn endpoints_must_be_public_https() {
    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://auth.example.org/x",
            "http://127.0.0.1:6379/",
            "https://169.254.169.254/x",
        ] {
            let fixture = Fixture::new();
            let mut document = metadata(ISSUER);
            document[name] = bad.into();
            fixture.network.respond_json(ISSUER_METADATA, document);
            let message = fixture.login_error();
            assert!(message.contains("endpoint: "), "{message}");
            assert!(
                fixture.browser.opened().is_empty() && fixture.network.received("POST").is_empty(),
                "{name} {bad}"
            );
        }
    }
}

#[test]
fn documents_are_not_fetched_from_private_hosts() {
    let fixture = Fixture::new();
    let message = challenge("resource_metadata=\"http://169.254.169.254/latest/meta-data\"");
    assert_eq!(renew(&fixture.authorizer(), None, 401, &message).unwrap(), "token-1");
    assert!(fixture.network.received("GET http:").is_empty(), "the usual places do");
    for issuer in [
        "http://localhost:6379",
        "https://10.0.0.1",
        "http://auth.example.org",
        "https://auth.example.org/?x",
        "nonsense",
    ] {
        let fixture = Fixture::new();
        fixture
            .network
            .respond_json(SERVER_METADATA, json!({"resource": SERVER, "authorization_servers": [issuer]}));
        assert!(fixture.login_error().contains("cannot be used"), "{issuer}");
        assert_eq!(fixture.network.lines(), [SERVER_METADATA], "{issuer}");
    }
    for reach in fixture.network.reaches.lock().unwrap().iter() {
        assert_eq!((reach.inner.as_slice(), reach.public), (["mcp.example.com".to_owned()].as_slice(), true));
    }
}

#[test]
fn redirect_is_followed_only_within_its_origin() {
    let fixture = Fixture::new();
    fixture.network.respond_with(SERVER_METADATA, |_| (307, "/there".to_owned()));
    fixture.network.respond_json(
        "GET https://mcp.example.com/there",
        json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
    );
    assert_eq!(fixture.first_token().unwrap(), "token-1");
    let fixture = Fixture::new();
    fixture.network.respond_with(ISSUER_METADATA, |_| (302, "https://evil.example/metadata".to_owned()));
    assert!(fixture.login_error().contains("it redirects to another origin, https://evil.example/metadata"));
    let fixture = Fixture::new();
    fixture
        .network
        .respond_with(ISSUER_METADATA, |_| (302, "/.well-known/oauth-authorization-server".to_owned()));
    assert!(fixture.login_error().contains("it redirects more than"));
}

#[test]
fn private_host_error_says_how_to_allow_it() {
    let fixture = Fixture::new();
    fixture.network.respond_status(ISSUER_METADATA, 1, json!({}));
    let message = fixture.login_error();
    assert!(message.contains("add it to the server's hosts") && !message.contains("--network"), "{message}");
}

#[test]
fn first_usable_issuer_is_used() {
    let fixture = Fixture::new();
    fixture.network.respond_json(
        SERVER_METADATA,
        json!({"resource": SERVER, "authorization_servers": ["https://gone.example", ISSUER]}),
    );
    assert_eq!(fixture.first_token().unwrap(), "token-1");
    let fixture = Fixture::new();
    fixture.network.respond_json(SERVER_METADATA, json!({"resource": SERVER}));
    assert!(fixture.login_error().contains("names no authorization server"));
}

#[test]
fn host_is_its_own_issuer_without_server_metadata() {
    let fixture = Fixture::with(TestBrowser::new(|query| vec![format!("code=c&state={}", query["state"])]));
    fixture.network.respond_status(SERVER_METADATA, 404, json!({}));
    let mut document = metadata("https://mcp.example.com");
    document["issuer"] = "https://mcp.example.com/".into();
    document["token_endpoint"] = "https://mcp.example.com/oauth/token".into();
    document["authorization_response_iss_parameter_supported"] = json!(null);
    fixture
        .network
        .respond_json("GET https://mcp.example.com/.well-known/oauth-authorization-server", document);
    fixture.network.respond_json("POST https://mcp.example.com/register", json!({"client_id": "c"}));
    fixture.network.respond_json("POST https://mcp.example.com/oauth/token", token("old-way", None));
    assert_eq!(fixture.first_token().unwrap(), "old-way");
    assert_eq!(fixture.browser.opened()[0]["resource"], SERVER);
}

#[test]
fn fixed_paths_are_used_without_any_metadata() {
    let fixture = Fixture::with(TestBrowser::new(|query| vec![format!("code=c&state={}", query["state"])]));
    // Hosts that have a page for every address describe nothing either.
    fixture.network.respond_with(SERVER_METADATA, |_| (200, "<html>welcome</html>".to_owned()));
    fixture.network.respond_json(ROOT_METADATA, json!({"status": "ok"}));
    fixture.network.respond_json(
        "POST https://mcp.example.com/register",
        json!({"client_id": "c", "client_secret": "hush"}),
    );
    fixture.network.respond_json("POST https://mcp.example.com/token", token("older", None));
    assert_eq!(fixture.first_token().unwrap(), "older");
    assert_eq!(fixture.browser.opened.lock().unwrap()[0].path(), "/authorize");
}

#[test]
fn server_error_is_not_taken_for_missing_metadata() {
    for status in [500, 503, 0] {
        let fixture = Fixture::new();
        fixture.network.respond_status(SERVER_METADATA, status, json!({}));
        assert!(fixture.login_error().contains("was not found"), "{status}");
        assert!(fixture.browser.opened().is_empty() && fixture.network.received("POST").is_empty());
    }
}

#[test]
fn invalid_documents_are_errors() {
    for body in ["", "[]", "null", "7", "{\"resource\":7}", "{\"resource\":", "\u{feff}{}"] {
        for line in [SERVER_METADATA, ISSUER_METADATA] {
            let fixture = Fixture::new();
            fixture.network.respond_with(line, |_| (200, body.to_owned()));
            assert!(fixture.first_token().is_err(), "{line} {body}");
        }
    }
    let fixture = Fixture::new();
    let deep = "[".repeat(100_000);
    fixture.network.respond_with(ISSUER_METADATA, move |_| (200, deep.clone()));
    assert!(fixture.login_error().contains("not JSON"));
    let fixture = Fixture::new();
    fixture.network.respond_with(ISSUER_METADATA, move |_| (200, "x".repeat(300 * 1024)));
    assert!(fixture.login_error().contains("more than"));
}
