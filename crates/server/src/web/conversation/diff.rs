//! Changes of files in the tool calls of coding agents, as removed and added lines.

use super::mark::escaped;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileChange<'a> {
    /// The path of the file, as the agent named it.
    pub(super) file: &'a str,
    lines: Vec<(LineKind, &'a str)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineKind {
    Same,
    Gone,
    New,
    /// The line names the file, or the position of the lines after it.
    Place,
}

pub(super) fn parse_change(text: &str) -> Option<FileChange<'_>> {
    from_patch(text).or_else(|| from_edit(text))
}

impl FileChange<'_> {
    pub(super) fn html(&self) -> String {
        let mut html = String::new();
        for (kind, line) in &self.lines {
            let line = escaped(line);
            html += &match kind {
                LineKind::Same => format!("<span>{line}\n</span>"),
                LineKind::Gone => format!("<del>{line}\n</del>"),
                LineKind::New => format!("<ins>{line}\n</ins>"),
                LineKind::Place => format!("<b>{line}\n</b>"),
            };
        }
        format!(
            "<pre class=\"diff\" tabindex=\"0\" role=\"group\" aria-label=\"Change of a file\"><code>{html}</code></pre>"
        )
    }

    /// Returns the numbers of added and removed lines, such as `+3 −1`.
    pub(super) fn size(&self) -> String {
        format!("+{} −{}", self.count(LineKind::New), self.count(LineKind::Gone))
    }

    fn count(&self, wanted: LineKind) -> usize {
        self.lines.iter().filter(|(kind, _)| *kind == wanted).count()
    }
}

fn from_patch(text: &str) -> Option<FileChange<'_>> {
    const FILES: [&str; 6] =
        ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "+++ b/", "+++ ", "--- "];
    let is_patch = text.lines().any(|line| line == "*** Begin Patch")
        || text.starts_with("diff --git ")
        || text.starts_with("--- ") && text.contains("\n+++ ") && text.contains("\n@@");
    if !is_patch {
        return None;
    }
    let mut hunk = Hunk::default();
    let lines: Vec<_> = text.lines().map(|line| hunk.line(line)).collect();
    let heads: Vec<&str> =
        lines.iter().filter(|(kind, _)| *kind == LineKind::Place).map(|(_, line)| *line).collect();
    let named = FILES.iter().find_map(|start| heads.iter().find_map(|it| it.strip_prefix(start)));
    Some(FileChange { file: named.unwrap_or_default(), lines })
}

/// The numbers of old and new lines that are left in the hunk; 0 before the first hunk of a file.
#[derive(Default)]
struct Hunk {
    old: usize,
    new: usize,
}

impl Hunk {
    /// Returns the kind of the next line of a patch. A removed line that begins with `-- ` looks
    /// like the head of a file, so the lines of a hunk are counted.
    fn line<'a>(&mut self, line: &'a str) -> (LineKind, &'a str) {
        const HEADS: [&str; 4] = ["***", "diff ", "index ", "new file"];

        if line.starts_with("@@") {
            *self = Hunk::parse(line);
            return (LineKind::Place, line);
        }
        let is_head = HEADS.iter().any(|start| line.starts_with(start))
            || self.old == 0 && line.starts_with("--- ")
            || self.new == 0 && line.starts_with("+++ ");
        if is_head {
            *self = Hunk::default();
            return (LineKind::Place, line);
        }
        if line.starts_with('\\') {
            // The line is `\ No newline at end of file`.
            return (LineKind::Same, line);
        }
        let (kind, text) = match line.as_bytes().first() {
            Some(b'+') => (LineKind::New, &line[1..]),
            Some(b'-') => (LineKind::Gone, &line[1..]),
            Some(b' ') => (LineKind::Same, &line[1..]),
            _ => (LineKind::Same, line),
        };
        self.old = self.old.saturating_sub(usize::from(kind != LineKind::New));
        self.new = self.new.saturating_sub(usize::from(kind != LineKind::Gone));
        (kind, text)
    }

    /// Parses `@@ -1,2 +1,3 @@`. Without numbers, as in a patch of Codex, the hunk ends at the next
    /// `@@` or `***`.
    fn parse(line: &str) -> Hunk {
        let mut words = line.split(' ').skip(1);
        match [lines_of(words.next(), '-'), lines_of(words.next(), '+')] {
            [Some(old), Some(new)] => Hunk { old, new },
            _ => Hunk { old: usize::MAX, new: usize::MAX },
        }
    }
}

/// Returns the number of lines in a range such as `-1,2`; without a number it is one line.
fn lines_of(range: Option<&str>, sign: char) -> Option<usize> {
    match range?.strip_prefix(sign)?.split_once(',') {
        Some((_, count)) => count.parse().ok(),
        None => Some(1),
    }
}

fn from_edit(text: &str) -> Option<FileChange<'_>> {
    const OLD: &str = "old_string:";
    const NEW: &str = "\nnew_string:";
    const LAST: &str = "\nreplace_all: ";

    let (head, mut rest) = split_at_line(text, OLD)?;
    let file = head.lines().find_map(|line| line.strip_prefix("file_path: "))?;
    let mut lines = Vec::new();
    loop {
        let (old, after) = rest.split_once(NEW)?;
        let next = after.find("\nold_string:");
        let new = &after[..next.unwrap_or(after.len())];
        let new =
            new.rfind(LAST).filter(|at| !new[at + 1..].contains('\n')).map_or(new, |at| &new[..at]);
        add_replacement(value(old), value(new), &mut lines);
        match next {
            Some(at) => rest = &after[at + 1 + OLD.len()..],
            None => return Some(FileChange { file, lines }),
        }
        lines.push((LineKind::Place, "…"));
    }
}

fn split_at_line<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let at = if text.starts_with(name) {
        0
    } else {
        text.match_indices(name).map(|(at, _)| at).find(|at| text[..*at].ends_with('\n'))?
    };
    Some((&text[..at], &text[at + name.len()..]))
}

/// Returns the value after a field's name. The value is on the same line or on the next lines.
fn value(text: &str) -> &str {
    text.strip_prefix([' ', '\n']).unwrap_or(text)
}

fn add_replacement<'a>(old: &'a str, new: &'a str, lines: &mut Vec<(LineKind, &'a str)>) {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let least = old.len().min(new.len());
    let start = (0..least).take_while(|at| old[*at] == new[*at]).count();
    let end = (0..least - start)
        .take_while(|at| old[old.len() - 1 - at] == new[new.len() - 1 - at])
        .count();
    for (kind, changed) in [
        (LineKind::Same, &old[..start]),
        (LineKind::Gone, &old[start..old.len() - end]),
        (LineKind::New, &new[start..new.len() - end]),
        (LineKind::Same, &old[old.len() - end..]),
    ] {
        lines.extend(changed.iter().map(|line| (kind, *line)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_and_patches_are_lines() {
        let edit = "file_path: /src/a.rs\nold_string:\nfn a() {\n    1\n}\nnew_string:\nfn a() {\n    2 < 3\n}\nreplace_all: false";
        let found = parse_change(edit).unwrap();
        assert_eq!((found.file, found.size().as_str()), ("/src/a.rs", "+1 −1"));
        let html = found.html();
        assert!(
            html.contains("<del>    1\n</del><ins>    2 &lt; 3\n</ins><span>}\n</span>"),
            "{html}"
        );
        let short = parse_change("file_path: b\nold_string: x\nnew_string: ").unwrap();
        assert_eq!(short.size(), "+0 −1");
        let many = "file_path: c\nold_string: a\nnew_string: b\nold_string: c\nnew_string: d";
        assert_eq!(parse_change(many).unwrap().size(), "+2 −2");
        let patch =
            "*** Begin Patch\n*** Update File: d.rs\n@@ fn\n same\n-old\n+new\n*** End Patch";
        let found = parse_change(patch).unwrap();
        assert_eq!((found.file, found.size().as_str()), ("d.rs", "+1 −1"));
        assert!(found.html().contains("<span>same\n</span><del>old\n</del>"));
        let git = "diff --git a/e b/e\n--- a/e\n+++ b/e\n@@ -1 +1 @@\n-x\n+y";
        assert_eq!(parse_change(git).unwrap().file, "e");
        let sql = "--- a/e.sql\n+++ b/e.sql\n@@ -1,2 +1,2 @@\n--- gone\n--- b/too\n\\ No newline at end of file\n+++ b/new\n+++ x\n--- f\n+++ f\n@@ -1 +0,0 @@\n--- y";
        let found = parse_change(sql).unwrap();
        assert_eq!((found.file, found.size().as_str()), ("e.sql", "+2 −3"));
        let html = found.html();
        assert!(html.contains("<del>-- gone\n</del>") && html.contains("<b>--- f\n</b>"), "{html}");
        let codex = "*** Begin Patch\n*** Update File: q.sql\n@@\n--- old\n+++ new\n*** End Patch";
        assert_eq!(parse_change(codex).unwrap().size(), "+1 −1");
        for other in ["", "command: ls", "old_string: x", "a\n+b\n-c", "file_path: x\ncontent: y"] {
            assert_eq!(parse_change(other), None, "{other}");
        }
    }
}
