//! Drives a prepared run: what is said goes through skills and routing, and its end ends what it started.

use haft_agent::{AgentRun, RunObserver, TurnReport};
use haft_model::{ContentPart, ModelSet};
use haft_tool::{Cancel, ToolError};

use super::super::screen::{self, FAINT, styled};
use super::prepare::PreparedRun;

impl PreparedRun {
    /// Says something to the model, with the skills that its words ask for; if prompts are routed, to the model that suits it.
    pub(in crate::cli) fn say(
        &mut self,
        prompt: &str,
        observer: &mut dyn RunObserver,
        cancel: &Cancel,
    ) -> Result<TurnReport, ToolError> {
        self.say_as(vec![ContentPart::text(prompt)], None, observer, cancel)
    }

    /// The same with images, and with the id that the author gave the message.
    pub(in crate::cli) fn say_as(
        &mut self,
        content: Vec<ContentPart>,
        uuid: Option<String>,
        observer: &mut dyn RunObserver,
        cancel: &Cancel,
    ) -> Result<TurnReport, ToolError> {
        let words: Vec<&str> = content
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text { text } => Some(text.as_str()),
                ContentPart::Image { .. } => None,
            })
            .collect();
        let prompt = words.join("\n\n");
        if let Some(models) = &self.routed {
            route(&mut self.run, models, &prompt, cancel)?;
        }
        // The first part is the prompt itself.
        let skills = self.skills.content(&prompt).into_iter().skip(1);
        let content = content.into_iter().chain(skills).collect();
        self.run.say_as(content, uuid, observer, cancel)
    }

    /// Ends the subagents and processes of the run, and collects what the subagents have used.
    pub(in crate::cli) fn end(
        &mut self,
        observer: &mut dyn RunObserver,
        cancel: &Cancel,
    ) -> Result<(), ToolError> {
        self.agents.close();
        // A signal that ended the turn does not keep the session's end from its hooks, but the next one does.
        let fresh = Cancel::new();
        let cancel = if cancel.is_cancelled() { &fresh } else { cancel };
        self.run.end_session("other", observer, cancel);
        let collected = self.run.take_reports(observer);
        self.runtime.end();
        collected
    }

    /// Waits for the delivery of messages, and says which were not delivered.
    pub(in crate::cli) fn close_channels(&self) {
        for lost in self.setup.host.close() {
            let channel = screen::escape(&lost.message.channel);
            screen::error(&format!("a message to {channel} was not delivered: {}", lost.error.message));
        }
    }
}

/// Lets the fast model choose the one that answers.
fn route(run: &mut AgentRun, models: &ModelSet, prompt: &str, cancel: &Cancel) -> Result<(), ToolError> {
    // Without a judgement the model that was chosen answers.
    let model = models.route(prompt, &mut |_| {}, cancel).unwrap_or(&models.complex);
    if models.fast != models.complex {
        screen::note(&styled(FAINT, &format!("{model} answers, as {} judged", models.fast)));
    }
    run.use_model_named(model)
}
