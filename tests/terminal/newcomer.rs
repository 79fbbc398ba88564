//! The first contact of a new user with the program: help texts, mistakes, and missing files.

use std::{ffi::OsString, fs, iter};

use pty_process::blocking::Command;
use regex::Regex;
use serde_json::{Value, json};
use verbatim_search::cli::{self, Environment};

use crate::corpus::{database, folder};
use crate::pty::OnTerminal;
use crate::scene::{CHAT, Scene};
use crate::terminal::output;
use crate::threads;
use crate::user::{Said, User};

#[test]
fn the_short_help_has_examples_and_few_options() {
    let run = output;
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
fn mistakes_are_answered_with_what_helps() {
    let scene = Scene::imported();
    for (arguments, help) in [
        ("python", "tip: to find that text in your chats: verbatim search python"),
        ("-n 3 vector", "tip: flags follow their command: verbatim search -n 3 vector\n"),
        ("show ID --web", "verbatim open CONVERSATION"),
        ("search x -n x", "write a whole number, such as 20"),
        ("search x -e y", "the expression takes the place of the words"),
        ("search x -w --since", "for example 7d, yesterday, 2025-01"),
        ("../Downloads/claude.zip", "to import that: verbatim import ../Downloads/claude.zip"),
        ("https://chatgpt.com/c/1", "conversation: verbatim show https://chatgpt.com/c/1"),
        ("show nonsense", "`verbatim search nonsense`"),
        ("uninstall", "`verbatim disconnect CLIENT`"),
        ("disconnect", "`verbatim connect` lists the AI clients"),
        ("show", "`verbatim list` and `verbatim search` print the ids"),
        ("search", "tip: for example: verbatim search borrow checker"),
        ("import -", "not from standard input; save it"),
        ("list vector", "verbatim search vector\n"),
        ("forget ID", "no terminal to ask"),
        ("demo --db x.db", "no database, so leave out --db"),
        ("connect --db x.db", "no database, so leave out --db"),
        ("connect cursor --http --db x.db", "no database, so leave out --db"),
        ("disconnect cursor --db x.db", "no database, so leave out --db"),
    ] {
        let arguments: Vec<&str> =
            arguments.split(' ').map(|word| if word == "ID" { CHAT } else { word }).collect();
        let said = scene.run(&arguments);
        said.ends(2).warns(help);
        assert_eq!(said.out, "", "{arguments:?}");
    }
    scene.run(&["search", "vector", "--db", "."]).warns(".: it is a folder, not a file");
    scene.run(&["serach"]).warns("'search'").warns("verbatim search serach");
    scene.run(&["search", "-F", "100%"]).warns("leave this flag out").warns_not("-- -F");
    scene.run(&["hello", "big world"]).warns("verbatim search hello 'big world'\n");
    let flag = scene.run(&["--search", "big world"]);
    flag.ends(2).warns("verbatim search 'big world'\n").warns_not("--archive");
    let none = scene.run(&["forget", "--list"]);
    assert_eq!(none.ends(0).errors, "verbatim: nothing was forgotten so far\n");
    let mut open = scene.command(&["open", CHAT]);
    let opened = Said::of(open.env("PATH", "/nowhere").env_remove("BROWSER"));
    assert!(opened.ends(2).out.starts_with("https://chatgpt.com/c/"), "{opened}");
    opened.warns(": none could be started; open the address yourself\n");
    let search = |word: &str, more: &[&str]| {
        scene.run(&[&["search", word, "--mode", "both"], more].concat())
    };
    search("pastry", &[]).warns("no message has “pastry”; nearest by meaning:");
    for hit in search("pastry", &["--json"]).json() {
        assert_eq!(hit["absent_words"], serde_json::json!(["pastry"]), "{hit}");
    }
    search("vector", &["--json"]).prints("\"far\":false").prints_not("absent_words");
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
    let run = |more: &[&str]| scene.run(&[&question[..], more].concat()).out;
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
    threads::record(&scene.path(".local/share/verbatim"), "a topic", None);
    scene.run(&["reindex"]).ends(0);
    let Said { code, out, errors } = scene.run(&["doctor"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""), "{out}");
    assert!(out.contains("0 messages and 0 searches compared"), "{out}");
}

#[test]
fn helps_leave_the_places_to_the_program() {
    for flag in ["-h", "--help"] {
        let text = output(&["search", flag]);
        assert!(!text.contains("--archive <FOLDER>"), "{text}");
        assert!(flag == "--help" || text.lines().count() < 60, "{text}");
    }
    assert!(output(&["list", "-h"]).contains("Where the data is: --db, --home, --archive"));
    assert!(output(&["-h"]).contains("--archive <FOLDER>"));
    // The flags are accepted before the command and after it.
    let home = folder();
    let home = home.path().to_str().unwrap();
    for arguments in [["--home", home, "status"], ["status", "--home", home]] {
        assert!(output(&arguments).contains(&format!("home: {home}\n")));
    }
}

#[test]
fn without_an_export_nothing_is_wrong() {
    let user = User::new();
    let said = user.run(&["search", "x"]);
    assert!(said.ends(2).errors.starts_with("verbatim: no chats are imported yet; "), "{said}");
    // The sample is no chat of the user: a search of it names its database.
    let demo = user.run(&["demo"]).out;
    let typed = demo.lines().find_map(|line| line.strip_prefix("To search the sample yourself: "));
    let words: Vec<&str> = typed.unwrap().split(' ').skip(1).collect();
    user.run(&words).ends(0).prints("Borrow checker");
    // The transcripts of coding agents are chats too.
    let scene = Scene::new();
    scene.run(&["list"]).ends(0);
    let doctor = scene.run(&["doctor"]);
    doctor.ends(0).prints("note   export: none is imported yet into ");
    doctor.prints("; transcripts and threads are");
}

#[test]
fn an_unknown_model_stops_only_what_needs_it() {
    let scene = Scene::imported();
    let run = |arguments: &[&str]| {
        Said::of(scene.command(arguments).env("VERBATIM_EMBEDDINGS", "nonsense"))
    };
    for arguments in
        [&["list"][..], &["show", CHAT], &["stats"], &["status"], &["status", "--settings"]]
    {
        run(arguments).ends(0);
    }
    run(&["search", "vector", "--mode", "both"]).ends(2).warns("VERBATIM_EMBEDDINGS: ");
    run(&["doctor"]).ends(1).prints("WRONG  embeddings: VERBATIM_EMBEDDINGS: ");
}

#[test]
fn a_question_to_one_source_indexes_that_one() {
    let scene = Scene::new();
    scene.run(&["import", "--yes"]);
    std::fs::remove_dir_all(scene.path(".local/share/verbatim/index")).unwrap();
    let ask = ["search", "vector", "--mode", "both", "--source", "export"];
    scene.run(&ask).ends(0);
    let entries = std::fs::read_dir(scene.path(".local/share/verbatim/index")).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    let is_indexed =
        |start: &str| names.iter().any(|name| name.to_string_lossy().starts_with(start));
    assert!(is_indexed("verbatim-") && !is_indexed("transcripts-"), "{names:?}");
}

#[test]
fn an_import_of_nothing_new_says_what_is_there() {
    let scene = Scene::new();
    scene.run(&["import", "--yes"]).ends(0);
    std::fs::remove_dir_all(scene.path(".local/share/verbatim/index")).unwrap();
    scene.run(&["status"]).prints("there is no index of this database");
    // An earlier import may have been stopped before its index was complete.
    scene.run(&["import"]).ends(0).prints("Nothing is new.");
    scene.run(&["status"]).prints("by its index, which is current");
    let user = User::new();
    std::fs::create_dir_all(user.path(".claude/projects")).unwrap();
    user.run(&["import"]).ends(1).prints_not("can be searched now");
}

#[test]
fn an_import_without_exports_indexes_the_transcripts() {
    let scene = Scene::new();
    std::fs::remove_dir_all(scene.path("Downloads")).unwrap();
    let Said { code, out, errors } = scene.run(&["import"]);
    assert_eq!(code, Some(0), "{out}{errors}");
    assert!(out.contains("No export of ChatGPT or Claude.ai found"), "{out}");
    let of = "conversations of Claude Code and Codex can be searched now: verbatim search TEXT";
    assert!(out.contains(of), "{out}");
    scene.run(&["status"]).prints("by its index, which is current");
}

#[test]
fn a_search_indexes_transcripts_that_are_long() {
    let scene = Scene::new();
    scene.run(&["search", "login"]).ends(0);
    scene.run(&["status"]).prints("without an index, which so few need only for");
    let text = "a long tale of copper kettles ".repeat(4_000);
    let line = |number: u32| {
        format!(
            r#"{{"type":"user","uuid":"k{number}","sessionId":"k","timestamp":"2025-10-30T11:00:00Z","message":{{"content":"{number} {text}"}}}}"#
        ) + "\n"
    };
    let lines: String = (0..60).map(line).collect();
    scene.write(".claude/projects/-x/k.jsonl", lines);
    scene.run(&["search", "copper kettles"]).ends(0).warns_not("index");
    scene.run(&["status"]).prints("by its index, which is current");
    // What an agent adds is indexed by the next search.
    scene.write(".claude/projects/-x/l.jsonl", line(61).replace("\"k\"", "\"l\""));
    scene.run(&["list"]).ends(0);
    scene.run(&["status"]).prints("the next search brings the index");
    scene.run(&["search", "copper kettles"]).ends(0);
    scene.run(&["status"]).prints("by its index, which is current");
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
    let Said { out, .. } = scene.run(&["import", export]);
    assert!(
        out.starts_with(
            "Imported 2 conversations, 1 message\nleft out: 1 conversation without messages; "
        ),
        "{out}"
    );
    scene
        .run(&["import", "--verbose", "--db", "other.db", export])
        .ends(0)
        .prints("Imported 2 conversations, 1 message\n")
        .prints("found more than once, and stored once: 1 conversation\n")
        .prints("without messages, and not in lists: 1 conversation\n");
}

/// Runs a line of a shell on a terminal, and types a text when the output has a word. Returns the output.
pub(crate) fn on_terminal(scene: &Scene, line: &str, (word, text): (&str, &str)) -> String {
    let shell = Command::new("/bin/sh")
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
    scene.run(&["status"]).prints(scene.path(".local").to_str().unwrap());
}

#[test]
fn titles_are_found_as_people_type_them() {
    let user = User::new();
    let chat = |id: &str, title: &str| {
        json!({"uuid": id, "name": title, "chat_messages": [{"uuid": format!("m{id}"), "sender": "human",
            "created_at": "2025-01-03T10:00:00Z", "text": "x"}]})
    };
    let titles = [
        "Gardening: tomatoes",
        "Codex: speed up shop",
        "Codex: speed up shop again",
        "Café Zürich, (draft)",
        "Codex and me",
    ];
    let chats =
        titles.iter().zip(["a1", "b2", "c3", "d4", "e5"]).map(|(title, id)| chat(id, title));
    user.write("work/conversations.json", Value::Array(chats.collect()).to_string());
    user.run(&["import", "conversations.json"]).ends(0);
    for (words, id) in [
        (&["gardening", "tomatoes"][..], "a1"),
        (&["tomat", "gard"], "a1"),
        (&["cafe zurich draft"], "d4"),
        (&["Codex: speed up shop"], "b2"),
        (&["shop", "again"], "c3"),
    ] {
        for command in [&["show"][..], &["open", "--json"]] {
            user.run(&[command, words].concat()).prints(id);
        }
        user.run(&[&["forget"], words].concat()).warns_not("no conversation").warns_not("any of");
    }
    let said = user.run(&["forget", "Codex:", "speed", "up"]);
    said.ends(2).warns("b2").warns("c3").warns_not("e5");
    user.run(&["show", "tomatoes", "roses"]).ends(2).warns("no conversation has");
}

/// Every name that a chat has reaches a terminal as text, in answers, lists, notes and errors.
#[test]
fn names_of_chats_do_not_control_a_terminal() {
    let scene = Scene::new();
    let evil =
        "x\u{1b}]0;TITLE\u{7}\u{1b}[2J\u{1b}]52;c;cHdu\u{7}\u{9b}31m\u{202e}\r\u{8}y\u{E0041}";
    let record = |kind: &str, uuid: &str, content: Value| {
        json!({"type": kind, "sessionId": "s9", "uuid": uuid, "timestamp": "2025-01-01T00:00:00Z",
            "cwd": format!("/w/{evil}"), "gitBranch": evil, "slug": evil, "version": evil,
            "message": {"role": kind, "model": evil, "content": content}})
    };
    let call = json!([{"type": "tool_use", "id": "t", "name": evil, "input": {"file_path": evil}},
        {"type": evil, "text": evil}]);
    let lines = [
        record("user", "u1", json!(format!("needle {evil}"))),
        record("assistant", "u2", call),
        json!({"type": evil, "uuid": "u3", "sessionId": "s9", "content": evil}),
        json!({"type": "custom-title", "customTitle": format!("needle {evil}"), "sessionId": "s9"}),
    ];
    let lines: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::create_dir_all(scene.path(".claude/projects/w")).unwrap();
    fs::write(scene.path(".claude/projects/w/s9.jsonl"), &lines).unwrap();
    fs::write(scene.path(&format!("work/{}.json", evil.replace('/', ""))), "[{]").unwrap();
    let export = json!([{"uuid": format!("77{evil}"), "name": format!("needle {evil}"), "chat_messages": [
        {"uuid": "m1", "sender": "human", "created_at": "2025-01-03T10:00:00Z", "text": format!("needle {evil}"),
         "attachments": [{"file_name": evil, "extracted_content": evil}], "files": [{"file_name": evil}]}]}]);
    fs::write(scene.path("work/conversations.json"), export.to_string()).unwrap();
    for line in [
        "import .",
        "import --verbose conversations.json",
        "list",
        "list --json",
        "stats",
        "stats --by model",
        "search needle",
        "search needle --flat",
        "search needle --json",
        "search needle --mode both",
        "search needle -l",
        "search needlf",
        "search needle --project zz",
        "search needle --branch zz",
        "search needle --folder zz",
        "search needle --model zz",
        "search needle --tool zz",
        "search needle --role zz",
        "search needle --service zz",
        "list --project zz",
        "stats --branch zz",
        "export --project zz out",
        "show s9",
        "show 77",
        "show needle",
        "open 77",
        "open s9",
        "resume s9",
        "search needle --in needle",
        "forget needle",
        "forget 77 --yes",
        "forget --list",
        "forget --undo 7",
        "status",
        "doctor",
        "export out --service codex",
        "export out2 --search needle",
        "show zz",
        "config",
    ] {
        // JSON and Markdown in a pipe are for programs, and have all characters.
        let mut command = format!("export PAGER=cat; verbatim {line}; true");
        if !line.contains("--json") && !line.starts_with("show") {
            command = format!("verbatim {line} | cat; {command}");
        }
        let written = on_terminal(&scene, &command, ("[y/N]", "n\n"));
        let mut rest = written.replace("\r\n", "\n");
        // Colours, links and the lines of progress are the program's own.
        for own in [r"\x1b\[[0-9;]*[mKAGJ]", r"\x1b\]8;;[!-~]*\x1b\\", r"\x1b\[\?[0-9]+[hl]"] {
            rest = Regex::new(own).unwrap().replace_all(&rest, "").into_owned();
        }
        for bad in ["\u{1b}", "\u{7}", "\u{9b}", "\u{202e}", "\u{8}", "\u{E0041}"] {
            assert!(!rest.contains(bad), "{line}: {bad:?} in {rest:?}");
        }
        assert!(!written.contains("\u{1b}[2J"), "{line}: {written:?}");
    }
}

#[test]
fn messages_of_agents_have_one_name() {
    let scene = Scene::imported();
    scene.run(&["reindex"]).prints("messages of coding agents").prints_not("archive");
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
        let Said { code, out, errors } = scene.run(&arguments);
        assert_eq!(code, Some(0), "{words:?}: {errors}");
        assert!(out.contains("error: mismatched planks"), "{words:?}: {out}");
        assert!(!out.contains(['\x1b', '\u{fffd}']), "{out}");
    }
    scene.run(&["show", "s1"]).prints("\nerror: mismatched planks\n");
}

#[test]
fn the_commands_of_every_day_come_first() {
    let [short, long] = ["-h", "--help"].map(|flag| output(&[flag]));
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
    let environment = Environment { columns: Some(40), ..Environment::default() };
    let command = cli::command();
    let names = command.get_subcommands().map(|command| command.get_name());
    for (name, flag) in
        iter::once("").chain(names).flat_map(|name| [(name, "-h"), (name, "--help")])
    {
        let arguments = ["verbatim", name, flag].into_iter().filter(|word| !word.is_empty());
        let mut help = Vec::new();
        cli::run(arguments.map(OsString::from), &environment, &mut help).unwrap();
        // A usage is one line, so that it can be read as a command; a word cannot be broken.
        for line in String::from_utf8(help).unwrap().lines() {
            let fits = line.chars().count() <= 40 || !line.trim().contains(' ');
            assert!(fits || line.starts_with("Usage: "), "{name} {flag}: {line}");
        }
    }
}

#[test]
fn flags_and_commands_of_other_programs_have_tips() {
    let scene = Scene::imported();
    let refused = |arguments: &[&str]| {
        let Said { code, errors, .. } = scene.run(arguments);
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(errors.starts_with("verbatim: ") && !errors.contains("error:"), "{errors}");
        errors
    };
    for (flag, all) in [
        ("--since", "--after --newer --sicne"),
        ("--until", "--before"),
        ("--json", "--format --output -o"),
        ("-n", "--max --head"),
        ("--not", "-v"),
        ("--oldest", "--sort --reverse"),
        ("-l", "--files-with-matches"),
        ("--project", "--repo --proj"),
    ] {
        for given in all.split(' ') {
            let errors = refused(&["search", "x", given, "3"]);
            assert!(errors.contains(&format!("'{flag}'")), "{given}: {errors}");
            assert!(!errors.contains("as a value"), "{errors}");
        }
    }
    for (given, other) in [("--on", "--context"), ("--title", "--file"), ("--zebra", "--")] {
        let errors = refused(&["search", "x", given, "3"]);
        assert!(!errors.contains(&format!("'{other}'")), "{given}: {errors}");
        assert!(!errors.contains(&format!(" {other} ")), "{given}: {errors}");
    }
    // A command gets no tip with a flag that it does not have.
    let errors = refused(&["show", CHAT, "--after", "3"]);
    assert!(!errors.contains("--since"), "{errors}");
    for (command, all) in [
        ("reindex", "index"),
        ("list", "ls title"),
        ("forget", "rm remove"),
        ("web", "browse ui"),
        ("import", "init update"),
        ("export", "exprot"),
    ] {
        for given in all.split(' ') {
            let errors = refused(&[given]);
            assert!(errors.contains(&format!("command '{command}'")), "{given}: {errors}");
            assert!(errors.contains(&format!("verbatim search {given}")), "{given}: {errors}");
        }
    }
    let errors = refused(&["what", "is", "that"]);
    assert!(!errors.contains("watch") && errors.contains("search what is that"), "{errors}");
    let errors = refused(&["connect", "claude"]);
    assert!(errors.contains("'claude-desktop' and 'claude-code'"), "{errors}");
    let errors = refused(&["search", "x", "--since", "26/11/2026"]);
    assert!(errors.contains("write 2026-11-26"), "{errors}");
}

#[test]
fn several_words_are_one_title() {
    let scene = Scene::imported();
    let Said { out: listed, .. } = scene.run(&["list", "--json", "-n", "0", "--source", "chatgpt"]);
    let of = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
    let all: Vec<serde_json::Value> = listed.lines().map(of).collect();
    let text = |one: &serde_json::Value, key: &str| one[key].as_str().unwrap().to_owned();
    let one = all.iter().find(|one| text(one, "title").split(' ').count() > 1).unwrap();
    let (id, title) = (text(one, "id"), text(one, "title"));
    let words: Vec<&str> = title.split(' ').collect();
    for command in [&["show", "--json"][..], &["open", "--json", "--print"]] {
        scene.run(&[command, &words].concat()).ends(0).prints(&id);
    }
    scene.run(&[&["resume", "--json"][..], &words].concat()).prints(&id);
    scene.run(&[&["forget", "--yes", "--json"][..], &words].concat()).ends(0).prints(&id);
}
