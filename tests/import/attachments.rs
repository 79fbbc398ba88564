//! The files of messages: kept by an import, shown, written out by an export, and forgotten.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::calls::has;
use crate::corpus::folder;
use crate::exports::{chat_with_files, zip_of};
use crate::user::Said;

/// The smallest pictures: their first bytes are enough.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n picture";
const OTHER: &[u8] = b"\x89PNG\r\n\x1a\n another";

fn program(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).args(["--no-archive", "--home"]).arg(home.join("v"));
    command.args(arguments).current_dir(home);
    command
}

fn run(home: &Path, arguments: &[&str]) -> Said {
    Said::of(&mut program(home, arguments))
}

fn export(home: &Path, name: &str, chats: &[Value], files: &[(&str, &[u8])]) -> String {
    let chats = Value::from(chats).to_string();
    let mut entries = vec![("conversations.json", chats.as_bytes())];
    entries.extend(files);
    let path = home.join(name);
    fs::write(&path, zip_of(&entries)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the files of a folder and of the folders in it.
fn all(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(all(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

#[test]
fn files_are_kept_shown_and_written_out() {
    let folder = folder();
    let home = folder.path();
    let listed = json!([
        {"id": "file-abc", "name": "../../no te:s.md", "mime_type": "text/html"},
        {"id": "file-gone", "name": "gone.pdf"},
        {"id": "file-same", "name": "NO TE S.md"},
    ]);
    let zip = export(
        home,
        "chatgpt.zip",
        &[chat_with_files("aa", &listed), chat_with_files("bb", &json!([]))],
        &[
            ("file-abc-notes.md", b"<b>red</b>"),
            ("file-abcd-wrong.md", b"wrong"),
            ("deep/er/file_00ff-photo.dat", PNG),
            ("file-same", b"blue"),
            ("../file-out", b"out"),
        ],
    );
    let Said { code, out, errors: err } = run(home, &["import", &zip]);
    assert!(code == Some(1) && out.contains("leads out"), "{out}{err}");
    assert!(out.contains("4 messages, 3 files ("), "each content once: {out}");
    has(&out, &["left out: 1 file that messages name and the export does not have; "]);
    // The store has each content once, and only the owner can read it.
    let store = home.join("v/attachments");
    assert_eq!(all(&store.join("files")).len(), 3);
    for path in all(&home.join("v")).iter().chain([&store]) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }

    let shown = run(home, &["show", "aa"]).out;
    assert!(shown.contains("3 attachments: `verbatim export`"), "{shown}");
    assert!(shown.contains("[../../no te:s.md, text/plain, 10 bytes]"), "{shown}");
    assert!(shown.contains("[photo.dat, image/png, "), "{shown}");
    // The lines that stand for files in a text are left out where the files are named.
    let shown = program(home, &["show", "aa"]).env("CLICOLOR_FORCE", "1").output().unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("[photo.dat, image/png, ") && shown.contains("Look"), "{shown}");
    assert!(shown.contains("[file: gone.pdf]"), "{shown}");
    assert!(!shown.contains("[image]") && !shown.contains("[file: ../"), "{shown}");
    let shown = run(home, &["show", "aa", "--json"]).out;
    let first: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(first["attachments"][0]["type"], "text/plain");

    run(home, &["export", "notes"]).ends(0).prints("\n4 attachments with them");
    let written = all(&home.join("notes"));
    let of = |name: &str| written.iter().find(|path| path.ends_with(name)).cloned();
    assert_eq!(fs::read(of("attachments/aa/no te s.md").unwrap()).unwrap(), b"<b>red</b>");
    assert_eq!(fs::read(of("attachments/aa/NO TE S 2.md").unwrap()).unwrap(), b"blue");
    assert_eq!(fs::read(of("attachments/aa/photo.png").unwrap()).unwrap(), PNG);
    assert!(written.iter().all(|path| path.starts_with(home.join("notes"))));
    let note = of("2023-11-14 Chat aa (aa).md").unwrap();
    let text = fs::read_to_string(&note).unwrap();
    assert!(text.contains("Read this\n\n[file: ../../no te:s.md]\n"), "{text}");
    assert!(text.contains("\n\n[no te s.md](<attachments/aa/no te s.md>)\n"), "{text}");
    assert!(text.contains("Look\n\n![photo.png](<attachments/aa/photo.png>)\n"), "{text}");
    // A file that the user changed stays; one that is gone is written again.
    let photo = of("attachments/aa/photo.png").unwrap();
    fs::write(&photo, OTHER).unwrap();
    run(home, &["export", "notes"]).prints(": 0 written").warns("kept as now: 1 file that ");
    assert_eq!(fs::read(&photo).unwrap(), OTHER);
    fs::remove_file(&photo).unwrap();
    run(home, &["export", "notes"]).warns_not("kept as now");
    assert_eq!(fs::read(&photo).unwrap(), PNG);
    // A file that is missing in the store is named, and the other files are written.
    let lost = all(&store.join("files")).into_iter().find(|it| fs::read(it).unwrap() == b"blue");
    fs::remove_file(lost.unwrap()).unwrap();
    run(home, &["export", "other"])
        .ends(0)
        .prints("\n3 attachments with them")
        .warns("the files of messages cannot be used: ");
}

#[test]
fn a_newer_export_adds_files_and_loses_none() {
    let folder = folder();
    let home = folder.path();
    let listed = json!([{"id": "file-abc", "name": "notes.md"}]);
    let old =
        export(home, "old.zip", &[chat_with_files("aa", &listed)], &[("file-abc.md", b"red")]);
    let new = export(home, "new.zip", &[chat_with_files("aa", &listed)], &[("file_00ff.png", PNG)]);
    run(home, &["import", &old]).prints(", 1 file (3 bytes)");
    run(home, &["import", &new]).prints(", 2 files (");
    let before = all(home);
    run(home, &["import", &new]).ends(0);
    assert_eq!(all(home), before);
    // A file that is gone from the store comes back with the export, and a killed import leaves nothing.
    let store = home.join("v/attachments");
    let picture = all(&store.join("files")).into_iter().find(|it| fs::read(it).unwrap() == PNG);
    fs::write(picture.unwrap(), b"cut").unwrap();
    fs::write(store.join("new-left"), b"left").unwrap();
    run(home, &["import", &new]);
    assert!(all(&store.join("files")).iter().any(|it| fs::read(it).unwrap() == PNG));
    assert!(!store.join("new-left").exists());
}

#[test]
fn forgotten_files_are_gone_and_do_not_come_back() {
    let folder = folder();
    let home = folder.path();
    let listed = json!([{"id": "file-abc", "name": "secret.md"}]);
    let files: [(&str, &[u8]); 2] = [("file-abc.md", b"SECRET"), ("file_00ff.png", PNG)];
    let zip = export(
        home,
        "a.zip",
        &[chat_with_files("aa", &listed), chat_with_files("bb", &json!([]))],
        &files,
    );
    run(home, &["import", &zip]);
    let contents = || -> Vec<Vec<u8>> {
        let paths = all(&home.join("v/attachments/files"));
        paths.iter().map(|path| fs::read(path).unwrap()).collect()
    };
    assert_eq!(contents().len(), 2);
    run(home, &["forget", "aa", "--yes"]).ends(0);
    assert_eq!(contents(), [PNG], "another conversation has this one too");
    run(home, &["import", &zip]);
    assert_eq!(contents(), [PNG]);
    run(home, &["forget", "bb", "--yes"]).ends(0);
    assert!(contents().is_empty());
}

#[test]
fn texts_of_claude_are_kept_and_other_databases_get_none() {
    let folder = folder();
    let home = folder.path();
    let export = json!([{"uuid": "cc", "name": "Report", "created_at": "2025-01-03T10:00:00Z",
        "chat_messages": [{"uuid": "c1", "sender": "human", "text": "Sum it up",
            "attachments": [{"file_name": "report.pdf", "extracted_content": "Sales rose."},
                {"file_name": "paste.txt", "extracted_content": "one"},
                {"file_name": "paste.txt", "extracted_content": "two"}],
            "files": [{"file_uuid": "u1", "file_name": "photo.png"}]}]}]);
    fs::write(home.join("conversations.json"), export.to_string()).unwrap();
    run(home, &["import", "conversations.json"])
        .prints("1 message, 3 files (17 bytes)\n")
        .prints("left out: 1 file that messages name and the export does not have; ");
    run(home, &["export", "notes"]);
    let text = fs::read(home.join("notes/2025/attachments/cc/report pdf.txt")).unwrap();
    assert_eq!(text, b"Sales rose.");
    assert_eq!(fs::read(home.join("notes/2025/attachments/cc/paste 2.txt")).unwrap(), b"two");
    run(home, &["import", "conversations.json", "--db", "other.db"]).prints_not("kept");
}

/// Returns the contents in the store of a home, sorted.
fn contents(home: &Path) -> Vec<Vec<u8>> {
    let paths = all(&home.join("v/attachments/files"));
    let mut contents: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    contents.sort();
    contents
}

#[test]
fn what_others_put_there_and_damaged_lists_keep_no_forget_from_its_work() {
    let folder = folder();
    let home = folder.path();
    let one = json!([{"id": "file-abc", "name": "one.md"}]);
    let two = json!([{"id": "file-def", "name": "two.md"}]);
    let files: [(&str, &[u8]); 2] = [("file-abc.md", b"ONE"), ("file-def.md", b"TWO")];
    let zip =
        export(home, "a.zip", &[chat_with_files("aa", &one), chat_with_files("bb", &two)], &files);
    run(home, &["import", &zip]);
    let store = home.join("v/attachments");
    let lists = || -> Vec<PathBuf> {
        let lists = all(&store.join("chats")).into_iter();
        lists.filter(|path| path.extension().is_some_and(|end| end == "json")).collect()
    };
    for place in ["chats", "files"] {
        fs::write(store.join(place).join(".DS_Store"), b"\0\0\0\x01Bud1").unwrap();
    }
    let of_bb = lists().into_iter().find(|path| fs::read_to_string(path).unwrap().contains("two"));
    let of_bb = of_bb.unwrap();
    fs::write(&of_bb, "{cut").unwrap();
    let Said { code, errors: err, .. } = run(home, &["forget", "aa", "--yes"]);
    assert!(code != Some(0) && err.contains("is damaged"), "{err}");
    has(&err, &[of_bb.to_str().unwrap(), "import its export again"]);
    // The conversation is forgotten, and the other conversation loses nothing.
    assert_ne!(run(home, &["show", "aa"]).code, Some(0));
    assert_eq!((lists(), contents(home).len()), (vec![of_bb.clone()], 3));
    // The advice in the message works.
    fs::remove_file(of_bb).unwrap();
    run(home, &["import", &zip]);
    run(home, &["forget", "aa", "--yes"]).ends(0).warns_not("damaged");
    assert_eq!(contents(home), [b"\0\0\0\x01Bud1".to_vec(), b"TWO".to_vec()]);
}

#[test]
fn a_file_is_read_once_and_not_at_all_if_it_is_too_large() {
    let folder = folder();
    let home = folder.path();
    let chats = [
        chat_with_files("aa", &json!([])),
        chat_with_files("bb", &json!([])),
        chat_with_files("cc", &json!([])),
    ];
    let exported = home.join("exported");
    fs::create_dir(&exported).unwrap();
    fs::write(exported.join("conversations.json"), Value::from(&chats[..]).to_string()).unwrap();
    let large = fs::File::create(exported.join("file_00ff-film.mp4")).unwrap();
    large.set_len(100_000_001).unwrap();
    run(home, &["import", "--verbose", "exported"])
        .prints("1 file of messages left out, more than 100 MB long: film.mp4\n")
        .prints_not("kept");
    // The store has no room.
    large.set_len(1_000).unwrap();
    let full = home.join("v/attachments/files").join("a".repeat(64));
    fs::File::create(&full).unwrap().set_len(7_999_999_001).unwrap();
    run(home, &["import", "--verbose", "exported"])
        .prints("1 file of messages left out, because 8.0 GB are kept at most: film.mp4\n")
        .prints("`verbatim forget` makes room");
    fs::remove_file(full).unwrap();
    run(home, &["import", "--verbose", "exported"]).prints("1 file of messages kept, 1 KB");
}

#[test]
fn files_that_unpack_to_far_too_much_are_left_out() {
    let folder = folder();
    let home = folder.path();
    let listed = json!([{"id": "file-abc", "name": "zeros"}, {"id": "file-def", "name": "small"}]);
    let zeros = vec![0; 17 << 20];
    let files: [(&str, &[u8]); 2] = [("file-abc.bin", &zeros), ("file-def.md", b"small")];
    let zip = export(
        home,
        "a.zip",
        &[chat_with_files("aa", &listed), chat_with_files("bb", &listed)],
        &files,
    );
    let Said { code, out, errors: err } = run(home, &["import", &zip]);
    assert!(code == Some(1) && out.contains("4 messages, 1 file (5 bytes)"), "{out}{err}");
    assert_eq!(out.matches("zeros: the file is not kept: with it the zip unpacks to").count(), 1);
    assert_eq!(contents(home), [b"small"]);
}

#[test]
fn a_killed_import_leaves_no_files_of_chats_that_are_not_there() {
    let listed = json!([{"id": "file-abc", "name": "notes.md"}]);
    let mut places = Vec::new();
    for number in 1.. {
        let folder = folder();
        let home = folder.path();
        let files: [(&str, &[u8]); 2] = [("file-abc.md", b"red"), ("file_00ff.png", PNG)];
        let zip = export(home, "a.zip", &[chat_with_files("aa", &listed)], &files);
        let other = export(
            home,
            "b.zip",
            &[chat_with_files("bb", &json!([]))],
            &[("file_00ff.png", OTHER)],
        );
        // Without a folder for the index, the program ends after the import.
        let import = |zip: &str| {
            let mut import = program(home, &["import", zip]);
            import.env("VERBATIM_INDEX", "/dev/null/index");
            import
        };
        import(&other).output().unwrap();
        let mut killed = import(&zip);
        let output = killed.env("VERBATIM_FAILPOINT", number.to_string()).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        let mark = format!("failpoint {number}: ");
        let killed_at = errors.lines().find_map(|line| line.strip_prefix(&mark)).map(str::to_owned);
        import(&other).output().unwrap();
        let lists = all(&home.join("v/attachments/chats")).len();
        // Every kept content is in a list, and each list has its chat.
        assert_eq!(contents(home).len(), if lists == 2 { 3 } else { 1 }, "{killed_at:?}");
        assert!(lists == 1 || run(home, &["show", "aa"]).code == Some(0), "{killed_at:?}");
        import(&zip).output().unwrap();
        assert_eq!(contents(home), [&b"red"[..], OTHER, PNG], "{killed_at:?}");
        run(home, &["forget", "aa", "bb", "--yes"]).ends(0);
        assert!(contents(home).is_empty(), "{killed_at:?}");
        let Some(place) = killed_at else { break };
        places.push(place);
    }
    for place in ["import to be committed", "files of messages kept", "lists of files written"] {
        assert!(places.iter().any(|passed| passed == place), "{place} is not among {places:?}");
    }
}

#[test]
fn a_forget_during_an_import_says_that_it_waits() {
    let folder = folder();
    let home = folder.path();
    let zip =
        export(home, "a.zip", &[chat_with_files("aa", &json!([]))], &[("file_00ff.png", PNG)]);
    run(home, &["import", &zip]);
    // An import holds the lock.
    let lock = fs::File::open(home.join("v/attachments/lock")).unwrap();
    lock.lock().unwrap();
    let mut command = program(home, &["forget", "aa", "--yes"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let said = lines.next().unwrap().unwrap();
    assert!(said.contains("waiting for another process that writes"), "{said}");
    assert_eq!(contents(home), [PNG]);
    lock.unlock().unwrap();
    drop(lines);
    assert!(child.wait().unwrap().success());
    assert!(contents(home).is_empty());
}

#[test]
fn texts_of_attached_files_are_searched() {
    let folder = folder();
    let home = folder.path();
    let listed = json!([{"id": "file-list0001", "name": "plants.txt"}, {"id": "file_table0001"},
        {"id": "file-settings1", "name": "pump.json"}, {"id": "file-letter001", "name": "note.txt"},
        {"id": "file-book00001", "name": "book.txt"}, {"id": "file-print0001", "name": "print.pdf"},
        {"id": "file-blank0001", "name": "blank.md"}]);
    let names = json!({"file_table0001.dat": "table.csv", "file-list0001.dat": "another name"});
    let names = names.to_string();
    let letter: Vec<u8> =
        "\u{feff}a quince".encode_utf16().flat_map(|unit| unit.to_le_bytes()).collect();
    let files: [(&str, &[u8]); 9] = [
        ("file-list0001.dat", b"basil, strawberry\n"),
        ("file_table0001.dat", b"pot,plant\r\n1,rhubarb\r\n"),
        ("file-settings1-pump.json", br#"{"pump": "gooseberry"}"#),
        ("file-letter001.txt", &letter),
        ("file-book00001.txt", &b"elderberry ".repeat(100_000)),
        ("file-print0001.pdf", b"%PDF-1.7 elderberry"),
        ("file-blank0001.md", b" \n"),
        ("file_00ff-photo.dat", PNG),
        ("conversation_asset_file_names.json", names.as_bytes()),
    ];
    let chats = [chat_with_files("aa", &listed)];
    let zip = export(home, "a.zip", &chats, &files);
    let unpacked = home.join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    fs::write(unpacked.join("conversations.json"), Value::from(&chats[..]).to_string()).unwrap();
    files.iter().for_each(|(name, content)| fs::write(unpacked.join(name), content).unwrap());
    let read = |database: &str| -> String {
        let database = rusqlite::Connection::open(home.join(database)).unwrap();
        let sql = "SELECT content FROM messages WHERE content LIKE 'Read this%'";
        database.query_row(sql, [], |row| row.get(0)).unwrap()
    };
    let mut expected = "Read this\n\n[file: plants.txt]\n[file: pump.json]\n[file: note.txt]\n\
        [file: book.txt]\n[file: print.pdf]\n[file: blank.md]\n\nplants.txt\nbasil, strawberry\n\n\
        table.csv\npot,plant\n1,rhubarb\n\npump.json\n{\"pump\": \"gooseberry\"}\n\nnote.txt\n\
        a quince"
        .to_owned();
    for (source, database) in [(&*zip, "zip.db"), ("unpacked", "folder.db")] {
        run(home, &["import", source, "--db", database])
            .ends(0)
            .prints("texts of more than 1 MB in attached files");
        assert_eq!(read(database), expected);
    }
    for word in ["strawberry", "rhubarb", "gooseberry", "quince"] {
        let found = run(home, &["search", "--db", "zip.db", "--count", word]);
        assert_eq!(found.out, "1\n", "{word}: {found:?}");
    }
    // An export without some of the files takes no text out, however it is imported.
    for files in [&[files[1], files[8]][..], &[]] {
        let later = export(home, "later.zip", &chats, files);
        let Said { out, .. } = run(home, &["import", &later, "--db", "zip.db"]);
        assert_eq!(read("zip.db"), expected, "{out}");
        let Said { out, .. } = run(home, &["import", &later, "--db", "new.db"]);
        assert!(read("new.db").len() < expected.len(), "{out}");
        fs::remove_file(home.join("new.db")).unwrap();
    }
    // Another text of a file replaces the stored one.
    let other =
        export(home, "b.zip", &chats, &[&[(files[0].0, &b"sorrel"[..])], &files[1..]].concat());
    run(home, &["import", &other, "--db", "zip.db"]);
    expected = expected.replace("basil, strawberry", "sorrel");
    assert_eq!(read("zip.db"), expected);
}
