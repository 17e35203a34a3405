//! Tokens on disk.

use std::os::unix::fs::PermissionsExt as _;

use haft_tool::{Secret, json};

use haft_mcp::client::oauth::RegisteredClient;

use super::*;

#[test]
fn tokens_are_stored_privately() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    let folder = fixture.folder.path().join("haft");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(fixture.authorizer().token().unwrap(), "token-1");
    let entry = &fixture.stored()["servers"][SERVER];
    assert_eq!((&entry["issuer"], &entry["tokens"]["refresh"]), (&json!(ISSUER), &json!("refresh-1")));
}

#[test]
fn debug_output_shows_no_token() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    let authorizer = fixture.authorizer();
    authorizer.token().unwrap();
    let printed = format!("{authorizer:?} {:?}", fixture.options);
    for secret in ["token-1", "refresh-1", "the-code"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn entries_of_other_servers_are_kept() {
    let fixture = Fixture::new();
    let folder = fixture.folder.path().join("haft");
    std::fs::create_dir(&folder).unwrap();
    let others = json!({"version": 1, "servers": {"https://other.example/": {"from": "another Haft"}}});
    std::fs::write(folder.join("oauth.json"), others.to_string()).unwrap();
    fixture.first_token().unwrap();
    assert_eq!(fixture.stored()["servers"]["https://other.example/"], json!({"from": "another Haft"}));
    let other = Authorizer::new(
        "https://mcp.example.com/other",
        http_factory(&fixture.network),
        TestBrowser::accepting(),
        &folder,
        OAuthOptions::default(),
    );
    assert_eq!(other.unwrap().token(), None);
}

#[test]
fn invalid_file_is_empty_and_newer_file_is_kept() {
    for broken in [
        "",
        "{",
        "[]",
        "{\"version\":\"x\"}",
        "{\"version\":1,\"servers\":{\"https://mcp.example.com/mcp\":7}}",
        "\0\0",
    ] {
        let fixture = Fixture::new();
        let folder = fixture.folder.path().join("haft");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("oauth.json"), broken).unwrap();
        assert_eq!(fixture.authorizer().token(), None, "{broken}");
        assert_eq!(fixture.first_token().unwrap(), "token-1", "{broken}");
    }
    let fixture = Fixture::new();
    let file = fixture.folder.path().join("haft/oauth.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{\"version\":2,\"servers\":{}}").unwrap();
    assert!(fixture.login_error().contains("newer version of Haft"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"version\":2,\"servers\":{}}");
}

#[test]
fn unwritable_store_is_reported() {
    let fixture = Fixture::new();
    std::fs::write(fixture.folder.path().join("haft"), "a file where the folder should be").unwrap();
    assert!(fixture.login_error().contains("haft"));
    assert!(fixture.browser.opened().is_empty(), "before the user is asked");
}

#[test]
fn secret_of_a_registered_client_is_not_stored() {
    let mut fixture = Fixture::new();
    let mut document = metadata(ISSUER);
    document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    fixture.network.respond_json(&format!("GET {ISSUER}/.well-known/oauth-authorization-server"), document);
    let registered = |id: &str, secret: &str| {
        let secret = Some(Secret::new(secret));
        Some(RegisteredClient { id: id.to_owned(), secret, issuer: None, redirect: None })
    };
    fixture.options.registered = registered("by-hand", "hush");
    fixture.first_token().unwrap();
    assert!(!fixture.stored().to_string().contains("hush"));
    fixture.options.registered = registered("by-hand", "changed");
    renew(&fixture.authorizer(), Some("token-1"), 401, &[]).unwrap();
    let secrets: Vec<_> = fixture.forms().iter().map(|form| form["client_secret"].clone()).collect();
    assert_eq!(secrets, ["hush", "changed"]);
    fixture.options.registered = registered("another", "new");
    renew(&fixture.authorizer(), Some("token-2"), 401, &[]).unwrap();
    let last = fixture.forms().pop().unwrap();
    assert_eq!((last["grant_type"].as_str(), last["client_id"].as_str()), ("authorization_code", "another"));
}

#[test]
fn token_is_not_sent_unencrypted() {
    let fixture = Fixture::new();
    fixture.first_token().unwrap();
    let file = fixture.folder.path().join("haft/oauth.json");
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace("https://mcp.example.com/mcp", "http://mcp.example.com/mcp");
    std::fs::write(&file, text).unwrap();
    let folder = fixture.folder.path().join("haft");
    let clear = Authorizer::new(
        "http://mcp.example.com/mcp",
        http_factory(&fixture.network),
        TestBrowser::accepting(),
        folder,
        OAuthOptions::default(),
    );
    let clear = clear.unwrap();
    assert_eq!(clear.token(), None);
    assert!(renew(&clear, None, 401, &[]).unwrap_err().message.contains("unencrypted"));
}
