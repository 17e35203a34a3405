//! A search with random parameters, and the result that ripgrep's output implies.

use std::cmp::Reverse;
use std::fs;

use haft::{Value, json};

use super::RipgrepFixture;
use crate::fixture::random::TestRng;

const PATTERNS: &[&str] = &[
    "alpha",
    "needle",
    "ALPHA",
    "beta|omega",
    "^alpha",
    "needle$",
    r"alpha\s*$",
    r"\bfn \w+\(",
    r"al(p)ha.*needle",
    r"[A-Z]lpha",
    r"(?i)needle",
    "café|grüße",
    "日本",
    r"\d+",
    r"^\s*$",
    "^$",
    "x*$",
    "gamma|delta",
    r"TODO|todo!\(\)",
    r"\r$",
    "éneedleé",
    r"^.{1,8}$",
    "nothing like this anywhere",
    r"[^\x00-\x7F]{3,}",
    r"alpha(\s+alpha)*",
];

/// Those of them that match where there is nothing.
const HOLLOW: &[&str] = &[r"^\s*$", "^$", "x*$"];

/// Only with `multiline`: they reach over line ends.
const LONG_PATTERNS: &[&str] = &[
    r"start\n\s+middle \w+\nend",
    r"fn \w+\([^)]*\)[^{]*\{\n[^}]*needle",
    r"alpha.*?omega",
    r"two\r?\n",
    r"\n\n",
    r"(?s)one.+?six",
    r"beta\nlast",
    r"alpha\n?$",
];

const PLACES: &[&str] = &[
    "",
    "",
    "",
    "src",
    "docs",
    "docs/deep",
    "bin",
    "text",
    "web",
    "vendor/repo",
    "target",
    ".config",
    "linked",
    "src/lib.rs",
    "docs/guide.md",
    "docs/windows.txt",
    "docs/no_newline.txt",
    "docs/deep/notes.md",
    "text/utf16le.txt",
    "text/utf16be.txt",
    "text/utf8_bom.txt",
    "text/latin1.txt",
    "text/long.txt",
    "bin/nul_before.bin",
    "bin/nul_after.bin",
    "bin/nul_same_line.bin",
    "bin/nul_late.dat",
    "trace.log",
    ".hidden.txt",
    "empty.txt",
    "link.rs",
];

const GLOBS: &[&str] = &[
    "*.rs",
    "*.{md,txt}",
    "*.py,*.rs,!lib.rs",
    ".*,*.toml",
    "!*.md",
    "**/deep/**",
    "*.log",
    "[a-m]*.*",
    "src/**/*.rs",
    "/docs/*.txt",
    "!src/**",
    "le?f.rs",
];

const TYPES: &[&str] = &["rust", "py", "js", "md", "txt", "json", "ts", "csv"];

impl TestRng {
    pub(super) fn one_in(&mut self, bound: usize) -> bool {
        self.below(bound) == 0
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// One search, as arguments of Grep and as flags of ripgrep.
pub(super) struct Search {
    pub(super) arguments: Value,
    pub(super) flags: Vec<String>,
    pub(super) mode: &'static str,
    limit: Option<usize>,
    offset: usize,
}

impl Search {
    pub(super) fn random(rng: &mut TestRng, fixture: &RipgrepFixture) -> Self {
        let multiline = rng.one_in(4);
        let pattern = if multiline && !rng.one_in(3) { rng.of(LONG_PATTERNS) } else { rng.of(PATTERNS) };
        let mut search = Self {
            arguments: json!({"pattern": pattern}),
            flags: Vec::new(),
            mode: "files",
            limit: None,
            offset: 0,
        };
        if multiline {
            search.say("multiline", true, ["-U", "--multiline-dotall"]);
        }
        match rng.below(6) {
            0 | 3 => {
                search.mode = "count";
                search.say("output_mode", "count", ["-c"]);
            }
            1 => search.say("output_mode", "files_with_matches", ["-l"]),
            2 => search.flags.push("-l".to_owned()),
            _ => {
                search.mode = "content";
                search.say("output_mode", "content", []);
            }
        }
        if rng.one_in(3) {
            search.say("-n", false, ["-N"]);
        } else {
            search.flags.push("-n".to_owned());
        }
        if rng.one_in(4) {
            search.say("-i", true, ["-i"]);
        }
        // Sorted, ripgrep separates files even where -o has nothing to show of them; unsorted it does not, nor does Grep.
        if rng.one_in(4) && !(multiline && HOLLOW.contains(&pattern)) {
            search.say("-o", true, ["-o"]);
        }
        for (name, flag) in [("-A", "-A"), ("-B", "-B"), ("context", "-C"), ("-C", "-C")] {
            if rng.one_in(5) {
                let lines = rng.below(4);
                search.say(name, lines, [flag, &lines.to_string()]);
            }
        }
        if rng.one_in(5) {
            let name = rng.of(TYPES);
            search.say("type", name, ["-t", name]);
        }
        if rng.one_in(4) {
            let globs = rng.of(GLOBS);
            search.say("glob", globs, []);
            // The list has no commas in braces but in the first glob.
            let single = if globs.contains('{') { vec![globs] } else { globs.split(',').collect() };
            search.flags.extend(single.into_iter().flat_map(|glob| ["-g".to_owned(), glob.to_owned()]));
        }
        if rng.one_in(4) {
            let limit = rng.below(7);
            search.say("head_limit", limit, []);
            search.limit = (limit > 0).then_some(limit);
        }
        if rng.one_in(5) {
            search.offset = rng.below(5);
            search.say("offset", search.offset, []);
        }
        search.flags.extend(["-e".to_owned(), pattern.to_owned()]);
        let path = rng.of(PLACES);
        if !path.is_empty() {
            let path = fixture.path(path);
            search.say("path", path.as_str(), ["--", &path]);
        }
        search
    }

    fn say<const N: usize>(&mut self, name: &str, value: impl Into<Value>, flags: [&str; N]) {
        self.arguments[name] = value.into();
        self.flags.extend(flags.map(str::to_owned));
    }

    /// What Grep must return, where ripgrep printed `printed`.
    pub(super) fn expected(&self, fixture: &RipgrepFixture, printed: &str) -> String {
        let mut lines: Vec<&str> = printed.split_inclusive('\n').collect();
        if self.mode == "files" {
            let path = |line: &str| fixture.workspace.join(line.trim_end());
            let modified = |line: &str| fs::metadata(path(line)).unwrap().modified().unwrap();
            lines.sort_by_key(|line| (Reverse(modified(line)), path(line)));
        }
        let rest = lines.split_off(self.offset.min(lines.len()));
        let (shown, more) = rest.split_at(self.limit.map_or(rest.len(), |limit| limit.min(rest.len())));
        let limit = self.limit.filter(|_| !more.is_empty()).map(|limit| format!("limit: {limit}"));
        let offset = (self.offset > 0).then(|| format!("offset: {}", self.offset));
        let page = limit.into_iter().chain(offset).collect::<Vec<_>>().join(", ");
        let counted =
            |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
        let files = counted(shown.len(), "file");
        match self.mode {
            "files" if shown.is_empty() => "No files found\n".to_owned(),
            "files" => format!("{}\n{}", format!("Found {files} {page}").trim_end(), shown.concat()),
            "count" => {
                let count =
                    |line: &str| line.trim_end().rsplit(':').next().unwrap().parse::<usize>().unwrap();
                let total = counted(shown.iter().map(|line| count(line)).sum(), "total occurrence");
                let body = if shown.is_empty() { "No matches found\n".to_owned() } else { shown.concat() };
                let page = if page.is_empty() { page } else { format!(" with pagination = {page}") };
                format!("{body}\nFound {total} across {files}.{page}\n")
            }
            _ => {
                let body = if shown.is_empty() { "No matches found\n".to_owned() } else { shown.concat() };
                if page.is_empty() {
                    return body;
                }
                format!("{body}\n[Showing results with pagination = {page}]\n")
            }
        }
    }
}
