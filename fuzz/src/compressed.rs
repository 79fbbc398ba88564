//! Compressed transcripts: any bytes are unpacked or refused, and what was compressed is read back in
//! pieces of any length. Its cut is refused, or gives its beginning.
//!
//! Input: a byte that selects the kind, a byte with the length of the pieces; then the compressed
//! bytes, or the texts to compress with a NUL after each.

use std::io::{self, Read};

use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use verbatim_chats::import::compressed::unpacked;

/// The most bytes that are read: a few compressed bytes may unpack to very many.
const MOST: usize = 16 << 20;

/// Reads in pieces; returns what could be read, and how it ended.
fn read(packed: &[u8], piece: usize) -> (Vec<u8>, io::Result<()>) {
    let (mut reader, mut buffer, mut all) = (unpacked(packed), vec![0; piece], Vec::new());
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return (all, Ok(())),
            Ok(read) => all.extend_from_slice(&buffer[..read]),
            Err(error) => return (all, Err(error)),
        }
        if all.len() > MOST {
            return (all, Ok(()));
        }
    }
}

pub(super) fn run(data: &[u8]) {
    let [kind, piece, data @ ..] = data else { return };
    let piece = usize::from(*piece) * 16 + 1;
    if kind & 1 == 0 {
        drop(read(data, piece));
        return;
    }
    let frames = data.split(|byte| *byte == 0);
    let packed: Vec<u8> =
        frames.flat_map(|text| compress_to_vec(text, CompressionLevel::Fastest)).collect();
    let whole: Vec<u8> = data.iter().copied().filter(|byte| *byte != 0).collect();
    let (found, ended) = read(&packed, piece);
    ended.expect("it is whole");
    assert_eq!(found, whole);
    let cut = packed.len() * usize::from(*kind) / 256;
    let (found, _) = read(&packed[..cut], piece);
    assert!(whole.starts_with(&found));
}
