//! What a server says when it turns somebody down: `WWW-Authenticate`.

use super::scopes::Scopes;

/// More than any honest server sends.
const MOST_HEADERS: usize = 16;
const LONGEST: usize = 8 * 1024;

/// What matters of a server's challenges.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Challenge {
    /// Where the server describes itself.
    pub(super) resource_metadata: Option<String>,
    /// What a token needs to be good for.
    pub(super) scopes: Option<Scopes>,
    /// `invalid_token`, `insufficient_scope`, ….
    pub(super) error: Option<String>,
}

impl Challenge {
    /// Reads all challenges for bearers of tokens; of what is said twice the first counts.
    pub(super) fn read(headers: &[String]) -> Self {
        let mut challenge = Self::default();
        for header in headers.iter().take(MOST_HEADERS).filter(|header| header.len() <= LONGEST) {
            let mut ours = false;
            for part in Parts(header) {
                match part {
                    Part::Scheme(scheme) => ours = scheme.eq_ignore_ascii_case("bearer"),
                    Part::Parameter(name, value) if ours => challenge.note(name, value),
                    Part::Parameter(..) => {}
                }
            }
        }
        challenge
    }

    fn note(&mut self, name: &str, value: String) {
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

enum Part<'a> {
    Scheme(&'a str),
    Parameter(&'a str, String),
}

/// Schemes and parameters of one header, as far as they can be made out.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = Part<'a>;

    fn next(&mut self) -> Option<Part<'a>> {
        let rest = self.0.trim_start_matches([' ', '\t', ',']);
        let word = rest.find(|char: char| !is_token(char)).unwrap_or(rest.len());
        let (word, rest) = rest.split_at(word);
        if word.is_empty() {
            return None;
        }
        let after = rest.trim_start_matches([' ', '\t']);
        // A word with blanks before its equals sign is still a parameter; `Basic abc==` is a scheme and its token.
        if let Some(value) = after.strip_prefix('=').filter(|value| !value.starts_with('=')) {
            let (value, rest) = value_of(value.trim_start_matches([' ', '\t']))?;
            self.0 = rest;
            return Some(Part::Parameter(word, value));
        }
        self.0 = rest.trim_start_matches('=');
        Some(Part::Scheme(word))
    }
}

/// A quoted string, or all up to the next comma or blank: some servers forget the quotes.
fn value_of(text: &str) -> Option<(String, &str)> {
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
    fn a_bearers_challenge_is_found_among_others() {
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
    fn of_what_is_said_twice_the_first_counts() {
        let headers = [
            "Basic realm=x",
            "Bearer scope=\"\", scope=\"a\", scope=\"b\"",
            "Bearer scope=\"c\", error=\"e\"",
        ];
        let challenge = Challenge::read(&headers.map(str::to_owned));
        assert_eq!((challenge.scopes, challenge.error.as_deref()), (Some(Scopes::parse("a")), Some("e")));
    }

    #[test]
    fn rude_headers_say_nothing_and_break_nothing() {
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
