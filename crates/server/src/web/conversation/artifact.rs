//! Artifacts in answers of Claude.ai as HTML.

use super::markdown::{framed_code, render};
use super::{code::Highlighter, mark::escaped};
use verbatim_text::{parts::Artifact, screen};

pub(super) fn html(artifact: &Artifact<'_>, highlighter: &mut Highlighter) -> String {
    let language = artifact.language();
    let title = match artifact.title() {
        "" => "Artifact",
        title => title,
    };
    let title = escaped(title);
    let content = screen::written(artifact.content);
    let caption = format!("<span dir=\"auto\"><b>{title}</b> {}</span>", escaped(language));
    if language == "markdown" {
        let html = render(&content, false, highlighter);
        return format!(
            "<figure class=\"paper\"><figcaption>{caption}</figcaption>\
             <div class=\"md\" dir=\"auto\">{html}</div></figure>"
        );
    }
    framed_code(&caption, &title, &highlighter.html(&content, language))
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbatim_text::parts::{Part, parts};

    #[test]
    fn an_artifact_has_its_title_and_nothing_of_it_becomes_markup() {
        let html = |tag: &str, content: &str| match &parts(&format!("{tag}\n{content}"), false)[..]
        {
            [Part::Artifact(artifact)] => html(artifact, &mut Highlighter::new()),
            others => panic!("{others:?}"),
        };
        let tag = "<antArtifact identifier=\"a\" type=\"application/vnd.ant.code\" \
            language=\"python\" title=\"A > B\">";
        let code = html(tag, "def f(): pass");
        assert!(code.contains("<b>A &gt; B</b> python</span>"), "{code}");
        assert!(code.contains("class=\"s-") && code.contains("aria-label=\"A &gt; B\""), "{code}");
        let tag = "<antArtifact identifier=\"a\" type=\"text/markdown\" title=\"<script>\">";
        let document = html(tag, "# One\n\n<script>");
        assert!(document.contains("<h3>One</h3>") && !document.contains("<script"), "{document}");
        assert!(html("<antArtifact identifier=\"a\">", "x").contains("<b>Artifact</b>"));
    }
}
