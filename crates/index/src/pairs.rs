//! Groups (gram, document) pairs by gram, within the cache.

use super::varint::push_varint;
use verbatim_text::grams::Gram;

/// A cache of pairs that came before. Many grams are several times in the same text.
pub(super) struct RecentPairs(Vec<(u64, u32)>);

impl RecentPairs {
    /// The number of pairs, as a power of two: they stay in the cache.
    const BITS: u32 = 12;

    pub(super) fn new() -> RecentPairs {
        RecentPairs(vec![(0, u32::MAX); 1 << RecentPairs::BITS])
    }

    /// Returns false if the pair is known to have come before.
    #[inline]
    pub(super) fn is_new(&mut self, gram: Gram, doc: u32) -> bool {
        let slot = &mut self.0[hash(gram.0, RecentPairs::BITS)];
        let is_new = *slot != (gram.0, doc);
        *slot = (gram.0, doc);
        is_new
    }
}

#[inline]
fn hash(gram: u64, bits: u32) -> usize {
    (gram.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - bits)) as usize
}

/// Groups the pairs of a bucket by gram. A job has each gram many times, so a hash table numbers the grams,
/// and only the distinct grams are sorted. All of this stays in the cache.
pub(super) struct PairGroups {
    /// The numbers of the groups by gram: a hash table with linear probing, at most half full.
    table: Vec<(u64, u32)>,
    table_bits: u32,
    groups: Vec<PairGroup>,
    group_of: Vec<u32>,
    docs: Vec<u32>,
}

#[derive(Clone, Copy)]
struct PairGroup {
    gram: u64,
    last_doc: Option<u32>,
    /// The number of the group's documents; while documents are placed, the end of the placed documents.
    end: u32,
}

impl PairGroups {
    const FREE: u32 = u32::MAX;

    const BITS: u32 = 8;

    pub(super) fn new() -> PairGroups {
        PairGroups {
            table: Vec::new(),
            table_bits: PairGroups::BITS,
            groups: Vec::new(),
            group_of: Vec::new(),
            docs: Vec::new(),
        }
    }

    #[inline]
    fn slot(&self, gram: u64) -> usize {
        let mut slot = hash(gram, self.table_bits);
        while self.table[slot].1 != PairGroups::FREE && self.table[slot].0 != gram {
            slot = (slot + 1) % self.table.len();
        }
        slot
    }

    fn fill_table(&mut self) {
        self.table.clear();
        self.table.resize(1 << self.table_bits, (0, PairGroups::FREE));
        for number in 0..self.groups.len() {
            let gram = self.groups[number].gram;
            let slot = self.slot(gram);
            self.table[slot] = (gram, number as u32);
        }
    }

    #[inline]
    fn number(&mut self, gram: u64) -> u32 {
        let slot = self.slot(gram);
        let number = self.table[slot].1;
        if number != PairGroups::FREE {
            return number;
        }
        let number = self.groups.len() as u32;
        self.table[slot] = (gram, number);
        self.groups.push(PairGroup { gram, last_doc: None, end: 0 });
        if 2 * self.groups.len() > self.table.len() {
            self.table_bits += 1;
            self.fill_table();
        }
        number
    }

    /// Writes the pairs, grouped by gram, and empties `pairs`, which must be in the order of the documents.
    /// For each gram, writes the bytes that differ from the previous gram, the number of its documents, and
    /// the distances between them.
    pub(super) fn encode(&mut self, pairs: &mut Vec<(u64, u32)>, out: &mut Vec<u8>) {
        if pairs.is_empty() {
            return;
        }
        self.groups.clear();
        self.group_of.clear();
        self.fill_table();
        for (gram, doc) in &*pairs {
            let number = self.number(*gram);
            let group = &mut self.groups[number as usize];
            group.end += u32::from(group.last_doc != Some(*doc));
            group.last_doc = Some(*doc);
            self.group_of.push(number);
        }
        let mut order: Vec<(u64, u32)> = self.groups.iter().map(|it| it.gram).zip(0..).collect();
        order.sort_unstable();
        let mut before = 0;
        for (_, number) in &order {
            let group = &mut self.groups[*number as usize];
            before += std::mem::replace(&mut group.end, before);
            group.last_doc = None;
        }
        self.docs.clear();
        self.docs.resize(before as usize, 0);
        for ((_, doc), number) in pairs.drain(..).zip(&self.group_of) {
            let group = &mut self.groups[*number as usize];
            if group.last_doc != Some(doc) {
                group.last_doc = Some(doc);
                self.docs[group.end as usize] = doc;
                group.end += 1;
            }
        }
        let mut start = 0;
        let mut previous = 0u64;
        for (gram, number) in order {
            let end = self.groups[number as usize].end as usize;
            let docs = &self.docs[std::mem::replace(&mut start, end)..end];
            let shared = ((gram ^ previous).leading_zeros() / 8).min(7) as usize;
            let length = (8 - gram.trailing_zeros() as usize / 8).max(shared + 1);
            out.push((shared << 4 | length) as u8);
            out.extend_from_slice(&gram.to_be_bytes()[shared..length]);
            previous = gram;
            push_varint(out, docs.len() as u64);
            let mut last = 0;
            for doc in docs {
                push_varint(out, u64::from(doc - last));
                last = *doc;
            }
        }
    }
}
