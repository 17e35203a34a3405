//! `AskUserQuestion`: questions with answers to choose from.

use std::collections::{BTreeMap, BTreeSet};

use haft_tool::prelude::*;
use haft_tool::{AnswerOption, UserQuestion, close_names};

/// Ask the user to choose where you cannot find out or decide yourself. They can always answer in their own words.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(length(min = 1, max = 4))]
    questions: Vec<AskedQuestion>,
    /// Answers that are known already, by question.
    #[serde(default)]
    answers: Option<BTreeMap<String, String>>,
    #[expect(dead_code, reason = "accepted, because clients send it")]
    metadata: Option<Metadata>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct AskedQuestion {
    question: String,
    /// One or two words.
    #[schemars(length(max = 12))]
    header: String,
    #[schemars(length(min = 2, max = 4))]
    options: Vec<QuestionOption>,
    /// Whether several may be chosen.
    #[serde(rename = "multiSelect")]
    multi_select: bool,
}

#[derive(Clone, Deserialize, Serialize, JsonSchema)]
struct QuestionOption {
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
    fn known_answer(&self, question: &AskedQuestion) -> Option<&String> {
        self.answers.as_ref()?.get(&question.question)
    }

    /// Answers are assigned by question and by label, so both must be unique.
    fn check(&self) -> Result<(), ToolError> {
        let invalid = |message: String| Err(ToolError::invalid_arguments(message));
        let mut questions = BTreeSet::new();
        for (at, AskedQuestion { question, options, .. }) in self.questions.iter().enumerate() {
            let labels: BTreeSet<_> = options.iter().map(|option| &option.label).collect();
            if question.trim().is_empty() {
                return invalid(format!("questions[{at}].question: it is empty"));
            }
            if !questions.insert(question.as_str()) {
                return invalid(format!("questions[{at}]: {question:?} is asked twice"));
            }
            if labels.len() < options.len() {
                return invalid(format!("questions[{at}].options: two have the same label"));
            }
        }
        let mut answered = self.answers.iter().flat_map(BTreeMap::keys);
        let Some(unknown) = answered.find(|answered| !questions.contains(answered.as_str())) else {
            return Ok(());
        };
        let hint = close_names(unknown, questions).first().map(|near| format!("; did you mean {near:?}?"));
        invalid(format!("answers: {unknown:?} is none of the questions{}", hint.unwrap_or_default()))
    }
}

impl AskedQuestion {
    fn for_user(&self) -> UserQuestion {
        let choice = |QuestionOption { label, description }| AnswerOption { label, description };
        UserQuestion {
            question: self.question.clone(),
            header: self.header.clone(),
            choices: self.options.iter().cloned().map(choice).collect(),
            several: self.multi_select,
        }
    }
}

impl Tool for AskUserQuestion {
    const NAME: &'static str = "AskUserQuestion";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Ask];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::UserAnswers);
    type Input = Input;
    type Plan = Input;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<Input>, ToolError> {
        input.check()?;
        let asks = input.questions.iter().any(|question| input.known_answer(question).is_none());
        Ok(Planned::new(asks.then_some(Effect::Ask), input))
    }

    fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let open = input.questions.iter().filter(|question| input.known_answer(question).is_none());
        let open: Vec<UserQuestion> = open.map(AskedQuestion::for_user).collect();
        let chosen = if open.is_empty() { Vec::new() } else { world.host().ask(&open, world.cancelled())? };
        if chosen.len() != open.len() {
            return Err(ToolError::internal("the host did not answer every question"));
        }
        let mut chosen = chosen.into_iter().map(|labels| labels.join(", "));
        let mut text = String::new();
        let mut answers = serde_json::Map::new();
        for question in &input.questions {
            let answer = input.known_answer(question).cloned().or_else(|| chosen.next()).unwrap_or_default();
            text.push_str(&format!("{}\n  {answer}\n", question.question));
            answers.insert(question.question.clone(), Value::String(answer));
        }
        Ok(Output::text(text).with_structured(json!({"questions": input.questions, "answers": answers})))
    }
}
