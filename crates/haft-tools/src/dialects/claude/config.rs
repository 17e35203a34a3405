//! `Config`: gets, sets or lists the user's settings.

use haft_tool::prelude::*;
use haft_tool::{Configuration, Setting};

/// Lists all settings, as an empty name does.
const LIST: &str = "list";

/// Get or set one of the user's Haft settings, or list them all with "list". New values apply from the next start.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// For example "dialect".
    setting: String,
    /// The new value; leave out to get the present one.
    value: Option<SettingValue>,
}

#[derive(Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
enum SettingValue {
    Text(String),
    Boolean(bool),
    Number(f64),
}

impl SettingValue {
    /// The value for the file; a whole number becomes an integer.
    fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Boolean(value) => Value::Bool(value),
            #[expect(clippy::cast_possible_truncation, reason = "it is whole and in range")]
            Self::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => json!(number as i64),
            Self::Number(number) => json!(number),
        }
    }
}

pub(super) struct Config;

/// What the call does.
pub(super) enum ConfigPlan {
    List,
    Get { name: String },
    Set { name: String, value: Value },
}

impl Tool for Config {
    const NAME: &'static str = "Config";
    const EFFECTS: &'static [EffectKind] = &[EffectKind::Configure, EffectKind::Inspect];
    const NEEDS: Option<ToolNeed> = Some(ToolNeed::AgentLoop);
    type Input = Input;
    type Plan = ConfigPlan;

    fn plan(&self, input: Input, _at: &Planning) -> Result<Planned<ConfigPlan>, ToolError> {
        let name = input.setting.trim().to_owned();
        let lists = matches!(name.as_str(), "" | LIST);
        match input.value {
            Some(_) if lists => {
                Err(ToolError::invalid_arguments("setting: name the setting that is to have the value"))
            }
            Some(value) => {
                let value = value.into_value();
                let effect = Effect::Configure { setting: name.clone(), value: Some(value.clone()) };
                Ok(Planned::new([effect], ConfigPlan::Set { name, value }))
            }
            None if lists => {
                Ok(Planned::new([Effect::Inspect { what: "the settings".to_owned() }], ConfigPlan::List))
            }
            None => {
                let effect = Effect::Inspect { what: format!("the setting {name}") };
                Ok(Planned::new([effect], ConfigPlan::Get { name }))
            }
        }
    }

    fn perform(&self, plan: ConfigPlan, world: &dyn World) -> Result<Output, ToolError> {
        let config = world.host().configuration().ok_or_else(|| {
            ToolError::failed("there are no settings here: the program that runs the tools has no haft.toml")
        })?;
        match plan {
            ConfigPlan::Set { name, value } => set(config, &name, &value, world),
            ConfigPlan::List => {
                let all = config.list()?;
                let text: String = all.iter().map(|setting| line(setting) + "\n").collect();
                Ok(Output::text(text).with_structured(json!({"operation": "list", "settings": all})))
            }
            ConfigPlan::Get { name } => {
                let setting = config.get(&name)?;
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
    // A project file or a variable may override the user's file.
    let effect = if after.value != before.value {
        format!(": {} becomes {}, from the next start", before.value, after.value)
    } else if after.origin == before.origin && *value != after.value {
        format!("; {} overrides it", after.origin)
    } else {
        String::new()
    };
    let text = format!("Set {name} in {}{effect}", written.path.display());
    Ok(Output::text(text).with_structured(json!({
        "operation": "set", "setting": name, "previousValue": before.value, "newValue": after.value,
    })))
}

fn line(setting: &Setting) -> String {
    format!("{} = {}  ({})", setting.name, setting.value, setting.origin)
}
