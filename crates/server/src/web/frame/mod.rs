//! The parts that every page has: the head, the bar with the search field, the foot. Beside it are the pages
//! about all chats.

pub(super) mod assets;
pub(super) mod chart;
pub(super) mod import;
mod import_state;
pub(super) mod labels;
pub(super) mod site;
pub(super) mod stats;
pub(super) mod status;
pub(super) mod upload;

use maud::{DOCTYPE, Markup, html};

use crate::web::search::chosen_filters::{chosen, date_fields};
use crate::web::search::page_query::{PageQuery, Way, fields};
use assets::{FAVICON, SCRIPT, STYLE};
use verbatim_engine::ReadingKind;
use verbatim_text::amount::grouped;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Search,
    Statistics,
    Status,
    Import,
    Elsewhere,
}

pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) tab: Tab,
    pub(super) query: &'a PageQuery,
    pub(super) messages: Option<u64>,
    pub(super) zone: Option<String>,
    /// The stamp of the data on the page. The script compares stamps to see whether something changed.
    pub(super) stamp: &'a str,
}

impl Frame<'_> {
    pub(super) fn around(&self, body: Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " – verbatim" }
                    link rel="stylesheet" href=(STYLE.address());
                    link rel="icon" type="image/svg+xml" href=(FAVICON.address());
                    script src=(SCRIPT.address()) {}
                }
                body data-stamp=(self.stamp) {
                    a.skip href="#main" { "Skip to the text" }
                    (self.bar())
                    (body)
                    (self.foot())
                    (keys())
                    // The script writes here what a screen reader is to say.
                    p.sr #said role="status" {}
                }
            }
        }
    }

    fn bar(&self) -> Markup {
        let tabs = [
            (Tab::Search, "/", "Search"),
            (Tab::Statistics, "/stats", "Statistics"),
            (Tab::Status, "/status", "Status"),
            (Tab::Import, "/import", "Import"),
        ];
        // The search stays when the reader goes from its results to its statistics, and back.
        let query = match self.tab {
            Tab::Search | Tab::Statistics => {
                PageQuery { page: 0, ..self.query.clone() }.to_query_string()
            }
            _ => String::new(),
        };
        let placeholder = match self.messages {
            Some(count) => format!("Search {} messages", grouped(count as usize)),
            None => "Search your chats".to_owned(),
        };
        html! {
            header.bar {
                div.top {
                    a.brand href="/" { span { "verbatim" } }
                    nav aria-label="Pages" {
                        @for (tab, address, name) in tabs {
                            @let keeps = matches!(tab, Tab::Search | Tab::Statistics) && !query.is_empty();
                            @let address = if keeps { format!("{address}?{query}") } else { address.to_owned() };
                            a href=(address) aria-current=[(tab == self.tab).then_some("page")] {
                                (name)
                            }
                        }
                    }
                    form.find #find role="search" action="/" method="get" {
                        button aria-label="Search" {
                            svg width="16" height="16" aria-hidden="true" {
                                circle cx="6.5" cy="6.5" r="5" {}
                                path d="M10.5 10.5 15 15" {}
                            }
                        }
                        label.sr for="q" { "Text to find" }
                        input #q type="search" name="q" value=(self.query.q) placeholder=(placeholder)
                            dir="auto" autocomplete="off" autocapitalize="off" spellcheck="false"
                            enterkeyhint="search" aria-keyshortcuts="/ Control+K"
                            autofocus[self.tab == Tab::Search && self.query.page == 0];
                        a.clear href="/" aria-label="Clear the text" title="Clear the text" { "×" }
                        fieldset.seg.opts {
                            legend.sr { "How the text matches" }
                            (option("case", "1", self.query.is_case_sensitive, "Aa", "Letter case matters"))
                            (option("word", "1", self.query.is_word, "ab|", "Only whole words"))
                            @let is_expression = self.query.reading == Some(ReadingKind::Expression);
                            (option("match", "regex", is_expression, ".*", "A regular expression"))
                        }
                        fieldset.seg {
                            legend.sr { "Find" }
                            (self.way(Way::Exact, "Exact"))
                            (self.way(Way::Meaning, "Meaning"))
                        }
                    }
                }
            }
        }
    }

    fn way(&self, way: Way, label: &str) -> Markup {
        html! {
            label {
                input type="radio" name="mode" value=(way.name()) checked[self.query.way == way];
                span { (label) }
            }
        }
    }

    fn foot(&self) -> Markup {
        html! {
            footer.foot {
                span { "Everything stays on this computer." }
                @if let Some(zone) = &self.zone { span { "Times are in " (zone) "." } }
                span.keys.scripted { kbd { "/" } " search · " kbd { "j" } " " kbd { "k" } " move · "
                    kbd { "Enter" } " open · " button #all-keys type="button" aria-keyshortcuts="?" { kbd { "?" } " all keys" } }
                span { "verbatim " (env!("CARGO_PKG_VERSION")) }
            }
        }
    }
}

fn option(name: &str, value: &str, is_set: bool, sign: &str, label: &str) -> Markup {
    html! {
        label title=(label) {
            input type="checkbox" name=(name) value=(value) checked[is_set] aria-label=(label);
            span aria-hidden="true" { (sign) }
        }
    }
}

fn keys() -> Markup {
    let rows = [
        (&["/", "Ctrl+K"][..], "Go to the search field"),
        (&["j", "↓"], "The next result"),
        (&["k", "↑"], "The result before"),
        (
            &["J", "K"],
            "In a conversation: the next of your own messages, the one before; j and k too",
        ),
        (&["Enter"], "Open the chosen result"),
        (&["n"], "The next match in the conversation"),
        (&["N"], "The match before"),
        (&["f"], "Find in the conversation"),
        (&["[", "]"], "The conversation before in the results, and the next"),
        (&["u"], "Back to the results"),
        (&["y"], "Copy the text of the chosen message"),
        (&["Esc"], "Leave the search field, or close this"),
        (&["?"], "Show these keys"),
    ];
    html! {
        dialog #keys aria-labelledby="keys-title" {
            h2 #keys-title { "Keys" }
            dl {
                @for (keys, what) in rows {
                    div {
                        dt { @for key in keys { kbd { (key) } " " } }
                        dd { (what) }
                    }
                }
            }
            label.row { input #letters type="checkbox"; " Letters and signs alone are keys. Switch this off if you dictate." }
            form method="dialog" { button.btn { "Close" } }
        }
    }
}

/// Returns the page that explains an error. It keeps the filters of the request, and offers its dates for
/// correction.
pub(super) fn problem(heading: &str, what: &Markup, query: &PageQuery) -> Markup {
    let title = heading;
    let tab = Tab::Elsewhere;
    let stamp = "";
    let frame = Frame { title, tab, query, messages: None, zone: None, stamp };
    let mut others = PageQuery { q: String::new(), way: Way::Exact, ..query.clone() };
    others.filters.since = None;
    others.filters.until = None;
    others.filters.within.clear();
    let others = others.to_query_string();
    frame.around(html! {
        div.page.plain {
            main #main {
                h1 { (heading) }
                (what)
                @if query.has_filters() {
                    (date_fields(query, true))
                    p.note { "Filters: " bdi { (chosen(query)) } }
                    @for (name, value) in fields(&others) { input type="hidden" name=(name) value=(value) form="find"; }
                }
                p.row.acts {
                    a.btn href="/" { "Search" } " " a.btn href="/status" { "Status" }
                    " " a.btn href="/import" { "Bring your chats" }
                }
            }
        }
    })
}
