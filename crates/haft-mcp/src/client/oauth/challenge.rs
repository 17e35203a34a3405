//! Parses `WWW-Authenticate`.

use super::scopes::Scopes;

const MAX_HEADERS: usize = 16;
const MAX_HEADER_BYTES: usize = 8 * 1024;

/// The relevant parameters of a server's challenges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// The URL of the server's metadata.
    pub(super) resource_metadata: Option<String>,
    /// The scopes that a token needs.
    pub(super) scopes: Option<Scopes>,
    /// `invalid_token`, `insufficient_scope`, ….
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads all `Bearer` challenges; the first of duplicate parameters counts.
    pub(super) fn read(headers: &[String]) -> Self {
        let mut challenge = Self::default();
        for header in headers.iter().take(MAX_HEADERS).filter(|header| header.len() <= MAX_HEADER_BYTES) {
            let mut is_bearer = false;
            for part in ChallengeParts(header) {
                match part {
                    ChallengePart::Scheme(scheme) => is_bearer = scheme.eq_ignore_ascii_case("bearer"),
                    ChallengePart::Parameter(name, value) if is_bearer => challenge.set(name, value),
                    ChallengePart::Parameter(..) => {}
                }
            }
        }
        challenge
    }

    fn set(&mut self, name: &str, value: String) {
        match name.to_ascii_lowercase().as_str() {
            "resource_metadata" => _ = self.resource_metadata.get_or_insert(value),
            "error" => _ = self.error.get_or_insert(value),
            "scope" => {
                let scopes = Scopes::parse(&value);
                if !scopes.is_empty() {
                    self.scopes.get_or_insert(scopes);
                }
            }
            _ => {}
        }
    }
}

enum ChallengePart<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// The schemes and parameters of one header, as far as they are valid.
struct ChallengeParts<'a>(&'a str);

impl<'a> Iterator for ChallengeParts<'a> {
    type Item = ChallengePart<'a>;

    fn next(&mut self) -> Option<ChallengePart<'a>> {
        let rest = self.0.trim_start_matches([' ', '\t', ',']);
        let word = rest.find(|char: char| !is_token(char)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(word);
        if word.is_empty() {
            return None;
        }
        let after = rest.trim_start_matches([' ', '\t']);
        // Spaces may precede the equals sign of a parameter; `Basic abc==` is a scheme with its token.
        if let Some(value) = after.strip_prefix('=').filter(|value| !value.starts_with('=')) {
            let (value, rest) = parse_value(value.trim_start_matches([' ', '\t']))?;
            self.0 = rest;
            return Some(ChallengePart::Parameter(word, value));
        }
        self.0 = rest.trim_start_matches('=');
        Some(ChallengePart::Scheme(word))
    }
}

/// A quoted string; or, because some servers omit the quotes, all up to the next comma or space.
fn parse_value(text: &str) -> Option<(String, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return Some((value.to_owned(), rest));
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return Some((value, &quoted[at + 1..])),
            '\\' => value.push(chars.next()?.1),
            char => value.push(char),
        }
    }
    None
}

fn is_token(char: char) -> bool {
    char.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~/:".contains(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str) -> Challenge {
        Challenge::read(&[header.to_owned()])
    }

    #[test]
    fn bearer_challenge_is_found_among_others() {
        let url = "https://mcp.example.com/.well-known/oauth-protected-resource";
        for header in [
            format!(
                "Bearer resource_metadata=\"{url}\", scope=\"files:read files:write\", error=\"insufficient_scope\""
            ),
            format!(
                "bearer scope=\"files:read files:write\",error=insufficient_scope,resource_metadata={url}"
            ),
            format!(
                "Basic realm=\"a, Bearer scope=x\", BEARER Error = \"insufficient_scope\" ,  scope = \"files:read files:write\", resource_metadata=\"{url}\", Digest nonce=\"1\", error=\"other\""
            ),
            format!(
                "Negotiate YWJj==, Bearer error=\"insufficient_\\scope\", resource_metadata=\"{url}\", scope=\"files:read files:write\""
            ),
        ] {
            let challenge = read(&header);
            assert_eq!(challenge.resource_metadata.as_deref(), Some(url), "{header}");
            assert_eq!(challenge.scopes, Some(Scopes::parse("files:read files:write")), "{header}");
            assert_eq!(challenge.error.as_deref(), Some("insufficient_scope"), "{header}");
        }
    }

    #[test]
    fn first_of_duplicate_parameters_counts() {
        let headers = [
            "Basic realm=x",
            "Bearer scope=\"\", scope=\"a\", scope=\"b\"",
            "Bearer scope=\"c\", error=\"e\"",
        ];
        let challenge = Challenge::read(&headers.map(str::to_owned));
        assert_eq!((challenge.scopes, challenge.error.as_deref()), (Some(Scopes::parse("a")), Some("e")));
    }

    #[test]
    fn invalid_headers_are_ignored() {
        for header in [
            "",
            "Bearer",
            ",,,, ,",
            "Bearer scope",
            "Bearer =",
            "Bearer scope=\"a",
            "Bearer scope=\"a\\",
            "Bearer scope=\"\u{0}\u{7f}\"",
            "scope=\"a\"",
            "\u{1f980} scope=\"a\"",
            "Basic scope=\"a\"",
            "BearerX scope=\"a\"",
            "Bearer scope==\"a\"",
        ] {
            assert_eq!(read(header), Challenge::default(), "{header:?}");
        }
        assert_eq!(read(&format!("Bearer error=\"{}\"", "x".repeat(10_000))), Challenge::default());
        let many =
            vec!["Basic realm=\"x\"".to_owned(); 16].into_iter().chain(["Bearer error=\"e\"".to_owned()]);
        assert_eq!(Challenge::read(&many.collect::<Vec<_>>()), Challenge::default());
    }
}
