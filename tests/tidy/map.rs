//! The map of the house names what exists: the files, folders and types in ARCHITECTURE.md and CONTRIBUTING.md.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toml_edit::DocumentMut;

use crate::code::{Tree, defined_names, root, tokens};

const ARCHITECTURE: &str = include_str!("../../ARCHITECTURE.md");
const DOCUMENTS: [(&str, &str); 2] =
    [("ARCHITECTURE.md", ARCHITECTURE), ("CONTRIBUTING.md", include_str!("../../CONTRIBUTING.md"))];

/// The folders in the root that paths begin with.
const FOLDERS: [&str; 10] = [
    ".ci/",
    ".github/",
    "assets/",
    "benches/",
    "crates/",
    "docs/",
    "examples/",
    "fuzz/",
    "src/",
    "tests/",
];

/// The endings of the names of files in the repository.
const ENDINGS: [&str; 5] = [".rs", ".md", ".toml", ".js", ".css"];

/// Returns the texts between back ticks, without those of blocks.
fn quoted(document: &str) -> Vec<&str> {
    let mut is_block = false;
    let mut quoted = Vec::new();
    for line in document.lines() {
        if line.starts_with("```") {
            is_block = !is_block;
        } else if !is_block {
            quoted.extend(line.split('`').skip(1).step_by(2));
        }
    }
    quoted
}

/// Returns whether a text looks like a path from the root of the repository.
fn is_path(text: &str) -> bool {
    let is_plain = !text.contains([' ', '*', '~', '…', '<']);
    let begins = FOLDERS.iter().any(|folder| text.starts_with(folder));
    is_plain && (begins || ENDINGS.iter().any(|ending| text.ends_with(ending)))
}

/// Returns the type and the member of it that a text names: `Type`, `Type::member`.
fn as_type(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, member) = match text.split_once("::") {
        Some((name, member)) => (name, Some(member)),
        None => (text, None),
    };
    let is_word = |word: &str| word.chars().all(|c| c.is_alphanumeric() || c == '_');
    let is_type = name.starts_with(|c: char| c.is_uppercase())
        && name.contains(|c: char| c.is_lowercase())
        && is_word(name)
        && member.is_none_or(is_word);
    is_type.then_some((name, member))
}

#[test]
fn paths_of_the_map_exist() {
    let mut gone = Vec::new();
    for (name, document) in DOCUMENTS {
        for path in quoted(document).into_iter().filter(|text| is_path(text)) {
            if !root().join(path).exists() {
                gone.push(format!("{name}: {path}"));
            }
        }
    }
    assert!(gone.is_empty(), "paths that do not exist: {gone:#?}");
}

#[test]
fn types_of_the_map_exist() {
    let tree = Tree::read();
    let mut types = BTreeSet::new();
    let mut words = BTreeSet::new();
    for file in &tree.files {
        let [of_file, _] = defined_names(&file.code);
        types.extend(of_file);
        words.extend(tokens(&file.code));
    }
    let mut gone = Vec::new();
    for (name, document) in DOCUMENTS {
        for text in quoted(document) {
            let Some((type_name, member)) = as_type(text) else { continue };
            if !types.contains(type_name) || member.is_some_and(|it| !words.contains(it)) {
                gone.push(format!("{name}: {text}"));
            }
        }
    }
    assert!(gone.is_empty(), "types that do not exist: {gone:#?}");
}

#[test]
fn links_of_the_documents_lead_somewhere() {
    let crates = fs::read_dir(root().join("crates")).expect("a folder");
    let crates = crates.map(|entry| entry.expect("an entry").path());
    let mut gone = Vec::new();
    for folder in crates.chain([root().to_owned(), root().join("docs")]) {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let document = fs::read_to_string(&path).expect("a text");
            for link in document.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let file = link.split('#').next().unwrap_or_default();
                if !link.contains("://") && !folder.join(file).exists() {
                    gone.push(format!("{}: {link}", path.display()));
                }
            }
        }
    }
    assert!(gone.is_empty(), "links that lead nowhere: {gone:#?}");
}

#[test]
fn the_picture_has_the_crates_and_what_they_use() {
    let (_, picture) = ARCHITECTURE.split_once("```text\n").expect("the picture of the floors");
    let (picture, _) = picture.split_once("```").expect("the picture ends");
    let mut drawn: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    let mut folder = "";
    for line in picture.lines() {
        if let Some(word) = line.split_whitespace().find(|word| word.contains('/')) {
            folder = word;
            drawn.insert(folder, BTreeSet::new());
        }
        if let Some((_, uses)) = line.split_once(" uses ") {
            drawn.insert(folder, uses.split(", ").map(str::to_owned).collect());
        }
    }
    let mut crates: BTreeSet<String> = fs::read_dir(root().join("crates"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .map(|name| format!("crates/{name}"))
        .collect();
    crates.insert("src/".to_owned());
    assert!(drawn.keys().copied().eq(crates.iter().map(String::as_str)), "{:?}", drawn.keys());
    for (folder, uses) in drawn {
        assert_eq!(uses, uses_of(folder.trim_end_matches("src/")), "{folder}");
    }
}

/// Returns the crates of this workspace that the package in a folder depends on.
fn uses_of(folder: &str) -> BTreeSet<String> {
    let path = root().join(folder).join("Cargo.toml");
    let text = fs::read_to_string(path).expect("a manifest");
    let manifest = text.parse::<DocumentMut>().expect("the manifest is TOML");
    let dependencies = manifest["dependencies"].as_table().expect("a table");
    let names = dependencies.iter().filter_map(|(name, _)| name.strip_prefix("verbatim-"));
    names.map(str::to_owned).collect()
}

#[test]
fn paths_and_types_are_told_from_other_texts() {
    let text = "`src/lib.rs`, `--db FILE`, `db/`, `Source::search`\n```\n`no`\n```\n`LIKE`";
    let found = quoted(text);
    assert_eq!(found, ["src/lib.rs", "--db FILE", "db/", "Source::search", "LIKE"]);
    let paths: Vec<&str> = found.iter().copied().filter(|text| is_path(text)).collect();
    assert_eq!(paths, ["src/lib.rs"]);
    let types: Vec<_> = found.iter().filter_map(|text| as_type(text)).collect();
    assert_eq!(types, [("Source", Some("search"))]);
}
