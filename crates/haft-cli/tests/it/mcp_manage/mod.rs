//! `haft mcp list|get|add|remove|trust|install`: their output, the files they change, and the undo.

mod add;
mod install;
mod list;
mod trust;
mod uninstall;
