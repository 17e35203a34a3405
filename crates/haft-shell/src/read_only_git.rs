//! Subcommands of git that only read. What the configuration that is in force makes them run is not looked at.

use crate::word::Word;

/// Options that keep nothing else from being read-only.
const HARMLESS_GLOBAL_OPTIONS: [&str; 5] =
    ["--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects"];
/// Options that write a file or run a program, wherever they are. Names can be abbreviated.
const FORBIDDEN_OPTIONS: [&str; 9] = [
    "--output",
    "--ext-diff",
    "--textconv",
    "--open-files-in-pager",
    "--exec",
    "--upload-pack",
    "--filters",
    "--paginate",
    "--show-signature",
];

/// Which arguments keep a subcommand read-only.
enum GitArguments {
    /// All but the forbidden options and these letters.
    AllBut(&'static str),
    /// Only options from this list; any operand.
    Only(&'static [&'static str]),
    /// Only options from this list, and no operand unless the first argument asks for a list.
    Listing(&'static [&'static str]),
    /// The first argument is one of the first list, or the only one is of the second list, where `""` stands for none.
    First(&'static [&'static str], &'static [&'static str]),
}

const SUBCOMMANDS: &[(&str, GitArguments)] = &[
    ("status", GitArguments::AllBut("")),
    ("log", GitArguments::AllBut("")),
    ("show", GitArguments::AllBut("")),
    ("diff", GitArguments::AllBut("")),
    ("shortlog", GitArguments::AllBut("")),
    ("whatchanged", GitArguments::AllBut("")),
    ("blame", GitArguments::AllBut("")),
    ("annotate", GitArguments::AllBut("")),
    ("grep", GitArguments::AllBut("O")),
    ("rev-parse", GitArguments::AllBut("")),
    ("rev-list", GitArguments::AllBut("")),
    ("describe", GitArguments::AllBut("")),
    ("ls-files", GitArguments::AllBut("")),
    ("ls-tree", GitArguments::AllBut("")),
    ("cat-file", GitArguments::Only(&["-t", "-s", "-e", "-p"])),
    ("merge-base", GitArguments::AllBut("")),
    ("name-rev", GitArguments::AllBut("")),
    ("cherry", GitArguments::AllBut("")),
    ("diff-tree", GitArguments::AllBut("")),
    ("diff-files", GitArguments::AllBut("")),
    ("diff-index", GitArguments::AllBut("")),
    ("range-diff", GitArguments::AllBut("")),
    ("for-each-ref", GitArguments::AllBut("")),
    ("show-ref", GitArguments::AllBut("")),
    ("count-objects", GitArguments::AllBut("")),
    ("check-ignore", GitArguments::AllBut("")),
    ("check-attr", GitArguments::AllBut("")),
    ("version", GitArguments::AllBut("")),
    ("branch", GitArguments::Listing(BRANCH_OPTIONS)),
    ("tag", GitArguments::Listing(&["-l", "--list", "--no-color"])),
    ("remote", GitArguments::First(&["get-url"], &["", "-v", "--verbose"])),
    ("stash", GitArguments::First(&["list", "show"], &[])),
    ("reflog", GitArguments::First(&["show"], &[""])),
    ("worktree", GitArguments::First(&["list"], &[])),
    ("config", GitArguments::First(&["--get", "--get-all", "--get-regexp"], &["--list", "-l"])),
];
const BRANCH_OPTIONS: &[&str] = &[
    "-a",
    "-av",
    "-avv",
    "-l",
    "-r",
    "-rv",
    "-v",
    "-vv",
    "--all",
    "--list",
    "--no-color",
    "--remotes",
    "--show-current",
    "--verbose",
];

/// Whether git with these arguments only reads.
pub(crate) fn is_read_only(arguments: &[Word]) -> bool {
    let Some(texts) = arguments.iter().map(text).collect::<Option<Vec<String>>>() else { return false };
    let skipped = texts.iter().take_while(|text| HARMLESS_GLOBAL_OPTIONS.contains(&text.as_str())).count();
    let texts: &[String] = texts.get(skipped..).unwrap_or_default();
    let Some((subcommand, rest)) = texts.split_first() else { return false };
    let Some((_, allowed)) = SUBCOMMANDS.iter().find(|(name, _)| name == subcommand) else { return false };
    let is_option = |text: &&String| text.starts_with('-') && *text != "-" && *text != "--";
    if rest.iter().any(|text| checks_signatures(text)) {
        return false;
    }
    match allowed {
        GitArguments::AllBut(letters) => {
            let options = rest.iter().take_while(|text| *text != "--").filter(is_option);
            options.into_iter().all(|text| is_harmless(text, letters))
        }
        GitArguments::Only(options) => {
            rest.iter().filter(is_option).all(|text| options.contains(&text.as_str()))
        }
        GitArguments::Listing(options) => {
            let lists = matches!(rest.first().map(String::as_str), Some("-l" | "--list"));
            rest.iter().all(|text| options.contains(&text.as_str()) || lists && !is_option(&text))
        }
        GitArguments::First(first, alone) => {
            let name = rest.first().map_or("", String::as_str);
            let mut options = rest.iter().skip(1).filter(is_option);
            // A mode is not combined with another one.
            let is_mode = name.starts_with('-');
            rest.len() < 2 && alone.contains(&name)
                || first.contains(&name) && options.all(|text| !is_mode && is_harmless(text, ""))
        }
    }
}

/// The text of a word, or of one that cannot be an option. Its dynamic parts do not matter then.
fn text(word: &Word) -> Option<String> {
    let literal = word.literal().map(std::borrow::Cow::into_owned);
    literal.or_else(|| (!word.may_be_option()).then(|| word.prefix()))
}

fn is_harmless(option: &str, letters: &str) -> bool {
    if let Some(long) = option.strip_prefix("--") {
        let name = long.split('=').next().unwrap_or_default();
        return !FORBIDDEN_OPTIONS.iter().any(|forbidden| forbidden["--".len()..].starts_with(name));
    }
    !option.contains(|c| letters.contains(c))
}

/// Whether text may be a format with the state of a signature, which runs the program that checks it.
fn checks_signatures(text: &str) -> bool {
    ["%G", "%+G", "%-G", "% G", "%(signature", "%(*signature"].iter().any(|format| text.contains(format))
}
