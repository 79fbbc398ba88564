//! Exact search by regular expressions, for whole words, without accents, and for several texts.
//!
//! The oracle lists the messages; slow definitions tell which of them have a text.

use std::ops::ControlFlow;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};
use unicode_segmentation::UnicodeSegmentation;
use verbatim_base::call::Call;
use verbatim_base::model::{Hit, Matching, Request};
use verbatim_engine::{Rendered, SearchPlan};
use verbatim_text::matcher::Matchers;

use crate::database::{Cell, Content, Database, Message, Schema};
use crate::generated::{Ask, ask, rows};
use crate::oracle::Oracle;
use crate::{config, hits, subjects_of, suite};

/// Sentences with words, accents, widths and numbers in many scripts.
const SENTENCES: &[&str] = &[
    "The café's naïve résumé: CAFE\u{301} cafe, cafes; déjà vu (deja vu).",
    "Error 404: user_id=17 not found at 10.0.0.1:8080\nretry in 250 ms\r\nERROR 500",
    "カタカナ ｶﾀｶﾅ ガギグ ｶﾞｷﾞｸﾞ テスト ﾃｽﾄ, full ｗｉｄｔｈ １２３ 123",
    "한국어 검색 한국어 각 각",
    "Đường đi Hà Nội, Žluťoučký kůň, Ångström, ﬁne oﬃce, x² + ½",
    "it's don't DON'T can't. The U.S.A. is 3.14 e.g. foo.bar foo-bar foo_bar",
    "Съешь ещё этих, ещё раз: Ёлка ёлка елка. йод иод",
    "हिन्दी में खोज। ไทยภาษา שָׁלוֹם שלום مُحَمَّد محمد",
    "日本語の全文検索、部分一致。「東京」と京都",
    "😀 👩\u{200D}💻 🇩🇪🇫🇷 e\u{301}e\u{302} aa aaa aaaa",
    "“Won’t”, ‘won‘t’ \"won't\" a–b a—b a-b a\u{2011}b co\u{AD}op\u{200B} coop Straße STRASSE œuvre Æ ae 5′3″ ŉ",
    "t 't t' d't t.t a:t t,1 1,1 1.t t_ _ 1_1 t\u{301} \u{301}t t\u{AD}t\u{200D}t\r\nt\r\n\nt",
    "t😀t 🇩🇪t tשt't ש't tカ カ_ｶt ①t ſ K\u{212A} ß ё'ё éé ж.ж 글t 글.글 あt日t t\u{345} \u{345}t",
];

/// Pieces of regular expressions that go between or behind pieces of texts.
const OPERATORS: &[&str] = &[
    ".",
    ".*",
    ".+?",
    "?",
    "*",
    "+",
    "{2}",
    "{1,3}",
    r"\w",
    r"\w+",
    r"\d+",
    r"\s*",
    "[a-z]",
    "[éeE]",
    "[^x]",
    r"\b",
    "^",
    "$",
    "|",
    "(?:the|a|日)",
    r"\pL",
    "(?i)",
    "(?s).*",
    r"\B",
    "x?",
];

/// A description of a text of a request that is made from the texts of a database.
#[derive(Clone, Debug)]
struct Piece {
    which: Index,
    start: Index,
    length: usize,
    /// The operators to insert, and their places.
    operators: Vec<(Index, &'static str)>,
    change: usize,
}

fn piece() -> impl Strategy<Value = Piece> {
    let operators = vec((any::<Index>(), select(OPERATORS)), 0..4);
    (any::<Index>(), any::<Index>(), 1..14usize, operators, 0..6usize).prop_map(
        |(which, start, length, operators, change)| Piece {
            which,
            start,
            length,
            operators,
            change,
        },
    )
}

impl Piece {
    fn characters(&self, texts: &[String]) -> Vec<char> {
        let text = self.which.get(texts).replace('\0', "");
        let text: String = match self.change {
            0 => text.to_uppercase(),
            1 => text.nfd().collect(),
            2 => text.nfkc().collect(),
            3 => without_accents(&text),
            _ => text,
        };
        let text: Vec<char> = text.chars().collect();
        let start = if text.is_empty() { 0 } else { self.start.index(text.len()) };
        text.into_iter().skip(start).take(self.length).collect()
    }

    fn plain(&self, texts: &[String]) -> String {
        let text: String = self.characters(texts).into_iter().collect();
        text.trim().to_owned()
    }

    /// Returns whole words of a text; sometimes a little more or less.
    fn words(&self, texts: &[String]) -> String {
        let text = self.which.get(texts).replace('\0', "");
        let words: Vec<&str> = text.split_word_bounds().collect();
        let start = if words.is_empty() { 0 } else { self.start.index(words.len()) };
        let mut words = words[start..(start + 1 + self.length % 3).min(words.len())].concat();
        if self.change == 0 {
            words = words.to_uppercase();
        } else if self.change == 1 {
            words.pop();
        } else if self.change == 2 {
            words = self.characters(texts).into_iter().take(1 + self.length % 3).collect();
        }
        words.trim().to_owned()
    }

    /// Returns an expression that matches a piece of a text; sometimes nearly.
    fn expression(&self, texts: &[String]) -> String {
        let mut parts: Vec<String> =
            self.characters(texts).iter().map(|c| regex::escape(&c.to_string())).collect();
        for (at, operator) in &self.operators {
            let at = at.index(parts.len() + 1);
            parts.insert(at, (*operator).to_owned());
        }
        let expression = parts.concat();
        match regex::Regex::new(&expression) {
            Ok(_) => expression,
            Err(_) => regex::escape(&self.plain(texts)),
        }
    }
}

/// A request with several texts.
#[derive(Clone, Debug)]
struct Asked {
    ask: Ask,
    pieces: [Vec<Piece>; 4],
    case_sensitive: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    let few = || prop_oneof![3 => Just(Vec::new()), 1 => vec(piece(), 1..3)];
    let case_sensitive = prop::bool::weighted(0.3);
    (ask(), vec(piece(), 0..2), few(), few(), few(), case_sensitive).prop_map(
        |(ask, text, or, and, not, case_sensitive)| Asked {
            ask,
            pieces: [text, or, and, not],
            case_sensitive,
        },
    )
}

impl Asked {
    fn request(&self, texts: &[String], of: &dyn Fn(&Piece) -> String) -> Request {
        let [text, or, and, not] = self.pieces.clone().map(|pieces| -> Vec<String> {
            pieces.iter().map(of).filter(|text| !text.is_empty()).collect()
        });
        let text = text.into_iter().next().unwrap_or_default();
        let case_sensitive = self.case_sensitive;
        Request { text, or, and, not, case_sensitive, ..self.ask.request(texts) }
    }
}

/// The definition of the form without accents and width, with the signs of a keyboard.
fn without_accents(text: &str) -> String {
    const UNSEEN: [char; 5] = ['\u{AD}', '\u{200B}', '\u{200C}', '\u{200D}', '\u{FEFF}'];
    const SPELLED: [(char, &str); 6] =
        [('ß', "ss"), ('ẞ', "SS"), ('æ', "ae"), ('Æ', "AE"), ('œ', "oe"), ('Œ', "OE")];
    let mut form = String::new();
    for character in text.chars() {
        let is_joiner = character == '\u{200D}' && form.ends_with('👩');
        if UNSEEN.contains(&character) && !is_joiner {
            continue;
        }
        match SPELLED.iter().find(|(letter, _)| *letter == character) {
            Some((_, letters)) => form.push_str(letters),
            None => form.extend(typed(character).nfkd().filter(|c| !is_combining_mark(*c))),
        }
    }
    form.nfc().map(typed).collect()
}

fn typed(sign: char) -> char {
    match sign {
        '‘' | '’' | '‚' | '′' | 'ʼ' | '´' => '\'',
        '“' | '”' | '„' | '″' | '«' | '»' => '"',
        '‐' | '\u{2011}' | '–' | '—' | '−' => '-',
        other => other,
    }
}

/// Returns whether a text contains another one, by definition.
fn has(text: &str, wanted: &str, request: &Request) -> bool {
    let expression = |pattern: &str| {
        let mut builder = regex::RegexBuilder::new(pattern);
        let builder = builder.multi_line(true).case_insensitive(!request.case_sensitive);
        builder.build().expect("an expression")
    };
    match (request.matching, request.ignore_accents) {
        (Matching::Regex, _) => expression(wanted).is_match(text),
        (Matching::Literal, false) => expression(&regex::escape(wanted)).is_match(text),
        (Matching::Literal, true) => {
            let wanted = regex::escape(&without_accents(wanted));
            expression(&wanted).is_match(&without_accents(text))
        }
        (Matching::Word, false) => {
            let is_of_word = |character: char| expression(r"\w").is_match(&character.to_string());
            let is_bare = |character: char| {
                expression(r"\p{Thai}|\p{Han}|\p{Hiragana}").is_match(&character.to_string())
            };
            let is_katakana = |character: char| {
                expression("[\u{30A1}-\u{30FA}\u{30FC}-\u{30FF}\u{FF66}-\u{FF9F}]")
                    .is_match(&character.to_string())
            };
            let goes_on = |inside: Option<char>, outside: Option<char>| match inside.zip(outside) {
                Some((inside, outside)) if is_katakana(inside) => is_katakana(outside),
                Some((inside, outside)) => {
                    !is_bare(inside) && is_of_word(inside) && is_of_word(outside)
                }
                None => false,
            };
            let regex = expression(&format!(r"\A(?:{})", regex::escape(wanted)));
            let starts = text.char_indices().map(|(start, _)| start);
            starts.into_iter().any(|start| {
                let (before, rest) = text.split_at(start);
                let Some(found) = regex.find(rest).filter(|found| !found.is_empty()) else {
                    return false;
                };
                let after = rest[found.end()..].chars().next();
                let last = found.as_str().chars().next_back();
                !goes_on(rest.chars().next(), before.chars().next_back())
                    && !goes_on(last, after)
                    && !after.is_some_and(is_combining_mark)
            })
        }
        (Matching::Word, true) => {
            let single = Request {
                text: wanted.to_owned(),
                case_sensitive: request.case_sensitive,
                matching: Matching::Word,
                ignore_accents: true,
                ..Request::default()
            };
            Matchers::of(&single).expect("no expression").accept_text(text)
        }
        (Matching::Like, _) => unreachable!("SQLite tells"),
    }
}

/// Returns the messages that match a request.
fn matching(oracle: &Oracle, request: &Request) -> Vec<Hit<'static>> {
    let single = |text: &str| Request {
        text: text.to_owned(),
        or: Vec::new(),
        and: Vec::new(),
        not: Vec::new(),
        limit: None,
        ..request.clone()
    };
    let all = oracle.search(&single(""));
    let with = |text: &String| -> Vec<bool> {
        if request.matching == Matching::Like {
            let found = oracle.search(&single(text));
            return all.iter().map(|hit| found.contains(hit)).collect();
        }
        all.iter()
            .map(|hit| has(&hit.content, text, request) || has(&hit.title, text, request))
            .collect()
    };
    let any: Vec<_> = [&request.text]
        .into_iter()
        .chain(&request.or)
        .filter(|t| !t.is_empty())
        .map(with)
        .collect();
    let needed: Vec<_> = request.and.iter().map(with).collect();
    let unwanted: Vec<_> = request.not.iter().map(with).collect();
    let mut found: Vec<Hit<'static>> = (0..all.len())
        .filter(|place| any.is_empty() || any.iter().any(|has| has[*place]))
        .filter(|place| needed.iter().all(|has| has[*place]))
        .filter(|place| !unwanted.iter().any(|has| has[*place]))
        .map(|place| all[place].clone())
        .collect();
    found.truncate(request.limit.unwrap_or(usize::MAX));
    found
}

/// Asks every reader; all must answer as the oracle does. Returns the numbers of hits.
#[track_caller]
fn agree(database: &Database, requests: &[Request]) -> Vec<usize> {
    suite::agree(database, requests, matching)
}

/// Returns a database of generated rows and of sentences, and its texts.
fn database(
    mut rows: crate::generated::Rows,
    sentences: &[(usize, usize, usize)],
) -> (Database, Vec<String>) {
    let is_parts = rows.messages.iter().any(|message| matches!(message.content, Content::Parts(_)));
    for (sentence, change, time) in sentences {
        let text = match change {
            0 => SENTENCES[*sentence].to_uppercase(),
            1 => SENTENCES[*sentence].nfd().collect(),
            2 => without_accents(SENTENCES[*sentence]),
            _ => SENTENCES[*sentence].to_owned(),
        };
        let content = match is_parts {
            true => Content::Parts(vec![Some(text)]),
            false => Content::Stored(Cell::Text(text.into_bytes())),
        };
        let conversation = sentence % 3;
        rows.messages.push(Message { time: *time, conversation, ..Message::of(content) });
    }
    let texts = rows.texts();
    (rows.database(), texts)
}

fn sentences() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    vec((0..SENTENCES.len(), 0..6usize, 0..18usize), 1..30)
}

/// Requests of one database. 42 times as many cases are 20,000 requests for each way to match.
const REQUESTS: usize = 80;
const CASES: u32 = 6;

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn expressions_match(rows in rows(40), sentences in sentences(), asks in vec(asked(), REQUESTS)) {
        let (database, texts) = database(rows, &sentences);
        let requests: Vec<Request> = asks.iter().map(|ask| Request {
            matching: Matching::Regex,
            ..ask.request(&texts, &|piece| piece.expression(&texts))
        }).collect();
        let counts = agree(&database, &requests);
        prop_assert!(counts.iter().filter(|count| **count > 0).count() * 10 > counts.len());
    }

    #[test]
    fn words_match(rows in rows(40), sentences in sentences(), asks in vec(asked(), REQUESTS)) {
        let (database, texts) = database(rows, &sentences);
        let requests: Vec<Request> = asks.iter().map(|ask| Request {
            matching: Matching::Word,
            ..ask.request(&texts, &|piece| piece.words(&texts))
        }).collect();
        let counts = agree(&database, &requests);
        prop_assert!(counts.iter().filter(|count| **count > 0).count() * 10 > counts.len());
    }

    #[test]
    fn texts_match_without_accents(
        rows in rows(40),
        sentences in sentences(),
        asks in vec((asked(), any::<bool>()), REQUESTS),
    ) {
        let (database, texts) = database(rows, &sentences);
        let has_text = |text: String| {
            if without_accents(&text).is_empty() { String::new() } else { text }
        };
        let requests: Vec<Request> = asks.iter().map(|(ask, is_word)| match is_word {
            true => Request {
                matching: Matching::Word,
                ignore_accents: true,
                ..ask.request(&texts, &|piece| has_text(piece.words(&texts)))
            },
            false => Request {
                matching: Matching::Literal,
                ignore_accents: true,
                ..ask.request(&texts, &|piece| has_text(piece.plain(&texts)))
            },
        }).collect();
        let counts = agree(&database, &requests);
        prop_assert!(counts.iter().filter(|count| **count > 0).count() * 10 > counts.len());
    }

    #[test]
    fn several_texts_match(
        rows in rows(40),
        sentences in sentences(),
        asks in vec((asked(), any::<bool>()), REQUESTS),
    ) {
        let (database, texts) = database(rows, &sentences);
        let requests: Vec<Request> = asks.iter().map(|(ask, is_like)| Request {
            matching: if *is_like { Matching::Like } else { Matching::Literal },
            ..ask.request(&texts, &|piece| piece.plain(&texts))
        }).collect();
        let counts = agree(&database, &requests);
        prop_assert!(counts.iter().filter(|count| **count > 0).count() * 10 > counts.len());
    }
}

/// A description of a text of a request: a part of a long text, perhaps changed, and another text.
#[derive(Clone, Debug)]
struct LongAsk {
    which: Index,
    starts: [Index; 2],
    length: usize,
    change: usize,
    between: Option<&'static str>,
    mode: usize,
}

fn long_ask() -> impl Strategy<Value = LongAsk> {
    let starts = [any::<Index>(), any::<Index>()];
    let length = prop_oneof![2 => 1..6usize, 3 => 3..20usize, 1 => 60..300usize];
    let between = prop_oneof![
        3 => Just(None),
        2 => select(&["%", "_", "", "%_%"][..]).prop_map(Some)
    ];
    (any::<Index>(), starts, length, 0..8usize, between, 0..8usize).prop_map(
        |(which, starts, length, change, between, mode)| LongAsk {
            which,
            starts,
            length,
            change,
            between,
            mode,
        },
    )
}

impl LongAsk {
    fn text(&self, texts: &[String]) -> String {
        let text: Vec<char> = self.which.get(texts).chars().collect();
        let part = |start: Index| -> String {
            text[start.index(text.len())..].iter().take(self.length).collect()
        };
        let first = match self.change {
            0 => part(self.starts[0]).to_uppercase(),
            1 => part(self.starts[0]).to_lowercase(),
            2 => without_accents(&part(self.starts[0])),
            _ => part(self.starts[0]),
        };
        let text = match self.between {
            Some(between) => first + between + &part(self.starts[1]),
            None => first,
        };
        text.trim().to_owned()
    }

    fn request(&self, texts: &[String]) -> Request {
        let text = self.text(texts);
        let (matching, case_sensitive, ignore_accents) = match self.mode {
            0 => (Matching::Literal, false, false),
            1 => (Matching::Literal, true, false),
            2 => (Matching::Literal, false, !without_accents(&text).is_empty()),
            3 => (Matching::Word, false, false),
            4 => (Matching::Regex, false, false),
            5 => (Matching::Like, true, false),
            _ => (Matching::Like, false, false),
        };
        let text = if self.mode == 4 { regex::escape(&text).replace('%', ".") } else { text };
        Request { text, matching, case_sensitive, ignore_accents, ..Request::default() }
    }
}

/// Returns a long text of parts of sentences, which does not repeat itself.
fn long_text((seed, parts): (u32, usize)) -> String {
    let mut state = seed;
    let mut random = |below: usize| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as usize % below
    };
    let mut text = String::new();
    for _ in 0..parts {
        let sentence = SENTENCES[random(SENTENCES.len())];
        let (skip, take) = (random(sentence.chars().count()), 1 + random(20));
        text.extend(sentence.chars().skip(skip).take(take));
    }
    text
}

proptest! {
    #![proptest_config(config(CASES))]

    #[test]
    fn long_messages_match(
        long in vec((any::<u32>(), 100..3_000usize), 2..6),
        sentences in sentences(),
        asks in vec(long_ask(), REQUESTS),
    ) {
        let texts: Vec<String> = long.into_iter().map(long_text).collect();
        let short = sentences.iter().map(|(sentence, ..)| SENTENCES[*sentence].to_owned());
        let messages: Vec<Message> = (texts.iter().cloned().chain(short))
            .map(|text| Message::stored(Cell::Text(text.into_bytes())))
            .collect();
        let database = Database::of(Schema::Typed, &["Notes".into()], &messages);
        let requests: Vec<Request> = asks.iter().map(|ask| ask.request(&texts)).collect();
        let counts = agree(&database, &requests);
        prop_assert!(counts.iter().filter(|count| **count > 0).count() * 4 > counts.len());
    }
}

fn asking(matching: Matching, text: &str) -> Request {
    Request { text: text.to_owned(), matching, ..Request::default() }
}

fn sentences_database() -> Database {
    let messages: Vec<Message> = SENTENCES.iter().map(|text| Message::stored(*text)).collect();
    Database::of(Schema::Typed, &["Notes on Zoë".into()], &messages)
}

#[test]
fn people_find_what_they_mean() {
    let database = sentences_database();
    let fold = |text| Request { ignore_accents: true, ..asking(Matching::Literal, text) };
    let words = |text| asking(Matching::Word, text);
    let regex = |text| asking(Matching::Regex, text);
    for (request, count) in [
        (fold("deja VU"), 1),
        (fold("テスト"), 1),
        (fold("width 123"), 1),
        (fold("елка"), 1),
        (fold("office"), 1),
        (fold("zoe"), SENTENCES.len()),
        (fold("한"), 1),
        (fold("하"), 0),
        (fold("\"WON'T\","), 1),
        (fold("won′t"), 1),
        (fold("a−b a"), 1),
        (fold("cooper"), 0),
        (fold("coop coop"), 1),
        (fold("Straße strasse"), 1),
        (fold("trassé ŒUVRE æ"), 1),
        (words("the"), 2),
        (words("foo"), 1),
        (words("caf"), 0),
        (words("京都"), 1),
        (words("don't"), 1),
        (regex(r"error \d{3}"), 1),
        (regex(r"^retry in \d+ ms$"), 0),
        (regex(r"^retry in \d+ ms\r$"), 1),
        (regex(r"\d+\.\d+\.\d+\.\d+:\d+"), 1),
        (regex("京都|東京|kůň"), 2),
        (regex("x*"), SENTENCES.len()),
        (regex(r"\bzoë\b"), SENTENCES.len()),
    ] {
        assert_eq!(agree(&database, std::slice::from_ref(&request)), [count], "{request:?}");
    }
    let strict = Request { case_sensitive: true, ..fold("Cafe") };
    assert_eq!(agree(&database, &[strict]), [0]);
}

/// An expression with literal text looks its grams up; one without reads every message.
#[test]
fn plans_say_whether_everything_was_read() {
    let database = sentences_database();
    let subjects = subjects_of(&database);
    let Some(subject) = subjects.iter().find(|it| it.name() == "IndexedReader") else { return };
    let reader = subject.open(&database);
    let trace = |request: &Request| match hits(&*reader, request).1 {
        SearchPlan::ByIndex { trace, .. } => trace,
        plan => panic!("{plan:?}"),
    };
    let looked_up = trace(&asking(Matching::Regex, r"user_\w+=\d+"));
    assert_eq!((looked_up.scan_threads, looked_up.candidates), (0, 1));
    assert!(looked_up.lists > 0);
    let scanned = trace(&asking(Matching::Regex, r"\d\d\d"));
    assert!(scanned.scan_threads > 0 && scanned.candidates == SENTENCES.len() as u64);
    let both = Request { and: vec!["naïve".to_owned()], ..asking(Matching::Literal, "deja") };
    assert_eq!(trace(&both).candidates, 1);
}

#[test]
fn a_stop_ends_every_way_to_match() {
    let database = sentences_database();
    let call = Call::default();
    call.stop.request();
    for subject in subjects_of(&database) {
        let reader = subject.open(&database);
        for text in [r"\d\d\d", "x*", "user_id", "no such text"] {
            let request = asking(Matching::Regex, text);
            let mut sink = Rendered::new(|_: Hit<'_>| Some(()), |()| ControlFlow::Continue(()));
            let outcome = reader.search(&request, &call, &mut sink);
            // A search that reads nothing may end before it checks the stop.
            let is_right = match outcome {
                Ok(_) => text == "no such text",
                Err(error) => error.is_stopped(),
            };
            assert!(is_right, "{}: {text}", subject.name());
        }
    }
}

#[test]
fn values_of_every_type() {
    let cells = [
        Cell::Null,
        Cell::Integer(42),
        Cell::Blob(vec![0xFF, b'r', b'e', b'd']),
        Cell::Text(b"x\0hidden r\xC3\xA9d".to_vec()),
        Cell::Text(b"".to_vec()),
    ];
    let messages: Vec<Message> = (0..)
        .zip(cells)
        .map(|(n, cell)| Message { conversation: n % 2, ..Message::stored(cell) })
        .collect();
    let database = Database::of(Schema::Untyped, &[Cell::Null, "a title".into()], &messages);
    let regex = ["^$", r"\d", "r.d", "hidden", r"\x00", "(?s)^.*$"];
    let requests = regex.map(|text| asking(Matching::Regex, text));
    agree(&database, &requests);
    let without = ["red", "%", "title"]
        .map(|text| Request { not: vec![text.to_owned()], ..asking(Matching::Like, "") });
    agree(&database, &without);
}
