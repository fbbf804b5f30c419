//! Counts the memory of lists inside a message while it is decoded.
//!
//! An item of a list can take far more memory than bytes: `None` is one byte, and its place in the list is as large as
//! the largest variant. The decoder counts bytes only, so a wrapping [`Deserializer`] also counts places. The bytes of
//! strings are not counted here, since their memory equals their bytes.

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;

/// Maximum places allocated in a list before its items have been decoded. Until then its length is only a claim, and
/// serde would reserve up to 1 MiB by it. A longer list grows as its items are decoded.
const PLACES_AHEAD_MAX: usize = 64;

/// Decodes a `T` whose lists have places of at most this many bytes in total.
pub(super) struct Bounded<'a, T> {
    left: &'a Cell<usize>,
    of: PhantomData<T>,
}

impl<'a, T> Bounded<'a, T> {
    /// `left` is the remaining memory for lists; it decreases.
    pub fn new(left: &'a Cell<usize>) -> Self {
        Self { left, of: PhantomData }
    }
}

impl<'de, T: serde::Deserialize<'de>> DeserializeSeed<'de> for Bounded<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<T, D::Error> {
        T::deserialize(Counted { inner, left: self.left, list: false })
    }
}

/// Wrapper of any part of decoding: a deserializer, a visitor, a seed or an access, with the remaining memory.
struct Counted<'a, I> {
    inner: I,
    left: &'a Cell<usize>,
    /// True if its items are in a list, whose length is controlled by the sender, and are charged.
    list: bool,
}

impl<'a, I> Counted<'a, I> {
    fn plain(inner: I, left: &'a Cell<usize>) -> Self {
        Self { inner, left, list: false }
    }

    fn charge<V, E: Error>(&self) -> Result<(), E> {
        if !self.list {
            return Ok(());
        }
        let left = self.left.get().checked_sub(size_of::<V>());
        self.left.set(left.ok_or_else(|| E::custom("its lists would take more memory than is allowed"))?);
        Ok(())
    }
}

/// Methods whose visitor receives no nested items.
macro_rules! leaves {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.inner.$method(visitor)
        })*
    };
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Counted<'_, D> {
    type Error = D::Error;

    leaves! {
        deserialize_any deserialize_bool deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_i128 deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
        deserialize_f32 deserialize_f64 deserialize_char deserialize_str deserialize_bytes deserialize_unit
        deserialize_identifier deserialize_ignored_any
    }

    // Borrowed, so that no memory is allocated for a string that does not exist.
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_str(visitor)
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_option(Counted::plain(visitor, self.left))
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_unit_struct(name, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_newtype_struct(name, Counted::plain(visitor, self.left))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_seq(Counted { inner: visitor, left: self.left, list: true })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple(length, Counted::plain(visitor, self.left))
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_tuple_struct(name, length, Counted::plain(visitor, self.left))
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.inner.deserialize_map(Counted { inner: visitor, left: self.left, list: true })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_struct(name, fields, Counted::plain(visitor, self.left))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.inner.deserialize_enum(name, variants, Counted::plain(visitor, self.left))
    }

    fn is_human_readable(&self) -> bool {
        self.inner.is_human_readable()
    }
}

/// Only nested values use this: visitors of plain values are passed to the decoder directly.
impl<'de, V: Visitor<'de>> Visitor<'de> for Counted<'_, V> {
    type Value = V::Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.expecting(formatter)
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.inner.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_some(Counted::plain(inner, self.left))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.inner.visit_newtype_struct(Counted::plain(inner, self.left))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_seq(Counted { inner, left: self.left, list: self.list })
    }

    fn visit_map<A: MapAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_map(Counted { inner, left: self.left, list: self.list })
    }

    fn visit_enum<A: EnumAccess<'de>>(self, inner: A) -> Result<V::Value, A::Error> {
        self.inner.visit_enum(Counted::plain(inner, self.left))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Counted<'_, S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, inner: D) -> Result<S::Value, D::Error> {
        self.inner.deserialize(Counted::plain(inner, self.left))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let next = self.inner.next_element_seed(Counted::plain(seed, self.left))?;
        if next.is_some() {
            self.charge::<S::Value, A::Error>()?;
        }
        Ok(next)
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint().map(|places| places.min(PLACES_AHEAD_MAX))
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        let next = self.inner.next_key_seed(Counted::plain(seed, self.left))?;
        if next.is_some() {
            self.charge::<S::Value, A::Error>()?;
        }
        Ok(next)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.charge::<S::Value, A::Error>()?;
        self.inner.next_value_seed(Counted::plain(seed, self.left))
    }

    fn size_hint(&self) -> Option<usize> {
        self.inner.size_hint().map(|places| places.min(PLACES_AHEAD_MAX))
    }
}

impl<'a, 'de, A: EnumAccess<'de>> EnumAccess<'de> for Counted<'a, A> {
    type Error = A::Error;
    type Variant = Counted<'a, A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self::Variant), A::Error> {
        let (value, variant) = self.inner.variant_seed(seed)?;
        Ok((value, Counted::plain(variant, self.left)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for Counted<'_, A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.inner.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.inner.newtype_variant_seed(Counted::plain(seed, self.left))
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.inner.tuple_variant(length, Counted::plain(visitor, self.left))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.inner.struct_variant(fields, Counted::plain(visitor, self.left))
    }
}
