//! What the browser brings back, and whether it is the answer to what was asked.

use haft_net::proxy::RedirectReply;
use haft_tool::Secret;

use super::metadata::AuthorizationServer;
use super::proof::is_same;
use super::words::{refused, said};
use crate::client::ClientError;

/// Shown in the browser. What strangers say is not: a page of Haft's would lend it weight.
const GOOD: &str = "Haft has its answer. You can close this page.";
const BAD: &str = "Haft could not use this answer and says why. You can close this page.";
const STRANGE: &str = "This answer does not belong to what Haft asked.";

/// The parameters of an answer that mean something.
#[derive(Default)]
struct Answer {
    code: Option<Secret>,
    state: Option<String>,
    issuer: Option<String>,
    error: Option<String>,
    description: Option<String>,
}

impl Answer {
    /// Reads a query; nothing if it says one thing twice.
    fn read(query: &str) -> Option<Self> {
        let mut answer = Self::default();
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            let value = value.into_owned();
            let before = match &*name {
                "code" => answer.code.replace(Secret::new(value)).map(|_| ()),
                "state" => answer.state.replace(value).map(|_| ()),
                "iss" => answer.issuer.replace(value).map(|_| ()),
                "error" => answer.error.replace(value).map(|_| ()),
                "error_description" => answer.description.replace(value).map(|_| ()),
                _ => None,
            };
            if before.is_some() {
                return None;
            }
        }
        Some(answer)
    }
}

/// Judges one answer: the code, why there is none, or that somebody else sent it.
pub(super) fn judge(
    query: &str,
    state: &Secret,
    server: &AuthorizationServer,
) -> RedirectReply<Result<Secret, ClientError>> {
    let ours = |answer: &Answer| answer.state.as_ref().is_some_and(|said| is_same(said, state));
    let Some(answer) = Answer::read(query).filter(ours) else {
        return RedirectReply::Reject(STRANGE.to_owned());
    };
    match code(answer, server) {
        Ok(code) => RedirectReply::Accept(Ok(code), GOOD.to_owned()),
        Err(error) => RedirectReply::Accept(Err(error), BAD.to_owned()),
    }
}

fn code(answer: Answer, server: &AuthorizationServer) -> Result<Secret, ClientError> {
    let issuer = said(&server.issuer);
    // To the letter: two spellings can be two servers. And before anything else that the answer says.
    match &answer.issuer {
        Some(named) if *named == server.issuer => {}
        Some(named) => {
            return Err(refused(format!(
                "the browser's answer comes from {}, not from {issuer}; nothing of it was used. Somebody may be trying to \
                 get at a code",
                said(named)
            )));
        }
        None if server.signs_answers => {
            return Err(refused(format!(
                "the browser's answer does not say that it comes from {issuer}, which always says so; nothing of it was used"
            )));
        }
        None => {}
    }
    if let Some(error) = &answer.error {
        let description =
            answer.description.as_deref().map(|words| format!(": {}", said(words))).unwrap_or_default();
        return Err(refused(format!("{issuer} did not agree ({}{description})", said(error))));
    }
    answer.code.filter(|code| !code.expose().is_empty()).ok_or_else(|| {
        ClientError::invalid_message(format!("the answer of {issuer} has neither a code nor an error"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    enum Said {
        Code(String),
        Error(String),
        Stranger,
    }

    fn hear(query: &str, signs_answers: bool) -> Said {
        let mut server = AuthorizationServer::silent("https://auth.example").unwrap();
        server.signs_answers = signs_answers;
        match judge(query, &Secret::new("s1"), &server) {
            RedirectReply::Reject(words) => {
                assert_eq!(words, STRANGE);
                Said::Stranger
            }
            RedirectReply::Accept(Ok(code), _) => Said::Code(code.expose().to_owned()),
            RedirectReply::Accept(Err(error), words) => {
                assert_eq!(words, BAD);
                Said::Error(error.message)
            }
        }
    }

    #[test]
    fn an_answer_with_another_state_is_a_strangers() {
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
            assert!(matches!(hear(query, false), Said::Stranger), "{query}");
        }
    }

    #[test]
    fn the_issuer_of_an_answer_is_compared_to_the_letter() {
        for (query, signs) in [
            ("code=c&state=s1&iss=https%3A%2F%2Fauth.example", true),
            ("code=c&state=s1&iss=https://auth.example", false),
            ("code=c&state=s1", false),
            ("code=c&state=s1&session_state=x&unknown=1", false),
        ] {
            assert!(matches!(hear(query, signs), Said::Code(code) if code == "c"), "{query}");
        }
        for (query, signs) in [
            ("code=c&state=s1", true),
            ("code=c&state=s1&iss=", true),
            ("code=c&state=s1&iss=https://evil.example", true),
            ("code=c&state=s1&iss=https://evil.example", false),
            ("code=c&state=s1&iss=https://auth.example/", true),
            ("code=c&state=s1&iss=https://auth.example:443", true),
            ("code=c&state=s1&iss=HTTPS://auth.example", false),
            ("code=c&state=s1&iss=https://auth.ex%2561mple", false),
        ] {
            assert!(matches!(hear(query, signs), Said::Error(_)), "{query}");
        }
    }

    #[test]
    fn the_words_of_a_wrong_issuer_are_not_repeated() {
        let query = "error=access_denied&error_description=call+555&state=s1&iss=https://evil.example";
        assert!(
            matches!(hear(query, false), Said::Error(words) if !words.contains("555") && !words.contains("denied"))
        );
        let query = "error=access_denied&error_description=%1b[31mno%0a&state=s1";
        let Said::Error(words) = hear(query, false) else { unreachable!("an error was answered") };
        assert!(
            words.contains("access_denied") && !words.contains('\u{1b}') && !words.contains('\n'),
            "{words}"
        );
        assert!(
            matches!(hear("state=s1", false), Said::Error(_))
                && matches!(hear("state=s1&code=", false), Said::Error(_))
        );
    }
}
