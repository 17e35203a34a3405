//! Settings files: values, places, what is tolerated and what is reported.

use haft_compat::settings::{
    ClaudeSettings, CredentialAccess, DefaultMode, MAX_SETTINGS_BYTES, McpServerPattern, SkillVisibility,
};

pub(crate) fn parse(text: &str) -> ClaudeSettings {
    ClaudeSettings::parse(text.as_bytes()).unwrap()
}

fn problems(settings: &ClaudeSettings) -> Vec<String> {
    settings.problems.iter().map(ToString::to_string).collect()
}

const EVERY_KEY: &str = r#"{
  "permissions": {
    "allow": ["Bash(git log:*)"], "ask": ["Bash(git push *)"], "deny": ["Read(./.env)", "WebFetch"],
    "defaultMode": "acceptEdits", "additionalDirectories": ["../docs"],
    "disableBypassPermissionsMode": "disable", "blockReadsOutsideWorkingDirectories": true,
    "blockWritesOutsideWorkingDirectories": false, "denyInsteadOfPrompting": true
  },
  "env": {"A": "1", "N": 2, "B": true},
  "model": "opus", "fallbackModel": ["sonnet", "haiku"],
  "sandbox": {
    "enabled": true, "failIfUnavailable": true, "autoAllowBashIfSandboxed": true,
    "allowUnsandboxedCommands": false, "excludedCommands": ["docker *"],
    "network": {
      "allowedDomains": ["*.example.com"], "deniedDomains": ["bad.example.com"], "strictAllowlist": true,
      "allowManagedDomainsOnly": true, "allowUnixSockets": ["/run/x"], "allowAllUnixSockets": false,
      "allowLocalBinding": true
    },
    "filesystem": {
      "allowWrite": ["/w"], "denyWrite": ["/dw"], "denyRead": ["/dr"], "allowRead": ["/r"],
      "allowManagedReadPathsOnly": true
    },
    "credentials": {
      "files": [{"path": "~/.netrc", "mode": "mask"}],
      "envVars": [{"name": "TOKEN", "mode": "deny"}]
    }
  },
  "enabledMcpjsonServers": ["a"], "disabledMcpjsonServers": ["b"], "enableAllProjectMcpServers": true,
  "allowedMcpServers": [{"serverName": "a"}, {"serverCommand": ["npx", "b"]}],
  "deniedMcpServers": [{"serverUrl": "https://*.example.com/*"}],
  "disableAllHooks": true, "allowManagedHooksOnly": true, "allowManagedPermissionRulesOnly": true,
  "bashOutputMaxChars": 5000, "claudeMdExcludes": ["**/vendor/**"],
  "skillOverrides": {"pdf": "name-only"}, "autoMemoryEnabled": false
}"#;

#[test]
fn every_applied_key_is_read() {
    let settings = parse(EVERY_KEY);
    assert_eq!(problems(&settings), [""; 0]);
    assert_eq!(settings.other_keys, []);
    let permissions = &settings.permissions;
    assert_eq!(permissions.allow[0].value.rule, "Bash(git log:*)");
    assert_eq!(permissions.ask[0].value.rule, "Bash(git push *)");
    assert_eq!(permissions.deny.len(), 2);
    assert_eq!(permissions.default_mode.as_ref().unwrap().value, DefaultMode::AcceptEdits);
    assert_eq!(permissions.additional_directories[0].value, "../docs");
    assert!(permissions.disable_bypass_permissions_mode.as_ref().unwrap().value);
    assert!(permissions.block_reads_outside_working_directories.as_ref().unwrap().value);
    assert!(!permissions.block_writes_outside_working_directories.as_ref().unwrap().value);
    assert!(permissions.deny_instead_of_prompting.as_ref().unwrap().value);
    let env: Vec<_> = settings.env.iter().map(|it| (it.name.as_str(), it.value.value.as_str())).collect();
    assert_eq!(env, [("A", "1"), ("N", "2"), ("B", "true")]);
    assert_eq!(settings.model.unwrap().value, "opus");
    assert_eq!(settings.fallback_model.len(), 2);
    let sandbox = &settings.sandbox;
    assert!(sandbox.enabled.as_ref().unwrap().value && sandbox.fail_if_unavailable.as_ref().unwrap().value);
    assert!(!sandbox.allow_unsandboxed_commands.as_ref().unwrap().value);
    assert_eq!(sandbox.excluded_commands[0].value, "docker *");
    assert_eq!(sandbox.network.denied_domains[0].value, "bad.example.com");
    assert!(sandbox.network.strict_allowlist.as_ref().unwrap().value);
    assert_eq!(sandbox.filesystem.deny_read[0].value, "/dr");
    assert_eq!(sandbox.credentials.files[0].value.access, CredentialAccess::Mask);
    assert_eq!(sandbox.credentials.env_vars[0].value.name, "TOKEN");
    let allowed = settings.allowed_mcp_servers.unwrap();
    assert_eq!(allowed[1].value, McpServerPattern::Command(vec!["npx".into(), "b".into()]));
    assert_eq!(settings.denied_mcp_servers[0].value, McpServerPattern::Url("https://*.example.com/*".into()));
    assert!(settings.enable_all_project_mcp_servers.unwrap().value);
    assert!(settings.disable_all_hooks.unwrap().value);
    assert_eq!(settings.bash_output_max_chars.unwrap().value, 5000);
    assert_eq!(settings.skill_overrides[0].visibility.value, SkillVisibility::NameOnly);
    assert!(!settings.auto_memory_enabled.unwrap().value);
}

#[test]
fn every_value_has_its_line_and_column() {
    let settings = parse("{\n  \"permissions\": {\"deny\": [\n    \"é\", \"Bash\"]},\n \"model\":\t\"x\"}");
    let deny = &settings.permissions.deny;
    assert_eq!((deny[0].line, deny[0].column), (3, 5));
    assert_eq!((deny[1].line, deny[1].column), (3, 10), "columns count characters");
    let model = settings.model.unwrap();
    assert_eq!((model.line, model.column), (4, 11));
}

#[test]
fn a_blank_file_and_a_byte_order_mark_are_accepted() {
    assert_eq!(parse(""), ClaudeSettings::default());
    assert_eq!(parse(" \n"), ClaudeSettings::default());
    assert_eq!(parse("\u{feff}{\"model\": \"x\"}").model.unwrap().value, "x");
}

#[test]
fn null_counts_as_absent() {
    let settings =
        parse(r#"{"permissions": null, "model": null, "hooks": {"Stop": null}, "nonsense": null}"#);
    assert_eq!(problems(&settings), [""; 0]);
    assert_eq!(settings.other_keys, []);
}

#[test]
fn comments_and_trailing_commas_are_accepted_and_reported() {
    let settings = parse("{\n  // mine\n  \"permissions\": {\"deny\": [\"Bash\",]},\n}");
    assert_eq!(settings.permissions.deny[0].value.rule, "Bash");
    let place = settings.not_strict_json.unwrap();
    assert_eq!(place.line, 2);
    assert!(parse("{}").not_strict_json.is_none());
}

#[test]
fn extensions_beyond_comments_and_trailing_commas_are_errors() {
    for text in [
        "{model: \"x\"}",
        "{'model': \"x\"}",
        "{\"a\": 1 \"b\": 2}",
        "{\"a\": NaN}",
        "[1",
        "{} {}",
        "{\"a\"}",
    ] {
        let error = ClaudeSettings::parse(text.as_bytes()).unwrap_err();
        assert!(!error.may_hold_deny_rules, "{text}");
        assert_eq!(error.line, 1, "{text}");
    }
}

#[test]
fn a_broken_file_says_where_and_whether_it_may_hold_deny_rules() {
    let error = ClaudeSettings::parse(b"{\n  \"permissions\": {\"deny\": [\"Bash\"]\n").unwrap_err();
    assert!(error.may_hold_deny_rules);
    assert!(error.line >= 2, "{error}");
    let hidden = ClaudeSettings::parse(br#"{"permissions": {"\u0064eny": ["Bash"]"#).unwrap_err();
    assert!(hidden.may_hold_deny_rules, "an escape may spell it");
    let utf16: Vec<u8> = "{\"deny\"".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = ClaudeSettings::parse(&[&b"\xff\xfe"[..], &utf16].concat()).unwrap_err();
    assert!(error.may_hold_deny_rules && error.why.contains("UTF-8"), "{error}");
}

#[test]
fn a_key_that_occurs_twice_is_an_error_because_one_of_the_two_would_be_lost() {
    let text = "{\"permissions\": {\"deny\": [\"Bash\"],\n \"deny\": []}}";
    let error = ClaudeSettings::parse(text.as_bytes()).unwrap_err();
    assert_eq!((error.line, error.column), (2, 2));
    assert!(error.may_hold_deny_rules);
}

#[test]
fn huge_and_deep_files_are_errors() {
    let error = ClaudeSettings::parse(&vec![b' '; MAX_SETTINGS_BYTES + 1]).unwrap_err();
    assert!(error.why.contains("4 MiB"), "{error}");
    let deep = "[".repeat(100_000);
    assert!(ClaudeSettings::parse(deep.as_bytes()).is_err());
    assert!(ClaudeSettings::parse(b"[]").is_err(), "the file must be an object");
}

#[test]
fn a_wrong_type_is_a_problem_and_leaves_the_rest() {
    let text =
        r#"{"model": 5, "permissions": {"allow": "Bash", "deny": ["Read", 7], "ask": {}}, "sandbox": []}"#;
    let settings = parse(text);
    assert_eq!(settings.permissions.deny.len(), 1);
    let lost: Vec<_> = settings.lost_restrictions().map(|problem| problem.key.as_str()).collect();
    assert_eq!(lost, ["permissions.ask", "permissions.deny", "sandbox"]);
    let all: Vec<_> = settings.problems.iter().map(|problem| problem.key.as_str()).collect();
    assert!(all.contains(&"model") && all.contains(&"permissions.allow"), "{all:?}");
    assert_eq!(problems(&settings)[0], "1:39: permissions.allow: must be a list, not a string");
}

#[test]
fn a_rule_may_be_an_object_with_examples() {
    let text = r#"{"permissions": {"deny": [
        "Bash(rm *)",
        {"rule": "Bash(git push *)", "match": ["git push origin"], "not_match": ["git pull", "git log"]},
        {"rul": "Bash"}
    ]}}"#;
    let settings = parse(text);
    let deny = &settings.permissions.deny;
    assert_eq!(deny.len(), 2);
    assert_eq!(deny[1].value.rule, "Bash(git push *)");
    assert_eq!(deny[1].line, 3);
    assert_eq!(deny[1].value.matches[0].value, "git push origin");
    assert_eq!(deny[1].value.does_not_match.len(), 2);
    assert_eq!(settings.lost_restrictions().count(), 1, "a deny rule without its text is lost");
}

#[test]
fn an_empty_allow_list_of_servers_is_not_the_same_as_none() {
    assert_eq!(parse(r#"{"allowedMcpServers": []}"#).allowed_mcp_servers, Some(Vec::new()));
    assert_eq!(parse("{}").allowed_mcp_servers, None);
    let settings =
        parse(r#"{"deniedMcpServers": [{"serverName": "a", "serverUrl": "b"}, {}, {"name": "c"}]}"#);
    assert_eq!(settings.denied_mcp_servers, []);
    assert_eq!(settings.lost_restrictions().count(), 3);
}

#[test]
fn a_credential_whose_mode_is_not_understood_is_denied() {
    let text =
        r#"{"sandbox": {"credentials": {"files": [{"path": "/a", "mode": "hide"}, {"mode": "deny"}]}}}"#;
    let settings = parse(text);
    let files = &settings.sandbox.credentials.files;
    assert_eq!(files.len(), 1);
    assert_eq!(files[0].value.access, CredentialAccess::Deny);
    assert_eq!(settings.lost_restrictions().count(), 2);
}

#[test]
fn names_that_no_variable_can_have_are_problems() {
    let settings = parse(r#"{"env": {"": "1", "A=B": "2", "C": "x\u0000y", "D": [], "E": ""}}"#);
    assert_eq!(settings.env.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["E"]);
    assert_eq!(settings.problems.len(), 4);
}
