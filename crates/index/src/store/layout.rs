//! The positions and sizes of the parts of the document store's files.

use serde::{Deserialize, Serialize};

/// Flag: the stored text differs from the shown text, as in databases of JSON parts.
pub(super) const HAS_STORED: u8 = 1;
pub(super) const HAS_POSITION: u8 = 2;
/// Flag: the message id is sixteen bytes, which are shown as a UUID.
pub(super) const IS_UUID: u8 = 4;
/// Flag: a text is irregular. Grams do not find the message, so every search verifies it byte by byte.
pub(super) const IS_IRREGULAR: u8 = 8;
/// Flag: the text and the title are both NULL, so no pattern matches.
pub(super) const IS_NOTHING: u8 = 16;
/// The position of the table's number in the byte, above the flags. Number 0 means that the texts are not
/// packed.
pub(super) const TABLE_SHIFT: u32 = 5;

/// The number of zero bytes after the fields. They allow eight bytes to be read at every field.
pub(super) const PADDING: usize = 8;

/// A bit that marks a NULL title. It is set in the stored end of the title.
pub(super) const NO_TITLE: u64 = 1 << 63;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RowLayout {
    pub(super) messages: u32,
    /// The number of messages with a time; they come before the messages without one.
    pub(super) dated: u32,
    pub(super) roles: Vec<String>,
    /// The size of a role's number in bytes: 1, 2 or 4.
    pub(super) role_bytes: u32,
    pub(super) irregular: u32,
    pub(super) conversations: u32,
    pub(super) earliest: i64,
    pub(super) entry: u32,
    pub(super) start: Field,
    pub(super) seconds: Field,
    pub(super) nanos: Field,
    /// A common divisor of all nanoseconds. Nanoseconds are stored divided by this number.
    pub(super) nano_step: u32,
    pub(super) conversation: Field,
    pub(super) fields_at: u64,
    pub(super) roles_at: u64,
    pub(super) irregular_at: u64,
    pub(super) titles_at: u64,
    pub(super) title_bytes_at: u64,
    pub(super) members_at: u64,
    pub(super) member_bytes_at: u64,
    pub(super) symbols_at: u64,
}

/// The offset of a number in the fields of a message, and its size in bytes: at most eight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Field {
    pub(super) at: u32,
    pub(super) bytes: u32,
}

impl Field {
    pub(super) fn append(entry: &mut u32, largest: u64) -> Field {
        let field = Field { at: *entry, bytes: (u64::BITS - largest.leading_zeros()).div_ceil(8) };
        *entry += field.bytes;
        field
    }

    pub(super) fn put(self, entry: &mut [u8], number: u64) {
        let bytes = self.bytes as usize;
        entry[self.at as usize..][..bytes].copy_from_slice(&number.to_le_bytes()[..bytes]);
    }

    /// Reads the field of an entry. At least eight bytes must follow the start of the field.
    #[inline]
    pub(super) fn get(self, entry: &[u8]) -> u64 {
        let eight = entry[self.at as usize..].first_chunk().expect("there is padding");
        let shift = u64::BITS.saturating_sub(8 * self.bytes);
        u64::from_le_bytes(*eight).checked_shl(shift).map_or(0, |number| number >> shift)
    }
}
