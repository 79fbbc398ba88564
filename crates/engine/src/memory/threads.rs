//! Threads: recorded turn by turn in their own database. Each turn is answered with recalled passages.

use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{database::Memory, recall::Recalled};
use crate::error::{Error, Result};
use crate::source::wipe_indexes;
use verbatim_base::{call::Call, model::Instant};
use verbatim_chats::db;
use verbatim_chats::db::threads::Turn;
use verbatim_chats::db::threads::{Analytics, Error as ThreadsError, Save, Saved, Start, Thread};

/// Maximum number of passages that are recalled for a turn.
const PASSAGES: usize = 3;

/// A turn that was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// The thread of the turn, in its present state.
    pub thread: Thread,
    /// The passages that were recalled for the turn, the best first.
    pub memory: Vec<Recalled>,
    /// The error of recall, if it failed.
    pub trouble: Option<Error>,
}

impl Memory {
    /// Starts a thread at the present time, and recalls passages for its first turn, if it has one. Fails
    /// if the thread cannot be stored.
    pub fn start_thread(&self, start: &Start<'_>, call: &Call) -> Result<Recorded> {
        let thread = self.writing(|threads| threads.start(start, now()))?;
        Ok(match start.turn {
            Some((_, text)) => self.recorded(thread, text, call),
            None => Recorded { thread, memory: Vec::new(), trouble: None },
        })
    }

    /// Records a turn, which is a role and a text, of the thread with this continuation id.
    ///
    /// Recall begins after the turn is on disk, so that clients that continue threads at the same time
    /// do not wait for each other. A call that is cancelled before recording does not record its turn.
    /// If recall fails, the turn is recorded all the same, and the call succeeds.
    pub fn continue_thread(
        &self,
        continuation: &str,
        role: &str,
        text: &str,
        call: &Call,
    ) -> Result<Recorded> {
        if self.reading(|threads| threads.find_continued(continuation))?.is_none() {
            return Err(ThreadsError::NoContinuation { id: continuation.to_owned() }.into());
        }
        call.stop.check(db::Error::Stopped)?;
        let thread = self.writing(|threads| threads.turn(continuation, role, text, now()))?;
        Ok(self.recorded(thread, text, call))
    }

    /// Returns a recorded turn with the passages that are recalled for its text.
    fn recorded(&self, thread: Thread, text: &str, call: &Call) -> Recorded {
        let recalled = self.on_indexes(call, |call| self.recall(text, &thread.id, PASSAGES, call));
        let (memory, trouble) = match recalled {
            Ok(found) => (found, None),
            Err(error) if error.is_not_found() => (Vec::new(), None),
            Err(error) => (Vec::new(), Some(error)),
        };
        Recorded { thread, memory, trouble }
    }

    /// Returns the thread with this id. Fails with [`ThreadsError::NoThread`] if there is none.
    pub fn thread(&self, id: &str) -> Result<Thread> {
        let found = self.reading(|threads| threads.thread(id))?.flatten();
        found.ok_or_else(|| ThreadsError::NoThread { id: id.to_owned() }.into())
    }

    /// Returns the latest turns of a thread in order, at most `limit`, and the total number of turns.
    pub fn thread_history(&self, id: &str, limit: usize) -> Result<(Vec<Turn>, u64)> {
        let history = self.reading(|threads| Ok((threads.thread(id)?, threads.latest(id, limit)?)));
        match history? {
            Some((Some(thread), turns)) => Ok((turns, thread.messages)),
            _ => Err(ThreadsError::NoThread { id: id.to_owned() }.into()),
        }
    }

    /// Returns statistics about the use of threads.
    pub fn thread_analytics(&self) -> Result<Analytics> {
        Ok(self.reading(|threads| threads.analytics())?.unwrap_or_default())
    }

    /// Saves a conversation. If a conversation has the same key, updates it.
    pub fn save_conversation(&self, save: &Save<'_>) -> Result<Saved> {
        self.writing(|threads| threads.save(save, now()))
    }

    /// Returns the latest threads whose topics contain at least one of the words.
    pub(crate) fn threads_titled(&self, words: &[String]) -> Result<Vec<Thread>> {
        Ok(self.reading(|threads| threads.find_by_topic(words))?.unwrap_or_default())
    }

    /// Returns the thread with an id. If there is none, returns the threads whose ids begin with `word`.
    pub fn threads_named(&self, word: &str) -> Result<Vec<Thread>> {
        Ok(self.reading(|threads| threads.find_by_id(word))?.unwrap_or_default())
    }

    /// Returns the conversation that was saved under a key.
    pub fn thread_keyed(&self, key: &str) -> Result<Option<Thread>> {
        Ok(self.reading(|threads| threads.keyed(key))?.flatten())
    }

    /// Returns the full summary that a conversation was saved with.
    pub fn saved_summary(&self, id: &str) -> Result<Option<String>> {
        Ok(self.reading(|threads| threads.summary(id))?.flatten())
    }

    /// Removes a thread and all its messages, and the index that holds their texts; returns whether there was
    /// one. The index is built again when it is needed.
    pub fn delete_thread(&self, id: &str) -> Result<bool> {
        /// Maximum wait for another process that builds the index, and the wait between two checks.
        const PATIENCE: Duration = Duration::from_secs(10);
        const PAUSE: Duration = Duration::from_millis(50);

        let is_deleted = self.reading(|threads| threads.delete(id))?.unwrap_or(false);
        if is_deleted {
            let config = self.sources.config();
            let begun = std::time::Instant::now();
            let wiped = wipe_indexes(config, &config.threads_database(), true, &mut |_| {
                thread::sleep(PAUSE);
                begun.elapsed() < PATIENCE
            });
            self.sources.close();
            if wiped.as_ref().is_err_and(Error::is_stopped) {
                return Err(Error::NotWiped { folder: config.index_folder() });
            }
            wiped?;
        }
        Ok(is_deleted)
    }
}

fn now() -> Instant {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    // Stored times have microseconds.
    Instant { seconds: since.as_secs().cast_signed(), nanos: since.subsec_micros() * 1000 }
}
