//! Exact search for a literal text: no wildcards, and letters in any case in every script.
//!
//! The oracle lists the messages, and a regular expression that ignores case tells which match.

use proptest::{collection::vec, option, prelude::*, sample::Index};
use verbatim_base::model::{Hit, Matching, Request};

use crate::database::{Cell, Content, Database, Message, Schema};
use crate::generated::{Ask, ask, rows};
use crate::oracle::Oracle;
use crate::{config, suite};

/// Sentences as people write them.
const SENTENCES: &[&str] = &[
    "Der Straßenbau in ÄRMELKANAL-Nähe: STRASSE, Straße und STRAẞE.",
    "L'élève a mangé une CRÈME BRÛLÉE au Café, ŒUVRE complète.",
    "Ο Λόγος του Οδυσσέως: ΟΔΥΣΣΕΎΣ, Οδυσσεύς, σοφόσ.",
    "Съешь же ещё этих МЯГКИХ французских булок, да выпей чаю. ОБЪЁМ 100%.",
    "Բոլոր մարդիկ ԾՆՎՈՒՄ են ազատ ու հավասար.",
    "ყველა ადამიანი იბადება ᲗᲐᲕᲘᲡᲣᲤᲐᲚᲘ და თანასწორი.",
    "ᏂᎦᏓ ᎠᏂᏴᏫ ꮒꭶꮣ ꭰꮒᏼꮻ ᎤᎾᏕᎿ.",
    "𐐔𐐯𐑅𐐨𐑉𐐯𐐻 𐐼𐐯𐑅𐐨𐑉𐐯𐐻 and 𞤀𞤣𞤤𞤢𞤥 𞤢𞤁𞤂𞤀𞤃.",
    "İstanbul'da ILIK ırmak, ısı ve İĞNE; iğne.",
    "Ｆｕｌｌｗｉｄｔｈ ＦＵＬＬＷＩＤＴＨ, ﬁne ﬂow, 300 \u{212A} and 5 \u{212B}, \u{17F}ein.",
    "Tiếng Việt: ĐƯỜNG đi, Hà NỘI. Žluťoučký KŮŇ úpěl ďábelské ÓDY.",
    "日本語のテキストと한국어 텍스트, 全文検索 ABCabc.",
    "ERR_AUTH_FAILED err-auth-failed ERR AUTH FAILED __init__ user_id userXid 100% 100x",
    "न\u{93F}यम और हिन्दी, ไทย, שלום, مرحبا 😀 👩\u{200D}💻 e\u{301} É é",
];

/// Letters that have a case which neither `to_uppercase` nor `to_lowercase` gives.
const TWINS: [(char, char); 12] = [
    ('k', '\u{212A}'),
    ('s', 'ſ'),
    ('σ', 'ς'),
    ('ς', 'σ'),
    ('β', 'ϐ'),
    ('θ', 'ϴ'),
    ('в', 'ᲀ'),
    ('о', 'ᲂ'),
    ('ß', 'ẞ'),
    ('å', '\u{212B}'),
    ('ω', '\u{2126}'),
    ('ι', '\u{1FBE}'),
];

/// A description of a question that is made from the texts of a database.
#[derive(Clone, Debug)]
struct LiteralAsk {
    /// The filters of the question and, sometimes, its text.
    ask: Ask,
    /// A piece of a text: the number of the text, the start, the length.
    piece: Option<(Index, Index, usize)>,
    /// Letters whose case changes, with the number of the other case.
    changes: Vec<(Index, usize)>,
}

fn literal_ask() -> impl Strategy<Value = LiteralAsk> {
    let piece = option::weighted(0.85, (any::<Index>(), any::<Index>(), 1..12usize));
    let changes = vec((any::<Index>(), 0..3usize), 0..6);
    (ask(), piece, changes).prop_map(|(ask, piece, changes)| LiteralAsk { ask, piece, changes })
}

impl LiteralAsk {
    fn request(&self, texts: &[String]) -> Request {
        let mut request = Request { matching: Matching::Literal, ..self.ask.request(texts) };
        if let Some((which, start, length)) = &self.piece {
            let text: Vec<char> = which.get(texts).chars().filter(|c| *c != '\0').collect();
            let start = if text.is_empty() { 0 } else { start.index(text.len()) };
            request.text = text.into_iter().skip(start).take(*length).collect();
        }
        let mut characters: Vec<char> = request.text.chars().collect();
        for (at, change) in &self.changes {
            if characters.is_empty() {
                break;
            }
            let place = at.index(characters.len());
            characters[place] = in_other_case(characters[place], *change);
        }
        request.text = characters.into_iter().collect::<String>().trim_matches(' ').to_owned();
        request
    }
}

fn in_other_case(letter: char, how: usize) -> char {
    let (mut upper, mut lower) = (letter.to_uppercase(), letter.to_lowercase());
    match how {
        0 if upper.len() == 1 => upper.next().unwrap_or(letter),
        1 if lower.len() == 1 => lower.next().unwrap_or(letter),
        2 => TWINS.iter().find(|(one, _)| *one == letter).map_or(letter, |(_, other)| *other),
        _ => letter,
    }
}

/// Returns the messages that contain the text of a request.
fn containing(oracle: &Oracle, request: &Request) -> Vec<Hit<'static>> {
    let all = Request { text: String::new(), limit: None, ..request.clone() };
    let mut found = oracle.search(&all);
    if !request.text.is_empty() {
        let mut regex = regex::RegexBuilder::new(&regex::escape(&request.text));
        let regex = regex.case_insensitive(!request.case_sensitive).build().expect("an expression");
        found.retain(|hit| regex.is_match(&hit.content) || regex.is_match(&hit.title));
    }
    found.truncate(request.limit.unwrap_or(usize::MAX));
    found
}

/// Asks every reader; all must answer as the oracle does. Returns the numbers of hits.
#[track_caller]
fn agree(database: &Database, requests: &[Request]) -> Vec<usize> {
    suite::agree(database, requests, containing)
}

proptest! {
    #![proptest_config(config(14))]

    #[test]
    fn hits_contain_the_text(
        rows in rows(50),
        sentences in vec((0..SENTENCES.len(), 0..3usize, 0..18usize), 1..30),
        asks in vec(literal_ask(), 160),
    ) {
        let mut rows = rows;
        let is_parts =
            rows.messages.iter().any(|message| matches!(message.content, Content::Parts(_)));
        for (sentence, case, time) in sentences {
            let text = match case {
                0 => SENTENCES[sentence].to_uppercase(),
                1 => SENTENCES[sentence].to_lowercase(),
                _ => SENTENCES[sentence].to_owned(),
            };
            let content = match is_parts {
                true => Content::Parts(vec![Some(text), Some("\"%\"".to_owned())]),
                false => Content::Stored(Cell::Text(text.into_bytes())),
            };
            let conversation = sentence % 3;
            rows.messages.push(Message { time, conversation, ..Message::of(content) });
        }
        let texts = rows.texts();
        let requests: Vec<Request> = asks.iter().map(|ask| ask.request(&texts)).collect();
        let counts = agree(&rows.database(), &requests);
        prop_assert!(counts.iter().filter(|count| **count > 0).count() * 4 > counts.len());
    }
}

fn asking(text: &str) -> Request {
    let matching = Matching::Literal;
    Request { text: text.to_owned(), matching, ..Request::default() }
}

#[test]
fn letters_are_the_same_in_every_case() {
    let messages: Vec<Message> = SENTENCES.iter().map(|text| Message::stored(*text)).collect();
    let database = Database::of(Schema::Typed, &["Η ΤΈΛΟΣ of 50% _".into()], &messages);
    for (text, count) in [
        ("strasse", 1),
        ("straße", 1),
        ("STRAẞE", 1),
        ("crème brûlée", 1),
        ("CAFÉ", 1),
        ("οδυσσεύσ", 1),
        ("мягкиХ", 1),
        ("ծնված", 0),
        ("ԾՆվում", 1),
        ("თავისუფალი", 1),
        ("ꮒꭶꮣ ᎠᏂᏴᏫ", 1),
        ("𐐼𐐇𐑅", 1),
        ("𞤀𞤁𞤂𞤀𞤃", 1),
        ("iğne", 1),
        ("ılık", 0),
        ("fullWIDTH", 0),
        ("ｆｕｌｌｗＩＤＴＨ ｆ", 1),
        ("300 k", 1),
        ("5 å", 1),
        ("sein", 1),
        ("fine", 0),
        ("ﬁNE", 1),
        ("đường ĐI", 1),
        ("kůň", 1),
        ("e\u{301} É É", 1),
        // The title holds the text.
        ("τέλος", SENTENCES.len()),
        ("50% _", SENTENCES.len()),
        ("50%_", 0),
    ] {
        assert_eq!(agree(&database, &[asking(text)]), [count], "{text}");
    }
}

#[test]
fn wildcards_stand_for_themselves() {
    let texts = [
        "ERR_AUTH_FAILED",
        "ERR-AUTH-FAILED",
        "err auth failed",
        "err_auth_failed!",
        "100%",
        "100 %",
        "1000",
        "user_id",
        "userid",
        "user-id",
        "__init__",
        "init",
        "a%b_c",
        "axxbxc",
        "%",
        "_",
    ];
    let messages = texts.map(Message::stored);
    let database = Database::of(Schema::Untyped, &["Colours".into()], &messages);
    let requests = ["ERR_AUTH_FAILED", "100%", "USER_ID", "__init__", "A%B_C", "%", "_", "%%", ""];
    assert_eq!(agree(&database, &requests.map(asking)), [2, 1, 1, 1, 1, 4, 6, 0, texts.len()]);
    let sensitive =
        ["ERR_AUTH_FAILED", "USER_ID"].map(|text| Request { case_sensitive: true, ..asking(text) });
    assert_eq!(agree(&database, &sensitive), [1, 0]);
}

#[test]
fn values_of_every_type() {
    let cells = [
        Cell::Null,
        Cell::Integer(42),
        Cell::Real(1.5),
        Cell::Blob(b"RED blob".to_vec()),
        Cell::Blob(vec![0xFF, b'r', b'e', b'd']),
        Cell::Text(b"x\0hidden red".to_vec()),
        Cell::Text(b"\xC3red\xE6\x97".to_vec()),
    ];
    let messages: Vec<Message> = (0..)
        .zip(cells)
        .map(|(n, cell)| Message { conversation: n % 3, ..Message::stored(cell) })
        .collect();
    let titles = [Cell::Null, Cell::Blob(b"a \xFF title".to_vec()), Cell::Text(b"x\0Y".to_vec())];
    for schema in [Schema::Typed, Schema::Untyped, Schema::WithoutPositions] {
        let database = Database::of(schema, &titles, &messages);
        let requests = ["red", "42", "1.5", "HIDDEN", "\u{FFFD}R", "\u{FFFD} title", "y"];
        assert_eq!(agree(&database, &requests.map(asking)), [4, 1, 1, 1, 2, 2, 2]);
    }
}

/// Only the shown text is matched; of JSON, only the text that it holds.
#[test]
fn parts_are_matched_by_their_text() {
    let parts = |parts: &[Option<&str>]| {
        let parts = parts.iter().map(|part| part.map(str::to_owned)).collect();
        Message::of(Content::Parts(parts))
    };
    let messages = [
        parts(&[Some("a \"Quoted\" line"), Some("AND é")]),
        parts(&[None, Some("a picture"), Some("text")]),
        Message::stored("plain [\"quoted\"]"),
    ];
    let database = Database::of(Schema::Typed, &["Parts".into()], &messages);
    let texts = ["\"QUOTED\"", "\\\"quoted", "[", "image", "line\nand É", "text"];
    assert_eq!(agree(&database, &texts.map(asking)), [2, 0, 1, 0, 1, 1]);
    let raw = texts.map(|text| Request { raw_content: true, ..asking(text) });
    assert_eq!(agree(&database, &raw), [1, 1, 3, 1, 0, 1]);
}
