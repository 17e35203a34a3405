//! `AskUserQuestion`: a few questions with answers to choose from.

use std::collections::BTreeMap;

use haft_tool::{
    Choice, Effect, EffectKind, JsonSchema, Output, Planned, Planning, Tool, ToolError, UserQuestion, Value,
    World, close_names, json,
};
use serde::{Deserialize, Serialize};

/// Ask the user to choose where you cannot find out or decide yourself. They can always answer in their own words.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<Question>,
    /// Answers that are known already, by question.
    #[serde(default)]
    answers: Option<BTreeMap<String, String>>,
    #[expect(dead_code, reason = "accepted, because clients send it")]
    metadata: Option<Metadata>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Question {
    question: String,
    /// One or two words.
    #[schemars(length(max = 12))]
    header: String,
    #[schemars(length(min = 2, max = 4))]
    options: Vec<Answer>,
    /// Whether several may be chosen.
    #[serde(rename = "multiSelect")]
    multi_select: bool,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Answer {
    label: String,
    /// What it means to choose this.
    description: String,
}

#[derive(Deserialize, JsonSchema)]
struct Metadata {
    #[expect(dead_code, reason = "accepted, because clients send it")]
    source: Option<String>,
}

pub(super) struct AskUserQuestion;

impl Input {
    /// The questions that nobody has answered yet.
    fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| self.known(question).is_none())
    }

    fn known(&self, question: &Question) -> Option<&String> {
        self.answers.as_ref().and_then(|answers| answers.get(&question.question))
    }

    /// Answers are told by question, so no two may be the same.
    fn check(&self) -> Result<(), ToolError> {
        let twice = |at: usize, question: &Question| {
            self.questions[..at].iter().any(|earlier| earlier.question == question.question)
        };
        for (at, question) in self.questions.iter().enumerate() {
            if question.question.trim().is_empty() {
                return Err(ToolError::invalid_arguments(format!("questions[{at}].question: it is empty")));
            }
            if twice(at, question) {
                return Err(ToolError::invalid_arguments(format!(
                    "questions[{at}]: {:?} is asked twice",
                    question.question
                )));
            }
            let labels: Vec<_> = question.options.iter().map(|option| &option.label).collect();
            if (1..labels.len()).any(|at| labels[..at].contains(&labels[at])) {
                let why = format!("questions[{at}].options: two have the same label");
                return Err(ToolError::invalid_arguments(why));
            }
        }
        let asked = || self.questions.iter().map(|question| question.question.as_str());
        for answered in self.answers.iter().flat_map(BTreeMap::keys) {
            if !asked().any(|question| question == answered) {
                let near = close_names(answered, asked());
                let near = near.first().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                let why = format!("answers: {answered:?} is none of the questions{near}");
                return Err(ToolError::invalid_arguments(why));
            }
        }
        Ok(())
    }
}

impl From<&Question> for UserQuestion {
    fn from(question: &Question) -> Self {
        let choice =
            |option: &Answer| Choice { label: option.label.clone(), description: option.description.clone() };
        Self {
            question: question.question.clone(),
            header: question.header.clone(),
            choices: question.options.iter().map(choice).collect(),
            several: question.multi_select,
        }
    }
}

impl Tool for AskUserQuestion {
    const NAME: &'static str = "AskUserQuestion";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Ask];
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        input.check()?;
        let asks = input.open().next().map(|_| Effect::Ask);
        Ok(Planned::new(asks, input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let open: Vec<UserQuestion> = input.open().map(UserQuestion::from).collect();
        let given = if open.is_empty() { Vec::new() } else { world.host().ask(&open, world.cancelled())? };
        if given.len() != open.len() {
            return Err(ToolError::internal("the host did not answer every question"));
        }
        let mut given = given.into_iter().map(|chosen| chosen.join(", "));
        let mut text = String::new();
        let mut answers = serde_json::Map::new();
        for question in &input.questions {
            let answer = input.known(question).cloned().or_else(|| given.next()).unwrap_or_default();
            text.push_str(&format!("{}\n  {answer}\n", question.question));
            answers.insert(question.question.clone(), Value::String(answer));
        }
        Ok(Output::text(text).with_structured(json!({"questions": input.questions, "answers": answers})))
    }
}
