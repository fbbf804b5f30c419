//! Random values of any type that serde can read: a deserializer that reads dice.
//!
//! A new frame or field is drawn without a change here. Text is made of plain letters, since some types
//! accept no other. If a type refuses a value, the caller draws again.

use rand::{Rng, RngExt};
use rand_chacha::ChaCha8Rng;
use serde::de::value::Error;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess,
    SeqAccess, VariantAccess, Visitor,
};
use std::collections::BTreeMap;

/// Maximum items of a short list.
const SHORT: usize = 4;

/// Maximum items of a long list.
const LONG: usize = 300;

/// Draws values, all variants of an enum eventually.
pub struct Dice {
    pub random: ChaCha8Rng,
    /// Variants not drawn yet, of every enum that was drawn from.
    left: BTreeMap<(&'static str, &'static str), bool>,
}

impl Dice {
    pub fn new(random: ChaCha8Rng) -> Self {
        Self { random, left: BTreeMap::new() }
    }

    /// Returns enums and variants that could have been drawn and were not.
    pub fn left(&self) -> Vec<(&'static str, &'static str)> {
        self.left.iter().filter(|(_, left)| **left).map(|(variant, _)| *variant).collect()
    }

    pub fn draw<T: DeserializeOwned>(&mut self) -> T {
        for _ in 0..1000 {
            if let Ok(value) = T::deserialize(&mut *self) {
                return value;
            }
        }
        panic!("a thousand draws were no {}", std::any::type_name::<T>());
    }

    /// Draws a number of any size, small ones as often as large ones.
    fn number(&mut self) -> u64 {
        let bits = self.random.random_range(0..64);
        self.random.next_u64() >> bits
    }

    fn length(&mut self) -> usize {
        let most = if self.random.random_range(0..16) == 0 { LONG } else { SHORT };
        self.random.random_range(0..=most)
    }

    fn text(&mut self) -> String {
        let length = self.length().clamp(1, 60);
        (0..length).map(|_| char::from(b"abcxyzABCXYZ019_-"[self.random.random_range(0..17)])).collect()
    }
}

macro_rules! numbers {
    ($($method:ident $visit:ident $of:ty,)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            visitor.$visit(self.number() as $of)
        })*
    };
}

impl<'de> Deserializer<'de> for &mut Dice {
    type Error = Error;

    numbers! {
        deserialize_i8 visit_i8 i8,
        deserialize_i16 visit_i16 i16,
        deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64,
        deserialize_u8 visit_u8 u8,
        deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32,
        deserialize_u64 visit_u64 u64,
        deserialize_f32 visit_f32 f32,
        deserialize_f64 visit_f64 f64,
    }

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("types on the wire say what they are"))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_bool(self.random.random())
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_char(self.random.random())
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.text())
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_string(self.text())
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_byte_buf(self.text().into_bytes())
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_byte_buf(self.text().into_bytes())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.random.random() { visitor.visit_some(self) } else { visitor.visit_none() }
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_unit()
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.length();
        visitor.visit_seq(Items { dice: self, left })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { dice: self, left: length })
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { dice: self, left: length })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let left = self.length();
        visitor.visit_map(Items { dice: self, left })
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_seq(Items { dice: self, left: fields.len() })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        let drawn = self.random.random_range(0..variants.len());
        // Every second time a new one, so that all are drawn soon.
        let new = variants.iter().position(|variant| *self.left.entry((name, variant)).or_insert(true));
        let index = new.filter(|_| self.random.random()).unwrap_or(drawn);
        self.left.insert((name, variants[index]), false);
        visitor.visit_enum(Variant { dice: self, index: index as u32 })
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("fields on the wire have no names"))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Error> {
        Err(Error::custom("nothing on the wire is ignored"))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

struct Items<'d> {
    dice: &'d mut Dice,
    left: usize,
}

impl Items<'_> {
    fn next<'de, S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        seed.deserialize(&mut *self.dice).map(Some)
    }
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.next(seed)
    }
}

impl<'de> MapAccess<'de> for Items<'_> {
    type Error = Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Error> {
        self.next(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(&mut *self.dice)
    }
}

struct Variant<'d> {
    dice: &'d mut Dice,
    index: u32,
}

impl<'de> EnumAccess<'de> for Variant<'_> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<(S::Value, Self), Error> {
        let index: serde::de::value::U32Deserializer<Error> = self.index.into_deserializer();
        Ok((seed.deserialize(index)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        Ok(())
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, Error> {
        seed.deserialize(self.dice)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Error> {
        self.dice.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.dice.deserialize_tuple(fields.len(), visitor)
    }
}
