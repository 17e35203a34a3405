//! What tools ask of servers when the call leaves it open, and how much of an answer is kept.

use haft::{HttpRequest, HttpResponse, Settings, Value, json};

use crate::documents::{answer, recorded};

fn sent(request: &HttpRequest) -> Value {
    serde_json::from_slice(request.body.as_ref().unwrap()).unwrap()
}

fn advice() -> HttpResponse {
    answer(200, &json!({"message": {"role": "assistant", "content": "Use a map."}, "finish_reason": "stop"}))
}

fn nothing_found() -> HttpResponse {
    answer(200, &json!({"results": []}))
}

#[tokio::test]
async fn looms_environment_names_server_and_model() {
    let settings = Settings::default().with_env(&|name| match name {
        "LOOM_SERVER_URL" => Some("https://loom.example:9000/base".to_owned()),
        "LOOM_SERVER_ORACLE_MODEL" => Some("o7".to_owned()),
        _ => None,
    });
    let (loom, recorder) = recorded("loom", &settings);
    recorder.answers(advice());
    loom.value("oracle", json!({"query": "x"})).await;
    let request = recorder.request();
    assert_eq!(request.url, "https://loom.example:9000/base/proxy/openai/complete");
    assert_eq!(sent(&request)["model"], "o7");
    recorder.answers(nothing_found());
    loom.value("web_search", json!({"query": "x"})).await;
    assert_eq!(recorder.request().url, "https://loom.example:9000/base/proxy/cse");
}

#[tokio::test]
async fn looms_oracle_is_told_to_be_a_short_and_exact_helper() {
    let (loom, recorder) = recorded("loom", &Settings::default());
    recorder.answers(advice());
    loom.value("oracle", json!({"query": "Which container?"})).await;
    let body = sent(&recorder.request());
    let system = body["messages"][0]["content"].as_str().unwrap();
    for word in ["agent", "advice", "short", "technically exact"] {
        assert!(system.contains(word), "{system}");
    }
}

#[tokio::test]
async fn looms_oracle_takes_numbers_out_of_range_as_the_nearest() {
    let (loom, recorder) = recorded("loom", &Settings::default());
    for (tokens, taken) in [(-1, 16), (15, 16), (16, 16), (4_096, 4_096), (4_097, 4_096)] {
        recorder.answers(advice());
        loom.value("oracle", json!({"query": "x", "max_tokens": tokens})).await;
        assert_eq!(sent(&recorder.request())["max_tokens"], taken, "{tokens}");
    }
    for (temperature, taken) in [(-0.1, 0.0), (0.0, 0.0), (2.0, 2.0), (2.1, 2.0)] {
        recorder.answers(advice());
        loom.value("oracle", json!({"query": "x", "temperature": temperature})).await;
        assert_eq!(sent(&recorder.request())["temperature"].as_f64(), Some(taken), "{temperature}");
    }
}

#[tokio::test]
async fn looms_search_asks_for_five_and_at_most_ten() {
    let (loom, recorder) = recorded("loom", &Settings::default());
    let asked = async |arguments| {
        recorder.answers(nothing_found());
        loom.value("web_search", arguments).await;
        sent(&recorder.request())["max_results"].as_i64()
    };
    assert_eq!(asked(json!({"query": "rust"})).await, Some(5));
    for (count, taken) in [(-3, 1), (0, 1), (1, 1), (10, 10), (11, 10), (1_000, 10)] {
        assert_eq!(asked(json!({"query": "rust", "max_results": count})).await, Some(taken), "{count}");
    }
}

#[tokio::test]
async fn clawfts_search_asks_for_five_unless_told_otherwise() {
    let mut settings = Settings::default();
    settings.web_search.endpoint = Some("http://search.example/api".to_owned());
    let (clawft, recorder) = recorded("clawft", &settings);
    for (arguments, count) in [
        (json!({"query": "rust async patterns"}), "count=5"),
        (json!({"query": "tokio runtime tutorial", "num_results": 3}), "count=3"),
    ] {
        recorder.answers(nothing_found());
        clawft.value("web_search", arguments).await;
        let url = recorder.request().url;
        assert!(url.starts_with("http://search.example/api?q=") && url.contains(count), "{url}");
    }
}

#[tokio::test]
async fn clawfts_fetch_keeps_one_mebibyte_and_says_so() {
    let (clawft, recorder) = recorded("clawft", &Settings::default());
    let page = |bytes: usize| HttpResponse {
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: "x".repeat(bytes.min(1_048_576)).into_bytes(),
        total_bytes: bytes as u64,
        ..answer(200, &Value::Null)
    };
    recorder.answers(page(1_048_577));
    let cut = clawft.call("web_fetch", json!({"url": "https://example.com"})).await.output;
    let request = recorder.request();
    assert_eq!((request.method.as_str(), request.keep_bytes), ("GET", 1_048_576));
    let cut: Value = serde_json::from_str(&cut.as_text()).unwrap();
    assert_eq!(cut["bytes"], 1_048_577);
    assert!(cut["body"].as_str().unwrap().contains("truncated"));
    recorder.answers(page(1_000));
    let whole = clawft.value("web_fetch", json!({"url": "https://example.com"})).await;
    assert_eq!(
        (&whole["bytes"], whole["body"].as_str().unwrap()),
        (&json!(1_000), "x".repeat(1_000).as_str())
    );
}
