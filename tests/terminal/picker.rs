//! The picker on a terminal.

use std::num::NonZero;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use pty_process::blocking::Command;
use verbatim_base::call::Call;
use verbatim_engine::{Reindex, Resources};

use crate::{corpus::folder, program::Place, pty::OnTerminal, terminal::sample};

/// How long the program may take for anything.
const PATIENCE: Duration = Duration::from_secs(30);

/// The program on a terminal of its own.
struct Session {
    on: OnTerminal,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
    /// Everything that the program wrote.
    written: Vec<u8>,
}

impl Session {
    fn start(place: &Place, lines: u16, columns: u16) -> Session {
        let command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
        Session::start_as(command, place, lines, columns)
    }

    fn start_as(command: Command, place: &Place, lines: u16, columns: u16) -> Session {
        let mut command = command.env_clear().env("TERM", "xterm-256color").env("PATH", "");
        command = command.env("VERBATIM_INDEX", &place.index);
        command = command.arg("--db").arg(&place.db).arg("--home").arg(&place.home);
        let on = OnTerminal::start(command, (lines, columns));
        let pty = Arc::clone(&on.pty);
        let (sender, output) = channel();
        std::thread::spawn(move || {
            OnTerminal::read(&pty, |bytes| sender.send(bytes.to_vec()).is_ok());
        });
        Session {
            on,
            output,
            screen: {
                let some = |count| NonZero::new(count).expect("a screen has lines and columns");
                vt100::Parser::new(some(lines), some(columns), 0)
            },
            written: Vec::new(),
        }
    }

    fn press(&mut self, keys: &str) {
        self.on.press(keys);
    }

    /// Waits until the screen meets a condition; returns the screen.
    #[track_caller]
    fn wait(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.screen.screen().contents();
            if wanted(&shown) {
                return shown;
            }
            let rest = end.saturating_duration_since(Instant::now());
            match self.output.recv_timeout(rest) {
                Ok(bytes) => {
                    self.screen.process(&bytes);
                    self.written.extend(bytes);
                }
                Err(error) => panic!("{error}; the screen is:\n{shown}"),
            }
        }
    }

    /// Waits until the chosen line, which is marked by its colours, has a text.
    #[track_caller]
    fn chosen(&mut self, text: &str) {
        let end = Instant::now() + PATIENCE;
        let is_chosen = |screen: &vt100::Screen| {
            let (lines, columns) = (screen.size().0.get(), screen.size().1.get());
            (0..lines).zip(screen.rows(0, columns)).any(|(line, shown)| {
                shown.contains(text) && screen.cell(line, 4).is_some_and(vt100::Cell::inverse)
            })
        };
        while !is_chosen(self.screen.screen()) {
            assert!(Instant::now() < end, "{}", self.screen.screen().contents());
            if let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(50)) {
                self.screen.process(&bytes);
            }
        }
    }

    /// Waits for the end of the program; returns its exit code and the screen.
    fn end(mut self) -> (Option<i32>, String, Vec<u8>) {
        let code = self.on.child.wait().unwrap().code();
        while let Ok(bytes) = self.output.recv_timeout(Duration::from_millis(300)) {
            self.screen.process(&bytes);
            self.written.extend(bytes);
        }
        let screen = self.screen.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        (code, screen.contents(), self.written)
    }
}

fn place(folder: &std::path::Path, is_indexed: bool) -> Place {
    let place = Place::in_folder(folder);
    drop(sample(&place.db));
    if is_indexed {
        let options =
            Reindex { resources: Resources { memory: 64 << 20, threads: 1 }, full: false };
        place.engine().upkeep().reindex(options, &Call::default(), &mut |_| {}).unwrap();
    }
    place
}

#[test]
fn headings_name_the_service() {
    let folder = folder();
    for is_indexed in [false, true] {
        let place = place(folder.path(), is_indexed);
        let connection = rusqlite::Connection::open(&place.db).unwrap();
        let sql =
            "CREATE TABLE verbatim_conversations (conversation_id TEXT, source TEXT, link TEXT, model TEXT);
                   INSERT INTO verbatim_conversations VALUES ('6650a1b2-0001', 'chatgpt', NULL, NULL);";
        connection.execute_batch(sql).unwrap();
        let mut session = Session::start(&place, 24, 80);
        let shown = session.wait(|shown| shown.contains("4 chats") && shown.contains("chatgpt"));
        assert_eq!((shown.matches("chatgpt").count(), shown.matches("export").count()), (1, 3));
        session.press("because");
        session.wait(|shown| shown.contains("1 message") && shown.contains("chatgpt"));
        session.press("\u{1b}");
        assert_eq!(session.end().0, Some(0));
        std::fs::remove_file(&place.db).unwrap();
    }
}

#[test]
fn letters_find_and_enter_shows() {
    let folder = folder();
    for is_indexed in [false, true] {
        let place = place(folder.path(), is_indexed);
        let mut session = Session::start(&place, 24, 120);
        session.wait(|shown| shown.contains("4 chats") && shown.contains("日本語の質問"));
        session.press("because");
        // The row and the preview.
        let shown = session.wait(|shown| shown.matches("assistant").count() == 2);
        assert!(shown.contains("> because") && shown.contains("Rust lifetimes"), "{shown}");
        assert!(shown.matches("Because `y` is gone").count() == 2, "{shown}");
        // Without a pager, the conversation is printed.
        session.press("\r");
        let (code, shown, written) = session.end();
        assert_eq!(code, Some(0));
        let written = String::from_utf8(written).unwrap();
        let is_shown = written.contains("Rust lifetimes") && shown.contains("· tool");
        assert!(is_shown && written.contains(" is gone."), "{shown}");
        std::fs::remove_file(&place.db).unwrap();
    }
}

#[cfg(unix)]
#[test]
fn after_a_pager_the_search_goes_on() {
    use std::os::unix::fs::PermissionsExt;
    let folder = folder();
    let place = place(folder.path(), true);
    let pager = folder.path().join("pager");
    std::fs::write(&pager, "#!/bin/sh\n/bin/cat\nread key </dev/tty\n").unwrap();
    std::fs::set_permissions(&pager, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = format!("PATH=/bin:/usr/bin PAGER={} exec \"$0\" \"$@\"", pager.display());
    let command = Command::new("/bin/sh").args(["-c", &script, env!("CARGO_BIN_EXE_verbatim")]);
    let mut session = Session::start_as(command, &place, 24, 80);
    session.wait(|shown| shown.contains("4 chats"));
    session.press("e");
    session.wait(|shown| shown.contains("> e") && shown.contains("5 messages"));
    session.press("\u{1b}[B");
    session.chosen("user ");
    // The user leaves the pager with a key, and then with Ctrl-C.
    for key in ["\r", "\u{3}"] {
        session.press("\r");
        session.wait(|shown| !shown.contains("> e") && shown.contains("· "));
        std::thread::sleep(Duration::from_millis(500));
        session.press(key);
        let shown = session.wait(|shown| shown.contains("5 messages"));
        assert!(shown.starts_with("> e\n"), "{shown}");
        session.chosen("user ");
    }
    session.press("\u{1b}");
    assert_eq!(session.end().0, Some(0));
}

/// The number of the line of the screen with a text, from 0.
fn line_with(shown: &str, text: &str) -> Option<usize> {
    shown.lines().position(|line| line.contains(text))
}

#[cfg(unix)]
#[test]
fn less_shows_what_was_found_on_its_first_screen() {
    if !std::path::Path::new("/usr/bin/less").exists() {
        return;
    }
    let folder = folder();
    let place = place(folder.path(), false);
    let connection = rusqlite::Connection::open(&place.db).unwrap();
    let insert = "INSERT INTO messages (id, conversation_id, role, content, create_time, position)
                  VALUES ('long' || ?1, '6650a1b2-0001', ?2, ?3, 1800000000 + ?1, 100 + ?1)";
    let filler = "filler words of a long answer\n\n".repeat(40);
    for number in 0..9 {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let text = match number {
            6 => format!("{filler}The zeppelin is over the lake.\n\n{filler}"),
            _ => filler.clone(),
        };
        connection.execute(insert, (number, role, text)).unwrap();
    }
    for (lines, columns, colours) in [(24, 80, ""), (24, 80, "NO_COLOR=1"), (12, 40, "")] {
        let script = format!("PATH=/bin:/usr/bin {colours} exec \"$0\" \"$@\"");
        let command = Command::new("/bin/sh").args(["-c", &script, env!("CARGO_BIN_EXE_verbatim")]);
        let mut session = Session::start_as(command, &place, lines, columns);
        session.wait(|shown| shown.contains("4 chats"));
        session.press("zeppelin");
        session.wait(|shown| shown.contains("1 message"));
        session.press("\r");
        let shown = session.wait(|shown| shown.contains("q: back to the results"));
        let found = line_with(&shown, "The zeppelin is over").expect(&shown);
        assert!(found > 0 && found <= usize::from(lines) / 3, "{shown}");
        // A pager that ends at once counts as one that does not wait.
        std::thread::sleep(Duration::from_millis(500));
        session.press("q");
        session.wait(|shown| shown.starts_with("> zeppelin"));
        session.press("\u{1b}");
        assert_eq!(session.end().0, Some(0));
    }
}

#[test]
fn nothing_as_one_text_shows_other_readings() {
    let folder = folder();
    let place = place(folder.path(), true);
    let mut session = Session::start(&place, 24, 80);
    session.wait(|shown| shown.contains("4 chats"));
    session.press("lifetimes because");
    let shown = session.wait(|shown| shown.contains("both words:"));
    assert!(shown.contains("no message has \"lifetimes because\" as one text"), "{shown}");
    assert!(shown.contains("1 message in 1 conversation"), "{shown}");
    session.press("\u{15}because role:boss");
    let shown = session.wait(|shown| shown.contains("searched as"));
    assert!(shown.contains("assistant"), "{shown}");
    session.press("\u{15}because role:assistant");
    session.wait(|shown| shown.contains("1 message in 1 conversation · exact · role:assistant ─"));
    session.press("\u{14}");
    session.wait(|shown| shown.contains("· best by words and meaning · role:assistant"));
    session.press("\u{14}\u{15}");
    session.wait(|shown| shown.contains("4 chats · exact"));
    session.press("\u{1b}OP");
    session.wait(|shown| shown.contains("Esc closes this list") && shown.contains("role:user"));
    session.press("\u{1b}");
    session.wait(|shown| !shown.contains("role:user") && shown.contains("4 chats"));
    session.press("\u{1b}");
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn enter_is_about_what_was_typed_before_it() {
    let folder = folder();
    let place = place(folder.path(), true);
    let mut session = Session::start(&place, 24, 80);
    session.wait(|shown| shown.contains("4 chats"));
    session.press("\u{1b}[200~part\r\ntwo\u{1b}[201~");
    session.wait(|shown| shown.contains("part two"));
    session.press("\u{15}カフェ\r");
    let (code, shown, _) = session.end();
    assert_eq!(code, Some(0));
    assert!(shown.contains("カフェはどこ？"), "{shown}");
}

#[test]
fn keys_copy_and_leave() {
    let folder = folder();
    let place = place(folder.path(), true);
    let mut session = Session::start(&place, 10, 30);
    session.wait(|shown| shown.contains("4 chats"));
    session.press("not red");
    session.wait(|shown| shown.contains("1 message"));
    session.press("\u{19}");
    session.wait(|shown| shown.contains("copied the message"));
    session.press("\u{f}");
    session.wait(|shown| shown.contains("has no link"));
    session.press("\u{12}");
    session.wait(|shown| shown.contains("only sessions"));
    session.press("\u{1b}");
    let (code, _, written) = session.end();
    assert_eq!(code, Some(0));
    let written = String::from_utf8(written).unwrap();
    // The escape of the message is in the clipboard, where it is harmless, and nowhere else.
    assert!(
        written.contains("\u{1b}]52;c;G1szMW1Ob3QgcmVkLg==") && !written.contains("\u{1b}[31mNot")
    );
}

#[cfg(unix)]
#[test]
fn signs_that_a_terminal_shows_wider_leave_nothing() {
    let folder = folder();
    let place = place(folder.path(), true);
    // This terminal shows a flag as its two letters.
    let sql = "UPDATE conversations SET title = '🇨🇭 and 🇨🇭'";
    rusqlite::Connection::open(&place.db).unwrap().execute(sql, []).unwrap();
    let mut session = Session::start(&place, 12, 40);
    session.wait(|shown| shown.contains("4 chats") && shown.contains('🇭'));
    session.press("no such text");
    let shown = session.wait(|shown| shown.contains("no message has"));
    assert!(!shown.contains(['🇨', '🇭']), "{shown}");
    session.press("\x1b");
    assert_eq!(session.end().0, Some(0));
}

#[test]
fn a_signal_gives_the_screen_back() {
    let folder = folder();
    let place = place(folder.path(), true);
    let mut session = Session::start(&place, 10, 80);
    session.wait(|shown| shown.contains("4 chats"));
    let id = session.on.child.id().to_string();
    assert!(std::process::Command::new("kill").arg(id).status().unwrap().success());
    let (code, ..) = session.end();
    assert_ne!(code, Some(0));
}

#[test]
fn without_chats_it_says_what_to_do() {
    let (_folder, place) = Place::temporary();
    rusqlite::Connection::open(&place.db).unwrap().execute_batch(crate::corpus::SCHEMA).unwrap();
    let (code, shown, _) = Session::start(&place, 10, 80).end();
    assert_eq!(code, Some(1));
    assert!(shown.contains("no chats") && shown.contains("verbatim import"), "{shown}");
}

#[test]
fn without_a_terminal_it_gives_examples() {
    let answer = std::process::Command::new(env!("CARGO_BIN_EXE_verbatim")).env_clear().output();
    let answer = answer.unwrap();
    let text = String::from_utf8(answer.stderr).unwrap();
    assert_eq!((answer.status.code(), answer.stdout.len()), (Some(2), 0));
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(text.contains("verbatim import") && text.contains("verbatim search"), "{text}");
}

/// A program that ignores the hang-up of its terminal, as under `nohup`, must not wait for its keys.
#[cfg(target_os = "linux")]
#[test]
fn a_closed_terminal_ends_it() {
    let folder = folder();
    let place = place(folder.path(), false);
    let script = "trap '' HUP; exec \"$0\" \"$@\"";
    let command = Command::new("/bin/sh").args(["-c", script, env!("CARGO_BIN_EXE_verbatim")]);
    let mut session = Session::start_as(command, &place, 24, 80);
    session.wait(|shown| shown.contains("4 chats"));
    let Session { on, output, .. } = session;
    // The reading thread has the terminal open too. The thread ends when its receiver is gone.
    drop(output);
    on.press("x");
    let OnTerminal { mut child, pty } = on;
    drop(pty);
    let end = Instant::now() + PATIENCE;
    while child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < end, "it still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}
