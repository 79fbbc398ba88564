//! `verbatim export`: conversations as Markdown files.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::calls::has;
use crate::corpus::{files, folder};

fn run(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).arg("--home").arg(home).args(arguments);
    let output = command.current_dir(home).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

fn names(folder: &Path) -> Vec<String> {
    let years = files(folder).into_keys().filter(|path| path.is_dir());
    let names = years.flat_map(|year| files(&year).into_keys());
    names.map(|path| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned()).collect()
}

#[test]
fn the_front_matter_names_the_service_and_the_page() {
    let scene = crate::scene::Scene::imported();
    let output = scene.command(&["export", "notes", "--service", "chatgpt"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let notes = scene.path("work/notes");
    let text = fs::read_to_string(notes.join(&names(&notes)[0])).unwrap();
    let url = format!("https://chatgpt.com/c/{}", crate::scene::CHAT);
    let lines = format!("\nservice: \"chatgpt\"\nurl: \"{url}\"\n");
    assert!(text.contains(&lines), "{text}");
}

#[test]
fn an_export_writes_only_what_was_meant() {
    let scene = crate::scene::Scene::imported();
    for (folder, word) in [
        ("/", "name a folder of its own"),
        ("..", "lie among others"),
        ("../.local/share/verbatim", "lie among"),
    ] {
        scene.run(&["export", folder]).ends(2).warns(word);
    }
    assert!(!scene.path(".verbatim-export.json").exists());
    let some = scene.run(&["export", "some", "--search", "borrow"]);
    let all = scene.run(&["export", "all"]);
    let count =
        |said: &crate::user::Said| said.out.split(' ').next().unwrap().parse::<u32>().unwrap();
    let found = scene.run(&["search", "borrow", "-l", "-c"]).out.trim().parse::<u32>().unwrap();
    assert!(count(&some) == found && found > 0 && count(&all) > found, "{some}{all}");
    // On a terminal, a first export of everything is asked for.
    for (line, is_asked) in [
        ("tomato", true),
        ("all", false),
        ("new --service chatgpt", false),
        ("new2 --search borrow", false),
    ] {
        let command = format!("verbatim export {line}; true");
        let written = crate::newcomer::on_terminal(&scene, &command, ("[y/N]", "\n"));
        assert_eq!(written.contains("Write all"), is_asked, "{written}");
        let says = written.contains("verbatim export --search tomato FOLDER");
        assert_eq!(says, line == "tomato", "{written}");
    }
    assert!(!scene.path("work/tomato").exists());
}

#[test]
fn an_export_says_that_it_waits_for_another() {
    let scene = crate::scene::Scene::imported();
    let notes = scene.path("work/notes");
    fs::create_dir_all(&notes).unwrap();
    let other = fs::File::create(notes.join(".verbatim-export.lock")).unwrap();
    other.lock().unwrap();
    let mut export = scene.command(&["export", "notes"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut errors = BufReader::new(export.stderr.take().unwrap());
    errors.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for another export into notes"), "{line}");
    assert_eq!(names(&notes), [""; 0]);
    drop(other);
    assert!(export.wait().unwrap().success());
    assert!(!names(&notes).is_empty());
}

#[test]
fn conversations_become_files_that_are_kept_up_to_date() {
    let folder = folder();
    let home = folder.path();
    fs::create_dir(home.join("db")).unwrap();
    let connection = crate::terminal::sample(&home.join("db/chats.db"));
    let target = home.join("notes");
    let to = target.to_str().unwrap();
    let (code, says) = run(home, &["export", to]);
    assert!(code == Some(0) && says.contains("written, 0 unchanged"), "{says}");
    let before = names(&target);
    let rust = before.iter().find(|name| name.contains("Rust lifetimes")).unwrap();
    assert!(rust.ends_with("Rust lifetimes (6650a1b2).md"), "{before:?}");
    let text = fs::read_to_string(target.join(rust)).unwrap();
    let front = text.strip_prefix("---\n").unwrap().split("---\n").next().unwrap();
    has(front, &["id: \"6650a1b2-0001\"\ntitle: \"Rust lifetimes\"\nservice: \"export\"\n"]);
    let count: usize = front.split("messages: ").nth(1).unwrap().trim().parse().unwrap();
    assert_eq!(text.matches("\n## ").count(), count, "{text}");
    // A file without changes stays; a new title renames its file; a file of the user stays.
    let modified = fs::metadata(target.join(rust)).unwrap().modified().unwrap();
    fs::write(target.join("mine.md"), "mine").unwrap();
    assert!(run(home, &["export", to]).1.contains(": 0 written"));
    assert_eq!(fs::metadata(target.join(rust)).unwrap().modified().unwrap(), modified);
    connection
        .execute(
            "UPDATE conversations SET title = 'A / new: *title*' WHERE id = '6650a1b2-0001'",
            (),
        )
        .unwrap();
    assert!(run(home, &["export", to]).1.contains(": 1 written"));
    let after = names(&target);
    assert!(after.iter().any(|name| name.ends_with("A new title (6650a1b2).md")), "{after:?}");
    assert_eq!(after.len(), before.len());
    assert!(target.join("mine.md").is_file());
    // A file that the user edited stays as it is, under its old name too; so does a file of another program.
    let new = target.join(after.iter().find(|name| name.contains("A new title")).unwrap());
    let edited = fs::read_to_string(&new).unwrap() + "my own note\n";
    fs::write(&new, &edited).unwrap();
    for title in ["A new title", "Another title"] {
        let sql = "UPDATE conversations SET title = ?1 WHERE id = '6650a1b2-0001'";
        connection.execute(sql, [title]).unwrap();
        let (_, says) = run(home, &["export", to]);
        has(&says, &["kept as now: 1 file that no export wrote, or that changed"]);
        assert_eq!(fs::read_to_string(&new).unwrap(), edited);
        assert_eq!(names(&target).len(), before.len());
    }
    fs::remove_file(&new).unwrap();
    assert!(run(home, &["export", to]).1.contains(": 1 written"));
    // Without a record, nobody knows whether a file was edited, so it stays.
    fs::remove_file(target.join(".verbatim-export.json")).unwrap();
    let unknown = names(&target).into_iter().find(|name| name.contains("Another title")).unwrap();
    let edited = fs::read_to_string(target.join(&unknown)).unwrap() + "my own note\n";
    fs::write(target.join(&unknown), &edited).unwrap();
    assert!(run(home, &["export", to]).1.contains("kept as now: 1 file"));
    assert_eq!(fs::read_to_string(target.join(&unknown)).unwrap(), edited);
    fs::remove_file(target.join(&unknown)).unwrap();
    assert!(run(home, &["export", to]).1.contains(": 1 written"));
    // Ids that differ only in characters that file names cannot have get separate files, on each run.
    for id in ["qqqqqqqq:1", "qqqqqqqq/1", "qqqqqqqq.1"] {
        connection
            .execute("INSERT INTO conversations (id, title) VALUES (?1, 'Same')", [id])
            .unwrap();
        let sql = "INSERT INTO messages (id, conversation_id, role, content, create_time, position)
                   VALUES ('m ' || ?1, ?1, 'user', 'one', 1700000000, 0)";
        connection.execute(sql, [id]).unwrap();
    }
    for _ in 0..2 {
        run(home, &["export", to]);
        let same = names(&target).into_iter().filter(|name| name.contains("Same (qqqqqqqq"));
        assert_eq!(same.count(), 3, "{:?}", names(&target));
    }
    // Names that differ only by case, which some systems ignore, are of separate files too.
    for (id, title) in [("cccccccc-1", "Fix it"), ("cccccccc-2", "fix IT")] {
        let sql = "INSERT INTO conversations (id, title) VALUES (?1, ?2)";
        connection.execute(sql, [id, title]).unwrap();
        let sql = "INSERT INTO messages (id, conversation_id, role, content, create_time, position)
                   VALUES ('m ' || ?1, ?1, 'user', 'one', 1700000000, 0)";
        connection.execute(sql, [id]).unwrap();
    }
    run(home, &["export", to]);
    let short = names(&target).into_iter().filter(|name| name.ends_with("(cccccccc).md"));
    assert_eq!(short.count(), 1, "{:?}", names(&target));
    // Several exports at the same time know what the others wrote.
    connection.execute("UPDATE conversations SET title = title || ' again'", ()).unwrap();
    std::thread::scope(|scope| {
        for export in [(); 4].map(|()| scope.spawn(|| run(home, &["export", to]))) {
            let (code, says) = export.join().unwrap();
            assert!(code == Some(0) && !says.contains("kept as now"), "{says}");
        }
    });
    // Filters are those of `list`.
    let (code, says) =
        run(home, &["export", home.join("none").to_str().unwrap(), "--source", "threads"]);
    assert!(code != Some(0) && !says.contains("panicked"), "{says}");
}
