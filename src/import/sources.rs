//! The pages and files that an answer names as its sources.

use std::collections::HashSet;

use super::{json::Value, tool::joined};

/// The line above the sources of an answer.
const HEADING: &str = "[sources]";

/// The endings that ChatGPT adds to addresses.
const ADDED: [&str; 2] = ["?utm_source=chatgpt.com", "&utm_source=chatgpt.com"];

/// The fields of lists that hold no sources of their own.
const OTHERS: [&str; 2] = ["citation_format", "refs"];

/// Returns a text with the titles and addresses of the sources in `lists` below it, a line for each source.
pub(super) fn below(text: String, lists: &[Value]) -> String {
    let mut sources = SourceList::default();
    lists.iter().for_each(|list| sources.add(list));
    match (sources.lines.is_empty(), text.trim().is_empty()) {
        (true, _) => text,
        (_, true) => format!("{HEADING}\n{}", sources.lines.join("\n")),
        _ => format!("{}\n\n{HEADING}\n{}", text.trim_end(), sources.lines.join("\n")),
    }
}

/// The lines of the sources, without repeats.
#[derive(Default)]
struct SourceList {
    lines: Vec<String>,
    known: HashSet<String>,
}

impl SourceList {
    /// Adds the sources in a value. Recursion is safe, because the depth of a [`Value`] is bounded.
    fn add(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                let is_file = value.str("type") == "file";
                let name = if is_file { value.str("name") } else { "" };
                let title = Some(value.str("title")).filter(|title| !title.trim().is_empty());
                let url = value.str("url");
                let url = ADDED.iter().find_map(|end| url.strip_suffix(end)).unwrap_or(url);
                let url = if url.starts_with("http") { url } else { "" };
                let key = if url.is_empty() { title.unwrap_or(name) } else { url };
                if !key.is_empty() && self.known.insert(key.to_owned()) {
                    let line = joined(" ", &[title.unwrap_or(name).trim(), url]);
                    self.lines.push(format!("- {}", line.replace('\n', " ")));
                }
                let inner = fields.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
                inner.for_each(|(_, value)| self.add(value));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::json::Raw;

    #[test]
    fn each_source_once() {
        let lists = [
            r#"[{"type": "grouped_webpages", "refs": [{"title": "no"}], "items": [{"title": "A page",
                "url": "https://a.org/?utm_source=chatgpt.com", "supporting_websites":
                [{"title": "B", "url": "https://b.org/x?y=1&utm_source=chatgpt.com"}]}]},
                {"type": "sources_footnote", "sources": [{"title": "A", "url": "https://a.org/"}]},
                {"type": "nav_list", "title": "In the news", "items": []}]"#,
            r#"[{"metadata": {"type": "file", "name": "report.pdf", "text": "long"}}]"#,
            r#"{"citation_format": {"title": "no"}, "metadata_list": [{"url": "https://c.org"}]}"#,
        ];
        let lists = lists.map(|list| Raw::new(list.as_bytes()).value().unwrap());
        let sources = "[sources]\n- A page https://a.org/\n- B https://b.org/x?y=1\n\
                       - In the news\n- report.pdf\n- https://c.org";
        assert_eq!(below(String::new(), &lists), sources);
        assert_eq!(below("Said.\n".to_owned(), &lists), format!("Said.\n\n{sources}"));
        assert_eq!(below("Said.\n".to_owned(), &[]), "Said.\n");
    }
}
