//! Results of MCP servers are cut as those of clawft's own tools.

use haft::{
    AnyTool, Call, CallOptions, Definition, Effect, EffectKind, Output, Perform, Planned, Planning,
    ToolError, Value, json,
};
use std::sync::Arc;

use crate::clawft::clawft;

/// A tool of a server that answers with two texts.
struct LongAnswers {
    name: String,
}

impl AnyTool for LongAnswers {
    fn name(&self) -> &str {
        &self.name
    }

    fn effects(&self) -> &[EffectKind] {
        &[EffectKind::Inspect]
    }

    fn definition(&self) -> Definition {
        Definition::new(self.name(), "", json!({"type": "object"}), &[])
    }

    fn is_remote(&self) -> bool {
        true
    }

    fn plan(self: Arc<Self>, _arguments: Value, _at: &Planning) -> Result<Planned<Perform>, ToolError> {
        let answer = |_: &dyn haft::World| {
            let mut output = Output::text("é".repeat(20_000));
            output.content.extend(Output::text("é".repeat(100_000)).content);
            Ok(output)
        };
        Ok(Planned::new([Effect::Inspect { what: "x".to_owned() }], Box::new(answer)))
    }
}

#[tokio::test]
async fn results_of_servers_are_cut_at_64_kib_in_all() {
    let fixture = clawft();
    let options = CallOptions {
        tool: Some(Arc::new(LongAnswers { name: "server__long".to_owned() })),
        ..CallOptions::default()
    };
    let output = fixture.haft.run(Call::new("c", "server__long", json!({})), options).await.output;
    let bytes: usize = output.as_text().len();
    assert!((65_000..=65_537).contains(&bytes), "{bytes}");
    assert!(output.as_text().ends_with("... [truncated, original size: 200000 bytes]"));
}
