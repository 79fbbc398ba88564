//! Relays before the nodes, which kill a node at a chosen request.

use std::io::{BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::thread;

use crate::{fake::next_request, nodes::Nodes};

/// The moment at which a node is killed.
#[derive(Clone, Debug)]
pub(crate) struct Moment {
    /// The number of the request, from 1. Only requests whose method and path contain the text count.
    pub(crate) number: usize,
    pub(crate) path: &'static str,
    /// The node that is killed.
    pub(crate) node: usize,
    /// Whether the request reaches the node before the node is killed, so that only the answer is lost.
    pub(crate) is_after: bool,
}

/// One relay for each node. The relays pass on requests and answers until the moment.
pub(crate) struct Relays {
    ports: Vec<u16>,
    state: Arc<State>,
}

struct State {
    nodes: &'static Nodes,
    moment: Moment,
    asked: AtomicUsize,
    was_killed: AtomicBool,
}

impl Relays {
    pub(crate) fn start(nodes: &'static Nodes, moment: Moment) -> Relays {
        let (asked, was_killed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let state = Arc::new(State { nodes, moment, asked, was_killed });
        let relay = |host: &String| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            let port = listener.local_addr().expect("an address").port();
            let (host, state) = (host.clone(), Arc::clone(&state));
            thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let (host, state) = (host.clone(), Arc::clone(&state));
                    thread::spawn(move || state.pass(stream, &host));
                }
            });
            port
        };
        let ports = nodes.hosts().iter().map(relay).collect();
        Relays { ports, state }
    }

    /// Returns the address of an index behind the relays.
    pub(crate) fn address(&self, index: &str) -> PathBuf {
        let hosts: Vec<String> = self.ports.iter().map(|it| format!("127.0.0.1:{it}")).collect();
        format!("opensearch+http://{}/{index}", hosts.join(",")).into()
    }

    /// Returns how many requests with the text of the moment there were.
    pub(crate) fn asked(&self) -> usize {
        self.state.asked.load(SeqCst)
    }

    pub(crate) fn was_killed(&self) -> bool {
        self.state.was_killed.load(SeqCst)
    }
}

impl State {
    /// Passes on one request; without an answer from the node, the connection is closed.
    fn pass(&self, stream: TcpStream, host: &str) {
        let mut reader = BufReader::new(stream);
        let Some((head, body)) = next_request(&mut reader) else { return };
        let first = head.lines().next().unwrap_or_default();
        let is_meant = first.contains(self.moment.path);
        let is_moment = is_meant && self.asked.fetch_add(1, SeqCst) + 1 == self.moment.number;
        if is_moment && !self.moment.is_after {
            self.kill();
        }
        let kind = if first.contains("_bulk") { "x-ndjson" } else { "json" };
        let head = format!(
            "{first}\r\nHost: node\r\nConnection: close\r\nContent-Type: application/{kind}\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        let mut answer = Vec::new();
        let answered = TcpStream::connect(host).and_then(|mut node| {
            node.write_all(&[head.as_bytes(), &body].concat())?;
            node.read_to_end(&mut answer)
        });
        if is_moment && self.moment.is_after {
            return self.kill();
        }
        if answered.is_ok() {
            let _ = reader.get_mut().write_all(&answer);
        }
    }

    fn kill(&self) {
        self.nodes.kill(self.moment.node);
        self.was_killed.store(true, SeqCst);
    }
}
