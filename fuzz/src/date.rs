//! Times: any stored or requested text parses or is refused, and a written time is read back.

use verbatim_text::date::{self, Edge};

pub(super) fn run(data: &[u8]) {
    if let Some(eight) = data.first_chunk::<8>() {
        let seconds = f64::from_le_bytes(*eight);
        if let Some(instant) = date::from_number(seconds) {
            assert!(instant.nanos < 1_000_000_000);
            date::to_minute(instant);
            date::to_iso(instant);
        }
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Some(instant) = date::from_stored(text) {
        assert!(instant.nanos < 1_000_000_000);
        assert_eq!(date::from_stored(&instant.to_decimal()), Some(instant), "{text:?}");
        date::to_minute(instant);
    }
    let ends = [Edge::Start, Edge::End].map(|edge| date::parse_iso(text, edge));
    assert_eq!(ends[0].is_some(), ends[1].is_some(), "{text:?}");
    let [Some(start), Some(end)] = ends else { return };
    assert!(start <= end, "{text:?}");
    // A leap second may lead into the year 10000, which the parser refuses.
    if let Some(written) = date::to_iso(start).filter(|written| !written.starts_with('+')) {
        assert_eq!(date::parse_iso(&written, Edge::Start), Some(start), "{text:?} as {written:?}");
    }
}
