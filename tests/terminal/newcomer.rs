//! The first contact of a new user with the program: help texts, mistakes, and missing files.

use std::process::Command;

use pty_process::blocking::Command as PtyCommand;
use verbatim_search::cli;

use crate::corpus::{database, folder};
use crate::pty::OnTerminal;
use crate::scene::{CHAT, Scene};
use crate::threads;

/// Runs a command; returns its exit code, its output and its errors.
fn told(command: &mut Command) -> (Option<i32>, String, String) {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_short_help_has_examples_and_few_options() {
    let scene = Scene::new();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments)).1;
    let help = run(&["--help"]);
    let commands = help.split("\nSearch:\n").nth(1).unwrap().split("\nOptions:\n").next().unwrap();
    let names = commands.lines().filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<&str> = names.map(|line| line.split_whitespace().next().unwrap()).collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names.into_iter().filter(|name| *name != "verbatim") {
        let [short, long] = ["-h", "--help"].map(|flag| run(&[name, flag]));
        let examples = |help: &str| -> Vec<String> {
            let lines = help.split("\nUsage: ").next().unwrap().lines();
            lines.filter(|line| line.starts_with("    ")).map(str::to_owned).collect()
        };
        assert_eq!(examples(&short), examples(&long), "{name}");
        assert!(!examples(&short).is_empty(), "{name} has no example");
        let options = short.split("\nOptions:\n").nth(1).unwrap().lines();
        let options = options.take_while(|line| !line.is_empty());
        let is_option =
            |line: &&str| line.trim_start().starts_with('-') && !line.contains("--help");
        let shown = options.filter(is_option).count();
        assert!(shown <= 10, "{short}");
        // The short help says how many options it leaves out.
        let is_option = |line: &&str| line.starts_with("  -") || line.starts_with("      -");
        let all = long.split("\nOptions:\n").nth(1).unwrap().lines().filter(is_option);
        let hidden = all.filter(|line| !line.contains("--help")).count() - shown;
        let said = match hidden {
            0 => "\n".to_owned(),
            1 => format!("\n1 more option: `verbatim {name} --help`\n"),
            _ => format!("\n{hidden} more options: `verbatim {name} --help`\n"),
        };
        assert!(short.contains(&said), "{name}: {hidden}\n{short}");
        assert_eq!(short.contains(" more option"), hidden > 0, "{short}");
    }
    let search = run(&["search", "-h"]);
    assert!(search.contains("    verbatim search borrow checker --since 30d\n"));
    for flag in
        ["-e", "-w", "--mode", "--project", "--in", "--role", "--since", "-n", "-C", "--json"]
    {
        assert!(search.contains(&format!(" {flag}")), "{flag}: {search}");
    }
}

#[test]
fn a_database_is_refused_where_none_is_read() {
    let scene = Scene::imported();
    for command in
        [&["demo"][..], &["connect"], &["connect", "cursor", "--http"], &["disconnect", "cursor"]]
    {
        let (code, out, errors) = told(&mut scene.command(&[command, &["--db", "x.db"]].concat()));
        assert!(code == Some(2) && out.is_empty(), "{command:?}: {out}");
        assert!(errors.contains("no database, so leave out --db"), "{command:?}: {errors}");
    }
}

#[test]
fn mistakes_are_answered_with_what_helps() {
    let scene = Scene::imported();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments));
    let (code, _, errors) = run(&["python"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("tip: to find that text in your chats: verbatim search python"),
        "{errors}"
    );
    let (_, _, errors) = run(&["serach"]);
    assert!(errors.contains("'search'") && errors.contains("verbatim search serach"), "{errors}");
    let (_, _, errors) = run(&["-n", "3", "vector"]);
    assert!(errors.contains("tip: flags follow their command: verbatim search -n 3 vector\n"));
    let (_, _, errors) = run(&["search", "-F", "100%"]);
    assert!(errors.contains("leave this flag out") && !errors.contains("-- -F"), "{errors}");
    let (_, _, errors) = run(&["show", CHAT, "--web"]);
    assert!(errors.contains("verbatim open CONVERSATION"), "{errors}");
    for (arguments, tip) in [
        (["search", "x", "-n", "x"], "write a whole number, such as 20"),
        (["search", "x", "-e", "y"], "the expression takes the place of the words"),
        (["search", "x", "-w", "--since"], "for example 7d, yesterday, 2025-01"),
    ] {
        let (code, _, errors) = run(&arguments);
        assert!(code == Some(2) && errors.contains(tip), "{errors}");
    }
    let (_, _, errors) = run(&["../Downloads/claude.zip"]);
    assert!(errors.contains("to import that: verbatim import ../Downloads/claude.zip"), "{errors}");
    let (_, _, errors) = run(&["https://chatgpt.com/c/1"]);
    assert!(errors.contains("conversation: verbatim show https://chatgpt.com/c/1"), "{errors}");
    let (_, _, errors) = run(&["show", "nonsense"]);
    assert!(errors.contains("`verbatim search nonsense`"), "{errors}");
    let (_, _, errors) = run(&["hello", "big world"]);
    assert!(errors.contains("verbatim search hello 'big world'\n"), "{errors}");
    let (code, _, errors) = run(&["--search", "big world"]);
    assert!(code == Some(2) && errors.contains("verbatim search 'big world'\n"), "{errors}");
    assert!(!errors.contains("--archive"), "{errors}");
    let (_, _, errors) = run(&["uninstall"]);
    assert!(errors.contains("`verbatim disconnect CLIENT`"), "{errors}");
    let (_, _, errors) = run(&["disconnect"]);
    assert!(errors.contains("`verbatim connect` lists the AI clients"), "{errors}");
    let (code, _, errors) = run(&["show"]);
    assert!(
        code == Some(2) && errors.contains("`verbatim list` and `verbatim search` print the ids")
    );
    let (_, _, errors) = run(&["search"]);
    assert!(errors.contains("tip: for example: verbatim search borrow checker"), "{errors}");
    let (code, _, errors) = run(&["forget", "--list"]);
    assert_eq!((code, errors.as_str()), (Some(0), "verbatim: nothing was forgotten so far\n"));
    let elsewhere = scene.path("no-database");
    std::fs::create_dir(&elsewhere).unwrap();
    let (_, _, errors) = run(&["search", "vector", "--db", elsewhere.to_str().unwrap()]);
    assert!(errors.contains("no-database is a folder"), "{errors}");
    let (code, _, errors) = run(&["import", "-"]);
    assert!(code == Some(2) && errors.contains("not from standard input; save it"), "{errors}");
    let mut open = scene.command(&["open", CHAT]);
    let (code, out, errors) = told(open.env("PATH", "/nowhere").env_remove("BROWSER"));
    assert!(code == Some(2) && out.starts_with("https://chatgpt.com/c/"), "{out}");
    assert!(errors.ends_with(": none could be started; open the address yourself\n"), "{errors}");
    let (code, _, errors) = run(&["list", "vector"]);
    assert!(code == Some(2) && errors.contains("verbatim search vector\n"), "{errors}");
    let (code, _, errors) = run(&["forget", CHAT]);
    assert!(code == Some(2) && errors.contains("no terminal to ask"), "{errors}");
    let (_, _, errors) = run(&["search", "pastry", "--mode", "both"]);
    assert!(errors.contains("no message has “pastry”; nearest by meaning:"), "{errors}");
    let (_, lines, _) = run(&["search", "pastry", "--mode", "both", "--json"]);
    assert!(lines.lines().all(|line| line.contains(r#""absent_words":["pastry"]"#)), "{lines}");
    let (_, lines, _) = run(&["search", "vector", "--mode", "both", "--json"]);
    assert!(lines.contains("\"far\":false") && !lines.contains("absent_words"), "{lines}");
}

#[test]
fn what_is_far_stands_below_a_line() {
    let scene = Scene::imported();
    let path = scene.path("turtles.db");
    let texts = [
        "Sea turtles swim over the reef.",
        "The turtles of the reef eat grass.",
        "An aquarium shows fish and corals of the ocean.",
        "The invoice is due on Friday.",
        "Green soup with bread for dinner.",
    ];
    drop(database(&path, &texts));
    let question =
        ["search", "turtles of the reef", "--mode", "both", "--db", path.to_str().unwrap()];
    let run = |more: &[&str]| told(&mut scene.command(&[&question[..], more].concat())).1;
    let text = run(&[]);
    let (line, near) = (text.find("\nfurther away:\n"), text.rfind("turtles"));
    assert!(line.is_some() && near < line, "{text}");
    assert_eq!(text.matches("further away:").count(), 1, "{text}");
    let far: Vec<bool> =
        run(&["--json"]).lines().map(|line| line.contains("\"far\":true")).collect();
    assert!(far[..2] == [false; 2] && far.last() == Some(&true) && far.is_sorted(), "{far:?}");
}

#[test]
fn what_is_left_out_is_said_last() {
    let scene = Scene::imported();
    let (path, many) = (scene.path("both"), scene.path("many.db"));
    drop(database(&many, &["e"; 60]));
    let many = many.to_str().unwrap();
    for (arguments, notes) in [
        (&["search", "e", "--db", many][..], 1),
        (&["search", "e", "--db", many, "--json"], 1),
        // Who gives a limit knows that there may be more.
        (&["list", "-n", "1"], 0),
        (&["search", "e", "-n", "1"], 0),
    ] {
        let file = std::fs::File::create(&path).unwrap();
        let mut command = scene.command(arguments);
        command.stdout(file.try_clone().unwrap()).stderr(file).status().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let last = text.lines().last().unwrap();
        assert_eq!(last.starts_with("verbatim: "), notes == 1, "{text}");
        assert_eq!(text.matches("verbatim: ").count(), notes, "{text}");
    }
}

#[test]
fn a_thread_without_messages_is_examined() {
    let scene = Scene::imported();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments));
    threads::record(&scene.path(".local/share/verbatim"), "a topic", None);
    assert_eq!(run(&["reindex"]).0, Some(0));
    let (code, out, errors) = run(&["doctor"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("0 messages and 0 searches compared"), "{out}");
}

#[test]
fn helps_leave_the_places_to_the_program() {
    let scene = Scene::new();
    let help = |arguments: &[&str]| told(&mut scene.command(arguments)).1;
    for arguments in [&["search", "-h"][..], &["search", "--help"]] {
        let text = help(arguments);
        assert!(!text.contains("--archive <FOLDER>"), "{text}");
    }
    assert!(help(&["list", "-h"]).contains("Where the data is: --db, --home, --archive"));
    assert!(help(&["-h"]).contains("--archive <FOLDER>"));
    // The flags are accepted before the command and after it.
    let home = scene.path("elsewhere");
    std::fs::create_dir(&home).unwrap();
    let home = home.to_str().unwrap();
    for arguments in [["--home", home, "status"], ["status", "--home", home]] {
        assert!(help(&arguments).contains(&format!("home: {home}\n")));
    }
    let lines = help(&["search", "-h"]).lines().count();
    assert!(lines < 60, "{lines} lines");
}

#[test]
fn without_an_export_nothing_is_wrong() {
    let empty = folder();
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", empty.path()).current_dir(empty.path()).args(["search", "x"]);
    let (code, _, errors) = told(&mut command);
    assert!(
        code == Some(2) && errors.starts_with("verbatim: no chats are imported yet; "),
        "{errors}"
    );
    // The sample is no chat of the user: a search of it names its database.
    let mut demo = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    demo.env_clear().env("HOME", empty.path()).current_dir(empty.path()).arg("demo");
    let (_, out, _) = told(&mut demo);
    let typed = out.lines().find_map(|line| line.strip_prefix("To search the sample yourself: "));
    let words: Vec<&str> = typed.unwrap().split(' ').skip(1).collect();
    let mut search = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    search.env_clear().env("HOME", empty.path()).current_dir(empty.path()).args(words);
    let (code, out, errors) = told(&mut search);
    assert!(code == Some(0) && out.contains("Borrow checker"), "{out}{errors}");
    // The transcripts of coding agents are chats too.
    let scene = Scene::new();
    assert_eq!(told(&mut scene.command(&["list"])).0, Some(0));
    let (code, out, _) = told(&mut scene.command(&["doctor"]));
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("note   database: no export is imported yet; transcripts"), "{out}");
}

#[test]
fn an_unknown_model_stops_only_what_needs_it() {
    let scene = Scene::imported();
    let run =
        |arguments: &[&str]| told(scene.command(arguments).env("VERBATIM_EMBEDDINGS", "nonsense"));
    for arguments in
        [&["list"][..], &["show", CHAT], &["stats"], &["status"], &["status", "--settings"]]
    {
        assert_eq!(run(arguments).0, Some(0), "{arguments:?}");
    }
    let (code, _, errors) = run(&["search", "vector", "--mode", "both"]);
    assert!(code == Some(2) && errors.contains("VERBATIM_EMBEDDINGS: "), "{errors}");
    let (code, out, _) = run(&["doctor"]);
    assert!(code == Some(1) && out.contains("WRONG  embeddings: VERBATIM_EMBEDDINGS: "), "{out}");
}

#[test]
fn a_question_to_one_source_indexes_that_one() {
    let scene = Scene::new();
    told(&mut scene.command(&["import", "--yes"]));
    std::fs::remove_dir_all(scene.path(".local/share/verbatim/index")).unwrap();
    let ask = ["search", "vector", "--mode", "both", "--source", "export"];
    let (code, _, errors) = told(&mut scene.command(&ask));
    assert_eq!(code, Some(0), "{errors}");
    let entries = std::fs::read_dir(scene.path(".local/share/verbatim/index")).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    let is_indexed =
        |start: &str| names.iter().any(|name| name.to_string_lossy().starts_with(start));
    assert!(is_indexed("verbatim-") && !is_indexed("transcripts-"), "{names:?}");
}

#[test]
fn an_import_of_nothing_new_says_what_is_there() {
    let scene = Scene::new();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments));
    assert_eq!(run(&["import", "--yes"]).0, Some(0));
    std::fs::remove_dir_all(scene.path(".local/share/verbatim/index")).unwrap();
    assert!(run(&["status"]).1.contains("there is no index of this database"));
    // An earlier import may have been stopped before its index was complete.
    let (code, out, errors) = run(&["import"]);
    assert!(code == Some(0) && out.contains("Nothing is new."), "{out}{errors}");
    assert!(run(&["status"]).1.contains("by its index, which is current"));
    let home = folder();
    std::fs::create_dir_all(home.path().join(".claude/projects")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home.path()).current_dir(home.path()).arg("import");
    let (code, out, _) = told(&mut command);
    assert_eq!(code, Some(1));
    assert!(!out.contains("can be searched now"), "{out}");
}

#[test]
fn an_import_without_exports_indexes_the_transcripts() {
    let scene = Scene::new();
    std::fs::remove_dir_all(scene.path("Downloads")).unwrap();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments));
    let (code, out, errors) = run(&["import"]);
    assert_eq!(code, Some(0), "{out}{errors}");
    assert!(out.contains("No export of ChatGPT or Claude.ai found"), "{out}");
    let of = "conversations of Claude Code and Codex can be searched now: verbatim search TEXT";
    assert!(out.contains(of), "{out}");
    assert!(run(&["status"]).1.contains("by its index, which is current"));
}

#[test]
fn a_search_indexes_transcripts_that_are_long() {
    let scene = Scene::new();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments));
    assert_eq!(run(&["search", "login"]).0, Some(0));
    assert!(run(&["status"]).1.contains("without an index, which so few need only for"));
    let text = "a long tale of copper kettles ".repeat(4_000);
    let line = |number: u32| {
        format!(
            r#"{{"type":"user","uuid":"k{number}","sessionId":"k","timestamp":"2025-10-30T11:00:00Z","message":{{"content":"{number} {text}"}}}}"#
        ) + "\n"
    };
    let lines: String = (0..60).map(line).collect();
    scene.write(".claude/projects/-x/k.jsonl", lines);
    let (code, _, errors) = run(&["search", "copper kettles"]);
    assert!(code == Some(0) && !errors.contains("index"), "{errors}");
    let (_, out, _) = run(&["status"]);
    assert!(out.contains("by its index, which is current"), "{out}");
    // What an agent adds is indexed by the next search.
    scene.write(".claude/projects/-x/l.jsonl", line(61).replace("\"k\"", "\"l\""));
    assert_eq!(run(&["list"]).0, Some(0));
    let (_, out, _) = run(&["status"]);
    assert!(out.contains("the next search of the transcripts brings the index"), "{out}");
    assert_eq!(run(&["search", "copper kettles"]).0, Some(0));
    assert!(run(&["status"]).1.contains("by its index, which is current"));
}

#[test]
fn an_import_accounts_for_every_conversation() {
    let scene = Scene::new();
    let chat = |id: &str, messages: &str| {
        format!(r#"{{"uuid": "{id}", "name": "{id}", "chat_messages": [{messages}]}}"#)
    };
    let message = r#"{"uuid": "m", "sender": "human", "text": "red"}"#;
    let chats = [chat("a", message), chat("a", message), chat("b", "")].join(",");
    let export = scene.write("chats.json", format!("[{chats}]"));
    let export = export.to_str().unwrap();
    let (_, out, _) = told(&mut scene.command(&["import", export]));
    assert!(
        out.starts_with(
            "Imported 2 conversations, 1 message\nleft out: 1 conversation without messages; "
        ),
        "{out}"
    );
    let (code, out, _) =
        told(&mut scene.command(&["import", "--verbose", "--db", "other.db", export]));
    assert_eq!(code, Some(0), "{out}");
    assert!(out.contains("Imported 2 conversations, 1 message\n"), "{out}");
    assert!(out.contains("found more than once, and stored once: 1 conversation\n"), "{out}");
    assert!(out.contains("without messages, and not in lists: 1 conversation\n"), "{out}");
}

/// Runs a line of a shell on a terminal, and types a text when the output has a word. Returns the output.
fn on_terminal(scene: &Scene, line: &str, (word, text): (&str, &str)) -> String {
    let shell = PtyCommand::new("/bin/sh")
        .args(["-c", line])
        .env_clear()
        .env("HOME", scene.path(""))
        .env("TERM", "xterm")
        .env("PATH", format!("{}:/usr/bin:/bin", scene.path("bin").display()))
        .current_dir(scene.path("work"));
    let mut on = OnTerminal::start(shell, (24, 80));
    let (mut written, mut is_typed) = (String::new(), false);
    OnTerminal::read(&on.pty, |bytes| {
        written.push_str(&String::from_utf8_lossy(bytes));
        if !is_typed && written.contains(word) {
            is_typed = true;
            on.press(text);
        }
        true
    });
    assert!(on.child.wait().unwrap().success(), "{written}");
    written
}

#[test]
fn a_terminal_shows_the_folder_of_the_user_as_a_tilde() {
    let scene = Scene::imported();
    let written = on_terminal(&scene, "verbatim status; verbatim doctor", ("\0", ""));
    for line in ["export: ~/.local/share/verbatim/db/verbatim.db", "home: ~/.local/share/verbatim"]
    {
        assert!(written.contains(line), "{written}");
    }
    assert!(!written.contains(scene.path(".local").to_str().unwrap()), "{written}");
    let (_, out, _) = told(&mut scene.command(&["status"]));
    assert!(out.contains(scene.path(".local").to_str().unwrap()), "{out}");
}

#[test]
fn messages_of_agents_have_one_name() {
    let scene = Scene::imported();
    let (_, out, errors) = told(&mut scene.command(&["reindex"]));
    assert!(out.contains("messages of coding agents"), "{out}{errors}");
    assert!(!out.contains("archive"), "{out}");
}

#[test]
fn what_is_typed_during_progress_is_shown_after_it() {
    let scene = Scene::new();
    let line = r#"verbatim import --yes && read line && echo "read: $line""#;
    let written = on_terminal(&scene, line, ("Indexing", "typed ahead\n"));
    let (during, after) = written.split_once("Ready in").unwrap();
    assert!(!during.contains("typed ahead"), "{during}");
    assert!(after.contains("read: typed ahead"), "{after}");
}

#[test]
fn after_ctrl_c_the_terminal_shows_what_is_typed() {
    let scene = Scene::new();
    // Nothing listens there, and the command tries for some seconds.
    let search = "verbatim search red --db opensearch+http://127.0.0.1:1/chats";
    let line = format!("trap : INT; {search}; stty -a");
    let written = on_terminal(&scene, &line, ("earching", "\u{3}"));
    let modes: Vec<&str> = written.split_whitespace().collect();
    assert!(modes.contains(&"echo") && !modes.contains(&"-echo"), "{written}");
}

#[test]
fn an_agent_that_is_resumed_has_the_terminal_for_itself() {
    let scene = Scene::new();
    let line = serde_json::json!({"type": "user", "uuid": "u1", "sessionId": "deadbeef",
        "cwd": scene.path("work"), "message": {"role": "user", "content": "red"}});
    scene.write(".claude/projects/work/deadbeef.jsonl", format!("{line}\n"));
    let agent = "#!/bin/sh\necho begun\nread line\nsleep 0.5\necho \"read: $line\"\n";
    scene.write("bin/claude", agent);
    let written = on_terminal(&scene, "verbatim resume deadbeef --run", ("begun", "typed\n"));
    let (_, during) = written.split_once("begun").unwrap();
    assert_eq!(during.split_whitespace().collect::<Vec<_>>(), ["typed", "read:", "typed"]);
}

#[test]
fn a_search_that_finds_nothing_names_the_flag_that_helps() {
    let home = folder();
    let path = home.path().join("a.db");
    drop(database(&path, &["una canción", "Über alles"]));
    let says = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        command.env_clear().env("HOME", home.path()).env("VERBATIM_DB", &path).args(words);
        told(&mut command).2
    };
    let found = "1 message with other accents or width: verbatim search --fold ";
    assert!(says(&["search", "cancion"]).contains(found));
    assert!(says(&["search", "UBER"]).contains("verbatim search --fold -i UBER"));
    assert!(says(&["search", "UBER", "-i"]).contains(found));
    for words in [&["search", "cansion"][..], &["search", "cancion", "--role", "tool"]] {
        assert!(!says(words).contains("--fold"), "{words:?}");
    }
}

#[test]
fn colours_of_a_terminal_hide_no_text() {
    let scene = Scene::new();
    let output = "\\u001b[1m\\u001b[31merror\\u001b[0m\\u001b[1m: mismatched planks\\u001b[0m";
    let record = format!(
        r#"{{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-10-01T10:00:00Z","message":
            {{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":"{output}"}}]}}}}"#
    );
    scene.write(".claude/projects/-x/s1.jsonl", record.replace('\n', "") + "\n");
    for words in [
        &["error: mismatched planks"][..],
        &["-w", "error", "--and", "planks"],
        &["-e", "^error: mismatched pl"],
        &["--mode", "both", "\"error: mismatched\""],
    ] {
        let arguments: Vec<&str> = ["search"].iter().chain(words).copied().collect();
        let (code, out, errors) = told(&mut scene.command(&arguments));
        assert_eq!(code, Some(0), "{words:?}: {errors}");
        assert!(out.contains("error: mismatched planks"), "{words:?}: {out}");
        assert!(!out.contains(['\x1b', '\u{fffd}']), "{out}");
    }
    let (_, shown, _) = told(&mut scene.command(&["show", "s1"]));
    assert!(shown.contains("\nerror: mismatched planks\n"), "{shown}");
}

#[test]
fn the_commands_of_every_day_come_first() {
    let scene = Scene::new();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments)).1;
    let [short, long] = ["-h", "--help"].map(|flag| run(&[flag]));
    for help in [&short, &long] {
        let headings = ["\nSearch:\n", "\nImport:\n", "\nConnect:\n", "\nMaintain:\n", "\nMore:\n"];
        let places = headings.map(|heading| help.find(heading).expect(heading));
        assert!(places.is_sorted(), "{help}");
        assert!(help.find("  show ") < help.find("  import "), "{help}");
        assert!(help.find("  connect ") < help.find("  doctor "), "{help}");
    }
    for command in cli::command().get_subcommands() {
        let line = format!("\n  {} ", command.get_name());
        assert!(short.contains(&line) && long.contains(&line), "{line}");
    }
}

#[test]
fn helps_fit_a_narrow_terminal() {
    let scene = Scene::new();
    let names: Vec<String> =
        cli::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let names = std::iter::once(None).chain(names.iter().map(|name| Some(name.as_str())));
    for (name, flag) in names.flat_map(|name| ["-h", "--help"].map(|flag| (name, flag))) {
        let arguments: Vec<&str> = name.into_iter().chain([flag]).collect();
        let (_, help, _) = told(scene.command(&arguments).env("COLUMNS", "40"));
        // A usage is one line, so that it can be read as a command; a word cannot be broken.
        let is_over = |line: &&str| {
            line.chars().count() > 40 && !line.starts_with("Usage: ") && line.trim().contains(' ')
        };
        let over: Vec<&str> = help.lines().filter(is_over).collect();
        assert!(over.is_empty(), "{arguments:?}: {over:#?}");
    }
}

#[test]
fn flags_and_commands_of_other_programs_have_tips() {
    let scene = Scene::imported();
    let told = |arguments: &[&str]| {
        let (code, _, errors) = told(&mut scene.command(arguments));
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(errors.starts_with("verbatim: ") && !errors.contains("error:"), "{errors}");
        errors
    };
    for (given, flag) in [
        ("--after", "--since"),
        ("--newer", "--since"),
        ("--before", "--until"),
        ("--format", "--json"),
        ("--output", "--json"),
        ("-o", "--json"),
        ("--max", "-n"),
        ("--head", "-n"),
        ("-v", "--not"),
        ("--sort", "--oldest"),
        ("--reverse", "--oldest"),
        ("--files-with-matches", "-l"),
        ("--repo", "--project"),
        ("--sicne", "--since"),
        ("--proj", "--project"),
    ] {
        let errors = told(&["search", "x", given, "3"]);
        assert!(errors.contains(&format!("'{flag}'")), "{given}: {errors}");
        assert!(!errors.contains("as a value"), "{errors}");
    }
    for (given, other) in [("--on", "--context"), ("--title", "--file"), ("--zebra", "--")] {
        let errors = told(&["search", "x", given, "3"]);
        assert!(!errors.contains(&format!("'{other}'")), "{given}: {errors}");
        assert!(!errors.contains(&format!(" {other} ")), "{given}: {errors}");
    }
    // A command gets no tip with a flag that it does not have.
    let errors = told(&["show", CHAT, "--after", "3"]);
    assert!(!errors.contains("--since"), "{errors}");
    for (given, command) in [
        ("index", "reindex"),
        ("ls", "list"),
        ("title", "list"),
        ("rm", "forget"),
        ("remove", "forget"),
        ("browse", "web"),
        ("ui", "web"),
        ("init", "import"),
        ("update", "import"),
        ("exprot", "export"),
    ] {
        let errors = told(&[given]);
        assert!(errors.contains(&format!("command '{command}'")), "{given}: {errors}");
        assert!(errors.contains(&format!("verbatim search {given}")), "{given}: {errors}");
    }
    let errors = told(&["what", "is", "that"]);
    assert!(!errors.contains("watch") && errors.contains("search what is that"), "{errors}");
    let errors = told(&["connect", "claude"]);
    assert!(errors.contains("'claude-desktop' and 'claude-code'"), "{errors}");
    let errors = told(&["search", "x", "--since", "26/11/2026"]);
    assert!(errors.contains("write 2026-11-26"), "{errors}");
}

#[test]
fn several_words_are_one_title() {
    let scene = Scene::imported();
    let run = |arguments: &[&str]| told(&mut scene.command(arguments));
    let (_, listed, _) = run(&["list", "--json", "-n", "0", "--source", "chatgpt"]);
    let of = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let all: Vec<serde_json::Value> = listed.lines().map(of).collect();
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap().to_owned();
    let one = all.iter().find(|one| text(one, "title").split(' ').count() > 1).unwrap();
    let (id, title) = (text(one, "id"), text(one, "title"));
    let words: Vec<&str> = title.split(' ').collect();
    for command in [&["show", "--json"][..], &["open", "--json", "--print"]] {
        let (code, out, errors) = run(&[command, &words].concat());
        assert!(code == Some(0) && out.contains(&id), "{command:?} {title}: {errors}");
    }
    let (_, out, errors) = run(&[&["resume", "--json"][..], &words].concat());
    assert!(out.contains(&id), "{errors}");
    let (code, out, errors) = run(&[&["forget", "--yes", "--json"][..], &words].concat());
    assert!(code == Some(0) && out.contains(&id), "{title}: {errors}");
}
