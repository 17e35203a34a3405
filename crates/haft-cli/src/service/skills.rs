//! Skills as prompts: each directory with a `SKILL.md`, in the workspace and in the user's home. Listing them is a call:
//! scoped and recorded.

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use haft_agent::{FrontMatter, SKILL_FOLDERS};
use haft_runtime::{CallOptions, Runtime};
use haft_tool::{
    Bound, Call, Effect, EffectKind, ErrorKind, FileKind, JsonSchema, Output, Planned, Planning, Tool,
    ToolError, World,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use haft_mcp::wire::RpcError;

/// The largest number of skills.
const MAX_SKILLS: usize = 500;
/// The largest skill file.
const MAX_SKILL_BYTES: u64 = 1 << 20;

/// A skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Skill {
    pub(super) name: String,
    pub(super) description: String,
    /// The instructions for the model.
    pub(super) body: String,
}

/// All skills, by name.
pub(super) fn all(runtime: &Runtime, options: CallOptions) -> Result<Vec<Skill>, RpcError> {
    let call = Call::new("mcp_prompts", "prompts/list", json!({}));
    let done = runtime.run_blocking(call, CallOptions { tool: Some(Arc::new(ListSkills)), ..options });
    if done.output.is_error() {
        return Err(RpcError::internal(done.output.as_text()));
    }
    let found = done.output.structured.map(serde_json::from_value).transpose();
    Ok(found.map_err(|error| RpcError::internal(error.to_string()))?.unwrap_or_default())
}

impl Skill {
    /// The entry in `prompts/list`.
    pub(super) fn listed(&self) -> Value {
        json!({
            "name": self.name,
            "description": self.description,
            "arguments": [{"name": "arguments", "description": "What to use the skill for", "required": false}],
        })
    }

    /// The result of `prompts/get`.
    pub(super) fn prompt(&self, arguments: Option<&str>) -> Value {
        let text = match arguments {
            Some(arguments) if self.body.contains("$ARGUMENTS") => self.body.replace("$ARGUMENTS", arguments),
            Some(arguments) if !arguments.is_empty() => format!("{}\n\n{arguments}", self.body),
            _ => self.body.replace("$ARGUMENTS", ""),
        };
        json!({
            "description": self.description,
            "messages": [{"role": "user", "content": {"type": "text", "text": text}}],
        })
    }

    /// A skill out of its file; nothing if that says no more than its name.
    fn read(folder: &str, text: &str) -> Option<Self> {
        let front = FrontMatter::read(text)?;
        let name = front.text("name").unwrap_or_else(|| folder.to_owned());
        let description = front.text("description").unwrap_or_default();
        Some(Self { name, description, body: front.body })
    }
}

/// Lists the skills.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoParameters {}

struct ListSkills;

impl ListSkills {
    fn folders(planning: &Planning) -> Vec<PathBuf> {
        let home = std::env::home_dir().filter(|home| home.is_absolute());
        let bases = std::iter::once(planning.workspace.clone()).chain(home);
        bases.flat_map(|base| SKILL_FOLDERS.iter().map(move |folder| base.join(folder))).collect()
    }
}

impl Tool for ListSkills {
    const NAME: &'static str = "prompts/list";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Read];
    const BOUND: Bound = Bound { max_chars: usize::MAX, ..Bound::DEFAULT };
    type Input = NoParameters;
    type Plan = Vec<PathBuf>;

    fn plan(&self, _input: NoParameters, at: &Planning) -> Result<Planned<Vec<PathBuf>>, ToolError> {
        let folders = Self::folders(at);
        Ok(Planned::new(folders.iter().map(|path| Effect::Read { path: path.clone() }), folders.clone()))
    }

    fn perform(&self, folders: Vec<PathBuf>, world: &dyn World) -> Result<Output, ToolError> {
        let mut skills: Vec<Skill> = Vec::new();
        for folder in folders {
            let Ok((entries, _)) = world.files().list_first(&folder, MAX_SKILLS) else { continue };
            for entry in entries.iter().filter(|entry| matches!(entry.kind, FileKind::Dir | FileKind::Link)) {
                let Some(name) = entry.name.to_str() else { continue };
                match read_skill(world, &folder.join(name).join("SKILL.md")) {
                    Ok(text) => skills.extend(
                        Skill::read(name, &text)
                            .filter(|new| skills.iter().all(|skill| skill.name != new.name)),
                    ),
                    Err(error) if error.kind == ErrorKind::Interrupted => return Err(error),
                    // A directory without a readable SKILL.md is no skill.
                    Err(_) => {}
                }
            }
        }
        skills.sort_by(|a, b| a.name.cmp(&b.name));
        skills.truncate(MAX_SKILLS);
        Ok(Output::text("").with_structured(json!(skills)))
    }
}

fn read_skill(world: &dyn World, path: &std::path::Path) -> Result<String, ToolError> {
    let mut text = String::new();
    let file = world.files().open(path)?.reader;
    let read = file.take(MAX_SKILL_BYTES).read_to_string(&mut text);
    read.map_err(|error| ToolError::io(path.display(), &error))?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skill_has_front_matter_and_body() {
        let text =
            "---\nname: \"pdf\"\ndescription: Read PDFs: all of them\nother: [x]\n---\n\nDo $ARGUMENTS.\n";
        let skill = Skill::read("folder", text).unwrap();
        assert_eq!((skill.name.as_str(), skill.description.as_str()), ("pdf", "Read PDFs: all of them"));
        assert_eq!(skill.prompt(Some("this"))["messages"][0]["content"]["text"], "Do this.");
        assert_eq!(
            Skill::read("folder", "---\r\nx: y\r\n---\r\nbody").map(|skill| skill.name).as_deref(),
            Some("folder")
        );
        for none in ["", "---", "---\nname: x\n", "text\n---\nname: x\n---\n"] {
            assert_eq!(Skill::read("folder", none), None, "{none:?}");
        }
    }
}
