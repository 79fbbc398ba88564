//! The command line: every flag and typical outputs as golden files.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{ffi::OsString, fs};

use rusqlite::Connection;
use unicode_width::UnicodeWidthStr;
use verbatim_engine::Config;
use verbatim_search::cli::{self, Environment};

use crate::corpus::{folder, folder_with};
use crate::golden::golden;
use crate::program::Place;
use crate::terminal::{output, run, sample};

/// The help of each command names its flags, which the golden file lists with their values.
#[test]
fn every_flag_is_in_the_help_of_its_command() {
    let mut program = cli::command();
    program.build();
    let mut table = String::new();
    let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
    for command in std::iter::once(&program).chain(commands) {
        let name = command.get_name();
        let help = output(&[&[name][..], &["--help"]].concat()[usize::from(name == "verbatim")..]);
        writeln!(table, "{name}").unwrap();
        // Flags of all commands are in the help of the program alone.
        let is_own = |flag: &&clap::Arg| name == "verbatim" || !flag.is_global_set();
        for flag in command.get_arguments().filter(is_own) {
            let short = flag.get_short().map_or(String::new(), |short| format!("-{short} "));
            let values = flag.get_possible_values();
            let values: Vec<&str> = values.iter().map(|value| value.get_name()).collect();
            let line = format!("    {short}{flag} {}", values.join("|"));
            writeln!(table, "{}", line.trim_end()).unwrap();
            let printed = flag.get_long().map_or(String::new(), |long| format!("--{long}"));
            assert!(flag.is_hide_set() || help.contains(&printed), "{name} {flag}: {help}");
        }
    }
    golden("cli/flags.txt", &table);
}

#[test]
fn searching() {
    let (home, path) = folder_with("a.db");
    drop(sample(&path));
    let db = path.to_str().unwrap();
    let places = ["--db", db, "--home", home.path().to_str().unwrap()];
    for (file, arguments) in [
        ("plain", &["borrow checker"][..]),
        ("coloured", &["borrow checker", "--color", "always"]),
        ("unicode", &["フェ", "--color", "always"]),
        ("context", &["because", "-C", "1"]),
        ("json", &["borrow checker", "--json", "--limit", "2"]),
        ("filtered", &["", "--role", "user", "--role", "tool", "--until", "2023-11"]),
    ] {
        let arguments: Vec<&str> =
            ["search"].iter().chain(&places).chain(arguments).copied().collect();
        golden(&format!("cli/search/{file}.txt"), &output(&arguments));
    }
    let count = |arguments: &[&str]| {
        let arguments: Vec<&str> =
            ["search", "--json"].iter().chain(&places).chain(arguments).copied().collect();
        let (code, out) = run(&arguments);
        (code, out.lines().count())
    };
    assert_eq!(count(&["no such words"]), (Ok(1), 0));
    assert_eq!(count(&["", "--limit", "0"]), (Ok(0), 7));
    assert_eq!(count(&["Borrow checker", "--case-sensitive"]), (Ok(0), 1));
    assert_eq!(count(&["--", "--limit"]), (Ok(1), 0));
    assert_eq!(count(&["", "--since", "yesterday"]), (Ok(0), 1));
    assert!(count(&["", "--since", "31.01.2025"]).0.unwrap_err().contains("2025-01-31"));
    assert!(count(&["", "--since", "2024", "--until", "2023"]).0.unwrap_err().contains("after"));
    // The words are one text, which stands for itself.
    assert_eq!(count(&["the", "BORROW", "checker", "-i"]), (Ok(0), 3));
    assert_eq!(count(&["--limit", "9", "--", "the", "borrow"]), (Ok(0), 3));
    assert_eq!(count(&["r_fuse%let"]), (Ok(1), 0));
    assert_eq!(count(&["checker", "-n", "2", "--role", "user"]), (Ok(0), 2));
    assert_eq!(count(&["checker", "-s", "--in", "rust life"]), (Ok(0), 2));
    // An upper-case letter makes the case matter, unless a flag says otherwise.
    assert_eq!(count(&["Borrow checker"]), (Ok(0), 1));
    assert_eq!(count(&["Borrow checker", "-i"]), (Ok(0), 4));
    assert_eq!(count(&["Borrow checker", "-i", "-s"]), (Ok(0), 1));
    assert_eq!(count(&["-e", r"\bborrow\W+CHECKER"]), (Ok(1), 0));
    assert_eq!(count(&["-e", r"\bborrow\W+checker", "-e", "line 1. of"]), (Ok(0), 4));
    assert_eq!(count(&["-e", "^refuse", "--in", "rust life"]), (Ok(0), 1));
    // Without a literal character the case matters too: this class has no lower-case letters.
    assert_eq!(count(&["-e", r"\p{Lu}{2}"]), (Ok(1), 0));
    assert_eq!(count(&["-e", r"\p{Lu}{2}", "-i", "--in", "rust life"]), (Ok(0), 4));
    assert_eq!(count(&["borrow", "-w", "--and", "refuse"]), (Ok(0), 1));
    assert_eq!(count(&["orrow", "-w"]), (Ok(1), 0));
    assert_eq!(count(&["borrow", "--or", "カフェ", "--not", "refuse"]), (Ok(0), 4));
    assert_eq!(count(&["--not", "borrow", "--role", "user"]), (Ok(0), 1));
    assert_eq!(count(&["ｶﾌｪ", "--fold"]), (Ok(0), 1));
    assert_eq!(count(&["ｶﾌｪ"]), (Ok(1), 0));
    for (wrong, says) in [
        (&["-e", "borrow(", "--role", "user"][..], "borrow(\n"),
        (&["-e", "a", "b"], "cannot be used with"),
        (&["-e", "a", "--fold"], "cannot be used with"),
        (&["a", "--mode", "words", "-w"], "--word is for exact search"),
        (&["a", "--mode", "words", "-c"], "--count is for exact search"),
    ] {
        let error = count(wrong).0.expect_err("it is refused");
        assert!(error.contains(says), "{wrong:?}: {error}");
    }
    let counted = |arguments: &[&str]| {
        let arguments: Vec<&str> =
            ["search", "-c"].iter().chain(&places).chain(arguments).copied().collect();
        output(&arguments)
    };
    assert_eq!(counted(&["checker"]), "3\n");
    assert_eq!(counted(&["checker", "-n", "1", "--not", "two"]), "3\n");
    let json = counted(&["checker", "--json"]);
    assert_eq!(json, "{\"messages\":3,\"conversations\":1,\"titles\":1}\n");
    for alias in ["find", "grep"] {
        assert_eq!(
            output(&[alias, "--db", db, "checker"]),
            output(&["search", "--db", db, "checker"])
        );
    }
    assert!(count(&["", "--colour"]).0.is_err());
    let missing = run(&["search", "--db", "nowhere.db", "x"]).0;
    assert_eq!(missing, Err("Database not found: nowhere.db".to_owned()));
}

#[test]
fn showing() {
    let (_home, path) = folder_with("a.db");
    drop(sample(&path));
    let db = path.to_str().unwrap();
    golden("cli/show/rust.md", &output(&["show", "--db", db, "6650a1b2-0001"]));
    let by_prefix = output(&["show", "--db", db, "6650a1b2-0002"]);
    assert_eq!(by_prefix, output(&["show", "--db", db, "日本語の質問"]));
    assert_eq!(output(&["show", "--db", db, "7000"]), output(&["show", "--db", db, "7000ffff"]));
    let several = run(&["show", "--db", db, "6650"]).0.unwrap_err();
    let list = "\n  6650a1b2-0001  Rust lifetimes  (2023-11-14, 4 messages)\n  \
                6650a1b2-0002  日本語の質問  (2024-01-15, 1 message)\n";
    assert!(several.contains(list), "{several}");
    for word in [
        "RUST life",
        "https://chatgpt.com/c/6650a1b2-0001?model=x",
        "<https://claude.ai/chat/6650a1b2-0001>",
        "chatgpt.com/g/g-abc/c/6650a1b2-0001",
    ] {
        assert_eq!(
            output(&["show", "--db", db, word]),
            output(&["show", "--db", db, "6650a1b2-0001"])
        );
    }
    let link = "https://claude.ai/chat/6650a1b2-0001:4";
    assert_eq!(run(&["show", "--db", db, link]), run(&["show", "--db", db, "6650a1b2-0001:4"]));
    let (code, last) = run(&["show", "--db", db, "6650a1b2-0001:4"]);
    assert_eq!((code, last.matches("\n## ").count()), (Ok(0), 3));
    assert!(last.contains("*1 message before this*") && last.contains("\n## 4 · tool"), "{last}");
    let beyond = run(&["show", "--db", db, "6650a1b2-0001:5"]).0.unwrap_err();
    assert!(beyond.contains("the last message of this conversation is 4"), "{beyond}");
    let nothing = run(&["show", "--db", db, "50a1b2"]).0.unwrap_err();
    assert!(nothing.starts_with("no conversation has"), "{nothing}");
}

/// Runs a command over an export and the transcripts of two agents.
fn run_on_all(
    home: &Path,
    arguments: &[&str],
    environment: &Environment,
) -> (Result<u8, String>, String) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/archives");
    let mut all: Vec<OsString> = vec!["verbatim".into(), "--home".into(), home.into()];
    for agent in ["claude", "codex"] {
        all.extend(["--archive".into(), golden.join(agent).into()]);
    }
    all.extend(arguments.iter().map(OsString::from));
    let mut out = Vec::new();
    let code = cli::run(all, environment, &mut out).map_err(|error| error.to_string());
    (code, String::from_utf8(out).unwrap())
}

fn home_with_an_export() -> tempfile::TempDir {
    let home = folder();
    std::fs::create_dir(home.path().join("db")).unwrap();
    let connection = sample(&home.path().join("db/a.db"));
    let sql = "CREATE TABLE verbatim_conversations (conversation_id TEXT, source TEXT, link TEXT);
               INSERT INTO verbatim_conversations
               VALUES ('6650a1b2-0001', 'chatgpt', 'https://chatgpt.com/c/6650a1b2-0001');";
    connection.execute_batch(sql).unwrap();
    home
}

#[test]
fn every_source_is_searched_and_filters_choose() {
    let home = home_with_an_export();
    let environment = Environment::default();
    let search = |arguments: &[&str]| {
        let all: Vec<&str> = ["search", "the", "--json"].iter().chain(arguments).copied().collect();
        let (code, out) = run_on_all(home.path(), &all, &environment);
        let lines = out.lines().map(|line| serde_json::from_str(line).unwrap());
        (code, lines.collect::<Vec<serde_json::Value>>())
    };
    for _ in 0..2 {
        let (_, all) = search(&[]);
        let times: Vec<&str> = all.iter().filter_map(|hit| hit["time"].as_str()).collect();
        assert!(times.is_sorted_by(|a, b| a >= b) && times.len() == all.len(), "{times:?}");
        let from = |source: &str| all.iter().filter(|hit| hit["source"] == source).count();
        assert!(from("export") == 3 && from("archive") > 3, "{all:?}");
        let chatgpt = all.iter().find(|hit| hit["conversation_id"] == "6650a1b2-0001").unwrap();
        assert_eq!(chatgpt["number"], serde_json::json!(4));
        assert_eq!(chatgpt["url"].as_str(), Some("https://chatgpt.com/c/6650a1b2-0001"));
        let count = |arguments: &[&str]| search(arguments).1.len();
        let (claude, codex) = (count(&["--source", "claude-code"]), count(&["--source", "codex"]));
        assert_eq!(claude + codex, from("archive"));
        assert_eq!(count(&["--source", "archive"]), from("archive"));
        assert!(claude > 0 && codex > 0);
        assert_eq!(count(&["--source", "chatgpt"]), 3);
        assert_eq!(count(&["--source", "chatgpt", "--source", "codex"]), 3 + codex);
        assert_eq!(count(&["--source", "codex", "--project", "SHO"]), codex);
        assert_eq!(count(&["--branch", "fix/rounding"]), codex);
        assert_eq!(count(&["--folder", "/code/parser"]), claude);
        assert_eq!(count(&["-n", "2"]), 2);
        let (nowhere, lines) = search(&["--project", "nowhere"]);
        assert!(nowhere.unwrap_err().contains("the project \"nowhere\"; known: parser"));
        assert_eq!(lines, [] as [serde_json::Value; 0]);
        let ranked = search(&["--mode", "words", "--project", "shop"]).1;
        assert!(ranked.iter().all(|hit| hit["source"] == "archive"), "{ranked:?}");
        let text = ["search", "rounding", "--mode", "words", "--color", "always", "-n", "1"];
        let text = run_on_all(home.path(), &text, &environment).1;
        assert!(text.contains("codex · shop@fix/rounding"), "{text}");
        assert!(text.contains("\u{1b}[31mrounding\u{1b}[0m"), "{text}");
        let stats = run_on_all(home.path(), &["stats", "--json"], &environment).1;
        let stats: serde_json::Value = serde_json::from_str(&stats).unwrap();
        assert_eq!(stats["services"]["chatgpt"], 4);
        assert_eq!(stats["services"]["export"], 3);
        let list =
            run_on_all(home.path(), &["list", "--project", "pars", "--json"], &environment).1;
        let is_of_parser = |line: &str| line.contains(r#""project":"parser""#);
        assert!(list.lines().count() > 0 && list.lines().all(is_of_parser), "{list}");
        assert_eq!(run_on_all(home.path(), &["reindex"], &environment).0, Ok(0));
    }
}

#[test]
fn back_to_the_service_and_to_the_agent() {
    let home = home_with_an_export();
    let environment = Environment::default();
    let run = |arguments: &[&str]| run_on_all(home.path(), arguments, &environment);
    let link = "https://chatgpt.com/c/6650a1b2-0001";
    assert_eq!(run(&["open", "6650a1b2-0001:2", "--print"]), (Ok(0), format!("{link}\n")));
    assert_eq!(run(&["open", "7000ffff", "--print"]), (Ok(1), String::new()));
    assert_eq!(run(&["resume", "7000ffff"]), (Ok(1), String::new()));
    let claude = "5f0c9a52-0000-4000-8000-000000000001";
    let command = format!("cd /home/ann/code/parser && claude --resume {claude}");
    assert_eq!(run(&["resume", claude]), (Ok(0), format!("{command}\n")));
    let codex = "01997e76-0000-7000-8000-000000000002";
    assert_eq!(run(&["resume", codex]), (Ok(0), format!("codex resume {codex}\n")));
    assert!(run(&["show", claude]).1.contains(&format!("\nresume: `{command}`\n")));
    assert!(run(&["show", "rust"]).1.contains(&format!("\n<{link}>\n")));
}

#[test]
fn a_number_that_means_nothing_is_refused() {
    let home = home_with_an_export();
    let run = |arguments: &[&str]| {
        run_on_all(home.path(), arguments, &Environment::default()).0.unwrap_err()
    };
    let within = run(&["search", "borrow", "--in", "6650a1b2-0001:2"]);
    assert!(within.contains("not one message: --in 6650a1b2-0001"), "{within}");
    let lines = run(&["show", "6650a1b2-0001:2", "--lines", "1"]);
    assert!(lines.contains("give only one of them"), "{lines}");
    let missing = run(&["export"]);
    assert!(missing.contains("for example: verbatim export my-chats"), "{missing}");
    let negative = run(&["search", "borrow", "--since", "-7d"]);
    assert!(negative.contains("tip: the value has no minus: --since 7d"), "{negative}");
}

#[test]
fn a_terminal_is_told_the_totals_and_pages() {
    let home = home_with_an_export();
    let page = home.path().join("page");
    let terminal = Environment {
        terminal: true,
        columns: Some(60),
        variables: [("PAGER", &*format!("cat > {}", page.display()))].into(),
        ..Environment::default()
    };
    let search = |arguments: &[&str], environment: &Environment| {
        let all: Vec<&str> = ["search", "borrow"].iter().chain(arguments).copied().collect();
        run_on_all(home.path(), &all, environment).1
    };
    assert_eq!(search(&[], &terminal), "");
    let paged = std::fs::read_to_string(&page).unwrap();
    let longest = paged.lines().map(|line| line.chars().count()).max();
    assert!(longest.is_some_and(|longest| longest <= 60), "{paged}");
    assert!(
        paged.ends_with("\n3 messages in 1 conversation, 1 conversation by title\n"),
        "{paged}"
    );
    let no_pager = Environment { variables: [("PAGER", "")].into(), ..terminal.clone() };
    let few = search(&["-n", "2"], &no_pager);
    let totals =
        "2 of 3 messages in 1 conversation, 1 conversation by title;\n  `-n 0` shows all\n";
    assert!(few.ends_with(totals), "{few}");
    assert!(!search(&[], &Environment::default()).contains("messages in"));
}

#[test]
fn a_terminal_shows_the_requested_message_first() {
    let home = home_with_an_export();
    let terminal = Environment {
        terminal: true,
        columns: Some(80),
        variables: [("PAGER", "")].into(),
        ..Environment::default()
    };
    let arguments = ["show", "6650a1b2-0001:4"];
    let (code, shown) = run_on_all(home.path(), &arguments, &terminal);
    assert_eq!(code, Ok(0), "{shown}");
    // The message before takes three lines, and the signs of Markdown are gone.
    let before: Vec<&str> = shown.lines().take_while(|line| !line.contains("4 · tool")).collect();
    assert!(before.len() < 20 && shown.contains(" …\n"), "{shown}");
    assert!(shown.contains("\n1 message before this\n"), "{shown}");
    assert!(shown.contains("6650a1b2-0001 · 4 messages") && !shown.contains("`6650"), "{shown}");
    assert!(shown.contains("\nhttps://chatgpt.com/c/6650a1b2-0001\n"), "{shown}");
    assert!(shown.contains("line 14 of the Borrow Checker"), "{shown}");
}

#[test]
fn lines_fit_every_terminal() {
    let home = home_with_an_export();
    for columns in [16, 20, 30, 40, 59, 60, 80, 100] {
        let terminal = Environment {
            terminal: true,
            columns: Some(columns),
            variables: [("PAGER", "")].into(),
            ..Environment::default()
        };
        let lines = |arguments: &[&str]| -> Vec<String> {
            let (code, out) = run_on_all(home.path(), arguments, &terminal);
            assert_eq!(code, Ok(0), "{arguments:?}: {out}");
            out.lines().map(str::to_owned).collect()
        };
        for arguments in [
            &["list"][..],
            &["search", "the"],
            &["search", "borrow", "-C", "1"],
            &["search", "the borrow", "--mode", "words"],
            &["stats"],
            &["status"],
            &["doctor"],
        ] {
            for line in lines(arguments) {
                // A path is not broken, and its label stays before it.
                let has_long_word = line.split(' ').any(|word| word.width() + 10 > columns);
                let is_command = line.contains('`') || line.starts_with("resume: ");
                let fits = line.width() <= columns || has_long_word || is_command;
                assert!(fits, "{arguments:?} at {columns}: {line:?}");
            }
        }
        // Every width shows the beginning of an id. Wide lines show the source too.
        let found = lines(&["search", "parser"]).join("\n");
        let place = if columns < 80 { "" } else { "claude-code" };
        assert!(found.contains("5f0c9a52") && found.contains(place), "{found}");
        let list = lines(&["list", "-n", "0"]).join("\n");
        assert!(list.contains("6650a1b2") && list.contains(place), "{list}");
        // An id and a command that can be copied are not broken.
        let claude = "5f0c9a52-0000-4000-8000-000000000001";
        let shown = lines(&["show", claude]);
        let of = |text: &str| shown.iter().find(|line| line.contains(text)).unwrap();
        assert!(of(claude).starts_with(claude), "at {columns}: {shown:?}");
        assert!(columns != 40 || !of(" messages").contains(claude), "at {columns}: {shown:?}");
        of(&format!("resume: cd /home/ann/code/parser && claude --resume {claude}"));
        // A mode of the MCP tool `search` means the same here.
        let exact = lines(&["search", "borrow", "--json"]);
        assert_eq!(exact, lines(&["search", "borrow", "--json", "--mode", "text"]));
        // A match at the end of a message is shown.
        let found = lines(&["search", "is gone."]).join("\n");
        assert!(columns < 80 || found.contains("is gone."), "{found}");
    }
}

#[test]
fn the_program_itself() {
    let home = folder();
    std::fs::create_dir(home.path().join("db")).unwrap();
    let path = home.path().join("db/a.db");
    drop(sample(&path));
    let program = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().current_dir(home.path()).args(arguments);
        command
    };
    let found = program(&["search", "checker"]).output().unwrap();
    assert_eq!(found.status.code(), Some(0));
    assert!(!found.stdout.contains(&0x1b), "colours only on a terminal");
    assert_eq!(program(&["search", "no such"]).output().unwrap().status.code(), Some(1));
    for wrong in [&["search"][..], &["search", "x", "--db", "nowhere"], &["colours"], &[]] {
        let answer = program(wrong).output().unwrap();
        assert_eq!((answer.status.code(), answer.stdout.len()), (Some(2), 0), "{wrong:?}");
        assert!(!answer.stderr.is_empty());
    }
    let named = program(&["search", "x"]).env("CONVERSATION_DB", "nowhere.db").output().unwrap();
    let message = String::from_utf8(named.stderr).unwrap();
    assert_eq!(message, "verbatim: Database not found: nowhere.db\n");
    // A reader that closes the pipe while the program has more to write than a pipe holds.
    let connection = Connection::open(&path).unwrap();
    let sql = "UPDATE messages SET content = ?1 WHERE position = 0";
    connection.execute(sql, ["checker\n".repeat(100_000)]).unwrap();
    drop(connection);
    let mut child = program(&["search", "checker", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0));
}

#[test]
fn ranked_search_synchronises_the_transcripts_once() {
    let (folder, place) = Place::temporary();
    drop(sample(&place.db));
    let transcripts = folder.path().join("transcripts");
    std::fs::create_dir(&transcripts).unwrap();
    std::fs::write(transcripts.join("a.jsonl"), "{}").unwrap();
    // A folder stands in place of the database, so every synchronisation reports an error.
    let archives = vec![transcripts.clone()];
    let config = Config { archives, ..place.engine().config().clone() };
    let store = config.archive_database();
    std::fs::create_dir_all(&store).unwrap();
    let mut command = place.command(&["search", "borrow", "--mode", "words"]);
    let output = command.arg("--archive").arg(&transcripts).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    let reports = log.lines().filter(|line| line.contains("cannot write the transcript store"));
    assert_eq!(reports.count(), 1, "{log}");
    assert!(!output.stdout.is_empty());
}

#[test]
fn a_terminal_gets_a_conversation_rendered() {
    let (_home, db) = folder_with("a.db");
    drop(sample(&db));
    let terminal = Environment {
        terminal: true,
        colours: true,
        columns: Some(60),
        variables: [("PAGER", "cat")].into(),
        ..Environment::default()
    };
    let show = |more: &[&str], environment: &Environment| {
        let places = ["verbatim", "--db", db.to_str().unwrap(), "show", "6650a1b2-0001"];
        let arguments = places.iter().chain(more).map(OsString::from);
        let mut out = Vec::new();
        cli::run(arguments, environment, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let shown = show(&[], &terminal);
    assert!(shown.contains("1 · user · 2023-11-14") && !shown.contains("## 1"), "{shown}");
    // Nor have its own lines marks of Markdown.
    assert!(shown.contains("\n6650a1b2-0001 · 4 messages"), "{shown}");
    // Code is in colour, and long lines are wrapped.
    assert!(shown.contains("\u{1b}[36my\u{1b}[0m is gone"), "{shown}");
    assert!(shown.contains("before before\nbefore"), "{shown}");
    // The output of a tool is not changed.
    assert!(shown.contains("\nline 1 of the Borrow Checker\nline 2"), "{shown}");
    let marked = show(&["--match", "BORROW checker"], &terminal);
    assert_eq!(marked.matches("\u{1b}[1m\u{1b}[31m").count(), 16, "{marked}");
    // Raw or in a pipe, the text is not changed.
    let piped = show(&[], &Environment::default());
    assert_eq!(piped, fs::read_to_string("tests/golden/cli/show/rust.md").unwrap());
    let raw = show(&["--raw"], &terminal);
    assert_eq!(raw, piped);
    let coloured = Environment { colours: true, ..Environment::default() };
    let forced = show(&[], &coloured);
    assert!(forced.contains("\u{1b}[36my\u{1b}[0m is gone"), "{forced}");
    let colourless = show(&[], &Environment { colours: false, ..terminal });
    assert!(!colourless.contains('\u{1b}') && colourless.contains("`y` is gone"), "{colourless}");
}
