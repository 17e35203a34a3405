//! Grep and Glob agree with ripgrep, flag by flag, on a corpus that has every kind of file.
//!
//! The ripgrep to compare with is `$HAFT_RG`, else `rg` on the `PATH`.

mod corpus;
mod search;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use haft::{ErrorKind, Runtime, Value, json};
use tempfile::TempDir;

use corpus::fill;
use search::Search;

use crate::fixture::random::TestRng;

/// How many searches are compared, those that are wrong on purpose not counted.
const COMBINATIONS: usize = 600;

/// A runtime in a workspace full of files, and the ripgrep to compare it with.
struct RipgrepFixture {
    runtime: Runtime,
    workspace: PathBuf,
    rg: PathBuf,
    _folders: [TempDir; 2],
}

impl RipgrepFixture {
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

#[tokio::test(flavor = "multi_thread")]
async fn grep_says_what_ripgrep_prints_under_every_combination_of_its_parameters() {
    let places = [true, false].map(RipgrepFixture::new);
    let mut rng = TestRng(2026);
    let mut seen: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut distinct = BTreeSet::new();
    while distinct.len() < COMBINATIONS {
        // One search in four is made where no repository is, and git's rules do not count.
        let fixture = &places[usize::from(rng.one_in(4))];
        let search = Search::random(&mut rng, fixture);
        if !distinct.insert(search.arguments.to_string()) {
            continue;
        }
        let told = format!("Grep {}\nrg {}", search.arguments, search.flags.join(" "));
        let printed =
            fixture.ripgrep(&search.flags).unwrap_or_else(|why| panic!("{told}\nripgrep refused: {why}"));
        let result = fixture.runtime.call("Grep", search.arguments.clone()).await;
        assert!(!result.output.is_error(), "{told}\n{}", result.output.as_text());
        let (got, expected) = (result.output.as_text(), search.expected(fixture, &printed));
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
    let fixture = RipgrepFixture::new(true);
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
        assert!(fixture.ripgrep(&flags).is_err(), "rg {} is expected to refuse", flags.join(" "));
        let result = fixture.runtime.call("Grep", arguments.clone()).await;
        let said = result.output.as_text();
        assert_eq!(result.output.error_kind, Some(ErrorKind::InvalidArguments), "Grep {arguments}: {said}");
    }
    let missing = fixture.path("no/such/file");
    assert!(fixture.ripgrep(["-e", "a", "--", &missing]).is_err());
    let result = fixture.runtime.call("Grep", json!({"pattern": "a", "path": missing})).await;
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
    for fixture in [true, false].map(RipgrepFixture::new) {
        let everything = fixture.listed(&["--no-ignore"]);
        let mut ages = BTreeMap::new();
        let mut rng = TestRng(7);
        for path in &everything {
            // Few different ages, so that there are ties in every folder.
            let age = Duration::new(1_700_000_000 + rng.below(3) as u64, u32::from(rng.one_in(2)));
            let modified = SystemTime::UNIX_EPOCH + age;
            File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
            ages.insert(path.clone(), modified);
        }
        for (pattern, within) in FINDS {
            // In ripgrep a glob also brings back what is ignored; here it only chooses from what is not.
            let visible = fixture.listed(&[]);
            let anchored = format!("/{}", Path::new(within).join(pattern).display());
            let matching = fixture.listed(&["--no-ignore", "-g", &anchored]);
            let mut expected: Vec<&PathBuf> = visible.intersection(&matching).collect();
            expected.sort_by(|a, b| ages[*b].cmp(&ages[*a]).then_with(|| a.cmp(b)));
            let mut lines: String = expected.iter().map(|path| format!("{}\n", path.display())).collect();
            if lines.is_empty() {
                lines.push_str("No files found\n");
            }
            let mut arguments = json!({"pattern": pattern});
            if !within.is_empty() {
                arguments["path"] = json!(fixture.path(within));
            }
            let result = fixture.runtime.call("Glob", arguments.clone()).await;
            assert_eq!(result.output.as_text(), lines, "Glob {arguments}");
        }
    }
}
