//! Imported transcripts that are also followed count once; transcripts that an agent deletes are kept.

use std::fs;

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use serde_json::{Value, json};
use verbatim_base::call::Call;
use verbatim_base::model::{Instant, Request};
use verbatim_chats::import::Branches;
use verbatim_engine::{
    Config, Engine, Mode, Question, Reindex, Resources, Scope, SourceKind, StoredTranscripts,
    import,
};
use verbatim_search::cli::{self, Environment};
use verbatim_server::tools::Options;

use crate::calls::{call_with, has};
use crate::corpus::folder;
use crate::transcripts::{Home, line, rollout};

const RESOURCES: Resources = Resources { memory: 64 << 20, threads: 1 };

/// Runs a command on a home with its archive; returns the exit code or the error, and what it printed.
fn run(home: &Home, arguments: &[&str]) -> (Result<u8, String>, String) {
    run_with(home, arguments, &Environment::default())
}

fn run_with(
    home: &Home,
    arguments: &[&str],
    environment: &Environment,
) -> (Result<u8, String>, String) {
    let path = |name: &str| home.folder.path().join(name).to_string_lossy().into_owned();
    let (root, archive) = (path(""), path("archive"));
    let all = ["verbatim", "--home", &root, "--archive", &archive];
    let all = all.iter().chain(arguments).map(std::ffi::OsString::from);
    let mut out = Vec::new();
    let code = cli::run(all, environment, &mut out);
    (code.map_err(|error| error.to_string()), String::from_utf8(out).unwrap())
}

fn json_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A session of two messages, `number` in its id, its times and its texts.
fn session(number: u32, texts: [&str; 2]) -> String {
    let content =
        line(number * 10, "user", texts[0]) + &line(number * 10 + 1, "assistant", texts[1]);
    content.replace("\"session\"", &format!("\"session-{number}\""))
}

/// Copies the archive into the home's database.
fn import_archive(home: &Home) {
    let archive = home.folder.path().join("archive");
    let target = home.engine.config().db_folder().join("verbatim.db");
    import::import(&[archive], &target, Branches::Shown, &|_| {}).unwrap();
}

fn index(engine: &Engine) {
    for source in engine.sources() {
        let options = Reindex { resources: RESOURCES, full: false };
        source.reindex(options, &Call::default(), &mut |_| ()).unwrap();
        source.enrich(RESOURCES, &Call::default(), &mut |_| ()).unwrap();
    }
}

/// Asserts that every answer has each of these conversations once, with these messages in all.
#[track_caller]
fn counts_once(home: &Home, titles: &[&str], messages: u64) {
    let call = Call::default();
    // A new engine is used, because the index of the old one may be out of date.
    let engine = Engine::new(home.engine.config().clone());
    let page = engine.list(&Scope::default(), 0..100, &call).unwrap();
    let mut found: Vec<&str> = page.abouts.iter().map(|about| about.title.as_str()).collect();
    found.sort_unstable();
    assert_eq!((found.as_slice(), page.total), (titles, titles.len()));
    let tally = engine.tally(&Scope::default(), &Instant::day, &call).unwrap();
    assert_eq!((tally.messages, tally.conversations), (messages, titles.len()));
    assert_eq!(tally.roles.values().sum::<u64>(), messages);
    assert_eq!(tally.months.values().sum::<u64>(), messages);
    let question = Question {
        concepts: vec!["whales".to_owned()],
        mode: Mode::Text,
        limit: 100,
        ..Question::default()
    };
    let ranked = engine.rank_conversations(&question, &call).unwrap();
    let mut ids: Vec<&str> = ranked.items.iter().map(|item| item.about.id.as_str()).collect();
    ids.sort_unstable();
    let all = ids.len();
    ids.dedup();
    assert_eq!((ids.len(), all), (titles.len(), titles.len()));
    for about in &page.abouts {
        assert_eq!(engine.find(&call).by_word(&about.id).unwrap().source, about.source);
    }
    let arguments = json!({"mode": "list", "limit": 50});
    let answer = call_with(&engine, "query_conversations", arguments, &Options::default());
    assert_eq!(answer.structured.unwrap()["total"], json!(titles.len()));
    let (code, lines) = run(home, &["search", "whales", "--json", "-n", "0"]);
    assert_eq!((code, lines.lines().count() as u64), (Ok(0), messages));
    let (_, few) = run(home, &["search", "whales", "-n", "3"]);
    assert!(few.lines().count() as u64 >= messages.min(3), "{few}");
}

#[test]
fn imported_and_followed_once() {
    let home = Home::new();
    home.write("p/1.jsonl", session(1, ["blue whales", "whales sing"]));
    home.write("p/2.jsonl", session(2, ["grey whales", "whales dive"]));
    home.sync();
    import_archive(&home);
    let titles = ["blue whales", "grey whales"];
    counts_once(&home, &titles, 4);
    index(&home.engine);
    counts_once(&home, &titles, 4);
    // What the agent adds is found.
    home.append(
        "p/1.jsonl",
        session(3, ["more whales", "all whales"]).replace("session-3", "session-1"),
    );
    home.sync();
    counts_once(&home, &titles, 6);
    index(&home.engine);
    counts_once(&home, &titles, 6);
    // The conversation is found by its id, with the data that only the transcript store has.
    let (code, shown) = run(&home, &["show", "session-1"]);
    assert!(
        code == Ok(0) && shown.contains("all whales") && shown.contains("claude-code"),
        "{shown}"
    );
    // A question to one source gets all conversations of that source.
    for (source, messages) in [("export", 4), ("archive", 6)] {
        let (_, lines) = run(&home, &["search", "whales", "--json", "-n", "0", "--source", source]);
        assert_eq!(lines.lines().count(), messages, "{lines}");
        let lines = json_lines(&lines);
        assert!(lines.iter().all(|line| line["number"].is_u64()), "{lines:?}");
        assert_eq!(run(&home, &["list", "--json", "--source", source]).1.lines().count(), 2);
    }
    // Exact search of the export alone still gives SQLite's answer.
    let mut hits = 0;
    let request = Request { text: "whales".to_owned(), ..Request::default() };
    let take = &mut |_| {
        hits += 1;
        std::ops::ControlFlow::Continue(())
    };
    home.engine.exact(&request, &Call::default(), take).unwrap();
    assert_eq!(hits, 4);
}

#[test]
fn the_newer_state_wins_whichever_source_has_it() {
    let home = Home::new();
    let whole = session(1, ["blue whales", "whales sing"]);
    home.write("1.jsonl", &whole);
    import_archive(&home);
    // The restored file is shorter.
    home.write("1.jsonl", whole.lines().next().unwrap().to_owned() + "\n");
    home.sync();
    counts_once(&home, &["blue whales"], 2);
    let imported = home.engine.find(&Call::default()).by_word("session-1").unwrap();
    assert_eq!((imported.source, imported.turns), (SourceKind::Export, 2));
}

#[test]
fn followed_transcripts_are_not_copied() {
    let home = Home::new();
    home.write("p/1.jsonl", session(1, ["blue whales", "whales sing"]));
    let archive = home.folder.path().join("archive");
    let database = home.engine.config().db_folder().join("verbatim.db");
    for source in [archive.join("p"), archive.clone(), archive.join("p/1.jsonl")] {
        let (code, out) = run(&home, &["import", source.to_str().unwrap()]);
        assert_eq!(code, Ok(0));
        assert!(out.contains("nothing to import") && out.contains("(1 conversation)"), "{out}");
        assert!(!database.exists());
    }
    counts_once(&home, &["blue whales"], 2);
    // Transcripts elsewhere are copied, and those into another database too.
    let elsewhere = home.folder.path().join("elsewhere.jsonl");
    fs::write(&elsewhere, session(2, ["grey whales", "whales dive"])).unwrap();
    let both = ["import", elsewhere.to_str().unwrap(), archive.to_str().unwrap()];
    let (code, out) = run(&home, &both);
    assert!(code == Ok(0) && out.contains("nothing to import"), "{out}");
    counts_once(&home, &["blue whales", "grey whales"], 4);
    let other = home.folder.path().join("other.db");
    let (code, _) =
        run(&home, &["import", "--db", other.to_str().unwrap(), archive.to_str().unwrap()]);
    assert!(code == Ok(0) && other.is_file());
}

/// The ids of the conversations in the store, each with whether its file is gone.
fn kept(home: &Home) -> Vec<(String, bool)> {
    let scope = Scope { sources: vec![SourceKind::Archive], ..Scope::default() };
    let engine = Engine::new(home.engine.config().clone());
    let listed = engine.list(&scope, 0..100, &Call::default()).unwrap().abouts;
    let mut kept: Vec<(String, bool)> =
        listed.into_iter().map(|about| (about.id, about.gone.is_some())).collect();
    kept.sort();
    kept
}

#[track_caller]
fn assert_kept(home: &Home, expected: &[(&str, bool)]) {
    let expected: Vec<_> = expected.iter().map(|(id, gone)| ((*id).to_owned(), *gone)).collect();
    assert_eq!(kept(home), expected);
}

#[test]
fn a_deleted_transcript_is_kept() {
    let home = Home::new();
    let text = session(1, ["blue whales", "whales sing"]);
    home.write("p/1.jsonl", &text);
    home.write("p/2.jsonl", session(2, ["grey whales", "whales dive"]));
    home.sync();
    index(&home.engine);
    fs::remove_file(home.path("p/1.jsonl")).unwrap();
    let report = home.sync();
    assert_eq!((report.removed, report.kept, report.files), (1, 1, 1));
    assert!(report.to_string().ends_with("1 gone, 1 of them kept"), "{report}");
    assert_eq!(home.sync().removed, 0);
    let expected = [("session-1", true), ("session-2", false)];
    assert_kept(&home, &expected);
    counts_once(&home, &["blue whales", "grey whales"], 4);
    // Every command shows that the file is gone.
    let (_, shown) = run(&home, &["show", "session-1"]);
    has(&shown, &["the file is gone (noticed 20", "whales sing"]);
    assert!(!shown.contains("resume:"), "{shown}");
    assert!(run(&home, &["show", "session-2"]).1.contains("resume:"));
    let (_, listed) = run(&home, &["list", "--json"]);
    for listed in json_lines(&listed) {
        assert_eq!(listed["gone"].is_string(), listed["id"] == "session-1", "{listed}");
    }
    assert_eq!(run(&home, &["reindex"]).0, Ok(0));
    let (_, status) = run(&home, &["status", "--json"]);
    let status: Value = serde_json::from_str(&status).unwrap();
    let source = &status["sources"][0];
    assert_eq!((&source["kept"], &source["by_like"]), (&json!(1), &Value::Null));
    assert!(
        run(&home, &["status"]).1.contains("kept: 1 conversation whose transcripts were deleted")
    );
    assert_eq!(run(&home, &["resume", "session-1"]), (Ok(1), String::new()));
    assert_eq!(run(&home, &["resume", "session-2"]).0, Ok(0));
    // The index folder can be deleted at any time.
    fs::remove_dir_all(home.folder.path().join("index")).unwrap();
    home.sync();
    assert_kept(&home, &expected);
    // The file comes back, and is removed again with the whole folder.
    home.write("p/1.jsonl", &text);
    home.sync();
    assert_kept(&home, &[("session-1", false), ("session-2", false)]);
    fs::remove_dir_all(home.folder.path().join("archive")).unwrap();
    assert_eq!(home.sync().removed, 2);
    assert_kept(&home, &[("session-1", true), ("session-2", true)]);
    counts_once(&home, &["blue whales", "grey whales"], 4);
    // A variable switches keeping off, also for conversations that were kept before.
    let off = |text: &str| Environment {
        variables: [("VERBATIM_FORGET_DELETED", text)].into(),
        ..Environment::default()
    };
    assert_eq!(run_with(&home, &["list"], &off("false")).0, Ok(0));
    assert_eq!(run_with(&home, &["list"], &off("true")).0, Ok(1));
    assert_kept(&home, &[]);
}

#[test]
fn what_cannot_be_looked_at_is_not_deleted() {
    let home = Home::new();
    home.write("p/1.jsonl", session(1, ["blue whales", "whales sing"]));
    home.sync();
    let archive = home.folder.path().join("archive");
    let away = home.folder.path().join("away");
    #[cfg(unix)]
    {
        // The folder is a link to itself, so the system cannot list it.
        fs::rename(&archive, &away).unwrap();
        std::os::unix::fs::symlink(&archive, &archive).unwrap();
        let report = home.sync();
        assert_eq!((report.removed, report.failed), (0, 1), "{:?}", report.failures);
        assert_kept(&home, &[("session-1", false)]);
        fs::remove_file(&archive).unwrap();
        fs::rename(&away, &archive).unwrap();
    }
    // Another configuration of the same home has other files, and names those only.
    let stored_transcripts = StoredTranscripts::OfArchives;
    let named = Config { stored_transcripts, ..home.engine.config().clone() };
    let home = Home { engine: Engine::new(named), ..home };
    let other = home.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("2.jsonl"), session(2, ["grey whales", "whales dive"])).unwrap();
    let config = Config { archives: vec![other], ..home.engine.config().clone() };
    let second = Home { engine: Engine::new(config), folder: folder() };
    assert_eq!(second.sync().removed, 0);
    assert_kept(&second, &[("session-2", false)]);
    assert_eq!(home.sync().removed, 0);
    assert_kept(&home, &[("session-1", false)]);
    assert_eq!(
        home.engine.tally(&Scope::default(), &Instant::day, &Call::default()).unwrap().messages,
        2
    );
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_seen_through_a_link_to_a_folder_that_is_gone() {
    let home = Home::new();
    let (agent, link) = (home.folder.path().join("agent"), home.folder.path().join("link"));
    fs::create_dir_all(agent.join("projects")).unwrap();
    std::os::unix::fs::symlink(&agent, &link).unwrap();
    let text = session(1, ["blue whales", "whales sing"]);
    fs::write(agent.join("projects/1.jsonl"), text).unwrap();
    let config = Config { archives: vec![link.join("projects")], ..home.engine.config().clone() };
    let home = Home { engine: Engine::new(config), ..home };
    home.sync();
    assert_kept(&home, &[("session-1", false)]);
    fs::remove_dir_all(agent.join("projects")).unwrap();
    assert_eq!(home.sync().kept, 1);
    assert_kept(&home, &[("session-1", true)]);
}

#[test]
fn a_moved_transcript_is_the_same() {
    let home = Home::new();
    home.write("old/1.jsonl", session(1, ["blue whales", "whales sing"]));
    home.sync();
    let moved = |from: &str, to: &str| fs::rename(home.path(from), home.path(to)).unwrap();
    // The file moves to another folder, gets another name, and grows meanwhile.
    moved("old/1.jsonl", "new/1.jsonl");
    let report = home.sync();
    assert_eq!((report.removed, report.messages), (0, 0));
    moved("new/1.jsonl", "new/other.jsonl");
    let more = session(3, ["more whales", "all whales"]).replace("session-3", "session-1");
    home.append("new/other.jsonl", more);
    let report = home.sync();
    assert_eq!((report.removed, report.messages), (0, 2));
    assert_kept(&home, &[("session-1", false)]);
    // The file moves after the program noticed that it is gone.
    let away = home.folder.path().join("away.jsonl");
    fs::rename(home.path("new/other.jsonl"), &away).unwrap();
    home.sync();
    assert_kept(&home, &[("session-1", true)]);
    fs::copy(&away, home.path("back/other.jsonl")).unwrap();
    home.sync();
    assert_kept(&home, &[("session-1", false)]);
    let about = home.engine.find(&Call::default()).by_word("session-1").unwrap();
    assert!(about.file.unwrap().ends_with("back/other.jsonl"));
    assert_eq!(home.found("whales").len(), 4);
}

#[test]
fn resumed_after_it_was_deleted() {
    let home = Home::new();
    let begun = session(1, ["blue whales", "whales sing"]);
    home.write("1.jsonl", &begun);
    home.sync();
    fs::remove_file(home.path("1.jsonl")).unwrap();
    home.sync();
    // The new file repeats the old one and continues it.
    let resumed = begun + &line(40, "user", "the last of the whales");
    home.write("2.jsonl", resumed.replace("\"session-1\"", "\"session-2\""));
    home.sync();
    assert_kept(&home, &[("session-1", true), ("session-2", false)]);
    assert_eq!(home.found("whales").len(), 3);
}

#[test]
fn a_deleted_fork_leaves_its_origin_whole() {
    let home = Home::new();
    let whole = rollout("s", None, &["one", "two"]);
    home.write("rollout-1.jsonl", &whole);
    home.write("rollout-2.jsonl", rollout("s", None, &["one", "two", "three"]));
    home.sync();
    fs::remove_file(home.path("rollout-2.jsonl")).unwrap();
    home.sync();
    let texts = || {
        let mut texts = home.found("");
        texts.sort();
        texts
    };
    assert_eq!(texts(), ["one", "three", "two"]);
    // The agent compresses the first file, which is then read anew.
    let packed = compress_to_vec(whole.as_bytes(), CompressionLevel::Fastest);
    home.write("rollout-1.jsonl.zst", packed);
    fs::remove_file(home.path("rollout-1.jsonl")).unwrap();
    home.sync();
    assert_eq!(texts(), ["one", "three", "two"]);
    // A damaged compressed file replaces nothing.
    home.write("rollout-9.jsonl", rollout("other", None, &["nine"]));
    home.sync();
    fs::remove_file(home.path("rollout-9.jsonl")).unwrap();
    home.write("rollout-9.jsonl.zst", "no zstd at all");
    home.sync();
    assert_eq!(texts(), ["nine", "one", "three", "two"]);
    // A further fork repeats all messages.
    home.write("rollout-3.jsonl", rollout("s", None, &["one", "two", "four"]));
    home.sync();
    assert_eq!(texts(), ["four", "nine", "one", "three", "two"]);
    // The file is rewritten, and what was read of it is kept.
    home.write("rollout-3.jsonl", rollout("s", None, &["one", "two", "five"]));
    home.sync();
    assert_eq!(texts(), ["five", "four", "nine", "one", "three", "two"]);
}
