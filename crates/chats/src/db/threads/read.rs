//! Reads turns of threads, lists of threads, and usage statistics.

use rusqlite::OptionalExtension;

use super::database::{Result, Threads};
use super::record::{IS_TURN, Thread, read_thread, select};
use crate::db::functions;
use verbatim_base::model::Instant;

const MOST_USERS: i64 = 200;

/// The maximum number of threads returned for one word in their topics.
const MOST_TITLED: i64 = 200;

const RECENT: i64 = 10;

/// One message of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// `user`, `assistant` or `system`.
    pub role: String,
    /// The text of the message.
    pub content: String,
    /// The time when the message was recorded.
    pub time: Option<Instant>,
}

/// Usage statistics of the threads.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Analytics {
    /// The number of recorded threads of all users.
    pub threads: u64,
    /// The number of messages in the recorded threads.
    pub messages: u64,
    /// The number of threads of each user, the highest number first.
    pub users: Vec<(String, u64)>,
    /// The latest topics without repeats, the latest first.
    pub topics: Vec<String>,
}

impl Threads {
    /// Returns the summary that was saved with a conversation.
    pub fn summary(&self, id: &str) -> Result<Option<String>> {
        let sql =
            format!("SELECT content FROM messages WHERE conversation_id = ?1 AND NOT ({IS_TURN})");
        self.query(|connection| connection.query_row(&sql, [id], |row| row.get(0)).optional())
    }

    /// Returns the latest messages of a thread in order, at most `limit`.
    pub fn latest(&self, id: &str, limit: usize) -> Result<Vec<Turn>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let mut turns = self.query(|connection| {
            let mut statement = connection.prepare_cached(&format!(
                "SELECT role, content, create_time FROM messages
                 WHERE conversation_id = ?1 AND {IS_TURN} ORDER BY position DESC LIMIT ?2",
            ))?;
            let turns = statement.query_map(rusqlite::params![id, limit], |row| {
                Ok(Turn {
                    role: row.get(0)?,
                    content: row.get(1)?,
                    time: functions::instant(row.get_ref(2)?),
                })
            })?;
            turns.collect::<Result<Vec<_>, _>>()
        })?;
        turns.reverse();
        Ok(turns)
    }

    /// Returns the thread whose id is `word`. If there is none, returns the threads whose ids begin with
    /// `word`, in either case of ASCII letters.
    pub fn find_by_id(&self, word: &str) -> Result<Vec<Thread>> {
        if let Some(one) = self.thread(word)? {
            return Ok(vec![one]);
        }
        let begins = "WHERE ?1 <> '' AND substr(c.id, 1, length(?1)) = lower(?1)";
        self.select(&select(&format!("{begins} ORDER BY c.id LIMIT 20")), [word])
    }

    /// Returns the thread that was saved under a key.
    pub fn keyed(&self, key: &str) -> Result<Option<Thread>> {
        Ok(self.select(&select("WHERE t.session_key = ?1"), [key])?.pop())
    }

    /// Returns the latest threads whose topics contain one of the words, in either case of ASCII letters.
    pub fn find_by_topic(&self, words: &[String]) -> Result<Vec<Thread>> {
        let mut found: Vec<Thread> = Vec::new();
        for word in words {
            let sql = format!(
                "WHERE instr(lower(c.title), lower(?1)) > 0
                 ORDER BY CAST(c.update_time AS REAL) DESC, c.rowid DESC LIMIT {MOST_TITLED}"
            );
            for thread in self.select(&select(&sql), [word])? {
                if !found.iter().any(|known| known.id == thread.id) {
                    found.push(thread);
                }
            }
        }
        Ok(found)
    }

    /// Returns the usage statistics, all read from one state of the database.
    pub fn analytics(&self) -> Result<Analytics> {
        self.query(|connection| {
            // All counts are read in one transaction, so that they describe the same state.
            let reading = connection.unchecked_transaction()?;
            let count = |sql: &str| reading.query_row(sql, [], |row| row.get::<_, i64>(0));
            let threads = count("SELECT count(*) FROM verbatim_threads")?;
            let messages = count(&format!(
                "SELECT count(*) FROM messages WHERE {IS_TURN}
                 AND conversation_id IN (SELECT conversation_id FROM verbatim_threads)",
            ))?;
            let mut users = reading.prepare_cached(
                "SELECT user_id, count(*) FROM verbatim_threads
                 GROUP BY user_id ORDER BY count(*) DESC, user_id LIMIT ?1",
            )?;
            let users = users.query_map([MOST_USERS], |row| {
                Ok((row.get(0)?, row.get::<_, i64>(1)?.unsigned_abs()))
            })?;
            let mut topics = reading.prepare_cached(
                "SELECT c.title FROM conversations AS c
                 JOIN verbatim_threads AS t ON t.conversation_id = c.id
                 WHERE c.title <> '' GROUP BY c.title
                 ORDER BY max(CAST(c.update_time AS REAL)) DESC, max(c.rowid) DESC LIMIT ?1",
            )?;
            let topics = topics.query_map([RECENT], |row| row.get(0))?;
            Ok(Analytics {
                threads: threads.unsigned_abs(),
                messages: messages.unsigned_abs(),
                users: users.collect::<Result<_, _>>()?,
                topics: topics.collect::<Result<_, _>>()?,
            })
        })
    }

    fn select(&self, sql: &str, values: impl rusqlite::Params) -> Result<Vec<Thread>> {
        self.query(|connection| {
            connection.prepare_cached(sql)?.query_map(values, read_thread)?.collect()
        })
    }
}
