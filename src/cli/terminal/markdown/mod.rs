//! Markdown for a terminal: headings, lists, quotes, tables and code, wrapped to the terminal's width.
//!
//! A message must not control the terminal, so every piece of its text passes through `harmless`.

mod code;
mod table;
mod text;

use std::io::{self, Write};
use std::mem;
use std::rc::Rc;

use anstyle::{AnsiColor, Effects, Style};
use pulldown_cmark::{Event, HeadingLevel, Tag, TagEnd};
use unicode_width::UnicodeWidthStr;

use self::table::Table;
use self::text::{Mark, StyledText};
use super::layout::{DIM, LineLayout};
use super::output::harmless;
use super::wrap::LongWords;
use verbatim_server::markdown::{language_of, parser};
use verbatim_text::parts::{self, Artifact, CALL, Part};

pub(crate) use self::code::CodeHighlighter;

/// The longest message in bytes that is rendered. A longer message is written as plain text.
pub(crate) const MOST_RENDERED: usize = 256 << 10;

/// The maximum width of text: longer lines are hard to read.
const WIDEST: usize = 100;

/// The minimum width of text, even inside deep lists and quotes.
const NARROWEST: usize = 20;

/// The maximum depth at which lists and quotes are indented.
const MOST_PREFIXES: usize = 8;

const QUOTE: &str = "│ ";
const CODE: Style = AnsiColor::Cyan.on_default();

pub(crate) fn write(
    out: &mut dyn Write,
    parts: Vec<Part<'_>>,
    layout: LineLayout,
    highlighter: &CodeHighlighter,
    mark: Mark<'_>,
) -> io::Result<()> {
    let mut is_aside = None;
    for part in parts {
        if is_aside.is_some() {
            writeln!(out)?;
        }
        let is_answer = matches!(part, Part::Text(_) | Part::Artifact(_));
        if is_answer && is_aside == Some(true) {
            writeln!(out, "{}\n", layout.styled(DIM, parts::ANSWER))?;
        }
        is_aside = Some(!is_answer);
        let mut page = MarkdownWriter::new(out, layout, highlighter, mark);
        match part {
            Part::Text(text) => page.markdown(text)?,
            Part::Thinking(text) | Part::ThinkingAndAnswer(text) => {
                page.line(&layout.styled(DIM, parts::THINKING))?;
                page.markdown(text)?;
            }
            Part::Artifact(artifact) => page.artifact(&artifact)?,
            // The arguments and the results of tools are not Markdown.
            Part::Call(tool, text) => {
                let gap = if text.is_empty() { "" } else { "\n" };
                write_plain(out, &format!("{CALL}{tool}]{gap}{text}"), layout, mark)?;
            }
            Part::Output(text) => {
                write_plain(out, &format!("{}\n{text}", parts::RESULT), layout, mark)?;
            }
        }
    }
    Ok(())
}

/// Writes a text that is not Markdown, wrapped at words, with matches marked.
pub(crate) fn write_plain(
    out: &mut dyn Write,
    text: &str,
    layout: LineLayout,
    mark: Mark<'_>,
) -> io::Result<()> {
    let mut page = StyledText::default();
    page.push(text, Style::new());
    let marks = mark(page.plain());
    let lines = page.wrapped(layout.wrap_columns().unwrap_or(usize::MAX), LongWords::Whole);
    let mut lines = lines.into_iter().filter(|_| !text.is_empty());
    lines.try_for_each(|line| writeln!(out, "{}", page.styled(line, &marks, layout)))
}

struct Prefix {
    /// The text before the first line; `None` after the first line was written.
    first: Option<String>,
    rest: String,
    style: Style,
}

struct CodeBlock {
    language: String,
    code: String,
}

struct OpenLink {
    /// The offset of its beginning in the text.
    from: usize,
    address: Rc<str>,
}

struct MarkdownWriter<'a> {
    out: &'a mut dyn Write,
    layout: LineLayout,
    highlighter: &'a CodeHighlighter,
    mark: Mark<'a>,
    text: StyledText,
    code: Option<CodeBlock>,
    table: Table,
    prefixes: Vec<Prefix>,
    /// The next number of each open list; `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    links: Vec<OpenLink>,
    styles: Vec<Style>,
    /// Whether a blank line comes before the next block. There is none at the beginning of a
    /// message, a list item or a quote.
    is_after_block: bool,
}

impl<'a> MarkdownWriter<'a> {
    fn new(
        out: &'a mut dyn Write,
        layout: LineLayout,
        highlighter: &'a CodeHighlighter,
        mark: Mark<'a>,
    ) -> MarkdownWriter<'a> {
        MarkdownWriter {
            out,
            layout,
            highlighter,
            mark,
            text: StyledText::default(),
            code: None,
            table: Table::default(),
            prefixes: Vec::new(),
            lists: Vec::new(),
            links: Vec::new(),
            styles: Vec::new(),
            is_after_block: false,
        }
    }

    fn markdown(&mut self, text: &str) -> io::Result<()> {
        for event in parser(text) {
            self.event(event)?;
        }
        self.flush()
    }

    fn artifact(&mut self, artifact: &Artifact<'_>) -> io::Result<()> {
        let title = artifact.title();
        let language = artifact.language();
        self.push(if title.is_empty() { "Artifact" } else { title }, Style::new().bold());
        self.push(&format!(" {language}"), DIM);
        if language == "markdown" {
            self.flush()?;
            return self.markdown(artifact.content);
        }
        self.begin_block()?;
        self.write_code(language, artifact.content)
    }

    fn event(&mut self, event: Event<'_>) -> io::Result<()> {
        match event {
            Event::Start(tag) => self.start(tag)?,
            Event::End(tag) => self.end(tag)?,
            Event::Text(text) => match &mut self.code {
                Some(block) => block.code.push_str(&text),
                None => self.push(&text, Style::new()),
            },
            Event::Code(code) if self.layout.colours => self.push(&code, CODE),
            Event::Code(code) => self.push(&format!("`{code}`"), Style::new()),
            Event::Html(html) | Event::InlineHtml(html) => match html.trim() {
                "<br>" | "<br/>" | "<br />" => self.push("\n", Style::new()),
                _ => self.push(&html, DIM),
            },
            Event::SoftBreak | Event::HardBreak => self.push("\n", Style::new()),
            Event::Rule => {
                self.begin_block()?;
                let rule = "─".repeat(self.columns());
                self.line(&self.layout.styled(DIM, &rule))?;
            }
            Event::TaskListMarker(is_done) => {
                self.push(if is_done { "[x] " } else { "[ ] " }, Style::new());
            }
            // The parser reads no footnotes and no formulas.
            Event::FootnoteReference(_) | Event::InlineMath(_) | Event::DisplayMath(_) => {}
        }
        Ok(())
    }

    fn start(&mut self, tag: Tag<'_>) -> io::Result<()> {
        if let Some(emphasis) = Emphasis::of(tag.to_end()) {
            self.mark_emphasis(&emphasis);
            self.styles.push(emphasis.style);
            return Ok(());
        }
        match tag {
            Tag::Heading { level, .. } => {
                self.begin_block()?;
                if !self.layout.colours {
                    self.push(&format!("{} ", "#".repeat(level as usize)), Style::new());
                }
                let style = Style::new().bold();
                self.styles.push(if level <= HeadingLevel::H2 { style.underline() } else { style });
            }
            Tag::BlockQuote(_) => {
                self.begin_block()?;
                self.open(Prefix { first: None, rest: QUOTE.to_owned(), style: DIM });
            }
            Tag::CodeBlock(kind) => {
                self.begin_block()?;
                self.code = Some(CodeBlock { language: language_of(&kind), code: String::new() });
            }
            Tag::List(first) => {
                // A list inside a list follows without a blank line.
                if self.lists.is_empty() {
                    self.begin_block()?;
                }
                self.flush()?;
                self.lists.push(first);
            }
            Tag::Item => {
                self.flush()?;
                let first = match self.lists.last_mut() {
                    Some(Some(number)) => {
                        *number += 1;
                        format!("{}. ", *number - 1)
                    }
                    _ => "• ".to_owned(),
                };
                let rest = " ".repeat(first.width());
                self.open(Prefix { first: Some(first), rest, style: DIM });
            }
            Tag::Paragraph | Tag::HtmlBlock => self.begin_block()?,
            Tag::Link { dest_url, .. } => self.begin_link(&dest_url),
            Tag::Image { dest_url, .. } => {
                self.begin_link(&dest_url);
                self.push("[image: ", DIM);
            }
            Tag::Table(alignments) => {
                self.begin_block()?;
                self.table = Table { alignments, rows: Vec::new() };
            }
            Tag::TableHead | Tag::TableRow => self.table.rows.push(Vec::new()),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, tag: TagEnd) -> io::Result<()> {
        if let Some(emphasis) = Emphasis::of(tag) {
            self.styles.pop();
            self.mark_emphasis(&emphasis);
            return Ok(());
        }
        match tag {
            TagEnd::Heading(_) => {
                self.flush()?;
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush()?;
                // An empty item has no text, so its bullet is written here.
                if self.prefixes.last().is_some_and(|prefix| prefix.first.is_some()) {
                    self.line("")?;
                }
                self.prefixes.pop();
            }
            TagEnd::List(_) => {
                self.flush()?;
                self.lists.pop();
            }
            TagEnd::CodeBlock => {
                if let Some(block) = self.code.take() {
                    self.write_code(&block.language, &block.code)?;
                }
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush()?,
            TagEnd::Link => self.end_link(),
            TagEnd::Image => {
                self.push("]", DIM);
                self.end_link();
            }
            TagEnd::TableCell => {
                let cell = mem::take(&mut self.text);
                if let Some(row) = self.table.rows.last_mut() {
                    row.push(cell);
                }
            }
            TagEnd::Table => {
                let table = mem::take(&mut self.table);
                for line in table.lines(self.columns(), self.layout, self.mark) {
                    self.line(&line)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, text: &str, style: Style) {
        let mut effects = style.get_effects();
        self.styles.iter().for_each(|style| effects |= style.get_effects());
        if !self.links.is_empty() {
            effects |= Effects::UNDERLINE;
        }
        // An image gets the address of the link around it.
        let link = self.links.first().map(|link| Rc::clone(&link.address));
        self.text.push_linked(text, style.effects(effects), link);
    }

    /// Without colours, the Markdown characters are written instead of a style.
    fn mark_emphasis(&mut self, emphasis: &Emphasis) {
        if !self.layout.colours {
            self.push(emphasis.written, Style::new());
        }
    }

    fn begin_link(&mut self, address: &str) {
        self.links.push(OpenLink { from: self.text.plain().len(), address: address.into() });
    }

    /// Ends a link. If the terminal does not support links, writes the address after the text.
    fn end_link(&mut self) {
        let Some(OpenLink { from, address }) = self.links.pop() else { return };
        if !self.layout.links && self.text.plain()[from..] != *address && !address.is_empty() {
            let style = if self.layout.colours { DIM } else { Style::new() };
            self.push(&format!(" ({address})"), style);
        }
    }

    fn open(&mut self, mut prefix: Prefix) {
        if self.prefixes.len() >= MOST_PREFIXES {
            (prefix.first, prefix.rest) = (None, String::new());
        }
        self.prefixes.push(prefix);
        self.is_after_block = false;
    }

    /// Writes the collected text, and a blank line before the next block.
    fn begin_block(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.is_after_block {
            self.line("")?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let text = mem::take(&mut self.text);
        if text.is_blank() {
            return Ok(());
        }
        let marks = (self.mark)(text.plain());
        for line in text.wrapped(self.columns(), LongWords::Broken) {
            let line = text.styled(line, &marks, self.layout);
            self.line(&line)?;
        }
        Ok(())
    }

    fn columns(&self) -> usize {
        let taken: usize = self.prefixes.iter().map(|prefix| prefix.rest.width()).sum();
        self.layout.columns.min(WIDEST).saturating_sub(taken).max(NARROWEST)
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let mut start = String::new();
        for prefix in &mut self.prefixes {
            let first = prefix.first.take();
            let begins = first.as_ref().unwrap_or(&prefix.rest);
            start.push_str(&self.layout.styled(prefix.style, begins));
        }
        self.is_after_block = true;
        match text.is_empty() && self.prefixes.iter().all(|prefix| prefix.rest.trim().is_empty()) {
            true if start.trim().is_empty() => writeln!(self.out),
            _ => writeln!(self.out, "{start}{text}"),
        }
    }

    fn write_code(&mut self, language: &str, code: &str) -> io::Result<()> {
        let code = harmless(code).replace('\t', "    ");
        for line in self.highlighter.highlighted(&code, language, self.layout.colours) {
            let marks = (self.mark)(line.plain());
            let shown = line.styled(0..line.plain().len(), &marks, self.layout);
            let indent = if shown.is_empty() { "" } else { "    " };
            self.line(&format!("{indent}{shown}"))?;
        }
        Ok(())
    }
}

struct Emphasis {
    style: Style,
    /// The characters in Markdown.
    written: &'static str,
}

impl Emphasis {
    fn of(tag: TagEnd) -> Option<Emphasis> {
        let (style, written) = match tag {
            TagEnd::Emphasis => (Style::new().italic(), "*"),
            TagEnd::Strong => (Style::new().bold(), "**"),
            TagEnd::Strikethrough => (Style::new().strikethrough(), "~~"),
            _ => return None,
        };
        Some(Emphasis { style, written })
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::{super::layout::MATCH, *};

    const PLAIN: LineLayout =
        LineLayout { columns: 40, is_cut: true, colours: false, links: false };

    fn rendered(markdown: &str, layout: LineLayout, word: &str) -> String {
        let mark = |text: &str| -> Vec<Range<usize>> {
            let found = text.match_indices(word).filter(|_| !word.is_empty());
            found.map(|(at, word)| at..at + word.len()).collect()
        };
        let mut out = Vec::new();
        write(&mut out, parts::parts(markdown, false), layout, &CodeHighlighter::default(), &mark)
            .unwrap();
        String::from_utf8(out).unwrap()
    }

    fn plain(markdown: &str) -> String {
        let text = rendered(markdown, PLAIN, "");
        for line in text.lines() {
            assert!(line.width() <= PLAIN.columns, "{line:?}");
        }
        text
    }

    #[test]
    fn blocks() {
        let markdown = "\
# Title
Some *text* with `code`
on two lines, the second of which is wrapped.

- one
- two that is long enough to be wrapped in its item
  1. inner
  2. more

  and a paragraph
* * *
> quoted
> > twice

5. five

   ```rust
   fn main() {}
   ```
6. six
- [x] done
";
        assert_eq!(
            plain(markdown),
            "\
# Title

Some *text* with `code`
on two lines, the second of which is
wrapped.

• one
• two that is long enough to be wrapped
  in its item
  1. inner
  2. more

  and a paragraph

────────────────────────────────────────

│ quoted
│ 
│ │ twice

5. five

       fn main() {}
6. six

• [x] done
"
        );
    }

    #[test]
    fn lines_fit_the_columns() {
        assert_eq!(
            plain(&"日本語の質問です。".repeat(5)).lines().next().unwrap(),
            "日本語の質問です。日本語の質問です。日本"
        );
        assert_eq!(
            plain(&"x".repeat(100)),
            format!("{0}\n{0}\n{1}\n", "x".repeat(40), "x".repeat(20))
        );
        let words = "word ".repeat(50);
        assert!(plain(&words).lines().all(|line| !line.ends_with(' ') && !line.starts_with(' ')));
        let deep = "> ".repeat(500) + &"deep ".repeat(30);
        assert!(rendered(&deep, PLAIN, "").lines().all(|line| line.width() <= 60));
        assert_eq!(plain(""), "");
        assert_eq!(plain("-\n- a"), "• \n• a\n");
    }

    #[test]
    fn tables_that_fit_and_others() {
        let table = "| Name | Number |\n|:-|-:|\n| 日本 | 1 |\n| longer | 1,000 |\n";
        assert_eq!(
            plain(table),
            "Name   │ Number\n───────┼───────\n日本   │      1\nlonger │  1,000\n"
        );
        let wide = format!("| A | B |\n|-|-|\n| {0} | {0} |\n| x | |\n", "word ".repeat(6));
        assert_eq!(
            plain(&wide),
            "A: word word word word word word\nB: word word word word word word\n\nA: x\n"
        );
    }

    #[test]
    fn links_marks_and_colours() {
        let links = LineLayout { colours: false, links: true, ..PLAIN };
        let text = "see [the page](https://example.com/a) and <https://example.com>";
        assert_eq!(plain(text), "see the page (https://example.com/a) and\nhttps://example.com\n");
        let linked = rendered(text, links, "");
        assert!(
            linked
                .contains("\u{1b}]8;;https://example.com/a\u{1b}\\the page\u{1b}]8;;\u{1b}\\ and"),
            "{linked:?}"
        );
        let nested = rendered("[a ![b](https://e/i) c](https://e/l) [d](https://e/m)", links, "");
        assert!(
            nested.contains("https://e/l\u{1b}\\b\u{1b}") && !nested.contains("e/i"),
            "{nested:?}"
        );
        assert!(nested.contains("https://e/m\u{1b}\\d\u{1b}"), "{nested:?}");
        let unsafe_link = rendered("[x](<https://e/\u{1b}[2J>)", links, "");
        assert!(!unsafe_link.contains("\u{1b}]8"), "{unsafe_link:?}");
        // A match is marked across styles, and in code.
        let colours = LineLayout { colours: true, ..PLAIN };
        let marked = rendered(
            "the **borrow** checker\n\n```\nborrow checker\n```\n",
            colours,
            "borrow checker",
        );
        let mark = MATCH.render().to_string();
        assert_eq!(marked.matches(&mark).count(), 3, "{marked:?}");
        let code = rendered("```rust\nlet x = \"text\"; // why\n```\n", colours, "");
        let green = AnsiColor::Green.on_default();
        assert!(code.contains(&format!("{green}\"text\"{green:#}")), "{code:?}");
        assert!(
            code.contains(&format!("{}// why{:#}", Style::new().dimmed(), Style::new())),
            "{code:?}"
        );
        let typescript = rendered("```ts {1}\nlet x = \"text\";\n```\n", colours, "");
        assert!(typescript.contains(&format!("{green}\"text\"{green:#}")), "{typescript:?}");
        let unknown = "    let x = 1;\n";
        assert_eq!(rendered("```no-such-language\nlet x = 1;\n```\n", colours, ""), unknown);
    }

    #[test]
    fn nothing_controls_the_terminal() {
        let hostile = "# \u{1b}[2J\n\u{202E}x `\u{9b}1m`\n\n```rust\n\u{1b}]0;t\u{7}\n```\n| \u{1b} |\n|-|\n| \u{8} |\n\n<b \u{1b}>[a](\u{7}) ![\u{1b}](\u{1b})\n[tool: x]\n\u{1b}[1m";
        let text = rendered(hostile, PLAIN, "");
        let is_harmful =
            |c: char| c != '\n' && c.is_control() || verbatim_text::terminal::is_deceptive(c);
        assert!(!text.contains(is_harmful), "{text:?}");
    }

    #[test]
    fn calls_of_tools_stay_as_they_are() {
        let call = "Let me **look**.\n\n[tool: Bash]\ncommand: ls *.rs && # all\n* not a list\n";
        assert_eq!(
            plain(call),
            "Let me **look**.\n\n[tool: Bash]\ncommand: ls *.rs && # all\n* not a list\n"
        );
        // Long lines are wrapped at words, and words stay whole.
        let (words, path) =
            (format!("  {}\n", "words ".repeat(8)), format!("{}\n", "/path".repeat(20)));
        assert_eq!(
            rendered(&format!("[tool: x]\n{words}{path}"), PLAIN, "words"),
            format!("[tool: x]\n  {}words\nwords words\n{path}", "words ".repeat(5))
        );
    }

    #[test]
    fn an_answer_goes_on_after_other_parts() {
        let answer = "[thinking]\nHm, *so*.\n\n[tool: web]\nq: *a*\n\n[result]\n*b*\n\n[answer]\n- one\n\n\
        <antArtifact identifier=\"a\" type=\"text/html\" title=\"Page\">\n<p>\n  [answer]\n</antArtifact>\nDone.";
        let expected = "[thinking]\n\nHm, *so*.\n\n[tool: web]\nq: *a*\n\n[result]\n*b*\n\n[answer]\n\n• one\n\n\
        Page html\n\n    <p>\n      [answer]\n\nDone.\n";
        assert_eq!(plain(answer), expected);
        let document =
            "<antArtifact identifier=\"a\" type=\"text/markdown\">\n# One\n</antArtifact>";
        assert_eq!(plain(document), "Artifact markdown\n\n# One\n");
    }

    #[test]
    fn hostile_markdown_is_quick() {
        let begun = std::time::Instant::now();
        for text in ["[", "*a ", "> ", "- ", "`", "<a", "| a ", "![](", "\\", "**_"] {
            rendered(&text.repeat(MOST_RENDERED / 8 / text.len()), PLAIN, "");
        }
        let code = format!("```rust\n{}\n```", "let x = \"(((((\"; ".repeat(2_000));
        rendered(&code, LineLayout { colours: true, ..PLAIN }, "");
        assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
    }
}
