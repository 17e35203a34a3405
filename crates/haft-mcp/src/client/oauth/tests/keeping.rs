//! Tokens on disk.

use std::os::unix::fs::PermissionsExt as _;

use haft_tool::{Secret, json};

use super::super::RegisteredClient;
use super::super::store::Store;
use super::*;

#[test]
fn tokens_are_for_their_user_alone_and_outlive_the_process() {
    let scene = Scene::new();
    scene.first().unwrap();
    let folder = scene.folder.path().join("haft");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    assert_eq!(scene.authorizer().token().unwrap(), "token-1");
    let entry = &scene.stored()["servers"][SERVER];
    assert_eq!((&entry["issuer"], &entry["tokens"]["refresh"]), (&json!(ISSUER), &json!("refresh-1")));
}

#[test]
fn nothing_that_is_printed_shows_a_token() {
    let scene = Scene::new();
    scene.first().unwrap();
    let authorizer = scene.authorizer();
    authorizer.token().unwrap();
    let entry = Store::new(&scene.folder.path().join("haft"), SERVER.to_owned()).entry().unwrap().unwrap();
    let printed = format!("{authorizer:?} {entry:?} {:?}", scene.options);
    for secret in ["token-1", "refresh-1", "the-code"] {
        assert!(!printed.contains(secret), "{printed}");
    }
}

#[test]
fn every_server_has_its_own_entry_and_nobody_elses_is_lost() {
    let scene = Scene::new();
    let folder = scene.folder.path().join("haft");
    std::fs::create_dir(&folder).unwrap();
    let others = json!({"version": 1, "servers": {"https://other.example/": {"from": "another Haft"}}});
    std::fs::write(folder.join("oauth.json"), others.to_string()).unwrap();
    scene.first().unwrap();
    assert_eq!(scene.stored()["servers"]["https://other.example/"], json!({"from": "another Haft"}));
    let other = Authorizer::new(
        "https://mcp.example.com/other",
        doors(&scene.town),
        Browser::willing(),
        &folder,
        OAuthOptions::default(),
    );
    assert_eq!(other.unwrap().token(), None);
}

#[test]
fn a_broken_file_is_an_empty_one_and_a_newer_one_is_left_alone() {
    for broken in [
        "",
        "{",
        "[]",
        "{\"version\":\"x\"}",
        "{\"version\":1,\"servers\":{\"https://mcp.example.com/mcp\":7}}",
        "\0\0",
    ] {
        let scene = Scene::new();
        let folder = scene.folder.path().join("haft");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("oauth.json"), broken).unwrap();
        assert_eq!(scene.authorizer().token(), None, "{broken}");
        assert_eq!(scene.first().unwrap(), "token-1", "{broken}");
    }
    let scene = Scene::new();
    let file = scene.folder.path().join("haft/oauth.json");
    std::fs::create_dir(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "{\"version\":2,\"servers\":{}}").unwrap();
    assert!(scene.refusal().contains("newer Haft"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{\"version\":2,\"servers\":{}}");
}

#[test]
fn tokens_that_cannot_be_kept_are_told_of() {
    let scene = Scene::new();
    std::fs::write(scene.folder.path().join("haft"), "a file where the folder should be").unwrap();
    assert!(scene.refusal().contains("haft"));
    assert!(scene.browser.opened().is_empty(), "before anybody is asked");
}

#[test]
fn a_secret_that_the_user_keeps_elsewhere_is_not_written_down_and_is_still_used() {
    let mut scene = Scene::new();
    let mut document = metadata(ISSUER);
    document["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    scene.town.says(&format!("GET {ISSUER}/.well-known/oauth-authorization-server"), document);
    let registered = |id: &str, secret: &str| {
        let secret = Some(Secret::new(secret));
        Some(RegisteredClient { id: id.to_owned(), secret, issuer: None, redirect: None })
    };
    scene.options.registered = registered("by-hand", "hush");
    scene.first().unwrap();
    assert!(!scene.stored().to_string().contains("hush"));
    scene.options.registered = registered("by-hand", "changed");
    renew(&scene.authorizer(), Some("token-1"), 401, &[]).unwrap();
    let secrets: Vec<_> = scene.forms().iter().map(|form| form["client_secret"].clone()).collect();
    assert_eq!(secrets, ["hush", "changed"]);
    scene.options.registered = registered("another", "new");
    renew(&scene.authorizer(), Some("token-2"), 401, &[]).unwrap();
    let last = scene.forms().pop().unwrap();
    assert_eq!((last["grant_type"].as_str(), last["client_id"].as_str()), ("authorization_code", "another"));
}

#[test]
fn no_token_crosses_the_network_in_the_clear() {
    let scene = Scene::new();
    scene.first().unwrap();
    let file = scene.folder.path().join("haft/oauth.json");
    let text = std::fs::read_to_string(&file)
        .unwrap()
        .replace("https://mcp.example.com/mcp", "http://mcp.example.com/mcp");
    std::fs::write(&file, text).unwrap();
    let folder = scene.folder.path().join("haft");
    let clear = Authorizer::new(
        "http://mcp.example.com/mcp",
        doors(&scene.town),
        Browser::willing(),
        folder,
        OAuthOptions::default(),
    );
    let clear = clear.unwrap();
    assert_eq!(clear.token(), None);
    assert!(renew(&clear, None, 401, &[]).unwrap_err().message.contains("in the clear"));
}
