//! Removes credentials from settings: INI, TOML and YAML, one line at a time.

/// Parts of the names of settings that hold credentials, without `-` and `_`.
const CREDENTIAL_NAMES: &[&str] = &["token", "password", "passwd", "secret", "authident"];
/// How such names end.
const CREDENTIAL_NAME_END: &str = "key";
/// Whole names of settings that hold credentials, without `-` and `_`.
const CREDENTIAL_NAMES_EXACT: &[&str] = &["auth", "username"];
/// What begins and ends a text of several lines in TOML.
const TEXT_QUOTES: &[&str] = &["\"\"\"", "'''"];
const KEY_BEGIN: &str = "-----BEGIN";
const KEY_END: &str = "-----END";

/// The text without tokens, passwords, keys, and users in URLs.
pub(crate) fn without_credentials(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut in_key = false;
    // The quotes that end the text of a setting that was removed.
    let mut quotes: Option<&str> = None;
    // The indentation of a setting that was removed: deeper lines belong to it.
    let mut removed: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let indentation = line.len() - line.trim_start().len();
        if let Some(end) = quotes {
            quotes = quotes.filter(|_| !line.contains(end));
            continue;
        }
        if in_key || line.contains(KEY_BEGIN) {
            in_key = !line.contains(KEY_END) && !line.contains("\\n");
            continue;
        }
        if removed.is_some_and(|removed| indentation > removed && !line.trim().is_empty()) {
            continue;
        }
        removed = None;
        if let Some(line) = without_values(line) {
            result.push_str(&without_users(&line));
        } else {
            removed = Some(indentation);
            quotes = TEXT_QUOTES.iter().copied().find(|quotes| line.matches(quotes).count() == 1);
        }
    }
    result
}

/// A line without the values of credentials; `None` if it only sets one.
fn without_values(line: &str) -> Option<String> {
    let mut result = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(start) = rest.find(is_name_char) {
        let end = rest[start..].find(|char| !is_name_char(char)).map_or(rest.len(), |end| start + end);
        let (name, after) = (&rest[start..end], rest[end..].trim_start_matches(['"', '\'', ' ', '\t']));
        let is_set = after.starts_with('=') || (after.starts_with(':') && !after.starts_with("://"));
        if !is_set || !is_credential(name) {
            result.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let before = format!("{result}{}", &rest[..start]);
        if !before.contains(['=', '{', ',']) {
            return None;
        }
        // One of several settings in the line.
        let value = &after[1..];
        result = format!("{before}{name} = \"\"");
        rest = &value[end_of_value(value)..];
    }
    result.push_str(rest);
    Some(result)
}

/// Where a value ends: at a comma, a closing brace or the end of the line, outside of quotes.
fn end_of_value(value: &str) -> usize {
    let mut quote = None;
    for (at, char) in value.char_indices() {
        match (quote, char) {
            (None, '"' | '\'') => quote = Some(char),
            (Some(open), char) if open == char => quote = None,
            (None, ',' | '}' | '\n') => return at,
            _ => {}
        }
    }
    value.len()
}

/// A line without the users and passwords of URLs.
fn without_users(line: &str) -> String {
    let is_end =
        |char: char| char.is_whitespace() || matches!(char, '"' | '\'' | ',' | '=' | '<' | '>' | '[' | ']');
    let mut result = String::with_capacity(line.len());
    for word in line.split_inclusive(is_end) {
        let (scheme, authority) = word.find("://").map_or(("", word), |at| word.split_at(at + 3));
        let host_end = authority.find(['/', '?', '#']).unwrap_or(authority.len());
        let user_end = authority[..host_end].rfind('@');
        // Without a scheme, `user:password@host` is one, and `@scope:registry` is none.
        let is_user = |end: &usize| !scheme.is_empty() || authority[..*end].contains(':');
        let host = user_end.filter(is_user).map_or(authority, |end| &authority[end + 1..]);
        result.push_str(scheme);
        result.push_str(host);
    }
    result
}

fn is_name_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '-')
}

fn is_credential(name: &str) -> bool {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    name.ends_with(CREDENTIAL_NAME_END)
        || CREDENTIAL_NAMES_EXACT.contains(&name.as_str())
        || CREDENTIAL_NAMES.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_removed_and_registries_stay() {
        for (before, after) in [
            (
                "registry=https://npm.example/x\n//npm.example/x:_authToken=S\n",
                "registry=https://npm.example/x\n",
            ),
            (
                "@a:registry=https://u:S@npm.example/\n_auth = S\nalways-auth=true\n",
                "@a:registry=https://npm.example/\nalways-auth=true\n",
            ),
            ("//h/:_password=S\n//h/:username=me\n; token=S\nKEY=S\nfund=false", "fund=false"),
            (
                "[global]\nindex-url = https://me:S@pip.example/simple\nextra-index-url =\n    https://S@b.example/\n",
                "[global]\nindex-url = https://pip.example/simple\nextra-index-url =\n    https://b.example/\n",
            ),
            (
                "[registries.a]\nindex = \"sparse+https://u:S@c.example/\"\ntoken = \"S\"\n",
                "[registries.a]\nindex = \"sparse+https://c.example/\"\n",
            ),
            (
                "a = { token = \"S,}\", index = \"https://c.example/\" }\n",
                "a = { token = \"\", index = \"https://c.example/\" }\n",
            ),
            (
                "registries.a = { index = 'https://c.example/', token = 'S' }",
                "registries.a = { index = 'https://c.example/', token = \"\"}",
            ),
            ("credential-provider = [\"cargo:token\"]\n", "credential-provider = [\"cargo:token\"]\n"),
            ("proxy = \"me:S@proxy.example:80\"\n", "proxy = \"proxy.example:80\"\n"),
            (
                "npmRegistryServer: \"https://y.example\"\nnpmAuthToken: |\n  S\n  S\nnpmRegistries:\n  \"//y.example\":\n    npmAuthIdent: \"me:S\"\n    npmAlwaysAuth: true\n",
                "npmRegistryServer: \"https://y.example\"\nnpmRegistries:\n  \"//y.example\":\n    npmAlwaysAuth: true\n",
            ),
            ("key=\"-----BEGIN PRIVATE KEY-----\\nS\\n-----END PRIVATE KEY-----\"\nca=null\n", "ca=null\n"),
            ("token = \"\"\"\nS\n\"\"\"\na = 1\n", "a = 1\n"),
            ("cert = '''\n-----BEGIN X-----\nS\n-----END X-----\n'''\n", "cert = '''\n'''\n"),
            (
                "GOPROXY=https://me:S@go.example,direct\nGOPRIVATE=*.example\n",
                "GOPROXY=https://go.example,direct\nGOPRIVATE=*.example\n",
            ),
        ] {
            assert_eq!(without_credentials(before), after);
        }
    }

    #[test]
    fn mutated_settings_stay_lines_of_settings() {
        let seeds: [&[u8]; 4] = [
            b"registry=https://u:p@npm.example/\n//npm.example/:_authToken=S\n",
            b"[a]\nb = { token = \"S\", index = 'https://c.example/' } # c\n",
            b"npmAuthToken: |\n  S\na: \"me:S@h:1\"\n",
            b"key=\"-----BEGIN X-----\\nS\"\ntoken = '''\nS\n'''\n",
        ];
        haft_fuzz::check(&seeds, |bytes| {
            let text = String::from_utf8_lossy(bytes);
            let result = without_credentials(&text);
            assert!(result.lines().count() <= text.lines().count());
        });
    }
}
