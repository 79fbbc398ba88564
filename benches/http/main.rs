//! The server over HTTP on loopback: how long the page, its counts and `/search` take at each key, and
//! how many calls it answers in a second, beside a server over standard input and output.
//!
//! `VERBATIM_DB` names another database than the generated one, `VERBATIM_PROGRAM` another build.

#[expect(dead_code, reason = "the tests need more of it")]
#[path = "../../tests/shared/browser.rs"]
mod browser;
mod client;
#[path = "../search/corpus/mod.rs"]
mod corpus;
mod seen;

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use anyhow::{Context, Result, ensure};
use clap::Parser;
use rusqlite::{Connection, OpenFlags};
use serde_json::json;

use self::client::{HttpClient, StdioClient};
use self::seen::SeenRow;

/// Measure the server over HTTP
#[derive(Debug, Parser)]
struct BenchArgs {
    /// Messages of the generated database
    #[arg(long, default_value_t = 1_000_000)]
    messages: usize,
    /// The folder for the database and its index
    #[arg(long, default_value = "target/bench-http")]
    folder: PathBuf,
    /// Write the table to benches/results/http.md too
    #[arg(long)]
    write: bool,
    /// Given by cargo
    #[arg(long, hide = true)]
    bench: bool,
}

/// The number of messages whose first words are typed.
const TYPED: usize = 16;

/// The most keys that are pressed for each message.
const KEYS: usize = 16;

/// The number of conversations with a star.
const STARRED: i64 = 100;

/// The number of calls of a client.
const CALLS: usize = 1_000;

const JSON: &str = "application/json, text/event-stream";
const HTML: &str = "text/html";

fn main() -> Result<()> {
    let args = BenchArgs::parse();
    fs::create_dir_all(&args.folder)?;
    let folder = args.folder.canonicalize()?;
    let database = match env::var_os("VERBATIM_DB") {
        Some(path) => PathBuf::from(path),
        None => corpus::database(&folder, args.messages)?,
    };
    let bench = Bench { folder, database };
    let typed = bench.typed()?;
    bench.index()?;
    bench.star()?;
    let server = bench.serve()?;
    let rows = views(&server, &typed)?;
    let rates = rates(&bench, &server, &typed)?;
    let door = format!("http://{}/#token={}", server.address, server.token);
    let seen = seen::seen(&door, &typed)?;
    let table = report(&bench, &rows, seen.as_deref(), &rates)?;
    std::io::stdout().write_all(table.as_bytes())?;
    if args.write {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/results/http.md");
        fs::write(&path, table).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The database, the program and the folder of a measurement.
struct Bench {
    folder: PathBuf,
    database: PathBuf,
}

impl Bench {
    fn command(&self, words: &[&str]) -> Command {
        let program = env::var_os("VERBATIM_PROGRAM");
        let mut command =
            Command::new(program.unwrap_or_else(|| env!("CARGO_BIN_EXE_verbatim").into()));
        command.env_clear().args(words).arg("--no-archive");
        command.arg("--db").arg(&self.database).arg("--home").arg(self.folder.join("home"));
        command.env("VERBATIM_INDEX", self.folder.join("index"));
        command.stdin(Stdio::null()).stderr(Stdio::null());
        command
    }

    fn connection(&self) -> Result<Connection> {
        // With `immutable`, a database can be on a read-only disk.
        let address = format!("file:{}?immutable=1", self.database.display());
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        Ok(Connection::open_with_flags(address, flags)?)
    }

    /// Returns the first words of messages from all parts of the database.
    fn typed(&self) -> Result<Vec<String>> {
        let connection = self.connection()?;
        let most: i64 =
            connection.query_row("SELECT max(rowid) FROM messages", [], |row| row.get(0))?;
        let step = (most / TYPED as i64).max(1);
        let mut statement = connection.prepare(
            "SELECT content FROM messages WHERE rowid >= ?1 AND length(content) > 40 LIMIT 1",
        )?;
        let mut typed = Vec::new();
        for at in (1..most).step_by(step as usize) {
            let text: String = statement.query_row([at], |row| row.get(0))?;
            let words: String = text.split_whitespace().take(4).collect::<Vec<_>>().join(" ");
            typed.push(words.chars().take(KEYS).collect());
        }
        Ok(typed)
    }

    fn index(&self) -> Result<()> {
        let done = self.command(&["reindex"]).stdout(Stdio::null()).status()?;
        ensure!(done.success(), "reindex failed: {done}");
        Ok(())
    }

    /// Gives a star to some conversations.
    fn star(&self) -> Result<()> {
        let connection = self.connection()?;
        let mut statement = connection.prepare("SELECT id FROM conversations LIMIT ?1")?;
        let ids = statement.query_map([STARRED], |row| row.get::<_, String>(0))?;
        let line = |id: String| json!({"source": "export", "id": id, "starred": true}).to_string();
        let lines: Vec<String> = ids.map(|id| Ok(line(id?))).collect::<Result<_>>()?;
        let folder = self.folder.join("home");
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join("flags.jsonl"), lines.join("\n") + "\n")?)
    }

    fn serve(&self) -> Result<ServerProcess> {
        let log = self.folder.join("log");
        let words = ["serve", "--http", "127.0.0.1:0", "--page", "--no-watch"];
        let mut command = self.command(&words);
        let child = command.stdout(Stdio::null()).stderr(fs::File::create(&log)?).spawn()?;
        let begun = Instant::now();
        loop {
            let text = fs::read_to_string(&log)?;
            if let Some((_, rest)) = text.split_once("at http://127.0.0.1:")
                && let Some((port, _)) = rest.split_once('/')
            {
                let address = SocketAddr::from(([127, 0, 0, 1], port.parse()?));
                let token = fs::read_to_string(self.folder.join("home/token"))?.trim().to_owned();
                return Ok(ServerProcess { child, address, token });
            }
            ensure!(begun.elapsed() < Duration::from_secs(60), "the server does not start: {text}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A server over HTTP; killed when dropped.
struct ServerProcess {
    child: Child,
    address: SocketAddr,
    token: String,
}

impl ServerProcess {
    fn client(&self, accept: &str) -> Result<HttpClient> {
        HttpClient::connect(self.address, &self.token, accept)
    }

    /// Returns the milliseconds of CPU that the server has taken; `None` where the system does not
    /// say.
    fn cpu(&self) -> Option<f64> {
        let text = fs::read_to_string(format!("/proc/{}/schedstat", self.child.id())).ok();
        let threads = fs::read_dir(format!("/proc/{}/task", self.child.id())).ok()?;
        let of = |text: String| text.split(' ').next()?.parse::<f64>().ok();
        let each = threads
            .flatten()
            .filter_map(|thread| of(fs::read_to_string(thread.path().join("schedstat")).ok()?));
        text.map(|_| each.sum::<f64>() / 1e6)
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Figures of one kind of request.
struct ViewRow {
    name: &'static str,
    target: &'static str,
    count: usize,
    /// Milliseconds until the answer is there, in order.
    times: Vec<f64>,
    cpu: Option<f64>,
    bytes: Vec<usize>,
}

/// Returns the text of the request after each key: every beginning of the typed texts.
fn keys(typed: &[String]) -> Vec<String> {
    let beginnings = |text: &String| -> Vec<String> {
        let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
        ends.map(|end| text[..end].to_owned()).filter(|text| !text.ends_with(' ')).collect()
    };
    typed.iter().flat_map(beginnings).collect()
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn views(server: &ServerProcess, typed: &[String]) -> Result<Vec<ViewRow>> {
    let keys: Vec<String> = keys(typed).iter().map(|text| encoded(text)).collect();
    let whole: Vec<String> = typed.iter().map(|text| encoded(text)).collect();
    let of = |texts: &[String], path: &str| -> Vec<String> {
        texts.iter().map(|text| path.replace("TEXT", text)).collect()
    };
    let again = |path: &str| vec![path.to_owned(); typed.len()];
    let all = [
        ("a key, `/search`, 10 messages", "5 ms", JSON, of(&keys, "/search?q=TEXT&limit=10")),
        ("a key, `/search`, 50 messages", "5 ms", JSON, of(&keys, "/search?q=TEXT")),
        ("a key on the page, `/results`", "5 ms", HTML, of(&keys, "/results?q=TEXT")),
        ("a key, starred only", "40 ms", HTML, of(&keys, "/results?starred=1&q=TEXT")),
        ("a letter, starred only", "40 ms", HTML, again("/results?starred=1&q=e")),
        ("a letter of the user's", "40 ms", HTML, again("/results?role=user&q=e")),
        ("first page, `/`", "50 ms, 30 kB", HTML, again("/")),
        ("counts of all, `/facets`", "100 ms", HTML, again("/facets")),
        ("counts of a text, `/facets`", "100 ms", HTML, of(&whole, "/facets?first=1&q=TEXT")),
        ("counts at a key, `/facets`", "100 ms", HTML, of(&keys, "/facets?first=1&q=TEXT")),
        ("exact counts at a key", "–", HTML, of(&keys, "/facets?q=TEXT")),
        ("meaning, `/results`", "60 ms", HTML, of(&keys, "/results?mode=meaning&q=TEXT")),
        ("meaning, `/search`", "60 ms", JSON, of(&keys, "/search?mode=vector&q=TEXT&limit=10")),
    ];
    all.into_iter()
        .map(|(name, target, accept, paths)| measure(server, (name, target), accept, &paths))
        .collect()
}

fn measure(
    server: &ServerProcess,
    (name, target): (&'static str, &'static str),
    accept: &str,
    paths: &[String],
) -> Result<ViewRow> {
    let mut client = server.client(accept)?;
    // The first request maps files and fills caches.
    client.get(&paths[0])?;
    let before = server.cpu();
    let (mut times, mut bytes) = (Vec::new(), Vec::new());
    for path in paths {
        let begun = Instant::now();
        bytes.push(client.get(path)?);
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    let count = paths.len();
    let cpu = server.cpu().zip(before).map(|(after, before)| (after - before) / count as f64);
    times.sort_by(f64::total_cmp);
    bytes.sort_unstable();
    Ok(ViewRow { name, target, count, times, cpu, bytes })
}

/// Calls in a second.
struct CallRate {
    name: String,
    rate: f64,
}

fn rates(bench: &Bench, server: &ServerProcess, typed: &[String]) -> Result<Vec<CallRate>> {
    let messages: Vec<serde_json::Value> = typed
        .iter()
        .enumerate()
        .map(|(id, text)| {
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": {"name": "conversation_search", "arguments": {"query": text}}})
        })
        .collect();
    let mut stdio = StdioClient::start(&mut bench.command(&["serve", "--no-watch"]))?;
    let mut rates = Vec::new();
    // The first round fills caches.
    for is_measured in [false, true] {
        let begun = Instant::now();
        for turn in 0..CALLS {
            stdio.ask(&messages[turn % messages.len()])?;
        }
        if is_measured {
            let rate = CALLS as f64 / begun.elapsed().as_secs_f64();
            rates.push(CallRate { name: "standard input and output, 1 client".to_owned(), rate });
        }
    }
    for clients in [1, 8, 64] {
        let begun = Instant::now();
        thread::scope(|scope| {
            let ask = |number: usize| {
                let mut client = server.client(JSON)?;
                for turn in 0..CALLS / clients {
                    let message = messages[(number + turn) % messages.len()].to_string();
                    client.post("/mcp", &message)?;
                }
                Ok(())
            };
            let all: Vec<_> = (0..clients).map(|number| scope.spawn(move || ask(number))).collect();
            all.into_iter().try_for_each(|one| one.join().expect("a client does not panic"))
        })
        .and_then(|()| {
            let plural = if clients == 1 { "" } else { "s" };
            let calls = CALLS / clients * clients;
            let rate = calls as f64 / begun.elapsed().as_secs_f64();
            rates.push(CallRate { name: format!("HTTP, {clients} client{plural}"), rate });
            anyhow::Ok(())
        })?;
    }
    Ok(rates)
}

fn report(
    bench: &Bench,
    rows: &[ViewRow],
    seen: Option<&[SeenRow]>,
    rates: &[CallRate],
) -> Result<String> {
    let count: i64 =
        bench.connection()?.query_row("SELECT count(*) FROM messages", [], |row| row.get(0))?;
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "# Over HTTP\n\n{count} messages, a server on loopback with {cores} cores, one client with one \
         connection. A key is a beginning of the first\nwords of a message: each request is another \
         one. Times are from the request to the last byte of the answer.\n\n\
         | Request | Target | Requests | Median, ms | 95 %, ms | Worst, ms | CPU, ms | Bytes, median | Bytes, most |\n\
         |-|-|-|-|-|-|-|-|-|\n"
    );
    for ViewRow { name, target, count, times, cpu, bytes } in rows {
        let at = |share: usize| times[(count * share / 100).min(count - 1)];
        let cpu = cpu.map_or_else(|| "–".to_owned(), |cpu| format!("{cpu:.1}"));
        text.push_str(&format!(
            "| {name} | {target} | {count} | {:.1} | {:.1} | {:.1} | {cpu} | {} | {} |\n",
            at(50),
            at(95),
            at(100),
            bytes[count / 2],
            bytes[count - 1]
        ));
    }
    match seen {
        None => text.push_str("\nThere was no Chromium to measure the page in.\n"),
        Some(rows) => {
            text.push_str("\n| In Chromium, headless on the same cores | Target | Times | Median | 95 % | Worst |\n|-|-|-|-|-|-|\n");
            for SeenRow { name, target, values } in rows.iter().filter(|row| !row.values.is_empty())
            {
                let count = values.len();
                let at = |share: usize| values[(count * share / 100).min(count - 1)];
                let (median, most, worst) = (at(50), at(95), at(100));
                text.push_str(&format!(
                    "| {name} | {target} | {count} | {median:.0} | {most:.0} | {worst:.0} |\n"
                ));
            }
        }
    }
    text.push_str("\n| `conversation_search` over | Calls a second |\n|-|-|\n");
    for CallRate { name, rate } in rates {
        text.push_str(&format!("| {name} | {rate:.0} |\n"));
    }
    text.push_str("\n`cargo bench --bench http -- --write` makes this table.\n");
    Ok(text)
}
