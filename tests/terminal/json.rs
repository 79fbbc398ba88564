//! `--json`: the output of the program has the shapes in docs/json.md.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use verbatim_search::cli;

use crate::corpus::database;
use crate::exports::zip_of;
use crate::scene::{CHAT, Scene};
use crate::terminal::output;

/// Commands without `--json`: they print no data for programs, or what other programs read as it is.
const WITHOUT: [&str; 10] = [
    "demo",
    "import",
    "reindex",
    "export",
    "connect",
    "disconnect",
    "serve",
    "web",
    "watch",
    "completions",
];

/// Keys that no test sees: they are there only while another process refreshes an index.
const UNSEEN: [&str; 2] = ["sources[].at_work.process", "sources[].at_work.since"];

/// The shapes of docs/json.md: by section, the types of the keys.
struct Shapes {
    sections: BTreeMap<String, BTreeMap<String, String>>,
    seen: RefCell<BTreeSet<(String, String)>>,
}

impl Shapes {
    fn of(text: &str) -> Shapes {
        let mut sections: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
        let mut section = None;
        for line in text.lines() {
            if let Some(heading) = line.strip_prefix("## ") {
                section = Some(heading.trim_matches('`').to_owned());
            } else if let (Some(section), Some(row)) = (&section, line.strip_prefix("| `")) {
                let (key, rest) = row.split_once("` | ").expect("a key");
                let (types, _) = rest.split_once(" |").expect("types");
                let keys = sections.entry(section.clone()).or_default();
                let before = keys.insert(key.to_owned(), types.to_owned());
                assert_eq!(before, None, "{section}: {key} is there twice");
            }
        }
        Shapes { sections, seen: RefCell::default() }
    }

    /// Compares every object that a command printed with a section.
    #[track_caller]
    fn compare(&self, section: &str, text: &str) -> Vec<Value> {
        let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let values: Vec<Value> = values.map(|value| value.expect("JSON")).collect();
        assert!(!values.is_empty(), "{section} printed nothing");
        for value in &values {
            assert!(value.is_object(), "{section}: {value}");
            self.check(section, "", value);
        }
        values
    }

    /// Compares a value and what it holds with the rows of a section. That all keys of the types are there
    /// follows from the types, which the document is made from.
    #[track_caller]
    fn check(&self, section: &str, path: &str, value: &Value) {
        let keys = self.sections.get(section).unwrap_or_else(|| panic!("no section {section}"));
        let kind = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let is_item = path.is_empty() || path.ends_with("[]");
        let types = match keys.get(path) {
            Some(types) => types.as_str(),
            None if is_item => "object",
            None => panic!("{section}: {path:?} is not in docs/json.md, and is {value}"),
        };
        assert!(
            types.split(" or ").any(|known| known == kind),
            "{section}: {path:?} is {types} in docs/json.md, and is {value}"
        );
        self.seen.borrow_mut().insert((section.to_owned(), path.to_owned()));
        let start = if path.is_empty() { String::new() } else { format!("{path}.") };
        let names = format!("{start}*");
        match value {
            Value::Array(items) => {
                items.iter().for_each(|item| self.check(section, &format!("{path}[]"), item));
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    let key = format!("{start}{name}");
                    let key = if keys.contains_key(&names) { &names } else { &key };
                    self.check(section, key, field);
                }
            }
            _ => {}
        }
    }

    /// Asserts that every key of every section was seen.
    fn all_seen(&self) {
        let seen = self.seen.borrow();
        let keys = self
            .sections
            .iter()
            .flat_map(|(section, keys)| keys.keys().map(move |key| (section.clone(), key.clone())));
        let unseen: Vec<_> =
            keys.filter(|key| !seen.contains(key) && !UNSEEN.contains(&key.1.as_str())).collect();
        assert!(unseen.is_empty(), "docs/json.md has keys that nothing printed: {unseen:?}");
    }
}

fn shapes() -> Shapes {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/json.md");
    Shapes::of(&fs::read_to_string(path).unwrap())
}

/// Runs a command that ends with an exit code; returns its output.
#[track_caller]
fn printed(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_command_prints_what_the_document_says() {
    let (scene, shapes) = (Scene::imported(), shapes());
    let compare = |section: &str, arguments: &[&str], code: i32| {
        let arguments: Vec<&str> = arguments.iter().chain(&["--json"]).copied().collect();
        let text = printed(&mut scene.command(&arguments), code);
        shapes.compare(&format!("verbatim {section} --json"), &text)
    };
    searches(&compare);
    // A database that is passed over, and an export that was not imported.
    let db = scene.path(".local/share/verbatim/db");
    drop(database(&db.join("old.db"), &["red"]));
    let older = fs::File::options().write(true).open(db.join("old.db")).unwrap();
    older.set_modified(UNIX_EPOCH).unwrap();
    let export = crate::exports::chat("new", 1.0, &["red"]);
    fs::write(db.join("new.zip"), zip_of(&[("conversations.json", export.as_bytes())])).unwrap();
    // A file that was written a moment ago may still be growing.
    let newer = fs::File::options().write(true).open(db.join("new.zip")).unwrap();
    newer.set_modified(SystemTime::now() + Duration::from_secs(3_600)).unwrap();
    compare("status", &["status"], 0);
    compare("doctor", &["doctor"], 0);
    settings(&scene, &shapes, &compare);
    shapes.all_seen();
}

/// Compares what a command prints with a section; returns the objects.
type Compare<'a> = &'a dyn Fn(&str, &[&str], i32) -> Vec<Value>;

fn searches(compare: Compare<'_>) {
    compare("search", &["search", "borrow", "checker"], 0);
    compare("search", &["search", "parser", "--source", "archive"], 0);
    compare("search -l", &["search", "borrow", "-l"], 0);
    compare("search --mode both", &["search", "lifetimes", "--mode", "both"], 0);
    compare("search --mode both", &["search", "parser", "--mode", "words"], 0);
    compare("list", &["list", "-n", "0"], 0);
    compare("show", &["show", CHAT], 0);
    compare("show", &["show", "Baking"], 0);
    let stats = compare("stats", &["stats"], 0);
    assert_eq!(stats[0]["models"]["gpt-4o"], 4);
    compare("stats", &["stats", "--source", "threads"], 1);
    compare("open", &["open", CHAT], 0);
    let open = compare("open", &["open", "bb32"], 1);
    assert_eq!(open[0]["url"], Value::Null);
    let resume = compare("resume", &["resume", "bb32"], 0);
    assert!(resume[0]["command"].as_str().unwrap().starts_with("cd /home/ann/shop && claude"));
    compare("resume", &["resume", CHAT], 1);
}

fn settings(scene: &Scene, shapes: &Shapes, compare: Compare<'_>) {
    let file = scene.path("config.toml");
    fs::write(&file, "exclude = [\"shop\"]\ntools = [\"read\"]\n").unwrap();
    let mut command = scene.command(&["status", "--json"]);
    let text = printed(command.env("VERBATIM_CONFIG", &file), 0);
    shapes.compare("verbatim status --json", &text);
    compare("search -c", &["search", "borrow", "-c"], 0);
    compare("forget", &["forget", CHAT, "--yes"], 0);
    let list = compare("forget --list", &["forget", "--list"], 0);
    let id = list[0]["id"].as_str().unwrap().to_owned();
    compare("forget --undo", &["forget", "--undo", &id], 0);
}

#[test]
fn a_match_has_the_messages_around_it() {
    let scene = Scene::imported();
    for mode in ["exact", "words"] {
        let arguments = ["search", "bread", "--mode", mode, "--json", "-C", "1"];
        let text = printed(&mut scene.command(&arguments), 0);
        let found: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        let context = found["context"].as_array().unwrap();
        let numbers: Vec<_> = context.iter().map(|message| &message["number"]).collect();
        assert_eq!(numbers, [2], "{mode}: {found}");
        assert_eq!(context[0]["role"], "assistant");
        assert!(context[0]["content"].as_str().unwrap().starts_with("Four hours"), "{found}");
    }
}

#[test]
fn every_command_has_json_and_a_section() {
    let shapes = shapes();
    for command in cli::command().get_subcommands() {
        let name = command.get_name();
        let has_json = output(&[name, "--help"]).contains("--json");
        assert_eq!(has_json, !WITHOUT.contains(&name), "{name}: --json");
        let start = format!("verbatim {name} ");
        let has_section = shapes.sections.keys().any(|section| section.starts_with(&start));
        assert_eq!(has_section, has_json, "{name}: a section of docs/json.md");
    }
}
