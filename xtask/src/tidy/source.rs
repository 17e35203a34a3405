//! A Rust source file, divided into code and prose (comments and string literals).

/// Two texts with the line structure of the file: in each, what belongs to the other is blank.
pub(super) struct Source {
    pub(super) code: String,
    pub(super) prose: String,
}

enum Place {
    Code,
    LineComment,
    /// How many block comments are open.
    BlockComment(usize),
    Text,
    /// How many `#` end it.
    RawText(usize),
}

impl Source {
    pub(super) fn parse(text: &str) -> Self {
        let chars: Vec<char> = text.chars().collect();
        let mut source = Self { code: String::new(), prose: String::new() };
        let (mut place, mut at) = (Place::Code, 0);
        while at < chars.len() {
            let rest = &chars[at..];
            let in_word = at > 0 && is_word(chars[at - 1]);
            let mut length = 1;
            match &mut place {
                Place::Code if rest.starts_with(&['/', '/']) => place = Place::LineComment,
                Place::Code if rest.starts_with(&['/', '*']) => (place, length) = (Place::BlockComment(1), 2),
                Place::Code if rest[0] == '"' => place = Place::Text,
                Place::Code if rest[0] == '\'' => length = char_literal(rest),
                Place::Code if rest[0] == 'r' && (!in_word || chars[at - 1] == 'b') => {
                    let hashes = rest[1..].iter().take_while(|it| **it == '#').count();
                    if rest.get(1 + hashes) == Some(&'"') {
                        (place, length) = (Place::RawText(hashes), 2 + hashes);
                    }
                }
                Place::Code => {}
                Place::LineComment if rest[0] == '\n' => place = Place::Code,
                Place::BlockComment(open) if rest.starts_with(&['/', '*']) => {
                    (*open, length) = (*open + 1, 2);
                }
                Place::BlockComment(open) if rest.starts_with(&['*', '/']) => {
                    length = 2;
                    *open -= 1;
                    if *open == 0 {
                        place = Place::Code;
                    }
                }
                Place::Text if rest[0] == '\\' => length = 2,
                Place::Text if rest[0] == '"' => place = Place::Code,
                Place::RawText(hashes)
                    if rest[0] == '"' && rest[1..].iter().take_while(|it| **it == '#').count() >= *hashes =>
                {
                    length = 1 + *hashes;
                    place = Place::Code;
                }
                Place::LineComment | Place::BlockComment(_) | Place::Text | Place::RawText(_) => {}
            }
            let is_code = matches!(place, Place::Code);
            for char in rest.iter().take(length) {
                let blank = if *char == '\n' { '\n' } else { ' ' };
                source.code.push(if is_code { *char } else { blank });
                source.prose.push(if is_code { blank } else { *char });
            }
            at += length;
        }
        source
    }

    /// The code without the unit tests at its end.
    pub(super) fn code_without_tests(&self) -> &str {
        let mut tests = self.code.match_indices("#[cfg(test)]\nmod ").map(|(at, _)| at);
        let inline = |at: &usize| self.code[*at..].lines().nth(1).is_some_and(|line| line.ends_with('{'));
        tests.find(inline).map_or(&self.code, |at| &self.code[..at])
    }
}

/// The length of a character literal, or of the quote that begins a lifetime.
fn char_literal(rest: &[char]) -> usize {
    match rest {
        ['\'', '\\', escaped @ ..] => 3 + escaped.iter().skip(1).take_while(|it| **it != '\'').count() + 1,
        ['\'', _, '\'', ..] => 3,
        _ => 1,
    }
}

pub(super) fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_and_prose_are_separated() {
        let text = "let a = 'x'; // one\nfn f<'a>() -> &'a str { \"t\\\"wo\" } /* th /* r */ ee */ r#\"fo\"ur\"# b'\\'' 5";
        let source = Source::parse(text);
        assert_eq!(source.code.len(), source.prose.len());
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(&source.code), "let a = 'x'; fn f<'a>() -> &'a str { \" } */ \"# b'\\'' 5");
        assert_eq!(words(&source.prose), "// one \"t\\\"wo /* th /* r */ ee r#\"fo\"ur");
    }

    #[test]
    fn inline_unit_tests_are_left_out() {
        let with = Source::parse("struct A;\n#[cfg(test)]\nmod tests {\nstruct B;\n}\n");
        assert!(!with.code_without_tests().contains('B'));
        let elsewhere = Source::parse("#[cfg(test)]\nmod tests;\nstruct A;\n");
        assert!(elsewhere.code_without_tests().contains('A'));
    }
}
