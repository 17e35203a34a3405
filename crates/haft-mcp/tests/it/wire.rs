//! Parsing of lines and messages.

use haft_mcp::wire::{InputLine, LineSplitter, RequestId, RpcError, RpcInput, RpcMessage};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// The expected lines of a complete input.
fn expected_lines(bytes: &[u8], max_bytes: usize) -> Vec<InputLine> {
    let mut all: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let last = all.pop().unwrap_or_default();
    let line_item = |line: &[u8], ended: bool| {
        let line = if ended { line.strip_suffix(b"\r").unwrap_or(line) } else { line };
        if line.strip_suffix(b"\r").unwrap_or(line).len() > max_bytes || (ended && line.len() > max_bytes) {
            Some(InputLine::TooLong)
        } else if line.iter().all(u8::is_ascii_whitespace) {
            None
        } else {
            Some(InputLine::Whole(line.to_vec()))
        }
    };
    let mut found: Vec<InputLine> = all.into_iter().filter_map(|line| line_item(line, true)).collect();
    found.extend(line_item(last, false));
    found
}

fn any_id() -> impl Strategy<Value = RequestId> {
    prop_oneof![any::<i64>().prop_map(RequestId::Number), ".{0,12}".prop_map(RequestId::Text)]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((".{0,6}", inner), 0..4).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_params() -> impl Strategy<Value = Value> {
    let fields = vec((".{0,6}", any_json()), 0..4)
        .prop_map(|all| Value::Object(all.into_iter().collect::<Map<_, _>>()));
    prop_oneof![Just(Value::Null), fields]
}

fn any_message() -> impl Strategy<Value = RpcMessage> {
    let error =
        (any::<i64>(), ".{0,20}", proptest::option::of(any_json())).prop_map(|(code, message, data)| {
            let data = data.filter(|data| !data.is_null());
            RpcError { code, message, data }
        });
    prop_oneof![
        (any_id(), ".{0,12}", any_params())
            .prop_map(|(id, method, params)| RpcMessage::request(id, method, params)),
        (".{0,12}", any_params()).prop_map(|(method, params)| RpcMessage::notification(method, params)),
        (any_id(), any_json()).prop_map(|(id, result)| RpcMessage::response(id, Ok(result))),
        (proptest::option::of(any_id()), error)
            .prop_map(|(id, error)| RpcMessage::Response { id, outcome: Err(error) }),
    ]
}

/// Values that are nearly messages.
fn any_near_message() -> impl Strategy<Value = Value> {
    let field = prop_oneof![
        Just("jsonrpc"),
        Just("id"),
        Just("method"),
        Just("params"),
        Just("result"),
        Just("error"),
        Just("other")
    ];
    vec((field, prop_oneof![any_json(), Just(json!("2.0"))]), 0..6).prop_map(|fields| {
        let mut all: Map<String, Value> =
            fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        all.entry("jsonrpc").or_insert(json!("2.0"));
        Value::Object(all)
    })
}

proptest! {
    #[test]
    fn lines_do_not_depend_on_how_bytes_arrive(
        bytes in vec(prop_oneof![3 => Just(b'x'), 1 => Just(b'\n'), 1 => Just(b'\r'), 1 => Just(b' ')], 0..200),
        cuts in vec(1_usize..20, 0..100),
        max_bytes in 1_usize..12,
    ) {
        let mut lines = LineSplitter::new(max_bytes);
        let mut found = Vec::new();
        let mut rest = &bytes[..];
        for cut in cuts.into_iter().chain(std::iter::repeat(7)) {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            rest = after;
            lines.push(piece);
            found.extend(std::iter::from_fn(|| lines.take()));
        }
        found.extend(lines.rest());
        prop_assert_eq!(found, expected_lines(&bytes, max_bytes));
    }

    #[test]
    fn message_survives_a_round_trip(message in any_message()) {
        let line = message.to_line();
        prop_assert_eq!(line.iter().position(|byte| *byte == b'\n'), Some(line.len() - 1), "one message is one line");
        prop_assert_eq!(RpcInput::read(&line), Ok(RpcInput::Single(message)));
    }

    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in vec(any::<u8>(), 0..200)) {
        let _ = RpcInput::read(&bytes);
    }

    #[test]
    fn near_message_is_read_or_refused(almost in any_near_message()) {
        let read = RpcInput::read(almost.to_string().as_bytes());
        if let Ok(RpcInput::Single(RpcMessage::Request { id, method, params })) = read {
            prop_assert_eq!(json!(id), almost["id"].clone());
            prop_assert_eq!(json!(method), almost["method"].clone());
            prop_assert!(params.is_null() || params.is_object());
        }
    }

    #[test]
    fn damaged_message_is_read_or_refused(
        message in any_message(),
        at in any::<prop::sample::Index>(),
        with in any::<u8>(),
    ) {
        let mut line = message.to_line();
        let at = at.index(line.len());
        line[at] = with;
        let _ = RpcInput::read(&line);
        line.truncate(at);
        let _ = RpcInput::read(&line);
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(1_000_000), close.repeat(1_000_000));
        assert!(RpcInput::read(deep.as_bytes()).is_err());
        let unfinished = open.repeat(1_000_000);
        assert!(RpcInput::read(unfinished.as_bytes()).is_err());
    }
    let in_params = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{}{}}}}}"#,
        "[".repeat(100),
        "]".repeat(100)
    );
    let read = RpcInput::read(in_params.as_bytes()).unwrap();
    assert!(matches!(read, RpcInput::Single(RpcMessage::Request { .. })), "a hundred levels are fine");
}
