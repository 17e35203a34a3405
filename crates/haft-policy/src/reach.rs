//! What a call may reach over the network itself.

use haft_tool::net::{Authority, Domains};
use haft_tool::{Effect, Network, Reach, Scope};

use crate::address::not_public_host;
use crate::command::EffectView;
use crate::decide::{Policy, Standing};

/// Whether `host` may be reached.
pub(crate) fn standing<'a>(
    tool: &str,
    view: &EffectView<'_>,
    host: &str,
    policy: &'a Policy,
) -> Standing<'a> {
    let Some(place) = view.place() else {
        return Standing::Ask(format!("it would reach {host:?}, which is no host's name"));
    };
    if is_listed(place, &policy.scope) {
        return Standing::Fine;
    }
    let Some(what) = not_public_host(place) else {
        return match policy.rules.allowing(tool, view) {
            Some(rule) => Standing::Ruled(rule),
            None if policy.scope.network == Network::All => Standing::Fine,
            None => Standing::Ask(format!("it would reach {host}")),
        };
    };
    // As with paths: naming the tool is not naming a place inside.
    match policy.rules.granting(tool, view) {
        Some(rule) => Standing::Ruled(rule),
        None => Standing::Ask(format!(
            "it would reach {place}, {what}, which is not on the public network; `--network {}` lists it",
            place.entries().first().map_or("", String::as_str)
        )),
    }
}

/// Whether the user listed this place, as an endpoint or for commands.
fn is_listed(place: &Authority, scope: &Scope) -> bool {
    let listed = |list: &[String]| Domains::parse(list).is_ok_and(|list| place.is_in(&list));
    let commands = matches!(&scope.network, Network::Domains(list) if listed(list));
    commands || listed(&scope.endpoints)
}

/// What the call may reach once it is let through: what it declared, and on its way what the user lists anyhow.
pub(crate) fn of(tool: &str, effects: &[Effect], policy: &Policy) -> Reach {
    let places: Vec<Authority> = effects
        .iter()
        .filter_map(|effect| match effect {
            Effect::Reach { host } => Authority::parse(host).ok(),
            _ => None,
        })
        .collect();
    if places.is_empty() {
        return Reach::default();
    }
    let Scope { network, endpoints, .. } = &*policy.scope;
    let mut hosts: Vec<String> = places.iter().flat_map(Authority::entries).collect();
    if let Network::Domains(list) = network {
        hosts.extend_from_slice(list);
    }
    let named = Domains::parse(endpoints).unwrap_or_default();
    let inner = places.iter().filter(|place| place.is_in(&named)).flat_map(Authority::entries).collect();
    let trusted = policy.rules.trusting(tool).is_some();
    Reach { hosts, inner, public: trusted || *network == Network::All, never: policy.rules.held_back(tool) }
}
