//! The host of calls where servers have tools: their resources come from them, everything else from the host.

use std::sync::Arc;

use haft_tool::{
    AgentOrder, AgentReport, Completion, Configuration, Host, Hosted, Logged, Message, ModelRole, Output,
    PlanReady, Resource, UserQuestion, Value,
};

use crate::Source;

pub(crate) struct Sourced {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
}

impl Host for Sourced {
    fn resources<'a>(&'a self, server: Option<&'a str>) -> Hosted<'a, Vec<Resource>> {
        Box::pin(async move {
            let mut all = Vec::new();
            for source in &self.sources {
                all.extend(source.resources(server)?);
            }
            Ok(all)
        })
    }

    fn resource<'a>(&'a self, server: &'a str, uri: &'a str) -> Hosted<'a, Output> {
        let Some((first, others)) = self.sources.split_first() else {
            return self.host.resource(server, uri);
        };
        Box::pin(async move {
            let found = first.resource(server, uri);
            others.iter().fold(found, |found, source| found.or_else(|_| source.resource(server, uri)))
        })
    }

    fn ask<'a>(&'a self, questions: &'a [UserQuestion]) -> Hosted<'a, Vec<Vec<String>>> {
        self.host.ask(questions)
    }

    fn agent<'a>(&'a self, order: &'a AgentOrder) -> Hosted<'a, AgentReport> {
        self.host.agent(order)
    }

    fn plan_ready<'a>(&'a self, plan: &'a PlanReady) -> Hosted<'a, String> {
        self.host.plan_ready(plan)
    }

    fn has_model(&self, role: ModelRole) -> bool {
        self.host.has_model(role)
    }

    fn complete<'a>(&'a self, completion: &'a Completion) -> Hosted<'a, String> {
        self.host.complete(completion)
    }

    fn send<'a>(&'a self, message: &'a Message) -> Hosted<'a, ()> {
        self.host.send(message)
    }

    fn log(&self, limit: usize) -> Hosted<'_, Vec<Logged>> {
        self.host.log(limit)
    }

    fn undo(&self, call: Option<i64>) -> Hosted<'_, Output> {
        self.host.undo(call)
    }

    fn configuration(&self) -> Option<&dyn Configuration> {
        self.host.configuration()
    }

    fn tell(&self, topic: &str, facts: &Value) {
        self.host.tell(topic, facts);
    }
}
