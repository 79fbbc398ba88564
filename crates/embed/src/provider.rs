//! The choice of a model: the built-in one or a provider's.

use std::{fmt, str::FromStr, time::Duration};

const OLLAMA: &str = "http://localhost:11434";

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

/// A server and one of its models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remote {
    /// The protocol of requests.
    pub protocol: Protocol,
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

/// The protocol of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// `/v1/embeddings` of OpenAI, which many other servers have too.
    OpenAi,
    /// Ollama's own `/api/embed`.
    Ollama,
}

/// The key of a provider. It is written into the request's header and nowhere else.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(String);

/// An error in the name of a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    /// The name has no known form.
    #[error(
        "{0:?} is not an embedding model; write built-in, static, ollama:MODEL, ollama:URL#MODEL or \
         openai:URL#MODEL, such as openai:https://api.openai.com/v1#text-embedding-3-small"
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
    /// Returns a key; `None` if it is empty or a header cannot hold it.
    pub fn new(key: &str) -> Option<Key> {
        let key = key.trim();
        let is_plain = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic());
        is_plain.then(|| Key(key.to_owned()))
    }

    /// Returns a key that may contain spaces, such as a user name and a password; `None` if it is empty
    /// or has control characters.
    pub fn login(text: &str) -> Option<Key> {
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
        let form = || Unknown::Form(text.to_owned());
        let text = text.trim();
        match text {
            "built-in" => return Ok(Provider::BuiltIn),
            "static" => return Ok(Provider::Static),
            _ => {}
        }
        let (protocol, rest) = match text.split_once(':') {
            Some(("openai", rest)) => (Protocol::OpenAi, rest),
            Some(("ollama", rest)) => (Protocol::Ollama, rest),
            _ => return Err(form()),
        };
        let (url, model) = match rest.split_once('#') {
            Some(both) => both,
            // Names of Ollama's models may hold colons, but no `//`.
            None if protocol == Protocol::Ollama && !rest.contains("//") => (OLLAMA, rest),
            None => return Err(form()),
        };
        let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let address = address.ok_or_else(form)?;
        let (host, path) = address.split_once('/').unwrap_or((address, ""));
        if host.contains('@') {
            return Err(Unknown::Password);
        }
        let is_clean = |text: &str| !text.contains(|c: char| c.is_whitespace() || c.is_control());
        if host.is_empty() || model.is_empty() || !is_clean(url) || !is_clean(model) {
            return Err(form());
        }
        let (root, end) = match protocol {
            Protocol::OpenAi => ("/v1", "/embeddings"),
            Protocol::Ollama => ("", "/api/embed"),
        };
        let url = url.trim_end_matches('/');
        let endpoint = if url.ends_with(end) {
            url.to_owned()
        } else if path.is_empty() {
            format!("{url}{root}{end}")
        } else {
            format!("{url}{end}")
        };
        Ok(Provider::Remote(Remote {
            protocol,
            endpoint,
            model: model.to_owned(),
            key: None,
            first_wait: Duration::from_millis(500),
            timeout: Duration::from_secs(60),
        }))
    }
}

impl Provider {
    /// Returns the provider with the API key `key`. Without a usable `key`, OpenAI's own server gets the key
    /// `openai`.
    pub fn with_keys(self, key: Option<&str>, openai: Option<&str>) -> Provider {
        match self {
            Provider::BuiltIn | Provider::Static => self,
            Provider::Remote(remote) => {
                let is_openai = remote.endpoint.starts_with("https://api.openai.com/");
                let key = key.and_then(Key::new);
                let key = key.or_else(|| openai.filter(|_| is_openai).and_then(Key::new));
                Provider::Remote(Remote { key, ..remote })
            }
        }
    }
}

impl Remote {
    /// Returns the name of the model's vectors, which consists of letters, digits and hyphens.
    pub(super) fn name(&self) -> String {
        let (kind, version) = match self.protocol {
            Protocol::OpenAi => ("openai", 1),
            Protocol::Ollama => ("ollama", 1),
        };
        let identity = format!("{version} {kind} {} {}", self.endpoint, self.model);
        let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let model: String = self.model.chars().take(40).map(plain).collect();
        format!("{kind}-{model}-{:016x}", super::cache::hash(&identity) as u64)
    }

    /// Returns whether the model was trained with prompts before questions and documents, like
    /// Google's EmbeddingGemma.
    pub(super) fn has_prompts(&self) -> bool {
        self.model.to_ascii_lowercase().contains("embeddinggemma")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(text: &str) -> (String, String) {
        match text.parse() {
            Ok(Provider::Remote(remote)) => (remote.endpoint, remote.model),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn addresses_are_completed() {
        let table = [
            ("ollama:embeddinggemma", "http://localhost:11434/api/embed", "embeddinggemma"),
            ("ollama:nomic:v1.5", "http://localhost:11434/api/embed", "nomic:v1.5"),
            ("ollama:http://box:1/#a/b:c", "http://box:1/api/embed", "a/b:c"),
            ("openai:https://api.openai.com#m", "https://api.openai.com/v1/embeddings", "m"),
            ("openai:https://api.openai.com/v1#m", "https://api.openai.com/v1/embeddings", "m"),
            ("openai:http://h:8080/x/embeddings#m", "http://h:8080/x/embeddings", "m"),
        ];
        for (text, url, model) in table {
            assert_eq!(endpoint(text), (url.to_owned(), model.to_owned()), "{text}");
        }
        assert_eq!("built-in".parse(), Ok(Provider::BuiltIn));
        assert_eq!("static".parse(), Ok(Provider::Static));
    }

    #[test]
    fn unknown_forms_are_refused() {
        for text in [
            "",
            "x",
            "openai:m",
            "openai:ftp://h#m",
            "openai:https://h#",
            "ollama:",
            "openai:https://#m",
            "openai:https://h h#m",
            "ollama://h#m",
        ] {
            assert!(matches!(text.parse::<Provider>(), Err(Unknown::Form(_))), "{text}");
        }
        let error = "openai:https://me:secret@h/v1#m".parse::<Provider>().unwrap_err();
        assert_eq!(error, Unknown::Password);
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn keys_go_where_they_belong_and_are_not_shown() {
        let key_of = |text: &str, key, openai| {
            let provider: Provider = text.parse().unwrap();
            match provider.with_keys(key, openai) {
                Provider::Remote(remote) => remote.key.map(|key| key.as_str().to_owned()),
                Provider::BuiltIn | Provider::Static => None,
            }
        };
        let elsewhere = "openai:https://example.org#m";
        let there = "openai:https://api.openai.com#m";
        assert_eq!(key_of(there, None, Some("sk-1")).as_deref(), Some("sk-1"));
        assert_eq!(key_of(elsewhere, None, Some("sk-1")), None);
        assert_eq!(key_of(elsewhere, Some("k\n"), Some("sk-1")).as_deref(), Some("k"));
        assert_eq!(key_of(elsewhere, Some("a\r\nb"), None), None);
        let provider: Provider = there.parse().unwrap();
        let shown = format!("{:?}", provider.with_keys(Some("sk-secret"), None));
        assert!(!shown.contains("secret"), "{shown}");
    }

    #[test]
    fn names_differ_with_what_answers() {
        let name = |text: &str| match text.parse() {
            Ok(Provider::Remote(remote)) => remote.name(),
            other => panic!("{other:?}"),
        };
        let all = [
            name("ollama:a"),
            name("ollama:b"),
            name("ollama:http://h#a"),
            name("openai:http://h#a"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(one.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{one}");
            assert!(!all[..at].contains(one), "{one}");
        }
    }
}
