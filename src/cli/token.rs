//! The token that clients send over HTTP.

use super::environment::Environment;
use verbatim_engine::Config;
use verbatim_server::http::{self, token::AccessToken};

/// Returns the token in VERBATIM_TOKEN, or else the token of the home folder.
pub(super) fn token_of(
    config: &Config,
    environment: &Environment,
) -> Result<AccessToken, http::Error> {
    Ok(match environment.filled("VERBATIM_TOKEN") {
        Some(given) => AccessToken::given(&given.to_string_lossy(), "VERBATIM_TOKEN")?,
        None => AccessToken::of_home(&config.home)?,
    })
}
