//! The trace of a run, as OpenTelemetry's own message types decode it.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::collector::{Collector, CollectorMode, ReceivedRequest, spans_of};
use super::{attribute, command, named, script, scripted, succeeds, with_collector};

/// Attributes whose values differ from run to run.
const VOLATILE: [&str; 4] = [
    "gen_ai.conversation.id",
    "gen_ai.agent.id",
    "gen_ai.tool.call.id",
    "gen_ai.response.time_to_first_chunk",
];

const TRACE: &str = "\
invoke_agent haft INTERNAL
    gen_ai.operation.name=invoke_agent gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.agent.name=haft gen_ai.usage.input_tokens=150 gen_ai.usage.output_tokens=7 gen_ai.usage.cache_read.input_tokens=50 haft.inference_calls=4 haft.tool_calls=3 haft.stop=done
  chat script CLIENT
      gen_ai.operation.name=chat gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.response.model=script gen_ai.response.finish_reasons=stop gen_ai.usage.input_tokens=150 gen_ai.usage.output_tokens=7 gen_ai.usage.cache_read.input_tokens=50 gen_ai.response.time_to_first_chunk=…
  chat script CLIENT
      gen_ai.operation.name=chat gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.response.model=script gen_ai.response.finish_reasons=tool_call gen_ai.response.time_to_first_chunk=…
  chat script CLIENT
      gen_ai.operation.name=chat gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.response.model=script gen_ai.response.finish_reasons=tool_call gen_ai.response.time_to_first_chunk=…
  chat script CLIENT
      gen_ai.operation.name=chat gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.response.model=script gen_ai.response.finish_reasons=tool_call gen_ai.response.time_to_first_chunk=…
  execute_tool Agent INTERNAL
      gen_ai.operation.name=execute_tool gen_ai.tool.name=Agent gen_ai.tool.type=function gen_ai.tool.call.id=… gen_ai.conversation.id=… haft.call=2 haft.dialect=claude haft.decision=allow haft.reversible=yes haft.changes=0 haft.denials=0
    invoke_agent general-purpose INTERNAL
        gen_ai.operation.name=invoke_agent gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.agent.name=general-purpose gen_ai.agent.id=… haft.inference_calls=2 haft.tool_calls=1 haft.stop=done
      chat script CLIENT
          gen_ai.operation.name=chat gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.response.model=script gen_ai.response.finish_reasons=stop gen_ai.response.time_to_first_chunk=…
      chat script CLIENT
          gen_ai.operation.name=chat gen_ai.provider.name=script gen_ai.request.model=script gen_ai.conversation.id=… haft.dialect=claude gen_ai.response.model=script gen_ai.response.finish_reasons=tool_call gen_ai.response.time_to_first_chunk=…
      execute_tool Bash INTERNAL ERROR execution_failed
          gen_ai.operation.name=execute_tool gen_ai.tool.name=Bash gen_ai.tool.type=function gen_ai.tool.call.id=… gen_ai.conversation.id=… haft.call=3 haft.dialect=claude error.type=execution_failed haft.decision=allow haft.scope.status=enforced haft.reversible=yes haft.changes=0 haft.denials=0 haft.exit_code=3
  execute_tool Bash INTERNAL
      gen_ai.operation.name=execute_tool gen_ai.tool.name=Bash gen_ai.tool.type=function gen_ai.tool.call.id=… gen_ai.conversation.id=… haft.call=1 haft.dialect=claude haft.decision=allow haft.scope.status=enforced haft.reversible=yes haft.changes=1 haft.denials=0 haft.exit_code=0
  execute_tool Write INTERNAL ERROR denied
      gen_ai.operation.name=execute_tool gen_ai.tool.name=Write gen_ai.tool.type=function gen_ai.tool.call.id=… gen_ai.conversation.id=… haft.call=4 haft.dialect=claude error.type=denied haft.decision=deny haft.reversible=yes haft.changes=0 haft.denials=0
";

#[test]
fn a_run_is_one_trace_with_its_answers_calls_and_subagents() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&collector);
    let outside = tempfile::tempdir().unwrap();
    succeeds(scripted(&cli, &script(outside.path()), &["-p", "canary"]));
    let spans = collector.spans();
    let traces: std::collections::HashSet<_> = spans.iter().map(|span| span["traceId"].as_str()).collect();
    assert_eq!(traces.len(), 1);
    assert_eq!(tree(&spans), TRACE);
    let resource = collector.resource();
    assert_eq!(attribute(&resource, "service.name"), "haft");
    let mut names: Vec<_> = collector.metrics().iter().map(|metric| metric["name"].clone()).collect();
    names.sort_by_key(Value::to_string);
    let expected = [
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
        "gen_ai.invoke_agent.inference_calls",
        "gen_ai.invoke_agent.tool_calls",
    ];
    assert_eq!(names, expected);
    // Times come from the ledger: no span ends before it begins, or lies outside its parent.
    let by_id: HashMap<_, _> = spans.iter().map(|span| (span["spanId"].to_string(), span)).collect();
    for span in &spans {
        let [start, end] = times(span);
        assert!(start <= end && start > 1_600_000_000_000_000_000, "{span}");
        if let Some(parent) = by_id.get(&span["parentSpanId"].to_string()) {
            assert!(times(parent)[0] <= start, "{span} {parent}");
        }
    }
}

#[test]
fn requests_are_json_and_compressed_if_the_user_wants_that() {
    let collector = Collector::start(CollectorMode::Accepts);
    let cli = with_collector(&collector);
    let mut call = command(&cli, &["call", "Bash", r#"{"command": "echo tea"}"#]);
    call.env("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json").env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    call.env("OTEL_SERVICE_NAME", "mine").env("OTEL_RESOURCE_ATTRIBUTES", "team=tools");
    succeeds(call);
    let received = collector.received();
    let [traces, metrics] = &received[..] else { panic!("{}", received.len()) };
    let read = |request: &ReceivedRequest| -> Value {
        for header in ["content-type: application/json\r\n", "content-encoding: gzip\r\n"] {
            assert!(request.head.contains(header), "{}", request.head);
        }
        serde_json::from_reader(flate2::read::GzDecoder::new(&request.body[..])).unwrap()
    };
    let traces = read(traces);
    assert_eq!(named(&spans_of(std::slice::from_ref(&traces)), "execute_tool Bash")["status"], Value::Null);
    let resource = &traces["resourceSpans"][0]["resource"];
    assert_eq!(attribute(resource, "service.name"), "mine");
    assert_eq!(attribute(resource, "team"), "tools");
    let metric = &read(metrics)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    assert_eq!(metric["name"], "gen_ai.execute_tool.duration");
}

fn times(span: &Value) -> [u64; 2] {
    ["startTimeUnixNano", "endTimeUnixNano"].map(|name| span[name].as_str().unwrap().parse().unwrap())
}

/// The spans as a tree, sorted by their text.
fn tree(spans: &[Value]) -> String {
    let mut children: HashMap<String, Vec<&Value>> = HashMap::new();
    for span in spans {
        children.entry(span["parentSpanId"].as_str().unwrap_or_default().to_owned()).or_default().push(span);
    }
    below("", 0, &children)
}

fn below(id: &str, depth: usize, children: &HashMap<String, Vec<&Value>>) -> String {
    let write = |span: &&Value| {
        let indent = "  ".repeat(depth);
        let kind = span["kind"].as_str().unwrap().trim_start_matches("SPAN_KIND_");
        let mut text = format!("{indent}{} {kind}", span["name"].as_str().unwrap());
        if let Some(status) = span["status"].as_object() {
            assert_eq!(status["code"], "STATUS_CODE_ERROR");
            write!(text, " ERROR {}", status["message"].as_str().unwrap()).unwrap();
        }
        writeln!(text, "\n{indent}    {}", attributes(span)).unwrap();
        text + &below(span["spanId"].as_str().unwrap(), depth + 1, children)
    };
    let mut all: Vec<String> = children.get(id).into_iter().flatten().map(write).collect();
    all.sort();
    all.concat()
}

fn attributes(span: &Value) -> String {
    let written = span["attributes"].as_array().unwrap().iter().map(|attribute| {
        let name = attribute["key"].as_str().unwrap();
        let value = attribute["value"].as_object().unwrap().values().next().unwrap();
        let value = value.get("values").map_or(value, |values| &values[0]["stringValue"]);
        let value =
            if VOLATILE.contains(&name) { "…".to_owned() } else { value.to_string().replace('"', "") };
        format!("{name}={value}")
    });
    written.collect::<Vec<_>>().join(" ")
}
