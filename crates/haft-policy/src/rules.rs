//! All rules of a call, found by the tools that they name.

use std::collections::HashMap;
use std::path::Path;
use std::sync::OnceLock;

use globset::{GlobSet, GlobSetBuilder};
use haft_tool::{Effect, Scope};

use crate::command::{EffectView, ParsedCommand, PartOf};
use crate::rule::{Behavior, PathUse, Rule, Specifier};

/// All rules of a call, whatever file or flag they come from.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// The rules that name a tool, by what they say and the tool.
    by_tool: HashMap<(Behavior, String), ToolRules>,
    /// Those whose name may mean several tools, by what they say.
    of_many: HashMap<Behavior, ToolRules>,
}

/// Numbers of rules, in ascending order.
#[derive(Debug, Clone, Default)]
struct ToolRules {
    /// Those with a path pattern.
    with_path: Vec<usize>,
    others: Vec<usize>,
    /// The path patterns together; `None` if they cannot be compiled together. With thousands of rules it is many times faster
    /// than one after the other.
    paths: OnceLock<Option<GlobSet>>,
}

impl ToolRules {
    fn push(&mut self, number: usize, rule: &Rule) {
        match rule.path_pattern() {
            Some(_) => {
                self.with_path.push(number);
                self.paths = OnceLock::new();
            }
            None => self.others.push(number),
        }
        // A pattern that may also be a command is in both.
        if rule.command_pattern().is_some() && rule.path_pattern().is_some() {
            self.others.push(number);
        }
    }

    /// The rules that may mean the effect, in ascending order.
    fn candidates(&self, rules: &[Rule], effect: &Effect) -> Vec<usize> {
        let (Effect::Read { path } | Effect::Write { path }) = effect else { return self.others.clone() };
        let mut found = self.of_path(rules, path);
        found.extend(&self.others);
        found.sort_unstable();
        found.dedup();
        found
    }

    fn of_path(&self, rules: &[Rule], path: &Path) -> Vec<usize> {
        let patterns = || self.with_path.iter().filter_map(|number| rules.get(*number)?.path_pattern());
        let compile = || {
            let mut set = GlobSetBuilder::new();
            for pattern in patterns() {
                set.add(pattern.glob().clone());
            }
            set.build().ok()
        };
        let Some(set) = self.paths.get_or_init(compile) else { return self.with_path.clone() };
        let mut matched = Vec::new();
        for path in path.ancestors() {
            matched.extend(set.matches(path));
        }
        matched.into_iter().filter_map(|index| self.with_path.get(index).copied()).collect()
    }
}

impl Rules {
    /// Adds a rule.
    pub fn push(&mut self, rule: Rule) {
        let number = self.rules.len();
        let list = if rule.may_name_several_tools() {
            self.of_many.entry(rule.behavior()).or_default()
        } else {
            self.by_tool.entry((rule.behavior(), rule.tool().to_owned())).or_default()
        };
        list.push(number, &rule);
        self.rules.push(rule);
    }

    /// All rules, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// The first rule of this behavior that speaks of any of the effects (of the tool as such, if it has none).
    pub(crate) fn any(&self, behavior: Behavior, tool: &str, effects: &[EffectView<'_>]) -> Option<&Rule> {
        let of_tool =
            self.of(behavior, tool).filter(|(_, rule)| rule.specifier().is_none() && rule.names(tool));
        let of_effects = effects.iter().filter_map(|view| self.first(behavior, tool, view, |_| true));
        first_of(of_tool.chain(of_effects))
    }

    /// The rule that allows this effect of `tool`. Several rules can allow a command together; then it is the first of them.
    pub(crate) fn allowing(&self, tool: &str, view: &EffectView<'_>) -> Option<&Rule> {
        let rule = self.first(Behavior::Allow, tool, view, |rule| !rule.is_of_dialect());
        rule.map(|(_, rule)| rule).or_else(|| self.allowing_parts(tool, view, view.command()?))
    }

    fn allowing_parts(&self, tool: &str, view: &EffectView<'_>, command: &ParsedCommand) -> Option<&Rule> {
        let rules = self.rules_of_commands(tool, view.effect);
        let covering = |part: PartOf<'_>| covering(&rules, part);
        let all_covered = command.uncovered(|part| covering(part).is_some())?.is_empty();
        all_covered.then(|| command.parts().find_map(covering)).flatten()
    }

    /// The parts of a command that need a rule and have none; `None` if it is not understood.
    pub(crate) fn uncovered_parts<'v>(&self, tool: &str, view: &'v EffectView<'_>) -> Option<Vec<&'v str>> {
        let rules = self.rules_of_commands(tool, view.effect);
        view.command()?.uncovered(|part| covering(&rules, part).is_some())
    }

    /// The rules that allow commands by patterns.
    fn rules_of_commands(&self, tool: &str, effect: &Effect) -> Vec<&Rule> {
        let numbers = self.candidates(Behavior::Allow, tool, effect).into_iter();
        let rules = numbers.filter_map(|number| self.rules.get(number));
        rules.filter(|rule| rule.may_speak_of(tool, effect)).collect()
    }

    /// The rule that allows this effect by naming it, not by naming the tool alone.
    pub(crate) fn granting(&self, tool: &str, view: &EffectView<'_>) -> Option<&Rule> {
        let granting = self.first(Behavior::Allow, tool, view, |rule| rule.specifier().is_some());
        granting.map(|(_, rule)| rule)
    }

    /// The rule that allows `tool` whatever it touches.
    pub(crate) fn trusting(&self, tool: &str) -> Option<&Rule> {
        self.whole(Behavior::Allow, tool)
    }

    /// The rule that takes `tool` away as a whole, so that it need not be offered.
    pub fn removing(&self, tool: &str) -> Option<&Rule> {
        self.whole(Behavior::Deny, tool)
    }

    /// The absolute globs of paths that rules keep the call from: those of deny rules, and those of ask rules that do not
    /// speak of its own effects, so that no question is asked for them.
    pub(crate) fn withheld_paths(
        &self,
        tool: &str,
        effects: &[EffectView<'_>],
        path_use: PathUse,
        user_request: bool,
    ) -> Vec<String> {
        let covering = match path_use {
            PathUse::Read => "Read",
            PathUse::Write => "Edit",
        };
        let of = |behavior| {
            let numbers = self.lists(behavior, tool, covering).flat_map(|list| list.with_path.iter());
            let rules = numbers.filter_map(|number| self.rules.get(*number));
            rules.filter(|rule| rule.tool() == covering || rule.names(tool))
        };
        let asking = of(Behavior::Ask)
            .filter(|rule| !user_request && !effects.iter().any(|view| rule.matches(tool, view)));
        let withholding = of(Behavior::Deny).chain(asking);
        withholding.filter_map(|rule| Some(rule.path_pattern()?.glob().glob().to_owned())).collect()
    }

    /// A scope for programs of the user's own, such as MCP servers, without the paths that `Read` and `Edit` rules deny or ask about.
    #[must_use]
    pub fn restrict(&self, scope: Scope) -> Scope {
        let withheld = |path_use| self.withheld_paths("", &[], path_use, false);
        Scope { unreadable: withheld(PathUse::Read), unwritable: withheld(PathUse::Write), ..scope }
    }

    /// The hosts that rules deny `tool` or ask about, as a list of hosts writes them.
    pub(crate) fn held_back(&self, tool: &str) -> Vec<String> {
        let names = |rule: &&Rule| rule.names(tool) || rule.tool() == "WebFetch";
        let held = self.rules.iter().filter(|rule| rule.behavior() != Behavior::Allow).filter(names);
        held.filter_map(|rule| match rule.specifier() {
            Some(Specifier::Host(_, entries)) => Some(entries.clone()),
            _ => None,
        })
        .flatten()
        .collect()
    }

    fn whole(&self, behavior: Behavior, tool: &str) -> Option<&Rule> {
        first_of(self.of(behavior, tool).filter(|(_, rule)| rule.specifier().is_none() && rule.names(tool)))
    }

    /// The first rule of this behavior that means the effect.
    fn first(
        &self,
        behavior: Behavior,
        tool: &str,
        view: &EffectView<'_>,
        is_wanted: impl Fn(&Rule) -> bool,
    ) -> Option<(usize, &Rule)> {
        let numbers = self.candidates(behavior, tool, view.effect).into_iter();
        let mut rules = numbers.filter_map(|number| Some((number, self.rules.get(number)?)));
        rules.find(|(_, rule)| is_wanted(rule) && rule.matches(tool, view))
    }

    /// The numbers of the rules that may mean the effect, in ascending order.
    fn candidates(&self, behavior: Behavior, tool: &str, effect: &Effect) -> Vec<usize> {
        let covering = match effect {
            Effect::Read { .. } => "Read",
            Effect::Write { .. } => "Edit",
            Effect::Run { .. } => "Bash",
            Effect::Reach { .. } => "WebFetch",
            _ => tool,
        };
        let mut numbers: Vec<usize> = self
            .lists(behavior, tool, covering)
            .flat_map(|list| list.candidates(&self.rules, effect))
            .collect();
        numbers.sort_unstable();
        numbers
    }

    /// The rules that name the tool, in no order.
    fn of(&self, behavior: Behavior, tool: &str) -> impl Iterator<Item = (usize, &Rule)> {
        let numbers = self.lists(behavior, tool, tool).flat_map(|list| list.others.iter());
        numbers.filter_map(|number| Some((*number, self.rules.get(*number)?)))
    }

    /// The lists with the rules that may speak of one of two tools, which can be the same.
    fn lists(&self, behavior: Behavior, tool: &str, covering: &str) -> impl Iterator<Item = &ToolRules> {
        let list = |name: &str| self.by_tool.get(&(behavior, name.to_owned()));
        let of_covering = if covering == tool { None } else { list(covering) };
        list(tool).into_iter().chain(of_covering).chain(self.of_many.get(&behavior))
    }
}

/// The rule that covers a part of a command.
fn covering<'a>(rules: &[&'a Rule], part: PartOf<'_>) -> Option<&'a Rule> {
    let covers = |rule: &&&Rule| rule.command_pattern().is_some_and(|pattern| part.is_covered(pattern));
    rules.iter().find(covers).copied()
}

fn first_of<'a>(rules: impl Iterator<Item = (usize, &'a Rule)>) -> Option<&'a Rule> {
    rules.min_by_key(|(number, _)| *number).map(|(_, rule)| rule)
}
