//! Compressed transcripts. Codex compresses old transcripts to `rollout-….jsonl.zst`.
//!
//! Either the compressed or the plain file exists. During compression, both exist.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const ENDING: &str = ".zst";

/// Returns whether a file has the name of a transcript, compressed or not.
pub fn is_named_as_transcript(file: &Path) -> bool {
    let plain = plain(file);
    let extension = plain.as_deref().unwrap_or(file).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("jsonl"))
}

/// Returns the path of the plain file, by the path of the compressed file; `None` for any other path.
pub fn plain(file: &Path) -> Option<PathBuf> {
    let name = file.file_name().and_then(OsStr::to_str)?.strip_suffix(ENDING)?;
    Some(file.with_file_name(name))
}

/// Returns the name of a transcript's file without its endings.
pub fn stem(file: &Path) -> String {
    let plain = plain(file);
    let stem = plain.as_deref().unwrap_or(file).file_stem();
    stem.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns a reader of a compressed file's content.
pub fn unpacked<'r>(packed: impl Read + 'r) -> impl Read + 'r {
    Unpacked { packed: BufReader::new(packed), frame: FrameDecoder::new() }
}

struct Unpacked<R> {
    packed: BufReader<R>,
    frame: FrameDecoder,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.frame.can_collect() == 0 {
            if !self.frame.is_finished() {
                let block = BlockDecodingStrategy::UptoBlocks(1);
                self.frame.decode_blocks(&mut self.packed, block).map_err(io::Error::other)?;
            } else if self.packed.fill_buf()?.is_empty() {
                return Ok(0);
            } else {
                self.frame.reset(&mut self.packed).map_err(io::Error::other)?;
            }
        }
        self.frame.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    use super::*;

    #[test]
    fn names_of_transcripts() {
        for (name, expected) in [
            ("a/x.jsonl", true),
            ("a/x.jsonl.zst", true),
            ("a/x.JSONL", true),
            ("a/x.zst", false),
            ("a/x.json.zst", false),
            ("a/jsonl", false),
        ] {
            assert_eq!(is_named_as_transcript(Path::new(name)), expected, "{name}");
        }
        assert_eq!(plain(Path::new("a/x.jsonl.zst")).as_deref(), Some(Path::new("a/x.jsonl")));
        assert_eq!(plain(Path::new("a/x.jsonl")), None);
        assert_eq!([stem(Path::new("a/x.jsonl.zst")), stem(Path::new("a/x.jsonl"))], ["x", "x"]);
    }

    #[test]
    fn frames_one_after_another() {
        let frame = |text: &str| compress_to_vec(text.as_bytes(), CompressionLevel::Fastest);
        let long = "a line that comes again and again\n".repeat(50_000);
        let packed = [frame("first\n"), frame(""), frame(&long)].concat();
        let mut found = String::new();
        unpacked(packed.as_slice()).read_to_string(&mut found).expect("it is whole");
        assert_eq!(found, format!("first\n{long}"));
        let mut some = Vec::new();
        let cut = &packed[..packed.len() - 9];
        assert!(unpacked(cut).read_to_end(&mut some).is_err(), "its end is missing");
        assert!(unpacked(&b"no zstd"[..]).read_to_end(&mut some).is_err());
        assert_eq!(unpacked(&b""[..]).read_to_end(&mut some).expect("nothing"), 0);
    }
}
