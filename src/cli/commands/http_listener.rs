//! Code for `serve --http` and `web`: the address of the server, and the check of its clients.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::{Path, PathBuf};

use axum::Router;

use crate::cli::error::{Error, Result, usage};
use crate::cli::settings::environment::Environment;
use crate::cli::terminal::output::complain;
use verbatim_engine::Config;
use verbatim_server::http::{self, HttpServer, Sockets, token::AccessToken};

pub(super) const PORT: u16 = 8377;

/// The default address, as clap shows it.
pub(super) const ADDRESS: &str = "127.0.0.1:8377";

/// Whom the server lets in.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Admission {
    /// Take the token from this file, not from VERBATIM_TOKEN or the home
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let every user of this computer in, without a token; on 127.0.0.1 only
    #[arg(long, hide_short_help = true, conflicts_with = "token_file")]
    no_token: bool,
    /// A name under which clients reach the server, beside localhost and its address (repeatable)
    #[arg(long = "host", hide_short_help = true, value_name = "NAME", value_parser = parse_host)]
    hosts: Vec<String>,
}

#[derive(Debug, Default)]
pub(super) struct ListenAt<'a> {
    /// The address from the command line, or [`ADDRESS`].
    pub(super) address: Option<&'a str>,
    pub(super) socket: Option<&'a Path>,
    /// Whether the server takes a free port if the default port is taken.
    pub(super) may_move: bool,
}

impl Admission {
    pub(super) fn server(
        &self,
        places: &ListenAt<'_>,
        page: Option<Router>,
        config: &Config,
        environment: &Environment,
    ) -> Result<HttpServer> {
        let needs_token = places.address.is_some() && !self.no_token;
        let token = if needs_token {
            Some(token_of(self.token_file.as_deref(), config, environment)?)
        } else {
            None
        };
        let server = HttpServer::new(sockets(places)?, token, self.hosts.clone(), page)?;
        if self.no_token && places.address.is_some() {
            complain("without a token, every user of this computer can read your chats");
        }
        if let Some(address) = server.address().filter(|address| !address.ip().is_loopback()) {
            complain(&format!(
                "other machines can reach {address}, and the traffic is not encrypted: put a \
                 proxy with TLS in front of it"
            ));
        }
        Ok(server)
    }

    /// Refuses flags that change nothing for these addresses.
    pub(super) fn refuse_idle(&self, places: &ListenAt<'_>) -> Result<(), Error> {
        let has_tcp = places.address.is_some();
        let has_any = has_tcp || places.socket.is_some();
        for (is_idle, flag) in [
            (self.token_file.is_some() && !has_tcp, "--token-file"),
            (self.no_token && !has_tcp, "--no-token"),
            (!self.hosts.is_empty() && !has_any, "--host"),
        ] {
            if is_idle {
                let what = format!("{flag} is for a server with --http; add that, or leave it out");
                return Err(usage(what));
            }
        }
        Ok(())
    }

    /// Returns the page's address for other machines: the first host name, which a TLS proxy serves.
    pub(super) fn outer_url(&self, url: Option<String>) -> Option<String> {
        let url = url?;
        Some(match self.hosts.first() {
            Some(host) if host.contains(':') => format!("https://[{host}]"),
            Some(host) => format!("https://{host}"),
            None => url,
        })
    }

    /// Returns the end of a sentence that says where the token is.
    pub(super) fn token_hint(&self) -> String {
        match &self.token_file {
            _ if self.no_token => String::new(),
            Some(path) => format!("; the token is in {}", path.display()),
            None => "; `verbatim status --token` prints the token".to_owned(),
        }
    }
}

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

fn parse_host(text: &str) -> Result<String, String> {
    let is_name = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
    if !text.is_empty() && is_name || text.parse::<IpAddr>().is_ok() {
        Ok(text.to_owned())
    } else {
        Err("give a name without scheme, port and path: chats.example.org".to_owned())
    }
}

fn sockets(places: &ListenAt<'_>) -> Result<Sockets> {
    let mut sockets = Sockets::default();
    if let Some(named) = places.address {
        let address = parse_address(named).map_err(usage)?;
        let mut bound = TcpListener::bind(address);
        let is_taken = bound.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse);
        if is_taken && places.may_move && named == ADDRESS {
            complain(&format!(
                "another program listens on {named}, so this server takes another port; clients that \
                 were configured for {named} send their token to that program"
            ));
            bound = TcpListener::bind(SocketAddr::new(address.ip(), 0));
        }
        if is_taken && bound.is_err() {
            let other = address.port().checked_add(1).unwrap_or(PORT);
            return Err(usage(format!(
                "another program listens on {address}; end it, or take another port: --http {other}, `verbatim web {other}`"
            )));
        }
        let bound = bound.map_err(|source| http::Error::Bind { address: named.to_owned(), source });
        sockets.tcp = Some(bound?);
    }
    if let Some(path) = places.socket {
        #[cfg(unix)]
        {
            let bound = verbatim_base::private::bind_socket(path).map_err(|source| {
                http::Error::Bind { address: path.display().to_string(), source }
            });
            sockets.unix = Some(bound?);
        }
        #[cfg(not(unix))]
        return Err(usage(format!("{}: only Unix has such sockets", path.display())));
    }
    Ok(sockets)
}

/// Parses an address: a port, a host, or both.
fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(port) = text.parse() {
        return Ok(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port));
    }
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(SocketAddr::new(address, PORT));
    }
    let found = match text.contains(':') {
        // A plain number is refused here, because the system would parse it as an IPv4 address.
        _ if text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(Vec::new().into_iter()),
        true => text.to_socket_addrs(),
        false => (text, PORT).to_socket_addrs(),
    };
    // A name can have IPv4 and IPv6 addresses. IPv4 is preferred, because every client tries it.
    let found: Vec<SocketAddr> = found.map(Iterator::collect).unwrap_or_default();
    let first = found.iter().find(|address| address.is_ipv4()).or(found.first());
    first.copied().ok_or_else(|| {
        format!(
            "{text:?} is not an address of this computer; write 8377, 0.0.0.0 or 127.0.0.1:8377"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_moves_to_another_port() {
        // During the test, either this listener or another program uses the port.
        let _held = TcpListener::bind(ADDRESS);
        let at = |may_move| ListenAt { address: Some(ADDRESS), socket: None, may_move };
        assert!(sockets(&at(false)).is_err());
        assert!(sockets(&at(true)).is_ok());
    }

    #[test]
    fn names_of_the_server() {
        for name in ["chats.example.org", "chats", "192.168.1.7", "fe80::1"] {
            assert!(parse_host(name).is_ok(), "{name}");
        }
        for name in ["", "chats.example.org:443", "https://chats.example.org", "a/b", "a@b"] {
            assert!(parse_host(name).is_err(), "{name}");
        }
        let of = |hosts: &[&str]| {
            let hosts = hosts.iter().map(|&host| host.to_owned()).collect();
            let admission = Admission { hosts, ..Admission::default() };
            admission.outer_url(Some("http://127.0.0.1:1".to_owned())).unwrap()
        };
        assert_eq!(of(&[]), "http://127.0.0.1:1");
        assert_eq!(of(&["chats.example.org", "b"]), "https://chats.example.org");
        assert_eq!(of(&["fe80::1"]), "https://[fe80::1]");
    }

    #[test]
    fn addresses() {
        for (text, address) in [
            ("9000", "127.0.0.1:9000"),
            ("0.0.0.0", "0.0.0.0:8377"),
            ("::1", "[::1]:8377"),
            ("[::1]:80", "[::1]:80"),
            ("localhost:9000", "127.0.0.1:9000"),
            (ADDRESS, "127.0.0.1:8377"),
        ] {
            assert_eq!(parse_address(text).unwrap().to_string(), address, "{text}");
        }
        for text in ["", "70000", "127.0.0.1:x", "no such host"] {
            assert!(parse_address(text).is_err(), "{text}");
        }
    }
}
