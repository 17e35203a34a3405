//! `hooks`: for each event, groups of handlers with a matcher.

use std::str::FromStr;
use std::time::Duration;

use haft_tool::close_names;

use crate::hooks::{HookEvent, HookMatcher, OnFailure};

use super::document::{Located, Member, Tree};
use super::object::{ObjectReader, Restricts, expected};

/// Longest timeout of a hook; a longer one in the file is this one.
pub const MAX_HOOK_TIMEOUT: Duration = Duration::from_hours(24);

/// A shorter timeout in the file is this one, so that a fraction is not rounded to none.
const MIN_HOOK_TIMEOUT: Duration = Duration::from_millis(1);

/// `hooks`, in the file's order.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HookSettings {
    /// One entry for each event in the file.
    pub events: Vec<EventHooks>,
}

/// The hooks of one event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct EventHooks {
    /// The event. Ones that Haft does not have are kept and reported as problems.
    pub event: Located<HookEvent>,
    /// Its groups.
    pub groups: Vec<HookGroup>,
}

/// Handlers that run together.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HookGroup {
    /// What the event's subject must match. Absent in the file, it matches everything.
    pub matcher: Located<HookMatcher>,
    /// What runs.
    pub handlers: Vec<Located<HookHandler>>,
}

/// One handler.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct HookHandler {
    /// What it does.
    pub action: HookAction,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// `if`: a permission rule that the call must match.
    pub condition: Option<Located<String>>,
    /// Whether it runs in the background and decides nothing.
    pub is_async: bool,
    /// Whether it runs only once in a session.
    pub once: bool,
    /// What its failure means.
    pub on_failure: Option<OnFailure>,
    /// `statusMessage`: shown while it runs.
    pub status_message: Option<String>,
}

/// What a handler does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HookAction {
    /// Runs a command.
    Command {
        /// The command: a line for a shell or, with `arguments`, a program.
        command: String,
        /// `args`: with them no shell is used.
        arguments: Option<Vec<String>>,
    },
    /// A kind that Haft does not run: `http`, `mcp_tool`, `prompt`, `agent`, or a newer one. Reported as a problem.
    Unsupported {
        /// Its `type`.
        kind: String,
    },
}

impl HookSettings {
    /// The groups of an event, in the file's order.
    pub fn groups(&self, event: &HookEvent) -> impl Iterator<Item = &HookGroup> {
        self.events.iter().filter(move |hooks| hooks.event.value == *event).flat_map(|hooks| &hooks.groups)
    }

    pub(super) fn read(mut reader: ObjectReader<'_>) -> Self {
        let mut events = Vec::new();
        for Member { name, value } in reader.rest() {
            let event = HookEvent::from_name(&name.value);
            let restricts = restricts(&event);
            report_event(&mut reader, &name, &event);
            let mut groups = Vec::new();
            match value.value {
                Tree::List(elements) => {
                    groups.extend(elements.into_iter().map(|group| read_group(&mut reader, &event, group)));
                }
                Tree::Null => {}
                ref other => reader.problem(&name.value, &value, restricts, expected("a list", other)),
            }
            events.push(EventHooks { event: name.with(event), groups });
        }
        Self { events }
    }
}

/// Whether hooks of an event can hold something back.
fn restricts(event: &HookEvent) -> Restricts {
    if event.guards() { Restricts::Yes } else { Restricts::No }
}

/// Notes an event that Haft does not have.
fn report_event(reader: &mut ObjectReader<'_>, name: &Located<String>, event: &HookEvent) {
    let HookEvent::Other(_) = event else { return };
    let why = if event.is_known_to_claude() {
        "Haft does not have this event; its hooks never run".to_owned()
    } else {
        let near = close_names(&name.value, HookEvent::NAMES.iter().copied()).into_iter().next();
        let hint = near.map(|near| format!(". Did you mean {near}?")).unwrap_or_default();
        format!("there is no such event{hint}")
    };
    // What was meant may have been a guard.
    let restricts = if event.is_known_to_claude() { Restricts::No } else { Restricts::Yes };
    reader.problem(&name.value, name, restricts, why);
}

fn read_group(reader: &mut ObjectReader<'_>, event: &HookEvent, group: Located<Tree>) -> HookGroup {
    let (restricts, place) = (restricts(event), group.with(()));
    let key = reader.key(event.name());
    let mut object = ObjectReader::new(&key, group, restricts, reader.findings());
    let matcher = object.text("matcher", restricts).unwrap_or_else(|| place.with(String::new()));
    let matcher = matcher.with(HookMatcher::new(&matcher.value, event));
    if let Some(why) = matcher.value.unreadable() {
        let why = format!("{why}; it is taken to match everything");
        object.problem("matcher", &matcher, Restricts::No, why);
    }
    // What the SDKs send for all handlers of a group.
    let on_failure = read_on_failure(&mut object, restricts);
    let timeout = read_timeout(&mut object);
    let mut handlers = Vec::new();
    for handler in object.list("hooks", restricts).unwrap_or_default() {
        let place = handler.with(());
        let handler = read_handler(&mut object, handler, restricts);
        handlers.extend(handler.map(|handler| {
            let on_failure = handler.on_failure.or(on_failure);
            place.with(HookHandler { on_failure, timeout: handler.timeout.or(timeout), ..handler })
        }));
    }
    object.finish();
    HookGroup { matcher, handlers }
}

fn read_handler(
    reader: &mut ObjectReader<'_>,
    handler: Located<Tree>,
    restricts: Restricts,
) -> Option<HookHandler> {
    let (place, key) = (handler.with(()), reader.key("hooks"));
    let mut object = ObjectReader::new(&key, handler, restricts, reader.findings());
    let kind = object.text("type", restricts).map_or_else(|| "command".to_owned(), |kind| kind.value);
    let action = if kind == "command" {
        let command = object.text("command", restricts).filter(|command| !command.value.trim().is_empty());
        let Some(command) = command else {
            object.findings().problem(&key, &place, restricts, "it has no `command`".to_owned());
            return None;
        };
        let arguments = object.texts("args", restricts);
        let arguments = arguments.map(|all| all.into_iter().map(|it| it.value).collect());
        HookAction::Command { command: command.value, arguments }
    } else {
        let why = format!("Haft does not run hooks of the type {kind:?}");
        object.findings().problem(&key, &place, restricts, why);
        HookAction::Unsupported { kind }
    };
    let shell = object.text("shell", restricts).filter(|shell| shell.value != "bash");
    if let Some(shell) = shell {
        object.problem("shell", &shell, restricts, format!("there is no shell {:?} here", shell.value));
        return None;
    }
    let flag =
        |object: &mut ObjectReader<'_>, name| object.bool(name, Restricts::No).is_some_and(|it| it.value);
    let rewakes = flag(&mut object, "asyncRewake");
    let handler = HookHandler {
        action,
        timeout: read_timeout(&mut object),
        condition: object.text("if", restricts),
        is_async: flag(&mut object, "async") || rewakes,
        once: flag(&mut object, "once"),
        on_failure: read_on_failure(&mut object, restricts),
        status_message: object.text("statusMessage", Restricts::No).map(|it| it.value),
    };
    // Keys of other types, and those of newer versions.
    let is_command = matches!(handler.action, HookAction::Command { .. });
    if is_command {
        object.finish();
    } else {
        drop(object.rest());
    }
    Some(handler)
}

/// `onFailure`, which may also be written `on_failure`.
fn read_on_failure(object: &mut ObjectReader<'_>, restricts: Restricts) -> Option<OnFailure> {
    let camel = object.word("onFailure", restricts);
    let snake = object.word("on_failure", restricts);
    camel.or(snake).map(|word| word.value)
}

/// A number of seconds. One that is not is a problem and no timeout of its own.
fn read_timeout(object: &mut ObjectReader<'_>) -> Option<Duration> {
    let seconds = object.number("timeout", Restricts::No)?;
    match Duration::try_from_secs_f64(seconds.value) {
        Ok(timeout) if seconds.value > 0.0 => Some(timeout.clamp(MIN_HOOK_TIMEOUT, MAX_HOOK_TIMEOUT)),
        Err(_) if seconds.value > 0.0 => Some(MAX_HOOK_TIMEOUT),
        _ => {
            let why = "must be a number of seconds above 0".to_owned();
            object.problem("timeout", &seconds, Restricts::No, why);
            None
        }
    }
}

impl FromStr for OnFailure {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "block" => Ok(Self::Block),
            "continue" => Ok(Self::Continue),
            _ => Err(format!("must be \"block\" or \"continue\", not {name:?}")),
        }
    }
}
