//! Answers that real nodes give only by chance: refused passwords, busy nodes, lost shards. Each test tells
//! the server in this file what to answer.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use verbatim_base::{call::Call, model::Request};
use verbatim_engine::{Config, Engine};
use verbatim_search::{Branches, Key};

use crate::database::{Database, Message, Schema};
use crate::faces::HttpServer;
use crate::program::Place;

/// Function that gets a method, a path and a body, and returns the status and the text of the answer.
type Answers = dyn Fn(&str, &str, &str) -> (u16, String) + Send + Sync;

/// Starts a server; returns its address, and the headers of the requests that it gets.
fn serve(answers: Box<Answers>) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    let (asked, answers) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answers));
    let log = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answers, log) = (Arc::clone(&answers), Arc::clone(&log));
            thread::spawn(move || answer(stream, &**answers, &log));
        }
    });
    (format!("opensearch+http://127.0.0.1:{port}/chats"), asked)
}

fn answer(mut stream: TcpStream, answers: &Answers, log: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream.try_clone().expect("a stream"));
    while let Some((head, body)) = next_request(&mut reader) {
        let mut words = head.split(' ');
        let (method, path) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        let (status, text) = answers(method, path, &String::from_utf8_lossy(&body));
        log.lock().expect("a log").push(head.clone());
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", text.len());
        if stream.write_all((head + &text).as_bytes()).is_err() {
            return;
        }
    }
}

/// Reads a request: its head and its body; `None` at the end of the connection.
pub(crate) fn next_request(reader: &mut impl BufRead) -> Option<(String, Vec<u8>)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap_or(0) == 0 {
            return None;
        }
    }
    let length = head.to_ascii_lowercase();
    let length = length.split("content-length: ").nth(1).and_then(|it| it.lines().next());
    let length: usize = length.and_then(|it| it.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((head, body))
}

/// The cluster's description of an index that we made.
fn mapping() -> String {
    let meta = json!({ "verbatim": { "format": 7, "import": "i", "base": "" } });
    json!({ "chats-v000001-00000000": { "mappings": { "_meta": meta } } }).to_string()
}

/// Searches for a text; returns the ids of the messages, or the error.
fn search(address: &str, login: Option<&str>) -> Result<Vec<String>, String> {
    let engine = Engine::new(Config {
        db: Some(PathBuf::from(address).into()),
        home: std::env::temp_dir().join("verbatim-no-home"),
        cluster_login: login.and_then(Key::new),
        ..Config::default()
    });
    let mut found = Vec::new();
    let request = Request { text: "red".to_owned(), ..Request::default() };
    let outcome = engine.exact(&request, &Call::default(), &mut |hit| {
        found.push(hit.message_id.into_owned());
        std::ops::ControlFlow::Continue(())
    });
    outcome.map(|_| found).map_err(|error| error.to_string())
}

#[test]
fn a_refused_password_is_not_in_the_error() {
    for (status, expected) in [(401, "does not know the user"), (403, "may not do this")] {
        let (address, asked) = serve(Box::new(move |_, _, _| {
            (status, json!({ "error": { "reason": "no", "type": "security" } }).to_string())
        }));
        let error = search(&address, Some("me:seCret")).expect_err("refused");
        assert!(error.contains(expected), "{error}");
        assert!(!error.contains("seCret") && !error.contains("bWU6c2VDcmV0"), "{error}");
        let asked = asked.lock().expect("a log").join("\n").to_ascii_lowercase();
        assert!(asked.contains("authorization: basic bwu6c2vdcmv0"), "{asked}");
    }
    let (address, _) = serve(Box::new(|_, _, _| (401, String::new())));
    let error = search(&address, None).expect_err("refused");
    assert!(error.contains("VERBATIM_CLUSTER_LOGIN"), "{error}");
}

#[test]
fn an_index_that_is_not_ours_is_refused() {
    let foreign = json!({ "chats": { "mappings": { "properties": {} } } });
    let later = json!({ "verbatim": { "format": 99 } });
    let later = json!({ "chats-v000001-00000000": { "mappings": { "_meta": later } } });
    for (answer, expected) in [(foreign, "another program"), (later, "later version")] {
        let (address, _) = serve(Box::new(move |_, _, _| (200, answer.to_string())));
        let error = search(&address, None).expect_err("refused");
        assert!(error.contains(expected), "{error}");
    }
    let (address, _) = serve(Box::new(|_, _, _| (404, "{}".to_owned())));
    let error = search(&address, None).expect_err("nothing there");
    assert!(error.contains("nothing was imported"), "{error}");
}

/// A search over lost shards is answered with status 200 and fewer hits.
#[test]
fn a_lost_shard_is_an_error_and_never_fewer_hits() {
    let lost = json!({
        "timed_out": false, "_shards": { "total": 3, "failed": 1 }, "hits": { "hits": [] },
    });
    let late = json!({
        "timed_out": true, "_shards": { "total": 3, "failed": 0 }, "hits": { "hits": [] },
    });
    for answer in [lost, late] {
        let (address, asked) = serve(Box::new(move |_, path, _| match path.contains("_mapping") {
            true => (200, mapping()),
            false => (200, answer.to_string()),
        }));
        let error = search(&address, None).expect_err("a shard is lost");
        assert!(error.contains("shards did not answer"), "{error}");
        let asked = asked.lock().expect("a log").join("\n");
        assert!(asked.contains("allow_partial_search_results=false"), "{asked}");
    }
}

#[test]
fn a_busy_cluster_is_asked_again() {
    let attempts = Mutex::new(0);
    let (address, _) = serve(Box::new(move |_, path, _| {
        if path.contains("_mapping") {
            let mut attempts = attempts.lock().expect("a number");
            *attempts += 1;
            return if *attempts < 3 { (429, String::new()) } else { (200, mapping()) };
        }
        let shards = json!({ "failed": 0 });
        let empty = json!({ "timed_out": false, "_shards": shards, "hits": { "hits": [] } });
        (200, empty.to_string())
    }));
    assert_eq!(search(&address, None), Ok(Vec::new()));
}

fn id_of(n: i64) -> String {
    format!("a-long-id-of-a-conversation-{n}")
}

/// Serves an index with some conversations of one message each.
fn serve_chats(count: i64) -> (String, Arc<Mutex<Vec<String>>>) {
    let page = |sources: Vec<Value>| {
        let hit = |(n, source)| json!({ "_id": format!("x{n}"), "_source": source, "sort": [n] });
        let hits: Vec<Value> = (0..).zip(sources).map(hit).collect();
        let shards = json!({ "failed": 0 });
        json!({ "timed_out": false, "_shards": shards, "hits": { "hits": hits } }).to_string()
    };
    let conversation = |n: i64| {
        json!({
            "kind": "c", "k": n, "id": id_of(n), "title": format!("Colours {n}"), "digest": "d",
            "roles": ["user"], "models": [], "messages": [[0, -1, 1_700_000_000 - n, 0]],
        })
    };
    let message = |n: i64| {
        let c: [u8; 8] = Sha256::digest(id_of(n))[..8].try_into().expect("eight bytes");
        json!({
            "kind": "m", "c": i64::from_be_bytes(c), "id": format!("m{n}"), "role": "user", "rh": 1,
            "s": 1_700_000_000 - n, "n": 0, "r": n, "k": n, "t": format!("dark red {n}"),
        })
    };
    let conversations = page((0..count).map(conversation).collect());
    let messages = page((0..count).map(message).collect());
    // As in a cluster, an answer has only the messages of the conversations that are asked for.
    let of_one = move |body: &str| {
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let filter = &body["query"]["constant_score"]["filter"]["bool"]["filter"];
        let c = filter.as_array()?.iter().find_map(|it| it["term"]["c"].as_i64())?;
        let one = (0..count).map(message).find(|it| it["c"] == c)?;
        Some(page(vec![one]))
    };
    serve(Box::new(move |_, path, body| match path.contains("_mapping") {
        true => (200, mapping()),
        false if body.contains(r#""kind":"c""#) => (200, conversations.clone()),
        false => (200, of_one(body).unwrap_or_else(|| messages.clone())),
    }))
}

#[test]
fn more_conversations_in_an_answer_need_no_more_requests() {
    let questions = |server: &HttpServer, asked: &Mutex<Vec<String>>| {
        let counted = |ask: &dyn Fn() -> String| {
            ask();
            let before = asked.lock().expect("a log").len();
            let answer = ask();
            (answer, asked.lock().expect("a log").len() - before)
        };
        let tool = |query: &str| {
            let arguments = json!({ "query": query, "mode": "text", "limit": 18 });
            counted(&|| server.call("search", &arguments))
        };
        [counted(&|| server.get("/search?q=red")), tool("red"), tool("Colours")]
    };
    let ask = |count: i64| {
        let (address, asked) = serve_chats(count);
        let server = HttpServer::start(PathBuf::from(address));
        questions(&server, &asked)
    };
    let (few, many) = (ask(3), ask(18));
    for ((few, of_few), (many, of_many)) in few.iter().zip(&many) {
        assert!(few.contains("Colours 2") && !few.contains("Colours 17"), "{few}");
        assert!(many.contains("Colours 17"), "{many}");
        assert_eq!(of_few, of_many, "{many}");
        assert!(*of_many <= 12, "{of_many} requests: {many}");
    }
}

/// Serves an index with one conversation of one message.
///
/// The answers have the form of Elasticsearch 8 and 9, which say more than those of OpenSearch.
fn serve_chat() -> (String, Arc<Mutex<Vec<String>>>) {
    let c: [u8; 8] = Sha256::digest("c1")[..8].try_into().expect("eight bytes");
    let conversation = json!({
        "kind": "c", "k": 1, "id": "c1", "title": "Colours", "digest": "d", "roles": ["user"],
        "models": [], "messages": [[0, -1, 1_700_000_000, 0]],
        "origin": { "project": "paint" },
    });
    let message = json!({
        "kind": "m", "c": i64::from_be_bytes(c), "id": "m1", "role": "user", "rh": 1,
        "s": 1_700_000_000, "n": 0, "r": 1, "k": 5, "t": "dark red",
    });
    let answer = |source: &Value, sort: Value| {
        let hit = json!({
            "_index": "chats-v000001-00000000", "_id": "x", "_score": null, "_ignored": ["t"],
            "_source": source, "sort": sort,
        });
        let shards = json!({ "total": 3, "successful": 3, "skipped": 0, "failed": 0 });
        let hits = json!({ "max_score": null, "hits": [hit] });
        json!({ "took": 3, "timed_out": false, "_shards": shards, "hits": hits }).to_string()
    };
    let conversation = answer(&conversation, json!([1]));
    let message = answer(&message, json!([1_700_000_000, 0, i64::MIN, 1, 5]));
    serve(Box::new(move |_, path, body| match path.contains("_mapping") {
        true => (200, mapping()),
        false if body.contains(r#""kind":"c""#) => (200, conversation.clone()),
        false => (200, message.clone()),
    }))
}

#[test]
fn elasticsearch_is_understood() {
    let (address, _) = serve_chat();
    let address = address.replace("opensearch+", "elasticsearch+");
    assert_eq!(search(&address, None), Ok(vec!["m1".to_owned()]));
    let refused = json!({ "error": {
        "root_cause": [{ "type": "security_exception", "reason": "unable to authenticate user" }],
        "type": "security_exception", "reason": "unable to authenticate user [me] for REST request",
        "header": { "WWW-Authenticate": ["Basic realm=\"security\"", "ApiKey"] },
    }, "status": 401 });
    let (address, _) = serve(Box::new(move |_, _, _| (401, refused.to_string())));
    let error = search(&address.replace("opensearch+", "elasticsearch+"), Some("me:seCret"));
    assert!(error.expect_err("refused").contains("does not know the user"));
}

/// A bulk request is answered with status 200 although documents in it were refused.
#[test]
fn a_refused_document_ends_an_import_with_its_reason() {
    let database = Database::of(Schema::Typed, &["Colours".into()], &[Message::stored("red")]);
    let (address, asked) = serve(Box::new(|method, path, _| match (method, path) {
        (_, "/chats/_mapping") => (404, "{}".to_owned()),
        ("GET", path) if path.contains("_mapping") => (200, "{}".to_owned()),
        (_, path) if path.contains("_cluster/health") => {
            (200, json!({ "timed_out": false }).to_string())
        }
        // A node made the index and stopped before it could answer.
        ("PUT", path) if path.starts_with("/chats-v") && path.matches('/').count() == 1 => {
            let error = json!({ "type": "resource_already_exists_exception", "reason": "index" });
            (400, json!({ "error": error, "status": 400 }).to_string())
        }
        (_, path) if path.contains("_bulk") => {
            let error = json!({ "type": "mapper", "reason": "it is too long" });
            let item = json!({ "index": { "_id": "m1", "status": 400, "error": error } });
            (200, json!({ "errors": true, "items": [item] }).to_string())
        }
        _ => (200, "{}".to_owned()),
    }));
    let target = PathBuf::from(&address);
    let outcome =
        verbatim_engine::import::import(&[database.path()], &target, Branches::Shown, &|_| {});
    let error = outcome.expect_err("a document was refused").to_string();
    assert!(error.contains("it is too long"), "{error}");
    let asked = asked.lock().expect("a log").join("\n");
    assert!(!asked.contains("_aliases"), "the import was published: {asked}");
}

#[test]
fn every_page_shows_what_a_cluster_has() {
    let (address, _) = serve_chat();
    let server = HttpServer::start(PathBuf::from(address));
    for (path, expected) in [
        ("/c/c1", "dark red"),
        ("/search?q=red", "Colours"),
        ("/", "Colours"),
        ("/stats", "Colours"),
        ("/status", "1 message"),
        ("/c/c1/forget", "Colours"),
        ("/peek/c1/1", "dark red"),
        ("/facets?q=red", ""),
    ] {
        let page = server.get(path);
        assert!(page.contains(expected), "{path}: {page}");
        for wrong in ["no chats yet", "not found"] {
            assert!(!page.contains(wrong), "{path}: {page}");
        }
    }
}

#[test]
fn a_file_that_is_dropped_on_the_page_goes_to_the_cluster_with_its_password() {
    let (address, asked) = serve(Box::new(|_, path, _| match path.contains("_mapping") {
        true => (404, "{}".to_owned()),
        false => (403, json!({ "error": { "reason": "no", "type": "security" } }).to_string()),
    }));
    let server = HttpServer::start(PathBuf::from(address));
    let export = r#"[{"uuid": "c1", "name": "Baking", "chat_messages": [
        {"uuid": "m1", "sender": "human", "text": "How long?"}]}]"#;
    server.post("/import?name=conversations.json", export);
    let begun = Instant::now();
    let progress = loop {
        let progress = server.get("/import/progress");
        if !progress.contains("data-running") {
            break progress;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{progress}");
        thread::sleep(Duration::from_millis(20));
    };
    // The refusal comes from the cluster, after the file was read.
    assert!(progress.contains("may not do this"), "{progress}");
    let asked = asked.lock().expect("a log");
    let with_password =
        |head: &String| head.to_ascii_lowercase().contains("authorization: basic bwu6c2vdcmv0");
    assert!(asked.iter().all(with_password), "{asked:?}");
    let made = std::fs::read_dir(server.folder()).expect("a folder").flatten();
    let made = made.filter(|it| it.file_name().to_string_lossy().starts_with("opensearch"));
    assert_eq!(made.count(), 0, "the address was taken for a path");
}

#[test]
fn the_status_says_how_many_conversations_of_a_cluster_are_excluded() {
    let (address, _) = serve_chat();
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place { db: PathBuf::from(address), ..Place::in_folder(folder.path()) };
    let settings = folder.path().join("config.toml");
    std::fs::write(&settings, "exclude = ['paint']\n").expect("a file");
    let mut command = place.command(&["status", "--no-archive"]);
    let done = command.env("VERBATIM_CONFIG", settings).output().expect("the program starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("in no answer: 1 conversation of the export"), "{text}");
    let done = place.command(&["doctor", "--no-archive"]).output().expect("the program starts");
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("1 message in 1 conversation"), "{text}");
    assert!(!text.contains("not found"), "{text}");
}

/// The list of conversations is kept in memory, so its length is limited.
#[test]
fn an_index_of_too_many_conversations_is_an_error_that_says_what_to_do() {
    let page = {
        let one = |k: i64| {
            let id = format!("c{k}");
            let source = json!({
                "kind": "c", "k": k, "id": id, "digest": "d", "roles": [], "models": [],
                "messages": [],
            });
            json!({ "_id": id, "_source": source, "sort": [k] })
        };
        let hits: Vec<Value> = (0..1_000).map(one).collect();
        let shards = json!({ "failed": 0 });
        json!({ "timed_out": false, "_shards": shards, "hits": { "hits": hits } }).to_string()
    };
    let (address, asked) = serve(Box::new(move |_, path, _| match path.contains("_mapping") {
        true => (200, mapping()),
        false => (200, page.clone()),
    }));
    let error = search(&address, None).expect_err("too many");
    assert!(error.contains("divide them among several indexes"), "{error}");
    assert!(asked.lock().expect("a log").len() < 10);
}

/// The cluster fails just after the alias moved. The index that the alias leads to must not be deleted.
#[test]
fn what_is_forgotten_never_costs_the_index_that_is_in_use() {
    let moved = Arc::new(Mutex::new(false));
    let is_moved = Arc::clone(&moved);
    let found = |source: Value| {
        let hit = json!({ "_id": "x", "_source": source, "sort": [1] });
        let shards = json!({ "failed": 0 });
        json!({ "timed_out": false, "_shards": shards, "hits": { "hits": [hit] } }).to_string()
    };
    let conversation = found(json!({
        "kind": "c", "k": 1, "id": "c1", "title": "Colours", "digest": "d", "roles": ["user"],
        "models": [], "messages": [[0, -1, 1_700_000_000, 0]],
    }));
    let (address, asked) = serve(Box::new(move |method, path, body| {
        let mut moved = moved.lock().expect("a state");
        let is_new = path.contains("-v000002-");
        let nothing = || json!({ "timed_out": false, "_shards": {}, "hits": { "hits": [] } });
        match path {
            _ if *moved => (500, json!({ "error": { "reason": "no", "type": "x" } }).to_string()),
            "/_aliases" => {
                *moved = true;
                (200, "{}".to_owned())
            }
            _ if method == "GET" && path.contains("_mapping") => (200, mapping()),
            _ if path.contains("_search") && is_new => (200, nothing().to_string()),
            _ if path.contains("_search") && body.contains(r#""kind":"c""#) => {
                (200, conversation.clone())
            }
            _ if path.contains("_search") => (200, nothing().to_string()),
            _ if path.contains("_count") => {
                (200, json!({ "count": 0, "_shards": { "failed": 0 } }).to_string())
            }
            _ if path.contains("health") => (200, json!({ "timed_out": false }).to_string()),
            _ if path.contains("_stats") => {
                let docs = json!({ "docs": { "deleted": 0 } });
                (200, json!({ "_all": { "total": docs } }).to_string())
            }
            _ => (200, "{}".to_owned()),
        }
    }));
    let folder = tempfile::tempdir().expect("a folder");
    let place = Place { db: PathBuf::from(address), ..Place::in_folder(folder.path()) };
    let mut command = place.command(&["forget", "--yes", "c1"]);
    let done = command.output().expect("the program starts");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(*is_moved.lock().expect("a state"), "{said}");
    assert!(!done.status.success() && said.contains("do it again"), "{said}");
    let asked = asked.lock().expect("a log").join("\n");
    assert!(!asked.contains("DELETE"), "an index was deleted: {asked}");
}
