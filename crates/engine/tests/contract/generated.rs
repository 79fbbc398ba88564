//! Random databases and questions.

use proptest::{collection::vec, option, prelude::*, sample::select};
use verbatim_base::model::{Instant, Request};

use crate::database::{Cell, Content, Database, Message, Schema, times};
use crate::oracle::instant;
use crate::pieces::{PIECES, bytes, text};

/// Roles to store and to ask for.
const ROLES: &[&str] = &["user", "assistant", "tool", "User", "tool ", "7", "nobody"];

/// Values of every type, mostly texts.
fn cell() -> impl Strategy<Value = Cell> {
    prop_oneof![
        12 => text().prop_map(|text| Cell::Text(text.into_bytes())),
        2 => (text(), text()).prop_map(|(a, b)| Cell::Text(format!("{a}\0{b}").into_bytes())),
        2 => bytes().prop_map(Cell::Text),
        2 => bytes().prop_map(Cell::Blob),
        1 => Just(Cell::Null),
        1 => any::<i16>().prop_map(|number| Cell::Integer(number.into())),
        1 => Just(Cell::Real(1.5)),
        1 => text().prop_map(|text| Cell::Text(text.repeat(150).into_bytes())),
    ]
}

fn role() -> impl Strategy<Value = Cell> {
    prop_oneof![
        12 => select(&ROLES[..3]).prop_map(Cell::from),
        2 => select(&ROLES[3..5]).prop_map(Cell::from),
        1 => Just(Cell::from("")),
        1 => Just(Cell::Null),
        1 => Just(Cell::Integer(7)),
        1 => Just(Cell::Blob(b"tool".to_vec())),
    ]
}

fn message(is_parts: bool) -> impl Strategy<Value = Message> {
    let parts = vec(option::weighted(0.8, text()), 0..4).prop_map(Content::Parts);
    let content = match is_parts {
        false => cell().prop_map(Content::Stored).boxed(),
        true => prop_oneof![4 => parts, 1 => cell().prop_map(Content::Stored)].boxed(),
    };
    let position = option::weighted(0.9, -1..4i64);
    (0..4usize, role(), content, 0..times().len(), position).prop_map(
        |(conversation, role, content, time, position)| Message {
            conversation,
            role,
            content,
            time,
            position,
        },
    )
}

/// The rows of a database, and the texts in them.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) schema: Schema,
    pub(crate) titles: Vec<Cell>,
    pub(crate) messages: Vec<Message>,
}

impl Rows {
    pub(crate) fn database(&self) -> Database {
        Database::of(self.schema, &self.titles, &self.messages)
    }

    /// The texts of messages and titles, to take questions from.
    pub(crate) fn texts(&self) -> Vec<String> {
        let of_cell = |cell: &Cell| match cell {
            Cell::Text(bytes) | Cell::Blob(bytes) => {
                Some(String::from_utf8_lossy(bytes).into_owned())
            }
            Cell::Integer(number) => Some(number.to_string()),
            Cell::Real(_) | Cell::Null => None,
        };
        let of_message = |message: &Message| match &message.content {
            Content::Stored(cell) => of_cell(cell),
            Content::Parts(parts) => parts.iter().flatten().next().cloned(),
        };
        let titles = self.titles.iter().filter_map(of_cell);
        self.messages.iter().filter_map(of_message).chain(titles).collect()
    }
}

pub(crate) fn rows(size: usize) -> impl Strategy<Value = Rows> {
    let schemas = prop_oneof![
        3 => Just(Schema::Typed),
        1 => select(vec![Schema::Untyped, Schema::WithoutPositions]),
        1 => select(vec![Schema::NoCaseRoles, Schema::TrimmedRoles, Schema::NumericRoles]),
    ];
    let messages =
        prop::bool::weighted(0.4).prop_flat_map(move |is_parts| vec(message(is_parts), 0..size));
    // The fourth conversation is missing: no answer has its messages.
    (schemas, vec(cell(), 3), messages).prop_map(|(schema, titles, messages)| Rows {
        schema,
        titles,
        messages,
    })
}

/// A description of a question that is made from the texts of a database.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    from: prop::sample::Index,
    start: prop::sample::Index,
    length: usize,
    changes: Vec<(prop::sample::Index, usize)>,
    other: Option<String>,
    rest: Request,
}

pub(crate) fn edge() -> impl Strategy<Value = Option<Instant>> {
    let instants: Vec<i64> = times().iter().filter_map(|(_, instant)| *instant).collect();
    option::weighted(
        0.25,
        (select(instants), -1..=1i64).prop_map(|(nanos, change)| instant(nanos + change)),
    )
}

pub(crate) fn roles() -> impl Strategy<Value = Vec<String>> {
    let some = vec(select(ROLES).prop_map(str::to_owned), 1..4);
    prop_oneof![2 => Just(Vec::new()), 1 => some]
}

pub(crate) fn ask() -> impl Strategy<Value = Ask> {
    let limits = vec![None, None, Some(50), Some(3), Some(1), Some(0)];
    let other = vec(select(PIECES), 0..5).prop_map(|pieces| pieces.concat());
    (
        (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0..12usize),
        vec((any::<prop::sample::Index>(), 0..5usize), 0..3),
        option::weighted(0.3, other),
        (roles(), edge(), edge(), select(limits)),
        (prop::bool::weighted(0.15), prop::bool::weighted(0.2)),
    )
        .prop_map(|((from, start, length), changes, other, filters, flags)| Ask {
            from,
            start,
            length,
            changes,
            other,
            rest: Request {
                text: String::new(),
                roles: filters.0,
                since: filters.1,
                until: filters.2,
                limit: filters.3,
                case_sensitive: flags.0,
                raw_content: flags.1,
                ..Request::default()
            },
        })
}

impl Ask {
    /// Returns a request for a slice of some text, with wildcards and other letter cases in it.
    pub(crate) fn request(&self, texts: &[String]) -> Request {
        let mut pattern: Vec<char> = match &self.other {
            Some(other) => other.chars().collect(),
            None if texts.is_empty() => Vec::new(),
            None => {
                let text: Vec<char> = self.from.get(texts).chars().collect();
                let start = if text.is_empty() { 0 } else { self.start.index(text.len()) };
                text.into_iter().skip(start).take(self.length).filter(|c| *c != '\0').collect()
            }
        };
        for (at, change) in &self.changes {
            if pattern.is_empty() {
                break;
            }
            let at = at.index(pattern.len());
            match change {
                0 => pattern[at] = '_',
                1 => pattern[at] = '%',
                2 => pattern.insert(at, '%'),
                _ if pattern[at].is_ascii_lowercase() => pattern[at].make_ascii_uppercase(),
                _ => pattern[at].make_ascii_lowercase(),
            }
        }
        let text: String = pattern.into_iter().collect();
        Request { text: verbatim_text::snippet::trim(&text).to_owned(), ..self.rest.clone() }
    }
}
