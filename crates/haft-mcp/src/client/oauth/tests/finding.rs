//! From a server to who gives out its tokens.

use haft_tool::json;

use super::*;

const AT_PATH: &str = "GET https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const AT_ROOT: &str = "GET https://mcp.example.com/.well-known/oauth-protected-resource";
const HERE: &str = "GET https://auth.example.org/.well-known/oauth-authorization-server";

#[test]
fn a_server_says_where_it_describes_itself_and_nobody_looks_elsewhere() {
    let scene = Scene::new();
    scene.town.says(
        "GET https://mcp.example.com/custom.json",
        json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
    );
    let words = challenge("resource_metadata=\"https://mcp.example.com/custom.json\"");
    assert_eq!(renew(&scene.authorizer(), None, 401, &words).unwrap(), "token-1");
    assert_eq!(scene.town.lines()[..2], ["GET https://mcp.example.com/custom.json", HERE]);
}

#[test]
fn without_a_word_the_usual_places_are_looked_at_in_their_order() {
    let scene = Scene::new();
    scene.town.fails(AT_PATH, 404, json!({}));
    scene.town.says(
        AT_ROOT,
        json!({"resource": "https://mcp.example.com", "authorization_servers": [format!("{ISSUER}/t")]}),
    );
    scene.town.says(&format!("GET {ISSUER}/t/.well-known/openid-configuration"), {
        let mut metadata = metadata(ISSUER);
        metadata["issuer"] = format!("{ISSUER}/t").into();
        metadata["authorization_response_iss_parameter_supported"] = false.into();
        metadata
    });
    let scene =
        Scene { browser: Browser::new(|query| vec![format!("code=c&state={}", query["state"])]), ..scene };
    assert_eq!(scene.first().unwrap(), "token-1");
    assert_eq!(
        scene.town.lines()[..5],
        [
            AT_PATH,
            AT_ROOT,
            "GET https://auth.example.org/.well-known/oauth-authorization-server/t",
            "GET https://auth.example.org/.well-known/openid-configuration/t",
            "GET https://auth.example.org/t/.well-known/openid-configuration",
        ]
    );
    assert_eq!(scene.browser.opened()[0]["resource"], "https://mcp.example.com");
    assert_eq!(scene.forms()[0]["resource"], "https://mcp.example.com");
}

#[test]
fn another_servers_description_ends_it() {
    for resource in
        ["https://evil.example.com/mcp", "https://mcp.example.com/other", "http://mcp.example.com/mcp", ""]
    {
        let scene = Scene::new();
        scene.town.says(AT_PATH, json!({"resource": resource, "authorization_servers": [ISSUER]}));
        assert!(scene.refusal().contains("not of https://mcp.example.com/mcp"), "{resource}");
        assert_eq!(scene.town.lines(), [AT_PATH], "{resource}");
        assert!(scene.browser.opened().is_empty());
    }
}

#[test]
fn one_authorization_server_is_not_taken_for_another() {
    for issuer in ["https://attacker.example", "https://auth.example.org/", "https://AUTH.example.org", ""] {
        let scene = Scene::new();
        let mut document = metadata(ISSUER);
        document["issuer"] = issuer.into();
        scene.town.says(HERE, document);
        assert!(scene.refusal().contains("one authorization server is not taken for another"), "{issuer}");
        assert!(scene.browser.opened().is_empty() && scene.town.asked("POST").is_empty());
    }
}

#[test]
fn who_does_not_protect_codes_is_not_used() {
    for methods in [json!(null), json!([]), json!(["plain"])] {
        let scene = Scene::new();
        let mut document = metadata(ISSUER);
        document["code_challenge_methods_supported"] = methods;
        scene.town.says(HERE, document);
        assert!(scene.refusal().contains("PKCE"));
    }
}

#[test]
fn no_endpoint_leads_to_an_inner_place_or_runs_something() {
    for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
        for bad in [
            "javascript:alert(1)",
            "file:///etc/passwd",
            "http://auth.example.org/x",
            "http://127.0.0.1:6379/",
            "https://169.254.169.254/x",
        ] {
            let scene = Scene::new();
            let mut document = metadata(ISSUER);
            document[name] = bad.into();
            scene.town.says(HERE, document);
            let words = scene.refusal();
            assert!(words.contains("endpoint: "), "{words}");
            assert!(scene.browser.opened().is_empty() && scene.town.asked("POST").is_empty(), "{name} {bad}");
        }
    }
}

#[test]
fn no_document_is_fetched_from_an_inner_place() {
    let scene = Scene::new();
    let words = challenge("resource_metadata=\"http://169.254.169.254/latest/meta-data\"");
    assert_eq!(renew(&scene.authorizer(), None, 401, &words).unwrap(), "token-1");
    assert!(scene.town.asked("GET http:").is_empty(), "the usual places do");
    for issuer in [
        "http://localhost:6379",
        "https://10.0.0.1",
        "http://auth.example.org",
        "https://auth.example.org/?x",
        "nonsense",
    ] {
        let scene = Scene::new();
        scene.town.says(AT_PATH, json!({"resource": SERVER, "authorization_servers": [issuer]}));
        assert!(scene.refusal().contains("cannot be asked"), "{issuer}");
        assert_eq!(scene.town.lines(), [AT_PATH], "{issuer}");
    }
    for reach in scene.town.reaches.lock().unwrap().iter() {
        assert_eq!((reach.inner.as_slice(), reach.public), (["mcp.example.com".to_owned()].as_slice(), true));
    }
}

#[test]
fn a_redirect_is_followed_within_its_origin_and_no_further() {
    let scene = Scene::new();
    scene.town.answers(AT_PATH, |_| (307, "/there".to_owned()));
    scene.town.says(
        "GET https://mcp.example.com/there",
        json!({"resource": SERVER, "authorization_servers": [ISSUER]}),
    );
    assert_eq!(scene.first().unwrap(), "token-1");
    let scene = Scene::new();
    scene.town.answers(HERE, |_| (302, "https://evil.example/metadata".to_owned()));
    assert!(scene.refusal().contains("leads elsewhere, to https://evil.example/metadata"));
    let scene = Scene::new();
    scene.town.answers(HERE, |_| (302, "/.well-known/oauth-authorization-server".to_owned()));
    assert!(scene.refusal().contains("from redirect to redirect"));
}

#[test]
fn a_host_that_the_door_does_not_reach_can_be_named_as_the_users_own() {
    let scene = Scene::new();
    scene.town.fails(HERE, 1, json!({}));
    let told = scene.refusal();
    assert!(
        told.contains("leads to 10.0.0.1; if it is yours, name it") && !told.contains("--network"),
        "{told}"
    );
}

#[test]
fn the_first_authorization_server_that_can_be_used_is_used() {
    let scene = Scene::new();
    scene.town.says(
        AT_PATH,
        json!({"resource": SERVER, "authorization_servers": ["https://gone.example", ISSUER]}),
    );
    assert_eq!(scene.first().unwrap(), "token-1");
    let scene = Scene::new();
    scene.town.says(AT_PATH, json!({"resource": SERVER}));
    assert!(scene.refusal().contains("names nobody"));
}

#[test]
fn an_older_server_gives_out_its_tokens_itself() {
    let scene = Scene::with(Browser::new(|query| vec![format!("code=c&state={}", query["state"])]));
    scene.town.fails(AT_PATH, 404, json!({}));
    let mut document = metadata("https://mcp.example.com");
    document["issuer"] = "https://mcp.example.com/".into();
    document["token_endpoint"] = "https://mcp.example.com/oauth/token".into();
    document["authorization_response_iss_parameter_supported"] = json!(null);
    scene.town.says("GET https://mcp.example.com/.well-known/oauth-authorization-server", document);
    scene.town.says("POST https://mcp.example.com/register", json!({"client_id": "c"}));
    scene.town.says("POST https://mcp.example.com/oauth/token", token("old-way", None));
    assert_eq!(scene.first().unwrap(), "old-way");
    assert_eq!(scene.browser.opened()[0]["resource"], SERVER);
}

#[test]
fn an_older_server_that_describes_nothing_has_fixed_places() {
    let scene = Scene::with(Browser::new(|query| vec![format!("code=c&state={}", query["state"])]));
    // Hosts that have a page for every address describe nothing either.
    scene.town.answers(AT_PATH, |_| (200, "<html>welcome</html>".to_owned()));
    scene.town.says(AT_ROOT, json!({"status": "ok"}));
    scene
        .town
        .says("POST https://mcp.example.com/register", json!({"client_id": "c", "client_secret": "hush"}));
    scene.town.says("POST https://mcp.example.com/token", token("older", None));
    assert_eq!(scene.first().unwrap(), "older");
    assert_eq!(scene.browser.opened.lock().unwrap()[0].path(), "/authorize");
}

#[test]
fn a_server_that_is_broken_now_is_not_taken_for_an_older_one() {
    for status in [500, 503, 0] {
        let scene = Scene::new();
        scene.town.fails(AT_PATH, status, json!({}));
        assert!(scene.refusal().contains("could not be found"), "{status}");
        assert!(scene.browser.opened().is_empty() && scene.town.asked("POST").is_empty());
    }
}

#[test]
fn rude_documents_are_errors() {
    for body in ["", "[]", "null", "7", "{\"resource\":7}", "{\"resource\":", "\u{feff}{}"] {
        for line in [AT_PATH, HERE] {
            let scene = Scene::new();
            scene.town.answers(line, |_| (200, body.to_owned()));
            assert!(scene.first().is_err(), "{line} {body}");
        }
    }
    let scene = Scene::new();
    let deep = "[".repeat(100_000);
    scene.town.answers(HERE, move |_| (200, deep.clone()));
    assert!(scene.refusal().contains("no JSON"));
    let scene = Scene::new();
    scene.town.answers(HERE, move |_| (200, "x".repeat(300 * 1024)));
    assert!(scene.refusal().contains("more than"));
}
