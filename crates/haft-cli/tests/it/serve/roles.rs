//! What each role may do, for every route of the OpenAPI document.

use std::collections::BTreeMap;

use serde_json::json;

use crate::fixture::serve::{ACT, APPROVE, PROXY, ServeFixture, VIEW};

/// The POST routes other than `/rules/explain`, with the roles that they need.
const NEED_MORE: [(&str, &str); 8] = [
    ("post /api/v1/questions/{id}/answer", "approve"),
    ("post /api/v1/rules", "act"),
    ("post /api/v1/rules/remove", "act"),
    ("post /api/v1/runs", "act"),
    ("post /api/v1/sessions/{id}/interrupt", "act"),
    ("post /api/v1/sessions/{id}/prompt", "act"),
    ("post /api/v1/undo", "act"),
    // Only reads, but its body is too large for a URL.
    ("post /api/v1/undo/preview", "view"),
];

#[test]
fn every_route_refuses_lower_roles_and_no_token() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    let document = server.get("/openapi.json");
    let special: BTreeMap<&str, &str> = NEED_MORE.into_iter().collect();
    let mut seen = Vec::new();
    let order = [("none", ""), ("proxy", PROXY), ("view", VIEW), ("approve", APPROVE), ("act", ACT)];
    let rank = |role: &str| order.iter().position(|(name, _)| *name == role).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            let route = format!("{method} {path}");
            let needed = special.get(route.as_str()).copied().unwrap_or("view");
            assert!(
                method == "get" || special.contains_key(route.as_str()) || path.ends_with("/explain"),
                "{route}"
            );
            let target = path.replace("{id}", "424242").replace("{hash}", &"0".repeat(64));
            // Paths outside the API are not about sessions.
            let Some(target) = target.strip_prefix("/api/v1") else { continue };
            if target == "/events" {
                // Its answer never ends; the roles of its listeners are tested with questions.
                continue;
            }
            let body = (method == "post").then(|| json!({}));
            for (role, token) in order {
                let answer = server.api(token, &method.to_uppercase(), target, body.as_ref());
                let (status, why) = (answer.status, format!("{route} as {role}: {}", answer.text()));
                match (role, rank(role) >= rank(needed)) {
                    ("none", _) => assert!(matches!(status, 401 | 429), "{why}"),
                    (_, true) => assert!(matches!(status, 200 | 400 | 404 | 409), "{why}"),
                    (_, false) => {
                        assert_eq!(status, 403, "{why}");
                        // A token for the proxies is refused before the route is looked at.
                        let named = if role == "proxy" { "view" } else { needed };
                        assert!(
                            answer.message().contains(&format!("needs a token with the role {named};")),
                            "{why}"
                        );
                    }
                }
            }
            seen.push(route);
        }
    }
    for (route, _) in NEED_MORE {
        assert!(seen.iter().any(|seen| seen == route), "{route} is not in the document");
    }
}

#[test]
fn what_a_token_allows_is_said() {
    let fixture = ServeFixture::new();
    let server = fixture.serve();
    for (role, token) in [("view", VIEW), ("approve", APPROVE), ("act", ACT)] {
        assert_eq!(server.api(token, "GET", "/meta", None).json()["role"], role);
    }
    let meta = server.get("/meta");
    assert_eq!(meta["workspace"], fixture.workspace());
    assert_eq!(meta["version"], env!("CARGO_PKG_VERSION"));
}
