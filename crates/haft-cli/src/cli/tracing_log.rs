//! `HAFT_LOG=error|warn|info|debug|trace`: a trace on standard error, for finding faults. It never contains arguments,
//! results or reasons, because they may hold secrets.

use tracing_subscriber::filter::LevelFilter;

use super::screen;

const VARIABLE: &str = "HAFT_LOG";

/// Starts the trace if the variable is set.
pub(super) fn init() {
    let Some(level) = std::env::var(VARIABLE).ok().filter(|level| !level.is_empty()) else { return };
    match level.parse::<LevelFilter>() {
        Ok(level) => tracing_subscriber::fmt().with_max_level(level).with_writer(std::io::stderr).init(),
        Err(_) => screen::note(&format!(
            "{VARIABLE}={level:?} is not a level. Use error, warn, info, debug or trace."
        )),
    }
}
