//! Embedding providers, good and bad: a server in the test speaks the protocol.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use rusqlite::Connection;
use serde_json::{Value, json};
use verbatim_base::call::{Call, Stop};
use verbatim_embed::{EmbedProgress, Error, Key, Model, Provider, Remote, Texts, prune_caches};
use verbatim_engine::{Config, Engine, Reindex};
use verbatim_index::{self as index, Resources, VectorOptions, Vectors};

use crate::corpus::{SCHEMA, folder, folder_with};

/// How the server answers one request.
#[derive(Clone, Debug)]
enum Answer {
    Good,
    /// A status, further header lines, and a body.
    Status(u16, &'static str, &'static str),
    /// The server answers after a pause.
    Slow(Duration),
    /// The server answers with vectors of this many numbers.
    Numbers(usize),
    /// The server answers with one vector too few.
    OneLess,
    /// The server closes the connection in the middle of an answer.
    Half,
    /// The server answers with status 200 and this body.
    Body(&'static str),
    /// The server refuses texts that are longer than this, and more than two of them.
    Small(usize),
}

struct Seen {
    head: String,
    body: Value,
}

#[derive(Clone)]
struct Server {
    address: String,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// The behaviour after the listed answers are used up.
    usual: Arc<Mutex<Answer>>,
    seen: Arc<Mutex<Vec<Seen>>>,
}

const NUMBERS: usize = 8;

/// The number of bytes of a text in the cache.
const RECORD: usize = 24 + NUMBERS;

impl Server {
    fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: format!("http://{}", listener.local_addr().unwrap()),
            answers: Arc::default(),
            usual: Arc::new(Mutex::new(Answer::Good)),
            seen: Arc::default(),
        };
        let other = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let server = other.clone();
                thread::spawn(move || server.serve(stream.unwrap()));
            }
        });
        server
    }

    fn then(&self, answers: &[Answer]) {
        self.answers.lock().unwrap().extend(answers.iter().cloned());
    }

    fn always(&self, answer: Answer) {
        *self.usual.lock().unwrap() = answer;
    }

    fn requests(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    fn texts(&self) -> Vec<String> {
        let seen = self.seen.lock().unwrap();
        seen.iter().flat_map(|seen| inputs(&seen.body)).collect()
    }

    fn serve(&self, mut stream: TcpStream) {
        let mut bytes = Vec::new();
        let mut buffer = [0; 4096];
        let (head, mut body) = loop {
            let length = stream.read(&mut buffer).unwrap_or(0);
            if length == 0 {
                return;
            }
            bytes.extend_from_slice(&buffer[..length]);
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break (
                    String::from_utf8_lossy(&bytes[..end]).into_owned(),
                    bytes[end + 4..].to_vec(),
                );
            }
        };
        let length = head.to_lowercase();
        let length = length.split("content-length:").nth(1).unwrap().lines().next().unwrap();
        let length: usize = length.trim().parse().unwrap();
        while body.len() < length {
            let more = stream.read(&mut buffer).unwrap_or(0);
            assert!(more > 0, "half a request");
            body.extend_from_slice(&buffer[..more]);
        }
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert!(head.starts_with("POST /v1/embeddings "), "{head}");
        let texts = inputs(&body);
        self.seen.lock().unwrap().push(Seen { head, body });
        let next = self.answers.lock().unwrap().pop_front();
        let answer = next.unwrap_or_else(|| self.usual.lock().unwrap().clone());
        let mut numbers = NUMBERS;
        let mut cut = false;
        let mut count = texts.len();
        match answer {
            Answer::Good => {}
            Answer::Slow(while_) => thread::sleep(while_),
            Answer::Numbers(other) => numbers = other,
            Answer::OneLess => count -= 1,
            Answer::Half => cut = true,
            Answer::Status(status, headers, body) => {
                return reply(&mut stream, status, headers, body.as_bytes(), false);
            }
            Answer::Body(body) => return reply(&mut stream, 200, "", body.as_bytes(), false),
            Answer::Small(most) => {
                if texts.len() > 2 || texts.iter().any(|text| text.chars().count() > most) {
                    let body = br#"{"error": {"message": "input is too long"}}"#;
                    return reply(&mut stream, 400, "", body, false);
                }
            }
        }
        let vectors: Vec<Vec<f32>> =
            texts[..count].iter().map(|text| vector(text, numbers)).collect();
        // The order differs from the request, which the protocol allows.
        let data: Vec<Value> = vectors
            .iter()
            .enumerate()
            .map(|(index, vector)| json!({"index": index, "embedding": vector}))
            .rev()
            .collect();
        let body = json!({"object": "list", "data": data});
        reply(&mut stream, 200, "", body.to_string().as_bytes(), cut);
    }
}

fn reply(stream: &mut TcpStream, status: u16, headers: &str, body: &[u8], cut: bool) {
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nconnection: close\r\n\
         content-length: {}\r\n{headers}\r\n",
        body.len()
    );
    let body = if cut { &body[..body.len() / 2] } else { body };
    // Clients that were stopped have closed their connections.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
}

fn inputs(body: &Value) -> Vec<String> {
    let inputs = body["input"].as_array().unwrap();
    inputs.iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The vector of a text: the number of times that each of some letters occurs. Its length is not 1.
fn vector(text: &str, numbers: usize) -> Vec<f32> {
    let count = |at: usize| text.chars().filter(|c| *c as usize % numbers == at).count() as f32;
    (0..numbers).map(count).collect()
}

/// Returns a model of a server, without its waiting times.
fn remote(address: &str, name: &str) -> Remote {
    let provider: Provider = format!("{address}/v1#{name}").parse().unwrap();
    let Provider::Remote(remote) = provider.with_key(Key::new("sk-secret")) else { panic!() };
    Remote { first_wait: Duration::from_millis(5), timeout: Duration::from_secs(30), ..remote }
}

fn model_named(server: &Server, name: &str) -> Model {
    Model::new(&Provider::Remote(remote(&server.address, name)))
}

fn model(server: &Server) -> Model {
    model_named(server, "m")
}

fn why(error: &Error) -> String {
    let text = error.to_string();
    assert!(!text.contains("secret"), "{text}");
    assert!(matches!(error, Error::Provider { .. }), "{text}");
    text
}

fn build(
    segment: &Path,
    model: &Model,
    texts: &[String],
    call: &Call,
    progress: &mut dyn FnMut(EmbedProgress),
) -> Result<Vectors, Box<dyn std::error::Error>> {
    let options = VectorOptions::default();
    crate::build_vectors::build_with(segment, model, texts, options, &call.stop, progress)
}

fn some_texts(count: usize) -> Vec<String> {
    (0..count).map(|at| format!("text number {at} about {}", "abcdefgh".repeat(at % 5))).collect()
}

#[test]
fn texts_are_answered_in_order_and_one_long() {
    let server = Server::start();
    let model = model_named(&server, "m:latest");
    let texts: Vec<String> = some_texts(150);
    let mut refs: Vec<&str> = texts.iter().map(String::as_str).collect();
    refs.insert(70, "  \n");
    let vectors = model.encode(&refs, &Stop::never()).unwrap();
    assert_eq!(vectors.len(), 151);
    assert_eq!(vectors[70], [0.0; NUMBERS]);
    for (text, vector) in refs.iter().zip(&vectors).filter(|(text, _)| !text.trim().is_empty()) {
        let raw = self::vector(text, NUMBERS);
        let length = raw.iter().map(|x| x * x).sum::<f32>().sqrt();
        for (ours, theirs) in vector.iter().zip(raw) {
            assert!((ours - theirs / length).abs() < 1e-6, "{text}");
        }
    }
    assert_eq!(model.dimensions(&Stop::never()).unwrap(), NUMBERS);
    let seen = server.seen.lock().unwrap();
    assert_eq!(seen.len(), 3, "64 texts in a request");
    for Seen { head, body } in &*seen {
        assert!(head.to_lowercase().contains("authorization: bearer sk-secret"));
        assert_eq!(body["model"], "m:latest");
        assert!(inputs(body).iter().all(|text| !text.trim().is_empty()));
    }
}

#[test]
fn passing_trouble_passes() {
    let server = Server::start();
    let busy = Answer::Status(429, "retry-after: 1\r\n", "{}");
    let down = Answer::Status(503, "", "<html>");
    server.then(&[busy, Answer::Half, down, Answer::Status(500, "", "")]);
    let begun = Instant::now();
    model(&server).encode(&["a", "b"], &Stop::never()).unwrap();
    assert_eq!(server.requests(), 5);
    assert!(begun.elapsed() >= Duration::from_secs(1), "it waited as it was asked to");
}

#[test]
fn lasting_trouble_is_said() {
    let table: [(Answer, usize, &str); 10] = [
        (Answer::Status(500, "", r#"{"error": "out of memory"}"#), 5, "status 500: out of memory"),
        (Answer::Status(429, "retry-after: 0\r\n", ""), 5, "status 429"),
        (Answer::Status(401, "", r#"{"error": {"message": "bad key sk-secret"}}"#), 1, "the key"),
        (Answer::Status(404, "", r#"{"error": "no key sk-secret here"}"#), 1, "no key … here"),
        (Answer::Status(404, "", ""), 1, "usually ends in /v1"),
        (Answer::Status(307, "location: http://elsewhere/\r\n", ""), 1, "status 307"),
        (Answer::Half, 5, "tried several times"),
        (Answer::OneLess, 1, "1 vectors for 2 texts"),
        (Answer::Body("[1, 2"), 1, "does not fit the request"),
        (Answer::Body(r#"{"data": [{"index": 0, "embedding": [1e39, null]}]}"#), 1, "does not fit"),
    ];
    for (answer, requests, expected) in table {
        let server = Server::start();
        server.always(answer.clone());
        let error = model(&server).encode(&["a", "b"], &Stop::never()).unwrap_err();
        assert!(why(&error).contains(expected), "{answer:?}: {error}");
        assert_eq!(server.requests(), requests, "{answer:?}");
    }
    let bodies = [
        r#"{"data": [{"index": 0, "embedding": [1e39]}, {"index": 1, "embedding": [1]}]}"#,
        r#"{"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]}"#,
        r#"{"data": [{"index": 1, "embedding": [1]}, {"index": 1, "embedding": [1]}]}"#,
        r#"{"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}]}"#,
    ];
    for body in bodies {
        let server = Server::start();
        server.always(Answer::Body(body));
        why(&model(&server).encode(&["a", "b"], &Stop::never()).unwrap_err());
    }
}

#[test]
fn what_is_too_much_is_asked_in_pieces() {
    let server = Server::start();
    server.always(Answer::Small(1_000));
    let long = "word ".repeat(700);
    let texts = ["a", long.as_str(), "c", "d", "e"];
    let vectors = model(&server).encode(&texts, &Stop::never()).unwrap();
    assert_eq!(vectors.len(), 5);
    let alone = model(&server).encode(&["e"], &Stop::never()).unwrap();
    assert_eq!(vectors[4], alone[0]);
}

#[test]
fn a_provider_that_is_not_there_is_missed_quickly() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let model = Model::new(&Provider::Remote(remote(&format!("http://127.0.0.1:{port}"), "m")));
    let error = model.encode_query("a", &Stop::never()).unwrap_err();
    assert!(why(&error).contains(&format!("127.0.0.1:{port}")), "{error}");
    let again = model.encode_query("a", &Stop::never()).unwrap_err();
    assert_eq!(again.to_string(), error.to_string());
}

#[test]
fn a_question_is_not_sent_where_none_was_answered() {
    let server = Server::start();
    server.always(Answer::Status(503, "", ""));
    let model = model(&server);
    model.encode_query("a", &Stop::never()).unwrap_err();
    let requests = server.requests();
    server.always(Answer::Good);
    model.encode_query("a", &Stop::never()).unwrap_err();
    assert_eq!(server.requests(), requests);
    model.encode(&["a"], &Stop::never()).unwrap();
    model.encode_query("a", &Stop::never()).expect("it is back");
}

#[test]
fn slow_answers_end_with_the_time_or_the_stop() {
    let server = Server::start();
    server.always(Answer::Slow(Duration::from_secs(40)));
    let call = Call::default().within(Duration::from_millis(300));
    assert!(matches!(model(&server).encode(&["a"], &call.stop), Err(Error::Stopped)));
    let remote = Remote { timeout: Duration::from_millis(200), ..remote(&server.address, "m") };
    let error = Model::new(&Provider::Remote(remote)).encode(&["a"], &Stop::never()).unwrap_err();
    assert!(why(&error).contains("within 200ms"), "{error}");
}

#[test]
fn interrupted_work_goes_on_where_it_was() {
    let (index_dir, segment) = folder_with("segment-1");
    fs::create_dir(&segment).unwrap();
    let server = Server::start();
    let first = model(&server);
    let mut texts = some_texts(300);
    texts[5] = String::new();
    texts[7] = texts[8].clone();
    let call = Call::default();
    let mut steps = Vec::new();
    let stopped = build(&segment, &first, &texts, &call, &mut |step| {
        steps.push(step);
        if steps.len() == 2 {
            call.stop.request();
        }
    });
    assert!(matches!(stopped.unwrap_err().downcast_ref(), Some(Error::Stopped)));
    assert_eq!(steps[0], EmbedProgress { done: 66, total: 300 });
    assert!(Vectors::open(&segment, first.name(), 300).is_none());
    let before = server.texts().len();
    assert_eq!(before, 128);
    // Another process continues later, after a power cut while a record was written.
    let cache = index_dir.path().join(format!("embedded-{}", first.name()));
    let whole = fs::read(&cache).unwrap();
    fs::write(&cache, &whole[..whole.len() - 3]).unwrap();
    let model = model(&server);
    let vectors = build(&segment, &model, &texts, &Call::default(), &mut |_| ()).unwrap();
    assert_eq!(server.texts().len(), 298 + 1, "one was lost");
    let query = model.encode_query(&texts[123], &Stop::never()).unwrap();
    let best = vectors.top_k(&query, 1, |doc_id| doc_id % 2 == 1).unwrap();
    assert!(best[0].score > 0.99, "{best:?}");
    assert_eq!(vectors.scores(&query, &[5]).unwrap(), [-1.0]);
    // Another segment with the same texts costs nothing, even while the provider is away.
    server.always(Answer::Status(503, "", ""));
    let other = index_dir.path().join("segment-2");
    fs::create_dir(&other).unwrap();
    let again = build(&other, &model, &texts, &Call::default(), &mut |_| ()).unwrap();
    let doc_ids: Vec<u32> = (0..300).collect();
    assert_eq!(again.scores(&query, &doc_ids).unwrap(), vectors.scores(&query, &doc_ids).unwrap());
    // No file on disk has any part of the key.
    let text = String::from_utf8_lossy(&fs::read(&cache).unwrap()).into_owned();
    assert!(!text.contains("sk-secret"));
}

#[test]
fn another_model_embeds_anew() {
    let (index_dir, segment) = folder_with("segment-1");
    fs::create_dir(&segment).unwrap();
    let server = Server::start();
    let texts = some_texts(20);
    let first = model(&server);
    build(&segment, &first, &texts, &Call::default(), &mut |_| ()).unwrap();
    let second = model_named(&server, "other");
    assert!(Vectors::open(&segment, second.name(), 20).is_none());
    build(&segment, &second, &texts, &Call::default(), &mut |_| ()).unwrap();
    assert_eq!(server.texts().len(), 40);
    assert!(Vectors::open(&segment, first.name(), 20).is_some());
    // The provider has the same model name, but vectors of another length.
    server.always(Answer::Numbers(12));
    let changed = model(&server);
    let query = changed.encode_query("a", &Stop::never()).unwrap();
    let old = Vectors::open(&segment, changed.name(), 20).unwrap();
    let error = old.top_k(&query, 5, |_| true).unwrap_err();
    assert!(matches!(error, index::Error::Lengths { ours: NUMBERS, theirs: 12 }), "{error}");
    let more = some_texts(21);
    let error = build(&segment, &changed, &more, &Call::default(), &mut |_| ()).unwrap_err();
    let cache = index_dir.path().join(format!("embedded-{}", changed.name()));
    assert!(error.to_string().contains(&format!("delete {}", cache.display())), "{error}");
    fs::remove_file(cache).unwrap();
    let anew = build(&segment, &changed, &texts, &Call::default(), &mut |_| ()).unwrap();
    assert_eq!(anew.dimensions(), 12);
    assert_eq!(anew.top_k(&query, 5, |_| true).unwrap().len(), 5);
}

#[test]
fn a_damaged_cache_is_worth_nothing() {
    let (index_dir, segment) = folder_with("segment-1");
    fs::create_dir(&segment).unwrap();
    let server = Server::start();
    let model = model(&server);
    let texts = some_texts(30);
    build(&segment, &model, &texts, &Call::default(), &mut |_| ()).unwrap();
    let cache = index_dir.path().join(format!("embedded-{}", model.name()));
    let good = fs::read(&cache).unwrap();
    let mut flipped = good.clone();
    flipped[good.len() / 2] ^= 1;
    let bads: [&[u8]; 4] = [b"", b"verbatim vectors\0\0\0\0", &[0xFF; 5000], &flipped];
    for bad in bads {
        fs::write(&cache, bad).unwrap();
        let vectors = build(&segment, &model, &texts, &Call::default(), &mut |_| ()).unwrap();
        let whole = fs::read(&cache).unwrap().len();
        assert!((good.len()..=good.len() + RECORD).contains(&whole), "{whole}");
        let query = model.encode_query(&texts[3], &Stop::never()).unwrap();
        assert!(vectors.scores(&query, &[3]).unwrap()[0] > 0.99);
    }
}

#[test]
fn what_is_forgotten_is_in_no_cache() {
    let (index_dir, segment) = folder_with("segment-1");
    fs::create_dir(&segment).unwrap();
    let server = Server::start();
    let texts = some_texts(30);
    for model in [model(&server), model_named(&server, "other")] {
        build(&segment, &model, &texts, &Call::default(), &mut |_| ()).unwrap();
    }
    let model = model(&server);
    let length = |model: &Model| {
        let cache = index_dir.path().join(format!("embedded-{}", model.name()));
        fs::metadata(cache).unwrap().len() as usize
    };
    let prune = |kept: &[String]| {
        let text = |doc_id: u32| Cow::Borrowed(kept[doc_id as usize].as_str());
        let texts = Texts { count: kept.len() as u32, text: &text };
        prune_caches(index_dir.path(), &texts, &Stop::never()).unwrap();
    };
    assert_eq!(length(&model), 20 + 30 * RECORD);
    // The last texts are kept, so that their records have to move.
    let kept = &texts[20..];
    prune(kept);
    assert_eq!(length(&model), 20 + 10 * RECORD);
    assert_eq!(length(&model_named(&server, "other")), 20 + 10 * RECORD);
    let asked = server.texts().len();
    let vectors = build(&segment, &model, kept, &Call::default(), &mut |_| ()).unwrap();
    assert_eq!(server.texts().len(), asked, "nothing is asked for again");
    let query = model.encode_query(&texts[23], &Stop::never()).unwrap();
    assert!(vectors.scores(&query, &[3]).unwrap()[0] > 0.99);
    prune(&[]);
    assert_eq!(length(&model), 0);
}

#[test]
fn messages_give_way_to_a_database_that_changes() {
    const MESSAGES: u32 = 200;
    let home = folder();
    fs::create_dir(home.path().join("db")).unwrap();
    let connection = Connection::open(home.path().join("db/chats.db")).unwrap();
    connection.execute_batch(SCHEMA).unwrap();
    connection
        .execute_batch("BEGIN; INSERT INTO conversations VALUES ('c', '1', '1', NULL)")
        .unwrap();
    for at in 0..MESSAGES {
        let sql = "INSERT INTO messages VALUES ('m' || ?1, 'c', 'user', ?2, '1', NULL, 0)";
        connection.execute(sql, (at, format!("mountain {at} in Norway"))).unwrap();
    }
    connection.execute_batch("COMMIT").unwrap();
    let server = Server::start();
    server.always(Answer::Slow(Duration::from_millis(600)));
    let embeddings = Provider::Remote(remote(&server.address, "m"));
    let engine =
        Engine::new(Config { home: home.path().to_owned(), embeddings, ..Config::default() });
    let resources = Resources { memory: 64 << 20, threads: 1 };
    let options = Reindex { resources, full: false };
    engine.upkeep().reindex(options, &Call::default(), &mut |_| ()).unwrap();
    let mut maintainer = engine.upkeep().maintainer();
    thread::scope(|scope| {
        let server = &server;
        scope.spawn(move || {
            while server.texts().is_empty() {
                thread::sleep(Duration::from_millis(5));
            }
            connection.execute_batch("UPDATE messages SET role = 'tool' WHERE id = 'm1'").unwrap();
        });
        maintainer.poll(&Call::default(), &mut |_| ());
    });
    let sent = server.texts().len();
    assert!((64..MESSAGES as usize).contains(&sent), "{sent} messages were sent");
}
