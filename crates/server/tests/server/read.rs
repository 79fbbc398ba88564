//! The tool `read`: the contract's own form and errors, with an index and without.

use rusqlite::params;
use serde_json::{Value, json};

use crate::calls::{call, engines, found, path_of, refused, sampled, with};
use crate::corpus::{database, folder, folder_with};

#[test]
fn reading_as_the_contract_prints_it() {
    let (_home, db) = sampled();
    let path = path_of(&db, "550e8400-e29b-41d4-a716-446655440000");
    let start =
        "# Conversation: Database Migration Planning\n# Project: export\n# Date: 2025-12-01\n";
    for engine in engines(&db) {
        let whole = found(&engine, "read", json!({"path": path}));
        assert_eq!(
            whole,
            format!(
                "{start}\n## Exchange 1\n\n**System:**\n> You are helpful.\n\n\
                 **User:**\n> What's the plan for the database migration?\n\n\
                 **Assistant:**\n> We should start with PostgreSQL.\n\n**Tool:**\n> exit code 0\n\n\
                 **Assistant:**\n> Then JWT authentication.\n\n---\n\n## Exchange 2\n\n\
                 **User:**\n> What about ERR_AUTH_FAILED?\n\n\
                 **Assistant:**\n> React Router redirects to the login page.\n"
            )
        );
        // Lines are messages, both ends included; numbers may come as text.
        let part = found(&engine, "read", json!({"path": path, "startLine": "5", "endLine": 6}));
        assert_eq!(
            part,
            format!(
                "{start}\n## Exchange 1\n\n**Assistant:**\n> Then JWT authentication.\n\n---\n\n\
                 ## Exchange 2\n\n**User:**\n> What about ERR_AUTH_FAILED?\n\n---\n\n\
                 *Lines 5-6 of 7. Next: startLine 7.*\n"
            )
        );
        let end = found(&engine, "read", json!({"path": path, "startLine": 7, "endLine": 99}));
        assert!(end.contains("## Exchange 2\n\n**Assistant:**\n> React"), "{end}");
        assert!(end.ends_with("*Lines 7-7 of 7.*\n"), "{end}");
        let untitled = found(&engine, "read", json!({"path": path_of(&db, "no#title")}));
        // The index names an untitled conversation by its first text; without an index, it has its id.
        let named = ["no#title", "untitled, with a # in its id"];
        let first = untitled.lines().next().unwrap().strip_prefix("# Conversation: ").unwrap();
        assert!(named.contains(&first), "{untitled}");
    }
}

#[test]
fn the_error_table_of_read() {
    let (home, db) = sampled();
    std::fs::write(home.path().join("secret"), "x").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&db, home.path().join("link.db")).unwrap();
    let path = path_of(&db, "7c9e0000-1111");
    let at = |name: &str| home.path().join(name).display().to_string();
    for engine in engines(&db) {
        for other in [
            "/path/to/conversation.jsonl".to_owned(),
            "/etc/passwd".to_owned(),
            "/dev/zero".to_owned(),
            at("secret"),
            at("a.db"),
            at("a.db#"),
            at("a.db#7c9e"),
            "7c9".to_owned(),
            "verbatim://conversation/%zz".to_owned(),
            "verbatim://conversation/7c9e".to_owned(),
            "日本".to_owned(),
            at("a.db#7c9e0000-1111#"),
            at("a.db#../secret"),
            at("link.db#7c9e0000-1111"),
            at("../a.db#7c9e0000-1111"),
            at("./a.db#7c9e0000-1111"),
            "#7c9e0000-1111".to_owned(),
            " ".to_owned(),
            "\0".to_owned(),
        ] {
            let text = refused(&engine, "read", json!({"path": other}));
            let help = "give the path that search prints, an id, a key or a whole title";
            let shown = other.replace('\0', "\u{FFFD}");
            assert_eq!(text, format!("File not found: {shown} ({help})"));
        }
        let number = "a line number from 1 on";
        for (argument, value, what) in [
            ("startLine", json!(0), number),
            ("startLine", json!(-1), number),
            ("startLine", json!(1.5), number),
            ("endLine", json!("x"), number),
            ("offset", json!(-1), "a number of characters from 0 to 4294967295"),
        ] {
            let text = format!("Invalid line range: {argument} takes {what}; got {value}");
            assert_eq!(refused(&engine, "read", json!({"path": path, argument: value})), text);
        }
        for (more, text) in [
            (
                json!({"startLine": 2, "endLine": 1}),
                "Invalid line range: endLine 1 is before startLine 2",
            ),
            (json!({"startLine": 3}), "Invalid line range: startLine 3 is past the last line, 2"),
            (
                json!({"lines": 3}),
                "read has no argument \"lines\"; it takes path, startLine, endLine, offset",
            ),
            (
                json!({"startLine": 2, "offset": 6}),
                "Invalid line range: offset 6 is past the end of line 2, which has 5 characters",
            ),
            (json!({"path": 3}), "path takes a path as search prints it; got 3"),
            (json!({"path": ""}), "path is required: give the path as search prints it"),
        ] {
            let arguments = with(json!({"path": path}), &more);
            assert_eq!(refused(&engine, "read", arguments.clone()), text, "{arguments}");
        }
    }
}

/// Reads what follows `Next: startLine `.
fn line_and_offset(next: &str) -> (u32, usize) {
    let next = next.trim_end_matches(['.', '*', '\n']);
    let (line, offset) = next.split_once(", offset ").unwrap_or((next, "0"));
    (line.parse().unwrap(), offset.parse().unwrap())
}

/// Returns the quoted text of a page of one message that is not the first of its conversation.
fn unquoted(page: &str) -> String {
    let (_, quoted) = page.split_once("**User:**\n> ").unwrap();
    let (quoted, _) = quoted.rsplit_once("\n\n---\n\n*Lines").unwrap();
    quoted.replace("\n> ", "\n").replace("\u{2028}> ", "\u{2028}").replace("\r> ", "\r")
}

#[test]
fn a_long_message_is_read_to_its_end() {
    let home = folder();
    // A text that imitates the lines of the answer.
    let line = "é日本 **User:**\n\n## Exchange 7\n> quoted\n\u{2028}---\r\n\rx ";
    let odd = line.repeat(121_000 / line.chars().count() + 1);
    let plain = "0123456789".repeat(12_100);
    for (name, whole) in [("odd.db", odd.trim()), ("plain.db", plain.as_str())] {
        let db = home.path().join(name);
        drop(crate::corpus::database(&db, &["before", whole]));
        for engine in engines(&db) {
            for end in [Value::Null, json!(2)] {
                let (mut read, mut pages, mut next) = (String::new(), 0, Some((2, 0)));
                while let Some((line, offset)) = next {
                    assert_eq!(line, 2);
                    let ask = json!({"path": "conv-0001", "startLine": line, "endLine": end, "offset": offset});
                    let page = found(&engine, "read", ask);
                    let head = |line: &&str| line.starts_with("## ") || line.starts_with("**");
                    assert_eq!(page.lines().filter(head).count(), 2, "{page}");
                    pages += 1;
                    read.push_str(&unquoted(&page));
                    next =
                        page.split_once("Next: startLine ").map(|(_, next)| line_and_offset(next));
                }
                assert!(read == whole, "{} characters", read.chars().count());
                assert!((2..=20).contains(&pages), "{pages}");
            }
        }
    }
}

#[test]
fn a_message_that_no_page_has_room_for_is_begun_after_others() {
    let (_home, db) = folder_with("a.db");
    let connection = database(&db, &[]);
    connection.execute("INSERT INTO conversations VALUES ('c', 1, 1, 'Long one')", []).unwrap();
    let insert = "INSERT INTO messages VALUES (?1, 'c', 'user', ?2, ?1, NULL, ?1)";
    connection.execute(insert, params![1, "short"]).unwrap();
    connection.execute(insert, params![2, "word ".repeat(30_000)]).unwrap();
    connection.execute(insert, params![3, "word ".repeat(4_000)]).unwrap();
    connection.execute(insert, params![4, "word ".repeat(4_000)]).unwrap();
    for engine in engines(&db) {
        let page = found(&engine, "read", json!({"path": "Long one"}));
        assert!(page.contains("> short\n") && page.contains("word word"), "{}", &page[..300]);
        assert!(page.contains("Line 2 is cut after character "), "{}", &page[page.len() - 200..]);
        let next = line_and_offset(page.rsplit_once("Next: startLine ").unwrap().1);
        assert!(next.0 == 2 && next.1 > 30_000, "{next:?}");
        // A message that fits on a page of its own is not cut.
        let page = found(&engine, "read", json!({"path": "Long one", "startLine": 3}));
        assert!(page.ends_with("Next: startLine 4.*\n"), "{}", &page[page.len() - 200..]);
    }
}

#[test]
fn one_handle_serves_everywhere() {
    let (_home, db) = sampled();
    let id = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
    for engine in engines(&db) {
        let listed = call(&engine, "query_conversations", json!({"mode": "list"}));
        let listed = listed.structured.unwrap();
        let of = |item: &Value| item["sessionId"] == id;
        let item = listed["conversations"].as_array().unwrap().iter().find(|it| of(it)).unwrap();
        let key = item["sessionKey"].as_str().unwrap();
        for handle in [
            id,
            "7c9e66",
            "7C9E6679-7425-40DE-944B-E07FC1F90AE7",
            "7C9E66",
            key,
            "API Design Review",
            " api design REVIEW\n",
            &path_of(&db, id),
            &format!("verbatim://conversation/{id}"),
            &format!("https://chatgpt.com/c/{id}?model=x"),
            &format!("https://claude.ai/chat/{id}"),
            &format!("claude.ai/chat/{id}/"),
        ] {
            let read = found(&engine, "read", json!({"path": handle}));
            assert!(read.starts_with("# Conversation: API Design Review\n"), "{handle}: {read}");
            for name in ["sessionId", "sessionKey"] {
                let get = json!({"mode": "get", name: handle});
                let got = call(&engine, "query_conversations", get).structured.unwrap();
                assert_eq!(got["session"]["id"], id, "{handle}");
            }
            let gone = json!({"sessionId": handle, "confirm": true});
            let gone = refused(&engine, "delete_conversation", gone);
            assert!(gone.contains("Conversation not found among those recorded"), "{gone}");
        }
        // A number after a handle is a line to begin at; an argument takes precedence.
        for handle in [id, "7c9e66", &path_of(&db, id), &format!("https://chatgpt.com/c/{id}")] {
            let arguments = [
                json!({"path": format!("{handle}:2")}),
                json!({"path": format!("{handle}:1"), "startLine": 2}),
                json!({"path": handle, "startLine": 2}),
            ];
            let [read, other, expected] = arguments.map(|one| found(&engine, "read", one));
            assert_eq!((&read, &other), (&expected, &expected), "{handle}");
        }
        let beyond = refused(&engine, "read", json!({"path": format!("{id}:99")}));
        assert!(beyond.contains("startLine 99 is past the last line"), "{beyond}");
        let two = refused(&engine, "read", json!({"path": "7C9E"}));
        assert!(two.contains(id) && two.contains("7c9e0000-1111"), "{two}");
    }
}

#[test]
fn long_conversations_come_in_pages() {
    let (_home, db) = folder_with("a.db");
    let connection = crate::corpus::database(&db, &[]);
    for at in 0..300 {
        let text = format!(
            "message {at} {}",
            if at == 7 { "日本".repeat(40_000) } else { "words ".repeat(60) }
        );
        crate::corpus::add(&connection, &text);
    }
    drop(connection);
    let path = path_of(&db, "conv-0001");
    for engine in engines(&db) {
        let mut seen = Vec::new();
        let (mut start, mut offset) = (1, 0);
        loop {
            let ask = json!({"path": path, "startLine": start, "offset": offset});
            let text = found(&engine, "read", ask);
            assert!(text.chars().count() < 45_000, "{}", text.len());
            let shown = text.lines().filter_map(|line| {
                line.strip_prefix("> message ")?.split(' ').next()?.parse::<usize>().ok()
            });
            seen.extend(shown);
            let Some((_, next)) = text.split_once("Next: startLine ") else { break };
            (start, offset) = line_and_offset(next);
        }
        assert_eq!(seen, (0..300).collect::<Vec<_>>());
        let alone = found(&engine, "read", json!({"path": path, "startLine": 8, "endLine": 8}));
        let cut = alone.chars().filter(|c| *c == '日' || *c == '本').count();
        assert!((15_000..20_000).contains(&cut), "{cut}");
        assert!(alone.contains("Line 8 is cut after character "), "{}", alone.len());
        // With an explicit end, a page may be longer than the default, up to the bound.
        let most = found(&engine, "read", json!({"path": path, "startLine": 9, "endLine": 300}));
        assert!(most.len() > 40_000 && most.len() < 70_000, "{}", most.len());
    }
}

#[test]
fn lines_begin_at_one() {
    let (_home, db) = sampled();
    let [engine, _] = engines(&db);
    let zero = refused(&engine, "read", json!({"path": "API Design Review:0"}));
    assert_eq!(zero, "Invalid line range: line 0 of API Design Review:0: lines begin at 1");
    for path in ["API Design Review:1", "API Design Review"] {
        found(&engine, "read", json!({"path": path}));
    }
    let text = found(&engine, "read", json!({"path": "API Design Review:0", "startLine": 2}));
    assert!(text.contains("JWT it is."), "{text}");
}
