//! Grep and Glob agree with ripgrep, flag by flag, on a corpus that has every kind of file.
//!
//! The ripgrep to compare with is `$HAFT_RG`, else `rg` on the `PATH`.
#![expect(
    clippy::disallowed_methods,
    reason = "the test makes the files that are searched and starts ripgrep"
)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops where something is not as it should be")]

#[path = "../common/mod.rs"]
mod common;
mod corpus;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use common::Dice;
use corpus::fill;
use haft::{ErrorKind, Runtime, Value, json};
use tempfile::TempDir;

/// How many searches are compared, those that are wrong on purpose not counted.
const COMBINATIONS: usize = 600;

/// A runtime in a workspace full of files, and the ripgrep to compare it with.
struct Place {
    runtime: Runtime,
    workspace: PathBuf,
    rg: PathBuf,
    _folders: [TempDir; 2],
}

impl Place {
    fn new(repository: bool) -> Self {
        let [folder, home] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let workspace = folder.path().canonicalize().unwrap().join("outer/workspace");
        fill(&workspace);
        if repository {
            fs::create_dir_all(workspace.join(".git/info")).unwrap();
            fs::write(workspace.join(".git/info/exclude"), "excluded.txt\n").unwrap();
        }
        let builder = Runtime::builder().workspace(&workspace).home(home.path()).dialect(haft::claude());
        Self { runtime: builder.build().unwrap(), workspace, rg: ripgrep(), _folders: [folder, home] }
    }

    fn path(&self, relative: &str) -> String {
        self.workspace.join(relative).to_str().unwrap().to_owned()
    }

    /// What ripgrep prints in the workspace; the error says why it would not search.
    fn ripgrep<S: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = S>) -> Result<String, String> {
        let mut command = Command::new(&self.rg);
        // The defaults of Grep, which reads files as streams: a memory map with late NUL bytes is searched differently.
        command.args(["--no-config", "--no-mmap", "--sort", "path", "--hidden", "-g", "!.git"]).args(args);
        let output = command.current_dir(&self.workspace).stdin(Stdio::null()).output().unwrap();
        let [printed, said] =
            [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        // A filter that leaves no file is an error to ripgrep, but it says nothing against the search.
        let searched =
            matches!(output.status.code(), Some(0 | 1)) || said.starts_with("rg: No files were searched");
        if searched { Ok(printed) } else { Err(said) }
    }

    fn listed(&self, args: &[&str]) -> BTreeSet<PathBuf> {
        let printed = self.ripgrep([&["--files"], args].concat()).unwrap();
        printed.lines().map(|line| self.workspace.join(line)).collect()
    }
}

fn ripgrep() -> PathBuf {
    let rg = std::env::var_os("HAFT_RG").map_or_else(|| PathBuf::from("rg"), PathBuf::from);
    let version = Command::new(&rg).arg("--version").output().unwrap_or_else(|error| {
        panic!(
            "this test compares with ripgrep, but {} does not start ({error}); install it, or set HAFT_RG",
            rg.display()
        )
    });
    let version = String::from_utf8_lossy(&version.stdout).into_owned();
    let major = version.strip_prefix("ripgrep ").and_then(|rest| rest.split('.').next()?.parse().ok());
    assert!(
        major >= Some(15_u32),
        "this test compares with ripgrep 15 or newer, and {} says {:?}; `cargo install ripgrep`, then set HAFT_RG",
        rg.display(),
        version.lines().next().unwrap_or_default()
    );
    rg
}

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

impl Dice {
    fn one_in(&mut self, sides: usize) -> bool {
        self.roll(sides) == 0
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.roll(all.len())]
    }
}

/// One search, as arguments of Grep and as flags of ripgrep.
struct Search {
    arguments: Value,
    flags: Vec<String>,
    mode: &'static str,
    limit: Option<usize>,
    offset: usize,
}

impl Search {
    fn random(dice: &mut Dice, place: &Place) -> Self {
        let multiline = dice.one_in(4);
        let pattern = if multiline && !dice.one_in(3) { dice.of(LONG_PATTERNS) } else { dice.of(PATTERNS) };
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
        match dice.roll(6) {
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
        if dice.one_in(3) {
            search.say("-n", false, ["-N"]);
        } else {
            search.flags.push("-n".to_owned());
        }
        if dice.one_in(4) {
            search.say("-i", true, ["-i"]);
        }
        // Sorted, ripgrep separates files even where -o has nothing to show of them; unsorted it does not, nor does Grep.
        if dice.one_in(4) && !(multiline && HOLLOW.contains(&pattern)) {
            search.say("-o", true, ["-o"]);
        }
        for (name, flag) in [("-A", "-A"), ("-B", "-B"), ("context", "-C"), ("-C", "-C")] {
            if dice.one_in(5) {
                let lines = dice.roll(4);
                search.say(name, lines, [flag, &lines.to_string()]);
            }
        }
        if dice.one_in(5) {
            let name = dice.of(TYPES);
            search.say("type", name, ["-t", name]);
        }
        if dice.one_in(4) {
            let globs = dice.of(GLOBS);
            search.say("glob", globs, []);
            // The list has no commas in braces but in the first glob.
            let single = if globs.contains('{') { vec![globs] } else { globs.split(',').collect() };
            search.flags.extend(single.into_iter().flat_map(|glob| ["-g".to_owned(), glob.to_owned()]));
        }
        if dice.one_in(4) {
            let limit = dice.roll(7);
            search.say("head_limit", limit, []);
            search.limit = (limit > 0).then_some(limit);
        }
        if dice.one_in(5) {
            search.offset = dice.roll(5);
            search.say("offset", search.offset, []);
        }
        search.flags.extend(["-e".to_owned(), pattern.to_owned()]);
        let path = dice.of(PLACES);
        if !path.is_empty() {
            let path = place.path(path);
            search.say("path", path.as_str(), ["--", &path]);
        }
        search
    }

    fn say<const N: usize>(&mut self, name: &str, value: impl Into<Value>, flags: [&str; N]) {
        self.arguments[name] = value.into();
        self.flags.extend(flags.map(str::to_owned));
    }

    /// What Grep must return, where ripgrep printed `printed`.
    fn expected(&self, place: &Place, printed: &str) -> String {
        let mut lines: Vec<&str> = printed.split_inclusive('\n').collect();
        if self.mode == "files" {
            let path = |line: &str| place.workspace.join(line.trim_end());
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

#[tokio::test(flavor = "multi_thread")]
async fn grep_says_what_ripgrep_prints_under_every_combination_of_its_parameters() {
    let places = [true, false].map(Place::new);
    let mut dice = Dice(2026);
    let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut distinct = BTreeSet::new();
    while distinct.len() < COMBINATIONS {
        // One search in four is made where no repository is, and git's rules do not count.
        let place = &places[usize::from(dice.one_in(4))];
        let search = Search::random(&mut dice, place);
        if !distinct.insert(search.arguments.to_string()) {
            continue;
        }
        let told = format!("Grep {}\nrg {}", search.arguments, search.flags.join(" "));
        let printed =
            place.ripgrep(&search.flags).unwrap_or_else(|why| panic!("{told}\nripgrep refused: {why}"));
        let result = place.runtime.call("Grep", search.arguments.clone()).await;
        assert!(!result.output.is_error(), "{told}\n{}", result.output.as_text());
        let (got, expected) = (result.output.as_text(), search.expected(place, &printed));
        assert!(
            expected.chars().count() < 100_000,
            "{told}\nthe corpus is too large for this search to be shown whole"
        );
        assert!(got == expected, "{told}\n{}", difference(&got, &expected));

        let mode =
            search.arguments.get("output_mode").and_then(Value::as_str).unwrap_or("default").to_owned();
        let words = search.arguments.as_object().unwrap().keys().cloned().chain([mode]);
        for word in words {
            let (tried, found) = seen.entry(word).or_default();
            *tried += 1;
            *found += usize::from(!printed.is_empty());
        }
    }
    for word in [
        "pattern",
        "path",
        "glob",
        "type",
        "output_mode",
        "content",
        "files_with_matches",
        "count",
        "default",
        "-A",
        "-B",
        "-C",
        "context",
        "-n",
        "-i",
        "-o",
        "multiline",
        "head_limit",
        "offset",
    ] {
        let (tried, found) = seen.get(word).copied().unwrap_or_default();
        assert!(
            tried >= 20 && found >= 10,
            "{word}: only {found} of {tried} searches with it found anything"
        );
    }
}

/// The first line that is not the same, so that a failure can be read.
fn difference(got: &str, expected: &str) -> String {
    let clip = |line: Option<&str>| line.map(|line| line.chars().take(300).collect::<String>());
    let (mut ours, mut theirs) = (got.split_inclusive('\n'), expected.split_inclusive('\n'));
    for at in 1.. {
        match (ours.next(), theirs.next()) {
            (None, None) => break,
            (a, b) if a == b => {}
            (a, b) => return format!("line {at}: Grep says {:?}, ripgrep {:?}", clip(a), clip(b)),
        }
    }
    "the lines are the same".to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn grep_refuses_what_ripgrep_refuses() {
    let place = Place::new(true);
    for (arguments, flags) in [
        (json!({"pattern": "("}), vec!["-e", "("]),
        (json!({"pattern": "a{2,1}"}), vec!["-e", "a{2,1}"]),
        (json!({"pattern": r"one\ntwo"}), vec!["-e", r"one\ntwo"]),
        (json!({"pattern": r"a\x00b"}), vec!["-e", r"a\x00b"]),
        (json!({"pattern": r"(?=look)"}), vec!["-e", r"(?=look)"]),
        (json!({"pattern": "a", "type": "nosuchtype"}), vec!["-e", "a", "-t", "nosuchtype"]),
        (json!({"pattern": "a", "glob": "{a"}), vec!["-e", "a", "-g", "{a"]),
        (json!({"pattern": "a", "glob": "[z-a]"}), vec!["-e", "a", "-g", "[z-a]"]),
    ] {
        assert!(place.ripgrep(&flags).is_err(), "rg {} is expected to refuse", flags.join(" "));
        let result = place.runtime.call("Grep", arguments.clone()).await;
        let said = result.output.as_text();
        assert_eq!(result.output.error_kind, Some(ErrorKind::InvalidArguments), "Grep {arguments}: {said}");
    }
    let missing = place.path("no/such/file");
    assert!(place.ripgrep(["-e", "a", "--", &missing]).is_err());
    let result = place.runtime.call("Grep", json!({"pattern": "a", "path": missing})).await;
    assert_eq!(result.output.error_kind, Some(ErrorKind::FileNotFound), "{}", result.output.as_text());
}

/// A pattern, and the directory it is matched in.
const FINDS: &[(&str, &str)] = &[
    ("**/*", ""),
    ("**/*.rs", ""),
    ("*.rs", ""),
    ("*", ""),
    ("src/*.rs", ""),
    ("src/**/*.rs", ""),
    ("src/**", ""),
    ("**/deep/**/*", ""),
    ("**/*.{md,txt}", ""),
    ("docs/[a-g]*.md", ""),
    ("docs/[!a-g]*.txt", ""),
    ("**/le?f.rs", ""),
    ("**/*.log", ""),
    ("**/name with space.*", ""),
    ("**/gr\u{fc}n.md", ""),
    ("empty.txt", ""),
    ("web/{a,a-b}/x.ts", ""),
    ("**/nothing.here", ""),
    ("**/.*", ""),
    (".config/*.toml", ""),
    ("*.rs", "src"),
    ("**/*.rs", "src"),
    ("deep/**/*.rs", "src"),
    ("**/*.md", "docs"),
    ("er/**", "src/deep"),
];

#[tokio::test(flavor = "multi_thread")]
async fn glob_finds_what_ripgrep_lists_newest_first_and_those_of_one_age_by_path() {
    for place in [true, false].map(Place::new) {
        let everything = place.listed(&["--no-ignore"]);
        let mut ages = BTreeMap::new();
        let mut dice = Dice(7);
        for path in &everything {
            // Few different ages, so that there are ties in every folder.
            let age = Duration::new(1_700_000_000 + dice.roll(3) as u64, u32::from(dice.one_in(2)));
            let modified = SystemTime::UNIX_EPOCH + age;
            File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
            ages.insert(path.clone(), modified);
        }
        for (pattern, within) in FINDS {
            // In ripgrep a glob also brings back what is ignored; here it only chooses from what is not.
            let visible = place.listed(&[]);
            let anchored = format!("/{}", Path::new(within).join(pattern).display());
            let matching = place.listed(&["--no-ignore", "-g", &anchored]);
            let mut expected: Vec<&PathBuf> = visible.intersection(&matching).collect();
            expected.sort_by(|a, b| ages[*b].cmp(&ages[*a]).then_with(|| a.cmp(b)));
            let mut lines: String = expected.iter().map(|path| format!("{}\n", path.display())).collect();
            if lines.is_empty() {
                lines.push_str("No files found\n");
            }
            let mut arguments = json!({"pattern": pattern});
            if !within.is_empty() {
                arguments["path"] = json!(place.path(within));
            }
            let result = place.runtime.call("Glob", arguments.clone()).await;
            assert_eq!(result.output.as_text(), lines, "Glob {arguments}");
        }
    }
}
