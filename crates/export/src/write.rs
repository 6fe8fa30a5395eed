//! One Parquet file a store and table (<https://parquet.apache.org/docs/file-format/>).

use crate::ExportError;
use crate::rows::{Place, Row, Value};
use crate::tables::{Kind, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of one group: what a reader may leave out by its statistics.
const GROUP: usize = 1 << 16;

/// Where the file of a store and table lies: folders that readers take for columns
/// (`bed=NAME/day=DAY`), and a name of the store's own.
pub fn place(directory: &Path, table: &Table, place: &Place) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ".-_".contains(c) { c } else { '_' };
    let name: String = place.store.chars().map(plain).collect();
    // The end of a long name tells more; the sum tells two of one spelling apart.
    let tail = &name[name.len().saturating_sub(80)..];
    directory
        .join(table.name)
        .join(format!("bed={}", place.bed))
        .join(format!("day={}", place.day))
        .join(format!("{tail}-{:016x}.parquet", sum(&place.store)))
}

/// FNV-1a, 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>): names only.
fn sum(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Writes rows into a new file, which takes its name when it is whole; returns its bytes.
///
/// # Errors
/// When it can't be written.
pub fn file(path: &Path, table: &Table, rows: &[Row]) -> Result<u64, ExportError> {
    let fail = |why: String| ExportError::Write { path: path.to_path_buf(), why };
    let unfinished = path.with_extension(format!("unfinished-{}", std::process::id()));
    let write = || -> Result<u64, Box<dyn std::error::Error>> {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        let mut file = fs::File::create(&unfinished)?;
        let bytes = bytes(table, rows)?;
        file.write_all(&bytes)?;
        fs::rename(&unfinished, path)?;
        Ok(bytes.len() as u64)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&unfinished);
        fail(error.to_string())
    })
}

/// The file.
fn bytes(table: &Table, rows: &[Row]) -> Result<Vec<u8>, ParquetError> {
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let schema = Arc::new(schema(table)?);
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
    for rows in rows.chunks(GROUP) {
        let mut group = writer.next_row_group()?;
        for (number, column) in table.columns.iter().enumerate() {
            let cells: Vec<&Value> = rows.iter().filter_map(|row| row.get(number)).collect();
            column_of(&mut group, column.kind, &cells)?;
        }
        group.close()?;
    }
    writer.into_inner()
}

fn schema(table: &Table) -> Result<Type, ParquetError> {
    let columns = table.columns.iter().map(|column| {
        let (physical, logical) = match column.kind {
            Kind::Integer => (Physical::INT64, None),
            Kind::Number => (Physical::DOUBLE, None),
            Kind::Truth => (Physical::BOOLEAN, None),
            Kind::Text => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let column = Type::primitive_type_builder(column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        Ok(Arc::new(column.build()?))
    });
    let columns = columns.collect::<Result<Vec<_>, ParquetError>>()?;
    Type::group_type_builder(table.name).with_fields(columns).build()
}

/// Writes one column: values where there are any, and for each row whether there is one.
fn column_of(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    kind: Kind,
    cells: &[&Value],
) -> Result<(), ParquetError> {
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("a column too many".into()));
    };
    let there: Vec<i16> = cells.iter().map(|cell| i16::from(**cell != Value::Null)).collect();
    let levels = Some(there.as_slice());
    let present = || cells.iter().copied().filter(|cell| **cell != Value::Null);
    let other = |cell: &Value| ParquetError::General(format!("{cell:?} is no {kind:?}"));
    match kind {
        Kind::Integer => {
            let values = present().map(|cell| match cell {
                Value::Integer(value) => Ok(*value),
                cell => Err(other(cell)),
            });
            let values: Vec<i64> = values.collect::<Result<_, _>>()?;
            column.typed::<Int64Type>().write_batch(&values, levels, None)?;
        }
        Kind::Number => {
            let values = present().map(|cell| match cell {
                Value::Number(value) => Ok(*value),
                cell => Err(other(cell)),
            });
            let values: Vec<f64> = values.collect::<Result<_, _>>()?;
            column.typed::<DoubleType>().write_batch(&values, levels, None)?;
        }
        Kind::Truth => {
            let values = present().map(|cell| match cell {
                Value::Truth(value) => Ok(*value),
                cell => Err(other(cell)),
            });
            let values: Vec<bool> = values.collect::<Result<_, _>>()?;
            column.typed::<BoolType>().write_batch(&values, levels, None)?;
        }
        Kind::Text => {
            let values = present().map(|cell| match cell {
                Value::Text(value) => Ok(ByteArray::from(value.as_bytes().to_vec())),
                cell => Err(other(cell)),
            });
            let values: Vec<ByteArray> = values.collect::<Result<_, _>>()?;
            column.typed::<ByteArrayType>().write_batch(&values, levels, None)?;
        }
    }
    column.close()
}
