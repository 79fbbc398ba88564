//! The pictures of the page in `docs/`: views of made-up chats in a real browser.

use std::{fs, path::Path, process::Command};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use crate::browser;

/// The largest picture in bytes.
const MOST_BYTES: usize = 220_000;

/// The first messages of the conversation that the pictures show.
const SHOWN: [(&str, &str); 6] = [
    (
        "user",
        "Why does the borrow checker refuse to push onto a vector while I hold a reference to its first word? It is only a read.",
    ),
    (
        "assistant",
        "A vector may move its buffer when it grows, and your reference would then point at freed memory. \
        The borrow checker sees two borrows that are alive at the same moment, one shared and one mutable.",
    ),
    ("user", "How do I keep words and tokens apart, so that the borrow checker is happy?"),
    (
        "assistant",
        "There are three ways to satisfy the borrow checker here, from the smallest change to the largest:\n\n\
        | A token holds | Size | Words can grow | What it asks of you |\n|---|--:|---|---|\n\
        | `&'a str` | 16 B | no | a lifetime in every signature |\n\
        | `Rc<str>` | 16 B | yes | counting, one allocation a word |\n\
        | `WordId(u32)` | 4 B | yes | pass the words where text is needed |\n\n\
        ```rust\nstruct Token {\n    word: usize, // a place in `words`\n    kind: Kind,\n}\n```\n\n\
        The third is what parsers do: positions stay true when a vector moves, references do not.",
    ),
    ("user", "Does the borrow checker look into closures as well?"),
    ("assistant", "Yes. A closure borrows what it names, for as long as the closure lives."),
];

/// Titles and sentences of the other conversations.
const TITLES: [&str; 12] = [
    "Sourdough in a cold kitchen",
    "Postgres or SQLite?",
    "Rust lifetimes",
    "How CRDTs merge",
    "Letters to the landlord",
    "Reading slowly",
    "Regular expressions that hang",
    "Unit tests for a parser",
    "Why is my grid wider than the page?",
    "Backups that restore",
    "The last tram home",
    "A plan for the garden",
];
const SENTENCES: [&str; 7] = [
    "The borrow checker only asks who holds it, and for how long.",
    "Think of a list that grows as a list with one owner.",
    "Start with the smallest thing that can be wrong.",
    "Measure before you change it: the second number is the one that matters.",
    "A lock that nobody waits for costs twenty nanoseconds.",
    "Rest the dough for four hours at 24 degrees.",
    "Write the date beside it, or nobody will know in a year.",
];

/// Returns a conversation of an export of ChatGPT.
fn chat(id: &str, title: &str, begun: u64, model: &str, messages: &[(&str, String)]) -> Value {
    let node = |(at, (role, text)): (usize, &(&str, String))| {
        let parent = at.checked_sub(1).map(|before| format!("{id}-{before}"));
        let message = json!({"author": {"role": role}, "create_time": begun + 70 * at as u64,
            "content": {"content_type": "text", "parts": [text]}, "metadata": {"model_slug": model}});
        (format!("{id}-{at}"), json!({"parent": parent, "children": [], "message": message}))
    };
    let mapping: serde_json::Map<_, _> = messages.iter().enumerate().map(node).collect();
    json!({"id": id, "title": title, "create_time": begun, "update_time": begun + 70 * messages.len() as u64,
        "current_node": format!("{id}-{}", messages.len() - 1), "mapping": mapping})
}

/// Imports some 200 conversations of three years.
fn fill(databases: &Path) {
    const FIRST: u64 = 1_672_617_600;
    let home = databases.parent().expect("a home");
    let shown: Vec<(&str, String)> = SHOWN.map(|(role, text)| (role, text.to_owned())).into();
    let mut chats = vec![chat(
        "6a41f0c2",
        "Borrow checker and a vector",
        FIRST + 1_000 * 86_400,
        "gpt-5",
        &shown,
    )];
    let mut state: u64 = 1;
    let mut next = |most: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    for number in 0..200 {
        let mut say = || (0..1 + next(3)).map(|_| SENTENCES[next(7)]).collect::<Vec<_>>().join(" ");
        let messages: Vec<(&str, String)> =
            (0..2 + 2 * (number % 5)).map(|at| (["user", "assistant"][at % 2], say())).collect();
        let day = next(990) as u64;
        let hour = [8, 9, 10, 11, 14, 15, 16, 20, 21][next(9)];
        let model = ["gpt-4o", "gpt-5", "o3"][next(3)];
        let id = format!("{:08x}", 0x1000_0000 + number * 7_919_123);
        chats.push(chat(
            &id,
            TITLES[next(12)],
            FIRST + day * 86_400 + hour * 3_600,
            model,
            &messages,
        ));
    }
    let path = home.join("conversations.json");
    fs::write(&path, Value::from(chats).to_string()).expect("it can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_verbatim"));
    command.env_clear().env("HOME", home).args(["--no-archive", "--home"]).arg(home);
    let done = command.arg("import").arg(&path).output().expect("the program starts");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

#[test]
#[ignore = "makes the pictures in docs/; UPDATE=1 keeps them"]
fn pictures_of_the_page() {
    let Some((browser, site)) = browser::start(fill) else { return };
    let counted = "document.querySelector('#hist svg') && document.querySelector('#peek article')";
    for (name, path, theme, ready) in [
        ("search", "/?q=borrow+checker", "light", counted),
        (
            "conversation",
            "/c/6a41f0c2/4?q=borrow+checker#m4",
            "dark",
            "document.querySelector('mark.now')",
        ),
        ("statistics", "/stats", "light", "document.querySelector('.heat')"),
    ] {
        browser.look(1400, theme);
        browser.chromium("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
        // The time of a search is that of a server which has begun to work.
        for _ in 0..3 {
            browser.open(&format!("{}{path}", site.address));
        }
        browser.wait(&format!("document.readyState === 'complete' && {ready}"));
        let picture = BASE64_STANDARD.decode(browser.picture()).expect("a picture");
        assert!(picture.len() < MOST_BYTES, "{name}: {} bytes", picture.len());
        if std::env::var_os("UPDATE").is_some() {
            let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
            fs::write(docs.join(format!("page-{name}.png")), picture).expect("it can be written");
        }
    }
    browser.assert_sound(&site);
}
