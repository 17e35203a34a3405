//! `haft mcp`: Haft's tools for any client, and any server's tools for Haft.

mod args;
mod http;
mod manage;
mod serve;
mod try_out;

use super::Done;
use args::Action;
pub(super) use args::Mcp;

pub(super) fn run(args: Mcp) -> Done {
    match args.action {
        None => serve::run(args.serve),
        Some(Action::List(args)) => manage::list(&args),
        Some(Action::Get(args)) => manage::get(&args),
        Some(Action::Add(args)) => manage::add(*args),
        Some(Action::AddJson(args)) => manage::add_json(&args),
        Some(Action::Remove(args)) => manage::remove(&args),
        Some(Action::Trust(args)) => manage::trust(&args),
        Some(Action::Untrust(args)) => manage::untrust(&args),
        Some(Action::Test(args)) => try_out::test(&args),
        Some(Action::Call(args)) => try_out::call(*args),
        Some(Action::Login(args)) => try_out::login(&args),
        Some(Action::Logout(args)) => try_out::logout(&args),
        Some(Action::Install(args)) => manage::install(&args),
        Some(Action::Uninstall(args)) => manage::uninstall(&args),
    }
}
