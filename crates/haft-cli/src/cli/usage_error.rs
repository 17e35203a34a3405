//! Errors in the command line, as they are shown.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error, Parser};
use haft_tool::close_names;

use super::args::Haft;
use super::screen;

/// The error with control characters of the arguments escaped, and with the command that was probably meant.
pub(super) fn readable(error: Error) -> Error {
    if !error.use_stderr() {
        return error;
    }
    // The words are part of the styled text, from which their control characters would be removed with its own.
    let words: Vec<String> =
        std::env::args_os().map(|word| screen::escape(&word.to_string_lossy())).collect();
    let mut error = match Haft::try_parse_from(&words) {
        Err(escaped) if escaped.kind() == error.kind() => escaped,
        _ => error,
    };
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
    {
        let typed = typed.clone();
        let near = near_command(&words, &typed);
        if let Some(near) = near {
            error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![near]));
        }
    }
    error
}

/// The nearest name among the commands where `typed` stands.
fn near_command(words: &[String], typed: &str) -> Option<String> {
    let mut command = Haft::command();
    for word in words.iter().skip(1).take_while(|word| *word != typed) {
        if let Some(below) = command.find_subcommand(word) {
            command = below.clone();
        }
    }
    command.build();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    close_names(typed, names).first().map(|near| (*near).to_owned())
}
