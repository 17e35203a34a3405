//! The location of the user's `haft.toml`.

use std::path::PathBuf;

use haft_tool::ToolError;

/// The name of the settings file, of the user and of a project.
pub(super) const NAME: &str = "haft.toml";

/// The user's file: `$HAFT_CONFIG`, else `haft/haft.toml` in `$XDG_CONFIG_HOME` or `~/.config`. `None` without a home.
pub(crate) fn user_file() -> Result<Option<PathBuf>, ToolError> {
    let var = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(named) = var("HAFT_CONFIG") {
        if named.is_absolute() {
            return Ok(Some(named));
        }
        return Err(ToolError::invalid_arguments(format!(
            "HAFT_CONFIG: {} is not an absolute path",
            named.display()
        )));
    }
    let absolute = |name: &str| var(name).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| absolute("HOME").map(|home| home.join(".config")));
    Ok(folder.map(|folder| folder.join("haft").join(NAME)))
}

/// The user's file; an error if no variable says where it is.
pub(crate) fn required_user_file() -> Result<PathBuf, ToolError> {
    user_file()?.ok_or_else(|| ToolError::failed("cannot locate haft.toml: set HOME or HAFT_CONFIG"))
}
