//! The services that conversations are from.

use rusqlite::OptionalExtension;

use super::{Database, Error};

/// The service that a conversation is from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// The name of the export's format: `chatgpt`, `claude`, `claude_code` or `codex`.
    pub name: String,
    /// A link to the conversation on the service's site.
    pub link: Option<String>,
}

/// Returns the service that a conversation is from; `None` if the database does not say.
pub fn service(database: &Database, id: &str) -> Result<Option<Service>, Error> {
    let read = || -> rusqlite::Result<Option<Service>> {
        let connection = database.connection();
        let sql = "SELECT count(*) FROM pragma_table_info('verbatim_conversations') \
                   WHERE name IN ('conversation_id', 'source', 'link')";
        let columns: i64 = connection.query_one(sql, [], |row| row.get(0))?;
        if columns < 3 {
            return Ok(None);
        }
        let sql = "SELECT source, link FROM verbatim_conversations WHERE conversation_id = ?1";
        let row = |row: &rusqlite::Row<'_>| Ok(Service { name: row.get(0)?, link: row.get(1)? });
        connection.query_row(sql, [id], row).optional()
    };
    read().map_err(|error| database.error(error))
}
