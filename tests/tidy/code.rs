//! The source files as a graph: which file of a package uses which, and the functions in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// A path in a module, as its segments.
type Names = Vec<String>;

/// A file of the sources of a package.
pub(super) struct SourceFile {
    /// Its path below the root of the workspace, with slashes.
    pub(super) path: String,
    /// Its text without comments, without the contents of strings, and without its tests. The lines
    /// keep their numbers.
    pub(super) code: String,
    /// The folder of its package, and the modules in it.
    module: Names,
    paths: Vec<UsedPath>,
}

impl SourceFile {
    /// Returns the folder of its package: empty for that of the root, else with a slash at its end.
    pub(super) fn package(&self) -> &str {
        &self.module[0]
    }
}

/// A path in the code of a file.
struct UsedPath {
    /// The module that the path stands in: that of the file, or an inline one.
    module: Names,
    path: Names,
    /// The name that a `use` gives it; `None` for paths elsewhere.
    name: Option<String>,
    is_public: bool,
}

/// The sources of all packages.
pub(super) struct Tree {
    pub(super) files: Vec<SourceFile>,
    modules: BTreeMap<Names, usize>,
}

impl Tree {
    /// Returns the sources as they are, read once.
    pub(super) fn read() -> &'static Tree {
        static TREE: LazyLock<Tree> = LazyLock::new(|| {
            let packages = fs::read_dir(root().join("crates")).expect("a folder");
            let packages = packages.map(|entry| entry.expect("an entry").path());
            let mut paths = Vec::new();
            for package in packages.chain([root().to_owned()]) {
                walk(&package.join("src"), &mut |path| paths.push(path.to_owned()));
            }
            paths.sort();
            Tree::new(paths.iter().map(|path| {
                let inner = path.strip_prefix(root()).expect("below the root");
                let inner = inner.to_str().expect("a name in UTF-8").replace('\\', "/");
                (inner, fs::read_to_string(path).expect("a text"))
            }))
        });
        &TREE
    }

    pub(super) fn new(files: impl Iterator<Item = (String, String)>) -> Tree {
        let files: Vec<SourceFile> = files
            .map(|(path, text)| {
                let code = code(&text);
                let module = module_of(&path);
                SourceFile { paths: used_paths(&code, &module), path, code, module }
            })
            .collect();
        let modules = files.iter().enumerate().map(|(at, file)| (file.module.clone(), at));
        Tree { modules: modules.collect(), files }
    }

    /// Returns for each file the files that it uses. A re-export of a child module does not count as a
    /// use.
    pub(super) fn uses(&self) -> Vec<BTreeSet<usize>> {
        let uses = self.files.iter().enumerate().map(|(at, file)| {
            let mut used = BTreeSet::new();
            for path in &file.paths {
                let Some(target) = self.resolve(&path.module, &path.path, 0) else { continue };
                let is_below = self.files[target].module.starts_with(&file.module);
                if target != at && !(path.is_public && is_below) {
                    used.insert(target);
                }
            }
            used
        });
        uses.collect()
    }

    /// Returns the file that defines the item of a path; `None` for other crates.
    fn resolve(&self, module: &[String], path: &[String], depth: usize) -> Option<usize> {
        let (first, rest) = path.split_first()?;
        let (mut at, rest) = match &**first {
            "crate" => (module[..1].to_vec(), rest),
            "self" => (module.to_vec(), rest),
            "super" => (module[..module.len().checked_sub(1)?].to_vec(), rest),
            name if self.modules.contains_key(&child(module, name)) => (module.to_vec(), path),
            _ => return None,
        };
        for name in rest {
            if name == "super" {
                at.pop();
                continue;
            }
            let inner = child(&at, name);
            if self.modules.contains_key(&inner) {
                at = inner;
                continue;
            }
            // The path names an item of the module, or an item that the module imports.
            let brought = self.modules.get(&at).and_then(|file| {
                let paths = &self.files[*file].paths;
                paths.iter().find(|path| path.module == at && path.name.as_ref() == Some(name))
            });
            if let Some(brought) = brought.filter(|_| depth < 8) {
                return self.resolve(&at, &brought.path, depth + 1);
            }
            break;
        }
        (1..=at.len()).rev().find_map(|length| self.modules.get(&at[..length]).copied())
    }

    /// Returns the groups of files that use each other, in a circle of any length.
    pub(super) fn circles(&self) -> Vec<Vec<&str>> {
        let uses = self.uses();
        let reachable: Vec<BTreeSet<usize>> = (0..uses.len())
            .map(|start| {
                let mut reached = BTreeSet::new();
                let mut open = vec![start];
                while let Some(at) = open.pop() {
                    open.extend(uses[at].iter().filter(|next| reached.insert(**next)));
                }
                reached
            })
            .collect();
        let mut circles = BTreeSet::new();
        for (at, reached) in reachable.iter().enumerate() {
            let circle: Vec<&str> = reached
                .iter()
                .filter(|other| **other == at || reachable[**other].contains(&at))
                .map(|other| &*self.files[*other].path)
                .collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        circles.into_iter().collect()
    }
}

/// Returns the root of the workspace.
pub(super) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Calls `look` with every file in a folder.
fn walk(folder: &Path, look: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(&path, look);
        } else {
            look(&path);
        }
    }
}

fn child(module: &[String], name: &str) -> Names {
    let mut child = module.to_vec();
    child.push(name.to_owned());
    child
}

fn module_of(path: &str) -> Names {
    let (package, inner) = path.split_once("src/").expect("a path of a source");
    let modules = inner.trim_end_matches(".rs").split('/');
    let mut names: Names = [package].into_iter().chain(modules).map(str::to_owned).collect();
    if names.last().is_some_and(|name| name == "mod" || name == "lib") {
        names.pop();
    }
    names
}

/// Returns a text without comments, contents of strings and tests; line breaks stay.
pub(super) fn code(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let skipped = if rest.starts_with("#[cfg(test)]\nmod ") {
            rest.len()
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(raw) = raw_string(rest).filter(|_| !ends_in_word(&code)) {
            raw
        } else if character == '"' {
            quoted(rest, '"')
        } else if character == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else {
            0
        };
        if skipped == 0 {
            code.push(character);
            rest = &rest[character.len_utf8()..];
        } else {
            code.extend(rest[..skipped].chars().filter(|c| *c == '\n'));
            rest = &rest[skipped..];
        }
    }
    code
}

fn ends_in_word(code: &str) -> bool {
    code.ends_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// Returns the length of a raw string that a text begins with.
fn raw_string(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("br").or_else(|| text.strip_prefix('r'))?;
    let hashes = inner.len() - inner.trim_start_matches('#').len();
    let body = inner[hashes..].strip_prefix('"')?;
    let end = body.find(&format!("\"{}", "#".repeat(hashes)))?;
    Some(text.len() - body.len() + end + 1 + hashes)
}

/// Returns the length of a literal between quotation marks.
fn quoted(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == mark => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Returns whether the apostrophe at the beginning of a text begins a character literal, not a lifetime.
fn is_character(text: &str) -> bool {
    let mut characters = text.chars().skip(1);
    characters.next() == Some('\\') || characters.next() == Some('\'')
}

/// Returns the words, `::` and other characters of a code, without white space.
pub(super) fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(character) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let length = match word {
            0 if rest.starts_with("::") => 2,
            0 => character.len_utf8(),
            _ => word,
        };
        tokens.push(&rest[..length]);
        rest = rest[length..].trim_start();
    }
    tokens
}

/// Returns the names of all types of a code, and of the constants that it shows to other files.
pub(super) fn defined_names(code: &str) -> [BTreeSet<String>; 2] {
    let mut names = [BTreeSet::new(), BTreeSet::new()];
    let tokens = tokens(code);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        let is_shown = || match &tokens[..at] {
            [before @ .., ")"] => {
                let open = before.iter().rposition(|token| *token == "(").unwrap_or_default();
                before[..open].last() == Some(&"pub")
            }
            before => before.last() == Some(&"pub"),
        };
        let kind = match *token {
            "struct" | "enum" | "trait" if is_name(next) => 0,
            "type" if is_shown() => 0,
            "const" | "static" if is_shown() && tokens.get(at + 2) == Some(&":") => 1,
            _ => continue,
        };
        names[kind].insert(next.to_owned());
    }
    names
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn used_paths(code: &str, module: &[String]) -> Vec<UsedPath> {
    let tokens = tokens(code);
    let before = |at: usize, back: usize| at.checked_sub(back).map_or("", |place| tokens[place]);
    let mut paths = Vec::new();
    // The module that the code is in, and the depths of braces at which inline modules begin.
    let mut module = module.to_vec();
    let mut inline = Vec::new();
    let mut depth = 0;
    let mut at = 0;
    while let Some(token) = tokens.get(at) {
        let next = tokens.get(at + 1).copied().unwrap_or_default();
        match *token {
            "{" => depth += 1,
            "}" => {
                depth -= 1;
                if inline.last() == Some(&depth) {
                    inline.pop();
                    module.pop();
                }
            }
            "mod" if tokens.get(at + 2) == Some(&"{") => {
                inline.push(depth);
                module.push(next.to_owned());
            }
            "use" if next != "<" => {
                let is_public = before(at, 1) == "pub"
                    || before(at, 1) == ")" && before(at, 3) == "(" && before(at, 4) == "pub";
                let mut leaves = Vec::new();
                at = use_tree(&tokens, at + 1, &[], &mut leaves);
                paths.extend(leaves.into_iter().map(|(path, name)| UsedPath {
                    module: module.clone(),
                    path,
                    name: Some(name),
                    is_public,
                }));
                continue;
            }
            name if is_name(name) && next == "::" && before(at, 1) != "::" => {
                let mut path = vec![name.to_owned()];
                while tokens.get(at + 1) == Some(&"::")
                    && tokens.get(at + 2).is_some_and(|token| is_name(token))
                {
                    path.push(tokens[at + 2].to_owned());
                    at += 2;
                }
                paths.push(UsedPath { module: module.clone(), path, name: None, is_public: false });
            }
            _ => {}
        }
        at += 1;
    }
    paths
}

/// Returns the names that the public `use`s of the crate's root export.
pub(crate) fn exported_names(lib: &str) -> BTreeSet<String> {
    let paths = used_paths(&code(lib), &[]);
    paths.into_iter().filter(|path| path.is_public).filter_map(|path| path.name).collect()
}

/// Collects the paths of a `use` from a place on, each with the name it gets; returns where it ends.
fn use_tree(
    tokens: &[&str],
    mut at: usize,
    prefix: &[String],
    leaves: &mut Vec<(Names, String)>,
) -> usize {
    let mut path = prefix.to_vec();
    loop {
        match tokens[at] {
            "::" => at += 1,
            "{" => {
                at += 1;
                while tokens[at] != "}" {
                    at = use_tree(tokens, at, &path, leaves);
                    at += usize::from(tokens[at] == ",");
                }
                return at + 1;
            }
            "as" => {
                leaves.push((path, tokens[at + 1].to_owned()));
                return at + 2;
            }
            "," | "}" | ";" => {
                if path.len() > 1 && path.last().is_some_and(|name| name == "self") {
                    path.pop();
                }
                let name = path.last().cloned().unwrap_or_default();
                leaves.push((path, name));
                return at;
            }
            name => {
                path.push(name.to_owned());
                at += 1;
            }
        }
    }
}

#[test]
fn code_has_no_comments_strings_and_tests() {
    let text = "a // b\n\"c \\\" d\" 'e' &'f g '\\'' r#\"h\"#\n/* i\n */ j\n#[cfg(test)]\nmod tests { k }\n";
    assert_eq!(code(text), "a \n  &'f g  \n\n j\n\n\n");
}

#[test]
fn paths_lead_to_the_file_that_defines() {
    let files = [
        ("src/lib.rs", "pub mod a;\npub mod b;"),
        (
            "src/a/mod.rs",
            "mod inner;\npub use inner::{Item as Renamed};\nuse crate::b::Other;\npub struct Own;",
        ),
        ("src/a/inner.rs", "use super::{Other, Own};"),
        ("src/a/user.rs", "use crate::{a::Renamed, b::{self}};\nuse std::fmt;"),
        ("src/b.rs", "fn f() { crate::a::Own; }\nmod c { use super::d; }"),
        ("crates/x/src/a.rs", "use crate::b::Other;"),
        ("crates/x/src/b.rs", "fn f() { crate::c::Own; }"),
    ];
    let tree = Tree::new(files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())));
    let uses: Vec<Vec<usize>> =
        tree.uses().into_iter().map(|used| used.into_iter().collect()).collect();
    assert_eq!(uses, [vec![], vec![4], vec![1, 4], vec![2, 4], vec![1], vec![6], vec![]]);
    assert_eq!(tree.circles(), [["src/a/mod.rs", "src/b.rs"]]);
}
