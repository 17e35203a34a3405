//! `allowedMcpServers` and `deniedMcpServers`: which MCP servers may be used.

use super::document::Located;
use super::object::{ObjectReader, Restricts};

/// One entry: the servers that have this name, command or URL. Exactly one of the three is set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpServerPattern {
    /// `serverName`: the server's name in the settings.
    Name(String),
    /// `serverCommand`: its command with all arguments, exactly.
    Command(Vec<String>),
    /// `serverUrl`: its URL, in which `*` matches anything.
    Url(String),
}

/// The list `name`; `None` if the file has none, which is not the same as an empty list.
pub(super) fn read_patterns(
    reader: &mut ObjectReader<'_>,
    name: &str,
) -> Option<Vec<Located<McpServerPattern>>> {
    let mut patterns = Vec::new();
    for element in reader.list(name, Restricts::Yes)? {
        let place = element.with(());
        let key = reader.key(name);
        let mut object = ObjectReader::new(&key, element, Restricts::Yes, reader.findings());
        let server = object.text("serverName", Restricts::Yes).map(|it| McpServerPattern::Name(it.value));
        let command = object.texts("serverCommand", Restricts::Yes);
        let command = command
            .filter(|words| !words.is_empty())
            .map(|words| McpServerPattern::Command(words.into_iter().map(|word| word.value).collect()));
        let url = object.text("serverUrl", Restricts::Yes).map(|it| McpServerPattern::Url(it.value));
        object.finish();
        match (server, command, url) {
            (Some(pattern), None, None) | (None, Some(pattern), None) | (None, None, Some(pattern)) => {
                patterns.push(place.with(pattern));
            }
            _ => {
                let why = "must have exactly one of serverName, serverCommand and serverUrl".to_owned();
                reader.problem(name, &place, Restricts::Yes, why);
            }
        }
    }
    Some(patterns)
}
