//! Where `haft.toml` is looked for.

use std::path::PathBuf;

use haft_tool::ToolError;

/// What the file is called, for the user and in a project.
pub(super) const NAME: &str = "haft.toml";

/// The user's own file: `$HAFT_CONFIG`, else `haft/haft.toml` in `$XDG_CONFIG_HOME` or in `~/.config`. Nothing if this
/// machine knows no home.
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
