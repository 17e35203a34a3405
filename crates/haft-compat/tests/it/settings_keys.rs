//! Keys that Haft does not apply: known, unknown, restricting, and commands.

use std::collections::BTreeSet;

use haft_compat::settings::{KeyMeaning, KeyStatus, is_command_key, key_meaning, known_keys};

use crate::settings::parse;

#[test]
fn known_keys_are_told_from_unknown_ones_and_these_have_the_nearest_name() {
    let settings =
        parse(r#"{"theme": "dark", "permisions": {}, "sandbox": {"netwrk": {}, "ripgrep": {}}, "zzz": 1}"#);
    let found: Vec<_> = settings.other_keys.iter().map(|key| (key.name.as_str(), key.nearest())).collect();
    assert_eq!(
        found,
        [
            ("sandbox.netwrk", Some("sandbox.network")),
            ("sandbox.ripgrep", None),
            ("theme", None),
            ("permisions", Some("permissions")),
            ("zzz", None),
        ]
    );
    assert!(matches!(
        settings.other_keys[2].status,
        KeyStatus::Known { meaning: KeyMeaning::Ignored, is_set: true }
    ));
    assert_eq!((settings.other_keys[3].line, settings.other_keys[3].column), (1, 19));
}

#[test]
fn a_key_that_restricts_is_told_unless_it_is_off() {
    let settings =
        parse(r#"{"availableModels": [], "disableSideloadFlags": false, "allowedProviders": ["anthropic"]}"#);
    let restricting: Vec<_> = settings.other_keys.iter().filter(|key| key.restricts()).collect();
    assert_eq!(
        restricting.iter().map(|key| key.name.as_str()).collect::<Vec<_>>(),
        ["availableModels", "allowedProviders"]
    );
    assert_eq!(settings.other_keys.len(), 3);
}

#[test]
fn a_restriction_of_what_haft_does_not_have_holds_anyway() {
    let settings = parse(r#"{"disableRemoteControl": true, "permissions": {"disableAutoMode": "disable"}}"#);
    assert!(settings.other_keys.iter().all(|key| !key.restricts()));
    assert_eq!(key_meaning("disableRemoteControl"), Some(KeyMeaning::HoldsAnyway));
}

#[test]
fn commands_of_settings_are_listed() {
    for name in ["apiKeyHelper", "statusLine", "awsAuthRefresh", "policyHelper", "hooks", "sandbox.ripgrep"] {
        assert!(is_command_key(name), "{name}");
        assert!(key_meaning(name).is_some(), "{name}");
    }
    assert!(!is_command_key("model") && !is_command_key("ripgrep"));
}

#[test]
fn the_table_has_each_key_once() {
    let names: Vec<_> = known_keys().map(|(name, _)| name).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    assert!(names.iter().filter(|name| !name.contains('.')).count() >= 180);
}
