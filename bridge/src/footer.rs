//! A look at a Parquet footer before the Parquet library trusts its numbers.
//!
//! The library allocates as many elements as a list says it has, and walks the schema recursively; a few hostile bytes
//! could so end the process. Here every list must fit into the bytes that are left, and the schema may nest only so deep.
//! The footer is a FileMetaData struct in Thrift's compact protocol.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

const MAGIC: &[u8; 4] = b"PAR1";
const MAX_STRUCT_DEPTH: u32 = 32;
const MAX_SCHEMA_DEPTH: usize = 64;

const SCHEMA_FIELD: i16 = 2; // of FileMetaData
const CHILDREN_FIELD: i16 = 5; // of SchemaElement

type Checked<T> = Result<T, String>;

fn malformed<T>() -> Checked<T> {
    Err("the Parquet footer is malformed".to_owned())
}

struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    fn byte(&mut self) -> Checked<u8> {
        let Some((first, rest)) = self.rest.split_first() else { return malformed() };
        self.rest = rest;
        Ok(*first)
    }

    fn skip(&mut self, count: u64) -> Checked<()> {
        match usize::try_from(count).ok().and_then(|count| self.rest.get(count..)) {
            Some(rest) => {
                self.rest = rest;
                Ok(())
            }
            None => malformed(),
        }
    }

    fn varint(&mut self) -> Checked<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        malformed()
    }

    fn zigzag(&mut self) -> Checked<i64> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A field's type and id, or nothing at the struct's end.
    fn field(&mut self, last: i16) -> Checked<Option<(u8, i16)>> {
        let header = self.byte()?;
        if header == 0 {
            return Ok(None);
        }
        let id = match header >> 4 {
            0 => self.zigzag()? as i16,
            delta => last.wrapping_add(delta.into()),
        };
        Ok(Some((header & 0x0f, id)))
    }

    /// Count and type of a list's elements; each is at least a byte.
    fn list(&mut self) -> Checked<(u64, u8)> {
        let header = self.byte()?;
        let count = if header >> 4 == 15 { self.varint()? } else { u64::from(header >> 4) };
        if count > self.rest.len() as u64 {
            return malformed();
        }
        Ok((count, header & 0x0f))
    }

    fn element(&mut self, kind: u8, depth: u32) -> Checked<()> {
        match kind {
            1 | 2 => self.skip(1), // a boolean in a collection
            _ => self.value(kind, depth),
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Checked<()> {
        if depth > MAX_STRUCT_DEPTH {
            return malformed();
        }
        match kind {
            1 | 2 => Ok(()), // a boolean field is its type
            3 => self.skip(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.skip(8),
            8 => self.varint().and_then(|length| self.skip(length)),
            9 | 10 => {
                let (count, kind) = self.list()?;
                (0..count).try_for_each(|_| self.element(kind, depth + 1))
            }
            11 => {
                let count = self.varint()?;
                if count == 0 {
                    return Ok(());
                }
                let kinds = self.byte()?;
                if count > self.rest.len() as u64 {
                    return malformed();
                }
                (0..count).try_for_each(|_| {
                    self.element(kinds >> 4, depth + 1)?;
                    self.element(kinds & 0x0f, depth + 1)
                })
            }
            12 => {
                let mut last = 0;
                while let Some((kind, id)) = self.field(last)? {
                    self.value(kind, depth + 1)?;
                    last = id;
                }
                Ok(())
            }
            13 => self.skip(16),
            _ => malformed(),
        }
    }

    /// The number of children that a SchemaElement states.
    fn schema_element(&mut self) -> Checked<i64> {
        let (mut last, mut children) = (0, 0);
        while let Some((kind, id)) = self.field(last)? {
            if id == CHILDREN_FIELD && matches!(kind, 4..=6) {
                children = self.zigzag()?;
            } else {
                self.value(kind, 2)?;
            }
            last = id;
        }
        Ok(children)
    }

    /// The schema is a tree in preorder.
    fn schema(&mut self) -> Checked<()> {
        let (count, kind) = self.list()?;
        if kind != 12 {
            return malformed();
        }
        let mut open: Vec<u64> = Vec::new();
        for index in 0..count {
            let children = u64::try_from(self.schema_element()?).or_else(|_| malformed())?;
            if children >= count - index {
                return malformed();
            }
            if let Some(missing) = open.last_mut() {
                *missing -= 1;
            }
            open.push(children);
            if open.len() > MAX_SCHEMA_DEPTH {
                return Err(format!("the Parquet schema nests deeper than {MAX_SCHEMA_DEPTH} levels"));
            }
            while open.last() == Some(&0) {
                open.pop();
            }
        }
        Ok(())
    }
}

/// Refuses a footer that is not sound. `bytes` is the footer alone.
pub fn check(bytes: &[u8]) -> Checked<()> {
    let mut cursor = Cursor { rest: bytes };
    let mut last = 0;
    while let Some((kind, id)) = cursor.field(last)? {
        if id == SCHEMA_FIELD && kind == 9 {
            cursor.schema()?;
        } else {
            cursor.value(kind, 1)?;
        }
        last = id;
    }
    Ok(())
}

/// The footer of a file: before its last eight bytes, which are its length and the magic word.
pub fn read(file: &mut File) -> Checked<Vec<u8>> {
    let none = || "no Parquet footer: the file is truncated, or no Parquet file".to_owned();
    let size = file.seek(SeekFrom::End(0)).map_err(|error| error.to_string())?;
    if size < 12 {
        return Err(none());
    }
    let mut tail = [0; 8];
    let mut fill = |position: u64, bytes: &mut [u8]| -> Checked<()> {
        file.seek(SeekFrom::Start(position)).map_err(|error| error.to_string())?;
        file.read_exact(bytes).map_err(|error| error.to_string())
    };
    fill(size - 8, &mut tail)?;
    let (length, magic) = tail.split_at(4);
    let length = u64::from(u32::from_le_bytes([length[0], length[1], length[2], length[3]]));
    if magic == b"PARE" {
        return Err("the Parquet file is encrypted".to_owned());
    }
    if magic != MAGIC || length > size - 12 {
        return Err(none());
    }
    let mut footer = vec![0; length as usize];
    fill(size - 8 - length, &mut footer)?;
    Ok(footer)
}

#[cfg(test)]
mod tests {
    use super::check;

    /// FileMetaData with a schema of groups that each have one child, `depth` of them, and a leaf.
    fn nested(depth: u32) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xfc]; // field 2, list; structs, count follows
        let count = depth + 1;
        let mut rest = count;
        while rest >= 0x80 {
            bytes.push((rest & 0x7f) as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        for _ in 0..depth {
            bytes.extend([0x55, 0x02, 0x00]); // field 5, i32: 1; stop
        }
        bytes.extend([0x00, 0x00]);
        bytes
    }

    #[test]
    fn accepts_a_shallow_schema_and_refuses_a_deep_one() {
        assert_eq!(check(&nested(10)), Ok(()));
        assert!(check(&nested(100_000)).unwrap_err().contains("deeper"));
    }

    #[test]
    fn refuses_counts_that_do_not_fit() {
        assert!(check(&[0x29, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07]).is_err()); // 2^31 schema elements
        assert!(check(&[0x29, 0x1c, 0x55, 0x7e, 0x00, 0x00]).is_err()); // one element with 63 children
        assert!(check(&[0x18, 0xff, 0xff, 0x03, 0x00]).is_err()); // a text of 64 KiB
    }

    #[test]
    fn survives_any_bytes() {
        let mut state = 1u32;
        for length in 0..2000usize {
            let bytes: Vec<u8> = (0..length % 64)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    (state >> 24) as u8
                })
                .collect();
            let _ = check(&bytes);
        }
    }
}
