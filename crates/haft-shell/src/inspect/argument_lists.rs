//! Programs that run a command for each of many arguments: `find`, `fd`, `xargs` and `parallel`.

use super::options::OptionSpec;
use super::{Inspection, Subject};
use crate::script::{FileAccess, UnclearReason};
use crate::word::{DynamicKind, Word, WordPart};

const XARGS: OptionSpec = OptionSpec {
    flags: "0oprtx",
    values: "adEIJLnPRsS",
    attached: "eil",
    long_flags: "null no-run-if-empty interactive verbose exit open-tty show-limits max-lines replace eof",
    long_values: "arg-file delimiter max-args max-chars max-procs process-slot-var",
};
const PARALLEL: OptionSpec = OptionSpec {
    flags: "0kqtvX",
    values: "aCdEIjLNnPSs",
    attached: "",
    long_flags: "bar dry-run eta keep-order line-buffer no-notice no-run-if-empty null progress quote tag \
                 ungroup verbose will-cite xargs",
    long_values: "arg-file colsep delay delimiter halt jobs joblog load max-args max-procs results retries \
                  sshlogin timeout",
};
/// Arguments of `find` after which a command begins.
const FIND_COMMANDS: [&str; 4] = ["-exec", "-execdir", "-ok", "-okdir"];
/// Arguments of `find` whose value is a file that is written.
const FIND_OUTPUTS: [&str; 4] = ["-fprint", "-fprint0", "-fprintf", "-fls"];
/// The text that stands for an argument.
const PLACEHOLDER: &str = "{}";

impl Inspection {
    pub(super) fn argument_list(&mut self, program: &str, subject: &Subject<'_>) -> bool {
        let arguments = subject.words.get(1..).unwrap_or_default();
        match program {
            "find" | "gfind" | "bfs" => self.find(arguments, subject),
            "fd" | "fdfind" => self.fd(arguments, subject),
            "xargs" | "gxargs" => self.xargs(arguments, subject),
            "parallel" => self.parallel(arguments, subject),
            _ => return false,
        }
        true
    }

    fn find(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let mut at = 0;
        while let Some(argument) = arguments.get(at) {
            at += 1;
            let text = argument.literal().unwrap_or_default();
            if FIND_OUTPUTS.contains(&&*text) {
                if let Some(path) = arguments.get(at) {
                    self.file(path.clone(), FileAccess::Write);
                }
                continue;
            }
            if !FIND_COMMANDS.contains(&&*text) {
                continue;
            }
            let rest = arguments.get(at..).unwrap_or_default();
            let command = rest.get(..find_command_length(rest)).unwrap_or_default().to_vec();
            at += command.len();
            self.inner(&with_placeholders(command, PLACEHOLDER), Vec::new(), subject, false);
        }
    }

    fn fd(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let begins = |word: &Word| {
            let text = word.prefix();
            matches!(text.as_str(), "--exec" | "--exec-batch")
                || text.starts_with('-') && !text.starts_with("--") && text.ends_with(['x', 'X'])
        };
        let mut rest = arguments;
        while let Some(at) = rest.iter().position(begins) {
            rest = rest.get(at + 1..).unwrap_or_default();
            let command: Vec<Word> = rest.iter().take_while(|word| word.prefix() != ";").cloned().collect();
            rest = rest.get(command.len()..).unwrap_or_default();
            let mut command = with_placeholders(command, PLACEHOLDER);
            command.push(appended(subject));
            self.inner(&command, Vec::new(), subject, false);
        }
    }

    fn xargs(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let options = XARGS.read(arguments);
        if options.is_uncertain {
            self.unclear_subject(UnclearReason::WrapperOptions, subject);
        }
        let replaced = options.value_of(&["-I", "-J", "-i", "--replace"]).map(Word::prefix);
        let replaced = replaced.filter(|text| !text.is_empty());
        let replaced = replaced.or_else(|| options.has(&["-i", "--replace"]).then(|| PLACEHOLDER.to_owned()));
        let command = arguments.get(options.operands_at..).unwrap_or_default().to_vec();
        // Without a command it runs `echo`.
        if command.is_empty() {
            return;
        }
        let command = match replaced.filter(|text| !text.is_empty()) {
            Some(placeholder) => with_placeholders(command, &placeholder),
            None => command.into_iter().chain([appended(subject)]).collect(),
        };
        self.inner(&command, Vec::new(), subject, false);
    }

    /// `parallel` joins its command and the arguments to shell code.
    fn parallel(&mut self, arguments: &[Word], subject: &Subject<'_>) {
        let options = PARALLEL.read(arguments);
        let operands = arguments.get(options.operands_at..).unwrap_or_default();
        let command: Vec<Word> =
            operands.iter().take_while(|word| !word.prefix().starts_with("::")).cloned().collect();
        self.code(&command, subject);
        self.unknown_code(subject);
    }
}

/// The number of words before the `;`, or the `+` after a placeholder, that ends a command of `find`.
fn find_command_length(words: &[Word]) -> usize {
    let is = |word: &Word, text: &str| word.literal().is_some_and(|literal| literal == text);
    let ends = |at: &usize| {
        let previous = at.checked_sub(1).and_then(|at| words.get(at));
        words.get(*at).is_some_and(|word| {
            is(word, ";") || is(word, "+") && previous.is_some_and(|word| is(word, PLACEHOLDER))
        })
    };
    (0..words.len()).find(ends).unwrap_or(words.len())
}

/// The argument that is added at the end of a command.
fn appended(subject: &Subject<'_>) -> Word {
    let end = subject.words.last().map_or(0, |word| word.range.end);
    let part =
        WordPart::Dynamic { kind: DynamicKind::Appended, source: PLACEHOLDER.to_owned(), quoted: false };
    Word { parts: vec![part], range: end..end }
}

/// Makes the text that stands for an argument dynamic.
fn with_placeholders(mut words: Vec<Word>, placeholder: &str) -> Vec<Word> {
    for word in &mut words {
        let parts = std::mem::take(&mut word.parts);
        for part in parts {
            let WordPart::Text { text, quoted } = part else {
                word.parts.push(part);
                continue;
            };
            for (index, piece) in text.split(placeholder).enumerate() {
                if index > 0 {
                    let source = placeholder.to_owned();
                    word.parts.push(WordPart::Dynamic { kind: DynamicKind::Appended, source, quoted: false });
                }
                if !piece.is_empty() || text.is_empty() {
                    word.parts.push(WordPart::Text { text: piece.to_owned(), quoted });
                }
            }
        }
    }
    words
}
