//! Makes the summary and the title of a conversation: the first sentences of what the person wrote first.
//!
//! Code, data, markup and greetings are left out. Sentences end where Unicode's rules say.

use unicode_segmentation::UnicodeSegmentation;

use super::{up_to, words::Tokenizer};

const MAX_CHARACTERS: usize = 300;

const MAX_TITLE: usize = 70;

/// The number of messages at the start of a conversation of which the first one that says something is taken.
pub const TURNS: usize = 8;

/// The number of bytes that are read of each message.
pub const BYTES_READ: usize = 2_000;

/// The weight of a term that occurs in the summary and not in the title.
pub const SUMMARY_WEIGHT: f32 = 0.8;

const GREETING_WORDS: &str = "hi hello hey there dear thanks thank you so much very sure \
    certainly absolutely of course great good question morning evening afternoon day ok okay yes no welcome \
    youre please sorry got it perfect awesome nice cool hallo danke bonjour merci hola \
    gracias 你好 您好 谢谢";

/// The summary of a conversation, and a title for a conversation without one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The first sentence, cut to 70 characters.
    pub title: String,
    /// The first sentences, at most 300 characters.
    pub text: String,
}

impl Summary {
    /// Makes the summary of a conversation. `messages` are the roles and texts of its first messages in reading
    /// order. The summary is empty if they have only code, data and greetings.
    pub fn of_messages(messages: &[(&str, &str)]) -> Summary {
        // Tool outputs and system messages are left out, because they seldom state the topic of a conversation.
        let by_person =
            messages.iter().filter(|(role, _)| !["assistant", "tool", "system"].contains(role));
        let by_assistant = messages.iter().filter(|(role, _)| *role == "assistant");
        let first = by_person
            .chain(by_assistant)
            .map(|(_, text)| sentences(text))
            .find(|sentences| !sentences.is_empty());
        let sentences = first.unwrap_or_default();
        let title = truncate(sentences.first().map_or("", String::as_str), MAX_TITLE);
        let mut text = String::new();
        for sentence in sentences {
            if text.is_empty() {
                text = truncate(&sentence, MAX_CHARACTERS);
                continue;
            }
            if text.chars().count() + 1 + sentence.chars().count() > MAX_CHARACTERS {
                break;
            }
            if !text.ends_with(['。', '！', '？']) {
                text.push(' ');
            }
            text.push_str(&sentence);
        }
        Summary { title: title.trim_end_matches(['.', '。', ' ', ':', '：']).to_owned(), text }
    }
}

/// Returns the hash of a term of a title or a summary.
pub fn term_hash(term: &str) -> u32 {
    crc32fast::hash(term.as_bytes())
}

/// Returns the hashes of the terms of a title or a summary.
pub fn term_hashes(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    tokenizer.question(text).iter().map(|term| term_hash(term)).collect()
}

/// Cuts a long text at the end of a word and adds an ellipsis.
fn truncate(text: &str, most: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most) else { return text.to_owned() };
    let (last, _) = text.char_indices().nth(most - 1).unwrap_or((end, ' '));
    let head = &text[..last];
    let head = match head.rfind(char::is_whitespace) {
        Some(space) if space > head.len() / 2 => &head[..space],
        _ => head,
    };
    format!("{}…", head.trim_end_matches([' ', ',', ';', '，', '、']))
}

/// Returns the sentences of a text that are worth showing.
fn sentences(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for block in prose(up_to(text, BYTES_READ)) {
        let plain = block.unicode_sentences().filter_map(plain_sentence);
        all.extend(plain.filter(|sentence| says_something(sentence)));
    }
    all
}

fn prose(text: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim();
        let marker = ["```", "~~~"].into_iter().find(|marker| trimmed.starts_with(marker));
        match (fence, marker) {
            (None, Some(marker)) => fence = Some(marker),
            (Some(open), Some(marker)) if open == marker => fence = None,
            _ => {}
        }
        let is_listed = without_bullet(trimmed).len() < trimmed.len();
        if fence.is_some() || marker.is_some() || trimmed.is_empty() || !is_prose(line, trimmed) {
            blocks.push(String::new());
            continue;
        }
        let is_alone = is_listed || trimmed.starts_with('#');
        if is_alone {
            blocks.push(String::new());
        }
        let block = blocks.last_mut().expect("one at the least");
        if !block.is_empty() {
            block.push(' ');
        }
        block.push_str(without_bullet(trimmed));
        if is_alone {
            blocks.push(String::new());
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

fn is_prose(line: &str, trimmed: &str) -> bool {
    const CODE: [&str; 24] = [
        "at ",
        "File \"",
        "Traceback",
        "$ ",
        "> ",
        ">>>",
        "//",
        "/*",
        "* @",
        "#include",
        "#!",
        "import ",
        "from ",
        "def ",
        "fn ",
        "let ",
        "const ",
        "var ",
        "return ",
        "SELECT ",
        "diff ",
        "@@",
        "|",
        "<",
    ];
    let begins_like_code = CODE.iter().any(|start| trimmed.starts_with(start));
    let ends_like_code = trimmed.ends_with(['{', '}', ';', '\\', '[', '|', '>']);
    let is_indented = line.starts_with("    ") || line.starts_with('\t');
    // A sentence may begin with "from" or "let" or end with a bracket, but it has few symbols.
    let is_wordy = trimmed.ends_with(['.', '!', '?', '。', '！', '？']) && symbols(trimmed) < 0.04;
    let is_code = begins_like_code || ends_like_code || (is_indented && symbols(trimmed) > 0.03);
    let is_log = trimmed.starts_with(|c: char| c.is_ascii_digit() || c == '[')
        && ["ERROR", "WARN", "INFO", "DEBUG", "TRACE"].iter().any(|level| trimmed.contains(level));
    (!is_code || is_wordy) && !is_log && symbols(trimmed) < 0.1
}

fn symbols(text: &str) -> f32 {
    /// Whether each ASCII character is rare in prose.
    const ODD: [bool; 128] = {
        let mut odd = [false; 128];
        let mut at = 0;
        let characters = b"{}[]()<>=;|\\/_$#@&^~`+*%\"";
        while at < characters.len() {
            odd[characters[at] as usize] = true;
            at += 1;
        }
        odd
    };

    let odd = text.bytes().filter(|byte| ODD.get(usize::from(*byte)) == Some(&true)).count();
    odd as f32 / text.chars().count().max(1) as f32
}

/// Returns a line without the bullet or number of a list item, or the `#` of a heading.
fn without_bullet(line: &str) -> &str {
    let bare = line.trim_start_matches(['#', '-', '*', '•', '+', '>']);
    if bare.len() < line.len() && bare.starts_with(char::is_whitespace) {
        return bare.trim_start();
    }
    let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = digits.len() < line.len() && line.len() - digits.len() <= 3;
    match digits.strip_prefix(['.', ')']) {
        Some(rest) if is_number && rest.starts_with(' ') => rest.trim_start(),
        _ => line,
    }
}

/// Returns a sentence on one line, without Markdown's emphasis and without a leading greeting; `None` if the
/// rest is empty.
fn plain_sentence(sentence: &str) -> Option<String> {
    let text: String = sentence.replace("**", "").replace('`', "");
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let text = words.join(" ");
    let text = match text.split_once([',', '!', '，', '！']) {
        Some((head, rest)) if is_greeting(head) && !rest.trim().is_empty() => rest.trim(),
        _ => text.as_str(),
    };
    (!text.is_empty()).then(|| text.to_owned())
}

fn is_greeting(text: &str) -> bool {
    text.split_whitespace().all(|word| {
        let letters = word.chars().filter(|c| c.is_alphanumeric());
        let bare: String = letters.flat_map(char::to_lowercase).collect();
        bare.is_empty() || GREETING_WORDS.split_whitespace().any(|known| known == bare)
    })
}

/// Returns whether a sentence is worth showing: it is long enough, mostly letters, and no greeting.
fn says_something(text: &str) -> bool {
    let characters = text.chars().count();
    let letters = text.chars().filter(|c| c.is_alphabetic() || c.is_whitespace()).count();
    let is_cjk = text.chars().filter(|c| is_cjk(*c)).count() * 2 > characters;
    let words = text.split(' ').count();
    let is_long = if is_cjk { characters >= 8 } else { characters >= 20 && words >= 4 };
    // Words with more than 40 characters are usually base64, paths or addresses.
    let is_wordy = is_cjk || text.split(' ').all(|word| word.chars().count() <= 40);
    is_long
        && is_wordy
        && !is_greeting(text)
        && letters * 10 >= characters * 8
        && symbols(text) < 0.06
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of_prompt(text: &str) -> Summary {
        Summary::of_messages(&[("user", text)])
    }

    #[test]
    fn a_summary_is_what_the_person_wrote_first() {
        let prompt = "Hi! My **sourdough bread** comes out of the oven flat and dense, what can I do?\n\
                      ```python\nprint('bread')\n```\n\
                      - I feed the starter only once a week. Thanks!";
        let answer = "A flat loaf usually means that the dough was proofed too long.";
        let messages = [
            ("system", "You are a helpful assistant for all bakers."),
            ("assistant", answer),
            ("user", "Thanks so much!"),
            ("user", prompt),
            ("user", "And how hot does the oven have to be?"),
        ];
        let summary = Summary::of_messages(&messages);
        assert_eq!(
            summary.text,
            "My sourdough bread comes out of the oven flat and dense, what can I do? \
             I feed the starter only once a week."
        );
        assert_eq!(
            summary.title,
            "My sourdough bread comes out of the oven flat and dense, what can I…"
        );
        assert_eq!(Summary::of_messages(&messages[..3]).text, answer);
        assert_eq!(Summary::of_messages(&messages[..1]), Summary::default());
    }

    #[test]
    fn a_long_prompt_is_cut_after_a_sentence() {
        let sentence = "This sentence has some sixty characters and says very little. ";
        assert_eq!(of_prompt(&sentence.repeat(9)).text, sentence.repeat(4).trim_end());
        let long = of_prompt(&"word and ".repeat(90)).text;
        assert!(long.ends_with('…') && (250..=300).contains(&long.chars().count()), "{long}");
    }

    #[test]
    fn code_and_data_are_not_summed_up() {
        let texts = [
            "```rust\nfn main() { println!(\"hello, dear world of code\"); }\n```",
            "{\"name\": \"a value\", \"list\": [1, 2, 3], \"other\": {\"more\": true}}",
            "Traceback (most recent call last):\n  File \"main.py\", line 3, in <module>\n    main()",
            "2024-05-01 12:00:00 ERROR could not connect to the database because it is down",
            "    at com.example.Main.run(Main.java:15)\n    at java.base/java.lang.Thread.run(Thread.java:1)",
            "SELECT name, count(*) FROM messages WHERE role = 'user' GROUP BY name;",
            "| name | value |\n|------|-------|\n| one thing | another thing here |",
            "<div class=\"box\"><p>some words in a page of the web</p></div>",
            "Hello! Thanks so much!",
            "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQgaGVsbG8gd29ybGQ= is not a word",
            "",
        ];
        for text in texts {
            assert_eq!(of_prompt(text), Summary::default(), "{text}");
        }
    }

    #[test]
    fn other_languages_have_sentences_too() {
        let chinese = "你好！我想学习如何用烤箱做面包。面包总是太硬，应该怎么办呢？";
        let summary = of_prompt(chinese);
        assert_eq!(summary.title, "我想学习如何用烤箱做面包");
        assert_eq!(summary.text, "我想学习如何用烤箱做面包。面包总是太硬，应该怎么办呢？");
        let russian = "Как правильно печь хлеб дома, чтобы он был мягким?";
        assert_eq!(of_prompt(russian).text, russian);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]
        #[test]
        fn a_summary_is_short_and_on_one_line(
            texts in prop::collection::vec("(\\PC|\n|[a-z]{1,9}|[ .,。!?]){0,120}", 0..6)
        ) {
            let messages: Vec<(&str, &str)> =
                texts.iter().map(|text| ("user", text.as_str())).collect();
            let Summary { title, text } = Summary::of_messages(&messages);
            prop_assert!(text.chars().count() <= MAX_CHARACTERS, "{}", text);
            prop_assert!(title.chars().count() <= MAX_TITLE);
            prop_assert!(!text.contains(|c: char| c.is_control()));
        }
    }
}
