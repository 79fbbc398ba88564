//! The parts of a message that an import marks: thinking, tool calls, results, artifacts and the answer.
//!
//! A line such as `[thinking]` begins a part, which goes on to the next such line. An artifact is between
//! tags, as older exports of Claude.ai have them.

/// The line above the model's thinking.
pub const THINKING: &str = "[thinking]";

/// The line above the result of a tool that the same message called.
pub const RESULT: &str = "[result]";

/// The line above the answer, where it follows another part.
pub const ANSWER: &str = "[answer]";

/// The beginning of the line that names the tool of a call.
pub const CALL: &str = "[tool: ";

/// A part of an answer, without the line or the tags that mark it.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// The answer itself, in Markdown.
    Text(&'a str),
    /// A document or a program between artifact tags.
    Artifact(Artifact<'a>),
    /// The thinking of the model.
    Thinking(&'a str),
    /// Thinking that the answer may follow without a mark.
    ThinkingAndAnswer(&'a str),
    /// A tool call: the name and the arguments.
    Call(&'a str, &'a str),
    /// The result of a tool.
    Output(&'a str),
}

/// A document or a program that an answer made.
#[derive(Debug, PartialEq, Eq)]
pub struct Artifact<'a> {
    /// The tag at its beginning, with its title, media type and language.
    tag: &'a str,
    /// The text between the tags, without empty lines at its ends.
    pub content: &'a str,
}

#[derive(Clone, Copy)]
enum PartMark<'a> {
    Thinking,
    Call(&'a str),
    Result,
    Answer,
}

impl<'a> PartMark<'a> {
    fn parse(line: &'a str) -> Option<PartMark<'a>> {
        match line {
            THINKING => Some(PartMark::Thinking),
            RESULT => Some(PartMark::Result),
            ANSWER => Some(PartMark::Answer),
            _ => called_by(line).map(PartMark::Call),
        }
    }

    fn into_part(self, text: &'a str) -> Option<Part<'a>> {
        let text = text.trim_matches('\n');
        match self {
            PartMark::Thinking => Some(Part::Thinking(text)),
            PartMark::Call(tool) => Some(Part::Call(tool, text)),
            PartMark::Result => Some(Part::Output(text)),
            PartMark::Answer => (!text.trim().is_empty()).then_some(Part::Text(text)),
        }
    }
}

/// Returns the tool that a line names.
pub fn called_by(line: &str) -> Option<&str> {
    line.strip_prefix(CALL)?.strip_suffix(']')
}

/// Returns the parts of an answer. With `joins_thinking`, the answer may follow the thinking without a
/// mark. The tag of an artifact counts only in the answer itself, at the beginning of a line, and not in a
/// code block.
pub fn parts(content: &str, joins_thinking: bool) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut mark = PartMark::Answer;
    let mut start = 0;
    let mut at = 0;
    let mut is_code = false;
    // A search for the end of each open tag or block would take long in a message with many of them.
    let last_end = content.rfind(THINKING_END).unwrap_or(0);
    let last_fence = FENCES.iter().filter_map(|fence| content.rfind(fence)).max().unwrap_or(0);
    while let Some(line) = content[at..].split_inclusive('\n').next() {
        let is_quoted = is_code && at < last_fence;
        if let Some(next) = PartMark::parse(line.trim_end_matches('\n')).filter(|_| !is_quoted) {
            parts.extend(mark.into_part(&content[start..at]));
            at += line.len();
            mark = next;
            start = at;
            is_code = false;
            continue;
        }
        let is_answer = matches!(mark, PartMark::Answer);
        is_code ^= is_answer && FENCES.iter().any(|fence| line.trim_start().starts_with(fence));
        let may_be_tag = is_answer && !is_code;
        match tagged(&content[at..], at < last_end).filter(|_| may_be_tag) {
            Some((part, length)) => {
                parts.extend(mark.into_part(&content[start..at]));
                parts.push(part);
                at += length;
                start = at;
            }
            None => at += line.len(),
        }
    }
    parts.extend(match mark.into_part(&content[start..]) {
        Some(Part::Thinking(text)) if joins_thinking => Some(Part::ThinkingAndAnswer(text)),
        part => part,
    });
    parts
}

/// Returns the artifact or the thinking at the beginning of a text, and its length with its tags.
fn tagged(text: &str, may_be_thinking: bool) -> Option<(Part<'_>, usize)> {
    let line = text.strip_prefix("<ant").and(text.lines().next())?;
    let tag = &line[..tag_length(line)];
    let body = &text[tag.len()..];
    match tag.split([' ', '>']).next()? {
        "<antThinking" if may_be_thinking => {
            let end = body.find(THINKING_END)?;
            Some((
                Part::Thinking(body[..end].trim_matches('\n')),
                tag.len() + end + THINKING_END.len(),
            ))
        }
        "<antArtifact" if tag.ends_with('>') && attribute(tag, "identifier").is_some() => {
            // An answer that was cut off has no closing tag.
            let end = body.find(ARTIFACT_END).unwrap_or(body.len());
            let artifact = Artifact { tag, content: body[..end].trim_matches('\n') };
            let length = tag.len() + (end + ARTIFACT_END.len()).min(body.len());
            Some((Part::Artifact(artifact), length))
        }
        _ => None,
    }
}

/// The beginnings of the lines around a code block.
pub const FENCES: [&str; 2] = ["```", "~~~"];

const THINKING_END: &str = "</antThinking>";
const ARTIFACT_END: &str = "</antArtifact>";

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    let (_, value) = tag.split_once(&format!(" {name}="))?;
    let quote = value.chars().next().filter(|quote| QUOTES.contains(quote))?;
    value[1..].split(quote).next()
}

const QUOTES: [char; 2] = ['"', '\''];

/// Returns the length of the tag at the beginning of a text. Attributes are in quotation marks.
pub fn tag_length(text: &str) -> usize {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match quote {
            Some(open) if open == c => quote = None,
            Some(_) => {}
            None if c == '>' => return at + 1,
            None => quote = QUOTES.contains(&c).then_some(c),
        }
    }
    text.len()
}

impl<'a> Artifact<'a> {
    /// Returns the title, which may be empty.
    pub fn title(&self) -> &'a str {
        attribute(self.tag, "title").unwrap_or_default()
    }

    /// Returns the language of the content: `markdown` for a document, and possibly nothing.
    pub fn language(&self) -> &'a str {
        let kind = attribute(self.tag, "type").unwrap_or_default();
        match kind.rsplit(['/', '.']).next().unwrap_or_default() {
            "code" => attribute(self.tag, "language").unwrap_or_default(),
            "react" => "jsx",
            "svg+xml" => "svg",
            other => other,
        }
    }

    /// Writes an artifact between its tags. Returns `None` if an attribute cannot be in a tag or the content
    /// has a closing tag.
    pub fn written(attributes: &[(&str, &str)], content: &str) -> Option<String> {
        let mut tag = "<antArtifact".to_owned();
        for (name, value) in attributes.iter().filter(|(_, value)| !value.is_empty()) {
            let quote = QUOTES.into_iter().find(|quote| !value.contains(*quote))?;
            tag += &format!(" {name}={quote}{value}{quote}");
        }
        let is_readable = !tag.contains(['\n', '\r']) && !content.contains(ARTIFACT_END);
        is_readable.then(|| format!("{tag}>\n{content}\n{ARTIFACT_END}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{Part::*, *};

    const TAG: &str = "<antArtifact identifier=\"a\" type=\"application/vnd.ant.code\" \
        language=\"python\" title=\"A > B\">";

    fn parts(content: &str) -> Vec<Part<'_>> {
        super::parts(content, false)
    }

    #[test]
    fn an_answer_is_split_at_its_marks() {
        let content = "[thinking]\nhm\n\nso\n[tool: Bash]\ncommand: ls\n[tool: Read]";
        assert_eq!(
            parts(content),
            [Thinking("hm\n\nso"), Call("Bash", "command: ls"), Call("Read", "")]
        );
        let content = "First.\n\n[tool: web]\nq: a\n\n[result]\nb\n\n[answer]\nSo.\n\nc";
        assert_eq!(
            parts(content),
            [Text("First."), Call("web", "q: a"), Output("b"), Text("So.\n\nc")]
        );
        let content = "Use\n```\n[thinking]\n```\n[tool: web]\n```\n[answer]\nSo";
        let expected = [Text("Use\n```\n[thinking]\n```"), Call("web", "```"), Text("So")];
        assert_eq!(parts(content), expected);
        assert_eq!(parts("```\nopen\n[tool: web]\nq"), [Text("```\nopen"), Call("web", "q")]);
        assert_eq!(parts("a\n[tool: x] y\nb"), [Text("a\n[tool: x] y\nb")]);
        assert_eq!(parts(""), []);
        assert_eq!(super::parts("[thinking]\nhm\n\nso", true), [ThinkingAndAnswer("hm\n\nso")]);
        assert_eq!(
            super::parts("[thinking]\nhm\n[answer]\nso", true),
            [Thinking("hm"), Text("so")]
        );
    }

    #[test]
    fn an_answer_is_split_at_its_artifacts() {
        let artifact = |content| Artifact(super::Artifact { tag: TAG, content });
        let text = format!(
            "Sure.\n\n<antThinking>hm</antThinking>\n\n{TAG}\na\n\n  b\n</antArtifact>\n\nSo."
        );
        let expected = [Text("Sure."), Thinking("hm"), artifact("a\n\n  b"), Text("So.")];
        assert_eq!(parts(&text), expected);
        assert_eq!(parts(&format!("{TAG}\ncut off")), [artifact("cut off")]);
        for prose in [
            "plain",
            "The tag <antArtifact identifier=\"a\"> is inside a line",
            "```\n<antArtifact identifier=\"a\">\n</antArtifact>\n```",
            "<antArtifact>\nno name",
            "<antArtifact identifier=\"a\nopen",
            "<antThinking>never closed",
            "<antelope identifier=\"a\">",
        ] {
            assert_eq!(parts(prose), [Text(prose)]);
        }
    }

    #[test]
    fn a_written_artifact_is_read_again() {
        let written = |title, content| {
            let kind = "application/vnd.ant.code";
            let attributes =
                [("identifier", "a"), ("type", kind), ("language", "python"), ("title", title)];
            super::Artifact::written(&attributes, content)
        };
        let text = written("A > B", "a\n\n[answer]").unwrap();
        let read = parts(&text);
        let [Artifact(artifact)] = &read[..] else { panic!("{read:?}") };
        assert_eq!((artifact.title(), artifact.language()), ("A > B", "python"));
        assert_eq!(artifact.content, "a\n\n[answer]");
        let text = written("It is > \"a\"", "c").unwrap();
        let read = parts(&text);
        let [Artifact(artifact)] = &read[..] else { panic!("{read:?}") };
        assert_eq!(artifact.title(), "It is > \"a\"");
        assert_eq!(written("It's \"a\"", "c"), None);
        assert_eq!(written("a\nb", "c"), None);
        assert_eq!(written("a", "</antArtifact>"), None);
    }
}
