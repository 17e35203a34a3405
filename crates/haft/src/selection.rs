//! Which tools are offered: a dialect, a part of it, or a set across dialects.

use haft_runtime::{Builder, Registry};
use haft_tool::{Dialect, ErrorKind, ToolError, ToolNeed};
use haft_tools::{Settings, dialects};

/// The tools that were chosen.
#[derive(Debug, Clone)]
pub struct ToolSelection {
    base: Dialect,
    others: Vec<Dialect>,
}

impl ToolSelection {
    /// The tools of `dialect`, or only those that `names` name: `Read`, `loom:bash` for one of another dialect, `loom:*`
    /// for all of it. Each tool keeps the ways of its own dialect.
    pub fn new(dialect: &str, names: Option<&[String]>, settings: &Settings) -> Result<Self, ToolError> {
        let base = by_name(dialect, settings)?;
        let Some(names) = names else { return Ok(Self { base, others: Vec::new() }) };
        let mut others = Vec::new();
        for name in names.iter().map(|name| name.trim()) {
            let (of, name) = name.split_once(':').unwrap_or((dialect, name));
            let whole = by_name(of, settings)?;
            others.push(if name == "*" { whole } else { whole.only([name])? });
        }
        Ok(Self { base: base.only([])?, others })
    }

    /// Leaves out the tools with a need that `is_met` denies.
    #[must_use]
    pub fn where_needs_are_met(mut self, is_met: impl Fn(ToolNeed) -> bool) -> Self {
        for dialect in std::iter::once(&mut self.base).chain(&mut self.others) {
            dialect.tools.retain(|tool| tool.needs().is_none_or(&is_met));
        }
        self
    }

    /// The builder with these tools.
    pub fn into_builder(self, builder: Builder) -> Builder {
        self.others.into_iter().fold(builder.dialect(self.base), Builder::add_dialect)
    }

    /// A registry of these tools.
    pub fn registry(&self) -> Result<Registry, ToolError> {
        let mut registry = Registry::of(&self.base);
        for dialect in &self.others {
            registry.add(dialect)?;
        }
        Ok(registry)
    }
}

fn by_name(name: &str, settings: &Settings) -> Result<Dialect, ToolError> {
    dialects::by_name(name, settings).ok_or_else(|| {
        let all = dialects::NAMES.join(", ");
        ToolError::new(ErrorKind::NotFound, format!("there is no dialect {name:?}; there are {all}"))
    })
}
