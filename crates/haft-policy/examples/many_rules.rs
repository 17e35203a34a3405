//! How long `decide` takes with 2,000 rules: `cargo run --release -p haft-policy --example many_rules`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::use_debug,
    reason = "a program that prints a measurement"
)]

use std::path::Path;
use std::time::Instant;

use haft_policy::{Behavior, Mode, Policy, Request, Rule, RuleTools, Rules, decide};
use haft_tool::{Effect, Scope};

const RULE_COUNT: usize = 2_000;
const ROUND_COUNT: usize = 2_000;

fn main() {
    let start = Instant::now();
    let mut rules = Rules::default();
    for number in 0..RULE_COUNT {
        let (behavior, text) = match number % 8 {
            0 => (Behavior::Allow, format!("Bash(tool{number} run:*)")),
            1 => (Behavior::Deny, format!("Bash(danger{number} *)")),
            2 => (Behavior::Ask, format!("Bash(deploy --to host{number} *)")),
            3 => (Behavior::Deny, format!("Read(secret{number}/**)")),
            4 => (Behavior::Deny, format!("Edit(*.generated{number})")),
            5 => (Behavior::Allow, format!("Edit(/part{number}/**/*.rs)")),
            6 => (Behavior::Allow, format!("WebFetch(domain:host{number}.example.com)")),
            _ => (Behavior::Allow, format!("mcp__server{number}__*")),
        };
        rules.push(Rule::parse(behavior, &text, "example", Path::new("/w"), &RuleTools::default()).unwrap());
    }
    println!("{RULE_COUNT} rules read in {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    let policy = Policy {
        mode: Mode::Default,
        rules,
        scope: Scope::of("/w").into(),
        commands_reversible: true,
        user_request: false,
    };
    for (tool, effect) in [
        ("Bash", Effect::Run { command: "git status".to_owned() }),
        ("Bash", Effect::Run { command: "cd src && cargo test --lib 2>&1 | tail -5".to_owned() }),
        ("Read", Effect::Read { path: "/w/crates/some/src/file.rs".into() }),
        ("Edit", Effect::Write { path: "/w/crates/some/src/file.rs".into() }),
        ("WebFetch", Effect::Reach { host: "docs.example.org".to_owned() }),
        ("mcp__files__read", Effect::Serve { server: "files".to_owned(), reaches: false, writes: false }),
    ] {
        let effects = [effect];
        let mut times: Vec<_> = (0..ROUND_COUNT)
            .map(|_| {
                let start = Instant::now();
                std::hint::black_box(decide(Request { tool, effects: &effects }, &policy));
                start.elapsed()
            })
            .collect();
        times.sort_unstable();
        println!("{:>8.1} µs  {tool} {:?}", times[ROUND_COUNT / 2].as_secs_f64() * 1e6, effects[0]);
    }
}
