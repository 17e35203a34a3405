//! `haft sessions export` and `haft sessions show`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use haft_compat::transcripts::{
    ClaudeTranscriptHead, Transcript, claude_project_name, write_claude_transcript,
};
use haft_files::{is_directory, overwrite_private};
use haft_tool::ToolError;
use sha2::{Digest as _, Sha256};

use super::super::CommandResult;
use super::super::exit::CliExit;
use super::super::screen::{self, FAINT, styled};
use super::super::telemetry;
use super::super::view::ViewArgs;
use super::foreign::is_uuid;
use super::formats::{html, json_document, json_lines, markdown};
use super::source::SourceArgs;
use crate::config::Config;

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Args)]
pub(super) struct SessionShowArgs {
    #[command(flatten)]
    source: SourceArgs,
    #[command(flatten)]
    view: ViewArgs,
}

// No doc comment, because clap would show it instead of the command's own help.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  haft sessions export > run.md\n  haft sessions export --format html -o run.html\n  \
                        haft sessions export --from claude --format json\n  haft sessions export --format claude -o .\n  \
                        haft sessions export --format otlp -o spans.jsonl\n\n\
                        `claude --resume` looks for its transcripts in ~/.claude/projects/DIRECTORY/ID.jsonl; where the file has to be is said \
                        on standard error."
)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Form of the output.
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "markdown")]
    format: ExportFormat,
    /// Send the session's spans, and those of its subagents, to the OpenTelemetry collector of the settings.
    #[arg(long, conflicts_with_all = ["format", "output", "from"])]
    otel: bool,
    /// Write to this file, or to a file in this directory, instead of standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// One JSON object per line: the session, then what was said and done.
    Jsonl,
    /// Text with headings and fenced blocks.
    Markdown,
    /// One JSON document.
    Json,
    /// One page that needs nothing else: no scripts, no requests.
    Html,
    /// A transcript with which `claude --resume` goes on.
    Claude,
    /// OpenTelemetry spans, as a collector reads them from files: one JSON object per line.
    Otlp,
}

impl ExportFormat {
    const fn extension(self) -> &'static str {
        match self {
            Self::Markdown => "md",
            Self::Json => "json",
            Self::Html => "html",
            Self::Jsonl | Self::Claude | Self::Otlp => "jsonl",
        }
    }
}

pub(super) fn show(args: &SessionShowArgs) -> CommandResult {
    args.view.set_colors();
    let transcript = args.source.transcript()?;
    args.view.show(&markdown::render(&transcript));
    note_omissions(&transcript);
    Ok(CliExit::Done)
}

pub(super) fn run(args: &ExportArgs) -> CommandResult {
    if args.otel {
        return send(args);
    }
    let transcript = || args.source.transcript().inspect(note_omissions);
    let (text, name) = match args.format {
        ExportFormat::Jsonl => named(&transcript()?, json_lines)?,
        ExportFormat::Json => named(&transcript()?, json_document)?,
        ExportFormat::Markdown => named(&transcript()?, |transcript| Ok(markdown::render(transcript)))?,
        ExportFormat::Html => named(&transcript()?, |transcript| Ok(html::render(transcript)))?,
        ExportFormat::Claude => claude(&transcript()?)?,
        ExportFormat::Otlp => otlp(args)?,
    };
    write(args, &text, &name)
}

/// The session in a form, with its id.
fn named(
    transcript: &Transcript,
    render: impl FnOnce(&Transcript) -> Result<String, ToolError>,
) -> Result<(String, String), ToolError> {
    Ok((render(transcript)?, transcript.session.clone()))
}

/// The spans of the session, with its id.
fn otlp(args: &ExportArgs) -> Result<(String, String), ToolError> {
    let (ledger, session) = args.source.ledger_session()?;
    let section = Config::load(&session.workspace)?.values.otel;
    let lines = telemetry::session_lines(&ledger, &session, &section)?;
    Ok((lines, session.id))
}

/// Sends the spans of the session.
fn send(args: &ExportArgs) -> CommandResult {
    let (ledger, session) = args.source.ledger_session()?;
    let section = Config::load(&session.workspace)?.values.otel;
    let count = telemetry::send_session(&ledger, &session, &section)?;
    screen::note(&styled(FAINT, &format!("sent {}", screen::count(count, "span"))));
    Ok(CliExit::Done)
}

/// Writes the session to where the arguments say.
fn write(args: &ExportArgs, text: &str, name: &str) -> CommandResult {
    let Some(output) = &args.output else {
        screen::result(text);
        return Ok(CliExit::Done);
    };
    let path = match is_directory(output) {
        Ok(true) => output.join(format!("{name}.{}", args.format.extension())),
        _ => output.clone(),
    };
    overwrite_private(&path, text.as_bytes())?;
    screen::note(&styled(FAINT, &format!("written to {}", screen::escape(&path.display().to_string()))));
    Ok(CliExit::Done)
}

fn note_omissions(transcript: &Transcript) {
    let Transcript { skipped_lines, invalid_lines, .. } = transcript;
    if *invalid_lines > 0 {
        let lines = screen::count(*invalid_lines as u64, "line");
        screen::warnings(&[format!("{lines} of the transcript could not be read")]);
    }
    if *skipped_lines > 0 {
        tracing::debug!(skipped_lines, "lines of kinds that are not known were skipped");
    }
}

/// The transcript for Claude Code with the session's id there; says where it has to be.
fn claude(transcript: &Transcript) -> Result<(String, String), ToolError> {
    if transcript.messages().is_empty() {
        return Err(ToolError::invalid_arguments(format!(
            "Session {} has no conversation that could go on.",
            transcript.session
        )));
    }
    let cwd = match &transcript.workspace {
        Some(workspace) => PathBuf::from(workspace),
        None => {
            std::env::current_dir().map_err(|error| ToolError::io("find the current directory", &error))?
        }
    };
    let id = claude_id(transcript, &cwd);
    let cwd = cwd.display().to_string();
    let head = ClaudeTranscriptHead { session: &id, cwd: &cwd };
    let text = write_claude_transcript(transcript, head);
    let place = claude_project_name(&cwd).map(|project| {
        format!(
            "as ~/.claude/projects/{project}/{id}.jsonl it is continued by `claude --resume {id}` in {cwd}"
        )
    });
    if let Some(place) = place {
        screen::note(&styled(FAINT, &screen::escape(&place)));
    }
    Ok((text, id))
}

/// The session's id if it is a UUID, else one that is made from it, so that the same session always gets the same.
fn claude_id(transcript: &Transcript, cwd: &Path) -> String {
    if is_uuid(&transcript.session) {
        return transcript.session.clone();
    }
    let hash = Sha256::digest(format!("haft {} {}", transcript.session, cwd.display()));
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    // Version 8, which says that the rest is the writer's own; its variant begins with 8.
    format!("{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}
