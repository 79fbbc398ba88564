//! Arrays of a file in the format [safetensors](https://github.com/huggingface/safetensors#format), read in
//! place.

use std::collections::HashMap;

use serde::{Deserialize, de::Error};
use serde_json::value::RawValue;

pub(super) struct Tensors {
    /// What the file's head says of each array. The entry `__metadata__` says something else.
    heads: HashMap<&'static str, &'static RawValue>,
    data: &'static [u8],
}

#[derive(Deserialize)]
struct TensorHead {
    dtype: String,
    shape: Vec<usize>,
    /// The first byte and the byte after the last one, counted from the end of the head.
    data_offsets: (usize, usize),
}

impl Tensors {
    /// Reads the head of a file. Fails if the file is of another format.
    pub(super) fn parse(file: &'static [u8]) -> serde_json::Result<Tensors> {
        let (length, file) = file.split_first_chunk().ok_or_else(truncated)?;
        let length = u64::from_le_bytes(*length) as usize;
        let (head, data) = file.split_at_checked(length).ok_or_else(truncated)?;
        Ok(Tensors { heads: serde_json::from_slice(head)?, data })
    }

    /// Returns the bytes of an array, the least significant byte of a number first.
    ///
    /// Fails if the array is missing, cut, or of another type or shape.
    pub(super) fn bytes(
        &self,
        name: &str,
        dtype: &str,
        shape: &[usize],
    ) -> serde_json::Result<&'static [u8]> {
        let size = match dtype {
            "F32" => 4,
            "F16" => 2,
            _ => 1,
        };
        let head = self.heads.get(name).map(|head| serde_json::from_str::<TensorHead>(head.get()));
        let head = head.transpose()?.filter(|head| head.dtype == dtype && head.shape == shape);
        let Some(head) = head else {
            return Err(Error::custom(format!("no {name}, {shape:?} of {dtype}")));
        };
        let bytes = self.data.get(head.data_offsets.0..head.data_offsets.1);
        let length = size * shape.iter().product::<usize>();
        bytes.filter(|bytes| bytes.len() == length).ok_or_else(truncated)
    }

    #[cfg(feature = "multilingual")]
    pub(super) fn floats(&self, name: &str, shape: &[usize]) -> serde_json::Result<Vec<f32>> {
        let bytes = self.bytes(name, "F32", shape)?.as_chunks().0;
        Ok(bytes.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
    }
}

fn truncated() -> serde_json::Error {
    Error::custom("the file is cut")
}
