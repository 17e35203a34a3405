//! What the flags and settings of Codex are in the flags of `haft run`.

use std::ffi::OsString;
use std::path::Path;

use clap::{Args as _, FromArgMatches as _};
use haft_compat::exec::{ExecConfig, ExecSandbox};
use haft_tool::ToolError;

use super::super::run::RunArgs;
use super::args::ExecArgs;

/// Where LM Studio listens.
const LM_STUDIO_URL: &str = "http://127.0.0.1:1234/v1";

/// What is asked, and in which run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExecTask {
    /// The words of the prompt.
    pub(super) prompt: Vec<String>,
    run: EarlierChoice,
}

#[derive(Debug, PartialEq, Eq)]
enum EarlierChoice {
    New,
    Last { is_copy: bool },
    Session { id: String, is_copy: bool },
}

impl ExecTask {
    /// Reads the words: a prompt, or `resume` or `fork` with a session and a prompt.
    pub(super) fn of(words: &[String], last: bool) -> Result<Self, ToolError> {
        let mut rest = words.iter().cloned();
        let is_copy = match words.first().map(String::as_str) {
            Some("resume") => false,
            Some("fork") => true,
            _ if last => {
                return Err(ToolError::invalid_arguments(
                    "--last belongs to resume: haft exec resume --last",
                ));
            }
            _ => return Ok(Self { prompt: words.to_vec(), run: EarlierChoice::New }),
        };
        rest.next();
        let run = if last {
            EarlierChoice::Last { is_copy }
        } else {
            let id = rest.next().ok_or_else(|| {
                ToolError::invalid_arguments("which run? Name its session, or take the last one with --last")
            })?;
            EarlierChoice::Session { id, is_copy }
        };
        Ok(Self { prompt: rest.collect(), run })
    }
}

/// The flags of `haft run` for the task.
pub(super) fn run_args(
    args: &ExecArgs,
    config: &ExecConfig,
    task: &ExecTask,
    has_key: bool,
) -> Result<RunArgs, ToolError> {
    let mut words = WordList(vec!["run".into(), "--print".into()]);
    words.add("--model", args.model.as_ref().or(config.model.as_ref()));
    add_provider(&mut words, args, config, has_key);
    words.add("--effort", config.effort.as_deref().map(effort));
    words.add("--append-system-prompt", config.instructions.as_ref());
    words.add("--workspace", args.directory.as_ref());
    add_sandbox(&mut words, args, config);
    if config.web_search == Some(false) {
        words.add("--disallowedTools", Some("WebSearch,WebFetch"));
    }
    match &task.run {
        EarlierChoice::New => {}
        EarlierChoice::Last { .. } => words.0.push("--continue".into()),
        EarlierChoice::Session { id, .. } => words.add("--resume", Some(id)),
    }
    if matches!(
        task.run,
        EarlierChoice::Last { is_copy: true } | EarlierChoice::Session { is_copy: true, .. }
    ) {
        words.0.push("--fork-session".into());
    }
    let invalid = |error: clap::Error| ToolError::invalid_arguments(error.to_string());
    let matches =
        RunArgs::augment_args(clap::Command::new("run")).try_get_matches_from(words.0).map_err(invalid)?;
    RunArgs::from_arg_matches(&matches).map_err(invalid)
}

fn add_provider(words: &mut WordList, args: &ExecArgs, config: &ExecConfig, has_key: bool) {
    if let Some(script) = &args.script {
        words.add("--provider", Some("script"));
        words.add("--script", Some(script));
    } else if args.oss || args.local_provider.is_some() {
        if args.local_provider.as_deref() == Some("lmstudio") {
            words.add("--base-url", Some(LM_STUDIO_URL));
        } else {
            words.add("--provider", Some("ollama"));
        }
    } else if let Some(url) = &config.base_url {
        words.add("--provider", Some("openai"));
        words.add("--base-url", Some(url));
        words.add("--wire", Some("openai-responses"));
    } else if has_key {
        words.add("--provider", Some("openai"));
    }
}

fn add_sandbox(words: &mut WordList, args: &ExecArgs, config: &ExecConfig) {
    let by_flag = if args.dangerously_bypass_approvals_and_sandbox {
        Some(ExecSandbox::DangerFullAccess)
    } else if args.full_auto {
        Some(ExecSandbox::WorkspaceWrite)
    } else {
        args.sandbox
    };
    match by_flag.or(config.sandbox).unwrap_or(ExecSandbox::ReadOnly) {
        ExecSandbox::ReadOnly => words.add("--sandbox", Some("read-only")),
        ExecSandbox::WorkspaceWrite => {
            words.add("--sandbox", Some("workspace"));
            let roots = args.directories.iter().chain(&config.writable_roots);
            roots.for_each(|root| words.add("--add-dir", Some(root)));
            words.add("--network", config.network_access.map(|is_open| if is_open { "all" } else { "none" }));
        }
        ExecSandbox::DangerFullAccess => {
            words.add("--sandbox", Some("off"));
            words.add("--permission-mode", Some("bypassPermissions"));
            args.directories.iter().for_each(|root| words.add("--add-dir", Some(root)));
        }
    }
}

/// The levels that only Codex's own models have are the highest here.
fn effort(level: &str) -> &str {
    if matches!(level, "ultra" | "persistent") { "max" } else { level }
}

struct WordList(Vec<OsString>);

impl WordList {
    /// A flag with its value in one word, so that no value is taken for a flag.
    fn add(&mut self, flag: &str, value: Option<impl AsRef<Path>>) {
        let Some(value) = value else { return };
        let mut word = OsString::from(format!("{flag}="));
        word.push(value.as_ref());
        self.0.push(word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_a_prompt_or_name_a_run() {
        let of = |words: &[&str], last: bool| {
            ExecTask::of(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), last)
        };
        let task = |prompt: &[&str], run: EarlierChoice| ExecTask {
            prompt: prompt.iter().map(|word| (*word).to_owned()).collect(),
            run,
        };
        let session = |is_copy: bool| EarlierChoice::Session { id: "x".to_owned(), is_copy };
        assert_eq!(of(&["Resume it"], false).unwrap(), task(&["Resume it"], EarlierChoice::New));
        assert_eq!(of(&["resume", "x", "Go."], false).unwrap(), task(&["Go."], session(false)));
        assert_eq!(of(&["resume", "x"], false).unwrap(), task(&[], session(false)));
        assert_eq!(of(&["fork", "x", "-"], false).unwrap(), task(&["-"], session(true)));
        assert_eq!(
            of(&["resume", "Go."], true).unwrap(),
            task(&["Go."], EarlierChoice::Last { is_copy: false })
        );
        assert!(of(&["resume"], false).is_err() && of(&["Go."], true).is_err());
    }
}
