//! How tools get into the registry: `register_all` is [`Registry::of`], everything later is [`Registry::register`].

use std::sync::Arc;

use haft::{
    AnyTool, Definition, EffectKind, JsonSchema, Output, Perform, Planned, Planning, Registry, SideEffect,
    ToolError, Value, json,
};
use serde::Deserialize;

use crate::fixture::runtime::RuntimeFixture;

/// Another one.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Nothing {}

struct Other(&'static str);

impl AnyTool for Other {
    fn name(&self) -> &str {
        self.0
    }
    fn effects(&self) -> &[EffectKind] {
        &[]
    }
    fn definition(&self) -> Definition {
        Definition::of::<Nothing>(self.0, &[])
    }
    fn plan(self: Arc<Self>, _: Value, _: &Planning) -> Result<Planned<Perform>, ToolError> {
        Ok(Planned::new([], Box::new(|_| Ok(Output::text("the other one")))))
    }
}

#[test]
fn the_built_in_tools_come_first_in_the_documented_order() {
    let mut registry = Registry::of(&haft::clawft());
    let documented = [
        "read_file",
        "write_file",
        "edit_file",
        "list_directory",
        "exec_shell",
        "memory_read",
        "memory_write",
        "web_search",
        "web_fetch",
        "spawn",
        "message",
    ];
    assert_eq!(registry.names(), documented);
    assert!(registry.register(Arc::new(Other("web__search"))).is_none());
    assert_eq!(registry.names().last().unwrap(), "web__search");
    assert_eq!(registry.definitions().len(), documented.len() + 1);
}

#[tokio::test]
async fn a_tool_of_the_same_name_replaces_the_one_before_and_keeps_its_place() {
    let mut registry = Registry::of(&haft::clawft());
    let before = registry.names();
    let old = registry.register(Arc::new(Other("read_file"))).unwrap();
    assert_eq!(old.side_effect(), SideEffect::ReadOnly);
    assert_eq!(registry.names(), before);
    assert_eq!(registry.get("read_file").unwrap().definition().description, "Another one.");

    let fixture = RuntimeFixture::with(|builder| {
        builder.dialect(haft::clawft()).any_tool(Arc::new(Other("read_file")))
    });
    assert_eq!(fixture.text("read_file", json!({})).await, "the other one");
}
