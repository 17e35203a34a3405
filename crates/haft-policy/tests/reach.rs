//! What a call may reach, and who has to say so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use haft_policy::{Behavior, Decided, Mode, Policy, Request, Rule, RuleTools, Rules, decide};
use haft_tool::{Effect, Network, Reach, Scope};

fn policy(rules: &[(Behavior, &str)], network: Network, endpoints: &[&str]) -> Policy {
    let mut all = Rules::default();
    for (behavior, text) in rules {
        all.push(Rule::parse(*behavior, text, "test:1", Path::new("/w"), &RuleTools::default()).unwrap());
    }
    let endpoints = endpoints.iter().map(|&host| host.to_owned()).collect();
    let scope = Scope { network, endpoints, ..Scope::of("/w") };
    Policy {
        mode: Mode::Scoped,
        rules: all,
        scope: scope.into(),
        commands_reversible: true,
        user_request: false,
    }
}

fn domains(list: &[&str]) -> Network {
    Network::Domains(list.iter().map(|&domain| domain.to_owned()).collect())
}

/// The verdict in a word, and what the call may then reach.
fn decided(host: &str, policy: &Policy) -> (&'static str, Reach) {
    match decide(Request { tool: "WebFetch", effects: &[Effect::Reach { host: host.to_owned() }] }, policy) {
        Decided::Allow(scope, _) => ("allow", scope.reach.clone()),
        Decided::Ask(scope, _) => ("ask", scope.reach.clone()),
        Decided::Deny(_) => ("deny", Reach::default()),
    }
}

#[track_caller]
fn says(expected: &str, host: &str, policy: &Policy) {
    assert_eq!(decided(host, policy).0, expected, "{host}");
}

use Behavior::{Allow, Ask, Deny};

#[test]
fn no_host_is_reached_without_a_rule() {
    let policy = policy(&[], Network::None, &[]);
    says("ask", "example.com", &policy);
    says("ask", "127.0.0.1:8080", &policy);
    let (_, reach) = decided("example.com", &policy);
    assert_eq!(reach, Reach { hosts: vec!["example.com".into()], ..Reach::default() });
}

#[test]
fn a_rule_names_a_domain_and_what_is_below_it() {
    let policy = policy(
        &[(Allow, "WebFetch(domain:Example.com)"), (Deny, "WebFetch(domain:bad.example.com)")],
        Network::None,
        &[],
    );
    says("allow", "example.com", &policy);
    says("allow", "docs.EXAMPLE.com.", &policy);
    says("allow", "example.com:8443", &policy);
    says("ask", "notexample.com", &policy);
    says("ask", "example.com.evil.org", &policy);
    says("deny", "bad.example.com", &policy);
    says("deny", "very.bad.example.com:81", &policy);
    let (_, reach) = decided("example.com", &policy);
    assert_eq!(
        (reach.public, reach.never),
        (false, vec!["bad.example.com".to_owned(), "*.bad.example.com".to_owned()])
    );
}

#[test]
fn naming_the_tool_lets_it_to_public_hosts_only() {
    let policy = policy(&[(Allow, "WebFetch"), (Ask, "WebFetch(domain:ask.example)")], Network::None, &[]);
    says("allow", "example.com", &policy);
    assert!(decided("example.com", &policy).1.public);
    says("ask", "ask.example", &policy);
    for inner in [
        "127.0.0.1",
        "0x7f.1:80",
        "2852039166",
        "localhost:3000",
        "[::ffff:10.0.0.1]",
        "[fd00:ec2::254]",
        "no host",
    ] {
        says("ask", inner, &policy);
    }
}

#[test]
fn an_address_inside_needs_to_be_named() {
    let ruled = policy(
        &[(Allow, "WebFetch(domain:127.0.0.1)"), (Allow, "WebFetch(domain:localhost)")],
        Network::None,
        &[],
    );
    says("allow", "127.0.0.1:8080", &ruled);
    says("allow", "0x7f.1:8080", &ruled);
    says("allow", "localhost:8080", &ruled);
    says("ask", "127.0.0.2", &ruled);
    assert_eq!(
        decided("127.1:8080", &ruled).1.hosts,
        ["127.0.0.1:8080"],
        "the port that was asked for and no other"
    );
    let listed = policy(&[], domains(&["127.0.0.1:8080", "example.com"]), &[]);
    says("allow", "127.0.0.1:8080", &listed);
    says("allow", "localhost:8080", &listed);
    says("allow", "example.com", &listed);
    says("ask", "127.0.0.1:8081", &listed);
    says("ask", "localhost", &listed);
    says("ask", "www.example.com", &listed);
    let all = policy(&[], Network::All, &[]);
    says("allow", "example.com:8080", &all);
    says("ask", "169.254.169.254", &all);
}

#[test]
fn a_deny_rule_holds_against_other_spellings() {
    let policy =
        policy(&[(Allow, "WebFetch"), (Deny, "WebFetch(domain:127.0.0.1)")], domains(&["127.0.0.1:80"]), &[]);
    for host in ["127.0.0.1", "127.1", "0x7f000001:80", "[::ffff:127.0.0.1]", "localhost:3000"] {
        says("deny", host, &policy);
    }
}

#[test]
fn the_users_own_endpoints_are_reached_wherever_they_lead() {
    let policy = policy(&[], Network::None, &["search.internal:8080", "10.0.0.7"]);
    says("allow", "search.internal:8080", &policy);
    says("allow", "10.0.0.7", &policy);
    says("ask", "search.internal", &policy);
    says("ask", "10.0.0.7:22", &policy);
    assert_eq!(decided("search.internal:8080", &policy).1.inner, ["search.internal:8080"]);
    let one = decided("10.0.0.7", &policy).1;
    assert_eq!(
        (one.hosts, one.public),
        (vec!["10.0.0.7".to_owned()], false),
        "one endpoint does not open another"
    );
}

#[test]
fn a_call_that_declared_nothing_reaches_nothing() {
    let policy = policy(&[(Allow, "WebFetch")], Network::All, &["10.0.0.7"]);
    let Decided::Allow(scope, _) = decide(Request { tool: "WebFetch", effects: &[] }, &policy) else {
        unreachable!()
    };
    assert_eq!(scope.reach, Reach::default());
}

#[test]
fn a_rule_that_names_no_domain_is_refused_when_it_is_read() {
    for wrong in ["domain:", "domain:exa mple", "domain:a..b", "domain:010.0.0.1"] {
        assert!(
            Rule::parse(
                Allow,
                &format!("WebFetch({wrong})"),
                "test:1",
                Path::new("/w"),
                &RuleTools::default()
            )
            .is_err(),
            "{wrong}"
        );
    }
}
