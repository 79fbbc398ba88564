//! The token that clients send over HTTP.

use std::path::Path;

use super::environment::Environment;
use verbatim_engine::Config;
use verbatim_server::http::{self, token::AccessToken};

/// Returns the token in the file that the user names, or in VERBATIM_TOKEN, or else that of the home folder.
pub(super) fn token_of(
    file: Option<&Path>,
    config: &Config,
    environment: &Environment,
) -> Result<AccessToken, http::Error> {
    Ok(match (file, environment.filled("VERBATIM_TOKEN")) {
        (Some(file), _) => AccessToken::in_file(file)?,
        (None, Some(given)) => AccessToken::parse(&given.to_string_lossy(), "VERBATIM_TOKEN")?,
        (None, None) => AccessToken::of_home(&config.home)?,
    })
}
