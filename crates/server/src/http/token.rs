//! The token that lets clients in over TCP.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use verbatim_base::{files, private};
use verbatim_engine::TOKEN_FILE;

const RANDOM_BYTES: usize = 32;

/// The minimum length of a token: 128 bits in base64.
const SHORTEST: usize = 22;

/// The texts that are hashed together with the token: for a login code, and for the cookie.
const LOGIN_PURPOSE: &[u8] = b"verbatim page login\0";
const COOKIE_PURPOSE: &[u8] = b"verbatim page cookie\0";

/// An error of reading or making a token.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file of the token cannot be read or written.
    #[error("{}: the token cannot be read or made: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Other users may read or write the file of the token.
    #[error(
        "{}: other users may read or write this file, and a token is a secret; make it readable for \
         you only (chmod 600)",
        path.display()
    )]
    Exposed {
        /// The path of the file.
        path: PathBuf,
    },
    /// A given token is too short, or has characters that are not allowed.
    #[error(
        "{place}: a token has at least {SHORTEST} characters, all of them letters, digits or \
         punctuation of ASCII, without spaces"
    )]
    Weak {
        /// The file or the variable that holds the token.
        place: String,
    },
    /// The system gave no random numbers; the text is its error message.
    #[error("the system gives no random numbers for a token: {0}")]
    NoRandomness(String),
}

/// A secret that a client sends with each request. `Debug` does not show it.
#[derive(Clone)]
pub struct AccessToken(String);

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

impl AccessToken {
    /// Checks a token that the user made; `place` names the file or variable that holds the token.
    pub fn parse(text: &str, place: &str) -> Result<AccessToken, Error> {
        let text = text.trim();
        if text.len() < SHORTEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Error::Weak { place: place.to_owned() });
        }
        Ok(AccessToken(text.to_owned()))
    }

    /// Reads the token from a file, which other users must not be able to read.
    pub fn in_file(path: &Path) -> Result<AccessToken, Error> {
        let is_exposed = fs::metadata(path)
            .is_ok_and(|file| file.is_file() && private::is_open_to_others(&file));
        if is_exposed {
            Err(Error::Exposed { path: path.to_owned() })
        } else {
            // People may name a pipe.
            AccessToken::read(path, fs::read_to_string(path))
        }
    }

    fn read(path: &Path, text: io::Result<String>) -> Result<AccessToken, Error> {
        let text = text.map_err(|source| Error::File { path: path.to_owned(), source })?;
        AccessToken::parse(&text, &path.display().to_string())
    }

    /// Returns the token of a home folder. Makes a token if there is none.
    pub fn of_home(home: &Path) -> Result<AccessToken, Error> {
        let path = home.join(TOKEN_FILE);
        private::tighten(&path);
        match AccessToken::read(&path, files::read_to_string(&path)) {
            Err(Error::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            read => return read,
        }
        let token = AccessToken(random()?);
        let written = private::create_dir_all(home).and_then(|()| {
            let mut file = tempfile::NamedTempFile::new_in(home)?;
            writeln!(file, "{}", token.0)?;
            Ok(file)
        });
        let file = written.map_err(|source| Error::File { path: path.clone(), source })?;
        match file.persist_noclobber(&path) {
            Ok(_) => Ok(token),
            // Another process has just made a token, and that token is used.
            Err(_) => AccessToken::read(&path, files::read_to_string(&path)),
        }
    }

    /// Returns whether a client sent this token. The comparison takes constant time.
    pub(super) fn is_token(&self, given: &[u8]) -> bool {
        is_equal(self.0.as_bytes(), given)
    }

    pub(super) fn is_cookie(&self, given: &[u8]) -> bool {
        is_equal(self.cookie().as_bytes(), given)
    }

    /// Returns the value of the cookie. The token cannot be computed from the cookie. The cookie
    /// gives access to the page only.
    pub(super) fn cookie(&self) -> String {
        let hash = Sha256::new().chain_update(COOKIE_PURPOSE).chain_update(&self.0).finalize();
        hex(&hash)
    }

    /// Returns the code that logs in one browser until a time, in seconds since 1970. The token cannot be computed
    /// from it.
    /// `nonce` makes it unlike the other codes of this time.
    pub(super) fn login_code(&self, until: u64, nonce: &str) -> String {
        let start = format!("{until}-{nonce}-");
        let hash = Sha256::new().chain_update(LOGIN_PURPOSE).chain_update(&start);
        format!("{start}{}", hex(&hash.chain_update(&self.0).finalize()))
    }

    /// Returns the token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Compares two secrets. The time of the comparison reveals only their lengths.
pub(super) fn is_equal(secret: &[u8], given: &[u8]) -> bool {
    secret.ct_eq(given).into()
}

pub(super) fn random() -> Result<String, Error> {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Error::NoRandomness(error.to_string()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_made_once_and_is_private() {
        let home = tempfile::tempdir().unwrap();
        let token = AccessToken::of_home(&home.path().join("new")).unwrap();
        assert_eq!(token.as_str().len(), 2 * RANDOM_BYTES);
        assert!(
            token.is_token(
                AccessToken::of_home(&home.path().join("new")).unwrap().as_str().as_bytes()
            )
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let path = home.path().join("new").join(TOKEN_FILE);
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            // If other users can read the token file of a home, reading the token makes the file private.
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
            assert!(matches!(AccessToken::in_file(&path), Err(Error::Exposed { .. })));
            AccessToken::of_home(&home.path().join("new")).unwrap();
            assert_eq!(mode(&path), 0o600);
            assert!(AccessToken::in_file(&path).is_ok());
        }
        fs::remove_file(home.path().join("new").join(TOKEN_FILE)).unwrap();
        let other = AccessToken::of_home(&home.path().join("new")).unwrap();
        assert!(!token.is_token(other.as_str().as_bytes()) && token.cookie() != other.cookie());
        assert!(!format!("{other:?}").contains(other.as_str()));
    }

    #[test]
    fn weak_tokens_are_refused() {
        for weak in ["", "secret", "twenty-two characters!", "ääääääääääääääääääääääää"]
        {
            assert!(AccessToken::parse(weak, "VERBATIM_TOKEN").is_err(), "{weak}");
        }
        let token = AccessToken::parse(" abcdefghijklmnopqrstuv\n", "a file").unwrap();
        assert!(
            token.is_token(b"abcdefghijklmnopqrstuv") && !token.is_token(b"abcdefghijklmnopqrstuw")
        );
        assert!(!token.is_token(b"") && !token.is_token(b"abcdefghijklmnopqrstuvw"));
    }
}
