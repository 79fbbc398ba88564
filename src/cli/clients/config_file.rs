//! Reads a client's configuration file, and changes it without losing comments or other entries.

use std::{
    fs, io,
    io::Write,
    ops::Range,
    path::{Path, PathBuf},
};

use chrono::Local;
use jsonc_parser::{
    CollectOptions, CommentCollectionStrategy, ParseOptions,
    common::Ranged,
    cst::{CstInputValue, CstNode, CstRootNode},
    parse_to_ast,
};
use serde_json::{Map, Value};
use toml_edit::{Document, DocumentMut, InlineTable, Item, Table, TableLike};

use super::Syntax;

const BYTE_ORDER_MARK: char = '\u{FEFF}';

pub(crate) const SAVE_AS_UTF_8: &str = "save it as UTF-8";

const BACKUP: &str = ".bak";

/// The maximum number of links that are followed, as on Linux.
const MAX_LINKS: usize = 40;

/// The current content of a client's configuration file.
#[derive(Debug)]
pub struct ConfigFile {
    path: PathBuf,
    syntax: Syntax,
    /// The content; `None` if there is no file.
    text: Option<String>,
    /// Whether only the user may read the file after a write.
    is_private: bool,
}

impl ConfigFile {
    /// Returns a file with this content; `None` if there is no file.
    pub fn new(path: &Path, syntax: Syntax, text: Option<String>) -> ConfigFile {
        ConfigFile { path: path.to_owned(), syntax, text, is_private: false }
    }

    /// Reads a file. A missing file counts as empty.
    pub fn read(path: &Path, syntax: Syntax) -> io::Result<ConfigFile> {
        let text = match fs::read(path) {
            Ok(bytes) => Some(decoded(bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok(ConfigFile::new(path, syntax, text))
    }

    /// Returns the file, marked so that `write` makes it readable for this user only.
    pub fn kept_private(self) -> ConfigFile {
        ConfigFile { is_private: true, ..self }
    }

    /// Removes the read permission of other users. Returns whether other users had the permission.
    pub fn close_to_others(&self) -> bool {
        let path = self.real_path();
        let is_open = self.is_private
            && fs::metadata(&path)
                .is_ok_and(|file| verbatim_base::private::is_open_to_others(&file));
        if is_open {
            verbatim_base::private::tighten(&path);
        }
        is_open
    }

    /// Returns the path with links resolved, so that a linked configuration file remains a link.
    fn real_path(&self) -> PathBuf {
        let mut path = self.path.clone();
        // The file that a link names may not exist yet; `canonicalize` needs one that exists.
        for _ in 0..MAX_LINKS {
            let Ok(target) = fs::read_link(&path) else { break };
            path = path.parent().unwrap_or(Path::new("")).join(target);
        }
        dunce::canonicalize(&path).unwrap_or(path)
    }

    /// Returns the content; empty if there is no file.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns whether the file has text.
    pub fn is_present(&self) -> bool {
        !self.body().trim().is_empty()
    }

    pub(super) fn exists(&self) -> bool {
        self.text.is_some()
    }

    fn body(&self) -> &str {
        self.text().trim_start_matches(BYTE_ORDER_MARK)
    }

    /// Parses the file as its client does. The error names the syntax that the client does not support.
    pub fn parse(&self) -> Result<Value, String> {
        let text = self.body();
        if text.trim().is_empty() {
            return Ok(Value::Object(Map::new()));
        }
        match self.syntax {
            Syntax::Toml => {
                let document = Document::parse(text).map_err(|error| error.message().to_owned())?;
                Ok(json_of(document.as_item()))
            }
            Syntax::Json => jsonc_parser::parse_to_serde_value(text, &lenient())
                .map_err(|error| error.to_string()),
            Syntax::StrictJson => serde_json::from_str(text).map_err(|error| {
                let line = comment_line(text);
                line.map_or(error.to_string(), |line| format!("there is a comment in line {line}"))
            }),
        }
    }

    /// Returns what corrects a file that its client cannot read.
    pub(crate) fn remedy(&self, error: &str) -> &'static str {
        if error.to_lowercase().contains("escape") {
            return r"write each backslash twice, as in C:\\Users";
        }
        let is_lenient =
            || ConfigFile::new(&self.path, Syntax::Json, self.text.clone()).parse().is_ok();
        match self.syntax {
            Syntax::StrictJson | Syntax::Json if self.parse().is_ok() => "write {} in its place",
            Syntax::Toml => "correct the TOML in that file",
            Syntax::StrictJson if is_lenient() => {
                "remove the comments, and the commas before ] and }"
            }
            Syntax::StrictJson | Syntax::Json => "correct the JSON in that file",
        }
    }

    /// Returns the text with a server added. If the server has an entry, only the keys of `entry`
    /// change; comments and all other text stay.
    pub fn with_server(
        &self,
        key: &str,
        name: &str,
        entry: &[(&str, Value)],
    ) -> Result<String, String> {
        let edit = Edit { key, name, entry: Some(entry) };
        self.edited(&edit)
    }

    /// Returns the text without servers. If a backup differs from the file only by a server that was
    /// added to it, that backup is returned, so every byte is as it was before.
    pub fn without_servers(&self, key: &str, names: &[&str]) -> Result<String, String> {
        let file = |text| ConfigFile::new(&self.path, self.syntax, Some(text));
        let without = |text: String| {
            let remove = |text, name: &&str| file(text).edited(&Edit { key, name, entry: None });
            names.iter().try_fold(text, remove)
        };
        let rest = without(self.text().to_owned())?;
        let is_before = |backup: &String| {
            let is_rest = |name: &&str| {
                let with = file(backup.clone()).with_server(key, name, &[("command", "".into())]);
                with.and_then(without).as_ref() == Ok(&rest)
            };
            without(backup.clone()).as_ref() == Ok(backup) && names.iter().any(is_rest)
        };
        Ok(self.backups().find(is_before).unwrap_or(rest))
    }

    /// Returns the texts of the backups, the newest first.
    fn backups(&self) -> impl Iterator<Item = String> {
        let path = self.real_path();
        let start = format!("{}.", path.file_name().unwrap_or_default().to_string_lossy());
        let entries = path.parent().and_then(|folder| fs::read_dir(folder).ok());
        let is_backup = |name: &str| name.starts_with(&start) && name.ends_with(BACKUP);
        let mut paths: Vec<PathBuf> = (entries.into_iter().flatten().flatten())
            .filter(|entry| is_backup(&entry.file_name().to_string_lossy()))
            .map(|entry| entry.path())
            .collect();
        paths.sort_unstable();
        paths.into_iter().rev().filter_map(|path| fs::read_to_string(path).ok())
    }

    fn edited(&self, edit: &Edit<'_>) -> Result<String, String> {
        // If the client cannot read the file, `parse` fails, and the file is not changed.
        if edit.is_in(&self.parse()?) {
            return Ok(self.text().to_owned());
        }
        let edited = match self.syntax {
            Syntax::Toml => edit.toml(self.body())?,
            Syntax::Json | Syntax::StrictJson => edit.json(self.body())?,
        };
        let mark = self.text().strip_suffix(self.body()).unwrap_or_default();
        let edited = ConfigFile::new(&self.path, self.syntax, Some(format!("{mark}{edited}")));
        if !edit.is_in(&edited.parse()?) {
            let Edit { key, name, .. } = edit;
            return Err(format!("{key:?}, {name:?} or a key of it is in the file twice"));
        }
        Ok(edited.text().to_owned())
    }

    /// Writes a new text; returns the path of the backup. Fails if the file changed since it was read.
    pub fn write(&self, text: &str) -> io::Result<Option<PathBuf>> {
        let path = self.real_path();
        let now = ConfigFile::read(&path, self.syntax)?;
        if now.text != self.text {
            return Err(io::Error::other("another program has just changed it; run this again"));
        }
        let folder = path.parent().unwrap_or(Path::new("."));
        verbatim_base::private::create_dir_all(folder)?;
        let backup = self.text.as_ref().map(|_| backup_of(&path));
        if let Some(backup) = &backup {
            verbatim_base::private::write(backup, self.text().as_bytes())?;
        }
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        // A new temporary file is readable for its user only, so the old file's permissions are copied.
        if self.text.is_some() && !self.is_private {
            file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
        }
        file.as_file().sync_all()?;
        verbatim_base::private::replace(file.into_temp_path(), &path)?;
        Ok(backup)
    }
}

/// Returns the text of a file. If it is not in UTF-8, the error says whether it is in UTF-16.
fn decoded(bytes: Vec<u8>) -> io::Result<String> {
    // JSON and TOML begin with an ASCII character, which has a zero byte in UTF-16.
    let is_utf_16 = bytes.starts_with(b"\xff\xfe")
        || bytes.starts_with(b"\xfe\xff")
        || bytes.iter().take(2).any(|byte| *byte == 0);
    let what = if is_utf_16 { "it is in UTF-16, not in UTF-8" } else { "it is not in UTF-8" };
    let text = String::from_utf8(bytes).ok().filter(|_| !is_utf_16);
    text.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, what))
}

fn backup_of(path: &Path) -> PathBuf {
    let stamp = Local::now().format("%Y%m%d-%H%M%S");
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{stamp}{suffix}{BACKUP}"));
        PathBuf::from(name)
    };
    let more = (2..).map(|number| named(&format!("-{number}")));
    let mut names = std::iter::once(named("")).chain(more);
    names.find(|name| !name.exists()).expect("there are endless numbers")
}

struct Edit<'a> {
    key: &'a str,
    name: &'a str,
    /// The keys of the server's entry; `None` removes the server.
    entry: Option<&'a [(&'a str, Value)]>,
}

impl Edit<'_> {
    /// Returns whether the parsed configuration has the change. If a key occurs twice, the client
    /// reads its last value, and the change may be in its first value.
    fn is_in(&self, config: &Value) -> bool {
        let server = config.get(self.key).and_then(|list| list.get(self.name));
        match (self.entry, server) {
            (None, server) => server.is_none(),
            (Some(entry), Some(server)) => {
                entry.iter().all(|(key, value)| server.get(key) == Some(value))
            }
            (Some(_), None) => false,
        }
    }

    fn json(&self, text: &str) -> Result<String, String> {
        let text = if text.trim().is_empty() { "{\n}\n" } else { text };
        let root = CstRootNode::parse(text, &lenient()).map_err(|error| error.to_string())?;
        let wrong = |what: &str| format!("{what} is not an object");
        let config = root.object_value().ok_or_else(|| wrong("the file"))?;
        let Some(entry) = self.entry else {
            let Some(servers) = config.object_value(self.key) else { return Ok(text.to_owned()) };
            if let Some(server) = servers.get(self.name) {
                server.remove();
            }
            if servers.properties().is_empty()
                && !servers.children().iter().any(CstNode::is_comment)
                && let Some(list) = config.get(self.key)
            {
                list.remove();
            }
            return Ok(root.to_string());
        };
        let list = config.object_value_or_create(self.key);
        let list = list.ok_or_else(|| wrong(&format!("{:?}", self.key)))?;
        match (list.object_value(self.name), list.get(self.name)) {
            (Some(server), _) => {
                for (key, value) in entry {
                    match server.get(key) {
                        Some(property) => property.set_value(input(value)),
                        None => drop(server.append(key, input(value))),
                    }
                }
            }
            (None, Some(property)) => property.set_value(object(entry)),
            (None, None) => drop(list.append(self.name, object(entry))),
        }
        Ok(root.to_string())
    }

    fn toml(&self, text: &str) -> Result<String, String> {
        let document = Document::parse(text).map_err(|error| error.message().to_owned())?;
        // `toml_edit` writes no CR.
        let line_ends = |edited: String| match text.contains("\r\n") {
            true => edited.replace('\n', "\r\n"),
            false => edited,
        };
        let list = document.get(self.key);
        let server = list.and_then(Item::as_table_like).and_then(|list| list.get(self.name));
        if let (None, Some(Item::Table(table))) = (self.entry, server)
            && !table.is_dotted()
        {
            return Ok(without_table(text, table));
        }
        if let (Some(entry), None) = (self.entry, server)
            && list.is_none_or(Item::is_table)
        {
            let last_line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
            let empty_line = if text.trim().is_empty() { "" } else { "\n" };
            let addition = new_table(self.key, self.name, entry);
            return Ok(
                text.to_owned() + &line_ends(format!("{last_line_end}{empty_line}{addition}"))
            );
        }
        let mut document = document.into_mut();
        let list = document.get_mut(self.key).and_then(Item::as_table_like_mut);
        match (list, self.entry) {
            (Some(list), Some(entry)) => {
                // An inline table can only hold inline tables.
                let new = Item::Value(InlineTable::new().into());
                let server = list.entry(self.name).or_insert(new).as_table_like_mut();
                set(server.ok_or_else(|| format!("{:?} is not a table", self.name))?, entry);
            }
            // The list stays even if it is empty now, because the user made it.
            (Some(list), None) => drop(list.remove(self.name)),
            (None, Some(_)) => return Err(format!("{:?} is not a table", self.key)),
            (None, None) => {}
        }
        Ok(line_ends(document.to_string()))
    }
}

fn new_table(key: &str, name: &str, entry: &[(&str, Value)]) -> DocumentMut {
    let (mut document, mut list, mut server) = (DocumentMut::new(), Table::new(), Table::new());
    set(&mut server, entry);
    list.set_implicit(true);
    list.insert(name, Item::Table(server));
    document.insert(key, Item::Table(list));
    document
}

fn set(server: &mut dyn TableLike, entry: &[(&str, Value)]) {
    for (key, value) in entry {
        server.insert(key, Item::Value(toml_value(value)));
    }
}

/// Returns the text of a TOML file without a table and the tables in it. Comments above and below stay.
fn without_table(text: &str, table: &Table) -> String {
    let mut parts = Vec::new();
    add_parts(table, &mut parts);
    parts.sort_unstable_by_key(|part| part.start);
    let mut rest = text.to_owned();
    for part in parts.into_iter().rev() {
        let before = &text[..part.start];
        let empty_line = ["\r\n", "\n"].into_iter().find(|it| before.ends_with(&it.repeat(2)));
        let line_end = text[part.end..].find('\n').map_or(text.len(), |at| part.end + at + 1);
        rest.replace_range(part.start - empty_line.map_or(0, str::len)..line_end, "");
    }
    rest
}

/// Collects where the headers of a table and of the tables in it begin, and where their last values end.
/// Returns where the last value of the table itself ends.
fn add_parts(table: &Table, parts: &mut Vec<Range<usize>>) -> usize {
    let header = table.span().unwrap_or_default();
    let mut end = header.end;
    for (_, item) in table {
        match item {
            Item::Table(inner) => {
                let inner_end = add_parts(inner, parts);
                end = if inner.is_dotted() { end.max(inner_end) } else { end };
            }
            Item::ArrayOfTables(tables) => {
                for inner in tables {
                    add_parts(inner, parts);
                }
            }
            item => end = end.max(item.span().map_or(0, |span| span.end)),
        }
    }
    if !table.is_dotted() && !table.is_implicit() {
        parts.push(header.start..end);
    }
    end
}

/// Returns the number of the first line with a comment, if the text is JSON with comments.
fn comment_line(text: &str) -> Option<usize> {
    let collect = CollectOptions {
        comments: CommentCollectionStrategy::Separate,
        ..CollectOptions::default()
    };
    let comments = parse_to_ast(text, &collect, &lenient()).ok()?.comments?;
    let first = comments.values().flat_map(|list| list.iter()).map(Ranged::start).min()?;
    Some(text[..first].matches('\n').count() + 1)
}

/// The options for JSON with comments and trailing commas, and no other extension.
fn lenient() -> ParseOptions {
    ParseOptions {
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
    }
}

fn object(entry: &[(&str, Value)]) -> CstInputValue {
    let keys = entry.iter().map(|(key, value)| ((*key).to_owned(), input(value)));
    CstInputValue::Object(keys.collect())
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(truth) => CstInputValue::Bool(*truth),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(map) => {
            CstInputValue::Object(map.iter().map(|(key, it)| (key.clone(), input(it))).collect())
        }
    }
}

/// Returns an item of a TOML document in JSON. A date becomes a string.
fn json_of(item: &Item) -> Value {
    fn object(table: &dyn TableLike) -> Value {
        table
            .iter()
            .map(|(key, item)| (key.to_owned(), json_of(item)))
            .collect::<Map<_, _>>()
            .into()
    }
    fn of_value(value: &toml_edit::Value) -> Value {
        match value {
            toml_edit::Value::String(text) => text.value().as_str().into(),
            toml_edit::Value::Integer(number) => (*number.value()).into(),
            toml_edit::Value::Float(number) => (*number.value()).into(),
            toml_edit::Value::Boolean(truth) => (*truth.value()).into(),
            toml_edit::Value::Datetime(date) => date.value().to_string().into(),
            toml_edit::Value::Array(items) => items.iter().map(of_value).collect(),
            toml_edit::Value::InlineTable(table) => object(table),
        }
    }
    match item {
        Item::None => Value::Null,
        Item::Value(value) => of_value(value),
        Item::Table(table) => object(table),
        Item::ArrayOfTables(tables) => tables.iter().map(|table| object(table)).collect(),
    }
}

/// Returns a value of an entry in TOML. Entries hold strings, booleans and lists of strings.
fn toml_value(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(truth) => (*truth).into(),
        Value::Array(items) => items.iter().map(toml_value).collect::<toml_edit::Array>().into(),
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn file(text: &str, syntax: Syntax) -> ConfigFile {
        ConfigFile::new(Path::new("x"), syntax, Some(text.to_owned()))
    }

    fn entry() -> Vec<(&'static str, Value)> {
        vec![("command", json!("/bin/verbatim")), ("args", json!(["serve"]))]
    }

    #[test]
    fn a_server_comes_and_goes_and_the_rest_stays() {
        for (text, syntax, key) in [
            (
                "{\n  // mine\n  \"a\": 1, /* b */\n  \"mcpServers\": {\n    \"x\": {\"command\": \"y\"}\n  }\n}\n",
                Syntax::Json,
                "mcpServers",
            ),
            ("{\n\t\"z\": [1, 2],\n\t\"a\": {}\n}", Syntax::StrictJson, "mcpServers"),
            ("{\r\n  \"servers\": {\r\n    \"x\": {}\r\n  }\r\n}\r\n", Syntax::Json, "servers"),
            ("\u{FEFF}{\n  \"a\": 1\n}", Syntax::Json, "mcpServers"),
            (
                "# mine\nmodel = \"m\" # last\n\n[mcp_servers.x]\ncommand = \"y\"\n",
                Syntax::Toml,
                "mcp_servers",
            ),
            ("model = \"m\"\n", Syntax::Toml, "mcp_servers"),
            ("mcp_servers = { x = { command = \"y\" } }\n", Syntax::Toml, "mcp_servers"),
        ] {
            let before = file(text, syntax);
            let with = before.with_server(key, "verbatim", &entry()).unwrap();
            let after = file(&with, syntax);
            let server = after.parse().unwrap()[key]["verbatim"].take();
            assert_eq!(server, Value::from_iter(entry()), "{with}");
            let again = after.with_server(key, "verbatim", &entry()).unwrap();
            assert_eq!(again, with, "nothing changes twice");
            assert_eq!(after.without_servers(key, &["verbatim"]).unwrap(), text, "{with}");
        }
    }

    /// Texts in every layout: indents, line ends, byte order mark, last line end.
    fn layouts(texts: impl IntoIterator<Item = String>) -> Vec<String> {
        let mut layouts = Vec::new();
        for text in texts {
            for indent in ["  ", "\t"] {
                let text = text.replace("  ", indent);
                for text in [text.trim_end(), &text, &format!("{text}\n")] {
                    for line_end in ["", "\r\n", "\n"] {
                        let text = text.replace('\n', line_end);
                        layouts.extend([format!("\u{FEFF}{text}"), text]);
                    }
                }
            }
        }
        layouts
    }

    fn shapes(key: &str, syntax: Syntax) -> Vec<String> {
        let mut lists: Vec<String> = ["{}", "{ }", "{\n  }", "{\n    \"o\": {\"args\": []}\n  }"]
            .map(|list| format!("\"{key}\": {list}"))
            .to_vec();
        if syntax == Syntax::Toml {
            let tables = [
                "".to_owned(),
                "# mine\n".to_owned(),
                "model = \"m\" # mine\n".to_owned(),
                format!("[{key}]\n# mine\n\n[other]\na = 1\n"),
                format!("[{key}] # mine\n# mine too\n"),
                format!("[{key}.o]\nargs = []\n# mine\n"),
                format!("[{key}.o]\nargs = [\n  1,\n]\n\n[[a]]\nb = 1\n\n[[a]]\nb = 2\n"),
                format!("{key} = {{}} # mine\nz = 1\n"),
                format!("{key} = {{ o = {{ args = [] }} }}\n"),
                format!("{key}.o.args = [] # mine\nz = \"\"\"\na\n\"\"\"\n"),
            ];
            let shapes = layouts(tables).into_iter();
            return shapes.filter(|text| file(text, syntax).parse().is_ok()).collect();
        }
        if syntax == Syntax::Json {
            lists.extend([
                format!("\"{key}\": {{\n    // mine\n  }}"),
                format!(
                    "\"{key}\": {{\n    \"o\": {{}}, // mine\n    /* mine too */\n  }}, // mine"
                ),
                format!("// mine\n  \"{key}\": {{/* mine */ \"o\": {{}} /* mine */}} // mine"),
            ]);
        }
        let around = |list: &String| {
            let objects =
                [format!("{{\n  {list}\n}}\n"), format!("{{\n  \"a\": [1],\n  {list}\n}}\n")];
            objects.to_vec()
        };
        let without_list = ["", "{}", "{ }\n", "{\n  \"a\": {\n  }\n}\n"].map(str::to_owned);
        let texts = lists.iter().flat_map(around).chain(without_list);
        // Some layouts of comments are no JSON.
        layouts(texts).into_iter().filter(|text| file(text, syntax).parse().is_ok()).collect()
    }

    /// Every comment stays even if there is no backup; with a backup, every byte does.
    #[test]
    fn a_removed_server_leaves_the_file_as_it_was() {
        let mut count = 0;
        for (key, syntax) in [
            ("mcpServers", Syntax::StrictJson),
            ("mcpServers", Syntax::Json),
            ("mcp", Syntax::Json),
            ("mcp_servers", Syntax::Toml),
        ] {
            let entry = [&entry()[..], &[("enabled", json!(true))]].concat();
            for text in shapes(key, syntax) {
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("config");
                fs::write(&path, &text).unwrap();
                let read = || ConfigFile::read(&path, syntax).unwrap();
                let with = read().with_server(key, "verbatim", &entry).unwrap();
                let lone = file(&with, syntax).without_servers(key, &["verbatim"]).unwrap();
                let comments = |text: &str| text.matches("mine").count();
                assert_eq!(comments(&lone), comments(&text), "{text:?} {with:?} {lone:?}");
                let mut config = read().parse().unwrap();
                let mut rest = file(&lone, syntax).parse().unwrap();
                for config in [&mut config, &mut rest] {
                    if config[key].as_object().is_none_or(Map::is_empty) {
                        config.as_object_mut().unwrap().remove(key);
                    }
                }
                assert_eq!(rest, config, "{text:?} {with:?} {lone:?}");
                let has_cr = text.contains("\r\n");
                let ends = if has_cr { with.replace("\r\n", "") } else { with.clone() };
                let is_mixed = has_cr && ends.contains('\n');
                assert!(!is_mixed || !read().is_present(), "{text:?} {with:?}");
                // As `write` does, but without waiting for the disk.
                fs::write(backup_of(&path), &text).unwrap();
                fs::write(&path, &with).unwrap();
                assert_eq!(
                    read().parse().unwrap()[key]["verbatim"],
                    Value::from_iter(entry.clone())
                );
                let without = read().without_servers(key, &["verbatim"]).unwrap();
                assert_eq!(without, text, "{with:?}");
                count += 1;
            }
        }
        assert!(count > 500, "{count}");
    }

    #[test]
    fn an_entry_keeps_what_it_has_besides() {
        let text = r#"{"mcpServers": {"verbatim": {"command": "old", "env": {"A": "b"}}}}"#;
        let with =
            file(text, Syntax::Json).with_server("mcpServers", "verbatim", &entry()).unwrap();
        let server = &file(&with, Syntax::Json).parse().unwrap()["mcpServers"]["verbatim"];
        assert_eq!(server["env"], json!({"A": "b"}));
        assert_eq!(server["command"], "/bin/verbatim");
        let text = "[mcp_servers.verbatim]\ncommand = \"old\"\nenv = { A = \"b\" }\n";
        let with =
            file(text, Syntax::Toml).with_server("mcp_servers", "verbatim", &entry()).unwrap();
        assert!(with.contains("env = { A = \"b\" }") && !with.contains("old"), "{with}");
    }

    /// If a key occurs twice, the client reads its last value.
    #[test]
    fn what_is_there_twice_is_not_changed() {
        for text in [
            r#"{"mcpServers": {}, "mcpServers": {"verbatim": {}}}"#,
            r#"{"mcpServers": {"verbatim": {}, "verbatim": {}}}"#,
            r#"{"mcpServers": {"verbatim": {"args": [], "args": []}}}"#,
        ] {
            for syntax in [Syntax::Json, Syntax::StrictJson] {
                let with = file(text, syntax).with_server("mcpServers", "verbatim", &entry());
                assert!(with.is_err_and(|why| why.contains("twice")), "{text}");
            }
        }
        let twice = r#"{"mcpServers": {"verbatim": 1, "verbatim": 2}}"#;
        let without = file(twice, Syntax::Json).without_servers("mcpServers", &["verbatim"]);
        assert!(without.is_err());
    }

    #[test]
    fn what_a_client_cannot_read_is_not_changed() {
        for (text, syntax) in [
            ("{\"a\": 1,}", Syntax::StrictJson),
            ("{\"a\": 1 // c\n}", Syntax::StrictJson),
            ("{", Syntax::Json),
            ("[1]", Syntax::Json),
            ("{\"mcpServers\": []}", Syntax::Json),
            ("a = ", Syntax::Toml),
            ("mcpServers = 1", Syntax::Toml),
        ] {
            let edited = file(text, syntax).with_server("mcpServers", "verbatim", &entry());
            assert!(edited.is_err(), "{text}: {edited:?}");
        }
        assert!(file("{\"a\": 1, /* b */}", Syntax::Json).parse().is_ok());
    }
}
