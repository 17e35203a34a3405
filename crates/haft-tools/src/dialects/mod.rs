//! The sets of tools that models know. Each dialect lists all its tools in one place.

pub mod claude;
pub mod clawft;
pub mod loom;
pub mod omega;

use haft_tool::{Dialect, EffectKind};

use crate::Settings;

/// The names of all dialects, the default first.
pub const NAMES: &[&str] = &["claude", "loom", "omega", "clawft"];

/// The dialect of that name, with its tools configured by `settings`.
pub fn by_name(name: &str, settings: &Settings) -> Option<Dialect> {
    match name {
        "claude" => Some(claude::dialect(settings)),
        "loom" => Some(loom::dialect(settings)),
        "omega" => Some(omega::dialect(settings)),
        "clawft" => Some(clawft::dialect(settings)),
        _ => None,
    }
}

/// Tools of Claude Code that Haft does not have. A rule that denies one of them holds, so that settings carry over.
const ABSENT_TOOLS: &[&str] = &[
    "BashOutput",
    "EnterPlanMode",
    "KillBash",
    "KillShell",
    "LS",
    "LSP",
    "MultiEdit",
    "NotebookRead",
    "Skill",
    "SlashCommand",
    "TodoRead",
    "ToolSearch",
];

/// Every tool that a rule may name, whatever dialect is offered, and the effects that it may have.
pub fn known_tools(settings: &Settings) -> Vec<(String, Vec<EffectKind>)> {
    let mut known = Vec::new();
    for dialect in NAMES.iter().filter_map(|name| by_name(name, settings)) {
        for tool in &dialect.tools {
            let names =
                dialect.aliases.iter().filter(|(_, name)| *name == tool.name()).map(|(alias, _)| *alias);
            known.extend(names.chain([tool.name()]).map(|name| (name.to_owned(), tool.effects().to_vec())));
        }
    }
    let any = || vec![EffectKind::Read, EffectKind::Run, EffectKind::Reach];
    known.extend(ABSENT_TOOLS.iter().map(|name| ((*name).to_owned(), any())));
    known
}
