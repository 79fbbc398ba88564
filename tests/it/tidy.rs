//! Checks the structure of the source, and that the documents match the program.

mod code;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use code::exported_names;
use code::{SourceFile, Tree, functions};
use verbatim_search::{cli, tools};

/// The rooms of `src/` from top to bottom. A room uses only rooms on lower lines.
const ROOMS: &[&[&str]] = &[
    &["cli"],
    &["http"],
    &["mcp", "watch", "web"],
    &["tools"],
    &["engine"],
    &["cluster"],
    &["db", "index", "embed", "import", "workspace"],
    &["log"],
    &["text"],
    &["int8", "long_text", "model"],
    &["failpoint", "map_faults", "private"],
    &["lock"],
];

/// The rooms of `src/engine/` from top to bottom. A room uses only rooms on lower lines.
const ENGINE_ROOMS: &[&[&str]] = &[
    &["mod"],
    &["forget", "facets", "describe", "stamp"],
    &["lookup", "exact", "import", "home"],
    &["report"],
    &["memory"],
    &["rank"],
    &["upkeep", "flags"],
    &["source"],
    &["withheld"],
    &["attachments", "exclusions", "forgotten"],
    &["config", "list_file"],
    &["error", "store_address"],
];

/// Calls that make folders or files with the rights that the umask leaves.
const OPEN_TO_OTHERS: &[&str] = &[
    "fs::create_dir",
    "fs::write",
    "fs::copy",
    "DirBuilder",
    "File::create",
    "OpenOptions",
    ".create(true)",
    ".create_new(",
    "tempdir(",
    "tempdir_in(",
];

/// The files that may make such folders or files, and why.
const MAY_BE_OPEN: &[(&str, &str)] = &[
    ("cli/completions.rs", "manual pages go to a folder that the user names"),
    ("private.rs", "sets the mode itself"),
    ("cli/stats.rs", "the user names the path of the chart"),
    ("engine/testing.rs", "is a test"),
];

/// Crates that only one room may name.
const OWNERS: &[(&str, &str)] = &[("rusqlite", "db"), ("rmcp", "mcp"), ("tantivy", "index")];

/// The longest file and function, in lines, and the most parameters of a function.
const MAX_FILE_LINES: usize = 1200;
const MAX_FUNCTION_LINES: usize = 100;
const MAX_PARAMETERS: usize = 6;

// The exceptions to the rules today. A test fails when an entry is no longer needed, so that these lists
// only become shorter.

/// Files that use each other in a circle.
const KNOWN_CIRCLES: &[&str] = &[];

/// Rooms of the engine that use a higher one.
const KNOWN_ENGINE_ARROWS: &[&str] = &[];

/// Functions that are too long.
const KNOWN_LONG_FUNCTIONS: &[&str] = &[];

/// Functions with too many parameters.
const KNOWN_WIDE_FUNCTIONS: &[&str] = &[];

/// Constants that are tuples, whose parts have no names.
const KNOWN_TUPLES: &[&str] = &[];

/// Type names that every room or command may use for a type of its own.
const KNOWN_TYPES: &[&str] = &["Args", "Error", "Result"];

/// Names of constants that every table, every entry of a table, or every kind of file may define for itself.
const KNOWN_CONSTANTS: &[&str] = &["ALL", "FORMAT", "SOURCE_FORMAT", "TOOL"];

/// Compares the places that break a rule with the list of known exceptions.
#[track_caller]
fn assert_only_known(rule: &str, found: impl IntoIterator<Item = String>, known: &[&str]) {
    let found: BTreeSet<String> = found.into_iter().collect();
    let known: BTreeSet<String> = known.iter().map(|known| (*known).to_owned()).collect();
    let new: Vec<_> = found.difference(&known).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    let is_same = new.is_empty() && gone.is_empty();
    assert!(is_same, "{rule}: {new:#?}, and no longer, to be removed from the list: {gone:#?}");
}

/// Returns the room of a file of `src/`.
fn room(file: &SourceFile) -> &str {
    file.path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
}

/// Returns the room of a file of `src/engine/`.
fn engine_room(file: &SourceFile) -> Option<&str> {
    let inner = file.path.strip_prefix("engine/")?;
    let name = inner.split('/').next().map(|name| name.trim_end_matches(".rs"));
    name.filter(|name| *name != "testing")
}

fn line_of(room: &str, rooms: &[&[&str]]) -> usize {
    let line = rooms.iter().position(|line| line.contains(&room));
    line.unwrap_or_else(|| panic!("{room} is a room that tests/it/tidy.rs does not know"))
}

#[test]
fn rooms_use_lower_rooms_only() {
    let tree = Tree::read();
    for (file, used) in tree.files.iter().zip(tree.uses()) {
        let from = room(file);
        let used = used.iter().map(|other| room(&tree.files[*other])).chain(file.named_rooms());
        for to in used.filter(|to| from != "lib" && from != *to) {
            let is_order = line_of(from, ROOMS) < line_of(to, ROOMS);
            assert!(is_order, "{} may not use {to}", file.path);
        }
    }
}

#[test]
fn rooms_of_the_engine_use_lower_rooms_only() {
    let tree = Tree::read();
    let mut arrows = Vec::new();
    for (file, used) in tree.files.iter().zip(tree.uses()) {
        let Some(from) = engine_room(file) else { continue };
        for to in used.into_iter().filter_map(|other| engine_room(&tree.files[other])) {
            if from != to && line_of(from, ENGINE_ROOMS) >= line_of(to, ENGINE_ROOMS) {
                arrows.push(format!("{from} -> {to}"));
            }
        }
    }
    assert_only_known("rooms that use a higher room", arrows, KNOWN_ENGINE_ARROWS);
}

#[test]
fn files_use_each_other_in_no_circle() {
    let tree = Tree::read();
    let circles = tree.circles().into_iter().map(|circle| circle.join(" "));
    assert_only_known("files that use each other", circles, KNOWN_CIRCLES);
}

#[test]
fn faces_and_tools_know_no_room_below_the_engine() {
    let tree = Tree::read();
    let engine = line_of("engine", ROOMS);
    for file in tree.files.iter().filter(|file| !["lib", "main"].contains(&room(file))) {
        for to in file.named_rooms() {
            let is_face = line_of(room(file), ROOMS) < engine;
            let is_below = ROOMS[engine + 1].contains(&to);
            assert!(!is_face || !is_below, "{} goes through the engine, not to {to}", file.path);
        }
    }
}

#[test]
fn crates_have_one_room() {
    for file in Tree::read().files {
        for (name, owner) in OWNERS {
            let is_named = file.code.contains(&format!("{name}::"));
            assert!(room(&file) == *owner || !is_named, "{}: only {owner} says {name}", file.path);
        }
    }
}

#[test]
fn only_private_makes_folders_and_files() {
    for file in Tree::read().files {
        if MAY_BE_OPEN.iter().any(|(path, _)| *path == file.path) {
            continue;
        }
        for call in OPEN_TO_OTHERS {
            assert!(!file.code.contains(call), "{}: {call} is for private.rs only", file.path);
        }
    }
}

#[test]
fn real_paths_are_without_the_prefix_of_windows() {
    for file in Tree::read().files {
        let others = ["fs::canonicalize(", ".canonicalize()"];
        let is_other = others.iter().any(|call| file.code.contains(call));
        assert!(!is_other, "{}: dunce::canonicalize returns paths without `\\\\?\\`", file.path);
    }
}

#[test]
fn files_and_functions_stay_short() {
    let (mut long, mut wide) = (Vec::new(), Vec::new());
    for file in Tree::read().files {
        assert!(file.code.lines().count() < MAX_FILE_LINES, "{}: time to split", file.path);
        for function in functions(&file.code) {
            let name = format!("{} {}", file.path, function.name);
            if function.lines > MAX_FUNCTION_LINES {
                long.push(name.clone());
            }
            if function.parameters > MAX_PARAMETERS {
                wide.push(name);
            }
        }
    }
    assert_only_known("functions that are too long", long, KNOWN_LONG_FUNCTIONS);
    assert_only_known("functions with too many parameters", wide, KNOWN_WIDE_FUNCTIONS);
}

#[test]
fn constants_are_no_tuples() {
    let mut tuples = Vec::new();
    for file in Tree::read().files {
        let tokens = code::tokens(&file.code);
        let constants =
            tokens.windows(4).filter(|four| four[0] == "const" && four[2..] == [":", "("]);
        tuples.extend(constants.map(|four| format!("{} {}", file.path, four[1])));
    }
    assert_only_known("constants that are tuples", tuples, KNOWN_TUPLES);
}

#[test]
fn names_have_one_meaning() {
    let mut files: [BTreeMap<String, BTreeSet<String>>; 2] = Default::default();
    for file in Tree::read().files {
        for (files, names) in files.iter_mut().zip(code::defined_names(&file.code)) {
            for name in names {
                files.entry(name).or_default().insert(file.path.clone());
            }
        }
    }
    let [types, constants] = files.map(|names| {
        let several = names.into_iter().filter(|(_, files)| files.len() > 1);
        several.map(|(name, _)| name).collect::<Vec<_>>()
    });
    assert_only_known("types that several files define", types, KNOWN_TYPES);
    assert_only_known("constants that several files define", constants, KNOWN_CONSTANTS);
}

/// Returns the manifest of the package.
fn manifest() -> toml::Table {
    include_str!("../../Cargo.toml").parse().expect("the manifest is TOML")
}

#[test]
fn dependencies_are_used() {
    let manifest = manifest();
    let tree = Tree::read();
    let main = code::code(include_str!("../../src/main.rs"));
    let [unix, windows] =
        ["cfg(unix)", "cfg(windows)"].map(|target| &manifest["target"][target]["dependencies"]);
    for dependencies in [&manifest["dependencies"], unix, windows] {
        for name in dependencies.as_table().expect("a table of dependencies").keys() {
            let path = format!("{}::", name.replace('-', "_"));
            let codes = tree.files.iter().map(|file| &*file.code).chain([&*main]);
            let is_used = codes.into_iter().any(|code| code.contains(&path));
            assert!(is_used, "{name} is a dependency that src/ does not use");
        }
    }
}

#[test]
fn the_readme_names_the_oldest_rust() {
    let version = manifest()["package"]["rust-version"].as_str().expect("a version").to_owned();
    let readme = include_str!("../../README.md");
    assert!(readme.contains(&format!("Rust {version}")), "the README does not name Rust {version}");
}

/// Returns the names in a document's table whose rows begin with a word in back ticks.
fn table(document: &str) -> Vec<String> {
    document
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_documents_list_every_command_and_tool() {
    let commands: Vec<String> = cli::command()
        .get_subcommands()
        .filter(|command| command.get_name() != "help")
        .map(|command| format!("verbatim {}", command.get_name()))
        .collect();
    let listed: Vec<String> = table(include_str!("../../docs/commands.md"))
        .iter()
        .map(|usage| usage.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(listed, commands);
    let names: Vec<&str> = tools::ALL.iter().map(|tool| tool.name).collect();
    assert_eq!(table(include_str!("../../docs/mcp.md")), names);
}
