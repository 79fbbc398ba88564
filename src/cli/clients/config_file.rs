//! Reads the configuration file of a client, and changes one entry in it. Comments and other entries stay.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde::Serialize;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, InlineTable, Item, RawString, Table, ser::ValueSerializer};

use verbatim_base::{files, private};

const BYTE_ORDER_MARK: char = '\u{FEFF}';

/// The end of the name of the copy from before a change. The copy replaces the one before it, so it has a name
/// that no other program uses.
const BACKUP: &str = ".verbatim.bak";

/// The key of the program in an entry. An entry without it, such as one with an address, is replaced.
const COMMAND: &str = "command";

/// The maximum number of links that are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// JSON with comments and trailing commas, and no other extension.
const LENIENT: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// JSON without comments and trailing commas.
    StrictJson,
    /// JSON with comments and trailing commas.
    Json,
    Toml,
}

/// The reason why a file cannot be read or changed, and what helps.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}; {remedy}")]
pub struct Fault {
    pub(crate) reason: String,
    pub(crate) remedy: &'static str,
}

/// Where the entry of a server stands: below the key of all servers, with the server's name.
#[derive(Clone, Copy, Debug)]
pub struct EntryPlace<'a> {
    pub key: &'a str,
    pub name: &'a str,
}

/// The keys and values of a server's entry, in the usual order.
pub type Entry = Vec<(&'static str, Value)>;

#[derive(Debug)]
pub(crate) struct ConfigFile {
    path: PathBuf,
    syntax: Syntax,
    /// The text; `None` if there is no file.
    text: Option<String>,
    /// The content, which is an object.
    pub(crate) config: Value,
}

impl Syntax {
    /// Parses a text as the client does. A blank text is an object without keys.
    pub fn parse(self, text: &str) -> Result<Value, Fault> {
        let text = text.trim_start_matches(BYTE_ORDER_MARK);
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        match self {
            Syntax::Toml => toml_edit::de::from_str(text).map_err(|error| self.fault(error)),
            Syntax::Json => jsonc_parser::parse_to_serde_value(text, &LENIENT)
                .map_err(|error| self.fault(error)),
            Syntax::StrictJson => serde_json::from_str(text).map_err(|error| self.fault(error)),
        }
    }

    fn fault(self, error: impl ToString) -> Fault {
        let remedy = match self {
            Syntax::Toml => "correct the TOML in it",
            Syntax::Json => r"correct the JSON in it; a path has \\ for each \",
            Syntax::StrictJson => {
                r"correct the JSON in it: no comments, no comma before ] or }, and \\ for each \ of a path"
            }
        };
        // An error of TOML has lines that quote the file, which may hold keys of other programs.
        let text = error.to_string();
        let lines = text.lines().filter(|line| !line.contains(" |"));
        Fault { reason: lines.collect::<Vec<_>>().join(": "), remedy }
    }

    /// Returns the text with the keys of `entry` in the entry at `place`, or without the entry. All other text
    /// stays. Fails if the client cannot read the text, or something else stands at `place`.
    pub fn edit(
        self,
        text: &str,
        place: EntryPlace<'_>,
        entry: Option<&[(&str, Value)]>,
    ) -> Result<String, Fault> {
        if is_in(&self.parse(text)?, place, entry) {
            return Ok(text.to_owned());
        }
        let body = text.trim_start_matches(BYTE_ORDER_MARK);
        let mark = &text[..text.len() - body.len()];
        let edited = match self {
            Syntax::Toml => self.edit_toml(body, place, entry)?,
            Syntax::Json | Syntax::StrictJson => self.edit_json(body, place, entry)?,
        };
        // Of a key that is there twice, the client reads the last value, and the other one was changed.
        if !is_in(&self.parse(&edited)?, place, entry) {
            let EntryPlace { key, name } = place;
            let reason = format!("{key:?}, {name:?} or a key of it is in the file twice");
            return Err(Fault { reason, remedy: "leave one of them" });
        }
        Ok(format!("{mark}{edited}"))
    }

    fn edit_json(
        self,
        text: &str,
        place: EntryPlace<'_>,
        entry: Option<&[(&str, Value)]>,
    ) -> Result<String, Fault> {
        let text = if text.trim().is_empty() { "{\n}\n" } else { text };
        let root = CstRootNode::parse(text, &LENIENT).map_err(|error| self.fault(error))?;
        let config = root.object_value().ok_or_else(no_object)?;
        let Some(entry) = entry else {
            let servers = config.object_value(place.key);
            if let Some(server) = servers.and_then(|servers| servers.get(place.name)) {
                server.remove();
            }
            return Ok(root.to_string());
        };
        let servers = config.object_value_or_create(place.key).ok_or_else(|| place.no_list())?;
        let Some(property) = servers.get(place.name) else {
            servers.append(place.name, object_of(entry));
            return Ok(root.to_string());
        };
        let server = property.object_value().ok_or_else(|| place.no_entry())?;
        if server.get(COMMAND).is_none() {
            property.set_value(object_of(entry));
            return Ok(root.to_string());
        }
        for (key, value) in entry {
            match server.get(key) {
                Some(property) => property.set_value(input_of(value)),
                None => drop(server.append(key, input_of(value))),
            }
        }
        Ok(root.to_string())
    }

    fn edit_toml(
        self,
        text: &str,
        place: EntryPlace<'_>,
        entry: Option<&[(&str, Value)]>,
    ) -> Result<String, Fault> {
        let mut document: DocumentMut = text.parse().map_err(|error| self.fault(error))?;
        if let Some(entry) = entry {
            let mut list = Table::new();
            list.set_implicit(true);
            let servers = document.entry(place.key).or_insert(Item::Table(list));
            // An inline table can only hold inline tables.
            let new = match servers {
                Item::Table(_) => Item::Table(Table::new()),
                _ => Item::Value(InlineTable::new().into()),
            };
            let servers = servers.as_table_like_mut().ok_or_else(|| place.no_list())?;
            let server = servers.entry(place.name).or_insert(new);
            let server = server.as_table_like_mut().ok_or_else(|| place.no_entry())?;
            if !server.contains_key(COMMAND) {
                server.clear();
            }
            for (key, value) in entry {
                let value = value.serialize(ValueSerializer::new());
                server.insert(key, Item::Value(value.map_err(|error| self.fault(error))?));
            }
        } else {
            let servers = document.get_mut(place.key).and_then(Item::as_table_like_mut);
            let removed = servers.and_then(|servers| servers.remove(place.name));
            // Comments above the table may be about more than the table.
            if let Some(Item::Table(table)) = removed
                && let Some(above) = table.decor().prefix().and_then(RawString::as_str)
                && !above.trim().is_empty()
            {
                let rest = document.trailing().as_str().unwrap_or_default();
                document.set_trailing(format!("{above}{rest}"));
            }
        }
        // `toml_edit` ends lines without CR.
        let edited = document.to_string().replace("\r\n", "\n");
        Ok(if text.contains("\r\n") { edited.replace('\n', "\r\n") } else { edited })
    }
}

impl EntryPlace<'_> {
    fn no_list(self) -> Fault {
        Fault { reason: format!("{:?} has no list of servers", self.key), remedy: "remove it" }
    }

    fn no_entry(self) -> Fault {
        Fault { reason: format!("{:?} is no entry of a server", self.name), remedy: "remove it" }
    }
}

fn no_object() -> Fault {
    Fault { reason: "it is not an object".to_owned(), remedy: "write {} in its place" }
}

/// Returns whether a configuration has the change that [`Syntax::edit`] makes.
fn is_in(config: &Value, place: EntryPlace<'_>, entry: Option<&[(&str, Value)]>) -> bool {
    let server = config.get(place.key).and_then(|servers| servers.get(place.name));
    match (entry, server) {
        (None, server) => server.is_none(),
        (Some(entry), Some(server)) => {
            entry.iter().all(|(key, value)| server.get(key) == Some(value))
        }
        (Some(_), None) => false,
    }
}

impl ConfigFile {
    /// Reads a file. A missing file counts as empty.
    pub(crate) fn read(path: &Path, syntax: Syntax) -> Result<ConfigFile, Fault> {
        let text = read_text(path).map_err(|error| {
            let remedy = match error.kind() {
                io::ErrorKind::InvalidData => "save it as UTF-8",
                _ => "let your user read that file",
            };
            Fault { reason: error.to_string(), remedy }
        })?;
        let config = syntax.parse(text.as_deref().unwrap_or_default())?;
        if !config.is_object() {
            return Err(no_object());
        }
        Ok(ConfigFile { path: path.to_owned(), syntax, text, config })
    }

    pub(super) fn exists(&self) -> bool {
        self.text.is_some()
    }

    /// Returns the text; empty if there is no file.
    pub(crate) fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    pub(crate) fn edit(
        &self,
        place: EntryPlace<'_>,
        entry: Option<&[(&str, Value)]>,
    ) -> Result<String, Fault> {
        self.syntax.edit(self.text(), place, entry)
    }

    /// Writes a new text; returns the path of the copy of the old text. Fails if the file changed since it was
    /// read.
    pub(crate) fn write(&self, text: &str) -> io::Result<Option<PathBuf>> {
        let path = real_path(&self.path);
        if read_text(&path)? != self.text {
            return Err(io::Error::other("another program has just changed it; run this again"));
        }
        private::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        let Some(before) = &self.text else {
            write_file(&path, text, None)?;
            return Ok(None);
        };
        let rights = fs::metadata(&path)?.permissions();
        let mut backup = path.clone().into_os_string();
        backup.push(BACKUP);
        let backup = PathBuf::from(backup);
        write_file(&backup, before, Some(rights.clone()))?;
        write_file(&path, text, Some(rights))?;
        Ok(Some(backup))
    }
}

/// Returns the text of a file; `None` if there is no file.
fn read_text(path: &Path) -> io::Result<Option<String>> {
    match files::read(path) {
        Ok(bytes) => String::from_utf8(bytes)
            .map(Some)
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not in UTF-8")),
        // The target of a link may be made.
        Err(_) if !path.exists() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Writes a file in one step, with the given rights; without them, for this user only.
fn write_file(path: &Path, text: &str, rights: Option<fs::Permissions>) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    if let Some(rights) = rights {
        file.as_file().set_permissions(rights)?;
    }
    file.as_file().sync_all()?;
    private::replace(file.into_temp_path(), path)
}

/// Returns the path with links resolved, so that a linked configuration file remains a link.
fn real_path(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    // The file that a link names may not exist yet; `canonicalize` needs one that exists.
    for _ in 0..MAX_LINKS {
        let Ok(target) = fs::read_link(&path) else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    dunce::canonicalize(&path).unwrap_or(path)
}

fn object_of(entry: &[(&str, Value)]) -> CstInputValue {
    let keys = entry.iter().map(|(key, value)| ((*key).to_owned(), input_of(value)));
    CstInputValue::Object(keys.collect())
}

fn input_of(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_of).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, it)| (key.clone(), input_of(it))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LISTS: [(Syntax, &str); 4] = [
        (Syntax::StrictJson, "mcpServers"),
        (Syntax::Json, "mcpServers"),
        (Syntax::Json, "mcp"),
        (Syntax::Toml, "mcp_servers"),
    ];

    fn place(key: &str) -> EntryPlace<'_> {
        EntryPlace { key, name: "verbatim" }
    }

    fn entry() -> Vec<(&'static str, Value)> {
        vec![("command", json!("/bin/verbatim")), ("args", json!(["serve"])), ("on", json!(true))]
    }

    /// Files with a list of servers or without, most of them with comments that say "mine".
    fn files(syntax: Syntax, key: &str) -> Vec<String> {
        let objects = [
            "".to_owned(),
            "{}".to_owned(),
            format!("{{\n  \"a\": [1],\n  \"{key}\": {{}}\n}}\n"),
            format!("{{\n  \"{key}\": {{\n    \"o\": {{\"args\": []}}\n  }}\n}}\n"),
            format!("{{\"{key}\": {{\"o\": {{\"args\": []}}}}, \"a\": {{\n  }}}}"),
        ];
        let with_comments = [
            format!(
                "// mine\n{{\n  \"a\": 1, /* mine */\n  \"{key}\": {{\n    // mine\n  }}\n}}\n"
            ),
            format!(
                "{{\n  \"{key}\": {{\n    \"o\": {{}}, // mine\n    /* mine */\n  }}, // mine\n}}"
            ),
            format!("{{\"{key}\": {{/* mine */ \"o\": {{}} /* mine */}}}} // mine\n"),
        ];
        let tables = [
            "".to_owned(),
            "# mine\n".to_owned(),
            "model = \"m\" # mine".to_owned(),
            "d = 2026-01-02T03:04:05Z # mine\nf = [nan, 1.5]\n".to_owned(),
            format!("[{key}]\n# mine\n\n[other]\na = 1\n"),
            format!("[{key}] # mine\n# mine\n"),
            format!("[{key}.o]\nargs = []\n# mine\n\n[z]\n"),
            format!("[{key}.o]\nargs = [\n  1, # mine\n]\n\n[[a]]\nb = 1\n\n[[a]]\nb = 2\n"),
            format!("{key} = {{}} # mine\nz = 1\n"),
            format!("{key} = {{ o = {{ args = [] }} }}\n"),
            format!("{key} = {{ o = {{ args = [] }}, }}\n"),
            format!("{key}.o.args = [] # mine\nz = \"\"\"\na\n\"\"\"\n"),
        ];
        match syntax {
            Syntax::StrictJson => objects.to_vec(),
            Syntax::Json => [&objects[..], &with_comments].concat(),
            Syntax::Toml => tables.to_vec(),
        }
    }

    #[test]
    fn an_entry_comes_and_goes_and_the_rest_stays() {
        for (syntax, key) in LISTS {
            for text in files(syntax, key) {
                for text in [text.clone(), text.replace("  ", "\t"), text.replace('\n', "\r\n")] {
                    for text in [format!("{BYTE_ORDER_MARK}{text}"), text] {
                        comes_and_goes(syntax, key, &text);
                    }
                }
            }
        }
    }

    #[track_caller]
    fn comes_and_goes(syntax: Syntax, key: &str, text: &str) {
        let with = syntax.edit(text, place(key), Some(&entry())).unwrap();
        let mut config = syntax.parse(&with).unwrap();
        assert_eq!(config[key]["verbatim"], Value::from_iter(entry()), "{text:?} {with:?}");
        let again = syntax.edit(&with, place(key), Some(&entry())).unwrap();
        assert_eq!(again, with, "nothing changes twice");
        let without = syntax.edit(&with, place(key), None).unwrap();
        for edited in [&with, &without] {
            let mark = |text: &str| text.starts_with(BYTE_ORDER_MARK);
            assert_eq!(mark(edited), mark(text), "{text:?} {edited:?}");
            let comments = |text: &str| text.matches("mine").count();
            assert_eq!(comments(edited), comments(text), "{text:?} {edited:?}");
            let is_mixed = edited.replace("\r\n", "").contains('\n');
            assert!(!text.contains("\r\n") || !is_mixed, "{text:?} {edited:?}");
        }
        // The list may be new.
        let mut before = syntax.parse(text).unwrap();
        before.as_object_mut().unwrap().entry(key).or_insert(json!({}));
        config[key].as_object_mut().unwrap().remove("verbatim");
        assert_eq!(config, before, "{text:?} {with:?}");
        let mut rest = syntax.parse(&without).unwrap();
        rest.as_object_mut().unwrap().entry(key).or_insert(json!({}));
        assert_eq!(rest, before, "{text:?} {without:?}");
    }

    #[test]
    fn an_entry_keeps_what_it_has_besides() {
        for (syntax, key, text) in [
            (
                Syntax::Json,
                "mcpServers",
                r#"{"mcpServers": {"verbatim": {"command": "old", "env": {"A": "b"}}}}"#,
            ),
            (
                Syntax::Toml,
                "mcp_servers",
                "[mcp_servers.verbatim]\ncommand = \"old\"\n[mcp_servers.verbatim.env]\nA = \"b\"\n",
            ),
            (Syntax::Toml, "a", "a = { verbatim = { command = \"old\", env = { A = \"b\" } } }"),
        ] {
            let with = syntax.edit(text, place(key), Some(&entry())).unwrap();
            let server = &syntax.parse(&with).unwrap()[key]["verbatim"];
            assert_eq!(server["env"], json!({"A": "b"}), "{with}");
            assert_eq!(server["command"], "/bin/verbatim", "{with}");
        }
    }

    /// No client accepts a command and an address in one entry.
    #[test]
    fn an_entry_with_an_address_is_replaced() {
        for (syntax, text) in [
            (Syntax::Json, r#"{"mcp": {"verbatim": {"url": "http://x", "headers": {}}}}"#),
            (Syntax::Toml, "[mcp.verbatim]\nurl = \"http://x\"\n"),
            (Syntax::Toml, "mcp = { verbatim = { url = \"http://x\" } }\n"),
        ] {
            let with = syntax.edit(text, place("mcp"), Some(&entry())).unwrap();
            let server = syntax.parse(&with).unwrap()["mcp"]["verbatim"].take();
            assert_eq!(server, Value::from_iter(entry()), "{with}");
        }
    }

    #[test]
    fn comments_above_a_table_stay() {
        let text = "[mcp.verbatim]\na = 1\n\n# mine\n[mcp.verbatim.env]\n\n# about x\n[mcp.x]\n";
        let without = Syntax::Toml.edit(text, place("mcp"), None).unwrap();
        assert_eq!(without, "\n# about x\n[mcp.x]\n");
        let text = "a = 1\n\n# servers\n[mcp.verbatim]\na = 1\n\n[mcp.x]\nb = 2\n# end\n";
        let without = Syntax::Toml.edit(text, place("mcp"), None).unwrap();
        assert_eq!(without, "a = 1\n\n[mcp.x]\nb = 2\n\n# servers\n# end\n");
    }

    /// If a key occurs twice, the client reads its last value.
    #[test]
    fn what_is_there_twice_is_not_changed() {
        let place = place("mcpServers");
        for text in [
            r#"{"mcpServers": {}, "mcpServers": {"verbatim": {}}}"#,
            r#"{"mcpServers": {"verbatim": {}, "verbatim": {}}}"#,
            r#"{"mcpServers": {"verbatim": {"command": "x", "args": [], "args": []}}}"#,
        ] {
            for syntax in [Syntax::Json, Syntax::StrictJson] {
                let with = syntax.edit(text, place, Some(&entry()));
                assert!(with.is_err_and(|why| why.reason.contains("twice")), "{text}");
            }
        }
        let twice = r#"{"mcpServers": {"verbatim": 1, "verbatim": 2}}"#;
        assert!(Syntax::Json.edit(twice, place, None).is_err());
    }

    #[test]
    fn what_a_client_cannot_read_is_not_changed() {
        for (syntax, text, expected) in [
            (Syntax::StrictJson, "{\"a\": 1,}", "no comma before ] or }"),
            (Syntax::StrictJson, "{\"a\": 1 // c\n}", "no comments"),
            (Syntax::Json, "{", "correct the JSON"),
            (Syntax::Json, "[1]", "it is not an object; write {}"),
            (Syntax::Json, "{\"mcp\": []}", "\"mcp\" has no list of servers; remove it"),
            (Syntax::Json, "{\"mcp\": null}", "\"mcp\" has no list of servers; remove it"),
            (Syntax::Json, "{\"mcp\": {\"verbatim\": 1}}", "\"verbatim\" is no entry of a server"),
            (Syntax::Toml, "a = 1\nkey = secret", "at line 2, column 7: "),
            (Syntax::Toml, "a = ", "correct the TOML"),
            (Syntax::Toml, "mcp = 1", "\"mcp\" has no list of servers"),
            (Syntax::Toml, "[[mcp]]\na = 1", "\"mcp\" has no list of servers"),
            (Syntax::Toml, "mcp.verbatim = 1", "\"verbatim\" is no entry of a server"),
        ] {
            let error = syntax.edit(text, place("mcp"), Some(&entry())).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains('\n'), "{text}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        assert!(Syntax::Json.parse("{\"a\": 1, /* b */}").is_ok());
    }
}
