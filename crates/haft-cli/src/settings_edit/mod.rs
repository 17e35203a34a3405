//! Edits entries in the text of another program's settings file. Comments, order, line ends and the layout of the rest
//! stay; a file that cannot be edited safely is refused.
//!
//! Each edited text is parsed again and must hold the intended value before it counts.

mod changes;
pub(crate) mod json;
pub(crate) mod toml;
pub(crate) mod yaml;

pub(crate) use changes::{SettingChange, SettingsFormat};

const BYTE_ORDER_MARK: char = '\u{feff}';

const NOT_UNDERSTOOD: &str = "its layout is not understood well enough to change it";

/// Gives a generated text the byte order mark and the line ends of the old text.
fn like_old(old: &str, new: String) -> String {
    let mark = old.starts_with(BYTE_ORDER_MARK) && !new.starts_with(BYTE_ORDER_MARK);
    let new = if mark { format!("{BYTE_ORDER_MARK}{new}") } else { new };
    if old.contains("\r\n") { new.replace("\r\n", "\n").replace('\n', "\r\n") } else { new }
}
