//! Artifacts in answers of Claude.ai: code and documents, which older exports have between tags.

use super::{
    ansi,
    code::Highlighter,
    mark::{escaped, tag_length},
    markdown::{framed, render},
};

/// A piece of the text of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AnswerPiece<'a> {
    Prose(&'a str),
    Thinking(&'a str),
    Artifact(Artifact<'a>),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Artifact<'a> {
    /// The tag at its beginning, with its title, media type and language.
    tag: &'a str,
    content: &'a str,
}

/// Splits the text of an answer at its artifacts. A tag counts only at the beginning of a line, and not in
/// a code block.
pub(super) fn pieces(text: &str) -> Vec<AnswerPiece<'_>> {
    let (mut pieces, mut rest, mut at, mut is_code) = (Vec::new(), text, 0, false);
    while let Some(line) = rest[at..].split_inclusive('\n').next() {
        is_code ^= ["```", "~~~"].iter().any(|fence| line.trim_start().starts_with(fence));
        match piece(&rest[at..]).filter(|_| !is_code) {
            Some((piece, length)) => {
                pieces.extend([AnswerPiece::Prose(&rest[..at]), piece]);
                (rest, at) = (&rest[at + length..], 0);
            }
            None => at += line.len(),
        }
    }
    pieces.push(AnswerPiece::Prose(rest));
    pieces.retain(|piece| !matches!(piece, AnswerPiece::Prose(text) if text.trim().is_empty()));
    pieces
}

/// Returns the artifact or the thinking at the beginning of a text, and its length with its tags.
fn piece(text: &str) -> Option<(AnswerPiece<'_>, usize)> {
    let line = text.strip_prefix("<ant").and(text.lines().next())?;
    let tag = &line[..tag_length(line)];
    let body = &text[tag.len()..];
    let content = |end: usize| body[..end].trim_matches('\n');
    match tag.split([' ', '>']).next()? {
        "<antThinking" => {
            let close = "</antThinking>";
            let end = body.find(close)?;
            Some((AnswerPiece::Thinking(content(end)), tag.len() + end + close.len()))
        }
        "<antArtifact" if tag.ends_with('>') && attribute(tag, "identifier").is_some() => {
            let close = "</antArtifact>";
            // An answer that was cut off has no closing tag.
            let end = body.find(close).unwrap_or(body.len());
            let artifact = Artifact { tag, content: content(end) };
            let length = tag.len() + (end + close.len()).min(body.len());
            Some((AnswerPiece::Artifact(artifact), length))
        }
        _ => None,
    }
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!(" {name}=\""))?;
    value.split('"').next()
}

impl Artifact<'_> {
    /// Returns the artifact in a frame with its title, as HTML.
    pub(super) fn html(&self, highlighter: &mut Highlighter) -> String {
        let of = |name| attribute(self.tag, name).unwrap_or_default();
        let kind = of("type").rsplit(['/', '.']).next().unwrap_or_default();
        let language = match kind {
            "code" => of("language"),
            "react" => "jsx",
            "svg+xml" => "svg",
            other => other,
        };
        let title = match of("title") {
            "" => "Artifact",
            title => title,
        };
        let (title, content) = (escaped(title), ansi::plain(self.content));
        let caption = format!("<span dir=\"auto\"><b>{title}</b> {}</span>", escaped(language));
        if kind == "markdown" {
            let html = render(&content, false, highlighter);
            return format!(
                "<figure class=\"paper\"><figcaption>{caption}</figcaption>\
                 <div class=\"md\" dir=\"auto\">{html}</div></figure>"
            );
        }
        framed(&caption, &title, &highlighter.html(&content, language))
    }
}

#[cfg(test)]
mod tests {
    use super::{AnswerPiece::*, *};

    const TAG: &str = "<antArtifact identifier=\"a\" type=\"application/vnd.ant.code\" \
        language=\"python\" title=\"A > B\">";

    #[test]
    fn an_answer_is_split_at_its_artifacts() {
        let artifact = |content| Artifact(super::Artifact { tag: TAG, content });
        let text = format!(
            "Sure.\n\n<antThinking>hm</antThinking>\n\n{TAG}\na\n\n  b\n</antArtifact>\n\nSo."
        );
        let expected = [Prose("Sure.\n\n"), Thinking("hm"), artifact("a\n\n  b"), Prose("\n\nSo.")];
        assert_eq!(pieces(&text), expected);
        assert_eq!(pieces(&format!("{TAG}\ncut off")), [artifact("cut off")]);
        for prose in [
            "plain",
            "The tag <antArtifact identifier=\"a\"> is inside a line",
            "```\n<antArtifact identifier=\"a\">\n</antArtifact>\n```",
            "<antArtifact>\nno name",
            "<antArtifact identifier=\"a\nopen",
            "<antThinking>never closed",
            "<antelope identifier=\"a\">",
        ] {
            assert_eq!(pieces(prose), [Prose(prose)]);
        }
        assert_eq!(pieces(""), []);
    }

    #[test]
    fn an_artifact_has_its_title_and_nothing_of_it_becomes_markup() {
        let html = |tag, content| super::Artifact { tag, content }.html(&mut Highlighter::new());
        let code = html(TAG, "def f(): pass");
        assert!(code.contains("<b>A &gt; B</b> python</span>"), "{code}");
        assert!(code.contains("class=\"s-") && code.contains("aria-label=\"A &gt; B\""), "{code}");
        let tag = "<antArtifact identifier=\"a\" type=\"text/markdown\" title=\"<script>\">";
        let document = html(tag, "# One\n\n<script>");
        assert!(document.contains("<h3>One</h3>") && !document.contains("<script"), "{document}");
        assert!(html("<antArtifact identifier=\"a\">", "x").contains("<b>Artifact</b>"));
    }
}
