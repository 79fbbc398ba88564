//! Markdown of messages as HTML.
//!
//! Messages are hostile input. Raw HTML in a message is shown as text. Links lead only to the web
//! or to mail. Pictures become links, so that the page loads nothing from other sites.

use std::borrow::Cow;

use pulldown_cmark::{CowStr, Event, HeadingLevel, Parser, Tag, TagEnd, html};

use super::{code::Highlighter, mark::escaped};
use crate::markdown::{language_of, parser};
use verbatim_text::up_to;

/// The level of the first heading in a message. The page itself uses the levels above.
const FIRST_HEADING: usize = 3;
const LAST_HEADING: usize = 6;

/// The number of lists and quotations within each other. Deeper ones are shown as if they were not nested: the page
/// would be wider than the window, and take long to lay out.
const MOST_NESTED: usize = 8;

/// The allowed beginnings of links in a message.
const SCHEMES: [&str; 3] = ["https://", "http://", "mailto:"];

/// Returns a Markdown text as HTML. With `is_typed`, a person typed the text, so its line breaks stay.
pub(super) fn render(text: &str, is_typed: bool, highlighter: &mut Highlighter) -> String {
    let mut writer = SafeEvents {
        is_typed,
        highlighter,
        code: None,
        picture: None,
        links: Vec::new(),
        headings: Vec::new(),
        nested: 0,
    };
    let text = with_formulas(text);
    let events = parser(&text).filter_map(|event| writer.event(event));
    let mut html = String::with_capacity(text.len() * 3 / 2);
    html::push_html(&mut html, events);
    if html.contains("<table>") { tables(&html) } else { html }
}

const FORMULAS: [(&str, &str); 3] = [("\\(", "\\)"), ("\\[", "\\]"), ("$$", "$$")];

/// The longest formula, in bytes.
const LONGEST_FORMULA: usize = 1_000;

/// Returns a text with its formulas as code, because Markdown would take their signs for its own.
fn with_formulas(text: &str) -> Cow<'_, str> {
    if !FORMULAS.iter().any(|(open, _)| text.contains(open)) {
        return Cow::Borrowed(text);
    }
    let mut codes = Vec::new();
    for (event, range) in Parser::new(text).into_offset_iter() {
        if matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))) {
            codes.push(range);
        }
    }
    let mut shown = String::with_capacity(text.len());
    let mut done = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(['\\', '$']) {
        let start = at + found;
        at = start + 1;
        let next_code = codes.partition_point(|code| code.end <= start);
        if let Some(code) = codes.get(next_code).filter(|code| code.start <= start) {
            at = code.end;
            continue;
        }
        let signs = FORMULAS.iter().find(|(open, _)| text[start..].starts_with(open));
        let Some((open, close)) = signs else {
            // An escaped backslash begins no formula.
            at += usize::from(text[start..].starts_with("\\\\"));
            continue;
        };
        let content = up_to(&text[start + open.len()..], LONGEST_FORMULA);
        let Some(content) = content.find(close).map(|end| &content[..end]) else { continue };
        if content.trim().is_empty() || content.contains("\n\n") || content.contains('`') {
            continue;
        }
        shown.extend([&text[done..start], "`", open, &content.replace('\n', " "), close, "`"]);
        done = start + open.len() + content.len() + close.len();
        at = done;
    }
    shown.push_str(&text[done..]);
    Cow::Owned(shown)
}

/// Replacements for the tags of tables: a wide table must scroll, and the page's policy forbids
/// styles in HTML. Texts of messages contain no tags, because they are escaped.
const TABLE_TAGS: [(&str, &str); 8] = [
    (
        "<table>",
        "<figure class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\"><table>",
    ),
    ("</table>", "</table></figure>"),
    ("<th style=\"text-align: left\">", "<th class=\"left\">"),
    ("<th style=\"text-align: center\">", "<th class=\"center\">"),
    ("<th style=\"text-align: right\">", "<th class=\"right\">"),
    ("<td style=\"text-align: left\">", "<td class=\"left\">"),
    ("<td style=\"text-align: center\">", "<td class=\"center\">"),
    ("<td style=\"text-align: right\">", "<td class=\"right\">"),
];

/// The length in bytes of a cell with much text. On a narrow screen, such cells would become too narrow.
const WIDE_CELL: usize = 60;

fn tables(html: &str) -> String {
    let html = TABLE_TAGS.iter().fold(html.to_owned(), |html, (from, to)| html.replace(from, to));
    let mut parts = html.split("<td>");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |html, part| {
        let is_wide = part.find("</td>").is_some_and(|length| length >= WIDE_CELL);
        html + if is_wide { "<td class=\"wide\">" } else { "<td>" } + part
    })
}

/// Replaces the events of pulldown-cmark that must be shown in another way.
struct SafeEvents<'h> {
    is_typed: bool,
    highlighter: &'h mut Highlighter,
    /// The language and the text of the open code block.
    code: Option<(String, String)>,
    /// The address and the description of the open picture.
    picture: Option<(String, String)>,
    /// For each open link, whether it is a link in the HTML.
    links: Vec<bool>,
    /// The levels of the last heading and of the headings above it, as the message has them.
    headings: Vec<HeadingLevel>,
    /// The number of open lists and quotations.
    nested: usize,
}

impl SafeEvents<'_> {
    fn event<'e>(&mut self, event: Event<'e>) -> Option<Event<'e>> {
        if let Some((_, code)) = &mut self.code {
            match event {
                Event::Text(text) => code.push_str(&text),
                Event::End(TagEnd::CodeBlock) => return Some(self.code_block()),
                _ => {}
            }
            return None;
        }
        if let Some((_, description)) = &mut self.picture {
            match event {
                Event::Text(text) | Event::Code(text) => description.push_str(&text),
                Event::SoftBreak | Event::HardBreak => description.push(' '),
                Event::End(TagEnd::Image) => return self.picture(),
                _ => {}
            }
            return None;
        }
        match event {
            Event::Html(text) | Event::InlineHtml(text) => Some(Event::Text(text)),
            Event::SoftBreak if self.is_typed => Some(Event::HardBreak),
            Event::TaskListMarker(is_done) => {
                Some(Event::Text(if is_done { "☑ " } else { "☐ " }.into()))
            }
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            other => Some(other),
        }
    }

    fn start<'e>(&mut self, tag: Tag<'e>) -> Option<Event<'e>> {
        match tag {
            Tag::CodeBlock(kind) => {
                self.code = Some((language_of(&kind), String::new()));
                None
            }
            Tag::Image { dest_url, .. } => {
                self.picture = Some((dest_url.into_string(), String::new()));
                None
            }
            Tag::Link { dest_url, .. } => {
                let is_link = is_safe(&dest_url);
                self.links.push(is_link);
                is_link.then(|| link(&dest_url))
            }
            Tag::Heading { level, .. } => {
                self.headings.retain(|above| *above < level);
                self.headings.push(level);
                Some(ours(format!("<h{}>", self.heading())))
            }
            Tag::HtmlBlock => Some(ours("<p class=\"raw\">".to_owned())),
            Tag::List(_) | Tag::BlockQuote(_) => {
                self.nested += 1;
                (self.nested <= MOST_NESTED).then_some(Event::Start(tag))
            }
            Tag::Item if self.nested > MOST_NESTED => Some(ours("<br>".to_owned())),
            other => Some(Event::Start(other)),
        }
    }

    fn end<'e>(&mut self, tag: TagEnd) -> Option<Event<'e>> {
        match tag {
            TagEnd::Link => self.links.pop().unwrap_or(false).then(|| ours("</a>".to_owned())),
            TagEnd::Heading(_) => Some(ours(format!("</h{}>\n", self.heading()))),
            TagEnd::HtmlBlock => Some(ours("</p>\n".to_owned())),
            TagEnd::List(_) | TagEnd::BlockQuote(_) => {
                self.nested -= 1;
                (self.nested < MOST_NESTED).then_some(Event::End(tag))
            }
            TagEnd::Item if self.nested > MOST_NESTED => None,
            other => Some(Event::End(other)),
        }
    }

    /// Returns the level of the last heading on the page, where no level is left out.
    fn heading(&self) -> usize {
        (FIRST_HEADING + self.headings.len() - 1).min(LAST_HEADING)
    }

    fn code_block<'e>(&mut self) -> Event<'e> {
        let (language, code) = self.code.take().unwrap_or_default();
        let html = self.highlighter.html(&code, &language);
        let language = escaped(&language);
        let label =
            if language.is_empty() { "Code".to_owned() } else { format!("Code, {language}") };
        ours(framed_code(&language, &label, &html))
    }

    fn picture<'e>(&mut self) -> Option<Event<'e>> {
        let (address, description) = self.picture.take()?;
        let description =
            if description.is_empty() { "no description".to_owned() } else { description };
        let text = escaped(&description);
        Some(ours(if is_safe(&address) && self.links.is_empty() {
            format!(
                "<a class=\"picture\" href=\"{}\" rel=\"noreferrer nofollow\">Picture: {text}</a>",
                escaped(&address)
            )
        } else {
            format!("<span class=\"picture\">Picture: {text}</span>")
        }))
    }
}

/// A button that copies the code beside it. It has no text, because the text of a message may be marked and copied.
pub(super) const COPY_BUTTON: &str = "<button class=\"copy scripted\" type=\"button\" data-copy=\"code\" aria-label=\"Copy\"></button>";

/// Returns code in a frame with a caption. All are HTML.
pub(super) fn framed_code(caption: &str, label: &str, code: &str) -> String {
    format!(
        "<figure class=\"code\"><figcaption>{caption}{COPY_BUTTON}</figcaption>\
         <pre tabindex=\"0\" role=\"group\" aria-label=\"{label}\"><code>{code}</code></pre></figure>\n"
    )
}

fn ours<'e>(html: String) -> Event<'e> {
    Event::InlineHtml(CowStr::from(html))
}

fn link<'e>(address: &str) -> Event<'e> {
    ours(format!("<a href=\"{}\" rel=\"noreferrer nofollow\">", escaped(address)))
}

fn is_safe(address: &str) -> bool {
    let start: String = address.trim_start().chars().take(8).collect();
    let start = start.to_ascii_lowercase();
    SCHEMES.iter().any(|scheme| start.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        render(text, false, &mut Highlighter::new())
    }

    #[test]
    fn nothing_of_a_message_becomes_markup() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<div onclick=\"x\">\n\n<svg/onload=alert(1)>",
            "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html,x)",
            "![p](javascript:alert(1)) ![q](https://evil.example/p.png)",
            "[<img src=x onerror=alert(1)>](https://a.example/\"onmouseover=\"alert(1))",
            "```\"><script>x\n</code></pre><script>alert(1)</script>\n```",
            "<https://a.example/\"><script>alert(1)</script>>",
            "| <script> |\n|-|\n| <img src=x onerror=y> |",
            "[a]: javascript:alert(1) \"<script>\"\n\n[a] ![a]",
            "<!-- --><script>1</script><![CDATA[<script>]]>",
            "# <script>x</script>",
        ] {
            let html = shown(hostile).to_lowercase();
            for wrong in
                ["<script", "<img", "<svg", "<div", "<iframe", "href=\"javascript", "href=\"data"]
            {
                assert!(!html.contains(wrong), "{hostile}: {html}");
            }
            // An attribute that comes from a message would be outside of quotation marks.
            let tags = html.split('<').skip(1).filter_map(|tag| tag.split_once('>'));
            for (tag, _) in tags {
                let outside: String = tag.split('"').step_by(2).collect();
                assert!(!outside.contains(" on"), "{hostile}: <{tag}>");
            }
        }
    }

    #[test]
    fn tables_have_no_styles_of_their_own() {
        let table = "| a | b |\n|-:|:-:|\n| 1 | style=\"text-align: right\" <table> |\n";
        let html = shown(table);
        assert!(html.contains("<figure class=\"scroll\"") && html.contains("</table></figure>"));
        assert!(html.contains("<td class=\"right\">1</td><td class=\"center\">style="), "{html}");
        let long = shown(&format!("| a | b |\n|-|-|\n| {} | 1 |\n", "word ".repeat(20)));
        assert!(long.contains("<td class=\"wide\">word") && long.contains("<td>1</td>"), "{long}");
        assert!(html.contains("&lt;table&gt;") && !html.contains(" style=\"text-align: center"));
    }

    #[test]
    fn formulas_are_shown_as_they_were_written() {
        for (text, expected) in [
            ("so \\(a_1, b_2\\) is", "<p>so <code>\\(a_1, b_2\\)</code> is</p>\n"),
            ("\\[\na\\,b\n= *c*\n\\]", "<p><code>\\[ a\\,b = *c* \\]</code></p>\n"),
            ("$$ x_i $$", "<p><code>$$ x_i $$</code></p>\n"),
            ("`\\(a\\)` \\\\(b\\)", "<p><code>\\(a\\)</code> \\(b)</p>\n"),
            ("$5 and $$ 6\n\nor $$", "<p>$5 and $$ 6</p>\n<p>or $$</p>\n"),
            ("\\(never closed", "<p>(never closed</p>\n"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
        assert!(shown("```\n\\(a\\)\n```").contains("<code>\\(a\\)\n</code>"));
    }

    #[test]
    fn what_was_written_can_be_read() {
        let html = shown("Use <b> & \"c\"\n\n<details>\nx\n</details>\n");
        assert!(html.contains("Use &lt;b&gt; &amp; \"c\""), "{html}");
        assert!(html.contains("&lt;details&gt;\nx\n&lt;/details&gt;"), "{html}");
        let html = shown("```rust\nlet a = \"<b>\";\n```");
        assert!(html.contains("<figcaption>rust<button") && html.contains("class=\"s-"), "{html}");
        assert!(html.contains("&lt;b&gt;"), "{html}");
        let html = shown("## A\n##### B\n### C\n# D\n## E");
        let levels: String = html.split("<h").skip(1).filter_map(|it| it.chars().next()).collect();
        assert_eq!(levels, "34434", "{html}");
        assert_eq!(shown("- [x] a"), "<ul>\n<li>☑ a</li>\n</ul>\n");
        let list: String =
            (0..30).map(|level| format!("{}- a{level}\n", "  ".repeat(level))).collect();
        for deep in [list, "> ".repeat(5_000) + "a29", "- > ".repeat(900) + "a29"] {
            let html = shown(&deep);
            let [lists, quotes] = ["<ul>", "<blockquote>"].map(|tag| html.matches(tag).count());
            assert!(lists + quotes == MOST_NESTED && html.contains("a29"), "{html}");
            for tag in ["ul", "li", "blockquote"] {
                let [open, close] = [format!("<{tag}>"), format!("</{tag}>")];
                assert_eq!(html.matches(&open).count(), html.matches(&close).count(), "{html}");
            }
        }
        assert!(render("a\nb", true, &mut Highlighter::new()).contains("a<br />\nb"));
        assert!(
            shown("[a](https://b.example/?c&d)")
                .contains("href=\"https://b.example/?c&amp;d\" rel=")
        );
        assert!(
            shown("![p](sandbox:/x.png)").contains("<span class=\"picture\">Picture: p</span>")
        );
    }
}
