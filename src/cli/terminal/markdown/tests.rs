use std::ops::Range;

use super::{super::layout::MATCH, *};

const PLAIN: LineLayout = LineLayout { columns: 40, is_cut: true, colours: false, links: false };

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
    assert_eq!(plain(&"x".repeat(100)), format!("{0}\n{0}\n{1}\n", "x".repeat(40), "x".repeat(20)));
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
        linked.contains("\u{1b}]8;;https://example.com/a\u{1b}\\the page\u{1b}]8;;\u{1b}\\ and"),
        "{linked:?}"
    );
    let nested = rendered("[a ![b](https://e/i) c](https://e/l) [d](https://e/m)", links, "");
    assert!(nested.contains("https://e/l\u{1b}\\b\u{1b}") && !nested.contains("e/i"), "{nested:?}");
    assert!(nested.contains("https://e/m\u{1b}\\d\u{1b}"), "{nested:?}");
    let unsafe_link = rendered("[x](<https://e/\u{1b}[2J>)", links, "");
    assert!(!unsafe_link.contains("\u{1b}]8"), "{unsafe_link:?}");
    // A match is marked across styles, and in code.
    let colours = LineLayout { colours: true, ..PLAIN };
    let marked =
        rendered("the **borrow** checker\n\n```\nborrow checker\n```\n", colours, "borrow checker");
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
    let document = "<antArtifact identifier=\"a\" type=\"text/markdown\">\n# One\n</antArtifact>";
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
