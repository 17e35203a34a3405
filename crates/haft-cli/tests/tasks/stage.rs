//! A workspace with a runtime, and what the tests ask of it.

use std::fs;
use std::path::{Path, PathBuf};

use haft::{
    CallResult, Effect, EffectKind, JsonSchema, Output, Planned, Planning, RunRequest, Runtime, Tool,
    ToolError, Value, World, json,
};
use serde::Deserialize;

use crate::house::House;

/// Waits inside a command for a file that the test makes.
const WAIT: &str = "wait_for() { until [ -e \"$1\" ]; do sleep 0.01; done; }; ";

pub(crate) struct Stage {
    pub(crate) house: House,
    pub(crate) haft: Runtime,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let house = House::new();
        let haft = builder(house.root(), house.home()).build().unwrap();
        Self { house, haft }
    }

    /// Starts a task and gives its id.
    pub(crate) async fn start(&self, command: &str) -> String {
        id(&self.started(command).await)
    }

    pub(crate) async fn started(&self, command: &str) -> CallResult {
        let command = format!("{WAIT}{command}");
        let result = self.haft.call("Bash", json!({"command": command, "run_in_background": true})).await;
        assert!(!result.output.is_error(), "{}", result.output.as_text());
        result
    }

    /// Looks at a task without waiting for its end.
    pub(crate) async fn look(&self, id: &str) -> Value {
        let result = self.haft.call("TaskOutput", json!({"task_id": id, "block": false})).await;
        result.output.structured.unwrap()
    }

    /// Waits for a task's end.
    pub(crate) async fn end(&self, id: &str) -> CallResult {
        let result = self.haft.call("TaskOutput", json!({"task_id": id, "timeout": 600_000})).await;
        assert_eq!(structured(&result)["retrieval_status"], "success");
        result
    }

    /// Looks until so much has come, and gives what came.
    pub(crate) async fn until(&self, id: &str, bytes: usize) -> String {
        let mut seen = String::new();
        while seen.len() < bytes {
            seen.push_str(self.look(id).await["task"]["output"].as_str().unwrap());
        }
        seen
    }
}

pub(crate) fn builder(workspace: &Path, home: &Path) -> haft::Builder {
    Runtime::builder().workspace(workspace).home(home).dialect(haft::claude())
}

pub(crate) fn structured(result: &CallResult) -> &Value {
    result.output.structured.as_ref().unwrap()
}

pub(crate) fn id(result: &CallResult) -> String {
    structured(result)["backgroundTaskId"].as_str().unwrap().to_owned()
}

/// The processes that work in a folder.
pub(crate) fn processes(folder: &Path) -> Vec<PathBuf> {
    let folder = folder.canonicalize().unwrap();
    let there = |path: &PathBuf| fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd.starts_with(&folder));
    fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(there).collect()
}

/// A tool that does what the test says with the tasks of its World.
pub(crate) struct Made<F>(pub(crate) F);

/// Does what the test says.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Nothing {}

impl<F: Fn(&dyn World) -> Result<Output, ToolError> + Send + Sync + 'static> Tool for Made<F> {
    const NAME: &'static str = "Made";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Run];
    type Input = Nothing;
    type Plan = ();
    fn plan(&self, _: Nothing, _: &Planning) -> Result<Planned<()>, ToolError> {
        Ok(Planned::new([Effect::Run { command: "made".to_owned() }], ()))
    }
    fn perform(&self, (): (), world: &dyn World) -> Result<Output, ToolError> {
        (self.0)(world)
    }
}

pub(crate) fn request(command: &str) -> RunRequest {
    RunRequest {
        argv: ["bash", "-c", command].map(str::to_owned).to_vec(),
        cwd: None,
        timeout: std::time::Duration::from_mins(10),
        merge: true,
        inherit: false,
        keep_bytes: 0,
    }
}
