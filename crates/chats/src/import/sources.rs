//! The pages, files, things and places that an answer names as its sources.

use std::collections::HashSet;

use super::{json::Value, tool::joined};

pub(super) const HEADING: &str = "[sources]";

/// The endings that ChatGPT adds to addresses.
const ADDED: [&str; 2] = ["?utm_source=chatgpt.com", "&utm_source=chatgpt.com"];

/// The fields that are skipped, because the items in them are not sources.
const OTHERS: [&str; 2] = ["citation_format", "refs"];

/// The fields with the name of a source: the first that is not empty counts. The last one is the text that
/// stands for a widget.
const NAMES: [&str; 3] = ["title", "name", "alt"];

/// The fields with more about a thing or a place.
const DETAILS: [&str; 3] = ["price", "address", "rationale"];

/// Returns a text with the titles and addresses of the sources in `lists` below it, a line for each source. A
/// source without an address that the text names has no line.
pub(super) fn append_sources(text: String, lists: &[Value]) -> String {
    let mut sources = SourceList::default();
    lists.iter().for_each(|list| sources.add(list, &text));
    match (sources.lines.is_empty(), text.trim().is_empty()) {
        (true, _) => text,
        (_, true) => format!("{HEADING}\n{}", sources.lines.join("\n")),
        _ => format!("{}\n\n{HEADING}\n{}", text.trim_end(), sources.lines.join("\n")),
    }
}

#[derive(Default)]
struct SourceList {
    lines: Vec<String>,
    known: HashSet<String>,
}

impl SourceList {
    /// Adds the sources in a value. Recursion is safe, because the depth of a [`Value`] is bounded.
    fn add(&mut self, value: &Value, text: &str) {
        match value {
            Value::Object(fields) => {
                let names = NAMES.map(|name| value.str(name).trim());
                // The service makes Markdown links of the pages that it lists too.
                let name = names.into_iter().find(|it| !it.is_empty() && !it.contains("]("));
                let name = name.unwrap_or_default();
                let urls = ["url", "website_url"].map(|name| value.str(name));
                let url = urls.into_iter().find(|url| url.starts_with("http")).unwrap_or_default();
                let url = ADDED.iter().find_map(|end| url.strip_suffix(end)).unwrap_or(url);
                let more = joined(" ", &DETAILS.map(|name| value.str(name)));
                let line = joined(" ", &[name, &more, url]).replace('\n', " ");
                let key = if url.is_empty() { &line } else { url };
                let is_new = !url.is_empty() || !text.contains(&line);
                if is_new && !key.is_empty() && self.known.insert(key.to_owned()) {
                    self.lines.push(format!("- {line}"));
                }
                // The words of the source that the service shows beside the answer.
                let cited = value.str("cited_text").trim();
                if !cited.is_empty() && !text.contains(cited) && self.known.insert(cited.to_owned())
                {
                    self.lines.push(cited.to_owned());
                }
                let inner = fields.iter().filter(|(name, _)| !OTHERS.contains(&name.as_str()));
                inner.for_each(|(_, value)| self.add(value, text));
            }
            Value::Array(items) => items.iter().for_each(|item| self.add(item, text)),
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
        assert_eq!(append_sources(String::new(), &lists), sources);
        assert_eq!(append_sources("Said.\n".to_owned(), &lists), format!("Said.\n\n{sources}"));
        assert_eq!(append_sources("Said.\n".to_owned(), &[]), "Said.\n");
        let places = r#"[{"type": "businesses_map", "businesses": [{"name": "The Oven", "id": "b1",
            "address": "1 Mill Road", "website_url": "https://oven.example"}]},
            {"type": "products", "alt": "[A lamp](https://l.example)", "products": [
                {"title": "A lamp", "price": "$9", "rationale": "It is bright.", "cite": "turn0product1"}]},
            {"type": "entity", "name": "Ada Lovelace", "alt": "Ada Lovelace"},
            {"type": "entity", "name": "Mary Somerville"}, {"type": "alt_text", "alt": "A chart"}]"#;
        let places = Raw::new(places.as_bytes()).value().unwrap();
        assert_eq!(
            append_sources("By Ada Lovelace.".to_owned(), &[places]),
            "By Ada Lovelace.\n\n[sources]\n- The Oven 1 Mill Road https://oven.example\n\
             - A lamp $9 It is bright.\n- Mary Somerville\n- A chart"
        );
    }
}
