//! `verbatim eval`: figures, published sets, and models that answer or do not.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    thread,
};

use serde_json::{Value, json};

use crate::scene::Scene;

const MESSAGES: &str = r#"
{"id": 1, "conversation": "x", "speaker": "Ann", "text": "I saw a heron", "time": "1:56 pm on 8 May, 2023"}

{"id": "b", "conversation": "x", "speaker": "Bob", "text": "I saw a walrus"}
{"id": "c", "conversation": "y", "speaker": "Bob", "text": "a heron again", "time": 5}
"#;

const QUESTIONS: &str = r#"
{"qid": "q1", "text": "Who saw the heron?", "conversation": "x", "relevant": [1]}
{"qid": "q2", "text": "walruses", "relevant": ["b"]}
"#;

/// Two samples. One question names turns in an uncommon way, one names no turn that exists.
const LOCOMO: &str = r#"[
{"qa": [{"question": "Who saw the heron?", "answer": "Ann", "evidence": ["D1:1"], "category": 1},
        {"question": "What do they like to eat?", "answer": 7, "evidence": ["D1:02; D2:1."], "category": 1},
        {"question": "Who?", "evidence": ["D9:9"], "category": 5}],
 "conversation": {"speaker_a": "Ann", "session_1_date_time": "1:56 pm on 8 May, 2023",
    "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "I saw a heron"},
                  {"speaker": "Bob", "dia_id": "D1:2", "text": "Look", "blip_caption": "cake to eat"}],
    "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "We eat soup", "img_url": []}],
    "session_3_date_time": "9 May, 2023"},
 "event_summary": {}, "sample_id": "conv-26"},
{"qa": [], "conversation": {"session_1": [{"speaker": "Cy", "dia_id": "D1:1", "text": "a heron"}]},
 "sample_id": "conv-30"}]"#;

/// REALTALK's form of the same.
const REALTALK: &str = r#"{"name": {"speaker_1": "Ann"}, "session_1": [
    {"clean_text": "I saw a heron", "speaker": "Ann", "date_time": "29.12.2023, 22:42:04", "dia_id": "D1:1"}],
"session_1_date_time": "29.12.2023, 22:42:04",
"qa": [{"question": "Who saw the heron?", "evidence": ["D1:1"], "category": 1}]}"#;

/// The histories share the session `filler`. The second question cannot be answered.
const LONGMEMEVAL: &str = r#"[
{"question_id": "a", "question_type": "single-session-user", "question": "Which bird did I see?",
 "answer": "a heron", "question_date": "2023/05/30 (Tue) 23:40",
 "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/20 (Sat) 02:57"],
 "haystack_session_ids": ["answer_1", "filler"],
 "haystack_sessions": [
    [{"role": "user", "content": "I saw a bird, a heron", "has_answer": true},
     {"role": "assistant", "content": "Splendid", "has_answer": false}],
    [{"role": "user", "content": "Are dinosaurs extinct?"}]], "answer_session_ids": ["answer_1"]},
{"question_id": "b_abs", "question_type": "single-session-user", "question": "Which fish did I see?",
 "answer": "unknown", "haystack_dates": ["2023/05/21 (Sun) 02:57"], "haystack_session_ids": ["filler"],
 "haystack_sessions": [[{"role": "user", "content": "Are dinosaurs extinct?"}]], "answer_session_ids": []}]"#;

const BEAM_CHAT: &str = r#"[{"batch_number": 1, "turns": [
    [{"role": "user", "id": 0, "time_anchor": "March-15-2024", "index": "1,1", "content": "I saw a heron ->-> 1,1"},
     {"role": "assistant", "id": 1, "content": "It was grey"}],
    [{"role": "user", "id": 2, "content": "And a walrus ->-> 1,2"}]]}]"#;

const BEAM_QUESTIONS: &str = r#"{
"abstention": [{"question": "Which fish?", "ideal_response": "unknown"}],
"event_ordering": [{"question": "The heron and the walrus?", "source_chat_ids": {"first": [0], "second": [[2]]}}],
"information_extraction": [{"question": "Did I see a heron?", "source_chat_ids": [0, 77]}]}"#;

/// Returns the exit code, the output and the errors of `verbatim eval`.
fn eval(
    scene: &Scene,
    arguments: &[&str],
    provider: Option<&str>,
) -> (Option<i32>, String, String) {
    let mut command = scene.command(&["eval"]);
    command.args(arguments).envs(provider.map(|name| ("VERBATIM_EMBEDDINGS", name)));
    let output = command.output().expect("it runs");
    let text = |bytes| String::from_utf8(bytes).expect("text");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Returns the figures as JSON.
#[track_caller]
fn figures(scene: &Scene, arguments: &[&str]) -> Value {
    let (code, out, errors) = eval(scene, &[arguments, &["--json"]].concat(), None);
    assert_eq!(code, Some(0), "{errors}");
    serde_json::from_str(&out).expect("JSON")
}

/// Returns the first line of the table.
#[track_caller]
fn counts(scene: &Scene, path: &str) -> String {
    let (code, out, errors) = eval(scene, &[path], None);
    assert_eq!(code, Some(0), "{errors}");
    out.lines().next().unwrap_or_default().to_owned()
}

/// Writes messages and questions with obvious answers; returns their paths.
fn obvious(scene: &Scene) -> [PathBuf; 2] {
    [scene.write("q.jsonl", QUESTIONS), scene.write("c.jsonl", MESSAGES)]
}

#[test]
fn eval_measures() {
    let scene = Scene::new();
    let [queries, corpus] = obvious(&scene);
    let (queries, corpus) = (queries.to_str().unwrap(), corpus.to_str().unwrap());
    let found = figures(&scene, &[queries, "--corpus", corpus]);
    for mode in ["text", "both"] {
        let found = &found["modes"][mode];
        for figure in ["recall_at_5", "recall_at_10", "mrr_at_10", "ndcg_at_10"] {
            assert_eq!(found[figure], 1.0, "{found}");
        }
        assert_eq!(found["recall_at_10_interval"], json!([1.0, 1.0]));
        assert_eq!(found["mrr_at_10_interval"], json!([1.0, 1.0]));
        assert!(found["ms_per_query"].is_number());
    }
    assert_eq!(found["embedded"], 1.0);
    assert_eq!(found["vector_share"], 0.3);
    assert!(found["model"].as_str().unwrap().len() > 3, "{found}");
    let (_, table, _) = eval(&scene, &[queries, "--corpus", corpus, "--across"], None);
    assert!(
        table.contains("vectors of ") && table.contains(": 100.0 % of the messages"),
        "{table}"
    );
    assert!(table.contains("\nboth ") && table.contains("1.000 [1.000, 1.000]"), "{table}");
}

#[test]
fn a_text_that_the_model_does_not_know_counts_as_without_a_vector() {
    let scene = Scene::new();
    let corpus =
        scene.write("runes.jsonl", format!("{MESSAGES}{{\"id\": \"d\", \"text\": \"ᚠᚢᚦ\"}}\n"));
    let [queries, _] = obvious(&scene).map(|path| path.display().to_string());
    let found = figures(&scene, &[&queries, "--corpus", corpus.to_str().unwrap()]);
    assert_eq!(found["embedded"], 0.75, "{found}");
}

#[test]
fn published_sets_are_read_as_they_are() {
    let scene = Scene::new();
    scene.write("locomo10.json", LOCOMO);
    scene.write("longmemeval_s.json", LONGMEMEVAL);
    scene.write("REALTALK/Chat_1.json", REALTALK);
    scene.write("REALTALK/Chat_2.json", REALTALK);
    scene.write("chats/100K/1/chat.json", BEAM_CHAT);
    scene.write("chats/100K/topics.json", "[]");
    scene.write("chats/100K/1/probing_questions/probing_questions.json", BEAM_QUESTIONS);
    for (name, expected) in [
        ("locomo10.json", "2 questions over 4 messages of 2 conversations"),
        ("longmemeval_s.json", "1 question over 3 messages of 2 conversations"),
        ("REALTALK", "2 questions over 2 messages of 2 conversations"),
        ("chats/100K", "2 questions over 3 messages of 1 conversation"),
        ("chats/100K/1", "2 questions over 3 messages of 1 conversation"),
    ] {
        let path = scene.path(name);
        let path = path.to_str().unwrap();
        assert_eq!(counts(&scene, path), expected, "{name}");
        let found = figures(&scene, &[path]);
        assert_eq!(found["modes"]["text"]["recall_at_10"], 1.0, "{name}: {found}");
        assert_eq!(found["modes"]["text"]["mrr_at_10"], 1.0, "{name}: {found}");
    }
}

/// Other samples and histories are not ranked, unless the user asks for it.
#[test]
fn a_question_of_a_set_is_ranked_within_its_conversations() {
    let scene = Scene::new();
    let other = |text: &str| {
        let turn = format!(r#"[[{{"role": "user", "content": "{text}", "has_answer": true}}]]"#);
        format!(
            r#"{{"question_id": "{text}", "question": "Which bird did I see?",
            "haystack_session_ids": ["{text}"], "haystack_sessions": {turn}}}"#
        )
    };
    let long = "Which bird did I see? I did see a bird, a bird";
    let set = scene.write("l.json", format!("[{}, {}]", other("bird"), other(long)));
    let set = set.to_str().unwrap();
    assert_eq!(figures(&scene, &[set])["modes"]["text"]["mrr_at_10"], 1.0);
    assert_eq!(figures(&scene, &[set, "--across"])["modes"]["text"]["mrr_at_10"], 0.75);
}

#[test]
fn broken_sets_are_named() {
    let scene = Scene::new();
    scene.write("empty/none.txt", "");
    scene.write("q.jsonl", QUESTIONS);
    scene.write("c.jsonl", "{\"text\": \"x\"}\n");
    scene.write("cut.json", &LOCOMO[..LOCOMO.len() - 5]);
    scene.write("longmemeval.json", LONGMEMEVAL.replace(r#""filler"]"#, r#""filler", "more"]"#));
    scene.write("turns.json", LONGMEMEVAL.replace("role", "rule"));
    scene.write("beam/chat.json", BEAM_CHAT);
    scene.write("wrong/chat.json", "{}");
    for (arguments, expected) in [
        (&["nowhere"][..], "nowhere: "),
        (&["q.jsonl"], "q.jsonl: has no messages; name their file with --corpus"),
        (&["q.jsonl", "--corpus", "c.jsonl"], "c.jsonl:1: no \"id\""),
        (&["cut.json"], "cut.json: not a file of LoCoMo: EOF"),
        (&["longmemeval.json"], "not a file of LongMemEval: a: 2 sessions with 3 ids"),
        (&["turns.json"], "turns.json: not a file of LongMemEval: missing field `role` at line"),
        (&["beam"], "probing_questions.json: "),
        (&["wrong"], "chat.json: not a file of BEAM: invalid type: map"),
        (&["empty"], "empty: no chats of BEAM, and no files of LoCoMo's form"),
    ] {
        let mut command = scene.command(&["eval"]);
        let output = command.args(arguments).current_dir(scene.path(".")).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(errors.contains(expected) && output.stdout.is_empty(), "{arguments:?}: {errors}");
    }
}

/// Serves vectors for messages, and refuses questions if `refused`, until the test ends.
fn provider(refused: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            drop(answer(stream.unwrap(), refused));
        }
    });
    format!("http://{address}/v1#small")
}

/// Answers one request. The vector of a text says whether there is a heron in it.
fn answer(mut stream: TcpStream, refused: &str) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let body: Value = loop {
        let length = stream.read(&mut buffer)?;
        bytes.extend_from_slice(&buffer[..length]);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(body) = end.and_then(|end| serde_json::from_slice(&bytes[end + 4..]).ok()) {
            break body;
        }
        assert!(length > 0, "half a request");
    };
    let texts: Vec<&str> =
        body["input"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let vector = |(index, text): (usize, &&str)| {
        let is_heron = f32::from(u8::from(text.contains("heron")));
        json!({"index": index, "embedding": [is_heron, 1.0 - is_heron]})
    };
    let (status, body) = match texts.contains(&refused) {
        true => ("404 Not Found", json!({"error": {"message": "no more questions"}})),
        false => {
            ("200 OK", json!({"data": texts.iter().enumerate().map(vector).collect::<Vec<_>>()}))
        }
    };
    let body = body.to_string();
    let head =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all((head + &body).as_bytes())
}

#[test]
fn the_configured_model_is_measured() {
    let scene = Scene::new();
    let [queries, corpus] = obvious(&scene).map(|path| path.display().to_string());
    let arguments = [queries.as_str(), "--corpus", &corpus, "--json"];
    let (code, out, errors) = eval(&scene, &arguments, Some(&provider("none")));
    assert_eq!(code, Some(0), "{errors}");
    let found: Value = serde_json::from_str(&out).unwrap();
    assert!(found["model"].as_str().unwrap().starts_with("remote-small-"), "{found}");
    assert_eq!(found["modes"]["vector"]["mrr_at_10"], 1.0, "{found}");
    let shares = found["shares"].as_array().unwrap();
    let shown: Vec<f64> = shares.iter().map(|it| it["vector_share"].as_f64().unwrap()).collect();
    assert_eq!(shown, [0.1, 0.3, 0.5, 0.7, 0.9]);
    assert!(shares.iter().all(|it| it["mrr_at_10"].is_number()), "{found}");
    let (_, out, errors) = eval(&scene, &arguments[..3], Some(&provider("none")));
    assert!(out.contains("in the configuration file: vector-share = 0."), "{out}{errors}");
    let (_, out, errors) = eval(&scene, &arguments[..3], None);
    assert!(!out.contains("configuration file"), "{out}{errors}");
}

/// A model that does not answer is an error. Figures of words would be taken for those of the model.
#[test]
fn a_model_that_does_not_answer_is_not_measured() {
    let scene = Scene::new();
    let [queries, corpus] = obvious(&scene).map(|path| path.display().to_string());
    let arguments = [queries.as_str(), "--corpus", &corpus];
    for (provider, expected) in [
        (provider("walruses"), "no more questions"),
        (provider("I saw a walrus"), "no more questions"),
        ("http://127.0.0.1:9/v1#nope".to_owned(), "the embedding provider at http://127.0.0.1:9"),
    ] {
        let (code, out, errors) = eval(&scene, &arguments, Some(&provider));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{errors}");
        assert!(errors.contains(expected), "{errors}");
    }
}
