//! Reading the options of a program whose operands matter.

use crate::word::Word;

/// The options of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionSpec {
    /// Letters of options without a value.
    pub(super) flags: &'static str,
    /// Letters of options with a value, attached or in the next word.
    pub(super) values: &'static str,
    /// Letters of options whose value can only be attached.
    pub(super) attached: &'static str,
    /// Long options without a value, or with one after `=` only; separated by spaces.
    pub(super) long_flags: &'static str,
    /// Long options with a value, separated by spaces.
    pub(super) long_values: &'static str,
}

/// Options as they were given.
#[derive(Debug, Default)]
pub(super) struct ReadOptions {
    /// Names with their dashes, and values.
    pub(super) given: Vec<(String, Option<Word>)>,
    /// The index of the first operand.
    pub(super) operands_at: usize,
    /// Whether an option is not known, or a word could be an option or several words, so that operands are uncertain.
    pub(super) is_uncertain: bool,
}

impl ReadOptions {
    /// The value of the first of these options.
    pub(super) fn value_of(&self, names: &[&str]) -> Option<&Word> {
        self.given
            .iter()
            .find(|(name, _)| names.contains(&name.as_str()))
            .and_then(|(_, value)| value.as_ref())
    }

    pub(super) fn has(&self, names: &[&str]) -> bool {
        self.given.iter().any(|(name, _)| names.contains(&name.as_str()))
    }
}

impl OptionSpec {
    pub(super) const NONE: Self =
        Self { flags: "", values: "", attached: "", long_flags: "", long_values: "" };

    /// Reads the options before the first operand; `words` begins with the first argument.
    pub(super) fn read(&self, words: &[Word]) -> ReadOptions {
        let mut options = ReadOptions::default();
        while let Some(word) = words.get(options.operands_at) {
            let prefix = word.prefix();
            if word.literal().is_none() && (prefix.is_empty() || word.may_split()) {
                // What it becomes may be an option with a value, or no word.
                options.is_uncertain |= word.may_be_option();
                return options;
            }
            if !prefix.starts_with('-') || prefix == "-" {
                return options;
            }
            options.operands_at += 1;
            if prefix == "--" && word.literal().is_some() {
                return options;
            }
            if let Some(name) = prefix.strip_prefix("--") {
                self.read_long(name, word, words, &mut options);
            } else {
                self.read_cluster(&prefix, word, words, &mut options);
            }
        }
        options
    }

    fn read_long(&self, name: &str, word: &Word, words: &[Word], options: &mut ReadOptions) {
        let (name, has_value) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
        // Names can be abbreviated.
        let exact = |list: &'static str| list.split_whitespace().find(|entry| *entry == name);
        let abbreviated =
            |list: &'static str| list.split_whitespace().filter(move |entry| entry.starts_with(name));
        let (flags, values) = (abbreviated(self.long_flags).count(), abbreviated(self.long_values).count());
        let known = exact(self.long_flags).or(exact(self.long_values)).or_else(|| {
            let mut all = abbreviated(self.long_flags).chain(abbreviated(self.long_values));
            all.next().filter(|_| flags + values == 1 || flags == 0 || values == 0)
        });
        let full = format!("--{}", known.unwrap_or(name));
        let takes_next = exact(self.long_values).is_some() || exact(self.long_flags).is_none() && values > 0;
        let value = if has_value {
            Some(word.without_prefix("--".len() + name.len() + 1))
        } else if takes_next && known.is_some() {
            options.operands_at += 1;
            words.get(options.operands_at - 1).cloned()
        } else {
            options.is_uncertain |= known.is_none();
            None
        };
        options.given.push((full, value));
    }

    fn read_cluster(&self, prefix: &str, word: &Word, words: &[Word], options: &mut ReadOptions) {
        for (at, letter) in prefix.char_indices().skip(1) {
            let name = format!("-{letter}");
            let after = at + letter.len_utf8();
            if self.values.contains(letter) {
                let attached = word.without_prefix(after);
                let value = if attached.parts.is_empty() {
                    options.operands_at += 1;
                    words.get(options.operands_at - 1).cloned()
                } else {
                    Some(attached)
                };
                options.given.push((name, value));
                return;
            }
            if self.attached.contains(letter) {
                options.given.push((name, Some(word.without_prefix(after))));
                return;
            }
            options.is_uncertain |= !self.flags.contains(letter) || word.literal().is_none();
            options.given.push((name, None));
        }
    }
}
