//! Managing servers from the shell: those that Haft uses, and Haft as one that others use. One file per verb.

mod add;
mod clients;
mod get;
mod install;
mod list;
mod rewrite;
mod server;
mod trust;

pub(super) use add::{add, add_json, header, remove, variable};
pub(super) use clients::Client;
pub(super) use get::get;
pub(super) use install::{install, uninstall};
pub(super) use list::list;
pub(super) use trust::{trust, untrust};
