//! A named set of tools.

use std::path::PathBuf;
use std::sync::Arc;

use crate::{AnyTool, Bound, ErrorForm, ErrorKind, Reads, ToolError, close_names};

/// A named set of tools in a vocabulary that models know.
#[derive(Clone)]
pub struct Dialect {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its tools, in the order they are shown.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Further names that callers may use, each with the tool it stands for.
    pub aliases: &'static [(&'static str, &'static str)],
    /// Whether names are matched in any case.
    pub any_case: bool,
    /// Where its tools may read.
    pub reads: Reads,
    /// Directories outside the workspace that its tools and commands may write.
    pub writes: &'static [&'static str],
    /// Paths that its tools never write, whatever the scope says.
    pub blocked: &'static [&'static str],
    /// How its errors are written for the model.
    pub errors: ErrorForm,
    /// How much of the result of an MCP server's tool the caller sees, if not as much as usual.
    pub server_results: Option<Bound>,
    /// Tools that are listed after those of MCP servers.
    pub listed_last: &'static [&'static str],
    /// Files outside the workspace that a tool may touch because the user's settings name them.
    pub keeps: Vec<(&'static str, PathBuf)>,
}

impl std::fmt::Debug for Dialect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tools: Vec<_> = self.tools.iter().map(|tool| tool.name().to_owned()).collect();
        f.debug_struct("Dialect").field("name", &self.name).field("tools", &tools).finish_non_exhaustive()
    }
}

impl Dialect {
    /// The same dialect with only these of its tools, in this order, by any of their names.
    pub fn only<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Result<Self, ToolError> {
        let mut chosen = Vec::new();
        for name in names {
            let wire = self.canonical(name);
            let found = self.tools.iter().find(|tool| tool.name() == wire).ok_or_else(|| {
                let all = || self.tools.iter().map(|tool| tool.name());
                let hint = match close_names(name, all()).as_slice() {
                    [] => format!("there are: {}", all().collect::<Vec<_>>().join(", ")),
                    near => format!("did you mean {}?", near.join(" or ")),
                };
                let known = format!("the dialect {} has no tool {name:?}; {hint}", self.name);
                ToolError::new(ErrorKind::NotFound, known)
            })?;
            chosen.push(Arc::clone(found));
        }
        self.keeps.retain(|(owner, _)| chosen.iter().any(|tool| tool.name() == *owner));
        self.tools = chosen;
        Ok(self)
    }

    /// The wire name that `name` stands for; `name` itself if this dialect does not have it.
    pub fn canonical(&self, name: &str) -> String {
        let same = |known: &str| if self.any_case { known.eq_ignore_ascii_case(name) } else { known == name };
        if let Some(tool) = self.tools.iter().find(|tool| same(tool.name())) {
            return tool.name().to_owned();
        }
        let alias = self.aliases.iter().find(|(alias, _)| same(alias));
        alias.map_or_else(|| name.to_owned(), |(_, name)| (*name).to_owned())
    }
}
