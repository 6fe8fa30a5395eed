//! Rows of one table as columns, and as a Parquet file
//! (<https://parquet.apache.org/docs/file-format/>), which is written and read back here.
//!
//! A column holds the values that are there, and for each row whether there is one.

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

/// Rows of one group: what a reader may leave out by its statistics.
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
    /// For each row 1 where there is a value: levels of definition, as Parquet has them.
    there: Vec<i16>,
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
    /// None.
    pub fn new(table: &'static Table) -> Columns {
        let columns = table.columns.iter().map(|column| Column::new(column.kind)).collect();
        Columns { table, columns, rows: 0 }
    }

    /// These rows.
    ///
    /// # Errors
    /// When a cell is not what its column holds.
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

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// All rows of another set of this table behind these.
    pub fn append(&mut self, other: Columns) {
        self.rows += other.rows;
        for (column, other) in self.columns.iter_mut().zip(other.columns) {
            column.there.extend(other.there);
            column.values.append(other.values);
        }
    }

    /// The rows of these stores alone.
    #[must_use]
    pub fn kept(self, keeps: impl Fn(&str) -> bool) -> Columns {
        let all = self.stores();
        let kept: Vec<_> = all.iter().filter(|(store, _)| keeps(store)).cloned().collect();
        if kept.len() == all.len() { self } else { self.gather(&kept) }
    }

    /// The same, store by store in the order of their names.
    #[must_use]
    pub fn sorted(self) -> Columns {
        let mut stores = self.stores();
        if stores.is_sorted_by(|a, b| a.0 <= b.0) {
            return self;
        }
        stores.sort_by(|a, b| a.0.cmp(&b.0));
        self.gather(&stores)
    }

    /// The stores, each with its rows, as they follow each other.
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

    /// The file that holds them.
    ///
    /// # Errors
    /// When the format refuses something.
    pub fn file(&self) -> Result<Vec<u8>, ParquetError> {
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let schema = Arc::new(schema(self.table)?);
        let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(properties))?;
        // Where the values of the next group begin in each column.
        let mut first = vec![0; self.columns.len()];
        for begin in (0..self.rows).step_by(GROUP) {
            let rows = begin..self.rows.min(begin + GROUP);
            let mut group = writer.next_row_group()?;
            for (column, first) in self.columns.iter().zip(&mut first) {
                let there = &column.there[rows.clone()];
                let values = *first..*first + present(there);
                *first = values.end;
                column.write(&mut group, there, values)?;
            }
            group.close()?;
        }
        writer.into_inner()
    }

    /// What a file holds.
    ///
    /// # Errors
    /// When it can't be read, or holds other columns.
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
        match columns.columns.iter().all(|column| column.there.len() == columns.rows) {
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
        Column { there: Vec::new(), values }
    }

    fn push(&mut self, cell: Value) -> Result<(), ParquetError> {
        self.there.push(i16::from(cell != Value::Null));
        match (&mut self.values, cell) {
            (_, Value::Null) => {}
            (Values::Integers(values), Value::Integer(value)) => values.push(value),
            (Values::Numbers(values), Value::Number(value)) => values.push(value),
            (Values::Truths(values), Value::Truth(value)) => values.push(value),
            (Values::Texts(values), Value::Text(value)) => {
                // Names of stores come again and again: they are kept once.
                let same = values.last().filter(|last| last.data() == value.as_bytes());
                let value = same.cloned().unwrap_or_else(|| ByteArray::from(value.into_bytes()));
                values.push(value);
            }
            (_, cell) => return Err(ParquetError::General(format!("{cell:?} is of another kind"))),
        }
        Ok(())
    }

    fn gather(&self, ranges: &[Range<usize>]) -> Column {
        let mut starts = Vec::with_capacity(self.there.len() + 1);
        starts.push(0);
        for &there in &self.there {
            starts.push(starts[starts.len() - 1] + usize::from(there == 1));
        }
        let there = ranges.iter().flat_map(|rows| &self.there[rows.clone()]).copied().collect();
        let of_values = ranges.iter().map(|rows| starts[rows.start]..starts[rows.end]);
        Column { there, values: self.values.gather(of_values) }
    }

    /// Writes one group's part of the column.
    fn write(
        &self,
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
        there: &[i16],
        values: Range<usize>,
    ) -> Result<(), ParquetError> {
        let Some(mut column) = group.next_column()? else {
            return Err(ParquetError::General("a column too many".into()));
        };
        let levels = Some(there);
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
        let there = &mut self.there;
        match &mut self.values {
            Values::Integers(values) => read::<Int64Type>(group, number, rows, there, values),
            Values::Numbers(values) => read::<DoubleType>(group, number, rows, there, values),
            Values::Truths(values) => read::<BoolType>(group, number, rows, there, values),
            Values::Texts(values) => read::<ByteArrayType>(group, number, rows, there, values),
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
            // Columns of one table are of one kind.
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
    there: &mut Vec<i16>,
    values: &mut Vec<T::T>,
) -> Result<(), ParquetError> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(number)?);
    let mut left = rows;
    while left > 0 {
        let (read, _, _) = reader.read_records(left, Some(there), None, values)?;
        if read == 0 {
            break;
        }
        left -= read;
    }
    Ok(())
}

/// How many values there are.
fn present(there: &[i16]) -> usize {
    there.iter().filter(|&&there| there == 1).count()
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
