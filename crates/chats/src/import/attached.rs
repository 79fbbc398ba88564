//! Adds the texts of attached files to the messages that have the files.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{head, package::Package, results, sources::HEADING, tally::ImportTally, tool::joined};
use verbatim_base::model::{AttachedContent, Conversation};

const LONGEST: u64 = 1 << 20;

const BYTES_LOOKED_AT: u64 = 4 << 10;

/// The phrase for texts that are longer than [`LONGEST`].
const TOO_LONG: &str = "texts of more than 1 MB in attached files (not searched)";

/// The beginnings of documents that consist of characters, but are no plain text.
const NOT_PLAIN: [&str; 2] = ["%PDF", "{\\rtf"];

/// The control characters that plain texts have: white space, and escape sequences of terminals.
const CONTROLS: [char; 5] = ['\t', '\n', '\r', '\u{c}', '\u{1b}'];

#[derive(Default)]
pub(super) struct AttachedTexts {
    path: PathBuf,
    /// The export, opened when the first file is wanted.
    package: Option<Package>,
    /// The names that files had before the service renamed them, by their names in the export.
    names: HashMap<String, String>,
    too_long: u64,
}

impl AttachedTexts {
    pub(super) fn new(path: &Path) -> AttachedTexts {
        AttachedTexts { path: path.to_owned(), ..AttachedTexts::default() }
    }

    pub(super) fn add_to(&mut self, conversation: &mut Conversation) {
        for file in &mut conversation.files {
            let AttachedContent::Id(id) = &file.content else { continue };
            let Some((name, text)) = self.read(id, &mut file.name) else { continue };
            let content = &mut conversation.messages[file.message].content;
            if !content.contains(text.trim()) {
                let end = content.rfind(&format!("\n\n{HEADING}\n")).unwrap_or(content.len());
                let (before, sources) = content.split_at(end);
                let text = format!("{name}\n{}", text.trim_end());
                *content = joined("\n\n", &[before.trim_end(), &text]) + sources;
            }
        }
    }

    /// Returns the content of the file with a name; `None` if it is not there or too long.
    pub(super) fn named(&mut self, name: &str) -> Option<Vec<u8>> {
        let package = self.package();
        let found = package.find_named(name)?;
        let mut bytes = Vec::new();
        package
            .open_found(&found)
            .ok()?
            .take(results::LONGEST_RESULT)
            .read_to_end(&mut bytes)
            .ok()?;
        Some(bytes)
    }

    fn package(&mut self) -> &mut Package {
        self.package.get_or_insert_with(|| {
            let mut package = Package::open(&self.path, true).unwrap_or_default();
            self.names = package.names_of_attached();
            package
        })
    }

    pub(super) fn count(&self, tally: &mut ImportTally) {
        if self.too_long > 0 {
            tally.leave_out(TOO_LONG.to_owned(), TOO_LONG, self.too_long);
        }
    }

    /// Returns the name and the text of the file with an id; `None` if it is not there or not a text. Fills in
    /// a missing name.
    fn read(&mut self, id: &str, name: &mut String) -> Option<(String, String)> {
        let found = self.package().find(id)?;
        if name.is_empty() {
            *name = self.names.get(&found.name).cloned().unwrap_or_default();
        }
        let package = self.package();
        let mut bytes = Vec::new();
        let mut file = package.open_found(&found).ok()?;
        file.by_ref().take(BYTES_LOOKED_AT).read_to_end(&mut bytes).ok()?;
        decode_text(&bytes)?;
        file.take(LONGEST + 1 - bytes.len() as u64).read_to_end(&mut bytes).ok()?;
        if bytes.len() as u64 > LONGEST {
            self.too_long += 1;
            return None;
        }
        let mut text = decode_text(&bytes).filter(|text| !text.trim().is_empty())?;
        head::clean(&mut text);
        Some((if name.is_empty() { found.name } else { name.clone() }, text))
    }
}

/// Returns the text in the bytes of a file, or of its beginning, if it is plain text: UTF-8, or UTF-16 with a
/// byte order mark.
fn decode_text(bytes: &[u8]) -> Option<String> {
    let text = match bytes {
        [0xFF, 0xFE, ..] => decode_utf16(&bytes[2..], u16::from_le_bytes),
        [0xFE, 0xFF, ..] => decode_utf16(&bytes[2..], u16::from_be_bytes),
        _ => match str::from_utf8(bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes)) {
            Ok(text) => text.to_owned(),
            // The bytes end in the middle of a character.
            Err(error) if error.error_len().is_none() => {
                String::from_utf8_lossy(bytes).into_owned()
            }
            Err(_) => return None,
        },
    };
    let is_document = NOT_PLAIN.iter().any(|start| text.starts_with(start));
    (!is_document && text.chars().all(|c| !c.is_ascii_control() || CONTROLS.contains(&c)))
        .then_some(text)
}

fn decode_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units: Vec<u16> = bytes.as_chunks().0.iter().map(|pair| unit(*pair)).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts() {
        let utf_16 = |text: &str, unit: fn(u16) -> [u8; 2]| -> Vec<u8> {
            format!("\u{feff}{text}").encode_utf16().flat_map(unit).collect()
        };
        for (bytes, expected) in [
            (b"fig, plum\r\n".to_vec(), Some("fig, plum\r\n")),
            (b"\xEF\xBB\xBFfig".to_vec(), Some("fig")),
            (utf_16("küche", u16::to_le_bytes), Some("küche")),
            (utf_16("küche", u16::to_be_bytes), Some("küche")),
            ("é".as_bytes()[..1].to_vec(), Some("\u{fffd}")),
            (b"caf\xe9 noir".to_vec(), None),
            (b"a\0b".to_vec(), None),
            (b"\xFF\xFE\0\0a\0\0\0".to_vec(), None),
            (b"%PDF-1.7".to_vec(), None),
            (b"{\\rtf1 fig}".to_vec(), None),
        ] {
            assert_eq!(decode_text(&bytes).as_deref(), expected, "{bytes:?}");
        }
    }
}
