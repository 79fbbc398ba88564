//! The posting lists of a worker in memory, and the sorted runs that they become in files.
//!
//! A document is appended to the list of each of its grams. The end of each list is in a record of the size
//! of a cache line, so that the ends of all common lists stay in the cache. When a record is full, its
//! bytes become a chunk, which links to the chunk before. When the memory is full, the lists are written
//! in gram order. This is the single-pass inversion of Heinz and Zobel: "Efficient single-pass index
//! construction for text databases" (2003).

use std::{
    collections::HashMap,
    fs::File,
    hash::BuildHasherDefault,
    io::{self, BufWriter, Write},
    ops::{Range, RangeInclusive},
    path::Path,
};

use super::varint::push_varint;
use crate::text::grams::{Gram, GramHasher, SHORT_GRAMS};

/// The bytes of a list that are in its record.
const RECORD: usize = 50;

/// The bytes before those of a chunk: the place of the chunk before.
const LINK: usize = size_of::<u32>();

/// The place of the chunk before the first one.
const NO_CHUNK: u32 = u32::MAX;

/// The approximate memory of a list without its chunks: its record, its gram, and both while they are sorted.
const LIST_BYTES: usize = 120;

/// The grams whose lists are found without a look at the large table.
const RECENT: usize = 1 << 12;

/// The bytes that are written at once.
const BUFFER: usize = 1 << 18;

/// The posting lists of consecutive documents.
#[derive(Debug)]
pub(super) struct GramLists {
    /// The number of the list of each short gram; 0 if there is none.
    short: Vec<u32>,
    /// The numbers of the lists of all other grams, and those of some grams that were met of late.
    long: HashMap<u64, u32, BuildHasherDefault<GramHasher>>,
    recent: Vec<(u64, u32)>,
    /// The gram of each list, from number 1 on.
    grams: Vec<u64>,
    lists: Vec<List>,
    chunks: Vec<u8>,
}

/// The end of a list, which holds the distances between the documents of a gram as varints.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct List {
    last_doc: u32,
    /// The place of the last chunk.
    chunk: u32,
    filled: u8,
    /// The bytes that are in no chunk yet.
    bytes: [u8; RECORD],
}

impl List {
    fn append(&mut self, mut distance: u32, chunks: &mut Vec<u8>) {
        loop {
            if usize::from(self.filled) == RECORD {
                let place = chunks.len() as u32;
                chunks.extend_from_slice(&self.chunk.to_le_bytes());
                chunks.extend_from_slice(&self.bytes);
                (self.chunk, self.filled) = (place, 0);
            }
            let has_more = distance >= 0x80;
            self.bytes[usize::from(self.filled)] = distance as u8 & 0x7F | u8::from(has_more) << 7;
            self.filled += 1;
            if !has_more {
                return;
            }
            distance >>= 7;
        }
    }
}

impl GramLists {
    pub(super) fn new() -> GramLists {
        let none = List { last_doc: 0, chunk: NO_CHUNK, filled: 0, bytes: [0; RECORD] };
        GramLists {
            short: vec![0; SHORT_GRAMS],
            long: HashMap::default(),
            recent: vec![(0, 0); RECENT],
            grams: Vec::new(),
            lists: vec![none],
            chunks: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.grams.is_empty()
    }

    /// Returns about how many bytes of memory the lists take.
    pub(super) fn memory(&self) -> usize {
        self.chunks.len() + LIST_BYTES * self.lists.len()
    }

    /// Adds a document to the list of a gram. Documents come in ascending order.
    #[inline]
    pub(super) fn push(&mut self, gram: Gram, doc: u32) {
        let number = match gram.short_place() {
            Some(place) => self.short[place],
            None => {
                let recent = self.recent[recent_place(gram)];
                if recent.0 == gram.0 { recent.1 } else { self.find(gram) }
            }
        };
        if number == 0 {
            return self.begin(gram, doc);
        }
        let list = &mut self.lists[number as usize];
        let distance = doc - list.last_doc;
        if distance == 0 {
            return;
        }
        list.last_doc = doc;
        if distance < 0x80
            && let Some(byte) = list.bytes.get_mut(usize::from(list.filled))
        {
            *byte = distance as u8;
            list.filled += 1;
        } else {
            list.append(distance, &mut self.chunks);
        }
    }

    fn find(&mut self, gram: Gram) -> u32 {
        let number = self.long.get(&gram.0).copied().unwrap_or_default();
        if number > 0 {
            self.recent[recent_place(gram)] = (gram.0, number);
        }
        number
    }

    #[cold]
    fn begin(&mut self, gram: Gram, doc: u32) {
        let number = self.lists.len() as u32;
        match gram.short_place() {
            Some(place) => self.short[place] = number,
            None => drop(self.long.insert(gram.0, number)),
        }
        let mut list = List { last_doc: doc, ..self.lists[0] };
        list.append(doc, &mut self.chunks);
        self.lists.push(list);
        self.grams.push(gram.0);
    }

    /// Writes the lists in gram order to a file without a name in `folder`, and empties them.
    pub(super) fn write(&mut self, folder: &Path) -> io::Result<Run> {
        let mut order: Vec<(u64, u32)> = self.grams.iter().copied().zip(1..).collect();
        order.sort_unstable();
        let mut out = BufWriter::with_capacity(BUFFER, tempfile::tempfile_in(folder)?);
        let (mut ends, mut end): (Vec<(u16, u64)>, u64) = (Vec::new(), 0);
        let (mut head, mut chunks) = (Vec::new(), Vec::new());
        for (gram, number) in order {
            let list = &self.lists[number as usize];
            let last = &list.bytes[..usize::from(list.filled)];
            self.chunks_of(list, &mut chunks);
            let bytes = RECORD * chunks.len() + last.len();
            let length = 8 - gram.trailing_zeros() as usize / 8;
            head.clear();
            head.push(length as u8);
            head.extend_from_slice(&gram.to_be_bytes()[..length]);
            push_varint(&mut head, bytes as u64);
            out.write_all(&head)?;
            for start in chunks.drain(..).rev() {
                out.write_all(&self.chunks[start..start + RECORD])?;
            }
            out.write_all(last)?;
            end += (head.len() + bytes) as u64;
            match ends.last_mut() {
                Some((last, of_last)) if *last == region(gram) => *of_last = end,
                _ => ends.push((region(gram), end)),
            }
            if let Some(place) = Gram(gram).short_place() {
                self.short[place] = 0;
            }
        }
        self.long.clear();
        self.recent.fill((0, 0));
        self.grams.clear();
        self.lists.truncate(1);
        self.chunks.clear();
        Ok(Run { file: out.into_inner()?, ends })
    }

    /// Collects where the bytes of the chunks of a list are, the last chunk first.
    fn chunks_of(&self, list: &List, places: &mut Vec<usize>) {
        let mut chunk = list.chunk;
        while chunk != NO_CHUNK {
            let place = chunk as usize;
            places.push(place + LINK);
            let link = self.chunks[place..].first_chunk().expect("a link begins each chunk");
            chunk = u32::from_le_bytes(*link);
        }
    }
}

/// Returns where a gram is among those that were met of late.
#[inline]
fn recent_place(gram: Gram) -> usize {
    (gram.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - RECENT.ilog2())) as usize
}

/// Returns the region of a gram in the gram space: its first two characters if they are ASCII,
/// otherwise the upper bits of its first character. Regions are in the order of their grams.
fn region(gram: u64) -> u16 {
    let upper = (gram >> 48) as u16;
    if upper < 0x8000 { (upper >> 8) << 7 | upper & 0x7F } else { upper - 0x4000 }
}

/// Posting lists in gram order, in a file.
#[derive(Debug)]
pub(super) struct Run {
    file: File,
    /// The regions that have grams, ascending, and where the lists of each end in the file.
    ends: Vec<(u16, u64)>,
}

impl Run {
    /// Returns the regions that have grams, each with the bytes of its lists.
    pub(super) fn regions(&self) -> impl Iterator<Item = (u16, u64)> {
        let mut before = 0;
        self.ends.iter().map(move |(region, end)| (*region, end - std::mem::replace(&mut before, *end)))
    }

    /// Returns where the lists of some regions are in the file.
    pub(super) fn range(&self, regions: &RangeInclusive<u16>) -> Range<u64> {
        let first = self.ends.partition_point(|(region, _)| region < regions.start());
        let after = self.ends.partition_point(|(region, _)| region <= regions.end());
        let [start, end] = [first, after].map(|place| match place {
            0 => 0,
            place => self.ends[place - 1].1,
        });
        start..end
    }

    /// Returns a reader of the lists of some regions, which reads `buffer` bytes at a time. The file
    /// is not mapped, because mapped pages count as memory of the process.
    pub(super) fn reader(&self, regions: &RangeInclusive<u16>, buffer: usize) -> RunReader<'_> {
        let rest = self.range(regions);
        RunReader { file: &self.file, rest, buffer, bytes: Vec::new(), at: 0, gram: Gram(0) }
    }
}

/// Reads the lists of a run.
#[derive(Debug)]
pub(super) struct RunReader<'a> {
    file: &'a File,
    /// The bytes of the file that are not read yet.
    rest: Range<u64>,
    buffer: usize,
    bytes: Vec<u8>,
    /// The place in `bytes`.
    at: usize,
    /// The gram that [`RunReader::advance`] moved to.
    pub(super) gram: Gram,
}

impl RunReader<'_> {
    /// The most bytes of the length of a list.
    const LENGTH: usize = 10;

    /// Reads more of the file if less than `needed` bytes are left in the buffer.
    #[inline]
    fn fill(&mut self, needed: usize) -> io::Result<()> {
        if self.at + needed <= self.bytes.len() || self.rest.is_empty() {
            return Ok(());
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let before = self.bytes.len();
        let wanted = self.buffer.max(needed) as u64;
        let more = (self.rest.end - self.rest.start).min(wanted);
        // No spare capacity, because many runs are read at once.
        self.bytes.reserve_exact(more as usize);
        self.bytes.resize(before + more as usize, 0);
        read_exact_at(self.file, &mut self.bytes[before..], self.rest.start)?;
        self.rest.start += more;
        Ok(())
    }

    /// Moves to the next gram, if there is one.
    pub(super) fn advance(&mut self) -> io::Result<bool> {
        self.fill(1 + size_of::<u64>())?;
        let Some((&length, rest)) = self.bytes[self.at..].split_first() else { return Ok(false) };
        let length = usize::from(length);
        let mut gram = [0; size_of::<u64>()];
        gram[..length].copy_from_slice(&rest[..length]);
        self.gram = Gram(u64::from_be_bytes(gram));
        self.at += 1 + length;
        Ok(true)
    }

    /// Adds the documents of the gram that [`RunReader::advance`] moved to.
    pub(super) fn read_docs(&mut self, docs: &mut Vec<u32>) -> io::Result<()> {
        self.fill(Self::LENGTH)?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = self.bytes[self.at];
            self.at += 1;
            length |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte < 0x80 {
                break;
            }
        }
        self.fill(length)?;
        let (mut doc, mut distance, mut shift) = (0, 0, 0);
        for byte in &self.bytes[self.at..self.at + length] {
            distance |= u32::from(byte & 0x7F) << shift;
            shift += 7;
            if *byte < 0x80 {
                doc += distance;
                docs.push(doc);
                (distance, shift) = (0, 0);
            }
        }
        self.at += length;
        Ok(())
    }
}

#[cfg(unix)]
fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                bytes = &mut bytes[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}
