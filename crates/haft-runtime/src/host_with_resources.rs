//! A host whose MCP resources come from the tool sources.

use std::sync::Arc;

use haft_tool::{Host, Output, Resource, ToolError};

use crate::ToolSource;

pub(crate) struct HostWithResources {
    pub(crate) host: Arc<dyn Host>,
    pub(crate) sources: Vec<Arc<dyn ToolSource>>,
}

impl Host for HostWithResources {
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
