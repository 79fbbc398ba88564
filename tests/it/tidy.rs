//! The rooms keep to themselves, and the documents say what the program does.

use std::{fs, path::Path};

use verbatim_search::{cli, tools};

/// The rooms from top to bottom; a room uses those on lower lines only.
const LINES: &[&[&str]] = &[
    &["cli"],
    &["mcp", "watch"],
    &["tools"],
    &["engine"],
    &["db", "index", "embed", "import", "workspace"],
    &["text"],
    &["model"],
    &["failpoint", "map_faults"],
];

/// Crates that one room alone may name.
const OWNERS: &[(&str, &str)] = &[("rusqlite", "db"), ("rmcp", "mcp"), ("tantivy", "index")];

fn line_of(room: &str) -> usize {
    LINES
        .iter()
        .position(|line| line.contains(&room))
        .unwrap_or_else(|| panic!("src/{room} is no room that tests/it/tidy.rs knows"))
}

/// Calls `look` with every source file of a room and its text.
fn sources(look: &mut dyn FnMut(&str, &Path, &str)) {
    fn walk(folder: &Path, look: &mut dyn FnMut(&Path)) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, look);
            } else {
                look(&path);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    walk(&root, &mut |path| {
        let inner = path.strip_prefix(&root).unwrap();
        let room = inner.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if !["main", "lib"].contains(&room) {
            look(room, path, &fs::read_to_string(path).unwrap());
        }
    });
}

/// Returns the rooms that `use crate::` and `crate::` paths of a text name.
fn used(text: &str) -> Vec<String> {
    let code: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut rooms = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let Some(list) = rest.strip_prefix('{') else {
            rooms.push(word(rest));
            continue;
        };
        // The names at the first level of braces.
        let (mut depth, mut start) = (0, true);
        for (at, character) in list.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                c if start && c.is_alphabetic() => {
                    rooms.push(word(&list[at..]));
                    start = false;
                }
                _ => {}
            }
        }
    }
    rooms
}

fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

#[test]
fn rooms_use_lower_rooms_only() {
    sources(&mut |room, path, text| {
        for other in used(text) {
            assert!(
                other == room || line_of(room) < line_of(&other),
                "{}: {room} may not use {other}",
                path.display()
            );
        }
    });
    assert_eq!(
        used("use crate::{db::{self, x}, model::Hit};\nlet a = crate::text::b;"),
        ["db", "model", "text"]
    );
}

#[test]
fn faces_and_tools_know_no_room_below_the_engine() {
    sources(&mut |room, path, text| {
        for other in used(text) {
            assert!(
                line_of(room) >= line_of("engine") || LINES[4].iter().all(|below| *below != other),
                "{}: {room} goes through the engine, not to {other}",
                path.display()
            );
        }
    });
}

#[test]
fn crates_have_one_room() {
    sources(&mut |room, path, text| {
        for (name, owner) in OWNERS {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let named = code.clone().any(|line| line.contains(&format!("{name}::")));
            assert!(room == *owner || !named, "{}: only {owner} says {name}", path.display());
        }
    });
}

#[test]
fn no_file_grows_without_end() {
    sources(&mut |_, path, text| {
        assert!(text.lines().count() < 1200, "{}: time to split", path.display());
    });
}

/// Returns the names in a table of the README whose rows begin with a word in back ticks.
fn table(heading: &str) -> Vec<String> {
    let readme = include_str!("../../README.md");
    let section = readme.split("\n## ").find(|section| section.starts_with(heading));
    let section = section.unwrap_or_else(|| panic!("the README has no section {heading:?}"));
    section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_readme_lists_every_command_and_tool() {
    let commands: Vec<String> = cli::command()
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .map(|command| format!("verbatim {}", command.get_name()))
        .collect();
    let listed: Vec<String> = table("Commands")
        .iter()
        .map(|usage| usage.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(listed, commands);
    let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
    assert_eq!(table("Tools"), names);
}
