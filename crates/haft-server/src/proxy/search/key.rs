//! Which searches count as the same.

/// Words that search engines treat as operators when they are in capitals.
const OPERATORS: &[&str] = &["AND", "AROUND", "NEAR", "NOT", "OR"];

/// The key under which an answer is cached: the engine, the number of results and the normalized query.
pub(super) fn search_key(engine: &str, query: &str, count: usize) -> String {
    format!("{engine}\n{count}\n{}", normalized(query))
}

/// A query in lower case, except for operators, with single spaces.
pub(super) fn normalized(query: &str) -> String {
    let word = |word: &str| {
        if OPERATORS.contains(&word) { word.to_owned() } else { word.to_lowercase() }
    };
    query.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_spaces_make_no_difference_and_operators_do() {
        assert_eq!(normalized("  Rust\t\u{a0}ÜBER \n cargo "), "rust über cargo");
        assert_eq!(normalized("a OR b"), "a OR b");
        assert_ne!(normalized("a OR b"), normalized("a or b"));
        assert_eq!(normalized("Or"), "or");
    }

    #[test]
    fn engine_and_count_belong_to_the_key() {
        assert_eq!(search_key("E", "Rust ", 5), search_key("E", "rust", 5));
        assert_ne!(search_key("E", "rust", 5), search_key("E", "rust", 6));
        assert_ne!(search_key("E", "rust", 5), search_key("F", "rust", 5));
    }
}
