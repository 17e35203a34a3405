//! The result of a search as Claude Code shows it.

use haft_tool::Text;

use super::{GrepMode, GrepOutput};

/// How many of the files that were not searched are named.
const MAX_NAMED_SECRETS: usize = 5;

/// Which lines or files of the output are shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageRange {
    pub(crate) offset: usize,
    /// `None` shows all.
    pub(crate) limit: Option<usize>,
}

impl PageRange {
    /// How many lines are needed to see whether there are more than those shown.
    pub(crate) fn max_lines(self) -> Option<usize> {
        self.limit.map(|limit| limit.saturating_add(self.offset).saturating_add(1))
    }
}

/// The lines of a search that are shown, and what they add up to.
pub(crate) struct GrepReport {
    pub(crate) text: Text,
    /// The number of lines shown.
    pub(crate) lines: usize,
    /// In [`GrepMode::Counts`], the sum of the counts shown.
    pub(crate) matches: Option<u64>,
    /// The limit, if it left anything out.
    pub(crate) applied_limit: Option<usize>,
}

impl GrepReport {
    pub(crate) fn new(output: &GrepOutput, mode: GrepMode, range: PageRange) -> Self {
        let PageRange { offset, limit } = range;
        let mut lines = output.text.split_inclusive('\n').skip(offset);
        let shown: Vec<&str> = lines.by_ref().take(limit.unwrap_or(usize::MAX)).collect();
        let applied_limit = limit.filter(|_| lines.next().is_some() || output.dropped_bytes > 0);
        let page = [
            applied_limit.map(|limit| format!("limit: {limit}")),
            (offset > 0).then(|| format!("offset: {offset}")),
        ];
        let page = page.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let count = |line: &&str| line.trim_end().rsplit(':').next()?.parse::<u64>().ok();
        let matches = (mode == GrepMode::Counts).then(|| shown.iter().filter_map(count).sum::<u64>());
        let (mut head, mut tail) = (shown.concat(), String::new());
        match mode {
            GrepMode::Files if shown.is_empty() => head.push_str("No files found\n"),
            GrepMode::Files => {
                let page = if page.is_empty() { page } else { format!(" {page}") };
                head.insert_str(0, &format!("Found {}{page}\n", counted(shown.len() as u64, "file")));
            }
            GrepMode::Lines | GrepMode::Counts => {
                if shown.is_empty() {
                    head.push_str("No matches found\n");
                }
                if let Some(matches) = matches {
                    let page = if page.is_empty() { page } else { format!(" with pagination = {page}") };
                    let (matches, files) =
                        (counted(matches, "total occurrence"), counted(shown.len() as u64, "file"));
                    tail = format!("\nFound {matches} across {files}.{page}\n");
                } else if !page.is_empty() {
                    tail = format!("\n[Showing results with pagination = {page}]\n");
                }
            }
        }
        tail.push_str(&secrets_note(&output.secrets));
        let missing_bytes = if limit.is_some() { 0 } else { output.dropped_bytes };
        if missing_bytes == 0 {
            head.push_str(&std::mem::take(&mut tail));
        }
        Self { text: Text { head, missing_bytes, tail }, lines: shown.len(), matches, applied_limit }
    }
}

/// Says which files were not searched. Their contents decide nothing here: a search that told whether one of them matches would
/// give them away.
fn secrets_note(secrets: &[String]) -> String {
    if secrets.is_empty() {
        return String::new();
    }
    let named = secrets[..secrets.len().min(MAX_NAMED_SECRETS)].join(", ");
    let more = secrets.len().saturating_sub(MAX_NAMED_SECRETS);
    let more = if more > 0 { format!(" and {}", counted(more as u64, "other file")) } else { String::new() };
    format!("\n[Not searched, because of possible secrets: {named}{more}]\n")
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str, mode: GrepMode, offset: usize, limit: Option<usize>) -> String {
        let output = GrepOutput { text: text.to_owned(), files: 2, dropped_bytes: 0, secrets: Vec::new() };
        GrepReport::new(&output, mode, PageRange { offset, limit }).text.head
    }

    #[test]
    fn files_are_counted() {
        assert_eq!(report("a\nb\n", GrepMode::Files, 0, None), "Found 2 files\na\nb\n");
        assert_eq!(report("a\n", GrepMode::Files, 0, Some(1)), "Found 1 file\na\n");
        assert_eq!(report("a\nb\nc\n", GrepMode::Files, 1, Some(1)), "Found 1 file limit: 1, offset: 1\nb\n");
        assert_eq!(report("a\n", GrepMode::Files, 1, None), "No files found\n");
    }

    #[test]
    fn counts_have_a_total() {
        let total = "\nFound 5 total occurrences across 2 files.";
        let counts = "a:b:2\nc:3\n";
        assert_eq!(report(counts, GrepMode::Counts, 0, None), format!("{counts}{total}\n"));
        assert_eq!(
            report(counts, GrepMode::Counts, 0, Some(1)),
            "a:b:2\n\nFound 2 total occurrences across 1 file. with pagination = limit: 1\n"
        );
        assert_eq!(
            report("1\n", GrepMode::Counts, 0, None),
            "1\n\nFound 1 total occurrence across 1 file.\n",
            "a single file is printed without its path"
        );
        assert_eq!(
            report("", GrepMode::Counts, 0, None),
            "No matches found\n\nFound 0 total occurrences across 0 files.\n"
        );
    }

    #[test]
    fn files_that_were_not_searched_are_named() {
        let secrets = [".env", "a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        let output = GrepOutput { secrets, ..GrepOutput::default() };
        assert_eq!(
            GrepReport::new(&output, GrepMode::Files, PageRange::default()).text.head,
            "No files found\n\n[Not searched, because of possible secrets: .env, a, b, c, d and 1 other file]\n"
        );
    }

    #[test]
    fn lines_have_a_note_about_pagination() {
        assert_eq!(report("a:1\n", GrepMode::Lines, 0, Some(1)), "a:1\n");
        assert_eq!(
            report("a:1\na:2\na:3\n", GrepMode::Lines, 1, Some(1)),
            "a:2\n\n[Showing results with pagination = limit: 1, offset: 1]\n"
        );
        assert_eq!(report("", GrepMode::Lines, 0, None), "No matches found\n");
    }
}
