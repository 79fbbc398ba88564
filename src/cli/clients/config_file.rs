//! Reads a client's configuration file, and changes it without losing comments or other entries.

use std::{
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use chrono::Local;
use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstRootNode},
};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, InlineTable, Item, Table};

use super::Syntax;

/// The byte order mark that some editors write at the beginning of a file.
const BYTE_ORDER_MARK: char = '\u{FEFF}';

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
        let text = match fs::read_to_string(path) {
            Ok(text) => Some(text),
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
            && fs::metadata(&path).is_ok_and(|file| crate::private::is_open_to_others(&file));
        if is_open {
            crate::private::tighten(&path);
        }
        is_open
    }

    /// Returns the path with links resolved, so that a linked configuration file remains a link.
    fn real_path(&self) -> PathBuf {
        dunce::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    /// Returns the content; empty if there is no file.
    pub fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    /// Returns whether the file exists and is not empty.
    pub fn is_present(&self) -> bool {
        !self.body().trim().is_empty()
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
                toml::from_str::<Value>(text).map_err(|error| error.message().to_owned())
            }
            Syntax::Json => jsonc_parser::parse_to_serde_value(text, &lenient())
                .map_err(|error| error.to_string()),
            Syntax::StrictJson => serde_json::from_str(text).map_err(|error| error.to_string()),
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

    pub fn without_server(&self, key: &str, name: &str) -> Result<String, String> {
        self.edited(&Edit { key, name, entry: None })
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
        crate::private::create_dir_all(folder)?;
        let backup = self.text.as_ref().map(|_| backup_of(&path));
        if let Some(backup) = &backup {
            crate::private::write(backup, self.text().as_bytes())?;
        }
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        file.write_all(text.as_bytes())?;
        // A new temporary file is readable for its user only, so the old file's permissions are copied.
        if self.text.is_some() && !self.is_private {
            file.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
        }
        file.as_file().sync_all()?;
        crate::private::replace(file.into_temp_path(), &path)?;
        Ok(backup)
    }
}

/// Returns an unused name for a backup.
fn backup_of(path: &Path) -> PathBuf {
    let stamp = Local::now().format("%Y%m%d-%H%M%S");
    let named = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{stamp}{suffix}.bak"));
        PathBuf::from(name)
    };
    let more = (2..).map(|number| named(&format!("-{number}")));
    let mut names = std::iter::once(named("")).chain(more);
    names.find(|name| !name.exists()).expect("there are endless numbers")
}

/// A change of one server in a configuration.
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
        let mut document: DocumentMut =
            text.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
        let Some(entry) = self.entry else {
            let list = document.get_mut(self.key).and_then(Item::as_table_like_mut);
            if let Some(list) = list {
                list.remove(self.name);
                if list.is_empty() {
                    document.remove(self.key);
                }
            }
            return Ok(document.to_string());
        };
        let mut implicit = Table::new();
        implicit.set_implicit(true);
        let list = document.entry(self.key).or_insert(Item::Table(implicit));
        let wrong = |what: &str| format!("{what:?} is not a table");
        // Inside an inline table, a new table must be an inline table too.
        let new = match list.is_inline_table() {
            true => Item::Value(InlineTable::new().into()),
            false => Item::Table(Table::new()),
        };
        let list = list.as_table_like_mut().ok_or_else(|| wrong(self.key))?;
        let server = list.entry(self.name).or_insert(new);
        let server = server.as_table_like_mut().ok_or_else(|| wrong(self.name))?;
        for (key, value) in entry {
            server.insert(key, Item::Value(toml_value(value)));
        }
        Ok(document.to_string())
    }
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
            assert_eq!(after.without_server(key, "verbatim").unwrap(), text, "{with}");
        }
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
        let without = file(twice, Syntax::Json).without_server("mcpServers", "verbatim");
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
