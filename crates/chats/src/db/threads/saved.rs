//! Saves conversations under a key: a summary and the latest turns.

use rusqlite::{Connection, OptionalExtension, params};

use super::database::{Error, Result, Threads};
use super::record::{Start, Thread, append_message, insert, thread};
use crate::db::canonical::{self, ConversationRow};
use verbatim_base::model::Instant;

/// The user of saved conversations. Only recorded threads name a user.
const USER: &str = "default";

/// A conversation to save.
#[derive(Clone, Copy, Debug)]
pub struct Save<'a> {
    /// The key of the conversation; `None` for a new key made from the title.
    pub key: Option<&'a str>,
    /// The new title; `None` to leave the title unchanged.
    pub title: Option<&'a str>,
    /// The summary. It is stored as the first message, with the role `system`, and is not a turn.
    pub summary: &'a str,
    /// The latest turns: role and text.
    pub turns: &'a [(String, String)],
}

/// The result of saving a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Saved {
    /// The saved conversation in its new state.
    pub thread: Thread,
    /// The number of new turns.
    pub turns: usize,
}

impl Threads {
    /// Saves a conversation, or updates the conversation with the same key.
    ///
    /// Does not add turns again that the stored conversation already ends with.
    pub fn save(&mut self, save: &Save<'_>, now: Instant) -> Result<Saved> {
        let saved = self.write(|connection| {
            let known = save.key.map(|key| find_by_key(connection, key)).transpose()?;
            let id = match known.flatten() {
                Some(id) => {
                    update(connection, &id, save)?;
                    id
                }
                None => {
                    let topic = save.title.unwrap_or_default();
                    let start = Start { topic, user: USER, platform: None, turn: None };
                    let id = insert(connection, &start, save.key, now)?;
                    if save.key.is_none() {
                        let key = made_key(topic, &id);
                        let sql = "UPDATE verbatim_threads SET session_key = ?2 WHERE conversation_id = ?1";
                        connection.execute(sql, params![id, key])?;
                    }
                    append_message(connection, &id, "system", save.summary, now)?;
                    id
                }
            };
            let new = &save.turns[overlap(&last_turns(connection, &id, save.turns.len())?, save.turns)..];
            for (role, text) in new {
                append_message(connection, &id, role, text, now)?;
            }
            // Other holders of a continuation id must notice that the thread has continued.
            let next = "UPDATE verbatim_threads SET next = next + 1 WHERE conversation_id = ?1";
            connection.execute(next, [&id])?;
            Ok(thread(connection, &id)?.map(|thread| Saved { thread, turns: new.len() }))
        })?;
        saved.ok_or_else(|| Error::NoThread { id: save.key.unwrap_or_default().to_owned() })
    }
}

fn find_by_key(connection: &Connection, key: &str) -> rusqlite::Result<Option<String>> {
    let sql = "SELECT conversation_id FROM verbatim_threads WHERE session_key = ?1";
    connection.query_row(sql, [key], |row| row.get(0)).optional()
}

/// Replaces the summary and the title of a conversation that was saved before.
fn update(connection: &Connection, id: &str, save: &Save<'_>) -> rusqlite::Result<()> {
    let sql = "UPDATE messages SET content = ?2
               WHERE conversation_id = ?1 AND position = 1 AND role = 'system'";
    canonical::execute(connection, sql, [id, save.summary])?;
    if let Some(title) = save.title {
        let title = Some(title);
        ConversationRow { id, title, ..ConversationRow::default() }.update(connection)?;
    }
    Ok(())
}

fn last_turns(
    connection: &Connection,
    id: &str,
    most: usize,
) -> rusqlite::Result<Vec<(String, String)>> {
    let mut statement = connection.prepare_cached(
        "SELECT role, content FROM messages WHERE conversation_id = ?1 AND position > 1
         ORDER BY position DESC LIMIT ?2",
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = statement.query_map(params![id, most], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let mut turns: Vec<(String, String)> = found.collect::<Result<_, _>>()?;
    turns.reverse();
    Ok(turns)
}

/// Returns how many turns from the beginning of `new` are also at the end of `old`.
fn overlap(old: &[(String, String)], new: &[(String, String)]) -> usize {
    (0..=new.len().min(old.len())).rev().find(|n| old.ends_with(&new[..*n])).unwrap_or(0)
}

/// Makes a key from the first words of a title and the beginning of the id.
fn made_key(title: &str, id: &str) -> String {
    let words = title.to_lowercase();
    let words = words.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let slug = words.take(6).collect::<Vec<_>>().join("-");
    let slug: String = slug.chars().take(60).collect();
    let slug = if slug.is_empty() { "session" } else { &slug };
    format!("{slug}-{}", id.get(..8).unwrap_or(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps() {
        let turns = |text: &str| -> Vec<(String, String)> {
            text.chars().map(|c| ("user".to_owned(), c.to_string())).collect()
        };
        for (old, new, expected) in [
            ("", "abc", 0),
            ("abc", "abc", 3),
            ("abc", "bcd", 2),
            ("abc", "cab", 1),
            ("abc", "xyz", 0),
            ("aa", "aaa", 2),
            ("abc", "", 0),
        ] {
            assert_eq!(overlap(&turns(old), &turns(new)), expected, "{old} {new}");
        }
    }

    #[test]
    fn keys() {
        assert_eq!(made_key("Database: Migration!", "0123456789"), "database-migration-01234567");
        assert_eq!(made_key("", "0123456789"), "session-01234567");
    }
}
