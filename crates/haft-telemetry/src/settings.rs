//! Where telemetry is sent: the section `[otel]` of the user's settings, and OpenTelemetry's variables, which take precedence.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_tool::{Secret, TraceContext};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::span::{Attributes, TelemetryResource};

const CAPTURE_CONTENT: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
const DEFAULT_SERVICE: &str = "haft";
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end of a process waits for the collector.
const DEFAULT_EXIT_WAIT: Duration = Duration::from_millis(300);
const MAX_EXIT_WAIT: Duration = Duration::from_mins(5);
/// How many attributes of the resource the user may add.
const MAX_RESOURCE_ATTRIBUTES: usize = 100;

/// The section `[otel]`. A project's file cannot set it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OtelSection {
    /// The collector, to whose URL `/v1/traces` and `/v1/metrics` are added.
    pub endpoint: Option<String>,
    /// Headers of every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Secret>,
    /// Whether prompts, arguments, results and paths are sent, too.
    pub content: Option<bool>,
    /// How many milliseconds the end of a process waits for the collector.
    pub exit_wait_ms: Option<u64>,
}

/// The format of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OtlpFormat {
    Protobuf,
    Json,
}

/// Where and how telemetry is sent.
#[derive(Debug, Clone)]
pub struct TelemetrySettings {
    pub(crate) traces: Option<Url>,
    pub(crate) metrics: Option<Url>,
    pub(crate) headers: Vec<(String, Secret)>,
    pub(crate) timeout: Duration,
    pub(crate) format: OtlpFormat,
    pub(crate) is_compressed: bool,
    pub(crate) resource: TelemetryResource,
    /// Whether contents are sent.
    pub content: bool,
    /// How long the end of a process waits for the collector.
    pub exit_wait: Duration,
}

/// Looks up a variable of the environment.
type OtelVariables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The span that this process was started from, according to `TRACEPARENT` and `TRACESTATE`.
pub fn inherited_trace(var: OtelVariables<'_>) -> Option<TraceContext> {
    TraceContext::parse(&var("TRACEPARENT")?, var("TRACESTATE").as_deref())
}

impl TelemetrySettings {
    /// The settings; `None` if nothing is to be sent. An error names the wrong setting.
    pub fn read(section: &OtelSection, var: OtelVariables<'_>) -> Result<Option<Self>, String> {
        let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
        if var("OTEL_SDK_DISABLED").is_some_and(|value| is_true(&value)) {
            return Ok(None);
        }
        let base = match var("OTEL_EXPORTER_OTLP_ENDPOINT") {
            Some(url) => Some((url, "OTEL_EXPORTER_OTLP_ENDPOINT")),
            None => section.endpoint.clone().map(|url| (url, "otel.endpoint")),
        };
        let place = |signal: &str| -> Result<Option<Url>, String> {
            let is_off = var(&format!("OTEL_{signal}_EXPORTER")).is_some_and(|name| name.trim() == "none");
            if is_off {
                return Ok(None);
            }
            let own = format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT");
            match (var(&own), &base) {
                (Some(url), _) => endpoint(&url, &own).map(Some),
                (None, Some((url, name))) => {
                    Ok(Some(below(endpoint(url, name)?, &signal.to_ascii_lowercase())))
                }
                (None, None) => Ok(None),
            }
        };
        let (traces, metrics) = (place("TRACES")?, place("METRICS")?);
        if traces.is_none() && metrics.is_none() {
            return Ok(None);
        }
        let format = match var("OTEL_EXPORTER_OTLP_PROTOCOL").as_deref().map(str::trim) {
            None | Some("http/protobuf") => OtlpFormat::Protobuf,
            Some("http/json") => OtlpFormat::Json,
            Some(other) => {
                return Err(format!(
                    "OTEL_EXPORTER_OTLP_PROTOCOL={other} is not supported, so nothing is sent. Set it to http/protobuf or http/json, \
                     with the endpoint of the collector for HTTP"
                ));
            }
        };
        let is_compressed = match var("OTEL_EXPORTER_OTLP_COMPRESSION").as_deref().map(str::trim) {
            None | Some("none") => false,
            Some("gzip") => true,
            Some(other) => {
                return Err(format!(
                    "OTEL_EXPORTER_OTLP_COMPRESSION={other} is not supported, so nothing is sent. Set it to gzip or none"
                ));
            }
        };
        let timeout = match var("OTEL_EXPORTER_OTLP_TIMEOUT") {
            Some(text) => text.trim().parse().map(Duration::from_millis).map_err(|_| {
                format!(
                    "OTEL_EXPORTER_OTLP_TIMEOUT={text:?} is not a number of milliseconds, so nothing is sent. Set it to a number such as 10000"
                )
            })?,
            None => DEFAULT_TIMEOUT,
        };
        let headers = var("OTEL_EXPORTER_OTLP_HEADERS").map(|list| {
            pairs(&list).map(|(name, value)| (name.to_ascii_lowercase(), Secret::new(value))).collect()
        });
        let headers = headers.unwrap_or_else(|| {
            let read = |(name, value): (&String, &Secret)| {
                Some((name.to_ascii_lowercase(), value.resolve(&|name| var(name))?))
            };
            section.headers.iter().filter_map(read).collect()
        });
        let exit_wait = section.exit_wait_ms.map_or(DEFAULT_EXIT_WAIT, Duration::from_millis);
        Ok(Some(Self {
            traces,
            metrics,
            headers,
            timeout,
            format,
            is_compressed,
            resource: TelemetryResource::from_env(&var),
            content: section.wants_content(&var),
            exit_wait: exit_wait.min(MAX_EXIT_WAIT),
        }))
    }

    /// The hosts to be reached, each as `host:port`.
    pub fn hosts(&self) -> Vec<String> {
        let urls = self.traces.iter().chain(&self.metrics);
        let mut hosts: Vec<String> = urls
            .filter_map(|url| Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?)))
            .collect();
        hosts.dedup();
        hosts
    }

    /// Where spans are sent.
    pub fn traces_url(&self) -> Option<&Url> {
        self.traces.as_ref()
    }

    /// The values of headers, which may be keys.
    pub fn secrets(&self) -> impl Iterator<Item = String> {
        self.headers.iter().map(|(_, value)| value.expose().to_owned())
    }
}

impl OtelSection {
    /// Whether contents are sent.
    pub fn wants_content(&self, var: OtelVariables<'_>) -> bool {
        match var(CAPTURE_CONTENT).filter(|value| !value.trim().is_empty()) {
            Some(value) => is_true(&value),
            None => self.content == Some(true),
        }
    }
}

fn is_true(value: &str) -> bool {
    value.trim().eq_ignore_ascii_case("true")
}

/// Parses a URL to which requests can be sent.
fn endpoint(text: &str, name: &str) -> Result<Url, String> {
    // The value may contain credentials, so it is not shown.
    let wrong = |why: &str| format!("{name} {why}, so nothing is sent");
    let url = Url::parse(text.trim()).map_err(|error| wrong(&format!("is not a URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() {
        return Err(wrong("is not the URL of an HTTP server"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(wrong("has a user name or password; give them as a header"));
    }
    Ok(url)
}

/// The URL for a signal at a collector.
fn below(mut url: Url, signal: &str) -> Url {
    let path = format!("{}/v1/{signal}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// The pairs of a list such as `api-key=abc,team=tools`, whose values may be percent-encoded.
fn pairs(list: &str) -> impl Iterator<Item = (String, String)> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let value = percent_decode_str(value.trim()).decode_utf8_lossy().into_owned();
        let name = name.trim();
        (!name.is_empty()).then(|| (name.to_owned(), value))
    };
    list.split(',').filter_map(pair)
}

impl TelemetryResource {
    /// This program, with the name and the attributes that the variables give it.
    pub fn from_env(var: OtelVariables<'_>) -> Self {
        let mut attributes = Attributes::default();
        attributes.set("service.name", DEFAULT_SERVICE);
        attributes.set("service.version", env!("CARGO_PKG_VERSION"));
        attributes.set("telemetry.sdk.name", "haft");
        attributes.set("telemetry.sdk.language", "rust");
        attributes.set("telemetry.sdk.version", env!("CARGO_PKG_VERSION"));
        let own = var("OTEL_RESOURCE_ATTRIBUTES").unwrap_or_default();
        for (name, value) in pairs(&own).take(MAX_RESOURCE_ATTRIBUTES) {
            attributes.set(name, value);
        }
        if let Some(name) = var("OTEL_SERVICE_NAME") {
            attributes.set("service.name", name);
        }
        Self { attributes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(section: &OtelSection, variables: &[(&str, &str)]) -> Result<Option<TelemetrySettings>, String> {
        let var = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        TelemetrySettings::read(section, &var)
    }

    fn urls(settings: &TelemetrySettings) -> [Option<&str>; 2] {
        [settings.traces.as_ref().map(Url::as_str), settings.metrics.as_ref().map(Url::as_str)]
    }

    #[test]
    fn nothing_is_sent_unless_a_place_is_named() {
        assert!(read(&OtelSection::default(), &[]).unwrap().is_none());
        let section = OtelSection { endpoint: Some("http://c:4318".into()), ..OtelSection::default() };
        assert!(read(&section, &[("OTEL_SDK_DISABLED", "TRUE")]).unwrap().is_none());
        let off = [("OTEL_TRACES_EXPORTER", "none"), ("OTEL_METRICS_EXPORTER", "none")];
        assert!(read(&section, &off).unwrap().is_none());
        assert!(!read(&section, &[]).unwrap().unwrap().content);
    }

    #[test]
    fn variables_come_before_the_section_and_those_of_one_signal_before_both() {
        let section = OtelSection { endpoint: Some("http://file:1/a/".into()), ..OtelSection::default() };
        let settings = read(&section, &[]).unwrap().unwrap();
        assert_eq!(urls(&settings), [Some("http://file:1/a/v1/traces"), Some("http://file:1/a/v1/metrics")]);
        let settings = read(
            &section,
            &[
                ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://env"),
                ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://own:9/t"),
                ("OTEL_EXPORTER_OTLP_HEADERS", "Api-Key=a%20b, x=1,broken"),
                ("OTEL_RESOURCE_ATTRIBUTES", "team=tools,service.name=other"),
                ("OTEL_SERVICE_NAME", "mine"),
                ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip"),
                ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
            ],
        );
        let settings = settings.unwrap().unwrap();
        assert_eq!(urls(&settings), [Some("http://own:9/t"), Some("https://env/v1/metrics")]);
        assert_eq!(settings.hosts(), ["own:9", "env:443"]);
        let headers: Vec<_> = settings.headers.iter().map(|(name, v)| (name.as_str(), v.expose())).collect();
        assert_eq!(headers, [("api-key", "a b"), ("x", "1")]);
        let attributes = &settings.resource.attributes;
        assert_eq!([attributes.text("service.name"), attributes.text("team")], [Some("mine"), Some("tools")]);
        assert!(settings.is_compressed && settings.content);
    }

    #[test]
    fn what_cannot_be_done_is_an_error_that_shows_no_secret() {
        let at = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        for (name, value, why) in [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "http/protobuf"),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd", "gzip"),
            ("OTEL_EXPORTER_OTLP_TIMEOUT", "soon", "milliseconds"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "c:4318", "HTTP server"),
            ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://me:s3cret@c", "as a header"),
        ] {
            let error = read(&OtelSection::default(), &[at, (name, value)]).unwrap_err();
            assert!(error.contains(why) && error.contains(name) && !error.contains("s3cret"), "{error}");
        }
    }
}
