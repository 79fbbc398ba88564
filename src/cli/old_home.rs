//! Finds the home of an older version, and moves it after the user agrees.

use super::{
    engine_config,
    environment::Environment,
    error::Result,
    output::{complain, confirm},
};
use verbatim_engine::{Config, OldHome};
use verbatim_text::shell::quoted;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Consent {
    Given,
    /// The user is asked, if there is a terminal.
    Asked,
    Missing,
}

/// Moves the chats from the home of an older version, if there is one and the user agrees. If the
/// user is not asked, prints a line that says how to move the chats.
pub(super) fn offer(config: &Config, consent: Consent, environment: &Environment) -> Result<()> {
    // The move is for the default home only, not for a home that the user named.
    let is_default = config.home == engine_config::default_home(environment);
    if !is_default || config.db.is_some() || config.local_databases.is_none() {
        return Ok(());
    }
    let roaming = environment.roaming_folder.as_ref().map(|folder| folder.join("verbatim"));
    let folders = [Some(environment.working_folder.clone()), roaming];
    let mut found = folders.into_iter().flatten().filter_map(|folder| OldHome::at(&folder));
    let Some(old) = found.find(|old| old.folder() != config.home) else { return Ok(()) };
    let [from, to] =
        [old.folder(), &config.home].map(|path| engine_config::short(path, environment));
    if let Some(there) = old.obstacle(&config.home) {
        let there = engine_config::short(&there, environment);
        let home = quoted(&old.folder().to_string_lossy());
        complain(&format!(
            "{from} holds chats of an older version; they stay there, because there is a {there} \
             already (--home {home} searches the old ones)"
        ));
        return Ok(());
    }
    let question =
        format!("{from} holds the chats of an older version of verbatim. Move them to {to}?");
    let yes = consent == Consent::Given;
    if !yes && (consent == Consent::Missing || !environment.can_ask) {
        complain(&format!(
            "{from} holds chats of an older version; `verbatim reindex --yes` moves them to {to}"
        ));
        return Ok(());
    }
    if yes || confirm(&question)? {
        old.move_to(&config.home)?;
        complain(&format!("moved the chats of {from} to {to}"));
    }
    Ok(())
}
