//! The browser's answer to a login.

use haft_net::proxy::RedirectReply;
use haft_tool::Secret;

use super::errors::{quote, unauthorized};
use super::metadata::AuthorizationServer;
use super::pkce::is_same;
use crate::client::ClientError;

/// The pages that the browser shows. They contain nothing from the request.
const SUCCESS_PAGE: &str = "Haft has received the answer. You can close this page.";
const FAILURE_PAGE: &str = "Haft could not use this answer and reports why. You can close this page.";
const UNRELATED_PAGE: &str = "This request does not belong to a login of Haft.";

/// The relevant parameters of an answer.
#[derive(Default)]
struct CallbackParams {
    code: Option<Secret>,
    state: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl CallbackParams {
    /// Reads a query; `None` if a parameter occurs twice.
    fn read(query: &str) -> Option<Self> {
        let mut params = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let previous = match &*name {
                "code" => params.code.replace(Secret::new(value)).map(drop),
                "state" => params.state.replace(value).map(drop),
                "iss" => params.issuer.replace(value).map(drop),
                "error" => params.error.replace(value).map(drop),
                "error_description" => params.description.replace(value).map(drop),
                _ => None,
            };
            if previous.is_some() {
                return None;
            }
        }
        Some(params)
    }
}

/// Judges a request to the redirect URI: the code, an error, or unrelated if its state is wrong.
pub(super) fn judge(
    query: &str,
    state: &Secret,
    server: &AuthorizationServer,
) -> RedirectReply<Result<Secret, ClientError>> {
    let has_state =
        |params: &CallbackParams| params.state.as_ref().is_some_and(|given| is_same(given, state));
    let Some(params) = CallbackParams::read(query).filter(has_state) else {
        return RedirectReply::Reject(UNRELATED_PAGE.to_owned());
    };
    match code(params, server) {
        Ok(code) => RedirectReply::Accept(Ok(code), SUCCESS_PAGE.to_owned()),
        Err(error) => RedirectReply::Accept(Err(error), FAILURE_PAGE.to_owned()),
    }
}

fn code(params: CallbackParams, server: &AuthorizationServer) -> Result<Secret, ClientError> {
    let issuer = quote(&server.issuer);
    // Checked before anything else is used, and exactly: two spellings can be two servers.
    match &params.issuer {
        Some(named) if *named == server.issuer => {}
        Some(named) => {
            return Err(unauthorized(format!(
                "the browser's answer comes from {}, not from {issuer}, and was not used. This may be an attack.",
                quote(named)
            )));
        }
        None if server.sends_issuer => {
            return Err(unauthorized(format!(
                "the browser's answer lacks the issuer that {issuer} always sends, and was not used"
            )));
        }
        None => {}
    }
    if let Some(error) = &params.error {
        let description = params.description.as_deref().map(|text| format!(": {}", quote(text)));
        let description = description.unwrap_or_default();
        return Err(unauthorized(format!("{issuer} refused the login ({}{description})", quote(error))));
    }
    params.code.filter(|code| !code.expose().is_empty()).ok_or_else(|| {
        ClientError::invalid_message(format!("the answer of {issuer} has neither a code nor an error"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Judged {
        Code(String),
        Error(String),
        Unrelated,
    }

    fn judged(query: &str, sends_issuer: bool) -> Judged {
        let mut server = AuthorizationServer::without_metadata("https://auth.example").unwrap();
        server.sends_issuer = sends_issuer;
        match judge(query, &Secret::new("s1"), &server) {
            RedirectReply::Reject(words) => {
                assert_eq!(words, UNRELATED_PAGE);
                Judged::Unrelated
            }
            RedirectReply::Accept(Ok(code), _) => Judged::Code(code.expose().to_owned()),
            RedirectReply::Accept(Err(error), words) => {
                assert_eq!(words, FAILURE_PAGE);
                Judged::Error(error.message)
            }
        }
    }

    #[test]
    fn answer_with_a_wrong_state_is_unrelated() {
        for query in [
            "",
            "code=c",
            "code=c&state=",
            "code=c&state=s2",
            "code=c&state=s1&state=s1",
            "code=c&state=s1&code=d",
            "error=access_denied&state=s",
            "state=s1%00&code=c",
            "%ff%fe&&&==&state",
        ] {
            assert!(matches!(judged(query, false), Judged::Unrelated), "{query}");
        }
    }

    #[test]
    fn issuer_must_match_exactly() {
        for (query, sends) in [
            ("code=c&state=s1&iss=https%3A%2F%2Fauth.example", true),
            ("code=c&state=s1&iss=https://auth.example", false),
            ("code=c&state=s1", false),
            ("code=c&state=s1&session_state=x&unknown=1", false),
        ] {
            assert!(matches!(judged(query, sends), Judged::Code(code) if code == "c"), "{query}");
        }
        for (query, sends) in [
            ("code=c&state=s1", true),
            ("code=c&state=s1&iss=", true),
            ("code=c&state=s1&iss=https://evil.example", true),
            ("code=c&state=s1&iss=https://evil.example", false),
            ("code=c&state=s1&iss=https://auth.example/", true),
            ("code=c&state=s1&iss=https://auth.example:443", true),
            ("code=c&state=s1&iss=HTTPS://auth.example", false),
            ("code=c&state=s1&iss=https://auth.ex%2561mple", false),
        ] {
            assert!(matches!(judged(query, sends), Judged::Error(_)), "{query}");
        }
    }

    #[test]
    fn text_of_a_wrong_issuer_is_not_repeated() {
        let query = "error=access_denied&error_description=call+555&state=s1&iss=https://evil.example";
        assert!(
            matches!(judged(query, false), Judged::Error(words) if !words.contains("555") && !words.contains("denied"))
        );
        let query = "error=access_denied&error_description=%1b[31mno%0a&state=s1";
        let Judged::Error(words) = judged(query, false) else { unreachable!("an error was answered") };
        assert!(
            words.contains("access_denied") && !words.contains('\u{1b}') && !words.contains('\n'),
            "{words}"
        );
        assert!(
            matches!(judged("state=s1", false), Judged::Error(_))
                && matches!(judged("state=s1&code=", false), Judged::Error(_))
        );
    }
}
