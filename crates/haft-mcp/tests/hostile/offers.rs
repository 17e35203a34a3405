//! What servers ask of their own accord.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_mcp::client::{
    ClientCapabilities, ClientLimits, ClientOptions, Elicitation, ElicitationAnswer, ElicitationKind,
    McpClient, McpError, ServerRequestHandler,
};
use haft_mcp::wire::RpcError;
use haft_tool::Cancel;
use serde_json::{Map, Value, json};

use super::{BOTH, LEGACY, Run, client, echo, generous};

#[derive(Default)]
struct Asked(AtomicUsize);

impl ServerRequestHandler for Asked {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, roots: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, question: &Elicitation, _: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        assert!(matches!(&question.kind, ElicitationKind::Form(schema) if schema["type"] == "object"));
        assert_eq!(question.message, "Your password?");
        Ok(ElicitationAnswer::Accept(Map::from_iter([("password".to_owned(), json!("none"))])))
    }

    fn sample(&self, _: &Value, _: &Cancel) -> Result<Value, RpcError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(json!({}))
    }

    fn roots(&self) -> Result<Vec<(String, Option<String>)>, RpcError> {
        Ok(vec![("file:///work".to_owned(), Some("work".to_owned()))])
    }
}

fn offering(mode: &str, era: &'static str, limits: ClientLimits) -> (McpClient, Run, Arc<Asked>) {
    let (run, asked) = (Run::new(mode, era), Arc::new(Asked::default()));
    let handlers: Arc<dyn ServerRequestHandler> = Arc::clone(&asked) as Arc<dyn ServerRequestHandler>;
    let options = ClientOptions { limits, handler: Some(handlers), ..ClientOptions::default() };
    (McpClient::connect(run.start(), options).unwrap(), run, asked)
}

#[test]
fn what_was_never_offered_is_refused_and_the_call_goes_on() {
    for mode in ["ask-sampling", "ask-roots", "ask-elicitation", "ask-unknown"] {
        let (client, _run) = client(mode, LEGACY, generous());
        let heard = echo(&client, "hi").unwrap();
        assert!(
            heard.starts_with("hi\n") && heard.contains("-32601") && !heard.contains("result"),
            "{mode}: {heard}"
        );
    }
    let (client, _run) = client("ask-sampling", BOTH, generous());
    assert!(echo(&client, "hi").unwrap().contains("nothing came back"));
}

#[test]
fn a_ping_of_the_old_era_is_answered() {
    let (client, _run) = client("ask-ping", LEGACY, generous());
    assert_eq!(echo(&client, "hi").unwrap(), "hi\nping: result {}");
}

#[test]
fn what_is_offered_is_answered_and_the_rest_is_not() {
    let (client, _run, asked) = offering("ask-elicitation", LEGACY, generous());
    let heard = echo(&client, "hi").unwrap();
    assert!(heard.contains(r#"result {"action": "accept", "content": {"password": "none"}}"#), "{heard}");
    assert_eq!(asked.0.load(Ordering::SeqCst), 1);
    let (client, _run, _) = offering("ask-roots", LEGACY, generous());
    let heard = echo(&client, "hi").unwrap();
    assert!(heard.contains(r#"result {"roots": [{"uri": "file:///work", "name": "work"}]}"#), "{heard}");
    let (client, _run, asked) = offering("ask-sampling", LEGACY, generous());
    assert!(echo(&client, "hi").unwrap().contains("-32601"));
    assert_eq!(asked.0.load(Ordering::SeqCst), 0);
}

#[test]
fn a_server_that_asks_too_often_hears_no() {
    let (client, _run, asked) =
        offering("ask-elicitation", LEGACY, ClientLimits { max_questions: 0, ..generous() });
    assert!(echo(&client, "hi").unwrap().contains("No more questions"));
    assert_eq!(asked.0.load(Ordering::SeqCst), 0);
}

#[test]
fn questions_in_results_are_answered_only_if_offered_and_only_so_often() {
    let (client, _run, _) = offering("input-required-for-ever", BOTH, generous());
    let error = echo(&client, "hi").unwrap_err();
    assert_eq!(error.kind, McpError::TooLarge);
    assert!(error.message.contains("more than 10 times"), "{error}");
    let (client, _run, asked) = offering("input-required-not-offered", BOTH, generous());
    let error = echo(&client, "hi").unwrap_err();
    assert!(
        error.kind == McpError::Unsupported && error.message.contains("sampling/createMessage"),
        "{error}"
    );
    assert_eq!(asked.0.load(Ordering::SeqCst), 0);
}

/// Thinks for longer than a call may take.
struct Slow;

impl ServerRequestHandler for Slow {
    fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities { forms: true, ..ClientCapabilities::default() }
    }

    fn elicit(&self, _: &Elicitation, cancel: &Cancel) -> Result<ElicitationAnswer, RpcError> {
        cancel.wait(Duration::from_secs(3));
        Ok(ElicitationAnswer::Decline)
    }
}

#[test]
fn a_server_is_not_late_while_its_question_is_thought_about() {
    let run = Run::new("ask-elicitation", LEGACY);
    let limits = ClientLimits { call_timeout: Duration::from_secs(2), ..generous() };
    let options = ClientOptions { limits, handler: Some(Arc::new(Slow)), ..ClientOptions::default() };
    let client = McpClient::connect(run.start(), options).unwrap();
    assert!(echo(&client, "hi").unwrap().contains("decline"));
}
