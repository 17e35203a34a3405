//! Lists of a server, page after page, within limits.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::portable::clean_line;
use super::{ClientError, ClientLimits, McpError};

/// Warnings of one list; more are dropped.
const MAX_WARNINGS: usize = 50;
/// Characters of a server's value that a warning repeats.
const MAX_EXCERPT_CHARS: usize = 60;

/// The usable items of a server's list.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerList<T> {
    /// The items.
    pub items: Vec<T>,
    /// What was left out, and why.
    pub warnings: Vec<String>,
}

impl<T> Default for ServerList<T> {
    fn default() -> Self {
        Self { items: Vec::new(), warnings: Vec::new() }
    }
}

impl<T> ServerList<T> {
    pub(super) fn warn(&mut self, why: impl Into<String>) {
        if self.warnings.len() < MAX_WARNINGS {
            self.warnings.push(why.into());
        }
    }

    /// Reads each item; what cannot be read is left out with a warning.
    pub(super) fn map<U>(self, read: impl Fn(Value) -> Result<U, String>) -> ServerList<U>
    where
        T: Into<Value>,
    {
        let mut all = ServerList { items: Vec::new(), warnings: self.warnings };
        for item in self.items {
            match read(item.into()) {
                Ok(item) => all.items.push(item),
                Err(why) => all.warn(why),
            }
        }
        all
    }
}

/// Requests page after page with `request` and collects the items under `key`.
pub(super) fn fetch(
    key: &str,
    limits: &ClientLimits,
    mut request: impl FnMut(Value) -> Result<Value, ClientError>,
) -> Result<ServerList<Map<String, Value>>, ClientError> {
    let mut all = ServerList::default();
    let (mut cursor, mut seen, mut bytes) = (None::<String>, HashSet::new(), 0);
    for page in 1.. {
        let params = cursor.as_ref().map_or_else(|| json!({}), |cursor| json!({"cursor": cursor}));
        let mut result = match request(params) {
            Ok(result) => result,
            Err(error) if page == 1 || error.kind == McpError::Cancelled => return Err(error),
            Err(error) => {
                all.warn(format!("page {page} of {key} could not be read: {error}"));
                break;
            }
        };
        bytes += approximate_bytes(&result);
        let next = result.get("nextCursor").filter(|next| !next.is_null()).cloned();
        let items = result.get_mut(key).map(Value::take);
        let Some(Value::Array(items)) = items else {
            let why = format!("the server's list of {key} is not an array");
            if page == 1 {
                return Err(ClientError::invalid_message(why));
            }
            all.warn(why);
            break;
        };
        let room = limits.max_list_items.saturating_sub(all.items.len());
        let excess = items.len().saturating_sub(room);
        for item in items.into_iter().take(room) {
            match item {
                Value::Object(item) => all.items.push(item),
                other => all.warn(format!("{} among the {key} is left out: not an object", excerpt(&other))),
            }
        }
        let Some(next) = next else {
            if excess > 0 {
                all.warn(format!("{excess} {key} beyond the first {} are left out", limits.max_list_items));
            }
            break;
        };
        let stop = match next {
            _ if excess > 0 || all.items.len() >= limits.max_list_items => {
                Some(format!("{key} beyond the first {} are left out", limits.max_list_items))
            }
            _ if bytes > limits.max_list_bytes => {
                Some(format!("{key} beyond {} bytes are left out", limits.max_list_bytes))
            }
            _ if page >= limits.max_list_pages => {
                Some(format!("{key} beyond page {} are left out", limits.max_list_pages))
            }
            Value::String(next) if !seen.insert(next.clone()) => {
                Some(format!("the list of {key} repeats a cursor; the items so far are kept"))
            }
            Value::String(next) => {
                cursor = Some(next);
                None
            }
            other => Some(format!("the list of {key} has the invalid cursor {}", excerpt(&other))),
        };
        if let Some(stop) = stop {
            all.warn(stop);
            break;
        }
    }
    Ok(all)
}

/// A value of the server for a message: one short, clean line.
pub(super) fn excerpt(value: &Value) -> String {
    clean_line(&value.to_string(), MAX_EXCERPT_CHARS)
}

/// The approximate size of a value as JSON.
pub fn approximate_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(all) => 2 + all.iter().map(|one| approximate_bytes(one) + 1).sum::<usize>(),
        Value::Object(all) => {
            2 + all.iter().map(|(key, one)| key.len() + approximate_bytes(one) + 4).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type MakePage<'a> = &'a dyn Fn(usize) -> Value;

    fn limits() -> ClientLimits {
        ClientLimits {
            max_list_items: 10,
            max_list_pages: 5,
            max_list_bytes: 10_000,
            ..ClientLimits::default()
        }
    }

    /// Fetches pages that `page` makes; also returns how many were requested.
    fn fetch_pages(page: impl Fn(usize) -> Value) -> (ServerList<Map<String, Value>>, usize) {
        let mut pages = 0;
        let all = fetch("tools", &limits(), |_| {
            pages += 1;
            Ok(page(pages))
        });
        (all.unwrap(), pages)
    }

    fn tools(count: usize) -> Vec<Value> {
        (0..count).map(|number| json!({"name": number})).collect()
    }

    #[test]
    fn pages_are_joined() {
        let (all, pages) = fetch_pages(|page| {
            if page < 3 {
                json!({"tools": tools(2), "nextCursor": page.to_string()})
            } else {
                json!({"tools": tools(1)})
            }
        });
        assert_eq!((all.items.len(), all.warnings.len(), pages), (5, 0, 3));
    }

    #[test]
    fn endless_list_ends_with_a_warning() {
        let same = |_| json!({"tools": [], "nextCursor": "more"});
        let empty = |_| json!({"tools": [], "nextCursor": ""});
        let new = |page: usize| json!({"tools": [], "nextCursor": page.to_string()});
        let number = |_| json!({"tools": tools(1), "nextCursor": 7});
        let many = |_| json!({"tools": tools(10_000)});
        let more = |page: usize| json!({"tools": tools(10), "nextCursor": page.to_string()});
        let heavy =
            |page: usize| json!({"tools": [{"name": "x".repeat(20_000)}], "nextCursor": page.to_string()});
        let cases: [(MakePage<'_>, usize, usize); 7] = [
            (&same, 0, 2),
            (&empty, 0, 2),
            (&new, 0, 5),
            (&number, 1, 1),
            (&many, 10, 1),
            (&more, 10, 1),
            (&heavy, 1, 1),
        ];
        for (at, (page, items, pages)) in cases.into_iter().enumerate() {
            let (all, requested) = fetch_pages(page);
            assert_eq!(
                (all.items.len(), requested, all.warnings.len()),
                (items, pages, 1),
                "{at}: {:?}",
                all.warnings
            );
        }
    }

    #[test]
    fn invalid_item_is_left_out_and_invalid_list_is_an_error() {
        let (all, _) = fetch_pages(|_| json!({"tools": [1, null, {"name": "a"}, [], "x"]}));
        assert_eq!((all.items.len(), all.warnings.len()), (1, 4));
        for result in [json!({}), json!({"tools": {}}), json!(7), Value::Null] {
            let error = fetch("tools", &limits(), |_| Ok(result.clone())).unwrap_err();
            assert_eq!(error.kind, McpError::InvalidMessage, "{result}");
        }
    }

    #[test]
    fn pages_before_a_failure_are_kept() {
        let mut pages = 0;
        let all = fetch("tools", &limits(), |_| {
            pages += 1;
            if pages == 1 {
                Ok(json!({"tools": tools(2), "nextCursor": "2"}))
            } else {
                Err(ClientError::timed_out("late"))
            }
        });
        let all = all.unwrap();
        assert_eq!((all.items.len(), all.warnings.len()), (2, 1));
        assert!(fetch("tools", &limits(), |_| Err(ClientError::timed_out("late"))).is_err());
    }
}
