//! A cluster of three nodes, each a process of its own, from Maven Central.

use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::Value;
use tempfile::TempDir;

/// The number of nodes.
const NODES: usize = 3;

/// How long the cluster may take to be complete.
const PATIENCE: Duration = Duration::from_secs(240);

/// The first version of Java that can run the nodes.
const JAVA: u32 = 21;

/// Names the hosts of a cluster that runs already, `127.0.0.1:9201,…`; its nodes are not killed.
const RUNNING: &str = "VERBATIM_TEST_CLUSTER";

/// The cluster of the tests.
pub(crate) struct Nodes {
    hosts: Vec<String>,
    /// The command that starts a node; `None` for a cluster that runs already.
    start: Option<Start>,
}

struct Start {
    java: PathBuf,
    class_path: String,
    folder: TempDir,
    http: String,
    transport: String,
    children: Mutex<Vec<Option<Child>>>,
}

/// The tests that need all nodes, and whether a test kills nodes.
struct Gate {
    users: usize,
    is_closed: bool,
}

static GATE: Mutex<Gate> = Mutex::new(Gate { users: 0, is_closed: false });
static GATE_MOVED: Condvar = Condvar::new();

/// Keeps nodes from being killed as long as it lives.
pub(crate) struct AllNodes(());

impl AllNodes {
    pub(crate) fn enter() -> AllNodes {
        let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = GATE_MOVED.wait_while(gate, |gate| gate.is_closed);
        gate.unwrap_or_else(PoisonError::into_inner).users += 1;
        AllNodes(())
    }
}

impl Drop for AllNodes {
    fn drop(&mut self) {
        GATE.lock().unwrap_or_else(PoisonError::into_inner).users -= 1;
        GATE_MOVED.notify_all();
    }
}

/// Lets its owner kill nodes: nobody else uses the cluster as long as it lives.
pub(crate) struct Killing(());

impl Killing {
    pub(crate) fn begin() -> Killing {
        let gate = GATE.lock().unwrap_or_else(PoisonError::into_inner);
        let gate = GATE_MOVED.wait_while(gate, |gate| gate.is_closed || gate.users > 0);
        gate.unwrap_or_else(PoisonError::into_inner).is_closed = true;
        Killing(())
    }
}

impl Drop for Killing {
    fn drop(&mut self) {
        GATE.lock().unwrap_or_else(PoisonError::into_inner).is_closed = false;
        GATE_MOVED.notify_all();
    }
}

/// Returns the cluster; `None` if this computer lacks what it needs, which is said once.
pub(crate) fn nodes() -> Option<&'static Nodes> {
    static CLUSTER: OnceLock<Option<Nodes>> = OnceLock::new();
    let started = CLUSTER.get_or_init(|| match Nodes::start() {
        Ok(nodes) => Some(nodes),
        Err(why) => {
            // The text is written directly, because the output of a macro is hidden for tests that
            // pass.
            let _ = writeln!(std::io::stderr(), "left out: the tests of the cluster, as {why}");
            None
        }
    });
    started.as_ref()
}

impl Nodes {
    fn start() -> Result<Nodes, String> {
        if let Ok(hosts) = env::var(RUNNING) {
            return Ok(Nodes { hosts: hosts.split(',').map(str::to_owned).collect(), start: None });
        }
        let java = java().ok_or(format!("there is no Java {JAVA} or later"))?;
        let class_path = class_path()?;
        let ports = free_ports(2 * NODES);
        let list = |ports: &[u16]| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(",");
        let start = Start {
            java,
            class_path,
            folder: tempfile::tempdir().map_err(|error| error.to_string())?,
            http: list(&ports[..NODES]),
            transport: list(&ports[NODES..]),
            children: Mutex::new((0..NODES).map(|_| None).collect()),
        };
        let hosts = ports[..NODES].iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let nodes = Nodes { hosts, start: Some(start) };
        (0..NODES).for_each(|number| nodes.revive(number));
        match nodes.is_soon("wait_for_nodes=3") {
            Ok(()) => Ok(nodes),
            Err(answer) => {
                (0..NODES).for_each(|number| nodes.kill(number));
                Err(format!("its nodes did not find each other within {PATIENCE:?}: {answer:?}"))
            }
        }
    }

    /// Returns the address of an index.
    pub(crate) fn address(&self, index: &str) -> PathBuf {
        format!("opensearch+http://{}/{index}", self.hosts.join(",")).into()
    }

    /// Returns the hosts, with their ports.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Returns whether nodes can be killed.
    pub(crate) fn is_ours(&self) -> bool {
        self.start.is_some()
    }

    /// Starts a node.
    pub(crate) fn revive(&self, number: usize) {
        let Some(start) = &self.start else { return };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/Node.java");
        let log = fs::File::create(start.folder.path().join(format!("log-{number}")));
        let log = log.expect("a log");
        let child = Command::new(&start.java)
            .args(["-Xms400m", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp"])
            .arg(&start.class_path)
            .arg(source)
            .arg(start.folder.path())
            .args([&(number + 1).to_string(), &start.http, &start.transport])
            // The node ends when this process ends, in any way.
            .stdin(Stdio::piped())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        let child = child.expect("Java starts");
        start.children.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(child);
    }

    /// Kills a node.
    pub(crate) fn kill(&self, number: usize) {
        let Some(start) = &self.start else { return };
        let mut children = start.children.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut child) = children[number].take() {
            child.kill().expect("a process that can be killed");
            child.wait().expect("its end");
        }
    }

    /// Waits for a state of the cluster.
    pub(crate) fn wait(&self, condition: &str) {
        let soon = self.is_soon(condition);
        assert!(soon.is_ok(), "the cluster is not complete: {soon:?}");
    }

    /// Waits for a state of the cluster; returns its last answer if it does not come.
    fn is_soon(&self, condition: &str) -> Result<(), Option<Value>> {
        let begun = Instant::now();
        loop {
            let path = format!("_cluster/health?{condition}&timeout=10s");
            let answer = self.ask("GET", &path, None);
            if answer.as_ref().is_some_and(|health| health["timed_out"] == false) {
                return Ok(());
            }
            if begun.elapsed() >= PATIENCE {
                return Err(answer);
            }
            thread::sleep(Duration::from_millis(500));
        }
    }

    /// Sends a request to the first node that answers.
    pub(crate) fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
        for host in &self.hosts {
            let text = body.map(Value::to_string).unwrap_or_default();
            let request = ureq::http::Request::builder()
                .method(method)
                .uri(format!("http://{host}/{path}"))
                .header("content-type", "application/json")
                .body(text)
                .expect("a request");
            let agent: ureq::Agent = ureq::Agent::config_builder()
                .http_status_as_error(false)
                .allow_non_standard_methods(true)
                .timeout_global(Some(Duration::from_secs(60)))
                .proxy(None)
                .build()
                .into();
            let Ok(mut answer) = agent.run(request) else { continue };
            let text = answer.body_mut().read_to_string().unwrap_or_default();
            return serde_json::from_str(&text).ok();
        }
        None
    }

    /// Deletes everything that imports made of an index.
    pub(crate) fn remove(&self, index: &str) {
        self.ask("DELETE", &format!("{index}-v*"), None);
    }
}

/// Returns ports that nobody uses.
fn free_ports(count: usize) -> Vec<u16> {
    let listen = |_| TcpListener::bind("127.0.0.1:0").expect("a free port");
    let all: Vec<TcpListener> = (0..count).map(listen).collect();
    all.iter().map(|it| it.local_addr().expect("an address").port()).collect()
}

/// Returns a Java that can run the nodes.
fn java() -> Option<PathBuf> {
    let named = env::var_os("JAVA_HOME").map(PathBuf::from);
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let homes = named.into_iter().chain(installed.map(|entry| entry.path()));
    let in_homes = homes.map(|home| home.join("bin/java"));
    in_homes.chain(["java".into()]).find(|java| version(java).is_some_and(|it| it >= JAVA))
}

fn version(java: &Path) -> Option<u32> {
    let output = Command::new(java).arg("-version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    text.split('"').nth(1)?.split(['.', '-']).next()?.parse().ok()
}

/// Returns the class path of a node; Maven fetches what is missing.
fn class_path() -> Result<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let kept = folder.join("target/tools/cluster-class-path");
    let known = fs::read_to_string(&kept).unwrap_or_default();
    if !known.is_empty() && known.trim().split(':').all(|jar| Path::new(jar).is_file()) {
        return Ok(known.trim().to_owned());
    }
    fs::create_dir_all(folder.join("target/tools")).map_err(|error| error.to_string())?;
    let output = Command::new("mvn")
        .args(["-q", "-B", "dependency:build-classpath", "-f"])
        .arg(folder.join("tests/cluster/pom.xml"))
        .arg(format!("-Dmdep.outputFile={}", kept.display()))
        .output()
        .map_err(|_| "Maven (mvn) is not installed".to_owned())?;
    if !output.status.success() {
        return Err("Maven could not fetch OpenSearch".to_owned());
    }
    fs::read_to_string(&kept).map_err(|error| error.to_string())
}
