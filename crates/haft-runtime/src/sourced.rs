//! The host of calls where servers have tools: their resources come from them, everything else from the host.

use std::sync::Arc;

use haft_tool::{Host, Output, Resource, ToolError};

use crate::Source;

pub(crate) struct Sourced {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) sources: Vec<Arc<dyn Source>>,
}

impl Host for Sourced {
    fn fallback(&self) -> Option<&dyn Host> {
        Some(self.host.as_ref())
    }

    fn resources(&self, server: Option<&str>) -> Result<Vec<Resource>, ToolError> {
        let mut all = Vec::new();
        for source in &self.sources {
            all.extend(source.resources(server)?);
        }
        Ok(all)
    }

    fn resource(&self, server: &str, uri: &str) -> Result<Output, ToolError> {
        let Some((first, others)) = self.sources.split_first() else {
            return self.host.resource(server, uri);
        };
        let found = first.resource(server, uri);
        others.iter().fold(found, |found, source| found.or_else(|_| source.resource(server, uri)))
    }
}
