//! `Config`: the user's settings.

use haft_tool::{
    Configuration, Effect, JsonSchema, Output, Planning, Setting, SideEffect, Tool, ToolError, Value, World,
    json,
};
use serde::{Deserialize, Serialize};

/// What lists every setting, besides nothing at all.
const LIST: &str = "list";

/// Get or set one of the user's Haft settings, or list them all with "list". A new value counts from the next start.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// For example "dialect".
    setting: String,
    /// The new value; leave out to get the present one.
    value: Option<NewValue>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum NewValue {
    Text(String),
    Truth(bool),
    Number(f64),
}

impl NewValue {
    /// The value for the file: a whole number stays one.
    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Truth(truth) => Value::Bool(truth),
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => json!(number as i64),
            Self::Number(number) => json!(number),
        }
    }
}

pub(super) struct Config;

impl Input {
    fn lists(&self) -> bool {
        matches!(self.setting.trim(), "" | LIST)
    }
}

impl Tool for Config {
    type Input = Input;

    fn name(&self) -> &'static str {
        "Config"
    }

    fn side_effect(&self) -> SideEffect {
        SideEffect::Mutating
    }

    fn plan(&self, input: &Input, _planning: &Planning) -> Result<Vec<Effect>, ToolError> {
        if input.value.is_some() && input.lists() {
            return Err(ToolError::invalid_arguments("setting: name the setting that is to have the value"));
        }
        let sets =
            input.value.as_ref().map(|_| Effect::Configure { setting: input.setting.trim().to_owned() });
        Ok(sets.into_iter().collect())
    }

    async fn perform(&self, input: Input, world: &dyn World) -> Result<Output, ToolError> {
        let config = world.host().configuration().ok_or_else(|| {
            ToolError::failed("there are no settings here: whoever runs the tools has no haft.toml")
        })?;
        let lists = input.lists();
        let name = input.setting.trim();
        match input.value {
            Some(value) => set(config, name, &value.into_value(), world),
            None if lists => {
                let all = config.list()?;
                let text: String = all.iter().map(|setting| line(setting) + "\n").collect();
                Ok(Output::text(text).with_structured(json!({"operation": "list", "settings": all})))
            }
            None => {
                let setting = config.get(name)?;
                Ok(Output::text(line(&setting)).with_structured(json!({
                    "operation": "get", "setting": setting.name, "value": setting.value, "origin": setting.origin,
                })))
            }
        }
    }
}

fn set(
    config: &dyn Configuration,
    name: &str,
    value: &Value,
    world: &dyn World,
) -> Result<Output, ToolError> {
    let before = config.get(name)?;
    let written = world.files().update(config.file(), &mut |old| config.changed(old, name, value))?;
    let after = config.get(name)?;
    // What stands above the user's file still counts, and the caller should not believe otherwise.
    let hidden = if after.value == before.value && after.origin == before.origin && *value != after.value {
        format!("; {} still counts more", after.origin)
    } else {
        String::new()
    };
    let text = format!("Set {name} in {}; it counts from the next start{hidden}", written.path.display());
    Ok(Output::text(text).with_structured(json!({
        "operation": "set", "setting": name, "previousValue": before.value, "newValue": after.value,
    })))
}

fn line(setting: &Setting) -> String {
    format!("{} = {}  ({})", setting.name, setting.value, setting.origin)
}
