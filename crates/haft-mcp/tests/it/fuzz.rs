//! Mutated messages and lines.

use haft_mcp::wire::{InputLine, LineSplitter, RpcInput};

const MAX_LINE_BYTES: usize = 512;

const MESSAGES: [&[u8]; 7] = [
    br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":{"file_path":"/a"},"_meta":{"progressToken":"t"}}}
"#,
    b"{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\\ud83d\\ude00\"}],\"isError\":false}}\r\n",
    br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":[1.5e3,true,null]}}
"#,
    br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"x"}}
"#,
    br#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]
"#,
    b"\xef\xbb\xbf{\"jsonrpc\":\"2.0\",\"id\":-9,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-11-25\"}}\n",
    b"\n  \n{}\n",
];

#[test]
fn mutated_messages_are_read_or_refused_and_valid_ones_survive_a_round_trip() {
    haft_fuzz::check(&MESSAGES, |bytes| {
        let Ok(input) = RpcInput::read(bytes) else { return };
        for message in input.into_messages() {
            let line = message.to_line();
            assert_eq!(line.split(|byte| *byte == b'\n').count(), 2, "{}", line.escape_ascii());
            assert_eq!(RpcInput::read(&line), Ok(RpcInput::Single(message)));
        }
    });
}

#[test]
fn lines_are_bounded_and_the_same_however_they_arrive() {
    haft_fuzz::check(&MESSAGES, |bytes| {
        let whole = split(bytes, bytes.len().max(1));
        for line in &whole {
            if let InputLine::Whole(line) = line {
                assert!(!line.contains(&b'\n') && line.iter().any(|byte| !byte.is_ascii_whitespace()));
            }
        }
        assert_eq!(split(bytes, 7), whole);
    });
}

fn split(bytes: &[u8], chunk_bytes: usize) -> Vec<InputLine> {
    let mut splitter = LineSplitter::new(MAX_LINE_BYTES);
    let mut lines = Vec::new();
    for chunk in bytes.chunks(chunk_bytes) {
        splitter.push(chunk);
        lines.extend(std::iter::from_fn(|| splitter.take()));
    }
    lines.extend(splitter.rest());
    lines
}
