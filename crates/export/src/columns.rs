//! Rows of one table as columns, written to and read from Parquet files
//! (<https://parquet.apache.org/docs/file-format/>).
//!
//! A column contains the values that are present, and for each row whether it has one.

use crate::rows::{Row, Value};
use crate::tables::{Kind, Table};
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;
use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Rows per row group. Readers can skip groups by their statistics.
const GROUP: usize = 1 << 16;

/// Rows of a table. Its first column names the store of each row and is never empty.
#[derive(Debug)]
pub struct Columns {
    table: &'static Table,
    columns: Vec<Column>,
    rows: usize,
}

#[derive(Debug)]
struct Column {
    /// Definition levels of Parquet: 1 for each row with a value.
    levels: Vec<i16>,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Integers(Vec<i64>),
    Numbers(Vec<f64>),
    Truths(Vec<bool>),
    Texts(Vec<ByteArray>),
}

impl Columns {
    /// Returns columns without rows.
    pub fn new(table: &'static Table) -> Columns {
        let columns = table.columns.iter().map(|column| Column::new(column.kind)).collect();
        Columns { table, columns, rows: 0 }
    }

    /// Converts rows to columns.
    ///
    /// # Errors
    /// Fails if a cell does not have its column's type.
    pub fn of(table: &'static Table, rows: Vec<Row>) -> Result<Columns, ParquetError> {
        let mut columns = Columns::new(table);
        for row in rows {
            for (column, cell) in columns.columns.iter_mut().zip(row) {
                column.push(cell)?;
            }
            columns.rows += 1;
        }
        Ok(columns)
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends all rows of another instance of this table.
    pub fn append(&mut self, other: Columns) {
        self.rows += other.rows;
        for (column, other) in self.columns.iter_mut().zip(other.columns) {
            column.levels.extend(other.levels);
            column.values.append(other.values);
        }
    }

    /// Keeps only the rows of the selected stores.
    #[must_use]
    pub fn kept(self, keeps: impl Fn(&str) -> bool) -> Columns {
        let all = self.stores();
        let kept: Vec<_> = all.iter().filter(|(store, _)| keeps(store)).cloned().collect();
        if kept.len() == all.len() { self } else { self.gather(&kept) }
    }

    /// Sorts the rows by store name.
    #[must_use]
    pub fn sorted(self) -> Columns {
        let mut stores = self.stores();
        if stores.is_sorted_by(|a, b| a.0 <= b.0) {
            return self;
        }
        stores.sort_by(|a, b| a.0.cmp(&b.0));
        self.gather(&stores)
    }

    /// Returns the stores and their row ranges, in row order.
    fn stores(&self) -> Vec<(String, Range<usize>)> {
        let Some(Column { values: Values::Texts(names), .. }) = self.columns.first() else {
            return Vec::new();
        };
        let mut stores: Vec<(String, Range<usize>)> = Vec::new();
        let mut begin = 0;
        for same in names.chunk_by(|a, b| a == b) {
            let name = same.first().map_or(&[][..], ByteArray::data);
            stores.push((String::from_utf8_lossy(name).into_owned(), begin..begin + same.len()));
            begin += same.len();
        }
        stores
    }

    fn gather(&self, of: &[(String, Range<usize>)]) -> Columns {
        let ranges: Vec<Range<usize>> = of.iter().map(|(_, rows)| rows.clone()).collect();
        let columns = self.columns.iter().map(|column| column.gather(&ranges)).collect();
        Columns { table: self.table, columns, rows: ranges.iter().map(Range::len).sum() }
    }

    /// Encodes the columns as a Parquet file.
    ///
    /// # Errors
    /// Fails if the format rejects the data.
    pub fn file(&self) -> Result<Vec<u8>, ParquetError> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(schema(self.table)?);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        // Start of the next group's values in each column.
        let mut first = vec![0; self.columns.len()];
        for begin in (0..self.rows).step_by(GROUP) {
            let rows = begin..self.rows.min(begin + GROUP);
            let mut group = writer.next_row_group()?;
            for (column, first) in self.columns.iter().zip(&mut first) {
                let levels = &column.levels[rows.clone()];
                let values = *first..*first + present(levels);
                *first = values.end;
                column.write(&mut group, levels, values)?;
            }
            group.close()?;
        }
        writer.into_inner()
    }

    /// Reads a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or has other columns.
    pub fn read(path: &Path, table: &'static Table) -> Result<Columns, ParquetError> {
        let other = || ParquetError::General(format!("{} holds other columns", path.display()));
        let reader = SerializedFileReader::new(File::open(path)?)?;
        let written = reader.metadata().file_metadata().schema_descr_ptr();
        let names = written.columns().iter().map(|column| column.name().to_owned());
        if !names.eq(table.columns.iter().map(|column| column.name)) {
            return Err(other());
        }
        let mut columns = Columns::new(table);
        for number in 0..reader.num_row_groups() {
            let group = reader.get_row_group(number)?;
            let rows = usize::try_from(group.metadata().num_rows()).map_err(|_| other())?;
            for (number, column) in columns.columns.iter_mut().enumerate() {
                column.read(group.as_ref(), number, rows)?;
            }
            columns.rows += rows;
        }
        match columns.columns.iter().all(|column| column.levels.len() == columns.rows) {
            true => Ok(columns),
            false => Err(other()),
        }
    }
}

impl Column {
    fn new(kind: Kind) -> Column {
        let values = match kind {
            Kind::Integer => Values::Integers(Vec::new()),
            Kind::Number => Values::Numbers(Vec::new()),
            Kind::Truth => Values::Truths(Vec::new()),
            Kind::Text => Values::Texts(Vec::new()),
        };
        Column { levels: Vec::new(), values }
    }

    fn push(&mut self, cell: Value) -> Result<(), ParquetError> {
        self.levels.push(i16::from(cell != Value::Null));
        match (&mut self.values, cell) {
            (_, Value::Null) => {}
            (Values::Integers(values), Value::Integer(value)) => values.push(value),
            (Values::Numbers(values), Value::Number(value)) => values.push(value),
            (Values::Truths(values), Value::Truth(value)) => values.push(value),
            (Values::Texts(values), Value::Text(value)) => {
                // Store names repeat; the buffer of the last one is shared.
                let same = values.last().filter(|last| last.data() == value.as_bytes());
                let value = same.cloned().unwrap_or_else(|| ByteArray::from(value.into_bytes()));
                values.push(value);
            }
            (_, cell) => return Err(ParquetError::General(format!("{cell:?} is of another kind"))),
        }
        Ok(())
    }

    fn gather(&self, ranges: &[Range<usize>]) -> Column {
        let mut starts = Vec::with_capacity(self.levels.len() + 1);
        starts.push(0);
        for &level in &self.levels {
            starts.push(starts[starts.len() - 1] + usize::from(level == 1));
        }
        let levels = ranges.iter().flat_map(|rows| &self.levels[rows.clone()]).copied().collect();
        let value_ranges = ranges.iter().map(|rows| starts[rows.start]..starts[rows.end]);
        Column { levels, values: self.values.gather(value_ranges) }
    }

    /// Writes one group's part of the column.
    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
        levels: &[i16],
        values: Range<usize>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("a column too many".into()));
        };
        let levels = Some(levels);
        match &self.values {
            Values::Integers(all) => {
                column.typed::<Int64Type>().write_batch(&all[values], levels, None)?
            }
            Values::Numbers(all) => {
                column.typed::<DoubleType>().write_batch(&all[values], levels, None)?
            }
            Values::Truths(all) => {
                column.typed::<BoolType>().write_batch(&all[values], levels, None)?
            }
            Values::Texts(all) => {
                column.typed::<ByteArrayType>().write_batch(&all[values], levels, None)?
            }
        };
        column.close()
    }

    /// Appends one group's part of column `number`.
    fn read(
        &mut self,
        group: &dyn RowGroupReader,
        number: usize,
        rows: usize,
    ) -> Result<(), ParquetError> {
        let levels = &mut self.levels;
        match &mut self.values {
            Values::Integers(values) => read::<Int64Type>(group, number, rows, levels, values),
            Values::Numbers(values) => read::<DoubleType>(group, number, rows, levels, values),
            Values::Truths(values) => read::<BoolType>(group, number, rows, levels, values),
            Values::Texts(values) => read::<ByteArrayType>(group, number, rows, levels, values),
        }
    }
}

impl Values {
    fn append(&mut self, other: Values) {
        match (self, other) {
            (Values::Integers(values), Values::Integers(other)) => values.extend(other),
            (Values::Numbers(values), Values::Numbers(other)) => values.extend(other),
            (Values::Truths(values), Values::Truths(other)) => values.extend(other),
            (Values::Texts(values), Values::Texts(other)) => values.extend(other),
            // Unreachable: columns of one table have the same type.
            _ => {}
        }
    }

    fn gather(&self, ranges: impl Iterator<Item = Range<usize>>) -> Values {
        fn of<T: Clone>(values: &[T], ranges: impl Iterator<Item = Range<usize>>) -> Vec<T> {
            ranges.flat_map(|range| &values[range]).cloned().collect()
        }
        match self {
            Values::Integers(values) => Values::Integers(of(values, ranges)),
            Values::Numbers(values) => Values::Numbers(of(values, ranges)),
            Values::Truths(values) => Values::Truths(of(values, ranges)),
            Values::Texts(values) => Values::Texts(of(values, ranges)),
        }
    }
}

fn read<T: DataType>(
    group: &dyn RowGroupReader,
    number: usize,
    rows: usize,
    levels: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(number)?);
    let mut left = rows;
    while left > 0 {
        let (read, _, _) = reader.read_records(left, Some(levels), None, values)?;
        if read == 0 {
            break;
        }
        left -= read;
    }
    Ok(())
}

/// Returns the number of values.
fn present(levels: &[i16]) -> usize {
    levels.iter().filter(|&&level| level == 1).count()
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
