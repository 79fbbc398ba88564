//! The files of messages: kept by an import, shown, written out by an export, and forgotten.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{corpus::folder, import::zip_of};

/// The smallest pictures: their first bytes are enough.
const PNG: &[u8] = b"\x89PNG\r\n\x1a\n picture";
const OTHER: &[u8] = b"\x89PNG\r\n\x1a\n another";

fn run(home: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).args(["--no-archive", "--home"]).arg(home.join("v"));
    let output = command.args(arguments).current_dir(home).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// Returns an export of ChatGPT: a conversation whose first message has these attachments, and whose
/// second one has a picture in its content.
pub(crate) fn chat(id: &str, attachments: &Value) -> Value {
    let node = |parent: Option<&str>, role: &str, content: Value, attachments: &Value| {
        json!({"parent": parent, "children": [], "message": {
            "author": {"role": role}, "content": content, "create_time": 1_700_000_000,
            "metadata": {"attachments": attachments}}})
    };
    let text = |text: &str| json!({"content_type": "text", "parts": [text]});
    let picture = json!({"content_type": "multimodal_text", "parts": [
        {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_00ff#x"}, "Look"]});
    json!({"id": id, "title": format!("Chat {id}"), "create_time": 1_700_000_000,
    "update_time": 1_700_000_000, "current_node": format!("{id}-2"), "mapping": {
        format!("{id}-1"): node(None, "user", text("Read this"), attachments),
        format!("{id}-2"): node(Some(&format!("{id}-1")), "assistant", picture, &json!([])),
    }})
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
        &[chat("aa", &listed), chat("bb", &json!([]))],
        &[
            ("file-abc-notes.md", b"<b>red</b>"),
            ("file-abcd-wrong.md", b"wrong"),
            ("deep/er/file_00ff-photo.dat", PNG),
            ("file-same", b"blue"),
            ("../file-out", b"out"),
        ],
    );
    let (code, out, err) = run(home, &["import", &zip]);
    assert!(code == Some(1) && err.contains("leads out"), "{out}{err}");
    assert!(out.contains("4 files of messages kept, "), "{out}");
    assert!(out.contains("not in the export: 1 file that messages name"), "{out}");
    // Each content once; nobody else reads them.
    let store = home.join("v/attachments");
    assert_eq!(all(&store.join("files")).len(), 3);
    for path in all(&home.join("v")).iter().chain([&store]) {
        let mode = fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }

    let shown = run(home, &["show", "aa"]).1;
    assert!(shown.contains("3 attachments: `verbatim export`"), "{shown}");
    assert!(shown.contains("[../../no te:s.md, text/plain, 10 bytes]"), "{shown}");
    assert!(shown.contains("[photo.dat, image/png, "), "{shown}");
    let shown = run(home, &["show", "aa", "--json"]).1;
    let first: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert_eq!(first["attachments"][0]["type"], "text/plain");

    let (code, out, err) = run(home, &["export", "notes"]);
    assert!(code == Some(0) && out.contains("\n4 attachments with them"), "{out}{err}");
    let written = all(&home.join("notes"));
    let of = |name: &str| written.iter().find(|path| path.ends_with(name)).cloned();
    assert_eq!(fs::read(of("attachments/aa/no te s.md").unwrap()).unwrap(), b"<b>red</b>");
    assert_eq!(fs::read(of("attachments/aa/NO TE S 2.md").unwrap()).unwrap(), b"blue");
    assert_eq!(fs::read(of("attachments/aa/photo.png").unwrap()).unwrap(), PNG);
    assert!(written.iter().all(|path| path.starts_with(home.join("notes"))));
    let note = of("2023-11-14 Chat aa (aa).md").unwrap();
    let text = fs::read_to_string(&note).unwrap();
    assert!(text.contains("Read this\n\n[no te s.md](<attachments/aa/no te s.md>)\n"), "{text}");
    assert!(text.contains("Look\n\n![photo.png](<attachments/aa/photo.png>)\n"), "{text}");
    // A file that changed is written again, and only that.
    fs::write(of("attachments/aa/photo.png").unwrap(), OTHER).unwrap();
    assert!(run(home, &["export", "notes"]).1.contains(": 0 written"));
    assert_eq!(fs::read(of("attachments/aa/photo.png").unwrap()).unwrap(), PNG);
    // One that is missing in the store is named, and the rest is written.
    let lost = all(&store.join("files")).into_iter().find(|it| fs::read(it).unwrap() == b"blue");
    fs::remove_file(lost.unwrap()).unwrap();
    let (code, out, err) = run(home, &["export", "other"]);
    assert!(code == Some(0) && out.contains("\n3 attachments with them"), "{out}{err}");
    assert!(err.contains("the files of messages cannot be used: "), "{err}");
}

#[test]
fn a_newer_export_adds_files_and_loses_none() {
    let folder = folder();
    let home = folder.path();
    let listed = json!([{"id": "file-abc", "name": "notes.md"}]);
    let old = export(home, "old.zip", &[chat("aa", &listed)], &[("file-abc.md", b"red")]);
    let new = export(home, "new.zip", &[chat("aa", &listed)], &[("file_00ff.png", PNG)]);
    assert!(run(home, &["import", &old]).1.contains("1 file of messages kept, 3 bytes"));
    let (_, out, _) = run(home, &["import", &new]);
    assert!(out.contains("2 files of messages kept"), "{out}");
    let before = all(home);
    assert!(run(home, &["import", &new]).1.contains("2 files of messages kept"));
    assert_eq!(all(home), before);
    // One that is gone from the store comes back with the export, and a killed import leaves nothing.
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
    let zip = export(home, "a.zip", &[chat("aa", &listed), chat("bb", &json!([]))], &files);
    run(home, &["import", &zip]);
    let contents = || -> Vec<Vec<u8>> {
        let paths = all(&home.join("v/attachments/files"));
        paths.iter().map(|path| fs::read(path).unwrap()).collect()
    };
    assert_eq!(contents().len(), 2);
    assert_eq!(run(home, &["forget", "aa", "--yes"]).0, Some(0));
    assert_eq!(contents(), [PNG], "another conversation has this one too");
    run(home, &["import", &zip]);
    assert_eq!(contents(), [PNG]);
    assert_eq!(run(home, &["forget", "bb", "--yes"]).0, Some(0));
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
    let (_, out, _) = run(home, &["import", "conversations.json"]);
    assert!(out.contains("3 files of messages kept, 17 bytes"), "{out}");
    assert!(out.contains("not in the export: 1 file that messages name"), "{out}");
    run(home, &["export", "notes"]);
    let text = fs::read(home.join("notes/2025/attachments/cc/report pdf.txt")).unwrap();
    assert_eq!(text, b"Sales rose.");
    assert_eq!(fs::read(home.join("notes/2025/attachments/cc/paste 2.txt")).unwrap(), b"two");
    let (_, out, _) = run(home, &["import", "conversations.json", "--out", "other.db"]);
    assert!(!out.contains("kept"), "{out}");
}
