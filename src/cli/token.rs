//! The token that clients send over HTTP.

use super::environment::Environment;
use crate::{
    engine::Config,
    http::{self, token::AccessToken},
};

impl Environment {
    /// Returns whether VERBATIM_TOKEN contains a token.
    pub(super) fn names_token(&self) -> bool {
        self.verbatim_token.as_ref().is_some_and(|token| !token.0.is_empty())
    }
}

/// Returns the token in VERBATIM_TOKEN, or else the token of the home folder.
pub(super) fn token_of(
    config: &Config,
    environment: &Environment,
) -> Result<AccessToken, http::Error> {
    let given = environment.verbatim_token.as_ref().filter(|token| !token.0.is_empty());
    Ok(match given {
        Some(given) => AccessToken::given(&given.0.to_string_lossy(), "VERBATIM_TOKEN")?,
        None => AccessToken::of_home(&config.home)?,
    })
}
