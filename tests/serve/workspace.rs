//! The workspace: each scenario of the contract, and which files are searched, as in ripgrep.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_base::call::Call;
use verbatim_engine::{Config, Engine};
use verbatim_server::tools::{self, Answer, Options};

use crate::calls::{has, with};
use crate::corpus::folder;
use crate::program::{Place, Server};

/// Writes the files of a workspace.
fn workspace(files: &[(&str, &str)]) -> TempDir {
    let home = folder();
    for (path, text) in files {
        write(home.path(), path, text.as_bytes());
    }
    home
}

fn write(root: &Path, path: &str, bytes: &[u8]) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

fn engine(workspaces: &[&Path]) -> Engine {
    let workspaces = workspaces.iter().map(|path| path.to_path_buf()).collect();
    Engine::new(Config { workspaces, ..Config::default() })
}

fn call(engine: &Engine, arguments: Value) -> Answer {
    let Value::Object(arguments) = arguments else { panic!("an object") };
    let tool = tools::search_workspace::TOOL;
    tool.call(engine, &Options::default(), &arguments, &Call::default())
}

/// Calls the tool and expects an answer without an error.
#[track_caller]
fn found(root: &Path, arguments: Value) -> String {
    let answer = call(&engine(&[root]), arguments);
    assert!(!answer.is_error, "{}", answer.text);
    assert_eq!(answer.log, None);
    answer.text
}

#[track_caller]
fn refused(root: &Path, arguments: Value) -> String {
    let answer = call(&engine(&[root]), arguments);
    assert!(answer.is_error, "{}", answer.text);
    answer.text
}

/// Returns the conversations in an answer, in order.
fn conversations(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.strip_prefix("**")?.split("** - ").next()).collect()
}

/// The conversations of the contract's first scenario.
const DAYS: &[(&str, &str)] = &[
    ("conversations/2025-11-10/001-brainstorm-feature/notes.md", "about authentication\n"),
    ("conversations/2025-11-10/002-debug-auth/notes.md", "one\ntwo\n  Authentication fails\n"),
    ("conversations/2025-11-11/001-plan-redesign/notes.md", "authentication, again\n"),
];

/// The conversations of the contract's second scenario.
const FORMATS: &[(&str, &str)] = &[
    ("conversations/2025-11/001-old-conversation/a.md", "the feature\n"),
    ("conversations/2025-11-10/001-new-conversation/a.md", "the feature\n"),
    ("conversations/2025-11-11/002-another-new/a.md", "the feature\n"),
    ("conversations/2025-12-01/001-later/a.md", "the feature\n"),
    ("conversations/2024-11/001-earlier/a.md", "the feature\n"),
];

#[test]
fn filter_by_specific_day() {
    let home = workspace(DAYS);
    let day = json!({"query": "authentication", "date_range": "2025-11-10"});
    assert_eq!(
        found(home.path(), day),
        "Found 2 result(s):\n\n\
         **002-debug-auth** - conversations/2025-11-10/002-debug-auth/notes.md:3\n  Authentication fails\n\n\
         **001-brainstorm-feature** - conversations/2025-11-10/001-brainstorm-feature/notes.md:1\n  about authentication\n\n"
    );
}

#[test]
fn filter_by_month_backward_compatibility() {
    let home = workspace(FORMATS);
    let text = found(home.path(), json!({"query": "feature", "date_range": "2025-11"}));
    let expected = ["002-another-new", "001-new-conversation", "001-old-conversation"];
    assert_eq!(conversations(&text), expected);
}

#[test]
fn no_date_filter_specified() {
    let home = workspace(FORMATS);
    let text = found(home.path(), json!({"query": "feature"}));
    let expected = [
        "001-later",
        "002-another-new",
        "001-new-conversation",
        "001-old-conversation",
        "001-earlier",
    ];
    assert_eq!(conversations(&text), expected);
}

#[test]
fn tool_schema_description() {
    let schema = (tools::search_workspace::TOOL.schema)();
    let text = schema["properties"]["date_range"]["description"].as_str().unwrap();
    assert!(text.contains("Supports YYYY-MM (month) or YYYY-MM-DD (day) format."));
    assert!(text.contains("Month format matches all days within that month."));
    assert!(text.contains("Examples: '2025-11' or '2025-11-10'"));
    assert_eq!(schema["required"], json!(["query"]));
}

#[test]
fn ripgrep_glob_pattern_for_day_level_filter() {
    let home = workspace(FORMATS);
    // A folder whose name begins with the day is not that day.
    write(home.path(), "conversations/2025-11-10b/001-x/a.md", b"feature\n");
    write(home.path(), "plan/2025-11-10/003-y/deep/down/a.md", b"feature\n");
    let text = found(home.path(), json!({"query": "feature", "date_range": "2025-11-10"}));
    assert_eq!(conversations(&text), ["003-y", "001-new-conversation"]);
}

#[test]
fn ripgrep_glob_pattern_for_month_level_filter() {
    let days: Vec<(String, &str)> = (1..=31)
        .map(|day| (format!("plan/2025-11-{day:02}/001-day-{day}/a.md"), "feature\n"))
        .chain([("plan/2025-11/001-month/a.md".to_owned(), "feature\n")])
        .collect();
    let files: Vec<(&str, &str)> = days.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let home = workspace(&files);
    let text =
        found(home.path(), json!({"query": "feature", "date_range": "2025-11", "limit": 100}));
    // November has 30 days and a folder for the whole month.
    let mut expected: Vec<String> = (1..=30).rev().map(|day| format!("001-day-{day}")).collect();
    expected.push("001-month".to_owned());
    assert_eq!(conversations(&text), expected);
}

#[test]
fn nothing_found() {
    let home = workspace(DAYS);
    for (arguments, text) in [
        (json!({"query": "it's"}), "'it's'"),
        (json!({"query": "x{9}", "type": "all"}), "'x{9}'"),
        (json!({"query": "zebra", "type": "debug"}), "'zebra' (type: debug)"),
        (json!({"query": "zebra", "date_range": "2025-11"}), "'zebra' (date: 2025-11)"),
        (
            json!({"query": "authentication", "type": "learn", "date_range": "2025-11-10"}),
            "'authentication' (type: learn) (date: 2025-11-10)",
        ),
        (
            json!({"query": "authentication", "type": "../debug"}),
            "'authentication' (type: ../debug)",
        ),
    ] {
        let expected = format!("No results found for query: {text}");
        assert_eq!(found(home.path(), arguments), expected);
    }
}

#[test]
fn types() {
    let home = workspace(DAYS);
    write(home.path(), "debug/2025-11-12/001-login/notes.md", b"authentication\n");
    write(home.path(), "plan/2025-11-12/001-debug-x/notes.md", b"authentication\n");
    let of = |kind| found(home.path(), json!({"query": "authentication", "type": kind}));
    assert_eq!(conversations(&of("debug")), ["001-login", "002-debug-auth"]);
    assert_eq!(conversations(&of("plan")), ["001-debug-x", "001-plan-redesign"]);
    assert_eq!(conversations(&of("all")).len(), 5);
}

#[test]
fn what_lies_where_no_conversation_is_looked_for() {
    let home = workspace(&[("src/main.rs", "authentication\n"), ("notes.md", "authentication\n")]);
    let text = found(home.path(), json!({"query": "authentication"}));
    assert!(text.starts_with(
        "No results found for query: 'authentication'\n\nNo conversation folders found in "
    ));
    assert!(text.contains(&home.path().display().to_string()), "{text}");
    assert!(text.contains("; looked for conversations/DATE/NNN-slug"), "{text}");
    // If there are conversations, the answer is only the contract's line, with any filters.
    let home = workspace(DAYS);
    for filter in
        [json!({"type": "none"}), json!({"date_range": "1999"}), json!({"date_range": "1999-01"})]
    {
        let answer = call(&engine(&[home.path()]), with(json!({"query": "zebra"}), &filter));
        assert!(!answer.text.contains("No conversation folders"), "{}", answer.text);
    }
}

#[test]
fn the_older_layouts() {
    let home = workspace(&[
        ("conversations/brainstorm/2025-11-10/001-a/a.md", "needle\n"),
        ("conversations/debug/2025-11/001-a/deep/a.md", "needle\n"),
        ("conversations/2025-11-11/loose.md", "needle\n"),
        ("plan/2025-11-12/loose.md", "needle\n"),
        ("conversations/debug/notes/2025-11/001-a/a.md", "needle\n"),
    ]);
    let of = |filter: Value| {
        let text = found(home.path(), with(json!({"query": "needle"}), &filter));
        let heads = text.lines().filter_map(|line| line.strip_prefix("**")?.split_once("** - "));
        heads.map(|(_, path)| path.to_owned()).collect::<Vec<_>>()
    };
    let (brainstorm, debug) = (
        "conversations/brainstorm/2025-11-10/001-a/a.md:1",
        "conversations/debug/2025-11/001-a/deep/a.md:1",
    );
    let (loose, plan) = ("conversations/2025-11-11/loose.md:1", "plan/2025-11-12/loose.md:1");
    assert_eq!(of(json!({})), [plan, loose, brainstorm, debug]);
    assert_eq!(of(json!({"type": "debug"})), [debug]);
    assert_eq!(of(json!({"type": "plan"})), [plan]);
    assert_eq!(of(json!({"date_range": "2025-11-10"})), [brainstorm]);
    assert_eq!(of(json!({"date_range": "2025-11"})), [plan, loose, brainstorm, debug]);
    assert_eq!(of(json!({"workspace_path": "conversations/brainstorm"})), [brainstorm]);
}

#[test]
fn wrong_arguments_are_named() {
    let home = workspace(DAYS);
    for (arguments, text) in [
        (json!({}), "Error: query is required: a regular expression"),
        (json!({"query": ""}), "Error: query is required: a regular expression"),
        (json!({"query": 5}), "Error: query takes a regular expression as a string; got 5"),
        (
            json!({"query": "x", "date_range": "November"}),
            "Error: date_range: takes YYYY-MM (month) or YYYY-MM-DD (day); got \"November\"",
        ),
        (
            json!({"query": "x", "date_range": "2025-02-30"}),
            "Error: date_range: there is no date \"2025-02-30\"; it takes YYYY-MM (month) or \
             YYYY-MM-DD (day)",
        ),
        (
            json!({"query": "x", "dates": "2025"}),
            "Error: search_workspace has no argument \"dates\"; it takes query, type, date_range, limit, \
             workspace_path",
        ),
    ] {
        assert_eq!(refused(home.path(), arguments), text);
    }
    for limit in [json!(0), json!("1001"), json!(-3)] {
        let text = format!("Error: limit takes an integer from 1 to 1000; got {limit}");
        assert_eq!(refused(home.path(), json!({"query": "x", "limit": limit})), text);
    }
    let unclosed = refused(home.path(), json!({"query": "a(b"}));
    assert!(unclosed.starts_with("Error: query is not a regular expression"), "{unclosed}");
    assert!(unclosed.contains("a(b\n     ^") && unclosed.contains("unclosed group"), "{unclosed}");
    for query in [r"a\nb", "a\0b", "(?<=a)b", &"(a{1000}){1000}".repeat(3), &"(".repeat(100_000)] {
        refused(home.path(), json!({"query": query}));
    }
    assert_eq!(
        conversations(&found(home.path(), json!({"query": "auth", "limit": "1"}))),
        ["001-plan-redesign"]
    );
    let nowhere = call(&Engine::new(Config::default()), json!({"query": "x"}));
    assert!(nowhere.is_error && nowhere.text.contains("--workspace"), "{}", nowhere.text);
    let missing = refused(&home.path().join("missing"), json!({"query": "x"}));
    assert!(missing.contains("missing"), "{missing}");
}

#[test]
fn expressions_as_ripgrep_reads_them() {
    let home = workspace(&[(
        "plan/2025-11-10/001-a/a.md",
        "École d'été\nfoo123bar\nTotal: 5 €\nline  \n日本語のテスト\ncrlf line\r\n",
    )]);
    let lines = |query: &str| -> Vec<String> {
        let text = found(home.path(), json!({"query": query, "limit": 100}));
        text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
    };
    assert_eq!(lines("éCOLE"), ["École d'été"]);
    assert_eq!(lines(r"\d{3}"), ["foo123bar"]);
    assert_eq!(lines(r"^foo.*r$"), ["foo123bar"]);
    assert_eq!(lines("(?-i)TOTAL"), [""; 0]);
    assert_eq!(lines("本語"), ["日本語のテスト"]);
    assert_eq!(lines(r"\p{Greek}|€"), ["Total: 5 €"]);
    assert_eq!(lines("crlf"), ["crlf line"]);
    assert_eq!(lines("^line"), ["line"]);
    assert_eq!(lines("crlf "), ["crlf line"]);
    assert_eq!(lines(" crlf"), [""; 0]);
    assert_eq!(lines(r"crlf\ "), ["crlf line"]);
}

#[test]
fn no_expression_costs_much() {
    // Random bits, so that a slow expression reaches new states all the time.
    let mut random = 1_u32;
    let mut bit = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        if random >> 31 == 0 { 'a' } else { 'b' }
    };
    let lines: String =
        (0..400).map(|_| (0..1000).map(|_| bit()).collect::<String>() + "\n").collect();
    let home = workspace(&[("conversations/2025-11/001-a/a.md", &lines)]);
    let many = (0..50_000).map(|n| format!("word{n}")).collect::<Vec<_>>().join("|");
    for (query, reason) in [
        (many, "query is too long: 488889 bytes"),
        ("a".repeat(1_000_000), "query is too long: 1000000 bytes, and at most 10000 are allowed"),
        (
            r"\w{1000}{1000}".to_owned(),
            "query is too large: it would take more than 12582912 bytes",
        ),
        (r"\pL".repeat(301), "query has too many classes"),
        (r"(?:[ab]{0,400}a){20}c".to_owned(), "query is too slow to match; repeat less in it"),
    ] {
        let begun = Instant::now();
        let text = refused(home.path(), json!({"query": query}));
        assert!(text.contains(reason), "{text}");
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}: {text}");
    }
    for query in
        [r"\w{50}c", r"\w{100}c", r"[\p{L}\d_]{8,64}c", "(ab){20}c", r"\b(auth|login)\w*\s+=\s+.*"]
    {
        assert_eq!(conversations(&found(home.path(), json!({"query": query}))), [""; 0]);
    }
}

/// File names can contain control characters for the terminal that shows the server's log.
#[cfg(unix)]
#[test]
fn the_log_of_the_server_does_not_control_a_terminal() {
    let home = folder();
    let (place, log) = (Place::in_folder(home.path()), home.path().join("log"));
    let name = "plan/2025-11-10/001-a/\u{1b}[2J\u{202E}\u{9b}long.md";
    write(&home.path().join("notes"), name, "x".repeat(2 << 20).as_bytes());
    let mut command = place.command(&["serve", "--no-watch", "--workspace", "notes"]);
    let stderr = fs::File::create(&log).unwrap();
    let mut server = Server::start(command.current_dir(home.path()).stderr(stderr));
    server.call("search_workspace", &json!({"query": "needle"}));
    let line = "\u{FFFD}[2J\u{FFFD}\u{FFFD}long.md: searched only up to a line";
    let begun = Instant::now();
    // The line is written soon after the answer.
    loop {
        let log = fs::read_to_string(&log).unwrap();
        if log.contains(line) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "{log:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A line is matched in one piece, so there is a longest one.
#[test]
fn a_very_long_line_is_left_out_and_the_answer_says_so() {
    let home = workspace(&[("plan/2025-11-10/001-a/short.md", "a needle\n")]);
    let line = "x".repeat((1 << 20) - 20) + " needle\n";
    write(home.path(), "plan/2025-11-10/002-b/just.md", line.as_bytes());
    assert_eq!(conversations(&found(home.path(), json!({"query": "needle"}))), ["002-b", "001-a"]);
    let long = "a needle\n".to_owned() + &"needle ".repeat(15 << 20);
    write(home.path(), "plan/2025-11-10/003-c/long.md", long.as_bytes());
    let begun = Instant::now();
    let answer = call(&engine(&[home.path()]), json!({"query": "needle|[^x]{60}needle"}));
    assert!(!answer.is_error, "{}", answer.text);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(conversations(&answer.text), ["003-c", "002-b", "001-a"]);
    let why = "003-c/long.md: searched only up to a line that is longer than 1 MB)";
    assert!(answer.text.contains("\n(Left out: "), "{}", answer.text);
    assert!(answer.text.contains(why), "{}", answer.text);
    assert!(answer.log.is_some_and(|log| log.contains("003-c/long.md")));
}

#[test]
fn files_that_ripgrep_leaves_out() {
    let home = workspace(&[
        ("plan/2025-11-10/001-a/seen.md", "needle\n"),
        ("plan/2025-11-10/001-a/.hidden.md", "needle\n"),
        ("plan/2025-11-10/001-a/.git/x.md", "needle\n"),
        ("plan/2025-11-10/.002-hidden/x.md", "needle\n"),
        (".plan/2025-11-10/001-a/x.md", "needle\n"),
        ("plan/2025-11-10/003-b/.ignore", "skipped.md\n"),
        ("plan/2025-11-10/003-b/skipped.md", "needle\n"),
        ("plan/2025-11-10/004-c/.rgignore", "*.log\n!keep.log\n"),
        ("plan/2025-11-10/004-c/x.log", "needle\n"),
        ("plan/2025-11-10/004-c/keep.log", "needle\n"),
        ("plan/2025-11-10/005-d/loose.tmp", "needle\n"),
        ("plan/2025-11-09/001-e/x.md", "needle\n"),
        (".ignore", "/plan/2025-11-09/\n"),
        (".gitignore", "*.tmp\n"),
        ("plan/2025-11-10/loose.md", "needle\n"),
        ("readme.md", "needle\n"),
    ]);
    write(home.path(), "plan/2025-11-10/006-f/binary.bin", b"\0\0needle\nneedle\n");
    write(home.path(), "plan/2025-11-10/007-g/late.bin", b"needle\nrest\0of it\nneedle\n");
    // Matches in the first buffer count, because the NUL byte comes after it.
    let late = format!("needle\n{}\0\nneedle\n", "hay hay\n".repeat(50_000));
    write(home.path(), "plan/2025-11-10/007-g/very-late.bin", late.as_bytes());
    write(home.path(), "plan/2025-11-10/008-h/utf16.md", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    write(home.path(), "plan/2025-11-10/009-i/bom.md", b"\xef\xbb\xbfneedle\n");
    write(home.path(), "plan/2025-11-10/010-j/latin1.md", b"caf\xe9 needle\n");
    let all = || {
        let text = found(home.path(), json!({"query": "needle", "limit": 100}));
        text.lines()
            .filter_map(|line| line.strip_prefix("**"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let expected = [
        "010-j** - plan/2025-11-10/010-j/latin1.md:1",
        "009-i** - plan/2025-11-10/009-i/bom.md:1",
        "008-h** - plan/2025-11-10/008-h/utf16.md:1",
        "007-g** - plan/2025-11-10/007-g/very-late.bin:1",
        "005-d** - plan/2025-11-10/005-d/loose.tmp:1",
        "004-c** - plan/2025-11-10/004-c/keep.log:1",
        "001-a** - plan/2025-11-10/001-a/seen.md:1",
        "loose.md** - plan/2025-11-10/loose.md:1",
    ];
    assert_eq!(all(), expected);
    // `.gitignore` counts only in a repository.
    fs::create_dir(home.path().join(".git")).unwrap();
    let rest: Vec<&str> = expected.into_iter().filter(|line| !line.contains("tmp")).collect();
    assert_eq!(all(), rest);
    let text =
        found(home.path(), json!({"query": "^needle", "date_range": "2025-11-10", "limit": 1}));
    assert!(text.contains("009-i"), "a byte order mark is no part of the line: {text}");
}

#[cfg(unix)]
#[test]
fn links_lead_nowhere() {
    let outside = workspace(&[("secret/2025-11-10/001-s/s.md", "needle\n")]);
    let home = workspace(&[("plan/2025-11-10/001-a/a.md", "needle\n")]);
    let link = |target: &Path, name: &str| {
        std::os::unix::fs::symlink(target, home.path().join(name)).unwrap();
    };
    link(&outside.path().join("secret"), "secret");
    link(&outside.path().join("secret/2025-11-10"), "plan/2025-11-11");
    link(&outside.path().join("secret/2025-11-10/001-s"), "plan/2025-11-10/002-s");
    link(&outside.path().join("secret/2025-11-10/001-s/s.md"), "plan/2025-11-10/001-a/s.md");
    link(home.path(), "plan/2025-11-10/001-a/loop");
    let text = found(home.path(), json!({"query": "needle"}));
    assert_eq!(
        text,
        "Found 1 result(s):\n\n**001-a** - plan/2025-11-10/001-a/a.md:1\n  needle\n\n"
    );
    for named in ["secret", "plan/2025-11-11", "plan/2025-11-10/002-s", "../", "..", "/", "/etc"] {
        let answer = refused(home.path(), json!({"query": "needle", "workspace_path": named}));
        assert!(answer.starts_with("Error: workspace_path: "), "{answer}");
    }
    // The path of a configured workspace may contain a link.
    link(&outside.path().join("."), "elsewhere");
    let text = found(&home.path().join("elsewhere"), json!({"query": "needle"}));
    assert_eq!(conversations(&text), ["001-s"]);
}

#[test]
fn folders_inside_a_workspace() {
    let home = workspace(&[
        ("team/plan/2025-11-10/001-a/a.md", "needle\n"),
        ("team/plan/2025-12/001-b/sub/b.md", "needle\n"),
        ("plan/2025-11-10/001-c/c.md", "needle\n"),
    ]);
    let inside = |named: &str| {
        let text = found(home.path(), json!({"query": "needle", "workspace_path": named}));
        conversations(&text).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(inside("."), ["001-c"]);
    assert_eq!(inside("team"), ["001-b", "001-a"]);
    assert_eq!(inside("team/../team/"), ["001-b", "001-a"]);
    assert_eq!(inside("plan"), ["001-c"]);
    assert_eq!(inside("plan/2025-11-10"), ["001-c"]);
    assert_eq!(inside("plan/2025-11-10/001-c"), ["001-c"]);
    assert_eq!(inside(home.path().join("team").to_str().unwrap()), ["001-b", "001-a"]);
    for named in ["nowhere", "plan/2025-11-10/001-c/c.md", "\0", "~", &"x/".repeat(100_000)] {
        refused(home.path(), json!({"query": "needle", "workspace_path": named}));
    }
}

#[test]
fn several_workspaces_are_one() {
    let one = workspace(&[("plan/2025-11-10/001-a/a.md", "needle\n")]);
    let other = workspace(&[("plan/2025-11-11/001-b/b.md", "needle\n")]);
    let inner = one.path().join("plan");
    let engine = engine(&[one.path(), other.path(), &inner]);
    let answer = call(&engine, json!({"query": "needle"}));
    assert_eq!(conversations(&answer.text), ["001-b", "001-a"]);
    let named = other.path().to_str().unwrap();
    let answer = call(&engine, json!({"query": "needle", "workspace_path": named}));
    assert_eq!(conversations(&answer.text), ["001-b"]);
}

#[test]
fn the_first_lines_of_many() {
    let mut files = Vec::new();
    for day in 1..=28 {
        for number in 1..=3 {
            for name in ["b.md", "a.md"] {
                let path = format!("plan/2025-{:02}-{day:02}/{number:03}-x/{name}", 1 + day % 12);
                files.push((path, "needle one\nhay\nneedle two\n".to_owned()));
            }
        }
    }
    let files: Vec<(&str, &str)> =
        files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let home = workspace(&files);
    let lines = |limit: usize| {
        let text = found(home.path(), json!({"query": "needle", "limit": limit}));
        assert!(text.starts_with(&format!("Found {limit} result(s):\n\n")));
        let (lines, note) = text.rsplit_once("\n\n").unwrap();
        let is_all = limit == 28 * 3 * 2 * 2;
        let more = format!(
            "(Limit {limit} reached; there are more: raise limit or narrow query, type or date_range.)\n"
        );
        assert_eq!(note, if is_all { "" } else { &more });
        lines.split_once("\n\n").unwrap().1.to_owned()
    };
    let all = lines(28 * 3 * 2 * 2);
    let path = "plan/2025-12-23/003-x";
    assert!(all.starts_with(&format!(
        "**003-x** - {path}/a.md:1\n  needle one\n\n**003-x** - {path}/a.md:3\n  needle two\n\n**003-x** - {path}/b.md:1"
    )), "{all}");
    for limit in [1, 2, 3, 10, 35, 90, 200] {
        assert!(all.starts_with(&lines(limit)), "{limit}");
    }
    assert!(found(home.path(), json!({"query": "needle"})).starts_with("Found 10 result(s)"));
}

#[test]
fn answers_stay_short() {
    let long = format!("{} needle {}\n", "x".repeat(50_000), "y".repeat(50_000));
    let home = workspace(&[("plan/2025-11-10/001-a/a.md", &long.repeat(300))]);
    let text = found(home.path(), json!({"query": "needle", "limit": 300}));
    assert!(text.len() < 61_000, "{}", text.len());
    has(&text, &["more lines do not fit here; narrow query, type or date_range"]);
    let shown = conversations(&text).len();
    assert!(text.starts_with(&format!("Found {shown} result(s):")) && shown > 50);
}

#[test]
fn a_search_ends_when_told() {
    let home = folder();
    for day in 1..=28 {
        let path = format!("plan/2025-11-{day:02}/001-a/a.md");
        write(
            home.path(),
            &path,
            format!("{}\n", "aaaaaaaaaaaaaaaaaaaa ".repeat(200)).repeat(2_500).as_bytes(),
        );
    }
    let engine = engine(&[home.path()]);
    let call = Call::default();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            call.stop.request();
        });
        let arguments = json!({"query": "(a.*){30}b$"}).as_object().cloned().unwrap();
        let tool = tools::search_workspace::TOOL;
        let answer = tool.call(&engine, &Options::default(), &arguments, &call);
        done.store(true, Ordering::Relaxed);
        assert_eq!((answer.is_error, answer.text.as_str()), (true, "Error: stopped"));
    });
    assert!(done.load(Ordering::Relaxed));
}
