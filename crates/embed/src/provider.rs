//! The choice of a model: the built-in one or a server's.

use std::{fmt, str::FromStr, time::Duration};

/// The source of vectors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Provider {
    /// The model in the program. No text is sent anywhere.
    #[default]
    BuiltIn,
    /// The model in the program without its sentence encoder.
    Static,
    /// A server, which receives the texts.
    Remote(Remote),
}

/// A server that speaks OpenAI's protocol for embeddings, and one of its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The address of requests.
    pub endpoint: String,
    /// The server's name of the model.
    pub model: String,
    /// The key for requests, which is never shown.
    pub key: Option<Key>,
    /// The wait before a failed request is repeated. It doubles each time.
    pub first_wait: Duration,
    /// Time limit for an answer.
    pub timeout: Duration,
}

/// A secret that is sent in the header of a request and written nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// An error in the name of a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The name has no known form.
    #[error(
        "{0:?} is not an embedding model; write built-in, static or URL#MODEL, such as \
         http://localhost:11434/v1#nomic-embed-text"
    )]
    Form(String),
    /// The address holds a password.
    #[error(
        "the address of an embedding provider may not hold a password; \
         put the key in VERBATIM_EMBEDDINGS_KEY"
    )]
    Password,
}

impl Key {
    /// Returns a key without the line break at its end; `None` if it is empty or has control characters.
    pub fn new(text: &str) -> Option<Key> {
        let text = text.trim_end_matches(['\r', '\n']);
        let is_plain = !text.is_empty() && !text.contains(char::is_control);
        is_plain.then(|| Key(text.to_owned()))
    }

    /// Returns the secret as text, to be sent in a request. `Debug` does not show it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(…)")
    }
}

impl FromStr for Provider {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Provider, Unknown> {
        let text = text.trim();
        match text {
            "built-in" => return Ok(Provider::BuiltIn),
            "static" => return Ok(Provider::Static),
            _ => {}
        }
        let host = text.split_once("//").map_or("", |(_, rest)| rest);
        let host = host.split(['/', '#']).next().unwrap_or_default();
        if host.contains('@') {
            return Err(Unknown::Password);
        }
        let is_web = text.starts_with("https://") || text.starts_with("http://");
        let is_clean = !text.contains(|c: char| c.is_whitespace() || c.is_control());
        match text.split_once('#') {
            Some((url, model)) if is_web && is_clean && !host.is_empty() && !model.is_empty() => {
                Ok(Provider::Remote(Remote::new(url, model)))
            }
            _ => Err(Unknown::Form(text.to_owned())),
        }
    }
}

impl Provider {
    /// Returns the provider with a key for its requests.
    pub fn with_key(self, key: Option<Key>) -> Provider {
        match self {
            Provider::Remote(remote) => Provider::Remote(Remote { key, ..remote }),
            Provider::BuiltIn | Provider::Static => self,
        }
    }
}

impl Remote {
    fn new(url: &str, model: &str) -> Remote {
        Remote {
            endpoint: format!("{}/embeddings", url.trim_end_matches('/')),
            model: model.to_owned(),
            key: None,
            first_wait: Duration::from_millis(500),
            timeout: Duration::from_secs(60),
        }
    }

    /// Returns the name of the model's vectors, which consists of letters, digits and hyphens.
    pub(super) fn name(&self) -> String {
        let model =
            self.model.to_ascii_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let model: String = model.chars().take(40).collect();
        let identity = super::cache::hash(&format!("{} {}", self.endpoint, self.model));
        format!("remote-{model}-{:016x}", identity as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remote(text: &str) -> Remote {
        match text.parse() {
            Ok(Provider::Remote(remote)) => remote,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn addresses_name_a_server_and_a_model() {
        let table = [
            ("http://localhost:11434/v1#nomic:v1.5", "http://localhost:11434/v1", "nomic:v1.5"),
            (" https://h/v1/#a/b:c\n", "https://h/v1", "a/b:c"),
        ];
        for (text, url, model) in table {
            let remote = remote(text);
            assert_eq!(remote.endpoint, format!("{url}/embeddings"), "{text}");
            assert_eq!(remote.model, model, "{text}");
        }
        assert_eq!("built-in".parse(), Ok(Provider::BuiltIn));
        assert_eq!("static".parse(), Ok(Provider::Static));
    }

    #[test]
    fn unknown_forms_are_refused() {
        for text in [
            "",
            "x",
            "ollama:nomic-embed-text",
            "openai:https://api.openai.com/v1#m",
            "ftp://h#m",
            "https://h",
            "https://h#",
            "https://#m",
            "https://h h#m",
        ] {
            let error = text.parse::<Provider>().unwrap_err();
            assert_eq!(error, Unknown::Form(text.to_owned()), "{text}");
            assert!(error.to_string().contains("URL#MODEL"), "{error}");
        }
        for text in ["https://me:secret@h/v1#m", "openai:https://me:secret@h/v1#m"] {
            let error = text.parse::<Provider>().unwrap_err();
            assert_eq!(error, Unknown::Password);
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn keys_are_not_shown() {
        assert_eq!(Key::new("me:a word\r\n").unwrap().as_str(), "me:a word");
        assert_eq!(Key::new("a\r\nb"), None);
        assert_eq!(Key::new("\n"), None);
        let provider = Provider::Remote(remote("https://h/v1#m")).with_key(Key::new("sk-secret"));
        let shown = format!("{provider:?}");
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn names_differ_with_what_answers() {
        let names = ["http://h#a", "http://h#b", "http://h/v1#a"].map(|text| remote(text).name());
        for (at, one) in names.iter().enumerate() {
            assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{one}");
            assert!(!names[..at].contains(one), "{one}");
        }
    }
}
