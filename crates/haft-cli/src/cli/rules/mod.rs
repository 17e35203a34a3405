//! `haft rules`: which rules there are, what they decide and why, and changes of the user's own.

mod change;
mod explain;
mod list;
mod shorthand;
mod test;

use clap::{Args, Subcommand, ValueEnum};
use haft_policy::Behavior;
use haft_runtime::Runtime;
use haft_tool::ToolError;

use super::CommandResult;
use super::args::{RuleArgs, SessionArgs, WorkspaceArgs};
use super::setup::Setup;
use super::terminal;
use explain::ExplainArgs;
use test::RuleTestArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
haft rules list\n  \
haft rules explain 'Bash(git push origin main)'\n  \
haft rules explain Edit file_path=src/main.rs old_string=tea new_string=coffee\n  \
haft rules test < cases.txt       # lines such as: deny Bash(git push --force)\n  \
haft rules add allow 'Bash(git log:*)'\n  \
haft rules remove allow 'Bash(git log:*)'")]
pub(super) struct RulesArgs {
    #[command(subcommand)]
    action: RulesCommand,
}

/// What a session has in which calls would be made.
#[derive(Debug, Args)]
struct RulesSetup {
    #[command(flatten)]
    at: SessionArgs,
    #[command(flatten)]
    rules: RuleArgs,
}

#[derive(Debug, Subcommand)]
enum RulesCommand {
    /// List the rules in force with their origins, and those that have no effect.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        setup: Box<RulesSetup>,
    },
    /// Show what would be decided about a call, by which rule, and what would change it. Makes no call.
    Explain(ExplainArgs),
    /// Check decisions: each line of standard input, or of FILE, is allow, ask or deny and a call.
    Test(RuleTestArgs),
    /// Add a rule to your file. `haft undo` reverts it.
    Add {
        /// List of the rule.
        behavior: BehaviorArg,
        /// Rule, for example 'Bash(git log:*)'.
        rule: String,
        #[command(flatten)]
        workspace: WorkspaceArgs,
    },
    /// Remove a rule from your file. `haft undo` reverts it.
    Remove {
        /// List of the rule.
        behavior: BehaviorArg,
        /// Rule as it is written there.
        rule: String,
        #[command(flatten)]
        workspace: WorkspaceArgs,
    },
}

/// A list of rules.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum BehaviorArg {
    /// Calls that run without a question.
    Allow,
    /// Calls that ask.
    Ask,
    /// Calls that are denied.
    Deny,
}

impl From<BehaviorArg> for Behavior {
    fn from(behavior: BehaviorArg) -> Self {
        match behavior {
            BehaviorArg::Allow => Self::Allow,
            BehaviorArg::Ask => Self::Ask,
            BehaviorArg::Deny => Self::Deny,
        }
    }
}

pub(super) fn run(args: &RulesArgs) -> CommandResult {
    match &args.action {
        RulesCommand::List { json, setup } => list::run(&setup.runtime()?, *json),
        RulesCommand::Explain(args) => explain::run(&args.setup.runtime()?, args),
        RulesCommand::Test(args) => test::run(&args.setup.runtime()?, args),
        RulesCommand::Add { behavior, rule, workspace } => {
            let setup = Setup::load(workspace)?;
            let behavior = Behavior::from(*behavior);
            // Refuses a rule that cannot be read.
            setup.builder().rule(behavior, rule, "the new rule").build()?;
            change::add(&setup, behavior, rule)
        }
        RulesCommand::Remove { behavior, rule, workspace } => {
            change::remove(&Setup::load(workspace)?, (*behavior).into(), rule)
        }
    }
}

impl RulesSetup {
    /// A runtime in which calls are decided as in a session with these flags.
    fn runtime(&self) -> Result<Runtime, ToolError> {
        let setup = Setup::load_for_calls(&self.at.workspace, &self.rules)?;
        let builder = setup.tool_selection(&self.at.dialect)?.into_builder(setup.builder());
        let builder = setup.rules(&self.rules, setup.scope(&self.at.scope, builder)?);
        builder.asker(terminal::asker(&setup)).build()
    }
}
