//! Parquet files: opening, describing, and walking rows forwards.

use std::fs::File;
use std::sync::Arc;

use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::{SchemaDescriptor, Type};

use crate::border::{guard, slice, text_of, MkbBuffer};
use crate::{encode, footer};

/// Values that a column reads ahead: pictures are large.
const BATCH: usize = 16;

pub struct MkbParquet {
    reader: Arc<SerializedFileReader<File>>,
}

pub struct MkbCursor {
    reader: Arc<SerializedFileReader<File>>,
    schema: Arc<SchemaDescriptor>,
    /// The first row of each row group, and the number of rows at the end.
    starts: Vec<u64>,
    rows: std::vec::IntoIter<u64>,
    group: Option<(usize, ReaderIter)>,
    /// The row that the open group delivers next.
    position: u64,
}

impl MkbParquet {
    fn open(path: &str) -> Result<Self, String> {
        let mut file = File::open(path).map_err(text_of)?;
        footer::check(&footer::read(&mut file)?)?;
        let reader = SerializedFileReader::new(file).map_err(text_of)?;
        if reader.metadata().row_groups().iter().any(|group| group.num_rows() < 0) {
            return Err("a row group has a negative number of rows".to_owned());
        }
        Ok(Self { reader: Arc::new(reader) })
    }

    fn root(&self) -> &Type {
        self.reader.metadata().file_metadata().schema()
    }

    /// The first row of each row group, and at the end the number of rows.
    fn starts(&self) -> Vec<u64> {
        let mut starts = vec![0];
        for group in self.reader.metadata().row_groups() {
            starts.push(starts[starts.len() - 1] + group.num_rows() as u64);
        }
        starts
    }

    fn describe(&self, out: &mut Vec<u8>) {
        encode::struct_header(out, 2);
        encode::name(out, "columns");
        let columns = self.root().get_fields();
        encode::list_header(out, columns.len());
        columns.iter().for_each(|column| encode::text(out, column.name()));
        encode::name(out, "metadata");
        let none = Vec::new();
        let entries = self.reader.metadata().file_metadata().key_value_metadata().unwrap_or(&none);
        encode::struct_header(out, entries.len());
        for entry in entries {
            encode::name(out, &entry.key);
            encode::text(out, entry.value.as_deref().unwrap_or(""));
        }
    }

    fn cursor(&self, columns: &[u32], rows: &[u64]) -> Result<MkbCursor, String> {
        let starts = self.starts();
        if rows.windows(2).any(|pair| pair[0] > pair[1])
            || rows.last().is_some_and(|last| *last >= starts[starts.len() - 1])
        {
            return Err("the rows asked for are not in ascending order, or not in the file".to_owned());
        }
        let fields = self.root().get_fields();
        let chosen = columns
            .iter()
            .map(|column| fields.get(*column as usize).cloned().ok_or_else(|| format!("no column {column}")))
            .collect::<Result<Vec<_>, _>>()?;
        let schema = Type::group_type_builder(self.root().name()).with_fields(chosen).build().map_err(text_of)?;
        Ok(MkbCursor {
            reader: Arc::clone(&self.reader),
            schema: Arc::new(SchemaDescriptor::new(Arc::new(schema))),
            starts,
            rows: Vec::from(rows).into_iter(),
            group: None,
            position: 0,
        })
    }
}

impl MkbCursor {
    /// Opens the row group that has the row, unless it is open.
    fn reach(&mut self, row: u64) -> Result<&mut ReaderIter, String> {
        let index = self.starts.partition_point(|start| *start <= row) - 1;
        if self.group.as_ref().map(|(open, _)| *open) != Some(index) {
            let group = self.reader.get_row_group(index).map_err(text_of)?;
            let tree = TreeBuilder::new().with_batch_size(BATCH);
            let iterator = tree.as_iter(Arc::clone(&self.schema), group.as_ref()).map_err(text_of)?;
            self.group = Some((index, iterator));
            self.position = self.starts[index];
        }
        Ok(&mut self.group.as_mut().expect("opened above").1)
    }

    fn next(&mut self, out: &mut Vec<u8>) -> Result<bool, String> {
        let Some(wanted) = self.rows.next() else { return Ok(false) };
        self.reach(wanted)?;
        while self.position <= wanted {
            let skipped = self.position < wanted;
            self.position += 1;
            let row = self.reach(wanted)?.next().ok_or("the row group ends early")?.map_err(text_of)?;
            if !skipped {
                encode::row(out, &row);
            }
        }
        Ok(true)
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_parquet_open(
    path: *const u8,
    path_size: usize,
    file: *mut *mut MkbParquet,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe {
        guard(error, || {
            let path = std::str::from_utf8(slice(path, path_size)).map_err(text_of)?;
            *file = Box::into_raw(Box::new(MkbParquet::open(path)?));
            Ok(0)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_parquet_close(file: *mut MkbParquet) {
    if !file.is_null() {
        drop(unsafe { Box::from_raw(file) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_parquet_row_count(file: *const MkbParquet) -> u64 {
    unsafe { (*file).starts().pop().unwrap_or(0) }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_parquet_describe(
    file: *const MkbParquet,
    row: *mut MkbBuffer,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe {
        guard(error, || {
            let mut out = Vec::new();
            (*file).describe(&mut out);
            (*row).put(out);
            Ok(0)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_parquet_cursor(
    file: *const MkbParquet,
    columns: *const u32,
    column_count: usize,
    rows: *const u64,
    row_count: usize,
    cursor: *mut *mut MkbCursor,
    error: *mut MkbBuffer,
) -> i32 {
    unsafe {
        guard(error, || {
            let opened = (*file).cursor(slice(columns, column_count), slice(rows, row_count))?;
            *cursor = Box::into_raw(Box::new(opened));
            Ok(0)
        })
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_cursor_close(cursor: *mut MkbCursor) {
    if !cursor.is_null() {
        drop(unsafe { Box::from_raw(cursor) });
    }
}

#[no_mangle]
pub unsafe extern "C" fn mkb_cursor_next(cursor: *mut MkbCursor, row: *mut MkbBuffer, error: *mut MkbBuffer) -> i32 {
    unsafe {
        guard(error, || {
            let mut out = (*row).take();
            out.clear();
            let found = (*cursor).next(&mut out);
            (*row).put(out);
            found.map(i32::from)
        })
    }
}
