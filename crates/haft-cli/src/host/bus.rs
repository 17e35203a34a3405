//! The channels of the user's settings, opened when the first message is sent.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use haft_bus::{Bus, ChannelSettings, Undelivered};
use haft_net::http::HttpService;
use haft_tool::net::Authority;
use haft_tool::{Cancel, Message, ToolError};

use crate::cli::screen;

/// How long to wait at exit for messages that are being delivered.
const DELIVERY_TIMEOUT: Duration = Duration::from_mins(1);

pub(super) struct Channels {
    settings: BTreeMap<String, ChannelSettings>,
    bus: OnceLock<Result<Bus, ToolError>>,
}

impl Channels {
    pub(super) fn new(settings: BTreeMap<String, ChannelSettings>) -> Self {
        Self { settings, bus: OnceLock::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.settings.is_empty()
    }

    pub(super) fn send(&self, message: &Message) -> Result<(), ToolError> {
        self.bus.get_or_init(|| self.open()).as_ref().map_err(Clone::clone)?.send(message)
    }

    fn open(&self) -> Result<Bus, ToolError> {
        let var = |name: &str| std::env::var(name).ok();
        let named = self.settings.values().filter_map(|channel| channel.endpoint(&var));
        let places = named.filter_map(|host| Authority::parse(&host).ok());
        let hosts = places.flat_map(|place| place.entries()).collect();
        let http = Arc::new(HttpService::default()).client_for(hosts, Cancel::new());
        let log = |message: &Message| {
            let Message { channel, chat_id, content } = message;
            screen::note(&screen::sanitize(&format!("{channel} {chat_id}: {content}")));
            Ok(())
        };
        Bus::open(&self.settings, &http, log, &var)
    }

    pub(super) fn close(&self) -> Vec<Undelivered> {
        let Some(Ok(bus)) = self.bus.get() else { return Vec::new() };
        bus.close(DELIVERY_TIMEOUT);
        bus.undelivered().0
    }
}
