//! Which arguments keep `printf`, `read`, `test` and `xargs` read-only: these can set variables, evaluate text or run commands.

use crate::variables::is_own_variable;
use crate::word::{Word, WordPart};

/// Operators of `test` that evaluate the name of a variable.
const EVALUATING_OPERATORS: [&str; 2] = ["-v", "-R"];
/// Operators of `test` between two words.
const BINARY_OPERATORS: [&str; 14] =
    ["=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];
/// Signs and letters between the percent sign of a conversion and the letter that says which one it is.
const CONVERSION_MODIFIERS: &str = "hlLjztq";
/// Options of `xargs` without a value, and with one.
const XARGS_FLAGS: &str = "0rtx";
const XARGS_VALUES: &str = "nLPsd";

/// Whether the format is known and no conversion of it sets a variable, as `%n` does.
pub(crate) fn printf(arguments: &[Word]) -> bool {
    let format = arguments.first().and_then(Word::literal);
    let is_modifier = |c: char| !c.is_ascii_alphabetic() || CONVERSION_MODIFIERS.contains(c);
    format.is_some_and(|format| {
        !format.starts_with('-')
            && !format.split('%').skip(1).any(|rest| rest.trim_start_matches(is_modifier).starts_with('n'))
    })
}

/// Whether `read` sets only variables of the script.
pub(crate) fn read(arguments: &[Word]) -> bool {
    let is_raw = |word: &Word| word.literal().as_deref() == Some("-r");
    let names = arguments.iter().skip(usize::from(arguments.first().is_some_and(is_raw)));
    names.map(Word::literal).all(|name| name.is_some_and(|name| is_own_variable(&name)))
}

/// Whether a test is certain to evaluate no name: its operators are known, and no word can become several.
pub(crate) fn test(arguments: &[Word]) -> bool {
    let is_fixed = |word: &Word| {
        word.parts.iter().all(|part| match part {
            WordPart::Text { .. } => true,
            WordPart::Dynamic { quoted, .. } => *quoted,
        })
    };
    let is_evaluating =
        |word: &Word| word.literal().is_some_and(|text| EVALUATING_OPERATORS.contains(&&*text));
    if !arguments.iter().all(is_fixed) || arguments.iter().any(is_evaluating) {
        return false;
    }
    let is_negation = |word: &Word| word.literal().as_deref() == Some("!");
    match arguments {
        [] | [_] => true,
        [negation, rest @ ..] if is_negation(negation) => test(rest),
        [operator, _] => operator.literal().is_some(),
        [_, operator, _] => operator.literal().is_some_and(|text| BINARY_OPERATORS.contains(&&*text)),
        arguments => arguments.iter().all(|word| word.literal().is_some()),
    }
}

/// Whether the options of `xargs` only divide the input. What it runs is a command of its own; without one it runs `echo`.
pub(crate) fn xargs(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    while let Some((word, after)) = rest.split_first() {
        let Some(text) = word.literal() else { return !word.may_be_option() };
        let Some(letters) = text.strip_prefix('-') else { return true };
        if letters == "-" {
            return true;
        }
        rest = after;
        let letters = letters.trim_start_matches(|c| XARGS_FLAGS.contains(c));
        if letters.is_empty() {
            continue;
        }
        if !letters.starts_with(|c| XARGS_VALUES.contains(c)) {
            return false;
        }
        if letters.len() == 1 {
            let Some((value, after)) = rest.split_first() else { return false };
            if value.literal().is_none() {
                return false;
            }
            rest = after;
        }
    }
    true
}
