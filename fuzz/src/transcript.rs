//! Transcripts of coding agents: reading in two goes gives the events of one go.
//!
//! Input: two bytes with the end of the first go, then the transcript.

use std::{io, path::Path};

use verbatim_chats::import::{
    Format,
    transcript::{TranscriptEvent, TranscriptReader},
};

fn read(
    reader: &mut TranscriptReader,
    mut bytes: &[u8],
    events: &mut Vec<TranscriptEvent>,
) -> usize {
    let taken = reader.read::<io::Error>(&mut bytes, &mut |_, event| {
        events.push(event);
        Ok(true)
    });
    taken.expect("bytes in memory can be read") as usize
}

pub(super) fn run(data: &[u8]) {
    let Some((cut, transcript)) = data.split_first_chunk::<2>() else { return };
    let file = Path::new("/projects/a-project/11111111-2222-4333-8444-555555555555.jsonl");
    let (mut once, mut at_once) = (TranscriptReader::new(file), Vec::new());
    let taken = read(&mut once, transcript, &mut at_once);
    assert!(taken <= transcript.len());
    once.origin(file);

    let cut = usize::from(u16::from_le_bytes(*cut)) % (transcript.len() + 1);
    let (mut first, mut in_two) = (TranscriptReader::new(file), Vec::new());
    let begun = read(&mut first, &transcript[..cut], &mut in_two);
    assert!(begun <= cut);
    let mut second =
        TranscriptReader::restore(&first.save()).expect("what was saved can be restored");
    read(&mut second, &transcript[begun..], &mut in_two);
    assert_eq!(in_two, at_once);
    assert_eq!((second.lines(), second.malformed()), (once.lines(), once.malformed()));
    let format = |reader: &TranscriptReader| reader.format().map(Format::name);
    assert_eq!((format(&second), second.id()), (format(&once), once.id()));
    assert_eq!((second.title(), second.model()), (once.title(), once.model()));
}
