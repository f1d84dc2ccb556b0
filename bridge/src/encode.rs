//! Rows as bytes, in the form that include/modelkit_bridge/parquet.h describes.

use num_bigint::BigInt;
use parquet::data_type::Decimal;
use parquet::record::{Field, Row};

const NULL: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INT: u8 = 3;
const UNSIGNED: u8 = 4;
const FLOAT: u8 = 5;
const TEXT: u8 = 6;
const BYTES: u8 = 7;
const LIST: u8 = 8;
const STRUCT: u8 = 9;

fn count(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&(n as u64).to_le_bytes());
}

fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
    count(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub fn int(out: &mut Vec<u8>, value: i64) {
    out.push(INT);
    out.extend_from_slice(&value.to_le_bytes());
}

fn unsigned(out: &mut Vec<u8>, value: u64) {
    match i64::try_from(value) {
        Ok(value) => int(out, value),
        Err(_) => {
            out.push(UNSIGNED);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

fn float(out: &mut Vec<u8>, value: f64) {
    out.push(FLOAT);
    out.extend_from_slice(&value.to_le_bytes());
}

pub fn text(out: &mut Vec<u8>, value: &str) {
    out.push(TEXT);
    sized(out, value.as_bytes());
}

pub fn list_header(out: &mut Vec<u8>, n: usize) {
    out.push(LIST);
    count(out, n);
}

pub fn struct_header(out: &mut Vec<u8>, n: usize) {
    out.push(STRUCT);
    count(out, n);
}

pub fn name(out: &mut Vec<u8>, value: &str) {
    sized(out, value.as_bytes());
}

/// Digits with the point where the scale puts it: 1234 at scale 2 is 12.34, -1 is -0.01.
fn decimal_text(value: &Decimal) -> String {
    let digits = BigInt::from_signed_bytes_be(value.data()).to_string();
    let scale = usize::try_from(value.scale()).unwrap_or(0);
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits.as_str()),
    };
    if scale == 0 {
        return format!("{sign}{digits}");
    }
    let padded = format!("{digits:0>width$}", width = scale + 1);
    let (whole, fraction) = padded.split_at(padded.len() - scale);
    format!("{sign}{whole}.{fraction}")
}

fn field(out: &mut Vec<u8>, value: &Field) {
    match value {
        Field::Null => out.push(NULL),
        Field::Bool(v) => out.push(if *v { TRUE } else { FALSE }),
        Field::Byte(v) => int(out, (*v).into()),
        Field::Short(v) => int(out, (*v).into()),
        Field::Int(v) | Field::Date(v) | Field::TimeMillis(v) => int(out, (*v).into()),
        Field::Long(v) | Field::TimeMicros(v) | Field::TimestampMillis(v) | Field::TimestampMicros(v) => int(out, *v),
        Field::UByte(v) => int(out, (*v).into()),
        Field::UShort(v) => int(out, (*v).into()),
        Field::UInt(v) => int(out, (*v).into()),
        Field::ULong(v) => unsigned(out, *v),
        Field::Float16(v) => float(out, v.to_f64()),
        Field::Float(v) => float(out, (*v).into()),
        Field::Double(v) => float(out, *v),
        Field::Decimal(v) => text(out, &decimal_text(v)),
        Field::Str(v) => text(out, v),
        Field::Bytes(v) => {
            out.push(BYTES);
            sized(out, v.data());
        }
        Field::Group(v) => row(out, v),
        Field::ListInternal(v) => {
            list_header(out, v.elements().len());
            v.elements().iter().for_each(|element| field(out, element));
        }
        Field::MapInternal(v) => {
            list_header(out, v.entries().len());
            for (key, value) in v.entries() {
                list_header(out, 2);
                field(out, key);
                field(out, value);
            }
        }
    }
}

pub fn row(out: &mut Vec<u8>, row: &Row) {
    struct_header(out, row.len());
    for (key, value) in row.get_column_iter() {
        name(out, key);
        field(out, value);
    }
}
