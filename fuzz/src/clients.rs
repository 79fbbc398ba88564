//! Configuration files of AI clients with any content: an edit is refused, or the client can read its
//! result, with the server in it or without.
//!
//! Input: a byte that selects the syntax, then the file.

use serde_json::{Value, json};
use verbatim_search::cli::clients::config_file::{EntryPlace, Syntax};

const SYNTAXES: [Syntax; 3] = [Syntax::Toml, Syntax::Json, Syntax::StrictJson];
const PLACE: EntryPlace<'_> = EntryPlace { key: "mcpServers", name: "verbatim" };

pub(super) fn run(data: &[u8]) {
    let Some((syntax, data)) = data.split_first() else { return };
    let Ok(text) = std::str::from_utf8(data) else { return };
    let syntax = SYNTAXES[usize::from(*syntax) % SYNTAXES.len()];
    let entry = [("command", json!("/bin/a \"b\"")), ("args", json!(["serve", "--x\n"]))];
    let is_read = syntax.parse(text).is_ok();
    if let Ok(without) = syntax.edit(text, PLACE, None) {
        assert!(is_read);
        assert_eq!(entry_in(syntax, &without), None, "{without:?}");
    }
    let Ok(with) = syntax.edit(text, PLACE, Some(&entry)) else { return };
    assert!(is_read);
    let found = entry_in(syntax, &with).expect("the entry");
    for (key, value) in &entry {
        assert_eq!(found.get(key), Some(value), "{with:?}");
    }
    assert_eq!(syntax.edit(&with, PLACE, Some(&entry)).as_deref(), Ok(&*with));
    match syntax.edit(&with, PLACE, None) {
        Ok(without) => assert_eq!(entry_in(syntax, &without), None, "{without:?}"),
        Err(why) => assert!(why.to_string().contains("twice"), "{with:?}: {why}"),
    }
}

fn entry_in(syntax: Syntax, text: &str) -> Option<Value> {
    let mut config = syntax.parse(text).unwrap_or_else(|why| panic!("{text:?}: {why}"));
    config.get_mut(PLACE.key).and_then(|list| list.get_mut(PLACE.name)).map(Value::take)
}
