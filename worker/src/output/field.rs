//! Types of fields of a line of output, and their formats.

use super::Output;
use std::fmt;

/// Type of a field of a line: text, bytes, numbers, and tuples of these, which are several fields.
/// Written in plain form, without quotes.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as a field of a line",
    note = "text, bytes, numbers and tuples of them can; give anything else as `format_args!(\"{{}}\", ...)`, or write a whole record with `Output::json`"
)]
pub trait Field {
    /// Writes the field.
    fn write_to(&self, out: &mut Output);
}

impl<F: Field + ?Sized> Field for &F {
    #[inline]
    fn write_to(&self, out: &mut Output) {
        (**self).write_to(out);
    }
}

impl Field for [u8] {
    #[inline]
    fn write_to(&self, out: &mut Output) {
        out.write(self);
    }
}

impl<const N: usize> Field for [u8; N] {
    fn write_to(&self, out: &mut Output) {
        out.write(self);
    }
}

macro_rules! text_fields {
    ($($type:ty),*) => {$(
        impl Field for $type {
            #[inline]
            fn write_to(&self, out: &mut Output) {
                out.write(self.as_ref());
            }
        }
    )*};
}
text_fields!(str, String, Vec<u8>, crate::key::ByteString);

macro_rules! integer_fields {
    ($($type:ident),*) => {$(
        impl Field for $type {
            #[inline]
            fn write_to(&self, out: &mut Output) {
                out.write(itoa::Buffer::new().format(*self).as_bytes());
            }
        }
    )*};
}
integer_fields!(u8, u16, u32, u64, u128, usize, i8, i16, i32, i64, i128, isize);

macro_rules! display_fields {
    ($($type:ident),*) => {$(
        impl Field for $type {
            fn write_to(&self, out: &mut Output) {
                out.write(self.to_string().as_bytes());
            }
        }
    )*};
}
display_fields!(f32, f64, bool, char);

macro_rules! tuple_fields {
    ($($first:ident $(, $other:ident)*;)*) => {$(
        /// Writes its components with tabs between them.
        impl<$first: Field, $($other: Field),*> Field for ($first, $($other,)*) {
            #[allow(non_snake_case, reason = "components are named like their types")]
            fn write_to(&self, out: &mut Output) {
                let ($first, $($other,)*) = self;
                $first.write_to(out);
                $(
                    out.write(b"\t");
                    $other.write_to(out);
                )*
            }
        }
    )*};
}
tuple_fields! {
    A, B;
    A, B, C;
    A, B, C, D;
    A, B, C, D, E;
    A, B, C, D, E, F;
}

impl Field for fmt::Arguments<'_> {
    fn write_to(&self, out: &mut Output) {
        match self.as_str() {
            Some(text) => out.write(text.as_bytes()),
            None => out.write(self.to_string().as_bytes()),
        }
    }
}
