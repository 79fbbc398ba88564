//! Configuration files of AI clients with any content: an edit is refused, or the client can read its
//! result, with the server in it or without.
//!
//! Input: a byte that selects the syntax, then the file.

use std::path::Path;

use serde_json::{Value, json};
use verbatim_search::cli::clients::{Syntax, config_file::ConfigFile};

const SYNTAXES: [Syntax; 3] = [Syntax::Toml, Syntax::Json, Syntax::StrictJson];
const KEY: &str = "mcpServers";
const NAME: &str = "verbatim";

pub(super) fn run(data: &[u8]) {
    let Some((syntax, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let syntax = SYNTAXES[usize::from(*syntax) % SYNTAXES.len()];
    let file = |text: &str| ConfigFile::new(Path::new("x"), syntax, Some(text.to_owned()));
    let entry = [("command", json!("/bin/a \"b\"")), ("args", json!(["serve", "--x\n"]))];
    let before = file(text);
    let is_read = before.parse().is_ok();
    let entry_in = |text: &str| {
        let mut config: Value = file(text).parse().unwrap_or_else(|why| panic!("{text:?}: {why}"));
        config.get_mut(KEY).and_then(|list| list.get_mut(NAME)).map(Value::take)
    };
    if let Ok(without) = before.without_servers(KEY, &[NAME]) {
        assert!(is_read);
        assert_eq!(entry_in(&without), None, "{without:?}");
    }
    let Ok(with) = before.with_server(KEY, NAME, &entry) else { return };
    assert!(is_read);
    let found = entry_in(&with).expect("the entry");
    for (key, value) in &entry {
        assert_eq!(found.get(key), Some(value), "{with:?}");
    }
    assert_eq!(file(&with).with_server(KEY, NAME, &entry).as_deref(), Ok(&*with));
    match file(&with).without_servers(KEY, &[NAME]) {
        Ok(without) => assert_eq!(entry_in(&without), None, "{without:?}"),
        Err(why) => assert!(why.contains("twice"), "{with:?}: {why}"),
    }
}
