//! The files of the page, embedded in the program.

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! assets {
    ($($name:literal,)*) => {
        &[$(Asset {
            name: $name,
            content_type: content_type($name),
            bytes: include_bytes!(concat!("../web/", $name)),
        }),*]
    };
}

impl Asset {
    /// Whether it is a script.
    pub(crate) fn is_script(&self) -> bool {
        self.content_type.starts_with("text/javascript")
    }
}

/// All files.
pub(crate) const ALL: &[Asset] = assets![
    "ansi.js",
    "api.js",
    "call-list.js",
    "call-row.js",
    "cumulative.js",
    "diff.js",
    "dom.js",
    "exact.js",
    "history.js",
    "index.html",
    "json.js",
    "keys.js",
    "list.js",
    "live-output.js",
    "live.js",
    "login.js",
    "main.js",
    "markdown.js",
    "neighbours.js",
    "output.js",
    "question-card.js",
    "question-list.js",
    "question-subject.js",
    "questions.js",
    "recorded.js",
    "session-link.js",
    "state.js",
    "stream.js",
    "style.css",
    "text.js",
    "theme.js",
    "timeline.js",
    "token.js",
    "tree.js",
    "view-call.js",
    "view-chat.js",
    "view-files.js",
    "view-now.js",
    "view-replay.js",
    "view-rules.js",
    "view-session.js",
    "view-sessions.js",
    "view-undo.js",
    "worker.js",
    "workspaces.js",
];

const fn content_type(name: &str) -> &'static str {
    match name.as_bytes() {
        [.., b'.', b'j', b's'] => "text/javascript; charset=utf-8",
        [.., b'.', b'c', b's', b's'] => "text/css; charset=utf-8",
        _ => "text/html; charset=utf-8",
    }
}

/// The file at a path; `/` is the page itself.
pub(crate) fn at(path: &str) -> Option<&'static Asset> {
    let name = match path.strip_prefix('/')? {
        "" => "index.html",
        name => name,
    };
    ALL.iter().find(|asset| asset.name == name)
}

/// The text of a file; empty if there is no such file.
pub(crate) fn text(name: &str) -> &'static str {
    let found = ALL.iter().find(|asset| asset.name == name);
    found.and_then(|asset| std::str::from_utf8(asset.bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test looks at its own crate")]
    fn every_file_of_the_page_is_served() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/web")).unwrap();
        let mut names: Vec<String> =
            folder.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        // Only the type checker reads these two.
        names.retain(|name| name != "tsconfig.json" && name != "types.js");
        names.sort();
        let served: Vec<&str> = ALL.iter().map(|asset| asset.name).collect();
        assert_eq!(names, served);
    }
}
