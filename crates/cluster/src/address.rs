//! Addresses of indexes: `opensearch+https://HOST:9200/INDEX`.

use std::fmt;

use verbatim_text::address::CLUSTER_PREFIXES;

use super::error::{Error, Result};

const DEFAULT_PORT: &str = ":9200";

/// The maximum length of an index name. The names of the real indexes behind the alias are a bit longer.
const LONGEST_NAME: usize = 200;

const FORM: &str = "write opensearch+https://HOST:9200/INDEX, with several hosts as HOST,HOST";

/// The address of an index in a cluster: the hosts and the name of the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    prefix: &'static str,
    scheme: &'static str,
    hosts: Vec<String>,
    index: String,
}

impl Address {
    /// Parses an address. Without TLS, the address must be of this computer.
    pub fn parse(text: &str) -> Result<Address> {
        // Errors do not show the part before an @, because it may be a password.
        let shown = text.rsplit_once('@').map_or(text, |(_, rest)| rest);
        let wrong =
            |reason: &str| Error::Address { given: shown.to_owned(), reason: reason.into() };
        let given =
            CLUSTER_PREFIXES.iter().find_map(|prefix| Some((*prefix, text.strip_prefix(prefix)?)));
        let (prefix, rest) = given.ok_or_else(|| wrong(FORM))?;
        let (scheme, rest) = match rest.split_once("://") {
            Some(("https", rest)) => ("https", rest),
            Some(("http", rest)) => ("http", rest),
            _ => return Err(wrong(FORM)),
        };
        if rest.contains('@') {
            return Err(wrong(
                "it may not hold a password; put user:password into VERBATIM_CLUSTER_LOGIN",
            ));
        }
        let (hosts, index) =
            rest.trim_end_matches('/').split_once('/').ok_or_else(|| wrong(FORM))?;
        let hosts: Vec<String> = hosts.split(',').map(with_port).collect();
        if !hosts.iter().all(|host| {
            !host.starts_with(':')
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
        }) {
            return Err(wrong(FORM));
        }
        let begins_well = index.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        if !begins_well
            || !index.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte)
            })
            || index.len() > LONGEST_NAME
        {
            return Err(wrong(
                "index names begin with a lower-case letter or digit; then - _ . may follow too",
            ));
        }
        let address = Address { prefix, scheme, hosts, index: index.to_owned() };
        if scheme == "http" && !address.is_here() {
            return Err(wrong(
                "http would send chats and passwords unencrypted to another computer; use https, \
                 or a tunnel to a port of this computer",
            ));
        }
        Ok(address)
    }

    pub(crate) fn index(&self) -> &str {
        &self.index
    }

    pub(super) fn roots(&self) -> Vec<String> {
        self.hosts.iter().map(|host| format!("{}://{host}", self.scheme)).collect()
    }

    pub(super) fn is_here(&self) -> bool {
        self.hosts.iter().all(|host| {
            ["localhost:", "127.0.0.1:", "[::1]:"].iter().any(|here| host.starts_with(here))
        })
    }
}

fn with_port(host: &str) -> String {
    let name = host.rsplit(']').next().unwrap_or(host);
    if name.contains(':') { host.to_owned() } else { format!("{host}{DEFAULT_PORT}") }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}://{}/{}", self.prefix, self.scheme, self.hosts.join(","), self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let shown = |text: &str| Address::parse(text).map(|address| address.to_string());
        for (text, expected) in [
            ("opensearch+https://a.b/chats", "opensearch+https://a.b:9200/chats"),
            ("opensearch+https://a:1,b:2/chats/", "opensearch+https://a:1,b:2/chats"),
            ("elasticsearch+https://a.b/chats", "elasticsearch+https://a.b:9200/chats"),
            ("opensearch+http://[::1]/c-1.x", "opensearch+http://[::1]:9200/c-1.x"),
        ] {
            assert_eq!(shown(text).unwrap(), expected);
        }
        for text in [
            "opensearch+https://a.b",
            "opensearch+https:///chats",
            "opensearch+ftp://a.b/chats",
            "opensearch+https://a.b/Chats",
            "opensearch+https://a.b/_all",
            "opensearch+https://a.b/x/y",
            "opensearch+http://a.b/chats",
            "opensearch+http://localhost.example/chats",
        ] {
            assert!(shown(text).is_err(), "{text}");
        }
        let error = shown("opensearch+https://me:secret@a.b/chats").unwrap_err().to_string();
        assert!(!error.contains("secret") && error.contains("VERBATIM_CLUSTER_LOGIN"), "{error}");
    }
}
