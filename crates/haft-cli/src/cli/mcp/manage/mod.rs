//! The subcommands of `haft mcp` that manage servers, one file each.

mod add;
mod clients;
mod file_edit;
mod get;
mod install;
mod install_record;
mod list;
mod server;
mod trust;

pub(super) use add::{add, add_json, header, remove, variable};
pub(super) use clients::Client;
pub(super) use get::get;
pub(super) use install::{install, uninstall};
pub(super) use list::list;
pub(super) use trust::{trust, untrust};
