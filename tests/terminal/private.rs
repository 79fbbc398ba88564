//! Everything that the program makes can be read by its owner only, whatever the umask.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use serde_json::json;

use crate::{corpus::folder, program::Server, threads};

const EXPORT: &str = r#"[{"uuid": "c1", "name": "Baking", "chat_messages": [
    {"uuid": "m1", "sender": "human", "created_at": "2025-01-03T10:00:00Z", "text": "How long does bread proof?"},
    {"uuid": "m2", "sender": "assistant", "created_at": "2025-01-03T10:00:09Z", "text": "Four hours at 24 degrees."}]}]"#;

const TRANSCRIPT: &str = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2025-01-04T10:00:00Z","cwd":"/p","message":{"role":"user","content":"Why does the oven smoke?"}}
"#;

/// A home folder, an export, a transcript and a folder for temporary files.
struct Scene {
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Scene {
        let scene = Scene { folder: folder() };
        fs::create_dir_all(scene.path("agent/project")).unwrap();
        fs::create_dir_all(scene.path("tmp")).unwrap();
        fs::write(scene.path("conversations.json"), EXPORT).unwrap();
        fs::write(scene.path("agent/project/s1.jsonl"), TRANSCRIPT).unwrap();
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the program with a command, under umask 000.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("/bin/sh");
        command.env_clear().env("TMPDIR", self.path("tmp")).current_dir(self.folder.path());
        command.args(["-c", "umask 000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_verbatim")]);
        command.args(arguments);
        command.arg("--home").arg(self.path("home")).arg("--archive").arg(self.path("agent"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command, and checks everything in the home folder after it.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let output = self.command(arguments).output().expect("the program can be started");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() < Some(2), "{arguments:?}: {text}{errors}");
        self.check(&arguments.join(" "));
        text
    }

    #[track_caller]
    fn check(&self, after: &str) {
        for folder in ["home", "tmp"] {
            // The temporary folder itself was made by the test.
            let entries =
                if folder == "home" { open_to_others(&self.path(folder)) } else { Vec::new() };
            assert!(entries.is_empty(), "after {after}: {entries:#?}");
        }
        assert_eq!(fs::read_dir(self.path("tmp")).unwrap().count(), 0, "left after {after}");
    }
}

/// Returns the files and folders at and below a path that others have rights to.
fn open_to_others(path: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    let Ok(metadata) = fs::symlink_metadata(path) else { return found };
    if metadata.mode() & 0o077 != 0 {
        found.push((path.to_owned(), metadata.mode() & 0o777));
    }
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap().flatten() {
            found.extend(open_to_others(&entry.path()));
        }
    }
    found
}

/// Waits until a condition is true.
#[track_caller]
fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_there() {
        assert!(Instant::now() < end, "no {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn no_command_lets_others_read_what_it_makes() {
    let scene = Scene::new();
    let home = scene.path("home");
    scene.run(&["demo"]);
    scene.run(&["import", "conversations.json"]);
    scene.run(&["search", "bread"]);
    scene.run(&["search", "bread", "--mode", "both"]);
    scene.run(&["reindex"]);
    scene.run(&["search", "smoke", "--mode", "both"]);
    for command in ["list", "stats", "status", "doctor"] {
        scene.run(&[command]);
    }
    let mut server = Server::start(&mut scene.command(&["serve"]));
    scene.check("the start of a server");
    let recorded = json!({"action": "start", "message": "What is my PIN?"});
    server.call("manage_conversation", &recorded);
    server.call("search", &json!({"query": "bread"}));
    let is_indexed = || {
        let folders = fs::read_dir(home.join("index")).into_iter().flatten().flatten();
        let names = folders.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.into_iter().any(|name| name.starts_with("threads-"))
    };
    wait_for("index of the threads", is_indexed);
    // While the server builds a segment, its files may be open in the private folder of the segment.
    wait_for("private index of the threads", || open_to_others(&home).is_empty());
    drop(server);
    let mut watch = scene.command(&["watch"]).spawn().unwrap();
    fs::write(scene.path("agent/project/s2.jsonl"), TRANSCRIPT.replace("s1", "s2")).unwrap();
    thread::sleep(Duration::from_secs(1));
    watch.kill().unwrap();
    watch.wait().unwrap();
    scene.run(&["reindex", "--full"]);
    scene.run(&["import", "conversations.json", "--db", "home/more/other.db"]);
}

/// Gives every file and folder below a path the modes that they have under a umask.
fn open_up(path: &Path, umask: u32) {
    let is_folder = path.is_dir();
    if is_folder {
        fs::read_dir(path).unwrap().flatten().for_each(|entry| open_up(&entry.path(), umask));
    }
    let mode = if is_folder { 0o777 } else { 0o666 } & !umask;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn an_older_home_is_tightened_at_the_next_start() {
    let scene = Scene::new();
    scene.run(&["import", "conversations.json"]);
    scene.run(&["reindex"]);
    let home = scene.path("home");
    threads::record(&home, "My bank PIN is 4711", None);
    // The index of another database.
    let old = home.join("index/verbatim-0123456789abcdef/snapshot-1");
    fs::create_dir_all(old.join("segment-1")).unwrap();
    fs::write(old.parent().unwrap().join("lock"), "").unwrap();
    fs::write(old.join("segment-1/rows"), "My bank PIN is 4711").unwrap();
    for umask in [0o022, 0] {
        open_up(&home, umask);
        scene.run(&["status"]);
        // The times of the database are changed.
        scene.run(&["reindex"]);
        let status = scene.run(&["status"]);
        assert!(status.contains("by its index, which is current"), "{status}");
    }
    // Files of the user in the home, and the folders around the home, are not changed.
    let (note, export) = (home.join("note.txt"), home.join("db/mine.db"));
    fs::copy(home.join("db/verbatim.db"), &export).unwrap();
    fs::write(&note, "mine").unwrap();
    open_up(&home, 0o022);
    assert!(scene.command(&["status"]).status().unwrap().success());
    let left: Vec<PathBuf> = open_to_others(&home).into_iter().map(|(path, _)| path).collect();
    let mut expected = vec![home.clone(), note, home.join("db"), export];
    expected.sort();
    let mut left = left;
    left.sort();
    assert_eq!(left, expected);
}

#[test]
#[ignore = "needs root"]
fn an_index_that_another_user_can_change_does_not_answer() {
    let scene = Scene::new();
    scene.run(&["import", "conversations.json"]);
    scene.run(&["reindex"]);
    let folder = fs::read_dir(scene.path("home/index")).unwrap().flatten();
    let is_export =
        |path: &PathBuf| path.file_name().unwrap().to_string_lossy().contains("verbatim-");
    let folder = folder.map(|entry| entry.path()).find(is_export).expect("an index");
    chown(&folder, Some(65_534), None).expect("root can give a folder away");
    assert_eq!(scene.run(&["search", "bread", "-c"]), "1\n");
    let status = scene.run(&["status"]);
    assert!(status.contains("belongs to another user"), "{status}");
    let out = scene.command(&["reindex", "--full"]).output().unwrap();
    assert!(String::from_utf8_lossy(&out.stderr).contains("belongs to another user"));
    assert_eq!(out.status.code(), Some(2));
}
