//! What `cargo bench --bench ranked` reads and computes: published sets, and the figures of a ranking.

use std::{collections::HashSet, fs, path::PathBuf};

use serde_json::Value;
use tempfile::TempDir;
use verbatim_text::date;

use crate::corpus::folder;
use crate::quality::corpus::{EvalSet, time};
use crate::quality::figures::{Figures, QuestionFigures};
use crate::quality::{lines, locomo, published};

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

/// A folder with files of sets.
struct Sets(TempDir);

impl Sets {
    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

/// Returns the numbers of the questions that have answers, the messages and the conversations of a set.
fn counts(set: &EvalSet) -> [usize; 3] {
    let answered = set.queries.iter().filter(|query| !query.relevant.is_empty());
    [answered.count(), set.corpus.messages(), set.corpus.conversations()]
}

#[test]
fn sets_are_read_as_they_are() {
    let sets = Sets(folder());
    sets.write("locomo10.json", LOCOMO);
    sets.write("longmemeval_s.json", LONGMEMEVAL);
    sets.write("REALTALK/Chat_1.json", REALTALK);
    sets.write("REALTALK/Chat_2.json", REALTALK);
    sets.write("chats/100K/1/chat.json", BEAM_CHAT);
    sets.write("chats/100K/topics.json", "[]");
    sets.write("chats/100K/1/probing_questions/probing_questions.json", BEAM_QUESTIONS);
    for (name, expected) in [
        ("locomo10.json", [2, 4, 2]),
        ("longmemeval_s.json", [1, 3, 2]),
        ("REALTALK", [2, 2, 2]),
        ("chats/100K", [2, 3, 1]),
        ("chats/100K/1", [2, 3, 1]),
    ] {
        assert_eq!(counts(&published::read(&sets.path(name)).unwrap()), expected, "{name}");
    }
    let queries = sets.write("q.jsonl", QUESTIONS);
    let set = lines::read(&queries, &sets.write("c.jsonl", MESSAGES)).unwrap();
    assert_eq!(counts(&set), [2, 3, 2]);
    assert!(set.queries[0].relevant.contains("1") && set.corpus.id("0") == Some("1"));
}

#[test]
fn broken_sets_are_named() {
    let sets = Sets(folder());
    sets.write("empty/none.txt", "");
    sets.write("q.jsonl", QUESTIONS);
    sets.write("cut.json", &LOCOMO[..LOCOMO.len() - 5]);
    sets.write("longmemeval.json", &LONGMEMEVAL.replace(r#""filler"]"#, r#""filler", "more"]"#));
    sets.write("turns.json", &LONGMEMEVAL.replace("role", "rule"));
    sets.write("beam/chat.json", BEAM_CHAT);
    sets.write("wrong/chat.json", "{}");
    for (name, expected) in [
        ("nowhere", "nowhere: "),
        ("q.jsonl", "q.jsonl: has no messages; name their file with --corpus"),
        ("cut.json", "cut.json: not a file of LoCoMo: EOF"),
        ("longmemeval.json", "not a file of LongMemEval: a: 2 sessions with 3 ids"),
        ("turns.json", "turns.json: not a file of LongMemEval: missing field `role` at line"),
        ("beam", "probing_questions.json: "),
        ("wrong", "chat.json: not a file of BEAM: invalid type: map"),
        ("empty", "empty: no chats of BEAM, and no files of LoCoMo's form"),
    ] {
        let error = published::read(&sets.path(name)).err().expect(name);
        assert!(format!("{error:#}").contains(expected), "{name}: {error:#}");
    }
    let corpus = sets.write("c.jsonl", "{\"text\": \"x\"}\n");
    let error = lines::read(&sets.path("q.jsonl"), &corpus).err().expect("no id");
    assert!(format!("{error:#}").contains("c.jsonl:1: no \"id\""), "{error:#}");
}

#[test]
fn figures_are_those_of_the_definitions() {
    let relevant: HashSet<String> = ["a", "b"].map(str::to_owned).into();
    let found = QuestionFigures::of_ranking(&["x", "a", "y", "z", "w", "b"], &relevant);
    let figures = Figures::mean_of(&[found], 0.0);
    assert!((figures.recall_at_5 - 0.5).abs() < 1e-9);
    assert!((figures.recall_at_10 - 1.0).abs() < 1e-9);
    assert!((figures.mrr_at_10 - 0.5).abs() < 1e-9);
    let ideal = 1.0 + 1.0 / 3f64.log2();
    let expected = (1.0 / 3f64.log2() + 1.0 / 7f64.log2()) / ideal;
    assert!((figures.ndcg_at_10 - expected).abs() < 1e-9);
    let missed = QuestionFigures::of_ranking(&["x"], &relevant);
    assert_eq!(format!("{:.3}", Figures::mean_of(&[missed], 0.0).ndcg_at_10), "0.000");
    let figures = Figures::mean_of(&[found, missed], 0.0);
    assert!((figures.recall_at_10 - 0.5).abs() < 1e-9);
}

/// A mean of 400 numbers of which half are 1 has a standard error of 0.025.
#[test]
fn intervals_are_as_wide_as_the_standard_error_says() {
    let relevant: HashSet<String> = ["a".to_owned()].into();
    let questions: Vec<QuestionFigures> =
        (0..400).map(|at| QuestionFigures::of_ranking(&["a"][at % 2..], &relevant)).collect();
    let figures = Figures::mean_of(&questions, 0.0);
    let [low, high] = figures.recall_at_10_interval;
    let half = 1.96 * 0.025;
    assert!((low - (0.5 - half)).abs() < 0.007 && (high - (0.5 + half)).abs() < 0.007);
    assert_eq!(Figures::mean_of(&questions, 0.0).recall_at_10_interval, [low, high]);
    assert_eq!(Figures::mean_of(&questions[..1], 0.0).mrr_at_10_interval, [1.0, 1.0]);
}

#[test]
fn evidence_is_read_as_it_is_written() {
    for (evidence, expected) in [
        ("D1:3", &["D1:3"][..]),
        ("D8:6; D9:17", &["D8:6", "D9:17"]),
        ("D30:05", &["D30:5"]),
        ("D20:6.", &["D20:6"]),
        ("D13:45:D20:19", &["D13:45", "D20:19"]),
        ("D:56", &[]),
        ("", &[]),
    ] {
        assert_eq!(locomo::turns_in(evidence).collect::<Vec<_>>(), expected, "{evidence}");
    }
}

#[test]
fn times_are_read_as_they_come() {
    for (value, expected) in [
        (Value::from("1:56 pm on 8 May, 2023"), Some("2023-05-08T13:56:00Z")),
        (Value::from("May 8th 2023"), Some("2023-05-08T00:00:00Z")),
        (Value::from("12:05 am, 1 January 2024"), Some("2024-01-01T00:05:00Z")),
        (Value::from("2023-05-08T13:56:00Z"), Some("2023-05-08T13:56:00Z")),
        (Value::from("2023/05/08"), Some("2023-05-08T00:00:00Z")),
        (Value::from("2023/05/08 (Mon) 13:56"), Some("2023-05-08T13:56:00Z")),
        (Value::from(1_683_554_160), Some("2023-05-08T13:56:00Z")),
        (Value::from(1_683_554_160_000i64), Some("2023-05-08T13:56:00Z")),
        (Value::from("the day after"), None),
        (Value::Null, None),
    ] {
        let found = time(&value).and_then(date::to_iso);
        let same = match (found.as_deref(), expected) {
            (Some(found), Some(expected)) => found.starts_with(&expected[..19]),
            (found, expected) => found == expected,
        };
        assert!(same, "{value}: {found:?}");
    }
}
