//! All text of a database in memory, for sampling and counting literals.

use std::path::Path;

use anyhow::Result;
use memchr::memmem::Finder;
use rusqlite::{Connection, OpenFlags};

use crate::corpus::random::Random;

/// The texts of many messages (or titles), one after another.
#[derive(Default)]
pub(crate) struct Haystack {
    text: String,
    /// `text` in ASCII lower case.
    lower: Vec<u8>,
    /// Where each text begins, and where the last one ends.
    starts: Vec<usize>,
}

/// The texts, titles and times that literals are sampled from.
pub(crate) struct Source {
    pub(crate) messages: Haystack,
    pub(crate) titles: Haystack,
    /// Creation times, the newest first.
    pub(crate) times: Vec<String>,
}

impl Source {
    pub(crate) fn read(database: &Path) -> Result<Source> {
        let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        let mut messages = Haystack::default();
        let mut times = Vec::new();
        let mut select = connection.prepare(
            "SELECT CAST(m.content AS TEXT), CAST(m.create_time AS TEXT)
             FROM messages m JOIN conversations c ON c.id = m.conversation_id ORDER BY m.rowid",
        )?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            messages.push(&text(row.get_ref(0)?));
            times.push(text(row.get_ref(1)?).into_owned());
        }
        let mut titles = Haystack::default();
        let mut select = connection.prepare("SELECT CAST(title AS TEXT) FROM conversations")?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            titles.push(&text(row.get_ref(0)?));
        }
        times.sort_unstable_by(|one, other| other.cmp(one));
        messages.seal();
        titles.seal();
        Ok(Source { messages, titles, times })
    }
}

fn text(value: rusqlite::types::ValueRef<'_>) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(value.as_bytes_or_null().ok().flatten().unwrap_or_default())
}

impl Haystack {
    fn push(&mut self, text: &str) {
        self.starts.push(self.text.len());
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn seal(&mut self) {
        self.lower = self.text.to_ascii_lowercase().into_bytes();
        self.starts.push(self.text.len());
    }

    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Returns how many bytes of text there are.
    pub(crate) fn bytes(&self) -> usize {
        self.text.len() - self.len()
    }

    pub(crate) fn get(&self, at: usize) -> &str {
        &self.text[self.starts[at]..self.starts[at + 1] - 1]
    }

    pub(crate) fn any(&self, random: &mut Random) -> &str {
        self.get(random.below(self.len()))
    }

    /// Returns the text with the byte at this place of all texts.
    pub(crate) fn around(&self, place: usize) -> &str {
        self.get(self.starts.partition_point(|&start| start <= place) - 1)
    }

    /// Returns `count` of the texts, evenly spread.
    pub(crate) fn sample(&self, count: usize) -> Haystack {
        let mut sample = Haystack::default();
        for at in (0..self.len()).step_by((self.len() / count).max(1)) {
            sample.push(self.get(at));
        }
        sample.seal();
        sample
    }

    /// Returns how many texts hold `literal` in any ASCII case; stops counting at `most`.
    ///
    /// The literal has no wildcards and no line break, so that a match
    /// is always within one text.
    pub(crate) fn count(&self, literal: &str, most: usize) -> usize {
        let needle = literal.to_ascii_lowercase();
        let finder = Finder::new(needle.as_bytes());
        let (mut count, mut from) = (0, 0);
        while let Some(at) = finder.find(&self.lower[from..]) {
            count += 1;
            if count >= most {
                break;
            }
            from = self.starts[self.starts.partition_point(|&start| start <= from + at)];
        }
        count
    }

    /// Returns the share of texts that hold `literal` in any ASCII case.
    pub(crate) fn share(&self, literal: &str) -> f64 {
        self.count(literal, usize::MAX) as f64 / self.len() as f64
    }

    /// Returns, for each of the codes that `codes` gives for two neighbouring bytes, in how many texts it occurs.
    pub(crate) fn count_pairs(
        &self,
        kinds: usize,
        code: impl Fn(u8, u8) -> Option<usize>,
    ) -> Vec<usize> {
        let mut counts = vec![0; kinds];
        let mut last_text = vec![usize::MAX; kinds];
        for at in 0..self.len() {
            for pair in self.lower[self.starts[at]..self.starts[at + 1]].windows(2) {
                if let Some(code) = code(pair[0], pair[1])
                    && last_text[code] != at
                {
                    last_text[code] = at;
                    counts[code] += 1;
                }
            }
        }
        counts
    }
}
