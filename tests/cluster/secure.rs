//! A cluster behind TLS and a password: a proxy, as many clusters have one, before the real nodes.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::{fs, thread};

use base64::{Engine, engine::general_purpose::STANDARD};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;

use crate::database::{Database, Message, Schema};
use crate::new_name;
use crate::nodes::{AllNodes, nodes};

const LOGIN: &str = "reader:seCret-1";
const KEY: &str = "ApiKey c2VDcmV0LTI=";

/// A server with TLS, whose authority is in `ca`. Without nodes behind it, it only refuses.
struct Proxy {
    port: u16,
    ca: PathBuf,
    other_ca: PathBuf,
    folder: TempDir,
}

/// Returns the path of a file of `tls/`: two authorities, and a server's certificate for 127.0.0.1 that the
/// first one signed, with its key, all valid for 100 years.
fn tls(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/tls").join(name)
}

impl Proxy {
    fn start(upstream: Option<String>) -> Proxy {
        let folder = tempfile::tempdir().expect("a folder");
        let read = |name: &str| CertificateDer::from_pem_file(tls(name)).expect("a certificate");
        let key = PrivateKeyDer::from_pem_file(tls("server-key.pem")).expect("a key");
        let config = ServerConfig::builder()
            .with_no_client_auth()
            .with_single_cert(vec![read("server.pem")], key)
            .expect("a configuration");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let config = Arc::new(config);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, upstream) = (Arc::clone(&config), upstream.clone());
                thread::spawn(move || {
                    let connection = ServerConnection::new(config).expect("a connection");
                    answer(StreamOwned::new(connection, stream), upstream.as_deref());
                });
            }
        });
        let (ca, other_ca) = (tls("authority.pem"), tls("other-authority.pem"));
        Proxy { port, ca, other_ca, folder }
    }

    /// Runs the program on an index; returns whether it succeeded, and its output and errors.
    fn run(&self, words: &[&str], index: &str, environment: &[(&str, &str)]) -> (bool, String) {
        let home = self.folder.path().join("home");
        std::fs::create_dir_all(&home).expect("folders can be made");
        let output = Command::new(env!("CARGO_BIN_EXE_verbatim"))
            .env_clear()
            .envs(environment.iter().copied())
            .args(words)
            .args(["--db", &format!("opensearch+https://127.0.0.1:{}/{index}", self.port)])
            .arg("--home")
            .arg(home)
            .output()
            .expect("the program runs");
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said).into_owned();
        for secret in ["seCret", "c2VDcmV0", &STANDARD.encode(LOGIN)] {
            assert!(!said.contains(secret), "{words:?} shows {secret}: {said}");
        }
        (output.status.success(), said)
    }
}

/// Reads requests; refuses those without the password or the key, and passes on the others.
fn answer(stream: StreamOwned<ServerConnection, TcpStream>, upstream: Option<&str>) {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).unwrap_or(0) == 0 {
            return;
        }
    }
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.into_iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    };
    let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    let is_known = header("authorization")
        .is_some_and(|it| it == KEY || it == format!("Basic {}", STANDARD.encode(LOGIN)));
    let answer = match upstream.filter(|_| is_known) {
        Some(upstream) => {
            let mut node = TcpStream::connect(upstream).expect("a node");
            let first = head.lines().next().unwrap_or_default();
            let kind = header("content-type").unwrap_or("application/json");
            let head = format!(
                "{first}\r\nHost: node\r\nConnection: close\r\nContent-Type: {kind}\r\n\
                 Content-Length: {length}\r\n\r\n"
            );
            node.write_all(&[head.as_bytes(), &body].concat()).expect("the node reads");
            let mut answer = Vec::new();
            node.read_to_end(&mut answer).expect("the node answers");
            answer
        }
        None => b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Length: 12\r\n\r\nUnauthorized"
            .to_vec(),
    };
    let stream = stream.get_mut();
    let _ = stream.write_all(&answer);
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

#[test]
fn an_untrusted_certificate_and_a_wrong_password_are_told_apart() {
    let proxy = Proxy::start(None);
    let (ca, other) = (proxy.ca.display().to_string(), proxy.other_ca.display().to_string());
    let login = ("VERBATIM_CLUSTER_LOGIN", LOGIN);
    let wrong = ("VERBATIM_CLUSTER_LOGIN", "reader:seCret-wrong");
    let trusted = ("VERBATIM_CLUSTER_CA", ca.as_str());
    for (environment, expected) in [
        (vec![login], "no trusted connection"),
        (vec![login, ("VERBATIM_CLUSTER_CA", other.as_str())], "no trusted connection"),
        (vec![login, ("VERBATIM_CLUSTER_CA", "/no/such/file")], "read the trusted certificates"),
        (vec![wrong, trusted], "does not know the user and password"),
        (vec![("VERBATIM_CLUSTER_LOGIN", "ApiKey seCret"), trusted], "or the key"),
        (vec![trusted], "VERBATIM_CLUSTER_LOGIN"),
    ] {
        for words in [&["search", "red"][..], &["status"], &["doctor"], &["list"]] {
            let (is_well, said) = proxy.run(words, "chats", &environment);
            if words[0] == "search" {
                assert!(!is_well && said.contains(expected), "{environment:?}: {said}");
            }
        }
    }
}

#[test]
fn a_real_cluster_is_reached_over_tls_with_a_password_or_a_key() {
    let Some(nodes) = nodes() else { return };
    let _all = AllNodes::enter();
    let proxy = Proxy::start(Some(nodes.hosts()[0].clone()));
    let index = new_name();
    let database = Database::of(Schema::Typed, &["Colours".into()], &[Message::stored("dark red")]);
    let (ca, path) = (proxy.ca.display().to_string(), database.path().display().to_string());
    let login_file = proxy.folder.path().join("login");
    fs::write(&login_file, format!("{LOGIN}\n")).expect("a file");
    fs::set_permissions(&login_file, fs::Permissions::from_mode(0o600)).expect("a file of ours");
    let login_file = login_file.display().to_string();
    let trusted = ("VERBATIM_CLUSTER_CA", ca.as_str());
    let by_file = [("VERBATIM_CLUSTER_LOGIN_FILE", login_file.as_str()), trusted];
    let (is_well, said) = proxy.run(&["import", &path], &index, &by_file);
    assert!(is_well, "{said}");
    for login in [by_file[0], ("VERBATIM_CLUSTER_LOGIN", LOGIN), ("VERBATIM_CLUSTER_LOGIN", KEY)] {
        let (is_well, said) = proxy.run(&["search", "red"], &index, &[login, trusted]);
        assert!(is_well && said.contains("dark red"), "{said}");
    }
    for words in [&["status"][..], &["doctor"], &["list"], &["stats"], &["search", "red"]] {
        proxy.run(words, &index, &by_file);
    }
    nodes.remove(&index);
}
