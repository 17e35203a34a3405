//! What is wrong with a set of rules: examples that do not hold, rules that another one makes useless.

use std::collections::HashMap;
use std::path::Path;

use haft_tool::Effect;

use crate::RuleText;
use crate::command::EffectView;
use crate::rule::{Behavior, Rule, Specifier};
use crate::rules::Rules;

impl Rule {
    /// Checks the examples of a rule; relative paths are those of the workspace.
    pub fn check_examples(&self, written: &RuleText, workspace: &Path) -> Result<(), String> {
        let matches = |example: &String| {
            self.effects_of(example, workspace)
                .iter()
                .any(|effect| self.matches(self.tool(), &EffectView::of(effect)))
        };
        let broken =
            |example: &String, how: &str| format!("the rule {} {how} its example {example:?}", self.cite());
        if let Some(missed) = written.matches.iter().find(|example| !matches(example)) {
            return Err(broken(missed, "does not match"));
        }
        match written.not_matches.iter().find(|example| matches(example)) {
            Some(matched) => Err(broken(matched, "matches")),
            None => Ok(()),
        }
    }

    /// What an example stands for, by what the rule is about.
    fn effects_of(&self, example: &str, workspace: &Path) -> Vec<Effect> {
        let run = || Effect::Run { command: example.to_owned() };
        let paths = || {
            let path = workspace.join(example);
            [Effect::Read { path: path.clone() }, Effect::Write { path }]
        };
        match self.specifier() {
            Some(Specifier::Path(_)) => paths().into(),
            Some(Specifier::Host(..)) => vec![Effect::Reach { host: example.to_owned() }],
            Some(Specifier::Either(..)) if self.tool() == "Bash" => vec![run()],
            Some(Specifier::Either(..)) => paths().into_iter().chain([run()]).collect(),
            _ => vec![run()],
        }
    }
}

impl Rules {
    /// Warnings about rules that change nothing, because a stronger or an equal one says the same or more.
    pub fn without_effect(&self) -> Vec<String> {
        let mut first: HashMap<(&str, Behavior, Option<String>), &Rule> = HashMap::new();
        let mut warnings = Vec::new();
        for rule in self.iter().filter(|rule| !rule.is_of_dialect()) {
            let key = (rule.tool(), rule.behavior(), rule.specifier_text().map(str::to_owned));
            let earlier = *first.entry(key).or_insert(rule);
            if !std::ptr::eq(earlier, rule) {
                warnings.push(format!("the rule {} repeats {}", rule.cite(), earlier.cite()));
            }
        }
        for rule in self.iter().filter(|rule| !rule.is_of_dialect()) {
            let found = |behavior: &Behavior| {
                let mut wider = wider(rule).into_iter();
                wider.find_map(|specifier| first.get(&(rule.tool(), *behavior, specifier)))
            };
            let stronger = rule.behavior().stronger().iter().find_map(found);
            if let Some(by) = stronger {
                warnings.push(format!(
                    "the rule {} has no effect, because {} {} the same",
                    rule.cite(),
                    by.cite(),
                    by.behavior().verb()
                ));
            }
        }
        warnings
    }
}

/// The specifiers that mean what a rule's own means, or more: none, and for commands the beginnings of its words.
fn wider(rule: &Rule) -> Vec<Option<String>> {
    let Some(text) = rule.specifier_text() else { return vec![None] };
    let mut all = vec![None, Some(text.to_owned())];
    if rule.is_about_commands() {
        let fixed = text.find('*').map_or(text, |star| text[..star].trim_end_matches([' ', ':']));
        let ends = fixed.match_indices(' ').map(|(at, _)| at).chain([fixed.len()]);
        let prefixes = ends.map(|end| &fixed[..end]).filter(|prefix| !prefix.is_empty());
        all.extend(prefixes.flat_map(|prefix| [Some(format!("{prefix}:*")), Some(format!("{prefix} *"))]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RuleTools;

    const WORKSPACE: &str = "/w";

    fn rule(behavior: Behavior, text: &str, line: usize) -> Rule {
        let origin = format!("haft.toml:{line}");
        Rule::parse(behavior, text, &origin, Path::new(WORKSPACE), &RuleTools::default()).unwrap()
    }

    fn warnings(rules: &[(Behavior, &str)]) -> Vec<String> {
        let mut all = Rules::default();
        for (line, (behavior, text)) in (1..).zip(rules) {
            all.push(rule(*behavior, text, line));
        }
        all.without_effect()
    }

    #[test]
    fn rules_without_effect_are_named_with_the_one_that_decides() {
        use Behavior::{Allow, Ask, Deny};
        assert_eq!(
            warnings(&[(Deny, "Bash(git push:*)"), (Allow, "Bash(git push origin main)")]),
            [
                "the rule Bash(git push origin main) (haft.toml:2) has no effect, because Bash(git push:*) (haft.toml:1) denies \
                 the same"
            ]
        );
        assert_eq!(
            warnings(&[(Allow, "Bash(ls)"), (Allow, "Bash(ls)")]),
            ["the rule Bash(ls) (haft.toml:2) repeats Bash(ls) (haft.toml:1)"]
        );
        for useless in [
            [(Deny, "Bash"), (Allow, "Bash(ls)")],
            [(Deny, "Bash(git *)"), (Ask, "Bash(git log:*)")],
            [(Ask, "Edit(/src/**)"), (Allow, "Edit(/src/**)")],
            [(Deny, "WebFetch(domain:example.com)"), (Allow, "WebFetch(domain:example.com)")],
        ] {
            assert_eq!(warnings(&useless).len(), 1, "{useless:?}");
        }
        for useful in [
            [(Deny, "Bash(git push:*)"), (Allow, "Bash(git:*)")],
            [(Deny, "Bash(gi:*)"), (Allow, "Bash(git log:*)")],
            [(Allow, "Bash(git:*)"), (Deny, "Bash(git push:*)")],
            [(Deny, "Edit(/src/**)"), (Allow, "Read(/src/**)")],
        ] {
            assert_eq!(warnings(&useful), [""; 0], "{useful:?}");
        }
    }

    #[test]
    fn examples_are_checked() {
        let check = |text: &str, matches: &[&str], not_matches: &[&str]| {
            let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
            let written =
                RuleText { matches: words(matches), not_matches: words(not_matches), ..text.into() };
            rule(Behavior::Allow, text, 3).check_examples(&written, Path::new(WORKSPACE))
        };
        check("Bash(git log:*)", &["git log", "git log -n 1"], &["git push", "git log; rm x"]).unwrap();
        check("Edit(/src/**)", &["src/a.rs", "/w/src/b/c.rs"], &["docs/a.md", "/src/a.rs"]).unwrap();
        check("WebFetch(domain:example.com)", &["example.com", "docs.example.com"], &["example.org"])
            .unwrap();
        assert_eq!(
            check("Bash(git log:*)", &["git status"], &[]).unwrap_err(),
            "the rule Bash(git log:*) (haft.toml:3) does not match its example \"git status\""
        );
        assert!(check("Bash(git *)", &[], &["git push"]).unwrap_err().contains("matches its example"));
    }
}
