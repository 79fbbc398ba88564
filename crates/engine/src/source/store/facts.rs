//! Facts about the current state of a database that an index does not hold, kept beside its snapshot.

use serde::{Serialize, de::DeserializeOwned};

use super::{Source, snapshot_cache::cache_file};
use crate::error::Result;
use verbatim_base::call::Call;

const FORMAT: u32 = 1;

impl Source {
    /// Returns a fact about the database. If the index is current, the fact is looked up under a name
    /// beside it, and kept there if it was not known.
    pub(crate) fn fact<T: Serialize + DeserializeOwned>(
        &self,
        name: &str,
        call: &Call,
        read: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let Ok(snapshot) = self.current_index(call) else { return read() };
        let kept = snapshot.kept(name, FORMAT).ok();
        if let Some(known) = kept.and_then(|file| serde_json::from_slice(&file).ok()) {
            return Ok(known);
        }
        let fact = read()?;
        // The database may have changed since the index was compared with it. This compares again.
        let is_of_snapshot =
            self.current_index(&Call::default()).is_ok_and(|it| it.name() == snapshot.name());
        if is_of_snapshot && let Ok(bytes) = serde_json::to_vec(&fact) {
            cache_file(&snapshot, name, FORMAT, &bytes);
        }
        Ok(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TestExport, error::Error};

    #[test]
    fn a_fact_is_read_once_for_each_state_of_the_database() {
        let export = TestExport::indexed(&["red"]);
        let source = export.engine.sources().remove(0);
        let call = Call::default();
        let fact = |number: u32| source.fact("number", &call, || Ok(number)).unwrap();
        assert_eq!((fact(1), fact(2)), (1, 1));
        let other = |_| panic!("it is kept");
        assert_eq!(source.fact("number", &call, || Ok(())).map_err(other), Ok(()));
        assert_eq!(fact(3), 3, "a file of another form is made again");
        // Without a current index, nothing says which state of the database a fact is of.
        export.add(1, "blue");
        assert_eq!((fact(4), fact(5)), (4, 5));
        export.reindex();
        assert_eq!((fact(6), fact(7)), (6, 6));
        // The database changes while the fact is read.
        let mut number = 0;
        let changing = || -> Result<u32> {
            export.add(2, "green");
            number += 1;
            Ok(number)
        };
        assert_eq!(source.fact("changing", &call, changing).unwrap(), 1);
        export.reindex();
        assert_eq!(source.fact("changing", &call, || Ok(9)).unwrap(), 9);
        let failed: Result<u32> = source.fact("failed", &call, || Err(Error::NulInQuery));
        assert!(matches!(failed, Err(Error::NulInQuery)));
        assert_eq!(source.fact("failed", &call, || Ok(1)).unwrap(), 1);
    }
}
