//! Forgets a conversation after the user confirms.

use maud::{Markup, html};

use crate::web::frame::site::{Problem, Site};
use crate::web::frame::{Frame, Tab};
use crate::web::{conversation, search::page_query::PageQuery};
use verbatim_answer::conversation::{DescribedConversation, title_line};
use verbatim_base::call::Call;
use verbatim_engine::{Error, Forgettable, Forgetter, SourceKind};
use verbatim_text::{address::id_in_path, amount::counted};

struct NamedConversation {
    card: DescribedConversation,
    title: String,
    /// The stored parts, or the reason why the conversation cannot be forgotten.
    parts: Result<Forgettable, String>,
}

pub(crate) fn page(site: &Site, id: &str, call: &Call) -> Result<Markup, Problem> {
    let NamedConversation { card, title, parts } = find(site, id, call)?;
    let parts = match parts {
        Ok(parts) => parts,
        Err(why) => {
            let body = html! {
                h1 { "“" bdi { (title) } "” cannot be forgotten here" }
                p.broken { (why) }
                p.row.acts { a.btn href=(card.address()) { "Back" } }
            };
            return Ok(plain_page(site, "Forget a conversation", body));
        }
    };
    let address = card.address();
    Ok(plain_page(
        site,
        "Forget a conversation",
        html! {
            h1 { "Forget “" bdi { (title) } "”?" }
            p { (counted(parts.messages as usize, "message")) " will be removed for good, from the chats that verbatim keeps and from their indexes." }
            ul.steps {
                li { "No later import and no transcript brings the conversation back." }
                li { "The export or the transcript that it came from stays as it is." }
                li { (way_back(&parts)) }
            }
            form.row.acts method="post" action=(format!("{address}/forget")) data-busy="Forgetting …" {
                button.btn.danger { "Forget it for good" }
                " " a.btn href=(address) { "Keep it" }
            }
        },
    ))
}

pub(crate) fn forget(site: &Site, id: &str) -> Result<Markup, Problem> {
    let call = Call::default();
    let NamedConversation { card, title, parts } = find(site, id, &call)?;
    // If the id in the address now finds another conversation, nothing is forgotten.
    if card.id != id_in_path(id) {
        return Err(Error::NoConversation { word: id.to_owned() }.into());
    }
    let parts = parts.map_err(Problem::Refused)?;
    let all = std::slice::from_ref(&parts);
    let forgetter = Forgetter::new(site.engine.all_sources());
    let left = forgetter.forget(all, site.resources, &call, &mut |_| {})?;
    site.forget_counts();
    Ok(plain_page(
        site,
        "Forgotten",
        html! {
            h1 { "“" bdi { (title) } "” is forgotten" }
            p role="status" { (counted(parts.messages as usize, "message")) " removed. " (way_back(&parts)) }
            @for path in &left.logs {
                p.say.warn { b { "Warning" } " The log of " code { (path.display()) }
                    " still has the text, because a program reads an older state. End that program, then forget the conversation again: "
                    code { "verbatim forget " (parts.id) } }
            }
            @if let Some(address) = &left.in_cluster {
                p.say.warn { b { "Warning" } " " code { (address) }
                    ": searches no longer find it, but files of the cluster keep the text until it merges them." }
            }
            @for path in &left.lists {
                p.say.warn { b { "Warning" } " The list of files " code { (path.display()) }
                    " is damaged. Files of messages stay, because they may be of its conversation. Delete the list, import its export again, then forget this conversation again: "
                    code { "verbatim forget " (parts.id) } }
            }
            @for path in &left.not_indexed {
                p.say { code { (path.display()) } " is not indexed, because another program keeps writing to it. Searches are complete but slow until the index is there." }
            }
            p.row.acts { a.btn href="/" { "Search" } }
        },
    ))
}

/// Finds a conversation to forget; the inner error is the reason why it cannot be forgotten.
fn find(site: &Site, id: &str, call: &Call) -> Result<NamedConversation, Problem> {
    let (session, card) = conversation::find(site, id, call)?;
    let parts = match Forgetter::new(site.engine.all_sources()).find(&card.id, call) {
        Ok(Some(found)) => Ok(found),
        Ok(None) => return Err(Error::NoConversation { word: card.id }.into()),
        Err(error @ Error::ReadOnly { .. }) => Err(error.to_string()),
        Err(error) => return Err(error.into()),
    };
    Ok(NamedConversation { card, title: title_line(&session.about.title), parts })
}

fn way_back(found: &Forgettable) -> Markup {
    html! {
        @if found.sources == [SourceKind::Threads] {
            "A recorded thread cannot be brought back."
        } @else {
            code { "verbatim forget --undo " (found.id) } " lets it come back with the next import, or from its transcript."
        }
    }
}

fn plain_page(site: &Site, title: &str, body: Markup) -> Markup {
    let query = PageQuery::default();
    let tab = Tab::Elsewhere;
    let stamp = site.stamp();
    let frame = Frame { title, tab, query: &query, messages: None, zone: None, stamp };
    frame.around(html! { div.page.plain { main #main { (body) } } })
}
