//! Checks the structure of the sources, and that the documents match the program. That crates use only
//! those below them is for the compiler to check.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use regex::Regex;
use toml_edit::{DocumentMut, Item};
use verbatim_search::cli;
use verbatim_server::tools;

use crate::code::{self, SourceFile, Tree};

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

/// The files that may call these: one sets the mode itself, the other opens files to read.
const MAY_BE_OPEN: [&str; 2] = ["crates/base/src/private.rs", "crates/base/src/files.rs"];

/// The longest file, in lines.
const MAX_FILE_LINES: usize = 1200;

/// A habit that hides what the code does.
struct Habit {
    what: &'static str,
    /// Finds it in code without comments and strings.
    pattern: &'static str,
    /// How often the sources have it. The numbers only fall.
    most: usize,
}

const HABITS: [Habit; 4] = [
    Habit {
        what: "a closure with a name, which is a function",
        pattern: r"\blet\s+(?:mut\s+)?\w+(?:\s*:[^=;]+)?\s*=\s*(?:move\s*)?\|",
        most: 38,
    },
    Habit {
        what: "two bindings in one",
        pattern: r"\blet\s*\([^)]*,[^)]*\)\s*=\s*(?:Default::default\(\)|\()",
        most: 0,
    },
    Habit {
        what: "a tuple as parameter, which is a struct or several parameters",
        pattern: r"[(,]\s*\([a-z_ ,&]+\)\s*:\s*\(",
        most: 0,
    },
    Habit {
        what: "a match on true and false, which is an if",
        pattern: r"\bmatch\s+[^{}]{1,80}\{\s*true\s*=>",
        most: 0,
    },
];

/// The most lines of code of each room, without comments and tests. Whoever raises a limit says in the commit what
/// for; a limit of which a tenth is free, and more than 20 lines, is lowered.
const ROOMS: &[(&str, usize)] = &[
    ("cli/clients", 890),
    ("cli/commands", 5580),
    ("cli/picker", 1270),
    ("cli/settings", 880),
    ("cli", 750),
    ("cli/terminal", 1970),
    ("crates/answer/src", 2240),
    ("crates/base/src", 990),
    ("crates/chats/db", 4700),
    ("crates/chats/import", 8290),
    ("crates/chats/src", 30),
    ("crates/chats/workspace", 480),
    ("crates/cluster/src", 2970),
    ("crates/embed/src", 2030),
    ("crates/engine/attachments", 720),
    ("crates/engine/config", 270),
    ("crates/engine/conversation", 750),
    ("crates/engine/decisions", 430),
    ("crates/engine/filters", 190),
    ("crates/engine/import", 600),
    ("crates/engine/memory", 370),
    ("crates/engine/rank", 2320),
    ("crates/engine/report", 960),
    ("crates/engine/scoring", 1420),
    ("crates/engine/search", 1130),
    ("crates/engine/source", 4330),
    ("crates/engine/src", 340),
    ("crates/engine/upkeep", 3580),
    ("crates/index/src", 4210),
    ("crates/index/store", 1040),
    ("crates/index/terms", 790),
    ("crates/index/vectors", 1260),
    ("crates/server/http", 1160),
    ("crates/server/mcp", 1210),
    ("crates/server/src", 90),
    ("crates/server/tools", 3340),
    ("crates/server/watch", 230),
    ("crates/server/web", 120),
    ("crates/server/web/conversation", 2780),
    ("crates/server/web/frame", 2730),
    ("crates/server/web/search", 1880),
    ("crates/text/date", 240),
    ("crates/text/screen", 370),
    ("crates/text/src", 4740),
    ("src", 40),
];

// The exceptions to the rules today. A test fails when an entry is no longer needed, so that these lists
// only become shorter.

/// Files that use each other in a circle.
const KNOWN_CIRCLES: &[&str] = &[];

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

/// The commands whose options are counted, and the most options that they may have, with those of the program.
/// The number only falls: whoever adds an option takes another one out.
const COMMANDS: [&str; 19] = [
    "completions",
    "connect",
    "demo",
    "disconnect",
    "doctor",
    "export",
    "forget",
    "import",
    "list",
    "open",
    "reindex",
    "resume",
    "search",
    "serve",
    "show",
    "stats",
    "status",
    "watch",
    "web",
];
const MOST_OPTIONS: usize = 113;

#[test]
fn options_do_not_become_more() {
    let is_option = |arg: &&clap::Arg| {
        let is_usual = ["help", "version"].contains(&arg.get_id().as_str());
        !arg.is_positional() && !arg.is_hide_set() && !is_usual
    };
    let program = cli::command();
    let of_commands = COMMANDS.iter().map(|name| {
        let command = program.find_subcommand(name).unwrap_or_else(|| panic!("no {name}"));
        command.get_arguments().filter(is_option).count()
    });
    let count = of_commands.sum::<usize>() + program.get_arguments().filter(is_option).count();
    assert!(count <= MOST_OPTIONS, "{count} options");
}

#[test]
fn files_use_each_other_in_no_circle() {
    let tree = Tree::read();
    let circles = tree.circles().into_iter().map(|circle| circle.join(" "));
    assert_only_known("files that use each other", circles, KNOWN_CIRCLES);
}

#[test]
fn only_private_makes_folders_and_files() {
    for file in &Tree::read().files {
        if MAY_BE_OPEN.contains(&file.path.as_str()) {
            continue;
        }
        for call in OPEN_TO_OTHERS {
            assert!(!file.code.contains(call), "{}: {call} is for private.rs only", file.path);
        }
    }
}

#[test]
fn real_paths_are_without_the_prefix_of_windows() {
    for file in &Tree::read().files {
        let others = ["fs::canonicalize(", ".canonicalize()"];
        let is_other = others.iter().any(|call| file.code.contains(call));
        assert!(!is_other, "{}: dunce::canonicalize returns paths without `\\\\?\\`", file.path);
    }
}

#[test]
fn files_stay_short() {
    for file in &Tree::read().files {
        assert!(file.code.lines().count() < MAX_FILE_LINES, "{}: time to split", file.path);
    }
}

#[test]
fn habits_become_fewer() {
    for Habit { what, pattern, most } in HABITS {
        let pattern = Regex::new(pattern).expect("an expression");
        let count_in = |file: &SourceFile| pattern.find_iter(&file.code).count();
        let count: usize = Tree::read().files.iter().map(count_in).sum();
        assert!(count <= most, "{count} times {what}");
        assert!(count + 20 > most, "only {count} times {what}: lower the limit");
    }
}

/// Returns the room of a file: its innermost folder that is listed, else the first folder below `src`.
fn room_of(path: &str, package: &str) -> String {
    let mut folder = path;
    while let Some((outer, _)) = folder.rsplit_once('/') {
        if ROOMS.iter().any(|(room, _)| *room == outer) {
            return outer.to_owned();
        }
        folder = outer;
    }
    let inner = path.strip_prefix(package).expect("a file of its package");
    let first = inner.split_once('/').map_or("src", |(first, _)| first);
    format!("{package}{first}")
}

#[test]
fn rooms_grow_only_by_decision() {
    let mut rooms: BTreeMap<String, usize> = BTreeMap::new();
    for file in &Tree::read().files {
        let inner = file.path.strip_prefix(file.package()).expect("a file of its package");
        let path = format!("{}{}", file.package(), inner.strip_prefix("src/").expect("a source"));
        let room = room_of(&path, file.package());
        let lines = file.code.lines().filter(|line| !line.trim().is_empty()).count();
        *rooms.entry(room).or_default() += lines;
    }
    let limits: BTreeMap<String, usize> =
        ROOMS.iter().map(|(room, most)| ((*room).to_owned(), *most)).collect();
    let is_wrong = |(room, lines): &(&String, &usize)| {
        let most = limits.get(*room).copied().unwrap_or(0);
        **lines > most || **lines < most.saturating_sub((most / 10).max(20))
    };
    let wrong: Vec<_> = rooms.iter().filter(is_wrong).collect();
    assert!(wrong.is_empty(), "rooms that are too large, or whose limit is too high: {wrong:#?}");
    let gone: Vec<_> = limits.keys().filter(|room| !rooms.contains_key(*room)).collect();
    assert!(gone.is_empty(), "rooms that are gone: {gone:?}");
}

#[test]
fn constants_are_no_tuples() {
    let mut tuples = Vec::new();
    for file in &Tree::read().files {
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
    for file in &Tree::read().files {
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

/// Returns the manifest of a package by its folder, which is empty or ends with a slash.
fn manifest(package: &str) -> Item {
    let path = code::root().join(package).join("Cargo.toml");
    let text = fs::read_to_string(path).expect("a manifest");
    text.parse::<DocumentMut>().expect("the manifest is TOML").as_item().clone()
}

/// Returns the names in a table of dependencies, and in those of the same kind for single platforms.
fn dependencies(manifest: &Item, kind: &str) -> BTreeSet<String> {
    fn entries(item: &Item) -> impl Iterator<Item = (&str, &Item)> {
        item.as_table_like().expect("a table").iter()
    }
    let targets = manifest.get("target").into_iter().flat_map(entries);
    let tables = targets.map(|(_, target)| target.get(kind)).chain([manifest.get(kind)]);
    tables.flatten().flat_map(entries).map(|(name, _)| name.to_owned()).collect()
}

#[test]
fn dependencies_are_used() {
    let tree = Tree::read();
    let packages: BTreeSet<&str> = tree.files.iter().map(|file| file.package()).collect();
    let mut used = BTreeSet::new();
    for package in packages {
        let manifest = manifest(package);
        for name in dependencies(&manifest, "dependencies") {
            let path = format!("{}::", name.replace('-', "_"));
            let mut files = tree.files.iter().filter(|file| file.package() == package);
            let is_used = files.any(|file| file.code.contains(&path));
            assert!(is_used, "{name} is a dependency that {package}src/ does not use");
            used.insert(name);
        }
        used.extend(dependencies(&manifest, "dev-dependencies"));
    }
    let workspace = manifest("")["workspace"].clone();
    let unused: Vec<_> =
        dependencies(&workspace, "dependencies").difference(&used).cloned().collect();
    assert!(unused.is_empty(), "dependencies of the workspace that no package has: {unused:?}");
}

#[test]
fn the_readme_names_the_oldest_rust() {
    let manifest = manifest("");
    let version = manifest["workspace"]["package"]["rust-version"].as_str().expect("a version");
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

#[test]
fn the_documents_list_every_filter() {
    let document = include_str!("../../docs/filters.md");
    let rows: String = document.lines().filter(|line| line.starts_with("| `--")).collect();
    for filter in verbatim_engine::filters::ALL {
        assert!(rows.contains(&format!("`--{} ", filter.name)), "{}", filter.name);
    }
}
