//! Keeps all hits of a search, in memory and in a temporary file, until the search has found them all.

use std::{
    fs::File,
    io::{self, BufReader, BufWriter, Read, Seek, Write},
    ops::ControlFlow,
};

use super::{Error, Result, long_content::LongContents};
use verbatim_base::{
    long_text::LongText,
    model::{Hit, Instant},
    private,
};

/// The maximum size in bytes of the hits in memory. Further hits are spilled to a temporary file.
const IN_MEMORY: usize = 32 << 20;

/// All hits of a search in order. `Hits` holds no lock on the database.
#[derive(Debug, Default)]
pub struct Hits {
    first: Vec<Hit<'static>>,
    bytes: usize,
    long: LongContents,
    spill: Option<BufWriter<File>>,
    spilled: usize,
}

impl Hits {
    /// Adds a hit. `long` is the hit's content if it is too long for memory.
    pub(super) fn push(&mut self, hit: Hit<'static>, long: Option<LongText>) -> Result<()> {
        self.long.keep(self.first.len() + self.spilled, long);
        self.push_within(hit, IN_MEMORY).map_err(Error::Spill)
    }

    fn push_within(&mut self, hit: Hit<'static>, limit: usize) -> io::Result<()> {
        if self.bytes < limit {
            self.bytes += hit.content.len() + hit.title.len() + size_of::<Hit<'_>>();
            self.first.push(hit);
            return Ok(());
        }
        let spill = match &mut self.spill {
            Some(spill) => spill,
            none => none.insert(BufWriter::new(private::large_temporary_file()?)),
        };
        self.spilled += 1;
        write(spill, &hit)
    }

    /// Calls `sink` with the hits in order, until `sink` breaks.
    pub fn hand_over(self, sink: &mut dyn FnMut(Hit<'_>) -> ControlFlow<()>) -> Result<()> {
        let Hits { first, long, spill, spilled, .. } = self;
        let in_memory = first.len();
        for (number, hit) in first.into_iter().enumerate() {
            if sink(long.complete(number, hit)).is_break() {
                return Ok(());
            }
        }
        let Some(spill) = spill else { return Ok(()) };
        let mut spill = spill.into_inner().map_err(|error| Error::Spill(error.into_error()))?;
        spill.rewind().map_err(Error::Spill)?;
        let mut spill = BufReader::new(spill);
        for number in in_memory..in_memory + spilled {
            let hit = read(&mut spill).map_err(Error::Spill)?;
            if sink(long.complete(number, hit)).is_break() {
                break;
            }
        }
        Ok(())
    }
}

fn write(file: &mut impl Write, hit: &Hit<'_>) -> io::Result<()> {
    for text in [&hit.message_id, &hit.conversation_id, &hit.title, &hit.role, &hit.content] {
        file.write_all(&(text.len() as u64).to_le_bytes())?;
        file.write_all(text.as_bytes())?;
    }
    file.write_all(&[u8::from(hit.time.is_some()), u8::from(hit.position.is_some())])?;
    let time = hit.time.unwrap_or(Instant { seconds: 0, nanos: 0 });
    file.write_all(&time.seconds.to_le_bytes())?;
    file.write_all(&time.nanos.to_le_bytes())?;
    file.write_all(&hit.position.unwrap_or(0).to_le_bytes())
}

fn read(file: &mut impl Read) -> io::Result<Hit<'static>> {
    fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
    let mut text = || {
        let length = u64::from_le_bytes(bytes(file)?);
        let mut text = vec![0; length as usize];
        file.read_exact(&mut text)?;
        String::from_utf8(text).map_err(io::Error::other)
    };
    let [message_id, conversation_id, title, role, content] =
        [text()?, text()?, text()?, text()?, text()?];
    let [timed, placed] = bytes(file)?;
    let seconds = i64::from_le_bytes(bytes(file)?);
    let nanos = u32::from_le_bytes(bytes(file)?);
    let position = i64::from_le_bytes(bytes(file)?);
    Ok(Hit {
        message_id: message_id.into(),
        conversation_id: conversation_id.into(),
        title: title.into(),
        role: role.into(),
        time: (timed == 1).then_some(Instant { seconds, nanos }),
        content: content.into(),
        position: (placed == 1).then_some(position),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_hits_come_back_in_order() {
        let hits: Vec<Hit<'static>> = (0..20)
            .map(|n| Hit {
                message_id: format!("m{n}").into(),
                conversation_id: "c".into(),
                title: "ü".repeat(n).into(),
                role: "".into(),
                time: (n % 3 > 0).then_some(Instant { seconds: -5, nanos: n as u32 }),
                content: "x\0y".repeat(n).into(),
                position: (n % 2 > 0).then_some(-1),
            })
            .collect();
        let mut all = Hits::default();
        for hit in &hits {
            all.push_within(hit.clone(), 1_000).expect("temporary files can be written");
        }
        assert!(all.spilled > 5 && all.first.len() > 2);
        let mut back = Vec::new();
        all.hand_over(&mut |hit| {
            back.push(hit.into_owned());
            if back.len() == 19 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .expect("temporary files can be read");
        assert_eq!(back, hits[..19]);
    }
}
