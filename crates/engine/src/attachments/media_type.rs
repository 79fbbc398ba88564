//! Detects the media type of a file from its content.

/// Media type of texts, and media type of unknown contents.
pub(super) const PLAIN_TEXT: &str = "text/plain";
const UNKNOWN: &str = "application/octet-stream";

/// Returns the media type of a file, detected from its first bytes. The type in the export is not trusted,
/// because a browser may act on it.
pub(super) fn type_of(start: &[u8]) -> &'static str {
    match start {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xFF, 0xD8, 0xFF, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'A', b'V', b'E', ..] => "audio/wav",
        [b'I', b'D', b'3', ..] => "audio/mpeg",
        [b'O', b'g', b'g', b'S', ..] => "audio/ogg",
        [_, _, _, _, b'f', b't', b'y', b'p', b'M', b'4', b'A', ..] => "audio/mp4",
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => "video/mp4",
        [b'%', b'P', b'D', b'F', b'-', ..] => "application/pdf",
        [b'P', b'K', 3, 4, ..] => "application/zip",
        _ if start.contains(&0) => UNKNOWN,
        _ => match std::str::from_utf8(start) {
            // A character that is cut at the end of the block is not an error.
            Err(error) if error.error_len().is_some() => UNKNOWN,
            _ => PLAIN_TEXT,
        },
    }
}
