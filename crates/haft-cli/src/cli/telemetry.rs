//! The telemetry of this process: what its calls and runs write into the ledger is sent to the collector of the user.

use std::sync::{Arc, OnceLock};

use haft_ledger::{Ledger, LedgerListener, SessionInfo};
use haft_net::http::HttpService;
use haft_runtime::Builder;
use haft_sandbox::secret_values;
use haft_telemetry::{
    ContentCapture, Exporter, ExporterParts, OtelSection, OtlpSender, TelemetryResource, TelemetrySettings,
    inherited_trace, session_batches, traces_json,
};
use haft_tool::ToolError;
use haft_tool::net::Authority;

use super::screen::{self, NOTE, styled};

/// The settings, read when the first runtime is built.
static SETTINGS: OnceLock<Option<TelemetrySettings>> = OnceLock::new();
/// The exporter, started by the first write.
static EXPORTER: OnceLock<Option<Exporter>> = OnceLock::new();

/// The builder with the span that this process was started from; where telemetry is configured, its calls are exported.
pub(super) fn add_to(builder: Builder, section: &OtelSection) -> Builder {
    let builder = builder.trace_parent(inherited_trace(&variable));
    if settings(section).is_none() {
        return builder;
    }
    let listener = LedgerListener::new(|write| {
        if let Some(exporter) = EXPORTER.get_or_init(start) {
            exporter.on_write(write);
        }
    });
    builder.exports_spans().ledger_listener(listener)
}

/// The settings; a warning says what is wrong with them.
fn settings(section: &OtelSection) -> Option<&'static TelemetrySettings> {
    let read = || {
        TelemetrySettings::read(section, &variable).unwrap_or_else(|why| {
            screen::warnings(&[format!("telemetry: {why}")]);
            None
        })
    };
    SETTINGS.get_or_init(read).as_ref()
}

/// Sends to the collector of these settings.
fn sender(settings: &TelemetrySettings) -> OtlpSender {
    let places = settings.hosts();
    let places = places.iter().filter_map(|host| Authority::parse(host).ok());
    let hosts = places.flat_map(|place| place.entries()).collect();
    OtlpSender::new(settings.clone(), Arc::new(HttpService::default()).streams_for(hosts))
}

/// What adds contents, if they are to be sent.
fn content(settings: &TelemetrySettings) -> Option<ContentCapture> {
    let secrets = || secret_values(std::env::vars_os()).into_iter().chain(settings.secrets());
    settings.content.then(|| ContentCapture::new(secrets()))
}

/// Sends a session that is in the ledger; returns how many spans it has.
pub(super) fn send_session(
    ledger: &Ledger,
    session: &SessionInfo,
    section: &OtelSection,
) -> Result<u64, ToolError> {
    let settings = settings(section).filter(|settings| settings.traces_url().is_some()).ok_or_else(|| {
        ToolError::invalid_arguments(
            "No collector is configured. Set OTEL_EXPORTER_OTLP_ENDPOINT to its URL, for example http://localhost:4318, or endpoint \
             under [otel] in your haft.toml. To write a file instead: --format otlp -o FILE",
        )
    })?;
    let sender = sender(settings);
    let mut sent = 0;
    session_batches(ledger, session, content(settings).as_ref(), &mut |batch| {
        let why = match sender.send_spans(batch, sender.timeout()) {
            Ok(None) => {
                sent += batch.len() as u64;
                return Ok(());
            }
            Ok(Some(rejected)) => rejected.message,
            Err(error) => error.message,
        };
        let before =
            if sent == 0 { String::new() } else { format!(" after {}", screen::count(sent, "span")) };
        Err(ToolError::failed(format!("The session could not be sent{before}: {why}")))
    })?;
    Ok(sent)
}

/// A session as lines of OTLP in JSON, each a request of its own.
pub(super) fn session_lines(
    ledger: &Ledger,
    session: &SessionInfo,
    section: &OtelSection,
) -> Result<String, ToolError> {
    let resource = TelemetryResource::from_env(&variable);
    let wants_content = section.wants_content(&variable);
    let content = wants_content.then(|| ContentCapture::new(secret_values(std::env::vars_os())));
    let mut lines = String::new();
    session_batches(ledger, session, content.as_ref(), &mut |batch| {
        lines.push_str(&format!("{}\n", traces_json(&resource, batch)));
        Ok(())
    })?;
    Ok(lines)
}

/// Sends what is left when the process ends. The time for that is short, and what cannot be sent changes no exit code.
pub(super) fn end() {
    let (Some(Some(settings)), Some(Some(exporter))) = (SETTINGS.get(), EXPORTER.get()) else { return };
    let report = exporter.end(settings.exit_wait);
    let Some(problem) = report.problem else { return };
    let what = match report.unsent_spans {
        0 => "not everything was sent".to_owned(),
        count => format!("{} not sent", screen::count(count, "span")),
    };
    let problem = screen::sanitize(&problem);
    screen::note(&format!("{}: telemetry: {what}: {problem}", styled(NOTE, "note")));
}

fn start() -> Option<Exporter> {
    let settings = SETTINGS.get()?.as_ref()?;
    let parts = ExporterParts {
        sender: sender(settings),
        content: content(settings),
        open_ledger: Box::new(|| Ledger::open(Ledger::home_from_env()?)),
    };
    let failed = |error: ToolError| screen::warnings(&[format!("telemetry: {}", error.message)]);
    Exporter::start(parts).map_err(failed).ok()
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
