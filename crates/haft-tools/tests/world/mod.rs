//! A World with nothing in it but a network and a host.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::{Arc, Mutex};

use haft_tool::{
    Cancel, Dialect, Effect, Files, Host, Http, NoHost, Output, Planning, Processes, Progress, Tasks,
    ToolError, Value, World,
};
use haft_tools::Settings;

use crate::http_fixture::PlainHttp;

pub(crate) struct TestWorld {
    planning: Planning,
    cancel: Cancel,
    said: Mutex<Vec<String>>,
    host: Box<dyn Host>,
}

impl Default for TestWorld {
    fn default() -> Self {
        Self::with(NoHost)
    }
}

fn planning() -> Planning {
    Planning { workspace: "/w".into(), spelled: None }
}

impl TestWorld {
    pub(crate) fn with(host: impl Host + 'static) -> Self {
        Self { planning: planning(), cancel: Cancel::new(), said: Mutex::default(), host: Box::new(host) }
    }

    /// Plans and performs. A result whose schema is declared has to fit it.
    pub(crate) fn call(&self, dialect: &Dialect, tool: &str, arguments: Value) -> Result<Output, ToolError> {
        let tool = dialect.tools.iter().find(|one| one.name() == tool).unwrap();
        let planned = Arc::clone(tool).plan(arguments, &self.planning)?;
        let result = (planned.plan)(self);
        if let (Some(schema), Ok(output)) = (tool.output_schema(), &result) {
            let value = output.structured.as_ref().unwrap();
            let misfit = jsonschema::draft202012::validate(&schema(), value);
            assert!(misfit.is_ok(), "{}: {value}", tool.name());
        }
        result
    }

    /// What watchers were told.
    pub(crate) fn progress(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

/// The hosts that a call says it will reach.
pub(crate) fn reached(dialect: &Dialect, tool: &str, arguments: Value) -> Vec<String> {
    let tool = dialect.tools.iter().find(|one| one.name() == tool).unwrap();
    let effects = Arc::clone(tool).plan(arguments, &planning()).unwrap().effects;
    let host = |effect| match effect {
        Effect::Reach { host } => host,
        other => unreachable!("{other:?}"),
    };
    effects.into_iter().map(host).collect()
}

fn settings(value: Value) -> Settings {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn claude(value: Value) -> Dialect {
    haft_tools::dialects::claude::dialect(&settings(value))
}

pub(crate) fn loom(value: Value) -> Dialect {
    haft_tools::dialects::loom::dialect(&settings(value))
}

pub(crate) fn clawft(value: Value) -> Dialect {
    haft_tools::dialects::clawft::dialect(&settings(value))
}

impl World for TestWorld {
    fn planning(&self) -> &Planning {
        &self.planning
    }
    fn files(&self) -> &dyn Files {
        unreachable!("no files here")
    }
    fn processes(&self) -> &dyn Processes {
        unreachable!("no processes here")
    }
    fn tasks(&self) -> &dyn Tasks {
        unreachable!("no tasks here")
    }
    fn http(&self) -> &dyn Http {
        &PlainHttp
    }
    fn host(&self) -> &dyn Host {
        self.host.as_ref()
    }
    fn progress(&self, progress: Progress) {
        self.said.lock().unwrap().extend(progress.message);
    }
    fn cancelled(&self) -> &Cancel {
        &self.cancel
    }
}
